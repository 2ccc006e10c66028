"""What a document has reached in the automaton at one element: a state by its names, and what stands behind guards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from earshot.events import Element
from earshot.filters.index.guarded_paths import GuardedNode, GuardIndex, Moves, SiblingPositions
from earshot.filters.index.path_moves import (
    ANY,
    ANY_ATTRIBUTE,
    OWN_TEXT,
    POSITION,
    POSITION_OF_ALL,
    Guards,
    Label,
    Property,
    wildcard_of,
)
from earshot.filters.index.prefix_tree import NO_NODES, Nodes, PrefixTree, Results, union, with_node


class PathState:
    """The nodes that a document has reached at the end of one sequence of names."""

    __slots__ = (
        "_above",
        "_changes",
        "_results",
        "_sources",
        "_waiting",
        "_wild",
        "guards",
        "leads_on",
        "next",
        "nodes",
    )

    def __init__(self, nodes: Nodes, above: Nodes) -> None:
        self.next: dict[Label, PathState] = {}
        self.nodes = nodes
        "Reached at this element."
        self._above = above
        "Nodes with moves to anything below, reached further up."
        self._waiting: Nodes | None = None
        self.leads_on = len(nodes) + len(above) > 0
        "Whether anything may follow."
        self.guards: GuardIndex | None = None
        "Nodes that are also reached here if their guards hold."
        self._changes = -1
        "When the following were found in the tree."
        self._results: tuple[Results, Results] | None = None
        self._sources: Nodes | None = None
        self._wild: dict[Label, Nodes] = {}

    def waiting(self, tree: PrefixTree) -> Nodes:
        """Nodes with moves to anything below, reached here or further up; most states are never asked."""
        if self._waiting is None:
            here = tree.waiting(self.nodes)
            self._waiting = union([self._above, here]) if len(here) else self._above
        return self._waiting

    def results(self, tree: PrefixTree) -> tuple[Results, Results]:
        """The answers and the leads of the nodes reached here."""
        self._renew(tree)
        if self._results is None:
            self._results = tree.answers.of(self.nodes), tree.leads.of(self.nodes)
        return self._results

    def has_results(self, tree: PrefixTree) -> bool:
        """Whether any path ends here."""
        return any(len(found) > 0 for found in self.results(tree))

    def sources(self, tree: PrefixTree) -> Nodes:
        """The nodes reached here and the nodes waiting here, as sources of moves."""
        self._renew(tree)
        if self._sources is None:
            self._sources = tree.sources(self.nodes, self.waiting(tree))
        return self._sources

    def wild_targets(self, tree: PrefixTree, wild: Label) -> Nodes:
        """Where moves to any name lead from here, which is asked for each name that follows."""
        sources = self.sources(tree)
        found = self._wild.get(wild)
        if found is None:
            table = tree.table(wild)
            found = self._wild[wild] = NO_NODES if table is None else table.targets(sources)
        return found

    def _renew(self, tree: PrefixTree) -> None:
        if self._changes != tree.changes:
            self._changes = tree.changes
            self._results = self._sources = None
            self._wild = {}

    def children(self, label: Label) -> Iterable[PathState]:
        """The known states one move down by this label of a path."""
        if label in (ANY, ANY_ATTRIBUTE):
            return [state for name, state in self.next.items() if wildcard_of(name) == label]
        found = self.next.get(label)
        return () if found is None else (found,)

    def reach(self, node: int) -> None:
        """Reach one more node here."""
        self._changes = -1
        self.nodes = with_node(self.nodes, node)
        self.leads_on = True

    def wait_for(self, node: int) -> None:
        """Follow the moves of one more node to anything below, which was reached here or further up."""
        self._waiting = None
        self._changes = -1
        self._above = with_node(self._above, node)
        self.leads_on = True

    def guard(self, guards: Guards, node: GuardedNode) -> None:
        """Reach one more node here where its guards hold."""
        if self.guards is None:
            self.guards = GuardIndex()
        self.guards.add(guards, node)


_NO_MOVES: dict[GuardedNode, Moves] = {}


class PathJoint:
    """All that is reached at an element: the state that its names lead to, and nodes behind guards."""

    __slots__ = (
        "_moves",
        "_waiting",
        "asks_more",
        "asks_position",
        "asks_text",
        "behind",
        "guards",
        "has_results",
        "leads_on",
        "next",
        "nodes",
        "passed",
        "state",
    )

    def __init__(
        self,
        state: PathState,
        has_results: bool,
        nodes: tuple[GuardedNode, ...] = (),
        waiting: dict[GuardedNode, Moves] = _NO_MOVES,
        guards: Sequence[GuardIndex] = (),
    ) -> None:
        self.state = state
        self.nodes = nodes
        below = {node: node.below for node in nodes if node.below}
        self._waiting = waiting | below if below else waiting
        "The moves to anything below, from nodes reached here or further up."
        self._moves: list[Moves] | None = None
        self.guards = guards
        "Further nodes are reached where these hold."
        self.asks_text = any(index.asks_text for index in guards)
        self.asks_position = any(index.asks_position for index in guards)
        self.asks_more = self.asks_text or self.asks_position
        "Whether guards ask for more than attributes."
        self.has_results = has_results or any(node.has_results for node in nodes)
        "Whether any path ends here. (A path that was removed since may have ended here.)"
        self.leads_on = state.leads_on or len(self._waiting) > 0 or any(node.children for node in nodes)
        self.next: dict[Label, PathJoint] = {}
        "The joints one move further down, without the nodes behind the guards there."
        self.passed: dict[Asked, PathJoint] = {}
        "By what guards ask of an element: the joint with the nodes behind those that hold."
        self.behind: dict[tuple[GuardedNode, ...], PathJoint] = {}
        "The same by these nodes."

    def below(self, label: Label, state: PathState, has_results: bool) -> PathJoint:
        """The joint one move further down, where names lead to this state."""
        if self._moves is None:
            self._moves = [*self._waiting.values(), *[node.children for node in self.nodes if node.children]]
        labels = (label, wildcard_of(label))
        targets = [moves[one] for one in labels if one is not None for moves in self._moves if one in moves]
        nodes = dict.fromkeys([one.plain for one in targets if one.plain is not None])
        guards = [one.guards for one in targets if one.guards is not None]
        if state.guards is not None:
            guards.append(state.guards)
        return PathJoint(state, has_results, tuple(nodes), self._waiting, guards)

    def with_admitted(self, properties: Collection[Property]) -> PathJoint:
        """The joint with the nodes whose guards hold for these properties of an element."""
        admitted = tuple([node for guards in self.guards for node in guards.admitted(properties)])
        if not admitted:
            return self
        found = self.behind.get(admitted)
        if found is None:
            nodes = tuple(dict.fromkeys((*self.nodes, *admitted)))
            found = self.behind[admitted] = PathJoint(self.state, self.has_results, nodes, self._waiting)
        return found

    @property
    def held(self) -> int:
        """About how many entries of memory it holds beside those of every joint."""
        return 2 * len(self.nodes) + 16 * len(self._waiting)

    def more_asked(self, element: Element, place: int, positions: SiblingPositions) -> MoreAsked:
        """What guards ask, beside attributes, of an element with this place among its siblings."""
        found: MoreAsked = ()
        if self.asks_text and element.children:
            found = tuple([part for part in element.children if isinstance(part, str) and part])
        return (*found, positions.at(place)) if self.asks_position else found


MoreAsked = tuple[str | tuple[int, int], ...]
"What guards ask beside attributes: texts, and positions."
Asked = tuple[Any, ...]
"All that guards may ask of an element: names and values of attributes, then MoreAsked where they ask more."


def properties_of(attributes: Mapping[str, str], more: MoreAsked) -> Collection[Property]:
    """The properties of an element with these attributes, and with what guards ask beside."""
    if not more:
        return attributes.items()
    found: list[Property] = list(attributes.items())
    for one in more:
        if isinstance(one, str):
            found.append((OWN_TEXT, one))
        else:
            found += ((POSITION, one[0]), (POSITION_OF_ALL, one[1]))
    return found
