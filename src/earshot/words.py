"""Numbers and lists as people read them: 0.98, 12 %, 1.4 kB, 35 ms, 3 nodes, a and b."""

from __future__ import annotations

import math
from collections.abc import Sequence

_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
UNKNOWN = "–"


def share(value: float) -> str:
    """A part of a whole, with two decimals; more where two would show a 0 or a 1 that it is not."""
    if not math.isfinite(value):
        return UNKNOWN
    for decimals in (2, 3):
        shown = f"{value:.{decimals}f}"
        if value in (0.0, 1.0) or float(shown) not in (0.0, 1.0):
            return shown
    return f"{value:.4f}" if 0.00005 <= value < 0.99995 else "> 0.9999" if value > 0.5 else "< 0.0001"


def percent(value: float) -> str:
    """A part of a whole in percent: the digits that count, more of them near all and near nothing."""
    if not math.isfinite(value):
        return UNKNOWN
    points = 100 * value
    if points in (0.0, 100.0):
        return f"{points:.0f} %"
    if 0 < points < 0.001 or 99.99 < points < 100:
        return "< 0.001 %" if points < 50 else "> 99.99 %"
    if 0 < points < 0.995:
        return f"{points:.2g} %"
    decimals = 0 if 9.95 <= points <= 90 else 1 if abs(100 - points) >= 0.095 else 2
    return f"{points:.{decimals}f} %"


def seconds(value: float) -> str:
    """A duration: 1.4 s, 35 ms, 12 min."""
    if not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    if size >= 119.5:
        return f"{value / 60:.0f} min"
    if value == 0 or size >= 0.9995:
        return f"{_digits(value)} s"
    return f"{_digits(value * 1e3)} ms"


def amount(value: float, unit: str = "") -> str:
    """A count or a size: 37, 1.4 kB, 2.1 M."""
    if not math.isfinite(value):
        return UNKNOWN
    for size, letter in _LARGE:
        if abs(value) >= 0.9995 * size:
            return f"{_digits(value / size)} {letter}{unit}"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    if value == round(value) and abs(value) < 1000:
        return f"{value:.0f}"
    if abs(value) >= 99.5:
        return f"{value:.0f}"
    return f"{value:.2g}" if abs(value) >= 0.01 else f"{value:.1g}"


def formatted(value: float, unit: str) -> str:
    """A number of that unit: "share", "percent", "s", "B", "x" (a multiple), or "" for a plain count."""
    match unit:
        case "share":
            return share(value)
        case "percent":
            return percent(value)
        case "s":
            return seconds(value)
        case "x":
            return f"{amount(value)} ×"
        case _:
            return amount(value, unit)


def interval(low: float, high: float, unit: str) -> str:
    """An interval of that unit; nothing where it is not known."""
    if math.isnan(low) or math.isnan(high):
        return ""
    first, last = formatted(low, unit), formatted(high, unit)
    if first == last:
        return ""
    number, _, ending = first.partition(" ")
    shared = ending and last.endswith(f" {ending}") and not number.startswith(("<", ">"))
    return f"{number if shared else first} to {last}"


def rounded_percent(value: float) -> str:
    """A part of a whole in percent, with one decimal, as sentences have it; a small one with two digits."""
    return f"{100 * value:.2g} %" if 0.0 < value < 0.01 else f"{100 * value:.1f} %"


def counted(count: int, noun: str) -> str:
    """A number and what it counts: `1 node`, `2,000 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
