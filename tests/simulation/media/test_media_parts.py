"""Parts of the media by themselves: queues with priorities, settings, labels, distributions of fading."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from small_networks import Bench, Probe, send_word, standing

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.geometry import Area, Circle, Position
from earshot.protocols.flooding import Flood
from earshot.simulation.faults import Partition
from earshot.simulation.media import open_medium
from earshot.simulation.media import reactive_routing as aodv
from earshot.simulation.media.channel_use import NodeChannel, RecentUse
from earshot.simulation.media.links import LinkScript, Partitioned, Rotation
from earshot.simulation.media.medium_settings import Contention, Lossy, Overlay, UnitDisk
from earshot.simulation.media.neighbours import _lists, contacts, neighbours_within
from earshot.simulation.media.open_medium import Network
from earshot.simulation.media.radios import RADIOS
from earshot.simulation.media.reception import (
    Nakagami,
    ShadowField,
    Shadowing,
    _cauchy,
    gamma_at_most,
    gamma_table,
)
from earshot.simulation.mobility import Trajectories, Trajectory

# Queues.


def sends(*priorities: int, limit: int = 64) -> list[str]:
    """The order in which b hears the events that a sends at one time, named by priority and number."""
    bench = Bench(standing((0, 0), (5, 0)), Contention(range_m=10.0, queue_frames=limit))

    def send(probe: Probe) -> None:
        for number, priority in enumerate(priorities):
            probe.broadcast(Flood(Event("N", {}, id=f"{priority}.{number}", source="a", priority=priority), 1))

    bench.do(1.0, "a", send)
    bench.run()
    return [packet.event.id for packet, _, _ in bench.calls("b", "hear")]


def test_frames_of_one_priority_are_sent_in_the_order_they_came() -> None:
    assert sends(1, 1, 1, 1) == ["1.0", "1.1", "1.2", "1.3"]


def test_a_higher_priority_goes_before_lower_ones_but_not_before_the_frame_that_is_being_sent() -> None:
    assert sends(0, 0, 2, 1, 2) == ["0.0", "2.2", "2.4", "1.3", "0.1"]


def test_a_full_queue_drops_its_last_frame_of_lower_priority_or_the_new_one() -> None:
    assert sends(0, 0, 1, limit=2) == ["0.0", "1.2"]
    assert sends(0, 1, 1, limit=2) == ["0.0", "1.1"]
    assert sends(0, 1, 0, limit=2) == ["0.0", "1.1"]
    assert sends(1, 2, 3, limit=1) == ["1.0"]


# Settings.


def test_defaults_of_the_media() -> None:
    disk, lossy, radio, overlay = UnitDisk(), Lossy(), Contention(), Overlay()
    assert (disk.range_m, disk.latency_s, disk.radio, disk.routing) == (100.0, 0.001, "ideal", "ideal")
    assert (lossy.range_m, lossy.certain_m, lossy.exponent, lossy.latency_s) == (100.0, 50.0, 2.0, 0.001)
    assert (lossy.retries, lossy.radio, lossy.routing) == (3, "ideal", "ideal")
    assert (radio.retry_limit, radio.queue_frames, radio.capture_db, radio.routing) == (7, 64, None, "ideal")
    assert (overlay.latency_s, overlay.latency_s_per_km, overlay.spread_s, overlay.jitter_s) == (0.05, 0.0, 0.0, 0.0)
    assert (overlay.bit_rate_bps, overlay.loss) == (None, 0.0)


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ({"carrier_range_m": 100.0}, {"carrier_range_m": 99.9}, "carrier_range_m"),
        ({"difs_s": 1.1e-3, "sifs_s": 1e-3}, {"difs_s": 1e-3, "sifs_s": 1e-3}, "difs_s"),
        ({"difs_s": 2e-3, "eifs_s": 2e-3}, {"difs_s": 2e-3, "eifs_s": 1.9e-3}, "eifs_s"),
        ({"window_min": 7, "window_max": 7}, {"window_min": 8, "window_max": 7}, "window_min"),
    ],
)
def test_settings_of_a_radio_that_contradict_each_other_are_refused(
    right: dict[str, float], wrong: dict[str, float], name: str
) -> None:
    assert Contention(range_m=100.0, **right)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=name):
        Contention(range_m=100.0, **wrong)  # type: ignore[arg-type]


def test_a_radio_is_named_with_the_figures_in_which_it_differs() -> None:
    plain = Contention(range_m=100.0)
    assert plain.label == f"{plain.radio} 100 m"
    assert Contention(range_m=100.0, carrier_range_m=100.0).label == plain.label
    assert Contention(range_m=100.0, carrier_range_m=150.0).label == f"{plain.radio} 100 m (carrier_range_m=150)"
    assert Contention(range_m=100.0, capture_db=6.0).label == f"{plain.radio} 100 m (capture_db=6)"


def test_a_network_says_what_carries_and_what_routes() -> None:
    disk, overlay = UnitDisk(range_m=50.0), Overlay()
    both = Network(disk, routed=True, infrastructure=overlay)
    assert [one.label for one in (Network(disk), both)] == [disk.label, f"{disk.label} + infrastructure"]
    routed = [Network(disk), Network(disk, routed=True), both, Network(overlay, routed=True)]
    assert [one.routing for one in routed] == ["", "ideal routing", "", ""]
    assert Network(UnitDisk(routing="reactive"), routed=True).routing == "reactive routing"


# Fading.


def test_the_gamma_distribution_of_whole_shapes_has_a_closed_form() -> None:
    x = np.array([0.001, 0.1, 1.0, 3.0, 12.0, 40.0])
    assert gamma_at_most(1.0, x) == pytest.approx(1 - np.exp(-x), abs=1e-9)
    assert gamma_at_most(2.0, x) == pytest.approx(1 - (1 + x) * np.exp(-x), abs=1e-9)
    assert gamma_at_most(0.5, x) == pytest.approx([math.erf(math.sqrt(one)) for one in x], abs=1e-9)


@pytest.mark.parametrize("m", [0.5, 1.0, 3.0])
def test_a_table_of_fading_reaches_from_nearly_never_to_nearly_always(m: float) -> None:
    at_most, in_db = gamma_table(m)
    assert (at_most[0] < 1e-5, at_most[-1] > 1 - 1e-6, len(in_db)) == (True, True, 4096)
    assert np.all(np.diff(at_most) >= -1e-12)
    middle = 10 ** (in_db / 10)
    mean = float(np.sum(np.diff(at_most) * (middle[1:] + middle[:-1]) / 2))
    assert mean == pytest.approx(1.0, abs=2e-3)


# The channel service.


def test_a_node_asks_by_its_own_clock() -> None:
    recent = RecentUse(2)
    recent.add((3.0, 3.5, 0, [1]))
    ahead = NodeChannel(recent, 1, 100.0, lambda size: size / 8.0)
    assert (ahead.busy_share(104.0), ahead.airtime_s(16)) == (pytest.approx(0.5 / 4), 2.0)
    assert NodeChannel(RecentUse(2), 1, 0.0, float).busy_share(0.5) == 0.0


def test_shadowing_has_its_own_deviation_and_decorrelates_over_its_own_distance() -> None:
    opened = Shadowing(sigma_db=8.0, decorrelation_m=50.0).open(100.0, Random(1))
    same = ShadowField(8.0, 50.0, Random(1))
    assert opened._shadow is not None  # type: ignore[attr-defined]
    assert opened._shadow.sigma_db == 8.0  # type: ignore[attr-defined]
    assert np.array_equal(opened._shadow._low, same._low)  # type: ignore[attr-defined]


def test_waits_and_windows_of_the_radios_of_lora() -> None:
    """Meshtastic's listen before talk: DIFS is SIFS and two slots."""
    for name, slot_s in (("lora-sf7", 10.2e-3), ("lora-fsk-50k", 8e-3)):
        radio = RADIOS[name]
        assert (radio.slot_s, radio.sifs_s, radio.ack_bytes) == (slot_s, 5e-3, 4)
        assert radio.difs_s == pytest.approx(radio.sifs_s + 2 * slot_s)
        assert (radio.window_min, radio.window_max) == (7, 255)


def test_route_discovery_has_the_parameters_of_rfc_3561() -> None:
    """Section 10; MY_ROUTE_TIMEOUT is twice ACTIVE_ROUTE_TIMEOUT."""
    found = (aodv.ACTIVE_ROUTE_S, aodv.OWN_ROUTE_S, aodv.NODE_TRAVERSAL_S, aodv.NETWORK_DIAMETER, aodv.RING_STEP)
    assert found == (3.0, 6.0, 0.04, 35, 2)
    assert (aodv.LAST_RING, aodv.REPEATS, aodv.TIMEOUT_BUFFER, aodv.REQUEST_SPACING_S) == (7, 2, 2, 0.1)


# Neighbours.


def test_neighbours_are_sorted_in_networks_of_every_size() -> None:
    """The keys that are sorted have 16, 32 or 64 bits, by the number of nodes."""
    for nodes in (5, 255, 256, 32_767, 32_768, 40_000):
        a, b = np.array([0, 0, 1, nodes - 2]), np.array([2, 1, 2, nodes - 1])
        found = _lists(nodes, a, b)
        expected: dict[int, set[int]] = {}
        for one, other in zip(a.tolist(), b.tolist(), strict=True):
            expected.setdefault(one, set()).add(other)
            expected.setdefault(other, set()).add(one)
        assert len(found) == nodes
        assert {node: near for node, near in enumerate(found) if near} == {
            node: sorted(near) for node, near in expected.items()
        }


def passing() -> Trajectories:
    """b comes within 10 m of a at 10 s and leaves it at 30 s; its path has two legs."""
    still = Trajectory.standing("a", 0.0, 0.0)
    return Trajectories([still, Trajectory.through("b", [(0.0, -20.0, 0.0), (20.0, 0.0, 0.0), (40.0, 20.0, 0.0)])])


def test_a_version_changes_at_the_very_time_at_which_a_pair_comes_and_goes() -> None:
    near = neighbours_within(passing(), 10.0)
    versions = []
    for t, found in ((9.99, []), (10.0, [1]), (15.0, [1]), (29.99, [1])):
        versions.append(near.version(t))
        assert near.of(0, t) == found
    assert versions[0] != versions[1]
    fresh = neighbours_within(passing(), 10.0)
    first = fresh.version(9.99)
    assert fresh.version(10.0) != first, "asked for the version alone"


def test_legs_that_meet_in_range_are_one_contact() -> None:
    pair, comes_at, goes_at = contacts(passing().legs(0.0, 40.0), 2, np.array([0]), np.array([1]), 10.0)
    assert (pair.tolist(), comes_at.tolist(), goes_at.tolist()) == ([0], [10.0], [30.0])


def test_a_pair_that_is_in_range_for_one_moment_has_no_contact() -> None:
    grazing = Trajectories([
        Trajectory.standing("a", 0.0, 0.0),
        Trajectory.through("b", [(0.0, -20.0, 10.0), (40.0, 20.0, 10.0)]),
    ])  # fmt: skip
    for range_m, expected in ((10.0, []), (10.1, [0])):
        pair, _, _ = contacts(grazing.legs(0.0, 40.0), 2, np.array([0]), np.array([1]), range_m)
        assert pair.tolist() == expected


# Links and partitions.


def test_a_partition_lasts_from_its_start_until_before_its_end() -> None:
    cut = Partition(2.0, 4.0, area=Area(Circle(1.0), Position(0.0, 0.0)))
    still = standing((0, 0), (5, 0))
    near = Partitioned(still, neighbours_within(still, 10.0), [cut])
    assert [near.of(0, t) for t in (1.9, 2.0, 3.9, 4.0)] == [[1], [], [], [1]]
    before, first, last, after = (near.version(t) for t in (1.9, 2.0, 3.9, 4.0))
    assert (before == after, first == last, before == first) == (True, True, False)
    moving = Partitioned(passing(), neighbours_within(passing(), 10.0), [cut])
    assert moving.version(2.0)[1:] != moving.version(2.1)[1:], "a node may cross it at any time"  # type: ignore[index]
    assert moving.version(4.0)[1:] == moving.version(4.1)[1:]  # type: ignore[index]


def test_a_rotation_has_links_and_no_more_together_than_places() -> None:
    link = ("a", "b")
    assert Rotation((link,), 1.0, together=2, pauses=1).together == 2
    for wrong in ({"links": (), "pauses": 1}, {"links": (link,), "together": 3, "pauses": 1}):
        with pytest.raises(SettingsError, match="a rotation needs links and 1 to"):
            Rotation(interval_s=1.0, **wrong)  # type: ignore[arg-type]


def test_a_message_that_infrastructure_loses_is_a_drop() -> None:
    bench = Bench(standing((0, 0), (5, 0)), Overlay(loss=0.99), seed=1)
    bench.do(1.0, "a", send_word("b", "hi"))
    bench.run()
    assert bench.calls("b", "hear") == []
    assert bench.rows("node", "detail", kind="drop") == [("b", "lost")]


# Fading.


def test_nakagami_hands_deviation_and_distance_to_its_shadowing() -> None:
    opened = Nakagami(m=1.0, sigma_db=8.0, decorrelation_m=50.0).open(100.0, Random(1))
    same = ShadowField(8.0, 50.0, Random(1))
    assert opened._shadow.sigma_db == 8.0  # type: ignore[attr-defined]
    assert np.array_equal(opened._shadow._low, same._low)  # type: ignore[attr-defined]


def test_the_waves_of_a_shadow_field_point_everywhere_and_are_as_long_as_its_distance() -> None:
    """Along each axis the wave numbers have a Cauchy distribution: half of them lie within 1 / distance."""
    random = Random(3)
    waves = np.array([_cauchy(random, 20.0) for _ in range(4000)])
    for axis in (0, 1):
        assert np.median(waves[:, axis]) == pytest.approx(0.0, abs=0.003)
        assert np.median(np.abs(waves[:, axis])) == pytest.approx(1 / 20.0, rel=0.06)


def test_a_table_of_fading_begins_lower_where_deep_fades_are_common() -> None:
    assert [gamma_table(m)[1][0] for m in (0.5, 0.99, 1.0, 3.0)] == [-120.0, -120.0, -60.0, -60.0]


# What opens a radio whose reception is drawn.


@pytest.mark.parametrize(
    ("partitions", "links", "by_distance"),
    [
        ((), LinkScript(), True),
        ((Partition(2.0, 4.0, area=Area(Circle(1.0), Position(0.0, 0.0))),), LinkScript(), False),
        ((), LinkScript(graph=(("a", "b"),)), False),
    ],
)
def test_reception_is_drawn_by_distance_where_nothing_but_the_distance_decides(
    partitions: tuple[Partition, ...], links: LinkScript, by_distance: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Opened(Exception):
        """The draws are asked for."""

    def draws(*_: object, **given: bool) -> None:
        raise Opened(given)

    monkeypatch.setattr(open_medium, "reception_draws", draws)
    settings = Contention(range_m=100.0, reception=Shadowing(), links=links)
    with pytest.raises(Opened) as opened:
        open_medium.open_medium(settings, standing((0, 0), (5, 0)), partitions, Bench(standing((0, 0))).engine, 1)
    assert opened.value.args == ({"with_powers": False, "by_distance": by_distance},)


def test_fading_alone_has_a_chance_for_each_distance_and_with_a_shadow_it_has_none() -> None:
    distances_m = np.array([50.0, 100.0])
    alone = Nakagami(m=1.0).open(100.0, Random(1))
    found = alone.chances(distances_m, 0.0)
    assert found is not None
    assert found[0] == pytest.approx([math.exp(-0.25), math.exp(-1.0)], abs=0.01), "Rayleigh: e to the power of -d²/r²"
    assert Nakagami(m=1.0, sigma_db=4.0).open(100.0, Random(1)).chances(distances_m, 0.0) is None
    assert Shadowing(sigma_db=4.0).open(100.0, Random(1)).chances(distances_m, 0.0) is None
