"""Mobility: who is where, and when. One file a model; all of them give `Trajectory`s."""

from typing import Any

from earshot.records.trajectories import ALWAYS, Interval, Trajectories, Trajectory
from earshot.simulation.mobility.models import Given, Grid, Lane, Lanes, RandomWaypoint, Scripted, Uniform
from earshot.simulation.mobility.playback import Playback

MOBILITY_KINDS: dict[str, Any] = {
    "uniform": Uniform,
    "grid": Grid,
    "given": Given,
    "random-waypoint": RandomWaypoint,
    "lanes": Lanes,
    "scripted": Scripted,
    "playback": Playback,
}
"Every kind of `mobility` table; a new model is a new row."

__all__ = [
    "ALWAYS",
    "MOBILITY_KINDS",
    "Given",
    "Grid",
    "Interval",
    "Lane",
    "Lanes",
    "Playback",
    "RandomWaypoint",
    "Scripted",
    "Trajectories",
    "Trajectory",
    "Uniform",
]
