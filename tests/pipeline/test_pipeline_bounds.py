"""The bounds, times and thresholds of the pipeline that no option changes. Its answers and the documentation rest on
them, so that a change of one is made here too. Sizes of pieces of work, which change no answer, are left out."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

BOUNDS: dict[str, dict[str, Any]] = {
    "campaigns.board_text": {"FEW": 3},
    "campaigns.campaigns": {"DEFAULT_SEEDS": 5},
    "campaigns.capacity": {"NARROW": 1.1, "LEAST": 0.0625},
    "campaigns.run_figures": {
        "AREA_M": 250.0,
        "SHORTEST_WINDOW_S": 5.0,
        "LATENCIES": {"latency_p50_s": 0.5, "latency_p95_s": 0.95, "latency_p99_s": 0.99},
    },
    "lake.table_log": {"PATIENCE_S": 120.0},
    "lake.tables": {"KEEP_WATCH_LOG_S": 20.0},
    "reports.board_page": {"MOST_TYPES": 12, "MOST_NAMED": 3},
    "reports.charts": {"LOG_FROM": 25.0},
    "reports.lake_replays": {"MOST_WORLDS": 4, "MOST_RUNS": 12, "MOST_HOPS": 200_000, "MOST_ANSWERS": 4000},
    "reports.loss_page": {"MOST_REASONS": 3, "MOST_SQUARES": 16},
    "reports.plots": {"WIDTHS_CM": {"column": 8.8, "text": 17.8}},
    "reports.report": {
        "MOST_OPEN": 3,
        "MOST_RUNS": 60,
        "MOST_MAPS": 3,
        "MOST_TRACKS": 120,
        "MOST_POSITIONS": 20_000,
        "POSITIONS_OF_A_TRACK": 60,
    },
    "traces.ingest": {"MAX_SPEED_M_S": 100.0},
    "traces.plausibility": {"EARTH_M": 40_075_000.0, "FEW_METRES": 20.0, "SOUND_M_S": 340.0, "SLOW_M_S": 0.05},
    "traces.snapshots": {"SOURCES": 64, "WATCHED": 96, "HORIZONS_S": (10.0, 60.0, 600.0)},
    "traces.trace_profile": {
        "RANGES_M": (50.0, 100.0, 150.0, 200.0, 300.0),
        "LONGEST_STEP_S": 10.0,
        "CELLS": 40,
        "PARTITIONED_BELOW": 0.9,
    },
    "traces.trace_scenario": {"LONGEST_WINDOW_S": 120.0, "WARM_UP_S": 20.0, "COOL_DOWN_S": 5.0, "MOST_GROUPS": 12},
    "watch.alerts": {
        "SECONDS": {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0},
        "SNAPSHOTS": 60,
        "SEND_WITHIN_S": 10.0,
        "MOST_SENDING": 32,
    },
    "watch.alone": {"LEASE_S": 60.0},
    "watch.exported_metrics": {"BUCKETS_S": (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)},
    "watch.housekeeping": {
        "EVERY_S": 3600.0,
        "EVERY_BATCHES": 1800,
        "SOME_BATCHES": 50,
        "ORPHANS_H": 1.0,
        "GRACE_S": 60.0,
    },
    "watch.running_metrics": {"MINUTES": 180},
    "watch.spool_source": {
        "DEFAULT_BYTES": 67_108_864,
        "FUTURE_S": 86_400.0,
        "ENDED_AFTER_S": 3600.0,
        "CLOSED_AFTER_S": 60.0,
        "LOOK_FOR_ENDED_S": 60.0,
    },
    "watch.stream": {"KEPT": 10, "LEAST_PAUSE_S": 0.05},
    "watch.watch_replay": {"WINDOW_S": 1800.0, "MINUTES": 30},
    "watch.watch_state": {"DAY_S": 86_400.0, "BASE_EVERY": 50},
}


@pytest.mark.parametrize("module", BOUNDS)
def test_bounds(module: str) -> None:
    found = import_module(f"earshot.pipeline.{module}")
    assert {name: getattr(found, name) for name in BOUNDS[module]} == BOUNDS[module]
