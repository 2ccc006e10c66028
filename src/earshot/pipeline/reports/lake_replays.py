"""The catalogue of the runs in a lake, and the replays beside a report: one file for each world, with its runs side by
side. On a local disk the catalogue needs no Spark; a report's files are made in Spark tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pyarrow as pa

from earshot.errors import LakeError, ScenarioError, SettingsError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.reports.catalogues import AnswerableRun, RunCatalogue, answerable_run
from earshot.pipeline.reports.recordings import LOG_COLUMNS, records_of
from earshot.pipeline.reports.replays import scenario_from, settings_of, with_range, world_from_tables
from earshot.pipeline.spark.tasks import each_in_a_task
from earshot.simulation.scenario.scenario import Scenario
from earshot.view.page import write_page
from earshot.view.runs import Records, RunEntry, WorldEntry
from earshot.view.world import World

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake


class LakeCatalogue(RunCatalogue):
    """The runs in a lake; those of one workload share a world."""

    def __init__(self, tables: ArrowLake, runs: Sequence[str] | None = None, chosen: Chosen | None = None) -> None:
        self._tables = tables
        rows = tables.read("runs").to_pylist()
        chosen = chosen or Chosen()
        done = [row for row in rows if row["status"] == "done" and chosen.takes(row)]
        if runs is not None:
            done = [row for row in done if row["run"] in set(runs)]
        if not done:
            raise LakeError(
                f"the lake {tables.name} has no finished run{chosen.in_words}; run: earshot compare SCENARIO"
            )
        done.sort(key=lambda row: (row["scenario"], row["seed"], row["workload"], row["variant"]))
        self._runs: dict[str, dict[str, Any]] = {row["run"]: row for row in done}
        by_workload: dict[str, list[str]] = {}
        for row in done:
            by_workload.setdefault(row["workload"], []).append(row["run"])
        super().__init__(by_workload)
        self._scenario = lru_cache(maxsize=4)(self._read_scenario)

    def worlds(self) -> list[WorldEntry]:
        titles = [self._world_title(runs) for runs in self._runs_in.values()]
        found = []
        for (key, runs), title in zip(self._runs_in.items(), titles, strict=True):
            shown = title if titles.count(title) == 1 else f"{title} ({key[:6]})"
            found.append(WorldEntry(key, shown, [RunEntry(run, self._runs[run]["variant"]) for run in runs]))
        return found

    def _world_title(self, runs: Sequence[str]) -> str:
        first = self._runs[runs[0]]
        return f"{first['scenario']}, seed {first['seed']}"

    def _read_scenario(self, workload: str) -> Scenario | None:
        rows = self._tables.read("scenarios", workload=workload).to_pylist()
        try:
            return scenario_from(json.loads(rows[0]["described"]), rows[0]["scenario"]) if rows else None
        except (ScenarioError, SettingsError, ValueError):
            return None

    def read_world(self, key: str) -> World:
        run = self._runs[self._runs_in[key][0]]
        tables, scenario = self._tables, self._scenario(key)
        positions = tables.read("positions", trace=key)
        world = world_from_tables(
            key,
            scenario,
            run["scenario"],
            run["seed"],
            _times(run, positions, scenario is not None),
            positions,
            tables.read("events", workload=key).to_pylist(),
            tables.read("subscriptions", workload=key).to_pylist(),
            tables.read("announcements", workload=key).to_pylist(),
        )
        expected = tables.read("expected", workload=key)
        pairs = zip(expected.column("event").to_pylist(), expected.column("node").to_pylist(), strict=True)
        world = replace(world, expected=world.numbered(pairs))
        if world.range_m is None and scenario is None:
            world = with_range(world, self._records(run["run"], world), run["protocol"])
        return world

    def _records(self, run: str, world: World) -> Records:
        return records_of(self._tables.batches("log", LOG_COLUMNS, run=run), world)

    def read_run(self, world_key: str, key: str) -> AnswerableRun:
        run, world = self._runs[key], self.world(world_key)
        given = json.loads(run["settings"])
        settings = settings_of(run["protocol"], self._scenario(world_key), given)
        shown = {name: getattr(settings, name) for name in settings.__dataclass_fields__} if settings else given
        return answerable_run(world, self._records(key, world), key, run["variant"], run["protocol"], settings, shown)


def _times(run: Mapping[str, Any], positions: pa.Table, simulated: bool) -> tuple[float, float, float]:
    """When a run started and ended, and from when on it counts; live nodes count from the epoch."""
    lasting, warm_up = float(run["duration_s"] or 0.0), float(run["warm_up_s"] or 0.0)
    if simulated or not positions.num_rows:
        return 0.0, lasting, warm_up
    time = positions.column("time").to_numpy()
    start = float(time.min())
    return start, max(float(time.max()), start + lasting), start + warm_up


@dataclass(frozen=True)
class Chosen:
    """Which of a lake's runs to look at; None: all."""

    run: str | None = None
    "The beginning of a run's id: that one, and those on the same world stay beside it."
    scenario: str | None = None
    seed: int | None = None
    protocols: Sequence[str] | None = None

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of `runs` is one of them."""
        return (
            (self.run is None or str(row["run"]).startswith(self.run))
            and (self.scenario is None or row["scenario"] == self.scenario)
            and (self.seed is None or row["seed"] == self.seed)
            and (self.protocols is None or row["protocol"] in self.protocols)
        )

    @property
    def in_words(self) -> str:
        """The choice in words, for errors."""
        parts = [("whose id begins with", self.run), ("of scenario", self.scenario), ("of seed", self.seed)]
        words = [f"{what} {value}" for what, value in parts if value is not None]
        if self.protocols is not None:
            words.append(f"of {' or '.join(self.protocols)}")
        return f" {', '.join(words)}" if words else ""


MOST_WORLDS = 4
MOST_RUNS = 12
"Of a world. A report is about many runs; for all others there is `earshot view LAKE --run ID`."
MOST_HOPS = 200_000
MOST_ANSWERS = 4_000
"Of a run: a file stays within a few megabytes."


def write_replays(lake: Lake, report: Path, runs: Sequence[str]) -> Mapping[str, str]:
    """Files in a folder beside the report; for each run that is in one, its address from the report."""
    catalogue = LakeCatalogue(lake.arrow, runs)
    with_places = (_fewer(entry) for entry in catalogue.worlds() if catalogue.world(entry.key).nodes)
    entries = list(islice(with_places, MOST_WORLDS))
    documents = each_in_a_task(lake.session, entries, partial(_document, lake.folder.root, list(runs)))
    folder = report.with_name(f"{report.stem}-replays")
    links: dict[str, str] = {}
    for entry, document in zip(entries, documents, strict=True):
        name = f"{_plain(entry.title)}-{_plain(entry.key)[:8]}.html"
        write_page(folder / name, document)
        for run in entry.runs:
            links[run.key] = f"{quote(folder.name)}/{name}#{urlencode({'run': run.key})}"
    return links


def _plain(text: str) -> str:
    """The text as a file name that every system allows."""
    return re.sub("[^A-Za-z0-9]+", "-", text).strip("-") or "world"


def _fewer(entry: WorldEntry) -> WorldEntry:
    return WorldEntry(entry.key, entry.title, entry.runs[:MOST_RUNS])


def _document(root: str, runs: list[str], entry: WorldEntry) -> str:
    """In a task: the file of one world."""
    return LakeCatalogue(ArrowLake(root), runs).document(entry.title, entry, MOST_ANSWERS, MOST_HOPS)
