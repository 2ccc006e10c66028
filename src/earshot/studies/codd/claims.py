"""The CoDD paper's claims about overhead and depth on synthetic data, figures 7 to 12, under several readings.

"Rapidly", "minor", "substantially" or "gradual" have no numbers in the paper: each claim states its bound.
A node's overhead is first what section 4 defines: its extraneous transfers over all its transfers, over the whole
run. Beside it stands what it was in each stretch of 50 documents, over the nodes that had children just then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from earshot.studies.codd.runs import AS_PRINTED, AS_READ, POLICIES, READINGS
from earshot.studies.figures import (
    Compared,
    Curve,
    Estimate,
    Line,
    Row,
    Series,
    above,
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
    seeds_of,
)
from earshot.studies.study import ClaimReading, Claims, Finding, Rows, found, read_as

CLAIMS = Claims()
claim = CLAIMS.claim
BOTH = ["codd-r", "codd-nr"]
ALL = [*BOTH, "siena"]
DTDS = ("news", "protein", "customer")
NAMES = {"codd-r": "CoDD-R", "codd-nr": "CoDD-NR", "siena": "Siena", "siena-binary": "Siena, binary tree"}
WAYS = {
    "node_overhead": "a node's overhead over the whole run, mean over nodes that ever had children",
    "interior_overhead": "overheads in stretches of 50 documents, mean over the nodes with children in each",
    "system_overhead": "the system's: all extraneous transfers over all transfers",
}
"The paper's node overhead, its interior node overhead as snapshots, and its system overhead."
BROKERS = {
    "own, all brokers": "all designated brokers, against a broker's own query, as CoDD's nodes",
    "own, interior brokers": "brokers with brokers below them, against a broker's own query",
    "clients, all brokers": "all designated brokers; what their clients want is not overhead",
    "clients, interior brokers": "brokers with brokers below them; what their clients want is not overhead",
}
"How Siena's overhead is counted: over which brokers, and against which query."
STILL = "reorganisation moves nobody"
EARLY = "all nodes join before the first document"


def documents_of(rows: Sequence[Row]) -> str:
    """How many documents the shortest of the runs has, in words."""
    return f"{min((row.get('documents', 0) for row in rows), default=0):,} documents"


def sizes_of(rows: Sequence[Row]) -> str:
    """The nodes and documents of the smallest of the runs, in words."""
    return f"{min((row.get('nodes', 0) for row in rows), default=0)} nodes, {documents_of(rows)}"


def _ranked(rows: Sequence[Row], system: str, column: str = "top_100") -> Series:
    """A line of figures 7 and 8: overhead by rank, the mean over seeds."""
    lists = [[*row[column], *[0.0] * 100][:100] for row in rows_at(rows, system=system)]
    means = [math.fsum(values) / len(values) for values in zip(*lists, strict=True)]
    return Series(NAMES[system], list(range(1, 101)), means)


def _gain(rows: Sequence[Row], column: str) -> tuple[float, float, Estimate]:
    """The column without and with reorganisation, and the share by which it is lower, seed by seed."""
    after, before = (rows_at(rows, system=system) for system in BOTH)
    ratio = ratio_to(after, before, column, "seed")
    less = replace(ratio, mean=1 - ratio.mean, low=1 - ratio.high, high=1 - ratio.low)
    return mean_of(before, column).mean, mean_of(after, column).mean, less


@claim(
    "Reorganisation lowers the average overhead of interior nodes by over half",
    "section 4, figure 7",
    "the average overhead decreases by over 50 %",
    "rank of the node",
    "overhead",
    fails_if=STILL,
)
def halved(rows: Rows) -> Finding:
    default, readings = rows["default"], []
    for column, name in WAYS.items():
        without, with_, lower = _gain(default, column)
        measured = f"{documents_of(default)}: {_change(without, with_, lower.mean)}"
        readings.append(read_as(name, measured, above(lower, 0.5), default, SPREADS))
    shown = [{**row, "shown": math.fsum(row["top_100"]) / 100} for row in default]
    without, with_, lower = _gain(shown, "shown")
    had = [mean_of(default, "with_overhead", system=system).mean for system in reversed(BOTH)]
    why = (
        f"without reorganisation {had[0]:.0f} nodes have overhead at some time, with it {had[1]:.0f}: those that have "
        "little lower the mean and are not among the 100"
    )
    as_shown = "the 100 highest overheads, as the figure shows"
    readings.append(read_as(as_shown, _change(without, with_, lower.mean), above(lower, 0.5), default, why))
    by_reading = {name: group for (name,), group in grouped(rows["readings"], "reading").items()}
    short = ""
    for name in sorted(by_reading, key=lambda name: (name != AS_READ, name)):
        group = by_reading[name]
        if {row["system"] for row in group} >= set(BOTH):
            without, with_, lower_then = _gain(group, "node_overhead")
            measured = f"{documents_of(group)}, whole run: {_change(without, with_, lower_then.mean)}"
            words = "as the first reading, but a shorter run" if name == AS_READ else name
            readings.append(read_as(words, measured, above(lower_then, 0.5), group, short))
            if name == AS_READ and lower_then.mean <= 0.5:
                short = "at this length the first reading does not hold either"
    return found(*readings, series=[_ranked(default, system) for system in BOTH])


def _change(before: float, after: float, less: float) -> str:
    """From one overhead to another, in words."""
    return f"{before:.3f} to {after:.3f}: {abs(less):.0%} {'less' if less >= 0 else 'more'}"


SPREADS = (
    "moves give many more nodes children for a while: that lowers the mean over nodes that ever had any, and not this"
)


@claim(
    "Policies lower the cost of reorganisation (fewer control messages) without significant loss (at most a tenth more "
    "overhead)",
    "section 3.3",
    "a set of policies to limit the overhead of reorganization without significant loss in performance",
    fails_if="a policy refuses every move",
)
def policies(rows: Rows) -> Finding:
    """Each policy beside the same protocol without it. The paper lists three, and gives their parameters no values:
    first, each of the three must serve at one of the settings measured here."""
    runs, readings = rows["policies"], []
    judged: dict[str, Compared] = {}
    for name in POLICIES:
        without = rows_at(runs, reading=AS_PRINTED if name.startswith("delta") else AS_READ)
        limited = rows_at(runs, reading=name)
        over, cost = (ratio_to(limited, without, column, "seed") for column in ("node_overhead", "control"))
        moves = [mean_of(group, "moves").mean for group in (without, limited)]
        measured = (
            f"{over.mean:.2f} times the overhead, {cost.mean:.2f} times the control messages, {moves[1]:.0f} moves "
            f"instead of {moves[0]:.0f}; {documents_of(limited)}"
        )
        little_lost, cheaper = at_most(over, 1.1), below(cost, 1.0)
        judged[name] = every([little_lost, cheaper])
        why = "every refused move has cost its search already" if little_lost.holds else "the overhead rises"
        readings.append(read_as(name, measured, judged[name], limited, why))
    best = {
        policy: _surest([judged[name] for name in judged if name.startswith(starts)])
        for policy, starts in THREE_POLICIES.items()
    }
    answers = "; ".join(f"{policy}: {'yes' if one.holds else 'no'}" for policy, one in best.items())
    return found(
        read_as("each of the three policies, at one setting or more", answers, every(best.values()), runs, "see each"),
        read_as("one policy or more, at one setting or more", answers, _surest(best.values()), runs, "see each"),
        *readings,
    )


THREE_POLICIES = {
    "frequency and overhead threshold": ("frequency", "overhead threshold"),
    "top-c": ("top-c",),
    "delta-threshold": ("delta-threshold",),
}
"Section 3.3's policies, and how the names of their settings start."


def _surest(parts: Iterable[Compared]) -> Compared:
    """One part at least: the one that holds most clearly; where none holds, the one that is nearest to holding."""
    listed = list(parts)
    held = [part for part in listed if part.holds]
    return max(held, key=lambda part: part.gap) if held else min(listed, key=lambda part: part.gap)


@claim(
    "Places that were chosen without statistics do not matter for long (at most a tenth more overhead than others)",
    "section 3.1",
    "inaccuracies of the structural match do not cause long-lasting inefficiencies because of reorganizations",
    fails_if=STILL,
)
def early_places(rows: Rows) -> Finding:
    """Nodes that all join before the first document have no statistics to be placed by."""
    readings = []
    for column, name in WAYS.items():
        measured, decides = [], estimate([])
        for system in reversed(BOTH):
            early, later = (rows_at(rows["readings"], system=system, reading=reading) for reading in (EARLY, AS_READ))
            decides = ratio_to(early, later, column, "seed")
            measured.append(f"{NAMES[system]} {mean_of(early, column).mean:.3f}, {decides.mean:.2f} times")
        text = (
            f"{documents_of(rows['readings'])}, all joined before the first: {'; '.join(measured)} that of later joins"
        )
        why = "the run is short: each node can move a few times only"
        readings.append(read_as(name, text, at_most(decides, 1.1), rows["readings"], why))
    return found(*readings)


@claim(
    "Sending the stream to every node has far more overhead (CoDD-R at most half of it)",
    "section 2",
    "multicast to each node would entail a significant communication overhead",
    fails_if="a parent forwards every document to every child",
)
def below_multicast(rows: Rows) -> Finding:
    runs = rows_at(rows["default"], system="codd-r")
    multicast = estimate(1 - row["selectivity"] for row in runs)
    codd = mean_of(runs, "system_overhead")
    share = estimate(row["system_overhead"] / (1 - row["selectivity"]) for row in runs)
    measured = f"CoDD-R {codd.mean:.3f}; of documents sent to every node {multicast.mean:.3f} are not wanted there"
    return found(read_as("the system's overhead", measured, at_most(share, 0.5), runs, "it is more than half"))


def less_than_siena(
    name: str, rows: Sequence[Row], column: str, system: str, siena_column: str, why: str
) -> ClaimReading:
    """Whether CoDD-R's overhead is below Siena's, seed by seed."""
    codd, siena = (rows_at(rows, system=one) for one in ("codd-r", system))
    less = difference_to(codd, siena, column, "seed", other=siena_column)
    measured = f"CoDD-R {mean_of(codd, column).mean:.3f}, Siena {mean_of(siena, siena_column).mean:.3f}"
    return read_as(name, measured, below(less, 0.0), rows, why)


@claim(
    "CoDD's overhead is below Siena's",
    "section 4, figure 8",
    "CoDD performs well because its topologies are data-aware",
    "rank of the node",
    "overhead",
    fails_if="a node takes one child only, so that the tree is a chain",
)
def below_siena(rows: Rows) -> Finding:
    default, readings = rows["default"], []
    why = "a broker's clients want different things, so most that it passes on is wanted by one of them"
    for system in ("siena", "siena-binary"):
        for column, name in BROKERS.items():
            tree = "" if system == "siena" else ", brokers in a binary tree"
            readings.append(less_than_siena(name + tree, default, "node_overhead", system, column, why))
    lines = [_ranked(default, "codd-r"), _ranked(default, "siena", "own, ranked")]
    return found(*readings, series=lines)


@claim(
    "Siena's overhead drops sharply at the 29th broker, and is flat beyond",
    "section 4, figure 8",
    "sharp decrease at x = 29; leaves incur no overhead and are the flat portion",
    fails_if="leaf brokers receive what their clients do not want",
)
def the_29th_broker(rows: Rows) -> Finding:
    """One node in f + 1 is a broker: 58 of 400 and the source. How many of them are interior is the tree's width."""
    readings = []
    for system, tree in (("siena", "the brokers' tree as wide as f"), ("siena-binary", "the brokers' tree binary")):
        runs = rows_at(rows["default"], system=system)
        for kind, name in (("own", "against a broker's own query"), ("clients", "what clients want is not overhead")):
            drops = [row[f"{kind}, with overhead"] + 1 for row in runs]
            expected = (runs[0]["nodes"] + 1) / 14
            holds = all(abs(drop - expected) <= 2 for drop in drops)
            measured = f"the first rank without overhead is {', '.join(map(str, drops))}; the root has none"
            why = (
                "leaf brokers receive what their clients want and they do not"
                if kind == "own"
                else f"{runs[0]['interior_brokers'] + 1} of {runs[0]['brokers'] + 1} brokers have others below them"
            )
            readings.append(read_as(f"{tree}, {name}", measured, holds, len(runs), why))
    return found(*readings)


@claim(
    "A larger share of CoDD's nodes than of Siena's are leaves",
    "section 4, figure 8",
    "CoDD's trees have, in general, a larger fraction of leaf nodes, which incur no overhead",
    fails_if="a node takes one child only, so that the tree is a chain",
)
def more_leaves(rows: Rows) -> Finding:
    """First the trees' leaves; beside them the nodes that never had overhead, whatever their place."""
    default, readings = rows["default"], []
    trees = {"siena": "the brokers' tree as wide as f", "siena-binary": "the brokers' tree binary"}
    never = [{**row, "never": 1 - row["with_overhead"] / row["nodes"]} for row in default if row["system"] in BOTH]

    def reading(name: str, codd: Sequence[Row], column: str, siena: Sequence[Row], other: str, why: str) -> None:
        shares = {system: mean_of(codd, column, system=system).mean for system in BOTH}
        of_siena = mean_of(siena, other)
        measured = f"CoDD-R {shares['codd-r']:.2f}, CoDD-NR {shares['codd-nr']:.2f}, Siena {of_siena.mean:.2f}"
        more = difference_to(rows_at(codd, system="codd-r"), siena, column, "seed", other=other)
        readings.append(read_as(name, measured, above(more, 0.0), siena, why))

    for system, tree in trees.items():
        siena = rows_at(default, system=system)
        name = f"leaves of the tree; {tree}, without clients"
        reading(name, default, "leaf_share", siena, "leaf_share", _FEWEST)
    siena = rows_at(default, system="siena")
    reading("leaves of the tree, Siena's clients among them", default, "leaf_share", siena, _WITH_CLIENTS, _CLIENTS)
    for system, tree in trees.items():
        for kind, words in (("clients", "what clients want is not overhead"), ("own", "against a broker's own query")):
            siena = [
                {**row, "never": 1 - row[f"{kind}, with overhead"] / row["brokers"]}
                for row in rows_at(default, system=system)
            ]
            why = "moves give most nodes of CoDD-R children at some time"
            reading(f"never any overhead; {tree}, {words}", never, "never", siena, "never", why)
    return found(*readings)


_WITH_CLIENTS = "leaf_share_with_clients"
_FEWEST = "where a node has at most f children, no tree has more leaves than a balanced one"
_CLIENTS = "every client is a leaf, and of f + 1 nodes f are clients"


def _by_fan_out(rows: Rows, system: str, column: str) -> Curve:
    return curve(rows_at(_fan_outs(rows), system=system), "fan_out", column)


def _fan_outs(rows: Rows) -> list[Row]:
    """The runs of figure 9: those of the default fan-out stand among the default's."""
    return [*rows["fan-outs"], *(row for row in rows["default"] if row["system"] in ALL)]


@claim(
    "The overhead drops rapidly from fan-out 2 to 4, and little beyond (by less than half of that)",
    "section 4, figure 9",
    "drops rapidly from 2 to 4, with minor improvements beyond",
    "fan-out",
    "overhead",
    fails_if="a node takes children beyond its fan-out",
)
def steep_then_flat(rows: Rows) -> Finding:
    readings = []
    for column, name in WAYS.items():
        line = _by_fan_out(rows, "codd-r", column)
        at = line.means
        change = f"{at[4] - at[2]:+.3f} from 2 to 4, {at[max(at)] - at[4]:+.3f} from there on"
        measured = f"{sizes_of(rows['fan-outs'])}, by fan-out {line:.3f}: {change}"
        by_seed = grouped(rows_at(_fan_outs(rows), system="codd-r"), "seed").values()
        seeds = [{row["fan_out"]: row[column] for row in group} for group in by_seed]
        drops = [(overhead[2] - overhead[4], overhead[4] - overhead[max(at)]) for overhead in seeds]
        # A drop at first, and twice what changes beyond 4, up or down, is less than it.
        steep = every(above(estimate(first - times * later for first, later in drops), 0.0) for times in (0, 2, -2))
        why = "a wide tree mainly has fewer interior nodes; each of them has as much overhead"
        readings.append(read_as(name, measured, steep, _fan_outs(rows), why))
    return found(*readings, series=[_by_fan_out(rows, system, "node_overhead").series(NAMES[system]) for system in ALL])


@claim(
    "Siena's overhead rises gradually with the fan-out",
    "section 4, figure 9",
    "gradually increases as fan-out is increased",
    fails_if="every broker has as many clients, however large the fan-out is",
)
def siena_rises(rows: Rows) -> Finding:
    readings = []
    for column, name in BROKERS.items():
        line = _by_fan_out(rows, "siena", column)
        runs = rows_at(_fan_outs(rows), system="siena")
        fit = fit_line([row["fan_out"] for row in runs], [row[column] for row in runs])
        measured = f"{sizes_of(rows['fan-outs'])}, by fan-out {line:.3f}; slope {fit:+.4f}"
        why = (
            "more clients want more of what a broker receives"
            if column.startswith("clients")
            else ("a broker's own query does not become rarer with more clients, and the tree becomes flatter")
        )
        readings.append(read_as(name, measured, above(fit, 0.0, surely=True), _fan_outs(rows), why))
    return found(*readings)


def _sized(rows: Rows, system: str, fan_out: int) -> list[Row]:
    """The runs with this fan-out at all sizes. Those of the default size count where they are of the same length."""
    (documents,) = {row["documents"] for row in rows_at(rows["sizes"], fan_out=fan_out)}
    runs = [*rows["sizes"], *rows["fan-outs"], *rows["default"]]
    return rows_at(runs, system=system, fan_out=fan_out, documents=documents)


@claim(
    "At every size reorganisation lowers the overhead, and its rise with the size is slower",
    "section 4, figure 10",
    "substantially lowered by reorganisation; the rate of increase is lower",
    "nodes",
    "overhead",
    log_x=True,
    fails_if=STILL,
)
def size_lowered(rows: Rows) -> Finding:
    readings, lines = [], []
    for column, name in WAYS.items():
        measured, lower, slower = [], [], []
        for fan_out in (4, 6):
            curves = _by_size(rows, fan_out, column)
            slopes = {system: _per_doubling(_sized(rows, system, fan_out), column).slope for system in BOTH}
            gained = _gained(rows, fan_out, column)
            lower.append(below(curve(gained, "nodes", "gained"), 0.0))
            slower.append(below(_per_doubling(gained, "gained"), 0.0))
            measured.append(
                f"f = {fan_out}, {documents_of(gained)}: without {curves['codd-nr']:.3f}, with {curves['codd-r']:.3f}; "
                f"for each doubling {slopes['codd-nr']:+.4f} and {slopes['codd-r']:+.4f}"
            )
            if column == "node_overhead":
                lines += [line.series(f"{NAMES[system]}, f = {fan_out}") for system, line in curves.items()]
        why = "lower at every size, but not slower to rise" if every(lower).holds else "not lower at every size"
        words = f"{name}; slopes are compared, whether it rises or falls"
        readings.append(read_as(words, "; ".join(measured), every([*lower, *slower]), rows["sizes"], why))
    return found(_rises_more_slowly(rows), *readings, series=lines)


def _by_size(rows: Rows, fan_out: int, column: str) -> dict[str, Curve]:
    return {system: curve(_sized(rows, system, fan_out), "nodes", column) for system in BOTH}


def _gained(rows: Rows, fan_out: int, column: str) -> list[Row]:
    """Size by size and seed by seed: the column with reorganisation less that without."""
    with_, without = (_sized(rows, system, fan_out) for system in BOTH)
    known = {(row["nodes"], row["seed"]): row[column] for row in without}
    return [{**row, "gained": row[column] - known[row["nodes"], row["seed"]]} for row in with_]


def _per_doubling(rows: Sequence[Row], column: str) -> Line:
    return fit_line([math.log2(row["nodes"]) for row in rows], [row[column] for row in rows])


def _rises_more_slowly(rows: Rows) -> ClaimReading:
    """That there is a rise at all: where the overhead falls with the size, no rise is slower than another."""
    parts, texts = [], []
    for fan_out in (4, 6):
        with_, without = (_per_doubling(_sized(rows, system, fan_out), "node_overhead") for system in BOTH)
        gained = _gained(rows, fan_out, "node_overhead")
        less = _per_doubling(gained, "gained")
        parts += [below(curve(gained, "nodes", "gained"), 0.0), above(with_, 0.0), below(less, 0.0)]
        texts.append(f"f = {fan_out}: {without.slope:+.4f} without, {with_.slope:+.4f} with")
    words = f"{WAYS['node_overhead']}; it does rise with the size"
    measured = f"for each doubling of the nodes {'; '.join(texts)}"
    why = "it does not rise with the size, or not more slowly"
    return read_as(words, measured, every(parts), rows["sizes"], why)


@claim(
    "Reorganisation lowers weighted average depths (by a tenth or more) and the greatest of them",
    "section 4.1, figure 11",
    "reduced significantly; maximum substantially lower",
    "rank of the node",
    "weighted average depth",
    fails_if=STILL,
)
def depth_lowered(rows: Rows) -> Finding:
    def reading(name: str, group: Sequence[Row]) -> ClaimReading:
        runs = [{**row, "most": row["depths"][-1]} for row in group]
        with_, without = (rows_at(runs, system=system) for system in BOTH)
        lower = below(ratio_to(with_, without, "depth", "seed"), 0.9)
        least = below(difference_to(with_, without, "most", "seed"), 0.0)
        measured = (
            f"{documents_of(group)}: mean {mean_of(without, 'depth').mean:.2f} without, "
            f"{mean_of(with_, 'depth').mean:.2f} with; the greatest {mean_of(without, 'most').mean:.2f} and "
            f"{mean_of(with_, 'most').mean:.2f}"
        )
        return read_as(name, measured, every([lower, least]), group, _FIRST_FREE)

    others = [
        reading(name, rows_at(rows["readings"], reading=name))
        for name in _JOINING
        if rows_at(rows["readings"], reading=name)
    ]
    default = rows["default"]
    depths = {system: rows_at(default, system=system)[0]["depths"] for system in BOTH}
    lines = [Series(NAMES[system], list(range(1, len(depth) + 1)), depth) for system, depth in depths.items()]
    return found(reading(AS_READ, default), *others, series=lines)


_JOINING = [name for name, changed in READINGS.items() if {"joining", "shuffle"} & changed.keys()]
_FIRST_FREE = (
    "where overlaps are unknown, joins make a nearly balanced tree before any move, and figure 6 weighs a place by its "
    "overhead and not by its depth"
)


@claim(
    "With reorganisation the depth grows like log n",
    "section 4.1, figure 12",
    "gradual, roughly following a log x curve",
    "nodes",
    "mean weighted average depth",
    fails_if="a join goes down to a leaf instead of ending at the first node with room",
)
def depth_with(rows: Rows) -> Finding:
    return _depth_grows(rows, "codd-r", "log", f"{_SKEWED}; moves weigh a place by its overhead and not by its depth")


@claim(
    "Without reorganisation the depth grows linearly",
    "section 4.1, figure 12",
    "depth is seen to increase linearly with network size",
    "nodes",
    "mean weighted average depth",
    fails_if="TYPE_ADD goes to a child at random, so that the tree is balanced",
)
def depth_without(rows: Rows) -> Finding:
    return _depth_grows(rows, "codd-nr", "line", _NOT_APART)


_NOT_APART = (
    "a join follows the child with the most overlap, so that some branches become deep, but it ends at the first node "
    "with room, so that the depth stays far below a line's; the depths of two seeds do not tell the curves apart"
)
_SKEWED = "a join follows the child with the most overlap, so that some branches become deep"


def _depth_grows(rows: Rows, system: str, wanted: str, why: str) -> Finding:
    runs = _sized(rows, system, 6)
    line = curve(runs, "nodes", "depth")
    grown = [sorted((row["nodes"], row["depth"]) for row in group) for group in grouped(runs, "seed").values()]
    log, straight, less = _misfits(grown)
    misfits = f"misfit by seed of a log {log:.3f}, of a line {straight:.3f}"
    measured = f"{documents_of(runs)}, by nodes {line:.2f}; {misfits}"
    name = f"a {'logarithm' if wanted == 'log' else 'line'} fits better"
    better = below(less, 0.0) if wanted == "log" else above(less, 0.0)
    return found(read_as(name, measured, better, runs, why), series=[line.series(NAMES[system])])


def _misfits(runs: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float, Estimate]:
    """Of each run's points: the mean misfits of a logarithm and of a line, and by how much the logarithm's is more."""
    log = [_misfit([math.log2(x) for x, _ in points], [y for _, y in points]) for points in runs]
    line = [_misfit([x for x, _ in points], [y for _, y in points]) for points in runs]
    return estimate(log).mean, estimate(line).mean, estimate(a - b for a, b in zip(log, line, strict=True))


def _misfit(x: Sequence[float], y: Sequence[float]) -> float:
    fit = fit_line(x, y)
    return math.sqrt(math.fsum((b - fit.slope * a - fit.intercept) ** 2 for a, b in zip(x, y, strict=True)))


@claim(
    "A join takes at most h x s messages, h the tree's depth and s the seeds",
    "section 3.1",
    "the number of messages exchanged is bounded by h x s",
    fails_if="TYPE_ADD goes to all children instead of the one with the most overlap",
)
def join_messages(rows: Rows) -> Finding:
    groups = {1: [*rows["default"], *rows["fan-outs"]], 3: rows_at(rows["readings"], reading="three seeds")}
    readings = []
    for kind, name in ((0, "TYPE_ADD messages, h counted in levels"), (1, "all messages of a join")):
        for seeds, group in groups.items():
            joins = [join for row in group if row["system"] in BOTH for join in row["joins"]]
            if not joins:
                continue
            over = [join[kind] / (join[2] * seeds) for join in joins]
            measured = f"{len(joins):,} joins: mean {estimate(over).mean:.2f}, at most {max(over):.2f} of h x s"
            why = "a candidate answers, the newcomer asks it, and the query goes up to the root: about 2 h more"
            holds = max(over) <= 1.0
            runs = seeds_of(group)
            readings.append(read_as(f"{name}, s = {seeds}", measured, holds, runs, why))
    return found(*readings)


@claim(
    "The depth of the tree grows logarithmically with the nodes that join",
    "section 3.1",
    "a random split tree: balanced networks with low overheads",
    fails_if="a join goes down to a leaf instead of ending at the first node with room",
)
def joined_depth(rows: Rows) -> Finding:
    """The levels right after each of the joins of the largest network, by the number of nodes in it."""
    sized = _sized(rows, "codd-nr", 6)
    biggest = max(row["nodes"] for row in sized)
    runs = rows_at(sized, nodes=biggest)
    grown = [[(place + 1, join[2]) for place, join in enumerate(row["joins"])] for row in runs]
    points = [point for run in grown for point in run]
    fit = fit_line([math.log2(place) for place, _ in points], [levels for _, levels in points])
    log, line, less = _misfits(grown)
    return found(
        read_as(
            "the levels of the tree: a logarithm fits better than a line",
            f"{biggest} nodes: {fit:.2f} levels a doubling, {max(levels for _, levels in points)} levels; misfit by "
            f"seed of a log {log:.1f}, of a line {line:.1f}",
            below(less, 0.0),
            len(runs),
            _SKEWED,
        )
    )
