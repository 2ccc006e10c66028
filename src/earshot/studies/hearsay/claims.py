"""What we ask of Hearsay, judged by the measurements, seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from earshot.studies.figures import (
    Compared,
    Row,
    Series,
    always,
    at_least,
    at_most,
    below,
    curve,
    difference_to,
    every,
    grouped,
    mean_of,
    rows_at,
    seeds_of,
)
from earshot.studies.study import Claims, Finding, Rows, not_measurable, stated

CLAIMS = Claims()
claim = CLAIMS.claim
OURS = "hearsay"
POINT = 0.01
CARRIED = 0.95
"A load is carried while this share of the reachable deliveries arrives."
NOTHING_EXPECTED = "no run expected a delivery"
SILENT = "nodes pass on no event that they hear"
TALKATIVE = "nodes pass on every event that they hear (`worth = 0`)"


def mean(rows: Iterable[Row], what: str) -> float:
    """The mean of a column, without runs in which it is undefined."""
    return mean_of(rows, what).mean


def by_protocol(rows: Iterable[Row], what: str) -> dict[str, float]:
    """The mean of a column for each protocol."""
    return {name: mean(group, what) for (name,), group in grouped(rows, "protocol").items()}


def best_other(figures: dict[str, float]) -> tuple[str, float]:
    """The highest figure of another protocol."""
    name = max((name for name in figures if name != OURS), key=lambda name: figures[name])
    return name, figures[name]


def less(group: Sequence[Row], other: str, what: str, bound: float, times: float = 1.0) -> Compared:
    """Whether Hearsay's figure less `times` another protocol's, of the same seed, is at most the bound."""
    ours, theirs = rows_at(group, protocol=OURS), rows_at(group, protocol=other)
    return at_most(difference_to(ours, theirs, what, "seed", times=times), bound)


def no_worse(rows: Sequence[Row], *by: str) -> Finding:
    """Whether Hearsay delivers what the best other protocol does, less 0.2 points, in every group of rows."""
    texts, parts = [], []
    lost = [{**row, "lost": 1.0 - row["delivery"]} for row in _counted(rows)]
    for key, group in grouped(lost, *by).items():
        delivery = by_protocol(group, "delivery")
        name, other = best_other(delivery)
        parts.append(less(group, name, "lost", 0.2 * POINT))
        texts.append(f"{' '.join(f'{part}' for part in key)}: {delivery[OURS]:.4f}, {name} {other:.4f}")
    if not parts:
        return not_measurable("as stated", NOTHING_EXPECTED)
    return stated("; ".join(texts), every(parts), seeds=seeds_of(rows))


def _counted(rows: Iterable[Row]) -> list[Row]:
    """The runs in which a delivery was expected."""
    return [row for row in rows if row["delivery"] is not None]


def cheapest_near(group: Iterable[Row]) -> tuple[str, float] | None:
    """The cheapest other protocol whose delivery is within 1 point of the best, and its bytes; None if none is."""
    group = list(group)
    delivery, cost = by_protocol(group, "delivery"), by_protocol(group, "bytes")
    best = max(delivery.values())
    near = [name for name in delivery if name != OURS and delivery[name] >= best - POINT]
    return min(((name, cost[name]) for name in near), key=lambda one: one[1], default=None)


def costs_half_of(rows: Sequence[Row], by: str, reason: str) -> Finding:
    """Whether Hearsay sends at most half of the cheapest other's bytes, in every group of rows."""
    texts, parts = [], []
    for (key,), group in grouped(_counted(rows), by).items():
        ours, near = by_protocol(group, "bytes")[OURS], cheapest_near(group)
        if near is None:
            texts.append(f"{key}: {ours:.0f} B, no other within 1 point")
            continue
        parts.append(less(group, near[0], "bytes", 0.0, times=0.5))
        texts.append(f"{key}: {ours:.0f} B, {near[0]} {near[1]:.0f} B")
    if not texts:
        return not_measurable("as stated", NOTHING_EXPECTED)
    return stated("; ".join(texts), every(parts), reason, seeds=seeds_of(rows))


# The built-in scenarios.


@claim(
    "it delivers no less than the best other protocol, less 0.2 points",
    "evaluation",
    "in every radio scenario",
    fails_if=SILENT,
)
def delivers_most(rows: Rows) -> Finding:
    return no_worse(rows["scenarios"], "scenario")


@claim(
    "half the bytes of the cheapest protocol that delivers as much",
    "evaluation",
    "at most 0.5 of the cheapest other within 1 point of the best delivery, in every radio scenario",
    fails_if=TALKATIVE,
)
def costs_half(rows: Rows) -> Finding:
    reason = "contention-based forwarding already sends little; repair buys the last point of delivery with bytes"
    return costs_half_of(rows["scenarios"], "scenario", reason)


@claim(
    "where half the bytes is missed, a heuristic that knows all but the subscriptions misses it too",
    "evaluation",
    "half of the cheapest other's bytes is less than a heuristic needs that knows every place and link, loses nothing "
    "and sends no hello, but must reach every node in an event's area",
    fails_if="Hearsay misses half the bytes where such a heuristic does not, as with `worth = 0` in the city",
)
def half_is_missed_with_perfect_places(rows: Rows) -> Finding:
    texts, parts = [], []
    for what in ("scenario", "trace"):
        for (name,), group in grouped(rows["traces" if what == "trace" else "scenarios"], what).items():
            cost, near = by_protocol(group, "bytes"), cheapest_near(group)
            bound = [row for row in rows["bounds"] if row.get(what) == name]
            if near is None or cost[OURS] <= 0.5 * near[1] or not bound:
                continue
            others = rows_at(group, protocol=near[0])
            parts.append(below(difference_to(others, bound, "bytes", "seed", other="everybody_bytes", times=2.0), 0.0))
            texts.append(
                f"{name}: half is {0.5 * near[1]:.0f} B, {mean(bound, 'everybody_bytes'):.0f} B needed (knowing the "
                f"subscriptions {mean(bound, 'omniscient_bytes'):.0f} B, at the very least "
                f"{mean(bound, 'least_bytes'):.0f} B)"
            )
    return stated("; ".join(texts) or "nowhere missed", every(parts), seeds=seeds_of(rows["bounds"]))


@claim(
    "in the disaster it delivers 97 % of what is reachable",
    "evaluation",
    "at the scenario's own rate",
    fails_if="hellos bring no repair (`repair_airtime = 0`)",
)
def delivers_the_reachable(rows: Rows) -> Finding:
    group = rows_at(rows["scenarios"], scenario="disaster")
    bound = _ceiling(rows, "disaster")
    if not group or not bound:
        return not_measurable("delivery over the ceiling", "the disaster did not run")
    ceiling = mean(bound, "reachable")
    shares = {name: delivery / ceiling for name, delivery in by_protocol(group, "delivery").items()}
    name, other = best_other(shares)
    text = f"{100 * shares[OURS]:.1f} %, {name} {100 * other:.1f} % (reachable: {100 * ceiling:.1f} % of all)"
    return stated(text, _carried(rows_at(group, protocol=OURS), bound, 0.97), seeds=seeds_of(group))


def _ceiling(rows: Rows, scenario: str) -> list[Row]:
    """What is reachable in a scenario at its own rate, by seed."""
    return [row for row in rows["bounds"] if row.get("scenario") == scenario]


def _carried(ours: Sequence[Row], ceiling: Sequence[Row], share: float) -> Compared:
    """Whether this share of the reachable is delivered."""
    return at_least(difference_to(ours, ceiling, "delivery", "seed", other="reachable", times=share), 0.0)


@claim(
    "it delivers no less on recorded traces",
    "evaluation",
    "the best other's delivery, less 0.2 points",
    fails_if=SILENT,
)
def delivers_most_on_traces(rows: Rows) -> Finding:
    return no_worse(rows["traces"], "trace")


@claim(
    "half the bytes on recorded traces",
    "evaluation",
    "at most 0.5 of the cheapest other within 1 point of the best delivery",
    fails_if=TALKATIVE,
)
def costs_half_on_traces(rows: Rows) -> Finding:
    return costs_half_of(rows["traces"], "trace", "few nodes that seldom meet: hellos cost as much as events")


@claim(
    "at most half of flooding's bytes",
    "evaluation",
    "in every radio scenario of more than four nodes",
    fails_if=TALKATIVE,
)
def half_of_flooding(rows: Rows) -> Finding:
    texts, parts = [], []
    for (scenario,), group in grouped(rows["scenarios"], "scenario").items():
        if scenario == "odmrp-mobile":
            continue
        cost = by_protocol(group, "bytes")
        parts.append(less(group, "flooding", "bytes", 0.0, times=0.5))
        texts.append(f"{scenario}: {cost[OURS] / cost['flooding']:.2f}")
    return stated("; ".join(texts), every(parts), seeds=seeds_of(rows["scenarios"]))


@claim(
    "nothing is delivered that was not asked for",
    "evaluation",
    "precision 1",
    fails_if="a node delivers what it hears without asking its filters",
)
def precise(rows: Rows) -> Finding:
    ours = [row for row in rows_at(rows["scenarios"], protocol=OURS) if row["precision"] is not None]
    worst = min(row["precision"] for row in ours)
    return stated(f"lowest precision {worst:.4f}", always(mean_of(ours, "precision"), 1.0), seeds=seeds_of(ours))


@claim(
    "the slowest deliveries take at most three times flooding's",
    "evaluation",
    "95 % latency, connected: base, city",
    fails_if="nodes wait ten times as long before they speak",
)
def fast_enough(rows: Rows) -> Finding:
    texts, parts = [], []
    for scenario in ("base", "city"):
        group = rows_at(rows["scenarios"], scenario=scenario)
        if not group:
            continue
        late = by_protocol(group, "p95_s")
        parts.append(less(group, "flooding", "p95_s", 0.0, times=3.0))
        texts.append(f"{scenario}: {1000 * late[OURS]:.0f} ms, flooding {1000 * late['flooding']:.0f} ms")
    return stated("; ".join(texts), every(parts), seeds=seeds_of(rows["scenarios"]))


# Load.


@claim(
    "it carries 32 times the city's rate, 4 times the disaster's",
    "evaluation",
    "95 % of what is reachable at the scenario's own rate",
    "multiple of the event rate",
    "delivery ratio",
    log_x=True,
    fails_if=TALKATIVE,
)
def carries_load(rows: Rows) -> Finding:
    texts, lines, parts = [], list[Series](), []
    for scenario, wanted in (("city", 32.0), ("disaster", 4.0)):
        group, ceiling = rows_at(rows["load"], scenario=scenario), _ceiling(rows, scenario)
        if not group or not ceiling:
            continue
        for (protocol,), of_one in grouped(group, "protocol").items():
            lines.append(curve(of_one, "rate", "delivery").series(f"{scenario}, {protocol}"))
        rate = min(wanted, max(row["rate"] for row in group))
        parts.append(_carried(rows_at(group, protocol=OURS, rate=rate), ceiling, CARRIED))
        texts.append(
            f"{scenario}: " + ", ".join(f"{name} {most:.1f}x" for name, most in _loads(group, ceiling).items())
        )
    if not parts:
        return not_measurable("as stated", "neither scenario ran")
    return stated("; ".join(texts), every(parts), series=lines, seeds=seeds_of(rows["load"]))


def _loads(group: Iterable[Row], ceiling: Iterable[Row]) -> dict[str, float]:
    """By protocol, the highest rate at which enough of the reachable arrives, on straight lines between the rates that
    were tried; 0 if it never does. Of one that carries them all it is the highest that was tried."""
    enough = CARRIED * mean(ceiling, "reachable")
    carried = {}
    for (protocol,), of_one in grouped(group, "protocol").items():
        points = list(curve(of_one, "rate", "delivery").means.items())
        carried[protocol] = points[0][0] if points[0][1] >= enough else 0.0
        for (rate, delivery), (next_rate, next_delivery) in pairwise(points):
            if delivery < enough:
                break
            share = 1.0 if next_delivery >= enough else (delivery - enough) / (delivery - next_delivery)
            carried[protocol] = rate + share * (next_rate - rate)
    return carried


@claim(
    "it carries 4 times the load of the best other",
    "evaluation",
    "in the city and in the disaster",
    fails_if=TALKATIVE,
)
def carries_four_times(rows: Rows) -> Finding:
    texts, holds = [], True
    for (scenario,), group in grouped(rows["load"], "scenario").items():
        carried = _loads(group, _ceiling(rows, scenario))
        name, other = best_other(carried)
        holds = holds and carried[OURS] >= 4.0 * other
        best = f"{name} {other:.1f} times" if other else "no other any"
        texts.append(f"{scenario}: {carried[OURS]:.1f} times its own rate, {best}")
    reason = "STEAM and contention-based forwarding carry more than the sketch was measured against"
    text = f"on lines between the loads tried, {'; '.join(texts)}"
    return stated(text, holds, reason, seeds=seeds_of(rows["load"]))


# Radios, loss, wrong places.


@claim(
    "it is no worse on slow and fast radios",
    "evaluation",
    "the best other's delivery, less 0.2 points, by radio and multiple of the rate",
    fails_if=SILENT,
)
def any_radio(rows: Rows) -> Finding:
    return no_worse(rows["radios"], "radio", "rate")


@claim("it is no worse where packets are lost", "evaluation", "flooding's delivery, less 0.2 points", fails_if=SILENT)
def any_loss(rows: Rows) -> Finding:
    return no_worse(rows["lossy"], "scenario")


@claim(
    "places that are wrong by 10 m cost at most 0.5 points",
    "evaluation",
    "delivery ratio in base, where no filter asks for a place",
    "standard deviation of the error, m",
    "delivery ratio",
    fails_if="a node that knows its place to 5 m only passes on no event",
)
def wrong_places(rows: Rows) -> Finding:
    line = curve(rows["wrong places"], "position_error_m", "delivery")
    right, wrong = (rows_at(rows["wrong places"], position_error_m=error_m) for error_m in (0.0, 10.0))
    loss = difference_to(right, wrong, "delivery", "seed")
    text = f"{100 * loss.mean:.2f} points; {line:.4f}"
    judged = at_most(loss, 0.5 * POINT)
    return stated(text, judged, series=[line.series(OURS)], seeds=seeds_of(right))


# Density, speed, churn.


@claim(
    "it is no worse from 10 to 1,000 nodes",
    "evaluation",
    "the best other's delivery, less 0.2 points, by nodes",
    fails_if=SILENT,
)
def any_density(rows: Rows) -> Finding:
    return no_worse(rows["density"], "nodes")


@claim(
    "it is no worse from 0 to 40 m/s",
    "evaluation",
    "the best other's delivery, less 0.2 points, by speed in m/s",
    fails_if=SILENT,
)
def any_speed(rows: Rows) -> Finding:
    return no_worse(rows["speed"], "speed_m_s")


@claim(
    "it is no worse under churn",
    "evaluation",
    "the best other's delivery, less 0.2 points, by mean presence in s",
    fails_if=SILENT,
)
def any_churn(rows: Rows) -> Finding:
    return no_worse(rows["churn"], "presence_s")


# Ingredients.


@claim(
    "every ingredient pays",
    "evaluation",
    "without it, 0.2 points less delivery or 2 % more bytes in some scenario",
    fails_if="one of the settings that take an ingredient out changes nothing",
)
def every_ingredient_pays(rows: Rows) -> Finding:
    of = grouped(rows["ingredients"], "without", "scenario")
    texts, parts = [], []
    for ingredient in sorted({name for name, _ in of} - {"whole"}):
        effects, most = [], ""
        for (name, scenario), group in of.items():
            if name != ingredient:
                continue
            whole = of["whole", scenario]
            lost = difference_to(whole, group, "delivery", "seed")
            dearer = difference_to(group, whole, "bytes", "seed", times=1.02)
            pays = [at_least(lost, 0.2 * POINT), at_least(dearer, 0.0)]
            effects += pays
            if any(effect.holds for effect in pays):
                times = mean(group, "bytes") / mean(whole, "bytes")
                most += f" {scenario} {-100 * lost.mean:+.1f} points, bytes x{times:.2f}"
        parts.append(_surest(effects))
        texts.append(f"{ingredient}:{most or ' no effect'}")
    return stated("; ".join(texts), every(parts), seeds=seeds_of(rows["ingredients"]))


def _surest(effects: Sequence[Compared]) -> Compared:
    """What is said of some effect: the one that holds most clearly; where none holds, the one nearest to its bound."""
    held = [effect for effect in effects if effect.holds]
    return max(held, key=lambda effect: effect.gap) if held else min(effects, key=lambda effect: effect.gap)
