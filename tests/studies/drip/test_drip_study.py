"""The DRIP study: what its run log says, what its claims answer, and its quick cases end to end."""

from typing import Any

import pytest

from earshot.studies.drip.claims import _direction
from earshot.studies.drip.run_log import _mean_wait
from earshot.studies.drip.runs import simulated
from earshot.studies.drip.study import POINTS, SMALL, STUDY, VARIANTS
from earshot.studies.study import Finding, judge, study

QUICK: dict[str, Any] = {"brokers": 10, "nearest": 4, "copies": 2, "units": 15, "seed": 0, "scenario": SMALL}


def finding(start: str, **rows: list[dict[str, Any]]) -> Finding:
    (claim,) = [claim for claim in STUDY.claims if claim.claim.startswith(start)]
    return claim.judge(rows)


def test_the_study_is_found_by_its_name() -> None:
    assert study("drip") is STUDY


@pytest.mark.parametrize(
    ("values", "direction"),
    [([1, 2, 3], 1), ([3, 2, 1], -1), ([1, 3, 2], 0), ([1, 0.97, 2], 1), ([1, 1.01, 1.02], 0), ([1, 1, 1], 0)],
)
def test_a_direction_may_stay_level_for_a_step_but_must_move(values: list[float], direction: int) -> None:
    assert _direction(values) == direction


def test_the_mean_wait_until_two_can_communicate() -> None:
    # Apart for 4 s, together for 2, apart for 4: (16 / 2 + 16 / 2) / 10.
    assert _mean_wait([(4.0, True), (6.0, False)], 0.0, 10.0) == pytest.approx(1.6)
    assert _mean_wait([(0.0, True)], 0.0, 10.0) == 0.0
    assert _mean_wait([], 0.0, 10.0) == 5.0
    assert _mean_wait([(-2.0, True), (-1.0, False), (5.0, True)], 0.0, 10.0) == pytest.approx(1.25)


def grid(**values: Any) -> list[dict[str, Any]]:
    rows = []
    for k in (10, 20, 30):
        for m in (1, 2, 4):
            row = {"brokers": k, "copies": m, "seed": 0, "delivery_ratio": 0.99, "accounts": {"delivered once": 5}}
            rows.append({**row, **{name: value(k, m) for name, value in values.items()}})
    return rows


def test_claims_about_coverage_and_delay_can_hold_and_fail() -> None:
    as_paper = grid(coverage=lambda k, m: m / k, delay_s=lambda k, m: k / m)
    against = grid(coverage=lambda k, m: k / m, delay_s=lambda k, m: m / k)
    for rows, holds in ((as_paper, True), (against, False)):
        assert finding("Broker coverage grows", coverage=rows).holds is holds
        assert finding("Broker coverage falls", coverage=rows).holds is holds
        assert finding("Delivery delay falls", delay=rows).holds is holds
        assert finding("Delivery delay rises", delay=rows).holds is holds


def test_the_comparisons_with_sf_and_with_random_brokers_can_hold_and_fail() -> None:
    delay = grid(delay_s=lambda *_: 1.0)
    for other, holds in ((2.0, True), (0.5, False)):
        rows = [{"brokers": k, "delay_s": other, "delivery_ratio": 0.9} for k in (10, 20, 30)]
        assert finding("DRIP's delay is below", delay=delay, epidemic=rows).holds is holds
        assert finding("Brokers chosen by ability", delay=delay, selection=rows).holds is holds
        load = [
            {"protocol": name, "rate": 1.0, "delay_s": s, "delivery_ratio": 0.9}
            for name, s in (("drip", 1.0), ("drip-sf", other))
        ]
        assert finding("There is a load", load=load).holds is holds


def test_an_event_delivered_twice_would_show() -> None:
    rows = grid(handovers_per_node_s=lambda *_: 0.1)
    assert finding("Each event across", delay=rows, coverage=[]).holds is True
    twice = [{**rows[0], "accounts": {"delivered once": 4, "delivered twice": 1}}]
    assert finding("Each event across", delay=twice, coverage=[]).holds is False


def test_the_printed_equation_is_reported_as_not_following() -> None:
    found = finding("The expected delay of equation 2")
    assert found.holds is False
    assert "l = 4: 7 / 1 / 2.083" in found.measured


def test_settings_that_change_an_answer_would_show() -> None:
    rows = [
        {
            "variant": variant,
            **point,
            "coverage": point["copies"] / point["brokers"],
            "delay_s": float(point["brokers"]),
            "delivery_ratio": 0.9,
        }
        for variant in ("as fixed", "another")
        for point in POINTS
    ]
    assert finding("The answers do not depend", settings=rows).holds is True
    changed = [{**row, "coverage": 1 / row["copies"]} if row["variant"] == "another" else row for row in rows]
    assert finding("The answers do not depend", settings=changed).holds is False


def test_every_open_point_has_a_variant() -> None:
    assert {name for variant in VARIANTS.values() for part in variant.values() for name in part} == {
        "contact_interval_s",
        "contact_events",
        "source_carries",
        "destinations",
        "announce_interval_s",
        "ability.exponent",
        "medium.bit_rate_bps",
    }


def test_a_run_is_measured_whole() -> None:
    rows = [row for seed in range(3) for row in simulated({**QUICK, "seed": seed})]
    expected = sum(row["expected"] for row in rows)
    assert 0.7 <= sum(row["delivery_ratio"] * row["expected"] for row in rows) / expected <= 1.0
    row = rows[0]
    assert 0.1 <= row["coverage"] <= 1.0
    assert 0.0 < row["delay_p50_s"] <= row["delay_p95_s"]
    assert row["exact_s"] == pytest.approx(row["meeting_s"] * (1 + 1 / 2 + 1 / 3 + 1 / 4) / 2)
    assert row["handovers_per_node_s"] > 0
    assert row["accounts"].get("delivered twice", 0) == 0


@pytest.mark.timeout(600)
def test_the_quick_study_judges_every_claim() -> None:
    rows = {
        experiment.name: [{**case, **row} for case in experiment.quick for row in experiment.measure(case)]
        for experiment in STUDY.experiments
    }
    (crashed,) = rows["crashes"]
    # 12 s after its last sign of life; on a shared channel up to three announcements, 2 s apart, may be lost before.
    assert (crashed["replaced"], 12.0 - 3 * 2.0 < crashed["replacement_s"] < 30.0) == (1, True)
    assert [bool(judged.finding.measured) for judged in judge(STUDY, rows)] == [True] * len(STUDY.claims)
