"""What a document has reached in the automaton at one element: a state, its guards, and joints of states."""

from __future__ import annotations

from collections.abc import Iterable

from earshot.events import Element
from earshot.filters.index.prefix_tree import (
    ANY,
    NO_NODES,
    OWN_TEXT,
    POSITION,
    POSITION_OF_ALL,
    TEXT,
    Guard,
    Guards,
    Label,
    Nodes,
    PrefixTree,
    Properties,
    Property,
    Results,
    attribute,
    union,
    with_node,
)
from earshot.filters.language.values import number

_ANY_ATTRIBUTE = attribute(ANY)
UNKNOWN: Label = ("element", "")
"All names that no path mentions count as one."
_NO_ELEMENT = Element("")


def wildcard_of(label: Label) -> Label | None:
    """The wildcard that includes this label."""
    if isinstance(label, str) or label == UNKNOWN:
        return ANY
    return None if label == TEXT else _ANY_ATTRIBUTE


class GuardIndex:
    """Nodes behind guards, found by the properties an element has."""

    __slots__ = ("_by_guard", "asked")

    def __init__(self) -> None:
        self._by_guard: dict[Guard, list[tuple[Guards, int]]] = {}
        self.asked: set[str] = set()
        "The names of the properties that guards ask for."

    def add(self, guards: Guards, node: int) -> None:
        """Put a node behind guards; it is found by the first and checked by the others."""
        first, *others = guards
        self._by_guard.setdefault(first, []).append((tuple(others), node))
        self.asked.update(guard.attribute for guard in guards)

    def admitted(self, one: Property) -> dict[Guards, set[int]]:
        """The nodes whose first guard holds for a property, by their other guards."""
        name, value = one
        admitting: Iterable[Guard] = [guard for guard in self._by_guard if guard.attribute == name]
        if isinstance(value, str):
            admitting = (Guard(name), Guard(name, value), Guard(name, number(value)))
        found: dict[Guards, set[int]] = {}
        for guard in admitting:
            for others, node in self._by_guard.get(guard, ()) if guard.admits(value) else ():
                found.setdefault(others, set()).add(node)
        return found


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
        "is_shared",
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
        self.is_shared = False
        "Whether several sequences of names lead here."
        self._changes = -1
        "When the following were found in the tree."
        self._results: tuple[Results, Results] | None = None
        self._sources: Nodes | None = None
        self._wild: dict[Label, Nodes] = {}

    @property
    def is_of_use(self) -> bool:
        """Whether anything was reached here or may follow."""
        return self.leads_on or len(self.nodes) > 0 or self.guards is not None

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
        if label in (ANY, _ANY_ATTRIBUTE):
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

    def guard(self, guards: Guards, node: int) -> None:
        if self.guards is None:
            self.guards = GuardIndex()
        self.guards.add(guards, node)


class PathJoint:
    """States that are followed together at one element: the one its names lead to, and those behind guards."""

    __slots__ = (
        "_asks_position",
        "_asks_text",
        "asks_more",
        "guards",
        "has_results",
        "is_guarded",
        "leads_on",
        "next",
        "states",
    )

    def __init__(self, states: frozenset[PathState], tree: PrefixTree) -> None:
        self.states = states
        self.has_results = any(len(found) > 0 for state in states for found in state.results(tree))
        "Whether any path ends here. (A path that was removed since may have ended here.)"
        self.next: dict[Label, PathJoint] = {}
        "The joints one move further down, without the states behind the guards there."
        self.leads_on = any(state.leads_on for state in states)
        self.guards = [state.guards for state in states if state.guards is not None]
        self.is_guarded = len(self.guards) > 0
        asked = set().union(*[guards.asked for guards in self.guards])
        self._asks_text, self._asks_position = OWN_TEXT in asked, not asked.isdisjoint((POSITION, POSITION_OF_ALL))
        self.asks_more = self._asks_text or self._asks_position
        "Whether guards ask for more than attributes."

    def more_asked(self, element: Element, place: int, positions: SiblingPositions) -> Properties:
        """What guards ask, beside attributes, of an element with this place among its parent's children."""
        found: Properties = ()
        if self._asks_text:
            found = tuple([(OWN_TEXT, part) for part in element.children if isinstance(part, str) and part])
        return found + positions.at(place) if self._asks_position else found


class SiblingPositions:
    """The positions of child elements; those of one parent are counted together, when one is first asked for."""

    __slots__ = ("_counted", "parent")

    def __init__(self) -> None:
        self.parent = _NO_ELEMENT
        self._counted: tuple[Element, list[Properties]] = (_NO_ELEMENT, [])

    def at(self, place: int) -> Properties:
        """The positions of the parent's child at this place: among those of its name, and among all."""
        counted, found = self._counted
        if counted is not self.parent:
            counts: dict[str, int] = {}
            found, count = [], 0
            for child in self.parent.children:
                if isinstance(child, str):
                    found.append(())
                    continue
                count += 1
                of_name = counts[child.name] = counts.get(child.name, 0) + 1
                found.append(((POSITION, of_name), (POSITION_OF_ALL, count)))
            self._counted = (self.parent, found)
        return found[place]
