"""One shared channel: carrier sense, random back-off, collisions, acknowledgements, bounded queues.

After 802.11's distributed coordination function, in five rules:

1. A node whose channel has been idle for DIFS sends at once. Other nodes draw a number of slots and
   count them down while the channel is idle; the countdown stops while it is busy.
2. A frame is sensed up to the carrier range. It cannot be sensed in its first half slot: nodes that
   begin within that time collide.
3. A node receives a frame if it is in range, senses nothing else and does not send, from the
   frame's beginning to its end; a frame that begins at the very moment of that end disturbs nothing. After
   a frame of which it could only read the preamble it waits for EIFS instead of DIFS.
4. A unicast frame is acknowledged after SIFS, whatever the channel does; others who read it keep
   silent until then (802.11's NAV). Without acknowledgement it is sent again with a doubled window,
   up to the retry limit.
5. Waiting frames are sent in order of the priority of their events, and then of time. If the queue is full,
   the last frame of the lowest priority is dropped.

A reception model may say which nodes are in range of a frame and sense it (`reception_draws`); with capture the
stronger of two frames that overlap is read (`capture`).
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from random import Random

import msgspec

from earshot.records import DropReason
from earshot.simulation.media.medium_settings import Contention
from earshot.simulation.media.neighbours import Neighbours
from earshot.simulation.media.reception_draws import Draw
from earshot.simulation.media.transmission import MediumHost, Transmission


class Station:
    """A node's side of the channel."""

    __slots__ = ("countdown", "frames", "node", "place", "slots", "tries", "was_heard", "window")

    def __init__(self, node: int, window: int) -> None:
        self.node = node
        self.frames: deque[Transmission] = deque()
        "Frames that wait; the first one is contended for or on air until it is finished."
        self.window = window
        self.tries = 0
        "How often the first frame was sent."
        self.was_heard = False
        "Whether its peer has received it, and only the acknowledgement was lost."
        self.slots = 0
        "Slots left to count down."
        self.countdown: Countdown | None = None
        "The countdown it takes part in, while its channel is idle."
        self.place = 0
        "Its place in the event queue when its slots are counted down."


class Countdown:
    """Stations that began to count at the same time, DIFS after the channel became idle.

    Only the next station to send has an entry in the event queue: its frame stops most of the others.
    """

    __slots__ = ("next", "since", "stations")

    def __init__(self, since: float, stations: list[Station]) -> None:
        self.since = since
        self.stations = stations
        self.next = stations[0]


_slots_left = attrgetter("slots")


class OnAir(msgspec.Struct, eq=False, gc=False):
    """A frame, or an acknowledgement, between its beginning and its end. No garbage collection, as for
    `Transmission`."""

    number: int
    "Frames and acknowledgements, counted as they begin."
    ends_at: float
    sender: int
    station: Station
    "The sender's; of an acknowledgement, that of the node it is for."
    transmission: Transmission
    sensed_by: tuple[int, ...]
    "Its sender comes last."
    in_range: list[int]
    faded: list[int] = []
    "Nodes within the range that cannot read it, by the reception model."
    powers: list[float] = []
    "Of each node that senses it, where frames are captured."


class ContentionRadio:
    """The channel and all stations on it.

    A frame touches each node that senses it once, when it begins. Its end is free where nothing
    disturbed it and nobody waits: most frames of a network that is not saturated.
    """

    def __init__(
        self,
        settings: Contention,
        nodes: int,
        heard: Neighbours,
        sensed: Neighbours,
        host: MediumHost,
        random: Random,
        drawn: Draw | None = None,
    ) -> None:
        self._settings = settings
        self._drawn = drawn
        "None: the two lists of neighbours say which nodes read and sense a frame."
        self._heard_by = None if heard is sensed else heard.of
        "None: every node that senses a frame is in its range."
        self._sensed_by = sensed.of
        self._host = host
        self._queue = host.queue
        self._on_channel = host.on_channel
        self._draw = random.random
        self._slot_s, self._difs_s = settings.slot_s, settings.difs_s
        self._blind_s = settings.slot_s / 2
        self._preamble_s = settings.preamble_s
        self._error_s = settings.eifs() - settings.difs_s
        self._ack_s = settings.preamble_s + settings.ack_bytes * 8 / settings.bit_rate_bps
        self._airtimes_s: dict[int, float] = {}
        "By the size of the packet."
        self._stations = [Station(node, settings.window_min) for node in range(nodes)]
        self._waiting: dict[int, Station] = {}
        "Stations that have drawn a number of slots and count down, or wait until they can."
        # A node's channel is busy from the first frame it senses, its own included, until the last has ended.
        self._busy_since = [-1.0] * nodes
        self._busy_until = [-1.0] * nodes
        self._idle_since = [-1.0] * nodes
        "When each node's channel became idle before it was last busy."
        self._held_until = [-1.0] * nodes
        "The channel counts as busy until then: after a frame that could not be read, or is not acknowledged yet."
        self._begun = 0
        "How many frames and acknowledgements have begun."
        self._reading = [0] * nodes
        "The number of the frame that each node senses and can read to its end; 0: none."
        self._disturbance = 0
        "The number of the last frame that disturbed any node."

    def airtime_s(self, packet_bytes: int) -> float:
        """How long a packet of that size keeps the channel busy."""
        known = self._airtimes_s.get(packet_bytes)
        if known is None:
            settings = self._settings
            known = settings.preamble_s + (settings.header_bytes + packet_bytes) * 8 / settings.bit_rate_bps
            self._airtimes_s[packet_bytes] = known
        return known

    # Waiting for the channel.

    def broadcast(self, transmission: Transmission) -> None:
        """Put the frame behind those of its own or a higher priority. A full queue drops its last frame of lower
        priority, or else this one."""
        station = self._stations[transmission.sender]
        frames = station.frames
        if not frames:
            frames.append(transmission)
            self._contend(station)
            return
        place, priority = len(frames), transmission.priority
        while place > 1 and frames[place - 1].priority < priority:
            place -= 1
        if len(frames) >= self._settings.queue_frames:
            if place == len(frames):
                self._drop(transmission)
                return
            self._drop(frames.pop())
        frames.insert(place, transmission)

    unicast = broadcast

    def _drop(self, transmission: Transmission) -> None:
        """The queue is full."""
        if transmission.peer_name == "":
            self._host.dropped(transmission, DropReason.QUEUE_FULL)
            return
        # Reported after the time of one attempt, so that time passes for a machine that tries again at once.
        reported_at = self._queue.now + self.airtime_s(transmission.bytes)
        self._queue.on_air(reported_at, self._refuse, transmission)

    def _refuse(self, transmission: Transmission) -> None:
        self._host.unreachable(transmission, DropReason.QUEUE_FULL)

    def _contend(self, station: Station) -> None:
        """For a new first frame: send at once if the channel has been idle long enough (rule 1)."""
        node, now = station.node, self._queue.now
        idle_since, idle_until = self._busy_until[node], now
        if idle_since > now and now - self._busy_since[node] < self._blind_s:
            idle_since, idle_until = self._idle_since[node], self._busy_since[node]
        if idle_until - max(idle_since, self._held_until[node]) >= self._difs_s:
            self._transmit(station)
        else:
            self._back_off(station)

    def _back_off(self, station: Station) -> None:
        station.slots = int(self._draw() * (station.window + 1))
        self._waiting[station.node] = station
        busy_until, now = self._busy_until[station.node], self._queue.now
        if busy_until <= now:
            self._count_down(
                [station], max(busy_until + self._difs_s, self._held_until[station.node] + self._difs_s, now)
            )

    def _count_down(self, stations: list[Station], since: float) -> None:
        countdown, place = Countdown(since, stations), self._queue.places(len(stations))
        for station in stations:
            station.countdown, station.place = countdown, place
            place += 1
        self._queue_next(countdown)

    def _queue_next(self, countdown: Countdown) -> None:
        """The station with the fewest slots left; of several, the first."""
        stations = countdown.stations
        countdown.next = station = min(stations, key=_slots_left) if len(stations) > 1 else stations[0]
        at = countdown.since + station.slots * self._slot_s
        self._queue.on_air_at_place(at, station.place, self._try, countdown)

    def _try(self, countdown: Countdown) -> None:
        station = countdown.next
        if station.countdown is countdown:
            self._transmit(station)
        if len(countdown.stations) > 1:
            countdown.stations = [one for one in countdown.stations if one.countdown is countdown]
            if countdown.stations:
                self._queue_next(countdown)

    def _freeze(self, station: Station, now: float) -> None:
        """The channel has become busy: stop counting, unless it is too late to sense the frame (rule 2)."""
        countdown = station.countdown
        if countdown is None:
            return
        elapsed_s = now - countdown.since
        if station.slots * self._slot_s - elapsed_s < self._blind_s:
            return
        station.countdown = None
        if elapsed_s > 0:
            station.slots -= int(elapsed_s / self._slot_s + 1e-3)

    # On air.

    def _transmit(self, station: Station) -> None:
        node, now = station.node, self._queue.now
        transmission = station.frames[0]
        if station.countdown is not None:
            del self._waiting[node]
            station.countdown = None
        station.tries += 1
        self._host.sent(transmission)
        ends_at = now + (self._airtimes_s.get(transmission.bytes) or self.airtime_s(transmission.bytes))
        air = self._begin(node, now, ends_at, station, transmission)
        end = self._end_of_broadcast if transmission.peer_name == "" else self._end_of_unicast
        self._queue.off_air(ends_at, end, air)

    def _begin(self, sender: int, now: float, ends_at: float, station: Station, transmission: Transmission) -> OnAir:
        """A node begins to send: whom it reaches, and whose countdown it stops."""
        self._begun = number = self._begun + 1
        if self._drawn is None:
            sensed_by = self._sensed_by(sender, now)
            in_range = sensed_by if self._heard_by is None else self._heard_by(sender, now)
            air = OnAir(number, ends_at, sender, station, transmission, (*sensed_by, sender), in_range)
        else:
            sensed_by, in_range, faded, powers = self._drawn(sender, now)
            air = OnAir(number, ends_at, sender, station, transmission, (*sensed_by, sender), in_range, faded, powers)
        self._on_channel((now, ends_at, sender, air.sensed_by))
        self._reach(air, now)
        waiting = self._waiting
        if waiting:
            for node in air.sensed_by:
                if node in waiting:
                    self._freeze(waiting[node], now)
        return air

    def _reach(self, air: OnAir, now: float) -> None:
        """The frame begins at the nodes that sense it (rule 3)."""
        since, until, idle_since, reading = self._busy_since, self._busy_until, self._idle_since, self._reading
        number, ends_at = air.number, air.ends_at
        for node in air.sensed_by:
            busy_until = until[node]
            if busy_until <= now:
                idle_since[node], since[node], until[node], reading[node] = busy_until, now, ends_at, number
            else:
                self._disturbance = number
                if reading[node]:
                    reading[node] = 0
                    if now - since[node] >= self._preamble_s:  # otherwise it does not know that there is a frame
                        self._held_until[node] = busy_until + self._error_s
                if ends_at > busy_until:
                    until[node] = ends_at
        reading[air.sender] = 0

    def _end(self, air: OnAir) -> None:
        """The channel becomes idle for nodes that sense nothing else: waiting stations go on counting."""
        waiting = self._waiting
        if not waiting:
            return
        until, held_until, now = self._busy_until, self._held_until, air.ends_at
        idle: list[Station] = []
        for node in air.sensed_by:
            if (station := waiting.get(node)) is not None and station.countdown is None and until[node] <= now:
                if held_until[node] > now:
                    self._count_down([station], held_until[node] + self._difs_s)
                else:
                    idle.append(station)
        if idle:
            self._count_down(idle, now + self._difs_s)

    def _end_of_broadcast(self, air: OnAir) -> None:
        heard, number, station = air.in_range, air.number, air.station
        collided: list[int] = []
        if self._disturbance >= number:
            reading = self._reading
            heard = [node for node in air.in_range if reading[node] == number]
            if len(heard) < len(air.in_range):
                collided = [node for node in air.in_range if reading[node] != number]
        self._end(air)
        transmission = air.transmission
        if self._stations[air.sender] is not station:
            return  # the sender crashed while sending: no node received the whole frame
        self._next_frame(station)
        if air.faded:
            self._host.lost(transmission, air.faded, DropReason.FADED)
        if collided:
            self._host.lost(transmission, collided, DropReason.COLLISION)
        if heard:
            transmission.receivers = heard
            self._host.received(transmission)

    def _end_of_unicast(self, air: OnAir) -> None:
        transmission, station = air.transmission, air.station
        peer = transmission.peer
        reached = peer in air.in_range and self._host.up[peer]
        clear = reached and self._reading[peer] == air.number
        now, reading, held_until = self._queue.now, self._reading, self._held_until
        answered_at = now + self._settings.sifs_s + self._ack_s
        for node in air.in_range:
            if reading[node] == air.number and node != peer:
                held_until[node] = answered_at
        self._end(air)
        if self._stations[air.sender] is not station:
            return
        if clear:
            self._queue.on_air(now + self._settings.sifs_s, self._acknowledge, air)
            if not station.was_heard:
                station.was_heard = True
                transmission.receivers = [peer]
                self._host.received(transmission)
        else:
            if reached:
                self._host.lost(transmission, [peer], DropReason.COLLISION)
            elif peer in air.faded:
                self._host.lost(transmission, [peer], DropReason.FADED)
            self._queue.on_air(answered_at, self._no_answer, air)

    def _acknowledge(self, air: OnAir) -> None:
        now, peer = self._queue.now, air.transmission.peer
        ends_at = now + self._ack_s
        acknowledgement = self._begin(peer, now, ends_at, air.station, air.transmission)
        self._queue.off_air(ends_at, self._end_of_acknowledgement, acknowledgement)

    def _end_of_acknowledgement(self, air: OnAir) -> None:
        sender, station = air.transmission.sender, air.station
        clear = self._reading[sender] == air.number and sender in air.in_range
        self._end(air)
        if self._stations[sender] is not station:
            return
        if clear:
            self._next_frame(station)
        else:
            self._again(station)

    def _no_answer(self, air: OnAir) -> None:
        if self._stations[air.sender] is air.station:
            self._again(air.station)

    def _again(self, station: Station) -> None:
        """Rule 4: send again with a doubled window, or give up."""
        if station.tries >= self._settings.retry_limit:
            transmission, was_heard = station.frames[0], station.was_heard
            self._next_frame(station)
            if not was_heard:
                self._host.unreachable(transmission, DropReason.RETRY_LIMIT)
            return
        station.window = min(2 * station.window + 1, self._settings.window_max)
        self._back_off(station)

    def _next_frame(self, station: Station) -> None:
        station.frames.popleft()
        station.window = self._settings.window_min
        station.tries, station.was_heard = 0, False
        if station.frames:
            self._contend(station)

    def node_down(self, node: int, graceful: bool) -> None:
        """A node that leaves in good order still sends its queued frames; after a crash they are lost."""
        if not graceful:
            self._stations[node].countdown = None
            self._stations[node] = Station(node, self._settings.window_min)
            self._waiting.pop(node, None)
