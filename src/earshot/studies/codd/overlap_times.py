"""Section 3: how long it takes to compare two queries by the documents they met, and by their structure.

Wall-clock time of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from statistics import median
from time import perf_counter_ns

from earshot.protocols.codd.overlap import overhead_of
from earshot.protocols.codd.recent_documents import bitmap
from earshot.studies.codd.runs import XmlStream
from earshot.studies.study import Case, Row


def overlap_times(case: Case) -> Sequence[Row]:
    """One row a pair of queries: by the bitmaps of their documents, by structural overlap, by query containment."""
    stream = XmlStream([case["dtd"]], case["queries"], case["documents"], case["seed"])
    queries = [stream.filters(node)[0] for node in range(case["queries"])]
    documents = list(stream.documents())
    met = [bitmap((number for number, one in enumerate(documents) if query.matches(one)), 0) for query in queries]
    random = Random(f"{case['seed']}:pairs")
    rows = []
    for _ in range(case["pairs"]):
        a, b = random.sample(range(len(queries)), 2)
        rows.append(
            {
                "extensional_us": _median_us(partial(overhead_of, met[a], met[b])),
                "structural_us": _median_us(partial(queries[a].overlap, queries[b])),
                "containment_us": _median_us(partial(queries[a].covers, queries[b])),
            }
        )
    return rows


def _median_us(operation: Callable[[], object], times: int = 5) -> float:
    took = []
    for _ in range(times):
        started = perf_counter_ns()
        operation()
        took.append(perf_counter_ns() - started)
    return median(took) / 1000
