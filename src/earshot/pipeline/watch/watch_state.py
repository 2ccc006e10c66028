"""The settings of a watch, its state between two batches, and what it reports of a batch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from earshot.errors import SettingsError
from earshot.pipeline.watch import spool_source as source
from earshot.pipeline.watch.running_metrics import RunningMetrics

DAY_S = 86_400.0


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
    keep_s: float | None = None
    "Rows of days that ended longer ago, compared with the newest record, are removed; None: none are."

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise SettingsError(f"a watch is named by letters, digits, '.', '-' and '_', got {self.name!r}")
        for name in ("delay_s", "patience_s", "forget_s", "most_bytes"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        if self.keep_s is not None and not DAY_S <= self.keep_s < math.inf:
            raise SettingsError(
                f"rows are removed by the day: keep them for one day at least, as in --keep 30d, not {self.keep_s:g} s"
            )
        if not 1.0 <= self.cell_m < math.inf:
            raise SettingsError(f"cell_m must be at least 1, got {self.cell_m}")

    @property
    def memory_s(self) -> float:
        """How long settled events are remembered, to know overdue deliveries."""
        return self.delay_s + self.patience_s


class State(msgspec.Struct):
    """Where a watch is, after a batch; times None: nothing was read yet. It does not grow: `state_log` and the tables
    hold what does."""

    batch: int = -1
    watermark: float | None = None
    settled: float | None = None
    newest: float | None = None
    records: int = 0
    events: int = 0
    rejects: int = 0
    late: int = 0
    matches: int = 0
    networks: dict[str, str] = {}
    "The name of each network, by its marks."
    window: dict[int, float] = {}
    "Batches whose records may still matter, and their latest time."

    @property
    def day(self) -> str:
        """The day of the newest record, in UTC: the partition of what the batch writes."""
        return day_of(0.0 if self.newest is None else self.newest)


def day_of(time: float) -> str:
    """The date of a time, in UTC."""
    return datetime.fromtimestamp(max(0.0, time), UTC).date().isoformat()


def read_state(text: str) -> State:
    """The state as a row of `watches` holds it."""
    return msgspec.json.decode(text, type=State)


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
