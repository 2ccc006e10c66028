"""Numbers from a study's rows: means with intervals, lines, the curves of figures, and figures beside their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from earshot.pipeline.campaigns.intervals import figure_of

Row = Mapping[str, Any]
"One measurement that an experiment's function returns: JSON values by name."


@dataclass(frozen=True)
class Series:
    """The numbers of one line of a figure. `paper` marks numbers from the paper's text."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    paper: bool = False


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % confidence interval over seeds. Unlike a `Figure`, one of a single value is judged: its
    interval is the value."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def interval(self) -> tuple[float, float] | None:
        """None where one value has none."""
        return (self.low, self.high) if self.count > 1 else None

    def __str__(self) -> str:
        if self.count < 2:
            return f"{self.mean:.3g}"
        return f"{self.mean:.3g} [{self.low:.3g}, {self.high:.3g}]"


def estimate(values: Iterable[float]) -> Estimate:
    """Student's t interval of the mean."""
    sample = [float(value) for value in values if not math.isnan(value)]
    if not sample:
        return Estimate(math.nan, math.nan, math.nan, 0)
    found = figure_of(dict(enumerate(sample)))
    low, high = (found.low, found.high) if found.has_interval else (found.mean, found.mean)
    return Estimate(found.mean, low, high, len(sample))


@dataclass(frozen=True)
class Line:
    """A least-squares line through points, with the slope's 95 % confidence interval."""

    slope: float
    intercept: float
    low: float
    high: float

    @property
    def mean(self) -> float:
        """The slope: what is compared with a bound."""
        return self.slope

    @property
    def interval(self) -> tuple[float, float] | None:
        """The slope's; None where two points have none."""
        return (self.low, self.high) if math.isfinite(self.high - self.low) else None

    def __format__(self, spec: str) -> str:
        """The slope and its interval, each in this format."""
        return f"{self.slope:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """The least-squares line, for claims that something grows, falls or stays flat."""
    from scipy.stats import linregress, t

    fit = linregress(x, y)
    half = float(t.ppf(0.975, len(x) - 2)) * float(fit.stderr) if len(x) > 2 else math.inf
    slope = float(fit.slope)
    return Line(slope, float(fit.intercept), slope - half, slope + half)


def seeds_of(rows: Iterable[Row]) -> int:
    """How many seeds the rows are of."""
    return len({row["seed"] for row in rows})


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by the values of these columns, sorted by the values."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return dict(sorted(groups.items()))


def rows_at(rows: Iterable[Row], **values: object) -> list[Row]:
    """The rows with these values in these columns."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def mean_of(rows: Iterable[Row], column: str, **values: object) -> Estimate:
    """The mean of a column over the rows with these values; rows without a figure do not count."""
    return estimate(row[column] for row in rows_at(rows, **values) if row[column] is not None)


def ratio_to(rows: Iterable[Row], others: Iterable[Row], column: str, *same: str) -> Estimate:
    """The mean of a column over that of the other row with the same values in these columns, pair by pair."""
    known = {tuple(row[name] for name in same): row[column] for row in others}
    pairs = [(row[column], known.get(tuple(row[name] for name in same))) for row in rows]
    return estimate(value / other for value, other in pairs if value is not None and other)


def ratio_of_means(rows: Iterable[Row], others: Iterable[Row], column: str, *same: str) -> Estimate:
    """The mean of a column over the mean of the other rows' with the same values in these columns. The interval is that
    of a ratio's linear approximation, pair by pair."""
    known = {tuple(row[name] for name in same): float(row[column]) for row in others}
    pairs = [(float(row[column]), known[tuple(row[name] for name in same)]) for row in rows]
    above, below = (math.fsum(values) / len(pairs) for values in zip(*pairs, strict=True))
    ratio = above / below
    return estimate(ratio + (value - ratio * other) / below for value, other in pairs)


def difference_to(
    rows: Iterable[Row], others: Iterable[Row], column: str, *same: str, other: str = "", times: float = 1.0
) -> Estimate:
    """The mean of a column less `times` that of the other row with the same values in these columns, pair by pair.
    `other` is the other rows' column, if it has another name."""
    known = {tuple(row[name] for name in same): row[other or column] for row in others}
    pairs = [(row[column], known.get(tuple(row[name] for name in same))) for row in rows]
    return estimate(value - times * than for value, than in pairs if value is not None and than is not None)


def apart(one: Estimate, other: Estimate, times: float = 1.0) -> Estimate:
    """One mean less `times` another of independent runs: the squares of the intervals' halves add up."""
    half = math.hypot(one.high - one.low, times * (other.high - other.low)) / 2
    mean = one.mean - times * other.mean
    return Estimate(mean, mean - half, mean + half, min(one.count, other.count))


@dataclass(frozen=True)
class Curve:
    """Means with intervals for each value of one column: a figure's line from raw rows."""

    x: list[float] = field(default_factory=list)
    estimates: list[Estimate] = field(default_factory=list)

    def __format__(self, spec: str) -> str:
        """The means by x: in this format, or with their intervals where it is empty."""
        points = [f"{point.mean:{spec}}" if spec else str(point) for point in self.estimates]
        return ", ".join(f"{x:g}: {point}" for x, point in zip(self.x, points, strict=True))

    def at(self, *chosen: float) -> Curve:
        """The curve at the chosen x only."""
        kept = [(x, point) for x, point in zip(self.x, self.estimates, strict=True) if x in chosen]
        return Curve([x for x, _ in kept], [point for _, point in kept])

    @property
    def means(self) -> dict[float, float]:
        """The means by x."""
        return dict(zip(self.x, self.y, strict=True))

    @property
    def lowest(self) -> Estimate:
        """The point with the lowest mean."""
        return min(self.estimates, key=lambda point: point.mean)

    @property
    def highest(self) -> Estimate:
        """The point with the highest mean."""
        return max(self.estimates, key=lambda point: point.mean)

    @property
    def lowest_at(self) -> float:
        """The x of the lowest mean."""
        return min(self.x, key=lambda x: self.means[x])

    @property
    def highest_at(self) -> float:
        """The x of the highest mean."""
        return max(self.x, key=lambda x: self.means[x])

    @property
    def y(self) -> list[float]:
        """The means in order."""
        return [point.mean for point in self.estimates]

    def series(self, name: str) -> Series:
        """The curve as a line of a figure."""
        return Series(
            name, self.x, self.y, [point.low for point in self.estimates], [point.high for point in self.estimates]
        )


def curve(rows: Iterable[Row], x: str, y: str) -> Curve:
    """The mean of `y` for each value of `x`."""
    by_x = grouped(rows, x)
    return Curve([key[0] for key in by_x], [estimate(row[y] for row in group) for group in by_x.values()])


def spread(rows: Sequence[Row], x: str, y: str, *same: str) -> Estimate:
    """The mean of `y` where it is highest over `x` less that where it is lowest, pair by pair."""
    line = curve(rows, x, y)
    highest, lowest = (rows_at(rows, **{x: at}) for at in (line.highest_at, line.lowest_at))
    return difference_to(highest, lowest, y, *same)


Figured = Estimate | Line | Curve
"What is compared with a bound; of a curve, what is said of every point."


@dataclass(frozen=True)
class Compared:
    """A figure beside its bound: whether it is on the right side, and whether chance could have put it there."""

    holds: bool
    interval: tuple[float, float] | None = None
    "The figure's; None where chance plays no part, or one seed has none."
    bound: float | None = None
    "None where one counter-example decides."

    @property
    def gap(self) -> float:
        """How far the bound is from the interval: negative inside it, infinite without interval or bound."""
        if self.interval is None or self.bound is None:
            return math.inf
        low, high = self.interval
        return max(low - self.bound, self.bound - high)

    @property
    def in_doubt(self) -> bool:
        """Whether the interval contains the bound. One that ends at the bound lies on one side of it."""
        return self.gap < 0


def below(figure: Figured, bound: float, surely: bool = False) -> Compared:
    """The figure's mean is below the bound; `surely`: its whole interval is."""
    return _beside(figure, bound, lambda point: (point.high if surely else point.mean) < bound)


def at_most(figure: Figured, bound: float, surely: bool = False) -> Compared:
    """The figure's mean is at most the bound; `surely`: its whole interval is."""
    return _beside(figure, bound, lambda point: (point.high if surely else point.mean) <= bound)


def above(figure: Figured, bound: float, surely: bool = False) -> Compared:
    """The figure's mean is above the bound; `surely`: its whole interval is."""
    return _beside(figure, bound, lambda point: (point.low if surely else point.mean) > bound)


def at_least(figure: Figured, bound: float, surely: bool = False) -> Compared:
    """The figure's mean is at least the bound; `surely`: its whole interval is."""
    return _beside(figure, bound, lambda point: (point.low if surely else point.mean) >= bound)


def within(figure: Figured, low: float, high: float, surely: bool = False) -> Compared:
    """The figure's mean is between two bounds; `surely`: its whole interval is."""
    return every([at_least(figure, low, surely), at_most(figure, high, surely)])


def always(figure: Figured, value: float) -> Compared:
    """Every run has this value: one counter-example decides, so that the interval has no bound."""
    return _beside(figure, None, lambda point: point.mean == value)


def _beside(figure: Figured, bound: float | None, right: Callable[[Estimate | Line], bool]) -> Compared:
    points = figure.estimates if isinstance(figure, Curve) else [figure]
    return every(Compared(right(point), point.interval, bound) for point in points)


def every(parts: Iterable[Compared]) -> Compared:
    """All parts together. The weakest decides: the part that fails most clearly; where all hold, the one whose
    interval is nearest to its bound. No parts hold, as for `all`."""
    listed = list(parts)
    failed = [part for part in listed if not part.holds]
    if failed:
        return max(failed, key=lambda part: part.gap)
    return min(listed, key=lambda part: part.gap, default=Compared(True))
