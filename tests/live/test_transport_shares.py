"""What a transport may hold and how large its datagrams are, which packets wait for a proof, and what work costs."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest
from test_transport_steps import ELSEWHERE, THERE, Desk, Opened, flood, in_a_loop

from earshot.events import Event
from earshot.geometry import Position
from earshot.live import datagrams, transport
from earshot.live.datagrams import HEADER_BYTES, Frame
from earshot.live.peers import Peer
from earshot.live.trust import Window
from earshot.protocols.flooding import Flood
from earshot.quality import MOST_PRIORITY
from earshot.records import DropReason


@pytest.mark.parametrize(("megabytes", "finished"), [(64, 1000), (640, 4096)])
def test_each_part_of_a_transport_has_its_share_of_the_memory(megabytes: int, finished: int) -> None:
    @in_a_loop
    def check() -> None:
        of = Desk(memory_bytes=megabytes * 1_000_000).transport
        shares = {
            "fragments": of.reassembly.total_bytes,
            "unacknowledged": of._pending_limit_bytes,
            "backlog": of._backlog.limit_bytes,
            "newcomers": of._newcomers._most_bytes,
            "unproven": of._unproven._most_bytes,
        }
        of_64_mb = {
            "fragments": 7_000_000, "unacknowledged": 8_000_000, "backlog": 4_000_000, "newcomers": 500_000,
            "unproven": 500_000,
        }  # fmt: skip
        assert shares == {name: share * megabytes // 64 for name, share in of_64_mb.items()}
        assert of.reassembly.finished_limit == finished

    check()


@pytest.mark.parametrize(
    ("interface", "configured", "host", "largest"),
    [
        ("wlan0", [], "10.0.0.1", 1280 - 28),
        ("lo", [], "127.0.0.1", 65_507),
        ("", [], "10.0.0.1", 1500 - 28),
        ("", [], "127.0.0.1", 65_507),
        ("", ["127.0.0.1", "127.0.0.2"], "0.0.0.0", 65_507),
        ("", ["127.0.0.1", "10.0.0.2"], "0.0.0.0", 1500 - 28),
        ("", ["10.0.0.2"], "0.0.0.0", 1500 - 28),
    ],
)
def test_a_datagram_is_as_large_as_its_way_carries_unfragmented(
    interface: str, configured: list[str], host: str, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport.sockets, "mtu_of", {"wlan0": 1280, "lo": 65_536}.__getitem__)

    @in_a_loop
    def check() -> None:
        of = Desk(interface=interface).transport
        of._configured, of.address = [(one, 5) for one in configured], (host, 5)
        assert of._largest_unfragmented() == largest

    check()


@pytest.mark.parametrize(
    ("network", "asked"),
    [
        ({"listen": "127.0.0.1:5"}, ("127.0.0.1", 5, "")),
        ({"listen": "5"}, ("0.0.0.0", 5, "")),
        ({"peers": ("127.0.0.1:9",), "interface": "lo"}, ("127.0.0.7", 0, "lo")),
        ({"peers": ("127.0.0.1:9",)}, ("0.0.0.0", 0, "")),
    ],
)
def test_a_host_listens_where_it_is_asked_to_or_at_its_interface(
    network: dict[str, Any], asked: tuple[str, int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(transport.sockets, "open_own", lambda *given: opened.append(given) or Opened())
    monkeypatch.setattr(transport.sockets, "address_of", {"lo": "127.0.0.7"}.__getitem__)

    @in_a_loop
    def check() -> None:
        desk = Desk(datagram_bytes=1000, **network)
        desk.transport.open()
        assert (opened, desk.transport._multicast, desk.transport.address) == ([asked], None, ("127.0.0.1", 4))

    check()


@in_a_loop
def test_short_and_long_acknowledgements_together_stay_within_a_datagram() -> None:
    desk = Desk()
    desk.transport.largest_bytes = desk.transport._beside_packets + len("you") + 90
    waiting = [*range(1, 21), *range(2**40, 2**40 + 20)]  # of 1 byte each, and of 9
    desk.transport._acks["you"] = list(waiting)
    desk.transport._acknowledge("you")
    assert [sequence for frame in desk.frames() for sequence in frame.acks] == waiting
    assert [len(frame.acks) for frame in desk.frames()] == [10] * 4
    assert max(len(datagram) for datagram, _ in desk.socket.sent) <= desk.transport.largest_bytes


@in_a_loop
def test_a_hello_and_a_frame_without_priority_go_with_the_usual_service() -> None:
    desk = Desk(peers=("127.0.0.1:9",))
    desk.transport._configured = [THERE]
    desk.transport._greet()
    desk.transport.broadcast(flood("a"), None)
    desk.transport.broadcast(flood("b", size=2500), None)
    assert (len(desk.socket.sent), desk.socket.expedited) == (5, [])
    desk.transport.broadcast(flood("c", size=2500, priority=1), None)
    assert desk.socket.expedited == [datagram for datagram, _ in desk.socket.sent[5:]], "each of its three fragments"


@in_a_loop
def test_priorities_beyond_the_most_count_as_the_most() -> None:
    desk = Desk()
    desk.transport._turn_open = True
    for priority in (10**6, -(10**6), 1, 0):
        desk.transport.broadcast(Flood(Event("N", {}, id="x", source="a", time=1.0, priority=priority), 1), None)
    assert sorted(priority for _, priority in desk.transport._batches) == [-MOST_PRIORITY, 0, 1, MOST_PRIORITY]


@in_a_loop
def test_only_what_waits_for_the_peer_that_was_proven_is_sent_at_its_proof() -> None:
    desk = Desk()
    other = Peer("you", ELSEWHERE, 4, heard_at=desk.ticks)
    desk.transport.peers._newcomers["new"] = Peer("new", ELSEWHERE, 1, heard_at=desk.ticks)
    desk.transport.send("you", flood("sent"))
    desk.transport._end_turn()
    desk.transport.send("new", flood("held"))
    sent, held = desk.transport._pending.values()
    assert (sent.held, held.held, len(desk.socket.sent)) == (False, True, 1)
    for proven in (desk.you, other, Peer("new", THERE, 1)):
        desk.transport._welcome(proven)
        assert (held.held, len(desk.socket.sent)) == (True, 1), "it is for another name or another address"
    for _ in range(2):
        desk.transport._welcome(Peer("new", ELSEWHERE, 1))
        assert (held.held, desk.socket.sent[1:]) == (False, [(held.datagram, ELSEWHERE)]), "once"


@in_a_loop
def test_a_newcomer_pays_for_processor_time_fourfold_but_no_more_than_the_time_that_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for passed_s, worked_s, charged_s in ((0.5, 0.001, 0.004), (0.003, 0.001, 0.003), (0.5, 0.0, 0.0)):
        desk = Desk()
        charged: list[float] = []
        monkeypatch.setattr(desk.transport._limits, "charge_newcomers", charged.append)
        times = iter((70.0, 70.0 + worked_s))
        desk.transport._processor_time = times.__next__
        desk.transport._ticks = lambda passed=passed_s: 50.0 + passed  # type: ignore[misc]
        desk.receive(address=ELSEWHERE, sender="new")
        assert charged == [pytest.approx(charged_s, abs=1e-9)]


@in_a_loop
def test_a_newcomers_own_packets_are_charged_nothing_more_and_an_empty_frame_is_no_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    charged: list[Any] = []
    desk.transport._ticks = lambda: 50.25
    monkeypatch.setattr(desk.transport._limits, "charge", lambda *given: charged.append(given))
    desk.receive()
    desk.receive(flood("a"))
    desk.receive(flood("b"), address=ELSEWHERE, sender="new")
    assert charged == [(desk.you.allowance, 0.25, 50.0), (desk.transport._limits._strangers, 0.0, 50.0)]


@pytest.mark.parametrize(
    ("emulated_m", "here", "there", "refused"),
    [
        (5.0, Position(0.0, 0.0), Position(3.0, 4.0), False),
        (5.0, Position(0.0, 0.0), Position(3.0, 4.1), True),
        (5.0, None, Position(3.0, 4.1), False),
        (5.0, Position(0.0, 0.0), None, False),
        (None, Position(0.0, 0.0), Position(3e9, 4.1), False),
    ],
)
def test_a_frame_is_too_far_away_only_where_both_places_and_the_range_are_known(
    emulated_m: float | None, here: Position | None, there: Position | None, refused: bool
) -> None:
    @in_a_loop
    def check() -> None:
        desk = Desk(emulate_range_m=emulated_m)
        desk.host.at = here
        if refused:
            assert desk.refused(position=there) == DropReason.OUT_OF_RANGE
        else:
            assert desk.receive(flood("a"), position=there) == 1

    check()


@in_a_loop
def test_a_warning_of_another_plane_names_both_planes_once(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    with caplog.at_level(logging.WARNING):
        for plane in ("53.0,-3.0", "53.0,-3.0", "0.0,0.0"):
            assert desk.refused(plane=plane) == DropReason.OTHER_PLANE
        desk.transport._plane = "1.0,1.0"
        assert desk.refused(plane="") == DropReason.OTHER_PLANE
        assert desk.refused(sender="me") == DropReason.OWN_NAME
    ends = "; give all nodes the same origin"
    assert [one.getMessage() for one in caplog.records] == [
        f"me: 'you' measures positions from 53.0,-3.0, this node from a plane without an origin{ends}",
        f"me: 'you' measures positions from 0.0,0.0, this node from a plane without an origin{ends}",
        f"me: 'you' measures positions from a plane without an origin, this node from 1.0,1.0{ends}",
        "me: another node on this network is also called 'me'; names must differ",
    ]


@in_a_loop
def test_a_backlog_goes_on_after_a_datagram_that_cannot_be_sent_and_then_leaves_the_socket_alone() -> None:
    desk = Desk(peers=("127.0.0.1:9",))
    desk.transport._configured = [THERE]
    desk.socket.refuses = BlockingIOError()
    for name in "ab":
        desk.transport._post(None, desk.transport._frame(None, [name.encode()]), [])
    assert (desk.loop.watched, desk.transport.congested, len(desk.transport._backlog)) == (["writer"], True, 2)
    waiting = desk.transport.backlog_bytes
    desk.transport._send_backlog()
    assert (desk.transport.backlog_bytes, desk.host.drops) == (waiting, []), "the socket takes nothing yet"
    desk.socket.refuses = OSError(errno.ENETUNREACH, "no network")
    desk.transport._send_backlog()
    assert (desk.transport.backlog_bytes, desk.transport.congested) == (0, False)
    assert (desk.host.drops, desk.loop.watched) == ([DropReason.SEND_FAILED] * 2, ["writer", "no writer"])


@in_a_loop
def test_fragments_of_one_packet_have_the_number_of_the_first_and_are_reported_once() -> None:
    desk = Desk(peers=("127.0.0.1:9",))
    desk.transport._configured = [THERE]
    large = flood("large", size=2500)
    desk.transport._greet()
    desk.transport.broadcast(large, None)
    frames = [datagrams.decode(datagram[HEADER_BYTES:]) for datagram, _ in desk.socket.sent[1:]]
    pieces = [one.fragment for one in frames if isinstance(one, Frame) and one.fragment is not None]
    assert [(one.number, one.index, one.count) for one in pieces] == [(2, index, 3) for index in range(3)]
    ((packets, datas, peer, sequence),) = desk.host.counted
    assert (packets, b"".join(one.piece for one in pieces), peer, sequence) == ([large], datas[0], "", 2)


def test_a_window_holds_1024_bits_however_many_numbers_come() -> None:
    window = Window()
    for number in range(5000):
        assert window.fresh(number)
    assert window._bits.bit_length() == 1024
    assert not window.fresh(5000 - 1024)
    assert window.is_behind(4999 - 1024)
    assert not window.is_behind(4999 - 1023)
    assert window.fresh(10**9)
    assert window._bits == 1
