"""Many location paths, one walk over the document: which paths select something in it?

Paths are kept in a tree of shared prefixes (`prefix_tree.py`), YFilter's automaton (Diao, Altinel, Franklin, Zhang,
Fischer: Path sharing and predicate evaluation for high-performance XML filtering, TODS 2003). The nodes that a document
reaches in it depend only on the names from the root down to an element, so they are remembered as states, one for
each sequence of names seen: a document that resembles earlier ones costs one look-up for each element, however many
paths there are.

A guard, a test on attributes, texts or positions, depends on more than names. What stands behind a path's first guard
is no part of the states: each state has an index from properties to the nodes whose guards they meet, and these nodes
are followed beside it (`guarded_paths.py`). A state and such nodes, all that is reached at one element, are a joint.
Which joint follows is remembered by name, and for elements with guards by all that the guards may ask.

The states are a cache. They are dropped when they hold too much. A path that is added or removed is followed over the
known states, so that it costs only the states it reaches.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from earshot.events import Element
from earshot.filters.index.guarded_paths import GuardedNode, SiblingPositions
from earshot.filters.index.path_moves import (
    TEXT,
    UNKNOWN,
    Guards,
    Label,
    PathMove,
    PathMoves,
    attribute,
    wildcard_of,
)
from earshot.filters.index.prefix_tree import NO_NODES, Nodes, PrefixTree, sorted_nodes
from earshot.filters.index.states import Asked, MoreAsked, PathJoint, PathState, properties_of

_DOCUMENT = sorted_nodes([0])
"The tree's first node."

MOST_HELD = 6_000_000
"States are dropped when they hold more entries than this (8 bytes each)."
_STATE_COST = 80
"The cost of a state itself, counted in entries."
MOST_RESULTS = 256
"Results are remembered for this many different sets of states."
MOST_UNAPPLIED = 64
"After more changes than this between two documents, the states are rebuilt."


class _Addition(NamedTuple):
    """A path that was added since the states were last used, up to its first guard."""

    moves: PathMoves
    "Those before the guard."
    nodes: tuple[int, ...]
    "The node that each move leads to."
    known: int
    "How many of the nodes are not new."
    waiting: tuple[int | None, ...]
    "For each move, that with the guard too, the node it starts at, if that is the node's first move to anything below."
    guarded: tuple[PathMove, GuardedNode] | None
    "The move with the guard and the node it leads to, if that is new."


class PathAutomaton:
    """Paths and their results: an answer, or a lead that the caller follows."""

    def __init__(self) -> None:
        self.count = 0
        "How many paths there are."
        self._tree = PrefixTree()
        self._labels: dict[Label, int] = {}
        "How many moves lead to each."
        self._extras = 0
        "How many paths end in an attribute or in text()."
        self._guarded = 0
        "How many paths have guards."
        self._start: PathState | None = None
        "The state before the root; all states follow from it."
        self._joint: PathJoint | None = None
        "The joint before the root; all joints follow from it."
        self._results: dict[frozenset[Any], tuple[frozenset[Any], Collection[Any]] | None] = {}
        "By the states or joints that a document reached: its answers and leads, remembered when it is seen again."
        self._held = 0
        self._unapplied: list[_Addition] = []

    def add(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        """Add a result to a path; several results may share a path."""
        tree, node = self._tree, 0
        plain, behind = _split(moves)
        nodes: list[int] = []
        waiting: list[int | None] = []
        known = 0
        for move in plain:
            waiting.append(node if move.below and not tree.is_waiting(node) else None)
            following = tree.get(node, move)
            known += following is not None
            node = tree.add(node, move) if following is None else following
            nodes.append(node)
        guarded = None
        if behind:
            move, *others = behind
            waiting.append(node if move.below and not tree.is_waiting(node) else None)
            end = tree.behind(node, move)
            if end is None:
                end = tree.add_behind(node, move)
                guarded = (move, end)
            for move in others:
                end = end.get(move) or end.add(move)
            end.add_result(result, is_answer)
        else:
            (tree.answers if is_answer else tree.leads).add(node, result)
        self._count(moves, 1, has_guards=len(behind) > 0)
        self._note(_Addition(plain, tuple(nodes), known, tuple(waiting), guarded))

    def remove(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        """Remove a result that was added to a path. The states may keep its nodes: there is nothing left at them."""
        tree, nodes = self._tree, [0]
        plain, behind = _split(moves)
        for move in plain:
            node = tree.get(nodes[-1], move)
            assert node is not None
            nodes.append(node)
        if behind:
            self._remove_behind(nodes[-1], behind, result, is_answer)
        else:
            (tree.answers if is_answer else tree.leads).remove(nodes[-1], result)
        for index in range(len(plain), 0, -1):
            if not tree.is_bare(nodes[index]):
                break
            tree.drop(nodes[index - 1], plain[index - 1])
        self._count(moves, -1, has_guards=len(behind) > 0)
        self._results.clear()
        if tree.has_many_removed:
            self._forget_states()
            tree.reuse_numbers()

    def _remove_behind(self, node: int, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        """Remove a result from a path that has a guard at its first move from this node."""
        end = self._tree.behind(node, moves[0])
        assert end is not None
        ends = [end]
        for move in moves[1:]:
            end = ends[-1].get(move)
            assert end is not None
            ends.append(end)
        ends[-1].remove_result(result, is_answer)
        while len(ends) > 1 and ends[-1].is_bare:
            ends.pop()
            ends[-1].drop(moves[len(ends)])
        if ends[0].is_bare:
            self._tree.drop_behind(node, moves[0])

    def _count(self, moves: PathMoves, one: int, has_guards: bool) -> None:
        self._tree.changes += 1
        self.count += one
        self._extras += one * isinstance(moves[-1].label, tuple)
        self._guarded += one * has_guards
        labels = self._labels
        for _, label, _ in moves:
            count = labels.get(label, 0) + one
            if count:
                labels[label] = count
            else:
                del labels[label]

    def reached(self, root: Element) -> tuple[set[Any], Collection[Any]]:
        """The answers, as a set of the caller's own, and the leads of all paths that select something."""
        reached: frozenset[Any] = self._walk_with_guards(root) if self._guarded else self._walk(root)
        known = self._results.get(reached)
        if known is not None:
            return set(known[0]), known[1]
        answers, leads = self._results_of_joints(reached) if self._guarded else self._results_of(reached)
        if reached not in self._results:
            if len(self._results) >= MOST_RESULTS:
                self._results.clear()
            self._results[reached] = None
        else:
            self._results[reached] = (frozenset(answers), leads)
            self._held += 4 * len(answers)
        return answers, leads

    def _results_of(self, states: Collection[PathState]) -> tuple[set[Any], Collection[Any]]:
        results = [state.results(self._tree) for state in states]
        answers: set[Any] = set().union(*[answers.tolist() for answers, _ in results])
        return answers, set().union(*[leads.tolist() for _, leads in results]) if self._tree.leads.total else ()

    def _results_of_joints(self, joints: Collection[PathJoint]) -> tuple[set[Any], Collection[Any]]:
        answers, leads = self._results_of({joint.state for joint in joints} if self._tree.has_results else ())
        nodes = {node for joint in joints for node in joint.nodes}
        answers.update(*[node.answers for node in nodes if node.answers])
        return answers, set(leads).union(*[node.leads for node in nodes if node.leads])

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
        found: set[PathJoint] = set()
        stack = [(Element("", {}, (root,)), self._current_joint())]
        extras, positions = self._extras > 0, SiblingPositions()
        while stack:
            element, joint = stack.pop()
            following, positions.parent = joint.next, element
            for place, child in enumerate(element.elements):
                below = following.get(child.name) or self._joint_below(joint, child.name)
                if below.guards and (child.attributes or below.asks_more):
                    asked: Asked = child.attribute_words
                    if below.asks_more:
                        asked = (*asked, below.more_asked(child, place, positions))
                    below = below.passed.get(asked) or self._joint_behind(below, child.attributes, asked)
                if below.has_results:
                    found.add(below)
                if (extras or child.elements) and below.leads_on:
                    stack.append((child, below))
            if extras:
                found.update(self._joint_below(joint, label) for label in _extra_labels(element))
        return frozenset(found)

    def _joint_below(self, joint: PathJoint, label: Label) -> PathJoint:
        """The joint one move further down, without the nodes behind guards there."""
        label = self._known_label(label)
        known = joint.next.get(label)
        if known is None:
            state = self._follow(joint.state, label)
            known = joint.next[label] = joint.below(label, state, state.has_results(self._tree))
            self._held += _STATE_COST + known.held
        return known

    def _joint_behind(self, joint: PathJoint, attributes: Mapping[str, str], asked: Asked) -> PathJoint:
        """The joint, with the nodes behind the guards that hold for what they ask of an element."""
        more: MoreAsked = asked[-1] if joint.asks_more else ()
        found = joint.passed[asked] = joint.with_admitted(properties_of(attributes, more))
        self._held += _STATE_COST + found.held + sum(map(len, (*asked, *more))) // 8
        return found

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
        made = state.next[label] = self._new_state(nodes, state.waiting(tree), guarded)
        return made

    def _new_state(self, nodes: Nodes, waiting_above: Nodes, guarded: list[tuple[Guards, GuardedNode]]) -> PathState:
        self._held += _STATE_COST + 4 * len(nodes) + 2 * len(waiting_above) + len(guarded)
        made = PathState(nodes, waiting_above)
        for guards, node in guarded:
            made.guard(guards, node)
        return made

    def _current_joint(self) -> PathJoint:
        """The joint before the root."""
        start = self._current_start()
        if self._joint is None:
            self._joint = PathJoint(start, has_results=False)
        return self._joint

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
        self._start = self._joint = None
        self._unapplied.clear()
        self._results.clear()
        self._held = 0

    def _note(self, addition: _Addition) -> None:
        self._results.clear()
        self._joint = None
        if self._start is None:
            return
        if len(self._unapplied) < MOST_UNAPPLIED:
            self._unapplied.append(addition)
        else:
            self._forget_states()

    def _apply(self, addition: _Addition, start: PathState) -> None:
        """Follow the path over the known states up to its first guard, and correct them."""
        states = [start]
        for index, (move, node) in enumerate(zip(addition.moves, addition.nodes, strict=True)):
            states = self._states_after(states, move, addition.waiting[index])
            if index >= addition.known:
                self._held += len(states)
                for state in states:
                    state.reach(node)
        if addition.guarded is not None:
            move, guarded = addition.guarded
            states = self._states_after(states, move, addition.waiting[-1])
            self._held += len(states)
            for state in states:
                state.guard(move.guards, guarded)

    def _states_after(self, states: list[PathState], move: PathMove, waiting: int | None) -> list[PathState]:
        """The known states that a move leads to; a node that waits from now on is entered before."""
        sources = _with_all_below(states) if move.below else states
        if waiting is not None:
            self._held += len(sources)
            for state in sources:
                state.wait_for(waiting)
        return list({state: None for source in sources for state in source.children(move.label)})


def _split(moves: PathMoves) -> tuple[PathMoves, PathMoves]:
    """The moves before the first that has a guard, and all from there on."""
    for plain, move in enumerate(moves):
        if move.guards:
            return moves[:plain], moves[plain:]
    return moves, ()


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
