"""Beyond the figures: the regions of section IV.B; and beyond the paper how much of what is expected arrives and why
the rest does not, the settings that the paper leaves open, larger networks, brokers that crash, on-demand routing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from earshot.studies.drip.claims import line_of, units_of
from earshot.studies.figures import (
    Compared,
    Estimate,
    Row,
    at_least,
    at_most,
    below,
    curve,
    difference_to,
    every,
    grouped,
    mean_of,
    rows_at,
)
from earshot.studies.study import Claims, Finding, Rows, all_hold, found, read_as

CLAIMS = Claims()
claim = CLAIMS.claim
beyond_the_paper = partial(CLAIMS.claim, paper="not in the paper")


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
        line = line_of(rows[experiment], "brokers", "forwarded")
        why = "copies that were faster than the first are forwarded again"
        text = f"forwarded by a node in an interval (by k) {line:.1f}"
        readings.append(read_as(f"l = {l}", text, at_most(line, 2 * l), rows[experiment], why))
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
    measured = f"share of node time with a broker (by k) {share:.4f}"
    why = "nodes that are out of range of all others have none"
    return found(read_as("after the warm-up", measured, at_least(share, 0.99), rows["delay"], why))


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
        readings.append(read_as(words, text, at_least(line, 0.9), runs, why))
        lines.append(line.series(words))
    return found(*readings, series=lines)


@beyond_the_paper(
    "At least 95 % of the expected deliveries happen",
    "beyond the paper: delivery ratio",
    x_label="brokers k",
    y_label="delivery ratio",
    fails_if="an event lives for 5 s instead of 60",
)
def delivery(rows: Rows) -> Finding:
    readings, lines = [], []
    for (m,), group in grouped(rows["delay"], "copies").items():
        ratio, name = curve(group, "brokers", "delivery_ratio"), f"DRIP, m = {m}"
        text = f"(by k) {ratio:.3f}; {_tally(group, 'fates')}; {units_of(group)}"
        readings.append(read_as(name, text, at_least(ratio, 0.95), group, _most_lost(group)))
        lines.append(ratio.series(name))
    sf = rows["epidemic"]
    ratio = curve(sf, "brokers", "delivery_ratio")
    readings.append(read_as("SF", f"(by k) {ratio:.3f}", at_least(ratio, 0.95), sf, _most_lost(sf)))
    return found(*readings, series=[*lines, ratio.series("SF")])


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
    "No event is delivered twice to a node that changes its broker meanwhile",
    "beyond the paper: handover accounting",
    fails_if="a node forgets which events it has delivered when it changes its broker",
)
def accounts(rows: Rows) -> Finding:
    runs = [*rows["delay"], *rows["coverage"]]
    once = _total(runs, "across")["delivered twice"] == 0 and bool(_total(runs, "across"))
    rate = mean_of(runs, "handovers_per_node_s")
    text = f"{_tally(runs, 'across')}; {rate.mean:.2f} handovers a node and second"
    return found(read_as("receivers that changed their broker meanwhile", text, once, runs, "delivered twice"))


@beyond_the_paper(
    "The answers do not depend on how three of the open points are read",
    "beyond the paper: settings",
    fails_if="where destinations are common, the source broker hands the event to no carriers",
)
def settings(rows: Rows) -> Finding:
    """Six answers for each variant: coverage grows with m, falls with k; delay falls with m, rises with k, is below
    SF's, is below that of random brokers."""
    answers: dict[str, list[Estimate]] = {}
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
        one, two, four, few = (by_point[k, m, "drip", "ability"] for k, m in ((20, 1), (20, 2), (20, 4), (10, 2)))
        sf, random = by_point[20, 2, "drip-sf", "ability"], by_point[20, 2, "drip", "random"]
        # An answer is yes where the first is less than the second, seed by seed.
        answers[name] = [
            difference_to(less, more, y, "seed")
            for y, less, more in (
                ("coverage_then", one, four),
                ("coverage_then", two, few),
                ("delay_s", four, one),
                ("delay_s", few, two),
                ("delay_s", two, sf),
                ("delay_s", two, random),
            )
        ]
        answered = ", ".join("yes" if answer.mean < 0 else "no" for answer in answers[name])
        text = (
            f"coverage grows with m, falls with k; delay falls with m, rises with k, is below SF's, below random's: "
            f"{answered}; k = 20, m = 2: {mean_of(two, 'delay_s').mean:.1f} s, delivered "
            f"{mean_of(two, 'delivery_ratio').mean:.2f}; {units_of(mine)}"
        )
        # An answer is the same as surely as the less sure of the two.
        pairs = zip(*([below(answer, 0.0) for answer in answers[of]] for of in (name, "as fixed")), strict=True)
        same = every(
            replace(min(pair, key=lambda one: one.gap), holds=pair[0].holds == pair[1].holds) for pair in pairs
        )
        readings.append(read_as(name, text, same, mine, "not the answers of the open points as fixed"))
    fixed, *others = readings
    held = f"{sum(bool(other.holds) for other in others)} of {len(others)}; as fixed: {fixed.measured}"
    every_one = all_hold("all variants give the six answers of the open points as fixed", others, held)
    return found(every_one, *others)


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
        readings.append(read_as(f"{radio} radio", text, at_least(ratio, 0.9), group, _most_lost(biggest)))
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
    calm = rows_at(runs, crashes=ratio.x[0])
    lost = [difference_to(rows_at(runs, crashes=x), calm, "delivery_ratio", "seed") for x in ratio.x]
    little = every([Compared(replaced == crashed), *(at_least(one, -0.1) for one in lost)])
    text = (
        f"delivered (by brokers crashed of 10) {ratio:.3f}; {replaced} of {crashed} replaced, {waits.mean:.1f} s later"
    )
    return found(
        read_as("delivery ratio", text, little, runs, "see the figures"),
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
        f"{units_of(rows['routing'])}"
    )
    with_, without = (rows_at(rows["routing"], routes=name) for name in ("network", "announcements"))
    as_much = at_least(difference_to(with_, without, "delivery_ratio", "seed"), -0.02)
    why = "routes break every few seconds at 10 to 20 m/s, and the floods that look for others fill the channel"
    return found(read_as("AODV for every packet", text, as_much, rows["routing"], why))
