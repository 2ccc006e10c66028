"""Small parts of the live host at their bounds: segments, dates, tables, sockets, and what newcomers may get."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter, OrderedDict
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import GeometryError, LocationUnavailable, NetworkUnavailable, SettingsError, UsageError
from earshot.events import Event
from earshot.geometry import Position
from earshot.live import signatures, sockets
from earshot.live.gpsd import Gpsd
from earshot.live.location import Fixed
from earshot.live.network import NetworkSettings
from earshot.live.newcomers import MOST_UNPROVEN, PROOF_S, NewcomerQueue, UnprovenDatagrams
from earshot.live.node import ReadQueue
from earshot.live.node_metrics import NodeMetrics
from earshot.live.peers import Peer, Peers
from earshot.live.signatures import _remember, parse_until, trust_line
from earshot.live.sockets import GROUPS_A_SOCKET, SEND_BUFFER_BYTES, MulticastSockets, group_address, parse_address
from earshot.live.spool import close_abandoned, read_records
from earshot.live.trace_location import TracePlayback
from earshot.live.transport import Transport
from earshot.live.trust import Seal

HOME = ("10.0.0.1", 5)


def test_segments_that_killed_nodes_left_are_counted_cut_and_closed(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"a-{number}-00001.open.jsonl").write_bytes(b'{"time":1.0,"node":"a","kind":"note"}\n{"ti')
    (tmp_path / "a-3-00001.open.jsonl").write_bytes(b"")
    (tmp_path / "b-1-00001.jsonl").write_bytes(b'{"time":2.0,"node":"b","kind":"note"}\n')
    assert close_abandoned(tmp_path) == 3
    assert close_abandoned(tmp_path) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a-{n}-00001.jsonl" for n in (1, 2)] + [
        "b-1-00001.jsonl"
    ]
    assert (tmp_path / "a-1-00001.jsonl").read_bytes().endswith(b"}\n")


def test_lines_that_are_not_records_are_named_and_the_others_read(tmp_path: Path) -> None:
    (tmp_path / "a-1-00001.jsonl").write_bytes(
        b'{"time":1.0,"node":"a","kind":"note"}\nnonsense\n{"time":2.0,"node":"a","kind":"no kind"}\n'
        b'{"time":3.0,"node":"a","kind":"note"}\n{"time":4.0'
    )
    damaged: list[str] = []
    assert [one.time for one in read_records(tmp_path, damaged)] == [1.0, 3.0]
    assert [line.partition(": not")[0].rpartition(" ")[2] for line in damaged] == ["2", "3"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1970-01-02", 86400.0), ("1970-01-02T00:00:00+02:00", 79200.0), ("1970-01-01T00:00:05Z", 5.0)],
)
def test_the_end_of_a_key_is_a_date_in_utc_unless_it_has_a_zone(text: str, seconds: float) -> None:
    assert parse_until(text) == seconds
    with pytest.raises(UsageError, match="'soon' is not a date"):
        parse_until("soon")


def test_what_was_signed_first_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "REMEMBERED", 2)
    table: OrderedDict[str, float] = OrderedDict()
    for key in ("a", "b", "a"):
        _remember(table, key, 1.0)
    assert list(table) == ["b", "a"]
    _remember(table, "c", 1.0)
    assert list(table) == ["a", "c"]


def test_of_too_many_senders_the_first_gets_a_new_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "REMEMBERED", 2)
    verifier = signatures.Verifier()
    assert all(verifier._allows(sender, 5.0) for sender in "abc")
    assert verifier._allowances == {"b": [32.0, 5.0], "c": [32.0, 5.0]}


def test_sixteen_thousand_signatures_are_remembered() -> None:
    table: OrderedDict[int, float] = OrderedDict()
    for key in range(16_390):
        _remember(table, key, 1.0)
    assert (len(table), next(iter(table))) == (16_384, 6)


def test_tables_of_peers_have_these_sizes() -> None:
    peers = Peers(5.0, lambda *_: None)
    assert peers._limits == (4096, 1024, 4096)


# Sockets.


class Refusing:
    """A socket that joins so many groups and refuses the next."""

    def __init__(self, joins: int) -> None:
        self.joins, self.closed = joins, False

    def setsockopt(self, *_: Any) -> None:
        if not self.joins:
            raise OSError(errno.ENOBUFS, "no room")
        self.joins -= 1

    def close(self) -> None:
        self.closed = True


class Opening(MulticastSockets):
    """Opens given sockets."""

    def __init__(self, *some: Refusing) -> None:
        super().__init__(5000, "", HOME)
        self.some = list(some)

    def _open(self) -> socket.socket:
        opened: Any = self.some.pop(0)
        self._sockets[opened] = set()
        return opened  # type: ignore[no-any-return]


def test_a_socket_that_was_opened_for_a_group_it_cannot_join_is_closed() -> None:
    refusing = Refusing(0)
    with pytest.raises(NetworkUnavailable, match=r"cannot join the multicast group 239.0.0.1 on the default interface"):
        Opening(refusing).join("239.0.0.1")
    assert refusing.closed


def test_a_socket_that_has_groups_stays_open_when_the_next_cannot_be_joined() -> None:
    one = Refusing(1)
    found = Opening(one)
    assert found.join("239.0.0.1") is one
    assert found.join("239.0.0.1") is None
    with pytest.raises(NetworkUnavailable):
        found.join("239.0.0.2")
    assert not one.closed
    assert list(found._sockets.values()) == [{"239.0.0.1"}]


def test_a_socket_joins_twenty_groups() -> None:
    first, second = Refusing(99), Refusing(99)
    found = Opening(first, second)
    opened = [found.join(f"239.0.0.{number}") for number in range(21)]
    assert (GROUPS_A_SOCKET, opened[0], opened[1:20], opened[20]) == (20, first, [None] * 19, second)
    assert (sockets.RECEIVE_BUFFER_BYTES, sockets.SEND_BUFFER_BYTES) == (4 << 20, 4 << 20)


# Newcomers.


class Sending(Transport):
    """A transport that notes what it would send."""

    def __init__(self) -> None:
        self.transmitted: list[bytes] = []

    def _transmit(self, datagram: bytes, address: tuple[str, int], priority: int = 0) -> None:
        self.transmitted.append(datagram)


def test_a_newcomer_gets_no_more_bytes_than_it_sent_and_a_proven_peer_everything() -> None:
    transport = Sending()
    newcomer = Peer("a", HOME, 1, credit_bytes=10)
    assert [transport._transmit_to(newcomer, b"x" * size) for size in (11, 4, 6, 1)] == [False, True, True, False]
    assert (newcomer.credit_bytes, transport.transmitted) == (0, [b"xxxx", b"xxxxxx"])
    assert transport._transmit_to(Peer("b", HOME, 1, proven=True), b"x" * 999)


def test_a_node_without_a_place_stands_at_the_origin() -> None:
    assert Fixed.on_plane().fix(1.0).position == Position(0.0, 0.0)
    assert Fixed.on_plane(3.0, 4.0).fix(1.0).position == Position(3.0, 4.0)


def test_an_address_has_a_port_from_0_to_65535_and_a_group_an_address_of_24_bits() -> None:
    assert parse_address("127.0.0.1:65535", "--peer") == ("127.0.0.1", 65535)
    assert parse_address("0", "--listen", "127.0.0.1") == ("127.0.0.1", 0)
    for wrong in ("127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x", "47474", ":5"):
        with pytest.raises(NetworkUnavailable, match="write HOST:PORT"):
            parse_address(wrong, "--peer")
    assert (group_address(0), group_address(0x010203), group_address(0xFFFFFF)) == (
        "239.0.0.0", "239.1.2.3", "239.255.255.255",
    )  # fmt: skip


# Sockets of this machine.


def test_the_own_socket_has_its_buffers_travels_one_hop_and_reaches_this_machine() -> None:
    with sockets.open_own("127.0.0.1", 0, "lo") as own:
        assert not own.getblocking()
        for option, asked in ((socket.SO_RCVBUF, sockets.RECEIVE_BUFFER_BYTES), (socket.SO_SNDBUF, SEND_BUFFER_BYTES)):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
                plain.setsockopt(socket.SOL_SOCKET, option, asked)
                assert own.getsockopt(socket.SOL_SOCKET, option) == plain.getsockopt(socket.SOL_SOCKET, option)
        for option, value in ((socket.IP_MULTICAST_TTL, 1), (socket.IP_MULTICAST_LOOP, 1)):
            assert own.getsockopt(socket.IPPROTO_IP, option) == value
        assert own.getsockname()[0] == "127.0.0.1"
        with pytest.raises(NetworkUnavailable, match=r"cannot listen on 127.0.0.1:\d+: Address already in use"):
            sockets.open_own("127.0.0.1", own.getsockname()[1])


def test_an_interface_has_an_address_and_a_largest_packet_and_one_that_is_not_there_is_named() -> None:
    assert sockets.address_of("lo") == "127.0.0.1"
    assert sockets.mtu_of("lo") == int(Path("/sys/class/net/lo/mtu").read_text())
    with pytest.raises(NetworkUnavailable, match=r"the interface 'no-such0' has no IPv4 address .*; there are: .*lo"):
        sockets.mtu_of("no-such0")
    assert sockets.address_towards(("127.0.0.1", 9)) == "127.0.0.1"


def received(one: socket.socket) -> list[bytes]:
    found = []
    one.settimeout(0.2)
    with suppress(TimeoutError):
        while len(found) < 2:
            found.append(one.recv(99))
    return found


def test_the_kernel_discards_what_a_host_sent_itself_and_nothing_else() -> None:
    def open_at(host: str) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.bind((host, 0))
        return opened

    with open_at("127.0.0.1") as receiver, open_at("127.0.0.1") as own, open_at("127.0.0.1") as other:
        sockets.ignore_sender(receiver, own.getsockname())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as namesake:
            namesake.bind(("127.0.0.2", own.getsockname()[1]))
            for sender, word in ((own, b"own"), (namesake, b"same port"), (other, b"other")):
                sender.sendto(word, receiver.getsockname())
        assert received(receiver) == [b"same port", b"other"]


def test_behind_a_shut_gate_a_socket_receives_only_what_admitted_senders_sent() -> None:
    opened = [sockets.open_own("127.0.0.1", 0, "lo") for _ in range(4)]
    receiver, own, known, stranger = opened

    def all_send(*words: bytes) -> list[bytes]:
        for word in words:
            for sender, name in ((own, b"own"), (known, b"known"), (stranger, b"stranger")):
                sender.sendto(name + word, receiver.getsockname())
        return received(receiver)

    gate = sockets.Gate(own.getsockname())
    others = [(f"10.{number >> 8}.{number & 255}.1", 9) for number in range(900)]
    assert not gate.is_shut
    assert gate.open() == 0
    for admitted in ([known.getsockname()], [known.getsockname(), *others], [*others, known.getsockname()]):
        gate.shut([receiver], admitted)
        assert gate.is_shut
        assert all_send(b"1", b"2") == [b"known1", b"known2"]
        gate.shut([receiver], [])
        assert all_send(b"3") == []
        assert (gate.open(), gate.is_shut) == (7, False)
        assert all_send(b"4") == [b"known4", b"stranger4"], "the host's own datagrams are discarded as before"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as namesake:
        namesake.bind(("127.0.0.2", known.getsockname()[1]))
        gate.shut([receiver], [known.getsockname()])
        namesake.sendto(b"same port", receiver.getsockname())
        assert received(receiver) == []
    for one in opened:
        one.close()
    assert gate.open() == 0, "closed sockets"


def test_a_gate_has_room_for_the_most_recent_four_thousand_senders() -> None:
    with sockets.open_own("127.0.0.1", 0, "lo") as receiver, sockets.open_own("127.0.0.1", 0, "lo") as known:
        gate = sockets.Gate(HOME)
        crowd = [(f"10.{number >> 8}.{number & 255}.1", 9) for number in range(5000)]
        gate.shut([receiver], [*crowd, known.getsockname()])
        known.sendto(b"known", receiver.getsockname())
        assert (gate.is_shut, received(receiver)) == (True, [b"known"])


def test_where_the_kernel_refuses_the_filter_the_gate_stays_open() -> None:
    refusing: Any = Refusing(0)
    with sockets.open_own("127.0.0.1", 0, "lo") as receiver, sockets.open_own("127.0.0.1", 0, "lo") as stranger:
        gate = sockets.Gate(HOME)
        gate.shut([receiver, refusing], [])
        assert not gate.is_shut
        assert not gate.is_usable
        gate.shut([receiver], [])
        assert not gate.is_shut, "it does not try again"
        stranger.sendto(b"heard", receiver.getsockname())
        assert received(receiver) == [b"heard"]


def test_newcomers_datagrams_wait_in_order_and_bounded_by_number_and_bytes() -> None:
    queue = NewcomerQueue(4, 3 * 356)
    assert [queue.put(memoryview(bytes([number]) * 100), HOME) for number in range(4)] == [True, True, True, False]
    assert (len(queue), queue.is_half_empty) == (3, False)
    assert [queue.take() for _ in range(2)] == [(bytes([number]) * 100, HOME) for number in range(2)]
    assert queue.is_half_empty
    assert [queue.put(memoryview(b""), HOME) for _ in range(4)] == [True, True, False, False], "by bytes"
    queue.clear()
    assert queue.put(memoryview(bytes(5000)), HOME), "one always fits"
    queue.clear()
    assert [queue.put(memoryview(b""), HOME) for _ in range(5)] == [True] * 4 + [False], "by number"


def test_what_a_sender_sent_before_its_proof_is_given_in_order_once() -> None:
    waiting = UnprovenDatagrams(10_000)
    assert [waiting.put(memoryview(data), HOME, 1.0) for data in (b"first", b"second")] == [0, 0]
    assert waiting.put(memoryview(b"other"), ("127.0.0.1", 9), 1.0) == 0
    assert waiting.take(HOME) == [b"first", b"second"]
    assert (waiting.take(HOME), len(waiting)) == ([], 1)


def test_what_waits_for_a_proof_is_bounded_by_bytes_by_sender_and_by_time() -> None:
    waiting = UnprovenDatagrams(3 * 356)
    senders = [("127.0.0.1", port) for port in range(1, 5)]
    assert [waiting.put(memoryview(bytes(100)), sender, 0.0) for sender in senders] == [0, 0, 0, 1]
    assert [waiting.take(sender) != [] for sender in senders] == [False, True, True, True], "the oldest makes room"
    assert waiting.put(memoryview(bytes(5000)), HOME, 0.0) == 1, "larger than all that may wait"
    many = UnprovenDatagrams(1_000_000)
    assert (MOST_UNPROVEN, PROOF_S) == (16, 2.0)
    given_up = [many.put(memoryview(b""), HOME, 0.0) for _ in range(MOST_UNPROVEN + 2)]
    assert given_up == [0] * MOST_UNPROVEN + [1, 1]
    assert many.put(memoryview(b"late"), senders[0], PROOF_S) == 0
    assert (many.expire(PROOF_S), len(many)) == (0, 2)
    assert (many.expire(PROOF_S + 0.1), len(many)) == (MOST_UNPROVEN, 1)
    assert many.take(senders[0]) == [b"late"]
    assert many.put(memoryview(bytes(1_000_000 - 256)), HOME, 9.0) == 0, "all bytes are free again"


def test_a_group_is_received_until_it_is_left() -> None:
    with sockets.open_own("127.0.0.1", 0, "lo") as sender, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
        probe.close()
        found = MulticastSockets(port, "lo", ("127.0.0.1", 1))
        receiver = found.join("239.255.70.1")
        assert receiver is not None
        assert found.sockets == [receiver]
        assert not receiver.getblocking()
        assert receiver.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1
        assert receiver.getsockopt(socket.IPPROTO_IP, sockets._IP_MULTICAST_ALL) == 0
        with sockets.open_own("127.0.0.1", 0) as own:
            buffers = (one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for one in (receiver, own))
            assert len(set(buffers)) == 1
        sender.sendto(b"to a group that was joined", ("239.255.70.1", port))
        found.join("239.255.70.2")
        found.leave("239.255.70.1")
        sender.sendto(b"left", ("239.255.70.1", port))
        sender.sendto(b"the second", ("239.255.70.2", port))
        assert received(receiver) == [b"to a group that was joined", b"the second"]
        found.close()
        assert receiver.fileno() == -1


class HostNotes:
    """What a queue or the metrics ask of a host."""

    def __init__(self) -> None:
        self.warned: list[str] = []
        self.lost: list[str] = []
        self.counts, self.drops, self.subscriptions = Counter({"send": 5}), {"expired": 2}, 3
        self.transport = SimpleNamespace(backlog_bytes=77)
        self.on_deliver: Any = None

    def dropped(self, reason: str, event: str = "") -> None:
        assert reason == "slow-subscriber"
        self.lost.append(event)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def unsubscribe(self, id: str) -> None:
        assert id == "s"


def test_a_queue_that_nobody_reads_drops_its_oldest_and_warns_once() -> None:
    host = HostNotes()
    queue: ReadQueue[Event] = ReadQueue(host, "s", 2)  # type: ignore[arg-type]
    for number in range(5):
        queue.put(Event("Ping", id=f"e{number}"))
        assert len(host.warned) == (number >= 2)
    assert (queue.dropped, host.lost) == (3, ["e0", "e1", "e2"])
    assert host.warned == ["slow-subscriber: s holds 2 events; the oldest are dropped"]


def test_metrics_count_each_latency_in_its_own_and_all_larger_buckets() -> None:
    host = HostNotes()
    node: Any = SimpleNamespace(host=host, name="a", peers=lambda: ["b"])
    metrics = NodeMetrics(node)
    for latency_s in (-0.5, 0.001, 0.0011, 0.3, 30.0, 31.0):
        host.on_deliver(latency_s)
    samples = {
        (one.name, one.labels.get("le", one.labels.get("reason", ""))): one.value
        for family in metrics.collect()
        for one in family.samples
    }
    within = {top: samples["earshot_node_latency_seconds_bucket", top] for top in ("0.001", "0.0025", "0.5", "30.0")}
    assert within == {"0.001": 2, "0.0025": 3, "0.5": 4, "30.0": 5}
    assert samples["earshot_node_latency_seconds_bucket", "+Inf"] == 6
    assert samples["earshot_node_latency_seconds_sum", ""] == pytest.approx(61.3021)
    assert (samples["earshot_node_packets_sent_total", ""], samples["earshot_node_packets_received_total", ""]) == (
        5,
        0,
    )
    assert (samples["earshot_node_dropped_total", "expired"], samples["earshot_node_peers", ""]) == (2, 1)
    assert (samples["earshot_node_subscriptions", ""], samples["earshot_node_backlog_bytes", ""]) == (3, 77)


@pytest.mark.parametrize("keys", [(), (b"k" * 32,)])
def test_a_seal_adds_as_many_bytes_as_it_says(keys: tuple[bytes, ...]) -> None:
    for frame in (b"", b"frame", b"x" * 1000):
        assert len(Seal(keys).close(frame)) - len(frame) == Seal(keys).overhead_bytes


def test_a_node_needs_sixteen_megabytes_for_what_peers_send() -> None:
    assert NetworkSettings(memory_bytes=16_000_000).memory_bytes == 16_000_000
    with pytest.raises(SettingsError, match="memory_bytes"):
        NetworkSettings(memory_bytes=15_999_999)


@pytest.mark.parametrize(("text", "hinted"), [("1;2;3\n4;5;6\n", True), ("<gpx", False)])
def test_a_trace_that_cannot_be_read_says_where_columns_are_named(tmp_path: Path, text: str, hinted: bool) -> None:
    """A node has no --columns; the command that would say so does."""
    trace = tmp_path / ("t.csv" if hinted else "t.gpx")
    trace.write_text(text)
    with pytest.raises(LocationUnavailable) as caught:
        asyncio.run(TracePlayback(trace).start(lambda: 0.0, None))
    assert str(caught.value).startswith(f"cannot read the trace {trace}: ")
    assert ("; here, write the names into the file's first line" in str(caught.value)) is hinted


# What a sample of wrong changes found.


def test_a_queue_that_ends_wakes_its_reader_after_what_still_waits() -> None:
    async def story() -> None:
        queue: ReadQueue[Event] = ReadQueue(HostNotes(), "s", 5)  # type: ignore[arg-type]
        read: list[str] = []

        async def reader() -> None:
            async for event in queue:
                read.append(event.id)  # noqa: PERF401 - what was read before the end counts

        task = asyncio.create_task(reader())
        await asyncio.sleep(0)
        queue.put(Event("Ping", id="a"))
        await asyncio.sleep(0)
        queue.put(Event("Ping", id="b"))
        queue.end()
        for _ in range(3):
            await asyncio.sleep(0)
        assert (task.done(), read) == (True, ["a", "b"])
        waiting = asyncio.create_task(reader())
        await asyncio.sleep(0)
        assert waiting.done(), "it has ended"
        late: ReadQueue[Event] = ReadQueue(HostNotes(), "s", 5)  # type: ignore[arg-type]
        one = asyncio.ensure_future(anext(late))
        await asyncio.sleep(0)
        late.end()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert isinstance(one.exception(), StopAsyncIteration), "also while nothing waits"

    asyncio.run(story())


@pytest.mark.parametrize(("lat_deg", "lon_deg"), [(90.1, 0.0), (0.0, 180.1)])
def test_a_place_that_is_not_on_earth_is_refused_before_the_node_starts(lat_deg: float, lon_deg: float) -> None:
    with pytest.raises(GeometryError, match="must be from"):
        Fixed(lat_deg, lon_deg)


def test_a_trust_file_names_nodes_owners_and_keys_that_no_longer_count(tmp_path: Path) -> None:
    node, owner, other, gone = (bytes([number]) * 32 for number in range(4))
    lines = [trust_line("node", node, "car"), trust_line("owner", owner), trust_line("owner", other), "", "# a remark"]
    (tmp_path / "trust").write_text("\n".join([*lines, trust_line("revoked", gone)]))
    found = signatures.read_trust(tmp_path / "trust")
    assert (list(found.keys), list(found.keys["car"]), found.owners, found.revoked) == (
        ["car"], [node], (owner, other), frozenset({gone}),
    )  # fmt: skip


def test_a_gate_makes_another_number_of_each_address_and_nobody_can_guess_it() -> None:
    """Its factor is odd: then no two addresses with one port have the same number."""
    gates = [sockets.Gate(HOME) for _ in range(20)]
    assert {gate._factor % 2 for gate in gates} == {1}
    assert len({gate._factor for gate in gates}) == 20
    hosts = [(f"10.0.{number >> 8}.{number & 255}", 9) for number in range(200)]
    jumps = [step for step in gates[0]._program(hosts) if step[0] == 0x15]
    assert len({number for *_, number in jumps}) == 200


def test_a_gpsd_whose_line_is_too_long_is_left_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Wire:
        """A connection whose first line is too long."""

        def __init__(self) -> None:
            self.did: list[str] = []

        def write(self, data: bytes) -> None:
            self.did.append("write")

        async def drain(self) -> None:
            pass

        async def readline(self) -> bytes:
            raise ValueError("the line is too long")

        def close(self) -> None:
            self.did.append("close")

    async def story() -> Wire:
        wire = Wire()
        task = asyncio.create_task(Gpsd()._follow((wire, wire), lambda: 0.0))  # type: ignore[arg-type]
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        return wire

    with caplog.at_level("WARNING"):
        assert asyncio.run(story()).did == ["write", "close"]
    assert [record.getMessage() for record in caplog.records] == ["gpsd: the line is too long"]
