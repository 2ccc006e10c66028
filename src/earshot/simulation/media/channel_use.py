"""How long each node finds the channel busy: from the frames that a radio reports, and who senses them.

A frame costs one entry in a list. Busy time is the union of the frames that a node senses; it is computed
for all nodes at once, for a whole span of time, and only where somebody asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain
from math import floor

import numpy as np
import numpy.typing as npt

from earshot.simulation.media.transmission import Frame

Floats = npt.NDArray[np.float64]
RECENT_SECONDS = 5
"The channel service looks back this far."


def busy_and_sent(frames: Sequence[Frame], start: float, end: float, nodes: int) -> tuple[Floats, Floats]:
    """For each node: how long it senses or sends a frame between `start` and `end`, and how long it sends.
    The frames are in the order in which they begin."""
    if not frames:
        return np.zeros(nodes), np.zeros(nodes)
    span_s = end - start
    began, ended, sent_by, sensed_by = zip(*frames, strict=True)
    senders, each = np.array(sent_by, np.int64), np.arange(len(frames))
    begins, ends = (np.array(times, np.float64).clip(start, end) - start for times in (began, ended))
    counts = np.fromiter(map(len, sensed_by), np.int64, len(frames))
    sensing = np.fromiter(chain.from_iterable(sensed_by), np.int64, int(counts.sum()))
    # By node, then in the order of the frames. A sender among those who sense its frame is there twice: the second
    # time adds nothing.
    node_and_frame = np.concatenate([senders * len(frames) + each, sensing * len(frames) + each.repeat(counts)])
    node_and_frame.sort()
    who, which = np.divmod(node_and_frame, len(frames))
    # Each node gets a stretch of its own on one long time line, so that one running maximum serves all.
    offset = who * span_s
    until = offset + ends[which]
    covered = np.maximum.accumulate(until)
    since = offset + begins[which]
    since[1:] = np.maximum(since[1:], covered[:-1])
    return _sums(who, np.maximum(until - since, 0.0), nodes), _sums(senders, ends - begins, nodes)


def _sums(who: npt.NDArray[np.int64], amounts: Floats, nodes: int) -> Floats:
    return np.bincount(who, amounts, minlength=nodes).astype(np.float64)


class BusyTime:
    """Busy and sending time that adds up, node by node, until it is taken."""

    def __init__(self, nodes: int, pass_on: Callable[[Frame], None] = lambda _: None) -> None:
        self._nodes = nodes
        self._pass_on = pass_on
        self._frames: list[Frame] = []
        self._counted_until = 0.0
        self._busy_s, self._sent_s = np.zeros(nodes), np.zeros(nodes)
        self._since = [0.0] * nodes

    def add(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._pass_on(frame)

    def take(self, node: int, now: float) -> tuple[float, float, float]:
        """How long the node has been measured, and how long the channel was busy and the node sent in that time.
        From now on it is measured anew."""
        self._count(now)
        taken = now - self._since[node], float(self._busy_s[node]), float(self._sent_s[node])
        self._since[node], self._busy_s[node], self._sent_s[node] = now, 0.0, 0.0
        return taken

    def _count(self, now: float) -> None:
        if now > self._counted_until:
            busy_s, sent_s = busy_and_sent(self._frames, self._counted_until, now, self._nodes)
            self._busy_s += busy_s
            self._sent_s += sent_s
            self._frames = [frame for frame in self._frames if frame[1] > now]
            self._counted_until = now


class RecentUse:
    """The share of the last whole seconds in which each node found the channel busy."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._second = 0
        self._frames: list[Frame] = []
        "Of this second, and longer ones from before."
        self._closed: deque[tuple[int, list[Frame]]] = deque(maxlen=RECENT_SECONDS)
        "Whole seconds and their frames, not yet counted."
        self._counted: deque[tuple[int, Floats]] = deque(maxlen=RECENT_SECONDS)
        self._shares: list[float] = []
        self._shares_of = -1
        "The second in which they were asked for."

    def add(self, frame: Frame) -> None:
        if frame[0] >= self._second + 1:
            self._close(floor(frame[0]))
        self._frames.append(frame)

    def _close(self, second: int) -> None:
        """That second has begun."""
        while self._second < second:
            self._closed.append((self._second, self._frames))
            self._second += 1
            self._frames = [frame for frame in self._frames if frame[1] > self._second]
            if not self._frames:
                self._second = max(self._second, second - RECENT_SECONDS)

    def share(self, node: int, now: float) -> float:
        """Of the last whole seconds before now; 0 in the first second."""
        second = floor(now)
        if second != self._shares_of:
            self._shares, self._shares_of = self._shares_in(second), second
        return self._shares[node]

    def _shares_in(self, second: int) -> list[float]:
        """The shares of all nodes, as asked in that second."""
        self._close(second)
        while self._closed:
            whole, frames = self._closed.popleft()
            busy_s, _ = busy_and_sent(frames, whole, whole + 1, self._nodes)
            self._counted.append((whole, busy_s))
        seconds = min(second, RECENT_SECONDS)
        recent = [busy_s for whole, busy_s in self._counted if second - seconds <= whole < second]
        shares: list[float] = np.minimum(sum(recent, np.zeros(self._nodes)) / max(seconds, 1), 1.0).tolist()
        return shares


class NodeChannel:
    """The channel service of one node, by the node's own clock."""

    __slots__ = ("_clock_offset_s", "_node", "_recent", "airtime_s")

    def __init__(self, recent: RecentUse, node: int, clock_offset_s: float, airtime_s: Callable[[int], float]) -> None:
        self._recent = recent
        self._node = node
        self._clock_offset_s = clock_offset_s
        self.airtime_s = airtime_s

    def busy_share(self, now: float) -> float:
        return self._recent.share(self._node, now - self._clock_offset_s)
