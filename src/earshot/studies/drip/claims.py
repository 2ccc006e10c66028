"""What DRIP's rows say about the paper's claims, under several readings.

"Grows", "falls" and "rises" are judged on means over seeds, from one value of the parameter to the next, with a
tolerance of 5 %: a curve may stay level for a step but must have moved at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
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
from earshot.studies.figures import Curve, Estimate, Row, Series, curve, estimate, grouped, mean_of, ratio_to, rows_at
from earshot.studies.study import ClaimReading, Claims, Finding, Rows, all_hold, found, not_measurable, read_as

CLAIMS = Claims()
claim = CLAIMS.claim
figure_3a = partial(CLAIMS.claim, where="Figure 3(a), l = 4", y_label="brokers that had the event / k")
figure_3b = partial(CLAIMS.claim, where="Figure 3(b), l = 5", y_label="delay, s")
beyond_the_paper = partial(CLAIMS.claim, paper="not in the paper")

LEVEL = 0.05
"A step against the direction by at most this share counts as level."
SYMBOLS = {"brokers": "k", "copies": "m", "nearest": "l"}
NAMES = {"drip": "DRIP", "drip-sf": "SF"}
DELAYS = {"delay_s": "mean delay of what arrived", "delay_p50_s": "median delay of what arrived"}


def _direction(values: Sequence[float]) -> int:
    """1 where the values rise, -1 where they fall, 0 where they do neither."""
    for sign in (1, -1):
        no_step_back = all(sign * (b - a) >= -LEVEL * abs(a) for a, b in pairwise(values))
        if no_step_back and sign * (values[-1] - values[0]) > LEVEL * abs(values[0]):
            return sign
    return 0


def _units(rows: Sequence[Row]) -> str:
    return f"{min(row['units'] for row in rows)} units"


def _line(rows: Sequence[Row], x: str, y: str) -> Curve:
    return curve([row for row in rows if row[y] is not None], x, y)


def _trend(rows: Sequence[Row], x: str, lines: str, columns: dict[str, str], sign: int, why: str) -> Finding:
    """Whether y moves in one direction over x on each of the lines, for each column."""
    readings, series = [], []
    for place, (y, name) in enumerate(columns.items()):
        measured, right, last = [], [], estimate([])
        for (value,), group in grouped(rows, lines).items():
            line, label = _line(group, x, y), f"{SYMBOLS[lines]} = {value:g}"
            right.append(_direction(line.y) == sign)
            measured.append(f"{label} (by {SYMBOLS[x]}) {line:.2f}")
            last = line.estimates[-1]
            if place == 0:
                series.append(line.series(label))
        text = f"{'; '.join(measured)}, {_units(rows)}"
        readings.append(read_as(name, text, all(right), rows, last, f"{sum(right)} of {len(right)} lines do; {why}"))
    return found(*readings, series=series)


COVERAGE = {"coverage": "brokers that had held the event when a subscriber got it, over k"}
_COVERED = "a few subscribers name many brokers as destinations, and the m carriers add little to them"


@figure_3a(
    "Broker coverage grows with the number of copies m",
    paper="as m increases, broker coverage is growing too",
    x_label="copies m",
    fails_if="the source broker hands the event to destinations only, and to no carriers",
)
def coverage_by_copies(rows: Rows) -> Finding:
    return _trend(rows["coverage"], "copies", "brokers", COVERAGE, 1, _COVERED)


@figure_3a(
    "Broker coverage falls with the number of brokers k",
    paper="m and l fixed and k growing, the broker coverage is generally reduced",
    x_label="brokers k",
    fails_if="events go to every broker, as in SF",
)
def coverage_by_brokers(rows: Rows) -> Finding:
    return _trend(rows["coverage"], "brokers", "copies", COVERAGE, -1, _COVERED)


@claim(
    "Even in the worst case at most m + l brokers have a copy of an event when its subscriber gets it",
    "Section VI.B.1",
    "only m + l brokers are required to have a copy",
    fails_if="events go to every broker, as in SF",
)
def few_copies(rows: Rows) -> Finding:
    why = "about four subscribers want an event, and each of them has its own l brokers; hardly any event has one only"
    readings = [_held("all events, the l brokers of each subscriber; the source broker counts", rows["coverage"], why)]
    if common := rows_at(rows["settings"], variant="common destinations", protocol="drip", selection="ability"):
        words = "all events, the l brokers that most of an event's subscribers name; the source broker counts"
        readings.append(_held(words, common, "a subscriber has moved and names other brokers"))
    return found(*readings)


def _held(name: str, rows: Sequence[Row], why: str) -> ClaimReading:
    more, mean = mean_of(rows, "held_more"), mean_of(rows, "held")
    measured = (
        f"more than m + l at {more.mean:.1%} of the deliveries; {mean.mean:.1f} brokers on average, at most "
        f"{max(row['held_most'] for row in rows)}; {_units(rows)}"
    )
    return read_as(name, measured, more.mean == 0, rows, more, why)


LOST = {"lost": "share of the expected deliveries that is lost"}


COST = {
    "cost": "transmissions with events, for each event",
    "held": "brokers that held the event when a subscriber got it: memory",
}


@figure_3a(
    "More copies make delivery more likely",
    paper="we can raise the possibility of delivering matching events to their subscribers by enlarging m",
    fails_if="the source broker hands the event to destinations only, and to no carriers",
)
def copies_deliver(rows: Rows) -> Finding:
    runs = [{**row, "lost": 1 - row["delivery_ratio"]} for row in rows["coverage"]]
    return _trend(runs, "copies", "brokers", LOST, -1, "where few events are lost, more copies save few")


@figure_3a(
    "More copies need more transmission and memory",
    paper="more network transmission and memory is required",
    fails_if="the source broker hands the event to destinations only, and to no carriers",
)
def copies_cost(rows: Rows) -> Finding:
    why = "destinations, not carriers, take most of the copies"
    found_each = _trend(rows["coverage"], "copies", "brokers", COST, 1, why)
    return found(all_hold("both", found_each.readings), *found_each.readings, series=found_each.series)


@figure_3b(
    "Delivery delay falls with m",
    paper="for a fixed k, delivery delay decreases as m is increasing",
    x_label="copies m",
    fails_if="carriers keep their copies for themselves",
)
def delay_by_copies(rows: Rows) -> Finding:
    why = "more copies find a destination earlier, but they also load the channel and the one contact at a time"
    return _trend(rows["delay"], "copies", "brokers", DELAYS, -1, why)


@figure_3b(
    "Delivery delay rises with k",
    paper="when m is fixed, delivery delay goes up with k",
    x_label="brokers k",
    fails_if="every broker reaches every other at once",
)
def delay_by_brokers(rows: Rows) -> Finding:
    return _trend(rows["delay"], "brokers", "copies", DELAYS, 1, "smaller regions also make routes shorter")


def _compared(rows: Sequence[Row], others: Sequence[Row], names: tuple[str, str], y: str) -> tuple[str, bool, Estimate]:
    """Whether y is lower in the first rows, at every k; in words, and the ratio seed by seed."""
    line, other = _line(rows, "brokers", y), _line(others, "brokers", y)
    shared = [k for k in line.means if k in other.means]
    measured = f"(by k) {names[0]} {line:.2f}, {names[1]} {other:.2f}"
    lower = bool(shared) and all(line.means[k] < other.means[k] for k in shared)
    return measured, lower, ratio_to(rows, others, y, "brokers", "seed")


_LATE = (
    "an epidemic uses every contact and so finds every path that a copy could take; it costs time only where its "
    "copies fill the channel or the contacts"
)


@figure_3b(
    "DRIP's delay is below that of the epidemic SF",
    paper="our scheme costs less time than the SF scheme",
    x_label="brokers k",
    fails_if="every broker reaches every other at once",
)
def below_epidemic(rows: Rows) -> Finding:
    readings, lines = [], [_line(rows["epidemic"], "brokers", "delay_s").series("SF")]
    by_copies = grouped(rows["delay"], "copies")
    for y, name in DELAYS.items():
        parts, lower_everywhere = [], True
        for (m,), group in by_copies.items():
            measured, lower, ratio = _compared(group, rows["epidemic"], ("DRIP", "SF"), y)
            parts.append(f"m = {m} {measured}, {ratio.mean:.2f} times SF's")
            lower_everywhere &= lower
            if y == "delay_s":
                lines.append(_line(group, "brokers", y).series(f"DRIP, m = {m}"))
        over = ratio_to(rows["delay"], rows["epidemic"], y, "brokers", "seed")
        text = f"{'; '.join(parts)}; {_units(rows['delay'])}"
        readings.append(read_as(f"{name}, at every m", text, lower_everywhere, rows["delay"], over, _LATE))
    for (rate,), group in grouped(rows["load"], "rate").items():
        drip, epidemic = (rows_at(group, protocol=protocol) for protocol in NAMES)
        measured, lower, ratio = _compared(drip, epidemic, ("DRIP", "SF"), "delay_s")
        arrived = [mean_of(group, "delivery_ratio").mean for group in (drip, epidemic)]
        text = f"{measured}; delivered {arrived[0]:.2f} and {arrived[1]:.2f}, {_units(group)}"
        readings.append(read_as(f"mean delay at {rate:g} events a second", text, lower, group, ratio, _LATE))
    return found(*readings, series=lines)


@claim(
    "DRIP needs less transmission than the epidemic SF",
    "Sections V.B.2 and VI.B.1",
    "sending only matched events to interested brokers reduces network throughput",
    fails_if="events go to every broker, as in SF",
)
def cheaper(rows: Rows) -> Finding:
    group = rows_at(rows["delay"], copies=2)
    measured, lower, ratio = _compared(group, rows["epidemic"], ("DRIP", "SF"), "cost")
    every, all_lower, all_ratio = _compared(group, rows["epidemic"], ("DRIP", "SF"), "transmissions_per_s")
    return found(
        read_as(
            "transmissions with events, for each event", f"{measured}; {ratio.mean:.2f} times", lower, group, ratio
        ),
        read_as(
            "all transmissions a second",
            f"{every}; {all_ratio.mean:.2f} times",
            all_lower,
            group,
            all_ratio,
            "not at every k: announcements and registrations, which both have, are most of them where SF's copies are "
            "few, and SF shares no subscriptions",
        ),
    )


@claim(
    "Only a subset of the brokers has an event, where SF gives it to all",
    "Section VI.B.2",
    "SF needs to deliver every single event to all brokers, DRIP to a subset",
    "brokers k",
    "brokers that had the event / k",
    fails_if="events go to every broker, as in SF",
)
def subset(rows: Rows) -> Finding:
    group = rows_at(rows["delay"], copies=2)
    measured, lower, ratio = _compared(group, rows["epidemic"], ("DRIP", "SF"), "coverage")
    text = f"{measured}; {ratio.mean:.2f} times, {_units(group)}"
    lines = [_line(group, "brokers", "coverage"), _line(rows["epidemic"], "brokers", "coverage")]
    return found(
        read_as("brokers that had held the event when a subscriber got it, over k; m = 2", text, lower, group, ratio),
        series=[lines[0].series("DRIP"), lines[1].series("SF")],
    )


@claim(
    "Subscription packets are smaller than events",
    "Section V.B.2",
    "compared to events, subscription packets are smaller; thus sharing them reduces network throughput",
    fails_if="a subscription names all k brokers",
)
def small_subscriptions(rows: Rows) -> Finding:
    readings = []
    for column, words in (
        ("packet_bytes", "packets from broker to broker: one subscriber with its l = 5 brokers, one event"),
        ("bare_bytes", "the condition and the event's content alone, as text"),
    ):
        asked, event = (mean_of(rows["packets"], column, what=what) for what in ("subscription", "event"))
        text = f"{asked.mean:.0f} bytes, an event {event.mean:.0f}"
        why = "an event of the number intervals is one number; a subscription has two, and names its l brokers"
        readings.append(read_as(words, text, asked.mean < event.mean, rows["packets"], asked, why))
    return found(*readings)


@claim(
    "Larger ability lets brokers delete unneeded events locally",
    "Section IV.A",
    "improves the possibility of deletion, which conserves memory and bandwidth",
)
def deletion(_: Rows) -> Finding:
    why = (
        "the paper states no size of a broker's memory; with the 0.8 events a second of section VI.A no reasonable "
        "memory is ever full, and an event that no known subscription wants is not sent under any choice of brokers"
    )
    return not_measurable("as stated", why)


@claim(
    "Brokers chosen by ability give less delay than brokers chosen at random",
    "Figure 4",
    "DRIP incurs less delivery delay",
    "brokers k",
    "delay, s",
    fails_if="brokers are chosen at random",
)
def selection(rows: Rows) -> Finding:
    group, readings = rows_at(rows["delay"], copies=2), []
    why = (
        "the route that is saved, from publisher to broker, is a few hops of milliseconds, in a delay of seconds that "
        "waits for brokers to meet"
    )
    for y, name in DELAYS.items():
        measured, lower, ratio = _compared(group, rows["selection"], ("by ability", "at random"), y)
        text = f"{measured}; {ratio.mean:.2f} times, {_units(group)}"
        readings.append(read_as(name, text, lower, group, ratio, why))
    lines = [_line(group, "brokers", "delay_s"), _line(rows["selection"], "brokers", "delay_s")]
    return found(*readings, series=[lines[0].series("by ability"), lines[1].series("at random")])


@claim(
    "Brokers chosen by ability need less transmission than brokers chosen at random",
    "Section IV.A",
    "assigning nodes with larger ability can reduce network throughput",
    fails_if="brokers are chosen at random",
)
def selection_cost(rows: Rows) -> Finding:
    group = rows_at(rows["delay"], copies=2)
    measured, lower, ratio = _compared(group, rows["selection"], ("by ability", "at random"), "cost")
    why = "most transmissions carry copies between brokers and floods in regions, which cost the same"
    text = f"{measured}; {ratio.mean:.2f} times"
    return found(read_as("transmissions with events, for each event", text, lower, group, ratio, why))


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
        holds = all(
            abs(steps_expected / steps - 1) <= 0.2 for steps_expected, steps in zip(expected, walked.y, strict=True)
        )
        by_k = ", ".join(f"{k:g}: {steps_expected:.0f}" for k, steps_expected in zip(walked.x, expected, strict=True))
        text = f"N = {grid} (by k) {by_k} steps; random walks on a torus {walked:.0f}"
        why = "an exponent of the reference has become a factor" if words == "as printed" else "it is an approximation"
        readings.append(read_as(words, text, holds, rows["walks"], walked.estimates[-1], why))
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
    "The expected delay, with the measured rate of meetings, is the measured one within a factor of 2",
    "Section V.C, equations 1 and 2",
    "meetings are independent, identical and exponential",
    "brokers k",
    "s until all l destinations have the event",
    fails_if="a pair of brokers counts while one of them is not a broker",
)
def expected_delay(rows: Rows) -> Finding:
    group = [row for row in rows["delay"] if row["destinations_s"]]
    reached = mean_of(group, "destinations_reached")
    readings, series = [], [_line(rows_at(group, copies=2), "brokers", "destinations_s").series("measured")]
    for column, name in (("exact_s", "exact, from equation 1"), ("printed_s", "as printed, equation 2")):
        ratio = estimate(row[column] / row["destinations_s"] for row in group)
        at = rows_at(group, copies=2)
        measured = (
            f"m = 2 (by k): expected {_line(at, 'brokers', column):.1f} s, measured "
            f"{_line(at, 'brokers', 'destinations_s'):.1f} s; 1 / lambda {_line(at, 'brokers', 'meeting_s'):.1f} s; "
            f"ratio over all m {ratio.mean:.2f}; all l destinations are reached for {reached.mean:.0%} of subscribers"
        )
        why = (
            "neighbouring regions communicate at once and distant ones not for a long time, and destinations that are "
            "not reached within an event's life are not in the measured mean"
        )
        readings.append(read_as(name, measured, 0.5 <= ratio.mean <= 2, group, ratio, why))
        series.append(_line(at, "brokers", column).series(name))
    return found(*readings, series=series)


REACHED = {"destinations_s": "time until all l destinations had the event, where they had"}
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
        ("m", _trend(rows["delay"], "copies", "brokers", REACHED, -1, _UNREACHED).all_readings[0]),
        ("k", _trend(rows["delay"], "brokers", "copies", REACHED, 1, _UNREACHED).all_readings[0]),
        ("l alone (k = 20, m = 2)", _trend(by_l, "nearest", "brokers", REACHED, 1, _UNREACHED).all_readings[0]),
    ]
    readings = [replace(part, reading=f"with {name}") for name, part in parts]
    return found(
        all_hold("all three", readings),
        *readings,
        series=[_line(by_l, "nearest", "destinations_s").series("k = 20, m = 2")],
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
    by_l = _by_nearest(rows)
    line, cost = curve(by_l, "nearest", "delivery_ratio"), curve(by_l, "nearest", "cost")
    measured = f"delivered, by l {line:.3f}; transmissions an event {cost:.0f}; {_units(by_l)}"
    rises = line.y[-1] > line.y[0] and all(b >= a - 0.01 for a, b in pairwise(line.y))
    why = "destinations beyond the first few are seldom reached, and the copies for them load the channel"
    return found(
        read_as("l varied alone, k = 20, m = 2", measured, rises, by_l, line.estimates[-1], why),
        series=[line.series("delivery ratio")],
    )


@claim(
    "Announcements cause no broadcast storm: a node forwards about l of them in an interval, however many brokers "
    "there are (at most 2 l)",
    "Section IV.B",
    "every broadcast message stops at some non-broker node",
    "brokers k",
    "announcements that a node forwards in an interval",
    fails_if="every node forwards every announcement",
)
def no_storm(rows: Rows) -> Finding:
    readings, lines = [], []
    for experiment, l in (("delay", 5), ("coverage", 4)):  # noqa: E741
        line = _line(rows[experiment], "brokers", "forwarded")
        most = line.highest
        holds = most.mean <= 2 * l
        why = "copies that were faster than the first are forwarded again"
        text = f"forwarded by a node in an interval (by k) {line:.1f}"
        readings.append(read_as(f"l = {l}", text, holds, rows[experiment], most, why))
        lines.append(line.series(f"l = {l}"))
    return found(*readings, series=lines)


@claim(
    "Every non-broker node is attached to a broker at any time (at least 99 % of the time)",
    "Section IV.B",
    "each non-broker node should always attach to a broker node",
    fails_if="a node forgets a broker as soon as one announcement is missing",
)
def always_attached(rows: Rows) -> Finding:
    share = curve(rows["delay"], "brokers", "attached_share")
    worst = share.lowest
    measured = f"share of node time with a broker (by k) {share:.4f}"
    why = "nodes that are out of range of all others have none"
    return found(read_as("after the warm-up", measured, worst.mean >= 0.99, rows["delay"], worst, why))


@claim(
    "The local broker of a node is the nearest one (at least 90 % of the time)",
    "Section IV.B",
    "the local broker node of a non-broker node should always be its nearest broker node",
    "brokers k",
    "share of the nodes",
    fails_if="a node stays with its broker until that is out of reach",
)
def always_nearest(rows: Rows) -> Finding:
    runs = [row for row in rows["delay"] if row.get("nearest_share") is not None]
    readings, lines = [], []
    for column, words in (
        ("nearest_share", "no other broker is fewer hops away"),
        ("next_nearest_share", "no other broker is more than one hop nearer"),
    ):
        line = curve(runs, "brokers", column)
        why = "between two announcements, 2 s apart, a node moves by up to 40 m and the routes change"
        text = f"share of the nodes, every 5 s (by k) {line:.3f}"
        readings.append(read_as(words, text, line.lowest.mean >= 0.9, runs, line.lowest, why))
        lines.append(line.series(words))
    return found(*readings, series=lines)


@beyond_the_paper(
    "At least 95 % of the expected deliveries happen",
    "beyond the paper: delivery ratio",
    x_label="brokers k",
    y_label="delivery ratio",
    fails_if="brokers do not exchange subscriptions",
)
def delivery(rows: Rows) -> Finding:
    readings, lines = [], []
    for (m,), group in grouped(rows["delay"], "copies").items():
        ratio, name = curve(group, "brokers", "delivery_ratio"), f"DRIP, m = {m}"
        text = f"(by k) {ratio:.3f}; {_tally(group, 'fates')}; {_units(group)}"
        readings.append(_delivers(name, text, ratio, 0.95, group, group))
        lines.append(ratio.series(name))
    sf = rows["epidemic"]
    ratio = curve(sf, "brokers", "delivery_ratio")
    readings.append(_delivers("SF", f"(by k) {ratio:.3f}", ratio, 0.95, sf, sf))
    return found(*readings, series=[*lines, ratio.series("SF")])


def _delivers(
    name: str, measured: str, ratio: Curve, least: float, of: Sequence[Row], losing: Sequence[Row]
) -> ClaimReading:
    """Whether the ratio is at least this high everywhere; if not, what most of the losses were."""
    return read_as(name, measured, ratio.lowest.mean >= least, of, ratio.lowest, _most_lost(losing))


def _total(rows: Iterable[Row], column: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row[column])
    return total


def _tally(rows: Iterable[Row], column: str) -> str:
    """All fates in the rows, as shares."""
    total = _total(rows, column)
    number = max(1, sum(total.values()))
    return f"{number:,} pairs: " + ", ".join(f"{what} {count / number:.1%}" for what, count in total.most_common())


def _most_lost(rows: Iterable[Row]) -> str:
    """Where most of the losses happened, over all expected pairs."""
    lost = Counter({what: count for what, count in _total(rows, "fates").items() if what.startswith("lost: ")})
    if not lost:
        return ""
    what, count = lost.most_common(1)[0]
    return f"{count} of {sum(lost.values())} losses: {what.removeprefix('lost: ')}"


@beyond_the_paper(
    "Each event across a region change is delivered once, or lost with its reason",
    "beyond the paper: handover accounting",
    fails_if="a node forgets which events it has delivered when it changes its broker",
)
def accounts(rows: Rows) -> Finding:
    runs = [*rows["delay"], *rows["coverage"]]
    once = _total(runs, "across")["delivered twice"] == 0 and bool(_total(runs, "across"))
    rate = mean_of(runs, "handovers_per_node_s")
    text = f"{_tally(runs, 'across')}; {rate.mean:.2f} handovers a node and second"
    return found(read_as("receivers that changed their broker meanwhile", text, once, runs, rate, "delivered twice"))


@beyond_the_paper(
    "The answers do not depend on how the open points are read",
    "beyond the paper: settings",
    fails_if="a copy is sent to a broker only once",
)
def settings(rows: Rows) -> Finding:
    """Six answers for each variant: coverage grows with m, falls with k; delay falls with m, rises with k, is below
    SF's, is below that of random brokers."""
    answers: dict[str, tuple[bool, ...]] = {}
    readings = []
    figures = [
        {"protocol": "drip", "selection": "ability", **row}
        for experiment in ("delay", "epidemic", "selection")
        for row in rows[experiment]
    ]
    for name in ("as fixed", *dict.fromkeys(row["variant"] for row in rows["settings"])):
        mine = figures if name == "as fixed" else rows_at(rows["settings"], variant=name)
        # SF has neither destinations nor carriers: variants about them have no runs of their own.
        epidemic = rows_at(mine, protocol="drip-sf") or rows_at(figures, protocol="drip-sf")
        by_point = grouped([*rows_at(mine, protocol="drip"), *epidemic], "brokers", "copies", "protocol", "selection")
        value = {
            (point, y): mean_of(group, y).mean
            for point, group in by_point.items()
            for y in ("coverage", "delay_s", "delivery_ratio")
        }
        one, two, four, few = ((k, m, "drip", "ability") for k, m in ((20, 1), (20, 2), (20, 4), (10, 2)))
        answers[name] = (
            value[one, "coverage"] < value[four, "coverage"],
            value[few, "coverage"] > value[two, "coverage"],
            value[one, "delay_s"] > value[four, "delay_s"],
            value[few, "delay_s"] < value[two, "delay_s"],
            value[two, "delay_s"] < value[(20, 2, "drip-sf", "ability"), "delay_s"],
            value[two, "delay_s"] < value[(20, 2, "drip", "random"), "delay_s"],
        )
        said = ", ".join("yes" if answer else "no" for answer in answers[name])
        text = (
            f"coverage grows with m, falls with k; delay falls with m, rises with k, is below SF's, below random's: "
            f"{said}; k = 20, m = 2: {value[two, 'delay_s']:.1f} s, delivered {value[two, 'delivery_ratio']:.2f}; "
            f"{_units(mine)}"
        )
        same = answers[name] == answers["as fixed"]
        decides = mean_of(by_point[two], "delay_s")
        readings.append(read_as(name, text, same, mine, decides, "not the answers of the open points as fixed"))
    fixed, *others = readings
    every = all_hold("all variants give the six answers of the open points as fixed", others)
    return found(replace(every, measured=f"{every.measured}; as fixed: {fixed.measured}"), *others)


@claim(
    "DRIP scales: larger networks of the same density deliver at least 90 %",
    "Section II; not measured there",
    "a non-tree-based protocol to improve the scalability",
    x_label="nodes",
    y_label="delivery ratio",
    fails_if="brokers do not exchange subscriptions",
)
def growing(rows: Rows) -> Finding:
    readings, lines = [], []
    for (radio,), group in grouped(rows["growing"], "radio").items():
        ratio = curve(group, "nodes", "delivery_ratio")
        biggest = rows_at(group, nodes=max(row["nodes"] for row in group))
        text = f"(by nodes) {ratio:.3f}; largest: {_tally(biggest, 'fates')}"
        readings.append(_delivers(f"{radio} radio", text, ratio, 0.9, group, biggest))
        lines.append(ratio.series(radio))
    return found(*readings, series=lines)


@beyond_the_paper(
    "Brokers that crash are replaced, and at most a tenth of the deliveries is lost because of it",
    "beyond the paper: crashes",
    x_label="brokers crashed",
    y_label="delivery ratio",
    fails_if="a silent broker keeps its rank",
)
def crashes(rows: Rows) -> Finding:
    runs = rows["crashes"]
    ratio = curve(runs, "crashes", "delivery_ratio")
    waits = mean_of(runs, "replacement_s")
    replaced, crashed = sum(row["replaced"] for row in runs), sum(row["crashes"] for row in runs)
    holds = replaced == crashed and all(mean >= ratio.y[0] - 0.1 for mean in ratio.y)
    text = (
        f"delivered (by brokers crashed of 10) {ratio:.3f}; {replaced} of {crashed} replaced, {waits.mean:.1f} s later"
    )
    return found(
        read_as("delivery ratio", text, holds, runs, ratio.estimates[-1], "see the figures"),
        series=[ratio.series("delivery ratio")],
    )


@beyond_the_paper(
    "Full on-demand route discovery (AODV) delivers as much as routes against announcements",
    "beyond the paper: the routing of section IV.B",
    fails_if="the radio has no room for the floods of route requests",
)
def routing(rows: Rows) -> Finding:
    """The paper's "lightweight AODV": announcements already are the route replies. Beside it AODV as its RFC has it."""
    ratio, sent = (
        {name: mean_of(rows["routing"], column, routes=name) for name in ("announcements", "network")}
        for column in ("delivery_ratio", "transmissions_per_s")
    )
    text = (
        f"delivered {ratio['network'].mean:.2f} with {sent['network'].mean:,.0f} transmissions a second, against "
        f"announcements {ratio['announcements'].mean:.2f} with {sent['announcements'].mean:,.0f}; "
        f"{_units(rows['routing'])}"
    )
    holds = ratio["network"].mean >= ratio["announcements"].mean - 0.02
    why = "routes break every few seconds at 10 to 20 m/s, and the floods that look for others fill the channel"
    return found(read_as("AODV for every packet", text, holds, rows["routing"], ratio["network"], why))
