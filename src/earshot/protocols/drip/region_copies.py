"""Beyond the paper: how one copy of an event reaches several brokers.

A copy names the brokers that it is for. Each node divides them by the next hop to each and sends one copy to each
next hop. A node that has no next hop for some of them, or that has had the event for them before, which means that
routes have changed meanwhile, keeps the copy until announcements have shown new routes. So nothing has to be confirmed
from end to end: every node on the way has the event until its next hop has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.drip.packets import DripSettings, RegionCopy
from earshot.protocols.machine import Drop, Effect, Send, StartTimer
from earshot.records import DropReason


@dataclass(slots=True)
class StrandedCopy:
    """A copy that waits for a route to these brokers."""

    copy: RegionCopy
    targets: set[str]


class RegionCopies:
    """The copies that pass through one node."""

    def __init__(self, settings: DripSettings, budgets: TableBudgets | None = None) -> None:
        self.settings = settings
        self.passed = RecentKeys(settings.memory, budgets)
        "(event, broker): copies that this node has passed on."
        self.stranded: dict[str, StrandedCopy] = {}
        "By event."

    def divide(self, copy: RegionCopy, next_hop: Callable[[str], str], now: float, again: bool = False) -> list[Effect]:
        """Send the copy on to its brokers, one packet a next hop. `again`: not for the first time."""
        settings = self.settings
        if now > settings.end_of_life(copy.event):
            return [Drop(DropReason.EXPIRED, copy.event.id)]
        if copy.hops >= settings.hop_limit:
            return [Drop(DropReason.HOP_LIMIT, copy.event.id)]
        by_hop: dict[str, list[str]] = {}
        waiting = []
        for target in copy.targets:
            is_new = self.passed.add((copy.event.id, target))
            hop = next_hop(target) if is_new or again else ""
            if hop:
                by_hop.setdefault(hop, []).append(target)
            else:
                waiting.append(target)
        effects: list[Effect] = [
            Send(hop, RegionCopy(copy.event, copy.hops + 1, tuple(targets))) for hop, targets in by_hop.items()
        ]
        return effects + self._keep(copy, waiting, now) if waiting else effects

    def _keep(self, copy: RegionCopy, targets: list[str], now: float) -> list[Effect]:
        known = self.stranded.get(copy.event.id)
        if known is not None:
            known.targets.update(targets)
            return []
        if len(self.stranded) >= self.settings.memory_events:
            return [Drop(DropReason.TOO_MANY_EVENTS_WAITING, copy.event.id)]
        self.stranded[copy.event.id] = StrandedCopy(copy, set(targets))
        return [StartTimer("stranded", now + self.settings.stranded_wait_s)] if len(self.stranded) == 1 else []

    def try_again(self, next_hop: Callable[[str], str], now: float) -> list[Effect]:
        """Announcements may have shown new routes."""
        stranded, self.stranded = self.stranded, {}
        effects: list[Effect] = []
        for one in stranded.values():
            copy = RegionCopy(one.copy.event, one.copy.hops, tuple(sorted(one.targets)))
            effects += self.divide(copy, next_hop, now, again=True)
        return effects
