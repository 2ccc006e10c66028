"""DRIP's experiments: one case is one simulated run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import numpy as np

from earshot.events import Event
from earshot.filters import Subscription, filter_text
from earshot.protocols.drip.delay import exact_factor, printed_factor, reach
from earshot.protocols.drip.packets import AS_WRITTEN, EventCopy, Exchange, SubscriberRecord
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import quantile, summarise
from earshot.simulation.faults import Crash, FaultSettings
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.studies.drip.run_log import NoteLog, RunLog
from earshot.studies.figures import Row
from earshot.studies.study import Case
from earshot.wire import Packet, size

WARM_UP_S, COOL_DOWN_S = 10.0, 10.0
NAMED = ("brokers", "nearest", "copies", "selection")
"Settings that are parameters of a case."


def simulated(case: Case) -> Sequence[Row]:
    """One run of the paper's setting, with k, m, l and what else the case changes."""
    return [_measured(_scenario(case), case)]


def grown(case: Case) -> Sequence[Row]:
    """Larger networks of the same density and the same share of brokers."""
    scenario = _scenario(case)
    side_m = 1000.0 * math.sqrt(case["nodes"] / 200)
    changes = {"nodes.node.count": case["nodes"], "area.width_m": side_m, "area.height_m": side_m}
    return [_measured(scenario.with_(changes), case)]


def crashed(case: Case) -> Sequence[Row]:
    """Some of the first brokers crash and do not return, evenly over the middle of the run."""
    scenario = _scenario(case)
    abilities = scenario.abilities(case["seed"])
    names = scenario.names()
    ablest = sorted(names, key=lambda name: -abilities[names.index(name)])[: case["brokers"]]
    random = Random(f"{case['seed']}:crashes")
    gone = random.sample(ablest, case["crashes"])
    start, end = WARM_UP_S + 10.0, scenario.duration_s - COOL_DOWN_S - 30.0
    crashes = tuple(Crash(name, start + (end - start) * number / max(len(gone), 1)) for number, name in enumerate(gone))
    return [_measured(msgspec.structs.replace(scenario, faults=FaultSettings(crashes=crashes)), case, crashes)]


def walks(case: Case) -> Sequence[Row]:
    """Section V.C: the steps until two random walks on a torus come within alpha of each other."""
    side, alpha = math.isqrt(case["grid"]), reach(case["brokers"], case["grid"])
    random = np.random.default_rng(case["seed"])
    steps = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    apart = random.integers(0, side, (case["walks"], 2))
    taken = np.zeros(case["walks"])
    while True:
        distance = np.minimum(apart % side, side - apart % side).sum(axis=1)
        walking = distance > alpha
        if not walking.any():
            return [{"alpha": alpha, "steps": float(taken.mean())}]
        count = int(walking.sum())
        apart[walking] += steps[random.integers(0, 4, count)] - steps[random.integers(0, 4, count)]
        taken[walking] += 1


def packet_sizes(case: Case) -> Sequence[Row]:
    """Section V.B.2: the bytes of a subscription and of an event, as brokers send them to each other, and bare."""
    scenario = load_scenario("drip").with_({"duration_s": case["units"]})
    work = scenario.workload(case["seed"])
    names = scenario.names()
    nearest = tuple(names[:5])
    rows: list[Row] = []
    for action in work:
        node, leg = names[action.node], (nearest[0], nearest[1], "", 1)
        if isinstance(action.what, Subscription):
            text = filter_text(action.what.filter)
            record = SubscriberRecord(node, action.time, nearest[0], nearest, (text,), action.time)
            packet: Packet = Exchange(*leg, 1, (record,), {})
            rows.append({"what": "subscription", "bare_bytes": len(text), "packet_bytes": size(packet)})
        elif isinstance(action.what, Event):
            event = msgspec.structs.replace(action.what, source=node, time=action.time, id=f"{node}-1")
            packet = EventCopy(*leg, event, 1, nearest, True)
            bare = len(msgspec.json.encode(event.content))
            rows.append({"what": "event", "bare_bytes": bare, "packet_bytes": size(packet)})
    return rows


def _scenario(case: Case) -> Scenario:
    time = {
        "warm_up_s": case.get("warm_up_s", WARM_UP_S),
        "cool_down_s": case.get("cool_down_s", COOL_DOWN_S),
        "duration_s": case.get("warm_up_s", WARM_UP_S) + case["units"] + case.get("cool_down_s", COOL_DOWN_S),
    }
    return load_scenario("drip").with_({**time, **case.get("scenario", {})})


def _measured(scenario: Scenario, case: Case, crashes: Sequence[Crash] = ()) -> Row:
    protocol = case.get("protocol", "drip")
    settings: dict[str, Any] = {name: case[name] for name in NAMED if name in case}
    log = NoteLog()
    result = run(scenario, protocol, {**AS_WRITTEN, **settings, **case.get("settings", {})}, case["seed"], log)
    history, summary = RunLog(scenario, result, log), summarise(scenario, result)
    l, m = case["nearest"], case["copies"]  # noqa: E741
    node_s = len(result.nodes) * (result.duration_s - result.warm_up_s)
    delays, copies = history.delays(), list(history.copies_then())
    then, end = [count for _, count in copies], history.copies_in_the_end()
    beyond = history.hops_beyond_nearest()
    every, across = history.fates()
    counts = result.counts.since(result.warm_up).packets
    announced = sum(counts[tag].sends for tag in ("drip-announcement", "drip-announcement-at") if tag in counts)
    reached, unreached = history.destination_delays()
    meeting_s = history.mean_meeting_s()
    replacements = _replacements(history, crashes)
    return {
        "delay_s": _mean(delays),
        "delay_p50_s": quantile(delays, 0.5),
        "delay_p95_s": quantile(delays, 0.95),
        "coverage": _mean([count / history.k for count in end.values()]),
        "coverage_then": _mean([count / history.k for count in then]),
        "held": _mean(list(end.values())),
        "held_then": _mean(then),
        "held_most": max(then, default=0),
        "held_more": _mean([float(count > m + l) for count in then]),
        **_of_one_subscriber(history, m + l),
        "nearest_share": beyond[0] / beyond.total() if beyond else None,
        "next_nearest_share": (beyond[0] + beyond[1]) / beyond.total() if beyond else None,
        "forwarded": announced * float(result.settings["announce_interval_s"]) / node_s,
        "delivery_ratio": summary.delivery_ratio,
        "expected": summary.expected,
        "cost": summary.cost,
        "transmissions_per_s": summary.transmissions / summary.measured_s,
        "destinations_s": _mean(reached),
        "destinations_reached": len(reached) / (len(reached) + unreached) if reached or unreached else None,
        "meeting_s": meeting_s,
        "exact_s": exact_factor(l) / m * meeting_s,
        "printed_s": printed_factor(l) / m * meeting_s,
        "attached_share": history.attached_share(),
        "handovers_per_node_s": history.handovers() / node_s,
        "fates": dict(sorted(every.items())),
        "across": dict(sorted(across.items())),
        "replacement_s": _mean(replacements),
        "replaced": len(replacements),
    }


def _of_one_subscriber(history: RunLog, most: int) -> Row:
    """How many brokers hold an event that one node wants: when the node gets it and in the end, and how often they are
    more than m + l. The source broker is one of them in the columns that end in `with_source`."""
    one, end = history.of_one_subscriber(), history.copies_in_the_end()
    row: dict[str, Any] = {"one_deliveries": sum(event in one for event, _ in history.copies_then())}
    for when, copies in (("then", history.copies_then()), ("end", end.items())):
        held = [count for event, count in copies if event in one]
        row[f"one_held_{when}"] = _mean(held)
        row[f"one_most_{when}"] = max(held, default=0)
        row[f"one_more_{when}"] = _mean([float(count - 1 > most) for count in held])
        row[f"one_more_{when}_with_source"] = _mean([float(count > most) for count in held])
    return row


def _replacements(history: RunLog, crashes: Sequence[Crash]) -> list[float]:
    """The time from each crash to the next election of a broker, in order, for crashes that were followed by one."""
    if not crashes:
        return []
    elected = [time for time, _ in history.elected if time > crashes[0].time_s]
    return [time - crash.time_s for crash, time in zip(crashes, elected, strict=False)]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
