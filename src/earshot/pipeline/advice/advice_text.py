"""Advice as people, programs and nodes read it: words, JSON, and the file to deploy it."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, fields
from typing import Any

from earshot.pipeline.advice.advise import Advice, Regret
from earshot.pipeline.advice.judge import Effort
from earshot.pipeline.advice.search import Goal, Standing, TunedProtocol
from earshot.pipeline.advice.verdict import Overturned
from earshot.pipeline.advice.windows import TraceSlot
from earshot.pipeline.campaigns.board_text import figure_json, percent
from earshot.protocols.catalogue import build_settings, protocol
from earshot.words import counted, listed, rounded_percent

MOST_OTHERS = 3
WEAK = 0.05
"A window or an event type in which this much less of the reachable arrives is named."
OFTEN = 0.005
"A cause that loses a smaller share of what was expected is not named."
WIDTH = 100
"Of a line of comment in the file for nodes."
BUSY = 1.5
"Runs that take this many times their processor time ran on a busy machine."
CAUSES = {
    "impossible": "no path led to the receiver in time",
    "needed carrying": "nodes had to carry the event to a later contact",
    "never heard": "nobody who had the event was heard",
    "never sent": "the publisher's node did not send it",
    "heard, not delivered": "the node heard the event and did not deliver it",
}


def advice_words(advice: Advice) -> list[str]:
    """The whole answer, a paragraph each."""
    return [
        paragraph
        for paragraph in (
            use_words(advice),
            others_words(advice),
            types_words(advice),
            loses_words(advice),
            honest_words(advice),
            search_words(advice),
            left_out_words(advice),
            failed_words(advice),
        )
        if paragraph
    ]


def use_words(advice: Advice) -> str:
    """What to use, and what to expect of it."""
    row, figures = advice.row, advice.row.figures
    ratio, ceiling = figures.get("delivery_of_reachable"), figures.get("ceiling")
    parts = []
    if ratio is not None:
        reach = f" (ceiling {percent(ceiling)})" if ceiling is not None else ""
        parts.append(f"{percent(ratio)} of what is reachable{reach}")
    elif "delivery_ratio" in figures:
        parts.append(f"{percent(figures['delivery_ratio'])} of what is expected")
    if "airtime_mean" in figures:
        parts.append(f"{percent(figures['airtime_mean'])} airtime")
    elif "bytes_per_delivery" in figures:
        parts.append(f"{figures['bytes_per_delivery'].mean:,.0f} bytes a delivery")
    if "latency_p95_s" in figures:
        parts.append(f"p95 {_time(figures['latency_p95_s'].mean)}")
    if held := _held(advice):
        parts.append(held)
    assumes = f" It was given {row.assumes}." if row.assumes else ""
    return f"Use {candidate_words(advice.chosen)}: {', '.join(parts)}.{assumes}"


def candidate_words(candidate: TunedProtocol) -> str:
    """`steam with beacon_interval_s = 0.5`."""
    if not candidate.chosen:
        return f"{candidate.protocol} with its defaults"
    given = [f"{name} = {value:g}" for name, value in candidate.chosen]
    return f"{candidate.protocol} with {listed(given)}"


def _held(advice: Advice) -> str:
    capacity = advice.capacity
    if capacity is None or capacity.capacity is None:
        return ""
    least = "at least " if capacity.exceeds or capacity.error is not None else ""
    return f"holds {least}{capacity.capacity:.2g} times your event rate"


def others_words(advice: Advice) -> str:
    """Who ties, and what the next ones lack."""
    own = advice.verdict.own
    by_protocol: dict[str, Standing] = {}
    for standing in advice.standings:
        if standing.candidate.protocol != advice.chosen.protocol:
            by_protocol.setdefault(standing.candidate.protocol, standing)
    parts = []
    for standing in list(by_protocol.values())[:MOST_OTHERS]:
        apart = standing.mean.delivery - own.mean.delivery
        goal = advice.question.goal
        cost = _times(goal.price(standing.mean), goal.price(own.mean), _price_name(advice))
        if abs(apart) <= Goal.DELIVERY.tolerance:
            parts.append(f"{standing.candidate.protocol} ties on delivery at {cost}")
        else:
            more = "more" if apart > 0 else "less"
            parts.append(f"{standing.candidate.protocol} delivers {100 * abs(apart):.1f} points {more} at {cost}")
    return "; ".join(parts) + "." if parts else ""


def types_words(advice: Advice) -> str:
    """The event types for which another protocol does better."""
    parts = []
    for ranking in advice.ranking.by_type:
        rows = [row for row in ranking.rows if "delivery_of_reachable" in row.figures]
        own = next((row for row in rows if row.variant == advice.names[advice.chosen]), None)
        best = max(rows, key=lambda row: row.figures["delivery_of_reachable"].mean, default=None)
        if own is None or best is None:
            continue
        apart = best.figures["delivery_of_reachable"].mean - own.figures["delivery_of_reachable"].mean
        if apart > Goal.DELIVERY.tolerance and best.protocol != own.protocol:
            parts.append(f"for {ranking.event_type} alone, {best.protocol} delivers {100 * apart:.1f} points more")
    return _sentence("; ".join(parts))


def loses_words(advice: Advice) -> str:
    """Where the chosen candidate loses deliveries: which windows, which event types, and why."""
    own = advice.verdict.own
    usual = own.mean.delivery
    parts = []
    worst = min(own.by_window.items(), key=lambda item: item[1].delivery)
    if usual - worst[1].delivery > WEAK / 2:
        parts.append(f"in the window {worst[0]} {100 * worst[1].delivery:.1f} % of the reachable arrive")
    for ranking in advice.ranking.by_type:
        row = next((row for row in ranking.rows if row.variant == advice.names[advice.chosen]), None)
        figure = row.figures.get("delivery_of_reachable") if row else None
        if figure is not None and usual - figure.mean > WEAK:
            parts.append(f"of {ranking.event_type} events {percent(figure)} arrive")
    causes = [(cause, share) for cause, share in advice.losses.items() if share >= OFTEN][:3]
    parts += [f"{100 * share:.1f} % of what is expected is lost because {_cause(cause)}" for cause, share in causes]
    return f"Where it loses: {'; '.join(parts)}." if parts else "Where it loses: nowhere that shows in these windows."


def _cause(cause: str) -> str:
    if cause.startswith("dropped: "):
        return f"packets were dropped ({cause.removeprefix('dropped: ')})"
    return CAUSES.get(cause, cause)


def honest_words(advice: Advice) -> str:
    """What the figures stand on, and the regret against the best in hindsight."""
    plan, regret = advice.plan, advice.regret
    price = _price_name(advice)
    given_up = "".join(_overturned_words(choice, price) for choice in advice.verdict.overturned)
    windows = [str(window) for window in sorted(advice.verdict.windows, key=lambda slot: (slot.start_s, slot.seed))]
    unseen = "had no part in the choice" if advice.verdict.overturned else "the search did not see"
    where = f"judged on {counted(len(windows), 'window')} that {unseen}: {'; '.join(windows)}"
    if not plan.whole:
        where = (
            f"the trace is too short to keep a part of it back: judged on the same {plan.lengths.long_s:g} s with "
            f"{counted(len(windows), 'workload')} that {unseen}"
        )
    if regret is None:
        hindsight = f"not known, since {_nobody_else(advice)}"
    elif regret.best == advice.chosen:
        hindsight = f"none: of {len(advice.standings)} candidates judged there it is the best in hindsight too"
    else:
        dearer = regret.latency if advice.question.goal is Goal.LATENCY else regret.cost
        hindsight = (
            f"{100 * regret.delivery:.1f} points of delivery and {100 * dearer:.0f} % of {price} "
            f"against {candidate_words(regret.best)}, the best of {len(advice.standings)} candidates judged there"
        )
        if regret.best in advice.verdict.fell_short:
            lacks = 100 * advice.verdict.fell_short[regret.best]
            hindsight += f", which delivered {lacks:.1f} points less when the search's windows count too"
    return f"{given_up}{_sentence(where)} Regret: {hindsight}."


def _nobody_else(advice: Advice) -> str:
    """Why the choice was judged alone."""
    if advice.search.tried == 1:
        return "no other candidate was asked for"
    return "no other candidate could be judged there: a larger --budget judges more of them"


def _overturned_words(given_up: Overturned, price: str) -> str:
    """Why an earlier choice was given up; `price` names what was compared where deliveries are about the same."""
    if given_up.delivery > 0:
        better = f"{100 * given_up.delivery:.1f} points more delivered"
    else:
        better = f"{100 * (1.0 - 1.0 / (1.0 + given_up.price)):.0f} % less {price}"
    return (
        f"The search's first choice was {candidate_words(given_up.candidate)}; on windows that it had not seen "
        f"{candidate_words(given_up.by)} was better ({better}), so the choice was made again with these windows. "
    )


def search_words(advice: Advice) -> str:
    """How many were tried, why the search ended, and how much was simulated."""
    found, effort = advice.search, advice.effort
    protocols = {standing.candidate.protocol for search_round in found.rounds for standing in search_round.standings}
    rounds = counted(len(found.rounds), "round")
    return (
        f"The search tried {counted(found.tried, 'candidate')} of {counted(len(protocols), 'protocol')} in {rounds} "
        f"and ended because {found.ended}. Search and judgement took {counted(effort.runs, 'run')}, together "
        f"{_long(effort.simulated_s)} of the trace, and {_long(advice.took_s)} of a budget of "
        f"{_long(advice.question.budget_s)}.{_busy_words(effort)}"
    )


def _busy_words(effort: Effort) -> str:
    if effort.slowdown < BUSY:
        return ""
    return (
        f" The machine was busy: runs took {effort.slowdown:.2g} times their processor time. On a quiet machine the "
        "same budget may try more."
    )


def left_out_words(advice: Advice) -> str:
    """Which protocols could not be judged."""
    if not advice.left_out:
        return ""
    names = [f"{name} ({reason})" for name, reason in advice.left_out.items()]
    return f"Left out: {', '.join(names)}. A larger --budget, or --protocols with these alone, tries them."


def failed_words(advice: Advice) -> str:
    """Which candidates had a run that failed, and why."""
    by_reason: dict[str, list[str]] = {}
    for candidate, reason in advice.failed.items():
        by_reason.setdefault(reason, []).append(candidate_words(candidate))
    parts = [f"{listed(names)} ({reason})" for reason, names in by_reason.items()]
    return f"Failed, so not compared further: {'; '.join(parts)}." if parts else ""


def reasons_words(advice: Advice) -> list[str]:
    """Why the chosen settings were tried at all: the rule behind each first guess."""
    tunables = {tunable.name: tunable for tunable in protocol(advice.chosen.protocol).tuning(advice.surroundings)}
    reasons = []
    for name, value in advice.chosen.chosen:
        tunable = tunables[name]
        guess = "the first guess" if value == tunable.first else f"the first guess was {tunable.first:g}"
        reasons.append(f"{name} = {value:g}: {guess}, because {tunable.reason}.")
    return reasons


def judged_table(advice: Advice) -> tuple[list[str], list[list[str]]]:
    """Who was judged on the unseen windows, best first."""
    header = ["candidate", "of the reachable", _cost_name(advice), "latency p95", "settings"]
    rows = []
    for standing in advice.standings:
        mean = standing.mean
        cost = rounded_percent(mean.cost) if _cost_name(advice) == "airtime" else f"{mean.cost:,.0f}"
        late = _time(mean.latency_s) if math.isfinite(mean.latency_s) else "-"
        given = ", ".join(f"{name} = {value:g}" for name, value in standing.candidate.chosen) or "defaults"
        rows.append([advice.names[standing.candidate], rounded_percent(mean.delivery), cost, late, given])
    return header, rows


# -- for programs


def advice_json(advice: Advice) -> dict[str, Any]:
    """The whole answer as plain values."""
    capacity = advice.capacity
    return {
        "trace": advice.question.trace,
        "protocol": advice.chosen.protocol,
        "settings": dict(advice.chosen.settings),
        "words": advice_words(advice),
        "figures": {name: figure_json(figure) for name, figure in sorted(advice.row.figures.items())},
        "capacity": None if capacity is None else capacity.capacity,
        "capacity_at_least": capacity is not None and (capacity.exceeds or capacity.error is not None),
        "regret": _regret_json(advice.regret),
        "judged": [_standing_json(standing) for standing in advice.standings],
        "lost_by_cause": dict(advice.losses),
        "search": {
            "ended": advice.search.ended,
            "tried": advice.search.tried,
            "rounds": [
                {
                    "windows": [_window_json(window) for window in search_round.windows],
                    "standings": [_standing_json(standing) for standing in search_round.standings],
                }
                for search_round in advice.search.rounds
            ],
        },
        "overturned": [
            {
                **_candidate_json(given_up.candidate),
                "by": _candidate_json(given_up.by),
                "delivery": given_up.delivery,
                "price": given_up.price,
            }
            for given_up in advice.verdict.overturned
        ],
        "windows": [_window_json(window) for window in advice.verdict.windows],
        "surroundings": asdict(advice.surroundings),
        "left_out": dict(advice.left_out),
        "failed": [{**_candidate_json(candidate), "reason": reason} for candidate, reason in advice.failed.items()],
        "effort": {**asdict(advice.effort), "slowdown": advice.effort.slowdown},
        "budget_s": advice.question.budget_s,
        "took_s": advice.took_s,
    }


def _regret_json(regret: Regret | None) -> dict[str, Any] | None:
    """None where nobody else was judged: then nothing is known about it."""
    if regret is None:
        return None
    latency = regret.latency if math.isfinite(regret.latency) else None
    price = {"cost": regret.cost, "latency": latency}
    return {"best": _candidate_json(regret.best), "delivery": regret.delivery, **price}


def _window_json(window: TraceSlot) -> dict[str, Any]:
    """By the trace's own times, and in words."""
    nodes = {"phase": window.phase, "mean_present": window.present}
    return {"start_s": window.start_s, "end_s": window.end_s, "seed": window.seed, **nodes, "words": str(window)}


def _candidate_json(candidate: TunedProtocol) -> dict[str, Any]:
    return {"protocol": candidate.protocol, "settings": dict(candidate.settings)}


def _standing_json(standing: Standing) -> dict[str, Any]:
    mean = standing.mean
    latency_s = mean.latency_s if math.isfinite(mean.latency_s) else None
    figures = {"delivery": mean.delivery, "cost": mean.cost, "latency_p95_s": latency_s}
    return {**_candidate_json(standing.candidate), **figures}


# -- for nodes


def advice_toml(advice: Advice) -> str:
    """The file that `earshot node`, `simulate` and `compare` take with --settings."""
    import tomli_w

    words = [use_words(advice), honest_words(advice)]
    comment = "".join(f"# {line}\n" for paragraph in words for line in textwrap.wrap(paragraph, WIDTH))
    content: dict[str, Any] = {"protocol": advice.chosen.protocol, "settings": dict(advice.chosen.settings)}
    if network := network_facts(advice):
        content["network"] = network
    return f"# Advice of `earshot advise` for trace {advice.question.trace}.\n{comment}\n{tomli_w.dumps(content)}"


def network_facts(advice: Advice) -> dict[str, Any]:
    """What the protocol's settings say about the network, for nodes that have no scenario to read it from."""
    machine, around = protocol(advice.chosen.protocol), advice.surroundings
    known = {
        "medium.range_m": around.range_m,
        "area.width_m": around.width_m,
        "area.height_m": around.height_m,
        "node_count": around.nodes,
    }
    paths = {setting.name: setting.metadata.get("scenario", "") for setting in fields(machine.Settings)}
    found = {name: known[path] for name, path in paths.items() if path in known and math.isfinite(known[path])}
    build_settings(machine.Settings, {**found, **advice.chosen.settings})
    return found


# -- numbers


def _cost_name(advice: Advice) -> str:
    return "airtime" if "airtime_mean" in advice.row.figures else "bytes a delivery"


def _price_name(advice: Advice) -> str:
    """What is compared where deliveries are about the same."""
    return "latency" if advice.question.goal is Goal.LATENCY else _cost_name(advice)


def _times(ours: float, theirs: float, what: str) -> str:
    if not (theirs > 0 and math.isfinite(ours)):
        return f"other {what}"
    ratio = ours / theirs
    return f"the same {what}" if abs(ratio - 1.0) < 0.05 else f"{_two_digits(ratio)} times the {what}"


def _time(value: float) -> str:
    return f"{_two_digits(value)} s" if value >= 0.1 else f"{_two_digits(1000 * value)} ms"


def _two_digits(value: float) -> str:
    """Two digits that count, and all those before the point: 0.43, 2.1, 150."""
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def _long(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.3g} min" if seconds < 6000.0 else f"{seconds / 3600.0:.3g} h"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""
