"""Bounded by bytes: a node under the worst that it accepts."""

import asyncio
import gc
from random import Random

import pytest
from desk import Desk, resident_bytes
from packets import packet, packet_classes

from earshot import wire
from earshot.documents import Element
from earshot.events import Event
from earshot.geometry import Position
from earshot.live.datagrams import Frame
from earshot.live.memory import SMALL_BYTES, EventBytes, weight
from earshot.live.node import Node
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.common.filter_texts import TextCache
from earshot.protocols.flooding import Flood
from earshot.protocols.services.fences import Here
from sizes import sized


def test_events_count_while_something_holds_them() -> None:
    memory = EventBytes(10_000)
    first = Flood(Event("Siren", {"text": "x" * 6000}), 1)
    assert memory.admits(first, 6000)
    assert not memory.admits(Flood(Event("Siren", {"text": "y" * 6000}), 1), 6000)
    del first
    assert memory.held_bytes == 0
    second = Flood(Event("Siren", {"text": "z" * 6000}), 1)
    assert memory.admits(second, 6000)
    assert memory.held_bytes == weight(second.event) > 6000


def test_a_memory_that_is_exactly_full_takes_nothing_more() -> None:
    kept = Flood(Event("Siren", {"text": "x" * 6000}), 1)
    memory = EventBytes(weight(kept.event))
    assert memory.admits(kept, 6000)
    assert memory.held_bytes == memory.limit_bytes
    assert not memory.admits(Flood(siren("small", ""), 1), 300)
    assert memory.admits(Here(Position(0.0, 0.0)), 30)


def test_one_small_packet_in_sixteen_is_counted_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = EventBytes(10**9)
    draws = [(number + 0.5) / 31 for number in range(31)]
    "The middles of 31 equal parts of what may be drawn."
    left_out = []
    for draw in draws:
        monkeypatch.setattr(memory._random, "random", lambda drawn=draw: drawn)
        memory._uncounted = 0
        assert memory.admits(Flood(siren("a", ""), 1), 300)
        left_out.append(memory._uncounted)
    assert (left_out, sum(left_out) / 31) == ([*range(31)], 15.0)


def test_while_small_packets_are_not_counted_a_kilobyte_is_and_a_full_memory_takes_none() -> None:
    memory = EventBytes(100_000)
    memory._uncounted = 3
    small, large = Flood(siren("a", ""), 1), Flood(siren("b", ""), 1)
    assert memory.admits(small, 1023)
    assert (memory._uncounted, memory.held_bytes) == (2, 0)
    assert memory.admits(large, 1024)
    assert (memory._uncounted, memory.held_bytes) == (2, weight(large.event))
    memory.limit_bytes = memory.held_bytes
    assert not memory.admits(small, 300)


def test_small_events_are_estimated_and_packets_without_events_pass() -> None:
    memory = EventBytes(1_000_000)
    kept = []
    for number in range(10_000):
        made = Flood(siren(f"id-{number}", "x" * 200), 1)
        if not memory.admits(made, 300):
            break
        kept.append(made.event)
    taken = sum(map(weight, kept))
    assert 0.5 * 1_000_000 < taken < 2 * 1_000_000, "some 70 events are counted, so the estimate is that good"
    assert not any(memory.admits(Flood(siren(f"more-{number}", ""), 1), 300) for number in range(100))
    assert memory.admits(Here(Position(0.0, 0.0)), 30)
    kept.clear()
    assert memory.held_bytes == 0


@pytest.mark.parametrize(
    "content",
    [
        {str(n): n for n in range(5000)},
        Element("T", {}, tuple(Element(f"e{n}", {"a": "b"}, ("t",)) for n in range(5000))),
        {"lists": [[] for _ in range(5000)]},
        {"objects": [{"a": n} for n in range(5000)]},
    ],
)
def test_the_weight_of_an_event_is_about_what_it_takes(content: dict[str, int] | Element) -> None:
    import tracemalloc

    data = wire.encode(Flood(Event("T", content), 1))
    tracemalloc.start()
    heard = wire.decode(data)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(heard, Flood)
    assert 0.5 * taken < weight(heard.event) < 2.5 * taken


def test_a_cache_of_texts_is_bounded_by_their_length() -> None:
    read: list[str] = []
    cache = TextCache(lambda text: read.append(text) or len(text), 10_000)
    assert [cache("abc"), cache("abc"), cache("x" * 5000)] == [3, 3, 5000]
    assert read == ["abc", "x" * 5000]
    for number in range(100):
        cache(f"{number}" + "y" * 900)
    assert len(cache) <= 10


def test_a_slow_subscriber_of_large_events_holds_no_more_than_the_budget() -> None:
    async def run() -> None:
        async with Desk(memory_bytes=16_000_000).node("target") as target:
            waiting = target.subscribe("Siren")
            for number in range(300):
                flood(target, "m", number, wire.encode(Flood(siren(f"id-{number}", "x" * 100_000), 1)))
            assert 30 <= len(waiting) <= 41
            assert target.drops["out-of-memory"] == 300 - len(waiting)
            while len(waiting):
                await anext(waiting)
            gc.collect()
            flood(target, "m", 301, wire.encode(Flood(siren("again", "x" * 100_000), 1)))
            assert len(waiting) == 1

    asyncio.run(run())


def test_a_slow_subscriber_of_small_events_with_many_values_holds_no_more_than_the_budget() -> None:
    """A packet of less than a kilobyte can become an event of fifty."""
    events = sized(1000, 3000)

    async def run() -> None:
        async with Desk(memory_bytes=16_000_000).node("target") as target:
            waiting = target.subscribe("Siren")
            content = {"lists": [[] for _ in range(800)]}
            first = wire.encode(Flood(Event("Siren", content, id="id-00000", source="m", time=4e9), 1))
            assert len(first) < SMALL_BYTES
            gc.collect()
            before = resident_bytes()
            for number in range(events):
                flood(target, "m", number, first.replace(b"id-00000", b"id-%05d" % number))
            assert 0 < len(waiting) < 300
            assert target.drops["out-of-memory"] == events - len(waiting)
            assert resident_bytes() - before < 32_000_000

    asyncio.run(run())


def siren(id: str, text: str) -> Event:
    return Event("Siren", {"text": text}, id=id, source="m", time=4e9)


def flood(target: Node, sender: str, number: int, *datas: bytes) -> None:
    """Hand packets to the node's host as its transport does."""
    frame = Frame(sender, 1, number, 0.0, "", Position(0.0, 0.0), None, "", [], list(datas))
    target.host.heard(datas, frame, target.host.now())


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_the_worst_that_a_protocol_accepts_stays_in_memory(protocol: str) -> None:
    """Packets as large as the decoder lets in, all different, mixed with short ones that open the way for them."""

    async def run() -> None:
        random = Random(protocol)
        classes = packet_classes(protocol)
        async with Desk(memory_bytes=32_000_000).node("target", protocol=protocol) as target:
            target.subscribe("Siren")
            gc.collect()
            before = resident_bytes()
            for number in range(sized(4000, 60_000)):
                made = packet(random, random.choice(classes), worst=number % 2 == 0)
                try:
                    flood(target, random.choice(("m0", "m1", f"x{number}")), number, wire.encode(made))
                except wire.MalformedPacket:
                    continue
                if number % 50 == 0:
                    await asyncio.sleep(0)
            gc.collect()
            grown = resident_bytes() - before
            assert target.drops["machine-failure"] == 0
            assert grown < 64_000_000, f"{protocol} grew by {grown / 1e6:.0f} MB"

    asyncio.run(run())
