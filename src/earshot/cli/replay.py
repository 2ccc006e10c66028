"""`earshot replay`: repeats a recorded live run in the simulator, and shows where the two differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import default_option, json_option
from earshot.cli.tables import print_json
from earshot.errors import UnknownName, UsageError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.plugins import is_outside
from earshot.protocols.machine import Announcement
from earshot.records import Kind, Record
from earshot.records.details import read_announce, read_subscribe
from earshot.records.sessions import Session, SessionReader
from earshot.words import counted

if TYPE_CHECKING:
    from earshot.simulation.engine.engine import Engine
    from earshot.simulation.workload.actions import Action, What

JUST_BEFORE_S = 1e-6
AFTER_S = 0.5
"A node stays for this long after its last record, so that packets under way can arrive."
LATENCY_S = 1e-4
EVERYWHERE_M = 1e6

Delivery = tuple[str, str, str]
"The node, its subscription and the event."


@dataclass(slots=True)
class RecordedRun:
    """A run as its spool describes it; times are in seconds since the first record."""

    protocol: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    range_m: float | None = None
    duration_s: float = 0.0
    sessions: SessionReader = field(default_factory=SessionReader)
    knots: dict[str, list[tuple[float, float, float]]] = field(default_factory=lambda: defaultdict(list))
    actions: list[tuple[float, str, What]] = field(default_factory=list)
    events: dict[str, str] = field(default_factory=dict)
    "A live event's id -> the id the simulator gives it: the node and a count."
    heard: set[tuple[str, str]] = field(default_factory=set)
    deliveries: set[Delivery] = field(default_factory=set)
    damaged: list[str] = field(default_factory=list)
    "Lines that are not records."


def read_run(folder: Path) -> RecordedRun:
    """The run in a spool's records."""
    from earshot.live.spool import read_records

    run = RecordedRun()
    records = sorted(read_records(folder, run.damaged), key=lambda record: record.time)
    start = records[0].time
    run.duration_s = records[-1].time - start + AFTER_S
    published: Counter[str] = Counter()
    for record in records:
        at = record.time - start
        if record.kind != Kind.JOIN and record.node not in run.sessions.sessions:
            raise UsageError(f"{folder}: the spool does not say how {record.node!r} started; are segments missing?")
        run.sessions.read(at, record.node, record.kind, record.subscription, record.detail)
        if record.x_m is not None and record.y_m is not None:
            run.knots[record.node].append((at, record.x_m, record.y_m))
        match record.kind:
            case Kind.JOIN:
                _check_protocol(run, run.sessions.current(record.node, record.node))
            case Kind.PUBLISH:
                event = Event.from_json(record.detail)
                run.events[record.event] = f"{record.node}-{published[record.node]}"
                published[record.node] += 1
                bare = Event(event.type, event.content, lifespan_s=event.lifespan_s, priority=event.priority)
                run.actions.append((at, record.node, bare))
            case Kind.DELIVER:
                run.deliveries.add((record.node, record.subscription, record.event))
            case Kind.RECEIVE:
                run.heard.add((min(record.node, record.peer), max(record.node, record.peer)))
            case _ if (what := _action(record)) is not None:
                run.actions.append((at, record.node, what))
    run.deliveries = {(node, id, run.events.get(event, event)) for node, id, event in run.deliveries}
    return run


def _check_protocol(run: RecordedRun, session: Session) -> None:
    same = (session.protocol, session.settings, session.range_m)
    if run.protocol and same != (run.protocol, run.settings, run.range_m):
        raise UsageError(
            f"{session.node!r} ran {session.protocol} with other settings than the rest; one replay runs one protocol"
        )
    run.protocol, run.settings, run.range_m = same


def _action(record: Record) -> What | None:
    """What an application did, according to a record."""
    from earshot.simulation.workload.actions import Unannounce, Unsubscribe

    match record.kind:
        case Kind.SUBSCRIBE:
            wanted = read_subscribe(record.detail)
            return Subscription(record.subscription, record.node, Filter.parse(wanted.filter), wanted.region)
        case Kind.UNSUBSCRIBE:
            return Unsubscribe(record.subscription)
        case Kind.ANNOUNCE:
            announced = read_announce(record.detail)
            return Announcement(announced.event_type, announced.proximity, announced.producer)
        case Kind.UNANNOUNCE:
            return Unannounce(record.detail)
    return None


def simulate_again(run: RecordedRun, seed: int = 0, protocol_name: str | None = None) -> set[Delivery]:
    """The deliveries of the same publications, subscriptions and trajectories in the simulator. `protocol_name`
    names the recorded protocol if it is a plug-in: a recording never loads code by itself."""
    from earshot.protocols.catalogue import build_settings, protocol
    from earshot.records.trajectories import Trajectories, Trajectory
    from earshot.simulation.engine.engine import Engine
    from earshot.simulation.media.links import LinkScript
    from earshot.simulation.media.medium_settings import Overlay, UnitDisk
    from earshot.simulation.workload.actions import Workload

    try:
        machine = protocol(run.protocol, load=False) if protocol_name is None else protocol(protocol_name)
    except UnknownName as error:
        hint = "; for a plug-in give --protocol module:Class" if is_outside(run.protocol) else ""
        raise UsageError(f"the recording ran {run.protocol!r}: {error}{hint}") from None
    settings = build_settings(machine.Settings, run.settings)
    names = sorted(run.sessions.sessions)
    trajectories = []
    for name in names:
        earlier, last = run.sessions.sessions[name][:-1], run.sessions.sessions[name][-1]
        presence = [(session.start, session.last + JUST_BEFORE_S) for session in earlier]
        presence.append((last.start, last.last + AFTER_S))
        trajectories.append(Trajectory.through(name, run.knots[name], tuple(presence)))
    if machine.uses_routing(settings):
        medium: Any = Overlay()
    elif run.range_m is not None:
        medium = UnitDisk(range_m=run.range_m, latency_s=LATENCY_S)
    else:
        # The range of the radios is not known, only which nodes ever heard each other.
        links = LinkScript(graph=tuple(sorted(pair for pair in run.heard if set(pair) <= set(names))))
        medium = UnitDisk(range_m=EVERYWHERE_M, latency_s=LATENCY_S, links=links)
    engine = Engine(
        lambda node, location, random, channel: machine(node, settings, location, random, channel),
        Trajectories(trajectories),
        medium,
        Workload(_actions(run, names)),
        duration_s=run.duration_s,
        seed=seed,
    )
    engine.run()
    return set(_delivered(engine))


def _actions(run: RecordedRun, names: Sequence[str]) -> Iterable[Action]:
    """What the applications did. The applications of a node end with it, like live processes."""
    from earshot.simulation.workload.actions import Action, Unannounce, Unsubscribe

    number = {name: i for i, name in enumerate(names)}
    for at, node, what in run.actions:
        yield Action(at, number[node], what)
    for name in names:
        for session in run.sessions.sessions[name][:-1]:
            for subscription in session.subscriptions:
                yield Action(session.last + JUST_BEFORE_S / 2, number[name], Unsubscribe(subscription))
            for subject in session.announcements:
                yield Action(session.last + JUST_BEFORE_S / 2, number[name], Unannounce(subject))


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
@default_option("--seed", default=0, type=click.IntRange(min=0), help="The simulated run's seed.")
@click.option("--protocol", "-p", metavar="NAME", help="The recorded protocol, if it is a plug-in.")
@click.option(
    "--log", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write the records as FILE.parquet."
)
@json_option("Print the difference as JSON.")
def replay(spool: Path, seed: int, protocol: str | None, log: Path | None, as_json: bool) -> int:
    """Repeat a recorded live run in the simulator, and print where the deliveries differ.

    SPOOL is a folder that live nodes recorded into (`--spool`), or one with several such folders. Positions,
    publications, subscriptions, the protocol and its settings are those of the recording. Exit code 1 if
    the deliveries of the two runs differ.

    \b
    Examples:
      earshot replay run-1
      earshot replay run-1 --json
      earshot replay run-1 --protocol ./frugal.py:Frugal
      earshot replay run-1 --log run-1.parquet
    """
    if log is not None:
        write_log(spool, log)
    run = read_run(spool)
    if run.damaged:
        click.echo(f"earshot: {len(run.damaged):,} lines were left out; the first: {run.damaged[0]}", err=True)
    simulated = simulate_again(run, seed, protocol)
    both = run.deliveries & simulated
    only_live, only_simulated = sorted(run.deliveries - simulated), sorted(simulated - run.deliveries)
    nodes = len(run.sessions.sessions)
    live_ids = {ours: live for live, ours in run.events.items()}
    if as_json:
        rows = {"only_live": only_live, "only_simulated": only_simulated}
        different = {
            name: [{"node": node, "subscription": id, "event": live_ids.get(event, event)} for node, id, event in found]
            for name, found in rows.items()
        }
        counts = {"nodes": nodes, "both": len(both), "damaged_lines": len(run.damaged)}
        print_json({"protocol": run.protocol, **counts, **different})
    else:
        click.echo(
            f"{run.protocol}, {counted(nodes, 'node')}, {counted(len(run.events), 'event')}: "
            f"{len(both):,} deliveries in both, "
            f"{len(only_live)} only live, {len(only_simulated)} only simulated"
        )
        for where, found in (("live", only_live), ("simulated", only_simulated)):
            for node, id, event in found:
                click.echo(f"only {where}: {live_ids.get(event, event)} to {node} ({id})")
    return 1 if only_live or only_simulated else 0
