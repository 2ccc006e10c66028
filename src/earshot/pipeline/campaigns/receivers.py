"""Metrics of receivers: how fresh what they know is, how steadily they hear, and how fairly they are served.

A stream is what one receiver gets of one publisher and event type, of the deliveries that were expected.

======================  ===========================================================================================
age_of_information_s    the age of the newest event a receiver has, averaged over time from its first delivery to its
                        last (Kaul, Yates and Gruteser, INFOCOM 2012), over all streams
inter_reception_s       the time between two deliveries of a stream, mean
inter_reception_p95_s   its 95th percentile
fairness                Jain's index of the receivers' delivery ratios: 1 where all are served equally, 1/n where one
                        of n gets everything (Jain, Chiu and Hawe, DEC TR-301, 1984)
======================  ===========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from earshot.pipeline.campaigns.run_pairs import RunPairs

RECEIVERS = ("age_of_information_s", "inter_reception_s", "inter_reception_p95_s", "fairness")


def receiver_figures(pairs: RunPairs) -> dict[str, float]:
    """The metrics of one run; what cannot be measured is left out."""
    found = {}
    gaps = list(delivery_gaps(pairs))
    if gaps:
        lengths = sorted(gap_s for gap_s, _ in gaps)
        whole_s = math.fsum(lengths)
        found["inter_reception_s"] = whole_s / len(lengths)
        found["inter_reception_p95_s"] = lengths[math.ceil(0.95 * len(lengths)) - 1]
        if whole_s > 0.0:
            found["age_of_information_s"] = math.fsum(aged for _, aged in gaps) / whole_s
    if (index := fairness(pairs)) is not None:
        found["fairness"] = index
    return found


def delivery_gaps(pairs: RunPairs) -> Iterator[tuple[float, float]]:
    """For each delivery that another one of its stream follows: the time until then, and the age of the newest event
    summed over that time."""
    streams: dict[tuple[str, str, int], list[tuple[float, float, str]]] = {}
    for at in np.flatnonzero(pairs.met).tolist():
        event = int(pairs.event[at])
        stream = pairs.source[event], pairs.type[event] or "", int(pairs.node[at])
        moment = float(pairs.delivered_at[at]), float(pairs.published_at[event]), pairs.events[event]
        streams.setdefault(stream, []).append(moment)
    for stream in sorted(streams):
        newest = -math.inf
        for (delivered_at, published_at, _), (until, *_) in pairwise(sorted(streams[stream])):
            newest = max(newest, published_at)
            # The age grows by a second a second: over a gap its sum is the area of a trapezium.
            gap_s = until - delivered_at
            yield gap_s, gap_s * ((delivered_at + until) / 2.0 - newest)


def fairness(pairs: RunPairs) -> float | None:
    """Jain's index of the delivery ratios of the nodes that were to receive anything."""
    size = len(pairs.nodes)
    wanted, met = (np.bincount(pairs.node[flags], minlength=size) for flags in (pairs.wanted, pairs.met))
    shares = (met[wanted > 0] / wanted[wanted > 0]).tolist()
    squares = math.fsum(share**2 for share in shares)
    return math.fsum(shares) ** 2 / (len(shares) * squares) if squares else None
