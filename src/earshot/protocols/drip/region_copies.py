"""Beyond the paper: how one copy of an event reaches several brokers.

A copy names the brokers that it is for. Each node divides them by the next hop to each and sends one copy to each
next hop. A node that has no next hop for some of them, or that has had the event for them before, which means that
routes have changed meanwhile, keeps the copy until announcements have shown new routes. So nothing has to be confirmed
from end to end: every node on the way has the event until its next hop has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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
        self.budgets = budgets or TableBudgets()
        self.passed = RecentKeys(settings.memory, budgets)
        "(event, broker): copies that this node has passed on."
        self.stranded: dict[str, StrandedCopy] = {}
        "By event."
        self._names = 0
        "The targets of all stranded copies."

    def divide(self, copy: RegionCopy, next_hop: Callable[[str], str], now: float, again: bool = False) -> list[Effect]:
        """Send the copy on to its brokers, one packet a next hop. `again`: not for the first time."""
        settings = self.settings
        if now > settings.end_of_life(copy.event):
            return [Drop(DropReason.EXPIRED, copy.event.id)]
        if copy.hops >= settings.hop_limit:
            return [Drop(DropReason.HOP_LIMIT, copy.event.id)]
        came_back = {target for target in copy.targets if not self.passed.add((copy.event.id, target)) and not again}
        return self._send_or_keep(copy, came_back, next_hop, now)

    def _send_or_keep(
        self, copy: RegionCopy, came_back: Collection[str], next_hop: Callable[[str], str], now: float
    ) -> list[Effect]:
        by_hop: dict[str, list[str]] = {}
        waiting = []
        for target in copy.targets:
            hop = next_hop(target) if target not in came_back else ""
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
        if known is None and len(self.stranded) >= self.settings.memory_events:
            return [Drop(DropReason.TOO_MANY_EVENTS_WAITING, copy.event.id)]
        new = set(targets) if known is None else set(targets) - known.targets
        if self._names + len(new) > self.budgets.names(self.settings.memory):
            return [Drop(DropReason.TOO_MANY_EVENTS_WAITING, copy.event.id)]
        self._names += len(new)
        if known is not None:
            known.targets |= new
            return []
        self.stranded[copy.event.id] = StrandedCopy(copy, new)
        return [StartTimer("stranded", now + self.settings.stranded_wait_s)] if len(self.stranded) == 1 else []

    def try_again(self, next_hop: Callable[[str], str], now: float) -> list[Effect]:
        """Announcements may have shown new routes."""
        stranded, self.stranded, self._names = self.stranded, {}, 0
        effects: list[Effect] = []
        for one in stranded.values():
            copy = RegionCopy(one.copy.event, one.copy.hops, tuple(sorted(one.targets)))
            if now > self.settings.end_of_life(copy.event):
                effects.append(Drop(DropReason.EXPIRED, copy.event.id))
            else:
                effects += self._send_or_keep(copy, (), next_hop, now)
        return effects
