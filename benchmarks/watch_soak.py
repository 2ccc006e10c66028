"""A watch for weeks, in an hour: spools of many nodes are written slice by slice, and a watch follows them.

    python benchmarks/watch_soak.py --days 14 --nodes 50          two weeks, about an hour
    python benchmarks/watch_soak.py --days 1 --slice-min 10       a short one

It prints batch time, memory, files and state as they go on, then whether each levels off (the last quarter against the
second; rows older than `--keep-days` are removed by then), and holds the figures against those of
`earshot ingest --format spool` over the same spools.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from earshot.live.spool import Spool
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.lake.tables import table_named
from earshot.pipeline.session import spark_session
from earshot.pipeline.watch.stream import DRIVER_MEMORY, Watch
from earshot.pipeline.watch.watch_state import Commit, StateLog, WatchSettings
from earshot.records import Record

START = 1_790_000_000.0
DAY_S = 86_400.0
NETWORK = {"group": "239.255.69.83:47474", "keys": ["5ca1ab1e"]}
TYPES = ("Siren", "Traffic", "Weather")


@dataclass
class Sample:
    """One batch."""

    batch: int
    batch_s: float
    memory_mb: float
    files: int
    "All below the lake: those of the tables, and those that were replaced and stay for a minute."
    table_files: int
    state_kb: float
    offsets_kb: float


class Town:
    """Nodes that walk about, publish, and get most of what they want; each starts anew every day."""

    def __init__(self, folder: Path, nodes: int, position_s: float, event_s: float) -> None:
        self.folder, self.position_s, self.event_s = folder, position_s, event_s
        self.names = [f"node-{number:02}" for number in range(nodes)]
        self.random = Random(7)
        self.places = {name: (self.random.uniform(0, 3000), self.random.uniform(0, 3000)) for name in self.names}
        self.spools: dict[str, Spool] = {}
        self.events = 0

    def live(self, since: float, until: float) -> None:
        """Everything that happens between two times."""
        records: list[Record] = []
        for number, name in enumerate(self.names):
            day = math.floor((since - START) / DAY_S)
            if name not in self.spools or since == START + day * DAY_S:
                records += self._start(name, since, number, day)
            records += self._walk(name, since, until)
        records += self._publish(since, until)
        for record in sorted(records, key=lambda one: one.time):
            self.spools[record.node].write(record)
        for spool in self.spools.values():
            spool.flush()

    def close(self) -> None:
        for spool in self.spools.values():
            spool.close()

    def _start(self, name: str, now: float, number: int, day: int) -> Iterable[Record]:
        if name in self.spools:
            self.spools[name].write(Record(now, name, "leave", detail="stopped"))
            self.spools[name].close()
        self.spools[name] = Spool(self.folder, name, day + 1, segment_bytes=1 << 20)
        join = json.dumps({"protocol": "flooding", "settings": {}, "life": day + 1, "network": NETWORK})
        x_m, y_m = self.places[name]
        yield Record(now, name, "join", detail=join, x_m=x_m, y_m=y_m)
        yield Record(now, name, "subscribe", subscription=f"{name}/1", detail=f"{TYPES[number % 3]}: within 1 km")

    def _walk(self, name: str, since: float, until: float) -> Iterable[Record]:
        now = since + self.random.uniform(0.1, 1.0)
        while now < until:
            x_m, y_m = self.places[name]
            self.places[name] = (x_m + self.random.uniform(-20, 20)) % 3000, (y_m + self.random.uniform(-20, 20)) % 3000
            yield Record(now, name, "position", x_m=self.places[name][0], y_m=self.places[name][1])
            now += self.position_s

    def _publish(self, since: float, until: float) -> Iterable[Record]:
        now = since + self.random.expovariate(len(self.names) / self.event_s)
        while now < until:
            source = self.random.choice(self.names)
            self.events += 1
            id, type = f"e{self.events}", self.random.choice(TYPES)
            x_m, y_m = self.places[source]
            event = {"type": type, "id": id, "source": source, "time": now, "position": {"x_m": x_m, "y_m": y_m}}
            yield Record(now, source, "publish", event=id, detail=json.dumps(event), x_m=x_m, y_m=y_m)
            yield Record(now, source, "send", event=id, packet="flood", bytes=120)
            for number, name in enumerate(self.names):
                near = math.dist(self.places[name], (x_m, y_m)) < 1000.0
                if name != source and near and TYPES[number % 3] == type and self.random.random() < 0.95:
                    later = min(now + self.random.uniform(0.001, 0.5), until - 1e-3)
                    yield Record(later, name, "receive", event=id, packet="flood", peer=source, bytes=120)
                    yield Record(later, name, "deliver", event=id, subscription=f"{name}/1", hops=1)
            now += self.random.expovariate(len(self.names) / self.event_s)


def memory_mb() -> float:
    """What this process and its children (the JVM, the workers) hold."""
    rows = subprocess.run(["ps", "-eo", "pid,ppid,rss"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [tuple(map(int, row.split())) for row in rows[1:]]
    ours = {os.getpid()}
    for _ in range(5):
        ours |= {pid for pid, parent, _ in found if parent in ours}
    return sum(rss for pid, _, rss in found if pid in ours) / 1024.0


def look(commit: Commit, lake: ArrowLake) -> Sample:
    root = lake.folder.local
    assert root is not None
    state = sum(file.size_bytes for file in StateLog(lake, "live").files.files())
    offsets = sorted((root / "_watches/live/checkpoint/offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    size = offsets[-1].stat().st_size if offsets else 0
    files = sum(len(names) for _, _, names in os.walk(root))
    tables = [table_named(path.name) for path in root.iterdir() if path.name.startswith("watch")]
    in_tables = sum(len(snapshot.files) for kind in tables if (snapshot := lake.snapshot(kind)))
    return Sample(commit.batch, commit.batch_s, memory_mb(), files, in_tables, state / 1024.0, size / 1024.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=14.0)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--slice-min", type=float, default=20.0, help="spool time of one batch")
    parser.add_argument("--position-s", type=float, default=60.0, help="spool time between two positions of a node")
    parser.add_argument("--event-s", type=float, default=600.0, help="spool time between two events of a node")
    parser.add_argument("--keep-days", type=float, default=3.0, help="days to keep; fewer than a quarter of --days")
    parser.add_argument("--most-s", type=float, default=math.inf, help="end after this number of seconds")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="earshot-soak-"))
    try:
        soak(folder, asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def soak(folder: Path, asked: argparse.Namespace) -> None:
    """Run it, and print what it finds."""
    (folder / "spools").mkdir()
    town = Town(folder / "spools", asked.nodes, asked.position_s, asked.event_s)
    lake = Lake(spark_session("local[2]", small=True, settings={"spark.driver.memory": DRIVER_MEMORY}), folder / "lake")
    commits: deque[Commit] = deque(maxlen=1)
    samples: list[Sample] = []
    slice_s = 60.0 * asked.slice_min
    # A slice is written node by node: a batch may find one node's records and not yet another's.
    # An event is settled only after the next record of each node, which shows that the node is still there.
    settings = WatchSettings(
        every_s=0.0,
        delay_s=10.0 + slice_s,
        patience_s=30.0 + asked.position_s,
        forget_s=3600.0 + slice_s,
        keep_s=asked.keep_days * DAY_S,
    )
    watch = Watch(lake, [str(folder / "spools")], settings, None, commits.append)
    began, now = time.monotonic(), START
    town.live(now, now + slice_s)
    with watch.running() as query:
        while now < START + asked.days * DAY_S and time.monotonic() - began < asked.most_s:
            now += slice_s
            town.live(now, now + slice_s)
            query.processAllAvailable()
            samples.append(look(commits[-1], lake.arrow))
            if len(samples) % 10 == 1:
                one = samples[-1]
                files = f"{one.files:5} files, {one.table_files} of tables"
                size = f"{files}  state {one.state_kb:6.0f} KB  offsets {one.offsets_kb:5.1f} KB"
                spent = f"batch {one.batch:5}  {one.batch_s:5.1f} s  {one.memory_mb:6.0f} MB"
                print(f"day {(now - START) / DAY_S:5.2f}  {spent}  {size}", flush=True)
    town.close()
    with Watch(lake, [str(folder / "spools")], settings, None, commits.append).running(once=True) as query:
        query.awaitTermination()
    level(samples)
    last, left = commits[-1].counts, sum(len(names) for _, _, names in os.walk(folder / "lake"))
    counted = f"{last['records']:,} records, {last['events']:,} events, {last['late']} late"
    took = f"{(now - START) / DAY_S:.1f} days in {time.monotonic() - began:.0f} s"
    print(f"\nthe watch has ended: {took}, {left} files, {counted}", flush=True)
    lake.session.stop()
    compare(folder)


def level(samples: list[Sample]) -> None:
    """Whether each figure levels off."""
    quarter = max(1, len(samples) // 4)
    print(f"\n{'':12}{'second quarter':>16}{'last quarter':>16}{'ratio':>8}")
    for name in ("batch_s", "memory_mb", "files", "table_files", "state_kb", "offsets_kb"):
        second = median(getattr(one, name) for one in samples[quarter : 2 * quarter] or samples)
        end = median(getattr(one, name) for one in samples[-quarter:])
        print(f"{name:12}{second:16.1f}{end:16.1f}{end / second if second else 1.0:8.2f}")


def compare(folder: Path) -> None:
    """Ends the program, with 1 where the figures are not those of the batch pipeline."""
    ingest = [
        "-m",
        "earshot",
        "ingest",
        f"{folder}/spools",
        "--format",
        "spool",
        "--trace",
        "b",
        "--lake",
        f"{folder}/lake",
    ]
    subprocess.run([sys.executable, *ingest], check=True)
    lake = ArrowLake(folder / "lake")
    stream, batch = (
        {
            (row["metric"], row["by"], row["key"]): row["value"]
            for row in lake.read(table).to_pylist()
            if row["by"] in ("all", "type", "minute")
        }
        for table in ("watched_figures", "metrics")
    )
    shared = sorted(key for key in stream.keys() & batch.keys() if not key[0].startswith("latency"))
    wrong = [key for key in shared if stream[key] != batch[key]]
    print(f"figures: {len(shared)} shared with the batch pipeline, {len(wrong)} differ {wrong[:5]}")
    for key in [key for key in shared if key[1] in ("all", "type")]:
        print(f"  {key[0]:16}{key[2] or key[1]:10}{stream[key]:14.6g}{batch[key]:14.6g}")
    sys.exit(1 if wrong or not shared else 0)


if __name__ == "__main__":
    main()
