"""What a machine of a run is built with: settings that the scenario knows, and its node's ability."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.simulation.engine.run import _maker, run, settings_in
from earshot.simulation.media.medium_settings import Overlay, UnitDisk
from earshot.simulation.scenario.scenario import NodeGroup, Scenario, UniformAbility


@dataclass(frozen=True)
class Settings:
    range_m: float = field(default=1.0, metadata={"scenario": "medium.range_m"})
    width_m: float = field(default=2.0, metadata={"scenario": "area.width_m"})
    nodes: int = field(default=3, metadata={"scenario": "node_count"})
    latency_s: float = field(default=4.0, metadata={"scenario": "medium.latency_s"})
    deep_m: float = field(default=5.0, metadata={"scenario": "medium.nowhere.deep_m"})
    own: float = 6.0


def town(**more: Any) -> Scenario:
    given = {"duration_s": 9.0, "nodes": {"n": NodeGroup(count=7)}, "medium": UnitDisk(range_m=150.0, latency_s=0.25)}
    return Scenario(**{**given, **more})


@pytest.mark.parametrize(
    ("scenario", "given", "expected"),
    [
        (town(), {}, Settings(150.0, 1000.0, 7, 0.25)),
        (town(), {"range_m": 9.0, "own": 8.0}, Settings(9.0, 1000.0, 7, 0.25, own=8.0)),
        (town(medium=Overlay(latency_s=0.5)), {}, Settings(1.0, 1000.0, 7, 0.5)),
    ],
    ids=["of the scenario", "given ones first", "a medium without a range"],
)
def test_a_setting_is_the_given_one_else_the_scenarios_else_its_default(
    scenario: Scenario, given: dict[str, Any], expected: Settings
) -> None:
    assert settings_in(scenario, SimpleNamespace(Settings=Settings), given) == expected  # type: ignore[arg-type]


def test_a_machine_with_an_ability_gets_that_of_its_node() -> None:
    scenario = town(ability=UniformAbility(1.0, 3.0))

    class Plain:
        def __init__(self, *given: Any) -> None:
            self.given = given

    class Able(Plain):
        ability = 1.0

    for seed in (1, 2):
        abilities = dict(zip(scenario.names(), scenario.abilities(seed).tolist(), strict=True))
        for kind in (Plain, Able):
            make: Any = _maker(kind, "settings", scenario, seed)  # type: ignore[arg-type]
            random = Random(1)
            made = [make(name, "location", random, "channel") for name in ("n-4", "n-0")]
            assert [one.given for one in made] == [
                (name, "settings", "location", random, "channel") for name in ("n-4", "n-0")
            ]
            if kind is Able:
                assert [one.ability for one in made] == [abilities["n-4"], abilities["n-0"]]


def test_a_result_says_what_was_run() -> None:
    scenario = town(name="town", warm_up_s=2.0)
    result = run(scenario, "flooding", {"hop_limit": 3}, seed=4)
    assert (result.scenario, result.protocol, result.seed, result.duration_s, result.warm_up_s) == (
        "town", "flooding", 4, 9.0, 2.0,
    )  # fmt: skip
    assert (result.nodes, result.settings["hop_limit"], result.published) == (scenario.names(), 3, [])
    assert result.trajectories is not None
    assert result.trajectories.positions(1.0).tolist() == scenario.trajectories(4).positions(1.0).tolist()
