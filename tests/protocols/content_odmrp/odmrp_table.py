"""Tabletops of ODMRP nodes, plain and extended, with the paper's events and subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import msgspec

from earshot import Event, Filter, Position
from earshot.filters import Subscription
from earshot.geometry import ORIGIN, STILL, Velocity
from earshot.protocols.content_odmrp.machine import ContentOdmrp, ContentOdmrpSettings
from earshot.protocols.content_odmrp.odmrp import Odmrp, OdmrpSettings
from earshot.protocols.machine import FixedLocation
from earshot.protocols.tabletop import Tabletop
from earshot.wire import tag_of

FIGURE_3 = {
    "R1": '/CD[category="jazz"][composer="Evans"]',
    "R2": '/CD[category="jazz"][composer="Davis"]',
    "R3": '/CD[category="pop"]',
    "R4": '/CD[category="classic"][composer="Bach"]',
    "R5": '/CD[category="classic" and price<"20"]',
}
FIGURE_2 = [("jazz", "Evans", 18.0), ("jazz", "Davis", 10.0), ("classic", "Bach", 22.0)]
TREE = [("S", "N1"), ("S", "N2"), ("N1", "R1"), ("N1", "R2"), ("N2", "R3"), ("N2", "N3"), ("N3", "R4"), ("N3", "R5")]


def cd(number: int, source: str = "S", time: float = 0.0) -> Event:
    """The number-th of figure 2's events, over and over."""
    category, composer, price = FIGURE_2[number % 3]
    content = {"category": category, "composer": composer, "price": price}
    return Event(type="CD", content=content, id=f"{source}-{number}", source=source, time=time)


def plain(node: str, **settings: Any) -> Odmrp:
    return Odmrp(node, OdmrpSettings(**{"jitter_s": 0.0, **settings}), FixedLocation(), Random(node))


def extended(node: str, at: Position = ORIGIN, moving: Velocity = STILL, **settings: Any) -> ContentOdmrp:
    """A node that builds routes from its first event on."""
    made = ContentOdmrpSettings(**{"jitter_s": 0.0, "spare_slow_sources": False, **settings})
    return ContentOdmrp(node, made, FixedLocation(at, moving), Random(node))


def table(make: Any, links: Iterable[tuple[str, str]], wanted: Mapping[str, str], **settings: Any) -> Tabletop:
    """Nodes of one kind, linked, each with at most one subscription."""
    pairs = list(links)
    names = sorted({name for pair in pairs for name in pair})
    top = Tabletop([make(name, **settings) for name in names], pairs)
    for node, text in wanted.items():
        subscribe(top, node, text)
    return top


def subscribe(top: Tabletop, node: str, text: str) -> None:
    top.do(node, "subscribe", Subscription(f"{node}/1", node, Filter.parse(text)))


def publish(top: Tabletop, event: Event) -> None:
    """Publish now, stamped with the time."""
    top.do(event.source, "publish", msgspec.structs.replace(event, time=top.now))


def sent(top: Tabletop) -> list[tuple[str, str]]:
    """Who sent what kind of packet, without the protocol's name."""
    return [(node, tag_of(packet).removeprefix("content-").removeprefix("odmrp-")) for node, packet in top.sent]
