"""Shelves whose plays come with their answers: what those of run folders, lakes and watches share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from earshot.pipeline.oracle.answers import Answers
from earshot.view.catalogue import Shelf
from earshot.view.runs import Play, Records, Why, play_of
from earshot.view.world import Scene


@dataclass(frozen=True)
class Staged:
    """A play with what is needed to answer for it."""

    play: Play
    answers: Answers

    def with_answers(self, most: int) -> Play:
        """The play with answers for what was missed, for what came unasked, and for what was met, so far
        as there is room: for a page with nobody to ask."""
        scene = self.answers.scene
        count = max(1, len(scene.nodes))
        expected = scene.expected[0].astype(np.int64) * count + scene.expected[1]
        got = self.play.deliveries[0].astype(np.int64) * count + self.play.deliveries[1]
        pairs = np.concatenate(
            [np.setdiff1d(expected, got), np.setdiff1d(got, expected), np.intersect1d(expected, got)]
        )
        why: list[Why] = self.answers.for_pairs((int(pair // count), int(pair % count)) for pair in pairs[:most])
        return replace(self.play, why=why, answers=False)


def staged(
    scene: Scene, records: Records, key: str, title: str, name: str, settings: Any, shown: Mapping[str, Any]
) -> Staged:
    """A play on its scene; the page can ask for answers."""
    play = play_of(scene, records, key, title, name, settings, shown)
    return Staged(replace(play, answers=True), Answers(scene, records))


class StagedShelf(Shelf, Protocol):
    """A shelf whose plays come with their answers, for pages that ask and for files."""

    @abstractmethod
    def staged(self, scene: str, key: str) -> Staged:
        """The play with its answers; KeyError where there is none."""

    def play(self, scene: str, key: str) -> Play:
        return self.staged(scene, key).play

    def why(self, scene: str, play: str, event: str, node: str) -> Mapping[str, Any]:
        return self.staged(scene, play).answers.answer(event, node).as_json()


class RunShelf(StagedShelf):
    """Finished runs, by the scene they are on. What was read last is kept."""

    def __init__(self, runs_on: Mapping[str, Sequence[str]]) -> None:
        self._runs_on = runs_on
        self._scene = lru_cache(maxsize=2)(self.read_scene)
        self._staged = lru_cache(maxsize=8)(self.stage)

    @abstractmethod
    def read_scene(self, key: str) -> Scene:
        """The scene of that key, read anew."""

    @abstractmethod
    def stage(self, scene_key: str, key: str) -> Staged:
        """A run that is on that scene, read anew."""

    def scene(self, key: str) -> Scene:
        return self._scene(key)

    def staged(self, scene: str, key: str) -> Staged:
        if key not in self._runs_on[scene]:
            raise KeyError(key)
        return self._staged(scene, key)

    def news(self) -> None:
        return None
