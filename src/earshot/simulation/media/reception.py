"""Which nodes can read a frame: the reception models beside `contention`.

========== =========================================================================
disk       every node within range
lossy      the farther away, the likelier a frame is lost
shadowing  obstacles: a log-normal share of the strength, correlated over distance
nakagami   fading drawn for each frame and receiver, with or without shadowing
plugin     a model of the user's own
========== =========================================================================

A model says how strongly a frame arrives, in dB above the least strength that can be read: at `range_m` the mean
strength is 0 dB. Formulas and sources: docs/simulator.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
import numpy.typing as npt

from earshot.errors import SettingsError
from earshot.settings import KindTable, NotNegative, Positive
from earshot.simulation.settings_reader import PLUGIN, PluginTable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LEAST_CHANCE = 0.001
"A node so far away that a frame reaches it with a smaller chance is left out."
NEAREST_M = 1.0
"Nearer nodes count as this far away: path loss has no meaning in the antenna."


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A frame that goes on air, and the nodes that it may reach."""

    sender: int
    nodes: Ints
    "Their numbers."
    distances_m: Floats
    sender_at: tuple[float, float]
    nodes_at: tuple[Floats, Floats]
    "Their x and y, in metres."
    uniforms: Callable[[int], Floats]
    "This number of random numbers from 0 to 1."


class LogDistance:
    """Strength falls with a power of the distance: 10 n log10(range / d) dB. Other models build on it."""

    def __init__(self, range_m: float, path_loss_exponent: float) -> None:
        self._at_1_m_db = 10 * path_loss_exponent * math.log10(range_m)
        self._slope_db = 5 * path_loss_exponent
        self._range_m = range_m

    def mean_db(self, distances_m: Floats) -> Floats:
        """The mean strength at these distances."""
        found: Floats = self._at_1_m_db - self._slope_db * np.log10(np.maximum(distances_m, NEAREST_M) ** 2)
        return found

    def reach_m(self, least_db: float) -> float:
        """Beyond this distance hardly any frame arrives with that strength (`LEAST_CHANCE`)."""
        return float(10 ** ((self._at_1_m_db - least_db + self.highest_gain_db()) / (2 * self._slope_db)))

    def highest_gain_db(self) -> float:
        """Fading hardly ever lifts a frame more than this above its mean strength."""
        return 0.0

    def strengths_db(self, arrivals: Arrivals) -> Floats:
        """How strongly the frame arrives at each node."""
        return self.mean_db(arrivals.distances_m)

    def lost(self, arrivals: Arrivals) -> Bools | None:
        """Which nodes cannot read the frame although it is strong enough; None: there are none."""
        return None

    def chances(self, distances_m: Floats, least_db: float) -> tuple[Floats, Floats] | None:
        """The chance that a frame is read at these distances, and that it arrives with `least_db`, where distance
        alone decides them and every frame is drawn anew; None: only `strengths_db` knows."""
        return None


class Disk(KindTable, frozen=True, tag="disk"):
    """Every node within `range_m` can read a frame."""

    path_loss_exponent: Positive = 2.0
    "How fast strength falls with distance: 2 in free space, 3 to 4 among buildings. It matters for capture."

    label = ""

    def open(self, range_m: float, random: Random) -> LogDistance:
        return LogDistance(range_m, self.path_loss_exponent)


class LossyReception(KindTable, frozen=True, tag="lossy"):
    """Reception is certain up to `certain_m` and impossible beyond the medium's `range_m`; between the two its
    probability is 1 - ((d - certain_m) / (range_m - certain_m)) ** exponent, drawn for each frame and receiver. A
    lost frame still keeps the channel busy."""

    certain_m: NotNegative = 50.0
    "Up to this distance every frame can be read."
    exponent: Positive = 2.0
    "How the loss grows between the two: 1 is linear, a larger value rises later and steeper."
    path_loss_exponent: Positive = 2.0
    "How fast strength falls with distance: 2 in free space, 3 to 4 among buildings. It matters for capture."

    @property
    def label(self) -> str:
        return f"lossy from {self.certain_m:g} m"

    def open(self, range_m: float, random: Random) -> LogDistance:
        return _Lossy(self, range_m)


class _Lossy(LogDistance):
    def __init__(self, settings: LossyReception, range_m: float) -> None:
        super().__init__(range_m, settings.path_loss_exponent)
        self._certain_m, self._exponent = settings.certain_m, settings.exponent

    def lost(self, arrivals: Arrivals) -> Bools:
        span_m = max(self._range_m - self._certain_m, 1e-9)
        share = np.clip((arrivals.distances_m - self._certain_m) / span_m, 0.0, 1.0)
        found: Bools = arrivals.uniforms(len(share)) < share**self._exponent
        return found

    def chances(self, distances_m: Floats, least_db: float) -> tuple[Floats, Floats]:
        span_m = max(self._range_m - self._certain_m, 1e-9)
        share = np.clip((distances_m - self._certain_m) / span_m, 0.0, 1.0)
        within = distances_m <= self._range_m
        read: Floats = np.where(within, 1 - share**self._exponent, 0.0)
        return read, (self.mean_db(distances_m) >= least_db).astype(np.float64)


class Shadowing(KindTable, frozen=True, tag="shadowing"):
    """Obstacles weaken or strengthen a link by a normally distributed number of dB, the same in both directions and
    for all frames until one of the two nodes has moved on."""

    sigma_db: Positive = 4.0
    "The standard deviation of the strength."
    decorrelation_m: Positive = 20.0
    "When a node has moved by this much, the correlation with the former strength is 1/e."
    path_loss_exponent: Positive = 2.0
    "How fast the mean strength falls with distance: 2 in free space, 3 to 4 among buildings."

    @property
    def label(self) -> str:
        return f"shadowing {self.sigma_db:g} dB over {self.decorrelation_m:g} m, n={self.path_loss_exponent:g}"

    def open(self, range_m: float, random: Random) -> LogDistance:
        field = ShadowField(self.sigma_db, self.decorrelation_m, random)
        return _Fading(range_m, self.path_loss_exponent, field, None)


class Nakagami(KindTable, frozen=True, tag="nakagami"):
    """Fading by many paths: the power of each frame at each receiver is gamma distributed with shape m around the
    mean that its distance gives."""

    m: Positive = 1.0
    "How even the strength is: 1 is Rayleigh fading, 3 has a strong direct path, below 1 is worse than Rayleigh."
    m_steps: tuple[tuple[Positive, Positive], ...] = ()
    "Another m up to a distance: [[50, 3], [150, 1.5]] is 3 up to 50 m, 1.5 up to 150 m, and m beyond."
    path_loss_exponent: Positive = 2.0
    "How fast the mean strength falls with distance: 2 in free space, 3 to 4 among buildings."
    sigma_db: NotNegative = 0.0
    "Shadowing besides: the standard deviation of the mean strength; 0: none."
    decorrelation_m: Positive = 20.0
    "Of the shadowing: over this distance its correlation falls to 1/e."

    @property
    def label(self) -> str:
        steps = "".join(f" {m:g} to {until_m:g} m," for until_m, m in self.m_steps)
        shadow = f", shadowing {self.sigma_db:g} dB over {self.decorrelation_m:g} m" if self.sigma_db else ""
        return f"nakagami{steps} m={self.m:g}, n={self.path_loss_exponent:g}{shadow}"

    def validate(self) -> None:
        for m in (self.m, *(m for _, m in self.m_steps)):
            if not 0.1 <= m <= 100:
                raise SettingsError(f"m must be from 0.1 to 100, got {m:g}")
        bounds_m = [until_m for until_m, _ in self.m_steps]
        if bounds_m != sorted(set(bounds_m)):
            raise SettingsError(f"m_steps must have growing distances, got {bounds_m}")

    def open(self, range_m: float, random: Random) -> LogDistance:
        field = ShadowField(self.sigma_db, self.decorrelation_m, random) if self.sigma_db else None
        return _Fading(range_m, self.path_loss_exponent, field, GammaFading(self.m, self.m_steps))


class OutsideReception(PluginTable, frozen=True, tag=PLUGIN):
    """A model of yours: a table whose method `open(range_m, random)` returns a `LogDistance` of its own."""

    group = "reception"
    methods = ("open",)

    @property
    def label(self) -> str:
        return str(getattr(self.settings, "label", self.use))

    def open(self, range_m: float, random: Random) -> LogDistance:
        opened = self.settings.open(range_m, random)
        if not isinstance(opened, LogDistance):
            raise SettingsError(f"{self.use}: open() must return a LogDistance, got a {type(opened).__name__}")
        return opened


ReceptionSettings = Disk | LossyReception | Shadowing | Nakagami | OutsideReception


class _Fading(LogDistance):
    """Shadowing, fading for each frame, or both."""

    def __init__(
        self, range_m: float, path_loss_exponent: float, shadow: ShadowField | None, fading: GammaFading | None
    ) -> None:
        super().__init__(range_m, path_loss_exponent)
        self._shadow, self._fading = shadow, fading

    def highest_gain_db(self) -> float:
        shadow_db = 0.0 if self._shadow is None else 3.09 * self._shadow.sigma_db
        return shadow_db + (0.0 if self._fading is None else self._fading.highest_db)

    def strengths_db(self, arrivals: Arrivals) -> Floats:
        found = self.mean_db(arrivals.distances_m)
        if self._shadow is not None:
            found += self._shadow.between(arrivals)
        if self._fading is not None:
            found += self._fading.drawn_db(arrivals)
        return found

    def chances(self, distances_m: Floats, least_db: float) -> tuple[Floats, Floats] | None:
        if self._shadow is not None or self._fading is None:
            return None
        mean_db = self.mean_db(distances_m)
        read = self._fading.chance_of(-mean_db, distances_m)
        return read, read if least_db == 0.0 else self._fading.chance_of(least_db - mean_db, distances_m)


class GammaFading:
    """Nakagami fading: power over its mean, in dB."""

    def __init__(self, m: float, steps: tuple[tuple[float, float], ...]) -> None:
        self._tables = [gamma_table(one) for one in (*(shape for _, shape in steps), m)]
        self._bounds_m = np.array([until_m for until_m, _ in steps])
        self.highest_db = max(float(np.interp(1 - LEAST_CHANCE, *table)) for table in self._tables)

    def drawn_db(self, arrivals: Arrivals) -> Floats:
        drawn = arrivals.uniforms(len(arrivals.nodes))
        if len(self._tables) == 1:
            return np.interp(drawn, *self._tables[0])
        which = self._which(arrivals.distances_m)
        return np.choose(which, [np.interp(drawn, *table) for table in self._tables])

    def chance_of(self, gain_db: Floats, distances_m: Floats) -> Floats:
        """The chance that fading adds at least this many dB at each distance."""
        which = self._which(distances_m)
        return np.choose(which, [1 - np.interp(gain_db, in_db, at_most) for at_most, in_db in self._tables])

    def _which(self, distances_m: Floats) -> Ints:
        """The table for each distance; a step's m holds up to and including its distance."""
        return np.searchsorted(self._bounds_m, distances_m, side="left")


@lru_cache(maxsize=32)
def gamma_table(m: float) -> tuple[Floats, Floats]:
    """The distribution of a gamma variable with shape m and mean 1, as columns: chance of at most, in dB."""
    highest_db = 10 * math.log10(1 + 40 / m + 12 / math.sqrt(m))
    in_db = np.linspace(-120.0 if m < 1 else -60.0, highest_db, 4096)
    return gamma_at_most(m, m * 10 ** (in_db / 10)), in_db


def gamma_at_most(m: float, x: Floats) -> Floats:
    """The regularised lower incomplete gamma function P(m, x), by its series (Abramowitz and Stegun 6.5.29)."""
    term = np.ones_like(x)
    total = term.copy()
    for k in range(1, 100_000):
        term = term * x / (m + k)
        total += term
        if term.max() < 1e-12 * total.min() or (term < 1e-16 * total).all():
            break
    return np.minimum(np.exp(m * np.log(x) - x - math.lgamma(m + 1)) * total, 1.0)


class ShadowField:
    """Log-normal shadowing between any two places, without memory: a sum of plane waves over the places of both ends.

    The wave vectors are drawn so that the correlation after one end has moved by s is exp(-s / decorrelation_m)."""

    WAVES = 64

    def __init__(self, sigma_db: float, decorrelation_m: float, random: Random) -> None:
        self.sigma_db = sigma_db
        # exp(-s / d) is the characteristic function of the Cauchy distribution of two dimensions.
        self._low, self._high = (
            np.array([_cauchy(random, decorrelation_m) for _ in range(self.WAVES)]) for _ in range(2)
        )
        self._phases = np.array([random.uniform(0.0, 2 * math.pi) for _ in range(self.WAVES)])
        self._amplitude_db = sigma_db * math.sqrt(2 / self.WAVES)

    def between(self, arrivals: Arrivals) -> Floats:
        """The shadowing between the sender and each node; the end with the lower number comes first."""
        sender = np.array(arrivals.sender_at)
        nodes = np.stack(arrivals.nodes_at, axis=1)
        low_first = (arrivals.nodes < arrivals.sender)[:, None]
        as_low = np.where(low_first, nodes @ self._low.T, sender @ self._low.T)
        as_high = np.where(low_first, sender @ self._high.T, nodes @ self._high.T)
        found: Floats = self._amplitude_db * np.cos(as_low + as_high + self._phases).sum(axis=1)
        return found


def _cauchy(random: Random, scale_m: float) -> tuple[float, float]:
    divisor = scale_m * max(abs(random.gauss(0.0, 1.0)), 1e-6)
    return random.gauss(0.0, 1.0) / divisor, random.gauss(0.0, 1.0) / divisor
