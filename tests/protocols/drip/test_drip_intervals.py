"""DRIP's intervals and bounds that no setting states: each as a number, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from earshot.geometry import Position
from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.drip.broker import Broker
from earshot.protocols.drip.delay import brokers_for, exact_delay
from earshot.protocols.drip.machine import Drip
from earshot.protocols.drip.packets import PAPER, Registration, SubscriberRecord
from earshot.protocols.drip.region_interests import Interest, Interests
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import Sharing
from earshot.protocols.drip.subscribers import Subscribers
from earshot.protocols.machine import Note, StartTimer
from earshot.protocols.tuning import Surroundings

SETTINGS = replace(PAPER, brokers=6, nearest=2, copies=2, register_interval_s=5.0, contact_interval_s=0.25)


def broker(**changes: float) -> Broker:
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    regions = Regions("me", settings)
    regions.set_broker(True)
    return Broker("me", settings, regions, Sharing(settings), RecentKeys(9), 0.0)


@pytest.mark.parametrize(("interval_s", "again_at"), [(0.25, 11.0), (1.5, 11.5)])
def test_a_broker_with_nothing_to_send_looks_for_others_after_a_second_or_its_interval(
    interval_s: float, again_at: float
) -> None:
    me = broker(contact_interval_s=interval_s)
    assert me.contact(10.0) == [StartTimer("contact", again_at)]
    assert me.contact_timer(10.0) == StartTimer("contact", 10.0 + interval_s), "what comes meanwhile waits that long"


def test_other_brokers_hear_of_a_subscriber_again_after_six_register_intervals() -> None:
    me, versions = broker(), []
    for stamp in (100.0, 105.0, 129.9, 130.0, 159.9, 160.0):
        me.receive(Registration("s", "me", "", 1, stamp, 0.5, ("me", "b"), ("N: v > 0",), ()), stamp)
        versions.append(me.subscribers.version)
    assert versions == [1, 1, 1, 2, 2, 3]


def test_a_registration_is_silent_after_more_than_three_register_intervals() -> None:
    me = broker()
    me.receive(Registration("s", "me", "", 1, 2.0, 0.5, ("me",), ("N: v > 0",), ()), 100.0)
    assert [me.expire_subscribers(now) for now in (115.0, 115.1)] == [[], [Note("silent", "s")]]


def test_a_table_of_subscribers_holds_a_mebibyte_of_texts_and_no_record_of_more_than_a_quarter() -> None:
    """A text counts its characters and 64 more; a record has the name of a broker and one subscription here."""
    subscribers = Subscribers("me", 9, 30.0)
    name, texts = "b" * (256 * 1024 - 64 - len("N: v > 0") - 64), ("N: v > 0",)
    for number in range(5):
        assert subscribers.learn(SubscriberRecord(f"s{number}", 1.0, "b", (name,), texts, 0.5), 1.0)
        assert subscribers.text == min(number + 1, 4) * 256 * 1024
    assert list(subscribers.table) == ["s1", "s2", "s3", "s4"]
    assert subscribers.learn(SubscriberRecord("s5", 1.0, "b", (name + "b",), texts, 0.5), 1.0) is None


def test_a_shared_rectangle_is_a_hundred_metres_larger_on_each_side() -> None:
    interests = Interests(SETTINGS, version=7)
    interests.update(Interest(("N: v > 0",), (0.0, 100.0, 200.0, 300.0)), 10.0)
    assert interests.own == Interest(("N: v > 0",), (-100.0, 0.0, 300.0, 400.0))
    assert interests.version == 8


@pytest.mark.parametrize(("x_m", "hop"), [(80, "ahead"), (81, "")])
def test_a_detour_goes_over_neighbours_within_four_fifths_of_the_farthest(x_m: int, hop: str) -> None:
    regions = Regions("me", SETTINGS)
    for name, at_m in (("behind", -100), ("ahead", x_m)):
        regions.hear_neighbour(name, "b", 0.0)
        regions.hear_motion(name, (at_m, 0, 0, 0), 0.0)
    assert regions._closer_hop(Position(500.0, 0.0), Position(0.0, 0.0), 0.0) == hop


AROUND = Surroundings(
    nodes=100, present=60.0, width_m=600.0, height_m=400.0, range_m=100.0, mean_neighbours=9.0, median_speed_m_s=2.0,
    link_lifetime_s=9.0, events_per_s=9.0,
)  # fmt: skip


@pytest.mark.parametrize("speed_m_s", [1.0, 20.0, 40.0, 60.0, 100.0])
def test_the_first_guess_is_the_most_brokers_whose_copies_arrive_within_30_seconds(speed_m_s: float) -> None:
    """In a step a node walks half a range, here 50 m: the area is a grid of 12 by 8 such steps. With 4 nearest
    brokers and 2 copies there are at least 7."""
    brokers, copies, nearest = Drip.tuning(replace(AROUND, median_speed_m_s=speed_m_s))
    steps = max(1.0, 30.0 * speed_m_s / 50.0)
    in_time = [k for k in range(7, 123) if exact_delay(k, 4, 2, 96.0) <= steps]
    reason = "copies arrive within 30 s" if in_time else "fewest brokers, least delay"
    assert (brokers.name, brokers.first, brokers.low, brokers.high, brokers.reason) == (
        "brokers", min(max(in_time, default=7), 60), 7, 60, f"{reason}, by the paper's analysis",
    )  # fmt: skip
    assert [(one.name, one.first, one.low, one.high) for one in (copies, nearest)] == [
        ("copies", 2, 1, 4), ("nearest", 4, 2, 6),
    ]  # fmt: skip


def test_a_small_area_counts_as_a_grid_of_four_points_for_each_of_the_fewest_brokers() -> None:
    brokers, *_ = Drip.tuning(replace(AROUND, width_m=10.0, height_m=10.0, median_speed_m_s=9.0))
    in_time = [k for k in range(7, 36) if exact_delay(k, 4, 2, 28.0) <= 30.0 * 9.0 / 50.0]
    assert brokers.first == min(max(in_time, default=7), 60)


def test_an_analysis_takes_a_delay_below_a_step_and_a_grid_of_four_points() -> None:
    assert brokers_for(0.5, 1, 1, 4.0).k == max(k for k in (3, 4, 5) if exact_delay(k, 1, 1, 4.0) <= 0.5)
