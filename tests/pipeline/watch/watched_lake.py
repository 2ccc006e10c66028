"""A lake that a watch fills, without Spark: batches of a simulated log, committed as `earshot watch` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.lake.batch_files import BatchFiles, stem_of
from earshot.pipeline.lake.tables import arrow_schema

NETWORK = "239.255.69.83:47474"
LABEL = f"{NETWORK} steam"


def watched(root: Path, batch: int, rows: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> None:
    """One batch of a watch, committed as `earshot watch` does."""
    lake = ArrowLake(root)
    put_batch(lake, "watched_log", rows, batch)
    put_batch(lake, "watched_pairs", pairs, batch)
    lake.write_rows("watched_open", [], watch="live")
    figure = {
        "batch": batch,
        "network": NETWORK,
        "protocol": "steam",
        "by": "all",
        "key": "",
        "metric": "delivery_ratio",
        "value": 0.5,
    }
    lake.write_rows("watched_figures", [figure], watch="live")
    newest = max(row["time"] for row in rows)
    lake.write_rows("watches", [{"batch": batch, "newest": newest, "nodes": 2}], watch="live")


def put_batch(
    lake: ArrowLake, table: str, rows: list[dict[str, Any]], batch: int, day: str = "1970-01-01", watch: str = "live"
) -> None:
    """The rows of a batch, as the tasks of a watch write them."""
    if rows:
        found = pa.Table.from_pylist([{**row, "batch": batch} for row in rows], schema=arrow_schema(table))
        file = lake.files.write_file(table, found, {"watch": watch, "day": day}, stem_of(batch))
        BatchFiles(lake, table, watch).put([file], batch)


def live_records(folder: Path, start: float) -> list[dict[str, Any]]:
    """A simulated log's first seconds, as live nodes would have reported it."""
    beacons = [("kind", "!=", "receive"), ("event", "!=", "")]  # who hears that everybody is there does not matter
    spoken = [[("time", ">=", start), ("time", "<", start + 8.0), one] for one in beacons]
    rows = pq.read_table(folder / "log.parquet", filters=spoken).to_pylist()
    return [{**row, "network": NETWORK, "protocol": "steam", "late": False} for row in rows]
