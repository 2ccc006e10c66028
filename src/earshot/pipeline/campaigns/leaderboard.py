"""The leaderboard: plain values that the report, the terminal and programs read. There is no Spark here.

A `Leaderboard` holds one `Ranking` for each `ScenarioPoint`: everything that differs between two runs, apart
from protocol, settings and seed, separates points (scenario, changed keys, network, trace, window, code).
So seeds are averaged, and nothing else is; networks are never ranked together. A key that takes several
numbers is an axis: `Leaderboard.charts` has its lines, with one row (mean, low, high, seeds) a point.

Start with `board_of`; `board_text` puts the result into words, tables, JSON and CSV.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from earshot.pipeline.campaigns.intervals import AMOUNT, SHARE, Figure, differ, difference, figure_of
from earshot.pipeline.campaigns.swept_keys import swept_keys


@dataclass(frozen=True, slots=True)
class BoardColumn:
    """A metric as people read it."""

    metric: str
    title: str
    unit: str
    better: int
    "1 where more is better, -1 where less is, 0 where it depends."
    bounds: tuple[float, float] = AMOUNT
    "Its interval does not leave them."


COLUMNS = (
    BoardColumn("delivery_of_reachable", "delivery of the reachable", "", 1, SHARE),
    BoardColumn("delivery_ratio", "delivery ratio", "", 1, SHARE),
    BoardColumn("precision", "precision", "", 1, SHARE),
    BoardColumn("airtime_mean", "airtime", "", -1, SHARE),
    BoardColumn("airtime_busiest", "airtime, busiest", "", -1, SHARE),
    BoardColumn("cost", "transmissions an event", "", -1),
    BoardColumn("latency_p50_s", "latency p50", "s", -1),
    BoardColumn("latency_p95_s", "latency p95", "s", -1),
    BoardColumn("latency_p99_s", "latency p99", "s", -1),
    BoardColumn("bytes_per_delivery", "bytes a delivery", "B", -1),
    BoardColumn("data_bytes", "data bytes", "B", -1),
    BoardColumn("control_bytes", "control bytes", "B", -1),
    BoardColumn("overhead", "receptions without delivery", "", -1, SHARE),
    BoardColumn("duplicates", "duplicates an event", "", -1),
    BoardColumn("age_of_information_s", "age of information", "s", -1),
    BoardColumn("inter_reception_s", "between receptions", "s", -1),
    BoardColumn("inter_reception_p95_s", "between receptions, p95", "s", -1),
    BoardColumn("fairness", "fairness among receivers", "", 1, SHARE),
    BoardColumn("hops", "hops", "", 0),
    BoardColumn("ceiling", "reachable at all", "", 0, SHARE),
    BoardColumn("ceiling_at_once", "reachable at once", "", 0, SHARE),
    BoardColumn("missed_impossible", "missed: impossible", "", 0, SHARE),
    BoardColumn("missed_needed_carrying", "missed: needed carrying", "", -1, SHARE),
    BoardColumn("missed_lost", "missed: lost by the protocol", "", -1, SHARE),
)
COLUMN = {column.metric: column for column in COLUMNS}
"By metric; those of plug-ins are added when a lake that has them is read."
DELIVERY = ("delivery_of_reachable", "delivery_ratio")
"Rankings are by the first of these metrics that every row has."
COST = ("airtime_mean", "bytes_per_delivery")
"The cost of a delivery is the first of these metrics that every row has."


@dataclass(frozen=True, slots=True)
class ScenarioPoint:
    """What runs have in common that may be ranked together: everything but protocol, settings and seed."""

    id: str
    "Equal where scenario, code and network are."
    scenario: str = field(compare=False)
    keys: Mapping[str, Any] = field(compare=False)
    "Scenario keys that some run of this scenario changed, in order, each with its value here."
    network: str = field(compare=False)
    "What carried the packets, as in `802.11b-2M 160 m`."
    trace: str = field(default="", compare=False)
    "The trace that is played back; empty where there is none."
    window: str = field(default="", compare=False)
    "Which part of the trace, as in `600 to 900 s`."
    version: str = field(default="", compare=False)
    "Distinguishes points that look the same: the scenario's file or Earshot's code has changed in between."

    @property
    def repeats(self) -> str:
        """What its runs differ in: `seed`, or `window` where the windows of a trace together are the point."""
        return "window" if self.window and self.id == f"{self.window} {self.network}" else "seed"


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One protocol with its settings at one point."""

    point: ScenarioPoint
    protocol: str
    variant: str
    "The protocol and the settings it was given, as tables name it."
    settings: Mapping[str, Any]
    figures: Mapping[str, Figure]
    "By metric; what could not be measured is missing."
    runs: Mapping[int, str] = field(default_factory=dict)
    "The runs' ids by seed."
    rank: int = 0
    "1 is best. Rows that differ significantly neither in delivery nor in cost share a rank."
    ties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    "By metric: the variants of the same ranking that do not differ significantly from this one."
    assumes: str = ""
    "What the protocol was given beyond the radio, as in `ideal routing`."
    on_front: bool = False
    "No other row delivers at least as much for at most the same cost."


@dataclass(frozen=True, slots=True)
class FrontRow:
    """A row of the Pareto front, beside the winner."""

    variant: str
    delivery: Figure | None
    "Its delivery less the winner's, paired by seed; None where they have no seed in common."
    cost_ratio: float
    "Its cost / the winner's; NaN where the winner's is 0."


@dataclass(frozen=True, slots=True)
class BoardVerdict:
    """What a ranking says, as facts. `board_text.verdict_words` makes a sentence of them."""

    winner: str
    "Delivers as much as the best; of those that do and cost as little as the cheapest of them, it delivers most."
    delivery_metric: str
    delivery: Figure
    cost_metric: str | None
    cost: Figure | None
    seeds: int
    ties: tuple[str, ...] = ()
    "The others whose delivery does not differ significantly from the best."
    cost_ties: tuple[str, ...] = ()
    "Those of `ties` whose cost does not differ significantly from the winner's."
    next: str | None = None
    "The best of those that deliver less."
    lead: Figure | None = None
    "By how much the winner delivers more than `next`, paired by seed."
    front: tuple[FrontRow, ...] = ()
    "The others on the Pareto front of delivery against cost, by falling delivery."
    ceiling: Figure | None = None
    "The share of the expected that any protocol could have delivered."
    ceiling_at_once: Figure | None = None
    headroom: Figure | None = None
    "The ceiling less the winner's delivery ratio: what the network allows and the winner does not deliver."


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rows of one point, best first: by delivery, then by cost."""

    point: ScenarioPoint
    rows: tuple[BoardRow, ...]
    verdict: BoardVerdict | None
    "None where nothing was expected, so that nothing can be ranked."
    event_type: str = ""
    "The only event type that counts; empty: all of them. Traffic and airtime are those of the whole run."
    by_type: tuple[Ranking, ...] = ()
    "The same point by each event type, where there is more than one."


@dataclass(frozen=True, slots=True)
class SweepLine:
    """One variant along an axis, all other keys fixed."""

    variant: str
    protocol: str
    fixed: Mapping[str, Any]
    "The other keys that were swept, with their values on this line."
    rows: tuple[tuple[float, BoardRow], ...]
    "By the axis' value."

    def points(self, metric: str) -> list[tuple[float, Figure]]:
        """The metric at each value of the axis."""
        return [(x, row.figures[metric]) for x, row in self.rows if metric in row.figures]


@dataclass(frozen=True, slots=True)
class SweepChart:
    """All lines over one swept key. At each point, all lines that differ only by protocol have one network."""

    axis: str
    "A scenario key such as `medium.range_m`, or a protocol's setting such as `gossip.probability`."
    scenario: str
    trace: str
    window: str
    networks: tuple[str, ...]
    "The networks of its rows, in order of the axis; more than one where the axis changes the network."
    lines: tuple[SweepLine, ...]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Everything that runs and their metrics say about protocols."""

    rankings: tuple[Ranking, ...]
    "One a point, in order of scenario, trace, window, keys and network."
    charts: tuple[SweepChart, ...]
    "One a swept key."

    @property
    def rows(self) -> list[BoardRow]:
        """The rows of all rankings."""
        return [row for ranking in self.rankings for row in ranking.rows]


WHOLE_AND_BY_TYPE: Mapping[str, Sequence[str]] = {"all": (), "type": ()}
"The groupings of `metrics` that a leaderboard is made of."


@dataclass(frozen=True, slots=True)
class KeyedRow:
    """One variant at one point, for one key of a grouping: an event type, a minute, an area, a reason."""

    point: ScenarioPoint
    variant: str
    protocol: str
    key: str
    figures: Mapping[str, Figure]


# -- from rows of `runs` and `metrics`


def keyed_rows(rows: Sequence[Mapping[str, Any]], figures: Iterable[Mapping[str, Any]], by: str) -> list[KeyedRow]:
    """Figures over seeds of finished runs by the keys of a grouping (`minute`, `area`, `reason`, `packet`, `node`,
    `type`). A drop reason, cause or packet that a run never had counts as 0 of them."""
    points = _points(rows)
    values = _values(rows, points, figures)
    zeros = _seeds(rows, points) if by in ("reason", "cause", "packet") else {}
    found: dict[tuple[str, str, str], dict[str, Figure]] = defaultdict(dict)
    for (point, variant, key, metric), by_seed in values.items():
        found[point, variant, key][metric] = _figure(metric, {**zeros.get((point, variant), {}), **by_seed})
    known = {point.id: point for point in points.values()}
    protocols = {row["variant"]: row["protocol"] for row in rows}
    ordered = sorted(found, key=lambda one: (_order(known[one[0]]), one[1], _key_order(one[2])))
    return [KeyedRow(known[one[0]], one[1], protocols[one[1]], one[2], found[one]) for one in ordered]


def board_of(
    runs: Sequence[Mapping[str, Any]],
    figures: Iterable[Mapping[str, Any]],
    figures_by_type: Iterable[Mapping[str, Any]] = (),
) -> Leaderboard:
    """The leaderboard of finished runs (rows of `runs`) and their metrics (rows of `metrics`)."""
    points = _points(runs)
    rows = _rows(runs, points, _values(runs, points, figures))
    by_type = _values(runs, points, figures_by_type)
    rankings = []
    for point in sorted({row.point for row in rows}, key=_order):
        own = [row for row in rows if row.point == point]
        of_types = _by_type(own, by_type)
        types = tuple(_ranking(point, one, event_type) for event_type, one in of_types.items())
        rankings.append(replace(_ranking(point, own), by_type=types if len(types) > 1 else ()))
    return Leaderboard(tuple(rankings), _charts([row for ranking in rankings for row in ranking.rows]))


def _points(runs: Sequence[Mapping[str, Any]]) -> dict[str, ScenarioPoint]:
    """The point of each run, by the run's id."""
    keys = swept_keys(runs)
    found: dict[str, ScenarioPoint] = {}
    for row in runs:
        network = row["network"] or "network not recorded"
        found[row["run"]] = ScenarioPoint(
            f"{row['point'] or row['scenario']} {network}",
            row["scenario"],
            dict(sorted(keys[row["run"]].items())),
            network,
            row["trace"] or "",
            row["window"] or "",
        )
    alike: dict[str, set[str]] = defaultdict(set)
    for point in found.values():
        alike[repr(_order(point))].add(point.id)
    return {
        run: replace(point, version=point.id[:6]) if len(alike[repr(_order(point))]) > 1 else point
        for run, point in found.items()
    }


def _order(point: ScenarioPoint) -> tuple[Any, ...]:
    keys = [(name, _key_order(value)) for name, value in point.keys.items()]
    return (point.scenario, point.trace, _key_order(point.window), keys, point.network, point.version)


def _key_order(value: Any) -> tuple[int, float, str]:
    """Numbers by size, before texts."""
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        return (0, float(text.split(" ")[0]), text)
    except ValueError:
        return (1, 0.0, text)


Values = dict[tuple[str, str, str, str], dict[int, float]]
"By point, variant, key and metric: the value of each seed."


def _values(
    runs: Iterable[Mapping[str, Any]], points: Mapping[str, ScenarioPoint], figures: Iterable[Mapping[str, Any]]
) -> Values:
    known = {row["run"]: row for row in runs}
    values: Values = defaultdict(dict)
    for figure in figures:
        if (row := known.get(figure["run"])) is not None:
            place = (points[row["run"]].id, row["variant"], figure["key"], figure["metric"])
            values[place][row["seed"]] = figure["value"]
    return values


def _seeds(
    runs: Iterable[Mapping[str, Any]], points: Mapping[str, ScenarioPoint]
) -> dict[tuple[str, str], dict[int, float]]:
    """By point and variant: 0 for each seed."""
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in runs:
        found[points[row["run"]].id, row["variant"]][row["seed"]] = 0.0
    return found


def _figure(metric: str, by_seed: Mapping[int, float]) -> Figure:
    return figure_of(by_seed, COLUMN[metric].bounds if metric in COLUMN else AMOUNT)


def _rows(runs: Iterable[Mapping[str, Any]], points: Mapping[str, ScenarioPoint], values: Values) -> list[BoardRow]:
    figures: dict[tuple[str, str], dict[str, Figure]] = defaultdict(dict)
    for (point_id, variant, _, metric), by_seed in values.items():
        figures[point_id, variant][metric] = _figure(metric, by_seed)
    rows: dict[tuple[str, str], BoardRow] = {}
    for row in runs:
        point = points[row["run"]]
        place = (point.id, row["variant"])
        settings = json.loads(row["settings"] or "{}")
        made = rows.get(place) or BoardRow(
            point, row["protocol"], row["variant"], settings, figures[place], assumes=row.get("assumes") or ""
        )
        rows[place] = replace(made, runs={**made.runs, row["seed"]: row["run"]})
    return list(rows.values())


def _by_type(rows: Sequence[BoardRow], values: Values) -> dict[str, list[BoardRow]]:
    """The rows again for each event type; what is not measured by type is that of the whole run."""
    of_run = ("airtime_mean", "airtime_busiest", "cost", "bytes_per_delivery", "data_bytes", "control_bytes")
    found: dict[tuple[str, str], dict[str, Figure]] = defaultdict(dict)
    place = {(row.point.id, row.variant) for row in rows}
    for (point_id, variant, key, metric), by_seed in values.items():
        if (point_id, variant) in place:
            found[key, variant][metric] = _figure(metric, by_seed)
    return {
        event_type: [
            replace(row, figures={name: row.figures[name] for name in of_run if name in row.figures}
                    | found[event_type, row.variant])
            for row in rows
        ]
        for event_type in sorted({key for key, _ in found})
    }  # fmt: skip


# -- ranking


def _ranking(point: ScenarioPoint, rows: Sequence[BoardRow], event_type: str = "") -> Ranking:
    delivery, cost = _shared(rows, DELIVERY), _shared(rows, COST)
    if delivery is None:
        by_name = sorted(rows, key=lambda row: row.variant)
        return Ranking(point, tuple(replace(row, rank=1) for row in by_name), None, event_type)
    judged = [row for row in rows if delivery in row.figures]
    order = ranked(judged, delivery, cost)
    front = {row.variant for row in _front(judged, delivery, cost)}
    marked = [
        replace(row, ties=_ties(row, rows, event_type != ""), on_front=row.variant in front)
        for row in [*order, *sorted((row for row in rows if delivery not in row.figures), key=lambda row: row.variant)]
    ]
    with_ranks: list[BoardRow] = []
    first: BoardRow | None = None
    for place, row in enumerate(marked, 1):
        if first is None or not all(first.variant in row.ties.get(metric, ()) for metric in (delivery, cost) if metric):
            first = replace(row, rank=place)
        with_ranks.append(replace(row, rank=first.rank))
    return Ranking(point, tuple(with_ranks), _verdict(with_ranks, delivery, cost), event_type)


def _shared(rows: Iterable[BoardRow], metrics: Iterable[str]) -> str | None:
    """The first metric that every row has; else the first that any has."""
    rows = list(rows)
    every = [metric for metric in metrics if rows and all(metric in row.figures for row in rows)]
    some = [metric for metric in reversed(list(metrics)) if any(metric in row.figures for row in rows)]
    return next(iter([*every, *some]), None)


def ranked(rows: Iterable[BoardRow], delivery: str, cost: str | None) -> list[BoardRow]:
    """Best first. Of those that deliver as much as the best (no significant difference), the cheapest and those that
    cost as little are candidates; the one that delivers most of them is next, unless a row outside its interval
    delivers more for no higher cost, which then is."""
    left = sorted(rows, key=lambda row: row.variant)
    order: list[BoardRow] = []
    while left:
        best = max(left, key=lambda row: row.figures[delivery].mean)
        as_good = [row for row in left if _tied(row, best, delivery)]
        cheapest = min(as_good, key=lambda row: (_price(row, cost), -row.figures[delivery].mean))
        as_cheap = [row for row in as_good if row is cheapest or (cost and _tied(row, cheapest, cost))]
        winner = max(as_cheap, key=lambda row: (row.figures[delivery].mean, -_price(row, cost)))
        while better := [row for row in left if _beats(row, winner, delivery, cost)]:
            winner = max(better, key=lambda row: row.figures[delivery].mean)
        order.append(winner)
        left.remove(winner)
    return order


def _tied(row: BoardRow, other: BoardRow, metric: str) -> bool:
    """Whether both have the metric and do not differ significantly in it; by a factor, where windows are compared."""
    if metric not in row.figures or metric not in other.figures:
        return False
    by_ratio = row.point.repeats == "window" and COLUMN[metric].better < 0
    return not differ(row.figures[metric], other.figures[metric], by_ratio)


def _price(row: BoardRow, cost: str | None) -> float:
    return row.figures[cost].mean if cost and cost in row.figures else math.inf


def _beats(row: BoardRow, winner: BoardRow, delivery: str, cost: str | None) -> bool:
    ours, theirs = row.figures[delivery], winner.figures[delivery]
    most = theirs.high if theirs.has_interval else theirs.mean
    return ours.mean > most and _price(row, cost) <= _price(winner, cost)


def _front(rows: Sequence[BoardRow], delivery: str, cost: str | None) -> list[BoardRow]:
    """The rows that no other dominates, by falling delivery."""

    def worth(row: BoardRow) -> tuple[float, float]:
        return row.figures[delivery].mean, -_price(row, cost)

    def dominated(row: BoardRow) -> bool:
        one = worth(row)
        return any(other != one and other[0] >= one[0] and other[1] >= one[1] for other in map(worth, rows))

    return sorted((row for row in rows if not dominated(row)), key=worth, reverse=True)


def _ties(row: BoardRow, rows: Sequence[BoardRow], only_ranking: bool) -> dict[str, tuple[str, ...]]:
    metrics = (*DELIVERY, *COST) if only_ranking else tuple(column.metric for column in COLUMNS if column.better)
    found = {}
    for metric in metrics:
        tied = tuple(one.variant for one in rows if one.variant != row.variant and _tied(row, one, metric))
        if tied:
            found[metric] = tied
    return found


def _verdict(rows: Sequence[BoardRow], delivery: str, cost: str | None) -> BoardVerdict | None:
    judged = [row for row in rows if delivery in row.figures]
    if not judged:
        return None
    winner, *others = judged
    own = winner.figures[delivery]
    best = max(judged, key=lambda row: row.figures[delivery].mean)
    as_good = {best.variant, *best.ties.get(delivery, ())}
    ties = tuple(row.variant for row in others if row.variant in as_good)
    less = [row for row in others if row.variant not in ties and row.figures[delivery].mean < own.mean]
    next_row = max(less, key=lambda row: row.figures[delivery].mean, default=None)
    ceiling, ratio = winner.figures.get("ceiling"), winner.figures.get("delivery_ratio")
    return BoardVerdict(
        winner=winner.variant,
        delivery_metric=delivery,
        delivery=own,
        cost_metric=cost if cost in winner.figures else None,
        cost=winner.figures.get(cost) if cost else None,
        seeds=own.seeds,
        ties=ties,
        cost_ties=tuple(name for name in ties if cost and name in winner.ties.get(cost, ())),
        next=next_row.variant if next_row else None,
        lead=difference(own, next_row.figures[delivery]) if next_row else None,
        front=tuple(
            FrontRow(row.variant, difference(row.figures[delivery], own), _cost_ratio(row, winner, cost))
            for row in _front(judged, delivery, cost)
            if row.variant != winner.variant
        ),
        ceiling=ceiling,
        ceiling_at_once=winner.figures.get("ceiling_at_once"),
        headroom=difference(ceiling, ratio) if ceiling and ratio else None,
    )


def _cost_ratio(row: BoardRow, winner: BoardRow, cost: str | None) -> float:
    ours, theirs = _price(row, cost), _price(winner, cost)
    return ours / theirs if 0 < theirs < math.inf else math.nan


# -- axes


def _charts(rows: Sequence[BoardRow]) -> tuple[SweepChart, ...]:
    """A chart for each key, scenario's or protocol's, that takes several numbers while all else stays."""
    charts: list[SweepChart] = []
    for axis in sorted({name for row in rows for name in _coordinates(row)}):
        lines: dict[str, list[tuple[float, BoardRow]]] = defaultdict(list)
        for row in rows:
            if (x := _number(_coordinates(row).get(axis))) is not None:
                point = row.point
                rest = {name: value for name, value in _coordinates(row).items() if name != axis}
                place = (point.scenario, point.trace, point.window, point.version, row.protocol, rest)
                lines[json.dumps(place)].append((x, row))
        found: dict[tuple[str, str, str], list[SweepLine]] = defaultdict(list)
        swept = _swept_keys(rows)
        for points in lines.values():
            points.sort(key=lambda point: point[0])
            if len({x for x, _ in points}) > 1:
                row = points[0][1]
                fixed = {name: value for name, value in row.point.keys.items() if name in swept and name != axis}
                name = row.variant if axis in row.point.keys else _without(row, axis)
                line = SweepLine(name, row.protocol, fixed, tuple(points))
                found[row.point.scenario, row.point.trace, row.point.window].append(line)
        for (scenario, trace, window), own in sorted(found.items()):
            charts += [
                SweepChart(axis, scenario, trace, window, _networks(group), tuple(group)) for group in _one_network(own)
            ]
    return tuple(charts)


def _coordinates(row: BoardRow) -> dict[str, Any]:
    return {**row.point.keys, **{f"{row.protocol}.{name}": value for name, value in row.settings.items()}}


def _swept_keys(rows: Iterable[BoardRow]) -> set[str]:
    """The scenario keys that take more than one value."""
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, value in row.point.keys.items():
            values[name].add(json.dumps(value))
    return {name for name, found in values.items() if len(found) > 1}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _without(row: BoardRow, axis: str) -> str:
    """The variant's name without the swept setting."""
    left = {name: value for name, value in row.settings.items() if f"{row.protocol}.{name}" != axis}
    return " ".join([row.protocol, *(f"{name}={value}" for name, value in sorted(left.items()))])


def _one_network(lines: Sequence[SweepLine]) -> list[list[SweepLine]]:
    """The lines in groups of which no two have different networks where all else is equal."""
    groups: list[tuple[dict[str, str], list[SweepLine]]] = []
    for line in sorted(lines, key=lambda line: ([_key_order(one) for one in line.fixed.values()], line.variant)):
        own = {json.dumps([x, line.fixed]): row.point.network for x, row in line.rows}
        for networks, members in groups:
            if all(networks.get(place, network) == network for place, network in own.items()):
                networks.update(own)
                members.append(line)
                break
        else:
            groups.append((own, [line]))
    return [members for _, members in groups]


def _networks(lines: Iterable[SweepLine]) -> tuple[str, ...]:
    ordered = sorted((x, row.point.network) for line in lines for x, row in line.rows)
    return tuple(dict.fromkeys(network for _, network in ordered))
