import asyncio
from collections.abc import Callable
from typing import Any

from desk import Desk, acquainted, taken, until

from earshot.events import EventType
from earshot.geometry import STILL, Area, Circle, LocalPlane, Position
from earshot.live.location import Fix
from earshot.protocols.machine import Effects
from earshot.protocols.steam.packets import ProximityBeacon
from earshot.wire import Packet

SIREN = EventType("Siren", content={"n": int})
QUICK = {"beacon_interval_s": 0.1, "expiry_s": 0.5}


class Driver:
    """A location that is wherever the test puts it."""

    plane = None

    def __init__(self) -> None:
        self.at = Position(0.0, 0.0)

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None: ...

    async def stop(self) -> None: ...

    def fix(self, now: float) -> Fix:
        return Fix(self.at, STILL, now)


def test_a_node_that_leaves_a_proximity_stops_delivering_within_two_beacons() -> None:
    async def run() -> None:
        desk = Desk(protocol="steam", settings=QUICK)
        driver = Driver()
        async with desk.node("shop") as shop, desk.node("car", location=driver) as car:
            await acquainted(shop, car)
            wanted = car.subscribe("Siren")
            siren = await shop.announce(SIREN, within=Area(Circle(300)))
            await until(lambda: car.host.transport.joined)
            await siren.publish(n=1)
            assert (await taken(wanted, 1))[0].content == {"n": 1}
            beacons, inside = 0, []
            hear = car.host.machine.hear

            def counted(packet: Packet, sender: str, now: float) -> Effects:
                nonlocal beacons
                if isinstance(packet, ProximityBeacon):
                    beacons += 1
                    inside.append(bool(car.host.transport.joined))
                return hear(packet, sender, now)

            car.host.machine.hear = counted  # type: ignore[method-assign]
            driver.at = Position(1000.0, 0.0)
            await until(lambda: beacons >= 4)
            assert inside[2:4] == [False, False]
            await siren.publish(n=2)
            await until(lambda: beacons >= 6)
            assert len(wanted) == 0
            driver.at = Position(0.0, 0.0)
            await until(lambda: car.host.transport.joined)
            await siren.publish(n=3)
            assert (await taken(wanted, 1))[0].content == {"n": 3}

    asyncio.run(run())


def test_events_lost_in_a_partition_are_recovered_when_it_ends() -> None:
    async def run() -> None:
        desk = Desk(protocol="steam", settings=QUICK)
        async with desk.node("shop") as shop, desk.node("car") as car:
            await acquainted(shop, car)
            wanted = car.subscribe("Siren")
            siren = await shop.announce(SIREN, within=Circle(300))
            await until(lambda: car.host.transport.joined)
            await siren.publish(n=0)
            await taken(wanted, 1)
            # Cut off: what comes from the network is thrown away, in both directions.
            cut: list[Any] = [node.host.transport._receive for node in (shop, car)]
            for node in (shop, car):
                node.host.transport._receive = lambda *_: 1  # type: ignore[method-assign]
            for number in range(1, 6):
                await siren.publish(n=number)
            await until(lambda: not car.host.transport.joined)
            assert len(wanted) == 0
            for node, receive in zip((shop, car), cut, strict=True):
                node.host.transport._receive = receive  # type: ignore[method-assign]
            recovered = await taken(wanted, 5)
            assert sorted(event.content["n"] for event in recovered) == [1, 2, 3, 4, 5]

    asyncio.run(run())
