"""Fences over the simulator, against where the nodes really are."""

import math
from collections import defaultdict
from random import Random
from typing import Any

import pytest
from small_networks import flooding

from earshot.events import EventType
from earshot.geometry import Circle, Position, Proximity, Rectangle
from earshot.protocols.machine import Announcement
from earshot.protocols.services.fences import LOOK_EVERY_S, PARTED, Fence
from earshot.records.trajectories import Trajectories
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.media.medium_settings import UnitDisk
from earshot.simulation.mobility import Trajectory
from earshot.simulation.workload.actions import Action, Unannounce, Unfence, Workload
from sizes import sized

DURATION_S = 120.0
SLACK_S = LOOK_EVERY_S + 0.1


def wandering(name: str, random: Random) -> Trajectory:
    """From one point to the next in a square of 400 m, at up to 19 m/s."""
    time, points = 0.0, []
    while time < DURATION_S + 60.0:
        points.append((time, random.uniform(0.0, 400.0), random.uniform(0.0, 400.0)))
        time += random.uniform(30.0, 60.0)
    return Trajectory.through(name, points)


def crossings(trajectories: Trajectories, actions: list[Action], seed: int) -> dict[tuple[str, str], list[Any]]:
    """By node and peer, the times and words of the crossings."""
    log = Log()
    medium = UnitDisk(range_m=2000.0, latency_s=0.001)
    Engine(flooding(), trajectories, medium, Workload(actions), duration_s=DURATION_S, seed=seed, log=log).run()
    found = defaultdict(list)
    for row in log.rows():
        if row["kind"] == "fence":
            found[row["node"], row["peer"]].append((row["time"], row["detail"]))
    return found


def inside_at(crossed: list[Any], time: float, came: str) -> bool:
    before = [what for at, what in crossed if at <= time]
    return bool(before) and before[-1] == came


@pytest.mark.parametrize("seed", range(sized(10, 60)))
def test_a_node_learns_when_it_enters_and_leaves_an_announced_area(seed: int) -> None:
    random = Random(seed)
    trajectories = Trajectories([wandering(name, random) for name in "abcd"])
    shape = random.choice([Circle(120.0), Rectangle(250.0, 150.0)])
    naval = Position(random.uniform(100.0, 300.0), random.uniform(100.0, 300.0))
    fixed = Announcement(EventType("Works"), Proximity(shape, naval))
    actions = [Action(1.0, 0, fixed), *[Action(2.0, n, Fence(f"{n}", "Works")) for n in (1, 2, 3)]]
    found = crossings(trajectories, actions, seed)
    area = fixed.proximity.area()  # type: ignore[union-attr]
    for n, name in enumerate("bcd", 1):
        reported = found[name, "a"]
        assert [what for _, what in reported] == _alternating(reported)
        for step in range(50, 1190):
            time = step / 10.0
            around = [area.contains(Position(*trajectories.position(n, time - one))) for one in (0.0, SLACK_S)]
            if around[0] == around[1]:
                assert inside_at(reported, time, "enter Works") == around[0], (name, time)


def _alternating(reported: list[Any]) -> list[str]:
    return [("enter Works", "leave Works")[k % 2] for k in range(len(reported))]


@pytest.mark.parametrize("seed", range(sized(10, 60)))
def test_an_area_that_moves_with_its_publisher_is_entered_and_left(seed: int) -> None:
    """Its publisher states where it is every five seconds; between two statements it is taken to move on."""
    random = Random(seed)
    trajectories = Trajectories([wandering(name, random) for name in "abc"])
    moving = Announcement(EventType("Siren"), Proximity(Circle(120.0), Position(0.0, 0.0), mobile=True))
    actions = [Action(1.0, 0, moving), *[Action(2.0, n, Fence(f"{n}", "Siren")) for n in (1, 2)]]
    found = crossings(trajectories, actions, seed)
    velocities = [trajectories.velocity(0, time) for time in range(119)]
    judged = 0
    for time in range(7, 119):
        # After a turn the publisher is taken to go straight on until its next statement.
        if any(math.dist(velocity, velocities[time]) > 1e-6 for velocity in velocities[time - 6 : time]):
            continue
        for n, name in ((1, "b"), (2, "c")):
            away_m = [_away_m(trajectories, n, time - one) for one in (0.0, SLACK_S)]
            if max(away_m) < 119.0 or min(away_m) > 121.0:
                assert inside_at(found[name, "a"], time, "enter Siren") == (away_m[0] < 120.0), (name, time)
                judged += 1
    assert judged > 100


def _away_m(trajectories: Trajectories, node: int, time: float) -> float:
    return Position(*trajectories.position(node, time)).distance_to(Position(*trajectories.position(0, time)))


@pytest.mark.parametrize("seed", range(sized(10, 60)))
def test_two_nodes_learn_when_they_come_near_and_part(seed: int) -> None:
    random = Random(seed)
    trajectories = Trajectories([wandering(name, random) for name in "abc"])
    near_m = random.uniform(40.0, 150.0)
    found = crossings(trajectories, [Action(2.0, n, Fence(f"{n}", near_m=near_m)) for n in (1, 2)], seed)
    slack_m = 1.4 * 2 * 19.0
    "Where the other was up to a second ago, at most; neither is faster than 19 m/s."
    assert found
    for n, name in ((1, "b"), (2, "c")):
        for time in range(5, 119):
            away_m = _away_m(trajectories, n, time)
            if away_m < near_m - slack_m:
                assert inside_at(found[name, "a"], time, "nearby"), (name, time)
            if away_m > PARTED * near_m + slack_m:
                assert not inside_at(found[name, "a"], time, "nearby"), (name, time)


def test_an_area_ends_with_its_announcement_and_a_fence_with_its_owner() -> None:
    trajectories = Trajectories([Trajectory.standing(name, 0.0, 0.0) for name in "abc"])
    works = Announcement(EventType("Works"), Proximity(Circle(50.0), Position(0.0, 0.0)))
    actions = [
        Action(1.0, 0, works),
        Action(2.0, 1, Fence("b/1", "Works")),
        Action(2.0, 2, Fence("c/1", "Works")),
        Action(10.0, 2, Unfence("c/1")),
        Action(20.0, 0, Unannounce("Works")),
    ]
    found = crossings(trajectories, actions, 0)
    assert [what for _, what in found["b", "a"]] == ["enter Works", "leave Works"]
    assert [time for time, _ in found["b", "a"]] == pytest.approx([2.3, 20.2], abs=0.3)
    assert [what for _, what in found["c", "a"]] == ["enter Works"]
