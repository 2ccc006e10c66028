"""The study of STEAM: section 5's experiments at their own sizes, and what the paper says of them.

The models are in docs/papers/steam.md; they were written down before the results were looked at.
"""

from __future__ import annotations

from earshot.studies.steam import claims as judged
from earshot.studies.steam.crossing import DAY_S, STRETCH_S, TABLE_1, crossing
from earshot.studies.steam.experiments import (
    PROXIMITIES_M,
    SATURATIONS,
    SPEEDS_MPH,
    accuracy,
    collisions,
    cost,
    reach,
)
from earshot.studies.steam.latency import latency
from earshot.studies.study import Claim, Experiment, Study, cases

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
        cases=cases(scenario="AB", saturation=SATURATIONS, seconds=[30], proximities_m=[PROXIMITIES_M], seed=range(3)),
        quick=cases(scenario="AB", saturation=[60], seconds=[8], proximities_m=[(100, 300)], seed=range(1)),
    ),
    Experiment(
        "crossing",
        crossing,
        cases=cases(stretch=STRETCHES, seed=[0]),
        quick=cases(stretch=[60], seed=[0]),
    ),
    Experiment(
        "latency",
        latency,
        cases=cases(blocks=[20], operations=[50], largest=[10_000], seed=[0]),
        quick=cases(blocks=[4], operations=[20], largest=[100], seed=[0]),
    ),
    Experiment(
        "accuracy",
        accuracy,
        cases=cases(scenario="ABCDE", saturation=SATURATIONS, seed=range(30)),
        quick=cases(scenario="ABCDE", saturation=[60, 120], seed=range(1)),
    ),
)

PROXIMITY, LANE = "proximity, m", "lane: approach 1's three, then approach 2's four"

CLAIMS = (
    Claim("one message where the range covers the proximity", "5.1, (1)", "1", judged.one_message_within_range),
    Claim(
        "one message, and one from each covered consumer, beyond it",
        "5.1, (2), figure 7 A",
        "1 + N_CP",
        judged.one_message_and_one_of_each_consumer,
        PROXIMITY,
        "messages an event",
    ),
    Claim("an announcement costs what an event costs", "5.1", "the same", judged.announcements_cost_the_same),
    Claim(
        "a moving producer costs what a stationary one costs",
        "5.1.2, figure 7 A",
        "virtually identical",
        judged.moving_producers_cost_the_same,
    ),
    Claim(
        "cost does not depend on migration speed",
        "5.1.2, figure 7 B",
        "flat",
        judged.speed_does_not_matter,
        "speed, miles an hour",
        "messages an event",
    ),
    Claim("every event is delivered", "figure 7", "no event loss in any experiment", judged.nothing_is_lost),
    Claim(
        "events delivered without filters",
        "5.2, table 1",
        ", ".join(f"{lane.approach}/{lane.number}: {lane.unfiltered:,}" for lane in TABLE_1),
        judged.unfiltered_events,
        LANE,
        "events",
    ),
    Claim(
        "events delivered with distributed filters",
        "5.2, table 1",
        ", ".join(f"{lane.approach}/{lane.number}: {lane.filtered:,}" for lane in TABLE_1),
        judged.filtered_events,
        LANE,
        "events",
    ),
    Claim(
        "distributed filters deliver some 95 % fewer events",
        "5.2, table 1",
        ", ".join(f"{lane.approach}/{lane.number}: {lane.decrease} %" for lane in TABLE_1),
        judged.fewer_events,
        LANE,
        "relative decrease, %",
    ),
    Claim(
        "a beacon counted as an event takes 1.4 points off that",
        "5.2.1",
        "1.4 points, still over 93 %",
        judged.beacons_cost_little,
    ),
    Claim(
        "raising takes the same time with 1 and with 1,000 announcements",
        "5.3.1, figure 11",
        "flat; 1.8 ms, 0.03 ms",
        judged.raising_is_flat,
        "announcements",
        "microseconds",
        log_x=True,
    ),
    Claim(
        "delivering takes the same time with 1 and with 10,000 other subscriptions",
        "5.3.1, figure 12",
        "flat",
        judged.delivering_is_flat,
        "subscriptions",
        "microseconds",
        log_x=True,
    ),
    Claim(
        "up to 40 announcements without a collision",
        "5.3.1",
        "none in 40",
        judged.forty_do_not_collide,
    ),
    Claim(
        "many announcements collide, and the type check holds",
        "4.4",
        "collisions cost resources, unwanted events are not delivered",
        judged.forty_thousand_collide_by_chance,
        "announcements",
        "announcements that share an identifier",
        log_x=True,
    ),
    Claim(
        "with 20 % silent nodes no partition at saturations 120 to 240",
        "5.4.1",
        "none",
        judged.dense_areas_do_not_partition,
    ),
    Claim("nor at saturation 60 on a road (A, B)", "5.4.1, figure 14", "none", judged.roads_do_not_partition),
    Claim(
        "at saturation 60 C, D and E partition, and only above 300 m",
        "5.4.1, figure 14",
        "only above 300 m",
        judged.sparse_areas_partition,
        PROXIMITY,
        "unreached, %",
    ),
    Claim(
        "gossip G(200 m, 0.8) saves messages and loses nothing at saturations 120 to 240",
        "5.4.1, figure 15",
        "all entities inside receive the event",
        judged.gossip_saves,
        PROXIMITY,
        "messages saved, %",
    ),
)

STUDY = Study(
    "steam",
    "Meier and Cahill, On Event-Based Middleware for Location-Aware Mobile Applications, IEEE TSE 2010",
    EXPERIMENTS,
    CLAIMS,
    notes="Unit-disk radio of 200 m; the crossing's model and the areas of C, D and E are ours, stated beforehand.",
)
