"""Each promise of a type's quality of service, and fences, between live nodes."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, acquainted, taken, until
from test_moving import Driver

from earshot.errors import QualityError, UsageError
from earshot.events import Event, EventType
from earshot.geometry import Area, Circle, Position
from earshot.live import FenceCrossing, read_spool
from earshot.live.node import Node
from earshot.protocols.services import served
from earshot.protocols.services.history import PastEvent

PROTOCOLS = ("cbf", "flooding", "gossip", "hearsay", "steam")


def kind(**quality: Any) -> EventType:
    return EventType("Siren", {"n": int}, quality)


class BlockedSocket:
    """A socket that takes nothing until it is released, and keeps what was sent then in order."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.blocked = True

    def sendto(self, *arguments: Any) -> None:
        if self.blocked:
            raise BlockingIOError
        self.own.sendto(*arguments)

    def sendmsg(self, *arguments: Any) -> None:
        if self.blocked:
            raise BlockingIOError
        self.own.sendmsg(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def test_what_waits_for_a_busy_socket_is_sent_in_order_of_priority() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            transport = a.host.transport
            blocked: Any = BlockedSocket(transport._own)
            transport._own = blocked
            priorities = [0, 0, 2, -1, 1, 2, 0]
            for n, priority in enumerate(priorities):
                a.host.publish(Event("Siren", {"n": n}, priority=priority))
                transport._end_turn()
            assert transport.congested
            blocked.blocked = False
            got = [event.content["n"] for event in await taken(wanted, len(priorities))]
            assert got == sorted(range(len(priorities)), key=lambda n: (-priorities[n], n))

    asyncio.run(run())


def test_a_full_backlog_drops_the_lowest_priority() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a:
            transport = a.host.transport
            blocked: Any = BlockedSocket(transport._own)
            transport._own = blocked
            transport._backlog.limit_bytes = 3000
            for n in range(40):
                a.host.publish(Event("Siren", {"n": n}, priority=n % 2))
                transport._end_turn()
            assert set(transport._backlog._waiting) == {1}
            assert a.drops["send-buffer-full"] == 40 - len(transport._backlog)
            blocked.blocked = False

    asyncio.run(run())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_event_is_not_delivered_after_its_lifespan(protocol: str) -> None:
    async def run() -> None:
        desk = Desk(protocol=protocol)
        slow = desk.node("a", clock=lambda: time.time() - 100.0)
        async with slow as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            siren = await a.announce(kind(lifespan_s=20.0))
            await until(lambda: protocol != "steam" or b.host.transport.joined)
            event = await siren.publish(n=1)
            assert event.lifespan_s == 20.0
            await until(lambda: b.drops["expired"])
            assert not len(wanted)

    asyncio.run(run())


def test_a_missed_deadline_is_reported_to_the_subscriber(tmp_path: Path) -> None:
    async def run() -> None:
        desk = Desk()
        slow = desk.node("a", clock=lambda: time.time() - 5.0)
        async with slow as a, desk.node("b", spool=tmp_path, clock=lambda: time.time() - 3.0) as b:
            await acquainted(a, b)
            wanted = b.subscribe(kind(deadline_s=1.0))
            # A subscription begins with the subscriber's clock, and the publisher's is behind.
            b.host.machine.subscriptions.since[wanted.id] = 0.0  # type: ignore[attr-defined]
            siren = await a.announce(kind(deadline_s=1.0))
            await siren.publish(n=1)
            (event,) = await taken(wanted, 1)
            assert event.late_s > 1.0
            assert wanted.late == 1
            assert b.host.counts["late"] == 1

    asyncio.run(run())
    late = [row for row in read_spool(tmp_path) if row["kind"] == "late"]
    assert len(late) == 1
    assert float(late[0]["detail"]) > 1.0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_late_subscriber_gets_the_last_events(protocol: str, tmp_path: Path) -> None:
    async def run() -> None:
        desk = Desk(protocol=protocol)
        async with desk.node("a") as a:
            siren = await a.announce(kind(history=3))
            for n in range(5):
                await siren.publish(n=n)
            async with desk.node("b", spool=tmp_path) as b:
                await acquainted(a, b)
                wanted = b.subscribe("Siren")
                assert [event.content["n"] for event in await taken(wanted, 3)] == [2, 3, 4]
                await until(lambda: protocol != "steam" or b.host.transport.joined)
                await siren.publish(n=5)
                assert [event.content["n"] for event in await taken(wanted, 1)] == [5]

    asyncio.run(run())
    kinds = [row["kind"] for row in read_spool(tmp_path) if row["kind"] in ("history", "deliver")]
    assert kinds == ["history"] * 3 + ["deliver"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_missed_reliable_event_is_recovered(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "STATE_EVERY_S", 0.2)

    async def run() -> None:
        desk = Desk(protocol=protocol)
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            siren = await a.announce(kind(reliability="reliable"))
            await until(lambda: b.host.served.types.heard)
            await until(lambda: protocol != "steam" or b.host.transport.joined)
            hear = b.host.served.hear

            def deaf(packet: Any, sender: str, now: float) -> Any:
                """As if every packet of the protocol with this event were lost."""
                event = getattr(packet, "event", None)
                return [] if event is not None and type(packet) is not PastEvent else hear(packet, sender, now)

            b.host.served.hear = deaf  # type: ignore[method-assign]
            await siren.publish(n=1)
            assert [event.content["n"] for event in await taken(wanted, 1)] == [1]

    asyncio.run(run())


def test_nodes_that_use_a_type_with_other_attributes_are_refused() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b, desk.node("c") as c:
            await acquainted(a, b, c)
            expecting = c.subscribe(kind(priority=1))
            await a.announce(kind(priority=2))
            await until(lambda: b.host.served.types.heard)
            with pytest.raises(QualityError, match="Siren: a has priority = 2, this node priority = 1"):
                await b.announce(kind(priority=1))
            with pytest.raises(QualityError, match="all nodes must use one list of attributes"):
                b.subscribe(kind(priority=3))
            plain = c.subscribe("Siren")
            await until(lambda: c.drops["attributes-differ"])
            await a.publish(Event("Siren", {"n": 1}))
            assert len(await taken(plain, 1)) == 1
            await until(lambda: c.drops["attributes-differ"] == 2)
            assert not len(expecting)

    asyncio.run(run())


def test_what_a_protocol_cannot_keep_is_refused_at_announce() -> None:
    async def run() -> None:
        async with Desk(protocol="siena").node("a") as a:
            with pytest.raises(QualityError, match="Siren: siena cannot keep history = 3: its nodes have no neighbo"):
                await a.announce(kind(history=3))
            await a.announce(kind(deadline_s=3))

    asyncio.run(run())


# Fences.


def test_a_node_learns_when_it_enters_and_leaves_an_announced_area(tmp_path: Path) -> None:
    async def run() -> None:
        desk, driver = Desk(), Driver()
        driver.at = Position(1000.0, 0.0)
        async with desk.node("shop") as shop, desk.node("car", location=driver, spool=tmp_path) as car:
            await acquainted(shop, car)
            await shop.announce("Offer", within=Area(Circle(300)))
            fences = car.fences("Offer")
            await until(lambda: car.host.served.types.heard)
            driver.at = Position(100.0, 0.0)
            entered = await anext(fences)
            driver.at = Position(400.0, 0.0)
            left = await anext(fences)
            assert entered == FenceCrossing("enter", "shop", "Offer", entered.time)
            assert left == FenceCrossing("leave", "shop", "Offer", left.time)
            fences.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    rows = [(row["detail"], row["peer"], row["x_m"]) for row in read_spool(tmp_path) if row["kind"] == "fence"]
    assert rows == [("enter Offer", "shop", 100.0), ("leave Offer", "shop", 400.0)]


def test_an_area_that_moves_is_entered_too() -> None:
    async def run() -> None:
        desk, driver = Desk(), Driver()
        driver.at = Position(1000.0, 0.0)
        async with desk.node("ambulance", location=driver) as ambulance, desk.node("car") as car:
            await acquainted(ambulance, car)
            await ambulance.announce(kind(priority=1), within=Circle(300))
            fences = car.fences("Siren")
            await until(lambda: car.host.served.types.heard)
            driver.at = Position(100.0, 0.0)
            assert (await anext(fences)).what == "enter"
            ambulance.host.unannounce("Siren")
            assert (await anext(fences)).what == "leave"

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_node_learns_who_comes_near_and_who_goes_away() -> None:
    async def run() -> None:
        desk, driver = Desk(), Driver()
        driver.at = Position(500.0, 0.0)
        async with desk.node("bus") as bus, desk.node("bike", location=driver) as bike:
            await acquainted(bus, bike)
            near = bus.fences(near_m=50.0)
            driver.at = Position(30.0, 0.0)
            assert (await anext(near)).what == "nearby"
            driver.at = Position(52.0, 0.0)  # within a tenth more: still near
            await until(lambda: any(peer.position == driver.at for peer in bus.peers()))
            await asyncio.sleep(0.3)
            assert not len(near)
            driver.at = Position(200.0, 0.0)
            parted = await anext(near)
            assert (parted.what, parted.peer) == ("faraway", "bike")

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_fence_needs_a_type_or_a_distance() -> None:
    async def run() -> None:
        async with Desk().node("a") as a:
            with pytest.raises(UsageError, match="an event type, whose areas count, or a distance"):
                a.fences()
            with pytest.raises(UsageError, match="near_m must be a positive number of metres, got -1"):
                a.fences(near_m=-1.0)

    asyncio.run(run())


def test_a_network_without_quality_or_fences_sends_no_packet_of_the_services(tmp_path: Path) -> None:
    async def run(a: Node, b: Node) -> None:
        async with a, b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            siren = await a.announce("Siren")
            await siren.publish(n=1)
            await taken(wanted, 1)

    desk = Desk()
    asyncio.run(run(desk.node("a", spool=tmp_path), desk.node("b", spool=tmp_path)))
    assert {row["packet"] for row in read_spool(tmp_path) if row["kind"] == "send"} == {"flood"}


# Metrics.


def test_a_node_offers_its_figures_to_prometheus() -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="needs the extra metrics")
    from urllib.request import urlopen

    from desk import free_port

    from earshot.cli.options import serve_metrics
    from earshot.live.node_metrics import NodeMetrics

    async def run() -> str:
        desk = Desk()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            address = f"127.0.0.1:{free_port()}"
            stop = serve_metrics(address, NodeMetrics(b))
            wanted = b.subscribe("Siren")
            siren = await a.announce("Siren")
            for n in range(3):
                await siren.publish(n=n)
            await taken(wanted, 3)
            read = await asyncio.to_thread(lambda: urlopen(f"http://{address}/metrics", timeout=30).read().decode())
            stop()
            return str(read)

    found = {
        sample.name: sample.value
        for family in parser.text_string_to_metric_families(asyncio.run(run()))
        for sample in family.samples
        if sample.labels.get("node") == "b"
    }
    assert found["earshot_node_delivered_total"] == 3.0
    assert found["earshot_node_peers"] == 1.0
    assert found["earshot_node_subscriptions"] == 1.0
    assert found["earshot_node_latency_seconds_count"] == 3.0
    assert found["earshot_node_packets_received_total"] >= 3.0
