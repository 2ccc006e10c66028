"""Contacts by brute force: every pair at every moment, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

Row = tuple[str, float, float, float]
"node, time, x_m, y_m"
Contact = tuple[str, str, float, float]
"a, b, start, end"


def contacts_by_brute_force(rows: Iterable[Row], range_m: float, gap_s: float) -> list[Contact]:
    """What `earshot.pipeline.traces.contacts` says a contact is, taken word for word."""
    at: dict[float, list[tuple[str, float, float]]] = defaultdict(list)
    for node, time, x, y in rows:
        at[time].append((node, x, y))
    met: dict[tuple[str, str], list[float]] = defaultdict(list)
    for time in sorted(at):
        for (a, ax, ay), (b, bx, by) in combinations(at[time], 2):
            if a != b and (ax - bx) * (ax - bx) + (ay - by) * (ay - by) <= range_m * range_m:
                pair = (min(a, b), max(a, b))
                if not met[pair] or met[pair][-1] != time:
                    met[pair].append(time)
    found: list[Contact] = []
    for (a, b), times in met.items():
        start = last = times[0]
        for time in times[1:]:
            if time - last > gap_s:
                found.append((a, b, start, last))
                start = time
            last = time
        found.append((a, b, start, last))
    return sorted(found)
