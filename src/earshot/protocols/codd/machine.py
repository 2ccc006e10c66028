"""CoDD, by S. Chawathe and A. Anand: dissemination trees for the hours after a disaster.

Each source is the root of a tree of its subscribers. A node knows what each child's subtree wants and
passes a document on only to children whose aggregate filter it meets. Newcomers go down the tree to
where they overlap most; nodes that receive too much that is not for them send a child elsewhere.

Joining and leaving are in `codd_membership.py`, aggregate queries in `codd_queries.py`, reorganising in
`codd_reorganising.py`, keep-alives in `codd_keep_alives.py`, the system agent in `codd_directory.py`.
Readings and departures: docs/papers/codd.md.
"""

from __future__ import annotations

from random import Random

from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.codd.directory import Directory
from earshot.protocols.codd.dissemination_tree import Child, Tree
from earshot.protocols.codd.keep_alives import KeepAlives
from earshot.protocols.codd.membership import Membership
from earshot.protocols.codd.packets import (
    Add,
    AddChild,
    AddQuery,
    AddResult,
    Aggregate,
    Answer,
    Document,
    GetAggregate,
    GetOverhead,
    GetSeedSet,
    Gone,
    Granted,
    KeepAlive,
    Leave,
    Move,
    Moved,
    NewParent,
    NewPath,
    Overhead,
    Register,
    Registered,
    RemoveQuery,
    Reorganize,
    Resend,
    SeedSet,
    Unregister,
    source_of,
)
from earshot.protocols.codd.queries import Queries
from earshot.protocols.codd.recent_documents import Held
from earshot.protocols.codd.reorganising import Reorganising
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.common.filter_answers import Answers, meets, read_filter
from earshot.protocols.common.local_filter_texts import OwnTexts
from earshot.protocols.common.wanted_types import could_match
from earshot.protocols.machine import (
    NOTHING,
    Announcement,
    Effects,
    Location,
    Machine,
    Send,
    Timer,
)
from earshot.records import DropReason
from earshot.wire import Packet


class Codd(Machine):
    """One node: source, subscriber, member of trees and, where its settings name it, system agent."""

    name = "codd"
    paper = "Chawathe, Anand: Interimistic Data Dissemination (CoDD)"
    medium = "overlay"
    Settings = CoddSettings

    def __init__(self, node: str, settings: CoddSettings, location: Location, random: Random) -> None:
        super().__init__(node, settings, location, random)
        self.settings: CoddSettings = settings
        self.local = OwnTexts()
        self.trees: dict[str, Tree] = {}
        self.own_tree: Tree | None = None
        self.own_types: tuple[str, ...] = ()
        self.directory = Directory(self)
        self.membership = Membership(self)
        self.queries = Queries(self)
        self.reorganising = Reorganising(self)
        self.keep_alives = KeepAlives(self)

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if type(packet) is Document:
            return self.on_document(packet, sender, now)
        match packet:
            case Register() | Unregister() | GetSeedSet():
                self.directory.on_agent_packet(packet, sender, now)
            case SeedSet():
                if sender in self.settings.agents:
                    self.directory.on_seed_set(packet, now)
            case KeepAlive():
                self.keep_alives.on_keep_alive(packet, sender, now)
            case _:
                tree = self.trees.get(getattr(packet, "tree", ""))
                if tree is None:
                    self.not_in_tree(packet, sender)
                else:
                    self.on_tree_packet(packet, tree, sender, now)
        return self.effects() if self._effects else NOTHING

    def on_tree_packet(self, packet: Packet, tree: Tree, sender: str, now: float) -> None:
        match packet:
            case GetOverhead():  # the two of which there are most
                self.reorganising.on_get_overhead(packet, tree, sender)
            case Overhead():
                self.reorganising.on_overhead(packet, tree, sender, now)
            case Add():
                self.membership.on_add(packet, tree, now)
            case AddResult():
                self.membership.on_add_result(packet, tree, sender, now)
            case AddChild():
                self.membership.on_add_child(packet, tree, sender, now)
            case Answer():
                self.membership.on_answer(packet, tree, sender, now)
            case AddQuery():
                self.queries.on_add_query(packet, tree, sender, now)
            case RemoveQuery():
                self.queries.on_remove_query(packet, tree, sender, now)
            case Registered():
                self.queries.on_registered(packet, tree, sender)
            case GetAggregate():
                self.queries.on_get_aggregate(tree, sender)
            case Aggregate():
                self.queries.on_aggregate(packet, tree, sender)
            case NewPath() if sender == tree.parent:
                self.membership.under(tree, packet.ancestors, now)
            case Leave():
                self.membership.on_leave(packet, tree, sender, now)
            case NewParent() if sender == tree.parent:
                self.membership.on_new_parent(packet, tree, sender, now)
            case Gone() if sender == tree.parent:
                self.forget_tree(tree)
            case Resend():
                self.on_resend(packet, tree, sender)
            case Move() if sender == tree.parent:
                self.reorganising.request(tree, packet.overhead, now)
            case Reorganize():
                self.reorganising.on_reorganize(packet, tree, sender, now)
            case Granted() if sender == tree.source:
                self.reorganising.on_granted(tree, now)
            case Moved():
                self.reorganising.on_moved(tree, sender, now)

    def not_in_tree(self, packet: Packet, sender: str) -> None:
        """Somebody takes this node for a member of a tree that it is not in."""
        match packet:
            case Add():
                self.send(packet.newcomer, AddResult(packet.tree, packet.request, spare=False))
            case AddChild():
                self.send(sender, Answer(packet.tree, packet.request, accepted=False))
            case GetOverhead():
                self.send(sender, Overhead(packet.tree, packet.request, 0.0, spare=False, children=()))
            case _:
                self.drop(DropReason.NOT_IN_TREE)

    def wake(self, timer: Timer, now: float) -> Effects:
        match timer:
            case "alive":
                self.keep_alives.tick(now)
            case "directory":
                self.directory.tick(now)
            case "asked":
                self.directory.no_answer(now)
            case "ask-again":
                self.directory.ask(now)
            case "push":
                self.directory.push(now)
            case (str() as what, str() as id) if id in self.trees:
                self.wake_tree(what, self.trees[id], now)
        return self.effects()

    def wake_tree(self, what: str, tree: Tree, now: float) -> None:
        match what:
            case "candidates":
                self.membership.choose(tree, now)
            case "answer":
                self.membership.refused(tree, now)
            case "retry":
                self.membership.join_again(tree, now)
            case "guests":
                self.membership.forget_guests(tree)
            case "gap":
                last = max(tree.ahead, default=0)
                if tree.parent and (missing := tree.missing_links(last)):
                    self.send(tree.parent, Resend(tree.id, missing))
            case "gather":
                self.reorganising.accept(tree, now)
            case "grant":
                self.reorganising.grant_next(tree, now)
            case "search":
                self.reorganising.no_answer(tree, now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        match packet:
            case Register() | Unregister():
                pass
            case SeedSet():
                self.directory.members.pop(peer, None)
            case GetSeedSet():
                self.cancel_timer("asked")
                self.directory.no_answer(now)
            case Add() if packet.tree in self.trees:
                self.membership.add_unreachable(packet, self.trees[packet.tree], peer, now)
            case AddChild() if packet.tree in self.trees:
                self.membership.refused(self.trees[packet.tree], now, packet.request)
            case GetOverhead() if packet.tree in self.trees:
                self.reorganising.no_answer(self.trees[packet.tree], now, packet.request)
        if not isinstance(packet, Register | Unregister | GetSeedSet | SeedSet):
            self.gone(peer, now)
        return self.effects()

    def gone(self, peer: str, now: float) -> None:
        """A peer does not answer: it is no longer anybody's parent or child here."""
        for tree in list(self.trees.values()):
            if peer in tree.children:
                self.queries.remove(tree, tree.give_up(peer))
            if tree.parent == peer:
                self.membership.orphaned(tree, now)

    def stop(self, now: float) -> Effects:
        """Section 3.2: leave every tree in good order."""
        self.directory.unregister_own(now)
        for tree in list(self.trees.values()):
            self.membership.leave(tree)
        return self.effects()

    # Subscribing.

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        """Join the trees of all sources whose types this could match; in those this node is in already,
        tell the parent."""
        first = not self.local.by_id
        self.local.add(subscription)
        self.directory.begin(now)
        if first:
            self.directory.ask(now)
        self.sources_changed(now)
        return self.effects()

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        if self.local.remove(subscription) is not None:
            self.sources_changed(now)
        return self.effects()

    def sources_changed(self, now: float) -> None:
        """What this node wants, or what sources there are, has changed: be in the right trees."""
        for tree in list(self.trees.values()):
            if tree is not self.own_tree and self._superseded(tree):
                self.forget_tree(tree)
        for id, source in sorted(self.directory.sources.items()):
            own = self.query(source.types)
            if id in self.trees:
                self.queries.change_own(self.trees[id], own)
                if not own and not self.trees[id].children:
                    self.membership.leave(self.trees[id])
            elif own:
                tree = self.new_tree(id, is_root=False, now=now)
                self.queries.change_own(tree, own)
                self.membership.join(tree, now)

    def _superseded(self, tree: Tree) -> bool:
        """Its source has lost its memory and begun a new tree; or is gone, and the node found no place."""
        if tree.id in self.directory.sources:
            return False
        newer = any(source_of(one) == tree.source for one in self.directory.sources)
        return newer or (not tree.is_in and self.membership.hopeless(tree))

    def query(self, types: tuple[str, ...]) -> tuple[str, ...]:
        """What this node wants of events of these types."""
        found = set()
        for text in self.local.texts.values():
            filter = read_filter(text)
            if filter is not None and any(could_match(filter, subject) for subject in types):
                found.add(text)
        return tuple(sorted(found))

    def new_tree(self, id: str, is_root: bool, now: float) -> Tree:
        tree = Tree(id, self.node, is_root, self.settings.held_documents)
        tree.next_look = self.settings.reorganise_every
        self.trees[id] = tree
        self.keep_alives.begin(now)
        return tree

    def forget_tree(self, tree: Tree) -> None:
        """The tree is no more: those below are told."""
        for name in tree.children:
            self.send(name, Gone(tree.id))
        self.membership.forget(tree)
        self.reorganising.forget(tree)
        self.trees.pop(tree.id, None)

    # Publishing.

    def announce(self, announcement: Announcement, now: float) -> Effects:
        """This node is a source: the root of a tree of its own."""
        self._be_source(announcement.event_type.subject, now)
        return self.effects()

    def unannounce(self, subject: str, now: float) -> Effects:
        """The tree stays for what else is published; without any type left it goes."""
        self.own_types = tuple(known for known in self.own_types if known != subject)
        if self.own_tree is not None:
            if self.own_types:
                self.directory.register_own(now)
            else:
                self.directory.unregister_own(now)
                self.forget_tree(self.own_tree)
                self.own_tree = None
        return self.effects()

    def _be_source(self, subject: str, now: float) -> Tree:
        if self.own_tree is None:
            self.own_tree = self.new_tree(f"{self.node}#{max(0, round(now * 1000)):x}", is_root=True, now=now)
            self.directory.begin(now)
        if subject not in self.own_types:
            self.own_types = (*self.own_types, subject)
            self.directory.register_own(now)
        return self.own_tree

    def publish(self, event: Event, now: float) -> Effects:
        """Down the tree. This node's own applications know it already."""
        tree = self._be_source(event.type, now)
        tree.number += 1
        tree.complete = tree.number
        tree.held.add(tree.number, event, 0)
        if tree.children:
            self.pass_on(tree, tree.number, event, 0, tree.wants.answers(event))
        return self.effects()

    # Documents.

    def on_document(self, packet: Document, sender: str, now: float) -> Effects:
        """Section 3: deliver it, and propagate it to a child only if it satisfies that child's filter."""
        tree = self.trees.get(packet.tree)
        if tree is None or tree.is_root:
            self.drop(DropReason.NOT_IN_TREE, packet.event.id)
            return self.effects()
        number, event = packet.number, packet.event
        if event.source != tree.source or not event.id:
            self.drop(DropReason.MALFORMED_DOCUMENT, event.id)
            return self.effects()
        if sender == tree.parent:
            tree.parent_heard_at = now
            if not tree.arrived(packet.link, packet.complete):
                self.start_timer(("gap", tree.id), at=now + self.settings.candidate_wait_s)
        if number > tree.number:
            tree.number = number
        elif number < tree.number - tree.held.capacity or number in tree.held.numbers:
            return self.effects() if self._effects else NOTHING
        tree.held.add(number, event, packet.hops)
        tree.transfers += 1
        answers = tree.wants.answers(event)
        if meets(event, tree.own, answers):
            tree.wanted.numbers.append(number)
            self.local.tell_known(self, event, answers, packet.hops, now)
        else:
            tree.extraneous += 1
        if tree.children:
            self.pass_on(tree, number, event, packet.hops, answers)
            if number >= tree.next_look:
                self.reorganising.look(tree, now)
        return self.effects() if self._effects else NOTHING

    def pass_on(self, tree: Tree, number: int, event: Event, hops: int, answers: Answers) -> None:
        effects, id, complete = self._effects, tree.id, tree.complete
        hops, met, asked = hops + 1, answers.met, answers.asked
        for name, child in tree.children.items():
            wants = child.wants
            if child.guest or (met.isdisjoint(wants) and (asked.issuperset(wants) or not meets(event, wants, answers))):
                continue  # the two sets are what `meets` looks at first; most end here
            child.sent.append(number)
            child.link += 1
            effects.append(Send(name, Document(event, hops, id, number, child.link, complete)))

    def send_missed(self, tree: Tree, name: str, child: Child, texts: tuple[str, ...], since: int) -> None:
        """What a newcomer from elsewhere lacks, as far as it is here."""
        for held in list(tree.missed(child, texts, since)):
            child.sent.append(held.number)
            child.link += 1
            self.send_held(tree, name, child.link, held)

    def send_held(self, tree: Tree, name: str, link: int, held: Held) -> None:
        self.send(name, Document(held.event, held.hops + 1, tree.id, held.number, link, tree.complete))

    def on_resend(self, packet: Resend, tree: Tree, sender: str) -> None:
        """Something got lost between the two."""
        child = tree.children.get(sender)
        if child is None:
            return
        held = {one.number: one for one in tree.held.since(0)}
        for link in packet.links[:1000]:
            number = child.number_at(link)
            if number is not None and number in held:
                self.send_held(tree, sender, link, held[number])
