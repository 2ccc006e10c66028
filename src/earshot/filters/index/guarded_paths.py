"""What follows of paths behind their first guard: few elements pass a guard, so these nodes are followed one by one.

    /a[@id="5"]//b/c        the nodes of /a[@id="5"], of //b behind it, and of c behind both

A node's moves are looked up by name, and the nodes behind guards by the properties that an element has, so an element
costs one look-up for each of its properties and for its name, however many paths there are.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any

from earshot.events import Element
from earshot.filters.index.path_moves import (
    OWN_TEXT,
    POSITION,
    POSITION_OF_ALL,
    Guard,
    Guards,
    Label,
    PathMove,
    Property,
)
from earshot.filters.language.syntax import Comparison
from earshot.filters.language.values import number


class GuardedNode:
    """The end of a prefix that has a guard: its results, and the moves that lead on from it."""

    __slots__ = ("answers", "below", "children", "leads")

    def __init__(self) -> None:
        self.answers: set[Any] | None = None
        self.leads: set[Any] | None = None
        "None until there is one: most nodes have no results."
        self.children: Moves = {}
        self.below: Moves = {}

    @property
    def has_results(self) -> bool:
        return bool(self.answers or self.leads)

    @property
    def is_bare(self) -> bool:
        """Whether nothing follows from the node."""
        return not (self.has_results or self.children or self.below)

    def get(self, move: PathMove) -> GuardedNode | None:
        """Where the move leads, if there is such a move."""
        known = (self.below if move.below else self.children).get(move.label)
        return None if known is None else known.get(move.guards)

    def add(self, move: PathMove) -> GuardedNode:
        """The new node at the end of a new move."""
        moves = self.below if move.below else self.children
        if move.label not in moves:
            moves[move.label] = Targets()
        return moves[move.label].add(move.guards)

    def drop(self, move: PathMove) -> None:
        """Remove a move and the node it leads to."""
        moves = self.below if move.below else self.children
        targets = moves[move.label]
        targets.drop(move.guards)
        if targets.is_empty:
            del moves[move.label]

    def add_result(self, result: Hashable, is_answer: bool) -> None:
        results = self.answers if is_answer else self.leads
        if results is not None:
            results.add(result)
        elif is_answer:
            self.answers = {result}
        else:
            self.leads = {result}

    def remove_result(self, result: Hashable, is_answer: bool) -> None:
        results = self.answers if is_answer else self.leads
        assert results is not None
        results.remove(result)


class Targets:
    """Where the moves to one label lead: without a guard, and behind guards."""

    __slots__ = ("_behind", "guards", "plain")

    def __init__(self) -> None:
        self.plain: GuardedNode | None = None
        self.guards: GuardIndex | None = None
        self._behind: dict[Guards, GuardedNode] = {}

    @property
    def is_empty(self) -> bool:
        return self.plain is None and not self._behind

    def get(self, guards: Guards) -> GuardedNode | None:
        return self._behind.get(guards) if guards else self.plain

    def add(self, guards: Guards) -> GuardedNode:
        node = GuardedNode()
        if not guards:
            self.plain = node
            return node
        if self.guards is None:
            self.guards = GuardIndex()
        self._behind[guards] = node
        self.guards.add(guards, node)
        return node

    def drop(self, guards: Guards) -> None:
        if not guards:
            self.plain = None
            return
        assert self.guards is not None
        self.guards.remove(guards, self._behind.pop(guards))
        if not self._behind:
            self.guards = None


Moves = dict[Label, Targets]


class GuardIndex:
    """Nodes behind guards, found by the properties that an element has."""

    __slots__ = ("_numbers", "_others", "_texts", "asks_position", "asks_text")

    def __init__(self) -> None:
        self._texts: _Table = {}
        """The nodes found by `[@id="x"]` or `[text()="x"]`, by the text."""
        self._numbers: _Table = {}
        "Those found by `[@id=5]` or `[2]`, by the number."
        self._others: _Table = {}
        "Those found by `[@id]` or `[position() < 3]`, by the guard."
        self.asks_text = self.asks_position = False

    def add(self, guards: Guards, node: GuardedNode) -> None:
        """Put a node behind guards; it is found by the first and checked by the others."""
        first, *others = guards
        table, key = self._place(first)
        table.setdefault(first.attribute, {}).setdefault(key, {})[node] = tuple(others)
        asked = {guard.attribute for guard in guards}
        self.asks_text |= OWN_TEXT in asked
        self.asks_position |= not asked.isdisjoint((POSITION, POSITION_OF_ALL))

    def remove(self, guards: Guards, node: GuardedNode) -> None:
        """Remove a node that was added behind these guards."""
        table, key = self._place(guards[0])
        of_name = table[guards[0].attribute]
        del of_name[key][node]
        if not of_name[key]:
            del of_name[key]
        if not of_name:
            del table[guards[0].attribute]

    def _place(self, guard: Guard) -> tuple[_Table, Any]:
        if isinstance(guard.wanted, str):
            return self._texts, guard.wanted
        is_one_number = guard.wanted is not None and guard.op is Comparison.EQ
        return (self._numbers, guard.wanted) if is_one_number else (self._others, guard)

    def admitted(self, properties: Collection[Property]) -> list[GuardedNode]:
        """The nodes whose guards hold for an element with these properties."""
        texts = self._texts
        found: list[tuple[GuardedNode, Guards]] = []
        for name, value in properties:
            if name in texts and value in texts[name]:
                found += texts[name][value].items()
        if self._numbers or self._others:
            found += self._admitted_otherwise(properties)
        if not found:
            return []
        return [node for node, others in found if not others or all(_holds(guard, properties) for guard in others)]

    def _admitted_otherwise(self, properties: Collection[Property]) -> Iterator[tuple[GuardedNode, Guards]]:
        """The nodes that are found by numbers, or by guards that several values meet, with their other guards."""
        for name, value in properties:
            if name in self._numbers:
                wanted = number(value) if isinstance(value, str) else value
                yield from self._numbers[name].get(wanted, _NONE).items()
            for guard, behind in self._others.get(name, _NONE).items():
                if guard.admits(value):
                    yield from behind.items()


_Behind = dict[GuardedNode, Guards]
"Nodes, and the guards that are still to be checked."
_Table = dict[str, dict[Any, _Behind]]
"By the name of a property, and by what a guard wants of it."
_NONE: dict[Any, Any] = {}


def _holds(guard: Guard, properties: Collection[Property]) -> bool:
    return any(name == guard.attribute and guard.admits(value) for name, value in properties)


class SiblingPositions:
    """The positions of child elements; those of one parent are counted together, when one is first asked for."""

    __slots__ = ("_counted", "parent")

    def __init__(self) -> None:
        self.parent = _NO_ELEMENT
        self._counted: tuple[Element, list[tuple[int, int]]] = (_NO_ELEMENT, [])

    def at(self, place: int) -> tuple[int, int]:
        """The positions of the parent's child element at this place: among those of its name, and among all."""
        counted, found = self._counted
        if counted is not self.parent:
            counts: dict[str, int] = {}
            found = []
            for child in self.parent.elements:
                counts[child.name] = counts.get(child.name, 0) + 1
                found.append((counts[child.name], len(found) + 1))
            self._counted = (self.parent, found)
        return found[place]


_NO_ELEMENT = Element("")
