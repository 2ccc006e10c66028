"""Two live nodes on this machine: an ambulance announces sirens around itself, a car subscribes to fast ones.

The nodes find each other by multicast on the loopback interface. No server runs anywhere.
"""

import asyncio

from earshot import Circle, EventType, Node
from earshot.live import Fixed, run

NETWORK = {"interface": "lo", "group": "239.255.69.83:47951"}


async def main() -> None:
    async with (
        Node("ambulance-7", protocol="steam", location=Fixed.on_plane(0, 0), **NETWORK) as ambulance,
        Node("car", protocol="steam", location=Fixed.on_plane(120, 0), **NETWORK) as car,
    ):
        sirens = car.subscribe("Siren", where="speed > 10")
        siren = await ambulance.announce(EventType("Siren", content={"speed": float}), within=Circle(300))
        await siren.publish(speed=8.0)  # too slow for the subscription
        await siren.publish(speed=18.0)
        async for event in sirens:
            print(f"the car heard {event.source} at {event.content['speed']:g} m/s")
            assert (event.source, event.content["speed"]) == ("ambulance-7", 18.0)
            break


run(asyncio.wait_for(main(), 30))
