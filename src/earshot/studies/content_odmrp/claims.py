"""Section IV's claims: the extension beside plain ODMRP (figures 6 to 8), the cost of conversion, and mobility (figures
10 to 12). `structure_claims` has the other sections'.

Each claim states how it reads words such as "about", "the same" or "constant". The first reading of a claim is of
the protocol as written (`PAPER`); our defaults and other readings of the words stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean

from earshot.studies.figures import (
    Compared,
    Curve,
    Estimate,
    Line,
    Row,
    Series,
    above,
    always,
    at_least,
    at_most,
    below,
    curve,
    difference_to,
    estimate,
    every,
    fit_line,
    grouped,
    mean_of,
    ratio_of_means,
    rows_at,
    spread,
    within,
)
from earshot.studies.study import ClaimReading, Claims, Finding, Rows, found, read_as

WRITTEN = "as written, the smallest group"
LEAST = "least constrained as one group for the type"
OURS = "our defaults"
THREE_WAYS = (("as written", WRITTEN), ("least constrained", LEAST), ("ours", OURS))


CLAIMS = Claims()
claim = CLAIMS.claim
figure_7 = partial(CLAIMS.claim, where="figure 7")

RECEIVERS = ("R1", "R2", "R3", "R4", "R5")


def _lines(rows: Sequence[Row], by: str, x: str, y: str) -> dict[str, Curve]:
    return {str(key[0]): curve(group, x, y) for key, group in grouped(rows, by).items()}


@claim(
    "Brokers 1, 2 and 4 get exactly their messages, 3 and 5 none",
    "section IV.A",
    "3 matching brokers among 5",
    fails_if="a broker delivers what its summary lets pass, without the exact filter",
)
def exactly(rows: Rows) -> Finding:
    def reading(system: str, words: str) -> ClaimReading:
        group = rows_at(rows["traffic"], system=system)
        got = {row["broker"]: row["delivered"] for row in group if row["broker"] in RECEIVERS}
        wanted = {row["broker"]: row["expected"] for row in group if row["broker"] in RECEIVERS}
        exact = got == wanted and all(row["precision"] == 1.0 for row in group)
        return ClaimReading(words, ", ".join(f"{name} {count}" for name, count in got.items()), exact, seeds=0)

    plain = (("one channel", "ODMRP, one channel"), ("N channels", "ODMRP, N channels"))
    return found(*(reading(*way) for way in (*THREE_WAYS, *plain)))


def _bytes_in(rows: Rows, system: str, brokers: Sequence[str] = RECEIVERS) -> list[float]:
    """What came in at each of these brokers."""
    return [row["bytes_in"] for row in rows_at(rows["traffic"], system=system) if row["broker"] in brokers]


def _all_brokers(rows: Rows) -> list[str]:
    return [row["broker"] for row in rows_at(rows["traffic"], system="one channel")]


@figure_7(
    "One channel costs twice what the others cost",
    paper="twice more network traffic than the others (taken as 1.5 to 2.5)",
    x_label="broker",
    y_label="bytes in",
    fails_if="forwarding nodes pass on data of groups for which they have no flag",
)
def twice(rows: Rows) -> Finding:
    def reading(system: str, words: str, brokers: Sequence[str] = RECEIVERS) -> ClaimReading:
        single, extended, many = (sum(_bytes_in(rows, name, brokers)) for name in ("one channel", system, "N channels"))
        holds = 1.5 <= single / extended <= 2.5 and 1.5 <= single / many <= 2.5
        measured = f"one channel over the extension {single / extended:.2f}, over N channels {single / many:.2f}"
        return ClaimReading(words, measured, holds, seeds=0)

    shown = ("as written", "one channel", "N channels")
    return found(
        *(reading(*way) for way in THREE_WAYS),
        reading("as written", "as written, at all 11 nodes", _all_brokers(rows)),
        series=[Series(system, list(range(1, 6)), _bytes_in(rows, system)) for system in shown],
    )


@figure_7(
    "The extension costs what predefined channels cost",
    paper="comparable to the predefined channels (taken as within a quarter)",
    fails_if="events go to one group for the whole type",
)
def comparable(rows: Rows) -> Finding:
    def reading(system: str, words: str) -> ClaimReading:
        ratio = sum(_bytes_in(rows, system)) / sum(_bytes_in(rows, "N channels"))
        return ClaimReading(words, f"extension over N channels {ratio:.3f}", abs(ratio - 1) <= 0.25, seeds=0)

    return found(*(reading(*way) for way in THREE_WAYS))


@figure_7(
    "Brokers that want nothing still take in a high volume of control packets",
    paper="in words (taken as at least a fifth of a matched broker's)",
    fails_if="Join Requests go only to brokers that have joined",
)
def unmatched(rows: Rows) -> Finding:
    def reading(system: str, words: str) -> ClaimReading:
        heard = {row["broker"]: row["bytes_in"] for row in rows_at(rows["traffic"], system=system)}
        matched = (heard["R1"] + heard["R2"] + heard["R4"]) / 3
        share = {name: heard[name] / matched for name in ("R3", "R5")}
        measured = f"of a matched broker's bytes, broker 3 {share['R3']:.0%}, broker 5 {share['R5']:.0%}"
        return ClaimReading(words, measured, min(share.values()) >= 0.2, seeds=0)

    return found(*(reading(*way) for way in THREE_WAYS))


def _gains(rows: Sequence[Row], system: str) -> dict[float, Estimate]:
    """By interval: how many more messages per second than one channel, over the same seeds."""
    gains = {}
    for (interval_s,), group in grouped(rows, "interval_s").items():
        single = {row["seed"]: row["throughput_per_s"] for row in rows_at(group, system="one channel")}
        gains[interval_s] = estimate(
            row["throughput_per_s"] - single[row["seed"]] for row in rows_at(group, system=system)
        )
    return gains


@claim(
    "Beyond the conversion overhead the extension improves throughput over one channel",
    "figure 6",
    "in words and a figure without numbers (taken as significantly more messages per second for at least one "
    "interval, significantly fewer for none)",
    x_label="interval, s",
    y_label="messages per second",
    log_x=True,
    fails_if="the extension's Join Tables are lost: after five requests its source sends only at each refresh",
)
def keeps_up(rows: Rows) -> Finding:
    five = rows_at(rows["throughput"], subscribers=5)
    lines = _lines(five, "system", "interval_s", "throughput_per_s")

    def reading(system: str, words: str) -> ClaimReading:
        gains = _gains(five, system)
        better = [interval_s for interval_s, gain in gains.items() if gain.low > 0]
        worse = [interval_s for interval_s, gain in gains.items() if gain.high < 0]
        # No interval with surely fewer, and the one with the surest gain has surely more.
        none_fewer = [Compared(False, gains[interval_s].interval, 0.0) for interval_s in worse]
        surest = max(gains.values(), key=lambda gain: gain.low)
        listed = ", ".join(f"{interval_s:g} s: {gain}" for interval_s, gain in gains.items())
        fewer, more = (", ".join(f"{at_s:g} s" for at_s in of) or "no interval" for of in (worse, better))
        why = (
            f"significantly fewer at {fewer}, more at {more}; Join Tables that collide cost routes. "
            "Processor time is not billed here; row 7 measures it apart"
        )
        improves = every([above(surest, 0.0, surely=True), *none_fewer])
        return read_as(words, f"more messages per second than one channel: {listed}", improves, surest.count, why)

    return found(
        reading("as written", "broadcast Join Tables on both sides"),
        reading("least constrained", LEAST),
        reading("acknowledged", "the extension's Join Tables acknowledged"),
        reading("ours, acknowledged", "our defaults, acknowledged Join Tables"),
        series=[line.series(system) for system, line in lines.items()],
    )


@claim(
    "The extension's throughput is that of predefined channels",
    "figures 6 and 7",
    "comparable throughput to the pre-defined channel based multicast (taken as within a quarter)",
    fails_if="the extension's Join Tables are lost: after five requests its source sends only at each refresh",
)
def as_channels(rows: Rows) -> Finding:
    five, readings = rows_at(rows["throughput"], subscribers=5), []
    for interval_s in sorted({row["interval_s"] for row in five}, reverse=True):
        sent = rows_at(five, interval_s=interval_s)
        written, many = (rows_at(sent, system=system) for system in ("as written", "N channels"))
        over = ratio_of_means(written, many, "throughput_per_s", "seed")
        means = [mean_of(group, "throughput_per_s").mean for group in (written, many)]
        measured = f"extension {means[0]:.3g}, N channels {means[1]:.3g} messages per second: {over.mean:.2f} times"
        why = "Join Tables that collide cost routes" if over.mean < 1 else "at this rate N channels deliver even less"
        name = f"as written, a message each {interval_s:g} s"
        readings.append(read_as(name, measured, within(over, 0.75, 1.25), over.count, why))
    return found(*readings)


@claim(
    "ODMRP with one channel suffers from matching at every broker",
    "figure 6",
    "in words (taken as more processor time for a message, over all brokers, than with the extension)",
    fails_if="with one channel brokers deliver every message and match none",
)
def matching_costs(rows: Rows) -> Finding:
    """One channel: each broker matches each message. The extension: the source converts it and compares it with every
    broker's summary, and the brokers whose summary it passes match it. Subscriptions are converted once, before."""

    def reading(words: str, *steps: str) -> ClaimReading:
        times = []
        for row in rows["matching"]:
            one = math.fsum(row[step] for step in steps)
            extension = row["converting_us"] + row["comparing_us"] + row["passed"] * one
            times.append({**row, "one_channel": row["brokers"] * one, "extension": extension})
        means = [mean_of(times, column) for column in ("one_channel", "extension")]
        over = estimate(
            math.fsum(row["one_channel"] for row in group) / math.fsum(row["extension"] for row in group)
            for group in grouped(times, "seed").values()
        )
        passed, brokers = (mean_of(times, column).mean for column in ("passed", "brokers"))
        measured = (
            f"for a message one channel takes {means[0].mean:.3g} us of {brokers:g} brokers, the extension "
            f"{means[1].mean:.3g} us: {over.mean:.2f} times; it passes the summary of {passed:.3g}"
        )
        why = "converting a message takes longer than the matches that it saves"
        return read_as(words, measured, above(over, 1.0), times, why)

    return found(
        reading("each broker that gets a message reads it as XML and matches it", "reading_us", "matching_us"),
        reading("each broker that gets a message has it as a tree and matches it", "matching_us"),
    )


@claim(
    "Throughput stays the same over the number of subscribers, in spite of more traffic",
    "figure 8",
    "in words (taken as within 5 %, with at least a fifth more bytes)",
    x_label="subscribers",
    y_label="messages per second",
    fails_if="each subscriber gets a copy of its own",
)
def same_throughput(rows: Rows) -> Finding:
    many = rows_at(rows["throughput"], system="as written", interval_s=0.5)
    line = curve(many, "subscribers", "throughput_per_s")
    lowest, highest, fewest, most = (
        rows_at(many, subscribers=x) for x in (line.lowest_at, line.highest_at, line.x[0], line.x[-1])
    )
    same = at_least(ratio_of_means(lowest, highest, "throughput_per_s", "seed"), 0.95)
    grows = ratio_of_means(most, fewest, "bytes_in", "seed")
    measured = f"messages per second by subscribers: {line:.3g}; bytes in grow {grows.mean:.1f} times"
    why = "more brokers answer each request at once, and their Join Tables collide"
    reading = read_as(WRITTEN, measured, every([same, above(grows, 1.2)]), many, why)
    return found(reading, series=[line.series("as written")])


@claim(
    "Conversion takes constant time up to 200 nested elements",
    "section IV.A",
    "constant (taken as at most half more at 200 than at 10)",
    x_label="nested elements",
    y_label="microseconds",
    fails_if="a subscription's path is expanded by the schema's elements",
)
def conversion_is_constant(rows: Rows) -> Finding:
    def reading(what: str, column: str, x: str = "elements", last: int = 200) -> ClaimReading:
        line = curve(rows["conversion"], x, column)
        many, few = (rows_at(rows["conversion"], **{x: count}) for count in (last, 10))
        over = ratio_of_means(many, few, column, "seed")
        growth = over.mean
        fit = fit_line([row[x] for row in rows["conversion"]], [float(row[column]) for row in rows["conversion"]])
        measured = f"microseconds {line.at(10, last):.3g}: {growth:.2f} times; each one adds {fit.slope:.2f}"
        power = math.log(growth) / math.log(last / 10)
        why = "each is read once" if power <= 1.2 else f"it grows as their number to the power of {power:.1f}"
        return read_as(what, measured, at_most(over, 1.5), rows["conversion"], why)

    columns = ("event_us", "innermost_us", "terms_us")
    return found(
        reading("an event of n nested elements", "event_us"),
        reading("a subscription to the innermost element", "innermost_us"),
        reading("a subscription of n terms", "terms_us"),
        reading("a subscription of n nested steps, at most 30", "steps_us", "steps", 30),
        series=[curve(rows["conversion"], "elements", column).series(column) for column in columns],
    )


@claim(
    "Comparing an event with the aggregated subscriptions is a fraction of converting them",
    "section IV.A",
    "a fraction, since it compares simple bit sets (taken as a quarter)",
    fails_if="the comparison converts the subscriptions again",
)
def fraction(rows: Rows) -> Finding:
    share = estimate(row["comparison_us"] / (row["event_us"] + row["innermost_us"]) for row in rows["conversion"])
    measured = f"comparing a digest with a summary takes {share} of converting both"
    less = below(share, 0.25, surely=True)
    return found(read_as("a summary of one subscription", measured, less, rows["conversion"]))


speed_claim = partial(CLAIMS.claim, x_label="seconds per move", log_x=True)


FAST, MIDDLE = (0.1, 0.2), (1.0, 2.0, 5.0)
FLAPPING = {
    "flapping": "figure 9A, as described",
    "flapping mesh": "a second receiver, so that both nodes forward from the start",
}
"The second experiment's world, and how it is read."


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
    return found(
        read_as(
            "after start-up, fast against middle",
            f"delivery ratio {late:.3g}; middle less fast {gap}",
            every([Compared(gap.count > 1), above(gap, 0.0, surely=True)]),
            gap.count,
            reason,
        ),
        read_as(
            "start-up included, all speeds",
            f"delivery ratio {whole:.3g}; ten times slower: {fit:+.3f}",
            above(fit, 0.0, surely=True),
            gap.count,
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
        why = "what is sent between a break and the first request by the other route is lost"
        return read_as(words, f"delivery ratio {line:.3g}", always(line, 1.0), line.lowest.count, why)

    lines = [curve(_extended(rows, world), "step_s", "delivery_ratio").series(world) for world in FLAPPING]
    return found(*(reading(*way) for way in FLAPPING.items()), series=lines)


@speed_claim(
    "Link 3 flapping: the faster, the more often the mesh's other route is used",
    "figure 12",
    "in words and a figure without numbers (taken as a tenth more at the fastest than at 10 s per move)",
    y_label="share by the longer route",
    fails_if="the link is down for a fixed time, however fast it flaps",
)
def mesh_used(rows: Rows) -> Finding:
    def reading(world: str, words: str) -> ClaimReading:
        runs = _extended(rows, world)
        line = curve(runs, "step_s", "share_of_detours")
        fast, slow = (rows_at(runs, step_s=step_s) for step_s in (min(line.x), 10.0))
        more = difference_to(fast, slow, "share_of_detours", "seed", times=1.1)
        reason = "the link is down half of the time at every speed: how fast it flaps changes little"
        return read_as(words, f"share by the longer route {line:.3g}", above(more, 0.0), more.count, reason)

    return found(*(reading(*way) for way in FLAPPING.items()))


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
        runs, parts, flat = _extended(rows, world), [], []
        for column, name in columns.items():
            line = curve(runs, "step_s", column)
            shares = [{**row, "share": row[column] / fmean(line.y)} for row in runs]
            apart = spread(shares, "step_s", "share", "seed")
            flat.append(at_most(apart, 0.05))
            parts.append(f"{name} {min(line.y):.3g} to {max(line.y):.3g} ({apart.mean:.1%})")
        reason = "where the other route must first be found, what is lost differs by speed"
        return read_as(words, "; ".join(parts), every(flat), runs, reason)

    return found(*(reading(*way) for way in FLAPPING.items()))


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
    name, measured = "share of the delivered messages, all speeds", f"{line:.3g}; ten times slower: {fit:+.3f}"
    fastest = line.at(min(line.x))
    return found(
        read_as(name, measured, below(fit, 0.0, surely=True), line.estimates[0].count),
        read_as(
            "rather than on data: more than half at the fastest",
            f"{fastest:.3g}",
            above(fastest, 0.5),
            fastest.lowest.count,
            "flags last 25 s, so that data still finds many of the places, and a source turns to requests only where "
            "no answer comes",
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
        return read_as(words, f"{shown:.3g}", None if within else False, shown.estimates[0].count, why=reason)

    return found(reading("all messages", line), reading("after start-up", late), series=[line.series("all messages")])
