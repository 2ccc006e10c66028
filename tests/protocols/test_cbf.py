"""Contention-based forwarding: who is farthest speaks first, who hears it again falls silent."""

import heapq
import math
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position
from earshot.protocols.cbf import Cbf, CbfSettings, Forwarded
from earshot.protocols.machine import NOTHING, Broadcast, CancelTimer, Deliver, Drop, FixedLocation, StartTimer
from earshot.protocols.tabletop import Tabletop

SETTINGS = CbfSettings(range_m=100.0)
EVENT = Event(type="CD", id="x-0", source="x", time=1.0, position=Position(0.0, 0.0))
FAR = Area(Circle(50.0), Position(1000.0, 0.0))


def node(x_m: float, y_m: float = 0.0, settings: CbfSettings = SETTINGS, name: str = "a") -> Cbf:
    machine = Cbf(name, settings, FixedLocation(Position(x_m, y_m)), Random(name))
    assert machine.subscribe(Subscription(f"{name}/s", name, Filter.of_type("CD")), now=0.0) is NOTHING
    return machine


def towards(area: Area | None, hops: int = 1, from_x_m: float = 0.0) -> Forwarded:
    event = Event(type="CD", id="x-0", source="x", time=1.0, area=area)
    return Forwarded(event, hops, Position(from_x_m, 0.0))


def wait_s(machine: Cbf, packet: Forwarded) -> float | None:
    """How long the machine waits with a packet that it hears first; None if it does not pass it on."""
    starts = [effect for effect in machine.hear(packet, "b", 2.0) if isinstance(effect, StartTimer)]
    return starts[0].at - 2.0 if starts else None


@pytest.mark.parametrize(("x_m", "wait"), [(0.0, 0.1), (50.0, 0.0505), (100.0, 0.001), (140.0, 0.001)])
def test_inside_its_area_an_event_waits_by_the_distance_to_the_sender(x_m: float, wait: float) -> None:
    assert wait_s(node(x_m), towards(None)) == pytest.approx(wait)
    assert wait_s(node(x_m), towards(Area(Circle(500.0), Position(0.0, 0.0)))) == pytest.approx(wait)


@pytest.mark.parametrize(
    ("x_m", "y_m", "progress_m"),
    [(60.0, 0.0, 60.0), (0.0, 60.0, None), (0.0, 0.0, None), (-10.0, 0.0, None), (40.0, 30.0, 39.53138)],
)
def test_outside_its_area_an_event_waits_by_its_progress(x_m: float, y_m: float, progress_m: float | None) -> None:
    machine = node(x_m, y_m)
    expected = None if progress_m is None else pytest.approx(0.1 - 0.099 * progress_m / 100.0, abs=1e-6)
    assert wait_s(machine, towards(FAR)) == expected
    assert len(machine.waiting) == (progress_m is not None)


def test_half_a_metre_nearer_to_its_area_is_enough_to_pass_an_event_on() -> None:
    """It waits for 0.1 s, less half a hundredth of 0.099 s."""
    assert wait_s(node(0.5), towards(FAR)) == pytest.approx(0.099505)


def test_an_event_that_was_inside_its_area_is_not_carried_out_of_it() -> None:
    machine = node(930.0)
    assert Drop("not-nearer", "x-0") in machine.hear(towards(FAR, from_x_m=960.0), "b", 2.0)


def test_the_event_is_passed_on_when_the_wait_ends() -> None:
    machine = node(100.0)
    delivered, started = machine.hear(Forwarded(EVENT, 3, Position(0.0, 0.0)), "b", 2.0)
    assert delivered == Deliver(EVENT, "a/s", 3)
    assert isinstance(started, StartTimer)
    assert machine.wake(started.name, started.at) == [Broadcast(Forwarded(EVENT, 4, Position(100.0, 0.0)))]
    assert machine.wake(started.name, started.at) == []


def test_hearing_it_again_while_waiting_ends_the_wait_and_later_copies_cost_a_look_up() -> None:
    machine = node(100.0)
    machine.hear(Forwarded(EVENT, 1, Position(0.0, 0.0)), "b", 2.0)
    timer = ("pass on", "x-0")
    again = Forwarded(EVENT, 2, Position(90.0, 0.0))
    assert machine.hear(again, "c", 2.0005) == [CancelTimer(timer), Drop("passed-on-by-another", "x-0")]
    assert machine.hear(again, "d", 2.0006) is NOTHING
    assert machine.wake(timer, 2.001) == []


def test_an_event_that_is_no_longer_wanted_is_only_passed_on() -> None:
    machine = node(100.0)
    assert machine.unsubscribe("a/s", 1.0) is NOTHING
    effects = machine.hear(Forwarded(EVENT, 1, Position(0.0, 0.0)), "b", 2.0)
    assert effects == [StartTimer(("pass on", "x-0"), pytest.approx(2.001))]


def test_a_publisher_sends_at_once_and_ignores_the_echo() -> None:
    machine = node(10.0)
    assert machine.publish(EVENT, 1.0) == [Broadcast(Forwarded(EVENT, 1, Position(10.0, 0.0)))]
    assert machine.hear(Forwarded(EVENT, 2, Position(80.0, 0.0)), "b", 1.1) is NOTHING


def test_old_events_and_events_from_too_far_are_not_passed_on() -> None:
    assert machine_drops(node(100.0), hops=1, now=62.0) == ["expired"]
    assert machine_drops(node(100.0), hops=10, now=2.0) == ["hop-limit"]


def machine_drops(machine: Cbf, hops: int, now: float) -> list[str]:
    effects = machine.hear(Forwarded(EVENT, hops, Position(0.0, 0.0)), "b", now)
    return [str(effect.reason) for effect in effects if isinstance(effect, Drop)]


def test_the_packets_that_wait_are_bounded() -> None:
    machine = node(50.0, settings=CbfSettings(range_m=100.0, memory=8))
    drops = 0
    for k in range(20):
        event = Event(type="CD", id=f"x-{k}", source="x", time=1.0)
        effects = machine.hear(Forwarded(event, 1, Position(0.0, 0.0)), "b", 2.0)
        drops += Drop("too-many-packets-waiting", event.id) in effects
    assert len(machine.waiting) == len(machine.heard) == 8
    assert drops == 12


@given(st.floats(), st.floats())
def test_a_sender_that_lies_about_its_place_changes_a_wait_within_its_bounds(x_m: float, y_m: float) -> None:
    found = wait_s(node(50.0), Forwarded(EVENT, 1, Position(x_m, y_m)))
    assert found is None or 0.001 - 1e-9 <= found <= 0.1 + 1e-9


Places = dict[str, tuple[float, float]]


def reference(places: Places, source: str, range_m: float, delay_s: float) -> tuple[int, set[str]]:
    """The rules again, without a machine: how many transmissions one event takes, and who hears it."""
    linked = {a: sorted(b for b in places if b != a and math.dist(places[a], places[b]) <= range_m) for a in places}
    numbers = count()
    queue = [(0.0, next(numbers), "send", source, source, 1)]
    heard, silent, sent = {source}, {source}, 0
    while queue:
        now, _, what, at, sender, hops = heapq.heappop(queue)
        if what == "send" and (at == source or at not in silent):
            silent.add(at)
            sent += 1
            for peer in linked[at]:
                heapq.heappush(queue, (now + delay_s, next(numbers), "hear", peer, at, hops))
        elif what == "hear" and at in heard:
            silent.add(at)
        elif what == "hear":
            heard.add(at)
            if hops < 10:
                wait = 0.1 - 0.099 * math.dist(places[at], places[sender]) / range_m
                heapq.heappush(queue, (now + wait, next(numbers), "send", at, sender, hops + 1))
    return sent, heard


def line(nodes: int) -> Places:
    random = Random("line")
    return {f"n{k:03}": (k * 30.0 + random.uniform(-10.0, 10.0), 0.0) for k in range(nodes)}


def grid(side: int) -> Places:
    random = Random("grid")
    places = [(x * 40.0, y * 40.0) for x in range(side) for y in range(side)]
    return {f"n{k:03}": (x + random.uniform(-9, 9), y + random.uniform(-9, 9)) for k, (x, y) in enumerate(places)}


@pytest.mark.parametrize("places", [line(20), grid(8)], ids=["line", "grid"])
def test_transmissions_and_receivers_are_those_of_a_plain_model(places: Places) -> None:
    transmissions = [0, 0]
    for source in list(places)[::5]:
        machines = [node(x, y, name=name) for name, (x, y) in places.items()]
        links = [(a, b) for a in places for b in places if a < b and math.dist(places[a], places[b]) <= 100.0]
        table = Tabletop(machines, links, delay_s=0.0005)
        table.do(source, "publish", Event(type="CD", id="e", source=source, time=0.0))
        table.run(until=5.0)
        sent, heard = reference(places, source, 100.0, 0.0005)
        assert {name for name, _, _ in table.delivered} == heard - {source}
        transmissions[0] += len(table.sent)
        transmissions[1] += sent
    assert transmissions[0] == pytest.approx(transmissions[1], rel=0.05)
    assert transmissions[1] < 0.6 * len(places) * len(list(places)[::5])
