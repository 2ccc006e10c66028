"""Hostile hellos: forged places, digests that claim or deny everything. Each costs its neighbours a bounded share."""

from __future__ import annotations

from random import Random

import pytest

from earshot import wire
from earshot.errors import MalformedPacket
from earshot.events import Event
from earshot.geometry import Position
from earshot.protocols.hearsay.machine import MOST_WAITING, Hearsay
from earshot.protocols.hearsay.packets import MAX_DIGEST_BYTES, HearsaySettings, Hello, Said
from earshot.protocols.machine import Broadcast, CancelTimer, Effects, FixedLocation, StartTimer, Timer

SETTINGS = HearsaySettings(range_m=100.0)
FRAME_S = 0.003


class Victim:
    """A machine among liars; its timers are kept, and what it says is counted."""

    def __init__(self) -> None:
        self.machine = Hearsay("v", SETTINGS, FixedLocation(Position(0.0, 0.0)), Random("v"))
        self.timers: dict[Timer, float] = {}
        self.said: list[str] = []
        self.do(self.machine.start(0.0))

    def do(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case StartTimer(name, at):
                    self.timers[name] = at
                case CancelTimer(name):
                    self.timers.pop(name, None)
                case Broadcast(Said(event)):
                    self.said.append(event.id)

    def run(self, until: float) -> None:
        while self.timers:
            name = min(self.timers, key=lambda name: self.timers[name])
            at = self.timers[name]
            if at > until:
                return
            del self.timers[name]
            self.do(self.machine.wake(name, at))

    def hears(self, packet: Hello | Said, sender: str, now: float) -> None:
        self.run(now)
        self.do(self.machine.hear(packet, sender, now))


def hello(x: int, number: int, digest: bytes = b"") -> Hello:
    return Hello(number % 256, (x, 0), (0, 0), 60, 0, 0, 7, digest)


def event(number: int, now: float) -> Event:
    return Event("Siren", id=f"x-{number}", source="x", time=now, lifespan_s=300.0)


def test_digests_that_deny_everything_cost_a_bounded_share_of_the_airtime() -> None:
    victim = Victim()
    for number in range(500):
        victim.hears(Said(event(number, 1.0), 1, (10, 0)), "s", 1.0)
    victim.said.clear()
    for tick in range(600):
        for liar in range(5):
            victim.hears(hello(50, tick), f"liar{tick * 5 + liar}", 10.0 + tick / 10.0)
    victim.run(80.0)
    assert len(victim.said) > 100
    assert len(victim.said) * FRAME_S <= SETTINGS.repair_airtime * (60.0 + 5.0)


def test_one_liar_is_offered_each_event_a_few_times_only() -> None:
    victim = Victim()
    for number in range(10):
        victim.hears(Said(event(number, 1.0), 1, (10, 0)), "s", 1.0)
    victim.said.clear()
    for tick in range(100):
        victim.hears(hello(50, tick), "liar", 10.0 + tick)
    victim.run(120.0)
    assert len(victim.said) == 10 * SETTINGS.repair_tries


def test_a_digest_that_claims_everything_silences_nobody_for_others() -> None:
    victim = Victim()
    victim.hears(hello(90, 1), "honest", 1.0)
    victim.hears(hello(90, 1, b"\xff" * 192), "liar", 1.0)
    victim.hears(Said(event(1, 2.0), 1, (-80, 0)), "s", 2.0)
    victim.hears(hello(90, 2, b"\xff" * 192), "liar", 2.001)
    victim.run(3.0)
    assert victim.said == ["x-1"]


def test_forged_places_make_a_node_speak_at_most_once_an_event() -> None:
    victim = Victim()
    for liar in range(2000):
        victim.hears(hello(60 + liar % 40, 1), f"liar{liar}", 1.0)
    assert len(victim.machine.neighbours) == SETTINGS.neighbour_limit
    for number in range(20):
        victim.hears(Said(event(number, 2.0), 1, (-80, 0)), "s", 2.0)
    victim.run(10.0)
    assert sorted(victim.said) == sorted(f"x-{number}" for number in range(20))


def test_floods_of_events_are_bounded() -> None:
    victim = Victim()
    victim.hears(hello(90, 1), "far", 0.5)
    for number in range(10_000):
        victim.do(victim.machine.hear(Said(event(number, 1.0), 1, (-80, 0)), "liar", 1.0))
    assert len(victim.machine.waiting) <= MOST_WAITING
    assert len(victim.machine.live) <= SETTINGS.memory
    assert victim.machine.live.held_bytes <= SETTINGS.carry_bytes


@pytest.mark.parametrize("time", [float("nan"), float("inf"), -float("inf"), 1e300, -1e300])
def test_absurd_times_do_no_harm(time: float) -> None:
    victim = Victim()
    victim.hears(Said(Event("Siren", id="x", source="x", time=time), 1, (10, 0)), "s", 1.0)
    victim.hears(hello(50, 1), "n", 5.0)
    victim.run(30.0)


@pytest.mark.parametrize(
    "fields",
    [
        [1, [10**9, 0], [0, 0], 4, 0, 0, 7, b""],
        [1, None, [10**7, 0], 4, 0, 0, 7, b""],
        [1, None, [0, 0], 0, 0, 0, 7, b""],
        [1, None, [0, 0], 4, 1 << 16, 0, 7, b""],
        [256, None, [0, 0], 4, 0, 0, 7, b""],
        [1, None, [0, 0], 4, 0, 0, 7, b"x" * (MAX_DIGEST_BYTES + 1)],
    ],
)
def test_impossible_hellos_are_refused_when_decoded(fields: list[object]) -> None:
    good = wire.encode(Hello(1, None, (0, 0), 4, 0, 0, 7, b""))
    assert isinstance(wire.decode(good), Hello)
    with pytest.raises(MalformedPacket):
        wire.decode(good[:1] + wire._encoder.encode(["hi", *fields]))


FARTHEST_M, FASTEST = 100_000_000, 100_000


def decoded(fields: list[object]) -> bool:
    try:
        wire.decode(bytes([wire.WIRE_VERSION]) + wire._encoder.encode(["hi", *fields]))
    except MalformedPacket:
        return False
    return True


@pytest.mark.parametrize(
    ("place", "least", "most"),
    [
        (0, 0, 255),
        (1, [-FARTHEST_M, -FARTHEST_M], [FARTHEST_M, FARTHEST_M]),
        (2, [-FASTEST, -FASTEST], [FASTEST, FASTEST]),
        (3, 1, 0xFFFF),
        (4, 0, 0xFFFF),
        (5, 0, 0xFFFF),
        (6, 0, 255),
    ],
    ids=["number", "at", "velocity", "again_s", "since", "length", "salt"],
)
def test_each_field_of_a_hello_has_these_bounds(place: int, least: object, most: object) -> None:
    def with_it(value: object) -> list[object]:
        fields: list[object] = [1, None, [0, 0], 4, 0, 0, 7, b""]
        fields[place] = value
        return fields

    assert decoded(with_it(least))
    assert decoded(with_it(most))
    for bound, step in ((least, -1), (most, 1)):
        if isinstance(bound, list):
            wrong: list[object] = [[bound[0] + step, bound[1]], [bound[0], bound[1] + step]]
        else:
            assert isinstance(bound, int)
            wrong = [bound + step]
        assert not any(decoded(with_it(one)) for one in wrong)


def test_a_digest_may_have_512_bytes() -> None:
    assert decoded([1, None, [0, 0], 4, 0, 0, 7, b"x" * 512])
    assert not decoded([1, None, [0, 0], 4, 0, 0, 7, b"x" * 513])
