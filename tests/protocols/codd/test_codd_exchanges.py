"""CoDD, packet by packet: what a node does in each step, as a whole. Chance is replaced by one half."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from codd_table import SMALL, TREE, A, B, C, document, member, sent

from earshot.events import Event, EventType
from earshot.filters import Filter, FilterIndex, Subscription
from earshot.protocols.codd import machine as codd_machine
from earshot.protocols.codd.dissemination_tree import MOST_EARLY, MOST_MISSING, DisseminationTree
from earshot.protocols.codd.join import JoinState
from earshot.protocols.codd.machine import Codd
from earshot.protocols.codd.overlap import (
    least_overlap_child,
    max_overlap_child,
    overhead_for,
    structural_overlap,
    window,
)
from earshot.protocols.codd.packets import (
    NEW,
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
    Source,
    Unregister,
)
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.machine import (
    Announcement,
    CancelTimer,
    Deliver,
    Drop,
    FixedLocation,
    Note,
    Send,
    StartTimer,
)
from earshot.protocols.tuning import Surroundings
from earshot.records import DropReason
from earshot.wire import decode, encode

LINK = 1 << 32
"The documents for a node's first child are numbered from here on, those for its second child from twice that on."


class Half(Random):
    """Chance that always answers one half."""

    def random(self) -> float:
        return 0.5


def node(name: str = "n", settings: CoddSettings = SMALL) -> Codd:
    return Codd(name, settings, FixedLocation(), Half())


def subscription(category: str, name: str = "n") -> Subscription:
    return Subscription(f"{name}/{category}", name, Filter.where(f'category = "{category}"', type="Document"))


def parent_of(*children: str, settings: CoddSettings = SMALL, wants: str = "a") -> Codd:
    """A member with these children; each wants the category of its name's first letter."""
    machine = member(settings, wants)
    machine.random = Half()
    for name in children:
        text = {"a": A, "b": B, "c": C}[name[0]]
        machine.hear(AddChild(TREE, 1, (text,), (text,), NEW), name, 1.0)
    return machine


def below(machine: Codd, parent: str, *ancestors: str) -> Codd:
    """The same node with this parent."""
    machine.trees[TREE].parent, machine.trees[TREE].ancestors = parent, (*ancestors, parent)
    return machine


def tree_of(settings: CoddSettings = SMALL, is_root: bool = False) -> DisseminationTree:
    return DisseminationTree(TREE, "n", is_root, settings, FilterIndex())


# A source.


def test_a_source_registers_its_types_with_its_agents_and_ends_its_tree_with_the_last() -> None:
    machine = node("s")
    tree = "s#5dc"
    assert machine.announce(Announcement(EventType("Document")), 1.5) == [
        StartTimer("alive", 1.5 + 3.75), StartTimer("directory", 1.5 + 22.5),
        Send("source-0", Register(tree, ("Document",))),
    ]  # fmt: skip
    assert machine.announce(Announcement(EventType("Document")), 2.0) == []
    assert machine.announce(Announcement(EventType("News")), 2.0) == [
        Send("source-0", Register(tree, ("Document", "News")))
    ]
    machine.hear(AddChild(tree, 1, (A,), (A,), NEW), "x", 3.0)
    assert machine.unannounce("Document", 4.0) == [Send("source-0", Register(tree, ("News",)))]
    assert machine.unannounce("News", 5.0) == [Send("source-0", Unregister(tree)), Send("x", Gone(tree))]
    assert (machine.unannounce("News", 6.0), machine.wake("alive", 7.0), machine.trees) == ([], [], {})


def test_a_source_sends_each_document_to_the_children_that_want_it() -> None:
    machine = node("source-0")
    machine.announce(Announcement(EventType("Document")), 0.0)
    assert machine.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0) == [
        Send("x", Answer(TREE, 1, True, ("source-0",), LINK)), Send("x", Registered(TREE, ("x",), -1)),
    ]  # fmt: skip
    machine.hear(AddChild(TREE, 1, (A, B), (A, B), NEW), "y", 1.0)
    for number, category, expected in (
        (0, "a", [("x", LINK + 1), ("y", 2 * LINK + 1)]),
        (1, "b", [("y", 2 * LINK + 2)]),
        (2, "c", []),
        (3, "a", [("x", LINK + 2), ("y", 2 * LINK + 3)]),
    ):
        event = document(category, number, 0).event
        assert machine.publish(event, 2.0) == [
            Send(name, Document(event, 1, TREE, number, link, number)) for name, link in expected
        ]
    assert machine.hear(document("a", 9, 1), "x", 3.0) == [Drop("not-in-tree", "d9")]
    late = machine.hear(AddChild(TREE, 2, (A,), (A,), 0), "z", 4.0)
    assert late == [Send("z", Answer(TREE, 2, accepted=False))], "there is no room"
    assert machine.hear(Leave(TREE), "x", 5.0) == []
    again = machine.hear(AddChild(TREE, 3, (A,), (A,), 0), "z", 6.0)
    assert again == [
        Send("z", Answer(TREE, 3, True, ("source-0",), 3 * LINK)),
        Send("z", Document(document("a", 3, 0).event, 1, TREE, 3, 3 * LINK + 1, 3)),
        Send("z", Registered(TREE, ("z",), 3)),
    ]


def test_a_source_that_stops_takes_its_tree_with_it() -> None:
    machine = node("source-0", replace(SMALL, agents=("agent",)))
    machine.announce(Announcement(EventType("Document")), 0.0)
    machine.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    assert machine.stop(2.0) == [Send("agent", Unregister(TREE)), Send("x", Gone(TREE))]
    assert machine.trees == {}


def test_a_child_that_hears_that_the_tree_ends_tells_its_own_children() -> None:
    machine = parent_of("ax", "by")
    assert machine.hear(Gone(TREE), "ax", 2.0) == []
    assert machine.hear(Gone(TREE), "source-0", 2.0) == [Send("ax", Gone(TREE)), Send("by", Gone(TREE))]
    assert machine.trees == {}


def test_an_agent_that_is_source_and_subscriber_asks_itself() -> None:
    machine = node("source-0")
    machine.announce(Announcement(EventType("Document")), 0.0)
    machine.hear(Register("other#0", ("Document",)), "other", 0.5)
    found = machine.subscribe(subscription("a", "source-0"), 1.0)
    assert sent(found) == [("other", Add("other#0", "source-0", 1, (A,)))]
    assert list(machine.trees) == [TREE, "other#0"]


# Documents.


def test_a_document_is_delivered_and_passed_on_with_one_more_hop() -> None:
    machine = parent_of("ax", "by")
    heard = Document(document("a", 0, 0).event, 4, TREE, 0, 101, 0)
    assert machine.hear(heard, "source-0", 2.0) == [
        Deliver(heard.event, "n/a", 4), Send("ax", Document(heard.event, 5, TREE, 0, LINK + 1, 0)),
    ]  # fmt: skip
    anonymous = Document(Event("Document", {"category": "a"}, "", "source-0", time=1.0), 1, TREE, 1, 102, 1)
    assert machine.hear(anonymous, "source-0", 2.0) == [Drop("malformed-document")]


def test_a_document_is_heard_once_as_far_back_as_documents_are_held() -> None:
    machine = member(replace(SMALL, held_documents=40))
    delivered = []
    for number in (100, 60, 59, 100, 60, 99, 101):
        found = machine.hear(document("a", number, 1, -1), "q", 2.0)
        delivered.append((number, any(isinstance(effect, Deliver) for effect in found)))
    assert delivered == [
        (100, True), (60, True), (59, False), (100, False), (60, False), (99, True), (101, True),
    ]  # fmt: skip


def test_a_gap_is_asked_for_after_a_wait_and_filled_in_any_order() -> None:
    machine = member()
    machine.hear(document("a", 0, 101), "source-0", 1.0)
    assert machine.hear(document("a", 3, 104), "source-0", 1.0)[0] == StartTimer(("gap", TREE), 3.0)
    assert machine.wake(("gap", TREE), 3.0) == [Send("source-0", Resend(TREE, (102, 103)))]
    machine.hear(document("a", 2, 103), "source-0", 4.0)
    assert machine.wake(("gap", TREE), 5.0) == [Send("source-0", Resend(TREE, (102,)))]
    machine.hear(document("a", 1, 102), "source-0", 6.0)
    assert (machine.wake(("gap", TREE), 7.0), machine.trees[TREE].complete, machine.trees[TREE].ahead) == ([], 3, {})


def test_lost_documents_are_sent_again_under_their_old_link(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = parent_of("ax", "by")
    for number, category in enumerate("abab"):
        machine.hear(document(category, number, 101 + number), "source-0", 2.0)
    again = Document(document("a", 2, 0).event, 2, TREE, 2, LINK + 2, 3)
    assert machine.hear(Resend(TREE, (LINK + 2, LINK + 3, LINK)), "ax", 3.0) == [Send("ax", again)]
    assert machine.hear(Resend(TREE, (LINK + 2,)), "stranger", 3.0) == []
    monkeypatch.setattr(codd_machine, "MOST_RESENT", 1)
    both = machine.hear(Resend(TREE, (2 * LINK + 1, 2 * LINK + 2)), "by", 3.0)
    assert [packet.link for _, packet in sent(both)] == [2 * LINK + 1]


def test_links_of_another_bond_or_too_far_ahead_are_not_asked_for() -> None:
    tree = tree_of()
    tree.bond("p", LINK, 0.0)
    assert [tree.missing_links(last) for last in (LINK, LINK + 1, LINK + 2)] == [(), (LINK + 1,), (LINK + 1, LINK + 2)]
    assert (tree.missing_links(2 * LINK), tree.missing_links(LINK - 1)) == ((), ())
    assert tree.missing_links(2 * LINK - 1) == tuple(range(LINK + 1, LINK + 1 + MOST_MISSING))
    assert [tree.arrived(link, 5) for link in (LINK, 2 * LINK + 1, LINK + 3, LINK + 1)] == [True, True, False, False]
    assert (tree.heard_link, tree.ahead, tree.complete) == (LINK + 1, {LINK + 3: 5}, 5)
    assert (tree.arrived(LINK + 2, 4), tree.heard_link, tree.ahead, tree.complete) == (True, LINK + 3, {}, 5)


def test_a_child_knows_the_number_of_each_link() -> None:
    child = tree_of(replace(SMALL, held_documents=40)).take("x", (), (), 0.0)
    assert [child.send(number) for number in (7, 9, 12)] == [LINK + 1, LINK + 2, LINK + 3]
    assert [child.number_at(LINK + link) for link in (0, 1, 2, 3, 4)] == [None, 7, 9, 12, None]


def test_queries_of_a_child_wait_for_their_turn_within_bounds() -> None:
    child = tree_of().take("x", (), (), 0.0)
    queries = {k: RemoveQuery(TREE, LINK + k, (str(k),)) for k in range(MOST_EARLY + 3)}
    assert child.in_turn(queries[0]) == [], "it came before"
    for k in range(2, MOST_EARLY + 3):
        assert child.in_turn(queries[k]) == []
    assert len(child.early) == MOST_EARLY
    assert child.in_turn(queries[1]) == [queries[k] for k in range(1, MOST_EARLY + 2)]
    assert (child.version, child.early) == (LINK + MOST_EARLY + 1, {})
    guest = tree_of().take("g", (), (), 0.0, guest=True)
    assert guest.in_turn(queries[1]) == []


# Joining.


def joining() -> Codd:
    machine = node()
    machine.subscribe(subscription("a"), 0.0)
    machine.hear(SeedSet((Source(TREE, ("Document",), ("source-0",)),)), "source-0", 0.1)
    return machine


def test_a_subscriber_looks_for_sources_and_joins_at_the_seeds() -> None:
    machine = node()
    assert machine.subscribe(subscription("a"), 0.0) == [
        StartTimer("directory", 22.5), StartTimer("asked", 2.0), Send("source-0", GetSeedSet()),
    ]  # fmt: skip
    assert machine.hear(SeedSet((Source(TREE, ("Document",), ("m", "source-0", "n")),)), "source-0", 0.5) == [
        CancelTimer("asked"), StartTimer("alive", 0.5 + 3.75), Send("m", Add(TREE, "n", 1, (A,))),
        Send("source-0", Add(TREE, "n", 1, (A,))), StartTimer(("candidates", TREE), 2.5),
    ]  # fmt: skip
    assert machine.hear(AddResult(TREE, 1, spare=True), "x", 0.6) == [], "one seed has not answered"
    assert machine.hear(AddResult(TREE, 9, spare=True), "x", 0.6) == [], "that is no answer to this request"
    assert machine.hear(AddResult(TREE, 1, spare=False), "source-0", 0.7) == [
        CancelTimer(("candidates", TREE)), Send("x", AddChild(TREE, 2, (A,), (A,), NEW)),
        StartTimer(("answer", TREE), 2.7),
    ]  # fmt: skip
    assert machine.hear(SeedSet(()), "stranger", 0.8) == []


def test_what_changed_while_a_node_waited_is_stated_when_it_is_accepted() -> None:
    machine = joining()
    machine.hear(AddResult(TREE, 1, spare=True), "m", 0.2)
    machine.subscribe(subscription("b"), 0.3)
    machine.unsubscribe("n/a", 0.4)
    assert machine.hear(Answer(TREE, 2, accepted=True, ancestors=("source-0", "m"), link=100), "m", 0.5) == [
        CancelTimer(("answer", TREE)), Note("parent", f"{TREE} m 2"), Send("m", AddQuery(TREE, 101, (B,), NEW, ("n",))),
        Send("m", RemoveQuery(TREE, 102, (A,))),
    ]  # fmt: skip


def test_an_answer_that_comes_too_late_is_undone_and_others_are_ignored() -> None:
    machine = joining()
    machine.hear(AddResult(TREE, 1, spare=True), "m", 0.2)
    assert machine.hear(Answer(TREE, 1, accepted=True, link=9), "m", 0.3) == [Send("m", Leave(TREE))]
    assert machine.hear(Answer(TREE, 1, accepted=False), "m", 0.3) == []
    assert machine.hear(Answer(TREE, 2, accepted=False), "x", 0.3) == []
    machine.hear(Answer(TREE, 2, accepted=True, ancestors=("source-0", "m"), link=100), "m", 0.4)
    assert machine.hear(Answer(TREE, 2, accepted=True, ancestors=("source-0", "m"), link=100), "m", 0.5) == []
    assert machine.hear(Answer(TREE, 0, accepted=False), "x", 0.6) == []
    lost = machine.hear(Answer(TREE, 0, accepted=False), "m", 0.6)
    assert sent(lost) == [("source-0", Add(TREE, "n", 3, (A,)))], "its parent does not know it"


def test_a_join_that_fails_is_tried_again_and_reported_after_some_attempts() -> None:
    machine = joining()
    for attempt in (1, 2, 3):
        assert machine.wake(("candidates", TREE), 10.0) == [
            CancelTimer(("candidates", TREE)), StartTimer(("retry", TREE), 12.0),
        ]  # fmt: skip
        assert sent(machine.wake(("retry", TREE), 12.0)) == [("source-0", Add(TREE, "n", attempt + 1, (A,)))]
    assert machine.wake(("candidates", TREE), 20.0) == [
        CancelTimer(("candidates", TREE)), Drop(DropReason.JOIN_FAILED),
        Note("join-failed", f"{TREE} after 4 attempts"), StartTimer("asked", 22.0), Send("source-0", GetSeedSet()),
        StartTimer(("retry", TREE), 30.0),
    ]  # fmt: skip
    assert machine.wake(("candidates", TREE), 21.0) == [], "it rests"
    assert machine.wake(("answer", TREE), 21.0) == []


def test_a_node_that_has_a_place_does_not_try_again() -> None:
    assert member().wake(("retry", TREE), 9.0) == []
    assert member().wake(("candidates", TREE), 9.0) == []
    assert member().wake(("retry", "other#0"), 9.0) == []


def test_a_newcomer_is_offered_room_once_and_never_by_its_own_descendant() -> None:
    machine = below(parent_of("ax"), "p", "source-0")
    for newcomer, spare in (("z", True), ("ax", True), ("p", False), ("source-0", False), ("n", False)):
        assert sent(machine.hear(Add(TREE, newcomer, 7, (A,)), "p", 2.0), AddResult) == [
            (newcomer, AddResult(TREE, 7, spare))
        ]
    assert machine.trees[TREE].children == {}, "ax would not ask if it were still here"
    assert machine.hear(Add(TREE, "", 7, (A,)), "p", 2.0) == []
    lost = joining()
    assert lost.hear(Add(TREE, "z", 7, (A,)), "p", 2.0) == [Send("z", AddResult(TREE, 7, spare=False))]


def test_a_node_that_is_not_in_a_tree_says_so() -> None:
    machine = node()
    other = "other#0"
    assert machine.hear(Add(other, "z", 7, (A,)), "p", 1.0) == [Send("z", AddResult(other, 7, spare=False))]
    assert machine.hear(Add(other, "", 7, (A,)), "p", 1.0) == []
    assert machine.hear(AddChild(other, 7, (A,), (A,), NEW), "z", 1.0) == [Send("z", Answer(other, 7, accepted=False))]
    assert machine.hear(GetOverhead(other, 7, 0, b""), "z", 1.0) == [Send("z", Overhead(other, 7, 0.0, False, ()))]
    assert machine.hear(Moved(other, True), "z", 1.0) == [Drop("not-in-tree")]


def test_a_child_that_cannot_be_reached_is_lost_and_the_newcomer_goes_elsewhere() -> None:
    machine = parent_of("ax", "by")
    asked = Add(TREE, "z", 7, (B,))
    assert sent(machine.hear(asked, "source-0", 2.0)) == [("by", asked)]
    assert machine.unreachable(asked, "by", 3.0) == [
        Send("source-0", RemoveQuery(TREE, 103, (B,))), Send("z", AddResult(TREE, 7, spare=True)),
    ]  # fmt: skip


def test_a_seed_that_cannot_be_reached_is_no_longer_waited_for() -> None:
    machine = joining()
    failed = machine.unreachable(Add(TREE, "n", 1, (A,)), "source-0", 1.0)
    assert failed == [CancelTimer(("candidates", TREE)), StartTimer(("retry", TREE), 3.0)]
    assert joining().unreachable(Add(TREE, "n", 9, (A,)), "source-0", 1.0) == []
    asking = joining()
    asking.hear(AddResult(TREE, 1, spare=True), "m", 0.2)
    assert asking.unreachable(AddChild(TREE, 9, (), (), NEW), "m", 1.0) == []
    assert asking.unreachable(AddChild(TREE, 2, (), (), NEW), "m", 1.0) == [
        CancelTimer(("answer", TREE)), CancelTimer(("candidates", TREE)), StartTimer(("retry", TREE), 3.0),
    ]  # fmt: skip


def test_what_agents_cannot_be_sent_loses_no_peer() -> None:
    machine = parent_of("ax")
    for packet in (Register(TREE, ()), Unregister(TREE), SeedSet(())):
        assert machine.unreachable(packet, "ax", 2.0) == []
    assert list(machine.trees[TREE].children) == ["ax"]
    assert machine.unreachable(KeepAlive((), ()), "ax", 2.0) == []
    assert machine.trees[TREE].children == {}


def test_a_child_that_bonds_again_or_takes_anothers_place_needs_no_room() -> None:
    machine = parent_of("ax", "by")
    again = machine.hear(AddChild(TREE, 5, (C,), (C,), NEW), "by", 2.0)
    assert again == [
        Send("by", Answer(TREE, 5, True, ("source-0", "n"), 3 * LINK)),
        Send("source-0", AddQuery(TREE, 103, (C,), NEW, ("by", "n"))), Send("source-0", RemoveQuery(TREE, 104, (B,))),
    ]  # fmt: skip
    instead = machine.hear(AddChild(TREE, 6, (B,), (B,), NEW, replaces="by"), "z", 3.0)
    assert instead == [
        Send("z", Answer(TREE, 6, True, ("source-0", "n"), 4 * LINK)),
        Send("source-0", AddQuery(TREE, 105, (B,), NEW, ("z", "n"))), Send("source-0", RemoveQuery(TREE, 106, (C,))),
    ]  # fmt: skip
    assert sorted(machine.trees[TREE].children) == ["ax", "z"]


def test_a_node_takes_neither_itself_nor_an_ancestor_as_a_child() -> None:
    machine = below(parent_of("ax"), "p", "source-0")
    for name in ("n", "p", "source-0"):
        refused = Send(name, Answer(TREE, 5, accepted=False))
        assert machine.hear(AddChild(TREE, 5, (A,), (A,), NEW), name, 2.0) == [refused]


# Queries.


def test_a_query_of_a_node_below_goes_up_with_its_path() -> None:
    machine = parent_of("by")
    assert machine.hear(AddQuery(TREE, LINK + 1, (C,), 4, ("leaf", "by")), "by", 2.0) == [
        Send("source-0", AddQuery(TREE, 102, (C,), 4, ("leaf", "by", "n")))
    ]
    child = machine.trees[TREE].children["by"]
    assert (set(child.own), set(child.wants), machine.trees[TREE].pending["leaf"]) == ({B}, {B, C}, 4)
    machine.hear(AddQuery(TREE, LINK + 2, (A,), NEW, ("by",)), "by", 2.0)
    assert (set(child.own), set(child.wants)) == ({A, B}, {A, B, C})
    assert machine.hear(AddQuery(TREE, LINK + 3, (A,), NEW, ("by",)), "stranger", 2.0) == []


def test_a_source_answers_a_query_along_its_path() -> None:
    machine = node("source-0")
    machine.announce(Announcement(EventType("Document")), 0.0)
    machine.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    machine.publish(document("b", 0, 0).event, 2.0)
    assert machine.hear(AddQuery(TREE, LINK + 1, (B,), -1, ("leaf", "x")), "x", 3.0) == [
        Send("x", Document(document("b", 0, 0).event, 1, TREE, 0, LINK + 1, 0)),
        Send("x", Registered(TREE, ("leaf", "x"), 0)),
    ]


def test_a_guest_that_has_come_below_a_child_is_no_guest_any_longer() -> None:
    machine = below(parent_of("ax"), "p", "source-0")
    machine.hear(NewParent(TREE, "source-0", True, 3, 0, (("g", (B,)), ("n", (C,)), ("ax", (C,)))), "p", 2.0)
    assert [(name, child.guest) for name, child in machine.trees[TREE].children.items()] == [("ax", False), ("g", True)]
    found = machine.hear(AddQuery(TREE, LINK + 1, (C,), NEW, ("g", "ax")), "ax", 3.0)
    assert sent(found) == [
        ("source-0", AddQuery(TREE, 1, (C,), NEW, ("g", "ax", "n"))), ("source-0", RemoveQuery(TREE, 2, (B,))),
    ]  # fmt: skip
    assert list(machine.trees[TREE].children) == ["ax"]


def test_a_node_states_its_whole_query_when_its_parent_asks() -> None:
    machine = parent_of("by")
    assert machine.hear(GetAggregate(TREE), "source-0", 2.0) == [
        Send("source-0", Aggregate(TREE, 101, (A,), (A, B)))
    ]  # fmt: skip
    assert machine.hear(GetAggregate(TREE), "by", 2.0) == []


def test_a_parent_takes_over_what_a_child_states() -> None:
    machine = parent_of("by")
    child = machine.trees[TREE].children["by"]
    for version in (LINK + 2, LINK + 6):
        machine.hear(RemoveQuery(TREE, version, (B,)), "by", 1.5)
    assert machine.hear(Aggregate(TREE, LINK - 1, (A,), (A,)), "by", 2.0) == [], "an earlier bond's"
    assert machine.hear(Aggregate(TREE, LINK + 5, (C,), (C, A)), "by", 2.0) == [
        Send("source-0", AddQuery(TREE, 102, (C,), NEW, ("by", "n"))), Send("source-0", RemoveQuery(TREE, 103, (B,))),
    ]  # fmt: skip
    assert (set(child.own), list(child.wants), child.version) == ({C}, [C, A], LINK + 5)
    assert list(child.early) == [LINK + 6]
    assert machine.hear(Aggregate(TREE, LINK + 9, (), ()), "stranger", 2.0) == []


def test_a_change_of_the_own_query_is_stated_where_nobody_below_has_stated_it() -> None:
    machine = parent_of("by")
    assert machine.subscribe(subscription("b"), 2.0) == []
    assert machine.subscribe(subscription("c"), 2.0) == [Send("source-0", AddQuery(TREE, 102, (C,), NEW, ("n",)))]
    assert machine.unsubscribe("n/b", 3.0) == []
    assert machine.unsubscribe("n/a", 3.0) == [Send("source-0", RemoveQuery(TREE, 103, (A,)))]
    assert machine.unsubscribe("n/a", 3.0) == []


def test_a_node_that_wants_nothing_leaves_unless_it_has_children() -> None:
    leaf = member()
    assert leaf.unsubscribe("n/a", 2.0) == [
        Send("source-0", RemoveQuery(TREE, 101, (A,))), Send("source-0", Leave(TREE)),
    ]  # fmt: skip
    assert leaf.trees == {}
    interior = parent_of("by")
    assert interior.unsubscribe("n/a", 2.0) == [Send("source-0", RemoveQuery(TREE, 102, (A,)))]
    assert list(interior.trees) == [TREE]


# Leaving and failing.


def test_a_node_below_a_parent_that_leaves_joins_at_its_successor_then_at_its_grandparent() -> None:
    machine = below(parent_of("ax"), "p", "source-0", "g")
    machine.trees[TREE].heard_link = 7
    found = machine.hear(NewParent(TREE, "s", False, 9, 7), "p", 2.0)
    assert found == [Send("s", Add(TREE, "n", 3, (A,))), StartTimer(("candidates", TREE), 4.0)]
    assert machine.trees[TREE].complete == 9, "it had heard all that its parent sent"
    assert machine.wake(("candidates", TREE), 4.0)[1:] == [
        Send("g", Add(TREE, "n", 4, (A,))), StartTimer(("candidates", TREE), 6.0),
    ]  # fmt: skip
    missing = below(parent_of("ax"), "p", "source-0")
    missing.hear(NewParent(TREE, "s", False, 9, 99), "p", 2.0)
    assert missing.trees[TREE].complete == -1
    assert missing.hear(NewParent(TREE, "s", True, 9, 99), "stranger", 2.0) == []


def test_a_successor_asks_its_grandparent_for_the_place_and_tells_its_children() -> None:
    machine = below(parent_of("ax"), "p", "source-0")
    assert machine.hear(NewParent(TREE, "source-0", True, 9, 99, (("g", (B,)),)), "p", 2.0) == [
        StartTimer(("guests", TREE), 17.0), Send("source-0", AddChild(TREE, 3, (A,), (A, B), -1, "p")),
        StartTimer(("answer", TREE), 4.0), Send("ax", NewPath(TREE, ("source-0", "n"))),
    ]  # fmt: skip
    assert (machine.trees[TREE].parent, machine.trees[TREE].join.state) == ("source-0", JoinState.SUCCEEDING)
    refused = machine.hear(Answer(TREE, 3, accepted=False), "source-0", 3.0)
    assert refused == [
        CancelTimer(("answer", TREE)), Note("orphan", f"{TREE} source-0"), Send("source-0", Add(TREE, "n", 4, (A, B))),
        StartTimer(("candidates", TREE), 5.0),
    ]  # fmt: skip


def test_a_changed_path_is_passed_on_to_children_and_a_cycle_left() -> None:
    machine = below(parent_of("ax"), "p", "source-0")
    machine.trees[TREE].take("g", (), (), 2.0, guest=True)
    assert machine.hear(NewPath(TREE, ("source-0", "p")), "p", 2.0) == [], "nothing has changed"
    assert machine.hear(NewPath(TREE, ("source-0", "q", "p")), "stranger", 2.0) == []
    assert machine.hear(NewPath(TREE, ("source-0", "q", "p")), "p", 2.0) == [
        Send("ax", NewPath(TREE, ("source-0", "q", "p", "n")))
    ]
    assert machine.hear(NewPath(TREE, ("source-0", "n", "p")), "p", 2.0) == [
        Drop("cycle"), Send("p", Leave(TREE)), Send("source-0", Add(TREE, "n", 3, (A,))),
        StartTimer(("candidates", TREE), 4.0),
    ]  # fmt: skip


def test_guests_that_do_not_come_are_given_up_and_children_stay() -> None:
    machine = below(parent_of("ax"), "p", "source-0")
    machine.hear(NewParent(TREE, "source-0", True, 9, 99, (("g", (B,)),)), "p", 2.0)
    assert machine.wake(("guests", TREE), 17.0) == [Send("source-0", RemoveQuery(TREE, 1, (B,)))]
    assert list(machine.trees[TREE].children) == ["ax"]


def test_keep_alives_state_what_was_sent_down_and_up() -> None:
    machine = parent_of("ax", "by")
    machine.hear(document("a", 0, 101), "source-0", 2.0)
    assert machine.wake("alive", 3.0) == [
        Send("ax", KeepAlive(((TREE, 0, LINK + 1),), ())), Send("by", KeepAlive(((TREE, 0, 2 * LINK),), ())),
        Send("source-0", KeepAlive((), ((TREE, 102),))), StartTimer("alive", 8.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keep_alive", "sender", "expected", "complete", "parent_heard_at", "child_heard_at"),
    [
        (KeepAlive((("other#0", 1, 1),), ()), "source-0", [Leave("other#0")], -1, 0.3, 1.0),
        (KeepAlive(((TREE, 1, 100),), ()), "stranger", [Leave(TREE)], -1, 0.3, 1.0),
        (KeepAlive(((TREE, 1, 102),), ()), "source-0", [Resend(TREE, (101, 102))], -1, 2.0, 1.0),
        (KeepAlive(((TREE, 1, 100),), ()), "source-0", [], 1, 2.0, 1.0),
        (KeepAlive((), ((TREE, LINK),)), "ax", [], -1, 0.3, 2.0),
        (KeepAlive((), ((TREE, LINK + 1),)), "ax", [GetAggregate(TREE)], -1, 0.3, 2.0),
        (KeepAlive((), ((TREE, LINK + 1),)), "stranger", [Answer(TREE, 0, accepted=False)], -1, 0.3, 1.0),
        (KeepAlive((), (("other#0", 1), (TREE, LINK))), "ax", [Answer("other#0", 0, accepted=False)], -1, 0.3, 2.0),
        (KeepAlive((("other#0", 1, 1), (TREE, 1, 100)), ()), "source-0", [Leave("other#0")], 1, 2.0, 1.0),
    ],
)
def test_a_keep_alive_shows_what_was_lost(
    keep_alive: KeepAlive, sender: str, expected: list[object], complete: int, parent_heard_at: float,
    child_heard_at: float,
) -> None:  # fmt: skip
    machine = parent_of("ax")
    assert machine.hear(keep_alive, sender, 2.0) == [Send(sender, packet) for packet in expected]
    tree = machine.trees[TREE]
    assert (tree.complete, tree.parent_heard_at, tree.children["ax"].heard_at) == (
        complete, parent_heard_at, child_heard_at,
    )  # fmt: skip


def test_peers_are_given_up_after_more_than_the_silence() -> None:
    machine = parent_of("ax")
    machine.hear(KeepAlive((), ((TREE, LINK),)), "ax", 2.3)
    machine.wake("alive", 0.3 + 15.0)
    assert (machine.trees[TREE].parent, list(machine.trees[TREE].children)) == ("source-0", ["ax"])
    machine.wake("alive", 15.5)
    assert (machine.trees[TREE].parent, list(machine.trees[TREE].children)) == ("", ["ax"])
    machine.wake("alive", 17.3)
    assert list(machine.trees[TREE].children) == ["ax"]
    machine.wake("alive", 17.5)
    assert machine.trees[TREE].children == {}


def test_a_bond_that_the_source_does_not_know_is_stated_again() -> None:
    machine = joining()
    machine.hear(AddResult(TREE, 1, spare=True), "m", 0.2)
    machine.hear(Answer(TREE, 2, accepted=True, ancestors=("source-0", "m"), link=100), "m", 1.0)
    machine.hear(KeepAlive(((TREE, NEW, 100),), ()), "m", 14.0)
    assert sent(machine.wake("alive", 16.0), AddQuery) == []
    assert sent(machine.wake("alive", 16.1), AddQuery) == [("m", AddQuery(TREE, 101, (A,), NEW, ("n",)))]
    assert sent(machine.wake("alive", 16.2), AddQuery) == [], "it waits again"
    machine.hear(Registered(TREE, ("n",), 3), "m", 16.3)
    assert (machine.trees[TREE].registering, machine.trees[TREE].complete) == (False, 3)


# Reorganising.


@pytest.mark.parametrize(
    ("number", "transfers", "extraneous", "every", "on_demand", "overhead", "next_look", "asked_at"),
    [
        (10, 10, 5, 10, False, 0.5, 20, 10),
        (14, 10, 5, 10, False, 0.5, 20, 10),
        (10, 10, 1, 10, False, None, 20, None),
        (10, 10, 2, 10, False, 0.2, 20, 10),
        (10, 3, 3, 10, False, None, 20, None),
        (10, 4, 4, 10, False, 1.0, 20, 10),
        (10, 0, 0, 10, False, None, 20, None),
        (7, 6, 6, 10, True, 1.0, 8, 7),
        (10, 6, 6, 10, True, 1.0, 11, 10),
    ],
)
def test_a_node_looks_at_its_overhead_once_a_period_or_at_each_document(
    number: int, transfers: int, extraneous: int, every: int, on_demand: bool, overhead: float | None, next_look: int,
    asked_at: int | None,
) -> None:  # fmt: skip
    """The threshold is 0.1, and four documents are enough."""
    settings = replace(SMALL, reorganise_every=every, on_demand=on_demand)
    tree = tree_of(settings)
    tree.parent = "p"
    tree.take("c", (), (), 0.0)
    tree.number, tree.transfers, tree.extraneous = number, transfers, extraneous
    assert tree.excessive_overhead(settings) == overhead
    assert (tree.next_look, tree.asked_at) == (next_look, asked_at)
    assert tree.looked_at == ((transfers, extraneous) if number >= every else (0, 0))


def test_a_period_counts_only_its_own_documents() -> None:
    tree = tree_of()
    tree.parent, tree.number, tree.transfers, tree.extraneous, tree.looked_at = "p", 30, 30, 15, (20, 12)
    tree.take("c", (), (), 0.0)
    assert tree.excessive_overhead(SMALL) == 3 / 10


def mover(delta: float | None = 0.0) -> Codd:
    """A node below p that has documents 0 to 3 and may move."""
    machine = below(member(replace(SMALL, delta=delta, fan_out=6)), "p", "source-0")
    for number in range(4):
        machine.hear(document("a", number, 1, -1), "p", 1.0)
    return machine


def test_a_granted_node_asks_its_parent_then_the_tree_and_moves_to_the_best() -> None:
    machine = mover()
    bits = b"\x0f"
    assert machine.hear(Granted(TREE), "source-0", 2.0) == [
        Send("p", GetOverhead(TREE, 1, 0, bits)), StartTimer(("search", TREE), 4.0),
    ]  # fmt: skip
    assert machine.hear(Overhead(TREE, 1, 4.0, False, ()), "p", 2.1) == [
        Send("source-0", GetOverhead(TREE, 2, 0, bits)), StartTimer(("search", TREE), 4.1),
    ]  # fmt: skip
    assert machine.hear(Overhead(TREE, 9, 0.0, True, ()), "source-0", 2.2) == []
    assert machine.hear(Overhead(TREE, 2, 0.0, True, ()), "stranger", 2.2) == []
    assert machine.hear(Overhead(TREE, 2, 0.0, False, ("p", "q")), "source-0", 2.2)[0] == Send(
        "p", GetOverhead(TREE, 3, 0, bits)
    )
    assert sent(machine.wake(("search", TREE), 4.2)) == [("q", GetOverhead(TREE, 4, 0, bits))], "p does not answer"
    assert machine.hear(Overhead(TREE, 4, 1.0, True, ()), "q", 4.3) == [
        CancelTimer(("search", TREE)), Send("q", AddChild(TREE, 3, (A,), (A,), -1)), StartTimer(("answer", TREE), 6.3),
    ]  # fmt: skip
    assert machine.hear(Answer(TREE, 3, True, ("source-0", "q"), 500), "q", 4.4) == [
        CancelTimer(("answer", TREE)), Note("parent", f"{TREE} q 2"), Send("p", Leave(TREE)),
        CancelTimer(("search", TREE)), Note("moved", TREE), Send("source-0", Moved(TREE, True)),
    ]  # fmt: skip


def test_a_node_that_finds_nothing_better_or_is_refused_stays() -> None:
    stays = [
        CancelTimer(("search", TREE)), Note("stays", TREE), Send("source-0", Moved(TREE, moved=False)),
    ]  # fmt: skip
    machine = mover()
    machine.hear(Granted(TREE), "source-0", 2.0)
    assert machine.unreachable(GetOverhead(TREE, 9, 0, b""), "x", 2.05) == []
    machine.hear(Overhead(TREE, 1, 2.0, False, ()), "p", 2.1)
    assert machine.hear(Overhead(TREE, 2, 2.0, True, ()), "source-0", 2.2) == [CancelTimer(("search", TREE)), *stays]
    machine = mover()
    machine.hear(Granted(TREE), "source-0", 2.0)
    machine.hear(Overhead(TREE, 1, 2.0, False, ()), "p", 2.1)
    machine.hear(Overhead(TREE, 2, 0.0, True, ()), "source-0", 2.2)
    assert machine.hear(Answer(TREE, 3, accepted=False), "source-0", 2.3) == [CancelTimer(("answer", TREE)), *stays]
    assert machine.trees[TREE].parent == "p"


def test_a_node_moves_only_from_a_place_with_documents_and_without_another_move() -> None:
    no = [Send("source-0", Moved(TREE, moved=False))]
    assert member().hear(Granted(TREE), "source-0", 2.0) == no, "it has no documents"
    searching = mover()
    searching.hear(Granted(TREE), "source-0", 2.0)
    assert searching.hear(Granted(TREE), "source-0", 2.1) == no
    assert searching.hear(Move(TREE, 0.5), "p", 2.1) == []
    orphan = mover()
    orphan.trees[TREE].parent = ""
    assert orphan.hear(Granted(TREE), "source-0", 2.0) == no
    assert mover().hear(Granted(TREE), "p", 2.0) == [], "only the source grants"
    assert mover().hear(Move(TREE, 0.5), "p", 2.0) == [Send("source-0", Reorganize(TREE, 0.5))]
    assert mover().hear(Move(TREE, 0.5), "x", 2.0) == []
    assert mover().hear(Reorganize(TREE, 0.5), "x", 2.0) == [Drop("not-the-source")]


def test_a_prospective_parent_says_whether_it_has_room() -> None:
    asked = GetOverhead(TREE, 5, 0, b"\x01")
    for children, spare in ((("ax",), True), (("ax", "by"), False)):
        machine = parent_of(*children)
        assert machine.hear(asked, "z", 2.0) == [Send("z", Overhead(TREE, 5, 1.0, spare, children))]
    orphan = parent_of("ax")
    orphan.trees[TREE].parent = ""
    assert orphan.hear(asked, "z", 2.0) == [Send("z", Overhead(TREE, 5, 1.0, False, ()))]


def test_overheads_are_shares_or_counts_on_the_wire() -> None:
    for packet in (Move(TREE, 0.25), Reorganize(TREE, 0.0), Overhead(TREE, 1, 7.0, True, ("x",))):
        assert decode(encode(packet)) == packet


# Overlap.


def overlapping(received: dict[str, Iterable[int]], wanted: Iterable[int]) -> DisseminationTree:
    """A tree whose children received these documents, of which the node itself wanted some."""
    tree = tree_of()
    for name, numbers in received.items():
        child = tree.take(name, (), (), 0.0)
        for number in numbers:
            child.received.add(number)
    for number in wanted:
        tree.wanted.add(number)
    tree.number = 49
    return tree


def test_the_recent_documents_are_the_last_window() -> None:
    tree = tree_of()
    found = []
    for number in (-1, 0, 38, 39, 40, 100):
        tree.number = number
        found.append(window(tree, SMALL))
    assert found == [0, 0, 0, 0, 1, 61]


def test_the_child_that_received_most_for_itself_alone_overlaps_least() -> None:
    tree = overlapping({"x": [20, 21, 22], "y": [20, 30, 31], "z": [1, 2, 3, 4, 5]}, wanted=[21, 22])
    assert least_overlap_child(tree, SMALL) == "y", "z's documents are no longer recent"
    tree.take("g", (), (), 0.0, guest=True)
    assert least_overlap_child(tree, SMALL) == "y"


def test_a_movers_overhead_counts_what_neither_the_node_nor_other_children_receive() -> None:
    tree = overlapping({"x": [20, 21], "y": [22]}, wanted=[20])
    bits = (0b1111).to_bytes(1, "little")  # 20, 21, 22 and 23
    against = replace(SMALL, overhead_against="aggregate")
    assert [overhead_for(tree, name, bits, 20, SMALL) for name in ("x", "z")] == [3, 3]
    assert [overhead_for(tree, name, bits, 20, against) for name in ("x", "y", "z")] == [2, 2, 1]
    assert overhead_for(tree_of(is_root=True), "x", bits, 20, SMALL) == 0
    small = replace(SMALL, window_documents=1)
    assert overhead_for(tree, "x", b"\x00\xff", 20, small) == 0, "no more bytes count than the window has documents"


def test_a_newcomer_goes_to_the_child_with_the_nearest_query_while_documents_are_few() -> None:
    tree = tree_of()
    for name, text in (("x", A), ("y", B), ("z", C)):
        tree.take(name, (text,), (text,), 0.0)
    assert [max_overlap_child(tree, [text], SMALL, Half()) for text in (A, B, C)] == ["x", "y", "z"]
    tree.take("g", (B,), (B,), 0.0, guest=True)
    assert max_overlap_child(tree, ["][", B], SMALL, Half()) == "y"
    own = replace(SMALL, join_against="query")
    tree.take("w", (), (B,), 0.0)
    tree.take("y", (A, B), (A, B), 0.0)
    assert max_overlap_child(tree, [B], own, Half()) == "y", "what w wants is not its own"


def test_what_a_child_wants_besides_does_not_lessen_its_overlap_with_a_newcomer() -> None:
    """The child receives the newcomer's documents in any case."""
    tree = tree_of()
    tree.take("much", (), (A, *(f"Type{number}: true" for number in range(9))), 0.0)
    tree.take("near", (), ("Document: true",), 0.0)
    assert max_overlap_child(tree, [A], SMALL, Half()) == "much"


def test_structural_overlap_is_full_with_a_filter_that_is_there() -> None:
    half = structural_overlap([A, "Siren: true"], [A, B])
    assert structural_overlap([A, B], [B, A]) == 1.0
    assert 0.5 <= half < 1.0
    assert (structural_overlap([], [A]), structural_overlap(["]["], [A])) == (0.0, 0.0)


@pytest.mark.parametrize(("present", "fan_out"), [(2.0, 3), (100.0, 6), (1000.0, 12)])
def test_first_guesses_grow_with_the_network(present: float, fan_out: int) -> None:
    around = Surroundings(
        nodes=1000, present=present, width_m=9.0, height_m=9.0, range_m=100.0, mean_neighbours=9.0,
        median_speed_m_s=1.0, link_lifetime_s=9.0, events_per_s=9.0,
    )  # fmt: skip
    [found] = Codd.tuning(around)
    assert (found.name, found.first, found.low, found.high) == ("fan_out", fan_out, 2, 24)
