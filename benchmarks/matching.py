"""How fast filters match: FilterIndex and its peers on the same filters and events, in one run.

    python benchmarks/matching.py [--quick] [--data FOLDER] [conjunctions] [scaling] [paths] [upkeep]

Times are processor time on one core, medians of repeats in which all contestants take turns, so that a
busy machine slows all of them. Peers that are not installed are left out (`pip install pyroaring numba`),
and so are the paths where the folder of shared data is absent.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import os
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matching_peers as peers
from lxml import etree
from matching_peers import Conjunction, Workload, filter_of, where_of

from earshot import Event, Filter, FilterIndex

HERE = Path(__file__).resolve().parent
MANY = 100_000


class Contestant:
    """Something that matches one event a call."""

    def __init__(self, name: str, match: Callable[[Any], Any], events: Iterable[Any], calls: int) -> None:
        self.name = name
        self.calls = calls
        "In each repeat."
        self._match = match
        self._events = cycle(events)
        self._rates: list[float] = []

    @property
    def rate(self) -> float:
        """Events a second."""
        return statistics.median(self._rates)

    def warm_up(self) -> None:
        for _ in range(self.calls):
            self._match(next(self._events))

    def run(self) -> None:
        match, events = self._match, self._events
        started = time.process_time()
        for _ in range(self.calls):
            match(next(events))
        self._rates.append(self.calls / (time.process_time() - started))


def compete(contestants: Sequence[Contestant], repeats: int) -> None:
    for one in contestants:
        one.warm_up()
    gc.collect()
    gc.disable()
    for _ in range(repeats):
        for one in contestants:
            one.run()
    gc.enable()


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    cells = [list(heads), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    print(f"\n{title}\n")
    for first, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *aligned]).rstrip())
    print(flush=True)


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:,.2f}"


def times(ratio: float) -> str:
    return f"{ratio:,.0f} x" if ratio >= 10 else f"{ratio:,.1f} x"


def indexed(subscriptions: dict[str, Conjunction]) -> FilterIndex:
    index = FilterIndex()
    for key, conjunction in subscriptions.items():
        index.add(key, filter_of(conjunction))
    return index


def events_of(workload: Workload, count: int = 2000) -> list[Event]:
    return [Event(type="e", content=content) for content in workload.contents(count)]


def changing(workload: Workload, subscriptions: dict[str, Conjunction], every: int) -> Callable[[Event], set[str]]:
    """An index in which a new filter replaces the oldest one after every `every` events."""
    index = indexed(subscriptions)
    chance = random.Random(9)
    others = cycle([filter_of(workload.conjunction(chance)) for _ in range(1000)])
    keys = list(subscriptions)
    calls = 0

    def match(event: Event) -> set[str]:
        nonlocal calls
        calls += 1
        if calls % every == 0:
            key = keys[calls // every % len(keys)]
            index.remove(key)
            index.add(key, next(others))
        return index.match(event)

    return match


ASKED_OF_LOOP = {
    "FilterIndex": "100 x",
    "FilterIndex without numba": "120 x",
    "FilterIndex, a filter replaced every 10 events": "100 x",
}


def conjunctions(quick: bool) -> None:
    """10,000 conjunctions, about 25 matches an event: ours, in several uses, and the peers."""
    workload = Workload(filters=10_000, texts=20, width=0.08)
    fractional = Workload(filters=10_000, texts=20, width=0.09, numbers=0)
    made, contents, events = workload.subscriptions(), workload.contents(2000), events_of(workload)
    index, naive, xpaths = indexed(made), peers.loop(made), peers.lxml_xpaths(made)
    with patch("earshot.filters.index.bits.compiled_loops", return_value=None):
        slower = indexed(made)
    documents = [peers.document_of(content) for content in contents[:50]]
    others: dict[str, peers.Match] = {
        "big-integer bitmaps (fixed)": peers.integer_bitmaps(made, workload),
        "numpy bitmaps (fixed)": peers.numpy_bitmaps(made, workload),
        "bitarray bitmaps (fixed)": peers.bitarray_bitmaps(made, workload),
    }
    for name, make in {
        "roaring bitmaps (fixed)": peers.roaring_bitmaps,
        "counting, compiled by numba (fixed)": peers.compiled_counting,
    }.items():
        try:
            others[name] = make(made, workload)
        except ImportError:
            print(f"{name}: not installed, left out")
    for content, event, document in zip(contents[:10], events[:10], documents[:10], strict=True):
        answers = [match(content) for match in (naive, *others.values())]
        assert all(answer == index.match(event) for answer in answers), "the contestants disagree"
        assert xpaths(document) == index.match(event), "lxml disagrees"

    calls = 1000 if quick else 4000
    loop = Contestant("a loop over the filters", naive, contents, 10 if quick else 40)
    lxml = Contestant("lxml, one compiled XPath a filter", xpaths, documents, 2)
    contestants = [
        lxml,
        loop,
        *(Contestant(name, match, contents, calls) for name, match in others.items()),
        Contestant("FilterIndex", index.match, events, calls),
        Contestant("FilterIndex without numba", slower.match, events, calls),
        Contestant("FilterIndex, a filter replaced every 100 events", changing(workload, made, 100), events, calls),
        Contestant("FilterIndex, a filter replaced every 10 events", changing(workload, made, 10), events, calls),
        Contestant(
            "FilterIndex, any fraction for a number",
            indexed(fractional.subscriptions()).match,
            events_of(fractional),
            calls,
        ),
    ]
    compete(contestants, 3 if quick else 7)
    matches = statistics.mean(len(index.match(event)) for event in events)
    table(
        f"10,000 conjunctions of 2-3 predicates over 20 attributes, {matches:.1f} matches an event",
        ["", "events/s", "x the loop", "asked", "x lxml"],
        [
            (
                one.name,
                number(one.rate),
                times(one.rate / loop.rate),
                ASKED_OF_LOOP.get(one.name, ""),
                times(one.rate / lxml.rate),
            )
            for one in contestants
        ],
    )


def scaling(quick: bool) -> None:
    """More and more filters, equally many matches: what an event costs."""
    sizes = [
        Workload(filters=1_000, texts=5, width=0.19),
        Workload(filters=10_000, texts=20, width=0.08),
        Workload(filters=MANY, texts=60, width=0.0165),
    ]
    rows = []
    contestants = []
    for workload in sizes:
        made, events = workload.subscriptions(), events_of(workload)
        index = indexed(made)
        matches = statistics.mean(len(index.match(event)) for event in events)
        calls = 1000 if quick else 3000
        contestants.append((workload, matches, Contestant("", index.match, events, calls)))
        contestants.append(
            (
                workload,
                matches,
                Contestant("", peers.loop(made), workload.contents(200), 100_000 // workload.filters or 1),
            )
        )
    compete([one for *_, one in contestants], 3 if quick else 7)
    for (workload, matches, ours), (*_, loop) in zip(contestants[::2], contestants[1::2], strict=True):
        rows.append(
            (
                f"{workload.filters:,} filters",
                f"{matches:.1f}",
                number(1e6 / ours.rate),
                number(1e6 / loop.rate),
                times(ours.rate / loop.rate),
            )
        )
    table(
        "Equally many matches, more and more filters: microseconds an event",
        ["", "matches", "FilterIndex", "a loop", "ratio"],
        rows,
    )


def paths(quick: bool, data: Path) -> None:
    """The YFilter paths and queries on their documents."""
    folder = data / "yfilter"
    raw = [path.read_bytes() for path in sorted((folder / "documents").glob("*.xml"))]
    events = [Event.from_xml(document) for document in raw]
    trees = [etree.fromstring(document) for document in raw]
    lines = gzip.decompress((folder / "benchmark-153928-paths.txt.gz").read_bytes()).decode().split()
    chance = random.Random(3)
    chance.shuffle(lines)
    sample = [etree.XPath(f"boolean({line})") for line in lines[:2000]]
    repeats = 3 if quick else 7

    def lxml_sample(tree: Any) -> list[Any]:
        return [xpath(tree) for xpath in sample]

    few, all_paths = path_index(lines[: len(lines) // 10]), path_index(lines)
    firsts = {index: first_pass_rate(index, raw) for index in (few, all_paths)}
    contestants = {
        "lxml": Contestant("", lxml_sample, trees, 2),
        "few": Contestant("", few.match, events, 200),
        "all": Contestant("", all_paths.match, events, 200),
        "few, from bytes": Contestant("", lambda document: few.match(Event.from_xml(document)), raw, 200),
        "all, from bytes": Contestant("", lambda document: all_paths.match(Event.from_xml(document)), raw, 200),
    }
    compete(list(contestants.values()), repeats)
    lxml = contestants["lxml"].rate * len(sample) / len(lines)
    heads = ["", "documents/s", "x lxml", "asked", "ten times the paths cost"]
    rows = []
    for name, asked, few_rate, all_rate in (
        ("matched", "50 x", contestants["few"].rate, contestants["all"].rate),
        ("read from bytes and matched", "", contestants["few, from bytes"].rate, contestants["all, from bytes"].rate),
        ("the same, each document seen for the first time", "250 x", firsts[few], firsts[all_paths]),
    ):
        more = times(few_rate / all_rate)
        rows.append((f"FilterIndex, {name}", number(all_rate), times(all_rate / lxml), asked, more))
    matches = statistics.mean(len(all_paths.match(event)) for event in events)
    table(
        f"{len(lines):,} YFilter paths on {len(raw)} documents, {matches:,.0f} matches a document "
        "(asked: ten times the paths cost less than 4 x)",
        heads,
        [(f"lxml, extrapolated from {len(sample):,} paths", f"{lxml:.3f}", "1.0 x", "", ""), *rows],
    )
    predicates(folder, events, trees, repeats)


def path_index(lines: Sequence[str]) -> FilterIndex:
    index = FilterIndex()
    for key, line in enumerate(lines):
        index.add(key, Filter.xpath(line))
    return index


def first_pass_rate(index: FilterIndex, documents: Sequence[bytes]) -> float:
    started = time.process_time()
    for document in documents:
        index.match(Event.from_xml(document))
    return len(documents) / (time.process_time() - started)


def predicates(folder: Path, events: Sequence[Event], trees: Sequence[Any], repeats: int) -> None:
    lines = (folder / "simple-predicates.txt").read_text().split()
    filters = [Filter.xpath(line) for line in lines]
    compiled = [etree.XPath(f"boolean({line})") for line in lines]
    index = path_index(lines)
    unseen = Contestant("FilterIndex, each document seen for the first time", index.match, events, len(events))
    unseen.run()
    # All contestants see all documents: these differ tenfold in size.
    contestants = [
        Contestant("lxml", lambda tree: [xpath(tree) for xpath in compiled], trees, 25),
        Contestant("a loop over Filter.matches", lambda event: [one.matches(event) for one in filters], events, 25),
        Contestant("FilterIndex", index.match, events, len(events)),
    ]
    compete(contestants, repeats)
    table(
        "1,000 YFilter queries with predicates on 100 documents",
        ["", "documents/s", "x lxml", "asked"],
        [
            (one.name, number(one.rate), times(one.rate / contestants[0].rate), asked)
            for one, asked in zip((*contestants, unseen), ("", "1.0 x", "25 x", ""), strict=True)
        ],
    )


def upkeep(data: Path) -> None:
    """What 100,000 filters cost to keep: time to add, memory, and what a single change costs the next event."""
    workload = Workload(filters=MANY, texts=60, width=0.0165)
    fractional = Workload(filters=MANY, texts=60, width=0.0265, numbers=0)
    rows = [
        upkeep_row("conjunctions", [where_of(one) for one in workload.subscriptions().values()], events_of(workload)),
        upkeep_row(
            "conjunctions, any fraction for a number",
            [where_of(one) for one in fractional.subscriptions().values()],
            events_of(fractional),
        ),
    ]
    folder = data / "yfilter"
    if folder.is_dir():
        lines = gzip.decompress((folder / "benchmark-153928-paths.txt.gz").read_bytes()).decode().split()
        documents = [Event.from_xml(path.read_bytes()) for path in sorted((folder / "documents").glob("*.xml"))]
        rows.append(upkeep_row("YFilter paths", random.Random(3).sample(lines, MANY), documents))
    table(
        f"{MANY:,} filters (asked: at most 2 KB a filter, added in 10 s; a change rebuilds nothing)",
        [
            "",
            "read text, s",
            "add, s",
            "bytes a filter",
            "match, us",
            "after a change, us",
            "at worst, us",
            "a change, us",
        ],
        rows,
    )


def upkeep_row(name: str, texts: list[str], events: list[Event]) -> tuple[str, ...]:
    started = time.process_time()
    filters = [Filter.parse(text) for text in texts]
    parsed_s = time.process_time() - started
    index = FilterIndex()
    started = time.process_time()
    for key, filter in enumerate(filters):
        index.add(key, filter)
    added_s = time.process_time() - started
    for event in events[:500]:
        index.match(event)
    plain, after, changes = [], [], []
    for key, event in enumerate(events[:200] * 2):
        started = time.process_time()
        index.match(event)
        matched = time.process_time()
        index.remove(key)
        index.add(key, filters[key])
        changed = time.process_time()
        index.match(event)
        after.append(time.process_time() - changed)
        changes.append(changed - matched)
        plain.append(matched - started)
    del index
    gc.collect()
    tracemalloc.start()
    index = FilterIndex()
    for key, filter in enumerate(filters):
        index.add(key, filter)
    for event in events[:500]:
        index.match(event)
    size = tracemalloc.get_traced_memory()[0] / len(filters)
    tracemalloc.stop()
    micros = [1e6 * statistics.median(spent) for spent in (plain, after)]
    return (
        name,
        number(parsed_s),
        number(added_s),
        number(size),
        *map(number, micros),
        number(1e6 * max(after)),
        number(1e6 * statistics.median(changes)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast filters match, beside peers.")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("EARSHOT_DATA", HERE.parents[1] / "shared/data"))
    )
    parser.add_argument("parts", nargs="*", help="conjunctions, scaling, paths, upkeep; all where none is named")
    given = parser.parse_args()
    known = ("conjunctions", "scaling", "paths", "upkeep")
    for part in given.parts:
        if part not in known:
            parser.error(f"no part {part!r}; there are {', '.join(known)}")
    chosen = given.parts or known
    if "conjunctions" in chosen:
        conjunctions(given.quick)
    if "scaling" in chosen:
        scaling(given.quick)
    if "paths" in chosen and (given.data / "yfilter").is_dir():
        paths(given.quick, given.data)
    if "upkeep" in chosen:
        upkeep(given.data)


if __name__ == "__main__":
    main()
