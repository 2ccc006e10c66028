"""`earshot node`, `sub`, `pub` and `peers`: a node on the network, from a terminal."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import (
    DELAY,
    LENGTH,
    PLACE,
    POINT,
    SIZE,
    default_option,
    pairs,
    read_settings_file,
    setting_option,
    settings_file_option,
    together,
    two_numbers,
)
from earshot.cli.tables import print_table
from earshot.errors import EarshotError, LocationUnavailable, UsageError

if TYPE_CHECKING:
    from earshot.events import Event
    from earshot.live import FenceCrossing, LocationService, Node

LOCATION_FORMS = "fixed:LAT,LON, plane:X,Y in metres, gpsd[:HOST:PORT], nmea:FILE or trace:FILE#NODE"

node_options = together(
    click.option("--name", metavar="NAME", help="This node's name, unique on the network. [default: host and process]"),
    click.option("--protocol", "-p", metavar="NAME", help="The protocol of the whole network.  [default: hearsay]"),
    settings_file_option,
    setting_option,
    click.option("--location", metavar="WHERE", help=f"{LOCATION_FORMS}. [default: unknown; it counts as plane:0,0]"),
    click.option("--origin", type=PLACE, help="The origin of the plane that all nodes of the network share."),
    click.option(
        "--interface", default="", metavar="NAME", help="The interface for multicast; lo for this machine alone."
    ),
    click.option("--group", metavar="ADDRESS[:PORT]", help="The multicast group. [default: 239.255.69.83:47474]"),
    click.option("--peer", "peers", multiple=True, metavar="HOST:PORT", help="A peer to talk to; needs no multicast."),
    click.option("--listen", default="", metavar="[HOST:]PORT", help="Where peers reach this node without multicast."),
    click.option("--emulate-range", metavar="200m", type=LENGTH, help="Discard packets from farther away."),
    click.option("--key-file", metavar="FILE", help="The network's key: encrypts and authenticates every datagram."),
    click.option("--identity", metavar="FILE", help="This node's own key, which signs its events; it names the node."),
    click.option("--trust", metavar="FILE", help="The trust file: whose signatures count (earshot identity trust)."),
    click.option("--require-signed", is_flag=True, help="Refuse events and peers without a signature that counts."),
    click.option("--precision", metavar="100m", type=LENGTH, help="Round the position that leaves the node."),
    click.option(
        "--memory", metavar="64MB", type=SIZE, help="Hold at most this much of what peers sent. [default: 64MB]"
    ),
    click.option(
        "--rate-limit", type=float, metavar="N", help="At most N datagrams a second per sender. [default: 5000]"
    ),
    click.option(
        "--bit-rate",
        type=float,
        metavar="BPS",
        help="The radio's bits a second, so that the protocol can slow down on a busy channel. [default: unknown]",
    ),
    click.option("--spool", metavar="DIR", help="Record what happens into segments in DIR."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line."),
)
"The options of every command that is a node."


quality_option = click.option(
    "--quality",
    multiple=True,
    metavar="NAME=VALUE",
    help="An attribute of the type: reliability, lifespan_s, priority, deadline_s or history.",
)


def make_node(options: dict[str, Any]) -> Node:
    """The node these options ask for."""
    from earshot.live.network import DEFAULT_PORT
    from earshot.live.node import Node

    group = options["group"]
    if group and (options["peers"] or (options["listen"] and not options["interface"])):
        raise UsageError("--group is not used with --peer, or with --listen alone: without multicast there is no group")
    if group and ":" not in group:
        group = f"{group}:{DEFAULT_PORT}"
    optional = {
        "group": group,
        "rate_limit": options["rate_limit"],
        "bit_rate_bps": options["bit_rate"],
        "memory_bytes": None if options["memory"] is None else int(options["memory"]),
    }
    protocol, settings = options["protocol"], pairs(options["settings"], "--setting", str)
    if options["settings_file"] is not None:
        advised = read_settings_file(options["settings_file"], protocol)
        protocol, settings = advised.protocol, {**advised.network, **advised.settings, **settings}
    return Node(
        options["name"] or _default_name(options["identity"]),
        protocol=protocol or "hearsay",
        settings=settings,
        location=None if options["location"] is None else parse_location(options["location"]),
        origin=options["origin"],
        precision_m=options["precision"],
        key_file=options["key_file"],
        identity=options["identity"],
        trust=options["trust"],
        require_signed=options["require_signed"],
        spool=options["spool"],
        interface=options["interface"],
        peers=tuple(options["peers"]),
        listen=options["listen"],
        emulate_range_m=options["emulate_range"],
        **{name: value for name, value in optional.items() if value is not None},
    )


def _default_name(identity: str | None) -> str:
    """The name of the identity, or else of the host and the process."""
    if identity is None:
        return f"{os.uname().nodename.split('.')[0]}-{os.getpid()}"
    from earshot.live.identity import read_identity

    return read_identity(identity).name


def parse_location(text: str) -> LocationService:
    """Read `fixed:53.4,-2.97`, `plane:10,20`, `gpsd`, `gpsd:HOST:PORT`, `nmea:FILE` or `trace:FILE#NODE`."""
    from earshot.live import Fixed, Gpsd, NmeaFile, TracePlayback

    kind, _, rest = text.partition(":")
    with suppress(ValueError):
        match kind:
            case "fixed":
                return Fixed(*two_numbers(rest))
            case "plane":
                return Fixed.on_plane(*two_numbers(rest))
            case "gpsd" if not rest:
                return Gpsd()
            case "gpsd":
                host, _, port = rest.rpartition(":")
                if host and port.isdigit():
                    return Gpsd(host, int(port))
            case "nmea" if rest:
                return NmeaFile(rest)
            case "trace" if rest:
                path, _, node = rest.partition("#")
                return TracePlayback(path, node)
    raise LocationUnavailable(f"cannot read the location {text!r}; write {LOCATION_FORMS}")


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run it, with warnings of the node on standard error."""
    logging.basicConfig(format="earshot: %(message)s", stream=sys.stderr, level=logging.WARNING)
    from earshot.live import run

    run(work)


@asynccontextmanager
async def _until_stopped() -> AsyncIterator[asyncio.Event]:
    """An event that Ctrl-C or SIGTERM sets, so that the node stops in good order."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them is done; raise what it raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _for(for_s: float | None) -> list[Coroutine[Any, Any, None]]:
    """The end of the time that `--for` gives, if it does."""
    return [] if for_s is None else [asyncio.sleep(for_s)]


@click.command()
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N packets were heard.")
@click.option("--for", "for_s", metavar="10s", type=DELAY, help="Stop after this time.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus, for example at 127.0.0.1:9465.")
@node_options
def node(for_s: float | None, count: int | None, metrics: str | None, **options: Any) -> None:
    """Run a node that passes on what others publish, until Ctrl-C, for a time, or for a number of packets.

    \b
    Examples:
      earshot node --interface lo
      earshot node --interface wlan0 --location gpsd --key-file network.key
      earshot node --listen 47500 --protocol flooding
      earshot node --interface wlan0 --location gpsd --settings advice.toml
      earshot node --interface lo --spool run-1 --location 'trace:town.csv#bus'
      earshot node --interface wlan0 --metrics 127.0.0.1:9465
    """
    _run(_node(options, for_s, count, metrics))


async def _node(options: dict[str, Any], for_s: float | None, count: int | None, metrics: str | None) -> None:
    async with _until_stopped() as stopped, make_node(options) as one, AsyncExitStack() as until_end:
        if metrics is not None:
            from earshot.cli.serve_metrics import serve_metrics
            from earshot.live.node_metrics import NodeMetrics

            until_end.callback(serve_metrics(metrics, NodeMetrics(one)))
        host, port = one.host.transport.address
        _print_status(options, {"node": one.name, "address": f"{host}:{port}"}, f"{one.name} is up at {host}:{port}")

        async def heard_enough() -> None:
            while count is None or one.host.counts["receive"] < count:
                await asyncio.sleep(0.05)

        await _first(heard_enough(), stopped.wait(), *_for(for_s))
        counts, drops = dict(one.host.counts), dict(one.drops)
    status = {"node": one.name, "counts": counts, "drops": drops}
    _print_status(
        options, status, f"{one.name} heard {counts.get('receive', 0):,} packets and sent {counts.get('send', 0):,}"
    )


def _print_status(options: Mapping[str, Any], values: Mapping[str, Any], line: str) -> None:
    click.echo(json.dumps(values) if options["as_json"] else line)


@click.command()
@click.argument("event_type", metavar="TYPE", required=False)
@click.option("--where", metavar="FILTER", help="Only events that match, as in 'approaching and speed > 10'.")
@click.option("--filter", "filter_", metavar="FILTER", help="Instead of TYPE and --where: XPath, or 'TYPE: where'.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N events.")
@click.option("--for", "for_s", metavar="10s", type=DELAY, help="Stop after this time.")
@default_option("--queue", default=10_000, type=click.IntRange(1), metavar="N", help="At most N events wait.")
@click.option("--fence", is_flag=True, help="Print also when this node enters or leaves an area announced with TYPE.")
@click.option("--nearby", metavar="50m", type=LENGTH, help="Print also when a node comes this near, or parts.")
@quality_option
@node_options
def sub(
    event_type: str | None,
    where: str | None,
    filter_: str | None,
    count: int | None,
    for_s: float | None,
    queue: int,
    fence: bool,
    nearby: float | None,
    quality: tuple[str, ...],
    **options: Any,
) -> None:
    """Print the events of a type that match --where, as they arrive.

    \b
    Examples:
      earshot sub Siren --interface lo
      earshot sub Siren --where 'approaching and speed > 10' --location gpsd --json
      earshot sub --filter '/CD[price < 20]' --peer 192.168.1.7:47500
      earshot sub Siren --count 1 --for 30s
      earshot sub Siren --fence --nearby 50m --location gpsd

    With --quality the publishers must announce the same list of attributes; others are refused.
    """
    from earshot.events import EventType

    if (fence or quality) and event_type is None:
        raise UsageError(f"--{'fence' if fence else 'quality'} needs a TYPE")
    attributes = pairs(quality, "--quality", str)
    wanted = EventType(event_type, {}, attributes) if attributes and event_type is not None else event_type

    async def work() -> None:
        async with _until_stopped() as stopped, make_node(options) as one:
            stream = one.subscribe(wanted, where, filter=filter_, queue=queue)

            async def crossings() -> None:
                if not fence and nearby is None:
                    await asyncio.Event().wait()
                async for crossing in one.fences(event_type if fence else None, near_m=nearby, queue=queue):
                    click.echo(json.dumps(asdict(crossing)) if options["as_json"] else _crossing_line(crossing))

            async def read() -> None:
                seen = 0
                async for event in stream:
                    click.echo(_json_line(event) if options["as_json"] else _line(event))
                    seen += 1
                    if seen == count:
                        return

            await _first(read(), crossings(), stopped.wait(), *_for(for_s))
            if lost := stream.dropped:
                click.echo(f"earshot: {lost:,} events were lost: they arrived faster than they were printed", err=True)

    _run(work())


def _moment(time: float) -> str:
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time:g}s"


def _crossing_line(crossing: FenceCrossing) -> str:
    """A crossing on one line: `enter ambulance-7 Siren`, `nearby bus-3`."""
    words = (crossing.what, _shown(crossing.peer), _shown(crossing.event_type) if crossing.event_type else "")
    return _escaped(f"{_moment(crossing.time)} {' '.join(words).rstrip()}")


def _line(event: Event) -> str:
    """An event on one line, whatever a peer has put into it."""
    from earshot.events import Element

    moment = _moment(event.time)
    if isinstance(event.content, Element):
        try:
            content = " ".join(event.to_xml().decode().split())
        except EarshotError:
            content = _shown(event.content.text)
    else:
        content = " ".join(f"{_shown(name)}={_shown(value)}" for name, value in event.content.items())
    where = "" if event.position is None else f" at {event.position}"
    verified = " (verified)" if event.verified else ""
    late = f" (late by {event.late_s:.3f} s)" if event.late_s else ""
    return _escaped(f"{moment} {_shown(event.source)} {_shown(event.type)} {content}{where}{verified}{late}")


def _shown(value: object) -> str:
    """A value as a word; quoted where it would read as several."""
    text = str(value)
    plain = text and not any(sign.isspace() or sign in '="' for sign in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _escaped(text: str) -> str:
    """The text with control characters, line ends and the like as escapes: it stays on one line."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _json_line(event: Event) -> str:
    """An event as JSON on one line, and whether its signature counts; without its content where that cannot be
    written."""
    try:
        here = {"verified": event.verified, **({"late_s": event.late_s} if event.late_s else {})}
        line = json.dumps({**json.loads(event.to_json()), **here}, ensure_ascii=False)
        return line if line.isprintable() else json.dumps(json.loads(line))
    except EarshotError as error:
        values = {"type": event.type, "id": event.id, "source": event.source, "time": event.time}
        return json.dumps({**values, "unreadable": str(error)})


@click.command()
@click.argument("event_type", metavar="TYPE")
@click.argument("values", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--within", metavar="SHAPE", help="The area of interest, such as circle:300m; it moves with this node.")
@click.option("--at", type=POINT, help="Fix --within at this place, in metres on the plane.")
@click.option("--every", metavar="1s", type=DELAY, help="Publish again at this interval, until Ctrl-C.")
@click.option("--stdin", is_flag=True, help="Publish each input line: a JSON object, or NAME=VALUE ...")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N events.")
@click.option("--for", "for_s", metavar="10s", type=DELAY, help="Stop after this time.")
@default_option("--settle", default="500ms", type=DELAY, help="Wait this long before the first event.")
@default_option("--linger", default="500ms", type=DELAY, help="Stay this long after the last event.")
@quality_option
@node_options
def pub(
    event_type: str,
    values: tuple[str, ...],
    within: str | None,
    at: tuple[float, float] | None,
    every: float | None,
    stdin: bool,
    count: int | None,
    for_s: float | None,
    settle: float,
    linger: float,
    quality: tuple[str, ...],
    **options: Any,
) -> None:
    """Publish events of a type.

    \b
    Examples:
      earshot pub Siren speed=18 --within circle:300m --interface lo
      earshot pub Siren speed=18 --within circle:300m --every 1s --location gpsd
      sensor | earshot pub Reading --stdin --peer 192.168.1.7:47500
      earshot pub Siren speed=18 --quality priority=2 --quality deadline_s=0.5 --quality history=3

    A value that looks like a number, true or false is read as one; any other value is a text. The node
    stays for --linger after the last event, so that nodes that missed it can ask for it.
    """
    from earshot.events import EventType
    from earshot.geometry import Area, Position, parse_shape

    content = pairs(values, "", _value)
    announced = EventType(event_type, {}, pairs(quality, "--quality", str))
    if stdin and (every is not None or values):
        raise UsageError("--stdin takes the place of values and of --every")
    if every is None and not stdin and (count or 1) > 1:
        raise UsageError(f"--count {count} needs --every or --stdin: without them one event is published")
    if at is not None and within is None:
        raise UsageError("--at needs --within: the shape that is fixed at that place")
    shape = None if within is None else parse_shape(within)
    proximity = shape if shape is None or at is None else Area(shape, Position(*at))

    async def work() -> None:
        async with _until_stopped() as stopped, make_node(options) as one:
            publisher = await one.announce(announced, within=proximity)

            async def publish(values: Mapping[str, Any]) -> None:
                event = await publisher.publish(values)
                if options["as_json"]:
                    click.echo(event.to_json())

            async def all_of_it() -> None:
                await asyncio.sleep(settle)
                if stdin:
                    done = 0
                    while done != count and (line := await asyncio.to_thread(sys.stdin.readline)):
                        if line.strip():
                            await publish(_line_content(line))
                            done += 1
                else:
                    await publish(content)
                    done = 1
                    while every is not None and done != count:
                        await asyncio.sleep(every)
                        await publish(content)
                        done += 1
                await asyncio.sleep(linger)

            await _first(all_of_it(), stopped.wait(), *_for(for_s))

    _run(work())


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _line_content(line: str) -> dict[str, Any]:
    if not line.lstrip().startswith("{"):
        return pairs(line.split(), "", _value)
    try:
        content: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise UsageError(f"not a JSON object: {line.strip()[:60]!r} ({error})") from None
    return content


@click.command()
@default_option("--for", "for_s", default="2s", type=DELAY, help="How long to listen.")
@node_options
def peers(for_s: float, **options: Any) -> None:
    """List the nodes in reach: those heard within --for.

    \b
    Examples:
      earshot peers --interface lo
      earshot peers --interface wlan0 --for 5s --json
    """

    async def work() -> None:
        async with _until_stopped() as stopped, make_node(options) as one:
            await _first(asyncio.sleep(for_s), stopped.wait())
            found = one.peers()
        rows = [
            {
                "name": peer.name,
                "address": f"{peer.address[0]}:{peer.address[1]}",
                "x_m": None if peer.position is None else peer.position.x_m,
                "y_m": None if peer.position is None else peer.position.y_m,
                "heard_s_ago": round(peer.heard_s_ago, 3),
            }
            for peer in found
        ]
        if options["as_json"]:
            for row in rows:
                click.echo(json.dumps(row))
        elif not rows:
            click.echo("no node was heard")
        else:
            places = ["-" if row["x_m"] is None else f"{row['x_m']:g},{row['y_m']:g}" for row in rows]
            cells = [(row["name"], row["address"], place) for row, place in zip(rows, places, strict=True)]
            print_table(("node", "address", "position"), cells)

    _run(work())
