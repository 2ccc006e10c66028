"""CoDD's reorganisation, rule by rule: who may move, when, where to, and for how much."""

from dataclasses import replace

import pytest
from codd_table import SMALL
from hypothesis import given
from hypothesis import strategies as st

from earshot.filters import FilterIndex
from earshot.protocols.codd.dissemination_tree import DisseminationTree
from earshot.protocols.codd.packets import Granted, Overhead, Reorganize
from earshot.protocols.codd.reorganising import MoveRequests, Search
from earshot.protocols.machine import CancelTimer, Send, StartTimer

TREE = "source-0/1"


def test_a_stray_moved_neither_ends_the_present_move_nor_grants_another() -> None:
    requests = MoveRequests(TREE, SMALL)
    requests.on_reorganize(Reorganize(TREE, 0.5), "p", 1.0)
    requests.on_reorganize(Reorganize(TREE, 0.4), "q", 1.0)
    assert requests.accept(2.0) == [Send("p", Granted(TREE)), StartTimer(("grant", TREE), 2.0 + SMALL.silence_s)]
    assert requests.on_moved("stranger", 3.0) == []
    assert requests.on_moved("q", 3.0) == []
    assert (requests.moving, list(requests.accepted)) == ("p", ["q"])
    assert requests.on_moved("p", 4.0)[:2] == [CancelTimer(("grant", TREE)), Send("q", Granted(TREE))]
    assert requests.on_moved("p", 5.0) == []
    assert requests.on_moved("q", 6.0) == [CancelTimer(("grant", TREE))]
    assert requests.moving == ""


def test_requests_gather_from_the_first_on_and_those_that_come_while_one_moves_wait() -> None:
    requests = MoveRequests(TREE, SMALL)
    assert requests.on_reorganize(Reorganize(TREE, 0.2), "p", 1.0) == [
        StartTimer(("gather", TREE), 1.0 + SMALL.gather_s)
    ]
    assert requests.on_reorganize(Reorganize(TREE, 0.9), "q", 1.1) == []
    assert requests.accept(2.0)[0] == Send("q", Granted(TREE))
    requests.on_reorganize(Reorganize(TREE, 0.9), "r", 2.1)
    assert requests.accept(3.0) == []
    assert list(requests.accepted) == ["p", "r"]


def rested(asked_at: int | None, number: int, rest: int) -> bool:
    """Whether a node with all the overhead in the world may ask now."""
    settings = replace(SMALL, rest_documents=rest, reorganise_every=1)
    tree = DisseminationTree(TREE, "n", False, settings, FilterIndex())
    tree.parent = "p"
    tree.take("c", (), (), 0.0)
    tree.number, tree.asked_at, tree.transfers, tree.extraneous = number, asked_at, 100, 100
    tree.next_look = number
    return tree.excessive_overhead(settings) is not None


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_a_node_rests_for_its_documents_between_two_requests(asked_at: int, later: int, rest: int) -> None:
    assert rested(asked_at, asked_at + later, rest) is (later >= rest)
    assert rested(None, asked_at, rest)


def test_only_an_interior_node_asks_and_guests_do_not_make_it_one() -> None:
    tree = DisseminationTree(TREE, "n", False, replace(SMALL, reorganise_every=1), FilterIndex())
    tree.parent, tree.number, tree.transfers, tree.extraneous, tree.next_look = "p", 10, 100, 100, 10
    tree.take("g", (), (), 0.0, guest=True)
    settings = replace(SMALL, reorganise_every=1)
    assert tree.excessive_overhead(settings) is None
    tree.take("c", (), (), 0.0)
    tree.next_look, tree.looked_at = 10, (0, 0)
    assert tree.excessive_overhead(settings) == 1.0


def search(delta: float | None = 0.0) -> Search:
    return Search("n", "p", "source-0", first=10, bits=0b1011, delta=delta)


def answers(one: Search, *given: tuple[float, bool, tuple[str, ...]]) -> list[str]:
    """Give these answers in turn; who was asked, and the next one in line."""
    asked = []
    for overhead, spare, children in given:
        asked.append(one.next_prospective())
        one.on_overhead(Overhead(TREE, 1, overhead, spare, children), "p")
    return [*asked, one.next_prospective()]


@pytest.mark.parametrize(
    ("bits", "sent"),
    [
        (0b1, b"\x01"),
        (0xFF, b"\xff"),
        (0x100, b"\x00\x01"),
        ((1 << 72) - 1, b"\xff" * 9),
        (1 << 72, bytes(9) + b"\x01"),
    ],
)
def test_the_recent_documents_are_sent_in_as_few_bytes_as_hold_them(bits: int, sent: bytes) -> None:
    assert Search("n", "p", "s", 3, bits, None).bits == sent


def test_a_node_never_asks_itself_nor_a_peer_twice() -> None:
    assert answers(search(), (9.0, False, ()), (0.0, False, ("n", "q", "source-0")), (0.0, False, ("q", "n"))) == [
        "p", "source-0", "q", "",
    ]  # fmt: skip


def test_the_present_parent_is_no_better_parent() -> None:
    one = search(None)
    assert answers(one, (0.0, False, ("p", "q")), (0.0, True, ()), (3.0, True, ()))[:3] == ["source-0", "p", "q"]
    assert (one.best, one.best_overhead) == ("q", 3.0)


def test_delta_is_a_share_of_the_recent_documents() -> None:
    for delta, moves in ((0.29, True), (0.3, False), (0.31, False)):
        one = search(delta)
        answers(one, (6.0, False, ()), (3.0, True, ()))  # 3 fewer of the 10 documents from 10 to 19
        assert one.is_worth_moving(last=19) is moves
    one = search(0.0)
    assert answers(one, (6.0, False, ()))[-1] == "source-0"
    assert not one.is_worth_moving(19)  # nobody has room


@pytest.mark.parametrize(("overhead", "next_asked"), [(1.4, "s"), (1.5, "")])
def test_below_a_full_node_is_searched_if_half_of_the_best_overhead_is_more_than_its_own(
    overhead: float, next_asked: str
) -> None:
    one = search(None)
    found = answers(one, (0.0, False, ("q", "r")), (3.0, True, ()), (overhead, False, ("s",)))
    assert found == ["source-0", "q", "r", next_asked]


def test_a_node_that_does_not_know_its_present_overhead_stays_where_it_is() -> None:
    one = search(0.0)
    one.best, one.best_overhead = "q", 0.0
    assert not one.is_worth_moving(19)
    free = search(None)
    assert not free.is_worth_moving(19), "it has found nobody"
    free.best = "q"
    assert free.is_worth_moving(19), "without a threshold any better parent will do"


@pytest.mark.parametrize(("last", "moves"), [(9, True), (10, True), (11, False)])
def test_without_recent_documents_a_share_is_of_one(last: int, moves: bool) -> None:
    one = search(0.75)
    answers(one, (2.0, False, ()), (1.0, True, ()))
    assert one.is_worth_moving(last) is moves


@pytest.mark.parametrize(("overheads", "best"), [((3.0, 3.0), "q"), ((3.0, 2.9), "r")])
def test_of_parents_with_the_same_overhead_the_first_is_the_best(overheads: tuple[float, float], best: str) -> None:
    one = search(None)
    answers(one, (0.0, False, ("q", "r")), *((overhead, True, ()) for overhead in overheads))
    assert one.best == best


@pytest.mark.parametrize(("top", "granted"), [(None, ["r", "p", "q"]), (2, ["r", "p"]), (1, ["r"])])
def test_the_requests_with_the_highest_overheads_are_accepted_and_names_decide_between_equals(
    top: int | None, granted: list[str]
) -> None:
    requests = MoveRequests(TREE, replace(SMALL, top=top))
    for name, overhead in (("q", 0.5), ("p", 0.5), ("r", 0.9)):
        requests.on_reorganize(Reorganize(TREE, overhead), name, 1.0)
    requests.accept(2.0)
    assert [name for name in (requests.moving, *requests.accepted) if name] == granted
    assert requests.pending == {}
