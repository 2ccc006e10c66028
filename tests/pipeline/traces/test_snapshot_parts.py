"""What is found at the moments of a stretch, worked out by hand: nodes, speeds, spreading and contacts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earshot.pipeline.traces import snapshots
from earshot.pipeline.traces.snapshots import FoundRow, Stretch, lifetimes, measured, places_at_steps, thinned
from earshot.records.trajectories import Legs


def legs(*rows: tuple[float, ...]) -> Legs:
    """Node, start, end, x, y, and the velocity east and north."""
    return Legs(*(np.array(column, dtype=float) for column in zip(*rows, strict=True)))


def steps(*rows: tuple[float, ...], stretch: Stretch, max_gap_s: float = 60.0) -> list[tuple[int, int]]:
    found, step = places_at_steps(legs(*rows), stretch, max_gap_s)
    return list(zip(found.tolist(), step.tolist(), strict=True))


def test_a_leg_is_there_from_its_start_until_before_its_end() -> None:
    still = (0.0, 0.0, 0.0, 0.0)
    every_2_s = Stretch(10.0, 4, 2.0)  # at 10, 12, 14 and 16 s
    assert steps((1, 12.0, 14.0, *still), stretch=every_2_s) == [(0, 1)]
    assert steps((1, 11.0, 15.0, *still), stretch=every_2_s) == [(0, 1), (0, 2)]
    assert steps((1, 0.0, 99.0, *still), stretch=every_2_s, max_gap_s=99.0) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert steps((1, 12.0, 12.0, *still), stretch=every_2_s) == [(0, 1)]
    assert steps((1, 13.0, 13.0, *still), stretch=every_2_s) == []
    assert steps((1, 12.0, 15.0, *still), stretch=every_2_s, max_gap_s=2.9) == [(0, 1)]
    assert steps((1, 12.0, 15.0, *still), stretch=every_2_s, max_gap_s=3.0) == [(0, 1), (0, 2)]
    assert steps((1, 17.0, 20.0, *still), (2, 2.0, 9.0, *still), stretch=every_2_s) == []
    rounded = 12.0 + 1e-10
    assert steps((1, rounded, 14.0, *still), (2, 10.0, rounded, *still), stretch=every_2_s) == [(1, 0), (0, 1)]


def test_moments_have_the_present_their_speeds_and_the_network_by_range() -> None:
    """At 5 s: a at (0, 0), b at (30, 40), c at (30, 90). From a to b and from b to c it is 50 m."""
    found = list(
        measured(
            legs((7, 0, 10, 0, 0, 0, 0), (8, 0, 10, 15, 20, 3, 4), (9, 5, 10, 30, 90, 3, 4)), Stretch(5.0, 1, 1.0),
            [50.0, 49.0], 60.0,
        )
    )  # fmt: skip
    assert found == [
        FoundRow("present", 0.0, 5.0, 3.0, 1.0), FoundRow("speed", 0.0, 5.0, 0.0, 1.0),
        FoundRow("speed", 0.0, 5.0, 5.0, 2.0), FoundRow("neighbours", 50.0, 5.0, 1.0, 2.0),
        FoundRow("neighbours", 50.0, 5.0, 2.0, 1.0), FoundRow("components", 50.0, 5.0, 1.0, 1.0),
        FoundRow("largest", 50.0, 5.0, 1.0, 1.0), FoundRow("at once", 50.0, 5.0, 1.0, 6.0),
        FoundRow("neighbours", 49.0, 5.0, 0.0, 3.0), FoundRow("components", 49.0, 5.0, 3.0, 1.0),
        FoundRow("largest", 49.0, 5.0, pytest.approx(1 / 3), 1.0), FoundRow("at once", 49.0, 5.0, 0.0, 6.0),
    ]  # fmt: skip
    alone = [row.name for row in measured(legs((7, 0, 10, 0, 0, 0, 0)), Stretch(5.0, 1, 1.0), [50.0], 60.0)]
    assert alone == ["present", "speed", "neighbours", "components", "largest"]


def test_the_network_is_looked_at_in_every_third_step() -> None:
    found = measured(legs((7, 0, 99, 0, 0, 0, 0)), Stretch(0.0, 8, 2.0, network_every=3), [50.0], 99.0)
    assert [row.time for row in found if row.name == "present"] == [0.0, 6.0, 12.0]


def apart_then_together(meet_at: float) -> Legs:
    """a stands; b stands a kilometre away, and 10 m away from that time on."""
    return legs((0, 0, 700, 0, 0, 0, 0), (1, 0, meet_at, 1000, 0, 0, 0), (1, meet_at, 700, 10, 0, 0, 0))


def test_what_is_carried_is_counted_at_each_horizon_and_begins_anew() -> None:
    """Steps of 10 s: spreading to 60 s begins at 0, 70, 140, ... s; b comes at 300 s, in the one from 280 s on."""
    found = list(measured(apart_then_together(300.0), Stretch(0.0, 61, 10.0, spreads=True), [50.0], 999.0))
    assert sorted({row.name for row in found}) == ["carried 10", "carried 60", "carried 600", "contact"]
    carried = {
        name: sorted((row.time, row.value, row.weight) for row in found if row.name == f"carried {name}")
        for name in ("10", "60", "600")
    }
    never = [(0.0, 0.0, 2.0), (70.0, 0.0, 2.0), (140.0, 0.0, 2.0), (210.0, 0.0, 2.0)]
    assert carried["10"] == [(0.0, 0.0, 2.0), *never, (280.0, 0.0, 2.0), (350.0, 0.0, 0.0), (420.0, 0.0, 0.0),
                             (490.0, 0.0, 0.0), (560.0, 0.0, 0.0)]  # fmt: skip
    assert carried["60"] == [(0.0, 0.0, 2.0), *never, (280.0, 1.0, 2.0), (350.0, 0.0, 0.0), (420.0, 0.0, 0.0),
                             (490.0, 0.0, 0.0)]  # fmt: skip
    assert carried["600"] == [(0.0, 1.0, 2.0)]


def test_a_contact_that_lasts_to_the_end_is_as_long_as_it_was_seen() -> None:
    """b comes at 4 s and is seen until 8 s, every 2 s."""
    found = measured(apart_then_together(4.0), Stretch(0.0, 5, 2.0, spreads=True), [50.0], 999.0)
    assert [row for row in found if row.name == "contact"] == [FoundRow("contact", 50.0, 0.0, 4.0, 0.0)]
    from_the_start = measured(apart_then_together(-1.0), Stretch(0.0, 5, 2.0, spreads=True), [50.0], 999.0)
    assert [row for row in from_the_start if row.name in ("contact", "between")] == []


def test_contacts_of_some_nodes_are_watched_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three nodes is watched: those with it count, and those of the others do not. It is not always there."""
    monkeypatch.setattr(snapshots, "WATCHED", 1)
    watched = int(np.random.default_rng(3).permutation(3)[0])
    rows = [(n, 2.0 if n == watched else 0.0, 6.0, 10.0 * n, 0.0, 0.0, 0.0) for n in range(3)]
    found = list(measured(legs(*rows), Stretch(0.0, 9, 1.0, spreads=True), [50.0], 60.0))
    assert [row for row in found if row.name == "contact"] == [FoundRow("contact", 50.0, 0.0, 4.0, 1.0)] * 2


def test_a_crowd_is_thinned_by_the_pairs_that_are_in_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST_LINKS", 5)
    zeros = np.zeros(4)
    assert thinned(zeros[:3], zeros[:3], 1.0, 1)[1] == 1.0
    assert thinned(zeros, zeros, 1.0, 1)[1] == pytest.approx(math.sqrt(5 / 6))
    assert thinned(np.array([0.0, 0.0, 0.0, 9.0]), zeros, 1.0, 1)[1] == 1.0, "three pairs are in range"


def test_a_lifetime_that_is_reached_by_exactly_the_share_counts() -> None:
    lengths = np.array([1.0, 2.0, 3.0, 4.0])
    assert lifetimes(lengths, np.full(4, True), (0.25, 0.5, 0.75, 0.26)) == (2.5, [1.0, 2.0, 3.0, 2.0])
