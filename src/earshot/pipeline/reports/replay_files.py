"""Replays beside a report: one file per world, with its runs side by side.

A world's file is made in a Spark task, several at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.reports.lake_replays import LakeCatalogue
from earshot.pipeline.spark.tasks import each_in_a_task
from earshot.view.catalogue import WorldEntry
from earshot.view.page import write_page

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake

MOST_WORLDS = 4
MOST_RUNS = 12
"Of a world. A report is about many runs; for all others there is `earshot view LAKE --run ID`."
MOST_HOPS = 200_000
MOST_ANSWERS = 4_000
"Of a run: a file stays within a few megabytes."


def write_replays(lake: Lake, report: Path, runs: Sequence[str]) -> Mapping[str, str]:
    """Files in a folder beside the report; for each run that is in one, its address from the report."""
    catalogue = LakeCatalogue(lake.arrow, runs)
    with_places = (_fewer(entry) for entry in catalogue.worlds() if catalogue.world(entry.key).nodes)
    entries = list(islice(with_places, MOST_WORLDS))
    documents = each_in_a_task(lake.session, entries, _DocumentTask(lake.folder.root, list(runs)))
    folder = report.with_name(f"{report.stem}-replays")
    links: dict[str, str] = {}
    for entry, document in zip(entries, documents, strict=True):
        name = f"{_plain(entry.title)}-{_plain(entry.key)[:8]}.html"
        write_page(folder / name, document)
        for run in entry.runs:
            links[run.key] = f"{quote(folder.name)}/{name}#{urlencode({'run': run.key})}"
    return links


def _plain(text: str) -> str:
    """The text as a file name that every system allows."""
    return re.sub("[^A-Za-z0-9]+", "-", text).strip("-") or "world"


def _fewer(entry: WorldEntry) -> WorldEntry:
    return WorldEntry(entry.key, entry.title, entry.runs[:MOST_RUNS])


class _DocumentTask:
    """What a task does with one world; it is sent to the executors."""

    def __init__(self, root: str, runs: list[str]) -> None:
        self.root = root
        self.runs = runs

    def __call__(self, entry: WorldEntry) -> str:
        catalogue = LakeCatalogue(ArrowLake(self.root), self.runs)
        return catalogue.document(entry.title, entry, MOST_ANSWERS, MOST_HOPS)
