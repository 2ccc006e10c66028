"""A lake with two runs of a tiny scenario, measured without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_on_duckdb import instead_of_spark

from earshot.pipeline.campaigns.campaigns import Campaign, campaign
from earshot.pipeline.campaigns.flow import run_campaign
from earshot.pipeline.lake.lake import Lake
from earshot.simulation.scenario.library import load_scenario

SCENARIO = load_scenario("base").with_(
    {
        "duration_s": 14.0,
        "warm_up_s": 3.0,
        "cool_down_s": 3.0,
        "nodes.node.count": 12,
        "medium": {"kind": "unit-disk", "range_m": 300.0},
    }
)


def tiny(*seeds: int) -> Campaign:
    return campaign("tiny", [SCENARIO], {"flooding": {}, "gossip": {"probability": 0.5}}, seeds)


def fill(folder: Path) -> Path:
    """Run and measure it in that folder."""
    with pytest.MonkeyPatch.context() as patch:
        run_campaign(Lake(instead_of_spark(patch), folder), tiny(1))  # type: ignore[arg-type]
    return folder
