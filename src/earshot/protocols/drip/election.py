"""Who is a broker (section IV.A), and what the paper leaves open: who takes the place of one that falls silent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from earshot.protocols.drip.candidates import Roll
from earshot.protocols.drip.packets import Abilities

if TYPE_CHECKING:
    from earshot.protocols.drip.machine import Drip


class Election:
    """A node's part in choosing the brokers: it keeps the roll, tells others of it, and watches the brokers."""

    def __init__(self, machine: Drip) -> None:
        self.machine = machine
        self.settings = machine.settings
        self.roll = Roll(machine.settings.k, machine.settings.spares)
        self.worth = 0.0
        "What counts in the election: the node's ability, or a draw."
        self.started_at = 0.0
        self.up = False
        "Whether the abilities of the others have been gathered."
        self.alone_since = 0.0
        "Since when no broker has been heard of."
        self._shown_at = -math.inf
        self._waiting = False
        self._top: tuple[str, ...] = ()
        self._top_since: dict[str, float] = {}
        "Since when each of the k ablest is one of them."

    def start(self, now: float) -> None:
        """Section IV.A: tell the others how able this node is."""
        machine = self.machine
        self.started_at = self.alone_since = now
        self.worth = machine.ability if self.settings.selection == "ability" else machine.random.random()
        self.roll.learn([(machine.node, self.worth, now, False)])
        self._pass_on(now)
        machine.start_timer("elect", at=now + self.settings.bootstrap_s)

    def stop(self, now: float) -> None:
        """This node goes: others are the ablest now."""
        if self.roll.learn([(self.machine.node, self.worth, now, True)]):
            self.tell(now)

    def on_abilities(self, packet: Abilities, sender: str, now: float) -> None:
        if self.up and not self.machine.local_broker:
            self.machine.regions.sees(sender, "", now)  # without brokers nothing else tells who is near
        if self.roll.learn(packet.standings):
            self._refute(packet, now)
            self.changed(now)
        self.compare(packet.roll, now)

    def _refute(self, packet: Abilities, now: float) -> None:
        """Whoever was given up but has been heard of since is not gone."""
        machine = self.machine
        for node, _, alive_at, gone in packet.standings:
            if not gone or not self.roll.is_gone(node):
                continue
            if node == machine.node:
                self.roll.declare_alive(node, now)
                continue
            nearby = machine.regions.brokers.get(node)
            sign = nearby.sent_at if nearby is not None else -math.inf
            if machine.broker is not None:
                sign = max(sign, machine.broker.last_sign_of(node))
            if sign > alive_at and now - sign < self.settings.replace_after_s:
                self.roll.declare_alive(node, sign)

    def on_sign_of_life(self, broker: str, at: float, now: float) -> None:
        """An announcement of a broker: who was entered as gone is not."""
        if self.roll.is_gone(broker) and self.roll.declare_alive(broker, at):
            self.changed(now)

    def changed(self, now: float) -> None:
        """The roll is another: pass that on, and see what it means for this node."""
        node = self.machine.node
        if not self.roll.is_gone(node):
            self.roll.learn([(node, self.worth, self.started_at, False)])
        if self.up and self.roll.top is not self._top:
            self._top = self.roll.top
            self._top_since = {name: self._top_since.get(name, now) for name in self._top}
        self._pass_on(now)
        if self.up and (node in self.roll.top) != (self.machine.broker is not None):
            self.machine.start_timer("elect", at=now + self.settings.election_wait_s)

    def compare(self, digest: int, now: float) -> None:
        """Where a neighbour holds others for the ablest, tell it all we know, not too often."""
        every_s = self.settings.announce_interval_s if self.up else self.settings.bootstrap_s / 4
        if digest != self.roll.digest and now - self._shown_at >= every_s:
            self._shown_at = now
            self.roll.news.update(self.roll.names)
            self._pass_on(now)

    def _pass_on(self, now: float) -> None:
        if not self._waiting and self.roll.news:
            self._waiting = True
            wait_s = (0.5 + self.machine.random.random() / 2) * self.settings.roll_gather_s
            self.machine.start_timer("roll", at=now + wait_s)

    def tell(self, now: float) -> None:
        """What has been gathered goes to the neighbours."""
        self._waiting = False
        if self.roll.news:
            self.machine.broadcast(Abilities(self.roll.standings(self.roll.news), self.roll.digest))
            self.roll.news.clear()

    def chooses(self, now: float) -> bool:
        """The time to gather abilities, or to wait for objections, is over: whether this node is a broker."""
        if not self.up:
            self.up = True
            self._top = self.roll.top
            self._top_since = dict.fromkeys(self._top, now)
            self.machine.start_timer("watch", at=now + self.settings.announce_interval_s)
        return self.machine.node in self.roll.top

    def watch(self, now: float) -> None:
        """Enter as gone who has fallen silent: brokers watch each other, and a node without any the whole top."""
        machine, after_s = self.machine, self.settings.replace_after_s
        machine.start_timer("watch", at=now + self.settings.announce_interval_s)
        if not machine.regions.neighbours:
            # Out of everybody's reach, or among others without a broker: ask who is there.
            if machine.broker is None and now - self.alone_since > after_s:
                self.roll.news.add(machine.node)
                self._pass_on(now)
            return
        others = [node for node in self.roll.top if node != machine.node]
        silent: list[str] = []
        if (broker := machine.broker) is not None:
            signs = {
                node: max(broker.last_sign_of(node), self._top_since.get(node, now), broker.since) for node in others
            }
            silent = [node for node in others if now - signs[node] > after_s]
        elif not machine.local_broker and now - self.alone_since > after_s:
            silent = [node for node in others if now - self._top_since.get(node, now) > after_s]
        for node in silent:
            if self.roll.declare_gone(node):
                machine.note("replaced", node)
        if silent:
            self.changed(now)
