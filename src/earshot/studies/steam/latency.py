"""Section 5.3: how long raising and delivering take as announcements and subscriptions increase.

Wall-clock time of this machine, without a network.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from random import Random
from statistics import median
from time import perf_counter_ns

from earshot.events import Event, EventType, Value
from earshot.filters import Filter, Subscription
from earshot.geometry import ORIGIN, Position
from earshot.protocols.machine import Announcement, Broadcast, Deliver, FixedLocation
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import PAPER
from earshot.studies.steam.runs import around
from earshot.studies.study import Case, Row
from earshot.wire import decode, encode

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
