"""The simulator's speed: the simulator and its peers on the same floods, in one run.

    python benchmarks/simulator.py [--quick] [part ...]

Parts: mobile, still, contention, fading, memory; by default all. An event is one transmission or one reception.
Times are processor time: medians of repeats in which the contestants take turns, so that a busy machine
slows all of them equally.

mobile      200 nodes on 1,000 x 1,000 m, random waypoint at 10 to 20 m/s with pauses of 2 to 4 s, range
            120 m, one flood every 1.25 s for 500 s; every tenth node subscribes to them.
still       floods over 3,000 nodes that stand still, with 45 neighbours each.
contention  the floods of `mobile` over one shared channel, compared with ns-3's 802.11b ad hoc with the same
            trajectories and sources; if g++ and ns-3's libraries are installed (Debian: g++ libns3-dev).
fading      the floods of `contention` under reception models, compared with contention alone.
memory      10,000 moving nodes, one flood a second for 60 s, the log streaming to disk: peak memory.

The peer of the first two is a bare SimPy loop: one timeout and one callback for each reception, a set of
the nodes that have heard a flood, and neighbours from tables made beforehand; no protocol, no sizes, no log.
The simulator runs the real flooding machine and finds neighbours while it runs.
"""

from __future__ import annotations

import argparse
import math
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import msgspec

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.protocols.flooding import Flooding, FloodingSettings
from earshot.simulation.draws import Span
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.extent import Extent
from earshot.simulation.media.medium_settings import Contention, MediumSettings, UnitDisk
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.media.reception import LossyReception, Nakagami, Shadowing
from earshot.simulation.mobility import RandomWaypoint, Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Workload

LATENCY_S = 0.001
NS3_LIBRARIES = ("wifi", "propagation", "mobility", "network", "core")


@dataclass(frozen=True)
class Floods:
    """Nodes, and which node starts a flood at which time."""

    routes: tuple[Trajectory, ...]
    sources: tuple[tuple[float, int], ...]
    range_m: float
    duration_s: float
    subscribers: int

    def workload(self) -> Workload:
        step = max(len(self.routes) // self.subscribers, 1) if self.subscribers else 0
        wanting = range(0, len(self.routes), step) if step else range(0)
        subscriptions = [Action(0.0, i, Subscription(f"s{i}", f"n{i}", Filter.of_type("Ping"))) for i in wanting]
        pings = [
            Action(at, node, Event(type="Ping", content={"value": k})) for k, (at, node) in enumerate(self.sources)
        ]
        return Workload([*subscriptions, *pings])


def moving(nodes: int, side_m: float, every_s: float, duration_s: float) -> Floods:
    names = [f"n{i}" for i in range(nodes)]
    chances = [Random(f"way {i}") for i in range(nodes)]
    model = RandomWaypoint(speed_m_s=Span(10.0, 20.0), pause_s=Span(2.0, 4.0))
    routes = model.paths(names, Extent(side_m, side_m), chances, duration_s)
    chance = Random("sources")
    sources = [(every_s * (k + 1), chance.randrange(nodes)) for k in range(round(duration_s / every_s) - 1)]
    return Floods(tuple(routes), tuple(sources), 120.0, duration_s, nodes // 10)


def still(nodes: int, degree: int, floods: int) -> Floods:
    chance = Random("places")
    side_m = math.sqrt(nodes * math.pi * 100.0**2 / degree)
    routes = [Trajectory.standing(f"n{i}", chance.uniform(0, side_m), chance.uniform(0, side_m)) for i in range(nodes)]
    sources = [(float(k + 1), chance.randrange(nodes)) for k in range(floods)]
    return Floods(tuple(routes), tuple(sources), 100.0, floods + 2.0, nodes // 10)


@dataclass
class Outcome:
    seconds: float
    sends: int
    receptions: int

    @property
    def rate(self) -> float:
        return (self.sends + self.receptions) / self.seconds


def ours(floods: Floods, medium: MediumSettings, settings: FloodingSettings, log: Callable[[], Log | None]) -> Outcome:
    trajectories, workload = Trajectories(floods.routes), floods.workload()
    started = time.process_time()
    written = log()
    engine = Engine(
        lambda node, location, random, channel: Flooding(node, settings, location, random, channel),
        trajectories,
        medium,
        workload,
        duration_s=floods.duration_s,
        log=written,
    )
    engine.run()
    if written is not None:
        written.close()
    return Outcome(time.process_time() - started, engine.counts.sends, engine.counts.receives)


def tables(floods: Floods) -> list[list[list[int]]]:
    """Every node's neighbours at the time of each flood."""
    neighbours = neighbours_within(Trajectories(floods.routes), floods.range_m)
    return [[neighbours.of(i, at) for i in range(len(floods.routes))] for at, _ in floods.sources]


def simpy_loop(floods: Floods, neighbours: list[list[list[int]]]) -> Outcome:
    import simpy

    environment = simpy.Environment()
    sends = receptions = 0

    def flood(source: int, near: list[list[int]]) -> None:
        heard = {source}
        timeout = environment.timeout

        def transmit(node: int) -> None:
            nonlocal sends, receptions
            receivers = near[node]
            sends += 1
            receptions += len(receivers)
            for receiver in receivers:
                timeout(LATENCY_S, receiver).callbacks.append(receive)

        def receive(reception: simpy.Timeout) -> None:
            node = reception.value
            if node not in heard:
                heard.add(node)
                transmit(node)

        transmit(source)

    for (at, source), near in zip(floods.sources, neighbours, strict=True):
        begin = environment.timeout(at, (source, near))
        begin.callbacks.append(lambda begun: flood(*begun.value))
    started = time.process_time()
    environment.run()
    return Outcome(time.process_time() - started, sends, receptions)


def take_turns(contestants: dict[str, Callable[[], Outcome]], repeats: int) -> dict[str, Outcome]:
    """Each contestant's outcome with its median time."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            outcomes[name].append(run())
    return {
        name: replace(found[0], seconds=statistics.median(outcome.seconds for outcome in found))
        for name, found in outcomes.items()
    }


def table(title: str, outcomes: dict[str, Outcome], peer: str, asked: dict[str, float], by_time: bool = False) -> None:
    print(f"\n{title}")
    print(f"  {'':34} {'sends':>9} {'receptions':>10} {'seconds':>8} {'events/s':>11} {'to peer':>8} {'asked':>6}")
    for name, outcome in outcomes.items():
        base = outcomes[peer]
        ratio = base.seconds / outcome.seconds if by_time else outcome.rate / base.rate
        wanted = f"{asked[name]:>5.1f}x" if name in asked else ""
        print(
            f"  {name:34} {outcome.sends:>9,} {outcome.receptions:>10,} {outcome.seconds:>8.2f} "
            f"{outcome.rate:>11,.0f} {ratio:>7.2f}x {wanted:>6}"
        )


def against_simpy(title: str, floods: Floods, asked: dict[str, float], repeats: int, folder: Path) -> None:
    medium, plain = UnitDisk(range_m=floods.range_m, latency_s=LATENCY_S), FloodingSettings()
    neighbours = tables(floods)
    contestants: dict[str, Callable[[], Outcome]] = {
        "SimPy, bare loop": lambda: simpy_loop(floods, neighbours),
        "ours, no log": lambda: ours(floods, medium, plain, lambda: None),
        "ours, log in memory": lambda: ours(floods, medium, plain, Log),
        "ours, log to Parquet": lambda: ours(floods, medium, plain, lambda: Log(folder / "log.parquet")),
    }
    table(title, take_turns(contestants, repeats), "SimPy, bare loop", asked)


def compiled_ns3(folder: Path, name: str) -> Path | None:
    """The ns-3 program of that name, compiled; None if that is not possible here."""
    if shutil.which("g++") is None:
        return None
    program = folder / "ns3"
    source = Path(__file__).with_name(name)
    libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    done = subprocess.run(["g++", "-O2", "-o", str(program), str(source), *libraries], capture_output=True)
    return program if done.returncode == 0 else None


def write_trajectories(routes: Sequence[Trajectory], file: Path) -> None:
    """As the ns-3 programs read them: a line "node time x y" for each knot."""
    lines = [
        f"{i} {t!r} {x!r} {y!r}"
        for i, route in enumerate(routes)
        for t, x, y in zip(route.times.tolist(), route.xs.tolist(), route.ys.tolist(), strict=True)
    ]
    file.write_text("\n".join(lines))


def ns3(program: Path, floods: Floods, packet_bytes: int, jitter_s: float, folder: Path) -> Outcome:
    routes, sources = folder / "routes.txt", folder / "floods.txt"
    write_trajectories(floods.routes, routes)
    sources.write_text("\n".join(f"{at!r} {node}" for at, node in floods.sources))
    arguments = [routes, sources, floods.range_m, packet_bytes, jitter_s, floods.duration_s]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sends, receptions = map(int, done.stdout.split())
    return Outcome(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, sends, receptions)


def channel(floods: Floods) -> Contention:
    # No IP below these floods: 28 bytes of MAC and 8 of LLC and SNAP.
    return Contention(range_m=floods.range_m, bit_rate_bps=11e6, header_bytes=36)


def fading(floods: Floods, repeats: int) -> None:
    """What reception models and capture cost."""
    settings = FloodingSettings(jitter_s=0.01)
    alone = channel(floods)
    rayleigh = msgspec.structs.replace(alone, reception=Nakagami(m=1.0, path_loss_exponent=2.0))
    media = {
        "contention alone": alone,
        "with Nakagami, m = 1, n = 2": rayleigh,
        "with Nakagami, m = 3, n = 3": msgspec.structs.replace(alone, reception=Nakagami(3.0, path_loss_exponent=3.0)),
        "with lossy": msgspec.structs.replace(alone, reception=LossyReception()),
        "with capture": msgspec.structs.replace(alone, capture_db=5.0),
        "with Nakagami and capture": msgspec.structs.replace(rayleigh, capture_db=5.0),
        "with shadowing": msgspec.structs.replace(alone, reception=Shadowing()),
    }
    contestants: dict[str, Callable[[], Outcome]] = {
        name: lambda medium=medium: ours(floods, medium, settings, lambda: None)  # type: ignore[misc]
        for name, medium in media.items()
    }
    asked = dict.fromkeys(list(media)[1:3], 0.5)
    title = "fading: the floods of contention under reception models, by time"
    table(title, take_turns(contestants, repeats), "contention alone", asked, by_time=True)


def against_ns3(floods: Floods, repeats: int, folder: Path) -> None:
    jitter_s, packet_bytes = 0.01, 150
    medium = channel(floods)
    settings = FloodingSettings(jitter_s=jitter_s)
    contestants: dict[str, Callable[[], Outcome]] = {
        "ours, no log": lambda: ours(floods, medium, settings, lambda: None),
        "ours, log to Parquet": lambda: ours(floods, medium, settings, lambda: Log(folder / "log.parquet")),
    }
    outcomes = take_turns(contestants, repeats)
    title = "contention: the same floods over one channel at 11 Mb/s, jitter up to 10 ms"
    program = compiled_ns3(folder, "simulator_ns3.cc")
    if program is None:
        table(title, outcomes, "ours, no log", {})
        print("  ns-3 is left out: no g++ or no ns-3 libraries here (Debian: apt-get install g++ libns3-dev)")
        return
    outcomes = {"ns-3, 802.11b ad hoc": ns3(program, floods, packet_bytes, jitter_s, folder), **outcomes}
    asked = {"ours, no log": 30.0}
    table(title, outcomes, "ns-3, 802.11b ad hoc", asked, by_time=True)


def memory(nodes: int, seconds: int) -> None:
    """In its own process, because peak memory is counted per process."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory-of", str(nodes), str(seconds)], capture_output=True, text=True, check=True
    )
    print(f"\nmemory: {nodes:,} moving nodes, one flood a second for {seconds} s, log streaming to Parquet")
    print(f"  {done.stdout.strip()} (asked: under 1,000 MB)")


def memory_of(nodes: int, seconds: int) -> None:
    side_m = math.sqrt(nodes * math.pi * 120.0**2 / 12)
    floods = moving(nodes, side_m, 1.0, seconds + 1.0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.parquet"
        outcome = ours(floods, UnitDisk(range_m=120.0), FloodingSettings(), lambda: Log(file))
        written = file.stat().st_size
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    events = outcome.sends + outcome.receptions
    print(f"{held:,.0f} MB for {events:,} events in {outcome.seconds:.1f} s; {written / 1e6:,.0f} MB written")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the simulator with its peers.")
    parser.add_argument("--quick", action="store_true", help="a fifth of the floods, fewer repeats")
    parser.add_argument("--memory-of", nargs=2, type=int, metavar=("NODES", "SECONDS"), help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*", metavar="part", help="mobile, still, contention, fading, memory")
    chosen = parser.parse_args()
    if chosen.memory_of:
        memory_of(*chosen.memory_of)
        return
    known = ("mobile", "still", "contention", "fading", "memory")
    for part in chosen.parts:
        if part not in known:
            parser.error(f"no part {part!r}; there are {', '.join(known)}")
    parts = chosen.parts or known
    repeats, share = (3, 5) if chosen.quick else (7, 1)
    scenario = moving(200, 1000.0, 1.25, 500.0 / share)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "mobile" in parts:
            asked = {"ours, no log": 2.0, "ours, log in memory": 1.0, "ours, log to Parquet": 1.0}
            title = "mobile: 200 nodes, random waypoint, one flood every 1.25 s"
            against_simpy(title, scenario, asked, repeats, folder)
        if "still" in parts:
            asked = {"ours, no log": 3.0}
            against_simpy("still: 3,000 nodes of degree 45", still(3000, 45, 10 // share), asked, repeats, folder)
        if "contention" in parts:
            against_ns3(scenario, min(repeats, 3), folder)
        if "fading" in parts:
            fading(scenario, min(repeats, 3))
    if "memory" in parts:
        memory(10_000, 60 // share)


if __name__ == "__main__":
    main()
