"""What a live node charges, counts and says at its bounds, without a network."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from functools import reduce
from itertools import pairwise
from math import inf, nan
from operator import xor
from pathlib import Path
from sys import getsizeof
from types import SimpleNamespace
from typing import Any

import pytest
from test_host_steps import Desk as HostDesk
from test_transport_steps import ELSEWHERE, THERE, Desk, flood, in_a_loop

from earshot.documents import Element
from earshot.errors import LocationUnavailable, SettingsError, UsageError
from earshot.events import Event
from earshot.geometry import STILL, Position, Velocity
from earshot.live import datagrams
from earshot.live.bridge.mqtt import Connection, MqttBroker
from earshot.live.datagrams import Challenge, Fragment, Frame
from earshot.live.location import Fix, Fixed
from earshot.live.memory import ENTRY_BYTES, EVENT_BYTES, SAMPLE, EventBytes, weight
from earshot.live.network import NetworkSettings
from earshot.live.nmea import parse_line
from earshot.live.node import Node
from earshot.live.node_metrics import BUCKETS_S, NodeMetrics
from earshot.live.peers import PeerLimits, RateLimits
from earshot.live.spool import Spool
from earshot.live.trace_location import Track
from earshot.live.trust import Refused, Seal, Window
from earshot.protocols.common.byte_budget import ENTRY_BYTES as TABLE_ENTRY_BYTES
from earshot.records import DropReason
from earshot.wire import encode, tag_of


def test_latencies_from_a_millisecond_to_half_a_minute_are_distinguished() -> None:
    assert (BUCKETS_S[0], BUCKETS_S[-1]) == (0.001, 30.0)
    assert all(1.9 < later / earlier < 3.1 for earlier, later in pairwise(BUCKETS_S))
    host: Any = SimpleNamespace(
        counts=Counter(), drops={}, subscriptions=0, transport=SimpleNamespace(backlog_bytes=0), on_deliver=None
    )
    metrics = NodeMetrics(SimpleNamespace(host=host, name="a", peers=list))  # type: ignore[arg-type]
    for top in BUCKETS_S:
        host.on_deliver(top)
    found = [
        sample.value for family in metrics.collect() for sample in family.samples if sample.name.endswith("_bucket")
    ]
    assert found == [*range(1, len(BUCKETS_S) + 1), len(BUCKETS_S)], "a bucket holds its upper bound"


def test_a_node_holds_sixty_four_megabytes_of_its_peers_unless_it_is_set_otherwise() -> None:
    assert NetworkSettings().memory_bytes == 64_000_000


@pytest.mark.parametrize(
    ("given", "multicast"),
    [
        ({}, True),
        ({"interface": "lo"}, True),
        ({"listen": "5000"}, False),
        ({"listen": "5000", "interface": "lo"}, True),
        ({"peers": ("10.0.0.1:5",)}, False),
        ({"peers": ("10.0.0.1:5",), "interface": "lo"}, False),
    ],
)
def test_broadcasts_go_to_groups_unless_peers_are_named_or_a_port_alone(given: dict[str, Any], multicast: bool) -> None:
    assert NetworkSettings(**given).multicast is multicast


# What a frame costs its sender.


class Busy(Desk):
    """A desk on which hearing takes time."""

    def __init__(self, takes_s: float) -> None:
        super().__init__()
        self.heard, self.takes_s = self.host.heard, takes_s
        self.host.heard = self.slowly  # type: ignore[method-assign]
        self.worked = 0.0
        self.transport._processor_time = lambda: self.worked

    def slowly(self, *heard: Any) -> None:
        self.ticks += self.takes_s
        self.worked += self.takes_s
        self.heard(*heard)


@in_a_loop
def test_a_proven_peer_pays_for_the_time_of_its_packets_while_another_has_packets() -> None:
    desk = Busy(0.1)
    other = desk.peer("other", ELSEWHERE)
    desk.receive(flood("a"))
    assert desk.you.allowance.left == 4999.0, "nobody else has work"
    desk.receive(flood("b"), address=ELSEWHERE, sender="other")
    assert other.allowance.left == pytest.approx(4999.0 - (0.1 / 0.5 * 5000 - 1)), "half of the time is its share"
    desk.receive(address=ELSEWHERE, sender="other")
    assert other.allowance.left == pytest.approx(4000.0 + 0.1 * 5000 - 1), "a hello is one datagram"


@in_a_loop
def test_newcomers_pay_for_the_time_they_take_but_not_for_a_pause_of_the_machine() -> None:
    desk = Busy(0.002)
    strangers = desk.transport._limits.of(None)
    desk.receive(flood("a"), address=ELSEWHERE, sender="new")
    assert strangers.left == pytest.approx(500.0 - 1 - (0.002 / 0.25 * 5000 - 1))
    desk.transport._processor_time = lambda: 0.0
    before = strangers.left
    desk.receive(flood("b"), address=ELSEWHERE, sender="new")
    assert strangers.left == pytest.approx(before - 1 + 0.002 * 5000), "no processor time, no charge"


@in_a_loop
def test_a_refused_frame_of_a_newcomer_costs_it_too() -> None:
    desk = Busy(0.0)
    steps = iter((0.0, 0.003))
    desk.transport._processor_time = lambda: next(steps)
    desk.transport._ticks = lambda: desk.ticks + 0.003
    strangers = desk.transport._limits.of(None)
    with pytest.raises(Refused):
        desk.receive(flood("a"), address=ELSEWHERE, sender="new", plane="another plane")
    assert strangers.left == pytest.approx(500.0 - 1 - (0.003 / 0.25 * 5000 - 1))


@in_a_loop
def test_a_newcomer_gets_the_bytes_of_its_frames_as_credit_less_the_challenge() -> None:
    desk = Desk()
    desk.receive(flood("a"), address=ELSEWHERE, sender="new")
    ((challenge, address),) = desk.socket.sent
    newcomer = desk.transport.peers.get("new", desk.ticks)
    assert newcomer is not None
    assert (address, newcomer.proven) == (ELSEWHERE, False)
    before = newcomer.credit_bytes
    desk.receive(address=ELSEWHERE, sender="new")
    assert newcomer.credit_bytes > before > -len(challenge)
    assert desk.you.credit_bytes == 0


@pytest.mark.parametrize(
    ("per_second", "burst"), [(5000.0, 500.0), (200.0, 20.0), (100.0, 10.0), (50.0, 10.0), (10.0, 10.0), (4.0, 4.0)]
)
def test_newcomers_send_a_tenth_of_a_second_at_once_or_ten_but_no_more_than_a_second(
    per_second: float, burst: float
) -> None:
    limits = RateLimits(per_second)
    strangers = limits.of(None)
    assert sum(limits.allows(strangers, 1000.0) for _ in range(1000)) == burst
    soon = 1000.0 + 1.5 / per_second
    assert [limits.allows(strangers, soon) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("memory_bytes", "limits"),
    [
        (16_000_000, (666, 166, 333)),
        (64_000_000, (2666, 666, 1333)),
        (1_000_000_000, (4096, 1024, 4096)),
    ],
)
def test_peers_take_a_sixteenth_of_the_memory_newcomers_a_sixty_fourth_and_challenges_a_thirty_second(
    memory_bytes: int, limits: tuple[int, int, int]
) -> None:
    assert PeerLimits.within(memory_bytes) == PeerLimits(*limits)


# Memory.


def test_small_packets_are_counted_as_often_as_they_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = EventBytes(10_000_000)
    monkeypatch.setattr(memory._random, "random", lambda: 0.5)
    kept = [flood(f"id-{number}") for number in range(33)]
    held = []
    for packet in kept:
        assert memory.admits(packet, 200)
        held.append(memory.held_bytes)
    one = weight(kept[0].event) * SAMPLE
    assert held[:16] == [one] * 16, "the next fifteen are not counted"
    assert held[16] == one + weight(kept[16].event) * SAMPLE
    assert len(set(held)) == 3


@pytest.mark.parametrize(("size_bytes", "times"), [(1023, SAMPLE), (1024, 1)])
def test_a_packet_of_a_kilobyte_is_not_small(size_bytes: int, times: int) -> None:
    memory, packet = EventBytes(10_000_000), flood("a")
    assert memory.admits(packet, size_bytes)
    assert memory.held_bytes == max(weight(packet.event), size_bytes) * times


def test_a_packet_counts_at_least_what_it_carried() -> None:
    memory, packet = EventBytes(10_000_000), flood("a")
    assert memory.admits(packet, 500_000)
    assert memory.held_bytes == 500_000


def test_a_large_packet_may_fill_the_memory_to_its_last_byte() -> None:
    for limit_bytes, admitted in ((500_000, True), (499_999, False)):
        packet = flood("a")
        assert EventBytes(limit_bytes).admits(packet, 500_000) is admitted


def test_the_weight_of_a_value_is_its_entry_its_name_and_its_text() -> None:
    bare = Event("T", {}, id="i", source="s")
    texts = getsizeof("a") + getsizeof("xyz")
    assert weight(bare) - EVENT_BYTES == getsizeof("i") + getsizeof("T") + getsizeof("s")
    assert weight(Event("T", {"a": "xyz"}, id="i", source="s")) - weight(bare) == ENTRY_BYTES + texts


# The bridge's broker.


def test_a_broker_that_refuses_is_named_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    class Refusal:
        is_failure = True

        def __init__(self, words: str) -> None:
            self.words = words

        def __str__(self) -> str:
            return self.words

    async def run() -> None:
        broker = MqttBroker("office", 1883)
        connection = Connection(
            broker, "me", [], received=lambda _: None, acknowledged=lambda _: None, changed=lambda _: None
        )
        for words in ("Not authorized", "Not authorized", "Server busy"):
            connection._lost.clear()
            connection._on_connect(None, None, None, Refusal(words), None)
            assert (connection.connected, connection.connections) == (False, 0)
            assert connection._lost.is_set()
            assert connection.problem == f"refused: {words}"
        with pytest.raises(OSError, match="refused: Server busy"):
            await connection._answered()
        connection.problem = ""
        with pytest.raises(OSError, match="the broker closed the connection"):
            await connection._answered()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [
        "mqtt://office:1883: refused: Not authorized; trying again",
        "mqtt://office:1883: refused: Server busy; trying again",
    ]


@in_a_loop
def test_a_challenge_to_another_host_at_this_address_is_not_echoed() -> None:
    desk = Desk()
    desk.transport._receive_short(Challenge(b"c" * 8, b"none"), THERE, desk.ticks)
    assert desk.socket.sent == []
    desk.transport._receive_short(Challenge(b"c" * 8, desk.transport._digest), THERE, desk.ticks)
    assert len(desk.socket.sent) == 1


@in_a_loop
def test_a_frame_from_the_edge_of_the_emulated_range_is_heard() -> None:
    desk = Desk(emulate_range_m=100.0)
    desk.host.at = Position(0.0, 0.0)
    assert desk.receive(flood("a"), position=Position(100.0, 0.0)) == 1
    assert desk.refused(position=Position(100.1, 0.0)) == DropReason.OUT_OF_RANGE
    assert desk.receive(flood("b"), position=None) == 1


# The host.


@in_a_loop
def test_long_ids_of_delivered_events_are_forgotten_by_their_bytes() -> None:
    desk = HostDesk()
    desk.subscribe()
    desk.host._delivered_limit = 3 * (TABLE_ENTRY_BYTES + 100)
    ids = [letter * 100 for letter in "abcdef"]
    for id in (*ids, ids[0], ids[3]):
        desk.deliver(id)
    assert [id[0] for id in desk.got] == [*"abcdef", "a"], "three of a hundred letters are remembered, and three before"
    desk.got.clear()
    letters = [letter * 100 for letter in "äöü"]
    desk.host._delivered_limit = 2 * (TABLE_ENTRY_BYTES + 400)
    desk.host._delivered, desk.host._delivered_before, desk.host._delivered_bytes = {}, {}, 0
    for id in (*letters, letters[0]):
        desk.deliver(id)
    assert len(desk.got) == 3, "a letter outside of ASCII takes up to four bytes"
    assert desk.host._delivered_bytes == TABLE_ENTRY_BYTES + 400


@in_a_loop
def test_what_a_machine_could_not_hear_is_named_with_its_sender(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = HostDesk(tmp_path)

    def fails(*_: Any) -> Any:
        raise ValueError("because of a peer")

    desk.host.machine.hear = fails  # type: ignore[method-assign]
    noted: list[tuple[str, str]] = []
    desk.host.dropped = lambda reason, peer="", **_: noted.append((reason, peer))  # type: ignore[method-assign,misc]
    desk.hear(encode(flood("a")))
    assert noted == [(DropReason.MACHINE_FAILURE, "you")]
    assert [record.getMessage() for record in caplog.records] == [f"me: hearing a {tag_of(flood('a'))} failed"]


# Memory of trees, and what is released.


def test_the_weight_of_an_element_is_its_name_its_attributes_and_its_children() -> None:
    bare = Event("T", Element("T"), id="i", source="s")
    texts = sum(map(getsizeof, ("k", "value", "text")))
    more = Event("T", Element("T", {"k": "value"}, ("text",)), id="i", source="s")
    assert weight(more) - weight(bare) == texts + getsizeof({"k": "value"}) - getsizeof({})
    nested = Event("T", Element("T", {}, (Element("a"),)), id="i", source="s")
    assert weight(nested) - weight(bare) == 2 * ENTRY_BYTES + getsizeof("a") + getsizeof({}) + getsizeof(Element("a"))


def test_an_event_that_is_gone_no_longer_counts() -> None:
    memory, kept, gone = EventBytes(10_000_000), flood("a"), flood("b")
    assert memory.admits(kept, 2000)
    held = memory.held_bytes
    assert memory.admits(gone, 3000)
    assert memory.held_bytes == held + 3000
    del gone
    assert memory.held_bytes == held


def test_a_kilobyte_is_counted_also_while_small_packets_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, packets = EventBytes(10_000_000), [flood(f"id-{number}") for number in range(3)]
    monkeypatch.setattr(memory._random, "random", lambda: 0.5)
    held = []
    for packet, size_bytes in zip(packets, (200, 1024, 1023), strict=True):
        assert memory.admits(packet, size_bytes)
        held.append(memory.held_bytes)
    assert held[0] < held[1] == held[2]


# Settings and places.


def test_a_node_uses_the_settings_of_the_guide_unless_it_is_set_otherwise() -> None:
    network = NetworkSettings()
    assert (network.group, network.peers, network.listen, network.keys) == ("239.255.69.83:47474", (), "", ())
    assert (network.hello_interval_s, network.peer_expiry_s, network.acknowledge_s) == (1.0, 5.0, 0.2)
    assert (network.attempts, network.rate_limit, network.clock_skew_s) == (4, 5000.0, 30.0)


def test_a_peer_expires_later_than_it_says_hello() -> None:
    assert NetworkSettings(hello_interval_s=5.0, peer_expiry_s=5.1).peer_expiry_s == 5.1
    with pytest.raises(SettingsError, match="peer_expiry_s must exceed hello_interval_s"):
        NetworkSettings(hello_interval_s=5.0, peer_expiry_s=5.0)


@pytest.mark.parametrize("place", [(inf, 0.0), (0.0, inf), (nan, 0.0)])
def test_a_place_is_two_finite_numbers(place: tuple[float, float]) -> None:
    with pytest.raises(LocationUnavailable, match="two finite numbers of metres"):
        Fixed.on_plane(*place)


def test_a_receiver_may_give_a_speed_without_a_course_and_a_course_without_a_speed() -> None:
    def sentence(speed: str, course: str) -> str:
        fields = f"GPRMC,120000,A,5330.0000,N,00254.0000,W,{speed},{course},260126,,"
        return f"${fields}*{reduce(xor, fields.encode()):02X}"

    without_course, without_speed = parse_line(sentence("10.0", "")), parse_line(sentence("", "90.0"))
    assert without_course is not None
    assert without_speed is not None
    assert (without_course.velocity.y_m_s, without_course.velocity.x_m_s) == (pytest.approx(10 * 1852 / 3600), 0.0)
    assert (without_speed.velocity.x_m_s, without_speed.velocity.y_m_s) == (0.0, 0.0)


@pytest.mark.parametrize(("mtu", "largest"), [(1500, 1472), (9000, 8972), (65_536, 65_507)])
def test_the_largest_datagram_is_what_an_interface_carries_without_the_headers(
    mtu: int, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @in_a_loop
    def check() -> None:
        monkeypatch.setattr("earshot.live.sockets.mtu_of", lambda _interface: mtu)
        assert Desk(interface="eth7").transport._largest_unfragmented() == largest

    check()


@in_a_loop
def test_without_an_interface_datagrams_are_large_on_a_loopback_and_fit_ethernet_elsewhere() -> None:
    desk = Desk()
    for address, peers, largest in (
        ("127.0.0.1", [], 65_507),
        ("10.0.0.1", [], 1472),
        ("0.0.0.0", [("127.0.0.1", 5), ("127.0.0.2", 5)], 65_507),
        ("0.0.0.0", [("127.0.0.1", 5), ("10.0.0.2", 5)], 1472),
        ("0.0.0.0", [], 1472),
    ):
        desk.transport.address, desk.transport._configured = (address, 9), peers
        assert desk.transport._largest_unfragmented() == largest, (address, peers)


@in_a_loop
def test_the_fragments_of_a_packet_are_heard_as_one() -> None:
    desk = Desk()
    packet = flood("large", 300)
    data = encode(packet)
    for index, piece in enumerate((data[:100], data[100:200], data[200:])):
        frame = Frame("you", 3, index + 1, desk.wall, "", None, None, "", [], [], Fragment(1, index, 3, piece))
        assert desk.bytes(desk.transport._seal.close(datagrams.encode(frame))) == 0
    assert desk.host.packets == [packet]


@in_a_loop
def test_a_peer_far_behind_its_window_is_challenged_with_the_clock_of_its_frame() -> None:
    desk = Desk()
    desk.receive(flood("a"), sequence=5000)
    assert desk.refused(sequence=5000 - 1024, time=desk.wall + 3.0) == DropReason.DUPLICATE_DATAGRAM
    assert (desk.you.suspects_window, desk.you.claimed_ahead_s) == (True, 3.0)
    assert len(desk.socket.sent) == 1


def test_a_window_remembers_the_highest_number_and_the_thousand_before_it() -> None:
    window = Window()
    assert window.fresh(5000)
    assert [window.is_behind(number) for number in (5000 - 1023, 5000 - 1024)] == [False, True]
    assert [window.fresh(number) for number in (5000 - 1023, 5000 - 1023, 5000 - 1024, 5000)] == [
        True,
        False,
        False,
        False,
    ]
    assert window.fresh(6023), "1023 ahead"
    assert [window.fresh(5000), window.fresh(5001)] == [False, True]
    assert window.fresh(6023 + 1024)
    assert window.fresh(6024), "nothing is remembered of what lies as far back"


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_network_key_has_thirty_two_bytes(length: int) -> None:
    with pytest.raises(UsageError, match=f"a network key has 32 bytes, got {length}"):
        Seal([bytes(length)])


def test_a_refusal_says_its_reason() -> None:
    assert str(Refused(DropReason.WRONG_KEY)) == "wrong-key"


def test_a_spool_that_cannot_be_closed_says_so(tmp_path: Path) -> None:
    reported: list[str] = []
    spool = Spool(tmp_path / "spool", "a", 1, trouble=reported.append)
    assert spool._file is not None
    os.close(spool._file)
    spool.close()
    assert reported == [f"cannot close the spool {tmp_path / 'spool'}: Bad file descriptor"]


# Places that are played back.


def test_a_track_stands_at_its_first_place_before_it_begins_and_at_its_last_one_from_its_end_on() -> None:
    track = Track([(5.0, 10.0, 0.0), (7.0, 30.0, 0.0), (5.0, 20.0, 0.0)], None, started_at=100.0)
    assert track.fix(99.0) == Fix(Position(20.0, 0.0), STILL, 99.0)
    assert track.fix(100.0) == Fix(Position(20.0, 0.0), Velocity(5.0, 0.0), 100.0), "of two rows the later one counts"
    assert track.fix(101.0) == Fix(Position(25.0, 0.0), Velocity(5.0, 0.0), 101.0)
    assert track.fix(102.0) == track.fix(109.0) == Fix(Position(30.0, 0.0), STILL, 102.0), "it grows older"


@pytest.mark.parametrize(("place", "knows"), [(None, False), ((1.0, 2.0), True)])
def test_a_node_without_a_place_tells_a_protocol_that_uses_places(
    place: tuple[float, float] | None, knows: bool
) -> None:
    node = Node("me", protocol="hearsay", location=None if place is None else Fixed.on_plane(*place))
    assert node._make_host.args[2].knows_place is knows
