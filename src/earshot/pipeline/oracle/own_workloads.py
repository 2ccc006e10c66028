"""Workloads from files of the user's own: events and subscriptions as JSON lines, XML or Parquet.

================  =============================================================================
events .jsonl     one event per line, as `Event.to_json` writes it; `time_s` and `node` also name its
                  time and publisher, and an event without an id is known by its text
events .xml       one document per file; the file's name is the event's id
events .parquet   the columns of the `events` table, of which `type` and `content` must be there
subscriptions     .jsonl as scenarios take them ({"node": ..., "filter": ...}), .txt with one filter a
                  line (its node is `line-N`), or .parquet with the columns of `subscriptions`
================  =============================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from earshot.errors import EarshotError, EventError, ScenarioError
from earshot.events import Event
from earshot.filters import Filter
from earshot.pipeline.lake.tables import EVENTS, SUBSCRIPTIONS
from earshot.pipeline.oracle.workloads import EVENTS_ARROW, area_json, event_row
from earshot.simulation.workload.workload_files import read_timed_subscriptions
from earshot.traces.files import is_address, open_trace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILLED = ("x_m", "y_m", "x_m_s", "y_m_s")
"What an event lacks that does not say where it was published."
_DEFAULTS = {"event": "''", "source": "''", "time": "0.0", "priority": "0", "format": "'json'"}


def own_events(spark: SparkSession, workload: str, files: Sequence[str | Path]) -> DataFrame:
    """Rows of `events` from files of one kind or several."""
    frames = []
    for kind, paths in _by_suffix(files, (".jsonl", ".xml", ".parquet")).items():
        if kind == ".parquet":
            frames.append(_columns(spark.read.parquet(*paths), workload))
        elif kind == ".xml":
            documents = spark.read.format("binaryFile").load(paths)
            frames.append(
                documents.select("path", "content").mapInArrow(partial(_event_rows, workload, _from_xml), EVENTS.ddl)
            )
        else:
            lines = spark.read.text(paths).where(F.trim("value") != "")
            named = lines.select(F.col("_metadata.file_path").alias("path"), F.col("value").alias("content"))
            frames.append(named.mapInArrow(partial(_event_rows, workload, _from_line), EVENTS.ddl))
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def _event_rows(
    workload: str, read: Callable[[str, Any], Event], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: texts to rows of `events`; an error about an event names its file."""
    for batch in batches:
        rows = []
        for path, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            name = path.rpartition("/")[2]
            try:
                rows.append(event_row(workload, read(name, content)))
            except EarshotError as error:
                raise EventError(f"{name}: {error} (in {content[:80]!r})") from None
        yield pa.RecordBatch.from_pylist(rows, schema=EVENTS_ARROW)


def _from_xml(name: str, content: bytes) -> Event:
    return Event.from_xml(content, id=name)


def _from_line(name: str, text: str) -> Event:
    try:
        row = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise EventError(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise EventError("a line must be a JSON object")
    if "time_s" in row:
        row["time"] = row.pop("time_s")
    if "node" in row:
        row["source"] = row.pop("node")
    row.setdefault("id", hashlib.sha256(f"{name} {text}".encode()).hexdigest()[:16])
    if "xml" in row:
        row.setdefault("type", Event.from_xml(row["xml"]).type)
    return Event.from_json(json.dumps(row))


def _columns(frame: DataFrame, workload: str) -> DataFrame:
    for name in ("type", "content"):
        if name not in frame.columns:
            raise EventError(f"a Parquet file of events needs the column {name!r}; it has {', '.join(frame.columns)}")
    chosen = [
        (F.col(name) if name in frame.columns else F.expr(_DEFAULTS.get(name, "null"))).cast(kind).alias(name)
        for name, kind in EVENTS.columns.items()
        if name != "workload"
    ]
    return frame.select(F.lit(workload).alias("workload"), *chosen)


def own_subscriptions(spark: SparkSession, workload: str, file: str | Path) -> DataFrame:
    """Rows of `subscriptions` from one file."""
    ((kind, (path,)),) = _by_suffix([file], (".jsonl", ".txt", ".parquet")).items()
    if kind == ".parquet":
        frame = spark.read.parquet(path)
        for name in ("node", "filter"):
            if name not in frame.columns:
                raise ScenarioError(
                    f"{path}: subscriptions need the column {name!r}; it has {', '.join(frame.columns)}"
                )
        defaults = {"start": "0.0", "subscription": "concat(node, '/', filter)"}
        chosen = [
            (F.col(name) if name in frame.columns else F.expr(defaults.get(name, "null"))).cast(type_).alias(name)
            for name, type_ in SUBSCRIPTIONS.columns.items()
            if name != "workload"
        ]
        return frame.select(F.lit(workload).alias("workload"), *chosen)
    with _here(path) as local:
        rows = list(_subscription_rows(workload, local, kind))
    if not rows:
        raise ScenarioError(f"{path}: the file has no subscriptions")
    return spark.createDataFrame(rows, SUBSCRIPTIONS.ddl)


def _subscription_rows(workload: str, path: Path, kind: str) -> Iterator[tuple[Any, ...]]:
    if kind == ".jsonl":
        for number, one in enumerate(read_timed_subscriptions(path)):
            id = one.id or f"{one.node}/{number}"
            yield workload, id, one.node, str(one.filter), area_json(one.region), one.at_s, one.until_s
        return
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                wanted = Filter.parse(line.strip())
            except EarshotError as error:
                raise ScenarioError(f"{path}: line {number}: {error}") from None
            yield workload, f"line-{number}", f"line-{number}", str(wanted), None, 0.0, None


@contextmanager
def _here(path: str) -> Iterator[Path]:
    """The file; one at an address as a copy on this machine."""
    if not is_address(path):
        yield Path(path)
        return
    with TemporaryDirectory(prefix="earshot-") as folder, open_trace(path) as stream:
        copy = Path(folder) / path.rpartition("/")[2]
        with copy.open("wb") as file:
            shutil.copyfileobj(stream, file)
        yield copy


def _by_suffix(files: Sequence[str | Path], known: Sequence[str]) -> dict[str, list[str]]:
    """The paths by their endings. Those at addresses may be patterns: Spark looks for the files."""
    found: dict[str, list[str]] = {}
    for file in map(str, files):
        if not is_address(file) and not Path(file).exists():
            raise ScenarioError(f"{file}: no such file; check the path")
        suffix = PurePosixPath(file).suffix
        if suffix not in known:
            raise ScenarioError(f"{file}: its name does not say what it holds; name it {', '.join(known)}")
        # Absolute: Spark's processes may run in another folder.
        found.setdefault(suffix, []).append(file if is_address(file) else str(Path(file).absolute()))
    if not found:
        raise ScenarioError("no file was given")
    return found


def placed_from(positions: DataFrame, max_gap_s: float = math.inf) -> Callable[[DataFrame], DataFrame]:
    """Events without a position get their publisher's place and velocity at that time: an as-of join with its last
    row before. An event of a node that is not there at that time stays without."""
    goes_on = (F.col("time") < F.col("leg_until")) & (F.col("leg_until") - F.col("leg_time") <= max_gap_s)
    legs = positions.select(
        F.col("node").alias("source"),
        F.col("time").alias("leg_time"),
        F.coalesce("until", "time").alias("leg_until"),
        *(F.col(name).alias(f"leg_{name}") for name in _FILLED),
    )

    def transform(events: DataFrame) -> DataFrame:
        known = events.where("x_m is not null and y_m is not null")
        unknown = events.where("x_m is null or y_m is null")
        there = (F.col("time") >= F.col("leg_time")) & (goes_on | (F.col("time") == F.col("leg_time")))
        found = unknown.join(legs, "source").where(there)
        passed_s = F.col("time") - F.col("leg_time")
        places = found.select(
            "workload",
            "event",
            (F.col("leg_x_m") + F.col("leg_x_m_s") * passed_s).alias("at_x_m"),
            (F.col("leg_y_m") + F.col("leg_y_m_s") * passed_s).alias("at_y_m"),
            F.col("leg_x_m_s").alias("at_x_m_s"),
            F.col("leg_y_m_s").alias("at_y_m_s"),
        )
        filled = unknown.join(places, ["workload", "event"], "left").select(
            *(F.coalesce(f"at_{name}", name).alias(name) if name in _FILLED else F.col(name) for name in events.columns)
        )
        return known.unionByName(filled)

    return transform
