"""Age of information, time between receptions and fairness, against plain loops over the same deliveries."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from earshot.pipeline.campaigns.run_figures import receiver_figures
from earshot.pipeline.campaigns.run_pairs import RunPairs


def drawn(seed: int) -> list[tuple[Any, ...]]:
    """Pairs of several streams, some lost, some overtaking each other, some unexpected."""
    chance = random.Random(seed)
    rows = []
    for k in range(60):
        source, kind, at = chance.choice("pq"), chance.choice(("Siren", "Fire")), chance.uniform(0.0, 100.0)
        for node in "abcd":
            wanted, got = chance.random() < 0.8, chance.random() < {"a": 1.0, "b": 0.7, "c": 0.3, "d": 0.0}[node]
            delivered = at + chance.expovariate(0.2) if got else None
            rows.append((f"r{seed}", f"e{k}", node, source, kind, at, delivered, wanted, got))
    return rows


def by_hand(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    streams: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for _, _, node, source, kind, published, delivered, wanted, got in rows:
        if wanted:
            counts[node][0] += 1
            counts[node][1] += got
            if got:
                streams[node, source, kind].append((delivered, published))
    area, length, gaps = 0.0, 0.0, []
    for stream in streams.values():
        stream.sort()
        for (at, _), (until, _) in pairwise(stream):
            times = np.linspace(at, until, 2001)
            newest = max(published for delivered, published in stream if delivered <= at)
            area += float(np.trapezoid(times - newest, times))
            length += until - at
            gaps.append(until - at)
    shares = [met / expected for expected, met in counts.values()]
    return {
        "age_of_information_s": area / length,
        "inter_reception_s": float(np.mean(gaps)),
        "inter_reception_p95_s": sorted(gaps)[int(np.ceil(0.95 * len(gaps))) - 1],
        "fairness": sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares)),
    }


def figures(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    events, nodes = sorted({row[1] for row in rows}), sorted({row[2] for row in rows})
    of_event = {row[1]: row for row in rows}
    columns = [of_event[event] for event in events]
    numbers = len(rows)
    nothing = np.full(len(rows), None, dtype=object)
    pairs = RunPairs(
        events=events,
        nodes=nodes,
        published_at=np.array([row[5] for row in columns]),
        type=[row[4] for row in columns],
        source=[row[3] for row in columns],
        x_m=np.zeros(len(events)),
        y_m=np.zeros(len(events)),
        sent=np.ones(len(events), dtype=bool),
        event=np.array([events.index(row[1]) for row in rows]),
        node=np.array([nodes.index(row[2]) for row in rows]),
        publishes=np.zeros(numbers, dtype=bool),
        wanted=np.array([row[7] for row in rows]),
        receptions=np.zeros(numbers, dtype=np.int64),
        delivered_at=np.array([np.nan if row[6] is None else row[6] for row in rows]),
        hops=np.full(numbers, np.nan),
        dropped=nothing,
        reach=nothing,
    )
    return receiver_figures(pairs)


@pytest.mark.parametrize("seed", range(4))
def test_the_figures_are_those_of_a_plain_loop(seed: int) -> None:
    rows = drawn(seed)
    assert figures(rows) == pytest.approx(by_hand(rows), rel=1e-6)


def test_what_cannot_be_measured_has_no_value() -> None:
    lost, unexpected = ("e1", "a", "p", "Fire", 1.0, None, True, False), ("e1", "b", "p", "Fire", 1.0, 2.0, False, True)
    alone = ("e1", "a", "p", "Fire", 1.0, 2.0, True, True)
    assert figures([("none", *lost), ("none", *unexpected)]) == {}
    assert figures([("one", *alone)]) == {"fairness": 1.0}
