"""The forwarding mesh of plain and extended ODMRP: what a node keeps of it, and the rules of both protocols.

A flooded Join Request leaves a route back to its source; a Join Table sets forwarding flags on the nodes that
it names. Both are soft state: what is not refreshed within the forwarding timeout expires.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.common.soft_table import SoftTable
from earshot.protocols.machine import Drop, Effect, StartTimer
from earshot.protocols.tuning import Surroundings, Tunable, guess
from earshot.records import DropReason
from earshot.settings import AtLeastOne, NotNegative, Positive, check_bounds
from earshot.wire import Packet


@dataclass(frozen=True, slots=True)
class MeshSettings:
    """The settings that plain and extended ODMRP share."""

    refresh_interval_s: Positive = 5.0
    "Section IV: how often a source that has something to send floods a Join Request."
    forwarding_timeout_s: Positive = 25.0
    "Section IV: how long flags, routes and all other soft state last without being refreshed."
    hop_limit: AtLeastOne = 32
    "Join Requests and data travel at most this many hops."
    lifespan_s: Positive = 60.0
    "The lifespan of events that carry none; older events are dropped."
    memory: AtLeastOne = 4096
    "How many packets a node remembers having heard."
    jitter_s: NotNegative = 0.02
    """A node waits a uniform random time from 0 to this before it passes a packet on or answers. Neighbours that share
    a channel would otherwise all start at the same moment."""

    def __post_init__(self) -> None:
        check_bounds(self)
        self.check_shorter_than_timeout("refresh_interval_s")

    def check_shorter_than_timeout(self, name: str) -> None:
        """Refuse an interval after which the soft state that it refreshes has expired already."""
        value = getattr(self, name)
        if value >= self.forwarding_timeout_s:
            raise SettingsError(
                f"forwarding_timeout_s must exceed {name}, got {self.forwarding_timeout_s:g} and {value:g}"
            )


def mesh_tuning(around: Surroundings, follows: Mapping[str, float]) -> tuple[Tunable, ...]:
    """Routes should be refreshed some four times while a link lasts."""
    refresh = guess(around.link_lifetime_s / 4.0, 1.0, 10.0)
    lasting = f"a link lasts {around.link_lifetime_s:.2g} s, and routes break with their links"
    waiting = guess(around.speaking_time_s(0.005, 0.1), 0.002, 0.3)
    return (
        Tunable("refresh_interval_s", refresh, 0.5, 20.0, lasting, follows=follows),
        Tunable("jitter_s", waiting, 0.002, 0.3, f"{around.mean_neighbours:.0f} neighbours take turns", step=3.0),
    )


@dataclass(frozen=True, slots=True)
class RouteBack:
    """How a source's last Join Request came: the next hop back to the source."""

    upstream: str
    sequence: int


K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=RouteBack)
F = TypeVar("F", bound=Hashable)


class ForwardingMesh(Generic[K, R, F]):
    """One node's duplicates, routes back to sources (by key K) and forwarding flags (by key F).

    Methods return effects for the machine to carry out.
    """

    def __init__(
        self, settings: MeshSettings, random: Random, budgets: TableBudgets, routes_limit: int, flags_limit: int
    ) -> None:
        self.settings = settings
        self.sequence = 0
        "The number of this node's last Join Request."
        self.heard = RecentKeys(settings.memory, budgets)
        "Join Requests, events and answers that were handled already."
        self.routes: SoftTable[K, R] = SoftTable(routes_limit, budgets)
        "The member table and the routing table in one."
        self.flags: SoftTable[F, bool] = SoftTable(flags_limit, budgets)
        "FG_Flag."
        self.jittered = Jitter(settings.jitter_s, random, settings.memory)
        self._expiry_scheduled = False

    def until(self, now: float) -> float:
        """When soft state that is refreshed now expires."""
        return now + self.settings.forwarding_timeout_s

    def start(self, now: float) -> None:
        """Sequence numbers keep rising through a restart; otherwise peers would take new requests for old ones."""
        self.sequence = int(now * 1000)

    def keep_route(self, key: K, route: R, now: float) -> list[Effect]:
        """Remember the route back; where there are too many, the one that expires first is dropped."""
        dropped: list[Effect] = []
        if self.routes.put(key, route, self.until(now)):
            dropped.append(Drop(DropReason.TOO_MANY_SOURCES))
        return [*dropped, *self.expire_later(now)]

    def pass_on(self, packet: Packet, hops: int, event: Event | None, now: float) -> Effect:
        """Broadcast what came over this many hops once more, unless it has reached the hop limit."""
        if hops < self.settings.hop_limit:
            return self.jittered.send(packet, now)
        return Drop(DropReason.HOP_LIMIT, event.id if event else "")

    def expire_later(self, now: float) -> list[Effect]:
        """Soft state was added: make sure that the timer that removes it runs."""
        if self._expiry_scheduled:
            return []
        self._expiry_scheduled = True
        return [StartTimer("forget", at=self.until(now))]

    def expire(self, now: float, first_other_end: float = math.inf) -> list[Effect]:
        """Remove what was not refreshed; wake again when the next entry, here or elsewhere, expires."""
        self.routes.forget(now)
        self.flags.forget(now)
        first_end = min(self.routes.first_end, self.flags.first_end, first_other_end)
        self._expiry_scheduled = first_end < math.inf
        return [StartTimer("forget", at=first_end)] if self._expiry_scheduled else []
