"""The DRIP study: figures 3(a), 3(b) and 4, equation 2, and beyond the paper: delivery ratio, handovers, load, the
settings that the paper leaves open, on-demand routing, larger networks, and brokers that crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earshot.protocols.drip.machine import Drip
from earshot.studies.drip import analysis_claims, beyond_claims, claims
from earshot.studies.drip.runs import crashed, grown, packet_sizes, simulated, walks
from earshot.studies.study import Experiment, Study, cases

BROKERS, COPIES = (10, 20, 30), (1, 2, 4)
UNITS = 200
"Time units of publications in a run. Two seeds have together nearly as many as the paper's 500."
SEEDS = range(2)
VARIANTS: dict[str, dict[str, Any]] = {
    "common destinations": {"settings": {"destinations": "common"}},
    "source does not carry": {"settings": {"source_carries": False}},
    "contacts 1 s apart": {"settings": {"contact_interval_s": 1.0}},
}
"The open points of the paper that matter most, each read in another way."
POINTS: tuple[dict[str, Any], ...] = (
    {"brokers": 20, "copies": 1, "protocol": "drip", "selection": "ability"},
    {"brokers": 20, "copies": 2, "protocol": "drip", "selection": "ability"},
    {"brokers": 20, "copies": 4, "protocol": "drip", "selection": "ability"},
    {"brokers": 10, "copies": 2, "protocol": "drip", "selection": "ability"},
    {"brokers": 20, "copies": 2, "protocol": "drip", "selection": "random"},
    {"brokers": 20, "copies": 2, "protocol": "drip-sf", "selection": "ability"},
)
"The points that decide the six claims; as the study fixes the open points, they are cases of the figures."
EPIDEMIC_IGNORES = ("common destinations", "source does not carry")
"Variants that are about destinations and carriers, which SF does not have: its runs would be the figures' own."

SMALL = {"nodes.node.count": 80, "area.width_m": 632.0, "area.height_m": 632.0}
"The same density in a smaller area."


def _small(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same cases on a smaller network, for `--quick`."""
    return [{**case, "scenario": {**SMALL, **case.get("scenario", {})}} for case in cases]


def _variants(names: Sequence[str], units: int, seeds: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"variant": name, "nearest": 5, "units": units, "seed": seed, **point, **VARIANTS[name]}
        for name in names
        for point in POINTS
        if not (point["protocol"] == "drip-sf" and name in EPIDEMIC_IGNORES)
        for seed in seeds
    ]


def _loads(rates: Sequence[float], units: int, seeds: Sequence[int]) -> list[dict[str, Any]]:
    fixed: dict[str, Any] = {"brokers": [20], "nearest": [5], "copies": [2], "units": [units], "seed": seeds}
    points = cases(rate=rates, protocol=["drip", "drip-sf"], **fixed)
    return [{**point, "scenario": {"publish.numbers.when.rate_per_s": point["rate"]}} for point in points]


def _one_subscriber(brokers: Sequence[int], copies: Sequence[int], units: int, seeds: Sequence[int]) -> Any:
    """A tenth of the nodes subscribe instead of half: about as many events have one subscriber as have none."""
    points = cases(brokers=brokers, nearest=[4], copies=copies, units=[units], seed=seeds)
    return [{**point, "scenario": {"subscribe.intervals.chance": 0.1}} for point in points]


RADIOS: dict[str, dict[str, Any]] = {
    "802.11b": {},
    "ideal": {"medium": {"kind": "unit-disk", "range_m": 120.0}},
}


def _sizes(sizes: Sequence[int], units: int, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Every event has a whole life, 60 s, before the run ends."""
    fixed = {"warm_up_s": 30.0, "cool_down_s": 60.0, "settings": {"bootstrap_s": 15.0}}
    points = cases(nodes=sizes, radio=RADIOS, nearest=[4], copies=[2], units=[units], seed=seeds)
    return [{**point, "brokers": point["nodes"] // 20, "scenario": RADIOS[point["radio"]], **fixed} for point in points]


def _routings(units: int, seeds: Sequence[int]) -> list[dict[str, Any]]:
    points = cases(
        routes=["announcements", "network"], brokers=[20], nearest=[5], copies=[2], units=[units], seed=seeds
    )
    return [
        {**point, "scenario": {"medium.routing": "reactive"}, "settings": {"routes": point["routes"]}}
        for point in points
    ]


QUICK = {"units": [15], "seed": [0]}


def _figure(name: str, points: dict[str, Sequence[Any]], **quick: Sequence[Any]) -> Experiment:
    """Runs at these points; `--quick` takes other values of some, a smaller network and a shorter run."""
    whole = cases(**points, units=[UNITS], seed=SEEDS)
    return Experiment(name, simulated, whole, _small(cases(**{**points, **quick}, **QUICK)))


STUDY = Study(
    name="drip",
    paper=Drip.paper,
    # The longest cases come first, so that both cores stay busy to the end.
    experiments=[
        Experiment("growing", grown, _sizes([1000, 200], 20, SEEDS), _sizes([160], 5, [0])),
        Experiment("routing", simulated, _routings(40, SEEDS), _small(_routings(5, [0]))),
        Experiment("load", simulated, _loads([3.2], UNITS, SEEDS), _small(_loads([6.4], 10, [0]))),
        _figure(
            "epidemic", {"brokers": BROKERS, "nearest": [5], "copies": [2], "protocol": ["drip-sf"]}, brokers=[10, 20]
        ),
        _figure("delay", {"brokers": BROKERS, "nearest": [5], "copies": COPIES}, brokers=[10, 20]),
        _figure("coverage", {"brokers": BROKERS, "nearest": [4], "copies": COPIES}, brokers=[10, 20], copies=[1, 4]),
        Experiment(
            "one subscriber",
            simulated,
            _one_subscriber(BROKERS, COPIES, UNITS, SEEDS),
            _small(_one_subscriber([10], [2], 60, [0])),
        ),
        _figure("nearest", {"brokers": [20], "nearest": [1, 2, 7], "copies": [2]}, nearest=[2]),
        _figure(
            "selection", {"brokers": BROKERS, "nearest": [5], "copies": [2], "selection": ["random"]}, brokers=[10, 20]
        ),
        Experiment(
            "settings",
            simulated,
            _variants(list(VARIANTS), UNITS, SEEDS),
            _small(_variants(["common destinations"], 15, [0])),
        ),
        Experiment(
            "walks",
            walks,
            cases(brokers=BROKERS, grid=[400], walks=[20_000], seed=range(5)),
            cases(brokers=BROKERS, grid=[400], walks=[1000], seed=range(2)),
        ),
        Experiment("packets", packet_sizes, cases(units=[500], seed=SEEDS), cases(units=[60], seed=[0])),
        Experiment(
            "crashes",
            crashed,
            cases(crashes=[0, 3, 6], brokers=[10], nearest=[4], copies=[2], units=[150], seed=SEEDS),
            _small(cases(crashes=[1], brokers=[10], nearest=[4], copies=[2], units=[60], seed=[0])),
        ),
    ],
    claims=[*claims.CLAIMS, *analysis_claims.CLAIMS, *beyond_claims.CLAIMS],
    notes="A time unit is a second, a hop 802.11b at 2 Mbit/s; every open point is a setting, see docs/papers/drip.md.",
)
