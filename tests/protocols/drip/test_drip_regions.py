"""Which brokers a DRIP node keeps, and which one is next."""

import math
from dataclasses import replace

import pytest

from earshot.protocols.drip.packets import PAPER, BrokerAnnouncement
from earshot.protocols.drip.regions import Regions

SETTINGS = replace(PAPER, brokers=6, nearest=2, copies=1)


def announced(regions: Regions, broker: str, delay_s: float, now: float, sequence: int = 1) -> bool:
    packet = BrokerAnnouncement(broker, sequence, now - delay_s, 1, broker, 0)
    return regions.hear(packet, f"by-{broker}", now)


@pytest.fixture
def full() -> Regions:
    """Two brokers on the list, two rejected."""
    regions = Regions("me", SETTINGS)
    assert announced(regions, "near", 0.01, 10.0)
    assert announced(regions, "nearer", 0.005, 10.0)
    assert not announced(regions, "farthest", 0.04, 10.5)
    assert not announced(regions, "far", 0.02, 10.6)
    return regions


def test_where_brokers_fall_silent_the_nearest_that_was_rejected_takes_their_place(full: Regions) -> None:
    full.forget(10.0 + SETTINGS.expiry_s)
    assert full.nearest_names() == ("far",)
    assert full.brokers["far"].upstreams == ["by-far"]


def test_a_rejected_broker_is_kept_fresh_by_its_own_announcements(full: Regions) -> None:
    interval_s = SETTINGS.announce_interval_s
    announced(full, "near", 0.01, 10.0 + interval_s, 2)
    announced(full, "far", 0.02, 10.6 + interval_s, 2)
    full.forget(10.5 + SETTINGS.expiry_s)
    full.forget(10.5 + interval_s + SETTINGS.expiry_s)
    assert full.nearest_names() == ("far",)


def test_a_rejected_broker_that_has_fallen_silent_takes_no_place(full: Regions) -> None:
    full.forget(11.0 + SETTINGS.expiry_s)
    assert full.nearest_names() == ()


def test_a_rejected_broker_that_retired_takes_no_place(full: Regions) -> None:
    assert not full.retire("far", 2, 10.7)
    full.forget(10.0 + SETTINGS.expiry_s)
    assert full.nearest_names() == ()


def test_a_broker_that_retires_makes_room_at_once(full: Regions) -> None:
    assert full.retire("nearer", 2, 10.7)
    assert full.nearest_names() == ("near", "far")


def test_an_announcement_without_a_finite_time_is_kept_nowhere() -> None:
    regions = Regions("me", SETTINGS)
    announced(regions, "near", 0.01, 10.0)
    announced(regions, "nearer", 0.005, 10.0)
    for sent_at in (math.nan, -math.inf):
        assert not regions.hear(BrokerAnnouncement("odd", 1, sent_at, 1, "odd", 0), "x", 10.0)
    assert regions.next_nearest is None


def test_the_return_route_that_was_used_longest_ago_is_forgotten_first() -> None:
    regions = Regions("me", replace(PAPER, brokers=6, nearest=2, copies=1, memory=3))
    for now, origin in enumerate(["a", "b", "c", "a", "d"]):
        regions.learn_return_route(origin, f"by-{origin}", float(now))
    routes = [(node, regions.return_routes.get(node)) for node in regions.return_routes]
    assert routes == [("c", ("by-c", 2.0)), ("a", ("by-a", 3.0)), ("d", ("by-d", 4.0))]
