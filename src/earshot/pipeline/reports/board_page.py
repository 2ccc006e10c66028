"""The report's parts about a leaderboard: the answer, the picture, ranked bars, the table, sweeps, advice.

Takes the leaderboard's plain values, gives parts of a page. What a reader asks first stands first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earshot.pipeline.advice import advice_text as text
from earshot.pipeline.advice.advise import Advice
from earshot.pipeline.advice.search import Standing, TunedProtocol
from earshot.pipeline.campaigns.board_text import NOTHING_DELIVERED, TIE, best_of, point_words, verdict_words
from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.campaigns.leaderboard import (
    COLUMN,
    BoardRow,
    BoardVerdict,
    Ranking,
    SweepChart,
    SweepLine,
)
from earshot.pipeline.reports.charts import (
    ChartLine,
    Measure,
    Spot,
    bar,
    bubble_key,
    dash_key,
    delivery_against_cost,
    line_chart,
)
from earshot.pipeline.reports.page import PageBlock, PageCell, PageFigure, PageFold, PageTable, PageVerdict, PageWords
from earshot.pipeline.reports.svg import Mark
from earshot.words import listed, percent

Marks = Mapping[str, Mark]

AIRTIME = {"airtime_mean", "airtime_busiest"}
COSTS = ("airtime_mean", "bytes_per_delivery", "cost")
"What the picture's horizontal axis shows: the first that the rows have."
RANKED = ("delivery", "airtime_mean", "latency_p95_s", "bytes_per_delivery")
"The metrics that have ranked bars; `delivery` is what the ranking is by."
SHOWN = (
    "delivery",
    "precision",
    "airtime_mean",
    "airtime_busiest",
    "latency_p50_s",
    "latency_p95_s",
    "bytes_per_delivery",
)
"The table's columns; the others stand behind a click."
ON_A_PHONE = ("delivery", "airtime_mean", "latency_p95_s")
MOST_TYPES = 12
"At most this number of event types stand in the answer; the others only in their table."
MOST_NAMED = 3
"At most this number of ties are named in the headline."
SWEPT = ("delivery_of_reachable", "delivery_ratio", "airtime_mean", "latency_p95_s", "bytes_per_delivery")


def measure_of(metric: str) -> Measure:
    """How a metric's numbers are written."""
    column = COLUMN[metric]
    unit = "percent" if metric in AIRTIME else "share" if column.bounds[1] == 1.0 else column.unit
    return Measure(column.title, unit)


@dataclass(frozen=True)
class RankingView:
    """A ranking with the marks of its page."""

    ranking: Ranking
    marks: Marks

    @property
    def rows(self) -> Sequence[BoardRow]:
        return self.ranking.rows

    @property
    def network(self) -> str:
        return self.ranking.point.network

    @property
    def keys(self) -> Mapping[str, Any]:
        return self.ranking.point.keys

    def title_without(self, shared: Iterable[str]) -> str:
        """The point by the keys that are not shared by all."""
        return point_words(self.ranking.point, [name for name in self.keys if name not in set(shared)])

    def name_without(self, shared: Iterable[str]) -> str:
        """The point and its network."""
        return f"{self.title_without(shared)} over {self.network}"

    @property
    def delivery(self) -> str:
        """The metric the ranking is by."""
        verdict = self.ranking.verdict
        return verdict.delivery_metric if verdict else "delivery_ratio"

    def metric(self, name: str) -> str:
        return self.delivery if name == "delivery" else name

    def name(self, row: BoardRow) -> PageCell:
        """The row's name, with what the protocol was given beyond the radio."""
        return PageCell(row.variant, note=row.assumes, mark=self.marks[row.variant])


def plain(value: Any) -> str:
    """A key's value, a whole number without decimals."""
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- the answer


def common_keys(views: Sequence[RankingView]) -> dict[str, Any]:
    """The scenario keys that have one value in all rankings."""
    first = views[0].ranking.point.keys if views else {}
    return {name: value for name, value in first.items() if all(view.keys.get(name) == value for view in views)}


def answers(views: Sequence[RankingView]) -> list[PageBlock]:
    """Many verdicts: who wins how often, and a line each."""
    judged = [(view, verdict) for view in views if (verdict := view.ranking.verdict)]
    shared = common_keys(views)
    wins = Counter(verdict.winner for _, verdict in judged).most_common()
    winners = [f"{winner} at {count} of {len(judged)} points" for winner, count in wins]
    words = f"Delivers most, or as much as the best for the least cost: {listed(winners)}."
    lines = [
        [
            view.title_without(shared),
            view.ranking.point.network,
            PageCell(verdict.winner, mark=view.marks[verdict.winner]),
            figure_cell(verdict.delivery, measure_of(verdict.delivery_metric)),
            listed(verdict.ties) or "none",
            figure_cell(verdict.cost, measure_of(verdict.cost_metric)) if verdict.cost_metric else "",
            figure_cell(verdict.ceiling, measure_of("ceiling")) if verdict.ceiling else "",
        ]
        for view, verdict in judged
    ]
    costs = {verdict.cost_metric for _, verdict in judged if verdict.cost_metric}
    cost = COLUMN[costs.pop()].title if len(costs) == 1 else "its cost"
    header = ["point", "network", "delivers most", "delivered", "ties with", cost, "reachable at all"]
    if not any(verdict.ceiling for _, verdict in judged):
        header, lines = header[:-1], [line[:-1] for line in lines]
    leader = f"{wins[0][0]} leads at {wins[0][1]} of {len(judged)} points" if wins else ""
    mark = views[0].marks[wins[0][0]] if wins else None
    return [PageVerdict("", leader, mark, words), PageTable("answers", header, lines, less=(1, 4, 6))]


def verdict_block(view: RankingView, heading: str, more: Sequence[str] = ()) -> PageVerdict:
    """Who wins, in words and for each event type; `more` are further sentences."""
    verdict = view.ranking.verdict
    if verdict is None:
        return PageVerdict(heading, "", None, verdict_words(view.ranking))
    first = headline(verdict) if len(view.rows) > 1 else f"{verdict.winner} ran alone on this network"
    words = " ".join([verdict_words(view.ranking), *more])
    return PageVerdict(heading, first, view.marks[verdict.winner], words, _types_in_a_word(view))


def _types_in_a_word(view: RankingView) -> list[tuple[str, Mark]]:
    """The winner of each event type with its delivery, and how many it ties with."""
    found = []
    for ranked in view.ranking.by_type:
        if (verdict := ranked.verdict) and len(view.rows) > 1:
            if verdict.delivery.mean == 0.0:
                found.append((f"{ranked.event_type}: nothing delivered", view.marks[verdict.winner]))
                continue
            tied = f" {TIE} {len(verdict.ties)} others" if len(verdict.ties) > 1 else ""
            tied = f" {TIE} {verdict.ties[0]}" if len(verdict.ties) == 1 else tied
            delivered = measure_of(verdict.delivery_metric).label(verdict.delivery.mean)
            found.append((f"{ranked.event_type}: {verdict.winner} {delivered}{tied}", view.marks[verdict.winner]))
    return found if len(found) <= MOST_TYPES else []


def headline(verdict: BoardVerdict) -> str:
    """The winner and its ties in one line."""
    if verdict.delivery.mean == 0.0:
        return NOTHING_DELIVERED
    if not verdict.ties:
        return f"{verdict.winner} delivers most"
    first = f"{listed([verdict.winner, *_named(verdict.ties)])} deliver most"
    if verdict.cost_metric is None:
        return first
    if not verdict.cost_ties:
        return f"{first}; of these, {verdict.winner} costs least"
    if len(verdict.cost_ties) == len(verdict.ties):
        return f"{first}, at costs that do not differ"
    return f"{first}; of these, {listed([verdict.winner, *_named(verdict.cost_ties)])} cost least"


def _named(others: Sequence[str]) -> list[str]:
    return list(others) if len(others) <= MOST_NAMED else [f"{len(others)} others"]


def types_table(view: RankingView) -> list[PageBlock]:
    """The verdict for each event type, where there are several."""
    rows = []
    for ranked in view.ranking.by_type:
        verdict = ranked.verdict
        if verdict is None:
            continue
        measure = measure_of(verdict.delivery_metric)
        behind = ""
        if verdict.next and verdict.lead:
            behind = f"{verdict.next}, {100 * verdict.lead.mean:.1f} points less"
        ceiling = verdict.ceiling.mean if verdict.ceiling else math.nan
        rows.append(
            [
                PageCell(ranked.event_type, css="short"),
                PageCell(verdict.winner, mark=view.marks[verdict.winner]),
                figure_cell(verdict.delivery, measure),
                listed(verdict.ties) or "none",
                behind or "none",
                PageCell("" if math.isnan(ceiling) else ceiling, percent(ceiling), css="number"),
            ]
        )
    header = ["event type", "delivers most", "delivered", "ties with", "the next", "reachable at all"]
    if all(ranked.verdict is None or ranked.verdict.ceiling is None for ranked in view.ranking.by_type):
        header, rows = header[:-1], [row[:-1] for row in rows]
    note = "Of those that deliver as much as the best, the one with the least traffic in the whole run is named."
    return [PageTable("event-types", header, rows, note, less=(3, 5))] if rows else []


def figure_cell(figure: Figure | None, measure: Measure, note: str = "", css: str = "number") -> PageCell:
    """A mean with its interval in small; a dash where there is none."""
    if figure is None:
        return PageCell(None, "–", css=css)
    words = measure.words(figure)
    value, _, around = words.partition(" (")
    return PageCell(figure.mean, value + note, around.removesuffix(")"), css=css)


# -- the picture


def picture(view: RankingView) -> list[PageBlock]:
    """Delivery against cost, latency as bubbles, with the front."""
    cost = next((metric for metric in COSTS if any(metric in row.figures for row in view.rows)), None)
    rows = [row for row in view.rows if cost in row.figures and view.delivery in row.figures]
    if cost is None or len(rows) < 2:
        return []
    spots = [
        Spot(
            row.variant,
            view.marks[row.variant],
            row.figures[view.delivery],
            row.figures[cost],
            row.figures["latency_p95_s"].mean if "latency_p95_s" in row.figures else math.nan,
            row.on_front,
        )
        for row in rows
    ]
    delivery, price = measure_of(view.delivery), measure_of(cost)
    price = Measure(
        "airtime (share of the channel's time, mean over nodes)" if cost == "airtime_mean" else price.title, price.unit
    )
    note = (
        "Up and to the left is better. The dashed line is the Pareto front: no protocol delivers more for less. "
        "Crosses are 95 % confidence intervals; bubbles are the latency of the slowest 5 %:"
    )
    short = Measure("airtime" if cost == "airtime_mean" else price.title, price.unit)
    return [
        PageFigure(
            "",
            delivery_against_cost(spots, delivery, price, 1080, 430),
            phone=delivery_against_cost(spots, delivery, short, 366, 400),
            note=note,
            extra=bubble_key(),
            wide=True,
        )
    ]


# -- bars and table


def ranked_bars(view: RankingView) -> list[PageBlock]:
    """One figure a metric, best first."""
    figures: list[PageBlock] = []
    for name in RANKED:
        metric = view.metric(name)
        rows = [row for row in view.rows if metric in row.figures]
        if not rows:
            continue
        column, measure = COLUMN[metric], measure_of(metric)
        rows = sorted(rows, key=lambda row: (-column.better * row.figures[metric].mean, row.rank))
        best = best_of(rows, metric)
        largest = max(row.figures[metric].mean for row in rows)
        ends = [row.figures[metric].high for row in rows if row.figures[metric].has_interval]
        most = 1.0 if name == "delivery" else min(max([largest, *ends]), 1.4 * largest)
        lines = [
            [
                view.name(row),
                PageCell(row.figures[metric].mean, " ", drawing=_bar(view, row, metric, most)),
                figure_cell(row.figures[metric], measure, _tie(row, metric, best)),
            ]
            for row in rows
        ]  # fmt: skip
        better = "more is better" if column.better > 0 else "less is better"
        table = PageTable(
            f"ranked-{metric}", ["protocol", "", column.title], lines, css="bars", data=bars_data(rows, metric)
        )
        figures.append(PageFigure(f"{column.title}: {better}", "", shown=table))
    return figures


def _bar(view: RankingView, row: BoardRow, metric: str, most: float) -> str:
    return bar(row.figures[metric], most, view.marks[row.variant], _ceiling(row, metric))


def bars_data(rows: Sequence[BoardRow], metric: str) -> PageTable:
    """What a ranking's bars show, for a download."""
    figures = [(row.variant, row.figures[metric]) for row in rows]
    lines = [[name, figure.mean, figure.low, figure.high, figure.seeds] for name, figure in figures]
    return PageTable(metric, ["protocol", metric, "low", "high", "seeds"], lines)


def _ceiling(row: BoardRow, metric: str) -> float:
    ceiling = row.figures.get("ceiling")
    return ceiling.mean if ceiling and metric == "delivery_ratio" else math.nan


def _tie(row: BoardRow, metric: str, best: BoardRow | None) -> str:
    return f" {TIE}" if best is not None and best.variant in row.ties.get(metric, ()) else ""


def figures_table(view: RankingView) -> PageTable:
    """One line for each protocol, best first; the columns that decide, the others behind a click."""
    shown = [view.metric(name) for name in SHOWN]
    present = {column.metric for column in COLUMN.values() if any(column.metric in row.figures for row in view.rows)}
    metrics = [metric for metric in dict.fromkeys(shown) if metric in present]
    metrics += [
        column.metric for column in COLUMN.values() if column.metric in present and column.metric not in metrics
    ]
    header = ["#", "protocol", *(COLUMN[metric].title for metric in metrics)]
    lines = []
    for row in view.rows:
        line = [PageCell(row.rank, css="number"), view.name(row)]
        for metric in metrics:
            best = best_of(view.rows, metric)
            is_best = best is not None and best.variant == row.variant and len(view.rows) > 1
            css = "number best" if is_best else "number"
            line.append(figure_cell(row.figures.get(metric), measure_of(metric), _tie(row, metric, best), css))
        lines.append(line)
    more = [2 + number for number, metric in enumerate(metrics) if metric not in shown]
    phone = {view.metric(name) for name in ON_A_PHONE}
    less = [0, *(2 + number for number, metric in enumerate(metrics) if metric in shown and metric not in phone)]
    seeds = {figure.seeds for row in view.rows for figure in row.figures.values()}
    over = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    what = view.ranking.point.repeats
    note = (
        f"Means over {over} {what}s, below them 95 % confidence intervals. {TIE}: it does not differ significantly "
        "from the best."
    )
    if seeds == {1}:
        note = f"One {what}: no intervals, and differences may be chance."
    return PageTable("leaderboard", header, lines, note, more=more, less=less, data=figures_data(view))


def figures_data(view: RankingView) -> PageTable:
    """The table's facts for programs: a line a protocol and metric, all that were measured."""
    lines = [
        [
            row.variant,
            row.point.network,
            name,
            figure.mean,
            figure.low,
            figure.high,
            figure.seeds,
            " ".join(row.ties.get(name, ())),
        ]
        for row in view.rows
        for name, figure in sorted(row.figures.items())
    ]
    return PageTable("leaderboard", ["protocol", "network", "metric", "mean", "low", "high", "seeds", "ties"], lines)


# -- sweeps


def sweep_figures(chart: SweepChart, marks: Marks) -> list[PageBlock]:
    """A figure a metric over one swept key; lines of one protocol differ by their dashes."""
    fixed = list(dict.fromkeys(_fixed(line) for line in chart.lines))
    x = Measure(chart.axis, "")
    metrics = [metric for metric in SWEPT if any(line.points(metric) for line in chart.lines)]
    if "delivery_of_reachable" in metrics:
        metrics.remove("delivery_ratio")
    keys = [(name, marks[name], "") for name in dict.fromkeys(line.variant for line in chart.lines)]
    dashes = "".join(dash_key(number, words) for number, words in enumerate(fixed) if words)
    figures: list[PageBlock] = []
    for metric in metrics:
        measure = measure_of(metric)
        lines = [
            ChartLine(line.variant, marks[line.variant], line.points(metric), fixed.index(_fixed(line)), _fixed(line))
            for line in chart.lines
        ]
        drawn = line_chart(lines, x, measure, bounded=COLUMN[metric].bounds[1] == 1.0)
        rows = [
            [line.name, line.note, value, figure.mean, figure.low, figure.high, figure.seeds]
            for line in lines
            for value, figure in line.points
        ]
        header = ["protocol", "at", chart.axis, measure.title, "low", "high", "seeds"]
        table = PageTable(f"{chart.axis}-{metric}", header, rows)
        title = f"{measure.title} by {chart.axis}"
        figures.append(PageFigure(title, drawn, keys=keys, extra=dashes, table=table))
    return figures


def _fixed(line: SweepLine) -> str:
    return ", ".join(f"{name} = {plain(value)}" for name, value in line.fixed.items())


def advice_blocks(advice: Advice, marks: Marks) -> list[PageBlock]:
    """The recommendation in words, its settings, and the rounds of the search behind a click."""
    headline = f"Use {text.candidate_words(advice.chosen)}"
    first, *rest = text.advice_words(advice)
    expected = first.partition(": ")[2]
    blocks: list[PageBlock] = [
        PageVerdict("", headline, marks[advice.names[advice.chosen]], f"{expected[:1].upper()}{expected[1:]}"),
        *(PageWords(words) for words in rest),
    ]
    header, rows = text.judged_table(advice)
    blocks.append(PageTable("judged", header, rows, "On the windows that the search did not see, best first."))
    if reasons := text.reasons_words(advice):
        blocks.append(PageFold("Why these settings", [PageWords(words) for words in reasons]))
    blocks.append(PageFold("advice.toml, for your nodes", [PageTable("settings", *_settings(advice))]))
    rounds = [_round(number, advice) for number in range(len(advice.search.rounds))]
    blocks.append(PageFold("How the search went", rounds))
    return blocks


def _settings(advice: Advice) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = [["protocol", advice.chosen.protocol]]
    rows += [[name, value] for name, value in sorted(advice.chosen.settings.items())]
    rows += [[f"network: {name}", value] for name, value in text.network_facts(advice).items()]
    return ["setting", "value"], rows


def _round(number: int, advice: Advice) -> PageTable:
    search_round = advice.search.rounds[number]
    header = ["#", "candidate", "delivery of the reachable", "cost", "latency p95 (s)"]
    rows = [_row(place, standing) for place, standing in enumerate(search_round.standings, 1)]
    words = f"Round {number + 1}: {listed([str(window) for window in search_round.windows])}."
    if search_round.failed:
        words += f" Not judged: {listed([_failed(candidate, advice) for candidate in search_round.failed])}."
    return PageTable(f"round-{number + 1}", header, rows, words)


def _failed(candidate: TunedProtocol, advice: Advice) -> str:
    reason = advice.failed.get(candidate) or advice.left_out.get(candidate.protocol)
    return f"{candidate} ({reason})" if reason else str(candidate)


def _row(place: int, standing: Standing) -> list[object]:
    mean = standing.mean
    return [
        place,
        str(standing.candidate),
        PageCell(mean.delivery, f"{mean.delivery:.3f}", css="number"),
        PageCell(mean.cost, f"{mean.cost:.4g}", css="number"),
        PageCell(mean.latency_s, f"{mean.latency_s:.3g}", css="number"),
    ]
