"""The content-based ODMRP study: section IV's experiments, figures 6 to 12, and larger networks.

What is measured is in `runs`, the networks are in `worlds`, the claims in `claims`. This file has the cases.
"""

from __future__ import annotations

from collections.abc import Sequence

from earshot.studies.content_odmrp import claims, structure_claims, worlds
from earshot.studies.content_odmrp.runs import (
    GRAINS,
    changes,
    conversion,
    grain,
    growing,
    matching,
    moving,
    regrouping,
    summaries,
    throughput,
    traffic,
)
from earshot.studies.study import Experiment, Study, cases

INTERVALS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
"Time between two moves of the receiver: the shorter, the faster it is."
SEEDS = range(20)
SIZES = [(1000, 1), (300, 10), (300, 1), (100, 100), (100, 10), (100, 1)]
"Brokers, and subscriptions of each."
BUDGETS = (32, 64, 128, 256, 512, 1000)
TREE_SYSTEMS = ("as written", "least constrained", "ours", "one channel", "N channels")


def _sizes(chosen: Sequence[tuple[int, int]], seeds: Sequence[int]) -> list[dict[str, object]]:
    return [
        {**case, "brokers": brokers, "subscriptions": each}
        for brokers, each in chosen
        for case in cases(system=["ours", "one channel", "flooding"], seed=seeds)
    ]


def _budgets(budgets: Sequence[int], seeds: Sequence[int]) -> list[dict[str, object]]:
    found = cases(system=["ours"], brokers=[100], subscriptions=[30], summary_bytes=budgets, seed=seeds)
    return [{**case, "packet_bytes": case["summary_bytes"] + 400} for case in found]


TRAFFIC = cases(system=TREE_SYSTEMS, subscribers=[5], seed=[0])
CHANGES = [
    {"aggregate": False, "advertise": False, "still": False, "seed": 0},
    *cases(aggregate=[False, True], advertise=[False], still=[True], seed=[0]),
    {"aggregate": False, "advertise": True, "still": True, "seed": 0},
]
AIR = ("as written", "least constrained", "acknowledged", "ours, acknowledged", "one channel", "N channels")
EXPERIMENTS = [
    # The longest cases come first, so that both cores stay busy to the end.
    Experiment(
        "growing",
        growing,
        _sizes(SIZES, range(2)),
        _sizes([(100, 1), (100, 10)], range(1)),
    ),
    Experiment(
        "grain",
        grain,
        cases(grain=list(GRAINS), speed_m_s=[1.0, 20.0], seed=range(3)),
        cases(grain=["least constrained", "finest"], speed_m_s=[1.0, 20.0], seed=range(1)),
    ),
    Experiment("traffic", traffic, TRAFFIC, TRAFFIC),
    Experiment(
        "throughput",
        throughput,
        cases(system=AIR, subscribers=[5], interval_s=INTERVALS_S, seed=SEEDS)
        + cases(system=["as written"], subscribers=[10, 20, 40, 80], interval_s=[0.5], seed=SEEDS),
        cases(system=AIR, subscribers=[5], interval_s=[0.02, 0.1, 0.5], seed=range(2))
        + cases(system=["as written"], subscribers=[10, 20], interval_s=[0.5], seed=range(2)),
    ),
    Experiment(
        "conversion",
        conversion,
        cases(elements=[1, 10, 25, 30, 50, 100, 150, 200], seed=range(3)),
        cases(elements=[10, 30, 200], seed=range(1)),
    ),
    Experiment("matching", matching, cases(seed=range(5)), cases(seed=range(1))),
    Experiment(
        "moving",
        moving,
        cases(world=worlds.MOVING, system=["as written"], step_s=STEPS_S, seed=SEEDS),
        cases(world=worlds.MOVING, system=["as written"], step_s=[0.1, 1.0, 2.0, 10.0], seed=range(3)),
    ),
    Experiment(
        "summaries",
        summaries,
        cases(subscriptions=[1, 10, 100], seed=range(10)),
        cases(subscriptions=[1, 10, 100], seed=range(2)),
    ),
    Experiment("changes", changes, CHANGES, CHANGES),
    Experiment(
        "regrouping",
        regrouping,
        cases(changing=["subscriptions", "events"], noise_limit=[1.0, 0.4], seed=[0]),
        cases(changing=["subscriptions", "events"], noise_limit=[1.0, 0.4], seed=[0]),
    ),
    Experiment("budgets", growing, _budgets(BUDGETS, range(3)), _budgets((32, 1000), range(1))),
    Experiment(
        "prediction",
        growing,
        cases(system=["ours"], brokers=[100], subscriptions=[10], predict=[True, False], seed=range(5)),
        cases(system=["ours"], brokers=[100], subscriptions=[1], predict=[True, False], seed=range(1)),
    ),
]

STUDY = Study(
    name="content-odmrp",
    paper="Yoneki, Bacon: An Adaptive Approach to Content-Based Subscription in Mobile Ad Hoc Networks (2004)",
    experiments=EXPERIMENTS,
    claims=[*claims.CLAIMS, *structure_claims.CLAIMS],
    notes="The paper's topologies are pictures; how they are read: docs/papers/content-odmrp.md.",
)
