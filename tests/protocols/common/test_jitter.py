"""Packets that wait: each goes where it was meant to go, and no more wait than the capacity."""

from random import Random

from earshot import Event
from earshot.protocols.common.jitter import Jitter
from earshot.protocols.flooding import Flood
from earshot.protocols.machine import Broadcast, Drop, Send, StartTimer

PACKET = Flood(Event("Siren", id="x-0"), 1)


def waiting(jitter_s: float, capacity: int = 8) -> Jitter:
    return Jitter(jitter_s, Random("jitter"), capacity)


def test_without_jitter_a_packet_goes_at_once_to_its_peer_or_to_all() -> None:
    jitter = waiting(0.0)
    assert jitter.send(PACKET, 1.0, "b") == Send("b", PACKET)
    assert jitter.send(PACKET, 1.0) == Broadcast(PACKET)


def test_a_packet_that_waited_goes_to_its_peer() -> None:
    jitter = waiting(0.5)
    started = jitter.send(PACKET, 1.0, "b")
    assert started == StartTimer(("jitter", 1), 1.0 + Random("jitter").uniform(0.0, 0.5))
    assert jitter.wake(("jitter", 1)) == [Send("b", PACKET)]
    assert jitter.wake(("jitter", 1)) == []


def test_a_packet_beyond_the_capacity_is_dropped() -> None:
    jitter = waiting(0.5, capacity=1)
    assert isinstance(jitter.send(PACKET, 1.0), StartTimer)
    assert jitter.send(PACKET, 1.0) == Drop("too-many-packets-waiting")
