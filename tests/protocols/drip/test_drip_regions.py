"""Which brokers a DRIP node keeps, and who comes after them."""

import math

import pytest

from earshot.protocols.drip.packets import Announcement, Quit
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.settings import DripSettings

SETTINGS = DripSettings(brokers=6, nearest=2, copies=1)


def announced(regions: Regions, broker: str, delay_s: float, now: float, sequence: int = 1) -> bool:
    packet = Announcement(broker, sequence, now - delay_s, 1, broker, 0)
    return regions.hear(packet, f"by-{broker}", now)


@pytest.fixture
def full() -> Regions:
    """Two brokers on the list, two turned away."""
    regions = Regions("me", SETTINGS)
    assert announced(regions, "near", 0.01, 10.0)
    assert announced(regions, "nearer", 0.005, 10.0)
    assert not announced(regions, "farthest", 0.04, 10.5)
    assert not announced(regions, "far", 0.02, 10.6)
    return regions


def test_where_brokers_fall_silent_the_nearest_that_was_turned_away_has_their_place(full: Regions) -> None:
    full.forget(10.0 + SETTINGS.expiry_s)
    assert full.nearest_names() == ("far",)
    assert full.brokers["far"].upstreams == ["by-far"]


def test_one_turned_away_is_kept_fresh_by_its_own_announcements(full: Regions) -> None:
    interval_s = SETTINGS.announce_interval_s
    announced(full, "near", 0.01, 10.0 + interval_s, 2)
    announced(full, "far", 0.02, 10.6 + interval_s, 2)
    full.forget(10.5 + SETTINGS.expiry_s)
    full.forget(10.5 + interval_s + SETTINGS.expiry_s)
    assert full.nearest_names() == ("far",)


def test_one_that_has_fallen_silent_itself_takes_nobodys_place(full: Regions) -> None:
    full.forget(11.0 + SETTINGS.expiry_s)
    assert full.nearest_names() == ()


def test_one_that_retired_takes_nobodys_place(full: Regions) -> None:
    assert not full.drop("far", 2, 10.7)
    full.forget(10.0 + SETTINGS.expiry_s)
    assert full.nearest_names() == ()


def test_a_broker_that_retires_makes_room_at_once(full: Regions) -> None:
    assert full.drop("nearer", 2, 10.7)
    assert full.nearest_names() == ("near", "far")


def test_an_announcement_from_no_time_at_all_is_kept_nowhere() -> None:
    regions = Regions("me", SETTINGS)
    announced(regions, "near", 0.01, 10.0)
    announced(regions, "nearer", 0.005, 10.0)
    for sent_at in (math.nan, -math.inf):
        assert regions.turns_away(Announcement("odd", 1, sent_at, 1, "odd", 0), "x", 10.0 - sent_at, 10.0)
    assert regions.spare is None


def test_of_the_ways_back_the_one_that_was_used_longest_ago_is_forgotten_first() -> None:
    regions = Regions("me", DripSettings(brokers=6, nearest=2, copies=1, memory=3))
    for now, origin in enumerate(["a", "b", "c", "a", "d"]):
        regions.came(Quit(origin, "me", "", 1, 0.0), f"by-{origin}", float(now))
    assert regions.toward == {"c": ("by-c", 2.0), "a": ("by-a", 3.0), "d": ("by-d", 4.0)}
