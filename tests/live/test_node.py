import asyncio
import gc
from pathlib import Path

import pytest
from desk import PATIENCE_S, Desk, acquainted, free_port, taken, until

import earshot
from earshot.errors import ContentMismatch, EventError, NetworkUnavailable, SettingsError, UnknownName, UsageError
from earshot.events import Event, EventType
from earshot.geometry import Area, Circle, Position
from earshot.live.node import YIELD_EVERY, Node
from earshot.live.sockets import MulticastSockets, open_own
from earshot.live.spool import read_records
from earshot.protocols.catalogue import PROTOCOLS as CATALOGUE
from earshot.protocols.flooding import Flood
from earshot.protocols.machine import Effects
from earshot.records.details import NetworkNames, read_join
from earshot.wire import Packet

SIREN = EventType("Siren", content={"speed": float})
PROTOCOLS = ("flooding", "gossip", "hearsay", "steam")


def test_the_package_offers_the_node() -> None:
    assert earshot.Node is Node


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_node_receives_what_another_publishes_and_it_subscribed_to(protocol: str) -> None:
    async def run() -> None:
        desk = Desk(protocol=protocol)
        async with desk.node("ambulance") as ambulance, desk.node("car", 100.0) as car:
            await acquainted(ambulance, car)
            fast = car.subscribe("Siren", where="speed > 10")
            siren = await ambulance.announce(SIREN, within=Circle(300))
            await until(lambda: protocol != "steam" or car.host.transport.joined)
            await siren.publish(speed=5.0)
            sent = await siren.publish(speed=18)
            assert await taken(fast, 1) == [sent]
            assert (sent.source, sent.position, sent.content) == ("ambulance", Position(0.0, 0.0), {"speed": 18.0})
            assert sent.area == Area(Circle(300), Position(0.0, 0.0))

    asyncio.run(run())


def test_two_producers_of_one_type_on_a_node_publish_each_within_its_own_proximity() -> None:
    async def run() -> None:
        desk = Desk(protocol="steam")
        async with desk.node("lights") as lights, desk.node("a", 80.0) as a, desk.node("b", -80.0) as b:
            await acquainted(lights, a, b)
            at_a, at_b = a.subscribe("Light"), b.subscribe("Light")
            north = await lights.announce("Light", Area(Circle(60), Position(80.0, 0.0)), producer="north")
            south = await lights.announce("Light", Area(Circle(60), Position(-80.0, 0.0)), producer="south")
            await until(lambda: a.host.transport.joined and b.host.transport.joined)
            to_north, to_south = await north.publish(colour="red"), await south.publish(colour="green")
            assert (await taken(at_a, 1), await taken(at_b, 1)) == ([to_north], [to_south])
            await north.unannounce()
            again = await south.publish(colour="red")
            assert await taken(at_b, 1) == [again]
            with pytest.raises(EventError, match="none of them with this event's area"):
                await north.publish(colour="green")

    asyncio.run(run())


def test_other_tasks_run_while_a_node_publishes_without_pause() -> None:
    async def run() -> None:
        async with Desk(protocol="flooding").node("a") as a:
            siren = await a.announce(SIREN)
            turns = 0

            async def take_turns() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            other = asyncio.create_task(take_turns())
            for _ in range(10 * YIELD_EVERY):
                await siren.publish(speed=18.0)
            other.cancel()
            assert turns >= 10

    asyncio.run(run())


def test_events_that_are_published_without_pause_share_datagrams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first event is sent at once and alone."""

    async def run() -> None:
        async with Desk(protocol="flooding").node("a") as a:
            siren = await a.announce(SIREN)
            sizes: list[int] = []
            monkeypatch.setattr(a.host, "sent", lambda packets, *_: sizes.append(len(packets)))
            for _ in range(4 * YIELD_EVERY):
                await siren.publish(speed=18.0)
            await asyncio.sleep(0)
            assert sum(sizes) == 4 * YIELD_EVERY
            assert [sizes[0], sizes.count(1)] == [1, 1]

    asyncio.run(run())


@pytest.mark.parametrize("protocol", sorted(CATALOGUE))
def test_every_protocol_of_the_catalogue_works_between_real_hosts(protocol: str) -> None:
    async def run() -> None:
        desk = Desk(protocol=protocol)
        async with desk.node("a") as a, desk.node("b", 50.0) as b, desk.node("c", 100.0) as c:
            await acquainted(a, b, c)
            wanted = c.subscribe("Siren", where="speed > 10")
            siren = await a.announce(SIREN)
            async with asyncio.timeout(PATIENCE_S):
                # Some need a while to find their way; what is raised before may be nobody's yet.
                while not len(wanted):
                    await siren.publish(speed=18.0)
                    await asyncio.sleep(0.05)
            assert (await taken(wanted, 1))[0].content == {"speed": 18.0}
            assert c.drops["machine-failure"] == 0

    asyncio.run(run())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_event_is_of_no_interest_outside_its_proximity(protocol: str) -> None:
    async def run() -> None:
        desk = Desk(protocol=protocol)
        async with (
            desk.node("ambulance") as ambulance,
            desk.node("near", 100.0) as near,
            desk.node("far", 900.0) as far,
        ):
            await acquainted(ambulance, near, far)
            heard, unheard = near.subscribe("Siren"), far.subscribe("Siren")
            siren = await ambulance.announce(SIREN, within=Circle(300))
            everywhere = await ambulance.announce(EventType("Bell"))
            rung = far.subscribe("Bell")
            await until(lambda: protocol != "steam" or (near.host.transport.joined and far.host.transport.joined))
            await siren.publish(speed=18)
            await everywhere.publish()
            assert len(await taken(heard, 1)) == len(await taken(rung, 1)) == 1
            assert len(unheard) == 0

    asyncio.run(run())


@pytest.mark.parametrize("protocol", ["flooding", "gossip", "hearsay"])
def test_events_go_through_a_middle_node_where_ranges_end(protocol: str) -> None:
    async def run() -> None:
        desk = Desk(protocol=protocol, emulate_range_m=150.0)
        async with desk.node("a") as a, desk.node("b", 100.0) as b, desk.node("c", 200.0) as c:
            await acquainted(a, b)
            await acquainted(b, c)
            wanted = c.subscribe("Siren")
            siren = await a.announce(SIREN)
            sent = await siren.publish(speed=1.0)
            assert await taken(wanted, 1) == [sent]
            assert [peer.name for peer in c.peers()] == ["b"]
            assert c.drops["out-of-range"] > 0

    asyncio.run(run())


def test_steam_goes_through_a_middle_node_and_learns_of_the_proximity_that_way() -> None:
    async def run() -> None:
        desk = Desk(protocol="steam", emulate_range_m=150.0, settings={"beacon_interval_s": 0.2, "expiry_s": 1.0})
        async with desk.node("a") as a, desk.node("b", 100.0) as b, desk.node("c", 200.0) as c:
            await acquainted(a, b)
            await acquainted(b, c)
            wanted = c.subscribe("Siren")
            between = b.subscribe("Siren")
            siren = await a.announce(SIREN, within=Circle(500))
            await until(lambda: b.host.transport.joined and c.host.transport.joined)
            sent = await siren.publish(speed=1.0)
            assert await taken(wanted, 1) == [sent]
            assert await taken(between, 1) == [sent]

    asyncio.run(run())


def test_peers_are_enough_where_there_is_no_multicast(tmp_path: Path) -> None:
    async def run() -> int:
        port = free_port()
        async with (
            Node("hub", protocol="flooding", listen=f"127.0.0.1:{port}", spool=tmp_path) as hub,
            Node("one", protocol="flooding", peers=(f"127.0.0.1:{port}",), spool=tmp_path) as one,
            Node("two", protocol="flooding", peers=(f"127.0.0.1:{port}",), spool=tmp_path) as two,
        ):
            await acquainted(hub, one)
            await acquainted(hub, two)
            wanted = two.subscribe("Siren")
            sent = await (await one.announce(SIREN)).publish(speed=3.0)
            assert await taken(wanted, 1) == [sent]
            assert [peer.name for peer in two.peers()] == ["hub"]
            return port

    port = asyncio.run(run())
    names = NetworkNames()
    joins = [read_join(record.detail) for record in read_records(tmp_path) if record.kind == "join"]
    assert [names.of(join.network) for join in joins] == [f"127.0.0.1:{port}"] * 3


def test_an_event_of_a_megabyte_arrives_whole() -> None:
    async def run() -> None:
        desk = Desk(datagram_bytes=8192)
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Map")
            sent = await (await a.announce("Map")).publish(tile="0123456789" * 100_000)
            assert await taken(wanted, 1) == [sent]
            assert b.host.transport.reassembly.held_bytes == 0

    asyncio.run(run())


def test_small_events_share_a_datagram() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Tick")
            tick = await a.announce("Tick")
            before = a.host.transport._sequence
            for number in range(60):
                await tick.publish(number=number)
            got = await taken(wanted, 60)
            assert [event.content["number"] for event in got] == list(range(60))
            assert a.host.transport._sequence - before < 15

    asyncio.run(run())


def test_a_slow_subscriber_loses_its_oldest_events_and_the_node_continues() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            slow, quick = b.subscribe("Tick", queue=3), b.subscribe("Tick")
            tick = await a.announce("Tick")
            for number in range(10):
                await tick.publish(number=number)
            assert [event.content["number"] for event in await taken(quick, 10)] == list(range(10))
            assert [event.content["number"] for event in await taken(slow, 3)] == [7, 8, 9]
            assert (slow.dropped, quick.dropped, b.drops["slow-subscriber"]) == (7, 0, 7)

    asyncio.run(run())


def test_a_subscription_ends_with_its_stream() -> None:
    async def run() -> None:
        async with Desk().node("a") as a:
            machine = a.host.machine
            with a.subscribe("Tick") as stream:
                assert list(machine.subscriptions.by_id) == [stream.id]
            assert list(machine.subscriptions.by_id) == []
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            a.subscribe("Tick")
            gc.collect()
            assert list(machine.subscriptions.by_id) == []

    asyncio.run(run())


def test_streams_end_with_their_node() -> None:
    async def run() -> list[Event]:
        async with Desk().node("a") as a:
            stream = a.subscribe("Tick")
            reading = asyncio.ensure_future(_all(stream))
            await asyncio.sleep(0)
        return await reading

    async def _all(stream: object) -> list[Event]:
        return [event async for event in stream]  # type: ignore[attr-defined]

    assert asyncio.run(run()) == []


def test_an_application_gets_an_error_for_its_mistakes() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a:
            siren = await a.announce(SIREN)
            with pytest.raises(ContentMismatch):
                await siren.publish(sped=1.0)
            with pytest.raises(UsageError, match="say what to subscribe to"):
                a.subscribe()
            with pytest.raises(UsageError, match="a shape, an Area, a Proximity or None"):
                await a.announce(SIREN, within="circle")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="is not running"):
            a.subscribe("Siren")
        with pytest.raises(NetworkUnavailable, match="nowhere0"):
            async with desk.node("a", interface="nowhere0"):
                pass
        with pytest.raises(NetworkUnavailable, match="HOST:PORT"):
            async with desk.node("a", peers=("somewhere",)):
                pass

    asyncio.run(run())
    with pytest.raises(UnknownName, match="flooding"):
        Node("a", protocol="floding")
    with pytest.raises(UsageError, match="no option 'interfce'"):
        Node("a", interfce="lo")
    with pytest.raises(SettingsError, match="rate_limit must be positive"):
        Node("a", rate_limit=0)


def test_a_send_to_a_peer_that_is_gone_comes_back_as_unreachable() -> None:
    async def run() -> None:
        desk = Desk(acknowledge_s=0.02)
        async with desk.node("a") as a:
            lost: list[str] = []

            def unreachable(_packet: Packet, peer: str, _now: float) -> Effects:
                lost.append(peer)
                return []

            a.host.machine.unreachable = unreachable  # type: ignore[method-assign]
            packet = a.host.machine.publish(Event("Tick", id="1"), 0.0)[0].packet  # type: ignore[union-attr]
            a.host.transport.send("nobody", packet)
            async with desk.node("b") as b:
                await acquainted(a, b)
                a.host.transport.send("b", packet)
                await until(lambda: b.host.counts["receive"] == 1 and not a.host.transport._pending)
            a.host.transport.send("b", packet)
            await until(lambda: len(lost) == 2)
            assert lost == ["nobody", "b"]
            assert a.drops["unreachable"] == 2

    asyncio.run(run())


def test_a_handler_is_called_at_once_and_its_failure_harms_no_other() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            got: list[int] = []

            def handle(event: Event) -> None:
                got.append(event.content["n"])  # type: ignore[index]
                if event.content["n"] == 1:  # type: ignore[index]
                    raise ValueError("a handler of the application's own")

            end = b.call(handle, "Tick", where="n > 0")
            tick = await a.announce("Tick")
            for number in range(3):
                await tick.publish(n=number)
            await until(lambda: len(got) == 2)
            end()
            await tick.publish(n=3)
            await until(lambda: b.host.counts["receive"] == 4)
            assert got == [1, 2]
            assert b.drops["handler-failure"] == 1

    asyncio.run(run())


def test_the_kernel_discards_a_nodes_own_broadcasts() -> None:
    port = free_port()
    own, other = open_own("127.0.0.1", 0, "lo"), open_own("127.0.0.1", 0, "lo")
    multicast = MulticastSockets(port, "lo", own.getsockname())
    ear = multicast.join("239.255.69.83")
    assert ear is not None
    for number, mouth in enumerate((own, other, own, other)):
        mouth.sendto(bytes([number]), ("239.255.69.83", port))
    ear.settimeout(5.0)
    assert [ear.recv(10), ear.recv(10)] == [b"\x01", b"\x03"]
    ear.setblocking(False)
    with pytest.raises(BlockingIOError):
        ear.recv(10)
    multicast.close()
    own.close()
    other.close()


@pytest.mark.parametrize("multicast", [True, False])
def test_a_broadcast_to_a_group_is_for_its_members(multicast: bool) -> None:
    async def run() -> None:
        port = free_port()
        desk = Desk()
        options = {} if multicast else {"interface": "", "peers": (f"127.0.0.1:{port}",)}
        listening = {} if multicast else {"interface": "", "listen": f"127.0.0.1:{port}"}
        async with desk.node("b", **listening) as b, desk.node("a", **options) as a:
            await acquainted(a, b)
            packets = [Flood(Event("Tick", id=str(number)), 1) for number in range(30)]
            heard: list[str] = []

            def hear(packet: Packet, _sender: str, _now: float) -> Effects:
                heard.append(packet.event.id)  # type: ignore[attr-defined]
                return []

            b.host.machine.hear = hear  # type: ignore[method-assign]
            for group in range(25):
                b.host.transport.join(group)
            b.host.transport.leave(3)
            for group in (*range(25), 25):
                a.host.transport.broadcast(packets[group], group)
            a.host.transport.broadcast(packets[29], None)
            await until(lambda: len(heard) == 25)
            assert sorted(map(int, heard)) == [*range(3), *range(4, 25), 29]

    asyncio.run(run())
