"""CoDD and Siena in the simulator: the same seed gives the same log, to the byte, in any process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.simulation.engine.log import Log
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario

GOLDEN = {"codd": "dace3f75086163d9", "siena": "37dbadf9b90bcab0"}


def digest(protocol: str) -> str:
    """Forty nodes that come and go, a source, messages of a pair that overtake each other."""
    changes = {
        "nodes.node.count": 40,
        "publish.documents.events.queries": 40,
        "publish.documents.events.shuffle_every": 40,
        "subscribe.documents.at_s": [1.0, 5.0],
        "infrastructure.jitter_s": 0.05,
        "faults.churn": {"mean_presence_s": 60.0, "mean_absence_s": 5.0, "start_s": 10.0},
        "warm_up_s": 8.0,
        "duration_s": 30.0,
    }
    settings = {"fan_out": 3, "reorganise_every": 40, "rest_documents": 40} if protocol == "codd" else {"clients": 3}
    log = Log()
    run(load_scenario("codd").with_(changes), protocol, settings, 7, log)
    rows = "\n".join(repr(row) for row in log.rows())
    if protocol == "codd":
        assert "moved: " in rows
        assert "orphan: " in rows or "codd-new-parent" in rows
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


@pytest.mark.parametrize("protocol", sorted(GOLDEN))
def test_the_golden_log(protocol: str) -> None:
    """A change here changes every published figure: make sure it is meant, then write the new digest down."""
    assert digest(protocol) == GOLDEN[protocol]


def test_another_process_writes_the_same_log() -> None:
    script = "import test_codd_golden as golden; print(*map(golden.digest, sorted(golden.GOLDEN)))"
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [GOLDEN[name] for name in sorted(GOLDEN)]
