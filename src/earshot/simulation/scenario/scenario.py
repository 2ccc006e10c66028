"""Scenarios: nodes, mobility, medium, faults, workload and duration, as one value.

A scenario is read from a TOML file, usually a base and what differs (`docs/scenarios.md` has every
key), or built in Python. Everything random in it is drawn from the run's seed.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from earshot.errors import ScenarioError
from earshot.simulation.extent import Ground, box_of
from earshot.simulation.faults import FaultSettings
from earshot.simulation.media.links import LinkScript
from earshot.simulation.media.medium_settings import MEDIA, MediumSettings, Overlay, UnitDisk
from earshot.simulation.mobility import Trajectories
from earshot.simulation.scenario.merging import merged, nested
from earshot.simulation.scenario.nodes import ABILITY_KINDS, Equal, NodeGroup, draw_abilities
from earshot.simulation.settings_reader import Where, read
from earshot.simulation.settings_schema import plain
from earshot.simulation.workload.actions import Action, Workload
from earshot.simulation.workload.traffic import (
    OwnWorkload,
    Publish,
    Stage,
    Subscribe,
    check_announcements,
    generators_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a run simulates, apart from the protocol and the seed."""

    name: str = "unnamed"
    "What it is called; a file's own name where not given."
    description: str = ""
    "One line for `earshot scenarios`."
    duration_s: float
    "How long the run lasts."
    warm_up_s: float = 0.0
    "Publishing starts here, and metrics count from here on; the run itself starts at 0."
    cool_down_s: float = 0.0
    "Nothing is published in the last seconds, so that what is under way can arrive."
    area: Ground = Ground()
    "The ground the nodes live on."
    medium: MediumSettings = field(default=UnitDisk(), metadata={"kinds": MEDIA})
    "Who hears whom."
    overlay: Overlay = Overlay()
    "The network under protocols that run over an overlay, where the medium is a radio."
    faults: FaultSettings = FaultSettings()
    "What goes wrong."
    nodes: dict[str, NodeGroup] = field(default_factory=dict)
    "The nodes: a table for each group."
    ability: Any = field(default=Equal(), metadata={"kinds": ABILITY_KINDS})
    "How able each node is."
    publish: dict[str, Publish] = field(default_factory=dict)
    "What is published: a table for each entry."
    subscribe: dict[str, Subscribe] = field(default_factory=dict)
    "What is asked for: a table for each entry."
    own: OwnWorkload = OwnWorkload()
    "Events and subscriptions from files of the user's own."

    def __post_init__(self) -> None:
        if not (math.isfinite(self.duration_s) and self.duration_s > 0):
            raise ScenarioError(f"duration_s must be a positive number of seconds, got {self.duration_s}")
        for name, value in (("warm_up_s", self.warm_up_s), ("cool_down_s", self.cool_down_s)):
            if not (math.isfinite(value) and value >= 0):
                raise ScenarioError(f"{name} must not be negative, got {value}")
        if self.warm_up_s + self.cool_down_s >= self.duration_s:
            raise ScenarioError(
                f"duration_s must exceed warm_up_s and cool_down_s together, got {self.duration_s:g} s for "
                f"{self.warm_up_s:g} and {self.cool_down_s:g}"
            )
        if not self.nodes:
            raise ScenarioError("nodes is missing: write a table such as [nodes.car] with a count")
        # A run must not depend on the order in which a file lists its entries: `canonical` does not tell it.
        for name in ("nodes", "publish", "subscribe"):
            object.__setattr__(self, name, dict(sorted(getattr(self, name).items())))
        self._check_references()

    def _check_references(self) -> None:
        """Whatever names a node, a group, an entry or a place names one that is there."""
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
        for section, entries in (("publish", self.publish), ("subscribe", self.subscribe)):
            for entry, one in entries.items():
                for name in (one.nodes,) if isinstance(one.nodes, str) else one.nodes:
                    if name != "all" and name not in self.nodes and name not in known:
                        raise _no_node(f"{section}.{entry}.nodes", name, (*self.nodes, *names))
        sources = generators_of(self.publish)
        for entry, subscribe in self.subscribe.items():
            try:
                subscribe.filters.check(sources)
            except ScenarioError as error:
                raise ScenarioError(f"subscribe.{entry}.filters: {error}") from None
        links = (*_nodes_of_links("medium", self.medium.links), *_nodes_of_links("overlay", self.overlay.links))
        for where, name in (*_nodes_of_faults(self.faults), *links):
            if name not in known:
                raise _no_node(where, name, names)

    def names(self) -> tuple[str, ...]:
        """All nodes, in the order of their numbers."""
        return tuple(name for members in self._groups().values() for name in members)

    @property
    def node_count(self) -> int:
        """How many nodes there are, for protocols whose settings depend on it."""
        return len(self.names())

    @property
    def first_nodes(self) -> tuple[str, ...]:
        """The first three: whom everybody knows where a protocol needs somebody to begin at."""
        return self.names()[:3]

    def trajectories(self, seed: int) -> Trajectories:
        """Every node's way under this seed."""
        paths = []
        for group, nodes in self.nodes.items():
            try:
                paths.extend(nodes.paths(group, self.area, seed, self.duration_s))
            except ScenarioError as error:
                raise ScenarioError(f"{self.name}: nodes.{group}: {error}") from None
        return Trajectories(paths)

    def workload(self, seed: int, trajectories: Trajectories | None = None) -> Workload:
        """What the applications do under this seed; `trajectories` spares drawing them again."""
        where = trajectories if trajectories is not None else self.trajectories(seed)
        stage = Stage(
            seed=seed,
            groups=self._groups(),
            trajectories=where,
            abilities=draw_abilities(self.ability, where.names, seed),
            ground=self.area,
            warm_up_s=self.warm_up_s,
            publish_until_s=self.duration_s - self.cool_down_s,
            duration_s=self.duration_s,
        )
        sources = generators_of(self.publish)
        actions: list[Action] = []
        for entry, subscribe in self.subscribe.items():
            actions.extend(subscribe.actions(entry, stage, sources))
        actions.extend(self.own.actions(stage))
        for entry, publish in self.publish.items():
            actions.extend(publish.actions(entry, stage))
        check_announcements(actions)
        return Workload(actions)

    def abilities(self, seed: int) -> npt.NDArray[np.float64]:
        """Every node's ability (how much it can detect, hold or carry) under this seed."""
        return np.array(draw_abilities(self.ability, self.names(), seed), dtype=np.float64)

    def table(self) -> dict[str, Any]:
        """The scenario as a TOML table, every default written out."""
        table: dict[str, Any] = plain(self)
        return table

    def canonical(self) -> dict[str, Any]:
        """All that decides the run, as plain JSON values, equal for scenarios that run alike: names
        and descriptions are left out, and files are known by their content."""
        table: dict[str, Any] = plain(self, by_content=True)
        return {key: value for key, value in table.items() if key not in ("name", "description")}

    def medium_for(self, medium: Literal["radio", "overlay"]) -> MediumSettings:
        """The medium under a protocol that asks for a radio or for an overlay: one scenario serves both."""
        if medium == "overlay" and not isinstance(self.medium, Overlay):
            return self.overlay
        if medium == "radio" and isinstance(self.medium, Overlay):
            raise ScenarioError(
                f"{self.name}: medium.kind is overlay, and this protocol needs a radio: "
                "choose another medium.kind, and put the overlay's settings under overlay"
            )
        return self.medium

    def with_(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Scenario:
        """The scenario with some keys changed: `with_({"medium.range_m": 150})`.

        None leaves a key out. A new `kind` keeps what the old one's table said where the new kind
        has that key too.
        """
        changed = {**(changes or {}), **more}
        table = merged(plain(self, sparse=True), nested(changed))
        return read(Scenario, table, Where(self.name, origins=dict.fromkeys(changed, f"override of {self.name}")))

    def _groups(self) -> dict[str, tuple[str, ...]]:
        return {group: nodes.node_names(group) for group, nodes in self.nodes.items()}


def _no_node(where: str, name: str, known: tuple[str, ...]) -> ScenarioError:
    nearest = difflib.get_close_matches(name, known, n=1)
    some = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are: {some}"
    return ScenarioError(f"{where}: no node or group is called {name!r}; {hint}")


def _nodes_of_faults(faults: FaultSettings) -> Iterator[tuple[str, str]]:
    yield from (("faults.silent_nodes", name) for name in faults.silent_nodes)
    yield from (("faults.crashes", crash.node) for crash in faults.crashes)


def _nodes_of_links(table: str, links: LinkScript) -> Iterator[tuple[str, str]]:
    pairs = [*(links.graph or ()), *((change.a, change.b) for change in links.changes)]
    pairs.extend(pair for rotation in links.rotations for pair in rotation.links)
    yield from ((f"{table}.links", name) for pair in pairs for name in pair)
