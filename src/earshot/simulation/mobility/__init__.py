"""Mobility: where each node is at which time.

Start with `models`, nodes that move by a rule; `playback` follows a recorded trace, `sumo` runs a traffic simulation,
in which `drivers` may react to events.
"""

from earshot.records.trajectories import ALWAYS, Interval, Trajectories, Trajectory
from earshot.simulation.mobility.models import (
    Given,
    Grid,
    Lane,
    Lanes,
    OutsideMobility,
    RandomWaypoint,
    Scripted,
    Uniform,
)
from earshot.simulation.mobility.playback import Playback
from earshot.simulation.mobility.sumo import Sumo

Mobility = Uniform | Grid | Given | RandomWaypoint | Lanes | Scripted | Playback | Sumo | OutsideMobility
"Every kind of `mobility` table; a new model of ours is a new member."

__all__ = [
    "ALWAYS",
    "Given",
    "Grid",
    "Interval",
    "Lane",
    "Lanes",
    "Mobility",
    "OutsideMobility",
    "Playback",
    "RandomWaypoint",
    "Scripted",
    "Sumo",
    "Trajectories",
    "Trajectory",
    "Uniform",
]
