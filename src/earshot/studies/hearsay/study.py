"""The study of Hearsay: what docs/papers/hearsay.md claims, measured. Seeds from 201 on were not used for tuning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from earshot.studies.hearsay.bounds import bounds
from earshot.studies.hearsay.claims import CLAIMS
from earshot.studies.hearsay.runs import ABLATIONS, TRACES, simulated
from earshot.studies.study import Experiment, Study, cases

SEEDS = range(201, 206)
SCENARIOS = ("base", "city", "disaster", "highway", "odmrp", "odmrp-mobile")
LARGE = ("drip", "georendezvous")
"Radio scenarios whose runs take longest: only against those that flood."
OTHERS = ("cbf", "content-odmrp", "flooding", "gossip", "steam")
EVERYBODY = ("hearsay", *OTHERS)
FLOODS = ("hearsay", "cbf", "flooding", "gossip")
LOADED = (*FLOODS, "steam")
RADIOS = ("802.11p-6M", "802.11b-2M", "802.11b-1M", "lora-fsk-50k")
BASIC = "802.11b-1M"
SHORT_S = 30.0


def _quick(**parameters: Iterable[Any]) -> list[dict[str, Any]]:
    """Cases of one short run for each value: of the scenario `base`, unless they name another or a trace."""
    where: dict[str, Iterable[Any]] = {} if "trace" in parameters else {"scenario": ["base"]}
    return cases(**{**where, "duration_s": [SHORT_S], "seed": [201], **parameters})


EXPERIMENTS = (
    Experiment(
        "load",
        simulated,
        cases=[
            *cases(scenario=["city"], radio=[BASIC], rate=[1.0, 4.0, 8.0, 12.0, 16.0], protocol=LOADED, seed=SEEDS),
            *cases(scenario=["city"], radio=[BASIC], rate=[32.0, 48.0, 64.0], protocol=["hearsay"], seed=SEEDS),
            *cases(scenario=["disaster"], radio=[BASIC], rate=[1.0, 2.0, 4.0], protocol=LOADED, seed=SEEDS),
            *cases(scenario=["disaster"], radio=[BASIC], rate=[8.0], protocol=["hearsay"], seed=SEEDS),
        ],
        quick=_quick(scenario=["city"], rate=[1.0, 2.0], protocol=["hearsay", "cbf"]),
    ),
    Experiment(
        "scenarios",
        simulated,
        cases=[
            *cases(scenario=SCENARIOS, radio=[BASIC], protocol=EVERYBODY, seed=SEEDS),
            *cases(scenario=LARGE, radio=[BASIC], protocol=FLOODS, seed=SEEDS),
        ],
        quick=_quick(protocol=["hearsay", "cbf", "flooding"], radio=[BASIC]),
    ),
    Experiment(
        "bounds",
        bounds,
        cases=[
            *cases(scenario=(*SCENARIOS, *LARGE), radio=[BASIC], seed=SEEDS),
            *cases(trace=["liverpool", "ns2", "market-town"], radio=[BASIC], seed=SEEDS),
        ],
        quick=_quick(scenario=["base", "city"], radio=[BASIC]),
    ),
    Experiment(
        "traces",
        simulated,
        cases=cases(trace=list(TRACES), radio=[BASIC], protocol=FLOODS, seed=SEEDS),
        quick=_quick(trace=["market-town"], duration_s=[60.0], radio=[BASIC], protocol=["hearsay", "cbf", "flooding"]),
    ),
    Experiment(
        "radios",
        simulated,
        cases=[
            *cases(scenario=["base"], radio=RADIOS, rate=[1.0], protocol=FLOODS, seed=SEEDS),
            *cases(scenario=["base"], radio=["lora-fsk-50k"], rate=[0.25, 4.0], protocol=FLOODS, seed=SEEDS),
        ],
        quick=_quick(radio=["lora-fsk-50k"], rate=[1.0], protocol=["hearsay", "cbf"]),
    ),
    Experiment(
        "lossy",
        simulated,
        cases=[
            *cases(scenario=["base"], lossy_m=[[100.0, 200.0]], protocol=["hearsay", "flooding"], seed=SEEDS),
            *cases(scenario=["city"], lossy_m=[[80.0, 160.0]], protocol=["hearsay", "flooding"], seed=SEEDS),
        ],
        quick=_quick(lossy_m=[[100.0, 200.0]], protocol=["hearsay", "flooding"]),
    ),
    Experiment(
        "wrong places",
        simulated,
        cases=cases(scenario=["base"], position_error_m=[0.0, 5.0, 10.0, 20.0], protocol=["hearsay"], seed=SEEDS),
        quick=_quick(position_error_m=[0.0, 10.0], protocol=["hearsay"]),
    ),
    Experiment(
        "density",
        simulated,
        cases=cases(scenario=["base"], nodes=[10, 30, 100, 300, 1000], protocol=FLOODS, duration_s=[60.0], seed=SEEDS),
        quick=_quick(nodes=[10, 60], protocol=["hearsay", "flooding"]),
    ),
    Experiment(
        "speed",
        simulated,
        cases=cases(scenario=["base"], speed_m_s=[0.0, 10.0, 20.0, 40.0], protocol=FLOODS, seed=SEEDS),
        quick=_quick(speed_m_s=[0.0, 40.0], protocol=["hearsay", "flooding"]),
    ),
    Experiment(
        "churn",
        simulated,
        cases=cases(scenario=["base"], presence_s=[30.0, 120.0], protocol=FLOODS, seed=SEEDS),
        quick=_quick(presence_s=[30.0], protocol=["hearsay", "flooding"]),
    ),
    Experiment(
        "ingredients",
        simulated,
        cases=cases(
            scenario=["base", "city", "disaster", "highway"],
            radio=[BASIC],
            protocol=["hearsay"],
            without=list(ABLATIONS),
            seed=SEEDS,
        ),
        quick=_quick(radio=[BASIC], protocol=["hearsay"], without=["whole", "suppression"]),
    ),
)

STUDY = Study(
    "hearsay",
    "Hearsay, our own protocol: docs/papers/hearsay.md",
    EXPERIMENTS,
    CLAIMS,
    notes="All protocols with their defaults over the same radio; the seeds were not used for tuning. The traces of "
    "others are read from the folder EARSHOT_DATA; those that are not there are left out.",
)
