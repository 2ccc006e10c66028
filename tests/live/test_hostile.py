"""Hostile input: nothing that comes over the network reaches the application, and memory stays bounded."""

import asyncio
import contextlib
import math
import socket
from random import Random

import pytest
from desk import Desk, acquainted, resident_bytes, taken, until
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot import wire
from earshot.errors import MalformedPacket
from earshot.events import Event, EventType
from earshot.geometry import Area, Circle, Position
from earshot.live import datagrams, peers
from earshot.live.datagrams import PLAIN, Fragment, Frame
from earshot.live.node import Node
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.flooding import Flood
from earshot.protocols.georendezvous.cell_hash_routing import Beacon
from earshot.protocols.georendezvous.machine import GeoRendezvous
from sizes import sized

SIREN = EventType("Siren", content={"speed": float})


@pytest.fixture
def no_limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Everything that newcomers send is read, however much it is and however long it takes."""
    monkeypatch.setattr(peers, "STRANGERS_SHARE", 1e9)
    return {"rate_limit": 1e6}


class Attacker:
    """Sends whatever it likes to one node, from sockets of its own."""

    def __init__(self, victim: Node, sockets: int = 1) -> None:
        self.victim = victim
        self.sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(sockets)]
        self.sent = 0

    def throw(self, datagram: bytes, by: int | None = None) -> None:
        one = self.sent if by is None else by
        try:
            self.sockets[one % len(self.sockets)].sendto(datagram, self.victim.host.transport.address)
        except OSError:
            return
        finally:
            self.sent += 1

    def close(self) -> None:
        for one in self.sockets:
            one.close()


def datagram(sender: str, sequence: int, *packets: bytes, fragment: Fragment | None = None, life: int = 1) -> bytes:
    return PLAIN + datagrams.encode(
        Frame(sender, life, sequence, 0.0, "", Position(0.0, 0.0), None, "", [], list(packets), fragment)
    )


def flood(id: str, area: Area | None = None) -> bytes:
    return wire.encode(Flood(Event("Siren", {"speed": 1.0}, id=id, source="x", time=4e9, area=area), 1))


async def honest_traffic_goes_on(a: Node, b: Node) -> None:
    """Something honest published on one still reaches the other."""
    with b.subscribe("Bell") as wanted:
        bell = await a.announce("Bell")
        ringing = [await bell.publish(n=0)]
        await until(lambda: len(wanted))
        assert await taken(wanted, 1) == ringing


@given(st.binary(max_size=1500))
@settings(max_examples=sized(300, 20_000))
def test_any_bytes_become_a_packet_or_a_malformed_one(data: bytes) -> None:
    for bytes_ in (data, bytes([wire.WIRE_VERSION]) + data):
        with contextlib.suppress(MalformedPacket):
            wire.decode(bytes_)


@given(st.data())
@settings(max_examples=sized(300, 20_000))
def test_damaged_datagrams_become_a_frame_or_a_malformed_one(data: st.DataObject) -> None:
    good = bytearray(datagram("a", 5, flood("1"), fragment=Fragment(1, 0, 2, b"piece"))[4:])
    for _ in range(data.draw(st.integers(0, 8))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = good[: data.draw(st.integers(0, len(good)))]
    try:
        frame = datagrams.decode(bytes(cut))
    except MalformedPacket:
        return
    if not isinstance(frame, Frame):
        return
    assert 1 <= len(frame.sender) <= datagrams.MAX_NAME
    for packet in frame.packets:
        with contextlib.suppress(MalformedPacket):
            wire.decode(packet)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_noise_of_every_kind_leaves_a_node_at_work(protocol: str, no_limits: dict[str, float]) -> None:
    async def run() -> None:
        random = Random(protocol)
        desk = Desk(protocol="flooding", **no_limits)
        async with desk.node("a") as a, desk.node("b") as b, desk.node("target", protocol=protocol) as target:
            await acquainted(a, b, target)
            failures: list[object] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
            for victim in (b, target):
                attacker = Attacker(victim, 8)
                honest = datagram("mallory", 1, flood("1"))
                tags = list(wire._classes) or ["flood"]
                for number in range(600):
                    attacker.throw(random.randbytes(random.randrange(0, 2000)))
                    attacker.throw(honest[: random.randrange(len(honest))])
                    changed = bytearray(honest)
                    changed[random.randrange(4, len(changed))] ^= 1 << random.randrange(8)
                    attacker.throw(bytes(changed))
                    shape = [random.choice([None, -1, 1e308, math.nan, "x" * 50, [], {}, 2**63]) for _ in range(6)]
                    body = bytes([1]) + wire._encoder.encode([random.choice(tags), *shape])
                    attacker.throw(datagram(f"m{number % 8}", number, body))
                    if number % 50 == 0:
                        attacker.throw(random.randbytes(65_000))
                        await asyncio.sleep(0)
                attacker.close()
            await until(lambda: b.drops["malformed"] > 100 and b.drops["not-a-datagram"] > 100)
            await honest_traffic_goes_on(a, b)
            assert failures == []
            assert target.drops["machine-failure"] == b.drops["machine-failure"] == 0

    asyncio.run(run())


def test_a_forged_sender_does_not_take_an_honest_ones_place() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            attacker = Attacker(b)
            wanted = b.subscribe("Siren")
            attacker.throw(datagram("a", 10**6, flood("forged"), life=a.host.life))
            attacker.throw(datagram("b", 10**6, flood("forged")))
            await until(lambda: b.drops["forged-sender"] and b.drops["own-name"])
            assert [peer.address for peer in b.peers()] == [a.host.transport.address]
            await honest_traffic_goes_on(a, b)
            assert len(wanted) == 0
            attacker.close()

    asyncio.run(run())


def test_floods_of_fragments_names_and_event_ids_are_bounded(no_limits: dict[str, float]) -> None:
    async def run() -> None:
        desk = Desk(**no_limits)
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            attacker = Attacker(b, 4)
            ids = sized(10_000, 1_000_000)

            async def rage(start: int, count: int) -> None:
                for number in range(start, start + count, 20):
                    packets = [flood(f"id-{one}") for one in range(number, number + 20)]
                    by = number // 20 % 4
                    attacker.throw(datagram(f"m{by}", number, *packets), by)
                    piece = Fragment(number, 0, 4000, b"f" * 20_000)
                    attacker.throw(datagram(f"m{by}", number + 1, fragment=piece), by)
                    attacker.throw(datagram(f"name-{number}", 1))
                    if number % 400 == 0:
                        await asyncio.sleep(0)
                await until(lambda: not _waiting(b))

            await rage(0, ids // 2)
            before = resident_bytes()
            await rage(ids // 2, ids // 2)
            # What grows with every id or name would take hundreds of bytes for each; the buffers have their bound.
            assert resident_bytes() - before < 16 * wire.MAX_PACKET_BYTES + 8_000_000
            assert b.host.transport.reassembly.held_bytes <= 16 * wire.MAX_PACKET_BYTES
            assert len(b.host.machine.heard) <= b.host.machine.settings.memory  # type: ignore[attr-defined]
            assert len(b.host.transport.peers) <= 16
            assert b.drops["fragment-buffer-full"] > 0
            assert b.drops["forged-sender"] > 0
            await honest_traffic_goes_on(a, b)
            attacker.close()

    asyncio.run(run())


def _waiting(node: Node) -> bool:
    """Whether datagrams wait in the node's own socket."""
    own = node.host.transport._own
    assert own is not None
    try:
        return bool(own.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_one_senders_flood_is_cut_off_and_others_are_heard() -> None:
    async def run() -> None:
        desk = Desk(rate_limit=200)
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            attacker = Attacker(b)
            for number in range(3000):
                attacker.throw(datagram("mallory", number, flood(f"id-{number}")))
            await until(lambda: b.drops["rate-limit"] > 2000)
            assert b.host.counts["receive"] < 900
            await honest_traffic_goes_on(a, b)
            attacker.close()

    asyncio.run(run())


def test_absurd_areas_and_positions_do_no_harm() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            attacker = Attacker(b)
            areas = [Area(Circle(1e308), Position(1e308, -1e308)), Area(Circle(1e-300)), None]
            for number, area in enumerate(areas):
                attacker.throw(datagram("mallory", number, flood(f"id-{number}", area)))
            far = Frame("far", 1, 1, 0.0, "", Position(math.inf, 0.0), None, "", [], [])
            attacker.throw(PLAIN + datagrams.encode(far))
            await until(lambda: b.drops["malformed"] and len(wanted) >= 1)
            await honest_traffic_goes_on(a, b)
            assert b.drops["machine-failure"] == 0
            attacker.close()

    asyncio.run(run())


def test_a_georendezvous_node_routes_through_no_neighbour_that_has_not_proved_itself() -> None:
    """Otherwise each packet to a forged neighbour waits two seconds for acknowledgements that never come."""

    async def run() -> None:
        desk = Desk(protocol="georendezvous")
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            attacker = Attacker(b, sockets=16)
            for number in range(64):
                beacon = wire.encode(Beacon((number % 3 - 1, number // 3 % 3 - 1), fresh=True))
                attacker.throw(datagram(f"x{number}", 1, beacon))
            await until(lambda: b.drops["not-proven"])
            assert isinstance(b.host.machine, GeoRendezvous)
            assert b.host.machine.routing.neighbours.keys() <= {"a"}
            assert b.host.machine.routing.neighbourhood == 0
            attacker.close()

    asyncio.run(run())


@pytest.mark.parametrize("protocol", ["codd", "drip", "georendezvous", "siena"])
def test_what_nodes_send_before_they_have_proved_themselves_is_heard_then(protocol: str) -> None:
    """A node that starts asks for its place in the network at once; CoDD would ask again only after 20 s."""

    async def run() -> None:
        desk = Desk(protocol=protocol)
        async with desk.node("a") as a, desk.node("b") as b:
            await b.announce("Siren")
            a.subscribe("Siren")
            await acquainted(a, b)
            await until(lambda: a.host.counts["receive"] and b.host.counts["receive"])
            assert (a.drops["not-proven"], b.drops["not-proven"]) == (0, 0)

    asyncio.run(run())


@pytest.mark.parametrize("protocol", ["codd", "drip", "drip-sf", "georendezvous", "siena"])
def test_a_protocol_that_answers_whom_it_hears_hears_only_proven_peers(protocol: str) -> None:
    """It would keep forged peers as neighbours, parents or children, and wait for their acknowledgements."""

    async def run() -> None:
        async with Desk(protocol=protocol).node("b") as b:
            attacker = Attacker(b)
            attacker.throw(datagram("x", 1, wire.encode(Beacon((0, 1), fresh=True))))
            await until(lambda: b.drops["not-proven"])
            assert b.host.counts["receive"] == 0
            attacker.close()

    asyncio.run(run())
