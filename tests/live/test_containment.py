"""One hostile packet never reaches the application, and never ends a process."""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from desk import Desk, acquainted, taken, until
from packets import packet, packet_classes

from earshot import wire
from earshot.errors import MalformedPacket, UsageError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.catalogue import PROTOCOLS, build_settings
from earshot.protocols.flooding import Flood, Flooding
from earshot.protocols.georendezvous.cell_hash_routing import Heading
from earshot.protocols.georendezvous.rendezvous_table import Subscribe
from earshot.protocols.machine import Announcement, Broadcast, Effects, FixedLocation, Send, StartTimer
from earshot.wire import Packet


def unbounded(kind: Any, path: str) -> Iterator[str]:
    """The texts and whole numbers in a declared type that have no bounds."""
    inspect = msgspec.inspect
    match kind:
        case inspect.StrType(max_length=None) | inspect.IntType(le=None) | inspect.IntType(ge=None):
            yield path
        case inspect.StructType() | inspect.DataclassType() | inspect.NamedTupleType():
            # An event's content may be any text: the packet's size bounds it.
            free = ("content",) if getattr(kind, "cls", None) is Event else ()
            for field in kind.fields:
                if field.name not in free:
                    yield from unbounded(field.type, f"{path}.{field.name}")
        case inspect.UnionType():
            for one in kind.types:
                yield from unbounded(one, path)
        case inspect.TupleType():
            for one in kind.item_types:
                yield from unbounded(one, path)
        case inspect.VarTupleType() | inspect.ListType():
            yield from unbounded(kind.item_type, path)
        case inspect.DictType():
            yield from unbounded(kind.key_type, path)
            yield from unbounded(kind.value_type, path)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_every_text_and_number_on_the_wire_has_bounds(protocol: str) -> None:
    classes = packet_classes(protocol)
    assert classes
    found = [one for cls in classes for one in unbounded(msgspec.inspect.type_info(cls), cls.__name__)]
    assert found == [], "declare them as wire.Word, NodeName, FilterText or Whole"


@pytest.mark.parametrize("hops", [2**63, 2**64 - 1, 2**62 + 1, -(2**63)])
def test_a_number_that_could_not_be_passed_on_is_refused_when_it_arrives(hops: int) -> None:
    with pytest.raises(MalformedPacket):
        wire.decode(wire.encode(Flood(Event("Siren", id="1"), hops)))


@pytest.mark.parametrize("event", [Event("Siren", id="i" * 257), Event("Siren", source="s" * 257), Event("t" * 257)])
def test_a_long_id_name_or_type_is_refused_when_it_arrives(event: Event) -> None:
    with pytest.raises(MalformedPacket):
        wire.decode(wire.encode(Flood(event, 1)))


def test_a_subscription_without_an_owner_is_refused() -> None:
    nobody = Subscribe(Heading((0, 0)), 0, "Siren", 0, "", (0, 0), 0.0, 1e9)
    with pytest.raises(MalformedPacket):
        wire.decode(wire.encode(nobody))


def test_a_rendezvous_cell_that_routes_to_itself_ends() -> None:
    """What the decoder refuses now, handed to the machine: a publisher routed to itself until Python gave up."""
    protocol = PROTOCOLS["georendezvous"]
    node = protocol("a", build_settings(protocol.Settings, {"burst_packets": 0}), FixedLocation(), Random(1))
    node.start(0.0)
    for second in range(4):
        node.wake("beacon", float(second))
        node.wake("listened", float(second))
    node.announce(Announcement(EventType("Siren")), 4.0)
    for index in range(node.settings.rendezvous):
        cell = node.target(("Siren", index))  # type: ignore[attr-defined]
        node.hear(Subscribe(Heading(cell), 0, "Siren", index, "", cell, 4.0, 1e9), "m", 4.0)
    node.publish(Event("Siren", {"n": 1}, id="1", source="a", time=5.0), 5.0)


class Poisoned(Flooding):
    """A machine that fails in every entry point once it has heard anything."""

    poisoned = False
    beacons = 0

    def start(self, now: float) -> Effects:
        return [StartTimer("beacon", now + 0.01)]

    def fail(self) -> None:
        if self.poisoned:
            raise RecursionError("routed to itself")

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        self.poisoned = True
        return super().hear(packet, sender, now)

    def publish(self, event: Event, now: float) -> Effects:
        self.fail()
        return super().publish(event, now)

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.fail()
        return super().subscribe(subscription, now)

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        self.fail()
        return super().unsubscribe(subscription, now)

    def announce(self, announcement: Announcement, now: float) -> Effects:
        self.fail()
        if announcement.event_type.subject == "Wrong":
            raise UsageError("the application's own mistake")
        return super().announce(announcement, now)

    def unannounce(self, subject: str, now: float) -> Effects:
        self.fail()
        return super().unannounce(subject, now)

    def wake(self, timer: Any, now: float) -> Effects:
        type(self).beacons += 1
        self.fail()
        return [StartTimer("beacon", now + 0.01)]


def test_what_peers_break_in_a_machine_is_counted_and_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.live.host.TIMER_AGAIN_S", 0.01)

    async def run() -> None:
        desk = Desk()
        victim = desk.node("victim")
        arguments = list(victim._make_host.args)
        arguments[1] = Poisoned
        victim._make_host = type(victim._make_host)(victim._make_host.func, *arguments)
        async with desk.node("a") as a, victim:
            await acquainted(a, victim)
            with pytest.raises(UsageError, match="own mistake"):
                await victim.announce("Wrong")
            await (await a.announce("Siren")).publish(n=1)
            await until(lambda: victim.host.machine.poisoned)  # type: ignore[attr-defined]
            bell = await victim.announce("Bell")
            await bell.publish(n=1)
            await bell.unannounce()
            victim.subscribe("Siren").close()
            assert victim.drops["machine-failure"] >= 5
            seen = Poisoned.beacons
            await until(lambda: Poisoned.beacons > seen + 3)

    asyncio.run(run())


def test_repeated_texts_in_one_packet_are_counted_once() -> None:
    from earshot.protocols.siena.machine import Connect, Place, Unsubscribe
    from earshot.protocols.siena.machine import Subscribe as Wanted

    siena = PROTOCOLS["siena"]
    node = siena("a", build_settings(siena.Settings, {}), FixedLocation(), Random(1))
    node.start(0.0)
    node.hear(Place(True, ""), "control", 0.0)
    node.hear(Connect(False), "b", 0.0)
    node.hear(Wanted(1, ("Siren", "Siren")), "b", 0.0)
    node.hear(Unsubscribe(2, ("Siren", "Siren")), "b", 0.0)
    assert len(node.texts) == 0  # type: ignore[attr-defined]


def test_a_velocity_past_all_bounds_is_survived() -> None:
    from earshot.geometry import Position, Velocity
    from earshot.protocols.content_odmrp.machine import link_lifetime_s

    fast = Velocity(1e200, -1e300)
    assert link_lifetime_s(Position(0, 0), fast, Position(1, 2), Velocity(0, 0), 100.0) >= 0.0


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_no_packet_that_decodes_breaks_a_machine(protocol: str) -> None:
    """Random packets of every class, through the machine alone: it raises nothing, and all it sends can be encoded."""
    machine, random = PROTOCOLS[protocol], Random(protocol)
    node = machine("target", build_settings(machine.Settings, {}), FixedLocation(), Random(1))
    now = 1.8e9
    timers: dict[Any, float] = {}

    def carry_out(effects: Effects) -> None:
        for effect in effects:
            match effect:
                case StartTimer(name, at):
                    timers[name] = at
                case Broadcast(sent) | Send(_, sent):
                    wire.encode(sent)

    carry_out(node.start(now))
    carry_out(node.announce(Announcement(EventType("Siren")), now))
    carry_out(node.subscribe(Subscription("s1", "target", Filter.parse("Siren: speed > 10")), now))
    classes = packet_classes(protocol)
    for number in range(2000):
        now += 0.002
        heard = wire.decode(wire.encode(packet(random, random.choice(classes))))
        carry_out(node.hear(heard, random.choice(("m0", "m1", "m2", "a", f"x{number}")), now))
        if number % 50 == 0:
            carry_out(node.publish(Event("Siren", {"speed": 12.0}, f"target-{number}", "target", time=now), now))
            carry_out(node.unreachable(heard, "m1", now))
            for timer in [timer for timer, at in timers.items() if at <= now]:
                del timers[timer]
                carry_out(node.wake(timer, now))
    carry_out(node.stop(now))


def test_a_clock_that_is_set_back_costs_seconds(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        import time

        desk = Desk()
        ahead_s = [3600.0]
        late = desk.node("late", clock=lambda: time.time() + ahead_s[0])
        async with desk.node("a") as a, late:
            await acquainted(a, late)
            wanted = late.subscribe("Bell")
            ahead_s[0] = 0.0
            late.host.now()
            bell = await a.announce("Bell")
            await until(lambda: "set back by 3,600 s" in caplog.text)
            sent = await bell.publish(n=1)
            assert await taken(wanted, 1) == [sent]
            assert len(late.peers()) == 1

    asyncio.run(run())
