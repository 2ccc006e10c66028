"""Rules 3 and 4: on a busy channel what waits is said together; who is alone holds its events and greets rarely."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest

from earshot.errors import MalformedPacket
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.live.signatures import TrustFile, Verifier
from earshot.live.trust import Refused
from earshot.protocols.common.packet_events import events_in
from earshot.protocols.hearsay.machine import Hearsay
from earshot.protocols.hearsay.packets import (
    MOST_ALSO_SAID,
    AlsoSaid,
    HearsaySettings,
    Hello,
    Said,
    SaidTogether,
)
from earshot.protocols.machine import Broadcast, CancelTimer, Deliver, Effects, FixedLocation, StartTimer
from earshot.wire import Packet, decode, encode, size

SETTINGS = HearsaySettings(range_m=100.0)
ALONE_S = 3.2 * 6.0


class Measured:
    """A channel that is busy for this share of the time."""

    def __init__(self, busy: float = 0.0) -> None:
        self.busy = busy

    def busy_share(self, now: float) -> float:
        return self.busy

    def airtime_s(self, size_bytes: int) -> float:
        return 0.003


def node(busy: float = 0.0, settings: HearsaySettings = SETTINGS) -> Hearsay:
    machine = Hearsay("a", settings, FixedLocation(Position(80.0, 0.0)), Random("a"), Measured(busy))
    machine.start(0.0)
    machine.subscribe(Subscription("a/0", "a", Filter.of_type("CD")), now=0.0)
    return machine


def hello(x: int = 150, number: int = 1) -> Hello:
    return Hello(number, (x, 0), (0, 0), 6, 0, 0, 7, b"")


def event(name: str, source: str = "x", time: float = 10.0, **more: object) -> Event:
    return Event("CD", id=name, source=source, time=time, **more)  # type: ignore[arg-type]


def waiting(a: Hearsay, *events: Event, now: float = 10.0) -> None:
    """These events wait to be said to a neighbour out of the sender's reach."""
    a.hear(hello(), "far", now - 1.0)
    for one in events:
        a.hear(Said(one, 2, (0, 0)), "s", now)
    assert set(a.waiting) == {one.id for one in events}


def packets(effects: Effects) -> list[Packet]:
    return [effect.packet for effect in effects if isinstance(effect, Broadcast)]


# Together.


def test_on_a_busy_channel_what_waits_is_said_in_one_packet_the_most_urgent_first() -> None:
    a = node(busy=0.3)
    first, late, urgent = event("x-0"), event("x-1"), event("x-2", priority=2)
    waiting(a, first, late, urgent)
    assert a.wake(("say", "x-0"), 10.1) == [
        CancelTimer(("say", "x-2")),
        CancelTimer(("say", "x-1")),
        Broadcast(SaidTogether(first, 3, (80, 0), (AlsoSaid(urgent, 3), AlsoSaid(late, 3)))),
    ]
    assert a.waiting == {}
    assert a.wake(("say", "x-1"), 10.2) == []


def test_on_a_quiet_channel_each_event_keeps_its_own_time() -> None:
    a = node(busy=0.25)
    waiting(a, event("x-0"), event("x-1"))
    assert packets(a.wake(("say", "x-0"), 10.1)) == [Said(event("x-0"), 3, (80, 0))]
    assert set(a.waiting) == {"x-1"}


def test_a_packet_of_several_events_has_a_bounded_size() -> None:
    events = [event(f"x-{k}", content={"text": "x" * 100}) for k in range(30)]
    a = node(busy=0.3)
    waiting(a, *events)
    [packet] = packets(a.wake(("say", "x-0"), 10.1))
    assert isinstance(packet, SaidTogether)
    assert 1_400 - 200 < size(packet) <= 1_400
    assert len(a.waiting) == 30 - 1 - len(packet.also)


def test_a_packet_has_a_bounded_number_of_events() -> None:
    a = node(busy=0.3, settings=replace(SETTINGS, together_bytes=1e6))
    waiting(a, *(event(f"x-{k}") for k in range(50)))
    [packet] = packets(a.wake(("say", "x-0"), 10.1))
    assert isinstance(packet, SaidTogether)
    assert len(packet.also) == MOST_ALSO_SAID
    with pytest.raises(MalformedPacket):
        decode(encode(msgspec.structs.replace(packet, also=(*packet.also, packet.also[0]))))


def test_with_no_bytes_for_it_each_event_goes_alone() -> None:
    a = node(busy=0.3, settings=replace(SETTINGS, together_bytes=0.0))
    waiting(a, event("x-0"), event("x-1"))
    assert packets(a.wake(("say", "x-0"), 10.1)) == [Said(event("x-0"), 3, (80, 0))]


def test_a_nodes_own_events_share_no_packet_with_those_of_others() -> None:
    """Hosts see by a packet's first event whether it passes on what others published: a silent node does not."""
    a = node(busy=0.3)
    a.hear(hello(), "far", 8.0)
    a.publish(event("a-0", source="a", time=8.5), 8.5)
    waiting(a, event("x-0"), event("x-1"))
    a.hear(hello(number=2), "far", 10.0)
    assert set(a.waiting) == {"x-0", "x-1", "a-0"}
    assert packets(a.wake(("say", "a-0"), 10.1)) == [Said(event("a-0", source="a", time=8.5), 1, (80, 0))]
    assert set(a.waiting) == {"x-0", "x-1"}
    a.hear(hello(number=3), "far", 10.2)
    assert "a-0" in a.waiting
    [packet] = packets(a.wake(("say", "x-0"), 10.3))
    assert [one.id for one in events_in(packet)] == ["x-0", "x-1"]


def test_events_that_have_ended_are_not_taken_along() -> None:
    a = node(busy=0.3)
    waiting(a, event("x-0"), event("x-1", lifespan_s=0.05))
    assert packets(a.wake(("say", "x-0"), 10.1)) == [Said(event("x-0"), 3, (80, 0))]


def test_each_event_of_a_packet_is_heard_like_one_that_came_alone() -> None:
    together = SaidTogether(event("x-0"), 2, (0, 0), (AlsoSaid(event("x-1"), 5),))
    a, b = node(), node()
    for machine in (a, b):
        machine.hear(hello(), "far", 9.0)
    effects = a.hear(together, "s", 10.0)
    assert effects == [
        *b.hear(Said(event("x-0"), 2, (0, 0)), "s", 10.0),
        *b.hear(Said(event("x-1"), 5, (0, 0)), "s", 10.0),
    ]
    assert [(one.event.id, one.hops) for one in effects if isinstance(one, Deliver)] == [("x-0", 2), ("x-1", 5)]
    again = SaidTogether(event("x-1"), 2, (150, 0), (AlsoSaid(event("x-0"), 5),))
    assert a.hear(again, "far", 10.01) == [CancelTimer(("say", "x-1")), CancelTimer(("say", "x-0"))]


def test_a_packet_of_several_events_survives_the_wire_and_shows_all_of_them_to_the_host() -> None:
    together = SaidTogether(event("x-0"), 2, (0, 0), (AlsoSaid(event("x-1"), 5), AlsoSaid(event("x-2"), 1)))
    assert decode(encode(together)) == together
    assert [one.id for one in events_in(together)] == ["x-0", "x-1", "x-2"]


def test_a_packet_is_refused_if_one_of_its_events_lacks_its_signature() -> None:
    signed = Verifier(require_signed=False)
    signed.check_packet(SaidTogether(event("x-0"), 2, (0, 0), (AlsoSaid(event("y-0", source="y"), 5),)), "s", 10.0)
    demanding = Verifier(trust=TrustFile({"y": {b"k" * 32: 1e12}}))
    for events in ((event("x-0"), event("y-0", source="y")), (event("y-0", source="y"), event("x-0"))):
        with pytest.raises(Refused, match="not-signed"):
            demanding.check_packet(SaidTogether(events[0], 2, (0, 0), (AlsoSaid(events[1], 5),)), "s", 10.0)


# Alone.


def test_who_is_alone_holds_its_event_and_says_it_when_somebody_greets() -> None:
    a = node()
    mine = event("a-0", source="a", time=30.0)
    assert packets(a.publish(mine, 30.0)) == []
    a.hear(hello(), "far", 30.1)
    assert "a-0" in a.waiting
    assert packets(a.wake(("say", "a-0"), 30.2)) == [Said(mine, 1, (80, 0))]


@pytest.mark.parametrize(("now", "said"), [(ALONE_S - 0.1, 1), (ALONE_S + 0.1, 0)])
def test_a_node_is_alone_when_it_would_have_heard_of_a_neighbour(now: float, said: int) -> None:
    assert len(packets(node().publish(event("a-0", source="a", time=now), now))) == said


@pytest.mark.parametrize("heard", [hello(), Said(event("x-0", time=29.0), 1, (0, 0))])
def test_who_has_heard_somebody_lately_says_its_event_at_once(heard: Packet) -> None:
    a = node()
    a.hear(heard, "s", 29.0)
    assert len(packets(a.publish(event("a-0", source="a", time=30.0), 30.0))) == 1


def test_on_a_slow_radio_it_takes_longer_to_be_alone() -> None:
    """At 50 kb/s hellos become rarer in a crowd: silence tells less."""
    channel = Measured()
    channel.airtime_s = lambda size_bytes: 8 * size_bytes / 50_000.0  # type: ignore[method-assign]
    a = Hearsay("a", SETTINGS, FixedLocation(), Random("a"), channel)
    assert a.alone_s == pytest.approx(3.2 * 13 * (216 * 8 / 50_000.0) / 0.02)


def test_who_is_alone_greets_rarely_and_not_for_its_drift_unless_it_holds_events() -> None:
    a = node()
    a.wake("check", 30.0)
    assert 30.0 + 3.0 * 0.8 * 6.0 <= a.hello_due <= 30.0 + 3.0 * 1.2 * 6.0
    assert a.drifted_m(30.0) == 0.0
    a.location = FixedLocation(Position(180.0, 0.0))
    assert packets(a.wake("check", 31.0)) == []
    a.publish(event("a-0", source="a", time=31.0), 31.0)
    assert a.hello_due <= 31.0 + 6.0
    a.late_share = 1.0
    a.wake("check", a.hello_due)
    assert 0.8 * 6.0 <= a.hello_due - 37.0 <= 1.2 * 6.0


def test_who_was_alone_answers_the_first_that_it_hears_with_a_hello() -> None:
    a = node()
    a.wake("check", 30.0)
    effects = a.hear(hello(), "b", 31.0)
    [check] = [one for one in effects if isinstance(one, StartTimer)]
    assert check.name == "check"
    assert 31.0 <= check.at <= 31.5
    assert any(isinstance(packet, Hello) for packet in packets(a.wake("check", check.at)))
    assert a.hear(hello(number=2), "b", 31.6) == []
