"""Radios without a shared channel: `unit-disk`, where all in range hear all, and `lossy`."""

from __future__ import annotations

import math
from random import Random

from earshot.records import DropReason
from earshot.simulation.media.medium_settings import Lossy, UnitDisk
from earshot.simulation.media.neighbours import Neighbours
from earshot.simulation.media.transmission import Host, Transmission
from earshot.simulation.mobility import Trajectories


class UnitDiskRadio:
    """Who is in range when a packet is sent has it `latency_s` later.

    All that is sent at one time arrives at one time, in the same order: one queue entry holds it all.
    """

    def __init__(self, settings: UnitDisk, neighbours: Neighbours, host: Host) -> None:
        self._latency_s = settings.latency_s
        self._neighbours_of = neighbours.of
        self._host = host
        self._sent, self._received = host.sent, host.received
        self._queue = host.queue
        self._now = math.nan
        self._under_way: list[Transmission] = []
        "What has been sent at `_now`."

    def broadcast(self, transmission: Transmission) -> None:
        now = self._queue.now
        if now is not self._now:
            self._start_batch(now)
        self._sent(transmission)
        transmission.receivers = self._neighbours_of(transmission.sender, now)
        self._under_way.append(transmission)

    def unicast(self, transmission: Transmission) -> None:
        now = self._queue.now
        if now is not self._now:
            self._start_batch(now)
        self._sent(transmission)
        in_range = transmission.peer in self._neighbours_of(transmission.sender, now)
        transmission.receivers = [transmission.peer] if in_range else []
        self._under_way.append(transmission)

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
        """What was sent is in the air already."""


class LossyRadio:
    """As unit-disk, but each receiver has a packet only with a probability that falls with distance.
    A unicast is acknowledged (the acknowledgement is never lost) and sent again where it was not."""

    def __init__(
        self, settings: Lossy, trajectories: Trajectories, neighbours: Neighbours, host: Host, random: Random
    ) -> None:
        self._settings = settings
        self._trajectories = trajectories
        self._neighbours_of = neighbours.of
        self._host = host
        self._queue = host.queue
        self._draw = random.random

    def broadcast(self, transmission: Transmission) -> None:
        now = self._queue.now
        self._host.sent(transmission)
        receivers: list[int] = []
        faded: list[int] = []
        transmission.receivers = receivers
        for node in self._neighbours_of(transmission.sender, now):
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
        self._host.sent(transmission)
        in_range = transmission.peer in self._neighbours_of(transmission.sender, now)
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
        """What was sent is in the air already; its retries end by themselves."""


def reception_probability(distance_m: float, settings: Lossy) -> float:
    """How likely a packet is heard that far away."""
    if distance_m <= settings.certain_m:
        return 1.0
    if distance_m >= settings.range_m:
        return 0.0
    share = (distance_m - settings.certain_m) / (settings.range_m - settings.certain_m)
    return float(1.0 - share**settings.exponent)
