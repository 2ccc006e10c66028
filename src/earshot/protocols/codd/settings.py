"""CoDD's settings. Where the paper leaves a passage open, each reading of it has a name here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from earshot.errors import SettingsError
from earshot.settings import AtLeastOne, Count, Positive, check_bounds

Against = Literal["query", "aggregate"]
"A node's own subscriptions, or those of its whole subtree (its effective subscription)."


@dataclass(frozen=True)
class CoddSettings:
    agents: tuple[str, ...] = field(default=(), metadata={"scenario": "first_nodes"})
    "Section 3.1's system agents: nodes that every node knows, and that know the sources. In a simulation, where "
    "not given, the scenario's first nodes; of a trace, those that stay longest."
    fan_out: int = 6
    "Symbol f: a node has at most this many children in one tree."
    seeds: AtLeastOne = 1
    "How many nodes a join begins at: the source, and members that the agent draws at random (section 3.1)."
    candidate_wait_s: Positive = 2.0
    "Figure 2's TIMEOUT: how long a newcomer waits for its seeds' candidates, and for the answer of one peer."
    join_attempts: AtLeastOne = 4
    "After this many failed joins the node reports it and waits for retry_s."
    retry_s: Positive = 10.0
    "How long a node that found no place waits before it tries again."
    join_against: Against = "aggregate"
    "What a newcomer's query is compared with at a child: section 3 says the effective subscription."
    overhead_against: Against = "query"
    "A document that does not satisfy this at a possible parent is overhead: section 3.1 says its subscription."
    keep_alive_s: Positive = 5.0
    "How often parents and children send each other keep-alive messages (section 3.2)."
    silence_s: float = 15.0
    "A parent or child that has been silent for this long has left."
    directory_s: Positive = 30.0
    "How often sources register with the agents, and nodes ask the agents."
    reorganise: bool = True
    "Section 3.3; without it the tree stays as joins and leaves made it (the paper's CoDD-NR)."
    reorganise_every: AtLeastOne = 200
    "The reorganisation frequency: a node looks at its overhead after every this many documents of the source."
    on_demand: bool = False
    "Whether it also looks at it at each document."
    overhead_threshold: float = 0.2
    "Symbol rthresh: a node whose overhead is above it asks for a reorganisation."
    rest_documents: Count = 200
    "The time limit: at least this many documents pass between two requests of one node."
    mover: Literal["child", "self"] = "child"
    "Who moves: the child that the high-overhead node has the least overlap with, or that node itself."
    top: AtLeastOne | None = None
    "The policy top-c: at most this many of the requests that are pending together are accepted; None: all of them."
    delta: float | None = 0.0
    "The policy delta-threshold: a move must lower the overhead, as a share of recent documents, by more than this; "
    "None: figure 6 as printed, which does not compare with the present parent."
    gather_s: Positive = 0.5
    "How long the source collects requests before it accepts some."
    window_documents: AtLeastOne = 200
    "How many recent documents overlaps are estimated from."
    enough_documents: AtLeastOne = 20
    "With fewer documents than this, structure is compared instead (section 3.1)."
    summary_vertices: Annotated[int, Meta(ge=16)] = 2000
    "The most vertices of a data-summary tree; the least recently used are removed first."
    held_documents: int = 1000
    "How many recent documents a node keeps: for children that come from elsewhere, and to recognise duplicates."

    def __post_init__(self) -> None:
        object.__setattr__(self, "agents", tuple(self.agents))
        check_bounds(self)
        if self.fan_out < 1:
            raise SettingsError(
                f"fan_out (f) must be at least 1: a node that takes no child passes nothing on, got {self.fan_out}"
            )
        if not self.silence_s > self.keep_alive_s:
            raise SettingsError(
                f"silence_s must be longer than keep_alive_s ({self.keep_alive_s:g} s), or every peer seems "
                f"to have left, got {self.silence_s}"
            )
        for name, share in (("overhead_threshold", self.overhead_threshold), ("delta", self.delta)):
            if share is not None and not 0 <= share <= 1:
                raise SettingsError(f"{name} is a share from 0 to 1, got {share}")
        if self.held_documents < self.window_documents:
            raise SettingsError(
                f"held_documents must be at least window_documents ({self.window_documents}), got {self.held_documents}"
            )


PAPER = CoddSettings()
