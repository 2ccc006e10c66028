"""The claims of section V.C: equations 1 and 2, and the delay by the number of brokers, copies and destinations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from earshot.protocols.drip.delay import (
    exact_delay,
    exact_factor,
    meeting_time,
    printed_delay,
    printed_factor,
    printed_meeting_time,
    reach,
    series_factor,
)
from earshot.studies.drip.claims import line_of, trend, units_of
from earshot.studies.figures import (
    Row,
    Series,
    above,
    at_least,
    curve,
    difference_to,
    estimate,
    every,
    grouped,
    mean_of,
    rows_at,
    within,
)
from earshot.studies.study import Claims, Finding, Rows, all_hold, found, read_as

CLAIMS = Claims()
claim = CLAIMS.claim


@claim(
    "The expected delay of equation 2 follows from equation 1",
    "Section V.C",
    "E[T] = (l^2 + 3 l) / (4 m lambda)",
    "destinations l",
    "E[T] m lambda",
)
def algebra(_: Rows) -> Finding:
    ls = [1, 2, 3, 4, 5, 8]
    printed = [printed_factor(n) for n in ls]
    readings, lines = [], [Series("as printed", ls, printed, paper=True)]
    for words, factor, why in (
        ("the two terms that the paper keeps", series_factor, "the second term's sign is lost"),
        ("exact", exact_factor, "the two kept terms are no approximation from l = 3 on; H_l grows like log l"),
    ):
        follows = [factor(n) for n in ls]
        shown = ", ".join(f"l = {n}: {a:g} / {b:.4g}" for n, a, b in zip(ls, printed, follows, strict=True))
        holds = all(abs(a - b) <= 0.01 * a for a, b in zip(printed, follows, strict=True))
        readings.append(read_as(words, f"E[T] m lambda as printed / as it follows: {shown}", holds, 0, why=why))
        lines.append(Series(words, ls, follows))
    return found(*readings, series=lines)


@claim(
    "The delay is in a logarithmic relation to the number of destinations l",
    "Section V.C",
    "a logarithmic relation among the delay, k, l and m",
    "destinations l",
    "E[T] m lambda",
    fails_if="destinations are sought one after the other",
)
def logarithmic(_: Rows) -> Finding:
    readings = []
    for words, factor in (("as printed, equation 2", printed_factor), ("exact, from equation 1", exact_factor)):
        steps = [factor(2 * n) - factor(n) for n in (4, 8, 16)]
        holds = max(steps) <= 1.1 * min(steps)
        text = "E[T] m lambda grows by " + ", ".join(f"{step:.2f}" for step in steps) + " from l = 4 to 8, 16, 32"
        why = "a logarithm grows by the same amount with each doubling; this is a square"
        readings.append(read_as(words, text, holds, 0, why=why))
    return found(*readings)


@claim(
    "The time until two regions meet is that of equation 2, within a fifth",
    "Section V.C",
    "1 / lambda = 0.5 N (0.34 log N - 2 + alpha / (2 alpha - 1))",
    "brokers k",
    "steps until two walks meet",
    fails_if="walkers stand still half of the time",
)
def meeting(rows: Rows) -> Finding:
    walked = curve(rows["walks"], "brokers", "steps")
    grid = rows["walks"][0]["grid"]
    readings, lines = [], [walked.series("walked")]
    for words, formula in (
        ("as printed", printed_meeting_time),
        ("with 2^alpha in place of 2 alpha, as in its reference [9]", meeting_time),
    ):
        expected = [formula(reach(k, grid), grid) for k in walked.x]
        near = every(
            within(steps, steps_expected / 1.2, steps_expected / 0.8)
            for steps_expected, steps in zip(expected, walked.estimates, strict=True)
        )
        by_k = ", ".join(f"{k:g}: {steps_expected:.0f}" for k, steps_expected in zip(walked.x, expected, strict=True))
        text = f"N = {grid} (by k) {by_k} steps; random walks on a torus {walked:.0f}"
        why = "an exponent of the reference has become a factor" if words == "as printed" else "it is an approximation"
        readings.append(read_as(words, text, near, rows["walks"], why))
        lines.append(Series(words, walked.x, expected, paper=True))
    return found(*readings, series=lines)


@claim(
    "Equation 2 gives the number of brokers for a wanted delay: from k = 10 to 30 the delay changes by at least 10 %",
    "Section V.C",
    "given a requested delay, we can derive a proper value of k",
    fails_if="brokers communicate over any distance",
)
def brokers_for_a_delay(_: Rows) -> Finding:
    readings = []
    for words, formula in (("as printed", printed_delay), ("exact, with the reference's term", exact_delay)):
        delays = [formula(k, 4, 2, 400) for k in (10, 20, 30)]
        holds = delays[-1] >= 1.1 * delays[0]
        text = "l = 4, m = 2, N = 400: " + ", ".join(
            f"k = {k}: {delay:.0f}" for k, delay in zip((10, 20, 30), delays, strict=True)
        )
        why = "alpha / (2 alpha - 1) is near a half for every alpha of a few steps"
        readings.append(read_as(words, f"{text} steps", holds, 0, why=why))
    return found(*readings)


@claim(
    "The expected delay, with the measured rate of meetings, is within a factor of 2 of the measured one at every k, m",
    "Section V.C, equations 1 and 2",
    "meetings are independent, identical and exponential",
    "brokers k",
    "s until all l destinations have the event",
    fails_if="every broker reaches every other at once",
)
def expected_delay(rows: Rows) -> Finding:
    group = [row for row in rows["delay"] if row["destinations_s"]]
    reached = mean_of(group, "destinations_reached")
    readings, series = [], [line_of(rows_at(group, copies=2), "brokers", "destinations_s").series("measured")]
    for column, name in (("exact_s", "exact, from equation 1"), ("printed_s", "as printed, equation 2")):
        ratios = {
            point: estimate(row[column] / row["destinations_s"] for row in runs)
            for point, runs in grouped(group, "copies", "brokers").items()
        }
        near = every(within(ratio, 0.5, 2.0) for ratio in ratios.values())
        by_point = "; ".join(
            f"m = {m} (by k) " + ", ".join(f"{k}: {ratio.mean:.2f}" for (of, k), ratio in ratios.items() if of == m)
            for m in sorted({m for m, _ in ratios})
        )
        at = rows_at(group, copies=2)
        expected, took, met = (line_of(at, "brokers", name) for name in (column, "destinations_s", "meeting_s"))
        measured = (
            f"expected over measured: {by_point}; at m = 2 (by k): expected {expected:.1f} s, measured {took:.1f} s; "
            f"1 / lambda {met:.1f} s; all l destinations are reached for {reached.mean:.0%} of subscribers"
        )
        why = (
            "neighbouring regions communicate at once and distant ones not for a long time, and destinations that are "
            "not reached within an event's life are not in the measured mean"
        )
        readings.append(read_as(name, measured, near, group, why))
        series.append(expected.series(name))
    return found(*readings, series=series)


REACHED = {"destinations_s": "time until all l destinations have the event, of those that all get it"}
_UNREACHED = "destinations that were never reached are not in it"


@claim(
    "The time until all destinations have an event falls with m, rises with k, and rises with l",
    "Section V.C",
    "decreasing with more copies, fewer brokers and fewer destinations",
    "destinations l",
    fails_if="every broker reaches every other at once",
)
def time_to_all(rows: Rows) -> Finding:
    by_l = _by_nearest(rows)
    parts = [
        ("m", trend(rows["delay"], "copies", "brokers", REACHED, -1, _UNREACHED).readings[0]),
        ("k", trend(rows["delay"], "brokers", "copies", REACHED, 1, _UNREACHED).readings[0]),
        ("l alone (k = 20, m = 2)", trend(by_l, "nearest", "brokers", REACHED, 1, _UNREACHED).readings[0]),
    ]
    readings = [replace(part, reading=f"with {name}") for name, part in parts]
    return found(
        all_hold("all three", readings),
        *readings,
        series=[line_of(by_l, "nearest", "destinations_s").series("k = 20, m = 2")],
    )


def _by_nearest(rows: Rows) -> list[Row]:
    """Runs that differ in l alone, not in their length: a short run misses the late deliveries."""
    runs = rows_at([*rows["nearest"], *rows["coverage"], *rows["delay"]], brokers=20, copies=2)
    return rows_at(runs, units=min(row["units"] for row in rows["nearest"]))


@claim(
    "The larger l is, the more likely a subscriber receives its events",
    "Section V.C",
    "the reasonably larger l is, the more likely it will be",
    "destinations l",
    "delivery ratio",
    fails_if="events go to a subscriber's nearest broker only",
)
def more_destinations(rows: Rows) -> Finding:
    by_l, readings = _by_nearest(rows), []
    for name, runs in (
        ("every l, up to 7; k = 20, m = 2", by_l),
        ("l up to 5, the most that the figures have", [row for row in by_l if row["nearest"] <= 5]),
    ):
        line, cost = curve(runs, "nearest", "delivery_ratio"), curve(runs, "nearest", "cost")
        measured = f"delivered, by l {line:.3f}; transmissions an event {cost:.0f}; {units_of(runs)}"
        at = list(grouped(runs, "nearest").values())
        more = difference_to(at[-1], at[0], "delivery_ratio", "seed")
        steps = (difference_to(b, a, "delivery_ratio", "seed") for a, b in pairwise(at))
        rises = every([above(more, 0.0), *(at_least(step, -0.01) for step in steps)])
        why = "destinations beyond the first few are seldom reached, and the copies for them load the channel"
        readings.append(read_as(name, measured, rises, runs, why))
    return found(*readings, series=[curve(by_l, "nearest", "delivery_ratio").series("delivery ratio")])
