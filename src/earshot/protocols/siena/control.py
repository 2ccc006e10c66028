"""Siena's settings, and the central control that its paper assumes: who is a broker, and below whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

from earshot.errors import SettingsError
from earshot.protocols.siena.packets import Place


@dataclass(frozen=True)
class SienaSettings:
    agents: tuple[str, ...] = field(default=(), metadata={"scenario": "first_nodes"})
    "The nodes that may set the network up; the first of them does. In a simulation, where not given, the "
    "scenario's first nodes; elsewhere a node in range that finds none."
    clients: int = 6
    "Symbol f: clients a broker has."
    broker_fan_out: int = 2
    "Children a broker has in the brokers' tree; 0: as many as clients."
    broker_interest: Literal["clients", "own"] = "clients"
    "What is not overhead at a broker: what it or its clients want, or what it wants itself."
    retry_s: float = 5.0
    "How long a node without a place waits before it asks again."
    memory: int = 4096
    "How many events a node knows again."

    def __post_init__(self) -> None:
        object.__setattr__(self, "agents", tuple(self.agents))
        for name, least in (("clients", 1), ("memory", 1), ("broker_fan_out", 0)):
            if getattr(self, name) < least:
                raise SettingsError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not self.retry_s > 0:
            raise SettingsError(f"retry_s must be a positive number of seconds, got {self.retry_s}")

    @property
    def branches(self) -> int:
        return self.broker_fan_out or self.clients


class Control:
    """Gives every node its place."""

    def __init__(self, settings: SienaSettings, random: Random) -> None:
        self.settings = settings
        self.random = random
        self.members: dict[str, str] = {}
        "Whom each client has as its broker; brokers have themselves."
        self.brokers: list[str] = []
        "In the order of the balanced tree; an empty name where one is gone."

    def place(self, node: str, gone: str) -> Place:
        """A place for a node, new or in need of another one."""
        if gone in self.brokers and gone != node:
            self.brokers[self.brokers.index(gone)] = ""
            self.members.pop(gone, None)
        if node in self.brokers:
            return Place(True, self._above(self.brokers.index(node)))
        self.members.pop(node, None)
        there = [broker for broker in self.brokers if broker]
        if len(there) * (self.settings.clients + 1) <= len(self.members):
            self.members[node] = node
            self.brokers.append(node)
            return Place(True, self._above(len(self.brokers) - 1))
        clients = dict.fromkeys(there, 0)
        for member, broker in self.members.items():
            if member != broker and broker in clients:
                clients[broker] += 1
        least = [broker for broker in there if clients[broker] < self.settings.clients] or there
        broker = self.members[node] = self.random.choice(least)
        return Place(False, broker)

    def _above(self, index: int) -> str:
        """The nearest broker above that is there; always one of a lower index, so there is no cycle."""
        while index > 0:
            index = (index - 1) // self.settings.branches
            if self.brokers[index]:
                return self.brokers[index]
        return next((broker for broker in self.brokers[:index] if broker), "")
