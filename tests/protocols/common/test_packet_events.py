"""The events in a packet are found however deep they are: they are what signatures and the memory count."""

from typing import Any

import msgspec

from earshot.events import Event
from earshot.protocols.common.packet_events import _event_fields, events_in
from earshot.wire import Packet

A, B, C = (Event("Ping", id=name) for name in "abc")


class Part(msgspec.Struct, frozen=True):
    number: int
    event: Event | None = None


class Branch(msgspec.Struct, frozen=True):
    event: Event | None = None
    above: "Branch | None" = None


class Parcel(Packet, frozen=True, tag="parcel of the tests"):
    first: Event | None = None
    several: tuple[Event, ...] = ()
    by_name: dict[str, list[Event]] = msgspec.field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    anything: Any = None
    words: tuple[str, ...] = ("not an event",)
    branch: Branch | None = None


def test_events_are_found_in_lists_tables_and_parts_in_the_order_of_the_fields() -> None:
    assert list(events_in(Parcel())) == []
    assert list(events_in(Parcel(first=A, several=(B, C)))) == [A, B, C]
    assert list(events_in(Parcel(by_name={"x": [B], "y": [C, A]}))) == [B, C, A]
    assert list(events_in(Parcel(parts=(Part(1, B), Part(2), Part(3, C))))) == [B, C]
    assert list(events_in(Parcel(anything=[{"deep": (A,)}, "word"], words=("x",)))) == [A]
    assert list(events_in(Parcel(branch=Branch(C)))) == [C]


class Chain(msgspec.Struct, frozen=True):
    name: str
    above: "Chain | None" = None


class Order(Packet, frozen=True, tag="order of the tests"):
    chain: Chain
    branch: Branch | None = None


def test_fields_that_cannot_hold_events_are_not_searched() -> None:
    assert _event_fields(Chain) == ()
    assert _event_fields(Order) == ("branch",)
