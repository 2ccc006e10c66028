"""Live: the machines of `earshot.protocols` between real hosts."""

from earshot.live.gpsd import Gpsd
from earshot.live.location import Fix, Fixed, LocationService
from earshot.live.network import NetworkSettings
from earshot.live.nmea import NmeaFile
from earshot.live.node import Node, Publisher, Stream, run
from earshot.live.trace import TracePlayback

__all__ = [
    "Fix",
    "Fixed",
    "Gpsd",
    "LocationService",
    "NetworkSettings",
    "NmeaFile",
    "Node",
    "Publisher",
    "Stream",
    "TracePlayback",
    "run",
]
