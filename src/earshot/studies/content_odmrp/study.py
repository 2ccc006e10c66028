"""The content-based ODMRP study: section IV's experiments, figures 6 to 12, and larger networks.

What "about", "the same" or "constant" are taken to mean is written into each claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from earshot.studies.content_odmrp import claims as judged
from earshot.studies.content_odmrp.claims import THREE
from earshot.studies.content_odmrp.runs import conversion, growing, moving, throughput, traffic
from earshot.studies.study import Claim, Experiment, Study, cases

INTERVALS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
"Time between two moves of the receiver: the shorter, the faster it is."
SEEDS = range(20)
SMALLER = [(100, 1), (100, 10), (100, 100), (300, 1), (300, 10)]
LARGER = [(100, 1000), (300, 100), (1000, 1), (1000, 10)]
"Brokers, and subscriptions of each."
BUDGETS = (32, 64, 128, 256, 512, 1000)


def _sizes(chosen: Sequence[tuple[int, int]], seeds: Sequence[int]) -> list[dict[str, object]]:
    return [
        {**case, "brokers": brokers, "subscriptions": each}
        for brokers, each in chosen
        for case in cases(system=["extended", "one channel", "flooding"], seed=seeds)
    ]


def _budgets(budgets: Sequence[int], seeds: Sequence[int]) -> list[dict[str, object]]:
    return [
        {
            "system": "extended",
            "brokers": 100,
            "subscriptions": 30,
            "summary_bytes": budget,
            "packet_bytes": budget + 400,
            "seed": seed,
        }
        for budget in budgets
        for seed in seeds
    ]


EXPERIMENTS = [
    Experiment(
        "traffic",
        traffic,
        cases(system=THREE, subscribers=[5], seed=[0]),
        cases(system=THREE, subscribers=[5], seed=[0]),
    ),
    Experiment(
        "throughput",
        throughput,
        cases(system=[*THREE, "extended, broadcast"], subscribers=[5], interval_s=INTERVALS_S, seed=SEEDS)
        + cases(system=["extended"], subscribers=[10, 20, 40, 80], interval_s=[0.5], seed=SEEDS),
        cases(system=[*THREE, "extended, broadcast"], subscribers=[5], interval_s=[0.02, 0.1, 0.5], seed=range(2))
        + cases(system=["extended"], subscribers=[10, 20], interval_s=[0.5], seed=range(2)),
    ),
    Experiment(
        "conversion",
        conversion,
        cases(elements=[1, 10, 25, 50, 100, 150, 200], seed=range(3)),
        cases(elements=[10, 50, 200], seed=range(1)),
    ),
    Experiment(
        "moving",
        moving,
        cases(
            world=["alternating", "flapping", "flapping mesh", "walking"],
            system=["extended", "one channel"],
            step_s=STEPS_S,
            seed=range(20),
        ),
        cases(
            world=["alternating", "flapping", "flapping mesh", "walking"],
            system=["extended", "one channel"],
            step_s=[0.2, 1.0, 10.0, 30.0],
            seed=range(3),
        ),
    ),
    Experiment(
        "growing",
        growing,
        _sizes(LARGER, range(1)) + _sizes(SMALLER, range(3)),
        _sizes([(100, 1), (100, 10)], range(1)),
    ),
    Experiment("budgets", growing, _budgets(BUDGETS, range(3)), _budgets((32, 1000), range(1))),
    Experiment(
        "prediction",
        growing,
        cases(system=["extended"], brokers=[100], subscriptions=[10], predict=[True, False], seed=range(5)),
        cases(system=["extended"], brokers=[100], subscriptions=[1], predict=[True, False], seed=range(1)),
    ),
]

CLAIMS = [
    Claim(
        "Brokers 1, 2 and 4 get exactly their messages, 3 and 5 none",
        "section IV.A",
        "3 matching brokers among 5",
        judged.exactly,
    ),
    Claim(
        "One channel costs twice what the others cost",
        "figure 7",
        "ODMRP with one channel causes twice more network traffic than the others (taken as 1.5 to 2.5)",
        judged.twice,
        x_label="broker",
        y_label="bytes in",
    ),
    Claim(
        "The extension costs what predefined channels cost",
        "figure 7",
        "comparable to the predefined channels (taken as within a quarter)",
        judged.comparable,
    ),
    Claim(
        "Brokers that want nothing still take in a high volume of control packets",
        "figure 7",
        "in words (taken as at least a fifth of a matched broker's)",
        judged.unmatched,
    ),
    Claim(
        "Beyond the conversion overhead the extension improves throughput over one channel",
        "figure 6",
        "in words and a figure without numbers",
        judged.keeps_up,
        x_label="interval, s",
        y_label="messages a second",
        log_x=True,
    ),
    Claim(
        "Throughput stays the same over the number of subscribers, in spite of more traffic",
        "figure 8",
        "in words (taken as within 5 %)",
        judged.same_throughput,
        x_label="subscribers",
        y_label="messages a second",
    ),
    Claim(
        "Converting an event takes constant time up to 200 nested elements",
        "section IV.A",
        "constant within the range of 200 nesting elements (taken as at most half more than at 10)",
        partial(judged.conversion, what="event_us"),
        x_label="nested elements",
        y_label="microseconds",
    ),
    Claim(
        "Converting a subscription takes constant time up to 200 nested elements",
        "section IV.A",
        "constant within the range of 200 nesting elements (taken as at most half more than at 10)",
        partial(judged.conversion, what="subscription_us"),
        x_label="nested elements",
        y_label="microseconds",
    ),
    Claim(
        "Comparing an event with the aggregated subscriptions is a fraction of converting them",
        "section IV.A",
        "a fraction, since it compares simple bit sets (taken as a quarter)",
        judged.fraction,
    ),
    Claim(
        "Links 1 and 2 alternating: messages are lost when the receiver moves fast",
        "figure 10",
        "in words and a figure without numbers",
        judged.falls_with_speed,
        x_label="seconds a move",
        y_label="delivery ratio",
        log_x=True,
    ),
    Claim(
        "Link 3 flapping: the mesh delivers 100 % at every speed",
        "figure 12",
        "100 %",
        judged.mesh,
        x_label="seconds a move",
        y_label="delivery ratio",
        log_x=True,
    ),
    Claim(
        "Link 3 flapping: the faster, the more often the mesh's other way is used",
        "figure 12",
        "in words and a figure without numbers (taken as a tenth more at 0.1 s a move than at 10 s)",
        judged.mesh_used,
        x_label="seconds a move",
        y_label="share by the longer way",
        log_x=True,
    ),
    Claim(
        "Walking past nodes 1 to 9: the faster, the more messages come on Join Requests",
        "figure 11",
        "in words and a figure without numbers",
        judged.on_requests,
        x_label="seconds a move",
        y_label="share on Join Requests",
        log_x=True,
    ),
    Claim(
        "Walking past nodes 1 to 9: delivery ratios",
        "figure 11",
        "0.82 (11A) and 0.93 (11B)",
        judged.two_ratios,
        x_label="seconds a move",
        y_label="delivery ratio",
        log_x=True,
    ),
    Claim(
        "Many moving brokers: fewer bytes than flooding and plain ODMRP",
        "beyond the paper",
        "not measured there",
        judged.less_traffic,
    ),
    Claim(
        "Many moving brokers: only matching brokers deliver",
        "beyond the paper",
        "not measured there",
        judged.exact_at_scale,
    ),
    Claim(
        "A summary that is too small costs airtime, never an event",
        "beyond the paper",
        "false positive rates are named as future work",
        judged.false_positives,
        x_label="bytes of a summary",
        y_label="bytes",
        log_x=True,
    ),
    Claim(
        "Refreshing by predicted link lifetime delivers at least as much",
        "section III.E",
        "named as possible, not part of the paper's implementation",
        judged.prediction,
    ),
]

STUDY = Study(
    name="content-odmrp",
    paper="Yoneki, Bacon: An Adaptive Approach to Content-Based Subscription in Mobile Ad Hoc Networks (2004)",
    experiments=EXPERIMENTS,
    claims=CLAIMS,
    notes="The paper's topologies are pictures; how they are read: docs/papers/content-odmrp.md.",
)
