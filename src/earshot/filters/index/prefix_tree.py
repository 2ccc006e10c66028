"""Location paths as a tree of shared prefixes, kept so that many nodes are followed at once.

A node is a number. The moves to one label from all nodes are one table, in which the targets of hundreds of nodes are
found in a few steps of numpy; what is known of a node stands in arrays, by its number.

A removed node keeps its number, leads nowhere and has no results: a state that still holds it finds nothing there.
`reuse_numbers` gives such numbers to new nodes, once no state holds them.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from earshot.filters.index.guarded_paths import GuardedNode
from earshot.filters.index.path_moves import Guards, Label, PathMove

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
        self.guarded: dict[int, dict[Guards, GuardedNode]] = {}
        self._sources, self._targets = _NO_SOURCE, _NO_SOURCE
        "The plain moves in parallel, by source; those that were removed lead to a removed node."
        self._added = (array("q"), array("q"))
        "Sources and targets that are not yet among them."

    def add(self, source: int, target: int) -> None:
        self.plain[source] = target
        sources, targets = self._added
        sources.append(source)
        targets.append(target)

    def targets(self, sources: Nodes) -> Nodes:
        """Where the plain moves from these sources lead, in no order."""
        if self._added[0]:
            self._sort()
        places = self._sources.searchsorted(sources)
        found: Nodes = self._targets.take(places[self._sources.take(places) == sources])
        return found

    def behind_guards(self, sources: Nodes) -> Iterator[tuple[Guards, GuardedNode]]:
        """Where the moves with guards lead from these sources."""
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
        else:
            if result in further:
                further.remove(result)
            else:
                self._first[node] = further.pop()
            if not further:
                del self._further[node]
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
        self._guarded = self._guarded_removed = 0
        "How many moves with guards there are, and how many were removed since states were rebuilt."
        self._resize(32)

    def get(self, node: int, move: PathMove) -> int | None:
        """Where a move without guards leads from this node, if there is such a move."""
        below, label, _ = move
        table = self._moves.get(label)
        return None if table is None else table.plain.get(node << 1 | below)  # source_of, without the call

    def add(self, node: int, move: PathMove) -> int:
        """The new node at the end of a new move without guards."""
        if self._free:
            target = self._free.pop()
        else:
            target = self._used
            self._used += 1
            if target == len(self._counts[False]):
                self._resize(2 * target)
        below = move.below
        self._table_for(move).add(source_of(node, below), target)
        self._counts[below][node] += 1
        return target

    def drop(self, node: int, move: PathMove) -> None:
        """Remove a move without guards and the node it leads to."""
        self._removed.append(self._moves[move.label].plain.pop(source_of(node, move.below)))
        self._counts[move.below][node] -= 1

    def behind(self, node: int, move: PathMove) -> GuardedNode | None:
        """Where a move with guards leads from this node, if there is such a move."""
        table = self._moves.get(move.label)
        return None if table is None else table.guarded.get(source_of(node, move.below), {}).get(move.guards)

    def add_behind(self, node: int, move: PathMove) -> GuardedNode:
        """The new node at the end of a new move with guards."""
        target = GuardedNode()
        self._table_for(move).guarded.setdefault(source_of(node, move.below), {})[move.guards] = target
        self._counts[move.below][node] += 1
        self._guarded += 1
        return target

    def drop_behind(self, node: int, move: PathMove) -> None:
        """Remove a move with guards and the node it leads to."""
        guarded, source = self._moves[move.label].guarded, source_of(node, move.below)
        del guarded[source][move.guards]
        if not guarded[source]:
            del guarded[source]
        self._counts[move.below][node] -= 1
        self._guarded -= 1
        self._guarded_removed += 1

    def _table_for(self, move: PathMove) -> MoveTable:
        table = self._moves.get(move.label)
        if table is None:
            table = self._moves[move.label] = MoveTable()
        return table

    @property
    def has_results(self) -> bool:
        """Whether any path without a guard ends here."""
        return self.answers.total + self.leads.total > 0

    def is_bare(self, node: int) -> bool:
        """Whether nothing follows from the node."""
        leading_on = self._counts
        has_any = leading_on[False][node] or leading_on[True][node] or self.answers.counts[node]
        return not (has_any or self.leads.counts[node])

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
        return len(self._removed) + self._guarded_removed > 1024 + (self._used + self._guarded) // 2

    def reuse_numbers(self) -> None:
        """Give the numbers of removed nodes to new ones, from now on."""
        self._free += self._removed
        self._removed, self._guarded_removed = [], 0
        self._moves = {label: table for label, table in self._moves.items() if table.plain or table.guarded}
        for table in self._moves.values():
            table.renew()

    def _resize(self, nodes: int) -> None:
        for results in (self.answers, self.leads):
            results.resize(nodes)
        for counts in self._counts.values():
            counts.resize(nodes, refcheck=False)
