"""The simulator: a scenario, a protocol and a seed give a result, the same on every machine.

    from earshot.simulation import load_scenario, run, summarise

    scenario = load_scenario("base").with_({"nodes.node.count": 50, "duration_s": 30})
    result = run(scenario, "flooding", {"hop_limit": 8}, seed=1)
    summary = summarise(scenario, result)
    assert summary.delivery_ratio is not None and summary.delivery_ratio > 0.5

`load_scenario` takes the name of a built-in scenario or the path of a TOML file. `run(..., log=Log("run.parquet"))`
writes a record of everything that happened. Below `run` there is `Engine`, which takes machines, `Trajectories`,
a medium and a `Workload` directly.

The rooms, each importing only from those before it: settings, extent, draws, faults and the event queue at the
top; `mobility` (where nodes are), `media` (how packets travel), `workload` (what applications do), `scenario`
(all of these as one value), `engine` (the run). Start reading with `engine.run`. What is modelled, and what is
left out: docs/simulator.md.
"""

from earshot.plugins import PluginError
from earshot.records.trajectories import Trajectories, Trajectory
from earshot.settings import SettingsTable
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import RunResult
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import RunSummary, summarise
from earshot.simulation.extent import Extent
from earshot.simulation.faults import Churn, Crash, FaultSettings, Partition
from earshot.simulation.media.medium_settings import Contention, Lossy, Overlay, UnitDisk
from earshot.simulation.media.open_medium import OpenAir
from earshot.simulation.media.reception import Arrivals, LogDistance, Nakagami, Shadowing
from earshot.simulation.media.transmission import Medium, Transmission
from earshot.simulation.scenario.library import built_in, load_scenario
from earshot.simulation.scenario.scenario import NodeGroup, Scenario
from earshot.simulation.workload.actions import Action, Unannounce, Unsubscribe, Workload

__all__ = [
    "Action",
    "Arrivals",
    "Churn",
    "Contention",
    "Crash",
    "Engine",
    "Extent",
    "FaultSettings",
    "Log",
    "LogDistance",
    "Lossy",
    "Medium",
    "Nakagami",
    "NodeGroup",
    "OpenAir",
    "Overlay",
    "Partition",
    "PluginError",
    "RunResult",
    "RunSummary",
    "Scenario",
    "SettingsTable",
    "Shadowing",
    "Trajectories",
    "Trajectory",
    "Transmission",
    "Unannounce",
    "UnitDisk",
    "Unsubscribe",
    "Workload",
    "built_in",
    "load_scenario",
    "run",
    "summarise",
]
