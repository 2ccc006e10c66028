"""The shelf: where a page's scenes and plays come from. The pipeline has shelves for runs and lakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from earshot.view.runs import Play
from earshot.view.world import Scene


@dataclass(frozen=True)
class PlayEntry:
    """A play that can be asked for."""

    key: str
    title: str


@dataclass(frozen=True)
class SceneEntry:
    """A scene that can be asked for, and the plays on it, which can stand side by side."""

    key: str
    title: str
    plays: Sequence[PlayEntry]

    def as_json(self) -> dict[str, Any]:
        """Plain values for the page."""
        return {
            "key": self.key,
            "title": self.title,
            "plays": [{"key": play.key, "title": play.title} for play in self.plays],
        }


class Shelf(Protocol):
    """What a page can show."""

    def scenes(self) -> Sequence[SceneEntry]:
        """All there is, in the order to offer it; at least one, with at least one play."""

    def scene(self, key: str) -> Scene:
        """The scene of that key; KeyError where there is none."""

    def play(self, scene: str, key: str) -> Play:
        """The play of that key on that scene; KeyError where there is none."""

    def why(self, scene: str, play: str, event: str, node: str) -> Mapping[str, Any]:
        """The oracle's answer for an event and a node; KeyError where one of them is unknown."""

    def news(self) -> Mapping[str, Any] | None:
        """What a network that is being watched says now; None where nothing is watched."""
