"""Campaigns: protocols x settings x scenarios x seeds, as an explicit product of runs.

A run's id is a hash of what it runs: the scenario's canonical form, the protocol, its settings, the
seed, and the code of everything that decides the outcome.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from earshot.errors import ScenarioError, SettingsError, UnknownName
from earshot.plugins import PluginError, located
from earshot.protocols.catalogue import build_settings, protocol, protocol_digest
from earshot.simulation.engine.run import settings_in
from earshot.simulation.media.medium_settings import MediumSettings
from earshot.simulation.mobility import Playback
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario, leaves
from earshot.simulation.settings_reader import as_table

DEFAULT_SEEDS = 5
DECISIVE_ROOMS = ("plugins", "records", "traces", "filters", "protocols", "simulation")


@cache
def code_digest() -> str:
    """A hash of the code that decides a run's outcome."""
    digest = hashlib.sha256()
    root = Path(str(files("earshot")))
    sources = sorted(root.glob("*.py")) + [
        path for room in DECISIVE_ROOMS for path in sorted((root / room).rglob("*.py"))
    ]
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def digest_of(*parts: Any) -> str:
    """A short, stable hash of plain values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Run:
    """One scenario, one protocol with its settings, one seed."""

    scenario: Scenario
    protocol: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    named: Scenario | None = None
    "The scenario as its name stands for it, before keys were changed; by default the scenario itself."

    @cached_property
    def point(self) -> str:
        """The id of everything that decides the outcome but protocol, settings and seed."""
        return digest_of(self.scenario.canonical(), code_digest())

    @cached_property
    def changes(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The keys in which the scenario differs from the one it is named after: their values here, and there."""
        return ({}, {}) if self.named is None else changed_keys(self.named, self.scenario)

    @property
    def network(self) -> str:
        """What carries the packets, as leaderboards name it."""
        return network_of(self.scenario, self.protocol)

    @property
    def assumes(self) -> str:
        """What the protocol was given beyond the radio, as in "ideal routing"; empty where nothing."""
        try:
            return self.scenario.network(protocol(self.protocol)).routing
        except ScenarioError:
            return ""  # the run will fail, and say why

    @property
    def range_m(self) -> float:
        """The range of the radios that carry the packets; infinite where every node reaches every other."""
        medium = medium_of(self.scenario, self.protocol)
        return getattr(medium, "range_m", math.inf)

    @cached_property
    def trace(self) -> str:
        """The traces that are played back, by name; empty where there are none."""
        return ", ".join(dict.fromkeys(one.source for one in self._playbacks))

    @cached_property
    def window(self) -> str:
        """Which part of the traces is played back."""
        starts = dict.fromkeys(one.start_s for one in self._playbacks)
        duration_s = self.scenario.duration_s
        return ", ".join(
            f"first {duration_s:g} s" if start_s is None else f"{start_s:.12g} to {start_s + duration_s:.12g} s"
            for start_s in starts
        )

    @property
    def _playbacks(self) -> list[Playback]:
        groups = self.scenario.nodes.values()
        return [group.mobility for group in groups if isinstance(group.mobility, Playback)]

    @cached_property
    def workload(self) -> str:
        """The id of the workload and the positions: the same for every protocol, unless drivers react."""
        own = [self.protocol, dict(self.settings), protocol_digest(self.protocol)] if self.scenario.reacts else []
        return digest_of(self.scenario.canonical(), self.seed, code_digest(), *own)

    @cached_property
    def id(self) -> str:
        """The run's own id."""
        code = protocol_digest(self.protocol)
        return digest_of(self.workload, self.protocol, dict(self.settings), *([code] if code else []))

    @property
    def variant(self) -> str:
        """The protocol with the settings that differ from its defaults, as tables name it."""
        return " ".join([self.protocol, *(f"{name}={value}" for name, value in sorted(self.settings.items()))])


def changed_keys(named: Scenario, scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys in which a scenario differs from the one it is named after: their values in the first, and in
    the other; None where it has no such key. Defaults that only come with another kind are left out."""
    sparse = [_flat(as_table(one, by_content=True, sparse=True)) for one in (scenario, named)]
    names = sorted(name for name in {*sparse[0], *sparse[1]} if sparse[0].get(name) != sparse[1].get(name))
    names = [name for name in names if name not in ("name", "description")]
    whole = [_flat(one.canonical()) for one in (scenario, named)]
    differing = [name for name in names if whole[0].get(name) != whole[1].get(name)]
    here, there = ({name: table.get(name) for name in differing} for table in whole)
    return here, there


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted key."""

    def value(dotted: str) -> Any:
        found: Any = table
        for part in dotted.split("."):
            found = found[part]
        return found

    return {dotted: value(dotted) for dotted in leaves(table)}


def network_of(scenario: Scenario, name: str) -> str:
    """What carries the protocol's packets in that scenario."""
    try:
        return scenario.network_of(name)
    except ScenarioError:
        return "none"  # the run will fail, and say why


def medium_of(scenario: Scenario, name: str) -> MediumSettings:
    """The medium that carries the protocol's packets."""
    try:
        network = scenario.network(protocol(name))
    except ScenarioError:
        return scenario.medium  # the run will fail, and say why
    return network.infrastructure or network.medium


@dataclass(frozen=True)
class Campaign:
    """Many runs under one name."""

    name: str
    runs: Sequence[Run]
    metrics: Sequence[str] = ()
    "Metrics of the user's own, by name."

    def doubts(self) -> list[str]:
        """What the protocols' machines warn of in these scenarios, each sentence once."""
        found: dict[str, None] = {}
        for run in self.runs:
            if run.seed == self.runs[0].seed:
                machine = protocol(run.protocol)
                try:
                    found.update(dict.fromkeys(machine.doubts(settings_in(run.scenario, machine, run.settings))))
                except SettingsError:
                    continue  # the run itself fails, and says so
        return list(found)


def campaign(
    title: str,
    scenarios: Iterable[Scenario],
    protocols: Mapping[str, Mapping[str, Any]],
    seeds: Iterable[int],
    named: Iterable[Scenario] = (),
) -> Campaign:
    """The product; where a protocol's setting is a list, each of its values is run. `named` are the scenarios as
    their names stand for them: how the others differ from them is written into the table `runs`."""
    known = {one.name: one for one in named}
    variants = [(name, chosen) for name, swept in protocols.items() for chosen in _swept(swept)]
    for name, chosen in variants:
        build_settings(protocol(name).Settings, chosen)
    runs = [
        Run(scenario, name, settings, seed, known.get(scenario.name))
        for scenario, (name, settings), seed in product(list(scenarios), variants, list(seeds))
    ]
    return Campaign(title, runs)


def _swept(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = list(table)
    choices = [value if isinstance(value, list) else [value] for value in table.values()]
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*choices)]


_KEYS = ("name", "scenarios", "protocols", "seeds", "metrics", "set", "settings")


def read_campaign(path: str | Path) -> Campaign:
    """A campaign file.

    .. code-block:: toml

        scenarios = ["city"]
        protocols = ["flooding", "gossip"]
        seeds = 5                          # 0 to 4; or a list of them
        metrics = ["./stale.py:STALE"]     # metrics of your own, if any

        [set]                              # scenario keys; a list is swept over
        "medium.range_m" = [100, 150]

        [settings.gossip]                  # protocol settings; a list is swept over
        probability = [0.6, 0.8]
    """
    file = Path(path)
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise ScenarioError(f"{file}: no such campaign file; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ScenarioError(f"{file}: not a campaign: {error}") from None
    for key in table:
        if key not in _KEYS:
            raise ScenarioError(f"{file}: {UnknownName('campaign key', key, _KEYS)}")
    scenarios = _strings(file, table, "scenarios")
    protocols = _strings(file, table, "protocols")
    settings = _table(file, table, "settings")
    places = {name: located(name, file.parent) for name in protocols}
    for name in settings:
        if name not in protocols:
            raise ScenarioError(f"{file}: settings.{name}: the campaign runs no protocol of that name")
    bases = [load_scenario(name, folder=file.parent) for name in scenarios]
    changed = [base.with_(**chosen) for base in bases for chosen in _swept(_table(file, table, "set"))]
    chosen = {places[name]: _table(file, settings, name) for name in protocols}
    seeds = _seeds(file, table.get("seeds", DEFAULT_SEEDS))
    try:
        found = campaign(str(table.get("name", file.stem)), changed, chosen, seeds, bases)
        own = _strings(file, table, "metrics") if "metrics" in table else []
        return replace(found, metrics=tuple(located(name, file.parent) for name in own))
    except (UnknownName, SettingsError, PluginError) as error:
        raise ScenarioError(f"{file}: {error}") from None


def _strings(file: Path, table: Mapping[str, Any], key: str) -> list[str]:
    value = table.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        raise ScenarioError(f'{file}: {key} must be a list of names, as in {key} = ["city"]')
    return value


def _table(file: Path, table: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ScenarioError(f"{file}: {key} must be a table")
    return value


def _seeds(file: Path, value: Any) -> list[int]:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return list(range(value))
    if isinstance(value, list) and value and all(isinstance(seed, int) for seed in value):
        return value
    raise ScenarioError(f"{file}: seeds must be a number of seeds (seeds = 5) or a list of them (seeds = [1, 2, 3])")
