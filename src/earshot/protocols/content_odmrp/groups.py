"""A source's multicast groups, set from what subscribers report (section III.D).

The paper uses "the least constrained subscription". Read as one group for all events of a type, that is
`choice = "least-constrained"`. Read with section III.E, where the digest of the event to be sent decides who joins,
it is `"smallest"`: a group is an event that represents others like it, and brokers that want that event join.
Another event goes to the smallest group that has all of its subscribers as members, if not too many members would
receive it without wanting it; otherwise the source makes a group for it. When there are too many groups, the new
one is combined with the nearest, which in the end represents every event of its type and absorbs the others.
Groups whose members have become the same are combined; a group whose events interest too few of its members is
split. Unused groups expire.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from earshot.filters.summaries.digest import Digest
from earshot.protocols.content_odmrp.reports import ReportTable

DIGESTS_A_GROUP = 2
"Beyond this a group represents every event of its type: the least constrained."


@dataclass(slots=True)
class ContentGroup:
    id: int
    type: str
    digests: list[Digest]
    "Of the events it represents."
    used_at: float
    made_at: float
    audiences: dict[frozenset[str], Digest] = field(default_factory=dict)
    "Who wanted the events it carried since the last Join Request, with one such event each."
    offered_at: float = -math.inf
    answered_at: float = -math.inf

    @property
    def wide(self) -> bool:
        """Whether it represents every event of its type."""
        return any(digest.open for digest in self.digests)


@dataclass(slots=True)
class ContentGroups:
    """One source's groups."""

    limit: int
    noise_limit: float
    "The share of a group's members that may receive an event without wanting it."
    answer_wait_s: float
    "Until then a new group may still find its members; a group without an answer then has no route."
    choice: Literal["smallest", "least-constrained"]
    reports: ReportTable
    by_id: dict[int, ContentGroup] = field(default_factory=dict)
    made: int = 0
    split: int = 0
    "How many groups were split, since the start."
    combined: int = 0
    "How many groups were given up for another, or got another event to represent."

    def has_route(self, group: ContentGroup, now: float) -> bool:
        """Whether the last Join Request was answered, or an earlier one was and this one may still be."""
        waiting = now < group.offered_at + self.answer_wait_s
        return group.answered_at > -math.inf and (group.answered_at >= group.offered_at or waiting)

    def members(self, group: ContentGroup, now: float) -> frozenset[str]:
        """Who has joined the group, as far as reports show."""
        return self.reports.wanting_digest(group.digests, now)

    def choose(self, digest: Digest, type: str, wanting: frozenset[str], now: float) -> ContentGroup:
        """The group an event goes to; where none suits, one is made for it."""
        least_constrained = self.choice == "least-constrained"
        group = (self._wide if least_constrained else self._smallest)(digest, type, wanting, now)
        group.used_at = now
        if wanting and len(group.audiences) <= self.limit:
            group.audiences.setdefault(wanting, digest)
        return group

    def _wide(self, _: Digest, type: str, wanting: frozenset[str], now: float) -> ContentGroup:
        """The least constrained: the group for every event of the type."""
        wide = [group for group in self.by_id.values() if group.type == type and group.wide]
        return wide[0] if wide else self.open(Digest.of_type(type), type, wanting, now)

    def _smallest(self, digest: Digest, type: str, wanting: frozenset[str], now: float) -> ContentGroup:
        """The smallest group that suits."""
        suiting = [group for group in self.by_id.values() if self._suits(group, digest, type, wanting, now)]
        if not suiting:
            return self.open(digest, type, wanting, now)
        return min(suiting, key=lambda one: (len(self.members(one, now)), one.id))

    def _suits(self, group: ContentGroup, digest: Digest, type: str, wanting: frozenset[str], now: float) -> bool:
        """Whether all who want the event are members, and not too many members receive it without wanting it.

        Of brokers that report together only some may have joined; they are certain to be members only of
        a group for this very event, or for all of its type.
        """
        if digest in group.digests:
            return True
        if group.type != type or not wanting:
            return False
        members = self.members(group, now)
        if len(members) - len(wanting) > self.noise_limit * len(members):
            return False
        return group.wide or (wanting <= members and not self.reports.vague(wanting, now))

    def open(self, digest: Digest, type: str, wanting: frozenset[str], now: float) -> ContentGroup:
        """A group for this event: a new one, or where there are too many, the nearest of its type with
        this event added. Where brokers report together, one for all events of the type."""
        same_type = [group for group in self.by_id.values() if group.type == type]
        if wanting and self.reports.vague(wanting, now) and not any(group.wide for group in same_type):
            return self._widened(same_type, type, now)
        if len(self.by_id) >= self.limit:
            if same_type:
                return self._combined(same_type, digest, wanting, now)
            least_used = min(self.by_id.values(), key=lambda group: (group.used_at, group.id))
            del self.by_id[least_used.id]
        return self._new(type, digest, now)

    def _new(self, type: str, digest: Digest, now: float) -> ContentGroup:
        self.made += 1
        group = self.by_id[self.made] = ContentGroup(self.made, type, [digest], used_at=now, made_at=now)
        return group

    def _combined(
        self, groups: list[ContentGroup], digest: Digest, wanting: frozenset[str], now: float
    ) -> ContentGroup:
        """The group to which the event's subscribers are the smallest addition, now representing it too."""
        nearest = min(groups, key=lambda group: (len(wanting ^ self.members(group, now)), group.id))
        if len(nearest.digests) >= DIGESTS_A_GROUP:
            return self._widened(groups, nearest.type, now)
        nearest.digests.append(digest)
        self.combined += 1
        # Its new members have not joined yet: there is no route to them.
        nearest.answered_at = -math.inf
        return nearest

    def _widened(self, groups: list[ContentGroup], type: str, now: float) -> ContentGroup:
        """One group in place of these, for every event of their type."""
        self.combined += len(groups)
        for group in groups:
            del self.by_id[group.id]
        return self._new(type, Digest.of_type(type), now)

    def regroup(self, now: float, timeout_s: float) -> None:
        """As subscriptions change: remove unused and unwanted groups, split noisy ones, combine equal ones."""
        for group in list(self.by_id.values()):
            unused = now >= group.used_at + timeout_s
            unwanted = now >= group.made_at + self.answer_wait_s and not self.members(group, now)
            if unused or unwanted:
                del self.by_id[group.id]
        self._split(now)
        seen: dict[tuple[str, frozenset[str]], ContentGroup] = {}
        for group in list(self.by_id.values()):
            members = self.members(group, now)
            if members and (first := seen.setdefault((group.type, members), group)) is not group:
                first.used_at = max(first.used_at, group.used_at)
                self.combined += 1
                del self.by_id[group.id]

    def _split(self, now: float) -> None:
        """A group whose events were all noise to too many members becomes one group per audience, where
        there is room."""
        for group in list(self.by_id.values()):
            audiences, group.audiences = group.audiences, {}
            members = self.members(group, now)
            most_noise = self.noise_limit * len(members)
            noisy = all(len(members) - len(members & audience) > most_noise for audience in audiences)
            if members and len(audiences) > 1 and noisy and len(self.by_id) - 1 + len(audiences) <= self.limit:
                del self.by_id[group.id]
                self.split += 1
                for digest in audiences.values():
                    self._new(group.type, digest, now)

    def first_end(self, timeout_s: float) -> float:
        """When the first group will have been unused for too long."""
        return min((group.used_at + timeout_s for group in self.by_id.values()), default=math.inf)

    def offered(self, now: float) -> tuple[tuple[int, bytes], ...]:
        """All groups as a Join Request offers them: number and digest, once for each digest."""
        for group in self.by_id.values():
            group.offered_at = now
        return tuple((group.id, digest.data) for group in self.by_id.values() for digest in group.digests)

    def answered(self, ids: tuple[int, ...], now: float) -> None:
        """Join Tables have come for these groups."""
        for id in ids:
            if id in self.by_id:
                self.by_id[id].answered_at = now
