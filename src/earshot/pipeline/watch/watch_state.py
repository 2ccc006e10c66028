"""The settings of a watch, its state between two batches, and what it reports of a batch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from earshot.errors import SettingsError
from earshot.pipeline.watch import spool_source as source
from earshot.pipeline.watch.running_metrics import RunningMetrics, StoredMetrics
from earshot.records.networks import UNKNOWN_NETWORK
from earshot.records.sessions import Session, SubscriptionSpan

KnownPosition = tuple[str, str, str, float, float, float]
"Network, protocol, node, time, x_m, y_m."


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How a watch counts."""

    name: str = "live"
    delay_s: float = 10.0
    "How late a node's records may be, compared with the newest ones."
    patience_s: float = 30.0
    "How long after its publication an event's delivery counts."
    cell_m: float = 1000.0
    "The side of the squares in the counts by area."
    every_s: float = 2.0
    forget_s: float = 3600.0
    "A node that did not leave and wrote nothing for this long is forgotten."
    most_bytes: int = source.DEFAULT_BYTES
    "Read in one batch."

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise SettingsError(f"a watch is named by letters, digits, '.', '-' and '_', got {self.name!r}")
        for name in ("delay_s", "patience_s", "forget_s", "most_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        if not 1.0 <= self.cell_m < math.inf:
            raise SettingsError(f"cell_m must be at least 1, got {self.cell_m}")

    @property
    def memory_s(self) -> float:
        """How long settled events are remembered, to know overdue deliveries."""
        return self.delay_s + self.patience_s


class State(msgspec.Struct):
    """What one batch leaves for the next; times None: nothing was read yet."""

    batch: int = -1
    watermark: float | None = None
    settled: float | None = None
    newest: float | None = None
    records: int = 0
    events: int = 0
    rejects: int = 0
    late: int = 0
    matches: int = 0
    sessions: dict[str, list[Session]] = {}
    "By spool."
    networks: dict[str, str] = {}
    "The name of each network, by its marks."
    waiting: list[str] = []
    "The spools that are not read to their end."
    positions: list[KnownPosition] = []
    "Where each node was last, before the open events."
    window: dict[int, float] = {}
    "Batches whose records may still matter, and their latest time."
    metrics: StoredMetrics = msgspec.field(default_factory=StoredMetrics)


def read_state(text: str) -> State:
    """The state as a row of `watches` holds it, also one that an older version wrote."""
    found = msgspec.json.decode(text)
    if "networks" in found:
        return msgspec.json.decode(text, type=State)
    lives, metrics = found.pop("lives", None), found.get("metrics") or found.pop("tallies")
    found["positions"] = [[UNKNOWN_NETWORK, *one] for one in found.get("positions") or found.pop("ways", [])]
    for name in ("groups", "losses"):
        metrics[name] = [[[UNKNOWN_NETWORK, *key], value] for key, value in metrics[name]]
    for _, sums in metrics["groups"]:
        sums["hops_counted"] = sums.pop("hops_told", sums.get("hops_counted"))
    state = msgspec.convert({**found, "metrics": metrics}, State, str_keys=True)
    if lives is None:
        return state
    state.sessions = {name: [_older_session(life)] for name, life in lives.items()}
    state.waiting = [name for name, life in lives.items() if life["more"]]
    return state


def _older_session(life: Mapping[str, Any]) -> Session:
    session = Session(life["node"], life["protocol"], msgspec.json.decode(life["settings"]), start=life["first"])
    session.seen(life["first"], life["last"])
    if life["left"]:
        session.end = life["last"]
    for id, spans in life["wishes"].items():
        for span in spans:
            session.subscribe(SubscriptionSpan(session.node, id, span["text"], start=span["start"]))
            if span["end"] is not None:
                session.unsubscribe(id, span["end"])
    return session


@dataclass(frozen=True, slots=True)
class Commit:
    """The results of a committed batch, for display."""

    batch: int
    counts: Mapping[str, Any]
    figures: Sequence[Mapping[str, Any]]
    losses: Sequence[Mapping[str, Any]]
    wrong: Sequence[str] = ()
    "What is wrong with the standing subscriptions since they changed."
    metrics: RunningMetrics | None = None
    "The sums behind the figures; None for a commit that was read back."
    batch_s: float = 0.0
    "How long the batch took."


Report = Callable[[Commit], None]
