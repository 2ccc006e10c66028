"""The leaderboard: what is ranked together, who wins, who ties, and which keys become axes."""

from __future__ import annotations

import csv
import io
import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.pipeline.campaigns import leaderboard, outside_metrics
from earshot.pipeline.campaigns.board_text import (
    NARROW,
    assumption_words,
    board_csv,
    board_json,
    board_words,
    cell,
    columns_with_figures,
    number,
    percent,
    point_words,
    points_table,
    ranking_heading,
    ranking_table,
    short,
    verdict_words,
)
from earshot.pipeline.campaigns.campaigns import digest_of
from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.campaigns.leaderboard import COLUMNS as BOARD_COLUMNS
from earshot.pipeline.campaigns.leaderboard import (
    BoardRow,
    Leaderboard,
    Ranking,
    ScenarioPoint,
    _beats,
    board_of,
    keyed_rows,
)

NETWORK = "802.11b-2M 160 m"


class Runs:
    """Rows of `runs` and `metrics`, made by hand."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.figures: list[dict[str, Any]] = []
        self.by_type: list[dict[str, Any]] = []

    def add(self, protocol: str, delivery: list[float], airtime: float | list[float] = 0.1, **more: Any) -> Runs:
        """A run for each seed; `more` are columns of `runs`, and further metrics."""
        columns = {name: more.pop(name) for name in list(more) if name in COLUMNS}
        changed, base = columns.pop("changed", {}), columns.pop("base", {})
        for seed, ratio in enumerate(delivery):
            run = f"run-{len(self.rows)}"
            own = {"scenario": "city", "network": NETWORK, "trace": "", "window": "", "settings": {}, **columns}
            settings = own.pop("settings")
            place = digest_of(changed, own["trace"], own["window"], own.pop("point", ""))
            variant = " ".join([protocol, *(f"{name}={value}" for name, value in settings.items())])
            self.rows.append({
                **own, "run": run, "protocol": protocol, "variant": variant, "seed": seed, "point": place,
                "settings": json.dumps(settings), "changed": json.dumps(changed), "base": json.dumps(base),
            })  # fmt: skip
            used = airtime[seed] if isinstance(airtime, list) else airtime
            for metric, value in {"delivery_ratio": ratio, "airtime_mean": used, **more}.items():
                self.figures.append({"run": run, "metric": metric, "key": "", "value": value})
        return self

    def by_types(self, **of_type: list[float]) -> Runs:
        """The delivery ratios of the runs just added, by event type."""
        for event_type, ratios in of_type.items():
            for row, ratio in zip(self.rows[-len(ratios) :], ratios, strict=True):
                figure = {"run": row["run"], "metric": "delivery_ratio", "key": event_type, "value": ratio}
                self.by_type.append(figure)
        return self

    def board(self) -> Leaderboard:
        return board_of(self.rows, self.figures, self.by_type)

    def ranking(self) -> Ranking:
        (ranking,) = self.board().rankings
        return ranking


COLUMNS = ("scenario", "network", "changed", "base", "trace", "window", "settings", "point")


def names(ranking: Ranking) -> list[str]:
    return [row.variant for row in ranking.rows]


def test_seeds_are_averaged_and_nothing_else_is() -> None:
    board = Runs().add("flooding", [0.8, 1.0]).board()
    (row,) = board.rows
    assert row.figures["delivery_ratio"] == Figure(pytest.approx(0.9), 0.0, 1.0, 2), (
        "Student's interval of two seeds reaches beyond 0 and 1, and is cut there"
    )
    assert row.runs == {0: "run-0", 1: "run-1"}
    assert board.charts == ()


def test_one_seed_has_no_interval() -> None:
    (row,) = Runs().add("flooding", [0.8]).board().rows
    assert not row.figures["delivery_ratio"].has_interval


def test_different_networks_are_never_ranked_together() -> None:
    runs = Runs().add("flooding", [0.9, 0.91]).add("codd", [1.0, 1.0], network="overlay")
    assert [(one.point.network, names(one)) for one in runs.board().rankings] == [
        (NETWORK, ["flooding"]),
        ("overlay", ["codd"]),
    ]


def test_changed_keys_traces_windows_and_code_give_rows_of_their_own() -> None:
    runs = Runs().add("flooding", [0.1, 0.1])
    runs.add("flooding", [0.2, 0.2], changed={"area.width_m": 10}, base={"area.width_m": 20})
    runs.add("flooding", [0.3, 0.3], trace="a.xml", window="0 to 60 s")
    runs.add("flooding", [0.4, 0.4], trace="a.xml", window="60 to 120 s")
    runs.add("flooding", [0.5, 0.5], point="other code")
    rankings = runs.board().rankings
    assert sorted(one.rows[0].figures["delivery_ratio"].mean for one in rankings) == pytest.approx(
        [0.1, 0.2, 0.3, 0.4, 0.5]
    )
    assert len({point_words(one.point) for one in rankings}) == 5, "each has a name of its own"


def test_a_swept_key_is_an_axis_and_never_noise() -> None:
    runs = Runs()
    truth = {}
    for range_m in (80, 150, 250):
        for count in (50, 100):
            keys = {"medium.range_m": range_m, "nodes.car.count": count}
            # A value that the named scenario has itself is not among the changed keys.
            base = {"medium.range_m": 150, "nodes.car.count": 50}
            changed = {name: value for name, value in keys.items() if base[name] != value}
            ratio = [range_m / 1000 + count / 1000 + seed / 100 for seed in range(5)]
            for protocol in ("flooding", "gossip"):
                runs.add(protocol, ratio, changed=changed, base={name: base[name] for name in changed},
                         network=f"802.11b-2M {range_m} m")  # fmt: skip
            truth[range_m, count] = Runs().add("flooding", ratio).board().rows[0].figures["delivery_ratio"]
    board = runs.board()
    assert len(board.rankings) == 6
    by_range, by_count = sorted(board.charts, key=lambda chart: chart.axis)
    assert (by_range.axis, by_count.axis) == ("medium.range_m", "nodes.car.count")
    assert [(line.variant, line.fixed) for line in by_range.lines] == [
        ("flooding", {"nodes.car.count": 50}),
        ("gossip", {"nodes.car.count": 50}),
        ("flooding", {"nodes.car.count": 100}),
        ("gossip", {"nodes.car.count": 100}),
    ]
    for line in by_range.lines:
        count = line.fixed["nodes.car.count"]
        assert line.points("delivery_ratio") == [(x, truth[x, count]) for x in (80, 150, 250)]
    assert by_range.networks == ("802.11b-2M 80 m", "802.11b-2M 150 m", "802.11b-2M 250 m")
    assert len(by_count.lines) == 6


def test_a_swept_setting_is_an_axis_too() -> None:
    runs = Runs()
    for probability in (0.6, 0.8):
        runs.add("gossip", [probability] * 3, settings={"probability": probability})
    (chart,) = runs.board().charts
    assert chart.axis == "gossip.probability"
    assert [(line.variant, [x for x, _ in line.rows]) for line in chart.lines] == [("gossip", [0.6, 0.8])]


def test_lines_over_different_networks_stand_in_different_charts() -> None:
    runs = Runs()
    for count in (1, 2):
        changed, base = {"nodes.car.count": count}, {"nodes.car.count": 0}
        runs.add("flooding", [0.5, 0.6], changed=changed, base=base)
        runs.add("codd", [0.5, 0.6], changed=changed, base=base, network="overlay")
    charts = runs.board().charts
    assert sorted((chart.networks, [line.variant for line in chart.lines]) for chart in charts) == [
        ((NETWORK,), ["flooding"]),
        (("overlay",), ["codd"]),
    ]


# -- who wins


def test_the_first_delivers_most_and_of_those_that_tie_costs_least() -> None:
    ranking = (
        Runs()
        .add("dear", [0.95, 0.90, 0.97, 0.93], 0.5)
        .add("cheap", [0.94, 0.91, 0.96, 0.935], 0.1)
        .add("worst", [0.50, 0.45, 0.52, 0.48], 0.01)
        .ranking()
    )
    assert names(ranking) == ["cheap", "dear", "worst"]
    verdict = ranking.verdict
    assert verdict is not None
    assert (verdict.winner, verdict.ties, verdict.next) == ("cheap", ("dear",), "worst")
    assert verdict.lead is not None
    assert verdict.lead.mean == pytest.approx(0.44875)
    assert verdict.lead.low > 0
    assert [row.rank for row in ranking.rows] == [1, 2, 3], "the cost tells the two apart"
    assert ranking.rows[0].ties["delivery_ratio"] == ("dear",)


def test_a_difference_that_every_seed_shows_is_no_tie_even_where_the_intervals_overlap() -> None:
    ranking = Runs().add("a", [0.90, 0.80, 0.70, 0.60]).add("b", [0.89, 0.79, 0.69, 0.59]).ranking()
    first, second = (row.figures["delivery_ratio"] for row in ranking.rows)
    assert second.high > first.low
    assert ranking.rows[0].variant == "a"
    assert "delivery_ratio" not in ranking.rows[0].ties


def test_rows_that_nothing_tells_apart_share_a_rank() -> None:
    ranking = Runs().add("a", [0.9, 0.8, 0.7]).add("b", [0.9, 0.8, 0.7]).add("c", [0.1, 0.1, 0.1]).ranking()
    assert [(row.variant, row.rank) for row in ranking.rows] == [("a", 1), ("b", 1), ("c", 3)]


def test_a_rank_is_shared_only_with_its_first_row() -> None:
    """a and b tie, b and c tie, and c delivers less than a."""
    ranking = (
        Runs()
        .add("a", [0.90, 0.91, 0.92, 0.93])
        .add("b", [0.92, 0.87, 0.93, 0.85])
        .add("c", [0.86, 0.87, 0.88, 0.89])
        .ranking()
    )
    ties = {row.variant: row.ties.get("delivery_ratio") for row in ranking.rows}
    assert ties == {"a": ("b",), "b": ("a", "c"), "c": ("b",)}
    assert [(row.variant, row.rank) for row in ranking.rows] == [("a", 1), ("b", 1), ("c", 3)]


def test_of_those_whose_cost_ties_too_the_one_that_delivers_most_comes_first() -> None:
    ranking = (
        Runs()
        .add("most", [1.0, 0.85], [0.000166, 0.000164])
        .add("cheapest", [0.98, 0.46], [0.000160, 0.000164])
        .ranking()
    )
    verdict = ranking.verdict
    assert verdict is not None
    assert (verdict.winner, verdict.ties, verdict.cost_ties) == ("most", ("cheapest",), ("cheapest",))
    assert "2 seeds are too few to order what ties; more may order it." in verdict_words(ranking)


def test_who_ties_with_the_winner_but_not_with_the_best_does_not_deliver_most() -> None:
    """The winner is cheap and varies so much that it ties with everybody."""
    ranking = (
        Runs()
        .add("cheap", [0.90, 0.30, 0.95, 0.40], 0.1)
        .add("best", [0.90, 0.91, 0.92, 0.93], 0.5)
        .add("poor", [0.30, 0.31, 0.32, 0.33], 0.4)
        .ranking()
    )
    verdict = ranking.verdict
    assert verdict is not None
    assert "poor" in ranking.rows[0].ties["delivery_ratio"]
    assert (verdict.winner, verdict.ties, verdict.next) == ("cheap", ("best",), "poor")


def test_where_nothing_arrived_nobody_delivers_most() -> None:
    ranking = Runs().add("a", [0.0, 0.0]).add("b", [0.0, 0.0]).ranking()
    assert verdict_words(ranking) == "No protocol delivered anything."


def test_the_front_holds_what_no_other_row_betters() -> None:
    ranking = (
        Runs()
        .add("best", [0.99, 0.98, 0.99], 0.4)
        .add("thrifty", [0.80, 0.81, 0.80], 0.1)
        .add("beaten", [0.70, 0.71, 0.70], 0.2)
        .ranking()
    )
    assert [row.variant for row in ranking.rows if row.on_front] == ["best", "thrifty"]
    assert ranking.verdict is not None
    (other,) = ranking.verdict.front
    assert (other.variant, other.cost_ratio) == ("thrifty", pytest.approx(0.25))
    assert other.delivery is not None
    assert other.delivery.mean == pytest.approx(-0.55 / 3)


ratios = st.floats(0, 1, allow_nan=False).map(lambda value: round(value, 3))
rows_of_runs = st.lists(
    st.tuples(st.lists(ratios, min_size=3, max_size=3), st.lists(ratios, min_size=3, max_size=3)),
    min_size=1,
    max_size=6,
)


@given(rows_of_runs)
def test_nobody_outside_the_winners_interval_delivers_more_for_no_more_airtime(
    drawn: list[tuple[list[float], list[float]]],
) -> None:
    runs = Runs()
    for place, (delivery, airtime) in enumerate(drawn):
        runs.add(f"protocol-{place}", delivery, airtime)
    ranking = runs.ranking()
    winner = ranking.rows[0]
    for row in ranking.rows:
        for figure in row.figures.values():
            assert 0 <= figure.low <= figure.mean <= figure.high <= 1
        better = row.figures["delivery_ratio"].mean > winner.figures["delivery_ratio"].high
        assert not (better and airtime_of(row) <= airtime_of(winner))
        for other in ranking.rows:
            tied = other.variant in row.ties.get("delivery_ratio", ())
            assert tied == (row.variant in other.ties.get("delivery_ratio", ()))
    assert any(row.on_front for row in ranking.rows)


def airtime_of(row: BoardRow) -> float:
    return row.figures["airtime_mean"].mean


def test_the_reachable_decides_where_the_ceiling_is_known() -> None:
    ranking = (
        Runs()
        .add("a", [0.80, 0.81, 0.80], delivery_of_reachable=0.9, ceiling=0.95)
        .add("b", [0.70, 0.71, 0.70], delivery_of_reachable=0.8, ceiling=0.95)
        .ranking()
    )
    verdict = ranking.verdict
    assert verdict is not None
    assert (verdict.delivery_metric, verdict.cost_metric) == ("delivery_of_reachable", "airtime_mean")
    assert verdict.headroom is not None
    assert verdict.headroom.mean == pytest.approx(0.95 - 2.41 / 3)
    assert "Reachable at all: 95.0 %" in verdict_words(ranking)


def test_each_event_type_has_its_own_verdict() -> None:
    runs = Runs()
    runs.add("a", [0.9, 0.91, 0.9]).by_types(Siren=[0.9, 0.9, 0.9], Fire=[0.3, 0.3, 0.3])
    runs.add("b", [0.8, 0.81, 0.8]).by_types(Siren=[0.8, 0.8, 0.8], Fire=[0.5, 0.5, 0.5])
    ranking = runs.ranking()
    winners = {one.event_type: one.verdict.winner for one in ranking.by_type if one.verdict}
    assert winners == {"Fire": "b", "Siren": "a"}


def test_runs_that_expect_nothing_are_not_ranked() -> None:
    runs = Runs().add("a", [0.5])
    runs.figures = [figure for figure in runs.figures if figure["metric"] != "delivery_ratio"]
    ranking = runs.ranking()
    assert ranking.verdict is None
    assert names(ranking) == ["a"]


# -- words, tables, JSON, CSV


def board_with_everything() -> Leaderboard:
    runs = Runs()
    for protocol, ratio, airtime in (
        ("flooding", 0.97, 0.3),
        ("content-odmrp", 0.96, 0.1),
        ("georendezvous", 0.5, 0.2),
    ):
        jitter = [ratio + step for step in (0.011, -0.012, 0.009, -0.01, 0.002)]
        runs.add(protocol, jitter, airtime, ceiling=0.99, precision=1.0, cost=12345.6, latency_p50_s=0.0123,
                 latency_p95_s=1.234, bytes_per_delivery=98765.4, delivery_of_reachable=ratio)  # fmt: skip
    return runs.board()


def test_the_terminals_table_fits_a_hundred_columns() -> None:
    (ranking,) = board_with_everything().rankings
    header, rows = ranking_table(ranking, NARROW, 100)
    widths = [max(len(text) for text in column) for column in zip(header, *rows, strict=True)]
    assert sum(widths) + 2 * (len(widths) - 1) <= 100
    assert header[:4] == ["#", "protocol", "delivery of the reachable", "airtime"]
    assert "delivery ratio" not in header, "one column for delivery"


def test_many_points_are_one_table_with_what_differs_between_them() -> None:
    runs = Runs()
    for range_m in (80, 150, 250, 400):
        keys = {"medium.range_m": float(range_m), "duration_s": 30}
        base = {"medium.range_m": 1, "duration_s": 60}
        runs.add("flooding", [0.9, 0.91, 0.92], changed=keys, base=base, network=f"radio {range_m} m")
        runs.add("gossip", [0.8, 0.81, 0.82], changed=keys, base=base, network=f"radio {range_m} m")
    board = runs.board()
    header, rows = points_table(board, NARROW, 100)
    assert header == ["medium.range_m", "#", "protocol", "delivery ratio", "airtime"]
    assert [row[:3] for row in rows[:3]] == [["80", "1", "flooding"], ["80", "2", "gossip"], ["150", "1", "flooding"]]
    words = "Delivers most, or as much as the best for the least cost: flooding at 4 of 4 points."
    assert board_words(board).startswith(words)


def test_the_first_words_tell_a_few_points_apart() -> None:
    runs = Runs().add("flooding", [0.9, 0.91]).add("codd", [1.0, 1.0], 0.2, network="infrastructure")
    assert board_words(runs.board()) == (
        f"city on {NETWORK}: flooding delivers 90.5 % of the expected at 10.0 % airtime. "
        "city on infrastructure: codd delivers 100.0 % of the expected at 20.0 % airtime."
    )
    runs = Runs()
    for range_m in (80.0, 250.0):
        runs.add("flooding", [range_m / 250] * 2, changed={"medium.range_m": range_m}, base={"medium.range_m": 1.0})
    assert board_words(runs.board()) == (
        "city (medium.range_m=80): flooding delivers 32.0 % of the expected at 10.0 % airtime. "
        "city (medium.range_m=250): flooding delivers 100.0 % of the expected at 10.0 % airtime."
    )


def test_the_heading_names_network_seeds_and_ceiling() -> None:
    ranking = Runs().add("a", [0.9, 0.8], ceiling=0.964).ranking()
    assert ranking_heading(ranking) == f"city on {NETWORK}, 2 seeds, reachable at all: 96.4 %"


def test_json_and_csv_carry_the_same_figures() -> None:
    board = board_with_everything()
    reported = json.loads(json.dumps(board_json(board)))["rankings"][0]
    lines = list(csv.DictReader(io.StringIO(board_csv(board))))
    for row in reported["rows"]:
        for metric, figure in row["metrics"].items():
            (line,) = (one for one in lines if (one["variant"], one["metric"]) == (row["variant"], metric))
            assert {name: float(line[name]) for name in ("mean", "low", "high")} == {
                name: pytest.approx(figure[name]) for name in ("mean", "low", "high")
            }
            assert (line["network"], line["seeds"]) == (NETWORK, "5")
    assert reported["verdict"]["winner"] == "flooding"


def test_figures_are_short() -> None:
    assert number(Figure(0.98765, 0.9753, 1.0, 5)) == "0.988 ± 0.0124"
    assert number(Figure(1234567.0, math.nan, math.nan, 1)) == "1.23 M"
    assert number(None) == "-"


def test_where_windows_are_repeats_costs_are_compared_by_their_ratio() -> None:
    seeds, windows = Runs(), Runs()
    for protocol, airtime in (("hearsay", [0.2, 0.001]), ("flooding", [0.4, 0.00202])):
        seeds.add(protocol, [0.9, 0.9], airtime)
        windows.add(protocol, [0.9, 0.9], airtime, trace="town", window="2 unseen windows")
    together = [{**row, "point": "2 unseen windows"} for row in windows.rows]
    (of_windows,) = board_of(together, windows.figures).rankings
    assert [(row.rank, row.ties.get("airtime_mean")) for row in seeds.ranking().rows] == [
        (1, ("flooding",)),
        (1, ("hearsay",)),
    ]
    assert [(row.rank, row.ties.get("airtime_mean")) for row in of_windows.rows] == [(1, None), (2, None)]
    assert of_windows.point.repeats == "window"


def test_airtime_in_a_table_is_in_percent() -> None:
    first, second = Runs().add("a", [0.5, 0.6], [0.000162, 0.000164]).add("b", [0.4, 0.5], [0.5, 0.5]).ranking().rows
    assert cell(first, "airtime_mean", first) == "0.016 ± 0.0013 %"
    assert cell(second, "airtime_mean", first) == "50 ± 0 %"


@pytest.mark.parametrize(
    ("mean", "expected"), [(0.0, "0.0 %"), (0.00123, "0.12 %"), (0.00999, "1 %"), (0.01, "1.0 %"), (0.987, "98.7 %")]
)
def test_a_small_share_has_two_digits(mean: float, expected: str) -> None:
    assert percent(Figure(mean, math.nan, math.nan, 1)) == expected


@pytest.mark.parametrize(
    ("delivery", "cost", "expected"), [(0.95, 2.0, True), (0.95, 1.0, True), (0.95, 2.1, False), (0.9, 1.0, False)]
)
def test_a_row_beats_the_winner_with_more_than_its_interval_for_no_more_cost(
    delivery: float, cost: float, expected: bool
) -> None:
    def row(delivery: float, cost: float) -> Any:
        return SimpleNamespace(figures={"d": Figure(delivery, 0.7, 0.9, 5), "c": Figure(cost, math.nan, math.nan, 1)})

    assert _beats(row(delivery, cost), row(0.8, 2.0), "d", "c") is expected
    assert _beats(row(0.95, 9.0), row(0.8, 2.0), "d", None) is True


# What it says, sentence by sentence.

NOTHING = "No delivery was expected, so nothing can be ranked."


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (0.001, "0.001"),
        (0.00099, "9.90e-04"),
        (999.0, "999"),
        (1000.0, "1 k"),
        (-1500.0, "-1.5 k"),
        (999_000.0, "999 k"),
        (1e6, "1 M"),
        (1e9, "1 G"),
        (2.5e10, "25 G"),
    ],
)
def test_numbers_have_three_digits_and_a_letter(value: float, words: str) -> None:
    assert short(value) == words


def test_a_verdict_says_winner_ties_lead_cost_ceiling_and_seeds() -> None:
    runs = Runs()
    runs.add("cheap", [0.94, 0.91, 0.96, 0.935], 0.1, ceiling=0.99)
    runs.add("dear", [0.95, 0.90, 0.97, 0.93], 0.5, ceiling=0.99)
    runs.add("worst", [0.50, 0.45, 0.52, 0.48], 0.01, ceiling=0.99)
    assert verdict_words(runs.ranking()) == (
        "cheap delivers 93.6 % of the expected at 10.0 % airtime; as much as dear (at 50.0 % airtime); 44.9 points "
        "more than worst, the next. worst delivers 44.9 points less at 0.1 times the cost. Reachable at all: 99.0 % of "
        "the expected deliveries; cheap made 93.6 %. 4 seeds are too few to order what ties; more may order it."
    )
    assert board_words(runs.board()) == verdict_words(runs.ranking())


def test_five_seeds_are_enough_to_let_a_tie_stand() -> None:
    for seeds, words in ((4, "4 seeds are too few to order what ties; more may order it."), (5, "5 seeds.")):
        ratios = [0.9, 0.8, 0.7, 0.85, 0.75][:seeds]
        ranking = Runs().add("a", ratios).add("b", ratios).ranking()
        assert verdict_words(ranking).endswith(f". {words}")
    alone = Runs().add("a", [0.9, 0.8]).ranking()
    assert verdict_words(alone) == "a delivers 85.0 % of the expected at 10.0 % airtime. 2 seeds."
    assert verdict_words(Runs().add("a", [0.9]).ranking()).endswith("One seed: differences may be chance.")


def test_a_dearer_row_of_the_front_is_not_recommended() -> None:
    """The dear one delivers more only by chance; at the same cost as the winner nobody is cheaper."""
    ranking = Runs().add("a", [0.90, 0.91, 0.90], 0.2).add("b", [0.50, 0.51, 0.50], 0.2).ranking()
    assert "times the cost" not in verdict_words(ranking)
    ranking = Runs().add("a", [0.90, 0.91, 0.90], 0.2).add("b", [0.50, 0.51, 0.50], 0.19).ranking()
    assert "b delivers 40.0 points less at 0.95 times the cost" in verdict_words(ranking)


def test_cost_is_airtime_or_bytes_or_not_reported() -> None:
    runs = Runs().add("a", [0.9, 0.91], bytes_per_delivery=12_345.0)
    runs.figures = [one for one in runs.figures if one["metric"] != "airtime_mean"]
    assert verdict_words(runs.ranking()).startswith("a delivers 90.5 % of the expected for 12.3 k bytes a delivery.")
    runs.figures = [one for one in runs.figures if one["metric"] == "delivery_ratio"]
    assert verdict_words(runs.ranking()) == "a delivers 90.5 % of the expected. 2 seeds."


def test_what_cannot_be_ranked_says_why() -> None:
    assert board_words(Leaderboard((), ())) == "No run is finished."
    runs = Runs().add("a", [0.5])
    runs.figures = [one for one in runs.figures if one["metric"] != "delivery_ratio"]
    assert board_words(runs.board()) == verdict_words(runs.ranking()) == NOTHING


@pytest.mark.parametrize("points", [3, 4])
def test_three_points_are_reported_one_by_one_and_four_are_counted(points: int) -> None:
    runs = Runs()
    for place in range(points):
        keys = {"changed": {"medium.range_m": place + 1.0}, "base": {"medium.range_m": 0.0}}
        runs.add("a", [0.9, 0.91, 0.92], **keys)
        runs.add("b", [0.9, 0.91, 0.92] if place == 0 else [0.5, 0.51, 0.52], 0.2, **keys)
    words = board_words(runs.board())
    if points == 3:
        assert words.startswith("city (medium.range_m=1): a delivers 91.0 % of the expected at 10.0 % airtime; as much")
        assert words.count("city (medium.range_m=") == 3
    else:
        assert words == (
            "Delivers most, or as much as the best for the least cost: a at 4 of 4 points (1 of them tied). Each "
            "network and each value of a swept key is a point of its own."
        )


def test_columns_are_shown_that_have_a_figure_in_some_row() -> None:
    rows = Runs().add("a", [0.9, 0.8], precision=1.0).add("b", [0.9, 0.8], hops=2.0).board().rows
    assert [column.metric for column in columns_with_figures(rows)] == [
        "delivery_ratio",
        "precision",
        "airtime_mean",
        "hops",
    ]


def test_a_point_is_named_by_trace_window_keys_and_version() -> None:
    keys = {"a": 5.0, "b": "x", "c": 2.5, "d": True}
    point = ScenarioPoint("id", "city", keys, NETWORK, "town.xml", "0 to 60 s", "abc123")
    assert point_words(point) == "city (town.xml, 0 to 60 s, a=5, b=x, c=2.5, d=true, version abc123)"
    assert point_words(point, ["c"]) == "city (town.xml, 0 to 60 s, c=2.5, version abc123)"
    assert point_words(ScenarioPoint("id", "city", {}, NETWORK)) == "city"


def test_a_heading_counts_seeds() -> None:
    assert ranking_heading(Runs().add("a", [0.9]).ranking()) == f"city on {NETWORK}, 1 seed"
    assert ranking_heading(Runs().add("a", [0.9] * 3).ranking()) == f"city on {NETWORK}, 3 seeds"


def test_what_protocols_were_given_is_said_once_for_each() -> None:
    runs = Runs().add("a", [0.9]).add("b", [0.9]).add("c", [0.9]).add("d", [0.9])
    for row, assumes in zip(runs.rows, ("ideal routing", "", "ideal routing", "reactive routing"), strict=True):
        row["assumes"] = assumes
    assert assumption_words(runs.board().rows) == (
        "a and c had ideal routing (the most favourable case: shortest paths, known to all nodes at no cost). d had "
        "reactive routing."
    )


def test_more_that_arrives_is_better_and_less_of_what_it_costs() -> None:
    better: dict[int, set[str]] = {}
    for column in BOARD_COLUMNS:
        better.setdefault(column.better, set()).add(column.metric)
    assert better.pop(1) == {"delivery_of_reachable", "delivery_ratio", "precision", "fairness"}
    assert better.pop(0) == {"hops", "ceiling", "ceiling_at_once", "missed_impossible"}
    assert list(better) == [-1], "the rest is cost, time or loss"


def test_the_delivery_that_every_row_has_decides() -> None:
    """The reachable deliveries of one are known, and it delivers less of all."""
    runs = Runs().add("a", [0.5, 0.5], delivery_of_reachable=1.0).add("b", [0.9, 0.9])
    ranking = runs.ranking()
    assert names(ranking) == ["b", "a"]
    assert ranking.verdict is not None
    assert ranking.verdict.delivery_metric == "delivery_ratio"


# By key.


def test_figures_by_key_are_means_over_seeds_and_what_a_run_never_had_counts_as_none_of_it() -> None:
    runs = Runs().add("flooding", [0.9, 0.8]).add("cbf", [0.7, 0.6])
    figures = [
        {"run": run, "metric": "drops", "key": key, "value": value}
        for run, key, value in (
            ("run-0", "expired", 4.0), ("run-1", "expired", 2.0), ("run-0", "queue-full", 6.0),
            ("run-3", "expired", 8.0), ("gone", "expired", 99.0),
        )
    ]  # fmt: skip
    reported = [
        (row.variant, row.protocol, row.key, row.figures["drops"].mean)
        for row in keyed_rows(runs.rows, figures, "reason")
    ]
    assert reported == [
        ("cbf", "cbf", "expired", 4.0), ("flooding", "flooding", "expired", 3.0),
        ("flooding", "flooding", "queue-full", 3.0),
    ]  # fmt: skip
    by_node = keyed_rows(runs.rows, figures, "node")
    assert [row.figures["drops"].mean for row in by_node] == [8.0, 3.0, 6.0], (
        "what nobody measured of a node is no zero"
    )
    assert by_node[0].point == keyed_rows(runs.rows, figures, "reason")[0].point


def test_keys_that_are_numbers_stand_by_their_size_and_before_texts() -> None:
    runs = Runs().add("flooding", [0.9])
    figures = [{"run": "run-0", "metric": "lost", "key": key, "value": 1.0} for key in ("b", "10", "9", "-1", "a 5")]
    assert [row.key for row in keyed_rows(runs.rows, figures, "minute")] == ["-1", "9", "10", "a 5", "b"]
    swept = Runs()
    for count in (100, 20, 3):
        swept.add("flooding", [0.9], changed={"nodes": count}, base={"nodes": 7})
    assert [ranking.point.keys["nodes"] for ranking in swept.board().rankings] == [3, 20, 100]


def test_rankings_by_event_type_need_two_types_and_compare_what_ranks() -> None:
    one = Runs().add("flooding", [0.9, 0.8]).by_types(News=[0.9, 0.8])
    assert one.ranking().by_type == ()
    two = Runs()
    for protocol in ("flooding", "cbf"):
        two.add(protocol, [0.9, 0.8], latency_p95_s=0.5).by_types(News=[0.9, 0.8], Alert=[0.5, 0.4])
    news = next(ranking for ranking in two.ranking().by_type if ranking.event_type == "News")
    assert {*two.ranking().rows[0].ties} == {"delivery_ratio", "airtime_mean", "latency_p95_s"}
    assert {*news.rows[0].ties} == {"delivery_ratio", "airtime_mean"}
    assert "latency_p95_s" not in news.rows[0].figures, "of the whole run, only what it sent stands beside a type"


def test_the_front_stands_by_falling_delivery() -> None:
    runs = Runs()
    for protocol, delivery, airtime in (("a", 0.99, 0.4), ("b", 0.9, 0.2), ("c", 0.5, 0.1), ("d", 0.4, 0.3)):
        runs.add(protocol, [delivery] * 3, airtime)
    ranking = runs.ranking()
    assert ranking.verdict is not None
    assert ranking.verdict.winner == "a"
    assert [(one.variant, one.cost_ratio) for one in ranking.verdict.front] == [
        ("b", pytest.approx(0.5)), ("c", pytest.approx(0.25)),
    ]  # fmt: skip
    assert [row.variant for row in ranking.rows if row.on_front] == ["a", "b", "c"]


def test_where_windows_are_repeats_deliveries_are_compared_by_their_difference() -> None:
    """In both windows the second delivers two points more: that is no chance, though the factors are far apart."""
    runs = Runs()
    for protocol, delivery in (("flooding", [0.90, 0.0090]), ("cbf", [0.92, 0.0291])):
        runs.add(protocol, delivery, trace="town", window="2 unseen windows")
    (ranking,) = board_of([{**row, "point": "2 unseen windows"} for row in runs.rows], runs.figures).rankings
    assert ranking.point.repeats == "window"
    assert [(row.variant, row.rank, "delivery_ratio" in row.ties) for row in ranking.rows] == [
        ("cbf", 1, False), ("flooding", 2, False),
    ]  # fmt: skip


def test_a_csv_line_names_settings_in_order_and_who_ties() -> None:
    runs = Runs().add("flooding", [0.9, 0.8], settings={"b": 2, "a": 1}).add("cbf", [0.9, 0.8])
    lines = [
        line for line in csv.DictReader(io.StringIO(board_csv(runs.board()))) if line["metric"] == "delivery_ratio"
    ]
    assert {line["protocol"]: (line["settings"], line["ties"]) for line in lines} == {
        "flooding": ('{"a": 1, "b": 2}', "cbf"), "cbf": ("{}", "flooding b=2 a=1"),
    }  # fmt: skip


def test_a_chart_names_only_the_other_keys_that_are_swept() -> None:
    runs = Runs()
    for nodes in (10, 20):
        for range_m in (50, 100):
            runs.add("flooding", [0.9], changed={"nodes": nodes, "range_m": range_m, "speed": 3}, base={})
    charts = {chart.axis: chart for chart in runs.board().charts}
    assert [line.fixed for line in charts["nodes"].lines] == [{"range_m": 50}, {"range_m": 100}]


def test_metrics_of_other_people_get_columns_and_never_those_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = dict(leaderboard.COLUMN)
    monkeypatch.setattr(outside_metrics, "_outside", {})
    monkeypatch.setattr(outside_metrics, "COLUMN", columns := dict(ours))

    def learn(name: str, title: str) -> None:
        about = {"title": title, "unit": "J", "better": -1, "most": None}
        outside_metrics.learn_columns([{"metric": name, "key": json.dumps(about)}])

    learn("joules", "energy")
    learn("delivery_ratio", "energy")
    assert {name for name in columns if columns[name] is not ours.get(name)} == {"joules"}
    assert (columns["joules"].title, columns["joules"].unit) == ("energy", "J")
    learn("joules", "energy spent")
    assert columns["joules"].title == "energy spent", "the lake's latest words count"
