"""Many location paths, one walk over the document: which paths select something in it?

Paths are kept in a tree of shared prefixes (`prefix_tree.py`), YFilter's automaton (Diao, Altinel, Franklin, Zhang,
Fischer: Path sharing and predicate evaluation for high-performance XML filtering, TODS 2003). The nodes that a document
reaches in it depend only on the names from the root down to an element, so they are remembered as states, one for
each sequence of names seen: a document that resembles earlier ones costs one look-up for each element, however many
paths there are. A guard, a test on attributes, depends on more than names: the nodes whose guards hold at an
element form a separate state, followed in parallel.

The states are a cache. They are dropped when they hold too much. A path that is added or removed is followed over the
known states, so that it costs only the states it reaches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

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
    PathMoves,
    PrefixTree,
    Properties,
    Property,
    Results,
    attribute,
    sorted_nodes,
    union,
    with_node,
)
from earshot.filters.language.values import number

_ANY_ATTRIBUTE = attribute(ANY)
_UNKNOWN: Label = ("element", "")
"All names that no path mentions count as one."
_DOCUMENT = sorted_nodes([0])
"The tree's first node."

MOST_HELD = 6_000_000
"States are dropped when they hold more entries than this (8 bytes each)."
_STATE_COST = 80
"The cost of a state itself, counted in entries."
MOST_RESULTS = 256
"Results are remembered for this many different sets of states."
MOST_PROPERTIES = 512
"What guards hold is remembered, at each place, for this many different sets of attributes, texts and positions."
MOST_UNAPPLIED = 64
"After more changes than this between two documents, the states are built anew."


def _wild(label: Label) -> Label | None:
    """The wildcard that includes this label."""
    if isinstance(label, str) or label == _UNKNOWN:
        return ANY
    return None if label == TEXT else _ANY_ATTRIBUTE


class _GuardIndex:
    """Nodes behind guards, found by the properties an element has."""

    __slots__ = ("_by_attribute", "names")

    def __init__(self) -> None:
        self._by_attribute: dict[str, dict[Guard, list[tuple[Guards, int]]]] = {}
        self.names: set[str] = set()
        "Of the properties that guards ask for."

    def add(self, guards: Guards, node: int) -> None:
        """Put a node behind guards; it is found by the first and checked by the others."""
        first, *others = guards
        self._by_attribute.setdefault(first.attribute, {}).setdefault(first, []).append((tuple(others), node))
        self.names.update(guard.attribute for guard in guards)

    def admitted(self, one: Property) -> list[tuple[Guards, int]]:
        """The nodes whose first guard holds for a property, with their other guards."""
        name, value = one
        by_guard = self._by_attribute.get(name, {})
        admitting: Iterable[Guard] = by_guard
        if isinstance(value, str):
            admitting = (Guard(name), Guard(name, value), Guard(name, number(value)))
        return [each for guard in admitting if guard.admits(value) for each in by_guard.get(guard, ())]


class _State:
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
        self.next: dict[Label, _State] = {}
        self.nodes = nodes
        "Reached at this element."
        self._above = above
        "Nodes with moves to anything below, reached further up."
        self._waiting: Nodes | None = None
        self.leads_on = len(nodes) + len(above) > 0
        "Whether anything may follow."
        self.guards: _GuardIndex | None = None
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

    def children(self, label: Label) -> Iterable[_State]:
        """The known states one move down by this label of a path."""
        if label in (ANY, _ANY_ATTRIBUTE):
            return [state for name, state in self.next.items() if _wild(name) == label]
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
            self.guards = _GuardIndex()
        self.guards.add(guards, node)


class _Joint:
    """States that are followed together at one element: the one its names lead to, and those behind guards."""

    __slots__ = (
        "_asks_position",
        "_asks_text",
        "asks_more",
        "behind",
        "guards",
        "leading_on",
        "next",
        "states",
    )

    def __init__(self, states: frozenset[_State]) -> None:
        self.states = states
        self.leading_on = [state for state in states if state.leads_on]
        self.guards = [state.guards for state in states if state.guards is not None]
        self.next: dict[Label, _Joint] = {}
        self.behind: dict[Properties, _Joint] = {}
        "The same with the nodes whose guards hold for an element's properties."
        asked = set().union(*[guards.names for guards in self.guards])
        self._asks_text, self._asks_position = OWN_TEXT in asked, not asked.isdisjoint((POSITION, POSITION_OF_ALL))
        self.asks_more = self._asks_text or self._asks_position
        "Whether guards ask for more than attributes."

    def properties(self, element: Element, parent: Element, index: int) -> Properties:
        """What guards may ask of an element, which is its parent's child element of this index."""
        found: Properties = tuple(element.attributes.items())
        if self._asks_text:
            found += tuple([(OWN_TEXT, part) for part in element.children if isinstance(part, str) and part])
        if self._asks_position:
            before = [sibling.name for sibling in parent.elements[:index]]
            found += ((POSITION, before.count(element.name) + 1), (POSITION_OF_ALL, index + 1))
        return found

    def passed(self, properties: Properties) -> frozenset[int]:
        """All nodes whose guards hold for these properties."""
        admitted = [each for one in properties for guards in self.guards for each in guards.admitted(one)]
        return frozenset(node for others, node in admitted if all(guard.holds(properties) for guard in others))


class _Addition(NamedTuple):
    """A path that was added since the states were last used."""

    moves: PathMoves
    nodes: tuple[int, ...]
    "The node that each move leads to."
    known: int
    "How many of the nodes are not new."
    waiting: tuple[int | None, ...]
    "For each move the node it starts at, if that is the node's first move to anything below."


class PathAutomaton:
    """Paths and their results: an answer, or a lead that the caller follows."""

    def __init__(self) -> None:
        self.count = 0
        "How many paths there are."
        self._tree = PrefixTree()
        self._labels: Counter[Label] = Counter()
        self._extras = 0
        "How many paths end in an attribute or in text()."
        self._guarded = 0
        "How many paths have guards."
        self._start: _State | None = None
        "The state before the root; all states follow from it or from those behind guards."
        self._behind: dict[frozenset[int], _State] = {}
        self._joints: dict[frozenset[_State], _Joint] = {}
        self._results: dict[frozenset[Any], tuple[frozenset[Any], Collection[Any]] | None] = {}
        "By the states that a document reached: its answers and leads, remembered when it is seen again."
        self._held = 0
        self._unapplied: list[_Addition] = []

    def add(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        """Add a result to a path; several results may share a path."""
        tree, node = self._tree, 0
        nodes: list[int] = []
        waiting: list[int | None] = []
        known = 0
        for move in moves:
            waiting.append(node if move.below and not tree.is_waiting(node) else None)
            following = tree.get(node, move)
            known += following is not None
            node = tree.add(node, move) if following is None else following
            nodes.append(node)
        (tree.answers if is_answer else tree.leads).add(node, result)
        self._count(moves, 1)
        self._note(_Addition(moves, tuple(nodes), known, tuple(waiting)))

    def remove(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        """Remove a result that was added to a path. The states may keep its nodes: there is nothing left at them."""
        tree, nodes = self._tree, [0]
        for move in moves:
            node = tree.get(nodes[-1], move)
            assert node is not None
            nodes.append(node)
        (tree.answers if is_answer else tree.leads).remove(nodes[-1], result)
        for index in reversed(range(len(moves))):
            if not tree.is_bare(nodes[index + 1]):
                break
            tree.drop(nodes[index], moves[index])
        self._count(moves, -1)
        self._results.clear()
        if tree.has_many_removed:
            self._forget_states()
            tree.reuse_numbers()

    def _count(self, moves: PathMoves, one: int) -> None:
        self._tree.changes += 1
        self.count += one
        self._extras += one * isinstance(moves[-1].label, tuple)
        self._guarded += one * any(move.guards for move in moves)
        for move in moves:
            self._labels[move.label] += one
            if not self._labels[move.label]:
                del self._labels[move.label]

    def reached(self, root: Element) -> tuple[set[Any], Collection[Any]]:
        """The answers, as a set of the caller's own, and the leads of all paths that select something."""
        reached: frozenset[Any] = self._walk_with_guards(root) if self._guarded else self._walk(root)
        known = self._results.get(reached)
        if known is not None:
            return set(known[0]), known[1]
        states = frozenset().union(*[joint.states for joint in reached]) if self._guarded else reached
        results = [state.results(self._tree) for state in states]
        answers: set[Any] = set().union(*[answers.tolist() for answers, _ in results])
        leads = set().union(*[leads.tolist() for _, leads in results]) if self._tree.leads.total else ()
        if reached not in self._results:
            if len(self._results) >= MOST_RESULTS:
                self._results.clear()
            self._results[reached] = None
        else:
            self._results[reached] = (frozenset(answers), leads)
            self._held += 4 * len(answers)
        return answers, leads

    def _walk(self, root: Element) -> frozenset[_State]:
        state = self._follow(self._current_start(), root.name)
        found = {state}
        stack = [(root, state)]
        extras = self._extras > 0
        while stack:
            element, state = stack.pop()
            following = state.next
            for child in element.children:
                if isinstance(child, str):
                    continue
                below = following.get(child.name)
                if below is None:
                    below = self._follow(state, child.name)
                found.add(below)
                if (extras or child.children) and below.leads_on:
                    stack.append((child, below))
            if extras:
                found.update(self._follow(state, label) for label in _extra_labels(element))
        return frozenset(found)

    def _walk_with_guards(self, root: Element) -> frozenset[_Joint]:
        start = self._joint(frozenset((self._current_start(),)))
        found: set[_Joint] = set()
        stack = [(Element("", {}, (root,)), start)]
        extras = self._extras > 0
        while stack:
            element, above = stack.pop()
            following = above.next
            for index, child in enumerate(element.elements):
                joint = following.get(child.name) or self._joint_below(above, child.name)
                if joint.guards and (child.attributes or joint.asks_more):
                    properties = joint.properties(child, element, index)
                    joint = joint.behind.get(properties) or self._joint_behind(joint, properties)
                found.add(joint)
                if (extras or child.elements) and joint.leading_on:
                    stack.append((child, joint))
            if extras:
                for label in _extra_labels(element):
                    found.add(self._joint(frozenset(self._follow(state, label) for state in above.leading_on)))
        return frozenset(found)

    def _joint(self, states: frozenset[_State]) -> _Joint:
        known = self._joints.get(states)
        if known is None:
            known = self._joints[states] = _Joint(states)
            self._held += _STATE_COST
        return known

    def _joint_below(self, joint: _Joint, name: str) -> _Joint:
        """The states one move further down, followed together from now on."""
        label = name if name in self._labels else _UNKNOWN
        known = joint.next.get(label)
        if known is None:
            states = frozenset(self._follow(state, name) for state in joint.leading_on)
            known = joint.next[label] = self._joint(states)
        return known

    def _joint_behind(self, joint: _Joint, properties: Properties) -> _Joint:
        """The joint, with the state of the nodes whose guards hold for these properties."""
        passed = joint.passed(properties)
        found = self._joint(joint.states | {self._behind_guards(passed)}) if passed else joint
        if len(joint.behind) >= MOST_PROPERTIES:
            joint.behind.clear()
        joint.behind[properties] = found
        self._held += 1
        return found

    def _behind_guards(self, nodes: frozenset[int]) -> _State:
        """The state of an element at which the guards of these nodes hold."""
        known = self._behind.get(nodes)
        if known is None:
            known = self._behind[nodes] = self._new_state(sorted_nodes(nodes), NO_NODES)
        return known

    def _follow(self, state: _State, label: Label) -> _State:
        """The state one move further down, created if it is new."""
        if label not in self._labels:
            label = _UNKNOWN if isinstance(label, str) else (label[0], "")
        known = state.next.get(label)
        if known is not None:
            return known
        tree, wild = self._tree, _wild(label)
        sources = state.sources(tree)
        tables = [(name, table) for name in (label, wild) if name is not None and (table := tree.table(name))]
        targets = [state.wild_targets(tree, name) if name == wild else table.targets(sources) for name, table in tables]
        nodes = np.concatenate([NO_NODES, *targets])
        nodes.sort()
        made = state.next[label] = self._new_state(nodes, state.waiting(tree))
        for _, table in tables:
            for guards, node in table.behind_guards(sources):
                made.guard(guards, node)
                self._held += 1
        return made

    def _new_state(self, nodes: Nodes, waiting_above: Nodes) -> _State:
        self._held += _STATE_COST + 4 * len(nodes) + 2 * len(waiting_above)
        return _State(nodes, waiting_above)

    def _current_start(self) -> _State:
        """The state before the root, with all states after it brought up to date."""
        if self._held > MOST_HELD:
            self._forget_states()
        if self._start is None:
            self._start = _State(_DOCUMENT, NO_NODES)
        for addition in self._unapplied:
            self._apply(addition, self._start)
        self._unapplied.clear()
        return self._start

    def _forget_states(self) -> None:
        self._start = None
        self._unapplied.clear()
        self._behind.clear()
        self._joints.clear()
        self._results.clear()
        self._held = 0

    def _note(self, addition: _Addition) -> None:
        self._results.clear()
        self._joints.clear()
        if any(move.guards for move in addition.moves):
            self._behind.clear()
        if self._start is None:
            return
        if len(self._unapplied) < MOST_UNAPPLIED:
            self._unapplied.append(addition)
        else:
            self._forget_states()

    def _apply(self, addition: _Addition, start: _State) -> None:
        """Follow the path over the known states up to its first guard, and correct them."""
        states = [start]
        for index, ((below, label, guards), node) in enumerate(zip(addition.moves, addition.nodes, strict=True)):
            sources = _with_all_below(states) if below else states
            if (waiting := addition.waiting[index]) is not None:
                self._held += len(sources)
                for state in sources:
                    state.wait_for(waiting)
            states = list({state: None for source in sources for state in source.children(label)})
            if index >= addition.known:
                self._held += len(states)
                for state in states:
                    if guards:
                        state.guard(guards, node)
                    else:
                        state.reach(node)
            if guards:
                return


def _extra_labels(element: Element) -> list[Label]:
    labels = [attribute(name) for name in element.attributes]
    if any(isinstance(child, str) and child for child in element.children):
        labels.append(TEXT)
    return labels


def _with_all_below(states: list[_State]) -> list[_State]:
    found = dict.fromkeys(states)
    stack = states[:]
    while stack:
        for state in stack.pop().next.values():
            if state not in found:
                found[state] = None
                stack.append(state)
    return list(found)
