"""DRIP in the simulator: the same seed gives the same log, to the byte, in any process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from earshot.protocols.drip.packets import AS_WRITTEN
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario

PAPER_GOLDEN = "7f8f012739c76323"
GOLDEN = "fba9aee65e6edbd2"


def digest(settings: Mapping[str, Any]) -> str:
    """Forty fast nodes that share one channel; brokers come forward, one crashes, events cross regions. Rows that
    only list the settings, or what nodes saw of the channel, are left out."""
    scenario = load_scenario("drip").with_(
        {
            "duration_s": 24.0,
            "cool_down_s": 2.0,
            "area": {"width_m": 450.0, "height_m": 450.0},
            "nodes.node.count": 40,
            "publish.numbers.when.rate_per_s": 2.0,
            "faults": {"crashes": [{"node": "node-05", "time_s": 12.0}]},
        }
    )
    log = Log()
    run(scenario, "drip", {**settings, "brokers": 6, "nearest": 3}, 3, log)
    rows = "\n".join(repr(row) for row in log.rows() if row["kind"] not in ("join", "airtime"))
    assert "drip-copy" in rows or "drip-region-copy" in rows
    assert "'deliver'" in rows
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


def test_the_golden_log() -> None:
    """A change here changes every published figure: make sure it is meant, then write the new digest down."""
    assert digest({}) == GOLDEN


def test_the_golden_log_of_the_paper() -> None:
    """What the defaults do beyond the paper leaves the paper's protocol as it was, to the byte."""
    assert digest(AS_WRITTEN) == PAPER_GOLDEN


def test_another_process_writes_the_same_log() -> None:
    script = "import test_drip_golden; print(test_drip_golden.digest({}))"
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(Path(__file__).parent)}
    other = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == GOLDEN
