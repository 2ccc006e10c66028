"""The report about a lake: one self-contained HTML page that answers in ten seconds.

Spark aggregates (`report_facts`); what arrives is small and plain, and `lake_page` puts it on a page: the
answer in words, one picture, ranked bars, the table, lost deliveries, sweeps, and only then details.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot.pipeline.advice.advise import Advice
from earshot.pipeline.advice.judge import as_one_point
from earshot.pipeline.campaigns.board_text import assumption_words, board_json, figure_json, point_json, point_words
from earshot.pipeline.campaigns.capacity import CapacityComparison
from earshot.pipeline.campaigns.flow import LakeRows, lake_rows
from earshot.pipeline.campaigns.leaderboard import (
    WHOLE_AND_BY_TYPE,
    BoardRow,
    KeyedRow,
    Leaderboard,
    ScenarioPoint,
    keyed_rows,
)
from earshot.pipeline.campaigns.swept_keys import run_columns
from earshot.pipeline.reports import board_page as parts
from earshot.pipeline.reports.board_page import advice_blocks
from earshot.pipeline.reports.capacity_page import capacity_blocks, capacity_words
from earshot.pipeline.reports.charts import ChartLine, Measure, Track, line_chart, track_map
from earshot.pipeline.reports.loss_page import loss_blocks, losses_of
from earshot.pipeline.reports.outside_figures import ReportFigure, drawn_figures, named_figures
from earshot.pipeline.reports.page import (
    PageBlock,
    PageCell,
    PageFigure,
    PageFold,
    PageLink,
    PageSection,
    PageTable,
    PageWords,
    ReportPage,
)
from earshot.pipeline.reports.profile_page import profile_section
from earshot.pipeline.reports.svg import marks_of
from earshot.pipeline.traces.trace_profile import Profile, kept_profiles
from earshot.records.drop_reasons import sentence_of
from earshot.words import counted, listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake

OVER_TIME = ("delivery_ratio", "latency_p95_s")
BY_KEY = {"minute": OVER_TIME, "reason": ("drops",), "cause": ("lost",), "area": ("expected", "lost")}
"The metrics that the page shows over time, by drop reason, cause of loss and area."
MOST_OPEN = 3
"At most this number of rankings are shown in full; where there are more, each is behind a click."
MOST_RUNS = 60
"At most this number of runs are listed without a click."
MOST_MAPS = 3
MOST_TRACKS = 120
MOST_POSITIONS = 20_000
POSITIONS_OF_A_TRACK = 60


@dataclass(frozen=True)
class ReportFacts:
    """All that the page shows, as plain values."""

    board: Leaderboard
    runs: Sequence[Mapping[str, Any]] = ()
    "Rows of `runs`, failed ones included."
    minutes: Sequence[KeyedRow] = ()
    drops: Sequence[KeyedRow] = ()
    causes: Sequence[KeyedRow] = ()
    "Lost deliveries by cause."
    areas: Sequence[KeyedRow] = ()
    "Expected and lost deliveries by the square they were published in."
    tracks: Mapping[str, Sequence[Track]] = field(default_factory=dict)
    "Where nodes went, by the point's id."
    capacity: CapacityComparison | None = None
    "How much load each protocol carries, where that was searched for."
    profiles: Sequence[Profile] = ()
    "Of the traces that were played back, where the lake has them."
    advice: Advice | None = None
    "What to use, where that was asked."
    own_figures: Sequence[tuple[ReportFigure, str]] = ()
    "Figures of the user's own, with their drawings."


def write_report(lake: Lake, to: Path, runs: Sequence[str] | None = None, figures: Sequence[str] = ()) -> Path:
    """Write the report on those runs, or on all in the lake; `figures` names plug-ins."""
    return write_page_of(report_facts(lake, runs, figures=figures), lake, to)


def write_page_of(facts: ReportFacts, lake: Lake, to: Path) -> Path:
    """Write the page about those facts, with replays beside it; it appears whole or not at all."""
    from earshot.pipeline.reports.lake_replays import write_replays

    done = [run["run"] for run in facts.runs if run["status"] == "done"]
    replays = write_replays(lake, to, done) if done else {}
    return lake_page(facts, replays).write(to)


# -- from the lake


def report_facts(
    lake: Lake, runs: Sequence[str] | None = None, advice: Advice | None = None, figures: Sequence[str] = ()
) -> ReportFacts:
    """What the lake says about those runs, or about all in it; with advice, about the runs that it was judged by.
    `figures` names plug-ins."""
    own = named_figures(figures)
    found = lake_rows(lake, list(advice.runs) if advice else runs, {**WHOLE_AND_BY_TYPE, **BY_KEY})
    if advice is not None:
        found = as_one_point(found, advice.runs, advice.verdict.windows_words)
    board, rows = found.leaderboard, found.runs
    minutes, drops, causes, areas = (keyed_rows(found.finished, found.metrics[by], by) for by in BY_KEY)
    workload_of = {row["run"]: row["workload"] for row in rows}
    drawn = {ranking.point.id: workload_of[_first_run(ranking.rows)] for ranking in board.rankings[:MOST_MAPS]}
    return ReportFacts(
        board,
        rows,
        minutes,
        drops,
        causes,
        areas,
        _tracks(lake.read_or_empty("positions"), drawn),
        profiles=kept_profiles(lake, [row["trace"] for row in rows if row["trace"]]),
        advice=advice,
        own_figures=drawn_figures(own, _plain_rows(found)) if own else (),
    )


def _plain_rows(found: LakeRows) -> list[dict[str, Any]]:
    """The runs that are done, with their swept keys, settings and metrics."""
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for row in found.metrics["all"]:
        values[row["run"]][row["metric"]] = row["value"]
    return [{**row, "metrics": values[row["run"]]} for row in run_columns(found.finished)]


def _first_run(rows: Iterable[BoardRow]) -> str:
    return min((seed, run) for row in rows for seed, run in row.runs.items())[1]


def _tracks(positions: DataFrame, drawn: Mapping[str, str]) -> dict[str, list[Track]]:
    """The nodes' trajectories by point, sampled down to what a page can hold."""
    from pyspark.sql import functions as F

    found: dict[str, list[Track]] = {}
    for workload in sorted(set(drawn.values())):
        own = positions.where(F.col("trace") == workload)
        nodes = [row["node"] for row in own.select("node").distinct().orderBy("node").limit(MOST_TRACKS).collect()]
        sampled = own.where(F.col("node").isin(nodes)).select("node", "time", "x_m", "y_m").orderBy("node", "time")
        tracks: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for row in sampled.limit(MOST_POSITIONS).collect():
            tracks[row["node"]].append((row["x_m"], row["y_m"]))
        thinned = [_thinned(track) for track in tracks.values()]
        found |= {point: thinned for point, of in drawn.items() if of == workload}
    return found


def _thinned(track: Sequence[tuple[float, float]]) -> Track:
    step = -(-len(track) // POSITIONS_OF_A_TRACK)
    kept = [*track[::step], *track[-1:]]
    return kept if len(set(kept)) > 1 else kept[:1]


def facts_json(facts: ReportFacts) -> dict[str, Any]:
    """What the page shows, for programs: the leaderboard, lost deliveries, failed runs and capacity."""
    facts_by_name = {
        **board_json(facts.board),
        "lost_by_cause": [_keyed_json(row) for row in facts.causes],
        "lost_by_area": [_keyed_json(row) for row in facts.areas],
        "failed": [
            {name: run[name] for name in ("run", "scenario", "variant", "seed", "error")}
            for run in facts.runs
            if run["status"] != "done"
        ],
    }
    if facts.profiles:
        facts_by_name["profiles"] = [profile.as_json() for profile in facts.profiles]
    return {**facts_by_name, "capacity": facts.capacity.as_json()} if facts.capacity else facts_by_name


def _keyed_json(row: KeyedRow) -> dict[str, Any]:
    figures = {metric: figure_json(figure) for metric, figure in sorted(row.figures.items())}
    return {**point_json(row.point), "variant": row.variant, "key": row.key, **figures}


# -- on the page


def lake_page(facts: ReportFacts, replays: Mapping[str, str]) -> ReportPage:
    """The page: the answer first, details last."""
    board = facts.board
    names = [row.variant for row in board.rows]
    names += [line.variant for chart in board.charts for line in chart.lines]
    names += [row.protocol for row in facts.capacity.protocols] if facts.capacity else []
    marks = marks_of(names)
    views = [parts.RankingView(ranking, marks) for ranking in board.rankings]
    shared = parts.common_keys(views)
    sections = [_answer(facts, views)]
    if facts.advice is not None:
        sections = [PageSection("What to use", blocks=advice_blocks(facts.advice, marks)), *sections]
    # The candidates that advice was judged by are no sweep.
    for chart in board.charts if facts.advice is None else ():
        note = listed(list(chart.networks))
        place = f"{chart.scenario} over {chart.axis}"
        sections.append(PageSection(place, blocks=parts.sweep_figures(chart, marks), note=note))
    for figure, drawing in facts.own_figures:
        title = figure.title or figure.name
        sections.append(PageSection(title, blocks=[PageFigure(title, drawing, note=figure.note, wide=True)]))
    if facts.capacity:
        sections.append(PageSection("Capacity", blocks=capacity_blocks(facts.capacity, marks)))
    if len(views) == 1:
        view = views[0]
        sections += [
            PageSection("By event type", blocks=parts.types_table(view)),
            PageSection("Ranked", blocks=parts.ranked_bars(view)),
            PageSection("All figures", blocks=[parts.figures_table(view)]),
            PageSection("Lost deliveries", blocks=_losses(facts, view)),
        ]
    elif len(views) <= MOST_OPEN:
        for view in views:
            sections.append(PageSection(view.name_without(shared), blocks=_details(facts, view)))
    else:
        folds = [PageFold(view.name_without(shared), _details(facts, view)) for view in views]
        sections.append(PageSection("Each point", "All of the above for one point alone.", folds))
    sections += [profile_section(profile) for profile in facts.profiles]
    sections += [
        PageSection("Over time", blocks=_over_time(facts.minutes, marks)),
        PageSection("Packet drops", _DROPS, _drops(facts.drops, marks)),
        PageSection("Map", blocks=_maps(facts)),
        PageSection("Runs", blocks=_runs(facts.runs, replays)),
    ]
    scenarios = list(dict.fromkeys(ranking.point.scenario for ranking in board.rankings))
    title = f"Earshot report: {listed(scenarios)}" if 0 < len(scenarios) <= 3 else "Earshot report"
    return ReportPage(title, _subtitle(facts, shared), [section for section in sections if section.blocks])


_DROPS = (
    "A dropped packet is not a lost delivery: another copy may have arrived. "
    "These are all drops of packets and events, per run."
)


def _subtitle(facts: ReportFacts, shared: Mapping[str, Any]) -> str:
    done = [run for run in facts.runs if run["status"] == "done"]
    seeds = {run["seed"] for run in done}
    what = "seed" if facts.advice is None else "window"
    words = [f"{len(done)} runs", f"{len(seeds)} {what}s" if len(seeds) != 1 else f"1 {what}"]
    if failed := len(facts.runs) - len(done):
        words.append(f"{failed} failed")
    durations = {run["duration_s"] for run in done}
    if len(durations) == 1:
        words.append(f"{durations.pop():g} s simulated each")
    changed = [f"{name} = {parts.plain(value)}" for name, value in shared.items() if name != "duration_s"]
    return "; ".join([", ".join(words), *changed])


def _answer(facts: ReportFacts, views: Sequence[parts.RankingView]) -> PageSection:
    # Advice has its own verdict. The intervals of its few windows are so wide that nearly all candidates would tie.
    blocks: list[PageBlock] = _verdicts(facts, views) if facts.advice is None else []
    if failed := [run for run in facts.runs if run["status"] != "done"]:
        names = [f"{run['variant']} seed {run['seed']} ({run['error']})" for run in failed[:5]]
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        blocks.append(
            PageWords(f"{counted(len(failed), 'run')} failed, in no figure: {'; '.join(names)}{more}.", css="failed")
        )
    if len(views) == 1:
        blocks += parts.picture(views[0])
    return PageSection("The answer" if facts.advice is None else "On the unseen windows", blocks=blocks)


def _verdicts(facts: ReportFacts, views: Sequence[parts.RankingView]) -> list[PageBlock]:
    if len(views) > MOST_OPEN:
        return parts.answers(views)
    shared = parts.common_keys(views)
    carried = [capacity_words(facts.capacity)] if facts.capacity and len(views) == 1 else []
    return [parts.verdict_block(view, view.name_without(shared), [*carried, *_assumed(view)]) for view in views]


def _assumed(view: parts.RankingView) -> list[str]:
    words = assumption_words(view.ranking.rows)
    return [words] if words else []


def _details(facts: ReportFacts, view: parts.RankingView) -> list[PageBlock]:
    blocks = [*parts.picture(view), *parts.types_table(view), *parts.ranked_bars(view), parts.figures_table(view)]
    if losses := _losses(facts, view):
        blocks += [PageWords("", heading="Lost deliveries"), *losses]
    return blocks


def _losses(facts: ReportFacts, view: parts.RankingView) -> list[PageBlock]:
    losses = losses_of(view.rows, facts.causes, facts.areas)
    return loss_blocks(losses, view.marks, facts.tracks.get(view.ranking.point.id, ()))


def _over_time(rows: Sequence[KeyedRow], marks: parts.Marks) -> list[PageBlock]:
    figures: list[PageBlock] = []
    for point in _points(rows)[:MOST_OPEN]:
        for metric in OVER_TIME:
            own = [row for row in rows if row.point == point and metric in row.figures]
            if len({row.key for row in own}) < 3:
                continue
            lines = [
                ChartLine(
                    name, marks[name], [(float(row.key), row.figures[metric]) for row in own if row.variant == name]
                )
                for name in dict.fromkeys(row.variant for row in own)
            ]
            measure = parts.measure_of(metric)
            x = Measure("minute of publication", "")
            title = f"{measure.title} by minute" + (f": {point_words(point)}" if len(_points(rows)) > 1 else "")
            drawn = line_chart(lines, x, measure, bounded=metric == "delivery_ratio")
            table = PageTable(f"minutes-{metric}", ["protocol", "minute", measure.title, "low", "high"], [
                [row.variant, int(row.key), *_ends(row, metric)] for row in own
            ])  # fmt: skip
            figures.append(PageFigure(title, drawn, keys=[(line.name, line.mark, "") for line in lines], table=table))
    return figures


def _ends(row: KeyedRow, metric: str) -> tuple[float, float, float]:
    figure = row.figures[metric]
    return figure.mean, figure.low, figure.high


def _points(rows: Iterable[KeyedRow]) -> list[ScenarioPoint]:
    return list(dict.fromkeys(row.point for row in rows))


def _drops(rows: Sequence[KeyedRow], marks: parts.Marks) -> list[PageBlock]:
    several = len(_points(rows)) > 1
    measure = Measure("drops", "")
    lines = []
    for row in sorted(rows, key=lambda row: (row.variant, -row.figures["drops"].mean)):
        line = [PageCell(row.variant, mark=marks[row.variant]), row.key, sentence_of(row.key)]
        line.append(parts.figure_cell(row.figures["drops"], measure))
        lines.append([*line, point_words(row.point)] if several else line)
    header = ["protocol", "reason", "meaning", "drops a run", *(["scenario"] if several else [])]
    return [PageFold("Drops by reason", [PageTable("drops", header, lines)])] if lines else []


def _maps(facts: ReportFacts) -> list[PageBlock]:
    points = {ranking.point.id: ranking.point for ranking in facts.board.rankings}
    drawn: list[PageBlock] = []
    seen: set[int] = set()
    for point, tracks in facts.tracks.items():
        if tracks and id(tracks) not in seen:
            seen.add(id(tracks))
            title = f"Where {len(tracks)} nodes went: {point_words(points[point])}"
            drawn.append(PageFigure(title, track_map(tracks, title)))
    return drawn


def _runs(runs: Sequence[Mapping[str, Any]], replays: Mapping[str, str]) -> list[PageBlock]:
    """All runs; of many, behind a click."""
    table = runs_table(runs, replays)
    if len(runs) > MOST_RUNS:
        return [PageFold(f"All {len(runs)} runs", [table])]
    return [table] if runs else []


def runs_table(runs: Sequence[Mapping[str, Any]], replays: Mapping[str, str]) -> PageTable:
    """Every run; a failed one with its error, one that has a replay with a link to it."""
    rows = [
        [
            PageCell(run["run"], css="short"),
            run["scenario"],
            run["variant"],
            run["network"],
            run["seed"],
            PageCell(run["status"], css="failed" if run["status"] != "done" else "short"),
            PageCell(run["took_s"], f"{run['took_s']:.2f}", css="number"),
            PageLink("replay", replays[run["run"]]) if run["run"] in replays else "",
            run["error"] or "",
        ]
        for run in runs
    ]
    header = ["run", "scenario", "protocol", "network", "seed", "status", "took (s)", "replay", "error"]
    note = "Any run can be looked at: earshot view LAKE --run ID." if replays else ""
    used = [column for column in range(len(header)) if any(str(row[column]) for row in rows)]
    kept = [[row[column] for column in used] for row in rows]
    names = [header[column] for column in used]
    less = [names.index(name) for name in ("scenario", "network", "took (s)") if name in names]
    return PageTable("runs", names, kept, note, less=less)
