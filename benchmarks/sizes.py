"""How protocols bear a growing network: the city's mix at constant density over one shared channel.

    python benchmarks/sizes.py [--nodes 100,200,400] [--protocols flooding,steam,drip@paper] [--seeds 0,1] [--json]

The scenario is the built-in `city`, 150 nodes on one square kilometre, grown or shrunk with its area: nodes and
publishers per square kilometre, events per node and second, the events' areas and the streets per kilometre stay
as they are. The radio is `contention` at 2 Mb/s, and a node has about twelve neighbours. `NAME@paper` runs a
protocol with its paper's preset instead of its defaults. `--set drip.brokers=20` changes a setting, `--set
medium.range_m=200` a key of the scenario.

Figures are means over the seeds and count from the end of the warm-up. `control` is what carries no event, in
bytes a node and second. `cpu/tx` is processor time for each transmission, for the whole run, the log off.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from earshot.protocols.catalogue import PROTOCOLS, protocol
from earshot.simulation import Scenario, load_scenario, run, summarise

CITY_NODES = 150
CITY_SIDE_M = 1000.0
PROTOCOL_NAMES = ("flooding", "content-odmrp", "steam", "georendezvous", "drip")
STREETS_EAST_M = ((100, 1), (110, -1), (500, 1), (510, -1), (900, 1))
"The city's lanes along x: where they are in each kilometre, and which way they go."
STREETS_NORTH_M = ((200, 1), (500, -1), (510, 1), (800, -1))


@dataclass(frozen=True)
class Figures:
    """One protocol in a network of one size."""

    protocol: str
    nodes: int
    seeds: int
    delivery_ratio: float
    precision: float
    latency_p95_s: float
    transmissions_per_delivery: float
    bytes_per_delivery: float
    control_bytes_per_node_s: float
    transmissions_per_node_s: float
    cpu_us_per_transmission: float
    drops: dict[str, int]
    "By reason, the sum over the seeds."
    packets: dict[str, tuple[int, int]]
    "By kind: sent, and their bytes; the sum over the seeds."


def grown_city(nodes: int, duration_s: float, range_m: float) -> Scenario:
    """The city with this many nodes, at its own density and rates."""
    city = load_scenario("city")
    scale = nodes / CITY_NODES
    side_m = CITY_SIDE_M * math.sqrt(scale)
    counts = _shares({name: group.count or 0 for name, group in city.nodes.items()}, nodes)
    changes: dict[str, Any] = {
        "name": f"city-{nodes}",
        "duration_s": duration_s,
        "area": {"width_m": side_m, "height_m": side_m},
        "medium": {"kind": "contention", "range_m": range_m, "bit_rate_bps": 2e6},
        "nodes.car.mobility.lanes": list(_lanes(side_m)),
    }
    changes |= {f"nodes.{name}.count": count for name, count in counts.items()}
    for name, entry in city.publish.items():
        if entry.count is not None:
            changes[f"publish.{name}.count"] = max(round(entry.count * scale), 1)
        rate_per_s = getattr(entry.when, "rate_per_s", None)
        if rate_per_s is not None:
            changes[f"publish.{name}.when.rate_per_s"] = rate_per_s * scale
    return city.with_(changes)


def _shares(counts: Mapping[str, int], nodes: int) -> dict[str, int]:
    """The groups' counts with this sum, each at least 1, by largest remainder."""
    total = sum(counts.values())
    exact = {name: nodes * count / total for name, count in counts.items()}
    shares = {name: max(math.floor(count), 1) for name, count in exact.items()}
    for name in sorted(exact, key=lambda name: shares[name] - exact[name]):
        if sum(shares.values()) < nodes:
            shares[name] += 1
    return shares


def _lanes(side_m: float) -> Iterator[dict[str, Any]]:
    """The city's streets, repeated every kilometre, from one side of the area to the other."""
    for along, streets in (("x", STREETS_EAST_M), ("y", STREETS_NORTH_M)):
        for kilometre in range(math.ceil(side_m / CITY_SIDE_M)):
            for offset_m, way in streets:
                across_m = kilometre * CITY_SIDE_M + offset_m
                if across_m > side_m:
                    continue
                ends = [(0.0, across_m), (side_m, across_m)] if along == "x" else [(across_m, 0.0), (across_m, side_m)]
                start, end = ends[::way]
                yield {"start_m": list(start), "end_m": list(end), "speed_m_s": [6, 14]}


def preset(name: str) -> tuple[str, dict[str, Any]]:
    """The protocol, and the settings in which its paper's preset differs from the defaults."""
    base, _, variant = name.partition("@")
    settings = protocol(base).Settings
    if not variant:
        return base, {}
    paper = getattr(sys.modules[settings.__module__], "PAPER", None)
    if variant != "paper" or paper is None:
        raise SystemExit(f"{name}: there is no preset {variant!r}; write {base} or, where there is one, {base}@paper")
    default = settings()
    names = [field.name for field in fields(settings)]
    return base, {key: getattr(paper, key) for key in names if getattr(paper, key) != getattr(default, key)}


def measure(name: str, scenario: Scenario, seeds: Iterable[int], given: Mapping[str, str]) -> Figures:
    base, settings = preset(name)
    settings |= {key.partition(".")[2]: value for key, value in given.items() if key.startswith(f"{base}.")}
    rows: dict[str, list[float]] = {}
    drops: Counter[str] = Counter()
    packets: Counter[str] = Counter()
    packet_bytes: Counter[str] = Counter()
    for seed in seeds:
        started = time.process_time()
        result = run(scenario, base, settings, seed=seed)
        spent_s = time.process_time() - started
        summary = summarise(scenario, result)
        node_s = summary.nodes * summary.measured_s
        total_bytes = summary.data_bytes + summary.control_bytes
        figures = {
            "delivery_ratio": summary.delivery_ratio,
            "precision": summary.precision,
            "latency_p95_s": summary.latency_p95_s,
            "transmissions_per_delivery": _per(summary.transmissions, summary.delivered),
            "bytes_per_delivery": _per(total_bytes, summary.delivered),
            "control_bytes_per_node_s": summary.control_bytes / node_s,
            "transmissions_per_node_s": summary.transmissions / node_s,
            "cpu_us_per_transmission": _per(1e6 * spent_s, result.counts.sends),
        }
        for key, value in figures.items():
            rows.setdefault(key, []).append(math.nan if value is None else value)
        drops.update(summary.drops)
        for tag, count in result.counts.since(result.warm_up).packets.items():
            packets[tag] += count.sends
            packet_bytes[tag] += count.bytes_sent
    means = {key: statistics.fmean(values) for key, values in rows.items()}
    kinds = {tag: (count, packet_bytes[tag]) for tag, count in packets.most_common()}
    runs = len(rows["delivery_ratio"])
    return Figures(name, scenario.node_count, runs, **means, drops=dict(drops.most_common()), packets=kinds)


def _per(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def header() -> str:
    words = ("nodes", "delivered", "precise", "p95 s", "tx/deliv", "kB/deliv", "control B/s", "tx/node/s", "cpu/tx us")
    return f"{'protocol':22}" + "".join(f"{word:>12}" for word in words)


def line(row: Figures) -> str:
    return (
        f"{row.protocol:22}{row.nodes:>12,}{row.delivery_ratio:>12.3f}{row.precision:>12.3f}{row.latency_p95_s:>12.2f}"
        f"{row.transmissions_per_delivery:>12.1f}{row.bytes_per_delivery / 1e3:>12.2f}"
        f"{row.control_bytes_per_node_s:>12.0f}{row.transmissions_per_node_s:>12.2f}{row.cpu_us_per_transmission:>12.0f}"
    )


def growth(rows: list[Figures]) -> str:
    """How much the figures that should stay flat differ between the sizes: the largest over the least."""
    control = [row.control_bytes_per_node_s for row in rows]
    cpu = [row.cpu_us_per_transmission for row in rows]
    stretched = f"{max(control) / min(control):.2f}x" if min(control) > 0 else "none"
    return f"{'':22}largest over least: control {stretched}, cpu/tx {max(cpu) / min(cpu):.2f}x"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="100,200,400,800,1600", help="network sizes, with commas between")
    parser.add_argument("--protocols", default=",".join(PROTOCOL_NAMES), help="protocols; NAME@paper: its preset")
    parser.add_argument("--seeds", default="0", help="seeds, with commas between")
    parser.add_argument("--duration", type=float, default=60.0, help="simulated seconds, the first 20 warm-up")
    parser.add_argument("--range", type=float, default=160.0, help="the radio's range in metres")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="drip.brokers=20, medium.loss=0"
    )
    parser.add_argument("--detail", action="store_true", help="kinds of packets and reasons of drops too")
    parser.add_argument("--json", action="store_true", help="one JSON object a row instead of the table")
    chosen = parser.parse_args()
    given = dict(text.split("=", 1) for text in chosen.set if "=" in text)
    if len(given) != len(chosen.set):
        parser.error("--set takes KEY=VALUE, such as --set drip.brokers=20")
    seeds = [int(seed) for seed in chosen.seeds.split(",")]
    changes = {key: value for key, value in given.items() if key.partition(".")[0] not in PROTOCOLS}
    if not chosen.json:
        print(header())
    for name in chosen.protocols.split(","):
        rows = []
        for nodes in map(int, chosen.nodes.split(",")):
            scenario = grown_city(nodes, chosen.duration, chosen.range)
            row = measure(name, scenario.with_(changes) if changes else scenario, seeds, given)
            rows.append(row)
            print(json.dumps(asdict(row)) if chosen.json else line(row), flush=True)
            if chosen.detail and not chosen.json:
                print(f"{'':22}{', '.join(f'{tag} {n} ({size} B)' for tag, (n, size) in row.packets.items())}")
                print(f"{'':22}dropped: {', '.join(f'{reason} {n}' for reason, n in row.drops.items())}", flush=True)
        if len(rows) > 1 and not chosen.json:
            print(growth(rows), flush=True)


if __name__ == "__main__":
    main()
