"""Figure 2's join as a finite state machine: its table, and what it tries next."""

import pytest

from earshot.protocols.codd.join import TRANSITIONS, Join, JoinEvent, JoinState

IDLE, C, A, M, S, R = JoinState  # idle, collecting, asking, moving, succeeding, resting
TABLE = {
    # seeds, no seeds, candidate, better parent, succession, accepted, refused
    IDLE: (C, R, None, M, S, None, None),
    C: (C, R, A, None, None, None, None),
    A: (C, R, A, None, None, IDLE, None),
    M: (C, R, None, None, S, IDLE, IDLE),
    S: (C, R, None, None, S, IDLE, None),
    R: (C, R, None, None, None, None, None),
}


@pytest.mark.parametrize("state", JoinState)
def test_the_transition_table(state: JoinState) -> None:
    assert tuple(TRANSITIONS.get((state, event)) for event in JoinEvent) == TABLE[state]


def test_an_event_that_cannot_happen_is_an_error() -> None:
    with pytest.raises(KeyError):
        Join(JoinState.RESTING).happens(JoinEvent.ACCEPTED)


def test_seed_sets_are_tried_in_order_without_repetitions_and_candidates_as_they_answer() -> None:
    join = Join()
    join.begin([("g",), (), ("p", "q"), ("g",)])
    assert (join.next_seeds(1), join.state, join.collects(1), join.collects(2)) == (("g",), C, True, False)
    assert join.next_seeds(2) == ("p", "q")
    assert join.on_candidate("x", spare=True) is False  # on behalf of one of the seeds
    assert join.on_candidate("q", spare=False) is True
    assert (join.candidates, join.seed_sets) == (["x"], [])
    join.ask(JoinEvent.CANDIDATE, "x", 3, ["a"])
    assert (join.state, join.waits_for("x", 3), join.waits_for("x", 2), join.collects(2)) == (A, True, False, False)
    join.happens(JoinEvent.ACCEPTED)
    assert (join.state, join.waits_for("x", 3)) == (IDLE, False)


def test_an_answer_on_behalf_of_an_unnamed_seed_counts_for_the_first_by_name() -> None:
    join = Join()
    join.begin([("q", "p", "r")])
    join.next_seeds(1)
    assert (join.on_candidate("x", spare=True), join.waiting) == (False, {"q", "r"})
    assert (join.on_candidate("r", spare=True), join.waiting) == (False, {"q"})
    assert (join.on_candidate("x", spare=True), join.waiting, join.candidates) == (True, set(), ["x", "r"])
