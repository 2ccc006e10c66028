"""What DRIP's rows say about the paper's claims.

"Grows", "falls" and "rises" are judged on means over seeds, from one value of the parameter to the next,
with a tolerance of 5 %: a curve may stay level for a step but must have moved at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from earshot.protocols.drip.delay import exact_factor, printed_factor, series_factor
from earshot.studies.study import Claims, Finding, Row, Rows, Series, curve, estimate, grouped, rows_at, verdict

CLAIMS = Claims()
claim = CLAIMS.claim
figure_3a = partial(CLAIMS.claim, where="Figure 3(a), l = 4", y_label="brokers that had the event / k")
figure_3b = partial(CLAIMS.claim, where="Figure 3(b), l = 5", y_label="delay, s")
beyond_the_paper = partial(CLAIMS.claim, paper="not in the paper")

LEVEL = 0.05
"A step against the direction by at most this share counts as level."
SYMBOLS = {"brokers": "k", "copies": "m", "nearest": "l"}
NAMES = {"drip": "DRIP", "drip-sf": "SF"}


def _direction(values: Sequence[float]) -> int:
    """1 where the values rise, -1 where they fall, 0 where they do neither."""
    for sign in (1, -1):
        no_step_back = all(sign * (b - a) >= -LEVEL * abs(a) for a, b in pairwise(values))
        if no_step_back and sign * (values[-1] - values[0]) > LEVEL * abs(values[0]):
            return sign
    return 0


def _trend(rows: Sequence[Row], x: str, lines: str, y: str, sign: int, why: str) -> Finding:
    """Whether y moves in one direction over x on each of the lines."""
    measured, right, series = [], [], []
    for (value,), group in grouped(rows, lines).items():
        line, label = curve(group, x, y), f"{SYMBOLS[lines]} = {value:g}"
        right.append(_direction([*line.means.values()]) == sign)
        measured.append(f"{label} ({SYMBOLS[x]}: value) {line}")
        series.append(line.series(label))
    return verdict("; ".join(measured), all(right), f"{sum(right)} of {len(right)} lines do; {why}", series)


@figure_3a(
    "Broker coverage grows with the number of copies m",
    paper="as m increases, broker coverage is growing too",
    x_label="copies m",
)
def coverage_by_copies(rows: Rows) -> Finding:
    return _trend(rows["coverage"], "copies", "brokers", "coverage", 1, _COVERED)


@figure_3a(
    "Broker coverage falls with the number of brokers k",
    paper="m and l fixed and k growing, the broker coverage is generally reduced",
    x_label="brokers k",
)
def coverage_by_brokers(rows: Rows) -> Finding:
    return _trend(rows["coverage"], "brokers", "copies", "coverage", -1, _COVERED)


_COVERED = (
    "an event's destinations are the l brokers of each of its subscribers, and a few subscribers name many brokers: "
    "the m carriers add little to them"
)


@figure_3b(
    "Delivery delay falls with m",
    paper="for a fixed k, delivery delay decreases as m is increasing",
    x_label="copies m",
)
def delay_by_copies(rows: Rows) -> Finding:
    why = "more copies find a destination earlier, but they also load the channel and the one contact at a time"
    return _trend(rows["delay"], "copies", "brokers", "delay_s", -1, why)


@figure_3b("Delivery delay rises with k", paper="when m is fixed, delivery delay goes up with k", x_label="brokers k")
def delay_by_brokers(rows: Rows) -> Finding:
    why = "smaller regions also make the route to a broker shorter"
    return _trend(rows["delay"], "brokers", "copies", "delay_s", 1, why)


@figure_3b(
    "DRIP's delay is below that of the epidemic SF",
    paper="our scheme costs less time than the SF scheme",
    x_label="brokers k",
)
def below_epidemic(rows: Rows) -> Finding:
    epidemic = curve(rows["epidemic"], "brokers", "delay_s")
    measured, below, series = [], [], [epidemic.series("SF")]
    for (m,), group in grouped(rows["delay"], "copies").items():
        line = curve(group, "brokers", "delay_s")
        below += [mean < epidemic.means[k] for k, mean in line.means.items()]
        measured.append(f"m = {m} (k: s) {line}")
        series.append(line.series(f"DRIP, m = {m}"))
    ratio = estimate(row["delivery_ratio"] for row in rows["delay"])
    ratio_epidemic = estimate(row["delivery_ratio"] for row in rows["epidemic"])
    return verdict(
        f"SF {epidemic}; DRIP {'; '.join(measured)}; delivery ratio SF {ratio_epidemic}, DRIP {ratio}",
        all(below),
        f"{sum(below)} of {len(below)} points are below SF: an epidemic uses every contact, and finds every path that "
        "a copy could take; it is slower only where its copies congest the channel or the contacts (see load)",
        series,
    )


@beyond_the_paper(
    "There is a load at which DRIP's delay is below SF's",
    "beyond the paper: figure 3(b) under load",
    x_label="events a second",
    y_label="delay, s",
)
def load(rows: Rows) -> Finding:
    measured, series, delays, ratios = [], [], {}, {}
    for (protocol,), group in grouped(rows["load"], "protocol").items():
        delay, ratio = curve(group, "rate", "delay_s"), curve(group, "rate", "delivery_ratio")
        delays[protocol], ratios[protocol] = delay.means, ratio.means
        measured.append(f"{NAMES[protocol]}: delay {delay}, delivery ratio {ratio}")
        series.append(delay.series(NAMES[protocol]))
    below = [f"{rate:g}" for rate, delay_s in delays["drip"].items() if delay_s < delays["drip-sf"][rate]]
    more = [f"{rate:g}" for rate, share in ratios["drip"].items() if share > ratios["drip-sf"][rate]]
    return verdict(
        f"by events a second, {'; '.join(measured)}. Below SF at: {', '.join(below) or 'none'}; delivers more than SF "
        f"at: {', '.join(more) or 'none'}",
        bool(below),
        "at none of these loads: late events are not delivered at all, so they do not count as delay",
        series,
    )


@claim(
    "Brokers chosen by ability give less delay than brokers chosen at random",
    "Figure 4",
    "DRIP incurs less delivery delay",
    "brokers k",
    "delay, s",
)
def selection(rows: Rows) -> Finding:
    able = curve(rows_at(rows["delay"], copies=2), "brokers", "delay_s")
    random = curve(rows["selection"], "brokers", "delay_s")
    lower = [able.means[k] < random.means[k] for k in able.means if k in random.means]
    return verdict(
        f"by ability (k: s) {able}; at random {random}",
        all(lower),
        f"lower at {sum(lower)} of {len(lower)}: the route that is saved, from publisher to broker, is a few "
        "hops of milliseconds, in a delay of seconds that waits for brokers to meet",
        [able.series("by ability"), random.series("at random")],
    )


@claim(
    "The expected delay of equation 2 follows from equation 1",
    "Section V.C",
    "E[T] = (l^2 + 3 l) / (4 m lambda)",
    "destinations l",
    "E[T] m lambda",
)
def algebra(_: Rows) -> Finding:
    ls = [1, 2, 3, 4, 5, 8]
    measured = ", ".join(f"l = {n}: {printed_factor(n):g} / {series_factor(n):g} / {exact_factor(n):.3f}" for n in ls)
    return verdict(
        f"E[T] m lambda as printed / from the series / exact: {measured}",
        False,
        "the second term's sign is lost between the series and the printed form, and the series itself is not an "
        "approximation from l = 3 on; the exact expectation of equation 1 is H_l / (m lambda), which grows like log l",
        [
            Series("as printed", ls, [printed_factor(n) for n in ls], paper=True),
            Series("from the two terms", ls, [series_factor(n) for n in ls]),
            Series("exact", ls, [exact_factor(n) for n in ls]),
        ],
    )


@claim(
    "The expected delay (exact, with the measured rate of meetings) is the measured one within a factor of 2",
    "Section V.C, equation 1",
    "meetings are independent, identical and exponential",
    "brokers k",
    "s until all l destinations have the event",
)
def expected_delay(rows: Rows) -> Finding:
    measured, series = [], []
    for name, label in (("destinations_s", "measured"), ("exact_s", "exact"), ("printed_s", "printed")):
        line = curve(rows_at(rows["delay"], copies=2), "brokers", name)
        series.append(line.series(label))
        measured.append(f"{label} {line}")
    reached = estimate(row["destinations_reached"] for row in rows["delay"] if row["destinations_reached"] is not None)
    meeting = curve(rows["delay"], "brokers", "meeting_s")
    ratio = estimate(row["exact_s"] / row["destinations_s"] for row in rows["delay"] if row["destinations_s"])
    return verdict(
        f"m = 2 (k: s): {'; '.join(measured)}; with 1 / lambda as measured, {meeting} s; exact over measured "
        f"{ratio}; all l destinations are reached for {reached} of the subscribers within an event's life",
        0.5 <= ratio.mean <= 2,
        "the meetings are neither exponential nor identical: regions tile the plane, so neighbouring brokers can "
        "communicate at once and distant ones not for a long time, and a subscriber's brokers are each other's "
        "neighbours",
        series,
    )


@beyond_the_paper(
    "At least 95 % of the expected deliveries happen",
    "beyond the paper: delivery ratio",
    x_label="brokers k",
    y_label="delivery ratio",
)
def delivery(rows: Rows) -> Finding:
    drip, epidemic = rows_at(rows["delay"], copies=2), rows["epidemic"]
    ratio, ratio_epidemic = curve(drip, "brokers", "delivery_ratio"), curve(epidemic, "brokers", "delivery_ratio")
    cost, cost_epidemic = curve(drip, "brokers", "cost"), curve(epidemic, "brokers", "cost")
    return verdict(
        f"DRIP, m = 2 (k: ratio) {ratio}; SF {ratio_epidemic}; transmissions an event, DRIP {cost}, SF {cost_epidemic}",
        all(mean >= 0.95 for mean in ratio.means.values()),
        "the claim about region changes shows where the rest is lost",
        [ratio.series("DRIP"), ratio_epidemic.series("SF")],
    )


@beyond_the_paper(
    "Each event across a region change is delivered once, or lost with its reason",
    "beyond the paper: handover accounting",
)
def accounts(rows: Rows) -> Finding:
    total: Counter[str] = Counter()
    for row in [*rows["delay"], *rows["coverage"]]:
        total.update(row["accounts"])
    number = sum(total.values())
    shares = ", ".join(f"{what} {count / number:.2%}" for what, count in total.most_common()) or "none"
    rate = estimate(row["handovers_per_node_s"] for row in rows["delay"])
    once = total["delivered twice"] == 0
    return Finding(
        f"{number:,} expected deliveries whose receiver changed its broker meanwhile ({rate} handovers a node and "
        f"second): {shares}",
        once and number > 0,
        "" if once else "an event was delivered twice",
    )


@beyond_the_paper("The answers do not depend on how the open points are read", "beyond the paper: settings")
def settings(rows: Rows) -> Finding:
    measured, answers = [], {}
    for name in dict.fromkeys(row["variant"] for row in rows["settings"]):
        by_point = {
            (row["brokers"], row["copies"], row.get("protocol", "drip"), row.get("selection", "ability")): row
            for row in rows_at(rows["settings"], variant=name)
        }
        one, four = by_point[20, 1, "drip", "ability"], by_point[20, 4, "drip", "ability"]
        few, many = by_point[10, 2, "drip", "ability"], by_point[30, 2, "drip", "ability"]
        answers[name] = (
            one["coverage"] < four["coverage"],
            few["coverage"] > many["coverage"],
            one["delay_s"] > four["delay_s"],
            few["delay_s"] < many["delay_s"],
            four["delay_s"] < by_point[20, 2, "drip-sf", "ability"]["delay_s"],
            four["delay_s"] < by_point[20, 4, "drip", "random"]["delay_s"],
        )
        marks = " ".join("yes" if answer else "no" for answer in answers[name])
        measured.append(f"{name}: {marks} (delay {four['delay_s']:.2f} s, ratio {four['delivery_ratio']:.3f})")
    fixed = next(iter(answers.values()))
    same = sum(found == fixed for found in answers.values())
    return verdict(
        "coverage grows with m / falls with k / delay falls with m / rises with k / below SF / below random, one seed: "
        + "; ".join(measured),
        same == len(answers),
        f"{same} of {len(answers)} readings of the paper give the same six answers",
    )


@beyond_the_paper(
    "Larger networks of the same density deliver at least 90 %",
    "beyond the paper: 1,000 and 2,000 nodes",
    x_label="nodes",
    y_label="delivery ratio",
)
def growing(rows: Rows) -> Finding:
    ratio, delay = curve(rows["growing"], "nodes", "delivery_ratio"), curve(rows["growing"], "nodes", "delay_s")
    cost = curve(rows["growing"], "nodes", "cost")
    return verdict(
        f"delivery ratio (nodes: ratio) {ratio}; delay {delay} s; transmissions an event {cost}",
        all(mean >= 0.9 for mean in ratio.means.values()),
        "copies are carried only to brokers that are met: with many regions, most destinations are never a neighbour "
        "of a carrier within an event's life",
        [ratio.series("delivery ratio")],
    )


@beyond_the_paper(
    "Brokers that crash are replaced, and at most a tenth of the deliveries is lost because of it",
    "beyond the paper: crashes",
    x_label="brokers crashed",
    y_label="delivery ratio",
)
def crashes(rows: Rows) -> Finding:
    ratio = curve(rows["crashes"], "crashes", "delivery_ratio")
    waits = [row["replacement_s"] for row in rows["crashes"] if row["replacement_s"] is not None]
    replaced, crashed = sum(row["replaced"] for row in rows["crashes"]), sum(row["crashes"] for row in rows["crashes"])
    without = ratio.estimates[0].mean
    return Finding(
        f"delivery ratio (brokers crashed of 10: ratio) {ratio}; {replaced} of {crashed} replaced, "
        f"{estimate(waits)} s after the crash",
        replaced == crashed and all(mean >= without - 0.1 for mean in ratio.means.values()),
        series=[ratio.series("delivery ratio")],
    )
