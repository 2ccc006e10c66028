"""A leaderboard made by hand, for the tests of the page that shows one."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.campaigns.leaderboard import KeyedRow, Leaderboard, board_of

FIGURES = {
    # delivery of the reachable, airtime, latency p95, bytes a delivery
    "codd": (0.96, 0.09, 0.4, 6200),
    "content-odmrp": (0.985, 0.15, 0.3, 9000),
    "drip": (0.93, 0.10, 4.0, 12_000),
    "drip-sf": (0.80, 0.40, 6.0, 30_000),
    "flooding": (0.9915, 0.31, 0.02, 8100),
    "georendezvous": (0.55, 0.20, 0.2, 60_000),
    "gossip": (0.97, 0.24, 0.03, 6700),
    "odmrp": (0.90, 0.20, 0.3, 10_000),
    "siena": (0.94, 0.14, 0.35, 9000),
    "steam": (0.992, 0.12, 1.4, 20_000),
}
TYPES = {"Traffic": 1.0, "Parking": 0.99, "Siren": 0.97}


def run_rows(
    protocols: Sequence[str] = tuple(FIGURES),
    changed: Sequence[Mapping[str, Any]] = ({},),
    networks: Mapping[str, str] | None = None,
    assumes: Mapping[str, str] | None = None,
    seeds: int = 5,
) -> list[dict[str, Any]]:
    """Rows of `runs`."""
    return [
        {
            "run": f"{protocol}-{number}-{seed}", "scenario": "city", "protocol": protocol, "variant": protocol,
            "settings": "{}", "seed": seed, "point": f"point-{number}",
            "network": (networks or {}).get(protocol, "802.11b-2M 160 m"),
            "assumes": (assumes or {}).get(protocol, ""), "changed": json.dumps(keys), "base": "{}",
            "trace": "", "window": "", "workload": f"{number}-{seed}", "status": "done", "error": None,
            "took_s": 1.0, "duration_s": 60.0,
        }
        for number, keys in enumerate(changed)
        for protocol in protocols
        for seed in range(seeds)
    ]  # fmt: skip


def made_board(rows: Sequence[Mapping[str, Any]]) -> Leaderboard:
    """Their leaderboard, from figures that vary a little by seed."""
    figures, by_type = [], []
    for row in rows:
        chance = random.Random(row["run"])
        delivery, airtime, latency_s, size = FIGURES[row["protocol"]]
        ceiling = 0.964 + chance.uniform(-0.01, 0.01)
        reached = min(1.0, delivery + (1 - delivery) * chance.uniform(-0.3, 0.3))
        values = {
            "delivery_of_reachable": reached,
            "delivery_ratio": reached * ceiling,
            "precision": 1 - 0.02 * chance.random(),
            "airtime_mean": airtime * chance.uniform(0.9, 1.1),
            "airtime_busiest": 2 * airtime * chance.uniform(0.9, 1.1),
            "latency_p95_s": latency_s * chance.uniform(0.8, 1.2),
            "bytes_per_delivery": size * chance.uniform(0.9, 1.1),
            "ceiling": ceiling,
            "hops": 3.0,
            "expected": 100.0,
        }
        figures += [{"run": row["run"], "metric": name, "key": "", "value": value} for name, value in values.items()]
        for event_type, factor in TYPES.items():
            of_type = {"delivery_of_reachable": reached * factor, "ceiling": ceiling}
            by_type += [
                {"run": row["run"], "metric": name, "key": event_type, "value": value}
                for name, value in of_type.items()
            ]
    return board_of(rows, figures, by_type)


def keyed(board: Leaderboard, figures: Mapping[str, Mapping[str, float]], only: str = "") -> list[KeyedRow]:
    """The same figures by key for every row, or for one protocol's."""
    exact = {key: {name: Figure(value, value, value, 5) for name, value in one.items()} for key, one in figures.items()}
    return [
        KeyedRow(row.point, row.variant, row.protocol, key, one)
        for row in board.rows
        for key, one in exact.items()
        if only in ("", row.variant)
    ]
