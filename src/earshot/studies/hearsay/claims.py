"""What we ask of Hearsay, judged by the measurements. Figures are means over seeds."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from earshot.studies.figures import Row, Series, curve, grouped, rows_at
from earshot.studies.study import Claims, Finding, Rows

CLAIMS = Claims()
claim = CLAIMS.claim
OURS = "hearsay"
POINT = 0.01
CARRIED = 0.95
"A load is carried while this share arrives of what arrives of the best protocol at the scenario's own rate."


def mean(rows: Iterable[Row], what: str) -> float:
    """The mean of a column, without runs in which it is undefined."""
    values = [float(row[what]) for row in rows if row[what] is not None]
    return fmean(values) if values else float("nan")


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
    return Finding("; ".join(texts), holds)


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
    texts, holds = [], True
    for (scenario,), group in grouped(rows["scenarios"], "scenario").items():
        delivery, cost = by_protocol(group, "delivery"), by_protocol(group, "bytes")
        best = max(delivery.values())
        near = {name: cost[name] for name in delivery if name != OURS and delivery[name] >= best - POINT}
        if not near:
            texts.append(f"{scenario}: {cost[OURS]:.0f} B, no other within 1 point")
            continue
        name = min(near, key=lambda name: near[name])
        holds = holds and cost[OURS] <= 0.5 * near[name]
        texts.append(f"{scenario}: {cost[OURS]:.0f} B, {name} {near[name]:.0f} B")
    reason = "contention-based forwarding already sends little; repair buys the last point of delivery with bytes"
    return Finding("; ".join(texts), holds, "" if holds else reason)


@claim("at most half of flooding's bytes", "evaluation", "in every radio scenario of more than four nodes")
def half_of_flooding(rows: Rows) -> Finding:
    texts, holds = [], True
    for (scenario,), group in grouped(rows["scenarios"], "scenario").items():
        if scenario == "odmrp-mobile":
            continue
        cost = by_protocol(group, "bytes")
        holds = holds and cost[OURS] <= 0.5 * cost["flooding"]
        texts.append(f"{scenario}: {cost[OURS] / cost['flooding']:.2f}")
    return Finding("; ".join(texts), holds)


@claim("nothing is delivered that was not asked for", "evaluation", "precision 1")
def precise(rows: Rows) -> Finding:
    worst = min(row["precision"] for row in rows_at(rows["scenarios"], protocol=OURS) if row["precision"] is not None)
    return Finding(f"lowest precision {worst:.4f}", worst == 1.0)


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
    return Finding("; ".join(texts), holds)


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
        lightest = min(row["rate"] for row in group)
        best = max(by_protocol(rows_at(group, rate=lightest), "delivery").values())
        carried = {}
        for (protocol,), of_one in grouped(group, "protocol").items():
            line = curve(of_one, "rate", "delivery")
            good = [rate for rate, delivery in line.means.items() if delivery >= CARRIED * best]
            carried[protocol] = max(good, default=0.0)
            lines.append(line.series(f"{scenario}, {protocol}"))
        most = max(row["rate"] for row in group)
        holds = holds and carried[OURS] >= min(wanted, most)
        texts.append(f"{scenario}: " + ", ".join(f"{name} {rate:g}x" for name, rate in carried.items()))
    return Finding("of the loads tried, " + "; ".join(texts), holds, series=lines)


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
    return Finding(f"{100 * loss:.2f} points; {line:.4f}", loss <= 0.5 * POINT, series=[line.series(OURS)])


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
    return Finding("; ".join(texts), holds)
