"""From a trace in a lake to a scenario: the one way from a trace to a run.

The scenario plays the lake's positions back, in their own coordinates and for a window of their time. It
needs no Spark: it can be written to a file, run here, or sent to tasks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from earshot.errors import ScenarioError, TraceError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.traces.plausibility import YEAR_2200_S, as_date
from earshot.records.trajectories import Trajectories
from earshot.simulation.media.radios import IDEAL, RADIOS
from earshot.simulation.mobility import Playback
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.settings_reader import Where, read
from earshot.simulation.workload.presets import DEFAULT_PRESET, PRESETS, TraceFacts, preset_tables
from earshot.traces.lake_tables import TraceAbout, TraceRows, trace_about, trace_rows

DEFAULT_RADIO = "802.11p-6M"
LONGEST_WINDOW_S = 120.0
"Without a window, a longer trace is played back for this long, around its middle."
WARM_UP_S, COOL_DOWN_S = 20.0, 5.0
"Of a window of two minutes or more; of a shorter one a sixth and a twenty-fourth."
LONGEST_GAP_S = 1e9
"Instead of no limit, which a scenario file cannot write."
MOST_GROUPS = 12
"A trace with more types of vehicles has one group of nodes; `type:NAME` names those of a type."


class EmptyWindow(TraceError):
    """No node of the trace is present in the window."""


@dataclass(frozen=True, slots=True)
class TraceWindow:
    """A part of a trace in a lake, by the trace's own times."""

    lake: str
    trace: str
    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class TraceAdditions:
    """What a scenario needs and a trace does not say: the radio and the workload, as `scenario_from_trace` has them."""

    radio: str = DEFAULT_RADIO
    range_m: float | None = None
    workload: str | None = None
    events: str | None = None
    subscriptions: str | None = None

    def check(self, lake: str) -> None:
        """ScenarioError where something is wrong whatever the trace is."""
        check_radio(self.radio)
        check_workload(lake, self.workload, self.events, self.subscriptions)

    def scenario(self, lake: str, trace: str, start_s: float | None, end_s: float | None) -> Scenario:
        """The scenario that plays this part of the trace back."""
        return scenario_from_trace(lake, trace, start_s=start_s, end_s=end_s, **asdict(self))


def scenario_from_trace(
    lake: str | os.PathLike[str],
    trace: str,
    *,
    start_s: float | None = None,
    end_s: float | None = None,
    radio: str = DEFAULT_RADIO,
    range_m: float | None = None,
    workload: str | None = None,
    events: str | os.PathLike[str] | None = None,
    subscriptions: str | os.PathLike[str] | None = None,
) -> Scenario:
    """A scenario whose nodes go where the trace says, from `start_s` until `end_s` (the trace's times).

    `workload` is a preset's name (`mixed` by default) or that of a workload in the lake; `events` and
    `subscriptions` are .jsonl files instead. Their times are the trace's. `range_m` is the radio's by default.
    """
    root = Folder(lake).root
    about = trace_about(root, trace)
    window = window_of(root, trace, about, start_s, end_s)
    rows = trace_rows(root, trace, window.start_s, window.end_s)
    if not rows.names:
        raise EmptyWindow(f"trace {trace} has no node between {window.start_s:.12g} and {window.end_s:.12g} s")
    west, south, east, north = about.box or _box_of(rows)
    width_m, height_m = (float(max(1, math.ceil(side))) for side in (east - west, north - south))
    max_gap_s = min(about.longest_gap_s, LONGEST_GAP_S)
    present = mean_present(rows, window, max_gap_s)
    if present == 0.0 and len(rows.time) > len(rows.names):
        raise EmptyWindow(
            f"trace {trace} has no node between {window.start_s:.12g} and {window.end_s:.12g} s: a node without a row "
            f"for more than {max_gap_s:g} s is away"
        )
    table: dict[str, Any] = {
        "name": trace,
        "description": f"{len(rows.names):,} nodes of trace {trace}, {window.start_s:.12g} to {window.end_s:.12g} s",
        "duration_s": window.duration_s,
        "warm_up_s": min(WARM_UP_S, window.duration_s / 6.0),
        "cool_down_s": min(COOL_DOWN_S, window.duration_s / 24.0),
        "area": {"width_m": width_m, "height_m": height_m, "west_m": west, "south_m": south},
        "medium": _medium(radio, range_m),
        "nodes": _nodes(rows, window, max_gap_s),
    }
    facts = TraceFacts(width_m, height_m, len(rows.names), present)
    table |= _workload(window, facts, workload, events, subscriptions)
    return read(Scenario, table, Where(f"trace {trace}"))


def window_of(lake: str, trace: str, about: TraceAbout, start_s: float | None, end_s: float | None) -> TraceWindow:
    """The window, cut to the trace; TraceError where it lies outside. Without one, the whole of a short trace, and
    the middle of a longer one."""
    if start_s is None and end_s is None:
        middle = (about.start + about.end) / 2.0
        half = LONGEST_WINDOW_S / 2.0
        start_s, end_s = max(about.start, middle - half), min(about.end, middle + half)
    start = about.start if start_s is None else max(start_s, about.start)
    end = about.end if end_s is None else min(end_s, about.end)
    if not start < end:
        wanted = [about.start if start_s is None else start_s, about.end if end_s is None else end_s]
        raise TraceError(
            f"the window {wanted[0]:.12g} to {wanted[1]:.12g} s is outside of trace {trace}, "
            f"which lasts from {about.start:.12g} to {about.end:.12g} s; choose a window within it"
        )
    return TraceWindow(lake, trace, start, end)


def mean_present(rows: TraceRows, window: TraceWindow, max_gap_s: float) -> float:
    """How many nodes are there at a time, on average over the window."""
    time, following = rows.time[:-1], rows.time[1:]
    same = np.ones(len(rows.time), dtype=bool)
    same[rows.first[1:-1]] = False
    there = same[1:] & ((following - time <= max_gap_s) | (rows.motion == "waypoints"))
    lasted = np.minimum(following, window.end_s) - np.maximum(time, window.start_s)
    return float(lasted[there & (lasted > 0)].sum() / window.duration_s)


def _nodes(rows: TraceRows, window: TraceWindow, max_gap_s: float) -> dict[str, Any]:
    """A group for each type of node, where all have one and there are few types; otherwise one group of all."""
    playback = _playback(window, max_gap_s)
    types = sorted(set(rows.types.values()))
    if not 2 <= len(types) <= MOST_GROUPS or len(rows.types) < len(rows.names) or {*types} & {*rows.names, "all"}:
        return {"node": {"mobility": playback}}
    return {kind: {"mobility": {**playback, "type": kind}} for kind in types}


def _playback(window: TraceWindow, max_gap_s: float) -> dict[str, Any]:
    return {
        "kind": "playback",
        "lake": window.lake,
        "trace": window.trace,
        "start_s": window.start_s,
        "end_s": window.end_s,
        "max_gap_s": max_gap_s,
    }


def _medium(radio: str, range_m: float | None) -> dict[str, Any]:
    check_radio(radio)
    kind = "unit-disk" if radio == IDEAL else "contention"
    return {"kind": kind, "radio": radio} | ({} if range_m is None else {"range_m": range_m})


def _box_of(rows: TraceRows) -> tuple[float, float, float, float]:
    return float(rows.x_m.min()), float(rows.y_m.min()), float(rows.x_m.max()), float(rows.y_m.max())


def _workload(
    window: TraceWindow,
    facts: TraceFacts,
    workload: str | None,
    events: str | os.PathLike[str] | None,
    subscriptions: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """The tables `publish` and `subscribe`, or `own`."""
    check_workload(window.lake, workload, events, subscriptions)
    if events is not None and subscriptions is not None:
        files = {"events": Path(events).absolute(), "subscriptions": Path(subscriptions).absolute()}
        return {"own": {**{key: str(file) for key, file in files.items()}, "start_s": window.start_s}}
    name = workload or DEFAULT_PRESET
    if name in PRESETS:
        return dict(preset_tables(name, facts))
    return {"own": {"lake": window.lake, "workload": name, "start_s": window.start_s}}


def check_radio(radio: str) -> None:
    """ScenarioError where there is no such radio."""
    if radio != IDEAL and radio not in RADIOS:
        raise ScenarioError(f"radio: there is no {radio!r}; there are: {', '.join([*RADIOS, IDEAL])}")


def check_workload(
    lake: str,
    workload: str | None,
    events: str | os.PathLike[str] | None,
    subscriptions: str | os.PathLike[str] | None,
) -> None:
    """ScenarioError where a workload cannot be what the user means. It needs no trace."""
    if (events is None) != (subscriptions is None):
        raise ScenarioError("a workload of your own needs both events and subscriptions")
    if events is not None and subscriptions is not None:
        if workload is not None:
            raise ScenarioError("name a workload, or give files of events and subscriptions, not both")
        for file in (Path(events), Path(subscriptions)):
            _check_json_lines(file)
    elif workload is not None and workload not in PRESETS:
        kept = sorted({row["workload"] for row in ArrowLake(lake).partitions("events")})
        if workload not in kept:
            of_lake = f"the lake has {', '.join(kept[:5])}" if kept else f"the lake {lake} has none of its own"
            raise ScenarioError(
                f"there is no workload {workload!r}; there are {', '.join(PRESETS)}, and {of_lake}; "
                f"`earshot workload {workload} --events FILE --subscriptions FILE --lake {lake}` makes one"
            )


def _check_json_lines(file: Path) -> None:
    if file.suffix != ".jsonl":
        raise ScenarioError(
            f"{file}: a scenario reads .jsonl; put other files into the lake (`earshot workload NAME --events ... "
            "--subscriptions ...`) and name that workload"
        )
    if not file.exists():
        raise ScenarioError(f"no such file: {file}; check the path")


def scenario_doubts(scenario: Scenario) -> list[str]:
    """What is probably wrong with a scenario that plays a trace back: its window, its area, its publishers."""
    doubts: list[str] = []
    playbacks = [group.mobility for group in scenario.nodes.values() if isinstance(group.mobility, Playback)]
    if not playbacks:
        return doubts
    for one in playbacks:
        doubts += _window_doubts(one, scenario.duration_s)
    trajectories = scenario.trajectories(0)
    doubts += _presence_doubts(scenario, trajectories)
    doubts += _area_doubts(scenario, trajectories)
    doubts += _publisher_doubts(scenario, trajectories)
    return list(dict.fromkeys(doubts))


def _window_doubts(one: Playback, duration_s: float) -> list[str]:
    begins, ends = one.span()
    if one.file is not None and ends >= YEAR_2200_S:  # of a trace in a lake, `ingest` asks
        return [
            f"times of trace {one.source} reach until {as_date(ends)}, after the year 2200: a clock may have been "
            "wrong, or their unit may be another; `earshot ingest` says which rows, and reads other units (--units)"
        ]
    start = begins if one.start_s is None else one.start_s
    if start >= begins and start + duration_s <= ends:
        return []
    missing_s = max(0.0, begins - start) + max(0.0, start + duration_s - ends)
    return [
        f"the window {start:.12g} to {start + duration_s:.12g} s reaches beyond trace {one.source}, which lasts from "
        f"{begins:.12g} to {ends:.12g} s: for {min(missing_s, duration_s):g} s nobody moves"
    ]


def _presence_doubts(scenario: Scenario, trajectories: Trajectories) -> list[str]:
    """Without two nodes that are there while events are published, nothing can be delivered."""
    start, end = scenario.warm_up_s, scenario.duration_s - scenario.cool_down_s
    there = [
        name
        for name, presence in zip(trajectories.names, trajectories.presence, strict=True)
        if any(comes < end and leaves > start for comes, leaves in presence)
    ]
    if len(there) > 1:
        return []
    while_published = f"while events are published, from {start:g} to {end:g} s of the run"
    if not there:
        return [f"no node is there {while_published}: change duration_s, warm_up_s, cool_down_s or the trace's start_s"]
    return [f"only node {there[0]} is there {while_published}: nobody else can receive them"]


def _area_doubts(scenario: Scenario, trajectories: Trajectories) -> list[str]:
    west, south, east, north = scenario.area.box
    moments = np.linspace(0.0, scenario.duration_s, 20)
    inside = outside = 0
    for moment in moments.tolist():
        there = [i for i in range(len(trajectories)) if trajectories.present(i, moment)]
        x, y = trajectories.positions(moment)[there].T
        beyond = (x < west - 1) | (x > east + 1) | (y < south - 1) | (y > north + 1)
        outside += int(beyond.sum())
        inside += int((~beyond).sum())
    if not outside:
        return []
    return [
        f"the area is smaller than the trace: {outside / (inside + outside):.0%} of the positions lie outside of "
        f"{scenario.area.width_m:g} x {scenario.area.height_m:g} m from ({west:g}, {south:g}); set area.width_m, "
        "area.height_m, area.west_m and area.south_m"
    ]


def _publisher_doubts(scenario: Scenario, trajectories: Trajectories) -> list[str]:
    events, _ = scenario.own.rows()
    start_s = scenario.own.start_s or 0.0
    index = {name: i for i, name in enumerate(trajectories.names)}
    within = [row for row in events if 0 <= row.time_s - start_s < scenario.duration_s]
    absent = [
        row
        for row in within
        if row.node not in index or not trajectories.present(index[row.node], row.time_s - start_s)
    ]
    doubts = []
    if absent:
        first = absent[0]
        doubts.append(
            f"{len(absent)} of {len(within)} events are left out: their publishers are not there at that time, as "
            f"{first.node} at {first.time_s:.12g} s"
        )
    if events and not within:
        doubts.append(f"none of the {len(events)} events is published in the window")
    return doubts


def relative_window(about: TraceAbout, window: Sequence[float] | None) -> tuple[float | None, float | None]:
    """A window in seconds since the trace's start, by the trace's own times."""
    if window is None:
        return None, None
    start_s, end_s = window
    return about.start + start_s, about.start + end_s
