"""The trace that ships with the package is what its script makes, and is small."""

import gzip
import runpy
from pathlib import Path

from earshot.simulation.scenario.library import built_in_traces
from earshot.traces import read_trace

SCRIPT = Path(__file__).parents[1] / "examples" / "make_a_trace.py"


def test_the_script_makes_the_trace_that_is_in_the_package():
    made = runpy.run_path(str(SCRIPT))
    shipped = built_in_traces()["market-town"].read_bytes()
    assert len(shipped) < 300_000
    assert gzip.decompress(made["csv_of"](made["town"]())) == gzip.decompress(shipped)


def test_it_has_arrivals_departures_and_a_rush():
    trace = read_trace(built_in_traces()["market-town"])
    present = {time: int((trace.time == time).sum()) for time in (60.0, 330.0, 570.0)}
    assert present[330.0] > 4 * present[60.0]
    assert present[330.0] > 1.5 * present[570.0] > present[60.0]
    assert len(set(trace.node.tolist())) > 200
