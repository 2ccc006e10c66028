"""The live host step by step, without a network: its clock, timers, deliveries, records and what fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from earshot.errors import EventError, UsageError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position, Proximity
from earshot.live import host as host_module
from earshot.live.credentials import Credentials
from earshot.live.datagrams import Frame
from earshot.live.host import CLOCK_STEP_S, MAX_DELIVERED, MAX_TIMERS, POSITION_EVERY_S, TIMER_AGAIN_S, Host
from earshot.live.location import Fixed
from earshot.live.network import NetworkSettings
from earshot.live.peers import Peer
from earshot.live.spool import read_records
from earshot.live.trust import Refused
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.machine import NOTHING, Announcement, CancelTimer, Deliver, Drop, Note, StartTimer
from earshot.protocols.services.fences import Crossed, Fence, Here
from earshot.protocols.services.history import DeliverPast
from earshot.protocols.services.served import Late
from earshot.records import DropReason, Kind
from earshot.records.details import KEYS_CHANGED, read_announce, read_join, read_subscribe
from earshot.wire import MAX_WORD, encode, tag_of


class Loop:
    """A loop that notes what is to be called."""

    def __init__(self) -> None:
        self.soon: list[tuple[Any, ...]] = []
        self.later: list[tuple[Any, ...]] = []
        self.cancelled: list[Any] = []

    def call_soon(self, *call: Any) -> None:
        self.soon.append(call)

    def call_later(self, *call: Any) -> Any:
        self.later.append(call)
        return Handle(self, call)


class Handle:
    def __init__(self, loop: Loop, call: Any) -> None:
        self.loop, self.call = loop, call

    def cancel(self) -> None:
        self.loop.cancelled.append(self.call)


class Desk:
    """A host called me on a clock that a test moves."""

    def __init__(self, spool: Path | None = None, credentials: Credentials | None = None, **network: Any) -> None:
        self.at = 1000.0
        self.loop = Loop()
        self.host = Host(
            "me", Flooding, FloodingSettings(), NetworkSettings(**network), Fixed.on_plane(3.0, 4.0), spool,
            credentials=credentials, clock=lambda: self.at,
        )  # fmt: skip
        self.host._loop = self.loop  # type: ignore[assignment]
        self.broadcasts: list[Any] = []
        self.host.transport.broadcast = lambda packet, _: self.broadcasts.append(packet)  # type: ignore[method-assign]
        self.got: list[str] = []

    def subscribe(self, id: str = "s", text: str = "N: true") -> None:
        self.host.subscribe(Subscription(id, "me", Filter.parse(text)), lambda event: self.got.append(event.id))

    def deliver(self, id: str, **given: Any) -> None:
        self.host._deliver(Deliver(Event("N", {}, id=id, source="p", **{"time": 999.0, **given}), "s", 2))

    def hear(self, data: bytes) -> None:
        self.host.heard([data], Frame("you", 3, 1, 1000.0, "", None, None, "", [], [data]), self.at)


def in_a_loop(test: Callable[..., None]) -> Callable[..., None]:
    """A host's transport asks for the running loop when it is made."""

    @wraps(test)
    def wrapped(*args: Any, **given: Any) -> None:
        async def run() -> None:
            test(*args, **given)

        asyncio.run(run())

    return wrapped


def test_the_numbers_of_a_host() -> None:
    assert (POSITION_EVERY_S, CLOCK_STEP_S, TIMER_AGAIN_S, MAX_TIMERS, MAX_DELIVERED) == (1.0, 2.0, 1.0, 65_536, 10_000)


@in_a_loop
def test_a_name_has_1_to_128_characters_and_a_life_is_its_start_in_nanoseconds() -> None:
    for name in ("", "x" * 129):
        with pytest.raises(UsageError, match="a node's name has 1 to 128 characters"):
            Host(name, Flooding, FloodingSettings(), NetworkSettings(), Fixed.on_plane())
    long = Host("x" * 128, Flooding, FloodingSettings(), NetworkSettings(), Fixed.on_plane(), clock=lambda: 2.5)
    assert long.life == 2_500_000_000


# The clock.


@in_a_loop
def test_time_stands_still_while_the_clock_is_a_little_back_and_starts_again_when_it_is_far_back() -> None:
    desk = Desk()
    assert desk.host.now() == 1000.0
    desk.at = 998.0
    assert (desk.host.now(), desk.loop.soon) == (1000.0, [])
    desk.at = 997.5
    assert (desk.host.now(), desk.loop.soon) == (997.5, [(desk.host._start_again, 2.5)])
    stopped = Desk()
    stopped.host.now()
    stopped.host._loop = None
    stopped.at = 1.0
    assert stopped.host.now() == 1000.0


@in_a_loop
def test_a_protocol_that_starts_again_keeps_what_the_application_asked_for() -> None:
    desk = Desk()
    desk.subscribe()
    desk.host.announce(Announcement(EventType("N")))
    desk.host._start_timer(StartTimer("x", 1001.0))
    desk.host.transport.joined.add(5)
    before = desk.host.machine
    desk.host._start_again(500.0)
    assert desk.host.machine is not before
    assert ([call[-1] for call in desk.loop.cancelled], desk.host._timers, desk.host.transport.joined) == (
        ["x"], {}, set(),
    )  # fmt: skip
    desk.hear(encode(Flood(Event("N", {}, id="e", source="p", time=1000.0), 1)))
    assert desk.got == ["e"], "the new machine has the subscription"
    desk.host._loop = None
    kept = desk.host.machine
    desk.host._start_again(500.0)
    assert desk.host.machine is kept, "a host that has stopped does not start again"


# Timers.


@in_a_loop
def test_a_timer_of_the_same_name_replaces_the_earlier_one() -> None:
    desk = Desk()
    desk.host._start_timer(StartTimer("x", 1001.5))
    desk.host._start_timer(StartTimer("x", 1003.0))
    assert [call[0] for call in desk.loop.later] == [1.5, 3.0]
    assert [call[0] for call in desk.loop.cancelled] == [1.5]
    desk.host._cancel_timer(CancelTimer("x"))
    desk.host._cancel_timer(CancelTimer("unknown"))
    assert [call[0] for call in desk.loop.cancelled] == [1.5, 3.0]
    assert desk.host._timers == {}


@in_a_loop
def test_so_many_timers_run_and_one_that_runs_may_be_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "MAX_TIMERS", 2)
    desk = Desk()
    for name in ("a", "b", "c", "a"):
        desk.host._start_timer(StartTimer(name, 1001.0))
    assert sorted(desk.host._timers) == ["a", "b"]
    assert desk.host.drops == {DropReason.TOO_MANY_TIMERS: 1}


@in_a_loop
def test_timers_for_the_present_time_again_and_again_wait_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "MOST_AT_ONE_TIME", 3)
    desk = Desk()
    for _ in range(4):
        desk.host._start_timer(StartTimer("x", 1000.0))
    desk.host._start_timer(StartTimer("y", 1000.5))
    assert [call[0] for call in desk.loop.later] == [0.0, 0.0, 1.0, 1.0, 0.5]
    assert desk.host.drops == {DropReason.MACHINE_FAILURE: 1}, "counted once"
    desk.host._tick()
    assert desk.host._at_once == 0


@in_a_loop
def test_a_timer_whose_handling_fails_fires_again_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.host._start_timer(StartTimer("x", 1001.0))

    def fails(*call: Any) -> Any:
        raise ValueError(call)

    monkeypatch.setattr(desk.host.served, "wake", fails)
    desk.host._fire("x")
    assert [call[0] for call in desk.loop.later] == [1.0, 1.0]
    assert desk.host.drops == {DropReason.MACHINE_FAILURE: 1}
    monkeypatch.setattr(desk.host.served, "wake", lambda *_: [])
    desk.host._fire("x")
    assert (len(desk.loop.later), desk.host._timers) == (2, {})


@in_a_loop
def test_a_timer_that_was_started_before_the_failure_is_not_started_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.host._start_timer(StartTimer("x", 1001.0))
    monkeypatch.setattr(desk.host.served, "wake", lambda *_: [StartTimer("x", 1005.0), "no effect"])
    desk.host._fire("x")
    assert [call[0] for call in desk.loop.later] == [1.0, 5.0]
    assert (desk.loop.cancelled, desk.host.drops) == ([], {DropReason.MACHINE_FAILURE: 1})


@in_a_loop
def test_a_timer_takes_half_a_kilobyte_of_a_sixteenth_of_the_memory() -> None:
    desk = Desk(memory_bytes=16_000_000)
    for number in range(1954):
        desk.host._start_timer(StartTimer(("x", number), 1001.0))
    assert (len(desk.host._timers), desk.host.drops) == (1953, {DropReason.TOO_MANY_TIMERS: 1})


@in_a_loop
def test_every_second_the_place_is_written_and_the_next_second_is_awaited(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.host._tick()
    assert desk.loop.later == [(1.0, desk.host._tick)]
    desk.host._flush_spool()
    records = [one for one in read_spool(tmp_path) if one.kind == Kind.POSITION]
    assert [(one.time, one.node, one.x_m, one.y_m) for one in records] == [(1000.0, "me", 3.0, 4.0)]


def read_spool(folder: Path) -> list[Any]:
    return list(read_records(folder))


# Deliveries.


@in_a_loop
def test_an_event_is_delivered_once_to_each_subscription_until_its_lifespan_ends() -> None:
    desk = Desk()
    desk.subscribe()
    ages: list[float] = []
    desk.host.on_deliver = ages.append
    desk.host.now()
    for id, given in (("a", {}), ("a", {}), ("b", {"lifespan_s": 1.0}), ("c", {"lifespan_s": 0.9})):
        desk.deliver(id, **given)
    assert (desk.got, ages) == (["a", "b"], [1.0, 1.0])
    assert desk.host.counts[Kind.DELIVER] == 2
    assert desk.host.drops == {DropReason.EXPIRED: 1}


@in_a_loop
def test_of_the_latest_deliveries_none_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "MAX_DELIVERED", 2)
    desk = Desk()
    desk.subscribe()
    for id in ("a", "b", "a", "c", "b", "d", "a"):
        desk.deliver(id)
    assert desk.got == ["a", "b", "c", "d", "a"], "the two latest pairs are remembered"


@in_a_loop
def test_packets_pass_the_services_once_a_type_is_stated_or_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    passed: list[str] = []
    monkeypatch.setattr(desk.host.served, "hear", lambda packet, *_: passed.append(tag_of(packet)) or NOTHING)
    monkeypatch.setattr(desk.host.served, "publish", lambda event, _: passed.append(event.type) or NOTHING)
    flood = encode(Flood(Event("N", {}, id="a", source="p", time=999.0), 1))
    desk.hear(flood)
    desk.hear(encode(Here(Position(0.0, 0.0))))
    types = desk.host.served.types
    for table, thing in ((types.declared, EventType("N")), (types.heard, None)):
        table["s"] = thing  # type: ignore[index, assignment]
        desk.hear(flood)
        del table["s"]  # type: ignore[arg-type]
    desk.host.announce(Announcement(EventType("Plain")))
    desk.host.announce(Announcement(EventType("Kept", attributes={"history": 2})))
    for subject in ("Plain", "Kept", "not announced"):
        desk.host.publish_new(subject, {})
    assert passed == ["here", "flood", "flood", "Kept", "not announced"]


@in_a_loop
def test_a_delivery_without_a_handler_is_counted_all_the_same() -> None:
    desk = Desk()
    desk.deliver("a")
    assert (desk.got, desk.host.counts[Kind.DELIVER]) == ([], 1)


# What applications do.


@in_a_loop
def test_an_expected_type_stays_declared_through_a_restart_until_its_subscription_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    expected = EventType("N", attributes={"priority": 2})
    handler = desk.got.append
    desk.host.subscribe(Subscription("s", "me", Filter.parse("N: true")), handler, expected)  # type: ignore[arg-type]
    desk.subscribe("t")
    desk.host.fence(Fence("f", near_m=50.0), lambda *_: None)
    desk.host._start_again(500.0)
    assert desk.host.served.types.declared == {"s": expected}
    assert list(desk.host.served.fences.by_id) == ["f"]
    desk.host.unsubscribe("s")
    assert (desk.host.served.types.declared, desk.host._declared) == ({}, {})

    def refuses(*_: Any) -> Any:
        raise UsageError("no")

    monkeypatch.setattr(desk.host.served, "subscribe", refuses)
    with pytest.raises(UsageError, match="no"):
        desk.host.subscribe(Subscription("u", "me", Filter.parse("N: true")), handler, expected)  # type: ignore[arg-type]
    assert desk.host._declared == {}


@in_a_loop
def test_an_event_has_the_area_of_the_announcement_that_it_is_published_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flooding, "several_producers", True)
    desk = Desk()
    fixed = Proximity(Circle(50.0), Position(9.0, 9.0))
    moving = Proximity(Circle(70.0), Position(0.0, 0.0), mobile=True)
    desk.host.announce(Announcement(EventType("N"), fixed))
    desk.host.announce(Announcement(EventType("N"), moving, "second"))
    second = Announcement(EventType("N"), moving, "second").name
    assert desk.host.publish_new("N", {}).area == Area(Circle(50.0), Position(9.0, 9.0))
    assert desk.host.publish_new("N", {}, announced=second).area == Area(Circle(70.0), Position(3.0, 4.0))
    assert desk.host.publish(Event("N", {}), second).area == Area(Circle(70.0), Position(3.0, 4.0))
    assert desk.host.publish_new("Other", {}).area is None


@in_a_loop
def test_only_neighbours_that_say_where_they_are_are_known_to_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    there, nowhere = Peer("b", ("10.0.0.2", 5), 1, position=Position(1.0, 2.0)), Peer("c", ("10.0.0.3", 5), 1)
    monkeypatch.setattr(desk.host.transport.peers, "present", lambda _: [there, nowhere])
    assert desk.host._neighbours() == [("b", Position(1.0, 2.0))]


@in_a_loop
def test_changed_keys_are_used_from_the_next_second_on_and_recorded(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("01" * 32)
    keys.chmod(0o600)
    desk = Desk(tmp_path / "spool", credentials=Credentials("me", keys))
    assert desk.host.transport._seal.keyed
    used: list[Any] = []
    desk.host.transport.use_keys = used.append  # type: ignore[method-assign, assignment]
    desk.host.transport.joined_network = lambda: None  # type: ignore[method-assign]
    desk.host._tick()
    assert used == []
    keys.write_text("02" * 32 + "\n" + "01" * 32)
    desk.host._tick()
    desk.host._tick()
    assert used == [(bytes([2] * 32), bytes([1] * 32))]
    desk.host._flush_spool()
    joins = [one for one in read_spool(tmp_path / "spool") if one.kind == Kind.JOIN]
    assert [(read_join(one.detail).reason, one.x_m, one.y_m) for one in joins] == [(KEYS_CHANGED, 3.0, 4.0)]


@in_a_loop
def test_an_event_has_the_hosts_place_and_time_and_the_quality_of_its_type() -> None:
    desk = Desk()
    desk.host.announce(Announcement(EventType("Alarm", attributes={"lifespan_s": 30.0, "priority": 2})))
    plain = desk.host.publish_new("N", {"v": 1})
    assert plain == Event(
        "N", {"v": 1}, f"me-{desk.host.life:x}-1", "me", Position(3.0, 4.0), plain.velocity, 1000.0, None, None, 0
    )
    alarm = desk.host.publish_new("Alarm", {})
    assert (alarm.lifespan_s, alarm.priority, alarm.id) == (30.0, 2, f"me-{desk.host.life:x}-2")
    urgent = desk.host.publish(Event("Alarm", {}, lifespan_s=5.0, priority=3))
    assert (urgent.lifespan_s, urgent.priority) == (5.0, 3)
    desk.host.unannounce("Alarm")
    desk.host.unannounce("unknown")
    assert desk.host.publish_new("Alarm", {}).lifespan_s is None
    assert desk.host.publish_new("x" * MAX_WORD, {}).type == "x" * MAX_WORD
    with pytest.raises(EventError, match=f"an event type has at most {MAX_WORD} characters"):
        desk.host.publish_new("x" * (MAX_WORD + 1), {})


@in_a_loop
def test_a_subscription_ends_and_one_that_is_refused_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.subscribe("s")
    desk.subscribe("t")
    desk.host.unsubscribe("t")
    desk.host.unsubscribe("unknown")
    assert (desk.host.subscriptions, list(desk.host._handlers)) == (1, ["s"])

    def refuses(*_: Any) -> Any:
        raise UsageError("no")

    monkeypatch.setattr(desk.host.served, "subscribe", refuses)
    with pytest.raises(UsageError, match="no"):
        desk.subscribe("u")
    assert (desk.host.subscriptions, list(desk.host._handlers)) == (1, ["s"])


@in_a_loop
def test_what_fails_because_of_peers_is_counted_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()

    def fails(*_: Any) -> Any:
        raise ValueError("because of a peer")

    monkeypatch.setattr(desk.host.served, "publish", fails)
    desk.host.publish_new("N", {})
    monkeypatch.setattr(desk.host.machine, "hear", fails)
    desk.hear(encode(Flood(Event("N", {}, id="e", source="p", time=1000.0), 1)))
    assert desk.host.drops == {DropReason.MACHINE_FAILURE: 2}


# Packets and records.


@in_a_loop
def test_bytes_that_are_no_packet_are_dropped_and_packets_are_counted() -> None:
    desk = Desk(bit_rate_bps=1e6)
    desk.subscribe()
    desk.hear(b"junk")
    assert (desk.host.drops, desk.host.counts["receive"]) == ({DropReason.MALFORMED: 1}, 0)
    flood = Flood(Event("N", {}, id="e", source="p", time=1000.0), 1)
    desk.hear(encode(flood))
    assert (desk.got, desk.host.counts["receive"]) == (["e"], 1)
    frame = Frame("me", 3, 1, 1000.0, "", None, None, "", [], [])
    desk.host.sent([flood, flood], [encode(flood)] * 2, "you", frame)
    assert desk.host.counts["send"] == 2
    assert desk.host.channel.busy_share(1001.0) > 0.0


class RefusesLies:
    """A verifier that trusts all events but those of type Lie."""

    def check_packet(self, packet: Flood, sender: str, now: float) -> None:
        if packet.event.type == "Lie":
            assert (sender, now) == ("you", 1000.0)
            raise Refused(DropReason.WRONG_SIGNATURE)


@in_a_loop
def test_of_the_packets_in_a_datagram_the_refused_ones_are_counted_by_their_reason_and_the_others_are_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    desk.subscribe()
    desk.subscribe("l", "Lie: true")
    desk.subscribe("h", "Heavy: true")
    monkeypatch.setattr(desk.host, "_verifier", RefusesLies())
    monkeypatch.setattr(desk.host.memory, "admits", lambda packet, size: packet.event.type != "Heavy" and size > 0)
    types = ("Lie", "N", "Heavy", "N", "Lie", "N")
    datas = [encode(Flood(Event(kind, {}, f"e{n}", "p", time=1000.0), 1)) for n, kind in enumerate(types)]
    datas.insert(1, b"junk")
    desk.host.heard(datas, Frame("you", 3, 1, 1000.0, "", None, None, "", [], datas), desk.at)
    assert (desk.got, desk.host.counts["receive"]) == (["e1", "e3", "e5"], 3)
    assert desk.host.drops == {DropReason.WRONG_SIGNATURE: 2, DropReason.MALFORMED: 1, DropReason.OUT_OF_MEMORY: 1}
    desk.host._flush_spool()
    records = [(one.detail, one.peer) for one in read_spool(tmp_path) if one.kind == Kind.DROP]
    reasons = (DropReason.WRONG_SIGNATURE, DropReason.MALFORMED, DropReason.OUT_OF_MEMORY, DropReason.WRONG_SIGNATURE)
    assert records == [(reason, "you") for reason in reasons]
    assert desk.host.memory.limit_bytes == 16_000_000, "events take a quarter of the memory"


@in_a_loop
def test_the_channel_counts_the_bytes_of_every_packet_that_was_heard_or_sent() -> None:
    """A megabit a second: a packet of n bytes keeps the channel busy for 8 n microseconds."""
    desk = Desk(bit_rate_bps=1e6)
    flood = encode(Flood(Event("N", {"text": "x" * 400}, id="e", source="p", time=1000.0), 1))
    counted: list[tuple[int, float]] = []
    desk.host.channel.count = lambda size, now: counted.append((size, now))  # type: ignore[method-assign]
    desk.hear(flood)
    frame = Frame("me", 3, 1, 1002.0, "", None, None, "", [], [])
    packet = Flood(Event("N", {}, id="f", source="me", time=1000.0), 1)
    desk.host.sent([packet, packet], [flood, b"12345"], "", frame)
    assert counted == [(len(flood), 1000.0), (len(flood), 1002.0), (5, 1002.0)]
    unknown = Desk()
    unknown.host.channel.count = desk.host.channel.count  # type: ignore[method-assign]
    unknown.hear(flood)
    unknown.host.sent([packet], [flood], "", frame)
    assert len(counted) == 3, "without a bit rate nothing is counted"


@in_a_loop
def test_records_say_what_was_sent_heard_dropped_and_noted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    flood = Flood(Event("N", {}, id="e", source="p", time=1000.0), 7)
    desk.hear(encode(flood))
    frame = Frame("me", 3, 1, 1000.0, "", None, None, "", [], [])
    desk.host.sent([flood], [encode(flood)], "you", frame)
    desk.host.unreachable(flood, "you")
    desk.host._count_drop(Drop(DropReason.HOP_LIMIT, "e"))
    desk.host._actions[Note](Note("topic", "detail"))
    desk.host._flush_spool()
    size = len(encode(flood))
    found = [
        (str(one.kind), one.event, one.peer, one.packet, one.bytes, one.hops, one.detail)
        for one in read_spool(tmp_path)
        if one.kind in (Kind.RECEIVE, Kind.SEND, Kind.DROP, Kind.NOTE)
    ]
    assert ("receive", "e", "you", "flood", size, 7, "") in found
    assert ("send", "e", "you", "flood", size, -1, "") in found
    assert ("drop", "e", "you", "flood", -1, -1, "unreachable") in found
    assert ("drop", "e", "", "", -1, -1, "hop-limit") in found
    assert ("note", "", "", "", -1, -1, "topic: detail") in found
    assert desk.host.drops == {DropReason.UNREACHABLE: 1, DropReason.HOP_LIMIT: 1}


@in_a_loop
def test_of_many_refused_datagrams_a_thousand_are_recorded_and_all_are_counted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for _ in range(1002):
        desk.host.dropped(DropReason.RATE_LIMIT, "you")
    desk.host.dropped(DropReason.RATE_LIMIT, event="e")
    desk.host._flush_spool()
    found = [one for one in read_spool(tmp_path) if one.kind == Kind.DROP]
    assert (len(found), found[-1].event, desk.host.drops[DropReason.RATE_LIMIT]) == (1001, "e", 1003)


@in_a_loop
def test_records_of_one_turn_are_written_together(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for word in "ab":
        desk.host.warn(word)
    assert [call[0] for call in desk.loop.soon].count(desk.host._flush_spool) == 1
    desk.host._flush_spool()
    desk.host.warn("c")
    assert [call[0] for call in desk.loop.soon].count(desk.host._flush_spool) == 2


# What is in the spool, and when.


@in_a_loop
def test_a_delivery_is_on_the_disk_before_the_application_sees_it(tmp_path: Path) -> None:
    """An application that is killed while it handles an event has it in its log."""
    desk = Desk(tmp_path)
    seen: list[list[tuple[str, str, str, int, float, float]]] = []

    def handler(_: Event) -> None:
        deliveries = [one for one in read_spool(tmp_path) if one.kind in (Kind.DELIVER, Kind.HISTORY)]
        seen.append([(str(one.kind), one.event, one.subscription, one.hops, one.x_m, one.y_m) for one in deliveries])

    desk.host.subscribe(Subscription("s", "me", Filter.parse("N: true")), handler)
    desk.deliver("a")
    assert seen == [[("deliver", "a", "s", 2, 3.0, 4.0)]]


@in_a_loop
def test_an_event_is_on_the_disk_before_the_network_has_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    written: list[list[tuple[str, Event, float]]] = []

    def broadcast(*_: Any) -> None:
        found = [one for one in read_spool(tmp_path) if one.kind == Kind.PUBLISH]
        written.append([(one.event, Event.from_json(one.detail), one.x_m) for one in found])

    desk.host.transport.broadcast = broadcast  # type: ignore[method-assign]
    event = desk.host.publish_new("N", {"v": 1})
    assert written == [[(event.id, event, 3.0)]]


@in_a_loop
def test_a_past_event_is_delivered_as_history_and_has_no_age() -> None:
    desk = Desk()
    desk.subscribe()
    ages: list[float] = []
    desk.host.on_deliver = ages.append
    desk.host._carry_out([DeliverPast(Event("N", {}, id="old", source="p", time=3.0), "s")])
    assert (desk.got, ages) == (["old"], [])
    assert (desk.host.counts[Kind.HISTORY], desk.host.counts[Kind.DELIVER]) == (1, 0)


@in_a_loop
def test_an_event_that_missed_its_deadline_says_by_how_much(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    event = Event("N", {}, id="e", source="p", time=990.0)
    desk.host._carry_out([Late(event, "s", 1.25)])
    desk.host._flush_spool()
    assert (event.late_s, desk.host.counts["late"]) == (1.25, 1)
    (record,) = [one for one in read_spool(tmp_path) if one.kind == Kind.LATE]
    assert (record.event, record.subscription, record.detail) == ("e", "s", "1.250000")


@in_a_loop
def test_a_crossing_is_recorded_and_reported_to_its_fence_while_that_lasts(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    reported: list[tuple[Crossed, float]] = []
    desk.host.fence(Fence("f", near_m=50.0), lambda crossed, at: reported.append((crossed, at)))
    near, area = Crossed("f", "near", "you"), Crossed("f", "enter", "you", "Siren")
    desk.host._carry_out([near, area])
    desk.host.unfence("f")
    desk.host.unfence("unknown")
    desk.host._carry_out([near])
    desk.host._flush_spool()
    assert reported == [(near, 1000.0), (area, 1000.0)]
    records = [one for one in read_spool(tmp_path) if one.kind == Kind.FENCE]
    assert [(one.subscription, one.peer, one.detail, one.x_m, one.y_m) for one in records] == [
        ("f", "you", "near", 3.0, 4.0), ("f", "you", "enter Siren", 3.0, 4.0), ("f", "you", "near", 3.0, 4.0),
    ]  # fmt: skip


@in_a_loop
def test_what_applications_ask_for_is_recorded(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.subscribe()
    desk.host.announce(Announcement(EventType("N", {"v": int})))
    desk.host.unannounce("N")
    desk.host.unannounce("N")
    desk.host.unsubscribe("s")
    desk.host.unsubscribe("s")
    desk.host._flush_spool()
    found = [(str(one.kind), one.subscription) for one in read_spool(tmp_path)]
    assert found == [("subscribe", "s"), ("announce", ""), ("unannounce", ""), ("unsubscribe", "s")]
    details = [one.detail for one in read_spool(tmp_path)]
    assert read_subscribe(details[0]).filter == str(Filter.parse("N: true"))
    assert read_announce(details[1]).event_type == EventType("N", {"v": int})
    assert details[2] == "N"


@in_a_loop
def test_a_host_that_stops_ends_its_timers_says_goodbye_and_records_that_it_left(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    did: list[str] = []
    for name in ("say_goodbye", "close"):
        setattr(desk.host.transport, name, lambda name=name: did.append(name))
    desk.host._start_timer(StartTimer("x", 1001.0))
    desk.host._tick()
    desk.host.stop()
    assert did == ["say_goodbye", "close"]
    assert [call[1] for call in desk.loop.cancelled] == [desk.host._tick, desk.host._fire]
    assert (desk.host._timers, desk.host.spool) == ({}, None)
    last = read_spool(tmp_path)[-1]
    assert (str(last.kind), last.detail, last.x_m, last.y_m) == ("leave", "stopped", 3.0, 4.0)
    desk.host.stop()
    assert did == ["say_goodbye", "close"], "it stops once"


@in_a_loop
def test_the_first_ten_failures_of_a_machine_are_logged_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()

    def fails(*_: Any) -> Any:
        raise ValueError("because of a peer")

    monkeypatch.setattr(desk.host.machine, "hear", fails)
    data = encode(Flood(Event("N", {}, id="e", source="p", time=1000.0), 1))
    with caplog.at_level("ERROR", logger="earshot.live"):
        for _ in range(12):
            desk.hear(data)
    assert desk.host.drops == {DropReason.MACHINE_FAILURE: 12}
    assert [record.getMessage() for record in caplog.records] == ["me: hearing a flood failed"] * 10


@in_a_loop
def test_a_peer_that_cannot_be_reached_is_reported_to_the_machine_while_the_host_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    reported: list[tuple[Any, str]] = []

    def unreachable(packet: Any, peer: str, _: float) -> Any:
        reported.append((packet, peer))
        return NOTHING

    monkeypatch.setattr(desk.host.served, "unreachable", unreachable)
    flood = Flood(Event("N", {}, id="e", source="p", time=1000.0), 1)
    desk.host.unreachable(flood, "you")
    desk.host._loop = None
    desk.host.unreachable(flood, "you")
    assert (reported, desk.host.drops) == ([(flood, "you")], {DropReason.UNREACHABLE: 1})


@in_a_loop
def test_what_the_disk_refused_is_counted_as_dropped(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.host.spool is not None
    desk.host._flush_spool()
    assert desk.host.drops == {}
    desk.host.spool.lost = 3
    desk.host._flush_spool()
    assert desk.host.drops == {DropReason.SPOOL_NOT_WRITTEN: 3}
