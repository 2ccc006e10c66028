"""A leaderboard as people and programs read it: words, tables, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.campaigns.leaderboard import (
    COLUMN,
    COLUMNS,
    DELIVERY,
    BoardColumn,
    BoardRow,
    BoardVerdict,
    FrontRow,
    Leaderboard,
    Ranking,
    ScenarioPoint,
    SweepChart,
)
from earshot.words import counted, listed, rounded_percent

BUILT_IN = {column.metric for column in COLUMNS}
TIE = "≈"
"Marks a figure that does not differ significantly from the best one of its column."
FEW = 3
"At most this number of points are listed one by one."
IN_PERCENT = ("airtime_mean", "airtime_busiest")
"Shares that are mostly far below one."
ENOUGH = 5
"With fewer seeds intervals are so wide that ties say little."
NOTHING_DELIVERED = "No protocol delivered anything"
NARROW = (
    "delivery_of_reachable",
    "delivery_ratio",
    "airtime_mean",
    "airtime_busiest",
    "precision",
    "cost",
    "latency_p50_s",
    "latency_p95_s",
    "bytes_per_delivery",
)
"The columns of a terminal's table, the most wanted first."


def short(value: float) -> str:
    """A number with three digits, as tables show it."""
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.3g}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.2e}"


def number(figure: Figure | None, in_percent: bool = False) -> str:
    """A figure with the wider half of its interval."""
    if figure is None:
        return "-"
    parts = [figure.mean]
    if figure.has_interval:
        parts.append(max(figure.mean - figure.low, figure.high - figure.mean))
    if in_percent:
        return " ± ".join(f"{100 * part:.2g}" for part in parts) + " %"
    return " ± ".join(map(short, parts))


def percent(figure: Figure) -> str:
    """A mean share in percent."""
    return rounded_percent(figure.mean)


def point_words(point: ScenarioPoint, keys: Iterable[str] | None = None) -> str:
    """The point as headings name it, without its network; with `keys`, only these of its keys."""
    shown = [f"{name}={_value(value)}" for name, value in point.keys.items() if keys is None or name in set(keys)]
    place = [part for part in (point.trace, point.window) if part]
    version = [f"version {point.version}"] if point.version else []
    details = ", ".join([*place, *shown, *version])
    return f"{point.scenario} ({details})" if details else point.scenario


def _value(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def verdict_words(ranking: Ranking) -> str:
    """The verdict in words: winner, ties, by how much, at what cost, how far below the ceiling."""
    verdict = ranking.verdict
    if verdict is None:
        return "No delivery was expected, so nothing can be ranked."
    if verdict.delivery.mean == 0.0:
        return NOTHING_DELIVERED + "."
    sentences = [_winner_words(ranking) + _lead(verdict)]
    if cheaper := [row for row in verdict.front if row.cost_ratio < 1 and row.variant not in verdict.ties]:
        other = cheaper[0]
        lost = f"{-100 * other.delivery.mean:.1f} points less" if other.delivery else "less"
        sentences.append(f"{other.variant} delivers {lost} at {other.cost_ratio:.2g} times the cost")
    if verdict.ceiling is not None:
        reach = f"Reachable at all: {percent(verdict.ceiling)}"
        if verdict.headroom is not None:
            delivered = verdict.ceiling.mean - verdict.headroom.mean
            reach += f" of the expected deliveries; {verdict.winner} made {100 * delivered:.1f} %"
        sentences.append(reach)
    sentences.append(_repeats_words(verdict, ranking.point.repeats))
    return ". ".join(sentences) + "."


def _repeats_words(verdict: BoardVerdict, what: str) -> str:
    """How many seeds or windows there were, and whether they can decide."""
    if verdict.seeds == 1:
        return f"One {what}: differences may be chance"
    if verdict.ties and verdict.seeds < ENOUGH:
        return f"{verdict.seeds} {what}s are too few to order what ties; more may order it"
    return f"{verdict.seeds} {what}s"


def _winner_words(ranking: Ranking) -> str:
    """Who delivers most, how much, at what cost, and who ties."""
    verdict = ranking.verdict
    assert verdict is not None
    of_what = "of the reachable" if verdict.delivery_metric == "delivery_of_reachable" else "of the expected"
    cost = _at_cost(verdict.cost_metric, verdict.cost)
    return f"{verdict.winner} delivers {percent(verdict.delivery)} {of_what}{cost}{_ties(ranking, verdict)}"


def board_words(board: Leaderboard) -> str:
    """The whole board in a sentence or two: its verdict, who wins at each of a few points, or at how many of many."""
    judged = [ranking for ranking in board.rankings if ranking.verdict is not None]
    if not judged:
        return "No delivery was expected, so nothing can be ranked." if board.rankings else "No run is finished."
    if len(judged) == 1:
        return verdict_words(judged[0])
    if len(judged) <= FEW:
        return " ".join(f"{_place(ranking, board)}: {_winner_words(ranking)}." for ranking in judged)
    winners = Counter(ranking.verdict.winner for ranking in judged if ranking.verdict)
    alone = Counter(ranking.verdict.winner for ranking in judged if ranking.verdict and not ranking.verdict.ties)
    wins = []
    for name, count in winners.most_common():
        tied = f" ({count - alone[name]} of them tied)" if alone[name] < count else ""
        wins.append(f"{name} at {count} of {len(judged)} points{tied}")
    return (
        f"Delivers most, or as much as the best for the least cost: {listed(wins)}. "
        "Each network and each value of a swept key is a point of its own."
    )


def _place(ranking: Ranking, board: Leaderboard) -> str:
    """What distinguishes a ranking's point from the others of the board."""
    point, others = ranking.point, [one.point for one in board.rankings]
    keys = [name for name, value in point.keys.items() if any(one.keys.get(name) != value for one in others)]
    place = point_words(replace(point, trace="", window=""), keys)
    return f"{place} on {point.network}" if len({one.network for one in others}) > 1 else place


def ranking_heading(ranking: Ranking) -> str:
    """What a ranking is about: point, network, seeds and ceiling."""
    seeds = {figure.seeds for row in ranking.rows for figure in row.figures.values()}
    what = ranking.point.repeats
    ceiling = next((row.figures["ceiling"] for row in ranking.rows if "ceiling" in row.figures), None)
    reach = f", reachable at all: {percent(ceiling)}" if ceiling else ""
    return f"{point_words(ranking.point)} on {ranking.point.network}, {counted(max(seeds, default=0), what)}{reach}"


MOST_FAVOURABLE = "the most favourable case: shortest paths, known to all nodes at no cost"


def assumption_words(rows: Iterable[BoardRow]) -> str:
    """Which protocols were given something beyond the radio; empty where none was."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.assumes:
            names.setdefault(row.assumes, {})[row.variant] = None
    return " ".join(
        f"{listed(list(some))} had {assumes}{f' ({MOST_FAVOURABLE})' if assumes == 'ideal routing' else ''}."
        for assumes, some in names.items()
    )


def _at_cost(metric: str | None, cost: Figure | None) -> str:
    if metric is None or cost is None:
        return ""
    return f" at {percent(cost)} airtime" if metric == "airtime_mean" else f" for {short(cost.mean)} bytes a delivery"


def _ties(ranking: Ranking, verdict: BoardVerdict) -> str:
    if not verdict.ties:
        return ""
    figures = {row.variant: row.figures for row in ranking.rows}
    costs = [
        f"{name} ({_at_cost(verdict.cost_metric, figures[name].get(verdict.cost_metric or '')).strip()})"
        if verdict.cost_metric
        else name
        for name in verdict.ties
    ]
    return f"; as much as {listed(costs)}"


def _lead(verdict: BoardVerdict) -> str:
    if verdict.next is None or verdict.lead is None:
        return ""
    return f"; {100 * verdict.lead.mean:.1f} points more than {verdict.next}, the next"


def columns_with_figures(rows: Sequence[BoardRow]) -> list[BoardColumn]:
    """The columns that have a figure in some row."""
    return [column for column in COLUMN.values() if any(column.metric in row.figures for row in rows)]


def heading(column: BoardColumn) -> str:
    """The column's title with its unit."""
    return f"{column.title} ({column.unit})" if column.unit else column.title


def cell(row: BoardRow, metric: str, best: BoardRow | None) -> str:
    """A figure, marked where it ties with the best row of its column."""
    tied = best is not None and row.variant != best.variant and best.variant in row.ties.get(metric, ())
    return number(row.figures.get(metric), in_percent=metric in IN_PERCENT) + (f" {TIE}" if tied else "")


def best_of(rows: Iterable[BoardRow], metric: str) -> BoardRow | None:
    """The best row of a column; None where it depends."""
    better = COLUMN[metric].better
    with_figure = [row for row in rows if better and metric in row.figures]
    return max(with_figure, key=lambda row: better * row.figures[metric].mean, default=None)


def ranking_table(
    ranking: Ranking, metrics: Sequence[str] = (), most: int | None = None
) -> tuple[list[str], list[list[str]]]:
    """Header and rows, best first; of these metrics or of all, and with columns that fit into `most` characters."""
    return points_table(Leaderboard((ranking,), ()), metrics, most)


def points_table(
    board: Leaderboard, metrics: Sequence[str], most: int | None = None
) -> tuple[list[str], list[list[str]]]:
    """All rankings as one table, a line a point and protocol: what differs between the points, then the figures."""
    points = [ranking.point for ranking in board.rankings]
    about: dict[str, list[str]] = {
        "scenario": [point.scenario for point in points],
        "trace": [point.trace for point in points],
        "window": [point.window for point in points],
        "version": [point.version for point in points],
        **{name: [_value(point.keys.get(name)) for point in points] for point in points for name in point.keys},
        "network": [point.network for point in points],
    }
    differing = {name: values for name, values in about.items() if len(set(values)) > 1}
    if any(name in differing for name in points[0].keys):
        differing.pop("network", None)  # the keys say it
    header = [*differing, "#", "protocol"]
    rows = [
        [*(values[i] for values in differing.values()), str(row.rank), row.variant]
        for i, ranking in enumerate(board.rankings)
        for row in ranking.rows
    ]
    for column in _chosen(board.rows, metrics):
        cells = [
            cell(row, column.metric, best_of(ranking.rows, column.metric))
            for ranking in board.rankings
            for row in ranking.rows
        ]
        if most is None or _width([*header, heading(column)], rows, cells) <= most:
            header.append(heading(column))
            rows = [[*row, one] for row, one in zip(rows, cells, strict=True)]
    return header, rows


def _chosen(rows: Sequence[BoardRow], metrics: Sequence[str]) -> list[BoardColumn]:
    """The columns of these metrics, or of all, that have a figure; of the deliveries only the first."""
    columns = columns_with_figures(rows)
    if not metrics:
        return columns
    wanted = [COLUMN[metric] for metric in metrics if COLUMN[metric] in columns]
    wanted += [column for column in columns if column.metric not in BUILT_IN]
    deliveries = [column for column in wanted if column.metric in DELIVERY]
    return [column for column in wanted if column not in deliveries[1:]]


def _width(header: Sequence[str], rows: Sequence[Sequence[str]], last: Sequence[str]) -> int:
    whole = [header, *([*row, one] for row, one in zip(rows, last, strict=True))]
    return sum(max(map(len, column)) + 2 for column in zip(*whole, strict=True)) - 2


# -- for programs


def board_json(board: Leaderboard) -> dict[str, Any]:
    """The whole leaderboard as JSON has it."""
    return {
        "rankings": [_ranking_json(ranking) for ranking in board.rankings],
        "charts": [_chart_json(chart) for chart in board.charts],
    }


def figure_json(figure: Figure | None) -> dict[str, Any] | None:
    """A figure as JSON has it; an unknown interval is null."""
    if figure is None:
        return None
    low, high = (figure.low, figure.high) if figure.has_interval else (None, None)
    return {"mean": figure.mean, "low": low, "high": high, "seeds": figure.seeds}


def point_json(point: ScenarioPoint) -> dict[str, Any]:
    """A point as JSON has it."""
    return {
        "scenario": point.scenario,
        "keys": dict(point.keys),
        "network": point.network,
        "trace": point.trace,
        "window": point.window,
        "version": point.version,
    }


def _ranking_json(ranking: Ranking) -> dict[str, Any]:
    facts = {
        **point_json(ranking.point),
        "event_type": ranking.event_type,
        "verdict": _verdict_json(ranking),
        "rows": [_row_json(row) for row in ranking.rows],
    }
    return facts if ranking.event_type else {**facts, "by_type": [_ranking_json(one) for one in ranking.by_type]}


def _row_json(row: BoardRow) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "protocol": row.protocol,
        "assumes": row.assumes,
        "variant": row.variant,
        "settings": dict(row.settings),
        "on_front": row.on_front,
        "ties": {metric: list(names) for metric, names in sorted(row.ties.items())},
        "metrics": {metric: figure_json(figure) for metric, figure in sorted(row.figures.items())},
        "runs": {str(seed): run for seed, run in sorted(row.runs.items())},
    }


def _verdict_json(ranking: Ranking) -> dict[str, Any] | None:
    verdict = ranking.verdict
    if verdict is None:
        return None
    facts = {field.name: _plain(getattr(verdict, field.name)) for field in fields(verdict)}
    return {"words": verdict_words(ranking), **facts}


def _plain(value: Any) -> Any:
    """A fact of a verdict as JSON has it."""
    match value:
        case Figure():
            return figure_json(value)
        case FrontRow(variant, delivery, cost_ratio):
            ratio = None if math.isnan(cost_ratio) else cost_ratio
            return {"variant": variant, "delivery_difference": figure_json(delivery), "cost_ratio": ratio}
        case tuple():
            return [_plain(one) for one in value]
    return value


def _chart_json(chart: SweepChart) -> dict[str, Any]:
    return {
        "axis": chart.axis,
        "scenario": chart.scenario,
        "trace": chart.trace,
        "window": chart.window,
        "networks": list(chart.networks),
        "lines": [
            {
                "variant": line.variant,
                "protocol": line.protocol,
                "fixed": dict(line.fixed),
                "points": [
                    {
                        "value": x,
                        "network": row.point.network,
                        "metrics": {metric: figure_json(figure) for metric, figure in sorted(row.figures.items())},
                    }
                    for x, row in line.rows
                ],
            }
            for line in chart.lines
        ],
    }


CSV_COLUMNS = (
    "scenario", "keys", "network", "trace", "window", "version", "event_type", "rank", "protocol", "variant",
    "settings", "on_front", "metric", "mean", "low", "high", "seeds", "ties",
)  # fmt: skip


def board_csv(board: Leaderboard) -> str:
    """The leaderboard as CSV: one line a row and metric, of all event types together and of each."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for ranking in board.rankings:
        for one in (ranking, *ranking.by_type):
            writer.writerows(line for row in one.rows for line in _csv_lines(one, row))
    return text.getvalue()


def _csv_lines(ranking: Ranking, row: BoardRow) -> Iterable[Mapping[str, Any]]:
    point = point_json(row.point)
    for metric, figure in sorted(row.figures.items()):
        yield {
            **point,
            "keys": json.dumps(point["keys"]),
            "event_type": ranking.event_type,
            "rank": row.rank,
            "protocol": row.protocol,
            "variant": row.variant,
            "settings": json.dumps(dict(row.settings), sort_keys=True),
            "on_front": row.on_front,
            "metric": metric,
            **(figure_json(figure) or {}),
            "ties": " ".join(row.ties.get(metric, ())) if row.ties else "",
        }
