"""What the rows say about GeoRendezvous' claims. The paper gives no numbers for "similar", "close", "nearly" or
"limited": each claim states its bound, which was set before any result was known.

Figures 3(a) to (d) show averages of ratios over "20 paths in 200 networks". Two ways to take them stand beside each
other: hops of all paths over hops of all direct routes (first, because a latency is a sum of hops), and the mean of
every path's own ratio, where a pair two hops apart counts as much as any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from earshot.studies.figures import (
    Compared,
    Curve,
    Row,
    Series,
    above,
    apart,
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
    ratio_to,
    rows_at,
    within,
)
from earshot.studies.georendezvous.paths import CLOSENESS
from earshot.studies.study import ClaimReading, Claims, Finding, Rows, all_hold, found, not_measurable, read_as

CLAIMS = Claims()
claim = CLAIMS.claim
beyond_the_paper = partial(CLAIMS.claim, where="beyond the paper", paper="not measured")

SIMILAR = 1.25
"Similar, comparable or close to a direct path: at most a quarter more hops."
CLOSE = 1.1
"Close to all eight: at most a tenth more hops."
FLAT = 0.02
"Of the direct path, for each doubling of the network: a smaller change counts as no dependence."
AVERAGES = {"ratio": "all paths' hops over all direct ones", "path_ratio": "mean of each path's own ratio"}
TESTED = 3000
"The nodes of the paper's largest network."
NOT_KEPT = "a subscriber keeps the first of its paths instead of the shortest"


def _count(rows: Sequence[Row], name: str = "network") -> int:
    return len({(row["nodes"], row[name]) for row in rows})


@claim(
    "Less than 8 rendezvous cells give latencies similar to a direct path (7 cells, at most a quarter more hops)",
    "section 4, figure 3(a)",
    "with less than 8 rendezvous cells, latencies similar to those of a direct path, consistently",
    "rendezvous cells n",
    "hops over the direct route's",
    fails_if=NOT_KEPT,
)
def less_than_eight(rows: Rows) -> Finding:
    at_600, readings, lines = rows_at(rows["paths"], nodes=600), [], []
    why = "pairs a few hops apart, whose rendezvous cell is much farther away, weigh as much as distant ones"
    for column, name in AVERAGES.items():
        line = curve(at_600, "n", column)
        lines.append(line.series(name))
        measured = f"600 nodes, by cells: {line.at(1, 2, 4, 7, 8, 16):.2f}"
        readings.append(read_as(name, measured, at_most(line.at(7), SIMILAR), _count(at_600), why))
    at_7 = rows_at(rows["paths"], n=7)
    for column, name in AVERAGES.items():
        line = curve(at_7, "nodes", column)
        measured = f"7 cells, by nodes: {line:.2f}"
        readings.append(read_as(f"{name}, at every size", measured, at_most(line, SIMILAR), _count(at_7), why))
    return found(*readings, series=lines)


@claim(
    "More than 8 rendezvous cells gain little (8 more at most a fifth of what the first 8 gain)",
    "section 4, figure 3(a)",
    "the benefits of using more than 8 are limited",
    fails_if="rendezvous cells beyond the eighth are placed beside the direct path",
)
def more_than_eight(rows: Rows) -> Finding:
    at_600, readings = rows_at(rows["paths"], nodes=600), []
    for column, name in AVERAGES.items():
        per_network = [{row["n"]: row[column] for row in group} for group in grouped(at_600, "network").values()]
        gained = estimate(by_cells[1] - by_cells[8] for by_cells in per_network)
        more = estimate(by_cells[8] - by_cells[16] for by_cells in per_network)
        beyond = estimate(by_cells[8] - by_cells[16] - (by_cells[1] - by_cells[8]) / 5 for by_cells in per_network)
        measured = f"1 to 8 cells save {gained.mean:.2f} of a direct path, 8 to 16 another {more.mean:.2f}"
        readings.append(read_as(name, measured, at_most(beyond, 0.0), len(per_network), "the curve still falls at 16"))
    return found(*readings)


@claim(
    f"The overhead does not depend on the network's size (at most {FLAT:.0%} of a direct path per doubling)",
    "section 4, figure 3(b)",
    "quite stable and largely independent of the network size",
    "nodes",
    "hops over the direct route's",
    log_x=True,
    fails_if="rendezvous points lie in a square of constant size instead of the whole area",
)
def size_independent(rows: Rows) -> Finding:
    readings, lines = [], []
    for column, name in AVERAGES.items():
        parts, flat = [], []
        for n in (1, 2, 4, 8, 16):
            at_n = rows_at(rows["paths"], n=n)
            fit = fit_line([math.log2(row["nodes"]) for row in at_n], [row[column] for row in at_n])
            parts.append(f"{n}: {fit:+.3f}")
            flat.append(within(fit, -FLAT, FLAT, surely=True))
            if column == "ratio":
                lines.append(curve(at_n, "nodes", column).series(f"n = {n}"))
        measured = f"change for each doubling of the nodes, by cells: {'; '.join(parts)}"
        why = "the larger the network, the farther is the rendezvous cell of a pair that is close together"
        readings.append(read_as(name, measured, every(flat), _count(rows_at(rows["paths"], n=1)), why))
    return found(*readings, series=lines)


@claim(
    "The number of rendezvous cells that a given performance needs does not depend on the network's size",
    "section 1",
    "independent of the network size for all sizes tested",
    fails_if="rendezvous points lie in a square of constant size instead of the whole area",
)
def cells_needed(rows: Rows) -> Finding:
    """The least n with at most half a direct path more, and at most a quarter more, at each size."""
    readings = []
    for column, name in AVERAGES.items():
        for most in (1.5, SIMILAR):
            needed: dict[int, float] = {}
            for (nodes,), group in grouped(rows["paths"], "nodes").items():
                means = curve(group, "n", column).means
                needed[nodes] = min((n for n, mean in means.items() if mean <= most), default=math.inf)
            spread = max(needed.values()) - min(needed.values())
            holds = math.isfinite(spread) and spread <= 1
            shown = ", ".join(f"{nodes}: {'more than 16' if math.isinf(n) else n}" for nodes, n in needed.items())
            readings.append(
                read_as(
                    f"{name}, at most {most:g}, within one cell",
                    f"cells needed, by nodes: {shown}",
                    holds,
                    _count(rows_at(rows["paths"], n=1)),
                    why="larger networks need more: see the claim above",
                )
            )
    return found(*readings)


@claim(
    "Of 8 rendezvous cells the two nearest do nearly as well as all (at most a tenth more hops)",
    "section 4, figure 3(c)",
    "with 2, also close to the result of 8 in a 600-node network",
    "nearest rendezvous cells m",
    "hops over the direct route's",
    fails_if="a subscriber chooses two of its rendezvous cells at random instead of the nearest",
)
def two_of_eight(rows: Rows) -> Finding:
    readings, lines = [], []
    for column, name in AVERAGES.items():
        line = curve(rows["nearest"], "m", column)
        lines.append(line.series(name))
        two, eight = (rows_at(rows["nearest"], m=m) for m in (2, 8))
        over = ratio_to(two, eight, column, "network")
        measured = f"two nearest {line.means[2]:.2f}, all eight {line.means[8]:.2f}: {over.mean:.3f} times"
        readings.append(read_as(name, measured, at_most(over, CLOSE), over.count))
    return found(*readings, series=lines)


@claim(
    "The two nearest of 8 rendezvous cells stay close to the direct path (at most a quarter more hops)",
    "section 4, figure 3(c)",
    "with only 2, close to the average direct publisher-subscriber path",
    fails_if="a subscriber chooses two of its rendezvous cells at random instead of the nearest",
)
def two_against_direct(rows: Rows) -> Finding:
    readings = []
    for column, name in AVERAGES.items():
        line = curve(rows["nearest"], "m", column)
        two = line.at(2)
        measured = f"over the direct path, by nearest cells tried: {line.at(1, 2, 3, 8):.2f}"
        why = "a path through a cell near the subscriber can still be a detour for a publisher that is near too"
        readings.append(read_as(name, measured, at_most(two, SIMILAR), two.lowest.count, why))
    return found(*readings)


@claim(
    "The two nearest of 8 rendezvous cells do better than two cells in all (by a tenth or more)",
    "section 4, figures 3(a) and 3(c)",
    "the reader should confront this curve with the one of figure 3(a)",
    fails_if="a subscriber chooses two of its rendezvous cells at random instead of the nearest",
)
def nearest_against_random(rows: Rows) -> Finding:
    readings = []
    for column, name in AVERAGES.items():
        near = rows_at(rows["nearest"], m=2)
        networks = {row["network"] for row in near}
        random = [row for row in rows_at(rows["paths"], nodes=600, n=2) if row["network"] in networks]
        over = ratio_to(near, random, column, "network")
        means = [mean_of(group, column).mean for group in (near, random)]
        measured = f"two nearest of 8 {means[0]:.2f}, two in all {means[1]:.2f}: {over.mean:.3f} times"
        better = at_most(over, 0.9, surely=True)
        readings.append(read_as(name, measured, better, over.count, "the hint of position gains less"))
    return found(*readings)


SENT, IDEAL = "as sent, one copy a subscriber", "ideal trees, shared steps once"
TREES = {
    f"{SENT}, all costs summed": ("many", "one", ""),
    f"{SENT}, mean of ratios": ("", "", "ratio"),
    f"{IDEAL}, all costs summed": ("shared_many", "shared_one", ""),
    f"{IDEAL}, mean of ratios": ("", "", "shared_ratio"),
}
"What a notification costs: what section 2.2 describes and the protocol sends, and what multicast trees would cost."


def _tree_costs(rows: Rows) -> dict[str, list[Row]]:
    """For each reading of the cost, cost with 8 cells over cost with one, by subscribers and network."""
    costs: dict[str, list[Row]] = {name: [] for name in TREES}
    for (subscribers, network), group in grouped(rows["trees"], "subscribers", "network").items():
        for name, (many, one, ratio) in TREES.items():
            columns = [math.fsum(row[column] for row in group) for column in ((ratio,) if ratio else (many, one))]
            cost = columns[0] / (len(group) if ratio else columns[1])
            costs[name].append({"subscribers": subscribers, "network": network, "cost": cost})
    return costs


def _judge_trees(
    rows: Rows, shown: Sequence[float], judge: Callable[[Curve, Sequence[Row]], Compared], why: str
) -> Finding:
    """Each reading of the cost, judged by its curve and the rows behind it."""
    costs = _tree_costs(rows)
    curves = {name: curve(of, "subscribers", "cost") for name, of in costs.items()}
    networks = len(grouped(rows["trees"], "network"))
    readings = [
        read_as(
            name,
            f"over one cell's cost, by subscribers: {line.at(*shown):.2f}",
            judge(line, costs[name]),
            networks,
            why,
        )
        for name, line in curves.items()
    ]
    return found(*readings, series=[line.series(name) for name, line in curves.items()])


_tree_claim = partial(CLAIMS.claim, where="section 4, figure 3(d)", x_label="subscribers", log_x=True)


@_tree_claim(
    "Below 8 subscribers a tree with 8 rendezvous cells (2 nearest) costs less than one with a single cell",
    paper="with less than 8 subscribers ratios below 1",
    y_label="cost over a single rendezvous cell's",
    fails_if="a publisher notifies all 8 cells instead of those in use",
)
def trees_below_eight(rows: Rows) -> Finding:
    def cheaper(line: Curve, _: Sequence[Row]) -> Compared:
        return below(line.at(*(x for x in line.x if x < 8)), 1.0, surely=True)

    return _judge_trees(rows, (1, 2, 4, 6), cheaper, "a ratio below 8 is not below 1")


@_tree_claim(
    "At 8 subscribers a tree with 8 rendezvous cells costs nearly the same as one with a single cell (0.9 to 1.05)",
    paper="as subscribers approach 8, the cost grows to become nearly the same",
    fails_if="steps that several copies share count for every copy",
)
def trees_at_eight(rows: Rows) -> Finding:
    why = (
        "sent as copies, a notification costs a path for each subscriber, and the paths from 8 cells are the shorter "
        "ones at every number of subscribers; the curve peaks at four"
    )
    return _judge_trees(rows, (4, 6, 8, 12), lambda line, _: within(line.at(8), 0.9, 1.05), why)


@_tree_claim(
    "Beyond 8 subscribers a tree with 8 rendezvous cells is increasingly better (falls from 8 to 16 to 32)",
    paper="when the number grows, 8 cells become increasingly better than 1",
    fails_if="every subscriber is served through the first of the 8 cells",
)
def trees_beyond_eight(rows: Rows) -> Finding:
    def falls(_: Curve, costs: Sequence[Row]) -> Compared:
        at_8, at_16, at_32 = (rows_at(costs, subscribers=count) for count in (8, 16, 32))
        steps = ((at_16, at_8), (at_32, at_16))
        return every(below(difference_to(later, earlier, "cost", "network"), 0.0) for later, earlier in steps)

    return _judge_trees(rows, (8, 12, 16, 24, 32), falls, "it does not fall from 8 to 16 to 32")


@claim(
    "A tree with several rendezvous cells is shorter than one with a single randomly placed core",
    "section 6, conclusion iii",
    "with the use of position, shorter than with a single core",
    fails_if="every subscriber is served through the first of the 8 cells",
)
def shorter_trees(rows: Rows) -> Finding:
    why = "not at every number of subscribers"
    return _judge_trees(rows, (1, 4, 8, 16, 32), lambda line, _: below(line, 1.0, surely=True), why)


@claim(
    "Several rendezvous cells reduce the latency of a single one (8 cells, 2 nearest; by a fifth or more)",
    "section 6",
    "effectively reduces the latency compared to a single rendezvous node",
    fails_if=NOT_KEPT,
)
def below_single(rows: Rows) -> Finding:
    readings = []
    for column, name in AVERAGES.items():
        two, single = rows_at(rows["nearest"], m=2), rows_at(rows["paths"], nodes=600, n=1)
        over = ratio_to(two, single, column, "network")
        measured = f"the two nearest of 8 over a single cell: {over.mean:.2f}"
        readings.append(read_as(name, measured, at_most(over, 0.8, surely=True), over.count))
    return found(*readings)


@lru_cache
def limit(k: float, draws: int = 200_000) -> float:
    """The chance in an infinitely large network, where hops are distances in a square."""
    a, b, r = np.random.default_rng(3).random((3, draws, 2))
    through = np.linalg.norm(a - r, axis=1) + np.linalg.norm(r - b, axis=1)
    return float((through <= (1 + 2 * k) * np.linalg.norm(a - b, axis=1)).mean())


@claim(
    "The chance of a path within l + 2kl does not vanish as the network grows",
    "section 3, theorem 3.1; conclusion ii",
    "bounded below by a constant for every k (taken as: above the theorem's bound at every size, and beyond the "
    "paper's sizes at least 95 % of what it is in a continuous square)",
    "nodes",
    "chance",
    log_x=True,
    fails_if="rendezvous nodes are those on the border of the area",
)
def does_not_vanish(rows: Rows) -> Finding:
    readings, lines = [], []
    for k in (0.5, *(k for k in CLOSENESS if k != 0.5)):
        at_k = rows_at(rows["chances"], k=k)
        share, bound = curve(at_k, "nodes", "share"), curve(at_k, "nodes", "bound")
        ends = limit(k)
        largest = [row for row in at_k if row["nodes"] > TESTED] or rows_at(at_k, nodes=share.x[-1])
        more = [{**row, "more": row["share"] - row["bound"]} for row in at_k]
        bounded = above(curve(more, "nodes", "more"), 0.0, surely=True)
        lasting = at_least(mean_of(largest, "share"), 0.95 * ends)
        measured = (
            f"by nodes {share:.2f}; the theorem's bound at {share.x[-1]:g} nodes {bound.estimates[-1].mean:.4f}; "
            f"beyond the paper's sizes {mean_of(largest, 'share').mean:.2f}, a continuous square's limit {ends:.2f}"
        )
        readings.append(read_as(f"k = {k:g}", measured, every([bounded, lasting]), _count(at_k)))
        alone = every([bounded, at_least(share.estimates[-1], 0.95 * ends)])
        at_largest = f"{share.estimates[-1].mean:.3f} at {share.x[-1]:g} nodes, a continuous square's limit {ends:.3f}"
        networks = _count(rows_at(at_k, nodes=share.x[-1]))
        readings.append(read_as(f"k = {k:g}, the largest size alone", at_largest, alone, networks))
        lines += [share.series(f"measured, k = {k:g}"), bound.series(f"bound, k = {k:g}")]
    return found(*readings, series=lines)


@claim(
    "The chance of a good place for a rendezvous point is nearly constant over the tested sizes, 80 to 3,000 nodes "
    "(within a tenth)",
    "section 6, conclusion ii",
    "for the network sizes tested it seems to be nearly constant",
    fails_if="rendezvous points lie in a square of constant size instead of the whole area",
)
def nearly_constant(rows: Rows) -> Finding:
    readings = []
    tested = [row for row in rows["chances"] if row["nodes"] <= TESTED]
    for k in (0.5, *(k for k in CLOSENESS if k != 0.5)):
        at_k = rows_at(tested, k=k)
        share = curve(at_k, "nodes", "share")
        why = (
            "hops are whole numbers: in a small network most paths have two or three, so that 2kl hops more reach most "
            "of it; the chance falls towards a continuous square's"
        )
        measured = f"chance of a path within l + 2kl, by nodes: {share:.2f}"
        readings.append(read_as(f"the theorem's chance, k = {k:g}", measured, _alike(share, 0.9), _count(at_k), why))
    single = curve(rows_at(rows["paths"], n=1), "nodes", "ratio")
    measured = f"hops through one random cell over the direct ones, by nodes: {single:.2f}"
    networks = _count(rows_at(rows["paths"], n=1))
    readings.append(read_as("figure 3(b) with one cell", measured, _alike(single, 0.9), networks))
    return found(*readings)


def _alike(line: Curve, share: float) -> Compared:
    """Whether the lowest point of a curve is at least this share of the highest; the points are of other networks."""
    return at_least(apart(line.lowest, line.highest, times=share), 0.0)


@claim(
    "The network meets the theorem's assumptions: bounded growth, and paths in proportion to the diameter",
    "section 3",
    "|N(X, 2r)| <= Δ |N(X, r)| for a constant Δ; E[l] / L > ε for every L",
    fails_if="nodes stand on a line that branches at every node",
)
def assumptions(rows: Rows) -> Finding:
    at_k = rows_at(rows["chances"], k=CLOSENESS[0])
    growth = curve(at_k, "nodes", "growth")
    share = curve([{**row, "share": row["mean_length"] / row["diameter"]} for row in at_k], "nodes", "share")
    rise = apart(growth.estimates[-1], growth.at(3000, 600).estimates[-1], times=1.1)
    parts = (
        read_as(
            "bounded growth: Δ does not rise beyond 3,000 nodes (by more than a tenth)",
            f"largest |N(X, 2r)| / |N(X, r)| found, by nodes: {growth:.1f}",
            at_most(rise, 0.0),
            _count(at_k),
            "balls of twice the radius hold ever more nodes",
        ),
        read_as(
            "paths in proportion to the diameter: E[l] / L does not fall below a quarter",
            f"mean path over diameter, by nodes: {share:.2f}",
            above(share, 0.25),
            _count(at_k),
            "the diameter grows faster than the mean path",
        ),
    )
    return found(all_hold("both", parts), *parts)


@claim(
    "Rendezvous cells that are tried and not kept cost 3(n - 1) messages in the stable setting",
    "section 4",
    "3(n - 1): a subscription, a notification and a prune each",
    fails_if="a subscriber does not prune the paths that it does not keep",
)
def unused_cells(rows: Rows) -> Finding:
    parts, holds, seeds = [], True, 0
    for (n,), group in grouped(rows["messages"], "n").items():
        full = [row for row in group if row["notified"] == n]
        holds &= bool(full) and all(row["unnecessary"] == 3 * (n - 1) and row["to_publisher"] == 0 for row in full)
        holds &= all(row["unnecessary"] == row["expected"] for row in group)
        parts.append(f"{n}: {estimate(row['unnecessary'] for row in full).mean:g} over {len(full)} new subscribers")
        seeds = max(seeds, len({row["seed"] for row in group}))
    return found(read_as("messages, each once however many hops", "; ".join(parts), holds, seeds))


@claim(
    "With the two nearest cells, latencies close to a direct path cost only 3 additional messages",
    "section 6, conclusion i",
    "close to a direct path using only 3 additional messages (in a stable scenario)",
    fails_if="a subscriber tries all 8 cells instead of the two nearest",
)
def three_messages(rows: Rows) -> Finding:
    extra = [row["unnecessary"] for row in rows["messages"] if row["n"] == 2 and row["notified"] == 2]
    readings = []
    for column, name in AVERAGES.items():
        hops = mean_of(rows["nearest"], column, m=2)
        measured = f"{estimate(extra).mean:g} messages, {hops.mean:.2f} of the direct path's hops"
        why = "three messages, but more than a quarter more hops"
        close = every([Compared(set(extra) == {3}), at_most(hops, SIMILAR)])
        readings.append(read_as(name, measured, close, hops.count, why))
    return found(*readings)


@claim(
    "Routing always converges: every notification reaches its home cell and its subscribers on a connected cell graph",
    "section 2.1",
    "proved in the paper's [1]",
    "nodes",
    "hops over the direct route's",
    log_x=True,
    fails_if="a packet is dropped at a local minimum instead of walking the perimeter",
)
def converges(rows: Rows) -> Finding:
    line = curve(rows["growing"], "nodes", "delivery_ratio")
    stretch = curve(rows["growing"], "nodes", "stretch")
    return found(
        read_as(
            "delivery ratio of the machines on still networks",
            f"by nodes: {line:.4f}; hops over the direct route's {stretch:.2f}",
            min(row["delivery_ratio"] for row in rows["growing"]) == 1.0,
            rows["growing"],
        ),
        series=[stretch.series("stretch")],
    )


@claim(
    "Cell Hash Routing scales better with node density than routing without clusters",
    "section 2.2, from its [1]",
    "scales better with node density than unclustered approaches",
)
def density(_: Rows) -> Finding:
    return not_measurable("as cited", "the paper cites it and measures no unclustered hash table")


@beyond_the_paper(
    "At 1 to 20 m/s (random waypoint, no pauses) at least 95 % of the notifications arrive",
    x_label="m/s",
    fails_if="keys stay behind when a cell becomes empty",
)
def motion(rows: Rows) -> Finding:
    moving = rows["moving"]
    line, stretch = curve(moving, "speed_m_s", "delivery_ratio"), curve(moving, "speed_m_s", "stretch")
    control = curve(moving, "speed_m_s", "control_bytes_per_node_s")
    measured = f"delivered, by m/s: {line:.3f}; stretch {stretch:.2f}; control bytes a node and second {control:.0f}"
    return found(
        read_as("delivery ratio", measured, at_least(line, 0.95), moving),
        series=[line.series("delivery ratio"), stretch.series("stretch")],
    )


@beyond_the_paper(
    "With up to 30 % of all nodes crashing at least 95 % of the notifications arrive at the living",
    x_label="share of nodes that crash",
    fails_if="one member keeps a cell's keys instead of all",
)
def crashes(rows: Rows) -> Finding:
    line, stretch = curve(rows["crashing"], "share", "delivery_ratio"), curve(rows["crashing"], "share", "stretch")
    measured = f"delivered among the living, by share of nodes: {line:.3f}; stretch {stretch:.2f}"
    return found(
        read_as("delivery ratio", measured, at_least(line, 0.95), rows["crashing"]),
        series=[line.series("delivery ratio")],
    )


@claim(
    "What a cell keeps does not grow with the network (mean within a quarter)",
    "section 6; not measured there",
    "reduces the latency without compromising the scalability",
    x_label="nodes",
    y_label="records",
    log_x=True,
    fails_if="every cell keeps every topic's records",
)
def state(rows: Rows) -> Finding:
    """First what a cell keeps on average; then the fullest cell, by the same bound."""
    means: list[ClaimReading] = []
    fullest: list[ClaimReading] = []
    lines: list[Series] = []
    for (zipf,), group in grouped(rows["state"], "zipf").items():
        name = "equally popular topics" if zipf == 0 else f"Zipf's law, exponent {zipf:g}"
        mean, most = curve(group, "nodes", "mean"), curve(group, "nodes", "most")
        measured = f"records a populated cell keeps, by nodes: {mean:.1f}; the fullest cell {most:.0f}"
        means.append(read_as(name, measured, _alike(mean, 0.8), _count(group)))
        why = (
            "of more cells one is fuller by chance"
            if zipf == 0
            else "the cells of the most popular topic keep a share of all subscribers"
        )
        text = f"records, by nodes: {most:.0f}"
        fullest.append(read_as(f"the fullest cell, {name}", text, _alike(most, 0.8), _count(group), why))
        lines += [mean.series(f"mean, {name}"), most.series(f"fullest, {name}")]
    return found(*means, *fullest, series=lines)
