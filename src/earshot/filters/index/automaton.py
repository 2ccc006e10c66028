"""Many location paths, one walk over the document: which paths select something in it?

Paths are kept in a tree of shared prefixes (`prefix_tree.py`), YFilter's automaton (Diao, Altinel, Franklin, Zhang,
Fischer: Path sharing and predicate evaluation for high-performance XML filtering, TODS 2003). The nodes that a document
reaches in it depend only on the names from the root down to an element, so they are remembered as states, one for
each sequence of names seen: a document that resembles earlier ones costs one look-up for each element, however many
paths there are.

A guard, a test on attributes, texts or positions, depends on more than names. Each state has an index from properties
to the nodes whose guards they meet, so all paths share one look-up for each property of an element. The nodes whose
guards hold form states of their own, which are followed beside the state of the names: all states of one element are a
joint. Which joint follows is remembered by name, and for elements with guards by all that the guards may ask.

The states are a cache. They are dropped when they hold too much. A path that is added or removed is followed over the
known states, so that it costs only the states it reaches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from earshot.events import Element
from earshot.filters.index.prefix_tree import (
    NO_NODES,
    TEXT,
    Guards,
    Label,
    Nodes,
    PathMoves,
    PrefixTree,
    Properties,
    Property,
    attribute,
    sorted_nodes,
)
from earshot.filters.index.states import UNKNOWN, GuardIndex, PathJoint, PathState, SiblingPositions, wildcard_of

_DOCUMENT = sorted_nodes([0])
"The tree's first node."

Asked = tuple[Any, ...]
"A joint, and all that its guards may ask of an element: names and values of attributes, texts and positions."

MOST_HELD = 6_000_000
"States are dropped when they hold more entries than this (8 bytes each)."
_STATE_COST = 80
"The cost of a state itself, counted in entries."
MOST_RESULTS = 256
"Results are remembered for this many different sets of states."
MOST_UNAPPLIED = 64
"After more changes than this between two documents, the states are built anew."


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
        self._start: PathState | None = None
        "The state before the root; all states follow from it or from those behind guards."
        self._shared: dict[tuple[Any, ...], PathState] = {}
        "The states behind guards, by their nodes."
        self._admitted: dict[tuple[GuardIndex, Property], list[tuple[Guards, PathState]]] = {}
        "The states behind the first guards that hold for a property, with their other guards."
        self._joints: dict[frozenset[PathState], PathJoint] = {}
        self._passed: dict[Asked, PathJoint] = {}
        "By what guards ask of an element: the joint with the states behind those that hold."
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

    def _walk(self, root: Element) -> frozenset[PathState]:
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

    def _walk_with_guards(self, root: Element) -> frozenset[PathJoint]:
        start = self._joint(frozenset((self._current_start(),)))
        found: set[PathJoint] = set()
        stack = [(Element("", {}, (root,)), start)]
        extras, passed, positions = self._extras > 0, self._passed, SiblingPositions()
        while stack:
            element, joint = stack.pop()
            following, positions.parent = joint.next, element
            for place, child in enumerate(element.children):
                if isinstance(child, str):
                    continue
                below = following.get(child.name) or self._joint_below(joint, child.name)
                if below.is_guarded and ((attributes := child.attributes) or below.asks_more):
                    asked: Asked = (below, *attributes, *attributes.values())
                    if below.asks_more:
                        asked += below.more_asked(child, place, positions)
                    below = passed.get(asked) or self._joint_behind(asked, attributes)
                if below.has_results:
                    found.add(below)
                if (extras or child.children) and below.leads_on:
                    stack.append((child, below))
            if extras:
                found.update(self._joint_below(joint, label) for label in _extra_labels(element))
        return frozenset(found)

    def _joint(self, states: frozenset[PathState]) -> PathJoint:
        known = self._joints.get(states)
        if known is None:
            known = self._joints[states] = PathJoint(states, self._tree)
            self._held += _STATE_COST
        return known

    def _joint_below(self, joint: PathJoint, label: Label) -> PathJoint:
        """The states one move further down, without those behind guards."""
        label = self._known_label(label)
        known = joint.next.get(label)
        if known is None:
            below = [self._follow(state, label) for state in joint.states if state.leads_on]
            known = joint.next[label] = self._joint(frozenset([state for state in below if state.is_of_use]))
        return known

    def _joint_behind(self, asked: Asked, attributes: Mapping[str, str]) -> PathJoint:
        """The joint, with the states behind the guards that hold for what they ask of an element."""
        joint: PathJoint = asked[0]
        properties = (*attributes.items(), *asked[1 + 2 * len(attributes) :])
        admitted = [state for guards in joint.guards for state in self._admitted_by(guards, properties)]
        found = self._passed[asked] = self._joint(joint.states.union(admitted)) if admitted else joint
        self._held += len(str(asked[1:])) // 8
        return found

    def _admitted_by(self, guards: GuardIndex, properties: Properties) -> Iterator[PathState]:
        """The states behind those guards that hold for these properties of an element."""
        for one in properties:
            if one[0] not in guards.asked:
                continue
            admitted = self._admitted.get((guards, one))
            if admitted is None:
                admitted = self._admitted[guards, one] = [
                    (others, self._shared_state(sorted_nodes(nodes), NO_NODES, []))
                    for others, nodes in guards.admitted(one).items()
                ]
                self._held += _STATE_COST
            for others, state in admitted:
                if not others or all(guard.holds(properties) for guard in others):
                    yield state

    def _shared_state(self, nodes: Nodes, waiting_above: Nodes, guarded: list[tuple[Guards, int]]) -> PathState:
        """A state behind guards, one for all sequences of names that lead to the same nodes."""
        key = (nodes.tobytes(), waiting_above.tobytes(), tuple(guarded))
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = self._new_state(nodes, waiting_above, guarded)
            known.is_shared = True
            known.leads_on = len(known.sources(self._tree)) > 0
        return known

    def _known_label(self, label: Label) -> Label:
        if label in self._labels:
            return label
        return UNKNOWN if isinstance(label, str) or label == UNKNOWN else (label[0], "")

    def _follow(self, state: PathState, label: Label) -> PathState:
        """The state one move further down, created if it is new."""
        label = self._known_label(label)
        known = state.next.get(label)
        if known is not None:
            return known
        tree, wild = self._tree, wildcard_of(label)
        sources = state.sources(tree)
        tables = [(name, table) for name in (label, wild) if name is not None and (table := tree.table(name))]
        targets = [state.wild_targets(tree, name) if name == wild else table.targets(sources) for name, table in tables]
        nodes = np.concatenate([NO_NODES, *targets])
        nodes.sort()
        guarded = [behind for _, table in tables for behind in table.behind_guards(sources)]
        new_state = self._shared_state if state.is_shared else self._new_state
        made = state.next[label] = new_state(nodes, state.waiting(tree), guarded)
        return made

    def _new_state(self, nodes: Nodes, waiting_above: Nodes, guarded: list[tuple[Guards, int]]) -> PathState:
        self._held += _STATE_COST + 4 * len(nodes) + 2 * len(waiting_above) + len(guarded)
        made = PathState(nodes, waiting_above)
        for guards, node in guarded:
            made.guard(guards, node)
        return made

    def _current_start(self) -> PathState:
        """The state before the root, with all states after it brought up to date."""
        if self._held > MOST_HELD:
            self._forget_states()
        if self._start is None:
            self._start = PathState(_DOCUMENT, NO_NODES)
        for addition in self._unapplied:
            self._apply(addition, self._start)
        self._unapplied.clear()
        return self._start

    def _forget_states(self) -> None:
        self._start = None
        self._unapplied.clear()
        self._shared.clear()
        self._admitted.clear()
        self._joints.clear()
        self._passed.clear()
        self._results.clear()
        self._held = 0

    def _note(self, addition: _Addition) -> None:
        self._results.clear()
        self._joints.clear()
        self._passed.clear()
        if any(move.guards for move in addition.moves):
            self._shared.clear()
            self._admitted.clear()
        if self._start is None:
            return
        if len(self._unapplied) < MOST_UNAPPLIED:
            self._unapplied.append(addition)
        else:
            self._forget_states()

    def _apply(self, addition: _Addition, start: PathState) -> None:
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


def _with_all_below(states: list[PathState]) -> list[PathState]:
    found = dict.fromkeys(states)
    stack = states[:]
    while stack:
        for state in stack.pop().next.values():
            if state not in found:
                found[state] = None
                stack.append(state)
    return list(found)
