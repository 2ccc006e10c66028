"""Spools as live nodes write them, of a run whose truth is known: a simulated one."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from earshot.live.spool import Spool
from earshot.pipeline.oracle.workloads import workload_tables
from earshot.records import Kind, Record
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario

SMALL = {
    "duration_s": 60,
    "warm_up_s": 0,
    "cool_down_s": 5,
    "nodes.car.count": 10,
    "nodes.walker.count": 6,
    "nodes.sign.count": 8,
    "medium.radio": "ideal",
}


def small_city() -> Scenario:
    return load_scenario("city").with_(**SMALL)


def recorded(protocol: str, scratch: Path, seed: int = 0, duration_s: float = 60.0) -> list[Record]:
    """What the nodes of a small city would have recorded, in order of time."""
    city = small_city().with_(duration_s=duration_s)
    log = scratch / f"{protocol}-{seed}.parquet"
    with Log(log) as into:
        run(city, protocol, {}, seed, into)
    records = [_record(row, protocol) for row in pq.read_table(log).to_pylist()]
    records += [
        Record(knot["time"], knot["node"], Kind.POSITION, x_m=knot["x_m"], y_m=knot["y_m"])
        for knot in workload_tables("w", city, seed).positions
    ]
    return sorted(records, key=lambda record: record.time)


def _record(row: dict[str, Any], protocol: str) -> Record:
    if row["kind"] == Kind.JOIN:
        row["detail"] = json.dumps({"protocol": protocol, "settings": {}, "emulate_range_m": None, "life": 1})
    places = {name: None if math.isnan(row[name]) else row[name] for name in ("x_m", "y_m")}
    return Record(**{**row, **places})


class Recorder:
    """Writes records into spools, a node a spool, all below one folder."""

    def __init__(self, folder: Path, life: int = 1, segment_bytes: int = 40_000) -> None:
        self.folder, self.life, self.segment_bytes = folder, life, segment_bytes
        self.spools: dict[str, Spool] = {}

    def write(self, records: Iterable[Record]) -> None:
        for record in records:
            if record.node not in self.spools:
                self.spools[record.node] = Spool(self.folder / "nodes", record.node, self.life, self.segment_bytes)
            self.spools[record.node].write(record)
        for spool in self.spools.values():
            spool.flush()

    def close(self) -> None:
        for spool in self.spools.values():
            spool.close()
        self.spools.clear()


def write_spools(folder: Path, records: Iterable[Record]) -> Path:
    """All of them, closed."""
    recorder = Recorder(folder)
    recorder.write(records)
    recorder.close()
    return folder


def in_slices(records: list[Record], count: int) -> Iterator[list[Record]]:
    """By time, so many."""
    end = max(record.time for record in records) + 1e-9
    by_slice: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        by_slice[int(count * record.time / end)].append(record)
    for number in range(count):
        yield by_slice[number]
