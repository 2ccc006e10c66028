"""CoDD, by S. Chawathe and A. Anand: dissemination trees for the hours after a disaster.

Each source is the root of a tree of its subscribers. A node knows what each child's subtree wants and passes a
document on only to children whose aggregate filter it meets. Newcomers go down the tree to where they overlap most;
a node that receives too much that it does not want asks a child to move elsewhere.

The handlers here follow the paper's sections and figures. They ask the parts of this folder for values (the tree, the
join's state machine, overlaps, the search of figure 6, the directory) and send what follows.
Readings and departures: docs/papers/codd.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from random import Random

from earshot.events import Event
from earshot.filters import FilterIndex, Subscription
from earshot.protocols.codd import packets
from earshot.protocols.codd.directory import Directory
from earshot.protocols.codd.dissemination_tree import Child, DisseminationTree
from earshot.protocols.codd.join import ASKED, JoinEvent, JoinState
from earshot.protocols.codd.overlap import least_overlap_child, max_overlap_child, overhead_for, window
from earshot.protocols.codd.packets import NEW, source_of
from earshot.protocols.codd.recent_documents import HeldDocument, bitmap
from earshot.protocols.codd.reorganising import Search
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.common.filter_texts import LocalFilterTexts, could_match_any, read_filter
from earshot.protocols.machine import (
    QUIET_CHANNEL,
    Announcement,
    Channel,
    Effect,
    Effects,
    Location,
    Machine,
    Send,
    Timer,
)
from earshot.protocols.tuning import Surroundings, Tunable, clamp
from earshot.records import DropReason
from earshot.wire import Packet

BUSIEST = 0.9375
"A channel that is busier than this makes a node wait no longer: 16 times."
MOST_RESENT = 1000
"Lost documents that are sent again at a time."


class Codd(Machine):
    """One node: source, subscriber, member of trees and, where its settings name it, system agent."""

    name = "codd"
    paper = "Chawathe, Anand: Interimistic Data Dissemination (CoDD)"
    needs_routing = True
    needs_two_way_links = True
    Settings = CoddSettings

    def __init__(
        self,
        node: str,
        settings: CoddSettings,
        location: Location,
        random: Random,
        channel: Channel = QUIET_CHANNEL,
        new_index: Callable[[], FilterIndex] = FilterIndex,
    ) -> None:
        """`new_index` makes the index of a tree's filters: a host that runs many machines may share one."""
        super().__init__(node, settings, location, random, channel)
        self.settings: CoddSettings = settings
        self.local = LocalFilterTexts()
        self.trees: dict[str, DisseminationTree] = {}
        self.own_tree: DisseminationTree | None = None
        self.own_types: tuple[str, ...] = ()
        self.directory = Directory(node, settings, random, self.pace)
        self._new_index = new_index
        self._join_requests = count(1)
        self._overhead_requests = count(1)
        self._sends_keep_alives = False

    @classmethod
    def tuning(cls, around: Surroundings) -> tuple[Tunable, ...]:
        first = round(clamp(around.present**0.4, 3, 12))
        return (Tunable("fan_out", first, 2, 24, f"a tree of {around.present:.0f} nodes is then three levels deep"),)

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        match packet:
            case packets.Document():
                self.on_document(packet, sender, now)
            case packets.Register() | packets.Unregister() | packets.GetSeedSet():
                self.carry_out(self.directory.on_agent_packet(packet, sender, now), now)
            case packets.SeedSet():
                if sender in self.settings.agents:
                    self.on_seed_set(packet, now)
            case packets.KeepAlive():
                self.on_keep_alive(packet, sender, now)
            case packets.TreePacket() if packet.tree in self.trees:
                self.on_tree_packet(packet, self.trees[packet.tree], sender, now)
            case _:
                self.not_in_tree(packet, sender)
        return self.effects()

    def on_tree_packet(self, packet: Packet, tree: DisseminationTree, sender: str, now: float) -> None:
        match packet:
            case packets.Add():
                self.on_add(packet, tree)
            case packets.AddResult():
                self.on_add_result(packet, tree, sender, now)
            case packets.AddChild():
                self.on_add_child(packet, tree, sender, now)
            case packets.Answer():
                self.on_answer(packet, tree, sender, now)
            case packets.AddQuery() | packets.RemoveQuery():
                self.on_query(packet, tree, sender, now)
            case packets.Registered() if sender == tree.parent:
                self._effects += tree.on_registered(packet)
            case packets.GetAggregate() if sender == tree.parent:
                self.send(sender, packets.Aggregate(tree.id, tree.version, tree.own, tuple(sorted(tree.wants.holders))))
            case packets.Aggregate() if sender in tree.members:
                self._effects += tree.on_aggregate(packet, sender, self.readable(packet.wants))
            case packets.NewPath() if sender == tree.parent:
                self.set_ancestors(tree, packet.ancestors, now)
            case packets.Leave():
                self.on_leave(packet, tree, sender, now)
            case packets.NewParent() if sender == tree.parent:
                self.on_new_parent(packet, tree, sender, now)
            case packets.Gone() if sender == tree.parent:
                self.forget_tree(tree)
            case packets.Resend():
                self.on_resend(packet, tree, sender)
            case packets.Move() if sender == tree.parent:
                self.request_move(tree, packet.overhead)
            case packets.Reorganize() if tree.is_root:
                self._effects += tree.move_requests.on_reorganize(packet, sender, now)
            case packets.Reorganize():
                self.drop(DropReason.NOT_THE_SOURCE)
            case packets.Granted() if sender == tree.source:
                self.on_granted(tree, now)
            case packets.GetOverhead():
                self.on_get_overhead(packet, tree, sender)
            case packets.Overhead():
                self.on_overhead(packet, tree, sender, now)
            case packets.Moved():
                self._effects += tree.move_requests.on_moved(sender, now)

    def not_in_tree(self, packet: Packet, sender: str) -> None:
        """A peer takes this node for a member of a tree that it is not in."""
        match packet:
            case packets.Add():
                if packet.newcomer:  # else a broken packet
                    self.send(packet.newcomer, packets.AddResult(packet.tree, packet.request, spare=False))
            case packets.AddChild():
                self.send(sender, packets.Answer(packet.tree, packet.request, accepted=False))
            case packets.GetOverhead():
                self.send(sender, packets.Overhead(packet.tree, packet.request, 0.0, spare=False, children=()))
            case _:
                self.drop(DropReason.NOT_IN_TREE)

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case "alive":
                self.send_keep_alives(now)
            case "directory":
                self.carry_out(self.directory.visit(bool(self.local.by_id), now), now)
            case "asked":
                self.carry_out(self.directory.no_answer(now), now)
            case "ask-again":
                self.carry_out(self.directory.ask(now), now)
            case "push":
                self.carry_out(self.directory.push(), now)
            case (str() as what, str() as id) if id in self.trees:
                self.wake_tree(what, self.trees[id], now)
        return self.effects()

    def wake_tree(self, what: str, tree: DisseminationTree, now: float) -> None:
        match what:
            case "candidates":
                if tree.join.state is JoinState.COLLECTING:
                    self.ask_candidate(tree, now)
            case "answer":
                self.refused(tree, now)
            case "retry":
                if not tree.is_in:
                    self.join(tree, now)
            case "guests":
                self._effects += tree.lose(name for name, child in tree.children.items() if child.guest)
            case "gap":
                if tree.parent and (missing := tree.missing_links(max(tree.ahead, default=0))):
                    self.send(tree.parent, packets.Resend(tree.id, missing))
            case "gather":
                self._effects += tree.move_requests.accept(now)
            case "grant":
                self._effects += tree.move_requests.grant_next(now)
            case "search":
                self.no_overhead(tree, now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        match packet:
            case packets.Register() | packets.Unregister():
                return self.effects()
            case packets.SeedSet():
                self.directory.members.pop(peer, None)
                return self.effects()
            case packets.GetSeedSet():
                self.cancel_timer("asked")
                self.carry_out(self.directory.no_answer(now), now)
                return self.effects()
            case packets.Add() if packet.tree in self.trees:
                self.add_unreachable(packet, self.trees[packet.tree], peer, now)
            case packets.AddChild() if packet.tree in self.trees:
                self.refused(self.trees[packet.tree], now, packet.request)
            case packets.GetOverhead() if packet.tree in self.trees:
                self.no_overhead(self.trees[packet.tree], now, packet.request)
        if self.channel.busy_share(now) > 0.0:
            return self.effects()  # over a radio a packet may fail while the peer is there: its silence decides
        for tree in list(self.trees.values()):
            if peer in tree.children:
                self._effects += tree.lose([peer])
            if tree.parent == peer:
                self.orphaned(tree, now)
        return self.effects()

    # Section 3: documents go down the tree.

    def publish(self, event: Event, now: float) -> Effects:
        """Send it down this node's own tree. Its own applications have it already."""
        tree = self.be_source(event.type, now)
        tree.number += 1
        tree.complete = tree.number
        document = tree.held.add(tree.number, event, 0)
        if tree.children:
            self.pass_on(tree, document, tree.wants.matching(event))
        return self.effects()

    def on_document(self, packet: packets.Document, sender: str, now: float) -> None:
        """Deliver it, and propagate it to a child only if it satisfies that child's aggregate filter."""
        tree, number, event = self.trees.get(packet.tree), packet.number, packet.event
        if tree is None or tree.is_root:
            self.drop(DropReason.NOT_IN_TREE, event.id)
            return
        if event.source != tree.source or not event.id:
            self.drop(DropReason.MALFORMED_DOCUMENT, event.id)
            return
        if sender == tree.parent:
            tree.parent_heard_at = now
            if not tree.arrived(packet.link, packet.complete):
                self.start_timer(("gap", tree.id), at=now + self.settings.candidate_wait_s)
        if number <= tree.number and (number < tree.number - tree.held.capacity or number in tree.held):
            return
        tree.number = max(tree.number, number)
        document = tree.held.add(number, event, packet.hops)
        tree.transfers += 1
        met = tree.wants.matching(event)
        if met.isdisjoint(tree.own):
            tree.extraneous += 1
        else:
            tree.wanted.add(number)
            self.local.deliver_local(self, event, packet.hops, now)
        if tree.children:
            self.pass_on(tree, document, met)
            if number >= tree.next_look:
                self.look_at_overhead(tree)

    def pass_on(self, tree: DisseminationTree, document: HeldDocument, met: set[str]) -> None:
        for name, child in tree.children.items():
            if not child.guest and not met.isdisjoint(child.wants):
                self.send_document(tree, name, child.send(document.number), document)

    def send_document(self, tree: DisseminationTree, name: str, link: int, document: HeldDocument) -> None:
        number, event, hops = document
        self.send(name, packets.Document(event, hops + 1, tree.id, number, link, tree.complete))

    def send_missed(self, tree: DisseminationTree, name: str, child: Child, texts: tuple[str, ...], since: int) -> None:
        """Send what a child that comes from elsewhere lacks, as far as it is held here."""
        if since > NEW:
            for document in tree.missed(child, texts, since):
                self.send_document(tree, name, child.send(document.number), document)

    def on_resend(self, packet: packets.Resend, tree: DisseminationTree, sender: str) -> None:
        """Documents got lost between the two."""
        if (child := tree.children.get(sender)) is not None:
            for link in packet.links[:MOST_RESENT]:
                if (document := tree.held.get(child.number_at(link))) is not None:
                    self.send_document(tree, sender, link, document)

    # Section 3.1, figure 2: a newcomer joins.

    def join(self, tree: DisseminationTree, now: float, first: Iterable[tuple[str, ...]] = ()) -> None:
        """Look for a place, beginning at these seed sets, then at the agent's."""
        seed_sets = [*first, self.directory.seeds(tree.id)]
        tree.join.begin(tuple(sorted({seed for seed in seeds if seed and seed != self.node})) for seeds in seed_sets)
        self.try_next_seeds(tree, now)

    def try_next_seeds(self, tree: DisseminationTree, now: float) -> None:
        """Send TYPE_ADD to the seeds."""
        if not tree.join.seed_sets:
            self.join_failed(tree, now)
            return
        wants = tuple(sorted(tree.wants.holders))
        for seed in tree.join.next_seeds(next(self._join_requests)):
            self.send(seed, packets.Add(tree.id, self.node, tree.join.request, wants))
        self.start_timer(("candidates", tree.id), at=now + self.settings.candidate_wait_s * self.pace(now))

    def join_failed(self, tree: DisseminationTree, now: float) -> None:
        """Figure 2 returns FAIL. It is reported after some attempts; a node never gives up for good."""
        tree.join.happens(JoinEvent.NO_SEEDS)
        tree.join.failures += 1
        wait_s = self.settings.candidate_wait_s
        if tree.join.failures % self.settings.join_attempts == 0:
            self.drop(DropReason.JOIN_FAILED)
            self.note("join-failed", f"{tree.id} after {tree.join.failures} attempts")
            wait_s = self.settings.retry_s
            self.carry_out(self.directory.ask(now), now)
        if tree.id in self.trees:
            self.start_timer(("retry", tree.id), at=now + wait_s * self.pace(now) * self.random.uniform(0.5, 1.5))

    def pace(self, now: float) -> float:
        """How many times longer a node waits for others: the busier the channel, the longer."""
        return 1.0 / (1.0 - min(self.channel.busy_share(now), BUSIEST))

    def on_add_result(self, packet: packets.AddResult, tree: DisseminationTree, sender: str, now: float) -> None:
        """TYPE_ADDRESULT: a candidate."""
        if tree.join.collects(packet.request) and tree.join.on_candidate(sender, packet.spare):
            self.ask_candidate(tree, now)

    def ask_candidate(self, tree: DisseminationTree, now: float) -> None:
        """All seeds have answered, or TIMEOUT has passed: ask min_cost_candidate, the first that answered."""
        self.cancel_timer(("candidates", tree.id))
        if tree.join.candidates:
            self.ask_to_take(tree, JoinEvent.CANDIDATE, tree.join.candidates.pop(0), now)
        else:
            self.try_next_seeds(tree, now)

    def ask_to_take(self, tree: DisseminationTree, event: JoinEvent, peer: str, now: float, replaces: str = "") -> None:
        """TYPE_ADDCHILD: ask a node to take this one, and its subtree, as a child."""
        wants = tuple(sorted(tree.wants.holders))
        tree.join.ask(event, peer, next(self._join_requests), wants)
        self.send(peer, packets.AddChild(tree.id, tree.join.request, tree.own, wants, tree.since, replaces))
        self.start_timer(("answer", tree.id), at=now + self.settings.candidate_wait_s * self.pace(now))

    def on_answer(self, packet: packets.Answer, tree: DisseminationTree, sender: str, now: float) -> None:
        """The response to TYPE_ADDCHILD."""
        is_current = tree.join.waits_for(sender, packet.request)
        if packet.accepted and is_current:
            self.accepted(packet, tree, sender, now)
        elif packet.accepted and sender != tree.parent:  # too late: this node has gone on
            self.send(sender, packets.Leave(tree.id))
        elif not packet.accepted and is_current:
            self.refused(tree, now)
        elif not packet.accepted and packet.request == 0 and sender == tree.parent:
            self.orphaned(tree, now)

    def accepted(self, packet: packets.Answer, tree: DisseminationTree, parent: str, now: float) -> None:
        """The node has a parent, and waits to receive data."""
        self.cancel_timer(("answer", tree.id))
        tree.join.happens(JoinEvent.ACCEPTED)
        tree.join.failures = 0
        old, stated = tree.parent, tree.join.stated
        tree.bond(parent, packet.link, now)
        tree.registering, tree.registering_since = True, now
        self.note("parent", f"{tree.id} {parent} {len(packet.ancestors)}")
        if old and old != parent:
            self.send(old, packets.Leave(tree.id))
        if new := [text for text in sorted(tree.wants.holders) if text not in stated]:
            self._effects += tree.add_query(new, tree.since, (self.node,))
        self._effects += tree.remove_query(sorted(text for text in stated if text not in tree.wants))
        self.set_ancestors(tree, packet.ancestors, now)
        self.end_search(tree, moved=True)

    def refused(self, tree: DisseminationTree, now: float, request: int | None = None) -> None:
        """FALSE, or no answer to TYPE_ADDCHILD: try the next candidate."""
        state = tree.join.state
        if state not in ASKED or (request is not None and request != tree.join.request):
            return
        self.cancel_timer(("answer", tree.id))
        if state is JoinState.MOVING:
            tree.join.happens(JoinEvent.REFUSED)
            self.end_search(tree, moved=False)
        elif state is JoinState.SUCCEEDING:
            self.orphaned(tree, now)
        else:
            self.ask_candidate(tree, now)

    def set_ancestors(self, tree: DisseminationTree, ancestors: tuple[str, ...], now: float) -> None:
        """The path from the root to this node has changed. Pass it on to the children."""
        if self.node in ancestors:
            self.leave_cycle(tree, now)
        elif ancestors != tree.ancestors:
            tree.ancestors = ancestors
            for name in tree.members:
                self.send(name, packets.NewPath(tree.id, (*ancestors, self.node)))

    def leave_cycle(self, tree: DisseminationTree, now: float) -> None:
        """Two nodes moved below each other at the same time. This one goes back to the seeds."""
        if not tree.is_root and tree.parent:
            self.drop(DropReason.CYCLE)
            self.send(tree.parent, packets.Leave(tree.id))
            self.lose_parent(tree, now)
            self.join(tree, now)

    # Section 3.1, figure 3: the tree takes a newcomer.

    def on_add(self, packet: packets.Add, tree: DisseminationTree) -> None:
        """TYPE_ADD: offer a place where there is spare capacity; otherwise pass it on to the maximal-overlap child."""
        newcomer = packet.newcomer
        if not newcomer:
            return  # a broken packet
        if newcomer in tree.members:
            self._effects += tree.lose([newcomer])  # it would not ask if it were still here
        if not tree.is_in or newcomer == self.node or newcomer in tree.ancestors:
            self.send(newcomer, packets.AddResult(tree.id, packet.request, spare=False))
        elif tree.fan_out < self.settings.fan_out:
            self.send(newcomer, packets.AddResult(tree.id, packet.request, spare=True))
        else:
            self.send(max_overlap_child(tree, packet.wants, self.settings, self.random), packet)

    def add_unreachable(self, packet: packets.Add, tree: DisseminationTree, peer: str, now: float) -> None:
        """A seed, or the child that a newcomer was passed on to, is gone."""
        if packet.newcomer != self.node:
            self._effects += tree.lose([peer])
            self.on_add(packet, tree)
        elif tree.join.collects(packet.request) and tree.join.seed_answered(peer):
            self.ask_candidate(tree, now)

    def on_add_child(self, packet: packets.AddChild, tree: DisseminationTree, sender: str, now: float) -> None:
        """TYPE_ADDCHILD: take the sender and its subtree, where there is room."""
        takes_over = sender in tree.members or packet.replaces in tree.members
        room = tree.fan_out < self.settings.fan_out or takes_over
        if not tree.is_in or not room or sender == self.node or sender in tree.ancestors:
            self.send(sender, packets.Answer(tree.id, packet.request, accepted=False))
            return
        wants = self.readable(packet.wants)
        before = tree.children.get(sender)
        lost = [text for text in before.wants if text not in wants] if before is not None else []
        child = tree.take(sender, packet.own, wants, now)
        gone = [text for text in lost if text not in tree.wants]
        if packet.replaces and packet.replaces != sender:
            gone += tree.give_up(packet.replaces)
        self.send(sender, packets.Answer(tree.id, packet.request, True, (*tree.ancestors, self.node), child.first_link))
        self.send_missed(tree, sender, child, wants, packet.since)
        if tree.is_root:
            self.send(sender, packets.Registered(tree.id, (sender,), tree.number))
        else:
            self._effects += tree.add_query(wants, packet.since, (sender, self.node))
        self._effects += tree.remove_query(sorted(set(gone)))

    def on_query(
        self, packet: packets.AddQuery | packets.RemoveQuery, tree: DisseminationTree, sender: str, now: float
    ) -> None:
        """TYPE_ADD_QUERY and figure 5's TYPE_REMOVE_QUERY. A child's queries count in the order of their versions."""
        child = tree.children.get(sender)
        for query in child.in_turn(packet) if child is not None else ():
            if isinstance(query, packets.AddQuery):
                self.add_query(query, tree, sender, now)
            else:
                self._effects += tree.remove_from_child(tree.children[sender], query.texts)

    def add_query(self, packet: packets.AddQuery, tree: DisseminationTree, sender: str, now: float) -> None:
        """Update the child's aggregate filter, and the parent's as well. A node that finds its own name on the query's
        path is below itself."""
        if self.node in packet.path:
            self.leave_cycle(tree, now)
            return
        texts, child = self.readable(packet.texts), tree.children[sender]
        tree.add_to_child(child, texts, is_own=packet.path == (sender,))
        guest = tree.children.get(packet.path[0])
        gone = tree.give_up(packet.path[0]) if guest is not None and guest.guest else []  # it has come below
        self.send_missed(tree, sender, child, texts, packet.since)
        if tree.is_root:
            self.send(sender, packets.Registered(tree.id, packet.path, tree.number))
        else:
            self._effects += tree.add_query(texts, packet.since, (*packet.path, self.node))
        self._effects += tree.remove_query(gone)

    def readable(self, texts: Sequence[str]) -> tuple[str, ...]:
        """A peer's filters, without the malformed ones."""
        found = tuple(text for text in texts if read_filter(text) is not None)
        if len(found) < len(texts):
            self.drop(DropReason.MALFORMED_FILTER)
        return found

    # Section 3.2, figures 4 and 5: leaving.

    def stop(self, now: float) -> Effects:
        """Leave every tree in good order."""
        if self.own_tree is not None:
            self.register(self.own_tree, (), now)
        for tree in list(self.trees.values()):
            self.leave(tree)
        return self.effects()

    def leave(self, tree: DisseminationTree) -> None:
        """Figure 4: a leaf leaves; an interior node is replaced by its maximal-overlap child, below which its other
        children join again; a source takes its tree with it."""
        children = tree.members
        if tree.is_root:
            for name in children:
                self.send(name, packets.Gone(tree.id))
        elif not children:
            if tree.parent:
                self.send(tree.parent, packets.Leave(tree.id))
        else:
            successor = max_overlap_child(tree, tree.own, self.settings, self.random)
            if tree.parent:
                self.send(tree.parent, packets.Leave(tree.id, successor))
            guests = tuple((name, tuple(sorted(child.wants))) for name, child in children.items() if name != successor)
            for name, child in children.items():
                chosen = name == successor
                parent, below = (tree.parent, guests) if chosen else (successor, ())
                self.send(name, packets.NewParent(tree.id, parent, chosen, tree.complete, child.link, below))
        self.trees.pop(tree.id, None)

    def on_leave(self, packet: packets.Leave, tree: DisseminationTree, sender: str, now: float) -> None:
        """TYPE_LEAVE: remove the child; its successor, if any, takes its place."""
        child = tree.children.get(sender)
        if child is None:
            return
        if packet.successor and packet.successor not in tree.children and packet.successor not in tree.ancestors:
            tree.take(packet.successor, (), child.wants, now)
        self._effects += tree.lose([sender])

    def on_new_parent(self, packet: packets.NewParent, tree: DisseminationTree, sender: str, now: float) -> None:
        """TYPE_NEWPARENT: the parent leaves. Take its place, or join again below its successor."""
        self.end_search(tree, moved=False)
        if tree.heard_link == packet.link:
            tree.completed(packet.complete)
        if not (packet.successor and packet.parent):
            grandparent = tree.grandparent
            self.lose_parent(tree, now)
            self.join(tree, now, [(packet.parent,), (grandparent,)])
            return
        for name, wants in packet.guests:
            if name not in tree.children and name != self.node:
                tree.take(name, (), self.readable(wants), now, guest=True)
        self.start_timer(("guests", tree.id), at=now + self.settings.silence_s)
        # The place counts as this node's until it is refused, so that the others find a place below it meanwhile.
        tree.bond(packet.parent, 0, now)
        self.ask_to_take(tree, JoinEvent.SUCCESSION, packet.parent, now, replaces=sender)
        self.set_ancestors(tree, tree.ancestors[:-1], now)

    def orphaned(self, tree: DisseminationTree, now: float) -> None:
        """The parent left ungracefully. Join again at the grandparent, then at the seeds."""
        grandparent, lost = tree.grandparent, tree.parent
        self.lose_parent(tree, now)
        self.note("orphan", f"{tree.id} {lost}")
        self.join(tree, now, [(grandparent,)])

    def lose_parent(self, tree: DisseminationTree, now: float) -> None:
        tree.bond("", 0, now)
        self.end_search(tree, moved=False)

    def forget_tree(self, tree: DisseminationTree) -> None:
        """The tree has ended: pass that on to the children."""
        for name in tree.children:
            self.send(name, packets.Gone(tree.id))
        self.trees.pop(tree.id, None)

    # Section 3.2: keep-alive messages and timeouts. They also state how far documents and queries have come.

    def send_keep_alives(self, now: float) -> None:
        """One message a peer, for all trees."""
        down: dict[str, list[tuple[str, int, int]]] = {}
        up: dict[str, list[tuple[str, int]]] = {}
        for tree in list(self.trees.values()):
            self.check_silence(tree, now)
            for name, child in tree.members.items():
                down.setdefault(name, []).append((tree.id, tree.complete, child.link))
            if tree.parent:
                up.setdefault(tree.parent, []).append((tree.id, tree.version))
        for peer in sorted({*down, *up}):
            self.send(peer, packets.KeepAlive(tuple(down.get(peer, ())), tuple(up.get(peer, ()))))
        self._sends_keep_alives = bool(self.trees)
        if self.trees:
            self.start_timer("alive", at=now + self.settings.keep_alive_s * self.pace(now))

    def check_silence(self, tree: DisseminationTree, now: float) -> None:
        silence_s = self.settings.silence_s * self.pace(now)
        self._effects += tree.lose(name for name, child in tree.members.items() if now - child.heard_at > silence_s)
        if tree.parent and now - tree.parent_heard_at > silence_s:
            self.orphaned(tree, now)
        elif tree.parent and tree.registering and now - tree.registering_since > silence_s:
            tree.registering_since = now
            self._effects += tree.add_query(sorted(tree.wants.holders), tree.since, (self.node,))
        elif not tree.is_in and tree.join.state is JoinState.IDLE:
            self.join(tree, now)

    def on_keep_alive(self, packet: packets.KeepAlive, sender: str, now: float) -> None:
        for id, complete, link in packet.down:
            tree = self.trees.get(id)
            if tree is None or tree.parent != sender:
                self.send(sender, packets.Leave(id))
                continue
            tree.parent_heard_at = now
            if missing := tree.missing_links(link):
                self.send(sender, packets.Resend(id, missing))
            else:
                tree.completed(complete)
        for id, version in packet.up:
            tree = self.trees.get(id)
            child = None if tree is None else tree.members.get(sender)
            if child is None:
                self.send(sender, packets.Answer(id, 0, accepted=False))
                continue
            child.heard_at = now
            if version > child.version:
                self.send(sender, packets.GetAggregate(id))

    # Section 3.3: reorganisation.

    def look_at_overhead(self, tree: DisseminationTree) -> None:
        """A high-overhead node asks the child with which it has the least overlap to move."""
        overhead = tree.excessive_overhead(self.settings)
        if overhead is None:
            return
        mover = self.node if self.settings.mover == "self" else least_overlap_child(tree, self.settings)
        self.note("reorganise", f"{tree.id} {overhead:.4f} {mover}")
        if mover == self.node:
            self.request_move(tree, overhead)
        else:
            self.send(mover, packets.Move(tree.id, overhead))

    def request_move(self, tree: DisseminationTree, overhead: float) -> None:
        """TYPE_REORGANIZE, to the system agent: here the source."""
        if tree.search is None and tree.parent:
            self.send(tree.source, packets.Reorganize(tree.id, overhead))

    def on_granted(self, tree: DisseminationTree, now: float) -> None:
        """Figure 6: search for the best parent, from the root on."""
        first = window(tree, self.settings)
        bits = bitmap(tree.held.numbers, first)
        if not tree.parent or tree.join.state is not JoinState.IDLE or tree.search is not None or not bits:
            self.send(tree.source, packets.Moved(tree.id, moved=False))
            return
        tree.search = Search(self.node, tree.parent, tree.source, first, bits, self.settings.delta)
        self.search_on(tree, tree.search, now)

    def search_on(self, tree: DisseminationTree, search: Search, now: float) -> None:
        """TYPE_GETOVERHEAD to the next prospective parent; after the last one, TYPE_ADDCHILD to the best."""
        if peer := search.next_prospective():
            search.request = next(self._overhead_requests)
            self.send(peer, packets.GetOverhead(tree.id, search.request, search.first, search.bits))
            self.start_timer(("search", tree.id), at=now + self.settings.candidate_wait_s)
            return
        self.cancel_timer(("search", tree.id))
        if tree.join.state is JoinState.IDLE and search.is_worth_moving(tree.number):
            self.ask_to_take(tree, JoinEvent.BETTER_PARENT, search.best, now)
        else:
            self.end_search(tree, moved=False)

    def on_get_overhead(self, packet: packets.GetOverhead, tree: DisseminationTree, sender: str) -> None:
        """Return compute_overhead(this, n), and the children."""
        overhead = float(overhead_for(tree, sender, packet.bits, packet.first, self.settings))
        names: tuple[str, ...] = ()
        spare = False
        if sender not in tree.ancestors and tree.is_in:
            names = tuple(tree.members)
            spare = len(names) < self.settings.fan_out
        self.send(sender, packets.Overhead(tree.id, packet.request, overhead, spare, names))

    def on_overhead(self, packet: packets.Overhead, tree: DisseminationTree, sender: str, now: float) -> None:
        search = tree.search
        if search is not None and search.asked == sender and packet.request == search.request:
            search.on_overhead(packet, tree.parent)
            self.search_on(tree, search, now)

    def no_overhead(self, tree: DisseminationTree, now: float, request: int | None = None) -> None:
        """A prospective parent does not answer."""
        if tree.search is not None and (request is None or request == tree.search.request):
            self.search_on(tree, tree.search, now)

    def end_search(self, tree: DisseminationTree, moved: bool) -> None:
        """The source may grant the next request."""
        if tree.search is not None:
            tree.search = None
            self.cancel_timer(("search", tree.id))
            self.note("moved" if moved else "stays", tree.id)
            self.send(tree.source, packets.Moved(tree.id, moved))

    # Subscriptions and sources: which trees this node is in.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """Join the trees of all sources whose types this could match; in those the node is in already, add to its
        query."""
        first = not self.local.by_id
        self.local.add(subscription, now)
        self.carry_out(self.directory.begin(now), now)
        if first:
            self.carry_out(self.directory.ask(now), now)
        self.sources_changed(now)
        return self.effects()

    def on_seed_set(self, packet: packets.SeedSet, now: float) -> None:
        self.cancel_timer("asked")
        self.directory.on_seed_set(packet)
        self.sources_changed(now)

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        if self.local.remove(subscription) is not None:
            self.sources_changed(now)
        return self.effects()

    def sources_changed(self, now: float) -> None:
        """The node's subscriptions, or the known sources, have changed: join and leave trees accordingly."""
        for tree in list(self.trees.values()):
            if tree is not self.own_tree and self.is_obsolete(tree):
                self.forget_tree(tree)
        for id, source in sorted(self.directory.sources.items()):
            own = self.query(source.types)
            if id in self.trees:
                self._effects += self.trees[id].change_own(own)
                if not own and not self.trees[id].children:
                    self.leave(self.trees[id])
            elif own:
                tree = self.new_tree(id, is_root=False, now=now)
                self._effects += tree.change_own(own)
                self.join(tree, now)

    def is_obsolete(self, tree: DisseminationTree) -> bool:
        """The source lost its memory and has a new tree; or it is gone, and the node found no place."""
        if tree.id in self.directory.sources:
            return False
        newer = any(source_of(one) == tree.source for one in self.directory.sources)
        return newer or (not tree.is_in and tree.join.failures >= self.settings.join_attempts)

    def query(self, types: tuple[str, ...]) -> tuple[str, ...]:
        """What this node wants of events of these types."""
        return tuple(sorted({text for text in self.local.texts.values() if could_match_any(text, types)}))

    def new_tree(self, id: str, is_root: bool, now: float) -> DisseminationTree:
        tree = self.trees[id] = DisseminationTree(id, self.node, is_root, self.settings, self._new_index())
        if not self._sends_keep_alives:
            self._sends_keep_alives = True
            self.start_timer("alive", at=now + self.settings.keep_alive_s * self.random.uniform(0.5, 1.0))
        return tree

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """This node is a source: the root of a tree of its own."""
        self.be_source(announcement.event_type.subject, now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        """The tree ends with the last type that the node publishes."""
        if self.own_tree is not None:
            types = tuple(known for known in self.own_types if known != subject)
            self.register(self.own_tree, types, now)
            if not types:
                self.forget_tree(self.own_tree)
                self.own_tree = None
        return self.effects()

    def be_source(self, subject: str, now: float) -> DisseminationTree:
        if self.own_tree is None:
            self.own_tree = self.new_tree(f"{self.node}#{max(0, round(now * 1000)):x}", is_root=True, now=now)
            self.carry_out(self.directory.begin(now), now)
        if subject not in self.own_types:
            self.register(self.own_tree, (*self.own_types, subject), now)
        return self.own_tree

    def register(self, tree: DisseminationTree, types: tuple[str, ...], now: float) -> None:
        """Register the node's tree and its types with the agents; without types, end the registration."""
        self.own_types = types
        self.directory.own = packets.Register(tree.id, types) if types else None
        self.carry_out(self.directory.to_all_agents(self.directory.own or packets.Unregister(tree.id)), now)

    def carry_out(self, effects: Sequence[Effect], now: float) -> None:
        """Do what the directory asks for. A packet to the node itself is heard at once."""
        for effect in effects:
            if not isinstance(effect, Send) or effect.peer != self.node:
                self._effects.append(effect)
            elif isinstance(effect.packet, packets.SeedSet):
                self.on_seed_set(effect.packet, now)
            else:
                self.carry_out(self.directory.on_agent_packet(effect.packet, self.node, now), now)
