"""Location paths as a tree of shared prefixes, kept so that many nodes are followed at once.

A node is a number. The moves to one label from all nodes are one table, in which the targets of hundreds of nodes are
found in a few steps of numpy; what is known of a node stands in arrays, by its number.

A removed node keeps its number, leads nowhere and has no results: a state that still holds it finds nothing there.
`reuse_numbers` gives such numbers to new nodes, once no state holds them.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot.filters.language.syntax import Comparison
from earshot.filters.language.values import COMPARE, number

Label = str | tuple[str, str]
"An element's name, or `attribute(name)`, or TEXT."
ANY = "*"
TEXT: Label = ("text", "")


def attribute(name: str) -> Label:
    """The label of an attribute; "*" for any."""
    return ("attribute", name)


OWN_TEXT, POSITION, POSITION_OF_ALL = "", "[name]", "[*]"
"What a guard may ask of an element beside attributes: a text node, its position among siblings of its name, or all."

Property = tuple[str, str | int]
"What an element has: an attribute's name or one of the three above, and its text or position."
Properties = tuple[Property, ...]


class Guard(NamedTuple):
    """A test on an element's own properties: `[@id]`, `[@id="x"]`, `[@id=5]`, `[text()="x"]` or `[2]`."""

    attribute: str
    wanted: str | float | None = None
    "The text or number it must be; None: there must be one."
    op: Comparison = Comparison.EQ
    "Of a position."

    def admits(self, value: str | int) -> bool:
        """Whether the guard holds for a property of its name."""
        if self.wanted is None:
            return True
        if isinstance(value, int):
            return COMPARE[self.op](value, self.wanted)
        return (value if isinstance(self.wanted, str) else number(value)) == self.wanted

    def holds(self, properties: Properties) -> bool:
        return any(name == self.attribute and self.admits(value) for name, value in properties)


Guards = tuple[Guard, ...]


class PathMove(NamedTuple):
    """One step of a path: to a child, or to anything below, that passes the guards."""

    below: bool
    label: Label
    guards: Guards = ()


PathMoves = tuple[PathMove, ...]

Nodes = NDArray[np.intp]
"Numbers of nodes, ascending, each once."
NO_NODES: Nodes = np.empty(0, np.intp)


def sorted_nodes(several: Iterable[int]) -> Nodes:
    return np.array(sorted(several), np.intp)


def union(several: list[Nodes]) -> Nodes:
    """The nodes of all of them."""
    together = np.concatenate([NO_NODES, *several])
    together.sort()
    is_new = np.ones(len(together), np.bool_)
    np.not_equal(together[1:], together[:-1], out=is_new[1:])
    return together[is_new]


def with_node(nodes: Nodes, node: int) -> Nodes:
    """The nodes and one more."""
    place = int(nodes.searchsorted(node))
    if place < len(nodes) and nodes[place] == node:
        return nodes
    return np.concatenate((nodes[:place], (node,), nodes[place:]))


_NO_SOURCE: Nodes = np.array([np.iinfo(np.intp).max])
"It ends the sources of a table, so that a place is found for every source that is looked up."


class MoveTable:
    """The moves to one label, from which nodes to which; a source is a node and an axis (`source_of`)."""

    __slots__ = ("_added", "_sources", "_targets", "guarded", "plain")

    def __init__(self) -> None:
        self.plain: dict[int, int] = {}
        self.guarded: dict[int, dict[Guards, int]] = {}
        self._sources, self._targets = _NO_SOURCE, _NO_SOURCE
        "The plain moves in parallel, by source; those that were removed lead to a removed node."
        self._added = (array("q"), array("q"))
        "Sources and targets that are not yet among them."

    def get(self, source: int, guards: Guards) -> int | None:
        return self.guarded.get(source, {}).get(guards) if guards else self.plain.get(source)

    def add(self, source: int, guards: Guards, target: int) -> None:
        if guards:
            self.guarded.setdefault(source, {})[guards] = target
            return
        self.plain[source] = target
        sources, targets = self._added
        sources.append(source)
        targets.append(target)

    def drop(self, source: int, guards: Guards) -> None:
        if not guards:
            del self.plain[source]
            return
        del self.guarded[source][guards]
        if not self.guarded[source]:
            del self.guarded[source]

    def targets(self, sources: Nodes) -> Nodes:
        """Where the plain moves from these sources lead, in no order."""
        if self._added[0]:
            self._sort()
        places = self._sources.searchsorted(sources)
        found: Nodes = self._targets.take(places[self._sources.take(places) == sources])
        return found

    def behind_guards(self, sources: Nodes) -> Iterator[tuple[Guards, int]]:
        """Where the other moves from these sources lead, with their guards."""
        if self.guarded:
            for source in sources.tolist():
                if source in self.guarded:
                    yield from self.guarded[source].items()

    def _sort(self) -> None:
        sources, targets = (np.array(added, np.intp) for added in self._added)
        # The newest come first: a move that was removed and added again is found where it leads now.
        sources = np.concatenate((sources[::-1], self._sources))
        targets = np.concatenate((targets[::-1], self._targets))
        order = sources.argsort(kind="stable")
        self._sources, self._targets = sources[order], targets[order]
        self._added = (array("q"), array("q"))

    def renew(self) -> None:
        """Forget removed moves."""
        self._sources, self._targets = _NO_SOURCE, _NO_SOURCE
        self._added = (array("q", self.plain), array("q", self.plain.values()))


def source_of(node: int, below: bool) -> int:
    """A node as the source of its moves to anything below, or to children."""
    return node << 1 | below


Results = NDArray[np.object_]
"In an array and not in a list: the garbage collector would visit every result in a list."
NO_RESULTS: Results = np.empty(0, object)


class NodeResults:
    """The results of nodes. Most nodes have at most one: it is kept in an array, and further ones beside it."""

    __slots__ = ("_first", "_further", "counts", "total")

    def __init__(self) -> None:
        self.counts: NDArray[np.int32] = np.zeros(0, np.int32)
        self._first: Results = np.empty(0, object)
        self._further: dict[int, set[Hashable]] = {}
        self.total = 0

    def resize(self, nodes: int) -> None:
        """Make room for this many nodes."""
        self.counts.resize(nodes, refcheck=False)
        self._first.resize(nodes, refcheck=False)

    def add(self, node: int, result: Hashable) -> None:
        if self.counts[node]:
            self._further.setdefault(node, set()).add(result)
        else:
            self._first[node] = result
        self.counts[node] += 1
        self.total += 1

    def remove(self, node: int, result: Hashable) -> None:
        further = self._further.get(node)
        if further is None:
            self._first[node] = None
        elif result in further:
            further.remove(result)
        else:
            self._first[node] = further.pop()
        if not further:
            self._further.pop(node, None)
        self.counts[node] -= 1
        self.total -= 1

    def of(self, nodes: Nodes) -> Results:
        """All results of the nodes."""
        if not self.total:
            return NO_RESULTS
        counts = self.counts.take(nodes)
        found: Results = self._first[nodes[counts > 0]]
        if not self._further:
            return found
        several = (result for node in nodes[counts > 1].tolist() for result in self._further[node])
        return np.concatenate((found, np.fromiter(several, object)))


class PrefixTree:
    """The prefixes of all paths. Node 0 is the document, above the root element."""

    def __init__(self) -> None:
        self.answers, self.leads = NodeResults(), NodeResults()
        self.changes = 0
        "How often paths were added or removed."
        self._moves: dict[Label, MoveTable] = {}
        self._counts: dict[bool, NDArray[np.int32]] = {below: np.zeros(0, np.int32) for below in (False, True)}
        "How many moves lead on from each node: to a child, and to anything below."
        self._used = 1
        self._free: list[int] = []
        self._removed: list[int] = []
        self._resize(32)

    def get(self, node: int, move: PathMove) -> int | None:
        """Where the move leads from this node, if there is such a move."""
        table = self._moves.get(move.label)
        return None if table is None else table.get(source_of(node, move.below), move.guards)

    def add(self, node: int, move: PathMove) -> int:
        """The new node at the end of a new move."""
        table = self._moves.get(move.label)
        if table is None:
            table = self._moves[move.label] = MoveTable()
        if self._free:
            target = self._free.pop()
        else:
            target = self._used
            self._used += 1
            if target == len(self._counts[False]):
                self._resize(2 * target)
        table.add(source_of(node, move.below), move.guards, target)
        self._counts[move.below][node] += 1
        return target

    def drop(self, node: int, move: PathMove) -> None:
        """Remove a move and the node it leads to."""
        table = self._moves[move.label]
        source = source_of(node, move.below)
        target = table.get(source, move.guards)
        assert target is not None
        table.drop(source, move.guards)
        self._counts[move.below][node] -= 1
        self._removed.append(target)

    def is_bare(self, node: int) -> bool:
        """Whether nothing follows from the node."""
        arrays = (*self._counts.values(), self.answers.counts, self.leads.counts)
        return not any(counts[node] for counts in arrays)

    def is_waiting(self, node: int) -> bool:
        """Whether the node has moves to anything below."""
        return bool(self._counts[True][node])

    def waiting(self, nodes: Nodes) -> Nodes:
        """Those of the nodes with moves to anything below."""
        return nodes[self._counts[True].take(nodes) > 0]

    def sources(self, nodes: Nodes, waiting: Nodes) -> Nodes:
        """The nodes as sources of moves to children, where they have any, and those waiting of moves below."""
        leading_on = nodes[self._counts[False].take(nodes) > 0]
        sources = np.concatenate((leading_on, waiting))
        sources <<= 1
        sources[len(leading_on) :] |= 1
        return sources

    def table(self, label: Label) -> MoveTable | None:
        """The moves to this label."""
        return self._moves.get(label)

    @property
    def has_many_removed(self) -> bool:
        """Whether it is time to `reuse_numbers`."""
        return len(self._removed) > 1024 + self._used // 2

    def reuse_numbers(self) -> None:
        """Give the numbers of removed nodes to new ones, from now on."""
        if self._removed:
            self._free += self._removed
            self._removed = []
            self._moves = {label: table for label, table in self._moves.items() if table.plain or table.guarded}
            for table in self._moves.values():
                table.renew()

    def _resize(self, nodes: int) -> None:
        for results in (self.answers, self.leads):
            results.resize(nodes)
        for counts in self._counts.values():
            counts.resize(nodes, refcheck=False)
