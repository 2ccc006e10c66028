"""The search for capacities round by round, with made-up runs instead of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import ScenarioError, SettingsError
from earshot.pipeline.campaigns import capacity
from earshot.pipeline.campaigns.capacity import LoadPoint, ProtocolCapacity, find_capacity
from earshot.simulation.scenario.library import load_scenario

SCENE = load_scenario("base").with_({"duration_s": 14.0, "warm_up_s": 1.0, "cool_down_s": 3.0})
LAKE: Any = SimpleNamespace(session=None)

Figures = Mapping[str, float]


class Network:
    """Runs of a made-up network, and the rounds in which they were asked for."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, figures: Callable[[str, float, int], Figures | str], cores: int = 1
    ) -> None:
        self.rounds: list[list[tuple[str, float, int]]] = []
        self.asked: list[tuple[str, float | None]] = []
        self.figures = figures
        self.found: dict[str, Figures] = {}
        monkeypatch.setattr(capacity, "parallelism", lambda _session: cores)
        monkeypatch.setattr(capacity, "run_campaign", self.run)
        monkeypatch.setattr(
            capacity, "whole_run_figures", lambda _lake, runs, _metrics: {run: self.found[run] for run in runs}
        )

    def run(self, _lake: Any, campaign: Any, stage: Any, count: Any, most_s: float | None) -> Sequence[Any]:
        stage("simulating")
        self.asked.append((campaign.name, most_s))
        outcomes = []
        self.rounds.append([])
        for run in campaign.runs:
            multiple = run.scenario.event_rate / SCENE.event_rate
            self.rounds[-1].append((run.protocol, round(multiple, 6), run.seed))
            found = self.figures(run.protocol, multiple, run.seed)
            failed = isinstance(found, str)
            if not isinstance(found, str):
                self.found[run.id] = found
            outcomes.append(
                SimpleNamespace(run=run.id, status="failed" if failed else "done", error=found if failed else None)
            )
        count(len(outcomes), 0, 0, "")
        return outcomes


def delivers(share: float, events: float = 20.0, **more: float) -> Figures:
    return {"delivery_of_reachable": share, "delivery_ratio": share / 2, "events": events, **more}


def test_rates_are_doubled_until_too_little_arrives_and_then_the_gap_is_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"flooding": 3.0, "gossip": 1.0}
    network = Network(monkeypatch, lambda name, multiple, _: delivers(1.0 if multiple <= limits[name] else 0.5))
    found = find_capacity(LAKE, SCENE, {"gossip": {}, "flooding": {}}, [0], narrow=1.5)
    assert network.rounds == [
        [("gossip", 1.0, 0), ("flooding", 1.0, 0)],
        [("gossip", 2.0, 0), ("flooding", 2.0, 0)],
        [("gossip", 1.41421, 0), ("flooding", 4.0, 0)],
        [("flooding", 2.82843, 0)],
    ]
    assert (found.scenario, found.share, found.seeds, found.most) == (SCENE.name, 0.95, 1, 64.0)
    assert [(one.protocol, one.capacity, one.exceeds, one.error) for one in found.protocols] == [
        ("flooding", 2.82843, False, None),
        ("gossip", 1.0, False, None),
    ]
    assert [point.multiple for point in found.protocols[0].points] == [1.0, 2.0, 2.82843, 4.0]
    assert set(network.asked) == {(f"capacity-{SCENE.name}", None)}


def test_free_cores_try_more_multiples_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch, lambda *_: delivers(1.0), cores=9)
    (one,) = find_capacity(LAKE, SCENE, {"flooding": {}}, [0, 1], most=20.0, most_s=7.0).protocols
    assert network.rounds == [
        [("flooding", 1.0, 0), ("flooding", 1.0, 1)],
        [("flooding", multiple, seed) for multiple in (2.0, 4.0, 8.0, 16.0) for seed in (0, 1)],
        [("flooding", 20.0, 0), ("flooding", 20.0, 1)],
    ]
    assert (one.capacity, one.exceeds) == (20.0, True)
    assert network.asked[0] == (f"capacity-{SCENE.name}", 7.0)


def test_a_point_is_the_mean_over_its_seeds_and_its_rate_that_of_the_time_in_which_events_are_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def figures(_name: str, _multiple: float, seed: int) -> Figures:
        return delivers(1.1, 30.0, airtime_mean=0.3) if seed else delivers(0.9, 10.0)

    Network(monkeypatch, figures)
    (one,) = find_capacity(LAKE, SCENE, {"flooding": {}}, [0, 1], most=1.0).protocols
    assert one.points == (LoadPoint(1.0, 2.0, 1.0, 0.5, 0.3, None, 2),)
    assert one.at_capacity == one.points[0]


def test_a_run_that_fails_ends_the_search_of_its_protocol_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def figures(name: str, multiple: float, seed: int) -> Figures | str:
        return "RunTooSlow: 9 s" if name == "gossip" and multiple > 1 and seed == 1 else delivers(1.0)

    Network(monkeypatch, figures)
    found = find_capacity(LAKE, SCENE, {"gossip": {}, "flooding": {}}, [0, 1], most=2.0)
    assert [(one.protocol, one.capacity, one.exceeds, one.error) for one in found.protocols] == [
        ("flooding", 2.0, True, None),
        ("gossip", 1.0, False, "RunTooSlow: 9 s"),
    ]
    assert [point.multiple for point in found.protocols[1].points] == [1.0]


def test_protocols_without_capacity_stand_in_order_of_what_they_deliver_at_the_lowest_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    share = {"flooding": 0.5, "gossip": 0.7, "steam": 0.5}
    Network(monkeypatch, lambda name, multiple, _: delivers(share[name]) if multiple >= 0.5 else {})
    found = find_capacity(LAKE, SCENE, {"steam": {}, "flooding": {}, "gossip": {}}, [0])
    assert [(one.protocol, one.capacity) for one in found.protocols] == [
        ("gossip", None),
        ("flooding", None),
        ("steam", None),
    ]
    assert [point.multiple for point in found.protocols[0].points] == [0.5, 1.0], "at less, nothing was to be delivered"


def test_who_holds_any_load_stands_before_who_holds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def figures(name: str, multiple: float, _seed: int) -> Figures:
        return delivers(1.0 if name == "gossip" and multiple <= 0.5 else 0.9 if name == "flooding" else 0.1)

    Network(monkeypatch, figures)
    found = find_capacity(LAKE, SCENE, {"flooding": {}, "gossip": {}}, [0], narrow=2.0)
    assert [(one.protocol, one.capacity) for one in found.protocols] == [("gossip", 0.5), ("flooding", None)]


def test_a_load_at_which_exactly_the_share_arrives_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    Network(monkeypatch, lambda _name, multiple, _seed: delivers(0.95 if multiple <= 2.0 else 0.949))
    (one,) = find_capacity(LAKE, SCENE, {"flooding": {}}, [0], narrow=2.0).protocols
    assert (one.capacity, one.exceeds) == (2.0, False)


def test_loads_below_one_at_which_nothing_was_to_be_delivered_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch, lambda _name, multiple, _seed: delivers(0.5) if multiple >= 1.0 else {}, cores=4)
    (one,) = find_capacity(LAKE, SCENE, {"flooding": {}}, [0]).protocols
    assert network.rounds == [[("flooding", 1.0, 0)], [("flooding", 1 / 2**n, 0) for n in (4, 3, 2, 1)]]
    assert (one.capacity, len(one.points)) == (None, 1)


def test_a_scenario_in_which_nothing_is_to_be_delivered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Network(monkeypatch, lambda *_: {})
    with pytest.raises(ScenarioError, match="no delivery is both expected and reachable"):
        find_capacity(LAKE, SCENE, {"flooding": {}}, [0])


def test_settings_that_cannot_be_are_refused_before_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(monkeypatch, lambda *_: delivers(1.0))
    with pytest.raises(SettingsError):
        find_capacity(LAKE, SCENE, {"gossip": {"probability": 7.0}}, [0])
    assert network.rounds == []


def test_each_round_says_who_is_tried_at_which_loads_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    Network(monkeypatch, lambda *_: delivers(1.0), cores=9)
    stated: list[str] = []
    find_capacity(LAKE, SCENE, {"flooding": {}, "gossip": {}}, [0], most=3.0, say=stated.append)
    assert stated == [
        "flooding, gossip at 1x: simulating",
        "flooding, gossip at 1x: 2 of 2 runs done",
        "flooding, gossip at 2x to 3x: simulating",
        "flooding, gossip at 2x to 3x: 4 of 4 runs done",
    ]
    stated.clear()
    many = {"flooding": {}, "gossip": {}, "steam": {}, "cbf": {}}
    find_capacity(LAKE, SCENE, many, [0], most=1.0, say=stated.append)
    assert stated[0] == "4 protocols at 1x: simulating"
    stated.clear()
    find_capacity(LAKE, SCENE, {"flooding": {}, "gossip": {}, "steam": {}}, [0], most=1.0, say=stated.append)
    assert stated[0] == "flooding, gossip, steam at 1x: simulating"


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (((1.0, 0.8), (0.25, 0.8), (0.5, 0.8)), ", and no more at lower loads"),
        (((1.0, 0.7), (0.25, 0.8), (0.5, 0.8)), " arrives, at 0.5 times the base rate 80.0 %, and no more"),
        (((2.0, 0.7), (0.25, 0.6)), "at 2 times the base rate 70.0 % of the reachable arrives, and no more at lower"),
    ],
)
def test_of_two_loads_at_which_as_much_arrives_the_higher_is_named(
    points: tuple[tuple[float, float], ...], words: str
) -> None:
    some = tuple(LoadPoint(multiple, multiple, share, share, None, None, 1) for multiple, share in points)
    assert words in ProtocolCapacity("gossip", None, False, some).never_words(0.95)
