"""What DRIP's rows say about the paper's claims.

"Grows", "falls" and "rises" are judged on means over seeds, from one value of the parameter to the next,
with a tolerance of 5 %: a line may stay level for a step but must have moved at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from earshot.studies.drip.delay import exact_factor, printed_factor, series_factor
from earshot.studies.study import Curve, Finding, Row, Rows, Series, curve, estimate, grouped, rows_at

LEVEL = 0.05
"A step against the direction by at most this share counts as level."


def _direction(values: Sequence[float]) -> int:
    """1 where the values rise, -1 where they fall, 0 where they do neither."""
    for sign in (1, -1):
        no_step_back = all(sign * (b - a) >= -LEVEL * abs(a) for a, b in pairwise(values))
        if no_step_back and sign * (values[-1] - values[0]) > LEVEL * abs(values[0]):
            return sign
    return 0


def _listed(line: Curve) -> str:
    return ", ".join(f"{x:g}: {point}" for x, point in zip(line.x, line.estimates, strict=True))


def _trend(rows: Sequence[Row], x: str, lines: str, y: str, sign: int, why: str) -> Finding:
    """Whether y moves one way over x on each of the lines."""
    told, right, series = [], [], []
    for (value,), group in grouped(rows, lines).items():
        line = curve(group, x, y)
        right.append(_direction([point.mean for point in line.estimates]) == sign)
        told.append(f"{_symbol(lines)} = {value:g} ({_symbol(x)}: value) {_listed(line)}")
        series.append(line.series(f"{_symbol(lines)} = {value:g}"))
    holds = all(right)
    reason = "" if holds else f"{sum(right)} of {len(right)} lines do; {why}"
    return Finding("; ".join(told), holds, reason, series)


def _symbol(name: str) -> str:
    return {"brokers": "k", "copies": "m", "nearest": "l"}.get(name, name)


def coverage_by_copies(rows: Rows) -> Finding:
    return _trend(rows["coverage"], "copies", "brokers", "coverage", 1, _COVERED)


def coverage_by_brokers(rows: Rows) -> Finding:
    return _trend(rows["coverage"], "brokers", "copies", "coverage", -1, _COVERED)


_COVERED = (
    "an event's destinations are the l brokers of each of its subscribers, and a few subscribers name many brokers: "
    "the m carriers add little to them"
)


def delay_by_copies(rows: Rows) -> Finding:
    return _trend(
        rows["delay"],
        "copies",
        "brokers",
        "delay_s",
        -1,
        "further copies find a destination sooner, and load the channel and the one contact at a time more",
    )


def delay_by_brokers(rows: Rows) -> Finding:
    return _trend(rows["delay"], "brokers", "copies", "delay_s", 1, "smaller regions also make way to a broker shorter")


def below_epidemic(rows: Rows) -> Finding:
    told, right, series = [], [], []
    epidemic = curve(rows["epidemic"], "brokers", "delay_s")
    best = epidemic.means
    for (m,), group in grouped(rows["delay"], "copies").items():
        line = curve(group, "brokers", "delay_s")
        right += [mean < best[k] for k, mean in line.means.items()]
        told.append(f"m = {m} (k: s) {_listed(line)}")
        series.append(line.series(f"DRIP, m = {m}"))
    ratio = estimate(row["delivery_ratio"] for row in rows["delay"])
    ratio_epidemic = estimate(row["delivery_ratio"] for row in rows["epidemic"])
    return Finding(
        f"SF {_listed(epidemic)}; DRIP {'; '.join(told)}; delivery ratio SF {ratio_epidemic}, DRIP {ratio}",
        all(right),
        ""
        if all(right)
        else f"{sum(right)} of {len(right)} points are below SF: an epidemic uses every contact, and finds each path a "
        "copy could take; it is slower only where its copies congest the channel or the contacts (see load)",
        [epidemic.series("SF"), *series],
    )


def load(rows: Rows) -> Finding:
    told, series = [], []
    by = {}
    for (protocol,), group in grouped(rows["load"], "protocol").items():
        line, ratio = curve(group, "rate", "delay_s"), curve(group, "rate", "delivery_ratio")
        by[protocol] = (line.means, ratio.means)
        told.append(f"{_name(protocol)}: delay {_listed(line)}, delivery ratio {_listed(ratio)}")
        series.append(line.series(_name(protocol)))
    below = [f"{rate:g}" for rate in by["drip"][0] if by["drip"][0][rate] < by["drip-sf"][0][rate]]
    more = [f"{rate:g}" for rate in by["drip"][1] if by["drip"][1][rate] > by["drip-sf"][1][rate]]
    return Finding(
        f"by events a second, {'; '.join(told)}. Below SF at: {', '.join(below) or 'none'}; delivers more than SF at: "
        f"{', '.join(more) or 'none'}",
        bool(below),
        "" if below else "at none of these loads: late events are not delivered at all, so they do not count as delay",
        series,
    )


def _name(protocol: str) -> str:
    return {"drip": "DRIP", "drip-sf": "SF"}[protocol]


def selection(rows: Rows) -> Finding:
    able = curve(rows_at(rows["delay"], copies=2), "brokers", "delay_s")
    random = curve(rows["selection"], "brokers", "delay_s")
    a, b = able.means, random.means
    lower = [a[k] < b[k] for k in a if k in b]
    return Finding(
        f"by ability (k: s) {_listed(able)}; at random {_listed(random)}",
        all(lower),
        ""
        if all(lower)
        else f"lower at {sum(lower)} of {len(lower)}: the way that is saved, publisher to broker, is a few "
        "hops of milliseconds, of a delay of seconds that waits for brokers to meet",
        [able.series("by ability"), random.series("at random")],
    )


def algebra(_: Rows) -> Finding:
    ls = [1, 2, 3, 4, 5, 8]
    told = ", ".join(f"l = {n}: {printed_factor(n):g} / {series_factor(n):g} / {exact_factor(n):.3f}" for n in ls)
    return Finding(
        f"E[T] m lambda as printed / from the series / exact: {told}",
        False,
        "the second term's sign is lost from the series to the printed form, and the series itself is no "
        "approximation from l = 3 on; the exact expectation of equation 1 is H_l / (m lambda), which grows like log l",
        [
            Series("as printed", ls, [printed_factor(n) for n in ls], paper=True),
            Series("from the two terms", ls, [series_factor(n) for n in ls]),
            Series("exact", ls, [exact_factor(n) for n in ls]),
        ],
    )


def expected_delay(rows: Rows) -> Finding:
    told, series = [], []
    for name, label in (("destinations_s", "measured"), ("exact_s", "exact"), ("printed_s", "printed")):
        line = curve(rows_at(rows["delay"], copies=2), "brokers", name)
        series.append(line.series(label))
        told.append(f"{label} {_listed(line)}")
    reached = estimate(row["destinations_reached"] for row in rows["delay"] if row["destinations_reached"] is not None)
    meeting = curve(rows["delay"], "brokers", "meeting_s")
    ratio = estimate(row["exact_s"] / row["destinations_s"] for row in rows["delay"] if row["destinations_s"])
    return Finding(
        f"m = 2 (k: s): {'; '.join(told)}; with 1 / lambda as measured, {_listed(meeting)} s; exact over measured "
        f"{ratio}; all l destinations are reached for {reached} of the subscribers within an event's life",
        0.5 <= ratio.mean <= 2,
        ""
        if 0.5 <= ratio.mean <= 2
        else "the meetings are neither exponential nor alike: regions tile the plane, so neighbouring brokers can talk "
        "at once and far ones for long not at all, and the subscriber's brokers are neighbours of each other",
        series,
    )


def delivery(rows: Rows) -> Finding:
    line = curve(rows_at(rows["delay"], copies=2), "brokers", "delivery_ratio")
    epidemic = curve(rows["epidemic"], "brokers", "delivery_ratio")
    cost, cost_epidemic = (
        curve(rows_at(rows["delay"], copies=2), "brokers", "cost"),
        curve(rows["epidemic"], "brokers", "cost"),
    )
    return Finding(
        f"DRIP, m = 2 (k: ratio) {_listed(line)}; SF {_listed(epidemic)}; transmissions an event, "
        f"DRIP {_listed(cost)}, SF {_listed(cost_epidemic)}",
        all(point.mean >= 0.95 for point in line.estimates),
        "" if all(point.mean >= 0.95 for point in line.estimates) else _LOST,
        [line.series("DRIP"), epidemic.series("SF")],
    )


_LOST = "handover accounting says where the rest is lost"


def accounts(rows: Rows) -> Finding:
    total: Counter[str] = Counter()
    for row in [*rows["delay"], *rows["coverage"]]:
        counted: Mapping[str, int] = row["accounts"]
        total.update(counted)
    number = sum(total.values())
    shares = ", ".join(f"{what} {count / number:.2%}" for what, count in total.most_common()) if number else "none"
    rate = estimate(row["handovers_per_node_s"] for row in rows["delay"])
    return Finding(
        f"{number:,} expected deliveries whose receiver changed its broker meanwhile ({rate} handovers a node and "
        f"second): {shares}",
        total["delivered twice"] == 0 and number > 0,
        "" if total["delivered twice"] == 0 else "an event was delivered twice",
    )


def settings(rows: Rows) -> Finding:
    told = []
    same = 0
    names = list(dict.fromkeys(row["variant"] for row in rows["settings"]))
    for name in names:
        of = rows_at(rows["settings"], variant=name)
        delay = {
            (row["brokers"], row["copies"], row.get("protocol", "drip"), row.get("selection", "")): row for row in of
        }

        def at(k: int, m: int, protocol: str = "drip", selection: str = "", delay: Any = delay) -> Any:
            return delay[k, m, protocol, selection]

        one, four, few, many = at(20, 1), at(20, 4), at(10, 2), at(30, 2)
        answers = (
            one["coverage"] < four["coverage"],
            few["coverage"] > many["coverage"],
            one["delay_s"] > four["delay_s"],
            few["delay_s"] < many["delay_s"],
            four["delay_s"] < at(20, 2, "drip-sf")["delay_s"],
            four["delay_s"] < at(20, 4, selection="random")["delay_s"],
        )
        if name == names[0]:
            fixed = answers
        same += answers == fixed
        marks = " ".join("yes" if answer else "no" for answer in answers)
        told.append(f"{name}: {marks} (delay {four['delay_s']:.2f} s, ratio {four['delivery_ratio']:.3f})")
    return Finding(
        "coverage grows with m / falls with k / delay falls with m / rises with k / below SF / below random, one seed: "
        + "; ".join(told),
        same == len(names),
        "" if same == len(names) else f"{same} of {len(names)} ways of reading the paper give the same six answers",
    )


def growing(rows: Rows) -> Finding:
    ratio, delay = curve(rows["growing"], "nodes", "delivery_ratio"), curve(rows["growing"], "nodes", "delay_s")
    cost = curve(rows["growing"], "nodes", "cost")
    holds = all(point.mean >= 0.9 for point in ratio.estimates)
    return Finding(
        f"delivery ratio (nodes: ratio) {_listed(ratio)}; delay {_listed(delay)} s; transmissions an event "
        f"{_listed(cost)}",
        holds,
        ""
        if holds
        else "copies are carried only to brokers met: where regions are many, most destinations are never a neighbour "
        "of a carrier within an event's life",
        [ratio.series("delivery ratio")],
    )


def crashes(rows: Rows) -> Finding:
    ratio = curve(rows["crashes"], "crashes", "delivery_ratio")
    waits = [row["replacement_s"] for row in rows["crashes"] if row["replacement_s"] is not None]
    replaced, gone = sum(row["replaced"] for row in rows["crashes"]), sum(row["crashes"] for row in rows["crashes"])
    base = ratio.estimates[0].mean
    return Finding(
        f"delivery ratio (brokers crashed of 10: ratio) {_listed(ratio)}; {replaced} of {gone} replaced, "
        f"{estimate(waits)} s after the crash",
        replaced == gone and all(point.mean >= base - 0.1 for point in ratio.estimates),
        series=[ratio.series("delivery ratio")],
    )
