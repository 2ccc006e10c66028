"""Catalogues of runs with their answers: why an event did, or did not, reach a node.

What the catalogues of run folders, lakes and watches share.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from earshot.filters import Viewer
from earshot.pipeline.oracle.why import EventLog, Explanation, explain_receiver
from earshot.records.sessions import Interval, Session
from earshot.records.trajectories import ALWAYS, Trajectories, Trajectory
from earshot.simulation.engine.oracle import RunOracle
from earshot.view.page import whole_page
from earshot.view.runs import KINDS, Catalogue, Records, ReplayedRun, Why, WorldEntry, replayed_run
from earshot.view.world import Ints, World


class RunExplainer:
    """The oracle's why and why-not for any event and node of a run, one pair at a time. What the log says
    of an event is read once for all nodes."""

    def __init__(self, world: World, records: Records) -> None:
        self.world = world
        self.records = records
        self._order = np.argsort(records.event, kind="stable")
        bounds = np.searchsorted(records.event[self._order], np.arange(len(world.events) + 1))
        self._bounds: list[int] = bounds.tolist()
        self.log_of = lru_cache(maxsize=256)(self._log_of)

    def explain(self, event: str, node: str) -> Explanation:
        """KeyError where the world has no such event or node."""
        number = self.world.number_of_event[event]
        published = self.world.events[number]
        trajectory = self.world.trajectories.trajectory(self.world.number_of_node[node])
        known = trajectory.recorded_at(published.time) if trajectory else None
        spans = self.world.subscriptions_of.get(node, ())
        return explain_receiver(published, node, spans, Viewer(*known) if known else None, self.log_of(number))

    def _log_of(self, event: int) -> EventLog:
        rows = self._order[self._bounds[event] : self._bounds[event + 1]].tolist()
        records, nodes = self.records, self.world.nodes
        return EventLog(
            {
                "time": float(records.time[row]),
                "transmission": row,
                "kind": KINDS[records.kind[row]],
                "node": nodes[records.node[row]] if records.node[row] >= 0 else "",
                "peer": nodes[records.peer[row]] if records.peer[row] >= 0 else "",
                "packet": records.packets[records.packet[row]],
                "detail": records.details[records.detail[row]],
            }
            for row in rows
        )

    def for_pairs(self, pairs: Iterable[tuple[int, int]]) -> list[Why]:
        """The answers for those (event, node), by number."""
        found = []
        for event, node in pairs:
            answer = self.explain(self.world.events[event].id, self.world.nodes[node])
            found.append(Why(event, node, answer.reasons, answer.losses))
        return found


def expected_pairs(world: World, sessions: Iterable[Session]) -> tuple[Ints, Ints]:
    """Which nodes should have received which events, by the oracle: for worlds that are in no lake."""
    up: dict[str, list[Interval]] = {}
    for session in sessions:
        up.setdefault(session.node, []).append((session.start, session.end))
    presence = [up.get(name, list(ALWAYS)) for name in world.nodes]
    trajectories = Trajectories(
        [
            world.trajectories.trajectory(node, name) or Trajectory.standing(name, 0.0, 0.0)
            for node, name in enumerate(world.nodes)
        ]
    )
    spans = (span for span in world.subscriptions if span.node in world.number_of_node)
    oracle = RunOracle(spans, trajectories, presence)
    pairs = [(i, node) for i, event in enumerate(world.events) for node in sorted(oracle.receivers(event, event.time))]
    table = np.array(pairs, dtype=np.int32).reshape(len(pairs), 2)
    return table[:, 0].copy(), table[:, 1].copy()


@dataclass(frozen=True)
class AnswerableRun:
    """A run with what is needed to answer for it."""

    run: ReplayedRun
    explainer: RunExplainer

    def with_answers(self, most: int) -> ReplayedRun:
        """The run with at most this many answers, for a page without a server: for missed events first,
        then for unexpected deliveries, then for expected ones."""
        world = self.explainer.world
        count = max(1, len(world.nodes))
        expected = world.expected[0].astype(np.int64) * count + world.expected[1]
        got = self.run.deliveries[0].astype(np.int64) * count + self.run.deliveries[1]
        pairs = np.concatenate(
            [np.setdiff1d(expected, got), np.setdiff1d(got, expected), np.intersect1d(expected, got)]
        )
        why: list[Why] = self.explainer.for_pairs((int(pair // count), int(pair % count)) for pair in pairs[:most])
        return replace(self.run, why=why, answers=False)


def answerable_run(
    world: World, records: Records, key: str, title: str, protocol: str, settings: Any, shown: Mapping[str, Any]
) -> AnswerableRun:
    """A run in its world; the page can ask for answers."""
    run = replayed_run(world, records, key, title, protocol, settings, shown)
    return AnswerableRun(replace(run, answers=True), RunExplainer(world, records))


class AnswerableCatalogue(Catalogue, Protocol):
    """A catalogue whose runs come with their answers, for pages that ask and for files."""

    @abstractmethod
    def answerable(self, world: str, key: str) -> AnswerableRun:
        """The run with its answers; KeyError where there is none."""

    def run(self, world: str, key: str) -> ReplayedRun:
        return self.answerable(world, key).run

    def document(self, title: str, entry: WorldEntry, most_answers: int, most_hops: int) -> str:
        """One file with that world and its runs, with at most this many answers and hops of each run."""
        return whole_page(
            title,
            [entry],
            self.world,
            lambda world, key: self.answerable(world, key).with_answers(most_answers),
            most_hops,
        )

    def why(self, world: str, run: str, event: str, node: str) -> Mapping[str, Any]:
        return self.answerable(world, run).explainer.explain(event, node).as_json()


class RunCatalogue(AnswerableCatalogue):
    """Finished runs, by the world they are in. What was read last is kept."""

    def __init__(self, runs_in: Mapping[str, Sequence[str]]) -> None:
        self._runs_in = runs_in
        self._world = lru_cache(maxsize=2)(self.read_world)
        self._answerable = lru_cache(maxsize=8)(self.read_run)

    @abstractmethod
    def read_world(self, key: str) -> World:
        """The world of that key, read again."""

    @abstractmethod
    def read_run(self, world_key: str, key: str) -> AnswerableRun:
        """A run in that world, read again."""

    def world(self, key: str) -> World:
        return self._world(key)

    def answerable(self, world: str, key: str) -> AnswerableRun:
        if key not in self._runs_in[world]:
            raise KeyError(key)
        return self._answerable(world, key)

    def updates(self) -> None:
        return None
