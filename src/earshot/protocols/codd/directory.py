"""Section 3.1's system agent: which sources there are, and where to join their trees.

Sources register with every agent, again in every period. A node that wants something asks one agent, and the next
where that one does not answer. Agents push changes to the nodes that asked. Where no agent is named, sources and
nodes speak to all in range, and every node keeps a register for itself alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from earshot.protocols.codd.packets import GetSeedSet, Register, SeedSet, Source, Unregister, source_of
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.machine import Broadcast, Drop, Effect, Send, StartTimer
from earshot.records import DropReason
from earshot.wire import Packet

PUSH_S = 0.2
"An agent collects changes of sources for this long before it pushes them to members."
MOST_SOURCES = 10_000
PERIODS = 3
"A source or member that was silent for this many periods expires."


@dataclass(slots=True)
class RegisteredSource:
    """A source, as an agent knows it."""

    types: tuple[str, ...]
    heard_at: float


class Directory:
    """What a node knows about sources; on an agent, also the register of sources and members.

    Methods return effects. A packet may be for the node itself, where it is an agent: the machine hears it at once.
    """

    def __init__(self, node: str, settings: CoddSettings, random: Random, pace: Callable[[float], float]) -> None:
        self.node = node
        self.settings = settings
        self.random = random
        self.pace = pace
        "How many times longer a node waits now: the busier the channel, the longer."
        self.own: Register | None = None
        "What this node registers, where it is a source."
        self.sources: dict[str, Source] = {}
        "By tree, the sources that this node may join."
        self.register: dict[str, RegisteredSource] = {}
        "By tree, the sources that registered here."
        self.members: dict[str, float] = {}
        "The nodes that asked here, and when."
        self._agent = self._failed_agents = 0
        self._visits = False
        self._waits_until = 0.0

    # At a node.

    def begin(self, now: float) -> list[Effect]:
        """The node has a subscription, or is a source: visit the agents in every period."""
        if self._visits:
            return []
        self._visits = True
        return [StartTimer("directory", now + self.settings.directory_s * self.random.uniform(0.5, 1.0))]

    def visit(self, asks: bool, now: float) -> list[Effect]:
        """Once in a period: register, ask where the node has subscriptions, and drop what expired."""
        effects = self.to_all_agents(self.own) if self.own is not None else []
        if asks:
            self._failed_agents = 0
            effects += self.ask(now)
        limit_s = PERIODS * self.settings.directory_s
        expired = [tree for tree, known in self.register.items() if now - known.heard_at > limit_s]
        for tree in expired:
            del self.register[tree]
        self.members = {name: heard_at for name, heard_at in self.members.items() if now - heard_at <= limit_s}
        if expired and not self.settings.agents:
            effects += self.push()
        return [*effects, StartTimer("directory", now + self.settings.directory_s)]

    def ask(self, now: float) -> list[Effect]:
        """Figure 2: get the seed set from the system agent."""
        agents = self.settings.agents
        if not agents:
            return [Broadcast(GetSeedSet())]
        pace = self.pace(now)
        if pace > 1.0 and now < self._waits_until:
            return []
        self._waits_until = now + self.settings.candidate_wait_s * pace
        agent = agents[self._agent % len(agents)]
        waits: list[Effect] = [StartTimer("asked", self._waits_until)] if agent != self.node else []
        return [*waits, Send(agent, GetSeedSet())]

    def no_answer(self, now: float) -> list[Effect]:
        """Ask the next agent, each once; after the last one, again later."""
        self._agent += 1
        self._failed_agents += 1
        self._waits_until = now
        if self._failed_agents < len(self.settings.agents):
            return self.ask(now)
        self._failed_agents = 0
        self._waits_until = now + self.settings.retry_s * self.pace(now)
        return [Drop(DropReason.NO_AGENT_ANSWERS), StartTimer("ask-again", self._waits_until)]

    def on_seed_set(self, packet: SeedSet) -> None:
        """An agent's answer. Of several trees of one source only the newest counts."""
        self._failed_agents = 0
        listed = {source.tree: source for source in packet.sources if source_of(source.tree) != self.node}
        newest = {source_of(tree): tree for tree in sorted(listed, key=_age)}
        self.sources = {tree: source for tree, source in listed.items() if newest[source_of(tree)] == tree}

    def seeds(self, tree: str) -> tuple[str, ...]:
        """The seed set to join this tree at."""
        known = self.sources.get(tree)
        return (source_of(tree),) if known is None else known.seeds

    def to_all_agents(self, packet: Packet) -> list[Effect]:
        return [Send(agent, packet) for agent in self.settings.agents] or [Broadcast(packet)]

    # At an agent; where none is named, at every node.

    def on_agent_packet(self, packet: Packet, sender: str, now: float) -> list[Effect]:
        if self.settings.agents and self.node not in self.settings.agents:
            return [Drop(DropReason.NOT_AN_AGENT)]
        match packet:
            case Register(tree, types):
                if source_of(tree) != sender or len(self.register) >= MOST_SOURCES:
                    return [Drop(DropReason.NOT_REGISTERED)]
                known = self.register.get(tree)
                if known is not None and known.types == types:
                    known.heard_at = now
                    return []
                for earlier in [one for one in self.register if source_of(one) == sender]:
                    del self.register[earlier]
                self.register[tree] = RegisteredSource(types, now)
                return [StartTimer("push", now + PUSH_S)]
            case Unregister(tree):
                known = self.register.pop(tree, None) if source_of(tree) == sender else None
                return [StartTimer("push", now + PUSH_S)] if known is not None else []
            case GetSeedSet() if self.settings.agents:
                self.members[sender] = now
                return [Send(sender, self.seed_set())]
            case GetSeedSet() if self.own is not None:
                return [Send(sender, self.own)]
        return []

    def push(self) -> list[Effect]:
        """Send the present sources to all members."""
        members = sorted(self.members) if self.settings.agents else [self.node]
        return [Send(name, self.seed_set()) for name in members]

    def seed_set(self) -> SeedSet:
        """All sources, each with seeds: the root of its tree, and as many members as the setting asks for."""
        more = self.settings.seeds - 1
        others = sorted(self.members) if more else []
        found = []
        for tree, known in sorted(self.register.items()):
            seeds = self.random.sample(others, min(more, len(others)))
            found.append(Source(tree, known.types, (source_of(tree), *seeds)))
        return SeedSet(tuple(found))


def _age(tree: str) -> tuple[int, str]:
    born = tree.rpartition("#")[2]
    return (int(born, 16) if born and all(letter in "0123456789abcdef" for letter in born) else 0, tree)
