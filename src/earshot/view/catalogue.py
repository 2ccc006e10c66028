"""The catalogue: where a page's worlds and runs come from. The pipeline has catalogues for runs and lakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from earshot.view.runs import ReplayedRun
from earshot.view.world import World


@dataclass(frozen=True)
class RunEntry:
    """A run that the page can request."""

    key: str
    title: str


@dataclass(frozen=True)
class WorldEntry:
    """A world that the page can request, and the runs in it, which the page shows side by side."""

    key: str
    title: str
    runs: Sequence[RunEntry]

    def as_json(self) -> dict[str, Any]:
        """Plain values for the page."""
        return {
            "key": self.key,
            "title": self.title,
            "runs": [{"key": run.key, "title": run.title} for run in self.runs],
        }


class Catalogue(Protocol):
    """What a page can show."""

    def worlds(self) -> Sequence[WorldEntry]:
        """All worlds, in the order in which the page lists them; at least one world, with at least one run."""

    def world(self, key: str) -> World:
        """The world of that key; KeyError if there is none."""

    def run(self, world: str, key: str) -> ReplayedRun:
        """The run of that key in that world; KeyError if there is none."""

    def why(self, world: str, run: str, event: str, node: str) -> Mapping[str, Any]:
        """The oracle's answer for an event and a node; KeyError if one of them is unknown."""

    def updates(self) -> Mapping[str, Any] | None:
        """The present state of a watched network; None if no network is watched."""
