"""Timing: when a publish entry's events come, and from whom. Each is one kind of `when` table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any, ClassVar, Literal, Protocol

from earshot.errors import ScenarioError
from earshot.simulation.draws import by_weight

Of = Literal["each", "all"]
Choose = Literal["random", "in-turn", "ability"]


@dataclass(frozen=True, slots=True)
class Publisher:
    """A node that publishes: its number, its ability, and its own random stream."""

    node: int
    ability: float
    random: Random


class Timing(Protocol):
    """Draws the times at which publishers publish."""

    kind: ClassVar[str]

    def times(
        self, publishers: Sequence[Publisher], random: Random, from_s: float, until_s: float
    ) -> Iterator[tuple[float, Publisher]]:
        """Each publication's time, from `from_s` on and before `until_s`, and its publisher."""
        ...


@dataclass(frozen=True, slots=True)
class Periodic:
    """One event every so many seconds."""

    kind: ClassVar[str] = "periodic"
    interval_s: float
    "The time from one event to the next."
    of: Of = "each"
    'Whether each publisher keeps this interval ("each"), or all of them together ("all").'
    choose: Choose = "random"
    'With of = "all", who publishes next: anyone, the next in turn, or in proportion to ability.'
    phase: Literal["random", "zero"] = "random"
    'With of = "each", whether a publisher begins anywhere in its first interval or at its start.'
    jitter_s: float = 0.0
    "Each event comes up to so much later."

    def __post_init__(self) -> None:
        if self.interval_s <= 0:
            raise ScenarioError(f"interval_s must be positive, got {self.interval_s}")
        if self.jitter_s < 0:
            raise ScenarioError(f"jitter_s must not be negative, got {self.jitter_s}")

    def times(
        self, publishers: Sequence[Publisher], random: Random, from_s: float, until_s: float
    ) -> Iterator[tuple[float, Publisher]]:
        if self.of == "all":
            next_one = _chooser(publishers, self.choose, random)
            yield from ((time, next_one()) for time in self._ticks(from_s, until_s, random))
            return
        for publisher in publishers:
            start = from_s + (publisher.random.random() * self.interval_s if self.phase == "random" else 0.0)
            yield from ((time, publisher) for time in self._ticks(start, until_s, publisher.random))

    def _ticks(self, start: float, until_s: float, random: Random) -> Iterator[float]:
        step = 0
        while (time := start + step * self.interval_s) < until_s:
            time += random.uniform(0.0, self.jitter_s) if self.jitter_s else 0.0
            if time < until_s:
                yield time
            step += 1


@dataclass(frozen=True, slots=True)
class Poisson:
    """Events at random moments, so many a second on average."""

    kind: ClassVar[str] = "poisson"
    rate_per_s: float
    "Events a second."
    of: Of = "all"
    'Whether that is the rate of all publishers together ("all") or of each ("each").'
    choose: Choose = "random"
    'With of = "all", who publishes next: anyone, the next in turn, or in proportion to ability.'

    def __post_init__(self) -> None:
        if self.rate_per_s <= 0:
            raise ScenarioError(f"rate_per_s must be positive, got {self.rate_per_s}")

    def times(
        self, publishers: Sequence[Publisher], random: Random, from_s: float, until_s: float
    ) -> Iterator[tuple[float, Publisher]]:
        if self.of == "all":
            next_one = _chooser(publishers, self.choose, random)
            yield from ((time, next_one()) for time in self._arrivals(from_s, until_s, random))
            return
        for publisher in publishers:
            yield from ((time, publisher) for time in self._arrivals(from_s, until_s, publisher.random))

    def _arrivals(self, from_s: float, until_s: float, random: Random) -> Iterator[float]:
        time = from_s + random.expovariate(self.rate_per_s)
        while time < until_s:
            yield time
            time += random.expovariate(self.rate_per_s)


@dataclass(frozen=True, slots=True)
class At:
    """Events at written times."""

    kind: ClassVar[str] = "at"
    times_s: tuple[float, ...]
    "The times, in seconds from the run's start; those outside from_s..until_s are left out."
    of: Of = "each"
    'Whether each publisher publishes at these times ("each"), or one of them at each ("all").'
    choose: Choose = "in-turn"
    'With of = "all", who publishes next: anyone, the next in turn, or in proportion to ability.'

    def __post_init__(self) -> None:
        if any(time < 0 for time in self.times_s):
            raise ScenarioError(f"times_s must not be negative, got {min(self.times_s)}")

    def times(
        self, publishers: Sequence[Publisher], random: Random, from_s: float, until_s: float
    ) -> Iterator[tuple[float, Publisher]]:
        next_one = _chooser(publishers, self.choose, random)
        for time in self.times_s:
            if from_s <= time < until_s:
                for publisher in [next_one()] if self.of == "all" else publishers:
                    yield time, publisher


def _chooser(publishers: Sequence[Publisher], choose: Choose, random: Random) -> Any:
    """A function that names the next publisher."""
    if choose == "in-turn":
        turn = iter(range(1 << 62))
        return lambda: publishers[next(turn) % len(publishers)]
    if choose == "ability":
        sums = list(accumulate(publisher.ability for publisher in publishers))
        return lambda: publishers[by_weight(random, sums)]
    return lambda: random.choice(publishers)


WHEN_KINDS: dict[str, Any] = {"periodic": Periodic, "poisson": Poisson, "at": At}
"Every kind of `when` table; a new one is a new row."
