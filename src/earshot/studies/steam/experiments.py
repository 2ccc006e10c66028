"""STEAM's experiments on cost, reach, accuracy and identifiers: sections 5.1, 5.3.1 and 5.4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription, filter_text
from earshot.geometry import ORIGIN, Position
from earshot.protocols.machine import Announcement, Broadcast, Deliver, Drop, Effect, FixedLocation
from earshot.protocols.steam.group_ids import description, hashed
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import PAPER, RECOVERING
from earshot.records.sessions import SubscriptionSpan
from earshot.simulation.engine.oracle import RunOracle
from earshot.simulation.mobility import Trajectories
from earshot.studies.steam.runs import (
    LAYOUTS,
    MILE_AN_HOUR,
    PRODUCER,
    SteamRun,
    around,
    covered,
    inside,
    on_a_road,
    road_scenario,
    standing,
    warn,
)
from earshot.studies.study import Case, Row

PROXIMITIES_M = tuple(range(100, 800, 100))
SATURATIONS = (60, 120, 180, 240)
SPEEDS_MPH = tuple(range(10, 80, 10))
SILENT_SHARE = 0.2
BEACONED = replace(PAPER, beacon_jitter=0.0)
"The prototype, with a beacon at each whole second."
GOSSIP = replace(BEACONED, forwarding="gossip")
RAISED_AT_S = 2.0
RECOVERED_WITHIN_S = 6.0
"How long a run continues after its last event, so that it can be recovered."


def cost(case: Case) -> Sequence[Row]:
    """Figure 7: for each proximity the transmissions of an event raised together with a beacon, of an event
    raised half-way to the next beacon, and of the beacon."""
    points = on_a_road(case["saturation"], Random(f"{case['seed']}:{case['saturation']}"))
    until_s = RAISED_AT_S + 2.5
    paths = road_scenario(case["scenario"], points, RAISED_AT_S, case["speed_mph"] * MILE_AN_HOUR, until_s)
    start = Position(float(paths[0].xs[0]), float(paths[0].ys[0]))
    nodes = Trajectories(paths)
    rows = []
    for proximity_m in PROXIMITIES_M:
        proximity = around(proximity_m, mobile=case["scenario"] == "B", at=start)
        run = warn(nodes, proximity, [RAISED_AT_S, RAISED_AT_S + 0.5], BEACONED, case["seed"])
        rows.append(
            {
                "proximity_m": proximity_m,
                "cost": run.sends[0],
                "covered": len(covered(run, 0)),
                "inside": len(inside(run, 0)),
                "reached": len(run.reached[0]),
                "announcement_cost": sum(RAISED_AT_S <= time < RAISED_AT_S + 0.5 for time in run.beacons),
                "later_cost": run.sends[1],
                "later_covered": len(covered(run, 1)),
            }
        )
    return rows


def reach(case: Case) -> Sequence[Row]:
    """Delivery ratio and precision against the oracle, one event per second at a random phase: of the prototype, or
    with recovery."""
    settings = RECOVERING if case["recovery"] else PAPER
    random = Random(f"{case['seed']}:reach:{case['saturation']}")
    points = on_a_road(case["saturation"], random)
    seconds, speed = case["seconds"], 30 * MILE_AN_HOUR
    paths = road_scenario(case["scenario"], points, seconds / 2, speed, seconds + 10.0)
    start = Position(float(paths[0].xs[0]), float(paths[0].ys[0]))
    raise_at = [second + random.random() for second in range(1, seconds)]
    nodes = Trajectories(paths)
    rows = []
    for proximity_m in case["proximities_m"]:
        proximity = around(proximity_m, mobile=case["scenario"] == "B", at=start)
        run = warn(nodes, proximity, raise_at, settings, case["seed"], settle_s=RECOVERED_WITHIN_S)
        expected = expected_receivers(run)
        whole = [k for k in range(len(expected)) if covered(run, k) >= expected[k]]
        rows.append(
            {
                "proximity_m": proximity_m,
                "events": len(raise_at),
                "covered_events": len(whole),
                "expected": sum(len(expected[k]) for k in whole),
                "delivered": sum(len(run.reached[k]) for k in whole),
                "right": sum(len(run.reached[k] & expected[k]) for k in whole),
            }
        )
    return rows


def expected_receivers(run: SteamRun) -> list[set[int]]:
    """The oracle's receivers of each event."""
    wanted = Filter.of_type("Warning")
    spans = [SubscriptionSpan(name, "warnings", filter_text(wanted)) for name in run.trajectories.names[1:]]
    oracle = RunOracle(spans, run.trajectories, run.trajectories.presence)
    return [oracle.receivers(event, event.time) for event in run.published]


def accuracy(case: Case) -> Sequence[Row]:
    """Figures 14 and 15: for each proximity who is reached with silent nodes, and what gossip saves and loses."""
    random = Random(f"{case['seed']}:{case['scenario']}:{case['saturation']}")
    points = LAYOUTS[case["scenario"]](case["saturation"], random)
    names = [f"consumer-{k:03d}" for k in range(len(points))]
    silent = random.sample(names, round(SILENT_SHARE * len(names)))
    nodes = Trajectories(standing([PRODUCER, *names], [(0.0, 0.0), *points]))
    rows = []
    for proximity_m in PROXIMITIES_M:
        mobile = case["scenario"] == "B"
        quiet = warn(nodes, around(proximity_m, mobile), [0.5], BEACONED, case["seed"], silent)
        gossip = warn(nodes, around(proximity_m, mobile), [0.5], GOSSIP, case["seed"])
        rows.append(
            {
                "proximity_m": proximity_m,
                "inside": len(inside(quiet, 0)),
                "covered": len(covered(quiet, 0)),
                "reached_with_silent": len(quiet.reached[0]),
                "reached_with_gossip": len(gossip.reached[0]),
                "gossip_cost": gossip.sends[0],
            }
        )
    return rows


def collisions(case: Case) -> Sequence[Row]:
    """Section 5.3.1: how many announcements in one proximity share an identifier with another, and what a
    consumer of one type does with events of another type in the same group."""
    rows = []
    for draw in range(case["draws"]):
        groups: dict[int, list[str]] = {}
        for subject in event_types(case["announcements"], Random(f"{case['seed']}:{draw}")):
            groups.setdefault(hashed(description(subject, around(200.0))), []).append(subject)
        shared = [subjects for subjects in groups.values() if len(subjects) > 1]
        effects = [effect for wanted, unwanted, *_ in shared for effect in heard_at_a_consumer_of(wanted, unwanted)]
        rows.append(
            {
                "sharing": sum(map(len, shared)),
                "tried": len(shared),
                "discarded": sum(isinstance(effect, Drop) for effect in effects),
                "delivered": sum(isinstance(effect, Deliver) for effect in effects),
            }
        )
    return rows


def heard_at_a_consumer_of(wanted: str, unwanted: str) -> Sequence[Effect]:
    """What a member of one type's group does with an event of another type that shares the identifier."""
    consumer = Steam("consumer", BEACONED, FixedLocation(ORIGIN), Random(0))
    consumer.subscribe(Subscription("wanted", "consumer", Filter.of_type(wanted)), 0.0)
    producers = {name: Steam(name, BEACONED, FixedLocation(ORIGIN), Random(0)) for name in (wanted, unwanted)}
    for name, node in producers.items():
        for effect in node.announce(Announcement(EventType(name), around(200.0)), 0.0):
            if isinstance(effect, Broadcast):
                consumer.hear(effect.packet, name, 0.1)
    event = Event(unwanted, id="unwanted-0", source=unwanted, time=0.2)
    (raised,) = producers[unwanted].publish(event, 0.2)
    assert isinstance(raised, Broadcast)
    return consumer.hear(raised.packet, unwanted, 0.2)


def event_types(count: int, random: Random) -> list[str]:
    """Distinct names of 14 to 18 letters."""
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(14, 18)))] = None
    return list(found)
