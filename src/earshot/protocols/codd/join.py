"""Figure 2's join protocol as a finite state machine: one node that looks for a place in one tree.

It keeps the seed sets and the candidates, and knows what to try next. The machine sends the packets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto


class JoinState(Enum):
    """What a node that looks for a place is waiting for."""

    IDLE = auto()
    "Nothing: it has a place, or has not begun."
    COLLECTING = auto()
    "The seeds' candidates: TYPE_ADD is sent."
    ASKING = auto()
    "A candidate's answer: TYPE_ADDCHILD is sent."
    MOVING = auto()
    "The answer of a better parent (section 3.3). The node keeps its place meanwhile."
    SUCCEEDING = auto()
    "The answer of the grandparent, whose child left and named this node its successor (section 3.2)."
    RESTING = auto()
    "The next attempt: figure 2 returned FAIL."


class JoinEvent(Enum):
    """What happens to a node that looks for a place."""

    SEEDS = auto()
    "A seed set is tried."
    NO_SEEDS = auto()
    "No seed set is left to try."
    CANDIDATE = auto()
    "A candidate is asked."
    BETTER_PARENT = auto()
    "A search has found a better parent."
    SUCCESSION = auto()
    "The parent leaves and names this node its successor."
    ACCEPTED = auto()
    "The node that was asked takes this one as a child."
    REFUSED = auto()
    "The better parent does not take it."


TRANSITIONS: dict[tuple[JoinState, JoinEvent], JoinState] = {
    # A join may start again in every state: the parent fails, or a timer runs out.
    **{(state, JoinEvent.SEEDS): JoinState.COLLECTING for state in JoinState},
    **{(state, JoinEvent.NO_SEEDS): JoinState.RESTING for state in JoinState},
    (JoinState.COLLECTING, JoinEvent.CANDIDATE): JoinState.ASKING,
    (JoinState.ASKING, JoinEvent.CANDIDATE): JoinState.ASKING,
    (JoinState.ASKING, JoinEvent.ACCEPTED): JoinState.IDLE,
    (JoinState.IDLE, JoinEvent.BETTER_PARENT): JoinState.MOVING,
    (JoinState.MOVING, JoinEvent.ACCEPTED): JoinState.IDLE,
    (JoinState.MOVING, JoinEvent.REFUSED): JoinState.IDLE,
    (JoinState.IDLE, JoinEvent.SUCCESSION): JoinState.SUCCEEDING,
    (JoinState.MOVING, JoinEvent.SUCCESSION): JoinState.SUCCEEDING,
    (JoinState.SUCCEEDING, JoinEvent.SUCCESSION): JoinState.SUCCEEDING,
    (JoinState.SUCCEEDING, JoinEvent.ACCEPTED): JoinState.IDLE,
}
"What cannot happen in a state is not listed."
ASKED = (JoinState.ASKING, JoinState.MOVING, JoinState.SUCCEEDING)
"States in which TYPE_ADDCHILD is not answered yet."


@dataclass(slots=True)
class Join:
    """The state of one node's join, for one tree."""

    state: JoinState = JoinState.IDLE
    seed_sets: list[tuple[str, ...]] = field(default_factory=list)
    "Seed sets that are still to be tried."
    request: int = 0
    "The number of the last request. Answers carry it."
    waiting: set[str] = field(default_factory=set)
    "Seeds whose request has not led to an answer yet."
    candidates: list[str] = field(default_factory=list)
    "The cheapest candidate, which is the one that answered first, comes first."
    asked: str = ""
    "The node that was asked to take this one as a child."
    stated: frozenset[str] = frozenset()
    "The aggregate filter that was stated to it."
    failures: int = 0
    "Failed attempts since the node last had a place."

    def happens(self, event: JoinEvent) -> None:
        self.state = TRANSITIONS[self.state, event]

    def begin(self, seed_sets: Iterable[tuple[str, ...]]) -> None:
        """Start with these seed sets, without repetitions and empty ones."""
        self.seed_sets = list(dict.fromkeys(seeds for seeds in seed_sets if seeds))

    def next_seeds(self, request: int) -> tuple[str, ...]:
        """The seeds to send TYPE_ADD to."""
        self.happens(JoinEvent.SEEDS)
        seeds = self.seed_sets.pop(0)
        self.request, self.waiting, self.candidates = request, set(seeds), []
        return seeds

    def collects(self, request: int) -> bool:
        """Whether an answer to this TYPE_ADD still counts."""
        return self.state is JoinState.COLLECTING and self.request == request

    def on_candidate(self, peer: str, spare: bool) -> bool:
        """A node answers TYPE_ADD, on behalf of one seed. Returns whether all seeds' requests are answered."""
        if spare and peer not in self.candidates:
            self.candidates.append(peer)
        return self.seed_answered(peer if peer in self.waiting else min(self.waiting))

    def seed_answered(self, seed: str) -> bool:
        self.waiting.discard(seed)
        return not self.waiting

    def ask(self, event: JoinEvent, peer: str, request: int, wants: Iterable[str]) -> None:
        """TYPE_ADDCHILD is sent to the peer."""
        self.happens(event)
        self.asked, self.request, self.stated = peer, request, frozenset(wants)

    def waits_for(self, peer: str, request: int) -> bool:
        """Whether this is the answer to the last TYPE_ADDCHILD."""
        return self.state in ASKED and self.asked == peer and self.request == request
