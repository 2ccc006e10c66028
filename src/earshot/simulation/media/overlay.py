"""The overlay: any live node reaches any other whose name it knows, after a latency."""

from __future__ import annotations

from hashlib import blake2b
from math import sqrt
from random import Random

from earshot.records import DropReason
from earshot.simulation.media.medium_settings import Overlay
from earshot.simulation.media.neighbours import Neighbours
from earshot.simulation.media.transmission import Host, Transmission
from earshot.simulation.mobility import Trajectories


class OverlayNetwork:
    """Unicast with a latency. A message to a node that is down, cut off or unknown comes back as
    unreachable after the same time: the sender waits as long to learn of it."""

    def __init__(
        self,
        settings: Overlay,
        trajectories: Trajectories,
        reachable: Neighbours | None,
        host: Host,
        random: Random,
        seed: int,
    ) -> None:
        self._settings = settings
        self._trajectories = trajectories
        self._reachable = reachable
        "Who may reach whom, where a script or a partition says so; None: everybody everybody."
        self._host = host
        self._queue = host.queue
        self._draw = random.random
        self._seed = seed
        self._shares: dict[tuple[int, int], float] = {}

    def broadcast(self, transmission: Transmission) -> None:
        self._host.refuse(
            transmission, "a broadcast on an overlay, which has none: a machine there sends to peers it knows"
        )

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
        """The pair's own share of the spread: drawn from the seed and the two numbers, whoever speaks first."""
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
        """What was sent is under way already."""
