"""One shared channel: carrier sense, random back-off, collisions, acknowledgements, bounded queues.

After 802.11's distributed coordination function, in five rules:

1. Whose channel has been idle for DIFS sends at once; others draw a number of slots and count
   them down while the channel is idle, frozen while it is busy.
2. A frame is sensed up to the carrier range, and cannot be sensed in the first half slot: who
   begins within it collides.
3. A node has a frame if it is in range and senses nothing else, and does not send itself, from
   the frame's beginning to its end.
4. A unicast frame is acknowledged after SIFS, whatever the channel does. Without acknowledgement
   it is sent again with a doubled window, up to the retry limit.
5. A frame that finds the queue full is dropped.
"""

from __future__ import annotations

from collections import deque
from random import Random

from earshot.simulation.medium import Contention
from earshot.simulation.neighbours import Neighbours
from earshot.simulation.queue import Priority
from earshot.simulation.transmission import Host, Transmission


class Station:
    """A node's side of the channel."""

    __slots__ = ("attempt", "counting", "counting_from", "frames", "sending", "slots", "tries", "was_heard", "window")

    def __init__(self, window: int) -> None:
        self.frames: deque[Transmission] = deque()
        "What waits; the first is the one contended for."
        self.window = window
        self.tries = 0
        "How often the first frame has been sent."
        self.was_heard = False
        "Whether its peer has it already, and only the acknowledgement was lost."
        self.sending = False
        "On air, or waiting for an acknowledgement."
        self.counting = False
        "Whether the slots are counted down: the channel is idle."
        self.counting_from = 0.0
        "DIFS after the channel fell idle."
        self.slots = 0
        "Left to count."
        self.attempt = 0
        "The number of the attempt that counts; earlier ones in the queue are void."


class OnAir:
    """A frame, or an acknowledgement, between its beginning and its end."""

    __slots__ = ("sender", "sensed_by", "station", "transmission")

    def __init__(self, sender: int, station: Station, transmission: Transmission, sensed_by: list[int]) -> None:
        self.sender = sender
        self.station = station
        "The sender's; of an acknowledgement, that of the node it is for."
        self.transmission = transmission
        self.sensed_by = sensed_by


class ContentionRadio:
    """The channel and all stations on it."""

    def __init__(
        self, settings: Contention, nodes: int, heard: Neighbours, sensed: Neighbours, host: Host, random: Random
    ) -> None:
        self._settings = settings
        self._heard_by = heard.of
        self._sensed_by = sensed.of
        self._host = host
        self._queue = host.queue
        self._draw = random.random
        self._slot_s, self._difs_s = settings.slot_s, settings.difs_s
        self._blind_s = settings.slot_s / 2
        self._ack_s = settings.preamble_s + settings.ack_bytes * 8 / settings.bit_rate_bps
        self._stations = [Station(settings.window_min) for _ in range(nodes)]
        self._busy = [0] * nodes
        "How many frames each node senses, its own included."
        self._busy_from = [0.0] * nodes
        self._idle_from = [-1.0] * nodes
        self._clear: list[OnAir | None] = [None] * nodes
        "The frame each node senses undisturbed so far."

    def airtime_s(self, packet_bytes: int) -> float:
        """How long a packet of that size keeps the channel busy."""
        settings = self._settings
        return settings.preamble_s + (settings.header_bytes + packet_bytes) * 8 / settings.bit_rate_bps

    # Waiting for the channel.

    def broadcast(self, transmission: Transmission) -> None:
        if not self._enqueue(transmission):
            self._host.dropped(transmission, "queue-full")

    def unicast(self, transmission: Transmission) -> None:
        if not self._enqueue(transmission):
            # Told no sooner than after a try, so that a machine that tries again at once lets time pass.
            told_at = self._queue.now + self.airtime_s(transmission.bytes)
            self._queue.at(told_at, Priority.MEDIUM, self._refuse, transmission)

    def _refuse(self, transmission: Transmission) -> None:
        self._host.unreachable(transmission, "queue-full")

    def _enqueue(self, transmission: Transmission) -> bool:
        station = self._stations[transmission.sender]
        if len(station.frames) >= self._settings.queue_frames:
            return False
        station.frames.append(transmission)
        if len(station.frames) == 1 and not station.sending:
            self._contend(transmission.sender, station)
        return True

    def _contend(self, node: int, station: Station) -> None:
        """For a new first frame: at once where the channel has been idle long enough (rule 1)."""
        now = self._queue.now
        idle_until = now
        if self._busy[node]:
            if now - self._busy_from[node] >= self._blind_s:
                idle_until = self._idle_from[node]
            else:
                idle_until = self._busy_from[node]
        if idle_until - self._idle_from[node] >= self._difs_s:
            self._transmit(node, station)
        else:
            self._back_off(node, station)

    def _back_off(self, node: int, station: Station) -> None:
        station.slots = int(self._draw() * (station.window + 1))
        if not self._busy[node]:
            self._count_down(node, station, max(self._idle_from[node] + self._difs_s, self._queue.now))

    def _count_down(self, node: int, station: Station, since: float) -> None:
        station.counting = True
        station.counting_from = since
        station.attempt += 1
        at = since + station.slots * self._slot_s
        self._queue.at(at, Priority.MEDIUM, self._try, (node, station, station.attempt))

    def _freeze(self, station: Station, now: float) -> None:
        """The channel has become busy: keep the slots that are left, unless it is too late to sense (rule 2)."""
        elapsed_s = now - station.counting_from
        if station.slots * self._slot_s - elapsed_s < self._blind_s:
            return
        station.counting = False
        station.attempt += 1
        if elapsed_s > 0:
            station.slots -= int(elapsed_s / self._slot_s + 1e-3)

    def _try(self, attempt: tuple[int, Station, int]) -> None:
        node, station, number = attempt
        if station.attempt == number:
            self._transmit(node, station)

    # On air.

    def _transmit(self, node: int, station: Station) -> None:
        transmission = station.frames[0]
        station.counting, station.sending = False, True
        station.attempt += 1
        station.tries += 1
        self._host.sent(transmission)
        air = OnAir(node, station, transmission, self._sensed_by(node, self._queue.now))
        self._begin(air)
        self._queue.at(
            self._queue.now + self.airtime_s(transmission.bytes),
            Priority.MEDIUM,
            self._end_of_broadcast if transmission.peer_name == "" else self._end_of_unicast,
            (air, self._heard_by(node, self._queue.now)),
        )

    def _begin(self, air: OnAir) -> None:
        busy, clear, stations, now = self._busy, self._clear, self._stations, self._queue.now
        for node in air.sensed_by:
            if busy[node]:
                busy[node] += 1
                clear[node] = None
            else:
                busy[node] = 1
                clear[node] = air
                self._busy_from[node] = now
                if stations[node].counting:
                    self._freeze(stations[node], now)
        sender = air.sender
        if not busy[sender]:
            self._busy_from[sender] = now
            if stations[sender].counting:
                self._freeze(stations[sender], now)
        busy[sender] += 1
        clear[sender] = None

    def _end(self, air: OnAir) -> None:
        """The channel falls idle for whoever senses nothing else."""
        busy, idle_from, stations, now = self._busy, self._idle_from, self._stations, self._queue.now
        since = now + self._difs_s
        for node in (*air.sensed_by, air.sender):
            busy[node] -= 1
            if not busy[node]:
                idle_from[node] = now
                station = stations[node]
                if station.frames and not station.sending:
                    self._count_down(node, station, since)

    def _end_of_broadcast(self, ending: tuple[OnAir, list[int]]) -> None:
        air, in_range = ending
        clear = self._clear
        heard = [node for node in in_range if clear[node] is air]
        collided = [node for node in in_range if clear[node] is not air] if len(heard) < len(in_range) else []
        self._end(air)
        transmission = air.transmission
        if self._stations[air.sender] is not air.station:
            return  # the sender crashed in the middle of it: nobody has it whole
        self._next_frame(air.sender, air.station)
        if collided:
            self._host.lost(transmission, collided, "collision")
        if heard:
            transmission.receivers = heard
            self._host.received(transmission)

    def _end_of_unicast(self, ending: tuple[OnAir, list[int]]) -> None:
        air, in_range = ending
        transmission, station = air.transmission, air.station
        peer = transmission.peer
        reached = peer in in_range and self._host.up[peer]
        clear = reached and self._clear[peer] is air
        self._end(air)
        if self._stations[air.sender] is not station:
            return
        now = self._queue.now
        if clear:
            self._queue.at(now + self._settings.sifs_s, Priority.MEDIUM, self._acknowledge, (air, peer))
            if not station.was_heard:
                station.was_heard = True
                transmission.receivers = [peer]
                self._host.received(transmission)
        else:
            if reached:
                self._host.lost(transmission, [peer], "collision")
            self._queue.at(now + self._settings.sifs_s + self._ack_s, Priority.MEDIUM, self._no_answer, air)

    def _acknowledge(self, answer: tuple[OnAir, int]) -> None:
        air, peer = answer
        acknowledgement = OnAir(peer, air.station, air.transmission, self._sensed_by(peer, self._queue.now))
        self._begin(acknowledgement)
        self._queue.at(self._queue.now + self._ack_s, Priority.MEDIUM, self._end_of_acknowledgement, acknowledgement)

    def _end_of_acknowledgement(self, air: OnAir) -> None:
        sender, station = air.transmission.sender, air.station
        clear = self._clear[sender] is air
        self._end(air)
        if self._stations[sender] is not station:
            return
        if clear:
            self._next_frame(sender, station)
        else:
            self._again(sender, station)

    def _no_answer(self, air: OnAir) -> None:
        if self._stations[air.sender] is air.station:
            self._again(air.sender, air.station)

    def _again(self, node: int, station: Station) -> None:
        """Rule 4: with a doubled window, or not at all."""
        if station.tries >= self._settings.retry_limit:
            transmission, was_heard = station.frames[0], station.was_heard
            self._next_frame(node, station)
            if not was_heard:
                self._host.unreachable(transmission, "retry-limit")
            return
        station.sending = False
        station.window = min(2 * station.window + 1, self._settings.window_max)
        self._back_off(node, station)

    def _next_frame(self, node: int, station: Station) -> None:
        station.frames.popleft()
        station.window = self._settings.window_min
        station.tries, station.was_heard, station.sending = 0, False, False
        if station.frames:
            self._contend(node, station)

    def node_down(self, node: int, graceful: bool) -> None:
        """A node that leaves in good order still sends what it has queued; a crash ends it all."""
        if not graceful:
            self._stations[node].attempt += 1
            self._stations[node] = Station(self._settings.window_min)
