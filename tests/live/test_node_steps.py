"""A node without a network: what a program may ask of it, and what it gets for each question."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_host_steps import Desk, in_a_loop

from earshot.errors import UsageError
from earshot.events import Event, EventType
from earshot.filters import Filter
from earshot.geometry import Area, Circle, Position, Proximity
from earshot.live import node as node_module
from earshot.live.node import HeardPeer, Node, Publisher
from earshot.live.peers import Peer
from earshot.protocols.cbf import CbfSettings
from earshot.protocols.machine import Deliver
from earshot.protocols.services.fences import Crossed
from earshot.protocols.services.served import Late
from earshot.records import DropReason


def node_at(desk: Desk) -> Node:
    node = Node("me", protocol="flooding")
    node._host = desk.host
    return node


def settings_of(node: Node) -> Any:
    return node._make_host.args[2]


@in_a_loop
def test_a_queue_holds_at_least_one_event_and_ten_thousand_by_default() -> None:
    node = node_at(Desk())
    assert (node.subscribe("N", queue=1)._limit, node.subscribe("N")._limit, node.fences("N")._limit) == (
        1,
        10_000,
        10_000,
    )
    for queue in (0, -1):
        with pytest.raises(UsageError, match=f"queue must be at least 1, got {queue}"):
            node.subscribe("N", queue=queue)


@in_a_loop
def test_the_subscriptions_of_a_node_are_numbered_from_one() -> None:
    node = node_at(Desk())
    streams = [node.subscribe("N"), node.fences("N"), node.subscribe("N")]
    assert [stream.id for stream in streams] == ["me/1", "me/2", "me/3"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"event_type": "N"}, Filter.of_type("N")),
        ({"event_type": EventType("N", {"v": int})}, Filter.of_type("N")),
        ({"event_type": "N", "where": "v > 1"}, Filter.where("v > 1", type="N")),
        ({"where": "v > 1"}, Filter.where("v > 1")),
        ({"filter": "N: v > 1"}, Filter.where("v > 1", type="N")),
        ({"filter": Filter.xpath("/N[v > 1]")}, Filter.xpath("/N[v > 1]")),
    ],
)
def test_a_program_says_what_it_wants_by_a_type_a_condition_or_a_filter(given: dict[str, Any], wanted: Filter) -> None:
    @in_a_loop
    def check() -> None:
        desk = Desk()
        stream = node_at(desk).subscribe(**given, region=Area(Circle(5.0), Position(1.0, 1.0)))
        (subscription,) = desk.host._subscriptions.values()
        assert (subscription.id, subscription.owner, subscription.filter) == (stream.id, "me", wanted)
        assert subscription.region == Area(Circle(5.0), Position(1.0, 1.0))

    check()


@pytest.mark.parametrize("more", [{"event_type": "N"}, {"where": "v > 1"}])
def test_a_filter_says_all(more: dict[str, str]) -> None:
    @in_a_loop
    def check() -> None:
        with pytest.raises(UsageError, match="give a filter, or a type and a where, not both"):
            node_at(Desk()).subscribe(filter="N: true", **more)  # type: ignore[arg-type]

    check()


@pytest.mark.parametrize("precision_m", [0.0, -1.0, float("nan")])
def test_a_precision_is_a_positive_number_of_metres(precision_m: float) -> None:
    with pytest.raises(UsageError, match="precision_m must be a positive number of metres"):
        Node("me", precision_m=precision_m)


def test_the_protocol_gets_the_emulated_range_as_its_range_unless_a_setting_gives_another() -> None:
    assert settings_of(Node("me", protocol="cbf", emulate_range_m=77.0)).range_m == 77.0
    assert settings_of(Node("me", protocol="cbf", emulate_range_m=77.0, settings={"range_m": 88.0})).range_m == 88.0
    assert settings_of(Node("me", protocol="cbf")).range_m == CbfSettings().range_m


@pytest.mark.parametrize(
    ("within", "proximity"),
    [
        (None, None),
        (Circle(9.0), Proximity(Circle(9.0), Position(3.0, 4.0), mobile=True)),
        (Area(Circle(9.0), Position(1.0, 2.0)), Proximity(Circle(9.0), Position(1.0, 2.0))),
        (Proximity(Circle(9.0), Position(5.0, 6.0)), Proximity(Circle(9.0), Position(5.0, 6.0))),
    ],
)
def test_a_shape_moves_with_the_node_and_an_area_stays(within: Any, proximity: Proximity | None) -> None:
    async def run() -> None:
        desk = Desk()
        publisher = await node_at(desk).announce("N", within)
        assert desk.host._announcements["N"].proximity == proximity
        await publisher.unannounce()
        assert desk.host._announcements == {}

    asyncio.run(run())


def test_a_publisher_publishes_its_content_with_its_named_values() -> None:
    async def run() -> None:
        node = node_at(Desk())
        plain: Publisher = await node.announce("N")
        assert (await plain.publish({"a": 1, "b": 2}, b=3)).content == {"a": 1, "b": 3}
        assert (await plain.publish(b=3)).content == {"b": 3}
        checked = await node.announce(EventType("C", {"v": float}))
        assert (await checked.publish({"v": 2})).content == {"v": 2.0}

    asyncio.run(run())


def test_after_256_publications_and_while_the_socket_is_congested_other_tasks_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    congested = iter(())

    class Congestion:
        congested = False

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        Congestion.congested = next(congested, False)

    async def run() -> None:
        nonlocal congested
        desk = Desk()
        desk.host.transport = Congestion()  # type: ignore[assignment]
        desk.host.machine.publish = lambda *_: []  # type: ignore[method-assign]
        monkeypatch.setattr(node_module.asyncio, "sleep", sleep)
        node = node_at(desk)
        publisher = await node.announce("N")
        for _ in range(255):
            await publisher.publish()
        assert waits == []
        await publisher.publish()
        assert waits == [0]
        for _ in range(255):
            await node.publish(Event("N", {}))
        assert waits == [0]
        await node.publish(Event("N", {}))
        assert waits == [0, 0]
        Congestion.congested, congested = True, iter((True, False))  # type: ignore[assignment]
        await publisher.publish()
        assert waits == [0, 0, 0.001, 0.001], "until the socket takes datagrams again"

    asyncio.run(run())


@in_a_loop
def test_a_peer_is_shown_with_the_seconds_since_it_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    node = node_at(desk)
    peers = [
        Peer("b", ("10.0.0.2", 5), 1, heard_at=47.5, position=Position(1.0, 2.0), proven=True),
        Peer("c", ("10.0.0.3", 5), 1, heard_at=50.0),
    ]
    monkeypatch.setattr(node_module.time, "monotonic", lambda: 50.0)
    monkeypatch.setattr(desk.host.transport.peers, "present", lambda now: peers if now == 50.0 else [])
    assert node.peers() == [
        HeardPeer("b", ("10.0.0.2", 5), Position(1.0, 2.0), 2.5, True),
        HeardPeer("c", ("10.0.0.3", 5), None, 0.0, False),
    ]


@in_a_loop
def test_a_failing_handler_is_counted_and_logged_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    got: list[str] = []

    def handler(event: Event) -> None:
        got.append(event.id)
        raise ValueError("the program's own mistake")

    end = node_at(desk).call(handler, "N")
    for id in ("a", "b"):
        desk.host._deliver(Deliver(Event("N", {}, id=id, source="p", time=999.0), "me/1"))
    assert (got, desk.host.drops) == (["a", "b"], {DropReason.HANDLER_FAILURE: 2})
    assert [record.getMessage() for record in caplog.records] == ["me: the handler of me/1 failed"] * 2
    end()
    assert desk.host.subscriptions == 0


@in_a_loop
def test_a_stream_counts_the_events_that_came_late() -> None:
    desk = Desk()
    stream = node_at(desk).subscribe("N")
    for id, late_s in (("a", None), ("b", 0.5), ("c", 1.5)):
        event = Event("N", {}, id=id, source="p", time=999.0)
        desk.host._carry_out(([Late(event, stream.id, late_s)] if late_s else []) + [Deliver(event, stream.id)])
    assert (stream.late, len(stream), stream.dropped) == (2, 3, 0)


@in_a_loop
def test_a_crossing_says_what_happened_with_whom_and_when_until_its_stream_is_closed() -> None:
    desk = Desk()
    stream = node_at(desk).fences("Siren", near_m=50.0)
    desk.host._carry_out([Crossed(stream.id, "enter", "you", "Siren"), Crossed(stream.id, "nearby", "you")])
    assert list(stream._waiting_items) == [
        node_module.FenceCrossing("enter", "you", "Siren", 1000.0),
        node_module.FenceCrossing("nearby", "you", "", 1000.0),
    ]
    stream.close()
    assert desk.host._fences == {}


def test_two_tasks_cannot_read_one_subscription() -> None:
    async def run() -> None:
        stream = node_at(Desk()).subscribe("N")
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="two tasks cannot read one subscription"):
            await anext(stream)
        stream.put(Event("N", id="e"))
        assert (await first).id == "e"

    asyncio.run(run())
