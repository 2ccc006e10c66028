"""`earshot replay`: a recorded live run once more, in the simulator, and where the two differ."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from earshot.errors import UsageError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Position, Proximity, parse_shape
from earshot.protocols.machine import Announcement
from earshot.records import Kind

if TYPE_CHECKING:
    from earshot.live.spool import Record
    from earshot.simulation.engine.engine import Engine
    from earshot.simulation.workload.actions import Action, What

JUST_BEFORE_S = 1e-6
AFTER_S = 0.5
"A node stays for so long after its last record, so that what is under way can arrive."
LATENCY_S = 1e-4
EVERYWHERE_M = 1e6

Delivery = tuple[str, str, str]
"The node, its subscription and the event."


@dataclass(slots=True)
class Life:
    """One node from a start to its stop, or to its last record where it was killed."""

    start_s: float
    end_s: float
    subscriptions: list[str] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Recorded:
    """What a spool tells of a run, in seconds since its first record."""

    protocol: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    range_m: float | None = None
    duration_s: float = 0.0
    lives: dict[str, list[Life]] = field(default_factory=lambda: defaultdict(list))
    knots: dict[str, list[tuple[float, float, float]]] = field(default_factory=lambda: defaultdict(list))
    doings: list[tuple[float, str, What]] = field(default_factory=list)
    events: dict[str, str] = field(default_factory=dict)
    "A live event's id -> the id the simulator gives it: the node and a count."
    heard: set[tuple[str, str]] = field(default_factory=set)
    deliveries: set[Delivery] = field(default_factory=set)


def read_run(folder: Path) -> Recorded:
    """The run in a spool's records."""
    from earshot.live.spool import read_records

    records = sorted(read_records(folder), key=lambda record: record.time)
    run = Recorded()
    start = records[0].time
    run.duration_s = records[-1].time - start + AFTER_S
    published: dict[str, int] = defaultdict(int)
    for record in records:
        at = record.time - start
        if record.kind == Kind.JOIN:
            _joined(run, record, at)
        elif not run.lives[record.node]:
            raise UsageError(f"{folder}: the spool does not tell how {record.node!r} started; are segments missing?")
        life = run.lives[record.node][-1]
        life.end_s = max(life.end_s, at)
        if record.x_m is not None and record.y_m is not None:
            run.knots[record.node].append((at, record.x_m, record.y_m))
        match record.kind:
            case Kind.PUBLISH:
                event = Event.from_json(record.detail)
                run.events[record.event] = f"{record.node}-{published[record.node]}"
                published[record.node] += 1
                bare = Event(event.type, event.content, lifespan_s=event.lifespan_s, priority=event.priority)
                run.doings.append((at, record.node, bare))
            case Kind.DELIVER:
                run.deliveries.add((record.node, record.subscription, record.event))
            case Kind.RECEIVE:
                run.heard.add((min(record.node, record.peer), max(record.node, record.peer)))
            case _:
                _doing(run, record, life, at)
    run.deliveries = {(node, wish, run.events.get(event, event)) for node, wish, event in run.deliveries}
    return run


def _joined(run: Recorded, record: Record, at: float) -> None:
    told = json.loads(record.detail)
    same = (told["protocol"], told["settings"], told["emulate_range_m"])
    if run.protocol and same != (run.protocol, run.settings, run.range_m):
        raise UsageError(
            f"{record.node!r} ran {told['protocol']} otherwise than the rest; one replay runs one protocol"
        )
    run.protocol, run.settings, run.range_m = same
    run.lives[record.node].append(Life(at, at))


def _doing(run: Recorded, record: Record, life: Life, at: float) -> None:
    from earshot.simulation.workload.actions import Unannounce, Unsubscribe

    what: What
    match record.kind:
        case Kind.SUBSCRIBE:
            what = Subscription(record.subscription, record.node, Filter.parse(record.detail))
            life.subscriptions.append(record.subscription)
        case Kind.UNSUBSCRIBE:
            what = Unsubscribe(record.subscription)
        case Kind.ANNOUNCE:
            what = _announcement(json.loads(record.detail))
            life.subjects.append(what.event_type.subject)
        case Kind.UNANNOUNCE:
            what = Unannounce(record.detail)
        case _:
            return
    run.doings.append((at, record.node, what))


def _announcement(told: dict[str, Any]) -> Announcement:
    proximity = None
    if "shape" in told:
        proximity = Proximity(parse_shape(told["shape"]), Position(told["x_m"], told["y_m"]), told["mobile"])
    return Announcement(EventType(told["subject"], told["content"], told["attributes"]), proximity)


def simulate_again(run: Recorded, seed: int = 0) -> set[Delivery]:
    """The deliveries of the same publications, wishes and ways in the simulator."""
    from earshot.protocols.catalogue import build_settings, protocol
    from earshot.records.trajectories import Trajectories, Trajectory
    from earshot.simulation.engine.engine import Engine
    from earshot.simulation.media.links import LinkScript
    from earshot.simulation.media.medium_settings import Overlay, UnitDisk
    from earshot.simulation.workload.actions import Workload

    machine = protocol(run.protocol)
    settings = build_settings(machine.Settings, run.settings)
    names = sorted(run.lives)
    trajectories = []
    for name in names:
        presence = tuple((life.start_s, life.end_s + JUST_BEFORE_S) for life in run.lives[name][:-1])
        last = run.lives[name][-1]
        trajectories.append(
            Trajectory.through(name, run.knots[name], (*presence, (last.start_s, last.end_s + AFTER_S)))
        )
    if machine.medium == "overlay":
        medium: Any = Overlay()
    elif run.range_m is not None:
        medium = UnitDisk(range_m=run.range_m, latency_s=LATENCY_S)
    else:
        # Nobody measured the radios: who ever heard whom is what is known.
        links = LinkScript(graph=tuple(sorted(pair for pair in run.heard if set(pair) <= set(names))))
        medium = UnitDisk(range_m=EVERYWHERE_M, latency_s=LATENCY_S, links=links)
    engine = Engine(
        lambda node, location, random: machine(node, settings, location, random),
        Trajectories(trajectories),
        medium,
        Workload(_actions(run, names)),
        duration_s=run.duration_s,
        seed=seed,
    )
    engine.run()
    return set(_delivered(engine))


def _actions(run: Recorded, names: Sequence[str]) -> Iterable[Action]:
    """What the applications did; with a node its applications end too, as live processes do."""
    from earshot.simulation.workload.actions import Action, Unannounce, Unsubscribe

    number = {name: i for i, name in enumerate(names)}
    for at, node, what in run.doings:
        yield Action(at, number[node], what)
    for name in names:
        for life in run.lives[name][:-1]:
            for subscription in life.subscriptions:
                yield Action(life.end_s + JUST_BEFORE_S / 2, number[name], Unsubscribe(subscription))
            for subject in life.subjects:
                yield Action(life.end_s + JUST_BEFORE_S / 2, number[name], Unannounce(subject))


def _delivered(engine: Engine) -> Iterable[Delivery]:
    found = engine.deliveries
    for node, event, subscription in zip(found.node, found.event, found.subscription, strict=True):
        yield engine.names[node], subscription, engine.published[event].id if event >= 0 else ""


def write_log(spool: Path, log: Path) -> None:
    """The spool's records as one Parquet file in the schema of the simulator's log."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError('writing a log needs pyarrow: pip install "earshot[pipeline]"') from None
    from earshot.live.spool import read_spool
    from earshot.records import COLUMNS
    from earshot.simulation.engine.log import arrow_schema

    if log.suffix != ".parquet":
        raise UsageError(f"--log {log}: a log's name ends in .parquet")
    rows = pa.Table.from_pylist(list(read_spool(spool)), pa.schema(list(COLUMNS.items())))
    draft = log.with_name(f".{log.name}.draft")
    pq.write_table(rows.cast(arrow_schema()), draft, compression="zstd")
    draft.replace(log)


@click.command()
@click.argument("spool", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the simulated run.")
@click.option(
    "--log",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the recorded run as FILE.parquet, as `earshot simulate --log` writes simulated ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the difference as JSON.")
def replay(spool: Path, seed: int, log: Path | None, as_json: bool) -> int:
    """Run a recorded live run again in the simulator, and print where the deliveries differ.

    SPOOL is a folder that live nodes recorded into (`--spool`). Positions, publications and
    subscriptions are those of the recording; so are the protocol and its settings. Exit code 1 where
    the two runs delivered differently.

    \b
    Examples:
      earshot replay run-1
      earshot replay run-1 --json
      earshot replay run-1 --log run-1.parquet
    """
    if log is not None:
        write_log(spool, log)
    run = read_run(spool)
    simulated = simulate_again(run, seed)
    both, only_live, only_simulated = (
        run.deliveries & simulated,
        sorted(run.deliveries - simulated),
        sorted(simulated - run.deliveries),
    )
    live_ids = {ours: live for live, ours in run.events.items()}
    if as_json:
        rows = {"only_live": only_live, "only_simulated": only_simulated}
        told = {
            name: [
                {"node": node, "subscription": wish, "event": live_ids.get(event, event)} for node, wish, event in found
            ]
            for name, found in rows.items()
        }
        click.echo(json.dumps({"protocol": run.protocol, "nodes": len(run.lives), "both": len(both), **told}, indent=2))
    else:
        click.echo(
            f"{run.protocol}, {len(run.lives)} nodes, {len(run.events)} events: {len(both)} deliveries in both, "
            f"{len(only_live)} only live, {len(only_simulated)} only simulated"
        )
        for where, found in (("live", only_live), ("simulated", only_simulated)):
            for node, wish, event in found:
                click.echo(f"only {where}: {live_ids.get(event, event)} to {node} ({wish})")
    return 1 if only_live or only_simulated else 0
