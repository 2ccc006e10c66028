"""The radio: our `contention` and ns-3's 802.11 on the same traces, requests and jitter, side by side.

    python benchmarks/radio.py [--quick] [--json FILE] [--seeds N] [part ...]

100 nodes move (random waypoint, 10 to 20 m/s) on squares of three sizes, on which a node has 5, 10 or 20
neighbours within 120 m. The load is the share of time for which the frames of a node's neighbourhood would
keep its channel busy if they came one after another: from 0.05, where the channel is nearly always free, to
1.6, where more is asked for than it can carry. Parts, by default all:

floods-p    floods over 802.11p at 6 Mb/s: each from a random node; every node passes it on once, after up to 10 ms
floods-b    the same over 802.11b at 2 Mb/s
unicasts-p  unicasts over 802.11p at 6 Mb/s, from a random node to a random neighbour
unicasts-b  the same over 802.11b at 2 Mb/s
nakagami    floods-p under Rayleigh fading (Nakagami, m = 1) with a path loss exponent of 2
nakagami-3  floods-p under Nakagami fading with m = 3 and a path loss exponent of 3
capture     nakagami, where a frame 5 dB stronger than the others survives; ns-3 by its model of errors and with
            its SimpleFrameCaptureModel

Columns, each ours, ns-3's and their ratio, over all seeds; `=` stands where they agree within 5 %:

sent        frames on air, repeats of a unicast included
received    receptions; of unicasts, frames that arrived
lost        receptions lost: nodes in range of a frame that did not receive it (floods)
delivered   share of the nodes that a flood reached; share of the unicasts that arrived
p50, p95    latency from the request to the first reception, in ms
refused     requests that found a queue of 64 frames full

At 2 Mb/s ns-3 saves most frames that another one overlaps, because it counts the gain of direct-sequence
spreading also against other senders; we lose both. So that the rest can be compared, ns-3 loses them too, and
runs a second time by its own rule: `own rule` is what it then receives, as a multiple of ours.
ns-3 takes part where g++ and its libraries are installed (Debian: g++ libns3-dev).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace
from simulator import compiled_ns3, write_trajectories

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.protocols.flooding import Flooding, FloodingSettings
from earshot.protocols.machine import NOTHING, Effects, Location, Machine
from earshot.simulation.draws import Span
from earshot.simulation.engine.engine import Engine
from earshot.simulation.extent import Extent
from earshot.simulation.media.medium_settings import Contention
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.media.reception import Nakagami
from earshot.simulation.mobility import RandomWaypoint, Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Workload
from earshot.wire import Packet

LOADS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
DEGREES = (5, 10, 20)
RANGE_M = 120.0
JITTER_S = 0.01
TAIL_S = 3.0
"Time after the last request, in which full queues empty."
PACKET_BYTES = 156
"About the size of a flood's packet; the load is reckoned with it."

# Each radio's own figures. No IP below this traffic: 28 bytes of MAC, 8 of LLC and SNAP; and, with OFDM, 22 bits of
# service and tail and half a symbol on average. EIFS reckons with an acknowledgement at the lowest rate.
RADIOS = {
    "802.11p-6M": Contention(
        range_m=RANGE_M,
        bit_rate_bps=6e6,
        preamble_s=40e-6 + 4e-6,
        header_bytes=36 + 3,
        slot_s=13e-6,
        sifs_s=32e-6,
        difs_s=58e-6,
        eifs_s=178e-6,
        window_min=15,
    ),
    "802.11b-2M": Contention(range_m=RANGE_M, bit_rate_bps=2e6, header_bytes=36, eifs_s=364e-6),
}
RADIOS["802.11p-6M rayleigh"] = replace(RADIOS["802.11p-6M"], reception=Nakagami(m=1.0, path_loss_exponent=2.0))
RADIOS["802.11p-6M nakagami"] = replace(RADIOS["802.11p-6M"], reception=Nakagami(m=3.0, path_loss_exponent=3.0))
RADIOS["802.11p-6M capture"] = replace(RADIOS["802.11p-6M rayleigh"], capture_db=5.0)
PARTS = {
    "floods-p": ("floods", "802.11p-6M"),
    "floods-b": ("floods", "802.11b-2M"),
    "unicasts-p": ("unicasts", "802.11p-6M"),
    "unicasts-b": ("unicasts", "802.11b-2M"),
    "nakagami": ("floods", "802.11p-6M rayleigh"),
    "nakagami-3": ("floods", "802.11p-6M nakagami"),
    "capture": ("floods", "802.11p-6M capture"),
}


@dataclass(frozen=True)
class Traffic:
    """Nodes, and which of them asks for what: (time, node, peer), the peer of a flood being -1."""

    kind: str
    radio: str
    routes: tuple[Trajectory, ...]
    requests: tuple[tuple[float, int, int], ...]
    duration_s: float

    @property
    def wanted(self) -> int:
        """How many first receptions there are if every node hears every flood, or every peer its unicast."""
        return len(self.requests) * (len(self.routes) - 1 if self.kind == "floods" else 1)


@dataclass
class Outcome:
    """What one radio made of the traffic of all seeds."""

    sent: int = 0
    received: int = 0
    lost: int = 0
    refused: int = 0
    wanted: int = 0
    latencies_s: list[float] = field(default_factory=list)
    "One for each first reception."

    @property
    def delivered(self) -> float:
        return len(self.latencies_s) / max(self.wanted, 1)

    @property
    def p50(self) -> float:
        return self._percentile_ms(0.5)

    @property
    def p95(self) -> float:
        return self._percentile_ms(0.95)

    def _percentile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_s)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Said(Packet, frozen=True, tag="radio benchmark"):
    """What a unicast carries."""

    event: Event
    hops: int


class Speaker(Machine):
    """Sends each event to the peer that the event names."""

    def publish(self, event: Event, now: float) -> Effects:
        self.send(str(event.content["peer"]), Said(event, 1))
        return self.effects()

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if isinstance(packet, Said):
            self.deliver(packet.event, f"{self.node}/s", packet.hops)
            return self.effects()
        return NOTHING


def traffic(kind: str, radio: str, load: float, degree: int, nodes: int, count: int, seed: int) -> Traffic:
    """`count` requests at random times, at the rate that makes this load."""
    settings = RADIOS[radio]
    frame_s = settings.preamble_s + (settings.header_bytes + PACKET_BYTES) * 8 / settings.bit_rate_bps
    if kind == "floods":
        rate = load / ((degree + 1) * frame_s)
    else:
        answer_s = settings.sifs_s + settings.preamble_s + settings.ack_bytes * 8 / settings.bit_rate_bps
        rate = load / ((frame_s + answer_s) * (degree + 1) / nodes)
    side_m = math.sqrt(nodes * math.pi * RANGE_M**2 / degree)
    duration_s = 1.0 + count / rate + TAIL_S
    chance = Random(f"{kind} {load} {degree} {seed}")
    model = RandomWaypoint(speed_m_s=Span(10.0, 20.0), pause_s=Span(2.0, 4.0))
    names = [f"n{i}" for i in range(nodes)]
    chances = [Random(f"way {degree} {seed} {i}") for i in range(nodes)]
    routes = model.paths(names, Extent(side_m, side_m), chances, duration_s)
    times = sorted(1.0 + chance.uniform(0.0, count / rate) for _ in range(count))
    requests = [(at, chance.randrange(nodes), -1) for at in times]
    if kind == "unicasts":
        neighbours = neighbours_within(Trajectories(routes), RANGE_M)
        near = [(at, node, neighbours.of(node, at)) for at, node, _ in requests]
        requests = [(at, node, chance.choice(peers)) for at, node, peers in near if peers]
    return Traffic(kind, radio, tuple(routes), tuple(requests), duration_s)


def run_ours(asked: Traffic, seed: int, outcome: Outcome) -> int:
    """Adds to the outcome; returns the size of a packet."""
    nodes = range(len(asked.routes))
    actions = [Action(0.0, i, Subscription(f"n{i}/s", f"n{i}", Filter.of_type("Ping"))) for i in nodes]
    actions += [Action(at, i, Event(type="Ping", content={"peer": f"n{peer}"})) for at, i, peer in asked.requests]

    def make(node: str, location: Location, random: Random, *services: Any) -> Machine:
        settings = FloodingSettings(jitter_s=JITTER_S)
        return (Flooding if asked.kind == "floods" else Speaker)(node, settings, location, random, *services)

    trajectories, medium = Trajectories(asked.routes), RADIOS[asked.radio]
    engine = Engine(make, trajectories, medium, Workload(actions), duration_s=asked.duration_s, seed=seed)
    engine.run()
    counts, deliveries = engine.counts, engine.deliveries
    first: dict[tuple[int, int], float] = {}
    for time, node, event in zip(deliveries.time, deliveries.node, deliveries.event, strict=True):
        if asked.requests[event][1] != node:
            first.setdefault((event, node), time - asked.requests[event][0])
    outcome.sent += counts.sends
    outcome.received += counts.receives
    outcome.lost += counts.drops["collision"]
    outcome.refused += counts.drops["queue-full"]
    outcome.wanted += asked.wanted
    outcome.latencies_s += first.values()
    return round(counts.bytes_sent / max(counts.sends, 1))


def run_ns3(program: Path, asked: Traffic, packet_bytes: int, rule: str, seed: int, outcome: Outcome) -> None:
    trajectories, requests = program.with_name("trajectories.txt"), program.with_name("requests.txt")
    write_trajectories(asked.routes, trajectories)
    requests.write_text("\n".join(f"{at!r} {node} {peer}" for at, node, peer in asked.requests))
    settings = RADIOS[asked.radio]
    fading = settings.reception if isinstance(settings.reception, Nakagami) else None
    m_and_n = (fading.m, fading.path_loss_exponent) if fading is not None else (0, 0)
    radio, rule = asked.radio.split()[0], rule if settings.capture_db is None else "capture"
    arguments: list[Any] = [trajectories, requests, asked.kind, radio, rule, RANGE_M, packet_bytes, JITTER_S]
    arguments += [settings.queue_frames, asked.duration_s, seed, *m_and_n]
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    outcome.sent += found["sends"]
    outcome.received += found["receptions"]
    outcome.lost += found["in_range"] - found["receptions"]
    if asked.kind == "floods":  # of a unicast ns-3 says how often it was sent, not whether the queue was full
        outcome.refused += found["requests"] - found["sends"] - found["waiting"]
    outcome.wanted += asked.wanted
    outcome.latencies_s += found["latencies_s"]


# The table.


@dataclass(frozen=True)
class Row:
    part: str
    degree: int
    load: float
    ours: Outcome
    ns3: Outcome | None
    own_rule: Outcome | None
    "ns-3 with its own rule for frames that overlap."


def rows(parts: list[str], quick: bool, seeds: int, program: Path | None) -> Iterator[Row]:
    nodes, floods, unicasts = (30, 10, 200) if quick else (100, 60, 2000)
    for part in parts:
        kind, radio = PARTS[part]
        for degree in DEGREES[1:2] if quick else DEGREES:
            for load in LOADS[::3] if quick else LOADS:
                ours = Outcome()
                peer = Outcome() if program is not None else None
                own_rule = Outcome() if program is not None and part == "floods-b" else None
                for seed in range(seeds):
                    count = floods if kind == "floods" else unicasts
                    asked = traffic(kind, radio, load, degree, nodes, count, seed)
                    packet_bytes = run_ours(asked, seed, ours)
                    for rule, outcome in (("overlap", peer), ("own", own_rule)):
                        if program is not None and outcome is not None:
                            try:
                                run_ns3(program, asked, packet_bytes, rule, seed, outcome)
                            except subprocess.CalledProcessError as ended:
                                said = ended.stderr.strip().splitlines()[:1] or [str(ended)]
                                print(f"ns-3 gave up on degree {degree}, load {load}, seed {seed}: {said[0]}")
                                peer = None
                yield Row(part, degree, load, ours, peer, own_rule)


COLUMNS = {
    "floods": ("sent", "received", "lost", "delivered", "p50", "p95", "refused"),
    "unicasts": ("sent", "received", "delivered", "p50", "p95"),
}


def shown(column: str, value: float) -> str:
    return {"delivered": f"{value:.3f}", "p50": f"{value:.1f}", "p95": f"{value:.1f}"}.get(column, f"{value:,.0f}")


def cell(column: str, row: Row) -> str:
    ours = getattr(row.ours, column)
    if row.ns3 is None:
        return shown(column, ours)
    peer = getattr(row.ns3, column)
    ratio = f"{ours / peer:.2f}" if peer else "-"
    agrees = "=" if abs(ours - peer) <= 0.05 * max(ours, peer) else " "
    return f"{shown(column, ours)} {shown(column, peer)} {ratio}{agrees}"


def print_table(found: Iterator[Row]) -> list[Row]:
    done: list[Row] = []
    part = ""
    for row in found:
        columns = COLUMNS[PARTS[row.part][0]]
        if row.part != part:
            part = row.part
            print(f"\n{part}: ours, ns-3's, ratio")
            print("degree load " + " ".join(f"{name:>21}" for name in columns) + f" {'own rule':>8}")
        own_rule = f"{row.own_rule.received / max(row.ours.received, 1):.2f}" if row.own_rule else ""
        cells = " ".join(f"{cell(name, row):>21}" for name in columns)
        print(f"{row.degree:>6} {row.load:>4} {cells} {own_rule:>8}", flush=True)
        done.append(row)
    return done


def figures(row: Row) -> dict[str, Any]:
    """The row without its list of latencies."""
    columns = COLUMNS[PARTS[row.part][0]]
    sides = {"ours": row.ours, "ns3": row.ns3, "ns3_own_rule": row.own_rule}
    found = {name: {one: getattr(side, one) for one in columns} for name, side in sides.items() if side is not None}
    return {"part": row.part, "degree": row.degree, "load": row.load, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the contention radio with ns-3's 802.11.")
    parser.add_argument("--quick", action="store_true", help="two loads on one small network, one seed")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="traces and requests; by default 3")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file too")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; by default all")
    chosen = parser.parse_args()
    for part in chosen.parts:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as folder:
        program = compiled_ns3(Path(folder), "radio_ns3.cc")
        seeds = 1 if chosen.quick else chosen.seeds
        done = print_table(rows(chosen.parts or list(PARTS), chosen.quick, seeds, program))
    if program is None:
        print("\nns-3 is left out: no g++ or no ns-3 libraries here (Debian: apt-get install g++ libns3-dev)")
    if chosen.json:
        chosen.json.write_text(json.dumps([figures(row) for row in done], indent=1))


if __name__ == "__main__":
    sys.exit(main())
