"""Each field of a hello, when hellos come, which neighbours and events they end, and how repairs are paid for."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import STILL, Area, Circle, Position, Rectangle, Velocity
from earshot.protocols.hearsay.digest import make_digest, quarter_of, salt_at, wrapped
from earshot.protocols.hearsay.machine import MOST_WAITING, Hearsay, longest_wait_s, near_area, wait_share
from earshot.protocols.hearsay.packets import HearsaySettings, Hello, Relayed, Said
from earshot.protocols.machine import Broadcast, Drop, Effects, FixedLocation, StartTimer
from earshot.protocols.tuning import Surroundings
from earshot.records import DropReason

SETTINGS = HearsaySettings(range_m=100.0)
SETTLED_S = 20.0 * 3.0 * 3.0 * 0.003


class Measured:
    """A channel with these figures; notes the sizes that it is asked for."""

    def __init__(self, busy: float = 0.0, airtime_s: float = 0.0) -> None:
        self.busy, self.each_s = busy, airtime_s
        self.sizes: list[int] = []

    def busy_share(self, now: float) -> float:
        return self.busy

    def airtime_s(self, size_bytes: int) -> float:
        self.sizes.append(size_bytes)
        return self.each_s


def node(
    x: float = 0.0,
    y: float = 0.0,
    settings: HearsaySettings = SETTINGS,
    channel: Measured | None = None,
    moving: Velocity = STILL,
    started: float = 0.0,
) -> Hearsay:
    machine = Hearsay("a", settings, FixedLocation(Position(x, y), moving), Random("a"), channel or Measured())
    machine.start(started)
    machine.subscribe(Subscription("a/0", "a", Filter.of_type("CD")), now=started)
    return machine


def hello(at: tuple[int, int] | None, number: int = 1, again_s: int = 4, holds: tuple[str, ...] = ()) -> Hello:
    return Hello(number, at, (0, 0), again_s, 0, 0, 7, make_digest(holds, 7, 64) if holds else b"")


def said(name: str = "x-0", time: float = 10.0, at: tuple[int, int] | None = (0, 0), **more: object) -> Said:
    return Said(Event("CD", id=name, source="x", time=time, **more), 1, at)  # type: ignore[arg-type]


def greeting(effects: Effects) -> Hello:
    [found] = [one.packet for one in effects if isinstance(one, Broadcast) and isinstance(one.packet, Hello)]
    return found


def next_check(effects: Effects) -> float:
    [found] = [one.at for one in effects if isinstance(one, StartTimer) and one.name == "check"]
    return found


# Hellos.


def test_each_field_of_a_hello() -> None:
    a = node(5.4, -7.6, moving=Velocity(3.14, -2.0), started=100.0)
    for k in range(3):
        a.hear(said(f"x-{k}", time=100.0), "s", now=100.2)
    sent = greeting(a.wake("check", 104.0))
    assert sent == Hello(
        1, (5, -8), (31, -20), 6, wrapped(quarter_of(100.0)), 0, salt_at(104.0),
        make_digest(["x-0", "x-1", "x-2"], salt_at(104.0), 8),
    )  # fmt: skip
    assert 104.0 + 0.8 * 6.0 <= a.hello_due <= 104.0 + 1.2 * 6.0


def test_a_hello_of_a_node_that_holds_nothing_has_no_digest() -> None:
    assert greeting(node().wake("check", 1.0)).digest == b""


def test_the_first_hello_comes_within_a_second() -> None:
    dues = []
    for seed in range(200):
        machine = Hearsay("a", SETTINGS, FixedLocation(), Random(seed))
        dues.append(next_check(machine.start(50.0)) - 50.0)
        assert machine.hello_due == 50.0 + dues[-1]
    assert 0.0 <= min(dues) < 0.05
    assert 0.95 < max(dues) <= 1.0


def test_hellos_are_numbered_modulo_256() -> None:
    a = node()
    a.hellos = 254
    assert [greeting(a.wake("check", a.hello_due)).number for _ in range(3)] == [255, 0, 1]


def test_the_next_hello_comes_at_a_random_time_around_the_interval() -> None:
    a = node()
    gaps = []
    for _ in range(200):
        before = a.hello_due
        a.hear(hello((0, 0)), "b", before)
        a.wake("check", before)
        gaps.append((a.hello_due - before) / 6.0)
    assert 0.8 <= min(gaps) < 0.82
    assert 1.18 < max(gaps) <= 1.2


def test_the_airtime_of_a_hello_is_that_of_its_digest_and_24_bytes_more() -> None:
    channel = Measured(airtime_s=0.5)
    a = node(channel=channel)
    a.hear(said("x-0", time=0.5), "s", now=0.5)
    channel.sizes.clear()
    assert greeting(a.wake("check", 1.0)).again_s == 25, "one node, half a second each, a fiftieth of the airtime"
    assert channel.sizes == [8 + 24]


def test_the_announced_interval_is_rounded_up_and_bounded() -> None:
    assert greeting(node(settings=HearsaySettings(hello_interval_s=6.2)).wake("check", 1.0)).again_s == 7
    slow = Measured(airtime_s=9000.0)
    assert greeting(node(channel=slow).wake("check", 1.0)).again_s == 0xFFFF


def test_velocities_are_reported_in_tenths_and_bounded() -> None:
    assert greeting(node(moving=Velocity(20_000.0, -20_000.0)).wake("check", 1.0)).velocity == (100_000, -100_000)
    assert greeting(node(moving=Velocity(-0.06, 0.04)).wake("check", 1.0)).velocity == (-1, 0)


def test_a_node_that_stands_still_checks_when_its_drift_could_be_too_large_or_its_hello_is_due() -> None:
    a = node()
    checked = a.wake("check", 1.0)
    assert next_check(checked) == pytest.approx(1.0 + 0.15 * 100.0 / 10.0), "at 10 m/s, 15 m take 1.5 s"
    assert next_check(a.wake("check", a.hello_due - 0.1)) == a.hello_due


def test_a_fast_node_checks_at_twice_its_speed_but_at_most_every_half_second() -> None:
    assert next_check(node(moving=Velocity(6.0, 0.0)).wake("check", 1.0)) == pytest.approx(1.0 + 15.0 / 12.0)
    assert next_check(node(moving=Velocity(60.0, 0.0)).wake("check", 1.0)) == 1.5


def test_a_node_greets_early_only_when_it_drifted_more_than_allowed() -> None:
    for place, early in ((15.0, False), (15.1, True)):
        a = node()
        a.wake("check", 1.0)
        a.hello_due = 100.0
        a.location = FixedLocation(Position(0.0, place))
        effects = a.wake("check", 2.0)
        assert any(isinstance(one, Broadcast) for one in effects) == early
        due = 2.0 + max(0.5, 15.0 / 10.0 if early else 0.0)
        assert next_check(effects) == pytest.approx(min(due, a.hello_due))


def test_a_late_check_starts_the_next_one_a_hundredth_of_a_second_later_at_least() -> None:
    a = node(settings=HearsaySettings(range_m=100.0, hello_interval_s=0.001))
    assert next_check(a.wake("check", 5.0)) == pytest.approx(5.01)


@pytest.mark.parametrize(("later_s", "known"), [(12.7, True), (12.9, False)])
def test_a_neighbour_is_forgotten_after_3_2_of_the_intervals_that_it_announced(later_s: float, known: bool) -> None:
    a = node()
    a.hear(hello((10, 0), again_s=4), "b", now=1.0)
    a.hello_due = 1.0 + later_s
    a.wake("check", 1.0 + later_s)
    assert len(a.neighbours) == int(known)


def test_events_are_forgotten_at_the_checks_when_their_lifespan_ends() -> None:
    a = node()
    a.hear(said("x-0", time=1.0, lifespan_s=5.0), "s", now=1.0)
    a.wake("check", 5.9)
    assert len(a.live) == 1
    a.wake("check", 6.0)
    assert len(a.live) == 0


# Where a node is not in order with its clock or its place.


def test_an_event_from_the_future_lives_no_longer_than_its_lifespan_from_now() -> None:
    a = node()
    a.hear(said("x-0", time=1e6, lifespan_s=5.0), "s", now=10.0)
    assert a.live.by_id["x-0"].expires == 15.0
    a.hear(said("x-1", time=8.0), "s", now=10.0)
    assert a.live.by_id["x-1"].expires == 68.0, "a minute, where an event does not say how long it lives"
    assert a.live.by_id["x-0"].heard_at == 10.0


def test_an_event_is_new_until_the_very_end_of_its_lifespan() -> None:
    a = node()
    assert Drop(DropReason.EXPIRED, "x-0") not in a.hear(said("x-0", time=8.0, lifespan_s=2.0), "s", now=10.0)
    assert a.hear(said("x-1", time=8.0, lifespan_s=1.9), "s", now=10.0) == [Drop(DropReason.EXPIRED, "x-1")]


def test_what_a_known_neighbour_says_puts_it_there_and_a_stranger_stays_unknown() -> None:
    a = node()
    a.hear(hello((10, 0)), "s", now=1.0)
    a.hear(said("x-0", at=(60, 70)), "s", now=10.0)
    a.hear(said("x-1", at=(60, 70)), "stranger", now=10.0)
    a.hear(said("x-2", at=None), "s", now=10.0)
    assert [(name, one.place(10.0)) for name, one in a.neighbours] == [("s", (60.0, 70.0))]


# Rule 2: who waits, and how long.


def test_neither_sender_nor_source_count_and_both_conditions_are_asked() -> None:
    for name, expected in (("x", set()), ("s", set()), ("other", {"other"})):
        a = node(80.0)
        a.hear(hello((150, 0)), name, now=9.0)
        a.hear(said(at=(0, 0)), "s", now=10.0)
        assert {one for waiting in a.waiting.values() for one in waiting.lacking} == expected


def test_the_wait_is_the_share_of_the_longest_for_gain_nearness_and_chance() -> None:
    class Given(Random):
        def random(self) -> float:
            return 0.5

    a = node(80.0)
    a.random = Given()
    a.hear(hello((150, 0)), "far", now=9.0)
    a.hear(hello((160, 0)), "farther", now=9.0)
    [wait] = [one for one in a.hear(said(at=(20, 0)), "s", now=10.0) if isinstance(one, StartTimer)]
    share = wait_share(2.0, 2.0, 0.4, 0.5, SETTINGS)
    assert a.best_share == 1.0
    assert wait.at == pytest.approx(10.0 + share * longest_wait_s(2, 0.003, 0, SETTINGS))


def test_the_best_share_fades_by_a_fiftieth_with_each_event_that_reaches_two() -> None:
    a = node(80.0)
    for k in range(2):
        a.hear(hello((150, k)), f"far{k}", now=9.0)
    for k in range(8):
        a.hear(hello((20, k)), f"near{k}", now=9.0)
    for k, expected in enumerate((0.62 * 0.98, 0.62 * 0.98**2)):
        a.hear(said(f"x-{k}"), "s", now=10.0)
        assert a.best_share == pytest.approx(expected)
    for k in range(200):
        a.hear(said(f"y-{k}"), "s", now=10.0)
    assert a.best_share == pytest.approx(0.2)


def test_a_single_neighbour_that_is_reached_anew_teaches_no_share() -> None:
    a = node(80.0)
    a.hear(hello((150, 0)), "far", now=9.0)
    a.hear(said(), "s", now=10.0)
    assert a.best_share == 0.62


@pytest.mark.parametrize(("gain", "patience"), [(1.4, 3.0), (1.5, 1.0)])
def test_whoever_reaches_one_neighbour_only_waits_three_times_longer(gain: float, patience: float) -> None:
    assert wait_share(gain, 1.0, 0.0, 1.0, SETTINGS) == pytest.approx(0.05 * patience)


def test_the_longest_wait_has_no_shorter_end_for_a_negative_priority() -> None:
    assert longest_wait_s(1, 0.003, -5, SETTINGS) == longest_wait_s(1, 0.003, 0, SETTINGS) == pytest.approx(0.06)


def test_the_last_place_to_wait_is_the_4096th() -> None:
    a = node(80.0)
    a.hear(hello((150, 0)), "far", now=9.0)
    for k in range(MOST_WAITING):
        a.hear(said(f"x-{k}"), "s", now=10.0)
    assert (MOST_WAITING, len(a.waiting)) == (4096, 4096)
    assert Drop(DropReason.TOO_MANY_PACKETS_WAITING, "one more") in a.hear(said("one more"), "s", now=10.0)


def test_the_share_of_late_events_moves_by_a_twentieth_with_each() -> None:
    a = node()
    a.hear(said("late", time=5.0), "s", now=10.0)
    assert a.late_share == pytest.approx(0.05)
    a.hear(said("soon", time=10.0), "s", now=10.0)
    assert a.late_share == pytest.approx(0.05 * 0.95)


# Rule 3: turns on a busy channel.


def test_turns_last_two_packets_of_each_neighbour_and_ones_own() -> None:
    a = node(80.0, channel=Measured(busy=0.51, airtime_s=0.01))
    for k in range(3):
        a.hear(hello((150, k)), f"far{k}", now=9.0)
    a.hear(said(), "s", now=10.0)
    a.wake(("say", "x-0"), 10.5)
    assert (a.turned_at, a.turn_at) == (10.5, pytest.approx(10.5 + 0.08))


def test_on_a_channel_that_is_half_busy_nobody_takes_turns() -> None:
    a = node(80.0, channel=Measured(busy=0.5, airtime_s=0.01))
    a.hear(hello((150, 0)), "far", now=9.0)
    a.hear(said(), "s", now=10.0)
    a.wake(("say", "x-0"), 10.5)
    assert (a.turned_at, a.turn_at) == (10.5, 0.0)


def test_those_that_wait_for_their_turn_spread_over_as_many_turns_as_wait_up_to_16() -> None:
    for waiting, turns in ((3, 3), (40, 16)):
        a = node(80.0)
        a.hear(hello((150, 0)), "far", now=9.0)
        for k in range(waiting):
            a.hear(said(f"x-{k}"), "s", now=10.0)
        a.turned_at, a.turn_at = 10.0, 11.0
        again = []
        for _ in range(300):
            [later] = [one.at for one in a.wake(("say", "x-0"), 10.5) if isinstance(one, StartTimer)]
            again.append(later)
        assert 11.0 <= min(again) < 11.0 + 0.05 * turns
        assert 11.0 + 0.95 * turns < max(again) <= 11.0 + turns
        assert isinstance(a.wake(("say", "x-0"), 11.0)[0], Broadcast), "at its turn it speaks"


def test_an_event_whose_lifespan_ended_while_it_waited_is_not_said() -> None:
    for lifespan_s, spoken in ((1.0, False), (1.01, True)):
        a = node(80.0)
        a.hear(hello((150, 0)), "far", now=9.0)
        a.hear(said(lifespan_s=lifespan_s), "s", now=10.0)
        assert any(isinstance(one, Broadcast) for one in a.wake(("say", "x-0"), 11.0)) == spoken
        assert a.waiting == {}


# Rule 5: repair.


def lacks(a: Hearsay, now: float, name: str = "late", at: tuple[int, int] | None = (150, 0)) -> set[str]:
    """What waits to be said again after the hello of a neighbour that holds nothing."""
    a.hear(hello(at), name, now=now)
    return set(a.waiting)


@pytest.mark.parametrize(
    ("heard", "now", "expected"),
    [
        (said(), 10.0 + SETTLED_S - 0.001, set()),
        (said(), 10.0 + SETTLED_S + 0.001, {"x-0"}),
        (said(lifespan_s=3.0), 12.9, {"x-0"}),
        (said(lifespan_s=3.0), 13.0, set()),
        (Said(said().event, 63, (0, 0)), 12.0, {"x-0"}),
        (Said(said().event, 64, (0, 0)), 12.0, set()),
    ],
    ids=["too early", "in time", "lives", "has ended", "hops left", "no hops left"],
)
def test_what_is_repaired(heard: Said, now: float, expected: set[str]) -> None:
    a = node(80.0)
    a.hear(heard, "s", now=10.0)
    assert lacks(a, now) == expected


def test_the_source_gets_no_repair() -> None:
    for name, expected in (("x", set()), ("b", {"x-0"})):
        a = node(80.0)
        a.hear(said(), "s", now=10.0)
        assert lacks(a, 12.0, name) == expected


@pytest.mark.parametrize(("trust", "repaired"), [(4.0, True), (4.1, False)])
def test_a_neighbour_whose_chance_to_hear_us_is_less_than_a_fifth_gets_no_repair(trust: float, repaired: bool) -> None:
    """Its hello from far beyond the range is one hit beside that many misses."""
    a = node(80.0, settings=HearsaySettings(range_m=100.0, reach_trust=trust))
    a.hear(said(), "s", now=10.0)
    assert lacks(a, 12.0, at=(300, 0)) == ({"x-0"} if repaired else set())
    assert lacks(a, 12.0, "somewhere", at=None) == {"x-0"}


def test_an_event_whose_bytes_are_gone_is_not_repaired() -> None:
    a = node(80.0)
    a.hear(said(), "s", now=10.0)
    a.live.by_id["x-0"].event = None
    assert lacks(a, 12.0) == set()


def test_a_neighbour_is_offered_an_event_three_times() -> None:
    a = node(80.0)
    a.hear(said(), "s", now=10.0)
    offers = []
    for k in range(5):
        offers.append(len(lacks(a, 12.0 + k)))
        a.wake(("say", "x-0"), 12.5 + k)
    assert offers == [1, 1, 1, 0, 0]
    assert lacks(a, 20.0, "another") == {"x-0"}


def test_repairs_wait_longer_one_after_the_other() -> None:
    waits: dict[str, list[float]] = {"x-0": [], "x-1": [], "x-2": []}
    for seed in range(150):
        a = Hearsay("a", SETTINGS, FixedLocation(Position(80.0, 0.0)), Random(seed))
        a.start(0.0)
        for k in range(3):
            a.hear(said(f"x-{k}"), "s", now=10.0)
        for one in a.hear(hello((150, 0)), "late", now=12.0):
            if isinstance(one, StartTimer):
                waits[one.name[1]].append(one.at - 12.0)  # type: ignore[index]
    for k, (name, found) in enumerate(waits.items()):
        longest_s = 50.0 * 0.003 * (1.0 + k / 2.0)
        assert min(found) < 0.05 * longest_s, name
        assert 0.95 * longest_s < max(found) <= longest_s, name


def test_repairs_are_paid_with_a_tenth_of_the_airtime_saved_for_five_seconds_at_most() -> None:
    a = node(80.0, channel=Measured(airtime_s=0.1))
    for k in range(20):
        a.hear(said(f"x-{k}"), "s", now=10.0)
    assert a.repair_airtime_s == 0.5
    lacks(a, 1000.0 - 940.0)
    assert (len(a.waiting), a.repair_airtime_s, a.repair_counted_at) == (5, pytest.approx(0.0), 60.0)
    lacks(a, 62.0, "later")
    assert (len(a.waiting), a.repair_airtime_s) == (7, pytest.approx(0.0)), "two seconds earn 0.2 s"


def test_a_busy_channel_is_left_to_new_events() -> None:
    for busy, expected in ((0.75, {"x-0"}), (0.76, set())):
        a = node(80.0, channel=Measured(busy=busy))
        a.hear(said(), "s", now=10.0)
        assert lacks(a, 20.0) == expected


def test_of_equal_priority_what_ends_first_is_repaired_first_then_by_name() -> None:
    a = node(80.0, settings=HearsaySettings(range_m=100.0, repair_batch=3))
    for name, lifespan_s, priority in (("d", 30.0, 0), ("c", 20.0, 0), ("b", 20.0, 0), ("urgent", 50.0, 1)):
        a.hear(said(name, lifespan_s=lifespan_s, priority=priority), "s", now=10.0)
    a.hear(hello((150, 0)), "late", now=12.0)
    assert list(a.waiting) == ["urgent", "b", "c"]


def test_a_hello_strikes_out_its_node_only_for_events_in_its_span_that_it_holds() -> None:
    a = node(80.0)
    for name in ("far", "other"):
        a.hear(hello((150, 0)), name, now=9.0)
    a.hear(said(), "s", now=10.0)
    outside = Hello(2, (150, 0), (0, 0), 4, wrapped(quarter_of(10.5)), 0, 7, make_digest(["x-0"], 7, 64))
    a.hear(outside, "far", now=10.01)
    assert set(a.waiting["x-0"].lacking) == {"far", "other"}
    a.hear(hello((150, 0), number=3, holds=("x-0",)), "far", now=10.02)
    assert set(a.waiting["x-0"].lacking) == {"other"}


# Rule 7.


def test_only_live_events_are_relayed() -> None:
    gateways = HearsaySettings(range_m=100.0, gateways=("a", "b"))
    for lifespan_s, sent in ((1.0, 0), (1.01, 1)):
        a = node(settings=gateways)
        a.hear(said(lifespan_s=lifespan_s), "s", now=10.0)
        assert len(a.wake(("relay", "x-0"), 11.0)) == sent
    assert node(settings=gateways).wake(("relay", "unknown"), 11.0) == []


def test_a_gateway_waits_up_to_a_fifth_of_a_second() -> None:
    waits = []
    for seed in range(200):
        settings = HearsaySettings(gateways=("a", "b"))
        a = Hearsay("a", settings, FixedLocation(), Random(seed))
        a.start(0.0)
        waits += [one.at - 10.0 for one in a.hear(said(), "s", now=10.0) if isinstance(one, StartTimer)]
    assert 0.0 <= min(waits) < 0.01
    assert 0.19 < max(waits) <= 0.2


def test_a_relayed_event_at_its_hop_limit_is_delivered_and_goes_no_further() -> None:
    settings = HearsaySettings(range_m=100.0, gateways=("a", "b"), hop_limit=3)
    for hops, waits in ((2, 1), (3, 0)):
        a = node(settings=settings)
        a.hear(hello((50, 0)), "n", now=9.0)
        a.hear(Relayed(said().event, hops), "b", now=10.0)
        assert len(a.waiting) == waits


# Geometry.


def test_near_a_circle_around_a_reference() -> None:
    area = Area(Circle(10.0, reference=Position(30.0, 40.0)), Position(100.0, 100.0))
    assert near_area(area, 70.0, 60.0, 0.0)
    assert near_area(area, 85.0, 60.0, 5.0)
    assert not near_area(area, 85.1, 60.0, 5.0)
    assert not near_area(area, 70.0, 75.1, 5.0)


def test_near_a_rectangle_is_measured_toward_its_centre() -> None:
    area = Area(Rectangle(100.0, 50.0), Position(10.0, 20.0))
    assert near_area(area, 10.0, 49.0, 5.0)
    assert not near_area(area, 10.0, 51.0, 5.0)
    assert near_area(area, 12.0, 24.0, 5.0), "nearer to the centre than the margin"


# Rule 6: the spans of digests.


@given(st.lists(st.integers(40, 80), max_size=60), st.integers(1, 6))
def test_a_digest_has_exactly_the_events_of_its_span(quarters: list[int], turns: int) -> None:
    a = node(settings=HearsaySettings(digest_bytes=8, digest_bits=8))
    for k, quarter in enumerate(quarters):
        a.hear(said(f"x-{k:02}", time=quarter / 4.0), "s", now=20.0)
    newest = max(quarters, default=0) + 1
    for _ in range(turns):
        a.hellos += 1
        span, events = a.next_digest_span()
        within = [f"x-{k:02}" for k, quarter in enumerate(quarters) if span.since <= quarter < (span.until or newest)]
        assert sorted(events) == within
        assert len(events) <= 8
        if len(quarters) <= 8:
            assert (span.since, span.until, len(events)) == (0, 0, len(quarters))


def test_newest_and_older_spans_take_turns_until_the_oldest_event() -> None:
    a = node(settings=HearsaySettings(digest_bytes=8, digest_bits=8))
    for k in range(20):
        a.hear(said(f"x-{k}", time=10.0 + k / 4.0), "s", now=20.0)
    spans = []
    for _ in range(7):
        a.hellos += 1
        spans.append(tuple(a.next_digest_span()[0]))
    newest, older, oldest = (52, 0), (44, 52), (0, 44)
    assert spans == [newest, newest, older, newest, oldest, newest, older]


# Small questions.


def test_a_neighbour_without_a_place_hears_us_and_hears_others_with_three_chances_in_five() -> None:
    a, blind = node(), node(settings=HearsaySettings(knows_place=False))
    for machine in (a, blind):
        machine.hear(hello(None), "b", now=1.0)
        ((name, neighbour),) = machine.neighbours
        assert machine.hear_us([neighbour], 1.0) == [1.0]
        assert machine.missed((0, 0), 1.0) == machine.missed(None, 1.0) == [(name, neighbour, 0.4, 0.4)]


def test_nobody_missed_what_is_heard_more_often_than_the_chance_that_is_worth_it() -> None:
    a = node(settings=HearsaySettings(worth=0.41))
    a.hear(hello(None), "b", now=1.0)
    assert a.missed((0, 0), 1.0) == a.missed(None, 1.0) == []


def test_a_chance_that_is_just_worth_it_counts() -> None:
    for worth, expected in ((0.5, {"far"}), (0.51, set())):
        a = node(80.0, settings=HearsaySettings(range_m=100.0, worth=worth))
        a.hear(hello((150, 0)), "far", now=9.0)
        a.reach.observe(151.0, 4.0, 0.0)
        a.hear(said(at=(0, 0)), "s", now=10.0)
        assert {one for waiting in a.waiting.values() for one in waiting.lacking} == expected


def test_after_a_copy_a_chance_that_is_just_worth_it_still_counts() -> None:
    for worth, left in ((0.5, {"x-0"}), (0.51, set())):
        a = node(80.0, settings=HearsaySettings(range_m=100.0, worth=worth, echo=1.0))
        a.hear(hello((150, 0)), "far", now=9.0)
        a.hear(said(at=(0, 0)), "s", now=10.0)
        a.reach.observe(151.0, 4.0, 0.0)
        a.hear(said(at=(0, 10)), "t", now=10.001)
        assert set(a.waiting) == left


def test_after_a_copy_a_neighbour_that_may_not_hear_us_counts_by_the_chance_that_it_does() -> None:
    for worth, left in ((0.5, {"x-0"}), (0.51, set())):
        a = node(80.0, settings=HearsaySettings(range_m=100.0, worth=worth, echo=1.0))
        a.hear(hello((150, 0)), "far", now=9.0)
        a.hear(said(at=(0, 0)), "s", now=10.0)
        assert set(a.waiting) == {"x-0"}
        a.reach.observe(70.0, 0.0, 5.0)  # after its hello, and the four that the settings count
        a.hear(said(at=(0, 10)), "t", now=10.001)
        assert set(a.waiting) == left, "it has missed both copies, and hears every second packet of ours"


def test_a_withdrawn_subscription_receives_nothing() -> None:
    a = node()
    assert a.unsubscribe("a/0", now=1.0) == []
    assert a.hear(said(), "s", now=10.0) == []


def test_the_nearer_sender_is_measured_in_both_directions() -> None:
    a, here = node(), (30.0, -40.0)
    assert a.nearness(here, (30, -40)) == 1.0
    assert a.nearness(here, (0, 0)) == pytest.approx(0.5)
    assert a.nearness(here, (60, -80)) == pytest.approx(0.5)
    assert a.nearness(here, (500, 500)) == 0.0
    assert 0.0 <= a.nearness(here, None) <= 1.0
    assert 0.0 <= a.nearness(None, (0, 0)) <= 1.0


def test_what_was_heard_settles_after_the_longest_wait_for_a_packet_of_300_bytes() -> None:
    channel = Measured(airtime_s=0.01)
    assert node(channel=channel).settled_at(100.0) == pytest.approx(100.0 - 20.0 * 3.0 * 3.0 * 0.01)
    assert channel.sizes == [300, 192 + 24]


def test_every_quality_is_kept_with_and_without_gateways() -> None:
    kept = frozenset({"lifespan_s", "priority", "deadline_s", "reliability", "history"})
    for gateways in ((), ("a",)):
        settings = HearsaySettings(gateways=gateways)
        assert (Hearsay.kept_qualities(settings), Hearsay.uses_routing(settings)) == (kept, bool(gateways))


@pytest.mark.parametrize(("speed", "interval_s"), [(0.0, 8.0), (2.0, 5.0), (2.5, 4.0), (20.0, 2.0)])
def test_first_guesses_for_the_search(speed: float, interval_s: float) -> None:
    around = Surroundings(
        nodes=9, present=9.0, width_m=9.0, height_m=9.0, range_m=100.0, mean_neighbours=9.0, median_speed_m_s=speed,
        link_lifetime_s=9.0, events_per_s=9.0,
    )  # fmt: skip
    assert [(one.name, one.first, one.low, one.high) for one in Hearsay.tuning(around)] == [
        ("wait_frames", 20.0, 4.0, 64.0), ("hello_interval_s", interval_s, 1.0, 16.0), ("worth", 0.2, 0.05, 0.5),
    ]  # fmt: skip


def test_the_drift_is_the_distance_from_where_the_last_hello_puts_the_node() -> None:
    a = node(10.0, 20.0, moving=Velocity(1.0, -2.0))
    assert a.drifted_m(5.0) == 0.0
    a.wake("check", 10.0)
    a.location = FixedLocation(Position(18.0, 18.0))
    assert a.drifted_m(15.0) == pytest.approx(8.544003745317532), "it should be at (15, 10)"
