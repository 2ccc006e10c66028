"""Links that something other than distance decides: scripts and partitions.

A script may give the whole graph (then distance does not matter), hold single links up or down at given
times, and rotate links at intervals, as the mobility experiments of the ODMRP paper do. A partition cuts
all links across a border for a while.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Literal

from earshot.errors import SettingsError, listed
from earshot.records.trajectories import Trajectories
from earshot.settings import AtLeastOne, Count, NotNegative, Positive, SettingsTable
from earshot.simulation.faults import Partition
from earshot.simulation.media.neighbours import FixedNeighbours, Neighbours

State = Literal["up", "down", "free"]
Link = tuple[str, str]


class LinkChange(SettingsTable, frozen=True):
    """From `time_s` on the link between two nodes is held up, held down, or free (left to the radio)."""

    time_s: NotNegative
    "When it changes."
    a: str
    "One node of the link."
    b: str
    "The other."
    state: State
    "up, down, or free."

    def validate(self) -> None:
        if self.a == self.b:
            raise SettingsError(f"a link joins two nodes, got {self.a!r} twice")


class Rotation(SettingsTable, frozen=True):
    """Links that take turns: `together` consecutive links of the list are up, all others of the list are
    down, and every `interval_s` the window moves on by one, in a circle.

    `pauses` are empty places at the end of the list: one link with one pause is broken and repaired
    repeatedly; two links without a pause alternate.
    """

    links: tuple[Link, ...]
    "Pairs of nodes, in the order of their turns."
    interval_s: Positive
    "How long a turn lasts."
    together: AtLeastOne = 1
    "How many are up at once."
    pauses: Count = 0
    "Empty places at the end of the list."
    start_s: NotNegative = 0.0
    "When the first turn begins; until then the links are free."

    def validate(self) -> None:
        _check_links(self.links)
        places = len(self.links) + self.pauses
        if not self.links or not 1 <= self.together <= places:
            raise SettingsError(f"a rotation needs links and 1 to {places} of them together, got {self.together}")

    def changes(self) -> Iterator[LinkChange]:
        """All changes, in order of time; there is no last one."""
        places = len(self.links) + self.pauses
        was_up: set[int] | None = None
        step = 0
        while True:
            up = {(step + k) % places for k in range(self.together)}
            time_s = self.start_s + step * self.interval_s
            for place, (a, b) in enumerate(self.links):
                if was_up is None or (place in up) != (place in was_up):
                    yield LinkChange(time_s, a, b, "up" if place in up else "down")
            was_up = up
            step += 1


class LinkScript(SettingsTable, frozen=True):
    """`graph`: these links and no others, at any distance; if it is not given, the radio decides.
    `changes` and `rotations` hold single links up or down over that."""

    graph: tuple[Link, ...] | None = None
    "Pairs of nodes: these links and no others, at any distance; by default the medium decides."
    changes: tuple[LinkChange, ...] = ()
    "Single links that are held up or down from a given time."
    rotations: tuple[Rotation, ...] = ()
    "Links that take turns."

    def validate(self) -> None:
        _check_links(self.graph or ())

    def __bool__(self) -> bool:
        return self.graph is not None or bool(self.changes or self.rotations)

    def in_order(self) -> Iterator[LinkChange]:
        """Every change in order of time; those at the same time in the order given."""
        given = sorted(self.changes, key=lambda change: change.time_s)
        turns = (rotation.changes() for rotation in self.rotations)
        return heapq.merge(given, *turns, key=lambda change: change.time_s)


def _check_links(links: Sequence[Link]) -> None:
    for link in links:
        if link[0] == link[1]:
            raise SettingsError(f"a link names two different nodes, got {list(link)}")


def _of_graph(names: Sequence[str], graph: Sequence[Link]) -> Neighbours:
    """The neighbours that a graph gives."""
    index = _index_of(names)
    found: list[set[int]] = [set() for _ in names]
    for a, b in graph:
        i, j = _numbers(index, a, b)
        found[i].add(j)
        found[j].add(i)
    return FixedNeighbours([sorted(near) for near in found])


class ScriptedLinks:
    """The neighbours of another source, with the script's links held up or down."""

    def __init__(self, names: Sequence[str], under: Neighbours, script: LinkScript) -> None:
        self._index = _index_of(names)
        self._under = under
        self._changes = script.in_order()
        self._held: dict[int, dict[int, bool]] = {}
        self._applied = 0
        self._next = next(self._changes, None)
        turning = (link for rotation in script.rotations for link in rotation.links)
        for a, b in (*((change.a, change.b) for change in script.changes), *turning):
            _numbers(self._index, a, b)

    def of(self, i: int, t: float) -> list[int]:
        self._follow_script(t)
        near = self._under.of(i, t)
        held = self._held.get(i)
        if not held:
            return near
        up = [j for j, is_up in held.items() if is_up]
        return sorted({*up, *(j for j in near if j not in held)})

    def version(self, t: float) -> Hashable:
        self._follow_script(t)
        return self._under.version(t), self._applied

    def _follow_script(self, t: float) -> None:
        while self._next is not None and self._next.time_s <= t:
            self._apply(self._next)
            self._applied += 1
            self._next = next(self._changes, None)

    def _apply(self, change: LinkChange) -> None:
        i, j = _numbers(self._index, change.a, change.b)
        for one, other in ((i, j), (j, i)):
            held = self._held.setdefault(one, {})
            if change.state == "free":
                held.pop(other, None)
            else:
                held[other] = change.state == "up"


def scripted(names: Sequence[str], radio: Neighbours, script: LinkScript) -> Neighbours:
    """The radio's neighbours under this script."""
    under = radio if script.graph is None else _of_graph(names, script.graph)
    return ScriptedLinks(names, under, script) if script.changes or script.rotations else under


def _index_of(names: Sequence[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def _numbers(index: Mapping[str, int], a: str, b: str) -> tuple[int, int]:
    for name in (a, b):
        if name not in index:
            raise SettingsError(f"the links name a node {name!r}; the scenario has {listed(list(index), 8)}")
    return index[a], index[b]


# Partitions.


class Partitioned:
    """The neighbours of another source, without the links that a partition cuts."""

    def __init__(self, trajectories: Trajectories, under: Neighbours, partitions: Sequence[Partition]) -> None:
        self._trajectories = trajectories
        self._under = under
        self._partitions = partitions

    def of(self, i: int, t: float) -> list[int]:
        near, position = self._under.of(i, t), self._trajectories.position
        for partition in self._partitions:
            if partition.start_s <= t < partition.end_s:
                near = [j for j in near if not partition.separates(position(i, t), position(j, t))]
        return near

    def version(self, t: float) -> Hashable:
        present = tuple(partition.start_s <= t < partition.end_s for partition in self._partitions)
        # While a partition lasts, nodes that move may cross it at any time.
        crossing_at = t if any(present) and not self._trajectories.static else None
        return self._under.version(t), present, crossing_at
