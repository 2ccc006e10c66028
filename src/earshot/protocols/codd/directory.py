"""The system agent's part of CoDD: which sources there are, and where to join their trees.

Sources register with every agent and do so again now and then; a node that wants something asks one
agent, the next where that one does not answer, and is told of changes. An agent that lost its memory
knows again after `directory_s`. Where no agent is named, sources and those who look for them speak to
all in range, and everybody keeps a directory of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from earshot.protocols.codd.packets import GetSeedSet, Register, SeedSet, Source, Unregister, source_of
from earshot.records import DropReason
from earshot.wire import Packet

if TYPE_CHECKING:
    from earshot.protocols.codd.machine import Codd

PUSH_S = 0.2
"News of sources gather so long before members are told."
MOST_SOURCES = 10_000
PERIODS = 3
"What was not heard for so many periods is forgotten."


@dataclass(slots=True)
class Registered:
    """A source, as an agent knows it."""

    types: tuple[str, ...]
    heard_at: float


class Directory:
    """A node's knowledge of sources; on an agent, also the register of sources and members."""

    def __init__(self, codd: Codd) -> None:
        self.codd = codd
        self.agents = codd.settings.agents
        self.is_agent = codd.node in self.agents
        self.sources: dict[str, Source] = {}
        "What this node knows, by tree."
        self.register: dict[str, Registered] = {}
        self.members: dict[str, float] = {}
        self._agent = 0
        self._tried = 0
        self._ticking = False

    def begin(self, now: float) -> None:
        """This node wants something, or is a source: keep in touch with the agents."""
        if not self._ticking:
            self._ticking = True
            period_s = self.codd.settings.directory_s
            self.codd.start_timer("directory", at=now + period_s * self.codd.random.uniform(0.5, 1.0))

    def tick(self, now: float) -> None:
        codd, period_s = self.codd, self.codd.settings.directory_s
        self.register_own(now)
        if codd.local.by_id:
            self._tried = 0
            self.ask(now)
        old = [tree for tree, known in self.register.items() if now - known.heard_at > PERIODS * period_s]
        for tree in old:
            del self.register[tree]
        if old and not self.agents:
            self._answer(codd.node, now)
        for name in [name for name, heard_at in self.members.items() if now - heard_at > PERIODS * period_s]:
            del self.members[name]
        codd.start_timer("directory", at=now + period_s)

    # A node.

    def ask(self, now: float) -> None:
        """Figure 2: get the seed set from the system agent."""
        if not self.agents:
            self.codd.broadcast(GetSeedSet())
            return
        agent = self.agents[self._agent % len(self.agents)]
        if agent != self.codd.node:
            self.codd.start_timer("asked", at=now + self.codd.settings.candidate_wait_s)
        self._tell(agent, GetSeedSet(), now)

    def no_answer(self, now: float) -> None:
        """The agent is not there: ask the next, each once; then again later."""
        self._agent += 1
        self._tried += 1
        if self._tried < len(self.agents):
            self.ask(now)
        else:
            self._tried = 0
            self.codd.drop(DropReason.NO_AGENT_ANSWERS)
            self.codd.start_timer("ask-again", at=now + self.codd.settings.retry_s)

    def on_seed_set(self, packet: SeedSet, now: float) -> None:
        self.codd.cancel_timer("asked")
        self._tried = 0
        listed = {source.tree: source for source in packet.sources if source_of(source.tree) != self.codd.node}
        newest = {source_of(tree): tree for tree in sorted(listed, key=_age)}
        self.sources = {tree: source for tree, source in listed.items() if newest[source_of(tree)] == tree}
        self.codd.sources_changed(now)

    def register_own(self, now: float) -> None:
        """A source tells every agent."""
        if self.codd.own_tree is not None:
            self._tell_all(Register(self.codd.own_tree.id, self.codd.own_types), now)

    def unregister_own(self, now: float) -> None:
        if self.codd.own_tree is not None:
            self._tell_all(Unregister(self.codd.own_tree.id), now)

    def _tell_all(self, packet: Packet, now: float) -> None:
        for agent in self.agents:
            self._tell(agent, packet, now)
        if not self.agents:
            self.codd.broadcast(packet)

    def _tell(self, agent: str, packet: Packet, now: float) -> None:
        if agent == self.codd.node:
            self.on_agent_packet(packet, agent, now)
        else:
            self.codd.send(agent, packet)

    # An agent.

    def on_agent_packet(self, packet: Packet, sender: str, now: float) -> None:
        if self.agents and not self.is_agent:
            self.codd.drop(DropReason.NOT_AN_AGENT)
            return
        match packet:
            case Register(tree, types):
                if source_of(tree) != sender or len(self.register) >= MOST_SOURCES:
                    self.codd.drop(DropReason.NOT_REGISTERED)
                    return
                known = self.register.get(tree)
                if known is None or known.types != types:
                    self._forget_earlier(sender, tree)
                    self.codd.start_timer("push", at=now + PUSH_S)
                self.register[tree] = Registered(types, now)
            case Unregister(tree):
                if source_of(tree) == sender and self.register.pop(tree, None) is not None:
                    self.codd.start_timer("push", at=now + PUSH_S)
            case GetSeedSet() if self.agents:
                self.members[sender] = now
                self._answer(sender, now)
            case GetSeedSet() if self.codd.own_tree is not None:
                self.codd.send(sender, Register(self.codd.own_tree.id, self.codd.own_types))

    def _forget_earlier(self, source: str, tree: str) -> None:
        for earlier in [one for one in self.register if source_of(one) == source and one != tree]:
            del self.register[earlier]

    def push(self, now: float) -> None:
        """Tell all members what there is now; without agents, this node alone."""
        for name in sorted(self.members) if self.agents else [self.codd.node]:
            self._answer(name, now)

    def _answer(self, member: str, now: float) -> None:
        found = tuple(Source(tree, known.types, self._seeds(tree)) for tree, known in sorted(self.register.items()))
        if member == self.codd.node:
            self.on_seed_set(SeedSet(found), now)
        else:
            self.codd.send(member, SeedSet(found))

    def _seeds(self, tree: str) -> tuple[str, ...]:
        """The source, and so many members that the setting asks for."""
        more = self.codd.settings.seeds - 1
        others = sorted(self.members) if more else []
        return (source_of(tree), *self.codd.random.sample(others, min(more, len(others))))


def _age(tree: str) -> tuple[int, str]:
    life = tree.rpartition("#")[2]
    return (int(life, 16) if life and all(letter in "0123456789abcdef" for letter in life) else 0, tree)
