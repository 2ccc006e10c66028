"""STEAM's experiments on cost, reach, accuracy and identifiers (sections 5.1, 5.3.1 and 5.4), and on latency (5.3):
wall-clock time of this machine, without a network."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from statistics import median
from time import perf_counter_ns

from earshot.events import Event, EventType, Value
from earshot.filters import Filter, Subscription, filter_text
from earshot.geometry import ORIGIN, Position
from earshot.protocols.machine import Announcement, Broadcast, Deliver, Drop, Effect, FixedLocation
from earshot.protocols.steam.group_ids import description, hashed
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import PAPER, RECOVERING
from earshot.records.sessions import SubscriptionSpan
from earshot.simulation.engine.oracle import RunOracle
from earshot.simulation.mobility import Trajectories
from earshot.studies.figures import Row
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
from earshot.studies.study import Case
from earshot.wire import decode, encode

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


MEASURED = EventType("Measured", {"count": int, "at": datetime, "place": Position, "name": str, "value": float})
"One parameter of each type: Integer, Time, Location, String and Double."
FIVE_TERMS = 'count >= 1 and at > "2000-01-01T00:00:00+00:00" and within 500 m and name = "lane 3" and value < 100'
"One term for each parameter; all of them match."
ANNOUNCEMENTS = (1, 10, 100, 1000)
SUBSCRIPTIONS = (1, 10, 100, 1000, 10_000)


def latency(case: Case) -> Sequence[Row]:
    """Blocks of operations, the sizes in random order; one row per block with its median in microseconds."""
    producers = {count: producer(count) for count in ANNOUNCEMENTS if count <= case["largest"]}
    consumers = {count: consumer(count) for count in SUBSCRIPTIONS if count <= case["largest"]}
    subscribed = {count: producer(1, count) for count in SUBSCRIPTIONS if count <= case["largest"]}
    numbers = iter(range(10**9))
    random = Random(case["seed"])
    rows: list[Row] = []
    for block in range(-1, case["blocks"]):
        for count in random.sample(list(producers), len(producers)):
            took = timed(raising(producers[count], numbers), case["operations"])
            rows.append({"operation": "raise", "size": count, "block": block, "microseconds": took})
        for count in random.sample(list(subscribed), len(subscribed)):
            took = timed(raising(subscribed[count], numbers), case["operations"])
            rows.append({"operation": "raise to subscribers", "size": count, "block": block, "microseconds": took})
        for count in random.sample(list(consumers), len(consumers)):
            took = timed(delivering(consumers[count], numbers), case["operations"])
            rows.append({"operation": "deliver", "size": count, "block": block, "microseconds": took})
    return [row for row in rows if row["block"] >= 0]  # the first block warms up


def producer(announcements: int, subscribers: int = 0) -> Steam:
    """A node that announces this many event types, the measured one included. Subscriptions are known where they are
    made and nowhere else: those that a producer could notice are the ones on its own device."""
    node = Steam("producer", PAPER, FixedLocation(ORIGIN), Random(0))
    for number in range(announcements - 1):
        node.announce(Announcement(EventType(f"Other type {number}"), around(200.0)), 0.0)
    node.announce(Announcement(MEASURED, around(200.0)), 0.0)
    for number in range(subscribers):
        wanted = Filter.where(FIVE_TERMS, type="Measured")
        node.subscribe(Subscription(f"own-{number}", "producer", wanted), 0.0)
    return node


def consumer(subscriptions: int) -> Steam:
    """A member of the measured type's group with this many subscriptions to other types."""
    node = Steam("consumer", PAPER, FixedLocation(ORIGIN), Random(0))
    for number in range(subscriptions):
        other = Filter.where(FIVE_TERMS, type=f"Other type {number}")
        node.subscribe(Subscription(f"other-{number}", "consumer", other), 0.0)
    node.subscribe(Subscription("measured", "consumer", Filter.where(FIVE_TERMS, type="Measured")), 0.0)
    for effect in producer(1).wake("round", 1.0):
        if isinstance(effect, Broadcast):
            node.hear(effect.packet, "producer", 1.0)
    return node


def measured_event(number: int) -> Event:
    content: dict[str, Value] = {
        "count": number + 1,
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "place": ORIGIN,
        "name": "lane 3",
        "value": 4.5,
    }
    return MEASURED.event(content).stamped(
        id=f"producer-{number}", source="producer", time=1.0, position=ORIGIN, area=around(200.0).area()
    )


def raising(node: Steam, numbers: Iterator[int]) -> Iterator[Callable[[], object]]:
    """Raise: check type and proximity, and encode."""
    while True:
        event = measured_event(next(numbers))

        def operation(event: Event = event) -> object:
            return [encode(effect.packet) for effect in node.publish(event, 1.0) if isinstance(effect, Broadcast)]

        yield operation


def delivering(node: Steam, numbers: Iterator[int]) -> Iterator[Callable[[], object]]:
    """Deliver: decode, and match subject, content and proximity."""
    source = producer(1)
    while True:
        (effect,) = source.publish(measured_event(next(numbers)), 1.0)
        assert isinstance(effect, Broadcast)
        data = encode(effect.packet)

        def operation(data: bytes = data) -> object:
            (done,) = node.hear(decode(data), "producer", 1.0)
            assert isinstance(done, Deliver)
            return done

        yield operation


def timed(operations: Iterator[Callable[[], object]], count: int) -> float:
    """The median time of `count` operations, in microseconds, without garbage collections."""
    prepared = [next(operations) for _ in range(count)]
    took = []
    gc.disable()
    try:
        for operation in prepared:
            started = perf_counter_ns()
            operation()
            took.append(perf_counter_ns() - started)
    finally:
        gc.enable()
    return median(took) / 1000
