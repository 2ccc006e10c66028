"""The transport step by step, on a socket that only notes: queues, waits, refusals and what a host learns of them."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import tracemalloc
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import pytest

from earshot.errors import MalformedPacket
from earshot.events import Event
from earshot.geometry import Position
from earshot.live import datagrams, transport
from earshot.live.datagrams import HEADER_BYTES, MAX_PACKETS, Challenge, Echo, Fragment, Frame, Goodbye
from earshot.live.network import NetworkSettings
from earshot.live.newcomers import WAITING_BYTES
from earshot.live.peers import Peer, digest_of
from earshot.live.transport import EXPEDITED, Transport
from earshot.live.trust import Refused
from earshot.protocols.flooding import Flood
from earshot.records import DropReason
from earshot.records.details import JoinedNetwork
from earshot.wire import Packet, decode, encode

THERE = ("127.0.0.1", 9)
ELSEWHERE = ("127.0.0.1", 10)


class Socket:
    """Notes what is sent; `refuses` is raised instead."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Any]] = []
        self.expedited: list[bytes] = []
        self.refuses: OSError | None = None
        self.closed = False

    def fileno(self) -> int:
        return -1 if self.closed else 0

    def sendto(self, datagram: bytes, address: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.sent.append((datagram, address))

    def sendmsg(self, datagrams: Sequence[bytes], options: Any, flags: int, address: Any) -> None:
        assert options == [(socket.IPPROTO_IP, socket.IP_TOS, bytes([EXPEDITED]))]
        self.sendto(datagrams[0], address)
        self.expedited.append(datagrams[0])

    def close(self) -> None:
        self.closed = True


class Loop:
    """An event loop that runs nothing by itself."""

    def __init__(self) -> None:
        self.now = 100.0
        self.soon: list[tuple[Any, ...]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.watched: list[str] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, *call: Any) -> None:
        self.soon.append(call)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self.later.append((delay_s, call))
        return Timer(self.now + delay_s)

    def add_writer(self, *_: Any) -> None:
        self.watched.append("writer")

    def remove_writer(self, *_: Any) -> None:
        self.watched.append("no writer")

    def add_reader(self, *_: Any) -> None:
        self.watched.append("reader")

    def remove_reader(self, *_: Any) -> None:
        self.watched.append("no reader")


class Timer:
    def __init__(self, at: float) -> None:
        self.at, self.is_cancelled = at, False

    def when(self) -> float:
        return self.at

    def cancelled(self) -> bool:
        return self.is_cancelled

    def cancel(self) -> None:
        self.is_cancelled = True


class Host:
    """What the transport reports."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.lost: list[tuple[Packet, str]] = []
        self.drops: list[DropReason] = []
        self.at: Position | None = None
        self.counted: list[tuple[Any, ...]] = []

    def heard(self, datas: Sequence[bytes], frame: Frame, now: float) -> None:
        self.packets.extend(map(decode, datas))

    def sent(self, packets: Sequence[Packet], datas: Sequence[bytes], peer: str, frame: Frame) -> None:
        self.counted.append((list(packets), list(datas), peer, frame.sequence))

    def unreachable(self, packet: Packet, peer: str) -> None:
        self.lost.append((packet, peer))

    def dropped(self, reason: DropReason, peer: str = "", count: int = 1) -> None:
        self.drops += [reason] * count

    def header_position(self, now: float) -> Position | None:
        return self.at


class Desk:
    """A transport called me with one proven peer, you, and time that a test moves."""

    def __init__(self, **network: Any) -> None:
        self.host, self.socket, self.loop = Host(), Socket(), Loop()
        self.wall, self.ticks = 1000.0, 50.0
        self.transport = Transport("me", 7, "", NetworkSettings(**network), self.host, lambda: self.wall)
        made: Any = self.transport
        made._loop, made._own, made._ticks = self.loop, self.socket, lambda: self.ticks
        made._base, made._configured = ("239.0.0.1", 5), []
        made.largest_bytes, made._beside_packets = 1000 + 102, 102
        self.you = self.peer("you", THERE)
        self.number = 0

    def peer(self, name: str, address: tuple[str, int]) -> Peer:
        found = Peer(name, address, 3, heard_at=self.ticks, proven=True)
        self.transport.peers._proven[name] = self.transport.peers._by_address[address] = found
        return found

    def frames(self) -> list[Frame]:
        found = [datagrams.decode(datagram[HEADER_BYTES:]) for datagram, _ in self.socket.sent]
        return [one for one in found if isinstance(one, Frame)]

    def receive(self, *packets: Packet, address: tuple[str, int] = THERE, **given: Any) -> int:
        """A frame of you arrives."""
        self.number += 1
        fields = {"sequence": self.number, "group": None, "to": "", "acks": [], "plane": "", "position": None, **given}
        frame = Frame(
            fields.get("sender", "you"), 3, fields["sequence"], fields.get("time", self.wall), fields["plane"],
            fields["position"], fields["group"], fields["to"], fields["acks"], [encode(one) for one in packets],
        )  # fmt: skip
        return self.bytes(self.transport._seal.close(datagrams.encode(frame)), address)

    def bytes(self, datagram: bytes, address: tuple[str, int] = THERE) -> int:
        return self.transport._receive(memoryview(datagram), address, self.ticks)

    def refused(self, **given: Any) -> DropReason:
        with pytest.raises(Refused) as caught:
            self.receive(flood("x"), **given)
        return caught.value.reason

    def run_soon(self) -> None:
        calls, self.loop.soon = self.loop.soon, []
        for call, *arguments in calls:
            call(*arguments)


def in_a_loop(test: Callable[..., None]) -> Callable[..., None]:
    """A transport asks for the running loop when it is made."""

    @wraps(test)
    def wrapped(*args: Any, **given: Any) -> None:
        async def run() -> None:
            test(*args, **given)

        asyncio.run(run())

    return wrapped


def flood(id: str, size: int = 10, priority: int = 0) -> Flood:
    return Flood(Event("Siren", {"text": "x" * size}, id=id, source="a", time=1.0, priority=priority), 1)


# Sending.


@in_a_loop
def test_the_first_packet_of_a_turn_goes_at_once_and_the_others_share_a_datagram() -> None:
    desk = Desk()
    for name in "abc":
        desk.transport.send("you", flood(name))
    assert [len(frame.packets) for frame in desk.frames()] == [1]
    assert [call[0] for call in desk.loop.soon] == [desk.transport._end_turn]
    desk.run_soon()
    assert [(len(frame.packets), frame.to, frame.sequence) for frame in desk.frames()] == [(1, "you", 1), (2, "you", 2)]
    assert [call[0] for call in desk.loop.soon] == [desk.transport._end_turn], (
        "the next packets share one from the first"
    )
    desk.run_soon()
    assert desk.loop.soon == []
    assert desk.host.counted == [
        ([flood("a")], [encode(flood("a"))], "you", 1),
        ([flood("b"), flood("c")], [encode(flood("b")), encode(flood("c"))], "you", 2),
    ]


@in_a_loop
def test_packets_share_a_datagram_up_to_its_room_and_to_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    one = len(encode(flood("a"))) + 5
    for room, expected in ((3 * one, [3, 1]), (3 * one - 1, [2, 2])):
        desk = Desk()
        desk.transport.largest_bytes = 102 + room
        desk.transport._turn_open = True
        for name in "abcd":
            desk.transport.broadcast(flood(name), None)
        desk.transport._end_turn()
        assert [len(frame.packets) for frame in desk.frames()] == expected
    monkeypatch.setattr(transport, "MAX_PACKETS", 4)
    desk = Desk()
    desk.transport._turn_open = True
    for name in "abcd":
        desk.transport.broadcast(flood(name), None)
    desk.transport._end_turn()
    assert [len(frame.packets) for frame in desk.frames()] == [3, 1]
    assert MAX_PACKETS == 4096


@in_a_loop
def test_higher_priorities_of_one_turn_go_first_and_with_the_service_of_voice() -> None:
    desk = Desk()
    desk.transport._turn_open = True
    for name, priority in (("low", -1), ("plain", 0), ("high", 2)):
        desk.transport.broadcast(flood(name, priority=priority), None)
    desk.transport._end_turn()
    assert [decode(frame.packets[0]).event.id for frame in desk.frames()] == ["high", "plain", "low"]  # type: ignore[attr-defined]
    assert [datagram for datagram, _ in desk.socket.sent[:1]] == desk.socket.expedited


@in_a_loop
def test_a_packet_larger_than_the_room_goes_in_fragments_after_those_that_wait() -> None:
    desk = Desk()
    desk.transport._turn_open = True
    desk.transport.send("you", flood("small"))
    large = flood("large", 2500)
    data = encode(large)
    desk.transport.send("you", large)
    small, *pieces = desk.frames()
    assert len(small.packets) == 1
    assert [(one.fragment.number, one.fragment.index, one.fragment.count) for one in pieces if one.fragment] == [
        (2, 0, 3), (2, 1, 3), (2, 2, 3),
    ]  # fmt: skip
    assert b"".join(one.fragment.piece for one in pieces if one.fragment) == data
    assert desk.host.counted[1:] == [([large], [data], "you", 2)], "once, with its first fragment"


@in_a_loop
def test_a_packet_to_an_unknown_peer_or_beyond_the_limits_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.transport.send("nobody", flood("a"))
    desk.run_soon()
    assert desk.host.lost == [(flood("a"), "nobody")]
    monkeypatch.setattr(transport, "PENDING_LIMIT", 1)
    desk.transport.send("you", flood("b"))
    desk.transport.send("you", flood("c"))
    desk.run_soon()
    assert desk.host.lost[1:] == [(flood("c"), "you")]
    desk.transport._pending.clear()
    desk.transport._pending_bytes = desk.transport._pending_limit_bytes
    desk.transport.send("you", flood("d"))
    desk.run_soon()
    assert desk.host.lost[2:] == [(flood("d"), "you")]
    desk.transport._pending_bytes -= 1
    desk.transport.send("you", flood("e"))
    assert len(desk.transport._pending) == 1


@in_a_loop
def test_a_peer_that_goes_in_the_same_turn_is_unreachable_for_all_its_packets() -> None:
    desk = Desk()
    desk.transport._turn_open = True
    for name in "ab":
        desk.transport.send("you", flood(name))
    desk.you.heard_at = -1e9
    desk.transport._end_turn()
    desk.run_soon()
    assert desk.host.lost == [(flood("a"), "you"), (flood("b"), "you")]


@in_a_loop
def test_a_packet_is_sent_again_after_longer_and_longer_waits_and_then_given_up_once() -> None:
    desk = Desk(acknowledge_s=0.2, attempts=3)
    desk.transport.send("you", flood("large", 1500))
    sizes = [len(datagram) for datagram, _ in desk.socket.sent]
    assert (len(sizes), desk.transport._pending_bytes) == (2, sum(sizes))
    assert desk.loop.later == [(0.2, desk.transport._retransmit)], "one timer for both"
    for at, sent in ((0.1, 2), (0.2, 4), (0.5, 4), (0.6, 6), (1.1, 6)):
        desk.ticks = 50.0 + at + 1e-9
        desk.transport._retransmit()
        assert (len(desk.socket.sent), desk.host.lost) == (sent, [])
    desk.ticks = 50.0 + 1.2 + 1e-6
    desk.transport._retransmit()
    assert (len(desk.socket.sent), desk.host.lost) == (6, [(flood("large", 1500), "you")])
    assert (desk.transport._pending, desk.transport._pending_bytes) == ({}, 0)


@in_a_loop
def test_a_packet_to_a_peer_that_has_moved_is_given_up() -> None:
    desk = Desk()
    desk.transport.send("you", flood("a"))
    desk.you.address = ELSEWHERE
    desk.ticks += 10.0
    desk.you.heard_at = desk.ticks
    desk.transport._retransmit()
    assert desk.host.lost == [(flood("a"), "you")]
    assert len(desk.socket.sent) == 1


@in_a_loop
def test_broadcasts_go_to_configured_and_proven_peers_once_each() -> None:
    desk = Desk(peers=("127.0.0.1:9", "127.0.0.1:11"))
    desk.transport._configured = [THERE, ("127.0.0.1", 11)]
    desk.peer("other", ELSEWHERE)
    desk.transport.broadcast(flood("a"), 5)
    assert [address for _, address in desk.socket.sent] == [THERE, ("127.0.0.1", 11), ELSEWHERE]
    assert desk.frames()[0].group == 5


@in_a_loop
def test_what_the_socket_does_not_take_waits_and_the_highest_priority_goes_first() -> None:
    desk = Desk()
    desk.socket.refuses = BlockingIOError()
    for name, priority in ((b"a", 0), (b"b", 2), (b"c", 0), (b"d", 2)):
        desk.transport._transmit(name * 10, THERE, priority)
    assert desk.loop.watched == ["writer"]
    assert (desk.transport.backlog_bytes, desk.transport.congested, desk.socket.sent) == (40, True, [])
    desk.transport._send_backlog()
    assert desk.transport.backlog_bytes == 40, "it is still full"
    desk.socket.refuses = None
    desk.transport._send_backlog()
    assert [datagram[:1] for datagram, _ in desk.socket.sent] == [b"b", b"d", b"a", b"c"]
    assert (desk.transport.backlog_bytes, desk.transport.congested) == (0, False)
    assert desk.loop.watched == ["writer", "no writer"]


@in_a_loop
def test_a_full_backlog_drops_the_last_of_the_lowest_priority_or_the_new_one() -> None:
    desk = Desk()
    desk.transport._backlog.limit_bytes = 3 * (10 + WAITING_BYTES)
    desk.socket.refuses = BlockingIOError()
    for name, priority in ((b"a", 0), (b"b", 0), (b"c", 1)):
        desk.transport._transmit(name * 10, THERE, priority)
    assert desk.host.drops == []
    desk.transport._transmit(b"d" * 10, THERE, 0)
    desk.transport._transmit(b"e" * 10, THERE, 1)
    assert desk.host.drops == [DropReason.SEND_BUFFER_FULL] * 2
    desk.socket.refuses = None
    desk.transport._send_backlog()
    assert [datagram[:1] for datagram, _ in desk.socket.sent] == [b"c", b"e", b"a"]


@in_a_loop
def test_small_datagrams_that_wait_take_no_more_memory_than_the_backlog_may() -> None:
    """Each has an address of its own: of a datagram of 14 bytes, most of the memory is not its bytes."""
    desk = Desk()
    limit_bytes = desk.transport._backlog.limit_bytes = 1_000_000
    desk.socket.refuses = BlockingIOError()
    desk.transport._transmit(b"first", THERE)
    tracemalloc.start()
    try:
        for number in range(50_000):
            desk.transport._transmit(b"small %8d" % number, (f"239.0.{number // 256}.{number % 256}", 9000 + number))
            desk.host.drops.clear()
        held_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert limit_bytes / 2 < held_bytes <= limit_bytes


@in_a_loop
def test_a_datagram_that_cannot_be_sent_is_a_drop_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.socket.refuses = OSError(errno.ENETUNREACH, "Network is unreachable")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            desk.transport._transmit(b"a", THERE)
    assert [one.getMessage() for one in caplog.records] == ["me: cannot send to 127.0.0.1:9: Network is unreachable"]
    assert desk.host.drops == [DropReason.SEND_FAILED] * 2
    assert desk.transport._backlog.put(b"b", THERE, 0) == 0
    desk.transport._send_backlog()
    assert (desk.host.drops, desk.transport.backlog_bytes) == ([DropReason.SEND_FAILED] * 3, 0)


# Receiving.


@in_a_loop
def test_a_frame_for_this_host_is_heard_once_and_acknowledged() -> None:
    desk = Desk()
    assert desk.receive(flood("a"), flood("b"), to="me", sequence=41) == 2
    assert desk.host.packets == [flood("a"), flood("b")]
    assert desk.refused(to="me", sequence=41) == DropReason.DUPLICATE_DATAGRAM
    desk.run_soon()
    (bare,) = desk.frames()
    assert bare == Frame("me", 7, 1, 1000.0, "", None, None, "", [41, 41], [])
    assert desk.socket.sent[0][1] == THERE
    assert (desk.you.heard_at, desk.you.position) == (50.0, None)


@in_a_loop
def test_acknowledgements_fill_what_a_packet_leaves_of_a_datagram_and_the_rest_go_alone() -> None:
    desk = Desk()
    arrived = range(70_000, 70_600)  # 5 bytes each
    for sequence in arrived:
        desk.receive(to="me", sequence=sequence)
    answer = flood("answer", size=700)
    desk.transport.send("you", answer)
    desk.run_soon()
    with_packet, *alone = desk.frames()
    assert with_packet.packets == [encode(answer)]
    assert len(with_packet.acks) == (1000 - len("you") - len(encode(answer)) - 5) // 5
    assert [sequence for frame in (with_packet, *alone) for sequence in frame.acks] == list(arrived)
    assert max(len(datagram) for datagram, _ in desk.socket.sent) <= 1102
    assert len(alone) == 3


@in_a_loop
def test_at_most_512_acknowledgements_share_a_datagram() -> None:
    desk = Desk()
    desk.transport.largest_bytes = 65_507
    for sequence in range(1, 601):
        desk.receive(to="me", sequence=sequence)
    desk.run_soon()
    assert [len(frame.acks) for frame in desk.frames()] == [512, 88]


@pytest.mark.parametrize("size", [900, 40_000])
@in_a_loop
def test_the_longest_names_leave_a_datagram_within_its_limit(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(datagram_bytes=1472, peers=("127.0.0.1:9",))
    desk.transport.name, desk.transport._plane = "海" * 128, "é" * 128
    monkeypatch.setattr(transport.sockets, "open_own", lambda *_: Opened())
    desk.transport.open()
    desk.transport._own = desk.socket  # type: ignore[assignment]
    desk.peer("島" * 128, ELSEWHERE)
    packet = flood("x", size=size)
    desk.transport.send("島" * 128, packet)
    desk.transport.broadcast(packet, None)
    desk.run_soon()
    assert {address for _, address in desk.socket.sent} == {THERE, ELSEWHERE}
    assert max(len(datagram) for datagram, _ in desk.socket.sent) <= 1472


@in_a_loop
def test_an_acknowledgement_for_a_peer_that_has_gone_is_forgotten() -> None:
    desk = Desk()
    desk.receive(to="me")
    desk.you.heard_at = -1e9
    desk.run_soon()
    assert (desk.socket.sent, desk.transport._acks) == ([], {})


@in_a_loop
def test_an_acknowledgement_counts_only_from_the_peer_that_was_sent_to() -> None:
    desk = Desk()
    desk.transport.send("you", flood("a"))
    desk.peer("other", ELSEWHERE)
    desk.receive(sender="other", address=ELSEWHERE, acks=[1])
    assert list(desk.transport._pending) == [1]
    desk.receive(acks=[99, 1])
    assert (desk.transport._pending, desk.transport._pending_bytes) == ({}, 0)


@in_a_loop
def test_a_group_that_was_not_joined_is_not_heard() -> None:
    desk = Desk()
    assert desk.receive(flood("a"), group=5) == 0
    desk.transport.join(5)
    assert desk.receive(flood("b"), group=5) == 1
    desk.transport.leave(5)
    desk.receive(flood("c"), group=5)
    assert (desk.host.packets, desk.transport.joined) == ([flood("b")], set())


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"sender": "me"}, DropReason.OWN_NAME),
        ({"to": "another"}, DropReason.NOT_FOR_US),
        ({"plane": "52,13"}, DropReason.OTHER_PLANE),
        ({"position": Position(0.0, 100.1)}, DropReason.OUT_OF_RANGE),
    ],
)
@in_a_loop
def test_a_frame_that_is_not_for_this_host_is_refused_with_the_reason(given: Any, reason: DropReason) -> None:
    desk = Desk(emulate_range_m=100.0)
    desk.host.at = Position(0.0, 0.0)
    assert desk.refused(**given) == reason
    assert desk.receive(flood("a"), position=Position(0.0, 100.0), to="me") == 1
    desk.host.at = None
    assert desk.receive(flood("a"), position=Position(0.0, 100.1)) == 1, "this host does not know where it is"


@in_a_loop
def test_with_a_key_a_frame_of_another_time_is_stale() -> None:
    desk = Desk(keys=(bytes(32),), clock_skew_s=30.0)
    for ahead_s, stale in ((30.0, False), (-30.0, False), (30.1, True), (-30.1, True)):
        if stale:
            assert desk.refused(time=1000.0 + ahead_s) == DropReason.STALE_DATAGRAM
        else:
            assert desk.receive(flood("a"), time=1000.0 + ahead_s) == 1
    desk.you.clock_ahead_s = 500.0
    assert desk.receive(flood("a"), time=1500.0) == 1, "its clock is wrong, but does not change"
    desk.wall = 1001.0
    assert desk.refused(sender="new", address=ELSEWHERE, time=999.9) == DropReason.STALE_DATAGRAM
    assert desk.receive(flood("a"), sender="new", address=ELSEWHERE, time=1000.0) == 1


@in_a_loop
def test_too_many_datagrams_are_refused_unread() -> None:
    desk = Desk(rate_limit=2.0)
    desk.you.allowance.left, desk.you.allowance.at = 1.0, desk.ticks
    assert desk.receive(flood("a")) == 1
    assert desk.refused() == DropReason.RATE_LIMIT


@in_a_loop
def test_a_challenge_for_this_host_is_echoed_and_one_for_another_is_not() -> None:
    desk = Desk()
    mine, other = (Challenge(b"12345678", digest_of(name, 7)) for name in ("me", "another"))
    for challenge in (mine, other):
        assert desk.bytes(desk.transport._seal.close(datagrams.encode(challenge)), ELSEWHERE) == 0
    echo = desk.transport._seal.close(datagrams.encode(Echo(b"12345678", digest_of("me", 7))))
    assert desk.socket.sent == [(echo, ELSEWHERE)]


@in_a_loop
def test_a_goodbye_ends_a_peer() -> None:
    desk = Desk()
    desk.bytes(desk.transport._seal.close(datagrams.encode(Goodbye(digest_of("you", 3)))))
    assert desk.transport.peers.get("you", desk.ticks) is None


@in_a_loop
def test_a_newcomer_has_credit_for_what_it_sent_less_its_challenge() -> None:
    desk = Desk()
    desk.receive(flood("a", 300), sender="new", address=ELSEWHERE)
    ((challenge, _),) = desk.socket.sent
    newcomer = desk.transport.peers.get("new", desk.ticks)
    assert newcomer is not None
    assert 300 < newcomer.credit_bytes + len(challenge) < 450
    desk.receive(flood("a", 300))
    assert desk.you.credit_bytes == 0, "a proven peer needs none"


@in_a_loop
def test_the_known_host_of_a_contested_name_is_asked_until_the_contest_is_over() -> None:
    desk = Desk()
    desk.refused(address=ELSEWHERE)
    cookie = next(iter(desk.transport.peers._challenged))
    desk.bytes(desk.transport._seal.close(datagrams.encode(Echo(cookie, digest_of("you", 3)))), ELSEWHERE)
    assert desk.loop.later == [(0.1, desk.transport._settle)]
    desk.ticks += 0.6
    desk.transport._settle()
    proven = desk.transport.peers.get("you", desk.ticks)
    assert proven is not None
    assert proven.address == ELSEWHERE
    assert desk.loop.later[1:] == [(0.02, desk.transport._greet)]


@in_a_loop
def test_a_newcomer_that_proves_itself_gets_what_waited_for_it_and_a_greeting() -> None:
    desk = Desk()
    desk.receive(sender="new", address=ELSEWHERE)
    challenge = datagrams.decode(desk.socket.sent[-1][0][HEADER_BYTES:])
    assert isinstance(challenge, Challenge)
    desk.transport.send("new", flood("a", 500))
    (waiting,) = desk.transport._pending.values()
    assert (waiting.held, len(desk.socket.sent)) == (True, 1), "it sent less than it would get"
    desk.bytes(desk.transport._seal.close(datagrams.encode(Echo(challenge.cookie, challenge.digest))), ELSEWHERE)
    assert (waiting.held, desk.socket.sent[1]) == (False, (waiting.datagram, ELSEWHERE))
    assert (transport.GREET_S, desk.transport._greet) in desk.loop.later


@pytest.mark.parametrize(
    ("ahead_s", "words"),
    [(2.0, ""), (2.6, "3 s ahead of"), (-90.0, "90 s behind"), (1e300, "1,000,000,000,000 s ahead of")],
)
@in_a_loop
def test_a_peer_whose_clock_is_wrong_is_named(ahead_s: float, words: str, caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.you.clock_ahead_s = ahead_s
    with caplog.at_level(logging.WARNING):
        desk.transport._welcome(desk.you)
    found = [one.getMessage() for one in caplog.records]
    assert len(found) == bool(words)
    assert not words or f"the clock of 'you' is {words} this node's" in found[0]


class Filled(Socket):
    """A socket that holds these datagrams."""

    def __init__(self, *held: tuple[bytes, tuple[str, int]] | OSError) -> None:
        super().__init__()
        self.held = list(held)

    def recvfrom_into(self, buffer: bytearray) -> tuple[int, Any]:
        if not self.held:
            raise BlockingIOError
        one = self.held.pop(0)
        if isinstance(one, OSError):
            raise one
        buffer[: len(one[0])] = one[0]
        return len(one[0]), one[1]


@in_a_loop
def test_a_socket_is_read_until_it_is_empty_and_bad_datagrams_are_counted() -> None:
    desk = Desk()
    desk.transport.address = ELSEWHERE
    hello = datagrams.PLAIN + datagrams.encode(Frame("you", 3, 1, 1000.0, "", None, None, "", [], [encode(flood("a"))]))
    filled: Any = Filled((hello, THERE), (b"ES\x01\x00junk", THERE), (b"other", THERE), (hello, ELSEWHERE))
    desk.transport._drain(filled)
    assert (filled.held, desk.host.packets) == ([], [flood("a")])
    assert desk.host.drops == [DropReason.MALFORMED, DropReason.NOT_A_DATAGRAM]
    failing: Any = Filled(OSError(errno.EIO, "Input/output error"), (hello, THERE))
    desk.transport._drain(failing)
    assert (len(failing.held), desk.host.drops[2:]) == (1, [DropReason.RECEIVE_FAILED])


@in_a_loop
def test_one_turn_reads_so_many_packets_and_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    junk = (b"other", THERE)
    desk = Desk()
    monkeypatch.setattr(transport, "PACKETS_A_TURN", 3)
    filled: Any = Filled(*[junk] * 5)
    desk.transport._drain(filled)
    assert len(filled.held) == 2
    two = datagrams.PLAIN + datagrams.encode(
        Frame("you", 3, 1, 1000.0, "", None, None, "", [], [encode(flood(name)) for name in "ab"])
    )
    full: Any = Filled((two, THERE), junk)
    desk.transport._drain(full)
    assert len(full.held) == 1, "packets count too"
    slow, ticks = Desk(), iter([50.0, 50.0019, 50.0020])
    slow.transport._ticks = lambda: next(ticks)
    waiting: Any = Filled(*[junk] * 5)
    monkeypatch.setattr(transport, "PACKETS_A_TURN", 1024)
    slow.transport._receive = lambda *_: 0  # type: ignore[method-assign]
    slow.transport._drain(waiting)
    assert len(waiting.held) == 3


# Newcomers wait for their turn.


class Gate:
    """Notes what it lets through; says that the kernel has discarded seven datagrams."""

    is_usable = True

    def __init__(self) -> None:
        self.is_shut = False
        self.notes: list[Any] = []

    def shut(self, receivers: Sequence[Any], admitted: Sequence[Any]) -> None:
        self.is_shut = True
        self.notes.append(list(admitted))

    def open(self) -> int:
        was_shut, self.is_shut = self.is_shut, False
        self.notes.append("open")
        return 7 if was_shut else 0


class Crowd(Desk):
    """A desk with a gate that notes, and newcomers that each send one packet."""

    def __init__(self, **network: Any) -> None:
        super().__init__(**network)
        made: Any = self.transport
        self.gate = made._gate = Gate()
        made._processor_time = lambda: 0.0

    def newcomer(self, number: int) -> tuple[bytes, tuple[str, int]]:
        frame = Frame(f"new{number}", 3, 1, self.wall, "", None, None, "", [], [encode(flood(f"new{number}"))])
        return datagrams.PLAIN + datagrams.encode(frame), ("127.0.0.2", 1000 + number)

    def drain(self, *held: tuple[bytes, tuple[str, int]]) -> None:
        filled: Any = Filled(*held)
        self.transport._drain(filled)
        assert filled.held == []

    def heard(self) -> list[str]:
        return [packet.event.id for packet in self.host.packets]  # type: ignore[attr-defined]


@in_a_loop
def test_what_a_proven_peer_sent_is_received_before_what_newcomers_sent_earlier() -> None:
    desk = Crowd()
    known = Frame("you", 3, 1, desk.wall, "", None, None, "", [], [encode(flood("known"))])
    desk.drain(desk.newcomer(1), desk.newcomer(2), (datagrams.PLAIN + datagrams.encode(known), THERE))
    assert desk.heard() == ["known"]
    desk.run_soon()
    assert desk.heard() == ["known", "new1", "new2"]
    assert desk.gate.notes == []


@in_a_loop
def test_newcomers_have_short_turns() -> None:
    desk = Crowd()
    desk.drain(*(desk.newcomer(number) for number in range(5)))
    desk.transport._receive_waiting = later(desk, 0.0003, desk.transport._receive_waiting)  # type: ignore[method-assign]
    heard = []
    for _ in range(4):
        desk.run_soon()
        heard.append(len(desk.heard()))
    assert heard == [2, 4, 5, 5]
    assert desk.loop.later == []


def later(desk: Desk, seconds: float, call: Callable[..., None]) -> Callable[..., None]:
    """Calls it, which takes this long."""

    def calling(*arguments: object) -> None:
        call(*arguments)
        desk.ticks += seconds

    return calling


@in_a_loop
def test_newcomers_that_have_used_up_their_allowance_wait_for_the_next_one() -> None:
    desk = Crowd(rate_limit=100.0)
    desk.drain(*(desk.newcomer(number) for number in range(4)))
    desk.transport._limits.of(None).left = 2.0
    desk.transport._limits.of(None).at = desk.ticks
    desk.run_soon()
    assert desk.heard() == ["new0", "new1"]
    ((wait_s, turn),) = desk.loop.later
    assert wait_s == pytest.approx(0.01)
    desk.drain(desk.newcomer(4))
    assert (desk.loop.soon, len(desk.loop.later)) == ([], 1), "the next turn is planned already"
    desk.ticks += 0.0101
    turn()
    assert desk.heard() == ["new0", "new1", "new2"]
    assert desk.host.drops == []


@in_a_loop
def test_what_newcomers_send_beyond_their_allowance_the_kernel_refuses_until_half_is_worked_off() -> None:
    desk = Crowd(rate_limit=100.0)
    fits = int(desk.transport._limits.newcomers_burst)
    spent = desk.transport._limits.of(None)
    spent.left, spent.at = 0.0, desk.ticks
    desk.drain(*(desk.newcomer(number) for number in range(fits + 3)))
    assert desk.host.drops == [DropReason.RATE_LIMIT] * 3
    assert desk.gate.notes == [[THERE]], "shut once, for all but the proven peer"
    assert len(desk.transport._newcomers) == fits
    while desk.gate.is_shut:
        assert len(desk.transport._newcomers) > fits // 2
        desk.ticks += 0.0101
        desk.transport._newcomers_turn()
    assert (len(desk.transport._newcomers), desk.heard()) == (fits // 2, [f"new{n}" for n in range(fits - fits // 2)])
    assert desk.gate.notes == [[THERE], "open"]
    assert desk.host.drops == [DropReason.RATE_LIMIT] * (3 + 7)


@in_a_loop
def test_a_peer_that_proves_itself_passes_the_shut_gate_and_own_broadcasts_do_not_count_as_refused() -> None:
    desk = Crowd()
    desk.transport._shut_gate()
    desk.transport._welcome(desk.peer("her", ELSEWHERE))
    assert desk.gate.notes == [[THERE], [THERE, ELSEWHERE]]
    desk.transport._multicast = Any
    for destination in (None, 5):
        desk.transport.joined.add(5)
        desk.transport._send_together(destination, [flood("a")], [b"a"], 0)
    desk.transport._send_together(6, [flood("a")], [b"a"], 0)
    desk.transport._open_gate()
    assert desk.host.drops == [DropReason.RATE_LIMIT] * (7 - 2)


@in_a_loop
def test_with_allowance_left_nothing_is_refused_however_much_comes() -> None:
    desk = Crowd(rate_limit=1e6, memory_bytes=16_000_000)
    held = [desk.newcomer(number) for number in range(40)]
    large = [(datagram + bytes(20_000), address) for datagram, address in held]  # malformed
    desk.drain(*large)
    desk.run_soon()
    assert desk.host.drops == [DropReason.MALFORMED] * 40
    assert desk.gate.notes == []


@in_a_loop
def test_bytes_that_are_no_frame_are_malformed() -> None:
    with pytest.raises(MalformedPacket):
        Desk().bytes(b"ES\x01\x00junk")


# Opening.


class Opened(Socket):
    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 4)


@pytest.mark.parametrize(
    ("datagram_bytes", "keys", "room"),
    [
        (1472, (), 1472 - 96 - len("me") - 4),
        (1472, (b"k" * 32,), 1472 - 96 - len("me") - 4 - 28),
        (32_768, (), 32_768 - 96 - len("me") - 4),
        (65_507, (), 32_768 - 96 - len("me") - 4),
    ],
)
def test_packets_share_32_kilobytes_less_what_the_frame_and_its_seal_take(
    datagram_bytes: int, keys: tuple[bytes, ...], room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[Any, ...]] = []

    def open_own(*given: Any) -> Opened:
        opened.append(given)
        return Opened()

    @in_a_loop
    def check() -> None:
        desk = Desk(datagram_bytes=datagram_bytes, peers=("127.0.0.1:9",))
        desk.transport.use_keys(keys)
        monkeypatch.setattr(transport.sockets, "open_own", open_own)
        desk.transport.open()
        assert (opened, desk.transport.address) == ([("0.0.0.0", 0, "")], ("127.0.0.1", 4))
        assert (desk.transport.largest_bytes, desk.transport._room(None)) == (datagram_bytes, room)
        assert desk.transport._room("é") == room - 2, "the peer's name is in the frame, too"
        assert desk.transport._room("é" * 40_000) == 64
        assert (desk.loop.watched, [delay_s for delay_s, _ in desk.loop.later]) == (["reader"], [1.0]), "it greets"

    check()


@in_a_loop
def test_a_host_warns_of_sixty_four_things_each_once(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    with caplog.at_level(logging.WARNING):
        for number in range(70):
            for _ in range(2):
                desk.transport._warn_once(f"thing {number}", f"look at {number}")
    assert [one.getMessage() for one in caplog.records] == [f"me: look at {number}" for number in range(64)]


# Hellos, timers, closing.


@in_a_loop
def test_a_hello_goes_to_all_and_comes_again_after_its_interval() -> None:
    desk = Desk(hello_interval_s=1.5, peers=("127.0.0.1:9",))
    desk.host.at = Position(3.0, 4.0)
    desk.transport._hello()
    assert desk.frames() == [Frame("me", 7, 1, 1000.0, "", Position(3.0, 4.0), None, "", [], [])]
    assert desk.loop.later == [(1.5, desk.transport._hello)]


@in_a_loop
def test_with_each_hello_packets_are_given_up_whose_fragments_have_not_come_for_five_seconds() -> None:
    desk = Desk()
    piece = Frame("you", 3, 1, desk.wall, "", None, None, "", [], [], Fragment(1, 0, 3, b"x" * 100))
    assert desk.bytes(desk.transport._seal.close(datagrams.encode(piece))) == 0
    held = []
    for seconds in (5.0, 0.1):
        desk.ticks += seconds
        desk.transport._hello()
        held.append(desk.transport.reassembly.held_bytes > 0)
    assert (held, desk.host.drops) == ([True, False], [DropReason.FRAGMENTS_MISSING])


@in_a_loop
def test_a_timer_that_runs_is_not_started_again() -> None:
    desk = Desk()

    def call() -> None: ...

    for now, started in ((100.0, 1), (100.4, 1), (100.5, 2)):
        desk.loop.now = now
        desk.transport._start_timer("x", 0.5, call)
        assert len(desk.loop.later) == started
    desk.transport._timers["x"].cancel()
    desk.transport._start_timer("x", 0.5, call)
    assert len(desk.loop.later) == 3


@in_a_loop
def test_closing_sends_what_waits_cancels_timers_and_leaves_nothing() -> None:
    desk = Desk()
    desk.transport.send("you", flood("a"))
    desk.transport.send("you", flood("b"))
    timers = list(desk.transport._timers.values())
    desk.transport.close()
    assert [len(frame.packets) for frame in desk.frames()] == [1, 1]
    assert desk.socket.closed
    assert [timer.cancelled() for timer in timers] == [True]
    assert (desk.loop.watched, desk.transport._pending) == (["no reader", "no writer"], {})
    desk.transport.close()
    desk.transport.say_goodbye()
    assert len(desk.socket.sent) == 2, "nothing is sent after the end"


@in_a_loop
def test_a_goodbye_follows_the_packets_that_wait() -> None:
    desk = Desk(peers=("127.0.0.1:9",))
    desk.transport.broadcast(flood("a"), None)
    desk.transport.broadcast(flood("b"), None)
    desk.transport.say_goodbye()
    *frames, last = (datagrams.decode(datagram[HEADER_BYTES:]) for datagram, _ in desk.socket.sent)
    assert ([type(one) for one in frames], last) == ([Frame, Frame], Goodbye(digest_of("me", 7)))


@in_a_loop
def test_records_name_the_network_that_was_joined() -> None:
    desk = Desk(peers=("127.0.0.1:9",))
    desk.transport._configured, desk.transport.address = [THERE], ("127.0.0.1", 4)
    assert desk.transport.joined_network() == JoinedNetwork(addresses=["127.0.0.1:4", "127.0.0.1:9"])
    desk.transport.address = ("0.0.0.0", 4)
    assert desk.transport.joined_network().addresses[0] == "127.0.0.1:4"
