"""CoDD's join and leave protocols (figures 2 to 5), and the rejoining of orphans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from earshot.filters.summaries.data_summary import DataSummary
from earshot.protocols.codd.dissemination_tree import Tree
from earshot.protocols.codd.packets import (
    NEW,
    Add,
    AddChild,
    AddResult,
    Answer,
    Gone,
    Leave,
    NewParent,
    NewPath,
    Registered,
)
from earshot.protocols.codd.recent_documents import bitmap, overhead_of, structural_overlap
from earshot.protocols.common.filter_answers import read_filter
from earshot.records import DropReason

if TYPE_CHECKING:
    from earshot.protocols.codd.machine import Codd


@dataclass(slots=True)
class Attempt:
    """A node looking for a place in a tree."""

    places: list[tuple[str, ...]]
    "Seed sets still to be tried."
    request: int = 0
    waiting: set[str] = field(default_factory=set)
    "Seeds that have not led to a candidate yet; how many, not which, is what counts."
    candidates: list[str] = field(default_factory=list)
    "Cheapest, that is quickest to answer, first."
    asked: str = ""
    "The candidate that was asked to take this node,"
    said: frozenset[str] = frozenset()
    "and what it was told this node's subtree wants."
    replaces: str = ""
    resting: bool = False
    "Found nothing; a timer runs."


class Membership:
    """A node's ways into and out of its trees."""

    def __init__(self, codd: Codd) -> None:
        self.codd = codd
        self.settings = codd.settings
        self.attempts: dict[str, Attempt] = {}
        "By tree."
        self.failures: dict[str, int] = {}
        self.summaries: dict[str, DataSummary] = {}
        self._requests = 0

    def forget(self, tree: Tree) -> None:
        for known in (self.attempts, self.failures, self.summaries):
            known.pop(tree.id, None)

    # The newcomer: figure 2.

    def join(self, tree: Tree, now: float, first: Sequence[tuple[str, ...]] = ()) -> None:
        """Look for a place, beginning at these seed sets, then at the agent's."""
        source = self.codd.directory.sources.get(tree.id)
        seeds = source.seeds if source is not None else (tree.source,)
        places = [*first, tuple(seeds)]
        mine = [tuple(sorted({seed for seed in place if seed and seed != self.codd.node})) for place in places]
        self.attempts[tree.id] = Attempt(list(dict.fromkeys(place for place in mine if place)))
        self.next_place(tree, now)

    def next_place(self, tree: Tree, now: float) -> None:
        attempt = self.attempts[tree.id]
        if not attempt.places:
            self.found_nothing(tree, now)
            return
        seeds = attempt.places.pop(0)
        self._requests += 1
        attempt.request, attempt.waiting = self._requests, set(seeds)
        attempt.candidates, attempt.asked, attempt.replaces = [], "", ""
        wants = tuple(sorted(tree.wants.holders))
        for seed in seeds:
            self.codd.send(seed, Add(tree.id, self.codd.node, attempt.request, wants))
        self.codd.start_timer(("candidates", tree.id), at=now + self.settings.candidate_wait_s)

    def found_nothing(self, tree: Tree, now: float) -> None:
        """Figure 2 returns FAIL. Reported after some attempts; a node never gives up for good."""
        failures = self.failures[tree.id] = self.failures.get(tree.id, 0) + 1
        wait_s = self.settings.candidate_wait_s
        if failures % self.settings.join_attempts == 0:
            self.codd.drop(DropReason.JOIN_FAILED)
            self.codd.note("join-failed", f"{tree.id} after {failures} attempts")
            wait_s = self.settings.retry_s
            self.codd.directory.ask(now)
        if tree.id in self.attempts:
            self.attempts[tree.id].resting = True
            self.codd.start_timer(("retry", tree.id), at=now + wait_s * self.codd.random.uniform(0.5, 1.5))

    def join_again(self, tree: Tree, now: float) -> None:
        if not tree.is_in:
            self.join(tree, now)

    def see_to(self, tree: Tree, now: float) -> None:
        """No orphan for ever: a node without a place is always about to look for one."""
        if tree.id not in self.attempts:
            self.join(tree, now)

    def hopeless(self, tree: Tree) -> bool:
        return self.failures.get(tree.id, 0) >= self.settings.join_attempts

    def on_add_result(self, packet: AddResult, tree: Tree, sender: str, now: float) -> None:
        attempt = self.attempts.get(tree.id)
        if attempt is None or attempt.asked or packet.request != attempt.request or not attempt.waiting:
            return
        if packet.spare and sender not in attempt.candidates:
            attempt.candidates.append(sender)
        self._one_less(attempt, sender)
        if not attempt.waiting:
            self.choose(tree, now)

    @staticmethod
    def _one_less(attempt: Attempt, seed: str) -> None:
        """Each seed's request ends in one answer, from whomever."""
        attempt.waiting.discard(seed if seed in attempt.waiting else min(attempt.waiting))

    def choose(self, tree: Tree, now: float) -> None:
        """All have answered, or TIMEOUT has passed: the cheapest candidate."""
        attempt = self.attempts.get(tree.id)
        if attempt is None or attempt.resting or attempt.asked:
            return
        self.codd.cancel_timer(("candidates", tree.id))
        if attempt.candidates:
            self.ask(tree, attempt.candidates.pop(0), now)
        else:
            self.next_place(tree, now)

    def ask(self, tree: Tree, peer: str, now: float, replaces: str = "") -> None:
        """Ask a node to take this one, and its subtree, as a child."""
        attempt = self.attempts.setdefault(tree.id, Attempt([]))
        self._requests += 1
        attempt.request, attempt.asked, attempt.replaces, attempt.resting = self._requests, peer, replaces, False
        wants = tuple(sorted(tree.wants.holders))
        attempt.said = frozenset(wants)
        self.codd.send(peer, AddChild(tree.id, attempt.request, tree.own, wants, tree.since, replaces))
        self.codd.start_timer(("answer", tree.id), at=now + self.settings.candidate_wait_s)

    def on_answer(self, packet: Answer, tree: Tree, sender: str, now: float) -> None:
        attempt = self.attempts.get(tree.id)
        current = attempt is not None and attempt.asked == sender and packet.request == attempt.request
        if not packet.accepted:
            if current:
                self.refused(tree, now)
            elif packet.request == 0 and sender == tree.parent:
                self.orphaned(tree, now)
            return
        if attempt is None or not current:
            if sender != tree.parent:  # too late: this node has gone on
                self.codd.send(sender, Leave(tree.id))
            return
        self.codd.cancel_timer(("answer", tree.id))
        del self.attempts[tree.id]
        self.failures.pop(tree.id, None)
        old = tree.parent
        tree.parent, tree.parent_heard_at = sender, now
        tree.first_link = tree.heard_link = packet.link
        tree.ahead.clear()
        tree.version = packet.link
        tree.registering, tree.registering_since = True, now
        self.codd.note("parent", f"{tree.id} {sender} {len(packet.ancestors)}")
        if old and old != sender:
            self.codd.send(old, Leave(tree.id))
        new = [text for text in sorted(tree.wants.holders) if text not in attempt.said]
        if new:
            self.codd.queries.add(tree, new, tree.since, (self.codd.node,))
        self.codd.queries.remove(tree, sorted(text for text in attempt.said if text not in tree.wants))
        self.under(tree, packet.ancestors, now)
        self.codd.reorganising.ended(tree, moved=True)

    def refused(self, tree: Tree, now: float, request: int | None = None) -> None:
        """No, or no answer: the next candidate."""
        attempt = self.attempts.get(tree.id)
        if attempt is None or not attempt.asked or (request is not None and request != attempt.request):
            return
        self.codd.cancel_timer(("answer", tree.id))
        attempt.asked = ""
        if tree.is_in and not attempt.replaces:  # a move that did not come off
            del self.attempts[tree.id]
            self.codd.reorganising.ended(tree, moved=False)
        elif attempt.replaces:
            self.orphaned(tree, now)
        else:
            self.choose(tree, now)

    def under(self, tree: Tree, ancestors: tuple[str, ...], now: float) -> None:
        """The way from the root to this node; those below are told."""
        if self.codd.node in ancestors:
            self.below_itself(tree, now)
            return
        if ancestors != tree.ancestors:
            tree.ancestors = ancestors
            for name, child in tree.children.items():
                if not child.guest:
                    self.codd.send(name, NewPath(tree.id, (*ancestors, self.codd.node)))

    def below_itself(self, tree: Tree, now: float) -> None:
        """Two nodes moved below each other at the same time. This one goes back to the seeds."""
        if not tree.is_root and tree.parent:
            self.codd.drop(DropReason.CYCLE)
            self.codd.send(tree.parent, Leave(tree.id))
            self.lose_parent(tree)
            self.join(tree, now)

    # The tree: figure 3.

    def on_add(self, packet: Add, tree: Tree, now: float) -> None:
        """Take the newcomer where there is room; otherwise pass it on to the maximal-overlap child."""
        newcomer, codd = packet.newcomer, self.codd
        if newcomer in tree.children and not tree.children[newcomer].guest:
            codd.queries.remove(tree, tree.give_up(newcomer))  # it would not ask if it were still here
        if not tree.is_in or newcomer == codd.node or newcomer in tree.ancestors:
            codd.send(newcomer, AddResult(tree.id, packet.request, spare=False))
        elif tree.fan_out < self.settings.fan_out:
            codd.send(newcomer, AddResult(tree.id, packet.request, spare=True))
        else:
            codd.send(self.max_overlap_child(tree, packet.wants), packet)

    def add_unreachable(self, packet: Add, tree: Tree, peer: str, now: float) -> None:
        """A seed, or the child that a newcomer was passed on to, is not there."""
        if packet.newcomer != self.codd.node:
            self.codd.queries.remove(tree, tree.give_up(peer))
            self.on_add(packet, tree, now)
            return
        attempt = self.attempts.get(tree.id)
        if attempt is not None and packet.request == attempt.request and peer in attempt.waiting:
            attempt.waiting.discard(peer)
            if not attempt.waiting:
                self.choose(tree, now)

    def max_overlap_child(self, tree: Tree, query: Iterable[str], without: str = "") -> str:
        """The child that would incur the least overhead by taking a node with this query; chance decides
        between equals. By recent documents, or by structure while there are few."""
        names = sorted(name for name, child in tree.children.items() if not child.guest and name != without)
        texts = [text for text in query if read_filter(text) is not None]
        costs = self._overheads(tree, names, texts)
        least = min(costs.values())
        return self.codd.random.choice([name for name in names if costs[name] == least])

    def _overheads(self, tree: Tree, names: Sequence[str], texts: Sequence[str]) -> dict[str, float]:
        own = self.settings.join_against == "query"
        first = max(0, tree.number - self.settings.window_documents + 1)
        wanted = self.documents_for(tree, texts, first)
        if wanted:
            costs = {}
            for name in names:
                child = tree.children[name]
                theirs = self.documents_for(tree, child.own, first) if own else bitmap(child.sent, first)
                costs[name] = float(overhead_of(wanted, theirs))
            return costs
        children = ((name, tree.children[name]) for name in names)
        return {name: -structural_overlap(texts, sorted(one.own) if own else one.wants) for name, one in children}

    def documents_for(self, tree: Tree, texts: Iterable[str], first: int) -> int:
        """The recent documents, as a bitmap, that any of these filters wants, looked up in the data
        summary; nothing while statistics are thin."""
        summary = self.summaries.get(tree.id)
        if summary is None:
            settings = self.settings
            summary = self.summaries[tree.id] = DataSummary(
                settings.window_documents, settings.summary_vertices, settings.enough_documents
            )
        for held in tree.held.since(first):
            if held.number not in summary:
                summary.add(held.number, held.event)
        if summary.is_thin:
            return 0
        found = 0
        for text in texts:
            filter = read_filter(text)
            found |= (summary.matching(filter) or 0) if filter is not None else 0
        return bitmap([number for number in summary.ids(found) if isinstance(number, int)], first)

    def on_add_child(self, packet: AddChild, tree: Tree, sender: str, now: float) -> None:
        codd = self.codd
        children = {name for name, child in tree.children.items() if not child.guest}
        takes_over = sender in children or packet.replaces in children
        room = tree.fan_out < self.settings.fan_out or takes_over
        if not tree.is_in or not room or sender == codd.node or sender in tree.ancestors:
            codd.send(sender, Answer(tree.id, packet.request, accepted=False))
            return
        wants = codd.queries.readable(packet.wants)
        before = tree.children.get(sender)
        lost = [text for text in before.wants if text not in wants] if before is not None else []
        tree.take(sender, packet.own, wants, now)
        gone = [text for text in lost if text not in tree.wants]
        if packet.replaces and packet.replaces != sender:
            gone += tree.give_up(packet.replaces)
        child = tree.children[sender]
        codd.send(sender, Answer(tree.id, packet.request, True, (*tree.ancestors, codd.node), child.first_link))
        if packet.since > NEW:
            codd.send_missed(tree, sender, child, wants, packet.since)
        if tree.is_root:
            codd.send(sender, Registered(tree.id, (sender,), tree.number))
        else:
            codd.queries.add(tree, wants, packet.since, (sender, codd.node))
        codd.queries.remove(tree, sorted(set(gone)))

    # Leaving: figures 4 and 5.

    def leave(self, tree: Tree) -> None:
        """A leaf goes; an interior node is replaced by its maximal-overlap child, below which its other
        children join again; a source takes its tree with it."""
        codd = self.codd
        children = {name: child for name, child in tree.children.items() if not child.guest}
        if tree.is_root:
            for name in children:
                codd.send(name, Gone(tree.id))
        elif not children:
            if tree.parent:
                codd.send(tree.parent, Leave(tree.id))
        else:
            successor = self.max_overlap_child(tree, tree.own)
            if tree.parent:
                codd.send(tree.parent, Leave(tree.id, successor))
            guests = tuple((name, tuple(sorted(child.wants))) for name, child in children.items() if name != successor)
            for name, child in children.items():
                chosen = name == successor
                parent, below = (tree.parent, guests) if chosen else (successor, ())
                codd.send(name, NewParent(tree.id, parent, chosen, tree.complete, child.link, below))
        self.forget(tree)
        codd.reorganising.forget(tree)
        codd.trees.pop(tree.id, None)

    def on_leave(self, packet: Leave, tree: Tree, sender: str, now: float) -> None:
        child = tree.children.get(sender)
        if child is None:
            return
        if packet.successor and packet.successor not in tree.children and packet.successor not in tree.ancestors:
            tree.take(packet.successor, (), child.wants, now)
        self.codd.queries.remove(tree, tree.give_up(sender))

    def on_new_parent(self, packet: NewParent, tree: Tree, sender: str, now: float) -> None:
        """The parent leaves."""
        self.codd.reorganising.ended(tree, moved=False)
        if tree.heard_link == packet.link:
            tree.completed(packet.complete)
        above = tree.ancestors[-2] if len(tree.ancestors) > 1 else ""
        if not (packet.successor and packet.parent):
            self.lose_parent(tree)
            self.join(tree, now, [(packet.parent,), (above,)])
            return
        for name, wants in packet.guests:
            if name not in tree.children and name != self.codd.node:
                tree.take(name, (), self.codd.queries.readable(wants), now, guest=True)
        self.codd.start_timer(("guests", tree.id), at=now + self.settings.silence_s)
        # Taken for granted until it is refused, so that the others find a place here meanwhile.
        tree.parent, tree.parent_heard_at = packet.parent, now
        tree.first_link = tree.heard_link = tree.version = 0
        tree.ahead.clear()
        self.attempts.pop(tree.id, None)
        self.ask(tree, packet.parent, now, replaces=sender)
        self.under(tree, tree.ancestors[:-1], now)

    def forget_guests(self, tree: Tree) -> None:
        """Who has not come by now has found a place elsewhere."""
        for name in [name for name, child in tree.children.items() if child.guest]:
            self.codd.queries.remove(tree, tree.give_up(name))

    def orphaned(self, tree: Tree, now: float) -> None:
        """Section 3.2: the parent is gone. Join again at the grandparent, then at the seeds."""
        above, lost = tree.ancestors[-2] if len(tree.ancestors) > 1 else "", tree.parent
        self.lose_parent(tree)
        self.codd.note("orphan", f"{tree.id} {lost}")
        self.join(tree, now, [(above,)])

    def lose_parent(self, tree: Tree) -> None:
        tree.parent = ""
        tree.first_link = tree.heard_link = 0
        tree.ahead.clear()
        self.codd.reorganising.ended(tree, moved=False)
