"""The forwarding mesh of plain and extended ODMRP: what a node keeps of it, and the rules of both protocols.

A flooded Join Request leaves a route back to its source; a Join Table sets forwarding flags on the nodes that
it names. Both are soft state: what is not refreshed within the forwarding timeout expires.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.common.local_subscriptions import RecentKeys, has_expired
from earshot.protocols.common.soft_table import SoftTable
from earshot.protocols.machine import Machine
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
    """One node's duplicates, routes back to sources (by key K) and forwarding flags (by key F)."""

    def __init__(self, machine: Machine, settings: MeshSettings, routes_limit: int, flags_limit: int) -> None:
        self.machine = machine
        self.settings = settings
        self.sequence = 0
        "The number of this node's last Join Request."
        self.heard = RecentKeys(settings.memory, machine.budgets)
        "Join Requests, events and answers that were handled already."
        self.routes: SoftTable[K, R] = SoftTable(routes_limit, machine.budgets)
        "The member table and the routing table in one."
        self.flags: SoftTable[F, bool] = SoftTable(flags_limit, machine.budgets)
        "FG_Flag."
        self.jittered = Jitter(machine, settings.jitter_s, machine.random, settings.memory)
        self._expiry_scheduled = False

    def until(self, now: float) -> float:
        """When soft state that is refreshed now expires."""
        return now + self.settings.forwarding_timeout_s

    def start(self, now: float) -> None:
        """Sequence numbers keep rising through a restart; otherwise peers would take new requests for old ones."""
        self.sequence = int(now * 1000)

    def keep_route(self, key: K, route: R, now: float) -> None:
        """Remember the route back; where there are too many, the one that expires first is dropped."""
        if self.routes.put(key, route, self.until(now)):
            self.machine.drop(DropReason.TOO_MANY_SOURCES)
        self.expire_later(now)

    def is_current(self, event: Event, now: float) -> bool:
        """Whether the event may still be delivered and passed on; one that is too old is dropped."""
        if has_expired(event, self.settings.lifespan_s, now):
            self.machine.drop(DropReason.EXPIRED, event.id)
            return False
        return True

    def pass_on(self, packet: Packet, hops: int, event: Event | None, now: float) -> None:
        """Broadcast what came over this many hops once more, unless it has reached the hop limit."""
        if hops < self.settings.hop_limit:
            self.jittered.send(packet, now)
        else:
            self.machine.drop(DropReason.HOP_LIMIT, event.id if event else "")

    def expire_later(self, now: float) -> None:
        """Soft state was added: make sure that the timer that removes it runs."""
        if not self._expiry_scheduled:
            self._expiry_scheduled = True
            self.machine.start_timer("forget", at=self.until(now))

    def expire(self, now: float, first_other_end: float = math.inf) -> None:
        """Remove what was not refreshed; wake again when the next entry, here or elsewhere, expires."""
        self.routes.forget(now)
        self.flags.forget(now)
        first_end = min(self.routes.first_end, self.flags.first_end, first_other_end)
        self._expiry_scheduled = first_end < math.inf
        if self._expiry_scheduled:
            self.machine.start_timer("forget", at=first_end)
