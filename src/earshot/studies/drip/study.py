"""The DRIP study: figures 3(a), 3(b) and 4, equation 2, and beyond the paper: delivery ratio, handovers,
load, the settings that the paper leaves open, larger networks, and brokers that crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earshot.protocols.drip.machine import Drip
from earshot.studies.drip.claims import CLAIMS
from earshot.studies.drip.runs import crashed, grown, simulated
from earshot.studies.study import Experiment, Study, cases

BROKERS, COPIES = (10, 20, 30), (1, 2, 4)
VARIANTS: dict[str, dict[str, Any]] = {
    "as fixed": {},
    "contacts 1 s apart": {"settings": {"contact_interval_s": 1.0}},
    "one event a contact": {"settings": {"contact_events": 1}},
    "source does not carry": {"settings": {"source_carries": False}},
    "common destinations": {"settings": {"destinations": "common"}},
    "announcements each 4 s": {"settings": {"announce_interval_s": 4.0}},
    "ability exponent 1.8": {"scenario": {"ability.exponent": 1.8}},
    "11 Mbit/s": {"scenario": {"medium.bit_rate_bps": 11e6}},
}
"The open points of the paper, each read in another way."
POINTS: tuple[dict[str, Any], ...] = (
    {"brokers": 20, "copies": 1},
    {"brokers": 20, "copies": 4},
    {"brokers": 10, "copies": 2},
    {"brokers": 30, "copies": 2},
    {"brokers": 20, "copies": 2, "protocol": "drip-sf"},
    {"brokers": 20, "copies": 4, "selection": "random"},
)
"The points that decide the six claims."

SMALL = {"nodes.node.count": 80, "area.width_m": 632.0, "area.height_m": 632.0}
"The same density in a smaller area."


def _small(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same cases on a smaller network, for `--quick`."""
    return [{**case, "scenario": {**SMALL, **case.get("scenario", {})}} for case in cases]


def _variants(names: Sequence[str], units: int) -> list[dict[str, Any]]:
    return [
        {"variant": name, "nearest": 5, "units": units, "seed": 0, **point, **VARIANTS[name]}
        for name in names
        for point in POINTS
    ]


def _loads(rates: Sequence[float], units: int) -> list[dict[str, Any]]:
    fixed: dict[str, Any] = {"brokers": [20], "nearest": [5], "copies": [2], "units": [units], "seed": [0]}
    points = cases(rate=rates, protocol=["drip", "drip-sf"], **fixed)
    return [{**point, "scenario": {"publish.numbers.when.rate_per_s": point["rate"]}} for point in points]


def _sizes(sizes: Sequence[int], units: int) -> list[dict[str, Any]]:
    fixed = {"warm_up_s": 30.0, "seed": 0, "settings": {"bootstrap_s": 15.0}}
    points = cases(nodes=sizes, nearest=[4], copies=[2], units=[units])
    return [{**point, "brokers": point["nodes"] // 20, **fixed} for point in points]


SEEDS = range(2)
QUICK = {"units": [15], "seed": [0]}

STUDY = Study(
    name="drip",
    paper=Drip.paper,
    # The longest cases come first, so that both cores stay busy to the end.
    experiments=[
        Experiment("growing", grown, _sizes([2000, 1000, 200], 20), _sizes([160], 5)),
        Experiment(
            "epidemic",
            simulated,
            cases(brokers=BROKERS, nearest=[5], copies=[2], protocol=["drip-sf"], units=[500], seed=SEEDS),
            _small(cases(brokers=[10, 20], nearest=[5], copies=[2], protocol=["drip-sf"], **QUICK)),
        ),
        Experiment(
            "delay",
            simulated,
            cases(brokers=BROKERS, nearest=[5], copies=COPIES, units=[500], seed=SEEDS),
            _small(cases(brokers=[10, 20], nearest=[5], copies=[2, 4], **QUICK)),
        ),
        Experiment(
            "coverage",
            simulated,
            cases(brokers=BROKERS, nearest=[4], copies=[1, 4], units=[500], seed=SEEDS),
            _small(cases(brokers=[10, 20], nearest=[4], copies=[1, 4], **QUICK)),
        ),
        Experiment(
            "selection",
            simulated,
            cases(brokers=BROKERS, nearest=[5], copies=[2], selection=["random"], units=[500], seed=SEEDS),
            _small(cases(brokers=[10, 20], nearest=[5], copies=[2], selection=["random"], **QUICK)),
        ),
        Experiment("load", simulated, _loads([0.8, 3.2, 9.6], 60), _small(_loads([0.8, 6.4], 10))),
        Experiment("settings", simulated, _variants(list(VARIANTS), 30), _small(_variants(["as fixed"], 15))),
        Experiment(
            "crashes",
            crashed,
            cases(crashes=[0, 3, 6], brokers=[10], nearest=[4], copies=[2], units=[150], seed=SEEDS),
            _small(cases(crashes=[1], brokers=[10], nearest=[4], copies=[2], units=[60], seed=[0])),
        ),
    ],
    claims=CLAIMS,
    notes="A time unit is a second, a hop 802.11b at 2 Mbit/s; every open point is a setting, see docs/papers/drip.md.",
)
