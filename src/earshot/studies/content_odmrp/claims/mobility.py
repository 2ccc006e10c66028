"""Section IV.B: mobility and reliability, figures 10 to 12."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean

from earshot.studies.study import (
    ClaimReading,
    Claims,
    Curve,
    Estimate,
    Finding,
    Line,
    Row,
    Rows,
    curve,
    estimate,
    fit_line,
    found,
    grouped,
    rows_at,
)

CLAIMS = Claims()
claim = CLAIMS.claim
speed_claim = partial(CLAIMS.claim, x_label="seconds per move", log_x=True)


FAST, MIDDLE = (0.1, 0.2), (1.0, 2.0, 5.0)


def _extended(rows: Rows, world: str) -> list[Row]:
    return rows_at(rows["moving"], world=world, system="as written")


def _over_speed(rows: Sequence[Row], what: str) -> Line:
    """How much it changes when a move takes ten times as long."""
    known = [row for row in rows if row[what] is not None]
    return fit_line([math.log10(row["step_s"]) for row in known], [float(row[what]) for row in known])


def _gap(rows: Sequence[Row], what: str) -> Estimate:
    """By seed: the mean at middle speeds less the mean at high ones."""
    gaps = []
    for group in grouped(rows, "seed").values():
        fast = [row[what] for row in group if row["step_s"] in FAST]
        middle = [row[what] for row in group if row["step_s"] in MIDDLE]
        if fast and middle:
            gaps.append(fmean(middle) - fmean(fast))
    return estimate(gaps)


@speed_claim(
    "Links 1 and 2 alternating: messages are lost when the receiver moves fast",
    "figure 10",
    "in words and a figure without numbers (taken as significantly fewer at 0.1 and 0.2 s per move than at 1 to 5 s)",
    y_label="delivery ratio",
    fails_if="an event that no link carries is kept and sent again",
)
def falls_with_speed(rows: Rows) -> Finding:
    alternating = _extended(rows, "alternating")
    late, whole = (curve(alternating, "step_s", column) for column in ("later_ratio", "delivery_ratio"))
    gap, fit = _gap(alternating, "later_ratio"), _over_speed(alternating, "delivery_ratio")
    reason = "once both forwarding nodes have carried a Join Table, either link works at any speed"
    falls = gap.count > 1 and gap.low > 0
    return found(
        ClaimReading(
            "after start-up, fast against middle",
            f"delivery ratio {late:.3g}; middle less fast {gap}",
            falls,
            gap.count,
            gap.interval,
            "" if falls else reason,
        ),
        ClaimReading(
            "start-up included, all speeds",
            f"delivery ratio {whole:.3g}; ten times slower: {fit:+.3f}",
            fit.low > 0,
            gap.count,
            (fit.low, fit.high),
        ),
        series=[late.series("after start-up"), whole.series("whole run")],
    )


@claim("5 m in 500 ms is 9 km/h, twice walking speed", "section IV.B", "9 km/h")
def kilometres_an_hour(_: Rows) -> Finding:
    speed = 5 / 0.5 * 3.6
    reason = "a mistake in the text: 9 km/h would be 2 s per move"
    return found(ClaimReading("arithmetic", f"{speed:g} km/h", speed == 9, seeds=0, reason=reason))


@speed_claim(
    "Link 3 flapping: the mesh delivers 100 % at every speed",
    "figure 12",
    "100 %",
    y_label="delivery ratio",
    fails_if="flags expire as soon as another route is offered",
)
def mesh(rows: Rows) -> Finding:
    def reading(world: str, words: str) -> ClaimReading:
        line = curve(_extended(rows, world), "step_s", "delivery_ratio")
        worst = min(line.estimates, key=lambda one: one.mean)
        reason = "what is sent between a break and the first request by the other route is lost"
        holds = worst.mean == 1.0
        measured = f"delivery ratio {line:.3g}"
        return ClaimReading(words, measured, holds, worst.count, worst.interval, "" if holds else reason)

    return found(
        reading("flapping", "figure 9A, as described"),
        reading("flapping mesh", "a second receiver, so that both nodes forward from the start"),
        series=[
            curve(_extended(rows, world), "step_s", "delivery_ratio").series(world)
            for world in ("flapping", "flapping mesh")
        ],
    )


@speed_claim(
    "Link 3 flapping: the faster, the more often the mesh's other route is used",
    "figure 12",
    "in words and a figure without numbers (taken as a tenth more at the fastest than at 10 s per move)",
    y_label="share by the longer route",
    fails_if="the link is down for a fixed time, however fast it flaps",
)
def mesh_used(rows: Rows) -> Finding:
    def reading(world: str, words: str) -> ClaimReading:
        line = curve(_extended(rows, world), "step_s", "share_of_detours")
        fast, slow = line.means[min(line.x)], line.means[10.0]
        holds = fast > 1.1 * slow
        reason = "the link is down half of the time at every speed: how fast it flaps changes little"
        measured = f"share by the longer route {line:.3g}"
        first = line.estimates[0]
        return ClaimReading(words, measured, holds, first.count, first.interval, "" if holds else reason)

    return found(
        reading("flapping", "figure 9A, as described"),
        reading("flapping mesh", "a second receiver, so that both nodes forward from the start"),
    )


@speed_claim(
    "Link 3 flapping: throughput, incoming packet size and number are constant",
    "section IV.B, experiment 2",
    "constant (taken as within 5 % over all speeds)",
    y_label="relative to the mean",
    fails_if="every break of a link causes a Join Request of its own",
)
def constants(rows: Rows) -> Finding:
    columns = {"throughput_per_s": "throughput", "packet_bytes": "packet size", "packets_in": "packets"}

    def reading(world: str, words: str) -> ClaimReading:
        parts, widest, seeds = [], 0.0, 0
        for column, name in columns.items():
            line = curve(_extended(rows, world), "step_s", column)
            spread = (max(line.y) - min(line.y)) / fmean(line.y)
            widest, seeds = max(widest, spread), line.estimates[0].count
            parts.append(f"{name} {min(line.y):.3g} to {max(line.y):.3g} ({spread:.0%})")
        holds = widest <= 0.05
        reason = "" if holds else "where the other route must first be found, what is lost differs by speed"
        return ClaimReading(words, "; ".join(parts), holds, seeds, reason=reason)

    return found(
        reading("flapping", "figure 9A, as described"),
        reading("flapping mesh", "a second receiver, so that both nodes forward from the start"),
    )


@speed_claim(
    "Walking past nodes 1 to 9: the faster, the more messages come on Join Requests",
    "figure 11",
    "in words and a figure without numbers",
    y_label="share on Join Requests",
    fails_if="Join Requests carry no events",
)
def on_requests(rows: Rows) -> Finding:
    walk = _extended(rows, "walking")
    line = curve(walk, "step_s", "share_on_requests")
    fit = _over_speed(walk, "share_on_requests")
    return found(
        ClaimReading(
            "share of the delivered messages, all speeds",
            f"{line:.3g}; ten times slower: {fit:+.3f}",
            fit.high < 0,
            line.estimates[0].count,
            (fit.low, fit.high),
        ),
        series=[line.series("on Join Requests")],
    )


@speed_claim(
    "Walking past nodes 1 to 9: delivery ratios",
    "figure 11",
    "0.82 (11A) and 0.93 (11B)",
    y_label="delivery ratio",
    fails_if="routes are never refreshed",
)
def two_ratios(rows: Rows) -> Finding:
    walk = _extended(rows, "walking")
    line, late = (curve(walk, "step_s", column) for column in ("delivery_ratio", "later_ratio"))

    def reading(words: str, shown: Curve) -> ClaimReading:
        within = min(shown.y) <= 0.82 and max(shown.y) >= 0.93
        reason = "the paper does not state its two speeds; " + (
            "both figures occur among the speeds tried" if within else "the speeds tried do not reach both figures"
        )
        return ClaimReading(words, f"{shown:.3g}", None if within else False, shown.estimates[0].count, reason=reason)

    return found(reading("all messages", line), reading("after start-up", late), series=[line.series("all messages")])
