"""Which nodes are brokers (section IV.A), and what the paper leaves open: how a silent broker is replaced.

Every node keeps the candidates it knows. Of two reports about a node, the one with the later sign of life
wins; of two with the same sign of life, "gone" wins. So all nodes that received the same reports, in any
order, have the same candidates, and a broker that was declared gone by mistake returns with its next
sign of life.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum, auto
from random import Random
from zlib import crc32

from earshot.protocols.drip.packets import Abilities, Candidate, DripSettings
from earshot.protocols.machine import Broadcast, Effect, Note, StartTimer


class Candidates:
    """The k ablest live nodes known, some spare ones, and nodes of higher ability that are gone."""

    def __init__(self, k: int, spares: int) -> None:
        self.k = k
        self._capacity = k + spares
        self._gone_capacity = 2 * (k + spares)
        self.known: dict[str, Candidate] = {}
        self.changed: set[str] = set()
        "Candidates that have changed since they were last forwarded."
        self.ablest: tuple[str, ...] = ()
        "The k ablest live candidates, the ablest first."
        self.digest = 0
        self._least: tuple[float, str] | None = None
        "What a new candidate must surpass; None: not known since a candidate has changed."

    def learn(self, reports: Iterable[Candidate]) -> bool:
        """Merge reports; returns whether one of them was new and matters."""
        changed = reordered = False
        for report in reports:
            known = self.known.get(report.node)
            if known is report:
                continue
            if known is None:
                matters = self._has_room_for(report)
            else:
                matters = (report.alive_at, report.gone) > (known.alive_at, known.gone)
            if matters and math.isfinite(report.ability) and math.isfinite(report.alive_at):
                self.known[report.node] = report
                self.changed.add(report.node)
                changed = True
                # A later sign of life alone moves nobody.
                if known is None or known.gone or report.gone or known.ability != report.ability:
                    reordered, self._least = True, None
        if reordered:
            self._rank()
        return changed

    def _has_room_for(self, report: Candidate) -> bool:
        if report.gone:
            return len(self.known) < self._capacity + self._gone_capacity
        if self._least is None:
            self._least = self._least_of(sorted(self._live(), reverse=True))
        return (report.ability, report.node) > self._least

    def _least_of(self, live: list[tuple[float, str]]) -> tuple[float, str]:
        """What a new candidate must surpass beside these, the ablest first."""
        return live[-1] if len(live) >= self._capacity else (-math.inf, "")

    def _live(self) -> list[tuple[float, str]]:
        """(ability, node) of the candidates that are not gone."""
        return [(one.ability, one.node) for one in self.known.values() if not one.gone]

    def _rank(self) -> None:
        """Choose the k ablest; forget the least able, and those that have been gone for longest."""
        live = sorted(self._live(), reverse=True)
        gone = sorted(((one.alive_at, one.node) for one in self.known.values() if one.gone), reverse=True)
        for _, node in live[self._capacity :] + gone[self._gone_capacity :]:
            del self.known[node]
            self.changed.discard(node)
        self._least = self._least_of(live[: self._capacity])
        self.ablest = tuple(node for _, node in live[: self.k])
        self.digest = crc32("\n".join(self.ablest).encode())

    def declare_gone(self, node: str) -> bool:
        """The node has been silent for too long; returns whether that is new."""
        known = self.known.get(node)
        return known is not None and not known.gone and self.learn([known._replace(gone=True)])

    def declare_alive(self, node: str, at: float) -> bool:
        """A sign of life of a node that was declared gone; returns whether it changes that."""
        return self.is_gone(node) and self.learn([self.known[node]._replace(alive_at=at, gone=False)])

    def is_gone(self, node: str) -> bool:
        known = self.known.get(node)
        return known is not None and known.gone

    def take_changed(self) -> tuple[Candidate, ...]:
        """The candidates to forward, which then count as forwarded."""
        changed, self.changed = self.changed, set()
        return tuple(self.known[node] for node in sorted(changed) if node in self.known)


class Role(Enum):
    """A node's part among the brokers."""

    GATHERING = auto()
    "The node gathers abilities; there are no brokers yet."
    NON_BROKER = auto()
    CANDIDATE = auto()
    "The node ranks among the k ablest and waits for objections."
    BROKER = auto()
    RESIGNING = auto()
    "A broker that no longer ranks among the k ablest and waits for objections."

    @property
    def is_broker(self) -> bool:
        return self in (Role.BROKER, Role.RESIGNING)


class Trigger(Enum):
    """What changes a node's role."""

    RANKED = auto()
    "The candidates have changed; the node ranks among the k ablest."
    OUTRANKED = auto()
    "The candidates have changed; the node does not rank among the k ablest."
    ELECTED = auto()
    "The wait is over and the node ranks among the k ablest."
    REJECTED = auto()
    "The wait is over and the node does not rank among the k ablest."
    STOPPED = auto()


TRANSITIONS: dict[tuple[Role, Trigger], Role] = {
    (Role.GATHERING, Trigger.RANKED): Role.GATHERING,
    (Role.GATHERING, Trigger.OUTRANKED): Role.GATHERING,
    (Role.NON_BROKER, Trigger.RANKED): Role.CANDIDATE,
    (Role.NON_BROKER, Trigger.OUTRANKED): Role.NON_BROKER,
    (Role.CANDIDATE, Trigger.RANKED): Role.CANDIDATE,
    (Role.CANDIDATE, Trigger.OUTRANKED): Role.NON_BROKER,
    (Role.BROKER, Trigger.RANKED): Role.BROKER,
    (Role.BROKER, Trigger.OUTRANKED): Role.RESIGNING,
    (Role.RESIGNING, Trigger.RANKED): Role.BROKER,
    (Role.RESIGNING, Trigger.OUTRANKED): Role.RESIGNING,
    **{(role, Trigger.ELECTED): Role.BROKER for role in Role},
    **{(role, Trigger.REJECTED): Role.NON_BROKER for role in Role},
    **{(role, Trigger.STOPPED): Role.NON_BROKER for role in Role},
}


class Election:
    """One node's part in the choice of brokers: it keeps the candidates, forwards changes and watches the brokers.

    Methods return effects for the machine to carry out. `role` says what the node is.
    """

    def __init__(self, node: str, settings: DripSettings, random: Random) -> None:
        self.node = node
        self.settings = settings
        self.random = random
        self.candidates = Candidates(settings.k, settings.spares)
        self.role = Role.GATHERING
        self.ability = 0.0
        "What counts in the election: the node's ability, or a random number."
        self.started_at = 0.0
        self.detached_since = 0.0
        "Since when the node has had no local broker."
        self._broker_since = 0.0
        self._ranked_since: dict[str, float] = {}
        "Since when each of the k ablest has been among them."
        self._compared_at = -math.inf
        self._forwarding = False
        "Whether a timer runs to forward changes."

    def start(self, ability: float, now: float) -> list[Effect]:
        """Section IV.A: broadcast this node's ability."""
        self.started_at = self.detached_since = now
        self.ability = ability if self.settings.selection == "ability" else self.random.random()
        self.candidates.learn([Candidate(self.node, self.ability, now, False)])
        return [*self._forward_later(now), StartTimer("elect", now + self.settings.bootstrap_s)]

    def stop(self, now: float) -> list[Effect]:
        """This node leaves: others become the ablest."""
        self.role = TRANSITIONS[self.role, Trigger.STOPPED]
        gone = self.candidates.learn([Candidate(self.node, self.ability, now, True)])
        return self.forward() if gone else []

    def decide(self, now: float) -> list[Effect]:
        """The time to gather abilities, or to wait for objections, is over: the node takes its role."""
        effects: list[Effect] = []
        if self.role is Role.GATHERING:
            self._ranked_since = dict.fromkeys(self.candidates.ablest, now)
            effects.append(StartTimer("watch", now + self.settings.announce_interval_s))
        was_broker = self.role.is_broker
        ranks = self.node in self.candidates.ablest
        self.role = TRANSITIONS[self.role, Trigger.ELECTED if ranks else Trigger.REJECTED]
        if not was_broker:
            self._broker_since = now
        return effects

    # Abilities.

    def on_abilities(self, packet: Abilities, sign_of_life: Callable[[str], float], now: float) -> list[Effect]:
        """Learn other nodes' abilities. Object where a node was declared gone that has been heard since; `sign_of_life`
        says when a node was."""
        effects: list[Effect] = []
        if self.candidates.learn(packet.candidates):
            for node, _, alive_at, gone in packet.candidates:
                if not gone or not self.candidates.is_gone(node):
                    continue
                sign = now if node == self.node else sign_of_life(node)
                if node == self.node or (sign > alive_at and now - sign < self.settings.replace_after_s):
                    self.candidates.declare_alive(node, sign)
            effects += self._changed(now)
        return [*effects, *self.compare(packet.digest, now)]

    def on_sign_of_life(self, broker: str, at: float, now: float) -> list[Effect]:
        """An announcement of a broker: if it was declared gone, it is not."""
        return self._changed(now) if self.candidates.declare_alive(broker, at) else []

    def _changed(self, now: float) -> list[Effect]:
        """The candidates have changed: forward the changes, and see what they mean for this node."""
        if not self.candidates.is_gone(self.node):
            self.candidates.learn([Candidate(self.node, self.ability, self.started_at, False)])
        ablest = self.candidates.ablest
        if self.role is not Role.GATHERING and tuple(self._ranked_since) != ablest:
            self._ranked_since = {node: self._ranked_since.get(node, now) for node in ablest}
        effects = self._forward_later(now)
        self.role = TRANSITIONS[self.role, Trigger.RANKED if self.node in ablest else Trigger.OUTRANKED]
        if self.role in (Role.CANDIDATE, Role.RESIGNING):
            effects.append(StartTimer("elect", now + self.settings.election_wait_s))
        return effects

    def compare(self, digest: int, now: float) -> list[Effect]:
        """If a neighbour knows other k ablest nodes, send it all candidates, but not too often."""
        settings = self.settings
        interval_s = settings.bootstrap_s / 4 if self.role is Role.GATHERING else settings.announce_interval_s
        if digest == self.candidates.digest or now - self._compared_at < interval_s:
            return []
        self._compared_at = now
        self.candidates.changed.update(self.candidates.known)
        return self._forward_later(now)

    def _forward_later(self, now: float) -> list[Effect]:
        if self._forwarding or not self.candidates.changed:
            return []
        self._forwarding = True
        wait_s = (0.5 + self.random.random() / 2) * self.settings.abilities_gather_s
        return [StartTimer("forward-abilities", now + wait_s)]

    def forward(self) -> list[Effect]:
        """Send the gathered changes to the neighbours."""
        self._forwarding = False
        if not self.candidates.changed:
            return []
        return [Broadcast(Abilities(self.candidates.take_changed(), self.candidates.digest))]

    # Silent brokers.

    def watch(
        self, signs_of_life: Mapping[str, float], neighbours: Collection[str], local_broker: str, now: float
    ) -> list[Effect]:
        """Declare silent brokers gone. Brokers watch each other; a node without a local broker watches all brokers."""
        settings, is_broker = self.settings, self.role.is_broker
        effects: list[Effect] = [StartTimer("watch", now + settings.announce_interval_s)]
        is_alone = not is_broker and now - self.detached_since > settings.replace_after_s
        if not neighbours:
            if is_alone:
                # Out of range of every node, or among others without a broker: ask for neighbours.
                self.candidates.changed.add(self.node)
                effects += self._forward_later(now)
            return effects
        silent = []
        if is_broker or (is_alone and not local_broker):
            for node in self.candidates.ablest:
                sign = self._ranked_since.get(node, now)
                if is_broker:
                    sign = max(sign, signs_of_life.get(node, -math.inf), self._broker_since)
                if node != self.node and now - sign > settings.replace_after_s:
                    silent.append(node)
        effects += [Note("replaced", node) for node in silent if self.candidates.declare_gone(node)]
        return [*effects, *self._changed(now)] if silent else effects
