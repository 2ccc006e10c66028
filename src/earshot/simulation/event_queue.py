"""The event queue: what happens next, in order of (time, priority, sequence)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final


class Priority:
    """The order of calls at the same time."""

    WORLD: Final = 0
    "Nodes come and go."
    FRAME_END: Final = 1
    "Frames on a shared channel end, before others begin."
    MEDIUM: Final = 2
    "Packets arrive, frames begin."
    TIMER: Final = 3
    APPLICATION: Final = 4
    "Applications publish and subscribe."
    OBSERVER: Final = 5
    "Positions are sampled, progress is reported: nothing here changes a run."
    END: Final = 6


Entry = tuple[float, int, int, Callable[[Any], None] | None, Any]


class Queue:
    """Calls to be made, each at its time. `now` is the time of the call being made."""

    __slots__ = ("_heap", "_on_air", "now", "scheduled")

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[Entry] = []
        self._on_air: list[Entry] = []
        "The medium's calls. They are the most frequent and the nearest; a heap of their own is shallower."
        self.scheduled = 0
        "How many calls have been added: the sequence number."

    def __len__(self) -> int:
        return len(self._heap) + len(self._on_air)

    def at(self, time: float, priority: int, call: Callable[[Any], None], argument: Any = None) -> None:
        """Make this call at that time."""
        self.scheduled = sequence = self.scheduled + 1
        heappush(self._heap, (time, priority, sequence, call, argument))

    def on_air(self, time: float, call: Callable[[Any], None], argument: Any = None) -> None:
        """Make this call of the medium's at that time."""
        self.scheduled = sequence = self.scheduled + 1
        heappush(self._on_air, (time, Priority.MEDIUM, sequence, call, argument))

    def off_air(self, time: float, call: Callable[[Any], None], argument: Any = None) -> None:
        """Make this call at that time: a frame ends, before the medium's other calls of that time."""
        self.scheduled = sequence = self.scheduled + 1
        heappush(self._on_air, (time, Priority.FRAME_END, sequence, call, argument))

    def on_air_at_place(self, time: float, sequence: int, call: Callable[[Any], None], argument: Any = None) -> None:
        """As `on_air`, at a place in the sequence that was reserved before."""
        heappush(self._on_air, (time, Priority.MEDIUM, sequence, call, argument))

    def place(self) -> int:
        """A place in the sequence, for a call that is added later with `at_place`."""
        self.scheduled = sequence = self.scheduled + 1
        return sequence

    def places(self, count: int) -> int:
        """Reserve `count` places in a row; returns the first."""
        first = self.scheduled + 1
        self.scheduled += count
        return first

    def at_place(
        self, time: float, priority: int, sequence: int, call: Callable[[Any], None], argument: Any = None
    ) -> None:
        """Make this call at that time, at a place in the sequence that was reserved before."""
        heappush(self._heap, (time, priority, sequence, call, argument))

    def run(self, until: float) -> None:
        """Make all calls up to that time, in order, with those that they add."""
        if until < self.now:
            return
        heap, on_air, pop = self._heap, self._on_air, heappop
        # An entry after all others of that time ends the loop: cheaper than checking the time before each call.
        end = (until, Priority.END, 0, None, None)
        heappush(heap, end)
        try:
            while True:
                self.now, _, _, call, argument = pop(on_air if on_air and on_air[0] < heap[0] else heap)
                if call is None:
                    break
                call(argument)
        except BaseException:
            heap.remove(end)
            heapify(heap)
            raise
