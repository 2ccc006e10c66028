"""What becomes of each frame by its reception model: which nodes sense it, and which can read it.

`ChanceDraws` serves models whose outcome depends on distance alone (`lossy`, `nakagami` without shadowing): the
chances of all pairs are computed for a window of time, and a frame costs one random number for each node. All
other models are asked for the strength of each frame at each node (`StrengthDraws`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.pairs import pairs_within
from earshot.records.trajectories import Trajectories
from earshot.simulation.media.neighbours import Neighbours
from earshot.simulation.media.reception import Arrivals, LogDistance

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Drawn(NamedTuple):
    """Which nodes a frame reaches."""

    sensed_by: list[int]
    in_range: list[int]
    "Those that can read it."
    faded: list[int]
    "Nodes within `range_m` that cannot."
    powers: list[float]
    "At each node that senses it, relative to the least power that can be read; empty unless asked for."


Draw = Callable[[int, float], Drawn]
"Of a sender's number and the time at which it begins to send."
_NOBODY = Drawn([], [], [], [])


class Uniforms:
    """Random numbers from 0 to 1, many at once. NumPy's older generator, because its numbers never change."""

    BLOCK = 16_384

    def __init__(self, random: Random) -> None:
        self._source = np.random.RandomState([random.getrandbits(32) for _ in range(8)])
        self._block = np.zeros(0)
        self._used = 0

    def take(self, count: int) -> Floats:
        """The next draws, as many as asked for."""
        start, end = self._used, self._used + count
        if end > len(self._block):
            self._block = self._source.random_sample(max(self.BLOCK, count))
            start, end = 0, count
        self._used = end
        return self._block[start:end]


def reception_draws(
    model: LogDistance,
    range_m: float,
    carrier_range_m: float,
    trajectories: Trajectories,
    within: Callable[[float], Neighbours],
    random: Random,
    *,
    with_powers: bool,
    by_distance: bool,
) -> Draw:
    """How the frames of this model are drawn. `by_distance`: no links are scripted and no partition cuts them."""
    sensed_db = min(float(model.mean_db(np.array([carrier_range_m]))[0]), 0.0)
    if by_distance and not with_powers and model.chances(np.ones(1), sensed_db) is not None:
        return ChanceDraws(model, range_m, sensed_db, trajectories, random).draw
    return StrengthDraws(model, range_m, sensed_db, trajectories, within, random, with_powers).draw


class ChanceDraws:
    """Draws by the chance that each pair's distance gives.

    Within a window a pair's chance changes evenly from its value at the beginning to that at the end."""

    LONGEST_STRETCH = 0.05
    "In a window two nodes come at most this share of the range closer."
    STEPS = 8192
    "Chances are computed for this many distances, and looked up."

    def __init__(
        self, model: LogDistance, range_m: float, sensed_db: float, trajectories: Trajectories, random: Random
    ) -> None:
        self._trajectories = trajectories
        self._range_m = range_m
        self._reach_m = model.reach_m(sensed_db)
        self._per_m = self.STEPS / self._reach_m
        found = model.chances(np.arange(0.5, self.STEPS) / self._per_m, sensed_db)
        assert found is not None
        self._chances = [np.append(one, 0.0) for one in (found if found[0] is not found[1] else found[:1])]
        "Of reading a frame, and, where that is another chance, of sensing it, by distance."
        self._take = Uniforms(random).take
        self._closing_m_s = 2 * trajectories.max_speed_m_s
        self._jumps = [math.inf, *reversed(trajectories.jump_times.tolist())]
        self._opened = self._until = -math.inf
        self._columns: list[tuple[Floats, Floats]] = []
        "For each kind of chance: of every pair at the beginning of the window, and its growth a second."
        self._nodes = np.zeros(0, dtype=np.int64)
        self._near = np.zeros(0, dtype=np.bool_)
        self._bounds: list[int] = []

    def draw(self, sender: int, now: float) -> Drawn:
        """For a frame that the sender begins now."""
        if now >= self._until:
            self._open_window(now)
        low, high = self._bounds[sender], self._bounds[sender + 1]
        if low == high:
            return _NOBODY
        nodes, drawn, passed_s = self._nodes[low:high], self._take(high - low), now - self._opened
        chance, growth = self._columns[0]
        read = drawn < chance[low:high] + passed_s * growth[low:high]
        in_range = sensed_by = nodes[read].tolist()
        if len(self._columns) == 2:
            chance, growth = self._columns[1]
            sensed_by = nodes[drawn < chance[low:high] + passed_s * growth[low:high]].tolist()
        faded = nodes[self._near[low:high] > read].tolist()
        return Drawn(sensed_by, in_range, faded, [])

    def _open_window(self, start: float) -> None:
        while self._jumps[-1] <= start:
            self._jumps.pop()
        stretch_m = self.LONGEST_STRETCH * self._range_m
        end = min(start + stretch_m / max(self._closing_m_s, 1e-3), self._jumps[-1])
        if self._trajectories.static:
            end = math.inf
        here = self._trajectories.positions(start)
        count = len(here)
        a, b, squared = pairs_within(here[:, 0], here[:, 1], self._reach_m + stretch_m)
        before_m = np.sqrt(squared)
        if end < math.inf:
            there = self._trajectories.positions(math.nextafter(end, start))
            after_m = np.sqrt(((there[a] - there[b]) ** 2).sum(axis=1))
        else:
            after_m, end = before_m, math.inf
        order = np.concatenate((a * count + b, b * count + a)).argsort(kind="stable")
        pair = np.where(order < len(a), order, order - len(a))
        lasting_s = end - start if end < math.inf else 1.0
        self._columns = []
        step, last = (before_m * self._per_m).astype(np.int64), (after_m * self._per_m).astype(np.int64)
        for table in self._chances:
            chance = table[np.minimum(step, self.STEPS)]
            growth = (table[np.minimum(last, self.STEPS)] - chance) / lasting_s
            self._columns.append((chance[pair], growth[pair]))
        self._near = (before_m <= self._range_m)[pair]
        self._nodes = np.concatenate((b, a))[order]
        self._bounds = [0, *np.bincount(np.concatenate((a, b)), minlength=count).cumsum().tolist()]
        self._opened, self._until = start, end


class StrengthDraws:
    """Asks the model for the strength of each frame at each node."""

    def __init__(
        self,
        model: LogDistance,
        range_m: float,
        sensed_db: float,
        trajectories: Trajectories,
        within: Callable[[float], Neighbours],
        random: Random,
        with_powers: bool,
    ) -> None:
        self._model = model
        self._range_m = range_m
        self._sensed_db = sensed_db
        "A frame is sensed from this strength on."
        self._neighbours_of = within(model.reach_m(sensed_db)).of
        self._position = trajectories.position
        self._take = Uniforms(random).take
        self._with_powers = with_powers

    def draw(self, sender: int, now: float) -> Drawn:
        """For a frame that the sender begins now."""
        near = self._neighbours_of(sender, now)
        if not near:
            return _NOBODY
        position = self._position
        sender_at = position(sender, now)
        nodes = np.array(near)
        x, y = np.array([position(node, now) for node in near]).T
        distances_m = np.sqrt((x - sender_at[0]) ** 2 + (y - sender_at[1]) ** 2)
        arrivals = Arrivals(sender, nodes, distances_m, sender_at, (x, y), self._take)
        strengths_db = self._model.strengths_db(arrivals)
        read = strengths_db >= 0.0
        if (lost := self._model.lost(arrivals)) is not None:
            read &= ~lost
        sensed = strengths_db >= self._sensed_db
        faded = nodes[(distances_m <= self._range_m) & ~read]
        powers = (10 ** (strengths_db[sensed] / 10)).tolist() if self._with_powers else []
        return Drawn(nodes[sensed].tolist(), nodes[read].tolist(), faded.tolist(), powers)
