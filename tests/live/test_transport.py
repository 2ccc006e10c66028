"""The transport by itself: two hosts' worth of it on the loopback, and what reaches the wire."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, acquainted, free_port, taken, until

from earshot.errors import MalformedPacket
from earshot.events import Event
from earshot.geometry import Position
from earshot.live import datagrams, sockets
from earshot.live.datagrams import HEADER_BYTES, MAX_DATAGRAM_BYTES, PLAIN, Challenge, Echo, Frame
from earshot.live.network import NetworkSettings
from earshot.live.node import Node
from earshot.live.transport import IP_AND_UDP_BYTES, Transport
from earshot.live.trust import Refused
from earshot.protocols.flooding import Flood
from earshot.records import DropReason
from earshot.wire import Packet, decode, encode


class Recorder:
    """A host that only notes what its transport reports."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.lost: list[tuple[Packet, str]] = []
        self.drops: list[str] = []

    def heard(self, datas: Sequence[bytes], frame: Frame, now: float) -> None:
        self.packets.extend(map(decode, datas))

    def sent(self, packets: Sequence[Packet], datas: Sequence[bytes], peer: str, frame: Frame) -> None:
        pass

    def unreachable(self, packet: Packet, peer: str) -> None:
        self.lost.append((packet, peer))

    def dropped(self, reason: DropReason, peer: str = "", count: int = 1) -> None:
        self.drops.append(str(reason))

    def header_position(self, now: float) -> Position | None:
        return None


class Side:
    """One transport, its recorder, and every frame that it sends."""

    def __init__(self, name: str, network: NetworkSettings, two_way: bool = False) -> None:
        self.host = Recorder()
        self.sizes: list[int] = []
        self.frames: list[Frame] = []
        self.transport = Transport(name, 7, "", network, self.host, lambda: 1000.0, two_way=two_way)
        transmit = self.transport._transmit

        def noted(datagram: bytes, address: tuple[str, int], priority: int = 0) -> None:
            self.sizes.append(len(datagram))
            if isinstance(frame := datagrams.decode(datagram[HEADER_BYTES:]), Frame):
                self.frames.append(frame)
            transmit(datagram, address, priority)

        self.transport._transmit = noted  # type: ignore[method-assign]
        self.transport.open()

    def knows(self, name: str) -> bool:
        peer = self.transport.peers.get(name, self.transport._ticks())
        return peer is not None and peer.proven


async def two_sides(**options: Any) -> tuple[Side, Side]:
    network = NetworkSettings(interface="lo", group=f"239.255.69.83:{free_port()}", **options)
    a, b = Side("a", network), Side("b", network)
    await until(lambda: a.knows("b") and b.knows("a"))
    return a, b


def flood(id: str, size: int = 10) -> Flood:
    return Flood(Event("Siren", {"text": "x" * size}, id=id, source="a", time=1.0), 1)


def test_a_bare_acknowledgement_names_its_sender_and_what_arrived() -> None:
    async def run() -> None:
        a, b = await two_sides(acknowledge_s=2.0)  # long, so that a busy machine does not make it send twice
        b.frames.clear()
        packet = flood("1")
        a.transport.send("b", packet)
        (sent,) = a.transport._pending
        await until(lambda: not a.transport._pending)
        (bare,) = [frame for frame in b.frames if frame.acks]
        assert bare == Frame("b", 7, bare.sequence, 1000.0, "", None, None, "", [sent], [])
        await asyncio.sleep(1.2 * a.transport.network.acknowledge_s)
        assert (a.host.lost, a.host.drops, b.host.drops) == ([], [], [])
        assert b.host.packets == [packet]
        assert b.frames.count(bare) == 1
        for side in (a, b):
            side.transport.close()

    asyncio.run(run())


def test_an_acknowledgement_rides_on_a_packet_of_the_same_turn() -> None:
    async def run() -> None:
        a, b = await two_sides(acknowledge_s=2.0)
        b.frames.clear()
        heard = b.host.heard

        def answer(datas: Sequence[bytes], frame: Frame, now: float) -> None:
            heard(datas, frame, now)
            b.transport.send("a", flood("answer"))

        b.host.heard = answer  # type: ignore[method-assign]
        a.transport.send("b", flood("1"))
        await until(lambda: not a.transport._pending and not b.transport._pending)
        carrying = [frame for frame in b.frames if frame.acks]
        assert [(frame.to, len(frame.packets)) for frame in carrying] == [("a", 1)]
        for side in (a, b):
            side.transport.close()

    asyncio.run(run())


@pytest.mark.parametrize("options", [{"datagram_bytes": 1200}, {}])
def test_a_burst_shares_datagrams_that_the_interface_carries(options: dict[str, int]) -> None:
    async def run() -> None:
        a, b = await two_sides(**options)
        most = options.get("datagram_bytes", min(sockets.mtu_of("lo") - IP_AND_UDP_BYTES, MAX_DATAGRAM_BYTES))
        assert a.transport.largest_bytes == most
        a.sizes.clear()
        sent = [flood(f"{number}", 100) for number in range(1000)]
        for packet in sent:
            a.transport.broadcast(packet, None)
        await until(lambda: len(b.host.packets) == 1000)
        assert b.host.packets == sent
        assert max(a.sizes) <= most
        assert len(a.sizes) < 1000, "packets of one turn share datagrams"
        large = flood("large", 200_000)
        a.transport.broadcast(large, None)
        await until(lambda: b.host.packets[-1] == large)
        assert max(a.sizes) <= most
        for side in (a, b):
            side.transport.close()

    asyncio.run(run())


@pytest.mark.parametrize(("mtu", "most"), [(1500, 1472), (9000, 8972), (65_536, MAX_DATAGRAM_BYTES)])
def test_the_largest_datagram_follows_the_mtu(mtu: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        monkeypatch.setattr(sockets, "mtu_of", lambda _: mtu)
        side = Side("a", NetworkSettings(interface="lo", group=f"239.255.69.83:{free_port()}"))
        assert side.transport.largest_bytes == most
        side.sizes.clear()
        for number in range(200):
            side.transport.broadcast(flood(f"{number}", 300), None)
        side.transport._end_turn()
        assert max(side.sizes) <= most
        side.transport.close()

    asyncio.run(run())


def test_only_members_of_a_group_hear_it() -> None:
    async def run() -> None:
        a, b = await two_sides()
        group = 0x010203
        a.transport.broadcast(flood("before"), group)
        # On the node's own port too: a datagram for a group that it has not joined is not its business.
        frame = Frame("a", 7, a.transport._sequence + 1, 1000.0, "", None, group, "", [], [encode(flood("direct"))])
        a.transport._sequence += 1
        assert a.transport._own is not None
        a.transport._own.sendto(datagrams.PLAIN + datagrams.encode(frame), b.transport.address)
        a.transport.broadcast(flood("for all"), None)
        await until(lambda: b.host.packets)
        await asyncio.sleep(0.05)
        assert b.host.packets == [flood("for all")]
        b.transport.join(group)
        a.transport.broadcast(flood("inside"), group)
        await until(lambda: len(b.host.packets) == 2)
        b.transport.leave(group)
        a.transport.broadcast(flood("after"), group)
        a.transport.broadcast(flood("end"), None)
        await until(lambda: b.host.packets[-1] == flood("end"))
        assert b.host.packets == [flood("for all"), flood("inside"), flood("end")]
        for side in (a, b):
            side.transport.close()

    asyncio.run(run())


def open_sockets() -> int:
    return sum(str(path.readlink()).startswith("socket:") for path in Path("/proc/self/fd").iterdir() if path.exists())


def test_close_leaves_no_socket_open() -> None:
    async def run() -> None:
        before = open_sockets()
        side = Side("a", NetworkSettings(interface="lo", group=f"239.255.69.83:{free_port()}"))
        for group in range(1, 50):
            side.transport.join(group)
        assert open_sockets() >= before + 4
        side.transport.close()
        assert open_sockets() == before
        side.transport.close()

    asyncio.run(run())


def test_a_network_that_cannot_be_opened_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        def refuse(*_: object) -> None:
            raise OSError(19, "No such device")

        before = open_sockets()
        with monkeypatch.context() as broken:
            broken.setattr(sockets.MulticastSockets, "join", refuse)
            with pytest.raises(OSError, match="No such device"):
                await Desk().node("a").__aenter__()
        assert open_sockets() == before

    asyncio.run(run())


def test_a_message_between_named_peers_needs_no_group() -> None:
    async def run() -> None:
        port = free_port()
        async with (
            Node("a", protocol="flooding", listen=f"127.0.0.1:{port}") as a,
            Node("b", protocol="flooding", peers=(f"127.0.0.1:{port}",)) as b,
        ):
            await acquainted(a, b)
            wanted = b.subscribe("Bell")
            await until(lambda: all(peer.both_ways for peer in (*a.peers(), *b.peers())))
            sent = await (await a.announce("Bell")).publish(n=1)
            assert await taken(wanted, 1) == [sent]

    asyncio.run(run())


def test_a_stopped_nodes_port_is_free() -> None:
    async def run() -> None:
        port = free_port()
        for _ in range(3):
            async with Node("a", protocol="flooding", listen=f"127.0.0.1:{port}"):
                pass
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", port))

    asyncio.run(run())


def packet_from(sender: str, sequence: int, packet: Packet, to: str = "") -> bytes:
    frame = Frame(sender, 1, sequence, 1000.0, "", None, None, to, [], [encode(packet)])
    return PLAIN + datagrams.encode(frame)


@pytest.mark.parametrize("two_way", [False, True])
def test_only_a_two_way_transport_waits_for_the_proof_of_a_newcomer(two_way: bool) -> None:
    async def run() -> None:
        network = NetworkSettings(interface="lo", group=f"239.255.69.83:{free_port()}")
        side = Side("a", network, two_way=two_way)
        side.transport._ticks = lambda: 5.0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.1", 0))
            first = packet_from("x", 1, flood("1"), to="a")
            if not two_way:
                assert side.transport._receive(memoryview(first), stranger.getsockname(), 5.0) == 1
            else:
                assert side.transport._receive(memoryview(first), stranger.getsockname(), 5.0) == 0
                assert side.host.packets == []
                assert not side.transport._acks, "what is not heard is not acknowledged"
                challenge = datagrams.decode(stranger.recv(65_535)[HEADER_BYTES:])
                assert isinstance(challenge, Challenge)
                echo = PLAIN + datagrams.encode(Echo(challenge.cookie, challenge.digest))
                side.transport._receive(memoryview(echo), stranger.getsockname(), 5.0)
                assert list(side.transport._acks) == ["x"], "it has waited for the proof"
                with pytest.raises(Refused, match="duplicate-datagram"):
                    side.transport._receive(memoryview(first), stranger.getsockname(), 5.0)
            assert side.host.packets == [flood("1")]
        side.transport.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "datagram",
    [b"no datagram", packet_from("a", 1, flood("1")), packet_from("x", 1, flood("1"), to="another"), b"hello"],
    ids=["malformed", "own name", "not for us", "hello"],
)
@pytest.mark.parametrize(("processor_s", "took_s"), [(0.01, 0.02), (0.005, 4.0)])
def test_newcomers_are_charged_for_the_work_of_refusing_and_challenging_them(
    datagram: bytes, processor_s: float, took_s: float
) -> None:
    """Refused datagrams were free, so that a flood of them took all the time of a node."""

    async def run() -> None:
        side = Side("a", NetworkSettings(interface="lo", group=f"239.255.69.83:{free_port()}", rate_limit=1000.0))
        transport = side.transport
        hello = PLAIN + datagrams.encode(Frame("x", 1, 1, 1000.0, "", None, None, "", [], []))
        times = iter((7.0, 7.0 + processor_s))
        transport._processor_time = lambda: next(times)
        transport._ticks = lambda: 5.0 + took_s
        before = transport._limits.of(None).left
        with contextlib.suppress(Refused, MalformedPacket):
            transport._receive(memoryview(hello if datagram == b"hello" else datagram), ("127.0.0.1", 9), 5.0)
        # 20 ms of work in a share of a quarter of the time: 80 ms, or 80 datagrams.
        assert before - transport._limits.of(None).left == pytest.approx(80.0)
        side.transport.close()

    asyncio.run(run())
