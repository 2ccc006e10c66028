"""The study of STEAM: section 5's experiments at the paper's sizes, and the paper's claims.

docs/papers/steam.md describes the models; they were written before the first results.
"""

from __future__ import annotations

from earshot.protocols.steam.machine import Steam
from earshot.studies.steam.claims import CLAIMS
from earshot.studies.steam.crossing import DAY_S, STRETCH_S, braking, crossing, discovery
from earshot.studies.steam.experiments import (
    PROXIMITIES_M,
    SATURATIONS,
    SPEEDS_MPH,
    accuracy,
    collisions,
    cost,
    latency,
    reach,
)
from earshot.studies.steam.runs import SQUARE
from earshot.studies.study import Experiment, Study, cases

STRETCHES = range(int(DAY_S / STRETCH_S))

EXPERIMENTS = (
    # The longest case comes first, so that both cores stay busy to the end.
    Experiment(
        "collisions",
        collisions,
        cases=[
            {"announcements": 40, "draws": 1000, "seed": 0},
            {"announcements": 1000, "draws": 20, "seed": 0},
            {"announcements": 40_000, "draws": 20, "seed": 0},
        ],
        quick=[{"announcements": 40, "draws": 20, "seed": 0}, {"announcements": 40_000, "draws": 1, "seed": 0}],
    ),
    Experiment(
        "cost",
        cost,
        cases=cases(scenario="AB", saturation=SATURATIONS, speed_mph=[30], seed=range(10)),
        quick=cases(scenario="AB", saturation=[60], speed_mph=[30], seed=range(2)),
    ),
    Experiment(
        "speed",
        cost,
        cases=cases(scenario="AB", saturation=[120], speed_mph=SPEEDS_MPH, seed=range(5)),
        quick=cases(scenario="AB", saturation=[60], speed_mph=[10, 40, 70], seed=range(1)),
    ),
    Experiment(
        "reach",
        reach,
        cases=cases(
            scenario="AB",
            saturation=SATURATIONS,
            seconds=[30],
            proximities_m=[PROXIMITIES_M],
            recovery=[False, True],
            seed=range(3),
        ),
        quick=cases(
            scenario="AB",
            saturation=[60],
            seconds=[8],
            proximities_m=[(100, 300)],
            recovery=[False, True],
            seed=range(1),
        ),
    ),
    Experiment(
        "braking",
        braking,
        cases=cases(beacon_interval_s=[0.1, 1.0], location_interval_s=[0.0, 1.0], vehicles=[300], seed=range(5)),
        quick=cases(beacon_interval_s=[0.1, 1.0], location_interval_s=[0.0, 1.0], vehicles=[40], seed=range(2)),
    ),
    Experiment(
        "discovery",
        discovery,
        cases=cases(
            beacon_interval_s=[0.1, 0.5, 1.0, 2.0, 5.0],
            speed_mph=[10, 40, 70],
            radius_m=[40],
            vehicles=[100],
            seed=range(5),
        ),
        quick=cases(beacon_interval_s=[0.1, 1.0, 5.0], speed_mph=[10, 70], radius_m=[40], vehicles=[20], seed=range(2)),
    ),
    Experiment("crossing", crossing, cases=cases(stretch=STRETCHES, seed=[0]), quick=cases(stretch=[60], seed=[0])),
    Experiment(
        "latency",
        latency,
        cases=cases(blocks=[20], operations=[50], largest=[10_000], seed=[0]),
        quick=cases(blocks=[4], operations=[20], largest=[100], seed=[0]),
    ),
    Experiment(
        "accuracy",
        accuracy,
        cases=cases(scenario="ABCDE", saturation=SATURATIONS, seed=range(15)),
        quick=cases(scenario="ABCDE", saturation=[60, 120], seed=range(1)),
    ),
    Experiment(
        "square",
        accuracy,
        cases=cases(scenario=[SQUARE], saturation=SATURATIONS, seed=range(15)),
        quick=cases(scenario=[SQUARE], saturation=[60, 120], seed=range(1)),
    ),
)

STUDY = Study(
    "steam",
    Steam.paper,
    EXPERIMENTS,
    CLAIMS,
    notes="Unit-disk radio of 200 m; the crossing's model and the areas of C, D and E are ours, stated beforehand.",
)
