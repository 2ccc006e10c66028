"""Media without a shared channel: the radios `unit-disk` and `lossy`, and `overlay`."""

from __future__ import annotations

import math
from hashlib import blake2b
from math import sqrt
from random import Random

from earshot.records import DropReason
from earshot.records.trajectories import Trajectories
from earshot.simulation.media.medium_settings import Lossy, Overlay, UnitDisk
from earshot.simulation.media.neighbours import Neighbours
from earshot.simulation.media.radios import radio_of
from earshot.simulation.media.transmission import MediumHost, Transmission


class UnitDiskRadio:
    """Every node in range when a packet is sent receives it `latency_s` later.

    All packets sent at the same time arrive together, in the same order: they share one queue entry.
    """

    def __init__(self, settings: UnitDisk, neighbours: Neighbours, host: MediumHost) -> None:
        self._latency_s = settings.latency_s
        self._radio = radio_of(settings.radio)
        self._neighbours_of = neighbours.of
        self._host = host
        self._sent, self._received = host.sent, host.received
        self._queue = host.queue
        self._now = math.nan
        self._under_way: list[Transmission] = []
        "What was sent at `_now`."

    def airtime_s(self, packet_bytes: int) -> float:
        return 0.0 if self._radio is None else self._radio.airtime_s(packet_bytes)

    def broadcast(self, transmission: Transmission) -> None:
        now = self._queue.now
        if now is not self._now:
            self._start_batch(now)
        self._sent(transmission)
        transmission.receivers = heard_by = self._neighbours_of(transmission.sender, now)
        self._under_way.append(transmission)
        if self._radio is not None:
            until = now + self._radio.airtime_s(transmission.bytes)
            self._host.on_channel((now, until, transmission.sender, heard_by))

    def unicast(self, transmission: Transmission) -> None:
        now = self._queue.now
        if now is not self._now:
            self._start_batch(now)
        self._sent(transmission)
        heard_by = self._neighbours_of(transmission.sender, now)
        transmission.receivers = [transmission.peer] if transmission.peer in heard_by else []
        self._under_way.append(transmission)
        if self._radio is not None:
            until = now + self._radio.airtime_s(transmission.bytes)
            self._host.on_channel((now, until, transmission.sender, heard_by))

    def _start_batch(self, now: float) -> None:
        self._now, self._under_way = now, []
        self._queue.on_air(now + self._latency_s, self._arrive, self._under_way)

    def _arrive(self, transmissions: list[Transmission]) -> None:
        received = self._received
        for transmission in transmissions:
            if transmission.peer_name and not (transmission.receivers and self._host.up[transmission.peer]):
                self._host.unreachable(transmission)
            else:
                received(transmission)

    def node_down(self, node: int, graceful: bool) -> None:
        """Packets already sent still arrive."""


class LossyRadio:
    """As unit-disk, but a receiver gets a packet only with a probability that falls with distance.
    A unicast is acknowledged (the acknowledgement is never lost) and is sent again if it was lost."""

    def __init__(
        self, settings: Lossy, trajectories: Trajectories, neighbours: Neighbours, host: MediumHost, random: Random
    ) -> None:
        self._settings = settings
        self._radio = radio_of(settings.radio)
        self._trajectories = trajectories
        self._neighbours_of = neighbours.of
        self._host = host
        self._queue = host.queue
        self._draw = random.random

    def airtime_s(self, packet_bytes: int) -> float:
        return 0.0 if self._radio is None else self._radio.airtime_s(packet_bytes)

    def _sent(self, transmission: Transmission) -> list[int]:
        """It goes on air now; returns the nodes in range."""
        now = self._queue.now
        self._host.sent(transmission)
        in_range = self._neighbours_of(transmission.sender, now)
        if self._radio is not None:
            until = now + self._radio.airtime_s(transmission.bytes)
            self._host.on_channel((now, until, transmission.sender, in_range))
        return in_range

    def broadcast(self, transmission: Transmission) -> None:
        now = self._queue.now
        receivers: list[int] = []
        faded: list[int] = []
        transmission.receivers = receivers
        for node in self._sent(transmission):
            (receivers if self._reaches(transmission.sender, node, now) else faded).append(node)
        self._queue.on_air(now + self._settings.latency_s, self._arrive, (transmission, faded))

    def _arrive(self, arrival: tuple[Transmission, list[int]]) -> None:
        transmission, faded = arrival
        if faded:
            self._host.lost(transmission, faded, DropReason.FADED)
        self._host.received(transmission)

    def unicast(self, transmission: Transmission) -> None:
        self._try((transmission, 0))

    def _try(self, attempt: tuple[Transmission, int]) -> None:
        transmission, tries = attempt
        if self._host.orphaned(transmission):
            return
        now = self._queue.now
        in_range = transmission.peer in self._sent(transmission)
        heard = in_range and self._reaches(transmission.sender, transmission.peer, now)
        self._queue.on_air(now + self._settings.latency_s, self._outcome, (transmission, tries, in_range, heard))

    def _outcome(self, outcome: tuple[Transmission, int, bool, bool]) -> None:
        transmission, tries, in_range, heard = outcome
        if heard and self._host.up[transmission.peer]:
            transmission.receivers = [transmission.peer]
            self._host.received(transmission)
            return
        if in_range:
            self._host.lost(transmission, [transmission.peer], DropReason.FADED)
        if tries < self._settings.retries:
            self._try((transmission, tries + 1))
        else:
            self._host.unreachable(transmission)

    def _reaches(self, sender: int, node: int, now: float) -> bool:
        x, y = self._trajectories.position(sender, now)
        other_x, other_y = self._trajectories.position(node, now)
        distance_m = math.sqrt((x - other_x) ** 2 + (y - other_y) ** 2)
        return self._draw() < reception_probability(distance_m, self._settings)

    def node_down(self, node: int, graceful: bool) -> None:
        """Packets already sent still arrive; retries end by themselves."""


def reception_probability(distance_m: float, settings: Lossy) -> float:
    """The probability that a packet is received at this distance."""
    if distance_m <= settings.certain_m:
        return 1.0
    if distance_m >= settings.range_m:
        return 0.0
    share = (distance_m - settings.certain_m) / (settings.range_m - settings.certain_m)
    return float(1.0 - share**settings.exponent)


# The overlay: every live node reaches every other whose name it knows, after a latency.


class OverlayNetwork:
    """Unicast with a latency. A message to a node that is down, cut off or unknown is reported as
    unreachable after the same latency."""

    def __init__(
        self,
        settings: Overlay,
        trajectories: Trajectories,
        reachable: Neighbours | None,
        host: MediumHost,
        random: Random,
        seed: int,
    ) -> None:
        self._settings = settings
        self._trajectories = trajectories
        self._reachable = reachable
        "Who may reach whom, by a script or a partition; None: every node reaches every other."
        self._host = host
        self._queue = host.queue
        self._draw = random.random
        self._seed = seed
        self._shares: dict[tuple[int, int], float] = {}

    def airtime_s(self, packet_bytes: int) -> float:
        return 0.0

    def broadcast(self, transmission: Transmission) -> None:
        self._host.refuse(transmission, "an overlay has no broadcast: a machine sends to the peers it knows")

    def unicast(self, transmission: Transmission) -> None:
        self._host.sent(transmission)
        sender, peer, now = transmission.sender, transmission.peer, self._queue.now
        reaches = peer >= 0 and (self._reachable is None or peer == sender or peer in self._reachable.of(sender, now))
        self._queue.on_air(now + self.latency_s(transmission), self._arrive, (transmission, reaches))

    def latency_s(self, transmission: Transmission) -> float:
        """How long this message takes."""
        settings, sender, peer = self._settings, transmission.sender, transmission.peer
        latency_s = settings.latency_s
        if settings.spread_s:
            latency_s += settings.spread_s * self._share(sender, peer)
        if settings.jitter_s:
            latency_s += settings.jitter_s * self._draw()
        if settings.latency_s_per_km and peer >= 0:
            x, y = self._trajectories.position(sender, self._queue.now)
            peer_x, peer_y = self._trajectories.position(peer, self._queue.now)
            latency_s += settings.latency_s_per_km * sqrt((x - peer_x) ** 2 + (y - peer_y) ** 2) / 1000.0
        if settings.bit_rate_bps is not None:
            latency_s += transmission.bytes * 8 / settings.bit_rate_bps
        return latency_s

    def _share(self, a: int, b: int) -> float:
        """The pair's constant share of the spread, drawn from the seed and the two node numbers."""
        pair = (a, b) if a < b else (b, a)
        share = self._shares.get(pair)
        if share is None:
            drawn = blake2b(f"{self._seed}:{pair[0]}:{pair[1]}".encode(), digest_size=7).digest()
            share = self._shares[pair] = int.from_bytes(drawn, "big") / (1 << 56)
        return share

    def _arrive(self, arrival: tuple[Transmission, bool]) -> None:
        transmission, reaches = arrival
        if self._settings.loss and self._draw() < self._settings.loss:
            self._host.lost(transmission, [transmission.peer] if transmission.peer >= 0 else [], DropReason.LOST)
            return
        if reaches and self._host.up[transmission.peer]:
            transmission.receivers = [transmission.peer]
            self._host.received(transmission)
        else:
            self._host.unreachable(transmission)

    def node_down(self, node: int, graceful: bool) -> None:
        """Messages already sent still arrive."""
