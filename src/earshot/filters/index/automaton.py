"""Many location paths, one walk over the document: which paths select something in it?

Paths are kept in a tree of shared prefixes, YFilter's automaton (Diao, Altinel, Franklin, Zhang, Fischer:
Path sharing and predicate evaluation for high-performance XML filtering, TODS 2003). The nodes that a document
reaches in it depend only on the names from the root down to an element, so they are remembered as states, one for
each sequence of names seen: a document that resembles earlier ones costs one look-up for each element, however many
paths there are. A guard, a test on attributes, depends on more than names: the nodes whose guards hold at an
element form a separate state, followed in parallel.

The states are a cache. They are dropped when they hold too much. A path that is added or removed is followed over the
known states, so that it costs only the states it reaches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Any, NamedTuple

from earshot.events import Element
from earshot.filters.language.syntax import Comparison
from earshot.filters.language.values import COMPARE, number

Label = str | tuple[str, str]
"An element's name, or `attribute(name)`, or TEXT."
ANY = "*"
TEXT: Label = ("text", "")
_UNKNOWN: Label = ("element", "")
"All names that no path mentions count as one."

MOST_HELD = 2_000_000
"States are dropped when they hold more entries than this (8 to 50 bytes each)."
_STATE_COST = 40
"The cost of a state itself, counted in entries."
MOST_RESULTS = 256
"Results are remembered for this many different sets of states."
MOST_PROPERTIES = 512
"What guards hold is remembered, at each place, for this many different sets of attributes, texts and positions."
MOST_UNAPPLIED = 64
"After more changes than this between two documents, the states are built anew."


def attribute(name: str) -> Label:
    """The label of an attribute; "*" for any."""
    return ("attribute", name)


_ANY_ATTRIBUTE = attribute(ANY)


def _wild(label: Label) -> Label | None:
    """The wildcard that includes this label."""
    if isinstance(label, str) or label == _UNKNOWN:
        return ANY
    return None if label == TEXT else _ANY_ATTRIBUTE


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


class _Edges:
    """The moves that lead on from a node."""

    __slots__ = ("guarded", "plain")

    def __init__(self) -> None:
        self.plain: dict[Label, _PrefixNode] = {}
        self.guarded: dict[Label, dict[Guards, _PrefixNode]] = {}

    def among(self, move: PathMove) -> dict[Any, _PrefixNode]:
        """The dictionary that holds such a move."""
        return self.guarded.setdefault(move.label, {}) if move.guards else self.plain

    def drop(self, move: PathMove) -> None:
        among = self.among(move)
        del among[move.guards or move.label]
        if move.guards and not among:
            del self.guarded[move.label]


class _PrefixNode:
    """The end of a prefix that paths share."""

    __slots__ = ("answers", "below", "child", "leads")

    def __init__(self) -> None:
        self.child: _Edges | None = None
        self.below: _Edges | None = None
        self.answers: set[Hashable] | None = None
        self.leads: set[Hashable] | None = None

    @property
    def is_bare(self) -> bool:
        edges = [some for some in (self.child, self.below) if some is not None and (some.plain or some.guarded)]
        return not (edges or self.answers or self.leads)


class _GuardIndex:
    """Nodes behind guards, found by the properties an element has."""

    __slots__ = ("_by_attribute", "names")

    def __init__(self) -> None:
        self._by_attribute: dict[str, dict[Guard, list[tuple[Guards, _PrefixNode]]]] = {}
        self.names: set[str] = set()
        "Of the properties that guards ask for."

    def add(self, guards: Guards, node: _PrefixNode) -> None:
        """Put a node behind guards; it is found by the first and checked by the others."""
        first, *others = guards
        self._by_attribute.setdefault(first.attribute, {}).setdefault(first, []).append((tuple(others), node))
        self.names.update(guard.attribute for guard in guards)

    def admitted(self, one: Property) -> list[tuple[Guards, _PrefixNode]]:
        """The nodes whose first guard holds for a property, with their other guards."""
        name, value = one
        by_guard = self._by_attribute.get(name, {})
        admitting: Iterable[Guard] = by_guard
        if isinstance(value, str):
            admitting = (Guard(name), Guard(name, value), Guard(name, number(value)))
        return [each for guard in admitting if guard.admits(value) for each in by_guard.get(guard, ())]


class _State:
    """The nodes that a document has reached at the end of one sequence of names."""

    __slots__ = ("answers", "guards", "leads", "next", "reached", "waiting")

    def __init__(self, reached: list[_PrefixNode], waiting: list[_PrefixNode]) -> None:
        self.next: dict[Label, _State] = {}
        self.reached = reached
        "Nodes with moves to a child, reached at this element."
        self.waiting = waiting
        "Nodes with moves to anything below, reached here or further up."
        self.guards: _GuardIndex | None = None
        "Nodes that are also reached here if their guards hold."
        self.answers: dict[Any, None] = {}
        self.leads: dict[Any, None] = {}

    def children(self, label: Label) -> Iterable[_State]:
        """The known states one move down by this label of a path."""
        if label in (ANY, _ANY_ATTRIBUTE):
            return [state for name, state in self.next.items() if _wild(name) == label]
        found = self.next.get(label)
        return () if found is None else (found,)

    def guard(self, guards: Guards, node: _PrefixNode) -> None:
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
        self.leading_on = [state for state in states if state.reached or state.waiting]
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

    def passed(self, properties: Properties) -> frozenset[_PrefixNode]:
        """All nodes whose guards hold for these properties."""
        admitted = [each for one in properties for guards in self.guards for each in guards.admitted(one)]
        return frozenset(node for others, node in admitted if all(guard.holds(properties) for guard in others))


class _Change(NamedTuple):
    """A path that was added or removed since the states were last used."""

    added: bool
    moves: PathMoves
    result: Hashable
    is_answer: bool
    fresh: tuple[_PrefixNode | None, ...] = ()
    "For each move the node it starts at, if that node had no such moves before."
    guarded: _PrefixNode | None = None
    "The node behind the first guard, if it is new."


class PathAutomaton:
    """Paths and their results: an answer, or a lead that the caller follows."""

    def __init__(self) -> None:
        self.count = 0
        "How many paths there are."
        self._root = _PrefixNode()
        self._labels: Counter[Label] = Counter()
        self._extras = 0
        "How many paths end in an attribute or in text()."
        self._guarded = 0
        "How many paths have guards."
        self._start: _State | None = None
        "The state before the root; all states follow from it or from those behind guards."
        self._behind: dict[frozenset[_PrefixNode], _State] = {}
        self._joints: dict[frozenset[_State], _Joint] = {}
        self._results: dict[frozenset[Any], tuple[frozenset[Any], frozenset[Any]]] = {}
        "By the states that a document reached: its answers and leads."
        self._held = 0
        self._unapplied: list[_Change] = []

    def add(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        """Add a result to a path; several results may share a path."""
        node = self._root
        fresh: list[_PrefixNode | None] = []
        guarded: _PrefixNode | None = None
        is_guarded = False
        for move in moves:
            edges = node.below if move.below else node.child
            fresh.append(node if edges is None else None)
            if edges is None:
                edges = _Edges()
                if move.below:
                    node.below = edges
                else:
                    node.child = edges
            among = edges.among(move)
            following = among.get(move.guards or move.label)
            if following is None:
                following = among[move.guards or move.label] = _PrefixNode()
                if move.guards and not is_guarded:
                    guarded = following
            is_guarded = is_guarded or bool(move.guards)
            node = following
        if is_answer:
            node.answers = node.answers or set()
            node.answers.add(result)
        else:
            node.leads = node.leads or set()
            node.leads.add(result)
        self._count(moves, 1)
        self._note(_Change(True, moves, result, is_answer, tuple(fresh), guarded))

    def remove(self, moves: PathMoves, result: Hashable, is_answer: bool) -> None:
        """Remove a result that was added to a path."""
        edges: list[_Edges] = []
        nodes = [self._root]
        for move in moves:
            some = nodes[-1].below if move.below else nodes[-1].child
            assert some is not None
            edges.append(some)
            nodes.append(some.among(move)[move.guards or move.label])
        results = nodes[-1].answers if is_answer else nodes[-1].leads
        assert results is not None
        results.remove(result)
        for index in reversed(range(len(moves))):
            if not nodes[index + 1].is_bare:
                break
            edges[index].drop(moves[index])
        self._count(moves, -1)
        self._note(_Change(False, moves, result, is_answer))

    def _count(self, moves: PathMoves, one: int) -> None:
        self.count += one
        self._extras += one * isinstance(moves[-1].label, tuple)
        self._guarded += one * any(move.guards for move in moves)
        for move in moves:
            self._labels[move.label] += one
            if not self._labels[move.label]:
                del self._labels[move.label]

    def reached(self, root: Element) -> tuple[frozenset[Any], frozenset[Any]]:
        """The answers and the leads of all paths that select something."""
        reached: frozenset[Any] = self._walk_with_guards(root) if self._guarded else self._walk(root)
        known = self._results.get(reached)
        if known is None:
            states = frozenset().union(*[joint.states for joint in reached]) if self._guarded else reached
            answers: set[Any] = set().union(*[state.answers for state in states])
            leads: set[Any] = set().union(*[state.leads for state in states])
            if len(self._results) >= MOST_RESULTS:
                self._results.clear()
            # A copy has no spare room, unlike the set that has grown, and is faster to copy again.
            known = self._results[reached] = (frozenset(answers), frozenset(leads))
            self._held += len(answers) + len(leads)
        return known

    def _walk(self, root: Element) -> frozenset[_State]:
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

    def _behind_guards(self, nodes: frozenset[_PrefixNode]) -> _State:
        """The state of an element at which the guards of these nodes hold."""
        known = self._behind.get(nodes)
        if known is None:
            known = self._behind[nodes] = self._new_state(nodes, [])
        return known

    def _follow(self, state: _State, label: Label) -> _State:
        """The state one move further down, created if it is new."""
        if label not in self._labels:
            label = _UNKNOWN if isinstance(label, str) else (label[0], "")
        known = state.next.get(label)
        if known is not None:
            return known
        edges = [node.child for node in state.reached] + [node.below for node in state.waiting]
        names = [name for name in (label, _wild(label)) if name is not None and name in self._labels]
        plain = [some.plain for some in edges if some is not None]
        nodes = dict.fromkeys([node for name in names for some in plain if (node := some.get(name)) is not None])
        guarded = self._behind_moves(edges, names) if self._guarded else []
        made = state.next[label] = self._new_state(nodes, state.waiting)
        for guards, node in guarded:
            made.guard(guards, node)
        self._held += len(guarded)
        return made

    def _behind_moves(self, edges: Iterable[_Edges | None], names: Iterable[Label]) -> list[tuple[Guards, _PrefixNode]]:
        found = [some.guarded[name] for name in names for some in edges if some is not None and name in some.guarded]
        return [each for behind in found for each in behind.items()]

    def _new_state(self, nodes: Iterable[_PrefixNode], waiting_above: list[_PrefixNode]) -> _State:
        waiting = dict.fromkeys(waiting_above)
        waiting.update(dict.fromkeys([node for node in nodes if node.below is not None]))
        made = _State([node for node in nodes if node.child is not None], list(waiting))
        made.answers = dict.fromkeys(chain.from_iterable([node.answers for node in nodes if node.answers]))
        made.leads = dict.fromkeys(chain.from_iterable([node.leads for node in nodes if node.leads]))
        self._held += _STATE_COST + len(made.reached) + len(waiting) + len(made.answers) + len(made.leads)
        return made

    def _current_start(self) -> _State:
        """The state before the root, with all states after it brought up to date."""
        if self._held > MOST_HELD:
            self._start = None
            self._behind.clear()
            self._joints.clear()
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
        self._joints.clear()
        if any(move.guards for move in change.moves):
            self._behind.clear()
        if self._start is None:
            return
        if len(self._unapplied) < MOST_UNAPPLIED:
            self._unapplied.append(change)
        else:
            self._start = None
            self._unapplied.clear()

    def _apply(self, change: _Change, start: _State) -> None:
        """Follow the path over the known states up to its first guard, and correct them."""
        states = [start]
        for index, (below, label, guards) in enumerate(change.moves):
            sources = _with_all_below(states) if below else states
            if change.added and (node := change.fresh[index]) is not None:
                self._held += len(sources)
                for state in sources:
                    (state.waiting if below else state.reached).append(node)
            states = list({state: None for source in sources for state in source.children(label)})
            if guards:
                if change.guarded is not None:
                    self._held += len(states)
                    for state in states:
                        state.guard(guards, change.guarded)
                return
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
