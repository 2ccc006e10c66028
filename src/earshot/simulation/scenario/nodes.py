"""Node groups: who there is and how they move; and abilities, how able each one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from earshot.errors import ScenarioError
from earshot.simulation.extent import Ground
from earshot.simulation.mobility import MOBILITY_KINDS, Path, Playback, Uniform


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes of one sort. They are called after the group and a number: car-00, car-01."""

    count: int | None = None
    "How many; where places, moves or a trace say it already, it may be left out, and of a trace takes the first."
    names: tuple[str, ...] = ()
    "Names of their own, one a node."
    mobility: Any = field(default=Uniform(), metadata={"kinds": MOBILITY_KINDS})
    "How they move."

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 0:
            raise ScenarioError(f"count must not be negative, got {self.count}")
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
        if self.names and isinstance(self.mobility, Playback):
            raise ScenarioError("a trace names its nodes itself: leave names out")
        if self.count is None and given is None and not self.names and not isinstance(self.mobility, Playback):
            raise ScenarioError("count is missing")

    def node_names(self, group: str) -> tuple[str, ...]:
        """The group's nodes, in order."""
        if isinstance(self.mobility, Playback):
            names = self.mobility.names()
            if self.count is not None and self.count > len(names):
                raise ScenarioError(f"nodes.{group}: count is {self.count}, but the trace has {len(names)} nodes")
            return names[: self.count]
        if self.names:
            return self.names
        count = self.count if self.count is not None else self.mobility.count
        width = len(str(max(count - 1, 0)))
        return tuple(f"{group}-{i:0{width}}" for i in range(count))

    def paths(self, group: str, ground: Ground, seed: int, until_s: float) -> list[Path]:
        """Where the group's nodes go. Each draws from a stream of its own: more nodes do not move the others."""
        names = self.node_names(group)
        randoms = [Random(f"{seed}:mobility:{group}:{i}") for i in range(len(names))]
        found: list[Path] = self.mobility.paths(names, ground, randoms, until_s)
        return found


@dataclass(frozen=True, slots=True)
class Equal:
    """All nodes are able alike: 1."""

    kind: ClassVar[str] = "equal"

    def draw(self, random: Random) -> float:
        return 1.0


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """Few are very able, most are not: the density falls like ability ** -exponent."""

    kind: ClassVar[str] = "power-law"
    exponent: float = 2.5
    "How steeply; above 1."
    least: float = 1.0
    "The ability of the least able."
    most: float | None = None
    "A bound on the ablest, if any."

    def __post_init__(self) -> None:
        if self.exponent <= 1:
            raise ScenarioError(f"exponent must be above 1, got {self.exponent}")
        if self.least <= 0:
            raise ScenarioError(f"least must be positive, got {self.least}")
        if self.most is not None and self.most <= self.least:
            raise ScenarioError(f"most must exceed least, got {self.most} and {self.least}")

    def draw(self, random: Random) -> float:
        tail = 0.0 if self.most is None else (self.most / self.least) ** (1 - self.exponent)
        value: float = self.least * (1 - random.random() * (1 - tail)) ** (1 / (1 - self.exponent))
        return value if self.most is None else min(value, self.most)


@dataclass(frozen=True, slots=True)
class UniformAbility:
    """Every ability between two bounds is equally likely."""

    kind: ClassVar[str] = "uniform"
    least: float = 0.0
    "The least ability."
    most: float = 1.0
    "The greatest ability."

    def __post_init__(self) -> None:
        if not 0 <= self.least < self.most:
            raise ScenarioError(f"least must be from 0 to below most, got {self.least} and {self.most}")

    def draw(self, random: Random) -> float:
        return random.uniform(self.least, self.most)


ABILITY_KINDS: dict[str, Any] = {"equal": Equal, "power-law": PowerLaw, "uniform": UniformAbility}


def draw_abilities(law: Any, names: Sequence[str], seed: int) -> list[float]:
    """Every node's ability, each from a stream of its own."""
    return [law.draw(Random(f"{seed}:ability:{name}")) for name in names]
