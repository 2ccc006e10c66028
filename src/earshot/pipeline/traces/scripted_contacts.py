"""Scripted links: contacts that a scenario's script makes or forbids, whatever the distance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from earshot.pipeline.traces.contact_columns import ContactColumns, contact_columns, joined, rows_of
from earshot.records.trajectories import Legs
from earshot.simulation.media.links import LinkScript

Interval = tuple[float, float]
"Both ends included."


def with_script(
    contacts: ContactColumns, legs: Legs, names: Sequence[str], script: LinkScript, until_s: float
) -> ContactColumns:
    """The contacts under a script. Where it gives the whole graph, pass none. A link that is held up is a
    contact while both nodes have legs."""
    number = {name: i for i, name in enumerate(names)}
    rows: list[tuple[int, int, float, float]] = []
    scripted = np.zeros(len(contacts.a), dtype=bool)
    for (one, other), (up, free) in link_intervals(script, until_s).items():
        if one not in number or other not in number:
            continue  # neither is there in this stretch of time
        a, b = sorted((number[one], number[other]))
        ours = (contacts.a == a) & (contacts.b == b)
        scripted |= ours
        by_radio = list(zip(contacts.start[ours].tolist(), contacts.end[ours].tolist(), strict=True))
        held_up = _shared(_shared(_presence(legs, a), _presence(legs, b)), up)
        rows.extend((a, b, *part) for part in [*_shared(by_radio, free), *held_up])
    return joined([rows_of(contacts, ~scripted), contact_columns(rows)])


def link_intervals(script: LinkScript, until_s: float) -> dict[tuple[str, str], tuple[list[Interval], list[Interval]]]:
    """For each link that the script names: when it is held up, and when the radio decides."""
    of_graph = {_ordered(a, b) for a, b in script.graph or ()}
    turning = [link for rotation in script.rotations for link in rotation.links]
    changing = [(change.a, change.b) for change in script.changes]
    named = of_graph | {_ordered(a, b) for a, b in (*turning, *changing)}
    states: dict[tuple[str, str], list[tuple[float, str]]] = {link: [(-math.inf, "free")] for link in sorted(named)}
    for change in script.in_order():
        if change.time_s > until_s:
            break
        states[_ordered(change.a, change.b)].append((change.time_s, change.state))
    found: dict[tuple[str, str], tuple[list[Interval], list[Interval]]] = {}
    for link, changes in states.items():
        free = "free" if script.graph is None else "up" if link in of_graph else "down"
        ends = [time for time, _ in changes[1:]]
        intervals = [
            (start, math.nextafter(end, -math.inf), free if state == "free" else state)
            for (start, state), end in zip(changes, [*ends, math.inf], strict=True)
        ]
        up, by_radio = (
            [(start, end) for start, end, state in intervals if state == wanted and start <= end]
            for wanted in ("up", "free")
        )
        found[link] = (up, by_radio)
    return found


def _ordered(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _presence(legs: Legs, node: int) -> list[Interval]:
    ours = legs.node == node
    return list(zip(legs.start[ours].tolist(), legs.end[ours].tolist(), strict=True))


def _shared(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """The times that lie in an interval of both."""
    both = [(max(a, c), min(b, d)) for a, b in some for c, d in others]
    return [(start, end) for start, end in both if start <= end]
