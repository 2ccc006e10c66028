"""CoDD, one exchange at a time."""

from dataclasses import replace
from random import Random

import pytest
from codd_table import SMALL, TREE, A, B, C, CoddTable, document, member, sent

from earshot.errors import SettingsError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.protocols.codd.machine import Codd
from earshot.protocols.codd.overlap import overhead_of, structural_overlap
from earshot.protocols.codd.packets import (
    NEW,
    Add,
    AddChild,
    AddQuery,
    AddResult,
    Answer,
    Document,
    GetOverhead,
    GetSeedSet,
    Granted,
    KeepAlive,
    Leave,
    Move,
    Moved,
    NewParent,
    Overhead,
    Register,
    Registered,
    RemoveQuery,
    Reorganize,
    SeedSet,
    Source,
)
from earshot.protocols.codd.recent_documents import bitmap
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.machine import Announcement, Broadcast, Drop, FixedLocation, QuietChannel, StartTimer

WIDE = replace(SMALL, fan_out=6)


def test_a_newcomer_asks_the_agent_then_its_seed_then_the_candidate():
    node = Codd("n", SMALL, FixedLocation(), Random(1))
    effects = node.subscribe(Subscription("n/a", "n", Filter.where('category = "a"', type="Document")), 0.0)
    assert sent(effects) == [("source-0", GetSeedSet())]
    effects = node.hear(SeedSet((Source(TREE, ("Document",), ("source-0",)),)), "source-0", 0.1)
    assert sent(effects) == [("source-0", Add(TREE, "n", 1, (A,)))]
    effects = node.hear(AddResult(TREE, 1, spare=True), "m", 0.2)
    assert sent(effects) == [("m", AddChild(TREE, 2, (A,), (A,), NEW))]
    node.hear(Answer(TREE, 2, accepted=True, ancestors=("source-0", "m"), link=100), "m", 0.3)
    assert (node.trees[TREE].parent, node.trees[TREE].ancestors) == ("m", ("source-0", "m"))


def test_sources_of_other_types_are_not_joined():
    node = Codd("n", SMALL, FixedLocation(), Random(1))
    node.subscribe(Subscription("n/a", "n", Filter.where('category = "a"', type="Document")), 0.0)
    effects = node.hear(SeedSet((Source("s#0", ("Siren",), ("s",)),)), "source-0", 0.1)
    assert sent(effects) == []


def test_a_refused_newcomer_tries_the_next_candidate_and_then_reports_failure():
    settings = replace(SMALL, seeds=2, join_attempts=1)
    node = Codd("n", settings, FixedLocation(), Random(1))
    node.subscribe(Subscription("n/a", "n", Filter.where('category = "a"', type="Document")), 0.0)
    node.hear(SeedSet((Source(TREE, ("Document",), ("source-0", "m")),)), "source-0", 0.1)
    node.hear(AddResult(TREE, 1, spare=True), "m", 0.2)
    effects = node.hear(AddResult(TREE, 1, spare=True), "source-0", 0.3)
    assert sent(effects) == [("m", AddChild(TREE, 2, (A,), (A,), NEW))]
    effects = node.hear(Answer(TREE, 2, accepted=False), "m", 0.4)
    assert sent(effects) == [("source-0", AddChild(TREE, 3, (A,), (A,), NEW))]
    effects = node.hear(Answer(TREE, 3, accepted=False), "source-0", 0.5)
    assert Drop("join-failed") in effects
    assert sent(effects) == [("source-0", GetSeedSet())]


def test_a_seed_that_does_not_answer_is_waited_for_and_the_tree_tried_again():
    node = Codd("n", SMALL, FixedLocation(), Random(1))
    node.subscribe(Subscription("n/a", "n", Filter.where('category = "a"', type="Document")), 0.0)
    node.hear(SeedSet((Source(TREE, ("Document",), ("source-0",)),)), "source-0", 0.1)
    assert sent(node.wake(("candidates", TREE), 2.1)) == []
    assert sent(node.wake(("retry", TREE), 5.0)) == [("source-0", Add(TREE, "n", 2, (A,)))]


def test_a_full_node_passes_a_newcomer_to_the_child_that_wants_the_same():
    node = member()
    node.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "y", 1.0)
    asked = Add(TREE, "z", 7, (B,))
    assert sent(node.hear(asked, "source-0", 2.0)) == [("y", asked)]
    assert sent(node.hear(Add(TREE, "z", 7, (A,)), "source-0", 2.0)) == [("x", Add(TREE, "z", 7, (A,)))]


def test_recent_documents_count_for_more_than_structure():
    node = member(replace(SMALL, enough_documents=3), wants="abc")
    node.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "y", 1.0)
    asked = "Document: size > 5"
    for number in range(6):
        event = Event("Document", {"category": "b", "size": 9}, f"d{number}", "source-0", time=1.0)
        node.hear(Document(event, 1, TREE, number, 101 + number, number), "source-0", 2.0)
    assert [peer for peer, _ in sent(node.hear(Add(TREE, "z", 7, (asked,)), "source-0", 3.0))] == ["y"]


def test_a_child_is_added_up_the_tree_and_refused_where_there_is_no_room():
    node = member()
    effects = node.hear(AddChild(TREE, 4, (B,), (B,), NEW), "x", 1.0)
    assert sent(effects) == [
        ("x", Answer(TREE, 4, True, ("source-0", "n"), 1 << 32)),
        ("source-0", AddQuery(TREE, 101, (B,), NEW, ("x", "n"))),
    ]
    node.hear(AddChild(TREE, 1, (C,), (C,), NEW), "y", 1.0)
    assert sent(node.hear(AddChild(TREE, 9, (C,), (C,), NEW), "z", 1.0)) == [("z", Answer(TREE, 9, accepted=False))]


def test_a_document_goes_only_to_children_that_want_it_and_once():
    node = member(wants="a")
    node.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "y", 1.0)
    first = document("a", 0, 101)
    effects = node.hear(first, "source-0", 2.0)
    assert [(type(effect).__name__, getattr(effect, "peer", "")) for effect in effects] == [
        ("Deliver", ""),
        ("Send", "x"),
    ]
    assert node.hear(first, "source-0", 2.1) == []
    effects = node.hear(document("b", 1, 102), "source-0", 2.2)
    assert [peer for peer, _ in sent(effects)] == ["y"]
    tree = node.trees[TREE]
    assert (tree.transfers, tree.extraneous, tree.complete) == (2, 1, 1)


def test_a_document_that_is_not_the_sources_own_is_dropped():
    node = member()
    event = Event("Document", {"category": "a"}, "d0", "mallory", time=1.0)
    effects = node.hear(Document(event, 1, TREE, 0, 101, 0), "source-0", 1.0)
    assert effects == [Drop("malformed-document", "d0")]
    assert node.trees[TREE].parent == "source-0"


def test_a_malformed_filter_is_left_out_and_the_rest_kept():
    node = member()
    effects = node.hear(AddChild(TREE, 4, (), (B, "][", "Siren: within 20 m"), NEW), "x", 1.0)
    assert Drop("malformed-filter") in effects
    assert node.trees[TREE].children["x"].wants == {B: None}


def test_a_removed_query_goes_up_only_when_nobody_else_wants_it():
    node = member(wants="a")
    node.hear(AddChild(TREE, 1, (A, B), (A, B), NEW), "x", 1.0)
    version = node.trees[TREE].children["x"].version
    assert sent(node.hear(RemoveQuery(TREE, version + 1, (A,)), "x", 2.0)) == []
    effects = node.hear(RemoveQuery(TREE, version + 2, (B,)), "x", 2.0)
    assert sent(effects) == [("source-0", RemoveQuery(TREE, 102, (B,)))]


def test_queries_that_overtake_each_other_are_handled_in_order():
    node = member(wants="a")
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "x", 1.0)
    version = node.trees[TREE].children["x"].version
    assert sent(node.hear(RemoveQuery(TREE, version + 2, (C,)), "x", 2.0)) == []
    effects = node.hear(AddQuery(TREE, version + 1, (C,), NEW, ("x",)), "x", 2.1)
    assert [type(packet).__name__ for _, packet in sent(effects)] == ["AddQuery", "RemoveQuery"]
    assert node.trees[TREE].children["x"].wants == {B: None}


def test_a_node_that_meets_itself_on_a_querys_path_goes_back_to_the_seeds():
    node = member(wants="a")
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "x", 1.0)
    version = node.trees[TREE].children["x"].version
    effects = node.hear(AddQuery(TREE, version + 1, (C,), NEW, ("n", "q", "x")), "x", 2.0)
    assert Drop("cycle") in effects
    assert sent(effects) == [("source-0", Leave(TREE)), ("source-0", Add(TREE, "n", 3, (A, B)))]


def test_a_leaf_says_it_leaves_and_an_interior_node_names_its_successor():
    leaf = member()
    assert sent(leaf.stop(1.0)) == [("source-0", Leave(TREE))]
    node = member(wants="a")
    node.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "y", 1.0)
    assert sent(node.stop(2.0)) == [
        ("source-0", Leave(TREE, "x")),
        ("x", NewParent(TREE, "source-0", True, -1, 1 << 32, (("y", (B,)),))),
        ("y", NewParent(TREE, "x", False, -1, 2 << 32)),
    ]


def test_the_successor_of_a_child_that_leaves_takes_its_place_with_its_query():
    node = member()
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "x", 1.0)
    node.hear(Leave(TREE, "s"), "x", 2.0)
    assert {name: set(child.wants) for name, child in node.trees[TREE].children.items()} == {"s": {B}}


def test_a_successor_that_is_a_child_already_keeps_its_bond_and_an_ancestor_takes_no_place():
    node = member()
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "x", 1.0)
    node.hear(AddChild(TREE, 1, (C,), (C,), NEW), "y", 1.0)
    known = node.trees[TREE].children["y"]
    node.hear(Leave(TREE, "y"), "x", 2.0)
    assert node.trees[TREE].children == {"y": known}
    assert node.trees[TREE].children["y"] is known, "its queries and documents are still counted from the same link"
    node.hear(Leave(TREE, "source-0"), "y", 3.0)
    assert node.trees[TREE].children == {}


def test_that_the_source_has_a_query_is_passed_to_the_child_it_came_from_and_to_nobody_else():
    node = member()
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "x", 1.0)
    effects = node.hear(Registered(TREE, ("leaf", "x", "n"), 12), "source-0", 2.0)
    assert sent(effects) == [("x", Registered(TREE, ("leaf", "x"), 12))]
    assert sent(node.hear(Registered(TREE, ("leaf", "gone", "n"), 13), "source-0", 2.0)) == []


def test_an_orphan_joins_again_at_its_grandparent_and_then_at_the_seeds():
    node = member()
    node.trees[TREE].ancestors = ("source-0", "g", "p")
    node.trees[TREE].parent = "p"
    effects = node.unreachable(KeepAlive((), ((TREE, 0),)), "p", 9.0)
    assert sent(effects) == [("g", Add(TREE, "n", 3, (A,)))]
    assert sent(node.wake(("candidates", TREE), 11.0)) == [("source-0", Add(TREE, "n", 4, (A,)))]


class BusyChannel(QuietChannel):
    """A channel that is busy for three quarters of the time."""

    def busy_share(self, now):
        return 0.75


def test_on_a_busy_channel_a_peer_is_given_up_only_when_it_is_silent_for_longer():
    node = member()
    node.channel = BusyChannel()
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "x", 1.0)
    assert node.unreachable(KeepAlive((), ((TREE, 0),)), "source-0", 2.0) == []
    assert node.unreachable(KeepAlive(((TREE, 0, 0),), ()), "x", 2.0) == []
    effects = node.wake("alive", 1.0 + 4 * SMALL.silence_s - 0.1)
    assert list(node.trees[TREE].children) == ["x"]
    assert StartTimer("alive", 1.0 + 4 * SMALL.silence_s - 0.1 + 4 * SMALL.keep_alive_s) in effects
    node.wake("alive", 1.0 + 4 * SMALL.silence_s + 0.1)
    assert node.trees[TREE].children == {}


def test_on_a_busy_channel_a_newcomer_waits_longer_and_asks_its_agent_once():
    node = Codd("n", SMALL, FixedLocation(), Random(1), BusyChannel())
    effects = node.subscribe(Subscription("n/a", "n", Filter.where('category = "a"', type="Document")), 0.0)
    assert StartTimer("asked", 4 * SMALL.candidate_wait_s) in effects
    assert node.directory.ask(1.0) == []
    effects = node.hear(SeedSet((Source(TREE, ("Document",), ("source-0",)),)), "source-0", 0.1)
    assert StartTimer(("candidates", TREE), 0.1 + 4 * SMALL.candidate_wait_s) in effects
    effects = node.wake("asked", 4 * SMALL.candidate_wait_s)
    again_at = 4 * SMALL.candidate_wait_s + 4 * SMALL.retry_s
    assert StartTimer("ask-again", again_at) in effects
    assert sent(node.wake("ask-again", again_at)) == [("source-0", GetSeedSet())]


def test_a_silent_parent_and_a_silent_child_are_given_up():
    node = member()
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "x", 1.0)
    effects = node.wake("alive", 1.0 + SMALL.silence_s + 0.1)
    assert node.trees[TREE].children == {}
    assert sent(effects, Add) == [("source-0", Add(TREE, "n", 3, (A,)))]


def test_a_new_parent_sends_what_was_missed():
    node = member(wants="ab")
    for number, category in enumerate("abab"):
        node.hear(document(category, number, 101 + number), "source-0", 1.0)
    effects = node.hear(AddChild(TREE, 4, (B,), (B,), 0), "x", 2.0)
    assert [packet.number for peer, packet in sent(effects, Document) if peer == "x"] == [1, 3]


def test_a_new_parent_is_asked_for_what_any_node_below_lacks():
    node = member()
    tree = node.trees[TREE]
    assert tree.since == -1
    tree.complete = 9
    node.hear(AddChild(TREE, 1, (B,), (B,), 4), "x", 1.0)
    node.hear(AddChild(TREE, 1, (C,), (C,), NEW), "y", 1.0)
    assert (tree.since, tree.pending) == (4, {"x": 4, "y": NEW})
    tree.complete = NEW
    assert tree.since == 4
    node.hear(Registered(TREE, ("x", "n"), 12), "source-0", 2.0)
    assert (tree.since, tree.pending) == (12, {"y": NEW})


def test_a_guest_takes_no_room_and_is_refused_where_there_is_no_room():
    node = member()
    node.trees[TREE].ancestors, node.trees[TREE].parent = ("source-0", "p"), "p"
    for name in ("x", "y"):
        node.hear(AddChild(TREE, 1, (A,), (A,), NEW), name, 1.0)
    node.hear(NewParent(TREE, "source-0", True, 3, 0, (("g", (B,)),)), "p", 2.0)
    assert node.trees[TREE].fan_out == 2
    assert B in node.trees[TREE].wants
    assert sent(node.hear(AddChild(TREE, 5, (B,), (B,), 3), "g", 3.0)) == [("g", Answer(TREE, 5, accepted=False))]
    node.wake(("guests", TREE), 20.0)
    assert B not in node.trees[TREE].wants


def test_lost_documents_are_asked_for_again():
    node = member(wants="ab")
    node.hear(document("a", 0, 101), "source-0", 1.0)
    node.hear(document("a", 3, 104), "source-0", 1.0)
    assert node.trees[TREE].complete == 0
    effects = node.wake(("gap", TREE), 3.0)
    assert [packet.links for _, packet in sent(effects)] == [(102, 103)]
    node.hear(document("a", 1, 102), "source-0", 4.0)
    node.hear(document("b", 2, 103), "source-0", 4.0)
    assert node.trees[TREE].complete == 3


def busy(settings):
    """A node that wants a, with a child for a and one for b, after ten documents of each."""
    node = member(settings, wants="a")
    node.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    node.hear(AddChild(TREE, 1, (B,), (B,), NEW), "y", 1.0)
    effects = [node.hear(document("ab"[number % 2], number, 101 + number), "source-0", 2.0) for number in range(41)]
    return node, [one for found in effects for one in found]


def test_a_node_with_too_much_overhead_asks_the_child_that_causes_it_to_move():
    every = replace(SMALL, reorganise_every=40)
    assert sent(busy(every)[1], Move) == [("y", Move(TREE, 20 / 41))]
    assert sent(busy(replace(every, overhead_threshold=0.5))[1], Move) == []
    assert sent(busy(replace(every, reorganise=False))[1], Move) == []
    assert sent(busy(replace(every, mover="self"))[1], Reorganize) == [("source-0", Reorganize(TREE, 20 / 41))]


def test_a_node_on_demand_does_not_wait_for_the_period_but_rests_between_requests():
    found = sent(busy(replace(SMALL, reorganise_every=20, rest_documents=1000, on_demand=True))[1], Move)
    assert len(found) == 1
    found = sent(busy(replace(SMALL, reorganise_every=20, rest_documents=10))[1], Move)
    assert len(found) == 2


def test_overhead_is_counted_against_the_own_query_or_against_the_aggregate():
    asked = GetOverhead(TREE, 5, 0, (0b110).to_bytes(1, "little"))  # documents 1 (of b) and 2 (of a)
    node, _ = busy(SMALL)
    assert sent(node.hear(asked, "z", 3.0)) == [("z", Overhead(TREE, 5, 1.0, False, ("x", "y")))]
    node, _ = busy(replace(SMALL, overhead_against="aggregate"))
    assert sent(node.hear(asked, "z", 3.0)) == [("z", Overhead(TREE, 5, 0.0, False, ("x", "y")))]
    assert sent(node.hear(asked, "y", 3.0)) == [("y", Overhead(TREE, 5, 1.0, False, ("x", "y")))]


def test_the_source_accepts_the_highest_overheads_first_and_one_at_a_time():
    table = CoddTable(settings=replace(WIDE, top=2))
    for name in ("p", "q", "r"):
        table.join(name, "a")
    table.run(5.0)
    source = table.machine("source-0")
    for name, overhead in (("p", 0.3), ("q", 0.9), ("r", 0.5)):
        source.hear(Reorganize(TREE, overhead), name, 5.0)
    assert [peer for peer, _ in sent(source.wake(("gather", TREE), 6.0))] == ["q"]
    assert [peer for peer, _ in sent(source.wake(("grant", TREE), 7.0))] == ["r"]
    assert sent(source.wake(("grant", TREE), 8.0)) == []


def test_figure_6_searches_from_the_root_and_prunes_what_cannot_be_better():
    node, _ = busy(replace(WIDE, delta=0.0))
    node.trees[TREE].parent, node.trees[TREE].ancestors = "p", ("source-0", "p")
    node.on_granted(node.trees[TREE], 3.0)
    asked = []

    def answer(overhead, spare, children=()):
        peer, packet = sent(node.effects(), GetOverhead)[0]
        asked.append(peer)
        node.on_overhead(Overhead(TREE, packet.request, overhead, spare, children), node.trees[TREE], peer, 3.0)

    answer(20.0, False, ("n",))  # the present parent
    answer(0.0, False, ("p", "q", "r"))  # the root is full
    answer(20.0, False, ("n", "s"))  # p: its children may be better than nothing
    answer(4.0, True)  # q has room
    answer(3.0, False, ("t",))  # r: twice its overhead is more than q's, so t is not asked
    answer(9.0, True)  # s
    assert asked == ["p", "source-0", "p", "q", "r", "s"]
    assert sent(node.effects())[-1][0] == "q"


def test_a_parent_that_leaves_ends_the_search_for_a_better_one():
    node, _ = busy(WIDE)
    node.trees[TREE].parent, node.trees[TREE].ancestors = "p", ("source-0", "p")
    node.on_granted(node.trees[TREE], 3.0)
    (asked,) = [packet for _, packet in sent(node.effects(), GetOverhead)]
    effects = node.hear(NewParent(TREE, "source-0", True, 40, 0), "p", 3.1)
    assert [packet.replaces for _, packet in sent(effects, AddChild)] == ["p"]
    assert sent(effects, Moved) == [("source-0", Moved(TREE, moved=False))]
    assert node.hear(Overhead(TREE, asked.request, 0.0, True, ()), "p", 3.2) == []


def test_a_move_that_gains_nothing_is_not_made_unless_the_figure_is_followed():
    for delta, moves in ((0.0, False), (None, True)):
        node, _ = busy(replace(WIDE, delta=delta))
        node.trees[TREE].parent, node.trees[TREE].ancestors = "p", ("source-0", "p")
        node.on_granted(node.trees[TREE], 3.0)
        for overhead, spare in ((5.0, False), (5.0, True)) if delta is not None else ((5.0, True),):
            peer, packet = sent(node.effects(), GetOverhead)[0]
            node.on_overhead(Overhead(TREE, packet.request, overhead, spare, ()), node.trees[TREE], peer, 3.0)
        assert bool(sent(node.effects(), AddChild)) is moves


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_join_takes_at_most_depth_times_seeds_requests(seeds):
    table = CoddTable(settings=replace(SMALL, seeds=seeds, join_attempts=1))
    for i in range(20):
        table.join(f"n{i:02}", "abcdef"[i % 6])
        table.run(table.now + 3.0)
        adds = sum(isinstance(packet, Add) and packet.newcomer == f"n{i:02}" for _, packet in table.sent)
        depth = max(len(tree.ancestors) for name in table.parents() if (tree := table.tree(name)) is not None)
        assert 1 <= adds <= depth * seeds
    table.check_tree()


def test_every_source_has_its_own_tree_and_any_node_may_be_one():
    table = CoddTable(sources=2, settings=WIDE)
    table.join("n", "ab")
    table.join("m", "a")
    table.run(5.0)
    table.publish("a", "source-0")
    table.publish("b", "source-1")
    table.run(6.0)
    assert table.got("n") == ["source-0/4/0", "source-1/4/0"]
    assert table.got("m") == ["source-0/4/0"]
    assert {id.partition("#")[0] for id in table.machine("n").trees} == {"source-0", "source-1"}


def test_a_source_that_is_gone_takes_its_tree_with_it_and_one_that_restarts_grows_a_new_one():
    table = CoddTable(sources=2, settings=replace(WIDE, agents=("source-0",)))
    table.join("n", "a")
    table.run(5.0)
    table.leave("source-1")
    table.run(6.0)
    assert [id.partition("#")[0] for id in table.machine("n").trees] == ["source-0"]
    table.come("source-1")
    table.publish("a", "source-1")
    table.run(8.0)
    table.publish("a", "source-1")
    table.run(9.0)
    assert len(table.got("n")) == 1


def test_terms_about_a_place_are_left_to_the_consumer():
    node = Codd("n", SMALL, FixedLocation(Position(0.0, 0.0)), Random(1))
    near = Filter.where('category = "a" and within 100 m', type="Document")
    node.subscribe(Subscription("n/a", "n", near), 0.0)
    node.hear(SeedSet((Source(TREE, ("Document",), ("source-0",)),)), "source-0", 0.1)
    node.hear(AddResult(TREE, 1, spare=True), "source-0", 0.2)
    node.hear(Answer(TREE, 2, accepted=True, ancestors=("source-0",), link=100), "source-0", 0.3)
    delivered = []
    for number, x_m in enumerate((50.0, 500.0)):
        at = Position(x_m, 0.0)
        event = Event("Document", {"category": "a"}, f"d{number}", "source-0", at, time=1.0)
        delivered.append(len(node.hear(Document(event, 1, TREE, number, 101 + number, number), "source-0", 1.0)))
    assert delivered == [1, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fan_out": 0}, "fan_out (f) must be at least 1: a node that takes no child passes nothing on, got 0"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        (
            {"silence_s": 5.0},
            "silence_s must be longer than keep_alive_s (5 s), or every peer seems to have left, got 5.0",
        ),
        ({"overhead_threshold": 1.5}, "overhead_threshold is a share from 0 to 1, got 1.5"),
        ({"top": 0}, "top must be at least 1, got 0"),
        ({"delta": -0.1}, "delta is a share from 0 to 1, got -0.1"),
        ({"held_documents": 10}, "held_documents must be at least window_documents (200), got 10"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(SettingsError) as caught:
        CoddSettings(**wrong)
    assert str(caught.value) == message


def test_without_an_agent_nodes_and_sources_speak_to_all_in_range():
    node = Codd("n", CoddSettings(), FixedLocation(), Random(1))
    assert Broadcast(GetSeedSet()) in node.subscribe(Subscription("n/a", "n", Filter.of_type("Document")), 0.0)
    node.hear(Register("source-0#0", ("Document",)), "source-0", 0.1)
    assert sent(node.wake("push", 0.3)) == [("source-0", Add(TREE, "n", 1, ("Document: true",)))]
    source = Codd("source-0", CoddSettings(), FixedLocation(), Random(1))
    register = Register("source-0#0", ("Document",))
    assert Broadcast(register) in source.announce(Announcement(EventType("Document")), 0.0)
    assert sent(source.hear(GetSeedSet(), "n", 0.2)) == [("n", register)]
    node.hear(Register("source-0#0", ("Document",)), "mallory", 0.1)
    assert source.hear(Register("n#0", ("Document",)), "mallory", 0.1) == [Drop("not-registered")]


def test_an_agent_that_does_not_answer_is_followed_by_the_next():
    node = Codd("n", replace(SMALL, agents=("p", "q")), FixedLocation(), Random(1))
    effects = node.subscribe(Subscription("n/a", "n", Filter.of_type("Document")), 0.0)
    assert sent(effects) == [("p", GetSeedSet())]
    assert sent(node.wake("asked", 2.0)) == [("q", GetSeedSet())]
    effects = node.unreachable(GetSeedSet(), "q", 2.5)
    assert Drop("no-agent-answers") in effects
    assert sent(node.wake("ask-again", 12.5)) == [("p", GetSeedSet())]


def test_formulas():
    assert bitmap([3, 5, 4, 9], 4) == 0b100011
    assert overhead_of(0b1110, 0b0110) == 1
    assert structural_overlap([A], [B, A]) == 1.0
    assert structural_overlap([A], []) == 0.0
    assert structural_overlap([A], [B]) < 1.0


def test_a_descendant_and_a_guest_are_not_offered_as_parents():
    node, _ = busy(SMALL)
    tree = node.trees[TREE]
    tree.take("g", (), ("a",), 2.0, guest=True)
    asked = GetOverhead(TREE, 5, 0, (0b110).to_bytes(1, "little"))
    ((_, found),) = sent(node.hear(asked, "z", 3.0), Overhead)
    assert "g" not in found.children
    # For an ancestor this node lies below itself: no room, and none of its children.
    tree.parent, tree.ancestors = "p", ("source-0", "p")
    ((_, found),) = sent(node.hear(asked, "p", 3.0), Overhead)
    assert (found.spare, found.children) == (False, ())


def test_a_source_grants_the_next_move_when_the_node_that_moves_says_that_it_has():
    source = CoddTable().machines["source-0"]
    (tree,) = source.trees
    for name, overhead in (("p", 0.5), ("q", 0.4)):
        source.hear(Reorganize(tree, overhead), name, 1.0)
    assert sent(source.wake(("gather", tree), 2.0)) == [("p", Granted(tree))]
    assert sent(source.hear(Moved(tree, True), "q", 3.0)) == []
    assert sent(source.hear(Moved(tree, True), "p", 3.0)) == [("q", Granted(tree))]
    assert sent(source.wake(("grant", tree), 9.0)) == []
    assert source.trees[tree].move_requests.moving == "", "q fell silent"
