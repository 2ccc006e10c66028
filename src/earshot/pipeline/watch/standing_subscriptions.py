"""Standing subscriptions: filters in a file, one a line, that may change while a stream runs.

Each is known by its line (`line-3`) and by its text. Terms that ask where the consumer is are refused:
a standing subscription belongs to no node.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa

from earshot.errors import EarshotError, UsageError
from earshot.filters import Filter
from earshot.pipeline.lake.tables import WATCHED_MATCHES
from earshot.pipeline.oracle.matcher import Matcher
from earshot.records.sessions import SubscriptionSpan


@dataclass(frozen=True, slots=True)
class StandingSubscriptions:
    """The subscriptions in a file, and what is wrong with the other lines."""

    subscriptions: tuple[SubscriptionSpan, ...] = ()
    wrong: tuple[str, ...] = ()


def read_standing(file: Path) -> StandingSubscriptions:
    """The filters of a file; blank lines and # comments are skipped."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read the subscriptions {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not a text in UTF-8: {error.reason} at byte {error.start}") from None
    found, wrong = [], []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            if Filter.parse(text).needs_viewer:
                raise UsageError("it depends on the consumer's position, and a standing subscription has none")
        except EarshotError as error:
            wrong.append(f"{file}:{number}: {error}")
        else:
            found.append(SubscriptionSpan(f"line-{number}", f"line-{number}", text, start=-math.inf))
    return StandingSubscriptions(tuple(found), tuple(wrong))


class StandingMatcher:
    """Events, with their network and protocol as `workload` (a JSON list), to rows of `watched_matches`. The same
    object as long as the file is the same: a worker then builds its index once."""

    def __init__(self, standing: StandingSubscriptions) -> None:
        self.matcher = Matcher({EVERY_NETWORK: standing.subscriptions})

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lookup = self.matcher.lookup()
        for batch in batches:
            # A standing subscription applies to every network.
            every = pa.repeat(pa.scalar(EVERY_NETWORK), batch.num_rows)
            at = batch.schema.get_field_index("workload")
            rows, found = lookup.candidates(batch.set_column(at, "workload", every))
            chosen = batch.take(pa.array(rows, pa.int64()))
            communities = [msgspec.json.decode(text) for text in chosen.column("workload").to_pylist()]
            columns = {
                name: pa.array([community[number] for community in communities], pa.string())
                for number, name in enumerate(("network", "protocol"))
            }
            columns |= {name: chosen.column(of) for name, of in _OF_THE_EVENT.items()}
            for name in ("subscription", "filter"):
                columns[name] = lookup.columns[name].take(pa.array(found, pa.int64()))
            yield pa.RecordBatch.from_pydict(columns)


EVERY_NETWORK = ""
_OF_THE_EVENT = {
    "event": "event",
    "type": "type",
    "source": "source",
    "published_at": "time",
}
MATCHES = ", ".join(
    f"`{name}` {WATCHED_MATCHES.columns[name]}" for name in WATCHED_MATCHES.data_columns if name != "batch"
)
"The columns a `StandingMatcher` gives, as Spark SQL has them."


class StandingFile:
    """A file of filters that is read again when it changes; `changes` counts how often it was."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._stamp = self._look()
        self.now = read_standing(file)
        self.changes = 0
        if self.now.wrong:
            raise UsageError("\n".join(self.now.wrong))

    def refresh(self) -> Sequence[str]:
        """Read the file again where it has changed. Wrong lines are returned and left out; where the whole
        file cannot be read, the subscriptions from before stay in force."""
        stamp = self._look()
        if stamp == self._stamp:
            return ()
        self._stamp = stamp
        self.changes += 1
        try:
            self.now = read_standing(self.file)
        except UsageError as error:
            return (f"{error}; the subscriptions from before stay in force",)
        return self.now.wrong

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self.file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
