"""Ranges whose bounds were rounded, checked for many slots in one go."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot.events import Value
from earshot.filters.index.compiling import compiled
from earshot.filters.index.plans import Between, Source
from earshot.filters.language.values import number_of

WIDTH = 3
"So many ranges are kept for a slot."


class RoundedRanges:
    """For each slot up to three ranges; where there are fewer, the others hold for every event."""

    def __init__(self) -> None:
        self.count = 0
        "How many slots have any."
        self._places: dict[Source, int] = {}
        "Where a source's number stands among an event's numbers, the first of which is always 0."
        self._which = np.zeros((0, WIDTH), np.uint32)
        self._lows = np.zeros((0, WIDTH))
        self._highs = np.zeros((0, WIDTH))
        self._holding: Callable[..., NDArray[np.intp]] = _holding

    def compile(self) -> None:
        """Be quicker from now on, where there is a compiler."""
        self._holding = compiled_holding() or _holding

    def resize(self, slots: int) -> None:
        """Have room for so many slots."""
        more = slots - len(self._which)
        self._which = np.concatenate([self._which, np.zeros((more, WIDTH), np.uint32)])
        self._lows = np.concatenate([self._lows, np.full((more, WIDTH), -inf)])
        self._highs = np.concatenate([self._highs, np.full((more, WIDTH), inf)])

    def add(self, slot: int, ranges: list[Between]) -> None:
        """Keep the ranges of a slot."""
        self.count += 1
        for i, test in enumerate(ranges):
            self._which[slot, i] = self._places.setdefault(test.source, len(self._places) + 1)
            self._lows[slot, i], self._highs[slot, i] = test.low, test.high

    def remove(self, slot: int) -> None:
        """Let the slot have none, if it has any."""
        if self._which[slot, 0]:
            self.count -= 1
            self._which[slot], self._lows[slot], self._highs[slot] = 0, -inf, inf

    def holding(self, slots: NDArray[np.intp], value: Callable[[Source], Value | None]) -> NDArray[np.intp]:
        """The slots all of whose ranges hold for the event."""
        numbers = [0.0]
        for source in self._places:
            found = value(source)
            numbers.append(found if type(found) is float else nan if found is None else number_of(found))
        return self._holding(slots, self._which, self._lows, self._highs, np.array(numbers))


def _holding(slots: Any, which: Any, lows: Any, highs: Any, numbers: Any) -> Any:
    asked = numbers.take(which.take(slots, 0))
    held = (lows.take(slots, 0) <= asked) & (asked <= highs.take(slots, 0))
    return slots[held.all(axis=1)]


@cache
def compiled_holding() -> Callable[..., NDArray[np.intp]] | None:
    """The same, compiled; None where there is no compiler."""
    ranges = np.zeros((1, WIDTH))
    return compiled(_one_by_one, np.zeros(1, np.intp), ranges.astype(np.uint32), ranges, ranges, np.zeros(1))


def _one_by_one(slots: Any, which: Any, lows: Any, highs: Any, numbers: Any) -> Any:
    kept = np.empty_like(slots)
    count = 0
    for slot in slots:
        holds = True
        for i in range(which.shape[1]):
            asked = numbers[which[slot, i]]
            if not lows[slot, i] <= asked <= highs[slot, i]:
                holds = False
                break
        if holds:
            kept[count] = slot
            count += 1
    return kept[:count]
