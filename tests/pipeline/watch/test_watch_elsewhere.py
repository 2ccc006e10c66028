"""A watch on a Spark Connect server and on a cluster: the tables of one that runs here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster import QUICK, running_cluster, running_server
from pyspark.sql import SparkSession
from spool_cases import Recorder, recorded
from test_stream import SETTINGS, Tables, content, skewed, watched

from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.watch.stream import KEPT, Checkpoint
from earshot.records import Record

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(1800)]

THIRDS = (1020.0, 1040.0)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """A live node writes where it is every second; a simulated one where it turns."""
    simulated = skewed(recorded("gossip", tmp_path_factory.mktemp("elsewhere")))
    return sorted([*simulated, *each_second(simulated)], key=lambda one: one.time)


def each_second(records: list[Record]) -> Iterator[Record]:
    places: dict[str, list[tuple[float, float, float]]] = {}
    for one in records:
        if one.x_m is not None and one.y_m is not None:
            places.setdefault(one.node, []).append((one.time, one.x_m, one.y_m))
    for node, known in places.items():
        times, xs, ys = zip(*known, strict=True)
        for now in np.arange(times[0] + 0.5, times[-1]):
            x_m, y_m = np.interp(now, times, xs), np.interp(now, times, ys)
            yield Record(float(now), node, "position", x_m=float(x_m), y_m=float(y_m))


def third(records: list[Record], number: int) -> list[Record]:
    return [one for one in records if sum(one.time >= bound for bound in THIRDS) == number]


@pytest.fixture(scope="module")
def truth(spark: SparkSession, records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Those of a watch that runs here and reads everything at once."""
    folder = tmp_path_factory.mktemp("here")
    recorder = Recorder(folder / "spools")
    recorder.write(records)
    recorder.close()
    lake = Lake(spark, folder / "lake")
    watched(lake, folder / "spools")
    return without_folders(content(lake))


def without_folders(tables: Tables) -> Tables:
    """The names of folders are not part of the answer."""
    return tables | {
        "watches": [tuple(value for value in row if "spools" not in str(value)) for row in tables["watches"]]
    }


def command(folder: Path, *options: str) -> list[str]:
    ways = ("--watermark", f"{SETTINGS.delay_s}s", "--patience", f"{SETTINGS.patience_s}s", "--cell", "500m", "--json")
    return [sys.executable, "-m", "earshot", "watch", f"{folder}/spools", "--out", f"{folder}/lake", *ways, *options]


def reported(folder: Path, *options: str) -> list[dict[str, Any]]:
    """What `earshot watch --once` says of its batches."""
    done = subprocess.run([*command(folder, "--once"), *options], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_watch_on_a_connect_server_is_killed_and_goes_on_here_and_there(
    spark: SparkSession, records: list[Record], truth: Tables, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path / "spools")
    recorder.write(third(records, 0))
    with running_server(tmp_path) as address:
        following = [*command(tmp_path, "--remote", address, "--every", "100ms")]
        with subprocess.Popen(following, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            process.kill()
        recorder.write(third(records, 1))
        lake = Lake(spark, tmp_path / "lake")
        (second,) = watched(lake, tmp_path / "spools")
        recorder.write(third(records, 2))
        recorder.close()
        (last,) = reported(tmp_path, "--remote", address)
    assert [first["batch"], second.batch, last["batch"]] == [0, 1, 2]
    assert without_folders(content(lake)) == truth


def test_a_watch_on_a_cluster(spark: SparkSession, records: list[Record], truth: Tables, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "spools")
    recorder.write(records)
    recorder.close()
    small = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": QUICK, "spark.driver.memory": "512m"}
    options = [word for name, value in small.items() for word in ("--conf", f"{name}={value}")]
    with running_cluster(tmp_path / "cluster", workers=1) as cluster:
        (only,) = reported(tmp_path, "--master", cluster.master, *options)
    assert only["records"] == len(records)
    assert without_folders(content(Lake(spark, tmp_path / "lake"))) == truth


def test_the_read_positions_of_the_last_batches_stay(tmp_path: Path) -> None:
    checkpoint = Checkpoint(Folder(tmp_path), "own")
    assert (checkpoint.batches(), checkpoint.read(-1)) == ([], {})
    for batch in range(KEPT + 3):
        checkpoint.begin(batch, {"/spools": {"a-1": f"1:{batch}:0"}})
        assert checkpoint.batches()[-1] == batch
        checkpoint.end(batch)
    assert checkpoint.batches() == list(range(3, KEPT + 3))
    assert checkpoint.read(KEPT + 2) == {"/spools": {"a-1": f"1:{KEPT + 2}:0"}}
    assert sorted(os.listdir(tmp_path / "own/commits")) == sorted(map(str, range(3, KEPT + 3)))
