"""Protocols without I/O: each is a machine that takes what happened and returns effects.

A protocol is a class with entry points (`subscribe`, `publish`, `hear`, `wake`, ...) and without a
clock, a socket or a thread. Each entry point takes what happened and the time, and returns effects:
what the host is to do. The same machine runs in the simulator, in a live node and on a `Tabletop`:

    from random import Random

    from earshot import Event, Filter
    from earshot.protocols import FixedLocation, Subscription, Tabletop, build_settings, protocol

    Flooding = protocol("flooding")
    settings = build_settings(Flooding.Settings, {"hop_limit": 3})
    nodes = [Flooding(name, settings, FixedLocation(), Random(name)) for name in ("ann", "bob", "eve")]
    table = Tabletop(nodes, links=[("ann", "bob"), ("bob", "eve")])
    table.do("eve", "subscribe", Subscription("s", "eve", Filter.where("speed > 10")))
    table.do("ann", "publish", Event("Siren", {"speed": 18}, id="ann-0", source="ann"))
    table.run(until=1.0)
    assert table.delivered == [("eve", "ann-0", "s")]

To write a protocol, derive from `Machine`, override the entry points that matter, and call its verbs
(`broadcast`, `send`, `start_timer`, `deliver`, `drop`): examples/write_a_protocol.py does it in 50
lines. To read one, start with `flooding`, then with a paper's folder, for example `steam/machine.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from earshot.filters import Subscription
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, RecentKeys
from earshot.protocols.machine import (
    NOTHING,
    QUIET_CHANNEL,
    Announcement,
    Broadcast,
    CancelTimer,
    Channel,
    Deliver,
    Drop,
    Effects,
    FixedLocation,
    JoinGroup,
    LeaveGroup,
    Location,
    Machine,
    Note,
    Send,
    StartTimer,
    Timer,
)
from earshot.protocols.tabletop import Tabletop
from earshot.records import DropReason
from earshot.wire import Packet

if TYPE_CHECKING:
    from earshot.protocols.catalogue import PROTOCOLS, build_settings, protocol
    from earshot.protocols.conformance import PROPERTIES, check_property

__all__ = [
    "NOTHING",
    "PROPERTIES",
    "PROTOCOLS",
    "QUIET_CHANNEL",
    "Announcement",
    "Broadcast",
    "CancelTimer",
    "Channel",
    "Deliver",
    "Drop",
    "DropReason",
    "Effects",
    "FixedLocation",
    "JoinGroup",
    "LeaveGroup",
    "LocalSubscriptions",
    "Location",
    "Machine",
    "Note",
    "Packet",
    "RecentKeys",
    "Send",
    "StartTimer",
    "Subscription",
    "Tabletop",
    "Timer",
    "build_settings",
    "check_property",
    "protocol",
]


def __getattr__(name: str) -> Any:
    """The catalogue imports every protocol, so it is imported when one of its names is first used."""
    if name in ("PROTOCOLS", "build_settings", "protocol"):
        import earshot.protocols.catalogue as catalogue

        return getattr(catalogue, name)
    if name in ("PROPERTIES", "check_property"):
        import earshot.protocols.conformance as conformance

        return getattr(conformance, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
