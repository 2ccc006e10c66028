"""Live nodes: the machines of `earshot.protocols` between real hosts, over UDP, without a server.

A `Node` publishes and subscribes from Python. Nodes find each other by multicast on an interface, or by
the addresses of peers. Two nodes on one machine:

    import asyncio

    from earshot.live import Fixed, Node, run

    async def main() -> float:
        network = {"interface": "lo", "group": "239.255.69.83:47913"}
        async with (
            Node("ambulance", location=Fixed.on_plane(0, 0), **network) as ambulance,
            Node("car", location=Fixed.on_plane(120, 0), **network) as car,
        ):
            sirens = car.subscribe("Siren", where="speed > 10")
            siren = await ambulance.announce("Siren")
            await siren.publish(speed=18.0)
            async for event in sirens:
                return event.content["speed"]

    assert run(asyncio.wait_for(main(), 30)) == 18.0

A node's location comes from a service: `Fixed`, `Gpsd`, `NmeaFile` or `TracePlayback`. With `spool="DIR"`
a node records what happens; `read_spool` reads it. To read the code, start with `node`, then `host`
(runs the machine) and `transport` (packets to datagrams and back).
"""

from earshot.live.gpsd import Gpsd
from earshot.live.location import Fix, Fixed, LocationService
from earshot.live.network import NetworkSettings
from earshot.live.nmea import NmeaFile
from earshot.live.node import FenceCrossing, FenceCrossings, HeardPeer, Node, Publisher, Stream, run
from earshot.live.spool import read_spool
from earshot.live.trace_location import TracePlayback

__all__ = [
    "FenceCrossing",
    "FenceCrossings",
    "Fix",
    "Fixed",
    "Gpsd",
    "HeardPeer",
    "LocationService",
    "NetworkSettings",
    "NmeaFile",
    "Node",
    "Publisher",
    "Stream",
    "TracePlayback",
    "read_spool",
    "run",
]
