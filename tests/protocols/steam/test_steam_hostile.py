"""STEAM: no packet of a peer raises an error or makes a table grow without bound."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from earshot import Circle, Ellipse, Event, EventType, Filter, Position, Proximity, Rectangle
from earshot.errors import MalformedPacket
from earshot.filters import Subscription
from earshot.geometry import Area
from earshot.protocols.machine import Announcement, Deliver, FixedLocation
from earshot.protocols.steam.machine import Steam
from earshot.protocols.steam.packets import (
    Advert,
    ProximityBeacon,
    ProximityQuestion,
    Raised,
    Recovered,
    RecoveryRequest,
    SteamSettings,
)
from earshot.wire import decode, encode

MANY = 3000 if os.environ.get("EARSHOT_TEST_SIZE") == "long" else 150
SMALL = replace(SteamSettings(), proximity_limit=8, announcement_limit=4, seen_limit=16, cache_size=4)
HERE = Position(0.0, 0.0)

floats = st.floats()
sizes = st.floats(min_value=1e-300, max_value=1e308)
places = st.builds(Position, floats, floats)
numbers = st.integers(-(2**63), 2**63 - 1)
names = st.sampled_from(["n", "p", "q", "", "x" * 300])
subjects = st.sampled_from(["Siren", "News", "", "y" * 5000])
shapes = st.one_of(
    st.builds(Circle, sizes, places),
    st.builds(Ellipse, sizes, sizes, st.floats(0, 360)),
    st.builds(Rectangle, sizes, sizes),
)
proximities = st.none() | st.builds(Proximity, shapes, places, st.booleans())
contents = st.dictionaries(st.text(max_size=3), st.sampled_from(["float", "string", "nonsense"]), max_size=2)
adverts = st.builds(
    Advert, names, subjects, contents, contents, proximities, places, floats, numbers, st.booleans(), numbers, numbers,
    floats, numbers, floats, floats,
)  # fmt: skip
events = st.builds(
    Event,
    type=st.sampled_from(["Siren", "News"]),
    content=st.dictionaries(st.text(max_size=3), floats | st.text(max_size=3), max_size=2),
    id=st.text(max_size=3) | st.just("z" * 1000),
    source=names,
    position=st.none() | places,
    time=floats,
    area=st.none() | st.builds(Area, shapes, places),
    lifespan_s=st.none() | floats,
)
groups = numbers
routes = st.lists(names, max_size=40).map(tuple)
packets = st.one_of(
    st.builds(ProximityBeacon, st.lists(adverts, max_size=4).map(tuple)),
    st.builds(ProximityQuestion, places, st.lists(subjects, max_size=4).map(tuple)),
    st.builds(Raised, events, groups, floats, numbers, st.booleans(), numbers),
    st.builds(RecoveryRequest, names, subjects, floats, st.lists(numbers, max_size=6).map(tuple), floats, routes),
    st.builds(Recovered, events, floats, numbers, numbers, routes, numbers),
)


def node() -> Steam:
    machine = Steam("n", SMALL, FixedLocation(HERE), Random(1))
    machine.subscribe(Subscription("s", "n", Filter.where("true")), 0.0)
    machine.announce(Announcement(EventType("Siren"), Proximity(Circle(100), HERE)), 0.0)
    machine.publish(Event("Siren", id="n:1", source="n", time=0.0), 0.0)
    return machine


@settings(max_examples=MANY, deadline=None)
@given(st.lists(packets, min_size=1, max_size=30))
def test_no_packet_makes_a_node_raise_or_grow(
    heard: list[ProximityBeacon | ProximityQuestion | Raised | RecoveryRequest | Recovered],
) -> None:
    machine = node()
    now = 0.0
    for packet in heard:
        now += 0.3
        try:
            arrived = decode(encode(packet))
        except MalformedPacket:
            continue
        machine.hear(arrived, "p", now)
        for event in list(machine.forwarding):
            machine.wake(("forward", event), now)
        machine.wake("onward", now)
        machine.wake("round", now)
        for producer, subject in list(machine.recovery.recovering):
            machine.wake(("recover", producer, subject), now)
    assert len(machine.relevant) <= 8
    assert len(machine.recent_events) <= 16
    assert len(machine.recovery.recent_answers) <= 16
    assert len(machine.gathered) <= 8
    assert all(len(key[0]) <= 256 and len(key[1]) <= 4096 for key in machine.relevant.by_key)


def test_honest_events_come_through_a_flood_of_strange_ones() -> None:
    machine = node()
    machine.stop(0.1)
    machine = Steam("n", SMALL, FixedLocation(HERE), Random(1))
    machine.subscribe(Subscription("s", "n", Filter.of_type("Siren")), 0.0)
    producer = Steam("p", SMALL, FixedLocation(HERE), Random(2))
    (_, beacon) = producer.announce(Announcement(EventType("Siren"), Proximity(Circle(100), HERE)), 0.0)
    machine.hear(beacon.packet, "p", 0.1)  # type: ignore[union-attr]
    group = next(iter(machine.relevant.groups))
    for number in range(1000):
        machine.hear(Raised(Event("Junk", id=f"x:{number}", source="x"), group, 0.0, number, True), "x", 0.2)
    (raised,) = producer.publish(Event("Siren", id="p:1", source="p", time=0.3), 0.3)
    assert [type(effect) for effect in machine.hear(raised.packet, "p", 0.3)] == [Deliver]  # type: ignore[union-attr]
