"""Runs and their worlds for the replay page, and the catalogue of the runs in folders.

Runs in one world (the same trace and workload) are shown side by side. The runs in a lake are in
`lake_replays.LakeCatalogue`, a network that is being watched is in `watch_replay.WatchCatalogue`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from earshot.errors import ScenarioError, SettingsError, UnknownName, UsageError
from earshot.pipeline.oracle.workloads import announcement_of, event_of, span_of, workload_tables
from earshot.pipeline.reports.catalogues import AnswerableRun, RunCatalogue, answerable_run, expected_pairs
from earshot.pipeline.reports.recordings import LOG_COLUMNS, Recording, records_of
from earshot.plugins import PluginError
from earshot.protocols.catalogue import build_settings, needs_routing, protocol
from earshot.simulation.engine.run import settings_in
from earshot.simulation.media.medium_settings import Overlay
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.settings_reader import Where, read
from earshot.view.runs import Records, RunEntry, WorldEntry, sessions_of
from earshot.view.world import TrajectoryColumns, World, node_names

Rows = Iterable[Mapping[str, Any]]


def scenario_from(described: Mapping[str, Any], file: str) -> Scenario:
    """A scenario from its own table, as `Scenario.table` wrote it."""
    return read(Scenario, dict(described), Where(file))


def world_from_tables(
    key: str,
    scenario: Scenario | None,
    name: str,
    seed: int,
    times: tuple[float, float, float],
    positions: pa.Table,
    events: Rows,
    subscriptions: Rows,
    announcements: Rows,
) -> World:
    """A world from the lake's tables; `times` are start, end, and from when on counts."""
    names = positions.column("node").to_pylist()
    nodes = node_names(set(names))
    number = {node: i for i, node in enumerate(nodes)}
    columns = [positions.column(column).to_numpy() for column in ("time", "x_m", "y_m")]
    trajectories = TrajectoryColumns.of(
        len(nodes), np.array([number[node] for node in names], dtype=np.int32), *columns
    )
    medium = scenario.medium if scenario else None
    return World(
        key=key,
        name=name,
        seed=seed,
        start=times[0],
        end=times[1],
        counted_from=times[2],
        range_m=None if medium is None or isinstance(medium, Overlay) else medium.range_m,
        extent=_shown_extent(scenario),
        nodes=nodes,
        trajectories=trajectories,
        events=sorted((event_of(row) for row in events), key=lambda event: (event.time, event.id)),
        subscriptions=[span_of(row) for row in subscriptions],
        announcements=[announcement_of(row) for row in announcements],
    )


def _shown_extent(scenario: Scenario | None) -> tuple[float, float] | None:
    """The area's width and height. The page draws it from 0,0 on: an area elsewhere shows by where its nodes are."""
    if scenario is None or scenario.area.box[:2] != (0.0, 0.0):
        return None
    return scenario.area.width_m, scenario.area.height_m


def with_range(world: World, records: Records, name: str) -> World:
    """The world with a range from the log, where none is given: the greatest distance at which a node was heard."""
    over_a_radio = not needs_routing(name)
    if world.range_m is not None or not over_a_radio:
        return world
    rows = np.flatnonzero((records.event >= 0) & (records.node >= 0) & (records.peer >= 0))[:20_000]
    from_x, from_y = world.trajectories.at(records.peer[rows], records.time[rows])
    to_x, to_y = world.trajectories.at(records.node[rows], records.time[rows])
    far = np.hypot(from_x - to_x, from_y - to_y)
    far = far[np.isfinite(far)]
    if not len(far) or far.max() == 0.0:
        return world
    note = "The log does not hold the radio range: drawn is the greatest distance at which a node was heard."
    return replace(world, range_m=float(far.max()), notes=[*world.notes, note])


def settings_of(name: str, scenario: Scenario | None, given: Mapping[str, Any]) -> Any:
    """A protocol's settings; None where this version knows no such protocol, or it has other settings now."""
    try:
        machine = protocol(name, load=False)
        return settings_in(scenario, machine, given) if scenario else build_settings(machine.Settings, given)
    except (UnknownName, SettingsError, PluginError):
        return None


class FolderCatalogue(RunCatalogue):
    """Runs that `earshot simulate --log DIR` wrote; those of one scenario and seed share a world."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._runs: dict[str, tuple[Path, dict[str, Any]]] = {}
        for folder in folders:
            run_file = _run_file(folder)
            key = folder.name if folder.name not in self._runs else str(folder)
            self._runs[key] = (folder, run_file)
        by_world: dict[str, list[str]] = {}
        for key, (_, run_file) in self._runs.items():
            of = json.dumps([run_file["scenario"], run_file["seed"]], sort_keys=True)
            by_world.setdefault(of, []).append(key)
        super().__init__({f"world-{i}": runs for i, runs in enumerate(by_world.values())})

    def worlds(self) -> list[WorldEntry]:
        found = []
        for key, runs in self._runs_in.items():
            run_file = self._runs[runs[0]][1]
            title = f"{run_file['scenario'].get('name', 'unnamed')}, seed {run_file['seed']}"
            found.append(WorldEntry(key, title, [RunEntry(run, self._title(run)) for run in runs]))
        return found

    def _title(self, run: str) -> str:
        name = str(self._runs[run][1]["protocol"])
        same = [run for run in self._runs if self._runs[run][1]["protocol"] == name]
        return name if len(same) == 1 else f"{name} ({run})"

    def _scenario(self, folder: Path, run_file: Mapping[str, Any]) -> Scenario | None:
        """None where the scenario cannot be read again: a file it names is gone."""
        try:
            return scenario_from(run_file["scenario"], str(folder / "run.json"))
        except (ScenarioError, SettingsError):
            return None

    def read_world(self, key: str) -> World:
        run = self._runs_in[key][0]
        folder, run_file = self._runs[run]
        scenario = self._scenario(folder, run_file)
        lasting = float(run_file["scenario"]["duration_s"])
        seed, name = int(run_file["seed"]), str(run_file["scenario"].get("name", "unnamed"))
        times = (0.0, lasting, float(run_file["scenario"].get("warm_up_s", 0.0)))
        try:
            if scenario is None:
                raise ScenarioError("the scenario is not known")
            drawn = workload_tables(key, scenario, seed)
        except (ScenarioError, OSError):
            recording = Recording()
            for _ in recording.add(_log_batches(folder)):
                pass
            medium = run_file["scenario"].get("medium", {})
            world = recording.world(key, name, range_m=medium.get("range_m"))
            world = replace(world, seed=seed, start=0.0, end=lasting, counted_from=times[2])
        else:
            positions = pa.Table.from_pylist(list(drawn.positions))
            world = world_from_tables(
                key, scenario, name, seed, times, positions, drawn.events, drawn.subscriptions, drawn.announcements
            )
        records = records_of(_log_batches(folder), world)
        world = with_range(world, records, str(run_file["protocol"]))
        return replace(world, expected=expected_pairs(world, sessions_of(world, records)))

    def read_run(self, world_key: str, key: str) -> AnswerableRun:
        folder, run_file = self._runs[key]
        world = self.world(world_key)
        name = str(run_file["protocol"])
        settings = settings_of(name, self._scenario(folder, run_file), run_file["settings"])
        records = records_of(_log_batches(folder), world)
        return answerable_run(world, records, key, self._title(key), name, settings, run_file["settings"])


def is_run_folder(path: Path) -> bool:
    """Whether `earshot simulate --log` wrote this folder."""
    return (path / "run.json").is_file() and (path / "log.parquet").is_file()


def _run_file(folder: Path) -> dict[str, Any]:
    file = folder / "run.json"
    try:
        run_file = json.loads(file.read_text("utf-8"))
        if all(isinstance(run_file[name], kind) for name, kind in _RUN_FILE.items()):
            return dict(run_file)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} is not a run: it has no run.json; make one with earshot simulate --log DIR"
        ) from None
    except (ValueError, KeyError, TypeError):
        pass
    raise UsageError(f"{file} does not say what was run; make the run again with earshot simulate --log DIR")


_RUN_FILE = {"scenario": dict, "protocol": str, "settings": dict, "seed": int}


def _log_batches(folder: Path) -> Iterator[pa.RecordBatch]:
    file = folder / "log.parquet"
    try:
        yield from pq.ParquetFile(file).iter_batches(1 << 17, columns=LOG_COLUMNS)
    except (pa.ArrowInvalid, FileNotFoundError) as error:
        raise UsageError(f"{file} is not a log: {error}") from None
