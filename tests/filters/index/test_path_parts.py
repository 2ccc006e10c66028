"""The parts of the automaton of paths: moves, guards, the tree of prefixes and its tables."""

from __future__ import annotations

import pytest

from earshot import Event
from earshot.documents import Element
from earshot.filters.index import automaton as automata
from earshot.filters.index.automaton import PathAutomaton
from earshot.filters.index.guarded_paths import GuardedNode, GuardIndex, SiblingPositions
from earshot.filters.index.path_moves import (
    ANY,
    ANY_ATTRIBUTE,
    TEXT,
    UNKNOWN,
    Guard,
    Label,
    PathMove,
    PathMoves,
    attribute,
    wildcard_of,
)
from earshot.filters.index.prefix_tree import MoveTable, NodeResults, PrefixTree, sorted_nodes, source_of
from earshot.filters.index.states import PathJoint, PathState, properties_of
from earshot.filters.language.syntax import Comparison


@pytest.mark.parametrize(
    ("label", "wildcard"),
    [("a", ANY), (UNKNOWN, ANY), (attribute("id"), ANY_ATTRIBUTE), (("attribute", ""), ANY_ATTRIBUTE), (TEXT, None)],
)
def test_a_wildcard_is_for_elements_or_for_attributes_and_not_for_text(label: Label, wildcard: Label | None) -> None:
    assert wildcard_of(label) == wildcard


@pytest.mark.parametrize(
    ("guard", "value", "admitted"),
    [
        (Guard("id"), "", True),
        (Guard("id", "5"), "5", True),
        (Guard("id", "5"), "5.0", False),
        (Guard("id", 5.0), "5.0", True),
        (Guard("id", 5.0), "x", False),
        (Guard("[*]", 2.0), 2, True),
        (Guard("[*]", 2.0), 3, False),
        (Guard("[*]", 3.0, Comparison.LT), 2, True),
        (Guard("[*]", 3.0, Comparison.LT), 3, False),
    ],
)
def test_a_guard_asks_for_a_text_a_number_a_position_or_for_anything(
    guard: Guard, value: str | int, admitted: bool
) -> None:
    assert guard.admits(value) is admitted


def test_an_element_has_positions_among_its_name_and_among_all() -> None:
    positions = SiblingPositions()
    positions.parent = Element("r", {}, (Element("a"), "text", Element("b"), Element("a")))
    assert [positions.at(place) for place in range(3)] == [(1, 1), (1, 2), (2, 3)]
    positions.parent = Element("r", {}, (Element("b"), Element("b")))
    assert [positions.at(place) for place in (1, 0)] == [(2, 2), (1, 1)]


def test_nodes_behind_guards_are_found_by_the_first_and_checked_by_the_others() -> None:
    index = GuardIndex()
    guards = {
        "text": (Guard("id", "5"),),
        "both": (Guard("id", "5"), Guard("kind", "x")),
        "number": (Guard("id", 5.0),),
        "any": (Guard("id"),),
        "second": (Guard("[name]", 2.0),),
        "early": (Guard("[*]", 3.0, Comparison.LT),),
    }
    assert (index.asks_text, index.asks_position) == (False, False)
    nodes = {}
    for name, some in guards.items():
        nodes[name] = GuardedNode()
        index.add(some, nodes[name])
        assert index.asks_position is (name in ("second", "early"))
    names = {node: name for name, node in nodes.items()}

    def found(*properties: tuple[str, str | int]) -> set[str]:
        return {names[node] for node in index.admitted(properties)}

    assert found(("id", "5")) == {"text", "number", "any"}
    assert found(("id", "5"), ("kind", "x")) == {"text", "both", "number", "any"}
    assert found(("id", "5.0"), ("[name]", 2), ("[*]", 3)) == {"number", "any", "second"}
    assert found(("kind", "x"), ("[name]", 1), ("[*]", 2)) == {"early"}
    assert found() == set()
    index.remove(guards["number"], nodes["number"])
    index.remove(guards["any"], nodes["any"])
    assert found(("id", "5")) == {"text"}
    for name in ("text", "both", "second", "early"):
        index.remove(guards[name], nodes[name])
    assert (index._texts, index._numbers, index._others) == ({}, {}, {})
    index.add((Guard("id"), Guard("", "x")), nodes["text"])
    assert (index.asks_text, index.asks_position) == (True, True), "what was asked once may be asked again"


def test_a_guarded_node_is_bare_when_its_last_result_and_move_are_gone() -> None:
    node, move, guarded = GuardedNode(), PathMove(False, "a"), PathMove(True, "a", (Guard("id"),))
    assert (node.is_bare, node.has_results, node.get(move), node.get(guarded)) == (True, False, None, None)
    plain, behind = node.add(move), node.add(guarded)
    assert (node.get(move), node.get(guarded), node.is_bare) == (plain, behind, False)
    assert (node.get(PathMove(True, "a")), node.get(PathMove(True, "a", (Guard("no"),)))) == (None, None)
    node.drop(move)
    assert (node.get(move), node.get(guarded), list(node.children), node.is_bare) == (None, behind, [], False)
    node.drop(guarded)
    assert (list(node.below), node.is_bare) == ([], True)
    for is_answer in (True, False):
        for result in "xy":
            node.add_result(result, is_answer)
    assert (node.answers, node.leads, node.has_results) == ({"x", "y"}, {"x", "y"}, True)
    for is_answer in (True, False):
        node.remove_result("x", is_answer)
        assert node.has_results
        node.remove_result("y", is_answer)
    assert node.is_bare


def test_moves_to_one_label_with_and_without_guards_are_dropped_one_by_one() -> None:
    plain, by_id, by_text = (PathMove(False, "a", guards) for guards in ((), (Guard("id"),), (Guard("", "x"),)))
    for order in ((plain, by_id, by_text), (by_text, by_id, plain), (by_id, plain, by_text)):
        node = GuardedNode()
        ends = {move: node.add(move) for move in (plain, by_id, by_text)}
        assert len({id(end) for end in ends.values()}) == 3
        for move in order:
            assert {one: node.get(one) for one in ends} == ends
            node.drop(move)
            del ends[move]
            assert node.get(move) is None
            assert (list(node.children), node.is_bare) == (["a"] if ends else [], not ends)
            if ends:
                assert (node.children["a"].guards is None) is (list(ends) == [plain])


def test_a_node_has_several_results_until_each_is_removed() -> None:
    results = NodeResults()
    results.resize(4)
    nodes = sorted_nodes(range(4))
    assert list(results.of(nodes)) == []
    for node, result in ((1, "a"), (2, "b"), (2, "c"), (2, "d")):
        results.add(node, result)
    assert (results.total, results.counts.tolist()) == (4, [0, 1, 3, 0])
    assert sorted(results.of(nodes)) == ["a", "b", "c", "d"]
    assert sorted(results.of(sorted_nodes([0, 2]))) == ["b", "c", "d"]
    results.remove(2, "b")
    assert sorted(results.of(nodes)) == ["a", "c", "d"]
    results.remove(2, "d")
    results.remove(1, "a")
    assert (list(results.of(nodes)), results.total, results._further) == (["c"], 1, {})
    results.remove(2, "c")
    assert (list(results.of(nodes)), results.counts.tolist()) == ([], [0, 0, 0, 0])


def test_a_move_that_was_removed_and_added_again_leads_where_it_leads_now() -> None:
    table = MoveTable()
    table.add(source_of(3, False), 7)
    table.add(source_of(3, True), 8)
    assert table.targets(sorted_nodes([6, 7, 99])).tolist() == [7, 8], "node 3 is source 6 to children, 7 below"
    table.add(source_of(3, False), 9)
    table.add(source_of(1, False), 4)
    assert table.targets(sorted_nodes([2, 6])).tolist() == [4, 9]
    del table.plain[7]
    table.renew()
    assert table.targets(sorted_nodes([2, 6, 7])).tolist() == [4, 9]


def test_removed_numbers_are_given_again_once_they_are_many() -> None:
    """More than 1024 and half of what there is."""
    tree, move = PrefixTree(), PathMove(False, "a")
    removed = 0
    assert tree.add(0, move) == 1
    while not tree.has_many_removed:
        tree.drop(0, move)
        removed += 1
        assert tree.add(0, move) == removed + 1
    assert removed == 1024 + (removed + 2) // 2 + 1
    tree.reuse_numbers()
    assert not tree.has_many_removed
    assert tree.get(0, move) == removed + 1
    assert tree.add(1, PathMove(False, "b")) <= removed


def test_moves_with_guards_that_were_removed_count_like_nodes() -> None:
    tree = PrefixTree()
    for number in range(7):
        tree.add_behind(0, PathMove(False, f"n{number}", (Guard("id"),)))
    move, many = PathMove(True, "a", (Guard("id"),)), []
    for _ in range(1024 + (1 + 7) // 2 + 1):
        tree.add_behind(0, move)
        tree.drop_behind(0, move)
        many.append(tree.has_many_removed)
    assert (many.index(True), many.count(True)) == (1024 + (1 + 7) // 2, 1)
    tree.reuse_numbers()
    assert (tree.has_many_removed, sorted(map(str, tree._moves))) == (False, [f"n{number}" for number in range(7)])


def test_a_node_leads_on_by_its_moves_and_results() -> None:
    tree = PrefixTree()
    one = tree.add(0, PathMove(False, "a"))
    two = tree.add(one, PathMove(True, "b"))
    guarded = PathMove(True, "b", (Guard("id"),))
    assert [tree.is_bare(node) for node in (0, one, two)] == [False, False, True]
    assert [tree.is_waiting(node) for node in (0, one, two)] == [False, True, False]
    assert tree.waiting(sorted_nodes([0, one, two])).tolist() == [one]
    behind = tree.add_behind(one, guarded)
    assert (tree.behind(one, guarded), tree.behind(two, guarded), tree.behind(0, PathMove(True, "c"))) == (
        behind, None, None,
    )  # fmt: skip
    tree.drop(one, PathMove(True, "b"))
    assert tree.is_waiting(one)
    tree.drop_behind(one, guarded)
    assert (tree.is_waiting(one), tree.is_bare(one), tree.has_results) == (False, True, False)
    tree.leads.add(one, "x")
    assert (tree.is_bare(one), tree.has_results) == (False, True)
    assert tree.sources(sorted_nodes([0, one]), sorted_nodes([one])).tolist() == [0, 2 * one + 1]


def test_a_tree_has_room_for_more_nodes_than_it_began_with() -> None:
    tree = PrefixTree()
    nodes = [tree.add(0, PathMove(False, f"n{number}")) for number in range(100)]
    assert (nodes, len(tree._counts[False])) == (list(range(1, 101)), 128), "its room is doubled, from 32 on"
    for node in nodes:
        tree.answers.add(node, f"r{node}")
    assert len(tree.answers.of(sorted_nodes(nodes))) == 100


def test_an_element_has_the_properties_that_guards_ask_for() -> None:
    assert list(properties_of({"id": "5"}, ())) == [("id", "5")]
    assert list(properties_of({"id": "5"}, ("x", "y", (2, 3)))) == [
        ("id", "5"), ("", "x"), ("", "y"), ("[name]", 2), ("[*]", 3),
    ]  # fmt: skip


def test_a_state_finds_what_follows_by_name_and_by_wildcard() -> None:
    state = PathState(sorted_nodes([]), sorted_nodes([]))
    assert not state.leads_on
    labels: list[Label] = ["a", "b", UNKNOWN, attribute("id"), TEXT]
    for label in labels:
        state.next[label] = PathState(sorted_nodes([]), sorted_nodes([]))

    def found(label: Label) -> list[Label]:
        below = list(state.children(label))
        return [label for label in labels if state.next[label] in below]

    assert [found(label) for label in ("a", "c", ANY, ANY_ATTRIBUTE, TEXT)] == [
        ["a"], [], ["a", "b", UNKNOWN], [attribute("id")], [TEXT],
    ]  # fmt: skip
    state.reach(4)
    assert (state.nodes.tolist(), state.leads_on) == ([4], True)
    assert PathState(sorted_nodes([]), sorted_nodes([1])).leads_on


def test_guards_ask_an_element_only_for_what_they_need() -> None:
    state = PathState(sorted_nodes([]), sorted_nodes([]))
    element = Element("a", {"id": "5"}, ("x", Element("b"), "y", ""))
    positions = SiblingPositions()
    positions.parent = Element("r", {}, (Element("b"), element))

    def joint(*guards: Guard) -> PathJoint:
        index = GuardIndex()
        for guard in guards:
            index.add((guard,), GuardedNode())
        return PathJoint(state, False, guards=[index])

    asked = {
        guards: (made.asks_text, made.asks_position, made.asks_more, made.more_asked(element, 1, positions))
        for guards in ((), (Guard("id"),), (Guard(""),), (Guard("[*]", 2.0),), (Guard(""), Guard("[*]", 2.0)))
        if (made := joint(*guards))
    }
    assert list(asked.values()) == [
        (False, False, False, ()),
        (False, False, False, ()),
        (True, False, True, ("x", "y")),
        (False, True, True, ((1, 2),)),
        (True, True, True, ("x", "y", (1, 2))),
    ]
    bare = joint(Guard(""), Guard("[*]", 2.0))
    assert bare.more_asked(Element("a"), 0, positions) == ((1, 1),)


def test_a_joint_has_results_and_leads_on_if_its_state_or_a_node_does() -> None:
    state = PathState(sorted_nodes([]), sorted_nodes([]))
    empty, answering, leading, waiting = (GuardedNode() for _ in range(4))
    answering.add_result("x", True)
    leading.add(PathMove(False, "a"))
    waiting.add(PathMove(True, "a"))
    found = [(made.has_results, made.leads_on) for node in (empty, answering, leading, waiting)
             if (made := PathJoint(state, False, (node,)))]  # fmt: skip
    assert found == [(False, False), (True, False), (False, True), (False, True)]
    assert PathJoint(state, True).has_results
    assert PathJoint(PathState(sorted_nodes([1]), sorted_nodes([])), False).leads_on


# The automaton: what it remembers, and what that takes.


def paths_of(*paths: PathMoves) -> PathAutomaton:
    automaton = PathAutomaton()
    for number, moves in enumerate(paths):
        automaton.add(moves, number, is_answer=True)
    return automaton


def reached(automaton: PathAutomaton, text: str) -> set[int]:
    answers, _ = automaton.reached(Event.from_xml(text).root)
    return answers


A, B = PathMove(False, "a"), PathMove(False, "b")


def test_a_state_takes_eighty_entries_four_for_each_node_and_two_for_each_that_waits() -> None:
    automaton = paths_of((A, B))
    assert reached(automaton, "<a><b/></a>") == {0}
    assert automaton._held == (80 + 4) + (80 + 4)
    assert reached(automaton, "<a><c/></a>") == reached(automaton, "<a><d/></a>") == set()
    assert automaton._held == (80 + 4) + (80 + 4) + 80, "all names that no path mentions are one state"
    below = paths_of((PathMove(True, "a"),))
    assert reached(below, "<a><x/></a>") == {0}
    assert below._held == (80 + 4 + 2) + (80 + 2)


def test_attributes_and_texts_make_states_only_where_a_path_ends_in_one() -> None:
    text = "<a id='1'>x</a>"
    plain = paths_of((A,))
    assert (reached(plain, text), plain._held) == ({0}, 84)
    ending = paths_of((A, PathMove(False, attribute("id"))))
    assert (reached(ending, text), ending._held) == ({0}, 84 + 84 + 80), "a, its id, and its text"


def test_a_path_that_is_added_takes_an_entry_for_each_state_that_it_reaches_or_waits_in() -> None:
    automaton = paths_of((A,), (A, B))
    held = []
    for moves in (
        (A, B),
        (A, B, PathMove(False, "c")),
        (PathMove(True, "b"),),
        (PathMove(True, "b"), PathMove(False, "c")),
        (A, PathMove(False, "b", (Guard("id"),))),
        (A, PathMove(True, "b", (Guard("id"),))),
    ):
        if not held:
            assert reached(automaton, "<a><b/></a>") == {0, 1}
        before = automaton._held
        automaton.add(moves, "later", is_answer=True)
        automaton._current_start()
        held.append(automaton._held - before)
    # The third waits in all three states and reaches that of b; the last waits in a and b, and is behind guards in b.
    assert held == [0, 0, 3 + 1, 0, 1, 2 + 1]


def test_answers_are_remembered_when_a_document_comes_for_the_second_time() -> None:
    automaton = paths_of((A, B))
    held = []
    for _ in range(4):
        assert reached(automaton, "<a><b/></a>") == {0}
        held.append(automaton._held)
    assert held == [168, 168 + 4, 168 + 4, 168 + 4]


def test_a_joint_takes_eighty_entries_and_what_its_guards_were_asked() -> None:
    automaton = paths_of((PathMove(False, "a", (Guard("id"),)),))
    assert reached(automaton, "<a id='5'/>") == {0}
    state, joint, behind = 80 + 1, 80, 80 + 2
    assert automaton._held == state + joint + behind
    long = "5" * 800
    assert reached(automaton, f"<a id='{long}'/>") == {0}
    answers = 4
    assert automaton._held == state + joint + 2 * behind + (len("id") + len(long)) // 8 + answers


def test_results_of_so_many_sets_of_states_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (automata.MOST_HELD, automata.MOST_RESULTS, automata.MOST_UNAPPLIED) == (6_000_000, 256, 64)
    monkeypatch.setattr(automata, "MOST_RESULTS", 2)
    automaton = paths_of((A,), (A, B))
    sizes = []
    for text in ("<a/>", "<a><b/></a>", "<a><c/></a>", "<a/>"):
        reached(automaton, text)
        sizes.append(len(automaton._results))
    assert sizes == [1, 2, 1, 2]


def test_after_so_many_new_paths_between_two_documents_the_states_are_built_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automata, "MOST_UNAPPLIED", 2)
    automaton = paths_of((A,))
    assert automaton._start is None
    reached(automaton, "<a/>")
    for number in (1, 2):
        automaton.add((A, PathMove(False, f"n{number}")), number, is_answer=True)
        assert (len(automaton._unapplied), automaton._start is None) == (number, False)
    assert reached(automaton, "<a><n2/></a>") == {0, 2}
    assert automaton._unapplied == []
    for number in (3, 4, 5):
        automaton.add((A, PathMove(False, f"n{number}")), number, is_answer=True)
    assert (automaton._unapplied, automaton._start, automaton._held) == ([], None, 0)
    assert reached(automaton, "<a><n5/></a>") == {0, 5}


def test_states_that_hold_too_much_are_dropped_before_the_next_document(monkeypatch: pytest.MonkeyPatch) -> None:
    automaton = paths_of((A,), (A, B))
    reached(automaton, "<a/>")
    held = automaton._held
    for most, kept in ((held, True), (held - 1, False)):
        monkeypatch.setattr(automata, "MOST_HELD", most)
        before = automaton._start
        reached(automaton, "<a/>")
        assert (automaton._start is before) is kept
        automaton._held = held


def test_an_automaton_counts_its_paths_and_what_they_ask_for() -> None:
    id = attribute("id")
    paths: list[PathMoves] = [
        (A,), (A, PathMove(False, id)), (A, PathMove(False, TEXT)), (PathMove(True, "a", (Guard("id"),)), B),
    ]  # fmt: skip
    automaton = paths_of(*paths)
    assert (automaton.count, automaton._extras, automaton._guarded) == (4, 2, 1)
    assert automaton._labels == {"a": 4, "b": 1, id: 1, TEXT: 1}
    for number, moves in enumerate(paths):
        automaton.remove(moves, number, is_answer=True)
    assert (automaton.count, automaton._extras, automaton._guarded, dict(automaton._labels)) == (0, 0, 0, {})
    assert (automaton._tree._guarded, automaton._tree.is_bare(0)) == (0, True), "no node is left in the tree"


def test_answers_and_leads_are_distinguished_also_behind_guards() -> None:
    guarded = (PathMove(False, "a", (Guard("id"),)),)
    automaton = PathAutomaton()
    for moves in ((A,), guarded):
        for is_answer in (True, False):
            automaton.add(moves, (len(moves[0].guards), is_answer), is_answer)
    for text, guards in (("<a id='1'/>", {0, 1}), ("<a/>", {0}), ("<b id='1'/>", set())):
        answers, leads = automaton.reached(Event.from_xml(text).root)
        assert (answers, set(leads)) == ({(one, True) for one in guards}, {(one, False) for one in guards})
    automaton.remove(guarded, (1, True), True)
    automaton.remove((A,), (0, False), False)
    answers, leads = automaton.reached(Event.from_xml("<a id='1'/>").root)
    assert (answers, set(leads)) == ({(0, True)}, {(1, False)})


def test_a_path_that_comes_after_documents_were_seen_is_found_in_the_next() -> None:
    automaton = paths_of((A,), (A, B))
    text = "<a><b id='1'><c/></b></a>"
    for _ in range(3):
        assert reached(automaton, text) == {0, 1}
    later: list[PathMoves] = [
        (A, B), (PathMove(True, "c"),), (PathMove(True, "b", (Guard("id"),)),),
        (A, PathMove(True, "b", (Guard("id"),))),
        (PathMove(True, "b", (Guard("id"),)), PathMove(False, "c")), (A, PathMove(False, "b", (Guard("no"),))),
    ]  # fmt: skip
    found = {0, 1}
    for number, moves in enumerate(later, 2):
        automaton.add(moves, number, is_answer=True)
        found |= {number} - {7}
        for _ in range(3):
            assert reached(automaton, text) == found
    for number, moves in enumerate(later, 2):
        automaton.remove(moves, number, is_answer=True)
        found -= {number}
        for _ in range(3):
            assert reached(automaton, text) == found
