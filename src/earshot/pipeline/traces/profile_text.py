"""A trace's profile in words and tables, for the command line and the report."""

from __future__ import annotations

from collections.abc import Sequence

from earshot.pipeline.traces.contact_statistics import Spread
from earshot.pipeline.traces.plausibility import as_span
from earshot.pipeline.traces.snapshots import HORIZONS_S
from earshot.pipeline.traces.trace_profile import Profile, RangeProfile


def profile_words(found: Profile) -> str:
    """Is the network partitioned? The answer, by range."""
    whole = [one for one in found.ranges if not one.partitioned]
    torn = [one for one in found.ranges if one.partitioned]
    parts = []
    if torn:
        one = torn[-1]
        parts.append(
            f"partitioned up to {one.range_m:g} m: there are {one.components:,.1f} components then, the largest has "
            f"{one.largest_share:.0%} of the nodes, and {one.reachable_at_once:.0%} of all pairs are connected at once"
            + carried_words(one)
        )
    if whole:
        one = whole[0]
        parts.append(
            f"one network from {one.range_m:g} m on: the largest component has {one.largest_share:.0%} of the nodes, "
            f"and {one.reachable_at_once:.0%} of all pairs are connected at once"
        )
    return "; ".join(parts).capitalize() + "."


def carried_words(one: RangeProfile) -> str:
    """What carrying adds."""
    shares = [f"{share:.0%} within {_time_words(float(name))}" for name, share in one.reachable_within.items()]
    return f" ({', '.join(shares)} by carrying)" if shares else ""


def facts_rows(found: Profile) -> list[tuple[str, str]]:
    """What does not depend on the radio, as pairs of a name and a text."""
    speed, stay = found.speed_m_s, found.stay_s
    interval = "-" if found.interval_s is None else f"{found.interval_s:g} s"
    return [
        ("area", f"{found.width_m:,.0f} x {found.height_m:,.0f} m, from ({found.box[0]:,.0f}, {found.box[1]:,.0f})"),
        ("span", f"{found.span_s:,.0f} s, from {as_span(found.start, found.end)}"),
        ("rows", f"{found.rows:,}, {interval} apart (median)"),
        ("nodes", f"{found.nodes:,}; at once {found.mean_present:,.1f} on average, {found.most_present:,} at most"),
        ("speed", f"{speed.mean:.1f} m/s on average, median {speed.p50:.1f}, 95 % below {speed.p95:.1f}"),
        ("arrivals", f"{found.arrivals_per_min:,.1f} a minute"),
        ("departures", f"{found.departures_per_min:,.1f} a minute"),
        ("stay", f"{stay.mean:,.0f} s on average, median {stay.p50:,.0f}"),
    ]


def _time_words(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:g} min"


RANGE_HEADER = (
    "range",
    "neighbours",
    "median",
    "alone",
    "components",
    "largest",
    "contact",
    "between",
    "at once",
    *map(_time_words, HORIZONS_S),
)
RANGE_NOTE = (
    "neighbours: mean and median; alone: nodes without any; largest: the share of nodes in the largest component; "
    "contact, between: medians in seconds; at once, 10 s, ...: the share of pairs of nodes that can reach each other"
)


def range_rows(found: Profile) -> list[tuple[str, ...]]:
    """A line for each range."""
    return [
        (
            f"{one.range_m:g} m",
            f"{one.mean_neighbours:.1f}",
            f"{one.median_neighbours:.0f}",
            f"{one.isolated_share:.0%}",
            f"{one.components:,.1f}",
            f"{one.largest_share:.0%}",
            _median(one.contact_s),
            _median(one.inter_contact_s),
            f"{one.reachable_at_once:.0%}",
            *_within(one),
        )
        for one in found.ranges
    ]


def _within(one: RangeProfile) -> Sequence[str]:
    shares = [one.reachable_within.get(f"{horizon_s:g}") for horizon_s in HORIZONS_S]
    return ["-" if share is None else f"{share:.0%}" for share in shares]


def _median(spread: Spread | None) -> str:
    return "-" if spread is None else f"{spread.p50:,.0f}"
