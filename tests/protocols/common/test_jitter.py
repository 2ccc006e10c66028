"""Packets that wait: each goes where it was meant to go, and no more wait than the capacity."""

from random import Random

from earshot import Event
from earshot.geometry import Position
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.flooding import Flood, Flooding, FloodingSettings
from earshot.protocols.machine import Broadcast, Drop, FixedLocation, Send, StartTimer

PACKET = Flood(Event("Siren", id="x-0"), 1)


def waiting(jitter_s: float, capacity: int = 8) -> tuple[Flooding, Jitter]:
    machine = Flooding("a", FloodingSettings(), FixedLocation(Position(0.0, 0.0)), Random("a"))
    return machine, Jitter(machine, jitter_s, Random("jitter"), capacity)


def test_without_jitter_a_packet_goes_at_once_to_its_peer_or_to_all() -> None:
    machine, jitter = waiting(0.0)
    jitter.send(PACKET, 1.0, "b")
    jitter.send(PACKET, 1.0)
    assert machine.effects() == [Send("b", PACKET), Broadcast(PACKET)]


def test_a_packet_that_waited_goes_to_its_peer() -> None:
    machine, jitter = waiting(0.5)
    jitter.send(PACKET, 1.0, "b")
    assert machine.effects() == [StartTimer(("jitter", 1), 1.0 + Random("jitter").uniform(0.0, 0.5))]
    jitter.wake(("jitter", 1))
    jitter.wake(("jitter", 1))
    assert machine.effects() == [Send("b", PACKET)]


def test_a_packet_beyond_the_capacity_is_dropped() -> None:
    machine, jitter = waiting(0.5, capacity=1)
    jitter.send(PACKET, 1.0)
    jitter.send(PACKET, 1.0)
    started, dropped = machine.effects()
    assert (isinstance(started, StartTimer), dropped) == (True, Drop("too-many-packets-waiting"))
