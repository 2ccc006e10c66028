"""Running a scenario: one protocol, one seed, one result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from random import Random
from typing import Any

from earshot.protocols.catalogue import build_settings, protocol, protocol_name
from earshot.protocols.machine import Channel, Location, Machine
from earshot.simulation.engine.coupling import coupled
from earshot.simulation.engine.engine import Engine, MakeMachine
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import RunResult
from earshot.simulation.scenario.scenario import Scenario


def run(
    scenario: Scenario,
    protocol_or_name: str | type[Machine],
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    log: Log | None = None,
    progress: Callable[[float], None] | None = None,
) -> RunResult:
    """Simulate the scenario under this protocol. The same arguments give the same result and the same log.

    The protocol is a name, as everywhere, or a class. `settings` are its settings by name; the others have
    their defaults. `progress` is called with the simulated time now and then.
    """
    machine = protocol(protocol_or_name)
    built = settings_in(scenario, machine, settings or {})
    planned = scenario.trajectories(seed)
    with coupled(scenario, seed) as coupling:
        engine = Engine(
            _maker(machine, built, scenario, seed),
            planned if coupling is None else coupling.trajectories,
            scenario.network(machine, built),
            scenario.workload(seed, planned),
            duration_s=scenario.duration_s,
            warm_up_s=scenario.warm_up_s,
            faults=scenario.faults,
            seed=seed,
            log=log,
            progress=progress,
            coupling=coupling,
        )
        engine.run()
    return RunResult(
        scenario=scenario.name,
        protocol=protocol_or_name if isinstance(protocol_or_name, str) else protocol_name(machine),
        settings={name: getattr(built, name) for name in machine.Settings.__dataclass_fields__},
        seed=seed,
        duration_s=scenario.duration_s,
        warm_up_s=scenario.warm_up_s,
        nodes=engine.names,
        counts=engine.counts,
        warm_up=engine.warm_up,
        published=engine.published,
        subscriptions=engine.schedule.subscriptions,
        deliveries=engine.deliveries,
        queue_calls=engine.queue.scheduled - len(engine.queue),
        trajectories=planned if coupling is None else coupling.trajectories.finished(),
    )


def settings_in(scenario: Scenario, machine: type[Machine], given: Mapping[str, Any]) -> Any:
    """The settings a protocol runs with in this scenario: the given ones, else what the scenario says about
    the network, else the protocol's defaults."""
    return build_settings(machine.Settings, {**_facts(scenario, machine.Settings), **given})


def _facts(scenario: Scenario, settings: type[Any]) -> dict[str, Any]:
    """The settings that describe the network, with this scenario's values. Such a setting is marked with
    `metadata={"scenario": "medium.range_m"}`."""
    found = {}
    for setting in fields(settings):
        if path := setting.metadata.get("scenario"):
            value: Any = scenario
            for name in path.split("."):
                value = getattr(value, name, None)
            if value is not None:
                found[setting.name] = value
    return found


def _maker(machine: type[Machine], settings: Any, scenario: Scenario, seed: int) -> MakeMachine:
    """Builds a node's machine. If the class has an attribute `ability`, it gets the node's ability."""
    if not hasattr(machine, "ability"):
        return lambda node, location, random, channel: machine(node, settings, location, random, channel)
    abilities = dict(zip(scenario.names(), scenario.abilities(seed).tolist(), strict=True))

    def make(node: str, location: Location, random: Random, channel: Channel) -> Machine:
        made = machine(node, settings, location, random, channel)
        made.ability = abilities[node]  # type: ignore[attr-defined]
        return made

    return make
