"""The bridge without a broker and without a network: what it sends, keeps, counts and ignores, step by step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot import Circle, Event, Position
from earshot.geometry import Area
from earshot.live.bridge import Bridge, FromMqtt, Mapping, MqttBroker, ToMqtt
from earshot.live.bridge import bridge as bridge_module
from earshot.live.bridge.bridge import mark_of
from earshot.live.bridge.waiting_messages import QueueFailed

BROKER = MqttBroker("broker.example", 1883)
RULES = Mapping(
    to_mqtt=(ToMqtt("Siren", "city/{source}"), ToMqtt("Tick", "ticks", qos=0, retain=True)),
    from_mqtt=(
        FromMqtt("closures/+", "Closure", within="circle:50m", at_fields=("x", "y")),
        FromMqtt("news/#", "News", qos=0, within="circle:9m"),
        FromMqtt("closures/+", "Never"),
    ),
)


class Office:
    """What the bridge takes for its connection to the broker."""

    last: Office

    def __init__(self, broker: MqttBroker, name: str, topics: Any, **calls: Callable[..., None]) -> None:
        self.name, self.topics, self.calls = name, topics, calls
        self.connected, self.connections, self.started, self.mid = True, 1, False, 0
        self.sent: list[tuple[Any, ...]] = []
        self.acknowledged: list[int] = []
        Office.last = self

    def start(self) -> None:
        self.started = True

    async def stop(self) -> None:
        self.started = False

    def publish(self, topic: str, payload: bytes, qos: int, retain: bool, properties: dict[str, str]) -> int:
        self.mid += 1
        self.sent.append((topic, qos, retain, properties["earshot-event"], properties["earshot-network"]))
        return self.mid

    def acknowledge(self, message: Any) -> None:
        self.acknowledged.append(message.mid)


class Town:
    """What the bridge takes for its node."""

    name = "town"

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[[Event], None], str]] = []
        self.did: list[Any] = []

    def call(self, callback: Callable[[Event], None], filter: Any) -> Callable[[], None]:
        self.calls.append((callback, str(filter)))
        return lambda: self.did.append("stopped")

    async def announce(self, subject: str, within: Any) -> Any:
        self.did.append(("announce", subject, within))

        async def unannounce() -> None:
            self.did.append(("unannounce", subject, within))

        return SimpleNamespace(unannounce=unannounce)

    async def publish(self, event: Event) -> None:
        self.did.append((event.type, event.fields.get("n", (None,))[0]))


def siren(n: int, source: str = "car", type: str = "Siren") -> Event:
    return Event(type, {"n": n}, id=f"{source}-{n}", source=source)


def message(payload: str, topic: str = "closures/a", mid: int = 1, qos: int = 1, dup: bool = False, **said: str) -> Any:
    properties = SimpleNamespace(UserProperty=[(f"earshot-{name}", text) for name, text in said.items()])
    return SimpleNamespace(topic=topic, payload=payload.encode(), mid=mid, qos=qos, dup=dup, properties=properties)


Story = Callable[[Bridge, Town, Office], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a story beside a bridge that has been entered."""
    monkeypatch.setattr(bridge_module, "Connection", Office)

    def run(story: Story, **options: Any) -> None:
        async def whole() -> None:
            town = Town()
            bridge = Bridge(town, BROKER, RULES, tmp_path / "queue.db", network="n", **options)  # type: ignore[arg-type]
            async with bridge:
                office = Office.last
                await story(bridge, town, office)
                office.connected = False
            assert (office.started, bridge.connected) == (False, False)
            assert town.did[-2:] == ["stopped", "stopped"]

        asyncio.run(whole())

    return run


def heard(bridge: Bridge, town: Town, *events: Event) -> None:
    """The node hears events, and the time to gather them has passed."""
    for event in events:
        town.calls[0 if event.type == "Siren" else 1][0](event)
    bridge._flush()


async def received(office: Office, *messages: Any) -> None:
    """The broker sends messages, and the bridge has handled them."""
    for one in messages:
        office.calls["received"](one)
    for _ in range(4 * len(messages) + 4):
        await asyncio.sleep(0)


def test_a_bridge_asks_for_each_topic_once_and_listens_by_its_rules(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        assert office.topics == [("closures/+", 1), ("news/#", 0)]
        assert (office.started, bridge.connected, len(office.name)) == (True, True, len("earshot-") + 16)
        assert [filter for _, filter in town.calls] == [str(rule.filter) for rule in RULES.to_mqtt]

    play(story)


def test_an_event_waits_until_the_broker_has_it(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        town.calls[0][0](siren(1))
        assert (bridge.waiting, office.sent, list(bridge._timers)) == (1, [], ["flush"])
        bridge._flush()
        assert office.sent == [("city/car", 1, False, "car-1", "n")]
        assert (bridge.waiting, await bridge.drained(0.0)) == (1, False)
        office.calls["acknowledged"](7)
        assert "forget" not in bridge._timers
        office.calls["acknowledged"](1)
        office.calls["acknowledged"](1)
        assert "forget" in bridge._timers
        bridge._forget_acknowledged()
        assert (bridge.waiting, await bridge.drained(0.0)) == (0, True)
        assert bridge.counts == {"out": 1, "acknowledged": 1}

    play(story)


def test_a_message_that_nobody_acknowledges_is_sent_once_and_forgotten(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, siren(1, type="Tick"))
        assert office.sent == [("ticks", 0, True, "car-1", "n")]
        assert "forget" in bridge._timers
        bridge._forget_acknowledged()
        bridge._send_more()
        assert (bridge.waiting, len(office.sent)) == (0, 1)

    play(story)


def test_more_is_sent_when_a_quarter_and_one_are_free(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "UNACKNOWLEDGED", 8)

    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, *(siren(n) for n in range(12)))
        seen = [len(office.sent)]
        for mid in (1, 2, 3, 4):
            office.calls["acknowledged"](mid)
            seen.append(len(office.sent))
        assert seen == [8, 8, 8, 11, 11]
        assert [one[3] for one in office.sent] == [f"car-{n}" for n in range(11)]

    play(story)


def test_nothing_is_sent_while_the_broker_is_away(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, siren(1))
        office.connected = False
        office.calls["changed"](False)
        heard(bridge, town, siren(2))
        assert (len(office.sent), bridge.waiting, bridge.counts["sent again"]) == (1, 2, 0)
        office.connected = True
        office.calls["changed"](True)
        assert ([one[3] for one in office.sent], bridge.counts["sent again"]) == (["car-1", "car-2"], 1)

    play(story)


def test_events_of_a_bridge_to_this_broker_do_not_go_back(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, siren(1, source=f"{mark_of(BROKER)}-x"))
        assert (office.sent, bridge.counts) == ([], {"looped": 1})

    play(story)


def test_an_event_without_what_its_topic_needs_is_refused_and_reported_ten_times(
    play: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, *(siren(n, source="") for n in range(12)))
        assert (office.sent, bridge.counts) == ([], {"refused": 12})

    with caplog.at_level(logging.WARNING, "earshot.bridge"):
        play(story)
    assert len(caplog.records) == 10


def test_the_oldest_events_are_lost_where_memory_or_disk_is_full(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bridge_module, "MOST_GATHERED", 2)

    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        def refuse(_: Any) -> None:
            raise QueueFailed("the disk is full")

        add, bridge._waiting.add = bridge._waiting.add, refuse  # type: ignore[method-assign]
        for n in range(3):
            heard(bridge, town, siren(n))
        assert (bridge.waiting, bridge.counts) == (2, {"out": 3, "lost": 1, "disk refused": 3})
        bridge._waiting.add = add  # type: ignore[method-assign]
        bridge._flush()
        assert [one[3] for one in office.sent] == ["car-1", "car-2"]

    with caplog.at_level(logging.WARNING, "earshot.bridge"):
        play(story)
    assert [record.getMessage() for record in caplog.records] == [
        "the queue cannot be written: the disk is full; events wait in memory"
    ]


def test_a_full_queue_counts_what_it_loses(play: Callable[..., None], caplog: pytest.LogCaptureFixture) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        office.connected = False
        heard(bridge, town, siren(1))
        heard(bridge, town, siren(2))
        heard(bridge, town, siren(3))
        assert (bridge.waiting, bridge.counts) == (1, {"out": 3, "lost": 2})

    with caplog.at_level(logging.WARNING, "earshot.bridge"):
        play(story, queue_bytes=10)
    assert [record.getMessage() for record in caplog.records] == ["the queue is full: the oldest messages are lost"]


def test_messages_are_announced_published_and_acknowledged(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        near, far = (Area(Circle(50.0), Position(x, 2.0)) for x in (1.0, 7.0))
        await received(
            office,
            message('{"n": 1, "x": 1, "y": 2}', mid=1),
            message('{"n": 2, "x": 1, "y": 2}', mid=2),
            message('{"n": 3, "x": 7, "y": 2}', mid=3),
            message('{"n": 4}', "news/a/b", mid=0, qos=0),
        )
        assert town.did == [
            ("announce", "Closure", near), ("Closure", 1), ("Closure", 2),
            ("announce", "Closure", far), ("Closure", 3), ("announce", "News", Circle(9.0)), ("News", 4),
        ]  # fmt: skip
        assert (office.acknowledged, bridge.counts) == ([1, 2, 3, 0], {"in": 4})

    play(story)


def test_a_message_that_comes_again_is_published_once(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "UNACKNOWLEDGED", 1)
    place = '"x": 1, "y": 2}'

    async def story(bridge: Bridge, _: Town, office: Office) -> None:
        first, other = ('{"n": 1, ' + place, '{"n": 2, ' + place)
        await received(office, message(first), message(first, dup=True), message(other, dup=True), message(first))
        assert (bridge.counts, office.acknowledged) == ({"in": 3, "came again": 1}, [1, 1, 1, 1])
        await received(office, message(first, mid=2), message(first, mid=3), message(first, dup=True))
        assert (bridge.counts["in"], list(bridge._handled)) == (6, [3, 1])
        await received(office, message(first, "news/a", mid=9, qos=0))
        assert 9 not in bridge._handled

    play(story)


def test_a_number_that_is_used_again_is_remembered_from_then_on(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a message over a number used before is forgotten first, and published twice when it comes again."""
    monkeypatch.setattr(bridge_module, "UNACKNOWLEDGED", 1)

    async def story(bridge: Bridge, _: Town, office: Office) -> None:
        old, new = '{"n": 1, "x": 1, "y": 2}', '{"n": 2, "x": 1, "y": 2}'
        await received(office, message(old, mid=1), message(old, mid=2), message(new, mid=1), message(old, mid=3))
        await received(office, message(new, mid=1, dup=True))
        assert bridge.counts == {"in": 4, "came again": 1}

    play(story)


def test_messages_of_this_network_and_of_its_own_events_do_not_come_back(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, siren(1))
        content = '{"x": 1, "y": 2}'
        await received(office, message(content, network="n"), message(content, event="car-1"))
        assert (town.did, bridge.counts["looped"], office.acknowledged) == ([], 2, [1, 1])
        await received(office, message(content, network="m", event="car-2"))
        assert bridge.counts["in"] == 1

    play(story)


def test_a_message_without_a_rule_or_a_place_is_refused_and_acknowledged(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        await received(office, message("{}", "elsewhere"), message('{"x": 1}', mid=2))
        assert (town.did, bridge.counts, office.acknowledged) == ([], {"refused": 2}, [1, 2])

    play(story)


def test_a_message_of_an_earlier_connection_is_left_to_come_again(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, _: Town, office: Office) -> None:
        for one in (message('{"x": 1, "y": 2}', mid=1), message("{}", "news/a", mid=2, qos=0)):
            office.calls["received"](one)
        office.connections = 2
        await received(office)
        assert (bridge.counts, office.acknowledged) == ({"in": 1}, [2])
        office.calls["received"](message('{"x": 1, "y": 2}', mid=3))
        office.connected = False
        await received(office)
        assert (bridge.counts, office.acknowledged) == ({"in": 1}, [2])

    play(story)


def test_messages_beyond_what_memory_holds_are_lost(play: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "MOST_RECEIVED", 2)

    async def story(bridge: Bridge, _: Town, office: Office) -> None:
        await received(office, *(message("{}", "news/a", mid=n, qos=0) for n in range(3)))
        assert bridge.counts == {"lost": 1, "in": 2}

    play(story)


def test_the_type_announced_longest_ago_is_withdrawn(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "MOST_ANNOUNCED", 1)

    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        await received(office, message("{}", "news/a", qos=0), message('{"x": 1, "y": 2}', mid=2))
        assert ("unannounce", "News", Circle(9.0)) in town.did
        assert list(bridge._announced) == ["Closure"]

    play(story)


def test_a_type_that_is_used_is_not_the_oldest_and_is_announced_again_only_where_its_area_changes(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "MOST_ANNOUNCED", 2)
    rules = Mapping(from_mqtt=(FromMqtt("+/#", "{1}", qos=0, within="circle:9m", at_fields=("x", "y")),))

    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        bridge.mapping = rules
        for topic, x in (("A/1", 1), ("B/1", 1), ("A/1", 1), ("C/1", 1), ("A/1", 2)):
            await received(office, message(f'{{"x": {x}, "y": 0}}', topic, qos=0))

        def area(x: float) -> Area:
            return Area(Circle(9.0), Position(x, 0.0))

        assert [one for one in town.did if one[0] in ("announce", "unannounce")] == [
            ("announce", "A", area(1.0)),
            ("announce", "B", area(1.0)),
            ("announce", "C", area(1.0)),
            ("unannounce", "B", area(1.0)),
            ("announce", "A", area(2.0)),
        ]

    play(story)


def test_a_message_that_breaks_the_node_is_refused_logged_and_acknowledged_and_the_next_is_published(
    play: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        publish = town.publish

        async def breaks(_: Event) -> None:
            town.publish = publish  # type: ignore[method-assign]
            raise ValueError("a mistake of ours")

        town.publish = breaks  # type: ignore[method-assign]
        await received(office, *(message("{}", f"news/{'a' * 200}", mid=n, qos=0) for n in (1, 2)))
        assert (bridge.counts, office.acknowledged) == ({"refused": 1, "in": 1}, [1, 2])

    with caplog.at_level(logging.ERROR):
        play(story)
    name = f"news/{'a' * 200}"[:100]
    assert [one.getMessage() for one in caplog.records] == [f"a message on {name} could not be published"]


def test_events_of_ten_milliseconds_are_written_together_and_a_refusing_disk_is_tried_after_a_second(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        later: list[tuple[float, str]] = []
        monkeypatch.setattr(bridge, "_schedule", lambda name, delay_s, _: later.append((delay_s, name)))
        town.calls[0][0](siren(1))
        assert later == [(0.01, "flush")]
        later.clear()
        with monkeypatch.context() as broken:
            broken.setattr(bridge._waiting, "add", fails)
            bridge._flush()
            assert (later, bridge.waiting) == ([(1.0, "flush")], 1)
        bridge._flush()
        later.clear()
        office.calls["acknowledged"](1)
        assert later == [(0.01, "forget")]
        later.clear()
        with monkeypatch.context() as broken:
            broken.setattr(bridge._waiting, "remove", fails)
            bridge._forget_acknowledged()
            assert (later, bridge.waiting) == ([(1.0, "forget")], 1)
        bridge._forget_acknowledged()
        assert bridge.waiting == 0

    def fails(_: object) -> None:
        raise QueueFailed("no room")

    play(story)


def test_an_acknowledgement_of_an_unknown_message_counts_nothing(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, _: Town, office: Office) -> None:
        office.calls["acknowledged"](7)
        assert (bridge.counts, bridge._acknowledged) == ({}, [])

    play(story)


def test_a_new_connection_counts_what_is_on_its_way_as_sent_again(play: Callable[..., None]) -> None:
    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, siren(1), siren(2))
        office.calls["changed"](False)
        assert bridge.counts["sent again"] == 0
        office.calls["changed"](True)
        assert (bridge.counts["sent again"], len(office.sent)) == (2, 2), "paho itself sends them"

    play(story)


def test_messages_that_nobody_acknowledges_go_out_a_batch_after_the_other(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "UNACKNOWLEDGED", 2)

    async def story(bridge: Bridge, town: Town, office: Office) -> None:
        heard(bridge, town, *(siren(n, type="Tick") for n in range(5)))
        sent = [len(office.sent)]
        for _ in range(3):
            bridge._forget_acknowledged()
            sent.append(len(office.sent))
        assert (sent, [one[3] for one in office.sent]) == ([2, 4, 5, 5], [f"car-{n}" for n in range(5)])

    play(story)


def test_a_bridge_that_ends_waits_two_seconds_for_the_broker_after_it_has_written_everything(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, int, int]] = []

    async def story(bridge: Bridge, town: Town, _: Office) -> None:
        async def drained(longest_s: float) -> bool:
            seen.append((longest_s, len(bridge._waiting), len(bridge._gathered)))
            return False

        monkeypatch.setattr(bridge, "drained", drained)
        town.calls[0][0](siren(1))

    play(story)
    assert seen == [(2.0, 1, 0)]


def test_the_numbers_of_a_bridge() -> None:
    module = bridge_module
    assert (module.MOST_GATHERED, module.MOST_RECEIVED, module.MOST_ANNOUNCED, module.REMEMBERED) == (
        10_000, 10_000, 256, 10_000,
    )  # fmt: skip
    assert module.DEFAULT_QUEUE_BYTES == 256_000_000
