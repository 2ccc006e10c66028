"""What `earshot.simulation` exports: docs and examples import from there."""

import textwrap

import earshot.simulation
from earshot.records import trajectories
from earshot.simulation.engine import engine, log, result, run, summary
from earshot.simulation.scenario import library, scenario

EXPORTS = [
    "Action", "Arrivals", "Churn", "Contention", "Crash", "Engine", "Extent", "FaultSettings", "Log", "LogDistance",
    "Lossy", "Medium", "Nakagami", "NodeGroup", "OpenAir", "Overlay", "Partition", "PluginError", "RunResult",
    "RunSummary", "Scenario", "SettingsTable", "Shadowing", "Trajectories", "Trajectory", "Transmission",
    "Unannounce", "UnitDisk", "Unsubscribe", "Workload", "built_in", "load_scenario", "run", "summarise",
]  # fmt: skip


def test_the_exports_are_these() -> None:
    assert earshot.simulation.__all__ == EXPORTS
    assert all(hasattr(earshot.simulation, name) for name in EXPORTS)


def test_the_exports_are_the_originals() -> None:
    exported = earshot.simulation
    assert (exported.load_scenario, exported.Scenario) == (library.load_scenario, scenario.Scenario)
    assert (exported.run, exported.Engine) == (run.run, engine.Engine)
    assert (exported.Log, exported.RunResult, exported.summarise) == (log.Log, result.RunResult, summary.summarise)
    assert exported.Trajectories is trajectories.Trajectories


def test_the_example_in_the_docstring_runs() -> None:
    assert earshot.simulation.__doc__ is not None
    indented = [line for line in earshot.simulation.__doc__.splitlines() if line.startswith("    ") or not line]
    exec(textwrap.dedent("\n".join(indented)), {})
