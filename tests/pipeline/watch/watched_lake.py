"""A lake that a watch fills, without Spark: batches of a simulated log, committed as `earshot watch` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from earshot.pipeline.lake.arrow_lake import ArrowLake

NETWORK = "239.255.69.83:47474"
LABEL = f"{NETWORK} steam"


def watched(root: Path, batch: int, rows: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> None:
    """One batch of a watch, committed as `earshot watch` does."""
    lake = ArrowLake(root)
    lake.write_rows("watched_log", rows, watch="live", batch=batch)
    lake.write_rows("watched_pairs", pairs, watch="live", batch=batch)
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


def live_records(folder: Path, start: float) -> list[dict[str, Any]]:
    """A simulated log's first seconds, as live nodes would have told it."""
    beacons = [("kind", "!=", "receive"), ("event", "!=", "")]  # who hears that everybody is there does not matter
    spoken = [[("time", ">=", start), ("time", "<", start + 8.0), one] for one in beacons]
    rows = pq.read_table(folder / "log.parquet", filters=spoken).to_pylist()
    return [{**row, "network": NETWORK, "protocol": "steam", "late": False} for row in rows]
