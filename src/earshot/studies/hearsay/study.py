"""The study of Hearsay: what docs/papers/hearsay.md claims, measured. Seeds from 201 on were not used for tuning."""

from __future__ import annotations

from earshot.studies.hearsay.bounds import bounds
from earshot.studies.hearsay.claims import CLAIMS
from earshot.studies.hearsay.runs import ABLATIONS, TRACES, simulated
from earshot.studies.study import Experiment, Study, cases

SEEDS = range(201, 206)
SCENARIOS = ("base", "city", "disaster", "highway", "odmrp", "odmrp-mobile")
LARGE = ("drip", "georendezvous")
"Radio scenarios whose runs take minutes: only against those that flood."
OTHERS = ("cbf", "content-odmrp", "flooding", "gossip", "steam")
EVERYBODY = ("hearsay", *OTHERS)
FLOODS = ("hearsay", "cbf", "flooding", "gossip")
LOADED = (*FLOODS, "steam")
RADIOS = ("802.11p-6M", "802.11b-2M", "802.11b-1M", "lora-fsk-50k")
BASIC = "802.11b-1M"
SHORT_S = 30.0

EXPERIMENTS = (
    Experiment(
        "load",
        simulated,
        cases=[
            *cases(scenario=["city"], radio=[BASIC], rate=[1.0, 4.0, 8.0, 12.0, 16.0], protocol=LOADED, seed=SEEDS),
            *cases(scenario=["city"], radio=[BASIC], rate=[32.0, 48.0], protocol=["hearsay"], seed=SEEDS),
            *cases(scenario=["disaster"], radio=[BASIC], rate=[1.0, 2.0, 4.0], protocol=LOADED, seed=SEEDS),
            *cases(scenario=["disaster"], radio=[BASIC], rate=[8.0], protocol=["hearsay"], seed=SEEDS),
        ],
        quick=cases(scenario=["city"], rate=[1.0, 2.0], protocol=["hearsay", "cbf"], duration_s=[SHORT_S], seed=[201]),
    ),
    Experiment(
        "scenarios",
        simulated,
        cases=[
            *cases(scenario=SCENARIOS, radio=[BASIC], protocol=EVERYBODY, seed=SEEDS),
            *cases(scenario=LARGE, radio=[BASIC], protocol=FLOODS, seed=SEEDS),
        ],
        quick=cases(
            scenario=["base"], protocol=["hearsay", "cbf", "flooding"], duration_s=[SHORT_S], radio=[BASIC], seed=[201]
        ),
    ),
    Experiment(
        "bounds",
        bounds,
        cases=[
            *cases(scenario=SCENARIOS, radio=[BASIC], seed=SEEDS),
            *cases(trace=["liverpool", "ns2", "market-town"], radio=[BASIC], seed=SEEDS),
        ],
        quick=cases(scenario=["base"], duration_s=[SHORT_S], radio=[BASIC], seed=[201]),
    ),
    Experiment(
        "traces",
        simulated,
        cases=cases(trace=list(TRACES), radio=[BASIC], protocol=FLOODS, seed=SEEDS),
        quick=cases(
            trace=["market-town"],
            radio=[BASIC],
            protocol=["hearsay", "cbf", "flooding"],
            duration_s=[SHORT_S],
            seed=[201],
        ),
    ),
    Experiment(
        "radios",
        simulated,
        cases=[
            *cases(scenario=["base"], radio=RADIOS, rate=[1.0], protocol=FLOODS, seed=SEEDS),
            *cases(scenario=["base"], radio=["lora-fsk-50k"], rate=[0.25, 4.0], protocol=FLOODS, seed=SEEDS),
        ],
        quick=cases(
            scenario=["base"],
            radio=["lora-fsk-50k"],
            rate=[1.0],
            protocol=["hearsay", "cbf"],
            duration_s=[SHORT_S],
            seed=[201],
        ),
    ),
    Experiment(
        "lossy",
        simulated,
        cases=[
            *cases(scenario=["base"], lossy_m=[[100.0, 200.0]], protocol=["hearsay", "flooding"], seed=SEEDS),
            *cases(scenario=["city"], lossy_m=[[80.0, 160.0]], protocol=["hearsay", "flooding"], seed=SEEDS),
        ],
        quick=cases(
            scenario=["base"],
            lossy_m=[[100.0, 200.0]],
            protocol=["hearsay", "flooding"],
            duration_s=[SHORT_S],
            seed=[201],
        ),
    ),
    Experiment(
        "wrong places",
        simulated,
        cases=cases(scenario=["base"], position_error_m=[0.0, 5.0, 10.0, 20.0], protocol=["hearsay"], seed=SEEDS),
        quick=cases(
            scenario=["base"], position_error_m=[0.0, 10.0], protocol=["hearsay"], duration_s=[SHORT_S], seed=[201]
        ),
    ),
    Experiment(
        "density",
        simulated,
        cases=cases(scenario=["base"], nodes=[10, 30, 100, 300, 1000], protocol=FLOODS, duration_s=[60.0], seed=SEEDS),
        quick=cases(
            scenario=["base"], nodes=[10, 60], protocol=["hearsay", "flooding"], duration_s=[SHORT_S], seed=[201]
        ),
    ),
    Experiment(
        "speed",
        simulated,
        cases=cases(scenario=["base"], speed_m_s=[0.0, 10.0, 20.0, 40.0], protocol=FLOODS, seed=SEEDS),
        quick=cases(
            scenario=["base"], speed_m_s=[0.0, 40.0], protocol=["hearsay", "flooding"], duration_s=[SHORT_S], seed=[201]
        ),
    ),
    Experiment(
        "churn",
        simulated,
        cases=cases(scenario=["base"], presence_s=[30.0, 120.0], protocol=FLOODS, seed=SEEDS),
        quick=cases(
            scenario=["base"], presence_s=[30.0], protocol=["hearsay", "flooding"], duration_s=[SHORT_S], seed=[201]
        ),
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
        quick=cases(
            scenario=["base"],
            radio=[BASIC],
            protocol=["hearsay"],
            without=["whole", "suppression"],
            duration_s=[SHORT_S],
            seed=[201],
        ),
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
