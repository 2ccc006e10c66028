"""Mobility: who is where, and when. One file a model; all of them give `Path`s."""

from typing import Any

from earshot.simulation.mobility.lanes import Lane, Lanes
from earshot.simulation.mobility.playback import Playback
from earshot.simulation.mobility.scripted import Scripted
from earshot.simulation.mobility.still import Given, Grid, Uniform
from earshot.simulation.mobility.trajectories import ALWAYS, Interval, Path, Trajectories
from earshot.simulation.mobility.waypoint import RandomWaypoint

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
    "Path",
    "Playback",
    "RandomWaypoint",
    "Scripted",
    "Trajectories",
    "Uniform",
]
