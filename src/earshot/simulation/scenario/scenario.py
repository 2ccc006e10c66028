"""Scenarios: nodes, mobility, medium, faults, workload and duration, as one value.

A scenario is read from a TOML file, usually a base and what differs (`docs/scenarios.md` has every
key), or built in Python. Everything random in it is drawn from the run's seed.

Tables merge key by key; any other value replaces. Where a table's `kind` changes, keys of the base that the new kind
does not have are dropped. None removes a key.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot.errors import ScenarioError, nearest_name
from earshot.protocols.catalogue import protocol as protocol_named
from earshot.protocols.machine import Machine
from earshot.settings import (
    LARGEST,
    Count,
    Finite,
    KindTable,
    NotNegative,
    Positive,
    SettingsTable,
    fields_of,
    is_table,
    kinds_of,
)
from earshot.simulation.extent import Extent, box_of
from earshot.simulation.faults import FaultSettings
from earshot.simulation.media.links import LinkScript
from earshot.simulation.media.medium_settings import MediumSettings, Overlay, UnitDisk
from earshot.simulation.media.open_medium import Network
from earshot.simulation.media.radios import IDEAL
from earshot.simulation.mobility import Mobility, Playback, Sumo, Trajectories, Trajectory, Uniform
from earshot.simulation.settings_reader import Where, as_table, read
from earshot.simulation.workload.actions import Action, Workload
from earshot.simulation.workload.traffic import (
    DrawContext,
    OwnWorkload,
    PublishEntry,
    SubscribeEntry,
    check_announcements,
    generators_of,
)

MOST_DURATION_S = 1e11
"Three thousand years."
MOST_RANGE_M = 1e12
"Farther than the planets: the squares of much larger distances overflow."
MOST_PUBLICATIONS = 100_000_000
"Events in one run: their drawing alone takes hours, and more memory than a large machine has."

# Nodes: their names, their mobility and their abilities.


class NodeGroup(SettingsTable, frozen=True):
    """Nodes of one kind. They are named after the group and a number: car-00, car-01."""

    count: Count | None = None
    "How many nodes. Not needed if places, moves or a trace determine it; of a trace, the first nodes are taken."
    names: tuple[str, ...] = ()
    "The nodes' names, instead of numbers."
    mobility: Mobility = Uniform()
    "How the nodes move."

    def validate(self) -> None:
        given = getattr(self.mobility, "count", None)
        if given is not None and self.count is not None and self.count != given:
            raise ScenarioError(f"count is {self.count}, but {self.mobility.kind} mobility has {given} nodes")
        if self.names and self.count is not None and self.count != len(self.names):
            raise ScenarioError(f"count is {self.count}, but there are {len(self.names)} names")
        if self.names and given is not None and given != len(self.names):
            raise ScenarioError(
                f"{self.mobility.kind} mobility has {given} nodes, but there are {len(self.names)} names"
            )
        if len(set(self.names)) != len(self.names) or "" in self.names:
            raise ScenarioError("names must differ and not be empty")
        named = isinstance(self.mobility, Playback | Sumo)
        if self.names and named:
            source = "a trace" if isinstance(self.mobility, Playback) else "SUMO"
            raise ScenarioError(f"{source} names its nodes itself: leave names out")
        if self.count is None and given is None and not self.names and not named:
            raise ScenarioError("count is missing")

    def node_names(self, group: str, until_s: float) -> tuple[str, ...]:
        """The names of the group's nodes, in order."""
        if isinstance(self.mobility, Playback | Sumo):
            names = self.mobility.names(until_s)
            if self.count is not None and self.count > len(names):
                source = "the trace" if isinstance(self.mobility, Playback) else "SUMO"
                raise ScenarioError(f"nodes.{group}: count is {self.count}, but {source} has {len(names)} nodes")
            return names[: self.count]
        if self.names:
            return self.names
        count = self.count if self.count is not None else getattr(self.mobility, "count", 0)
        width = len(str(max(count - 1, 0)))
        return tuple(f"{group}-{i:0{width}}" for i in range(count))

    def paths(self, group: str, extent: Extent, seed: int, until_s: float) -> list[Trajectory]:
        """The nodes' trajectories. Each has its own random stream: more nodes do not change the others."""
        names = self.node_names(group, until_s)
        randoms = [Random(f"{seed}:mobility:{group}:{i}") for i in range(len(names))]
        if isinstance(self.mobility, Sumo):
            return self.mobility.paths(names, extent, randoms, until_s, seed)
        return self.mobility.paths(names, extent, randoms, until_s)


class Equal(KindTable, frozen=True, tag="equal"):
    """All nodes have ability 1."""

    def draw(self, random: Random) -> float:
        return 1.0


class PowerLaw(KindTable, frozen=True, tag="power-law"):
    """Few nodes are very able, most are not: the density falls like ability ** -exponent."""

    exponent: Annotated[float, msgspec.Meta(gt=1, le=LARGEST)] = 2.5
    "How steeply the density falls; above 1."
    least: Positive = 1.0
    "The least ability."
    most: Finite | None = None
    "The greatest ability; by default there is no bound."

    def validate(self) -> None:
        if self.most is not None and self.most <= self.least:
            raise ScenarioError(f"most must exceed least, got {self.most} and {self.least}")

    def draw(self, random: Random) -> float:
        tail = 0.0 if self.most is None else (self.most / self.least) ** (1 - self.exponent)
        value: float = self.least * (1 - random.random() * (1 - tail)) ** (1 / (1 - self.exponent))
        return value if self.most is None else min(value, self.most)


class UniformAbility(KindTable, frozen=True, tag="uniform"):
    """Every ability between two bounds is equally likely."""

    least: Finite = 0.0
    "The least ability."
    most: Finite = 1.0
    "The greatest ability."

    def validate(self) -> None:
        if not 0 <= self.least < self.most:
            raise ScenarioError(f"least must be at least 0 and below most, got {self.least} and {self.most}")

    def draw(self, random: Random) -> float:
        return random.uniform(self.least, self.most)


Ability = Equal | PowerLaw | UniformAbility


def draw_abilities(law: Ability, names: Sequence[str], seed: int) -> list[float]:
    """Every node's ability, each from its own random stream."""
    return [law.draw(Random(f"{seed}:ability:{name}")) for name in names]


class Scenario(SettingsTable, frozen=True, kw_only=True):
    """What a run simulates, apart from the protocol and the seed."""

    name: str = "unnamed"
    "The scenario's name; by default the file's."
    description: str = ""
    "One line for `earshot scenarios`."
    duration_s: Positive
    "How long the run lasts."
    warm_up_s: NotNegative = 0.0
    "Publishing and the metrics start at this time; the run itself starts at 0."
    cool_down_s: NotNegative = 0.0
    "Publishing ends this long before the end of the run, so that events under way can still arrive."
    area: Extent = Extent()
    "The rectangle that the nodes are in."
    medium: MediumSettings = UnitDisk()
    "How packets travel between nodes."
    infrastructure: Overlay | bool = False
    "A network beside the radio, for example cellular, that carries unicasts between any two nodes: true, or a table."
    faults: FaultSettings = FaultSettings()
    "Faults."
    nodes: dict[str, NodeGroup] = msgspec.field(default_factory=dict)
    "The nodes: one table for each group."
    ability: Ability = Equal()
    "The nodes' abilities."
    publish: dict[str, PublishEntry] = msgspec.field(default_factory=dict)
    "What is published: one table for each entry."
    subscribe: dict[str, SubscribeEntry] = msgspec.field(default_factory=dict)
    "What is subscribed to: one table for each entry."
    event_rate: Positive = 1.0
    "A factor: all publish entries and the user's events file publish this many times as often as they say."
    own: OwnWorkload = OwnWorkload()
    "Events and subscriptions from the user's files."

    def validate(self) -> None:
        if self.warm_up_s + self.cool_down_s >= self.duration_s:
            raise ScenarioError(
                f"duration_s must exceed warm_up_s and cool_down_s together, got {self.duration_s:g} s for "
                f"{self.warm_up_s:g} and {self.cool_down_s:g}"
            )
        if self.duration_s > MOST_DURATION_S:
            raise ScenarioError(
                f"duration_s must be at most {MOST_DURATION_S:g} s (3,000 years), got {self.duration_s:g}: lower it"
            )
        for key in ("range_m", "carrier_range_m"):
            if (getattr(self.medium, key, None) or 0.0) > MOST_RANGE_M:
                raise ScenarioError(
                    f"medium.{key} must be at most {MOST_RANGE_M:g} m, got {getattr(self.medium, key):g}: lower it"
                )
        if not self.nodes:
            raise ScenarioError("nodes is missing: write a table such as [nodes.car] with a count")
        if self.infrastructure is True:
            msgspec.structs.force_setattr(self, "infrastructure", Overlay())
        if self.infrastructure and isinstance(self.medium, Overlay):
            raise ScenarioError(
                "infrastructure needs a radio beside it, but medium.kind is overlay: leave one of them out"
            )
        # A run must not depend on the order of entries in a file, because `canonical` does not contain it.
        for name in ("nodes", "publish", "subscribe"):
            msgspec.structs.force_setattr(self, name, dict(sorted(getattr(self, name).items())))
        self._check_references()

    def _check_references(self) -> None:
        """Every node, group, entry and place that is named must exist."""
        names = self.names()
        known = set(names)
        if len(known) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ScenarioError(f"nodes: two nodes are called {twice!r}")
        for group, nodes in self.nodes.items():
            try:
                box_of(getattr(nodes.mobility, "box_m", None), self.area)
            except ScenarioError as error:
                raise ScenarioError(f"nodes.{group}.mobility: {error}") from None
        types = self._types()
        for section, entries in (("publish", self.publish), ("subscribe", self.subscribe)):
            for entry, settings in entries.items():
                for name in (settings.nodes,) if isinstance(settings.nodes, str) else settings.nodes:
                    if name != "all" and name not in self.nodes and name not in known and name not in types:
                        raise _no_node(f"{section}.{entry}.nodes", name, (*self.nodes, *types, *names))
        self._check_publications(names, types)
        sources = generators_of(self.publish)
        for entry, subscribe in self.subscribe.items():
            try:
                subscribe.filters.check(sources)
            except ScenarioError as error:
                raise ScenarioError(f"subscribe.{entry}.filters: {error}") from None
        links = [*_nodes_of_links("medium", self.medium.links)]
        if isinstance(self.infrastructure, Overlay):
            links.extend(_nodes_of_links("infrastructure", self.infrastructure.links))
        for where, name in (*_nodes_of_faults(self.faults), *links):
            if name not in known:
                raise _no_node(where, name, names)

    def _check_publications(self, names: Sequence[str], types: Mapping[str, Sequence[str]]) -> None:
        """A run that cannot end is refused before it begins."""
        groups = {**types, **self._groups(), "all": names}
        until_s = self.duration_s - self.cool_down_s
        for entry, publish in self.publish.items():
            named = (publish.nodes,) if isinstance(publish.nodes, str) else publish.nodes
            pool = sum(len(groups.get(name, (name,))) for name in named)
            expected = publish.expected(pool, self.warm_up_s, until_s) * self.event_rate
            if expected > MOST_PUBLICATIONS:
                raise ScenarioError(
                    f"publish.{entry}: about {expected:,.3g} events would be published, and a run has at most "
                    f"{MOST_PUBLICATIONS:,}: publish less often (when, event_rate), with fewer nodes or for a shorter "
                    "time (duration_s)"
                )

    def names(self) -> tuple[str, ...]:
        """All nodes, in the order of their numbers."""
        return tuple(name for members in self._groups().values() for name in members)

    @property
    def node_count(self) -> int:
        """The number of nodes, for protocols whose settings depend on it."""
        return len(self.names())

    @property
    def first_nodes(self) -> tuple[str, ...]:
        """Three nodes that all nodes know, for protocols whose nodes need a first contact: those that stay longest in
        the traces that are played back, and of nodes that stay as long the first."""
        stay_s = {
            name: time_s
            for nodes in self.nodes.values()
            if isinstance(nodes.mobility, Playback)
            for name, time_s in nodes.mobility.time_present_s(self.duration_s).items()
        }
        longest = sorted(self.names(), key=lambda name: stay_s.get(name, self.duration_s), reverse=True)
        return tuple(longest[:3])

    def trajectories(self, seed: int) -> Trajectories:
        """Every node's trajectory under this seed; where drivers react to events, as if they did not."""
        return Trajectories(self.paths(seed))

    def members(self, group: str) -> tuple[str, ...]:
        """The nodes of a group."""
        return self._groups()[group]

    @property
    def reacts(self) -> bool:
        """Whether drivers react, so that trajectories and events depend on the protocol."""
        return any(
            isinstance(group.mobility, Sumo) and group.mobility.drivers is not None for group in self.nodes.values()
        )

    def paths(self, seed: int) -> list[Trajectory]:
        """The same, one by one."""
        paths: list[Trajectory] = []
        for group, nodes in self.nodes.items():
            try:
                paths.extend(nodes.paths(group, self.area, seed, self.duration_s))
            except ScenarioError as error:
                raise ScenarioError(f"{self.name}: nodes.{group}: {error}") from None
        return paths

    def workload(self, seed: int, trajectories: Trajectories | None = None) -> Workload:
        """What the applications do under this seed; pass `trajectories` to avoid drawing them again."""
        where = trajectories if trajectories is not None else self.trajectories(seed)
        context = DrawContext(
            seed=seed,
            groups={**self._types(), **self._groups()},
            trajectories=where,
            abilities=draw_abilities(self.ability, where.names, seed),
            extent=self.area,
            warm_up_s=self.warm_up_s,
            publish_until_s=self.duration_s - self.cool_down_s,
            duration_s=self.duration_s,
        )
        sources = generators_of(self.publish)
        actions: list[Action] = []
        for entry, subscribe in self.subscribe.items():
            actions.extend(subscribe.actions(entry, context, sources))
        actions.extend(self.own.actions(context, self.event_rate))
        for entry, publish in self.publish.items():
            at_rate = publish if self.event_rate == 1.0 else publish.at_rate(self.event_rate)
            actions.extend(at_rate.actions(entry, context))
        check_announcements(actions)
        return Workload(actions)

    def abilities(self, seed: int) -> npt.NDArray[np.float64]:
        """Every node's ability (how much it can detect, hold or carry) under this seed."""
        return np.array(draw_abilities(self.ability, self.names(), seed), dtype=np.float64)

    def table(self) -> dict[str, Any]:
        """The scenario as a TOML table, every default written out."""
        table: dict[str, Any] = as_table(self)
        return table

    def canonical(self) -> dict[str, Any]:
        """Everything that determines the run, as JSON values: without name and description, and with files
        identified by their content. It is equal for scenarios that run alike."""
        table: dict[str, Any] = as_table(self, by_content=True)
        return {key: value for key, value in table.items() if key not in ("name", "description")}

    def network(self, machine: type[Machine], settings: Any = None) -> Network:
        """What carries this protocol's packets. A protocol that needs routing uses the infrastructure if there is
        one, and otherwise the radio, hop by hop."""
        routed = machine.needs_routing if settings is None else machine.uses_routing(settings)
        if not routed and isinstance(self.medium, Overlay):
            raise ScenarioError(
                f"{self.name}: medium.kind is overlay, and {machine.name} needs a radio: "
                "choose another medium.kind, and put the overlay's settings under infrastructure"
            )
        infrastructure = self.infrastructure if routed and isinstance(self.infrastructure, Overlay) else None
        return Network(self.medium, routed, infrastructure)

    def network_of(self, protocol: str | type[Machine], settings: Any = None) -> str:
        """What carries this protocol's packets, as a label: "802.11b-2M 160 m". Runs with different labels must not
        be ranked together. `settings` are the protocol's, for protocols whose settings decide about routing."""
        machine = protocol_named(protocol) if isinstance(protocol, str) else protocol
        return self.network(machine, settings).label

    def with_(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Scenario:
        """The scenario with some keys changed, as in `with_({"medium.range_m": 150})`.

        None removes a key. A new `kind` keeps the old table's keys that the new kind has too.
        """
        changed = {**(changes or {}), **more}
        table = merged(as_table(self, sparse=True), spelled(nested(changed)), Scenario)
        return read(Scenario, table, Where(self.name, origins=dict.fromkeys(changed, f"override of {self.name}")))

    def _types(self) -> dict[str, tuple[str, ...]]:
        """The nodes of each type in a trace, under the name that entries use: `type:bus`."""
        found: dict[str, list[str]] = {}
        for group, nodes in self.nodes.items():
            if isinstance(nodes.mobility, Playback | Sumo):
                types = nodes.mobility.types(self.duration_s)
                for name in nodes.node_names(group, self.duration_s):
                    if name in types:
                        found.setdefault(f"type:{types[name]}", []).append(name)
        return {kind: tuple(names) for kind, names in sorted(found.items())}

    def _groups(self) -> dict[str, tuple[str, ...]]:
        return {group: nodes.node_names(group, self.duration_s) for group, nodes in self.nodes.items()}


def _no_node(where: str, name: str, known: tuple[str, ...]) -> ScenarioError:
    return ScenarioError(f"{where}: no node or group is called {name!r}; {nearest_name(name, known, 8)}")


def _nodes_of_faults(faults: FaultSettings) -> Iterator[tuple[str, str]]:
    yield from (("faults.silent_nodes", name) for name in faults.silent_nodes)
    yield from (("faults.crashes", crash.node) for crash in faults.crashes)


def _nodes_of_links(table: str, links: LinkScript) -> Iterator[tuple[str, str]]:
    pairs = [*(links.graph or ()), *((change.a, change.b) for change in links.changes)]
    pairs.extend(pair for rotation in links.rotations for pair in rotation.links)
    yield from ((f"{table}.links", name) for pair in pairs for name in pair)


Table = Mapping[str, Any]


def merged(base: Table, over: Table, hint: Any) -> dict[str, Any]:
    """The keys of `base`, overridden by those of `over`; both tables are of the type `hint`."""
    kinds = kinds_of(hint)
    chosen = kinds.get(over.get("kind", base.get("kind"))) if kinds else hint
    known = fields_of(chosen) if is_table(chosen) else {}
    found = dict(base)
    if kinds and "kind" in over and over["kind"] != base.get("kind", over["kind"]):
        found = {key: value for key, value in base.items() if key in known}
    for key, value in over.items():
        inner = (
            known[key].hint if key in known else typing.get_args(hint)[-1] if typing.get_origin(hint) is dict else None
        )
        under = found.get(key)
        if isinstance(under, str) and kinds_of(inner):
            under = {"kind": under}
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            found[key] = merged(under if isinstance(under, Mapping) else {}, value, inner)
        elif isinstance(value, str) and kinds_of(inner) and isinstance(under, Mapping):
            found[key] = merged(under, {"kind": value}, inner)
        else:
            found[key] = value
    return found


def spelled(table: Table) -> dict[str, Any]:
    """A scenario's table with the kind of medium that its radio implies. ScenarioError for a key that was renamed."""
    if "overlay" in table:
        raise ScenarioError("overlay: this table was renamed; write [infrastructure]")
    medium = table.get("medium")
    if isinstance(medium, Mapping) and "radio" in medium and "kind" not in medium:
        kind = "unit-disk" if medium["radio"] == IDEAL else "contention"
        return {**table, "medium": {**medium, "kind": kind}}
    return dict(table)


def nested(changes: Table) -> dict[str, Any]:
    """`{"medium.range_m": 150}` as tables within tables."""
    found: dict[str, Any] = {}
    for dotted, value in changes.items():
        inner = value
        for part in reversed(dotted.split(".")):
            inner = {part: inner}
        found = _joined(found, inner, dotted)
    return found


def _joined(table: Table, other: Table, dotted: str) -> dict[str, Any]:
    joined = dict(table)
    for key, value in other.items():
        if key not in joined:
            joined[key] = value
        elif isinstance(joined[key], Mapping) and isinstance(value, Mapping):
            joined[key] = _joined(joined[key], value, dotted)
        else:
            raise ScenarioError(f"{dotted}: {key} is set as a whole and in parts")
    return joined


def without(table: Table, left_out: str) -> dict[str, Any]:
    """The table without one dotted key; KeyError if the table does not have it."""
    first, _, rest = left_out.partition(".")
    if first not in table:
        raise KeyError(left_out)
    if not rest:
        return {key: value for key, value in table.items() if key != first}
    if not isinstance(table[first], Mapping):
        raise KeyError(left_out)
    return {**table, first: without(table[first], rest)}


def leaves(table: Table, prefix: str = "") -> list[str]:
    """Every dotted key of a table whose value is not a table."""
    found = []
    for key, value in table.items():
        dotted = f"{prefix}{key}"
        found.extend(leaves(value, f"{dotted}.") if isinstance(value, Mapping) and value else [dotted])
    return found
