"""The GeoRendezvous study: figures 3(a) to (d), section 3's theorem, the cost of unused rendezvous
cells, and beyond the paper: motion, crashes, 30,000 nodes, state by cell.

Each claim states how it reads words such as "similar", "close" or "limited".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.studies.georendezvous.paths import CLOSENESS, chances, nearest, paths, state, trees
from earshot.studies.georendezvous.runs import crashing, growing, messages, moving
from earshot.studies.study import (
    Claims,
    Experiment,
    Finding,
    Rows,
    Study,
    cases,
    curve,
    estimate,
    fit_line,
    grouped,
    rows_at,
    verdict,
)

CLAIMS = Claims()
claim = CLAIMS.claim
beyond_the_paper = partial(CLAIMS.claim, where="beyond the paper", paper="not measured")

SIZES = (80, 150, 300, 600, 1000, 2000, 3000)
IN_BLOCK = 20
"200 networks, in blocks; a block is one task."
FLAT = 0.02
"Of the direct path, for each doubling of the network: a smaller change counts as no dependence."


@claim(
    "Up to 8 rendezvous cells give latencies similar to a direct path (at most a quarter more hops)",
    "section 4, figure 3(a)",
    "similar to those of a direct path with less than 8 rendezvous cells",
    "rendezvous cells n",
    "hops over the direct route's",
)
def _best_of_n(rows: Rows) -> Finding:
    at_600 = rows_at(rows["paths"], nodes=600)
    line = curve(at_600, "n", "ratio")
    return Finding(
        f"hops over the direct route's at 600 nodes: {line.at(1, 2, 4, 7, 8, 16)}",
        line.means[8] <= 1.25,
        series=[line.series("all paths' hops"), curve(at_600, "n", "path_ratio").series("mean of the paths' ratios")],
    )


@claim(
    "More than 8 rendezvous cells gain little (8 more at most a fifth of what the first 8 gain)",
    "section 4, figure 3(a)",
    "the benefits of using more than 8 are limited",
)
def _more_than_eight(rows: Rows) -> Finding:
    ratio = curve(rows_at(rows["paths"], nodes=600), "n", "ratio").means
    gained, more = ratio[1] - ratio[8], ratio[8] - ratio[16]
    return Finding(f"1 to 8 points save {gained:.2f}, 8 to 16 another {more:.2f} of a direct path", more <= gained / 5)


@claim(
    f"The overhead does not depend on the network's size (at most {FLAT:.0%} of a direct path per doubling)",
    "section 4, figure 3(b)",
    "quite stable and largely independent of the network size",
    "nodes",
    "hops over the direct route's",
    log_x=True,
)
def _size_independent(rows: Rows) -> Finding:
    parts, flat, lines = [], True, []
    for n in (1, 2, 4, 8, 16):
        at_n = rows_at(rows["paths"], n=n)
        fit = fit_line([math.log2(row["nodes"]) for row in at_n], [row["ratio"] for row in at_n])
        parts.append(f"n = {n}: {fit:+.4f}")
        flat &= fit.low > -FLAT and fit.high < FLAT
        lines.append(curve(at_n, "nodes", "ratio").series(f"n = {n}"))
    return Finding(f"change of the ratio for each doubling of the network, {'; '.join(parts)}", flat, series=lines)


@claim(
    "Of 8 rendezvous cells the two nearest do nearly as well as all (at most a tenth more hops)",
    "section 4, figure 3(c)",
    "with 2 close to the direct path, and to all 8",
    "nearest rendezvous cells m",
    "hops over the direct route's",
)
def _two_nearest(rows: Rows) -> Finding:
    line = curve(rows["nearest"], "m", "ratio")
    ratio = line.means
    return Finding(
        f"hops over the direct route's: {line.at(1, 2, 3, 8)}; two nearest over all eight: {ratio[2] / ratio[8]:.3f}",
        ratio[2] <= 1.1 * ratio[8],
        series=[line.series("the best of the m nearest of 8")],
    )


@claim(
    "A notification tree with 8 rendezvous cells (2 nearest) costs less than one with a single cell below 8 "
    "subscribers, nearly the same at 8 (0.9 to 1.05), and less again beyond",
    "section 4, figure 3(d)",
    "ratios < 1 below 8, nearly the same at 8, increasingly better beyond",
    "subscribers",
    "cost over a single rendezvous cell's",
    log_x=True,
)
def _trees(rows: Rows) -> Finding:
    shared, copies = curve(rows["trees"], "subscribers", "shared_ratio"), curve(rows["trees"], "subscribers", "ratio")
    below = all(point.high < 1 for x, point in zip(shared.x, shared.estimates, strict=True) if x < 8)
    at = shared.means
    near, falls = 0.9 <= at[8] <= 1.05, at[32] < at[8] and max(at, key=lambda x: at[x]) in (6, 8, 12)
    few = (1, 2, 4, 8, 16, 32)
    return verdict(
        f"as trees, shared steps once: {shared.at(*few)}; as the copies that are sent: {copies.at(*few)}",
        below and near and falls,
        "the curve's shape differs: see the series",
        [shared.series("trees, shared steps counted once"), copies.series("one copy per subscriber, as sent")],
    )


@lru_cache
def limit(k: float, draws: int = 200_000) -> float:
    """The chance in an infinitely large network, where hops are distances in a square."""
    a, b, r = np.random.default_rng(3).random((3, draws, 2))
    through = np.linalg.norm(a - r, axis=1) + np.linalg.norm(r - b, axis=1)
    return float((through <= (1 + 2 * k) * np.linalg.norm(a - b, axis=1)).mean())


@claim(
    "The chance of a path within l + 2kl does not vanish as the network grows",
    "section 3, theorem 3.1",
    "bounded below by a constant",
    "nodes",
    "chance",
    log_x=True,
)
def _does_not_vanish(rows: Rows) -> Finding:
    parts, holds, lines = [], True, []
    for k in CLOSENESS:
        at_k = rows_at(rows["chances"], k=k)
        share, bound = curve(at_k, "nodes", "share"), curve(at_k, "nodes", "bound")
        ends = limit(k)
        above = all(s.low > b.high for s, b in zip(share.estimates, bound.estimates, strict=True))
        holds &= above and share.estimates[-1].high >= 0.95 * ends
        parts.append(
            f"k = {k:g}: {share.estimates[0].mean:.3f} at {share.x[0]:g} nodes, {share.estimates[-1].mean:.3f} at "
            f"{share.x[-1]:g} (bound {bound.estimates[-1].mean:.4f}, limit of a continuous square {ends:.3f})"
        )
        lines += [share.series(f"measured, k = {k:g}"), bound.series(f"bound, k = {k:g}")]
    return Finding("; ".join(parts), holds, series=lines)


@claim(
    "Rendezvous cells that are tried and not kept cost 3(n - 1) messages in the stable setting", "section 4", "3(n - 1)"
)
def _unused(rows: Rows) -> Finding:
    parts, holds = [], True
    for (n,), group in grouped(rows["messages"], "n").items():
        full = [row for row in group if row["notified"] == n]
        holds &= bool(full) and all(row["unnecessary"] == 3 * (n - 1) and row["to_publisher"] == 0 for row in full)
        holds &= all(row["unnecessary"] == row["expected"] for row in group)
        parts.append(f"n = {n}: {estimate(row['unnecessary'] for row in full)} over {len(full)} new subscribers")
    return Finding("; ".join(parts), holds)


@beyond_the_paper(
    "On a connected still network every notification arrives, up to 30,000 nodes",
    x_label="nodes",
    y_label="hops over the direct route's",
    log_x=True,
)
def _every_notification(rows: Rows) -> Finding:
    line = curve(rows["growing"], "nodes", "delivery_ratio")
    stretch = curve(rows["growing"], "nodes", "stretch")
    return Finding(
        f"delivery ratio {line}; hops over the direct route's {stretch}",
        min(row["delivery_ratio"] for row in rows["growing"]) == 1.0,
        series=[stretch.series("stretch")],
    )


@beyond_the_paper(
    "At 1 to 20 m/s (random waypoint, no pauses) at least 95 % of the notifications arrive", x_label="m/s"
)
def _motion(rows: Rows) -> Finding:
    line, stretch = curve(rows["moving"], "speed_m_s", "delivery_ratio"), curve(rows["moving"], "speed_m_s", "stretch")
    control = curve(rows["moving"], "speed_m_s", "control_bytes_per_node_s")
    records = curve(rows["moving"], "speed_m_s", "records_per_node")
    return Finding(
        f"delivery ratio {line}; stretch {stretch}; control bytes per node and second {control}; "
        f"records per node {records}",
        all(mean >= 0.95 for mean in line.means.values()),
        series=[line.series("delivery ratio"), stretch.series("stretch")],
    )


@beyond_the_paper(
    "With up to 30 % of all nodes crashing at least 95 % of the notifications arrive at the living",
    x_label="share of nodes that crash",
)
def _crashes(rows: Rows) -> Finding:
    line, stretch = curve(rows["crashing"], "share", "delivery_ratio"), curve(rows["crashing"], "share", "stretch")
    return Finding(
        f"delivery ratio among the living {line}; stretch {stretch}",
        all(mean >= 0.95 for mean in line.means.values()),
        series=[line.series("delivery ratio")],
    )


@beyond_the_paper(
    "What a cell keeps does not grow with the network (mean within a quarter)",
    x_label="nodes",
    y_label="records",
    log_x=True,
)
def _state(rows: Rows) -> Finding:
    parts, flat, lines = [], True, []
    for (zipf,), group in grouped(rows["state"], "zipf").items():
        name = "equally popular topics" if zipf == 0 else f"Zipf's law, exponent {zipf:g}"
        mean, most = curve(group, "nodes", "mean"), curve(group, "nodes", "most")
        flat &= max(mean.means.values()) <= 1.25 * min(mean.means.values())
        parts.append(
            f"{name}: mean {mean.estimates[0].mean:.1f} at {mean.x[0]:g} nodes, {mean.estimates[-1].mean:.1f} at "
            f"{mean.x[-1]:g}; fullest cell {most.estimates[0].mean:.0f} and {most.estimates[-1].mean:.0f}"
        )
        lines += [mean.series(f"mean, {name}"), most.series(f"fullest, {name}")]
    return Finding("records a populated cell keeps, " + "; ".join(parts), flat, series=lines)


def _blocks(networks: int, **parameters: Sequence[float]) -> list[dict[str, float]]:
    """Cases of networks in blocks."""
    return cases(**parameters, networks=[IN_BLOCK], seed=range(networks // IN_BLOCK))


STUDY = Study(
    name="georendezvous",
    paper=GeoRendezvous.paper,
    # The longest cases come first, so that all cores stay busy to the end.
    experiments=[
        Experiment(
            "growing", growing, cases(nodes=[30_000, 10_000, 3000, 600], seed=range(2)), cases(nodes=[150], seed=[0])
        ),
        Experiment(
            "moving",
            moving,
            cases(speed_m_s=[20.0, 10.0, 5.0, 1.0, 0.0], nodes=[600], seed=range(3)),
            cases(speed_m_s=[0.0, 10.0], nodes=[150], seed=[0]),
        ),
        Experiment(
            "paths", paths, _blocks(200, nodes=SIZES), cases(nodes=[80, 600], networks=[IN_BLOCK], seed=range(2))
        ),
        Experiment(
            "nearest",
            nearest,
            _blocks(200, nodes=[600], rendezvous=[8]),
            cases(nodes=[600], rendezvous=[8], networks=[10], seed=[0]),
        ),
        Experiment(
            "trees",
            trees,
            _blocks(200, nodes=[600], rendezvous=[8], nearest=[2], draws=[20]),
            cases(nodes=[600], rendezvous=[8], nearest=[2], draws=[4], networks=[10], seed=[0]),
        ),
        Experiment(
            "chances",
            chances,
            [*_blocks(200, nodes=SIZES), *cases(nodes=[10_000, 30_000], networks=[5], seed=range(4))],
            cases(nodes=[80, 600], networks=[5], seed=[0]),
        ),
        Experiment(
            "messages",
            messages,
            cases(n=[2, 4, 8], nodes=[600], background=[60], newcomers=[10], seed=range(3)),
            cases(n=[2, 4], nodes=[150], background=[40], newcomers=[4], seed=[0]),
        ),
        Experiment(
            "crashing",
            crashing,
            cases(share=[0.1, 0.3], nodes=[600], seed=range(3)),
            cases(share=[0.1], nodes=[150], seed=[0]),
        ),
        Experiment(
            "state",
            state,
            cases(
                nodes=[600, 3000, 10_000, 30_000], rendezvous=[8], nearest=[2], zipf=[0.0, 1.0], networks=[5], seed=[0]
            ),
            cases(nodes=[600], rendezvous=[8], nearest=[2], zipf=[0.0], networks=[2], seed=[0]),
        ),
    ],
    claims=CLAIMS,
    notes="Hops are those of cell routing; figure 3(d) is read as trees whose shared steps count once.",
)
