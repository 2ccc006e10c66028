"""A leaderboard's parts by themselves: tables of points, JSON and CSV whole, ranks, fronts, charts and intervals."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from earshot.errors import ScenarioError, SettingsError
from earshot.pipeline.campaigns import intervals
from earshot.pipeline.campaigns.board_text import (
    _width,
    best_of,
    board_csv,
    board_json,
    board_words,
    cell,
    figure_json,
    heading,
    points_table,
    ranking_table,
)
from earshot.pipeline.campaigns.campaigns import (
    Campaign,
    Run,
    _seeds,
    _strings,
    _swept,
    _table,
    campaign,
    changed_keys,
    digest_of,
)
from earshot.pipeline.campaigns.intervals import Figure, differ, exact, figure_of
from earshot.pipeline.campaigns.leaderboard import (
    COLUMNS,
    BoardColumn,
    BoardRow,
    BoardVerdict,
    FrontRow,
    Leaderboard,
    Ranking,
    ScenarioPoint,
    SweepChart,
    SweepLine,
    _charts,
    _front,
    _ranking,
    _shared,
    _verdict,
    ranked,
)
from earshot.protocols.catalogue import protocol
from earshot.simulation.scenario.library import load_scenario

POINT = ScenarioPoint("id", "city", {}, "radio")


def row(
    variant: str, delivery: float | None = None, airtime: float | None = None, point: ScenarioPoint = POINT, **more: Any
) -> BoardRow:
    """A row of figures without intervals; other metrics by name."""
    known = {"delivery_ratio": delivery, "airtime_mean": airtime, **more.pop("metrics", {})}
    figures = {name: figure_of({0: value}) for name, value in known.items() if value is not None}
    return BoardRow(point, variant.partition(" ")[0], variant, more.pop("settings", {}), figures, **more)


def ranking(*rows: BoardRow, **more: Any) -> Ranking:
    return Ranking(rows[0].point, rows, None, **more)


def point(place: str = "id", keys: Mapping[str, Any] = {}, **more: str) -> ScenarioPoint:
    return ScenarioPoint(place, more.pop("scenario", "city"), keys, more.pop("network", "radio"), **more)


# Tables.


@pytest.mark.parametrize(
    ("name", "values"), [("scenario", "ab"), ("trace", "tu"), ("window", "vw"), ("version", "xy"), ("network", "mn")]
)
def test_a_table_of_points_shows_what_differs_between_them(name: str, values: str) -> None:
    points = [point(value, **{name: value}) for value in values]
    board = Leaderboard(tuple(ranking(row("a", 0.5, point=one, rank=1)) for one in points), ())
    header, rows = points_table(board, ())
    assert header == [name, "#", "protocol", "delivery ratio"]
    assert rows == [[value, "1", "a", "0.5"] for value in values]


def test_keys_stand_instead_of_the_networks_they_make() -> None:
    points = [
        point(f"{range_m}", {"range_m": range_m, "same": 1}, network=f"radio {range_m}") for range_m in (80, 90.0)
    ]
    board = Leaderboard(tuple(ranking(row("a", 0.5, point=one, rank=2)) for one in points), ())
    header, rows = points_table(board, ())
    assert header == ["range_m", "#", "protocol", "delivery ratio"]
    assert rows == [["80", "2", "a", "0.5"], ["90", "2", "a", "0.5"]]


def test_a_key_that_a_point_lacks_is_null() -> None:
    points = [point("one", {"b": 1}), point("other", {"b": 1, "c": True})]
    board = Leaderboard(tuple(ranking(row("a", 0.5, point=one, rank=1)) for one in points), ())
    header, rows = points_table(board, ())
    assert (header[0], [one[0] for one in rows]) == ("c", ["null", "true"])


def test_a_table_has_the_columns_that_fit_and_skips_those_that_do_not() -> None:
    rows = row("a", 0.5, 0.25, rank=1, metrics={"hops": 2.0}), row("bcd", 0.4, 0.25, rank=2)
    whole, cells = ranking_table(ranking(*rows))
    assert whole == ["#", "protocol", "delivery ratio", "airtime", "hops"]
    assert cells == [["1", "a", "0.5", "25 %", "2"], ["2", "bcd", "0.4", "25 %", "-"]]
    # 1 + 8 + 14 + 7 + 4 characters, and two between each two.
    assert [ranking_table(ranking(*rows), (), most)[0][2:] for most in (42, 41, 36, 35, 20)] == [
        ["delivery ratio", "airtime", "hops"], ["delivery ratio", "airtime"], ["delivery ratio", "airtime"],
        ["delivery ratio", "hops"], ["airtime"],
    ]  # fmt: skip
    assert _width(["ab", "c"], [["d"], ["efg"]], ["hi", "j"]) == 3 + 2 + 2


def test_a_table_of_wanted_metrics_keeps_their_order_and_one_delivery() -> None:
    one = ranking(row("a", 0.5, 0.25, rank=1, metrics={"delivery_of_reachable": 0.75, "hops": 2.0}))
    header, _ = ranking_table(one, ("hops", "delivery_ratio", "delivery_of_reachable", "cost", "airtime_mean"))
    assert header[2:] == ["hops", "delivery ratio", "airtime"]


def test_a_few_points_are_told_apart_by_the_keys_in_which_they_differ() -> None:
    verdict = BoardVerdict("a", "delivery_ratio", exact(0.5), None, None, 1)
    boards = [
        Leaderboard(tuple(Ranking(one, (row("a", 0.5, point=one),), verdict) for one in points), ())
        for points in (
            [point(f"{x}", {"same": 5, "x": x}, trace="t", window="w") for x in (1, 2)],
            [point("one", {"same": 5}), point("two", {"same": 5}, network="wire")],
        )
    ]
    assert [board_words(board) for board in boards] == [
        "city (x=1): a delivers 50.0 % of the expected. city (x=2): a delivers 50.0 % of the expected.",
        "city on radio: a delivers 50.0 % of the expected. city on wire: a delivers 50.0 % of the expected.",
    ]


def test_a_column_is_headed_by_its_title_and_unit() -> None:
    assert heading(BoardColumn("m_s", "the title", "s", 1)) == "the title (s)"
    assert heading(BoardColumn("m", "the title", "", 1)) == "the title"


def test_names_of_metrics_are_for_programs_and_titles_for_people() -> None:
    assert [one.metric for one in COLUMNS if not re.fullmatch(r"[a-z][a-z0-9_]+", one.metric)] == []
    assert [one.title for one in COLUMNS if "_" in one.title] == []
    assert {one.unit for one in COLUMNS} == {"", "s", "B"}
    assert [one.metric for one in COLUMNS if one.metric.endswith("_s")] == [
        one.metric for one in COLUMNS if one.unit == "s"
    ]


def test_a_figure_that_ties_with_the_best_of_its_column_is_marked() -> None:
    best = row("a", 0.5, ties={"delivery_ratio": ("b",)})
    tied, apart = row("b", 0.5, ties={"delivery_ratio": ("c", "a")}), row("c", 0.25, ties={"airtime_mean": ("a",)})
    assert [cell(one, "delivery_ratio", best) for one in (best, tied, apart)] == ["0.5", "0.5 ≈", "0.25"]
    assert cell(tied, "delivery_ratio", None) == "0.5"
    assert cell(tied, "cost", best) == "-"
    same = row("a", 0.5, ties={"delivery_ratio": ("a",)})
    assert cell(same, "delivery_ratio", best) == "0.5", "a row does not tie with itself"


def test_the_best_of_a_column_has_most_or_least_of_it() -> None:
    rows = [row("a", 0.5, 0.3), row("b", 0.7, 0.5), row("c", None, 0.1)]
    assert [best_of(rows, metric) for metric in ("delivery_ratio", "airtime_mean")] == [rows[1], rows[2]]
    assert best_of(rows, "precision") is None
    assert best_of([row("a", metrics={"hops": 1.0})], "hops") is None, "it depends"


# For programs.


def full_board() -> Leaderboard:
    """One point with two rows, a verdict, two types and a chart."""
    where = point("id", {"n": 5}, trace="t", window="w", version="v")
    first = row("b x=1", 0.75, 0.5, where, settings={"x": 1}, rank=1, runs={2: "r2", 1: "r1"}, on_front=True,
                ties={"airtime_mean": ("a",), "cost": ()}, assumes="ideal routing")  # fmt: skip
    second = row("a", None, 0.25, where, rank=2)
    verdict = BoardVerdict(
        "b x=1", "delivery_ratio", Figure(0.75, 0.5, 1.0, 2), "airtime_mean", exact(0.5), 2, ("a",), front=(
            FrontRow("a", None, math.nan), FrontRow("c", exact(0.125), 0.5)),
    )  # fmt: skip
    types = tuple(Ranking(where, (first,), None, name) for name in ("Fire", "Siren"))
    line = SweepLine("b", "b", {"n": 5}, ((1.0, first),))
    chart = SweepChart("b.x", "city", "t", "w", ("radio",), (line,))
    return Leaderboard((Ranking(where, (first, second), verdict, "", types),), (chart,))


ABOUT = {"scenario": "city", "keys": {"n": 5}, "network": "radio", "trace": "t", "window": "w", "version": "v"}


def plain(mean: float) -> dict[str, Any]:
    return {"mean": mean, "low": None, "high": None, "seeds": 1}


FIRST = {
    "rank": 1, "protocol": "b", "assumes": "ideal routing", "variant": "b x=1", "settings": {"x": 1}, "on_front": True,
    "ties": {"airtime_mean": ["a"], "cost": []}, "metrics": {"airtime_mean": plain(0.5), "delivery_ratio": plain(0.75)},
    "runs": {"1": "r1", "2": "r2"},
}  # fmt: skip


def test_json_says_everything() -> None:
    found = json.loads(json.dumps(board_json(full_board())))
    (whole,) = found["rankings"]
    verdict = whole.pop("verdict")
    assert verdict.pop("words").startswith("b x=1 delivers 75.0 % of the expected at 50.0 % airtime")
    assert verdict == {
        "winner": "b x=1", "delivery_metric": "delivery_ratio", "cost_metric": "airtime_mean", "cost": plain(0.5),
        "delivery": {"mean": 0.75, "low": 0.5, "high": 1.0, "seeds": 2}, "seeds": 2, "ties": ["a"], "cost_ties": [],
        "next": None, "lead": None, "ceiling": None, "ceiling_at_once": None, "headroom": None,
        "front": [
            {"variant": "a", "delivery_difference": None, "cost_ratio": None},
            {"variant": "c", "delivery_difference": plain(0.125), "cost_ratio": 0.5},
        ],
    }  # fmt: skip
    second = {**dict.fromkeys(FIRST), "rank": 2, "protocol": "a", "assumes": "", "variant": "a", "settings": {},
              "on_front": False, "ties": {}, "metrics": {"airtime_mean": plain(0.25)}, "runs": {}}  # fmt: skip
    assert whole == {
        **ABOUT, "event_type": "", "rows": [FIRST, second],
        "by_type": [{**ABOUT, "event_type": name, "verdict": None, "rows": [FIRST]} for name in ("Fire", "Siren")],
    }  # fmt: skip
    place = {"value": 1.0, "network": "radio", "metrics": FIRST["metrics"]}
    line = {"variant": "b", "protocol": "b", "fixed": {"n": 5}, "points": [place]}
    about = {"axis": "b.x", "scenario": "city", "trace": "t", "window": "w", "networks": ["radio"], "lines": [line]}
    assert found["charts"] == [about]
    assert figure_json(None) is None


def test_csv_has_a_line_for_each_row_and_metric_of_all_types_and_of_each() -> None:
    lines = list(csv.DictReader(io.StringIO(board_csv(full_board()))))
    assert [(line["event_type"], line["variant"], line["metric"], line["mean"], line["ties"]) for line in lines] == [
        ("", "b x=1", "airtime_mean", "0.5", "a"), ("", "b x=1", "delivery_ratio", "0.75", ""),
        ("", "a", "airtime_mean", "0.25", ""),
        *((name, "b x=1", metric, mean, ties) for name in ("Fire", "Siren")
          for metric, mean, ties in (("airtime_mean", "0.5", "a"), ("delivery_ratio", "0.75", ""))),
    ]  # fmt: skip
    assert lines[0] == {
        **{name: str(value) for name, value in ABOUT.items()}, "keys": '{"n": 5}', "event_type": "", "rank": "1",
        "protocol": "b", "variant": "b x=1", "settings": '{"x": 1}', "on_front": "True", "metric": "airtime_mean",
        "mean": "0.5", "low": "", "high": "", "seeds": "1", "ties": "a",
    }  # fmt: skip


# Ranks.


def variants(rows: Sequence[BoardRow]) -> list[str]:
    return [one.variant for one in rows]


def test_rows_without_a_delivery_stand_last_by_name_and_all_of_them_are_first_where_none_has_one() -> None:
    rows = [row("d", 0.5), row("c"), row("b", 0.7), row("a")]
    found = _ranking(POINT, rows)
    assert [(one.variant, one.rank) for one in found.rows] == [("b", 1), ("d", 2), ("a", 3), ("c", 4)]
    nothing = _ranking(POINT, [row("b", None, 0.1), row("a", None, 0.2)])
    assert ([(one.variant, one.rank) for one in nothing.rows], nothing.verdict) == ([("a", 1), ("b", 1)], None)


def test_the_first_metric_of_all_rows_counts_else_the_last_of_any() -> None:
    both, one = row("a", 0.5, metrics={"delivery_of_reachable": 0.6}), row("b", 0.5)
    names = ("delivery_of_reachable", "delivery_ratio")
    assert _shared([both, both], names) == "delivery_of_reachable"
    assert _shared([both, one], names) == "delivery_ratio"
    assert _shared([row("c", metrics={"delivery_of_reachable": 0.6}), one], names) == "delivery_ratio"
    assert _shared([row("c", metrics={"delivery_of_reachable": 0.6}), row("d")], names) == "delivery_of_reachable"
    assert (_shared([row("d")], names), _shared([], names)) == (None, None)


def test_of_those_that_deliver_as_much_as_the_best_the_cheapest_is_first() -> None:
    rows = [row("dear", 0.8, 0.5), row("cheap", 0.8, 0.1), row("less", 0.7, 0.01)]
    assert variants(ranked(rows, "delivery_ratio", "airtime_mean")) == ["cheap", "dear", "less"]
    assert variants(ranked(rows, "delivery_ratio", None)) == ["cheap", "dear", "less"], "by name, without a cost"
    no_price = [row("a", 0.8), row("b", 0.8, 0.5)]
    assert variants(ranked(no_price, "delivery_ratio", "airtime_mean")) == ["b", "a"]


@pytest.mark.parametrize(
    ("rows", "front"),
    [
        ([("a", 0.9, 0.5), ("b", 0.9, 0.6), ("c", 0.8, 0.5), ("d", 0.8, 0.4)], "ad"),
        ([("a", 0.9, 0.5), ("b", 0.9, 0.5)], "ab"),
        ([("a", 0.5, 0.5), ("b", 0.9, 0.1)], "b"),
        ([("a", 0.9, None), ("b", 0.8, 0.1)], "ab"),
    ],
)
def test_the_front_holds_whom_nobody_equals_in_one_and_betters_in_the_other(rows: Any, front: str) -> None:
    found = _front([row(*one) for one in rows], "delivery_ratio", "airtime_mean")
    assert "".join(variants(found)) == front


def test_a_verdict_compares_the_winner_with_the_next_and_the_front() -> None:
    rows = [
        row("win", 0.75, 0.5, metrics={"ceiling": 0.875, "ceiling_at_once": 0.5}),
        row("next", 0.5, 0.25), row("last", 0.25, 1.0), row("none", None, 0.1),
    ]  # fmt: skip
    found = _verdict(rows, "delivery_ratio", "airtime_mean")
    assert found == BoardVerdict(
        "win", "delivery_ratio", rows[0].figures["delivery_ratio"], "airtime_mean", rows[0].figures["airtime_mean"], 1,
        next="next", lead=found.lead if found else None, front=found.front if found else (),
        ceiling=rows[0].figures["ceiling"], ceiling_at_once=rows[0].figures["ceiling_at_once"],
        headroom=found.headroom if found else None,
    )  # fmt: skip
    assert found.lead is not None
    assert found.headroom is not None
    assert (found.lead.mean, found.headroom.mean) == (0.25, 0.125)
    ((other, apart, ratio),) = [(one.variant, one.delivery, one.cost_ratio) for one in found.front]
    assert (other, apart.mean if apart else None, ratio) == ("next", -0.25, 0.5)
    assert _verdict([row("none")], "delivery_ratio", None) is None


@pytest.mark.parametrize(("cost", "ratio"), [(0.0, None), (None, None), (0.25, 2.0)])
def test_a_winner_that_costs_nothing_has_no_times_its_cost(cost: float | None, ratio: float | None) -> None:
    rows = [row("win", 0.75, cost), row("other", 0.8, 0.5)]
    found = _verdict(rows, "delivery_ratio", "airtime_mean")
    assert found is not None
    (other,) = found.front
    assert (None if math.isnan(other.cost_ratio) else other.cost_ratio) == ratio
    assert found.cost_metric == (None if cost is None else "airtime_mean")
    assert found.next is None, "nobody delivers less"


# Charts.


def test_a_line_is_of_one_variant_and_has_the_swept_keys_that_stay() -> None:
    rows = [
        row(f"{name}", 0.5, point=point(f"{x}{n}", {"fixed": 7, "n": n, "x": x}, network=f"radio {x}"))
        for n in (1, 2) for x in (20, 10.0) for name in ("a", "b")
    ]  # fmt: skip
    by_n, by_x = _charts(rows)
    assert (by_n.axis, by_x.axis, by_x.networks) == ("n", "x", ("radio 10.0", "radio 20"))
    assert [(line.variant, line.protocol, line.fixed, [x for x, _ in line.rows]) for line in by_x.lines] == [
        (name, name, {"n": n}, [10.0, 20.0]) for n in (1, 2) for name in ("a", "b")
    ]
    assert [line.fixed for line in by_n.lines] == [{"x": 10.0}, {"x": 10.0}, {"x": 20}, {"x": 20}]


def test_a_line_takes_its_fixed_keys_from_any_of_its_points() -> None:
    """The same value at each: a whole number once, and a fraction once."""
    rows = [row("a", 0.5, point=point(f"{x}", {"x": x}), settings={"k": True, "p": p}) for x, p in ((1, 2), (2, 2))]
    (chart,) = _charts(rows)
    assert (chart.axis, [line.variant for line in chart.lines]) == ("x", ["a"])
    settings = [row(f"a p={p}", 0.5, settings={"p": p, "q": 3}) for p in (0.5, 0.25)]
    (chart,) = _charts(settings)
    assert (chart.axis, [(line.variant, line.fixed) for line in chart.lines]) == ("a.p", [("a q=3", {})])


def test_texts_truths_and_single_values_are_no_axis() -> None:
    rows = [
        row("a", 0.5, point=point(f"{x}", {"text": f"{x}", "truth": x == 1, "one": 5})) for x in (1, 2)
    ]  # fmt: skip
    assert _charts(rows) == ()


# Intervals.


def test_an_interval_that_touches_nothing_leaves_it_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "_quantile", lambda _: 2.0)
    apart, zero = figure_of({0: 1.0, 1: 3.0}), figure_of({0: 0.0, 1: 0.0})
    assert (apart.low, apart.high) == (0.0, 4.0)
    assert not differ(apart, zero)
    assert not differ(zero, apart)
    assert differ(figure_of({0: 1.0, 1: 2.9}), zero)
    assert differ(zero, figure_of({0: 1.0, 1: 2.9}))


def test_nothing_does_not_differ_from_nothing() -> None:
    assert not differ(figure_of({0: 0.0}), figure_of({0: 0.0}))


@pytest.mark.parametrize(("more", "apart"), [(0.9e-9, False), (1.5e-9, True)])
def test_a_difference_is_measured_by_the_larger_value(more: float, apart: bool) -> None:
    assert differ(figure_of({0: 1000.0}), figure_of({0: 1000.0 * (1.0 + more)})) is apart
    small = figure_of({0: 1e-12})
    assert differ(small, figure_of({0: 0.0}))


def test_a_figure_is_shown_and_compared_without_the_values_of_its_seeds() -> None:
    assert Figure(0.5, 0.4, 0.6, 2, {0: 0.4, 1: 0.6}) == Figure(0.5, 0.4, 0.6, 2)
    assert repr(Figure(0.5, 0.4, 0.6, 2, {0: 0.4})) == "Figure(mean=0.5, low=0.4, high=0.6, seeds=2)"


# Campaigns.


def test_a_digest_is_of_what_values_mean_and_not_of_their_order() -> None:
    assert digest_of({"a": 1, "b": [2]}, "c") == digest_of({"b": [2], "a": 1}, "c")
    assert len({digest_of(*some) for some in (("a", "b"), ("b", "a"), ("ab",), (["a", "b"],), (math.inf,))}) == 5
    assert re.fullmatch("[0-9a-f]{16}", digest_of(1))


def test_a_run_is_of_the_first_seed_and_a_named_scenario_unless_it_says_more() -> None:
    base = load_scenario("base")
    assert Run(base, "flooding") == Run(base, "flooding", {}, 0, None)
    assert Run(base, "flooding").changes == ({}, {})
    changed = base.with_({"duration_s": 70.0})
    assert Run(changed, "flooding", {}, 0, base).changes == ({"duration_s": 70.0}, {"duration_s": base.duration_s})


def test_changed_keys_are_in_order_and_leave_out_the_scenarios_words() -> None:
    base = load_scenario("base")
    changed = base.with_({"name": "mine", "description": "x", "warm_up_s": 1.0, "duration_s": 70.0})
    here, there = changed_keys(base, changed)
    assert (list(here), list(there)) == (["duration_s", "warm_up_s"],) * 2
    assert (here["warm_up_s"], there["warm_up_s"]) == (1.0, base.warm_up_s)
    assert changed_keys(changed, base) == (there, here)
    assert changed_keys(base, base) == ({}, {})


def test_a_campaign_doubts_once_what_the_machines_of_its_first_seed_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    base = load_scenario("base")
    asked: list[tuple[str, int]] = []

    def doubts(_: Any) -> list[str]:
        asked.append(("flooding", len(asked)))
        return ["odd", f"odder {len(asked)}"]

    monkeypatch.setattr(protocol("flooding"), "doubts", staticmethod(doubts))
    monkeypatch.setattr("earshot.pipeline.campaigns.campaigns.settings_in", lambda *_: None)
    runs = [Run(base, "flooding", {}, seed) for seed in (3, 4, 3)]
    assert Campaign("c", runs).doubts() == ["odd", "odder 1", "odder 2"]

    def broken(_: Any, __: Any, settings: Mapping[str, Any]) -> None:
        if settings:
            raise SettingsError("no such key")

    monkeypatch.setattr("earshot.pipeline.campaigns.campaigns.settings_in", broken)
    failing = [Run(base, "flooding", {"x": 1}, 3), Run(base, "flooding", {}, 3)]
    assert Campaign("c", failing).doubts() == ["odd", "odder 3"], "a run that will fail doubts nothing"
    assert Campaign("c", []).doubts() == []


def test_a_campaign_is_every_scenario_with_every_setting_and_seed() -> None:
    base = load_scenario("base")
    other = base.with_({"duration_s": 70.0})
    found = campaign("c", [base, other], {"gossip": {"probability": [0.5, 0.6]}, "flooding": {}}, [1, 2], [base])
    assert [(run.scenario.duration_s, run.variant, run.seed) for run in found.runs] == [
        (duration_s, variant, seed)
        for duration_s in (base.duration_s, 70.0)
        for variant in ("gossip probability=0.5", "gossip probability=0.6", "flooding") for seed in (1, 2)
    ]  # fmt: skip
    assert [run.named for run in found.runs] == [base] * 12
    assert [run.named for run in campaign("c", [base], {"flooding": {}}, [1]).runs] == [None]
    with pytest.raises(SettingsError, match="nobody"):
        campaign("c", [base], {"flooding": {"nobody": [1]}}, [1])
    assert _swept({"a": [1, 2], "b": 3, "c": [4]}) == [{"a": 1, "b": 3, "c": 4}, {"a": 2, "b": 3, "c": 4}]
    assert _swept({}) == [{}]


@pytest.mark.parametrize(
    ("value", "seeds"),
    [
        (3, [0, 1, 2]), (1, [0]), ([4, 2], [4, 2]), (0, None), (-1, None), (True, None), ([], None), ([1, "a"], None),
        (2.0, None), ("3", None),
    ],
)  # fmt: skip
def test_seeds_are_a_number_of_them_or_a_list(tmp_path: Any, value: Any, seeds: list[int] | None) -> None:
    if seeds is None:
        with pytest.raises(ScenarioError, match=r"c\.toml: seeds must be a number of seeds \(seeds = 5\) or a list"):
            _seeds(tmp_path / "c.toml", value)
    else:
        assert _seeds(tmp_path / "c.toml", value) == seeds


@pytest.mark.parametrize("value", [None, "city", [], ["a", 1], {"a": 1}])
def test_names_are_a_list_of_texts(tmp_path: Any, value: Any) -> None:
    with pytest.raises(ScenarioError, match=r'protocols must be a list of names, as in protocols = \["city"\]'):
        _strings(tmp_path / "c.toml", {"protocols": value}, "protocols")
    assert _strings(tmp_path / "c.toml", {"protocols": ["a", "b"]}, "protocols") == ["a", "b"]
    with pytest.raises(ScenarioError, match="set must be a table"):
        _table(tmp_path / "c.toml", {"set": [1]}, "set")
    assert _table(tmp_path / "c.toml", {}, "set") == {}
