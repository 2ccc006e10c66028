"""Mobility: who is where, and when. One file a model; all of them give `Path`s."""

from earshot.simulation.mobility.trajectories import ALWAYS, Interval, Path, Trajectories

__all__ = ["ALWAYS", "Interval", "Path", "Trajectories"]
