"""The bounds of full knowledge: against every choice of speakers on small graphs, and on a scenario known by heart."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.studies.hearsay.bounds import bounds, hops_from, least_transmissions, omniscient_transmissions

NODES = 6
PAIRS = list(combinations(range(NODES), 2))


def heard_by(speakers: frozenset[int], links: dict[int, set[int]]) -> set[int]:
    """Who has the event that node 0 published if just these may speak."""
    reached, spoken = {0}, set[int]()
    while due := (reached & speakers) - spoken:
        spoken |= due
        reached = reached.union(*(links[one] for one in due))
    return reached


@given(st.sets(st.sampled_from(PAIRS)), st.sets(st.integers(1, NODES - 1)), st.sets(st.integers(1, NODES - 1)))
def test_the_fewest_transmissions_lie_between_the_bound_and_the_heuristic(
    pairs: set[tuple[int, int]], receivers: set[int], silent: set[int]
) -> None:
    links = {one: {b if a == one else a for a, b in pairs if one in (a, b)} for one in range(NODES)}
    links |= {one: set() for one in silent}
    reachable = heard_by(frozenset(range(NODES)), links)
    assert set(hops_from(0, links.__getitem__)) == reachable
    wanted = receivers & reachable
    choices = (frozenset(chosen) for count in range(NODES + 1) for chosen in combinations(range(NODES), count))
    fewest = next(len(speakers) for speakers in choices if heard_by(speakers, links) >= wanted)
    assert least_transmissions(0, wanted, links.__getitem__) <= fewest
    assert fewest <= omniscient_transmissions(0, wanted, links.__getitem__) <= max(len(reachable) - 1, 0)


def test_on_a_line_both_bounds_are_the_hops() -> None:
    links = {0: [1], 1: [0, 2], 2: [1, 3], 3: [2]}
    assert least_transmissions(0, {3}, links.__getitem__) == omniscient_transmissions(0, {3}, links.__getitem__) == 3
    assert least_transmissions(0, {0}, links.__getitem__) == omniscient_transmissions(0, {0}, links.__getitem__) == 0


def test_receivers_that_nobody_reaches_together_need_a_transmission_each() -> None:
    star = {0: [1, 2, 3], 1: [0, 4], 2: [0, 5], 3: [0, 6], 4: [1], 5: [2], 6: [3]}
    assert least_transmissions(0, {4, 5, 6}, star.__getitem__) == 3
    assert omniscient_transmissions(0, {4, 5, 6}, star.__getitem__) == 4


def test_a_receiver_over_two_links_costs_two_transmissions_of_each_event() -> None:
    (row,) = bounds({"scenario": "odmrp-mobile", "seed": 201})
    assert (row["reachable"], row["at_once"], row["everybody"]) == (1.0, 1.0, 2.0)
    assert row["least"] == row["omniscient"] == pytest.approx(2.0 * row["expected"] / 100)
    assert row["everybody_bytes"] / row["everybody"] == pytest.approx(row["least_bytes"] / row["least"], rel=0.02)


def test_what_no_contact_can_carry_is_not_reachable() -> None:
    (row,) = bounds({"scenario": "disaster", "seed": 201})
    assert row["at_once"] < row["reachable"] < 1.0
    assert 0 < row["least"] <= row["omniscient"] <= row["everybody"]


def test_a_trace_that_is_not_at_hand_gives_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EARSHOT_DATA", "nowhere")
    assert bounds({"trace": "ns2", "seed": 201}) == []
