"""Tuning: every first guess and every value to try is accepted by its protocol, in any surroundings."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import SettingsError
from earshot.protocols.catalogue import PROTOCOLS, build_settings
from earshot.protocols.tuning import Surroundings, Tunable, clamp, guess, rounded

CITY = Surroundings(
    nodes=1300,
    present=620.0,
    width_m=1800.0,
    height_m=1350.0,
    range_m=150.0,
    mean_neighbours=24.0,
    median_speed_m_s=7.0,
    link_lifetime_s=20.0,
    events_per_s=2.0,
    packet_airtime_s=0.0005,
)

surroundings = st.builds(
    Surroundings,
    nodes=st.integers(2, 20_000),
    present=st.floats(1.0, 20_000.0),
    width_m=st.floats(1.0, 1e5),
    height_m=st.floats(1.0, 1e5),
    range_m=st.floats(10.0, 2000.0),
    mean_neighbours=st.floats(0.0, 500.0),
    median_speed_m_s=st.floats(0.0, 60.0),
    link_lifetime_s=st.floats(0.1, 5000.0),
    events_per_s=st.floats(0.01, 100.0),
    packet_airtime_s=st.floats(0.0, 0.5),
)


def facts(name: str, around: Surroundings) -> dict[str, object]:
    """What a scenario tells the protocol about its network."""
    known = {"medium.range_m": around.range_m, "node_count": around.nodes}
    fields = PROTOCOLS[name].Settings.__dataclass_fields__.values()
    return {one.name: known[path] for one in fields if (path := one.metadata.get("scenario")) in known}


@pytest.mark.parametrize("name", PROTOCOLS)
@given(around=surroundings)
def test_a_protocol_accepts_each_of_its_tuned_values(name: str, around: Surroundings):
    around = replace(around, present=min(around.present, around.nodes))
    for tunable in PROTOCOLS[name].tuning(around):
        for value in tunable.values():
            build_settings(PROTOCOLS[name].Settings, {**facts(name, around), **tunable.settings(value)})
        assert tunable.reason


def first(name: str, setting: str, around: Surroundings) -> float:
    return next(one.first for one in PROTOCOLS[name].tuning(around) if one.name == setting)


def test_gossip_is_less_probable_among_more_neighbours():
    assert first("gossip", "probability", CITY) == 0.25
    assert first("gossip", "probability", replace(CITY, mean_neighbours=8.0)) == 0.75
    assert first("gossip", "probability", replace(CITY, mean_neighbours=3.0)) == 1.0


def test_the_sources_own_neighbours_pass_a_rumour_on_up_to_the_radio_range():
    found = next(one for one in PROTOCOLS["gossip"].tuning(CITY) if one.name == "distance_m")
    assert (found.first, found.low, found.high) == (150.0, 75.0, 300.0)


def test_steam_beacons_more_often_where_nodes_are_fast():
    assert first("steam", "beacon_interval_s", CITY) == 1.1
    assert first("steam", "beacon_interval_s", replace(CITY, median_speed_m_s=30.0)) == 0.5


def test_odmrp_refreshes_several_times_while_a_link_lasts():
    tuned = PROTOCOLS["odmrp"].tuning(replace(CITY, link_lifetime_s=8.0))[0]
    assert tuned.settings(tuned.first) == {"refresh_interval_s": 2.0, "forwarding_timeout_s": 10.0}


def test_georendezvous_has_longer_cells_where_nodes_are_few():
    assert first("georendezvous", "cell_side_m", CITY) == 75.0
    assert first("georendezvous", "cell_side_m", replace(CITY, mean_neighbours=6.0)) == 106.0
    assert first("georendezvous", "rendezvous", replace(CITY, width_m=500.0, height_m=500.0)) == 1


def test_drip_has_as_many_brokers_as_its_analysis_allows():
    assert first("drip", "brokers", CITY) == 7
    assert first("drip", "brokers", replace(CITY, median_speed_m_s=700.0)) > 7
    assert PROTOCOLS["drip"].tuning(replace(CITY, present=5.0)) == ()


@pytest.mark.parametrize(("range_m", "distance_m"), [(0.5, 1.0), (1.5, 1.5), (1.9e6, 1e6)])
def test_gossips_distance_is_the_range_within_bounds(range_m: float, distance_m: float):
    assert first("gossip", "distance_m", replace(CITY, range_m=range_m)) == distance_m


QUIET = replace(CITY, mean_neighbours=0.0, packet_airtime_s=0.0, width_m=10.0, height_m=10.0)
CROWD = replace(CITY, mean_neighbours=499.0, packet_airtime_s=0.01, width_m=90_000.0)


@pytest.mark.parametrize(
    ("name", "around", "expected"),
    [
        ("cbf", CITY, [("longest_wait_s", 0.05, 0.01, 0.5, 2.0), ("hop_limit", 30, 2, 64, 2.0)]),
        ("cbf", QUIET, [("longest_wait_s", 0.02, 0.01, 0.5, 2.0), ("hop_limit", 2, 2, 64, 2.0)]),
        ("cbf", CROWD, [("longest_wait_s", 0.2, 0.01, 0.5, 2.0), ("hop_limit", 64, 2, 64, 2.0)]),
        ("flooding", CITY, [("jitter_s", 0.025, 0.001, 0.3, 3.0)]),
        ("flooding", replace(CITY, mean_neighbours=26.3), [("jitter_s", 0.027, 0.001, 0.3, 3.0)]),
        ("flooding", QUIET, [("jitter_s", 0.004, 0.001, 0.3, 3.0)]),
        ("flooding", CROWD, [("jitter_s", 0.1, 0.001, 0.3, 3.0)]),
        (
            "gossip",
            CROWD,
            [
                ("probability", 0.2, 0.2, 1.0, 1.5),
                ("jitter_s", 0.1, 0.001, 0.3, 3.0),
                ("distance_m", 150.0, 75.0, 300.0, 2.0),
            ],
        ),
    ],
)
def test_the_baselines_begin_by_the_number_of_neighbours_and_the_area(
    name: str, around: Surroundings, expected: list[tuple[str, float, float, float, float]]
):
    found = PROTOCOLS[name].tuning(around)
    assert [(one.name, one.first, one.low, one.high, one.step) for one in found] == expected


STILL_AND_SPARSE = Surroundings(
    nodes=12, present=9.0, width_m=900.0, height_m=400.0, range_m=400.0, mean_neighbours=2.0, median_speed_m_s=0.5,
    link_lifetime_s=400.0, events_per_s=0.05, packet_airtime_s=0.02,
)  # fmt: skip
FAST_AND_DENSE = Surroundings(
    nodes=8000, present=8000.0, width_m=20_000.0, height_m=15_000.0, range_m=100.0, mean_neighbours=200.0,
    median_speed_m_s=40.0, link_lifetime_s=1.0, events_per_s=90.0, packet_airtime_s=0.00001,
)  # fmt: skip
MESH = {"forwarding_timeout_s": 5.0}
REPORTED_MESH = {**MESH, "refresh_max_s": 4.0, "report_interval_s": 2.0}


@pytest.mark.parametrize(
    ("name", "ranges", "firsts"),
    [
        ("codd", [("fan_out", 2, 24, 2.0, {})], [(12,), (3,), (12,)]),
        ("siena", [("clients", 2, 24, 2.0, {})], [(12,), (3,), (12,)]),
        (
            "odmrp",
            [("refresh_interval_s", 0.5, 20.0, 2.0, MESH), ("jitter_s", 0.002, 0.3, 3.0, {})],
            [(5.0, 0.025), (10.0, 0.1), (1.0, 0.005)],
        ),
        (
            "content-odmrp",
            [("refresh_interval_s", 0.5, 20.0, 2.0, REPORTED_MESH), ("jitter_s", 0.002, 0.3, 3.0, {})],
            [(5.0, 0.025), (10.0, 0.1), (1.0, 0.005)],
        ),
        (
            "hearsay",
            [
                ("wait_frames", 4.0, 64.0, 2.0, {}),
                ("hello_interval_s", 1.0, 16.0, 2.0, {}),
                ("worth", 0.05, 0.5, 2.0, {}),
            ],
            [(20.0, 2.1, 0.2), (20.0, 8.0, 0.2), (20.0, 2.0, 0.2)],
        ),
        (
            "steam",
            [
                ("forward_copies", 1, 8, 2.0, {}),
                ("beacon_interval_s", 0.25, 8.0, 2.0, {"expiry_s": 3.5}),
                ("forward_jitter_s", 0.01, 0.5, 2.0, {}),
            ],
            [(4, 1.1, 0.025), (4, 4.0, 0.12), (4, 0.5, 0.02)],
        ),
    ],
)
def test_a_protocol_begins_by_speed_density_and_how_long_links_last(
    name: str,
    ranges: list[tuple[str, float, float, float, dict[str, float]]],
    firsts: list[tuple[float, ...]],
):
    for around, expected in zip((CITY, STILL_AND_SPARSE, FAST_AND_DENSE), firsts, strict=True):
        found = PROTOCOLS[name].tuning(around)
        assert [(one.name, one.low, one.high, one.step, dict(one.follows)) for one in found] == ranges
        assert tuple(one.first for one in found) == expected


def test_values_begin_with_the_guess_and_stay_in_the_range():
    assert Tunable("interval_s", 1.0, 0.3, 1.5, "because").values() == [1.0, 0.5, 1.5]
    assert Tunable("copies", 2, 1, 4, "because").values() == [2, 1, 4]
    assert Tunable("copies", 1, 1, 1, "because").values() == [1]


def test_a_guess_outside_its_range_is_refused():
    with pytest.raises(SettingsError, match="interval_s: the first guess must lie between low and high"):
        Tunable("interval_s", 3.0, 0.3, 1.5, "because")


@pytest.mark.parametrize(
    "wrong", [(1.0, 0.0, 2.0, 2.0), (1.0, 1.5, 2.0, 2.0), (1.0, 0.5, float("inf"), 2.0), (1.0, 0.5, 2.0, 1.0)]
)
def test_bounds_and_steps_that_lead_nowhere_are_refused(wrong: tuple[float, float, float, float]):
    first, low, high, step = wrong
    with pytest.raises(SettingsError):
        Tunable("interval_s", first, low, high, "because", step)


def test_bounds_may_be_equal_to_the_first_guess():
    assert Tunable("interval_s", 1.0, 1.0, 1.0, "because").values() == [1.0]


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [(0.0123, 0.001, 1.0, 0.012), (0.0001, 0.0015, 1.0, 0.0015), (0.0001, 0.00156, 1.0, 0.0016), (9.0, 0.1, 1.55, 1.55),
     (9.0, 0.1, 1.54, 1.5), (123.0, 1.0, 1000.0, 120.0)],
)  # fmt: skip
def test_a_guess_has_two_digits_and_stays_within_its_bounds(value: float, low: float, high: float, expected: float):
    """Rounding may lead out of the bounds: then the bound itself is the guess."""
    assert guess(value, low, high) == expected


def test_values_are_kept_between_bounds_and_rounded_to_two_digits():
    assert [clamp(value, 2.0, 3.0) for value in (1.0, 2.0, 2.5, 3.0, 4.0)] == [2.0, 2.0, 2.5, 3.0, 3.0]
    assert [rounded(value) for value in (1234.0, 0.0456, 9.96)] == [1200.0, 0.046, 10.0]


def test_settings_that_follow_a_value_keep_their_proportion():
    tuned = Tunable("interval_s", 1.0, 0.1, 10.0, "because", follows={"expiry_s": 3.5, "wait_s": 0.333})
    assert tuned.settings(2.0) == {"interval_s": 2.0, "expiry_s": 7.0, "wait_s": 0.67}


def test_neighbours_share_the_channel_and_leave_half_of_it_idle():
    """25 speakers of half a millisecond take 12.5 ms, twice that with the idle half."""
    assert CITY.speaking_time_s(0.001, 1.0) == pytest.approx(0.025)
    assert (CITY.speaking_time_s(0.1, 1.0), CITY.speaking_time_s(0.001, 0.01)) == (0.1, 0.01)


def test_the_density_counts_a_node_and_its_neighbours_in_the_disk_of_its_range():
    alone = replace(CITY, mean_neighbours=0.0, range_m=100.0)
    assert alone.density_per_m2 == pytest.approx(1.0 / 31_415.93)
    assert CITY.density_per_m2 == pytest.approx(25.0 / 70_685.83)
