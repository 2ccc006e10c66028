"""Many location paths, one walk over the document: which paths select something in it?

Paths without predicates are kept in a tree of shared prefixes, YFilter's automaton (Diao, Altinel,
Franklin, Zhang, Fischer: Path sharing and predicate evaluation for high-performance XML filtering,
TODS 2003). What a document reaches in it depends only on the names from the root down to an element,
so the sets of nodes reached are remembered as states, one for each such sequence of names seen: a
document that looks like earlier ones costs one look-up an element, however many paths there are.

The states are a cache. They are dropped when they hold too much, and kept up to date by following
each added path over them, so that a new path costs its own reach and not the whole cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from earshot.events import Element

Label = str | tuple[str, str]
"An element's name, or `attribute(name)`, or TEXT."
ANY = "*"
TEXT: Label = ("text", "")
_UNKNOWN: Label = ("element", "")
"All names that no path mentions: to the automaton they are one."

MOST_HELD = 2_000_000
"Entries in all states together (8 to 50 bytes each) before they are dropped."
_STATE_COST = 40
"What a state costs beside its entries, counted in entries."
MOST_RESULTS = 256
"Documents that look different whose results are remembered."
MOST_UNAPPLIED = 64
"More changes than this between two documents: states are built anew rather than kept up to date."


def attribute(name: str) -> Label:
    """The label of an attribute; "*" for any."""
    return ("attribute", name)


_ANY_ATTRIBUTE = attribute(ANY)


def _wild(label: Label) -> Label | None:
    """The wildcard that includes this label."""
    if isinstance(label, str) or label == _UNKNOWN:
        return ANY
    return None if label == TEXT else _ANY_ATTRIBUTE


class Move(NamedTuple):
    """One step of a path: to a child, or to anything below."""

    below: bool
    label: Label


Moves = tuple[Move, ...]


class _Node:
    """The end of a prefix that paths share."""

    __slots__ = ("answers", "below", "child", "leads")

    def __init__(self) -> None:
        self.child: dict[Label, _Node] | None = None
        self.below: dict[Label, _Node] | None = None
        self.answers: set[Hashable] | None = None
        self.leads: set[Hashable] | None = None

    def edges(self, below: bool) -> dict[Label, _Node] | None:
        return self.below if below else self.child

    @property
    def is_bare(self) -> bool:
        return not (self.child or self.below or self.answers or self.leads)


class _State:
    """What a document has reached at the end of one sequence of names."""

    __slots__ = ("answers", "leads", "next", "reached", "waiting")

    def __init__(self, reached: list[_Node], waiting: list[_Node]) -> None:
        self.next: dict[Label, _State] = {}
        self.reached = reached
        "Nodes with moves to a child, reached at this very element."
        self.waiting = waiting
        "Nodes with moves to anything below, reached here or further up."
        self.answers: dict[Any, None] = {}
        self.leads: dict[Any, None] = {}

    def children(self, label: Label) -> Iterable[_State]:
        """The known states one move down by this label of a path."""
        if label in (ANY, _ANY_ATTRIBUTE):
            return [state for name, state in self.next.items() if _wild(name) == label]
        found = self.next.get(label)
        return () if found is None else (found,)


class _Change(NamedTuple):
    """A path that was added or removed since the states were last used."""

    added: bool
    moves: Moves
    result: Hashable
    is_answer: bool
    fresh: tuple[_Node | None, ...] = ()
    "For each move the node it starts at, where that node had no such moves before."


class PathAutomaton:
    """Paths and what they result in: an answer, or a lead that is still to be followed."""

    def __init__(self) -> None:
        self._root = _Node()
        self.count = 0
        "How many paths there are."
        self._labels: Counter[Label] = Counter()
        self._extras = 0
        "How many paths end in an attribute or in text()."
        self._start: _State | None = None
        self._results: dict[frozenset[_State], tuple[frozenset[Any], frozenset[Any]]] = {}
        "What documents had that looked alike."
        self._held = 0
        self._unapplied: list[_Change] = []

    def add(self, moves: Moves, result: Hashable, is_answer: bool) -> None:
        """Let a path have a result; several may share a path."""
        node = self._root
        fresh: list[_Node | None] = []
        for below, label in moves:
            edges = node.edges(below)
            fresh.append(node if edges is None else None)
            if edges is None:
                edges = {}
                if below:
                    node.below = edges
                else:
                    node.child = edges
            following = edges.get(label)
            if following is None:
                following = edges[label] = _Node()
            node = following
        if is_answer:
            node.answers = node.answers or set()
            node.answers.add(result)
        else:
            node.leads = node.leads or set()
            node.leads.add(result)
        self.count += 1
        self._labels.update(move.label for move in moves)
        self._extras += isinstance(moves[-1].label, tuple)
        self._note(_Change(True, moves, result, is_answer, tuple(fresh)))

    def remove(self, moves: Moves, result: Hashable, is_answer: bool) -> None:
        """Take back what was added."""
        nodes = [self._root]
        for below, label in moves:
            nodes.append((nodes[-1].edges(below) or {})[label])
        results = nodes[-1].answers if is_answer else nodes[-1].leads
        assert results is not None
        results.remove(result)
        for index in reversed(range(len(moves))):
            if not nodes[index + 1].is_bare:
                break
            below, label = moves[index]
            del (nodes[index].edges(below) or {})[label]
        self.count -= 1
        for _, label in moves:
            self._labels[label] -= 1
            if not self._labels[label]:
                del self._labels[label]
        self._extras -= isinstance(moves[-1].label, tuple)
        self._note(_Change(False, moves, result, is_answer))

    def reached(self, root: Element) -> tuple[frozenset[Any], frozenset[Any]]:
        """The answers and the leads of all paths that select something."""
        states = self._states_of(root)
        known = self._results.get(states)
        if known is None:
            answers: set[Any] = set().union(*[state.answers for state in states])
            leads: set[Any] = set().union(*[state.leads for state in states])
            if len(self._results) >= MOST_RESULTS:
                self._results.clear()
            # A copy of a set that has grown is no larger than it must be, and quicker to copy again.
            known = self._results[states] = (frozenset(answers), frozenset(leads))
            self._held += len(answers) + len(leads)
        return known

    def _states_of(self, root: Element) -> frozenset[_State]:
        state = self._follow(self._current_start(), root.name)
        found = {state}
        stack = [(root, state)]
        extras = self._extras > 0
        while stack:
            element, state = stack.pop()
            following = state.next
            for child in element.elements:
                below = following.get(child.name)
                if below is None:
                    below = self._follow(state, child.name)
                found.add(below)
                if (extras or child.elements) and (below.reached or below.waiting):
                    stack.append((child, below))
            if extras:
                found.update(self._follow(state, label) for label in _extra_labels(element))
        return frozenset(found)

    def _follow(self, state: _State, label: Label) -> _State:
        """The state one move down, made where it is not known yet."""
        if label not in self._labels:
            label = _UNKNOWN if isinstance(label, str) else (label[0], "")
        known = state.next.get(label)
        if known is not None:
            return known
        wild = _wild(label)
        nodes: dict[_Node, None] = {}
        for edges in [node.child for node in state.reached] + [node.below for node in state.waiting]:
            assert edges is not None
            if (node := edges.get(label)) is not None:
                nodes[node] = None
            if wild is not None and (node := edges.get(wild)) is not None:
                nodes[node] = None
        waiting = dict.fromkeys(state.waiting)
        waiting.update((node, None) for node in nodes if node.below is not None)
        made = state.next[label] = _State([node for node in nodes if node.child is not None], list(waiting))
        for node in nodes:
            made.answers.update(dict.fromkeys(node.answers or ()))
            made.leads.update(dict.fromkeys(node.leads or ()))
        self._held += _STATE_COST + len(made.reached) + len(waiting) + len(made.answers) + len(made.leads)
        return made

    def _current_start(self) -> _State:
        """The state before the root, and all states after it up to date."""
        if self._held > MOST_HELD:
            self._start = None
            self._results.clear()
        if self._start is None:
            root = self._root
            self._start = _State([root] if root.child is not None else [], [root] if root.below is not None else [])
            self._held = 0
        else:
            for change in self._unapplied:
                self._apply(change, self._start)
        self._unapplied.clear()
        return self._start

    def _note(self, change: _Change) -> None:
        self._results.clear()
        if self._start is None:
            return
        if len(self._unapplied) < MOST_UNAPPLIED:
            self._unapplied.append(change)
        else:
            self._start = None
            self._unapplied.clear()

    def _apply(self, change: _Change, start: _State) -> None:
        """Follow the path over the states that are known, and put them right."""
        states = [start]
        for index, (below, label) in enumerate(change.moves):
            sources = _with_all_below(states) if below else states
            if change.added and (node := change.fresh[index]) is not None:
                self._held += len(sources)
                for state in sources:
                    (state.waiting if below else state.reached).append(node)
            states = list({state: None for source in sources for state in source.children(label)})
        for state in states:
            results = state.answers if change.is_answer else state.leads
            if change.added:
                results[change.result] = None
                self._held += 1
            else:
                results.pop(change.result, None)


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
