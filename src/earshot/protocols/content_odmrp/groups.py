"""A source's multicast groups, set from what subscribers report (section III.D).

A group is an event that stands for others like it: whoever wants that event joins. Another event
goes to a group that has all of its subscribers as members, where not too many members would hear
it in vain; else a group is made for it. When there are too many groups, the new one is combined with
the nearest, which at last stands for every event of its type, the least constrained, and takes the
others in. Groups whose members have become the same are combined; one whose events interest too few
of its members is split. What nobody uses is forgotten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from earshot.filters.summaries.digest import Digest
from earshot.protocols.content_odmrp.reports import ReportTable

DIGESTS_A_GROUP = 2
"Beyond this a group stands for every event of its type: the least constrained."


@dataclass(slots=True)
class Group:
    id: int
    type: str
    digests: list[Digest]
    "Of the events it stands for."
    used_at: float
    made_at: float
    kinds: dict[frozenset[str], Digest] = field(default_factory=dict)
    "Who wanted the events it carried since the last Join Request, with one such event each."
    offered_at: float = -math.inf
    answered_at: float = -math.inf

    @property
    def wide(self) -> bool:
        """Whether it stands for every event of its type."""
        return any(digest.open for digest in self.digests)


@dataclass(slots=True)
class Groups:
    """One source's groups. `noise_limit` is the share of a group's members that may hear an event in vain."""

    limit: int
    noise_limit: float
    answer_wait_s: float
    "Until then a new group may still find its members; a group without an answer then has no route."
    reports: ReportTable
    by_id: dict[int, Group] = field(default_factory=dict)
    made: int = 0
    _members: dict[int, tuple[int, int, frozenset[str]]] = field(default_factory=dict)
    "By group: the reports' version, the number of digests, and who wants one of them."

    def stands(self, group: Group, now: float) -> bool:
        """Whether there is a route: the last Join Request was answered, or an earlier one was and this may be."""
        waiting = now < group.offered_at + self.answer_wait_s
        return group.answered_at > -math.inf and (group.answered_at >= group.offered_at or waiting)

    def members(self, group: Group, now: float) -> frozenset[str]:
        """Who has joined the group, as far as reports tell."""
        known = self._members.get(group.id)
        if known is None or known[:2] != (self.reports.version, len(group.digests)):
            found = self.reports.wanting_digest(group.digests, now)
            known = self._members[group.id] = (self.reports.version, len(group.digests), found)
        return known[2]

    def choose(self, digest: Digest, type: str, wanting: frozenset[str], now: float) -> Group:
        """The group an event goes to: the smallest that suits, else one made for it."""
        suiting = [group for group in self.by_id.values() if self._suits(group, digest, type, wanting, now)]
        if suiting:
            group = min(suiting, key=lambda one: (len(self.members(one, now)), one.id))
        else:
            group = self.open(digest, type, wanting, now)
        group.used_at = now
        if wanting and len(group.kinds) <= self.limit:
            group.kinds.setdefault(wanting, digest)
        return group

    def _suits(self, group: Group, digest: Digest, type: str, wanting: frozenset[str], now: float) -> bool:
        """Whether all who want the event are members, and not too many members hear it in vain.

        Of brokers that report together only some may have joined; they are sure to be members only of
        a group for this very event, or for all of its type.
        """
        if digest in group.digests:
            return True
        members = self.members(group, now)
        noise = len(members) - len(wanting)
        if group.type != type or not wanting or noise > self.noise_limit * len(members):
            return False
        return group.wide or (wanting <= members and not self.reports.vague(wanting, now))

    def open(self, digest: Digest, type: str, wanting: frozenset[str], now: float) -> Group:
        """A group for this event: a new one, or where there are too many, the nearest of its type with
        this event added. Where brokers report together, one for all events of the type."""
        same_type = [group for group in self.by_id.values() if group.type == type]
        if wanting and self.reports.vague(wanting, now) and not any(group.wide for group in same_type):
            return self._widened(same_type, type, now)
        if len(self.by_id) >= self.limit:
            if same_type:
                return self._combined(same_type, digest, wanting, now)
            self._close(min(self.by_id.values(), key=lambda group: (group.used_at, group.id)))
        return self._new(type, digest, now)

    def _new(self, type: str, digest: Digest, now: float) -> Group:
        self.made += 1
        group = self.by_id[self.made] = Group(self.made, type, [digest], used_at=now, made_at=now)
        return group

    def _combined(self, groups: list[Group], digest: Digest, wanting: frozenset[str], now: float) -> Group:
        """The group to which the event's subscribers are the least addition, now standing for it too."""
        nearest = min(groups, key=lambda group: (len(wanting ^ self.members(group, now)), group.id))
        if len(nearest.digests) >= DIGESTS_A_GROUP:
            return self._widened(groups, nearest.type, now)
        nearest.digests.append(digest)
        self._members.pop(nearest.id, None)
        # Its new members have not joined yet: no route stands.
        nearest.answered_at = -math.inf
        return nearest

    def _widened(self, groups: list[Group], type: str, now: float) -> Group:
        """One group in place of these, for every event of their type."""
        for group in groups:
            self._close(group)
        return self._new(type, Digest.of_type(type), now)

    def regroup(self, now: float, timeout_s: float) -> None:
        """As subscriptions change: forget what is unused or unwanted, combine equals, split what parted."""
        for group in list(self.by_id.values()):
            unused = now >= group.used_at + timeout_s
            unwanted = now >= group.made_at + self.answer_wait_s and not self.members(group, now)
            if unused or unwanted:
                self._close(group)
        self._split(now)
        seen: dict[tuple[str, frozenset[str]], Group] = {}
        for group in list(self.by_id.values()):
            members = self.members(group, now)
            if members and (first := seen.setdefault((group.type, members), group)) is not group:
                first.used_at = max(first.used_at, group.used_at)
                self._close(group)

    def _split(self, now: float) -> None:
        """A group whose every kind of event was noise to too many becomes a group for each kind, where
        there is room."""
        for group in list(self.by_id.values()):
            kinds, group.kinds = group.kinds, {}
            members = self.members(group, now)
            noisy = all(len(members) - len(members & wanting) > self.noise_limit * len(members) for wanting in kinds)
            if members and len(kinds) > 1 and noisy and len(self.by_id) - 1 + len(kinds) <= self.limit:
                self._close(group)
                for digest in kinds.values():
                    self._new(group.type, digest, now)

    def _close(self, group: Group) -> None:
        del self.by_id[group.id]
        self._members.pop(group.id, None)

    def first_end(self, timeout_s: float) -> float:
        """When the first group will have been unused for too long."""
        return min((group.used_at + timeout_s for group in self.by_id.values()), default=math.inf)

    def offered(self, now: float) -> tuple[tuple[int, bytes], ...]:
        """All groups as a Join Request offers them: number and digest, a group of several events several times."""
        for group in self.by_id.values():
            group.offered_at = now
        return tuple((group.id, digest.data) for group in self.by_id.values() for digest in group.digests)

    def answered(self, ids: tuple[int, ...], now: float) -> None:
        """Join Tables have come for these groups."""
        for id in ids:
            if id in self.by_id:
                self.by_id[id].answered_at = now
