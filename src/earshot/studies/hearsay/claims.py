"""What we ask of Hearsay, judged by the measurements. Figures are means over seeds."""

from __future__ import annotations

from collections.abc import Iterable

from earshot.studies.figures import Row, Series, curve, grouped, mean_of, rows_at
from earshot.studies.study import Claims, Finding, Rows, not_measurable, stated

CLAIMS = Claims()
claim = CLAIMS.claim
OURS = "hearsay"
POINT = 0.01
CARRIED = 0.95
"A load is carried while this share arrives of what arrives of the best protocol at the scenario's own rate."


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


def no_worse(rows: Iterable[Row], *by: str) -> Finding:
    """Whether Hearsay delivers what the best other protocol does, less 0.2 points, in every group of rows."""
    texts, holds = [], True
    for key, group in grouped(rows, *by).items():
        delivery = by_protocol(group, "delivery")
        name, other = best_other(delivery)
        holds = holds and delivery[OURS] >= other - 0.2 * POINT
        texts.append(f"{' '.join(f'{part}' for part in key)}: {delivery[OURS]:.4f}, {name} {other:.4f}")
    return stated("; ".join(texts), holds)


def cheapest_near(group: Iterable[Row]) -> tuple[str, float] | None:
    """The cheapest other protocol whose delivery is within 1 point of the best, and its bytes; None if none is."""
    group = list(group)
    delivery, cost = by_protocol(group, "delivery"), by_protocol(group, "bytes")
    best = max(delivery.values())
    near = [name for name in delivery if name != OURS and delivery[name] >= best - POINT]
    return min(((name, cost[name]) for name in near), key=lambda one: one[1], default=None)


def costs_half_of(rows: Iterable[Row], by: str, reason: str) -> Finding:
    """Whether Hearsay sends at most half of the cheapest other's bytes, in every group of rows."""
    texts, holds = [], True
    for (key,), group in grouped(rows, by).items():
        ours, near = by_protocol(group, "bytes")[OURS], cheapest_near(group)
        if near is None:
            texts.append(f"{key}: {ours:.0f} B, no other within 1 point")
            continue
        holds = holds and ours <= 0.5 * near[1]
        texts.append(f"{key}: {ours:.0f} B, {near[0]} {near[1]:.0f} B")
    return stated("; ".join(texts), holds, reason)


# The built-in scenarios.


@claim("it delivers no less than the best other protocol, less 0.2 points", "evaluation", "in every radio scenario")
def delivers_most(rows: Rows) -> Finding:
    return no_worse(rows["scenarios"], "scenario")


@claim(
    "half the bytes of the cheapest protocol that delivers as much",
    "evaluation",
    "at most 0.5 of the cheapest other within 1 point of the best delivery, in every radio scenario",
)
def costs_half(rows: Rows) -> Finding:
    reason = "contention-based forwarding already sends little; repair buys the last point of delivery with bytes"
    return costs_half_of(rows["scenarios"], "scenario", reason)


@claim(
    "where half the bytes is missed, a heuristic that knows all but the subscriptions misses it too",
    "evaluation",
    "half of the cheapest other's bytes is less than a heuristic needs that knows every place and link, loses nothing "
    "and sends no hello, but must reach every node in an event's area",
)
def half_is_missed_with_perfect_places(rows: Rows) -> Finding:
    texts, holds = [], True
    for what in ("scenario", "trace"):
        for (name,), group in grouped(rows["traces" if what == "trace" else "scenarios"], what).items():
            cost, near = by_protocol(group, "bytes"), cheapest_near(group)
            bound = [row for row in rows["bounds"] if row.get(what) == name]
            if near is None or cost[OURS] <= 0.5 * near[1] or not bound:
                continue
            half, needed = 0.5 * near[1], mean(bound, "everybody_bytes")
            holds = holds and half < needed
            texts.append(
                f"{name}: half is {half:.0f} B, {needed:.0f} B needed (knowing the subscriptions "
                f"{mean(bound, 'omniscient_bytes'):.0f} B, at the very least {mean(bound, 'least_bytes'):.0f} B)"
            )
    return stated("; ".join(texts) or "nowhere missed", holds)


@claim("in the disaster it delivers 97 % of what is reachable", "evaluation", "at the scenario's own rate")
def delivers_the_reachable(rows: Rows) -> Finding:
    group = rows_at(rows["scenarios"], scenario="disaster")
    bound = [row for row in rows["bounds"] if row.get("scenario") == "disaster"]
    if not group or not bound:
        return not_measurable("delivery over the ceiling", "the disaster did not run")
    ceiling = mean(bound, "reachable")
    shares = {name: delivery / ceiling for name, delivery in by_protocol(group, "delivery").items()}
    name, other = best_other(shares)
    text = f"{100 * shares[OURS]:.1f} %, {name} {100 * other:.1f} % (reachable: {100 * ceiling:.1f} % of all)"
    return stated(text, shares[OURS] >= 0.97)


@claim("it delivers no less on recorded traces", "evaluation", "the best other's delivery, less 0.2 points")
def delivers_most_on_traces(rows: Rows) -> Finding:
    return no_worse(rows["traces"], "trace")


@claim(
    "half the bytes on recorded traces",
    "evaluation",
    "at most 0.5 of the cheapest other within 1 point of the best delivery",
)
def costs_half_on_traces(rows: Rows) -> Finding:
    return costs_half_of(rows["traces"], "trace", "few nodes that seldom meet: hellos cost as much as events")


@claim("at most half of flooding's bytes", "evaluation", "in every radio scenario of more than four nodes")
def half_of_flooding(rows: Rows) -> Finding:
    texts, holds = [], True
    for (scenario,), group in grouped(rows["scenarios"], "scenario").items():
        if scenario == "odmrp-mobile":
            continue
        cost = by_protocol(group, "bytes")
        holds = holds and cost[OURS] <= 0.5 * cost["flooding"]
        texts.append(f"{scenario}: {cost[OURS] / cost['flooding']:.2f}")
    return stated("; ".join(texts), holds)


@claim("nothing is delivered that was not asked for", "evaluation", "precision 1")
def precise(rows: Rows) -> Finding:
    worst = min(row["precision"] for row in rows_at(rows["scenarios"], protocol=OURS) if row["precision"] is not None)
    return stated(f"lowest precision {worst:.4f}", worst == 1.0)


@claim(
    "the slowest deliveries take at most three times flooding's", "evaluation", "95 % latency, connected: base, city"
)
def fast_enough(rows: Rows) -> Finding:
    texts, holds = [], True
    for scenario in ("base", "city"):
        group = rows_at(rows["scenarios"], scenario=scenario)
        if not group:
            continue
        late = by_protocol(group, "p95_s")
        holds = holds and late[OURS] <= 3.0 * late["flooding"]
        texts.append(f"{scenario}: {1000 * late[OURS]:.0f} ms, flooding {1000 * late['flooding']:.0f} ms")
    return stated("; ".join(texts), holds)


# Load.


@claim(
    "it carries 32 times the city's rate, 4 times the disaster's",
    "evaluation",
    "95 % of what arrives at the scenario's own rate",
    "multiple of the event rate",
    "delivery ratio",
    log_x=True,
)
def carries_load(rows: Rows) -> Finding:
    texts, lines, holds = [], list[Series](), True
    for scenario, wanted in (("city", 32.0), ("disaster", 4.0)):
        group = rows_at(rows["load"], scenario=scenario)
        if not group:
            continue
        for (protocol,), of_one in grouped(group, "protocol").items():
            lines.append(curve(of_one, "rate", "delivery").series(f"{scenario}, {protocol}"))
        most, carried = max(row["rate"] for row in group), carried_loads(group)
        holds = holds and carried[OURS] >= min(wanted, most)
        texts.append(f"{scenario}: " + ", ".join(f"{name} {rate:g}x" for name, rate in carried.items()))
    return stated("of the loads tried, " + "; ".join(texts), holds, series=lines)


def carried_loads(group: Iterable[Row]) -> dict[str, float]:
    """By protocol, the highest rate of those tried at which enough arrives."""
    group = list(group)
    lightest = min(row["rate"] for row in group)
    best = max(by_protocol(rows_at(group, rate=lightest), "delivery").values())
    carried = {}
    for (protocol,), of_one in grouped(group, "protocol").items():
        means = curve(of_one, "rate", "delivery").means
        carried[protocol] = max((rate for rate, delivery in means.items() if delivery >= CARRIED * best), default=0.0)
    return carried


@claim("it carries 4 times the load of the best other", "evaluation", "in the city and in the disaster")
def carries_four_times(rows: Rows) -> Finding:
    texts, holds = [], True
    for (scenario,), group in grouped(rows["load"], "scenario").items():
        carried = carried_loads(group)
        name, other = best_other(carried)
        holds = holds and carried[OURS] >= 4.0 * other
        texts.append(f"{scenario}: {carried[OURS]:g} times its own rate, {name} {other:g} times")
    reason = "STEAM and contention-based forwarding carry more than the sketch was measured against"
    return stated("of the loads tried, " + "; ".join(texts), holds, reason)


# Radios, loss, wrong places.


@claim("it is no worse on slow and fast radios", "evaluation", "the best other's delivery, less 0.2 points")
def any_radio(rows: Rows) -> Finding:
    return no_worse(rows["radios"], "radio", "rate")


@claim("it is no worse where packets are lost", "evaluation", "flooding's delivery, less 0.2 points")
def any_loss(rows: Rows) -> Finding:
    return no_worse(rows["lossy"], "scenario")


@claim(
    "places that are wrong by 10 m cost at most 0.5 points",
    "evaluation",
    "delivery ratio in base, where no filter asks for a place",
    "standard deviation of the error, m",
    "delivery ratio",
)
def wrong_places(rows: Rows) -> Finding:
    line = curve(rows["wrong places"], "position_error_m", "delivery")
    means = line.means
    loss = means[0.0] - means[10.0]
    return stated(f"{100 * loss:.2f} points; {line:.4f}", loss <= 0.5 * POINT, series=[line.series(OURS)])


# Density, speed, churn.


@claim("it is no worse from 10 to 1,000 nodes", "evaluation", "the best other's delivery, less 0.2 points")
def any_density(rows: Rows) -> Finding:
    return no_worse(rows["density"], "nodes")


@claim("it is no worse from 0 to 40 m/s", "evaluation", "the best other's delivery, less 0.2 points")
def any_speed(rows: Rows) -> Finding:
    return no_worse(rows["speed"], "speed_m_s")


@claim("it is no worse under churn", "evaluation", "the best other's delivery, less 0.2 points")
def any_churn(rows: Rows) -> Finding:
    return no_worse(rows["churn"], "presence_s")


# Ingredients.


@claim("every ingredient pays", "evaluation", "without it, 0.2 points less delivery or 2 % more bytes in some scenario")
def every_ingredient_pays(rows: Rows) -> Finding:
    of = grouped(rows["ingredients"], "without", "scenario")
    texts, holds = [], True
    for ingredient in sorted({name for name, _ in of} - {"whole"}):
        pays, most = False, ""
        for (name, scenario), group in of.items():
            if name != ingredient:
                continue
            whole = of["whole", scenario]
            lost = mean(whole, "delivery") - mean(group, "delivery")
            dearer = mean(group, "bytes") / mean(whole, "bytes")
            if lost >= 0.2 * POINT or dearer >= 1.02:
                pays = True
                most += f" {scenario} {-100 * lost:+.1f} points, bytes x{dearer:.2f}"
        holds = holds and pays
        texts.append(f"{ingredient}:{most or ' no effect'}")
    return stated("; ".join(texts), holds)
