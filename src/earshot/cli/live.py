"""`earshot node`, `sub`, `pub` and `peers`: a node on the network, from a terminal."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.nodes import first_done, make_node, node_options, quality_option, run_node, time_limit, until_stopped
from earshot.cli.options import DELAY, LENGTH, POINT, default_option, pairs
from earshot.cli.tables import print_table
from earshot.errors import EarshotError, UsageError

if TYPE_CHECKING:
    from earshot.events import Event
    from earshot.live import FenceCrossing


@click.command()
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N packets were received.")
@click.option("--for", "for_s", metavar="10s", type=DELAY, help="Stop after this time.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus, for example at 127.0.0.1:9465.")
@node_options
def node(for_s: float | None, count: int | None, metrics: str | None, **options: Any) -> None:
    """Run a node that forwards the events of other nodes. It stops with Ctrl-C, after --for or after --count.

    \b
    Examples:
      earshot node --interface lo
      earshot node --interface wlan0 --location gpsd --key-file network.key
      earshot node --listen 47500 --protocol flooding
      earshot node --interface wlan0 --location gpsd --settings advice.toml
      earshot node --interface lo --spool run-1 --location 'trace:town.csv#bus'
      earshot node --interface wlan0 --metrics 127.0.0.1:9465
    """
    run_node(_node(options, for_s, count, metrics))


async def _node(options: dict[str, Any], for_s: float | None, count: int | None, metrics: str | None) -> None:
    async with until_stopped() as stopped, make_node(options) as running, AsyncExitStack() as until_end:
        if metrics is not None:
            from earshot.cli.options import serve_metrics
            from earshot.live.node_metrics import NodeMetrics

            until_end.callback(serve_metrics(metrics, NodeMetrics(running)))
        host, port = running.host.transport.address
        _print_status(
            options, {"node": running.name, "address": f"{host}:{port}"}, f"{running.name} is up at {host}:{port}"
        )

        async def heard_enough() -> None:
            while count is None or running.host.counts["receive"] < count:
                await asyncio.sleep(0.05)

        await first_done(heard_enough(), stopped.wait(), *time_limit(for_s))
        counts, drops = dict(running.host.counts), dict(running.drops)
    status = {"node": running.name, "counts": counts, "drops": drops}
    _print_status(options, status, f"{running.name} heard {counts['receive']:,} packets and sent {counts['send']:,}")


def _print_status(options: Mapping[str, Any], values: Mapping[str, Any], line: str) -> None:
    click.echo(json.dumps(values) if options["as_json"] else line)


@click.command()
@click.argument("event_type", metavar="[TYPE]", required=False)
@click.option("--where", metavar="FILTER", help="Only events that match, as in 'approaching and speed > 10'.")
@click.option("--filter", "filter_", metavar="FILTER", help="Instead of TYPE and --where: XPath, or 'TYPE: where'.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N events.")
@click.option("--for", "for_s", metavar="10s", type=DELAY, help="Stop after this time.")
@default_option(
    "--queue", default=10_000, type=click.IntRange(1), metavar="N", help="At most N events wait to be printed."
)
@click.option("--fence", is_flag=True, help="Also print when this node enters or leaves an area announced with TYPE.")
@click.option(
    "--nearby",
    metavar="50m",
    type=LENGTH,
    help="Also print when another node comes within this distance, or goes away.",
)
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

    With --quality, events of publishers that announce other attributes are refused.
    """
    from earshot.events import EventType

    if (fence or quality) and event_type is None:
        asked = "--fence" if fence else "--quality NAME=VALUE"
        raise UsageError(
            f"{asked} is about a type of events: write it in place of --filter, as in earshot sub Siren {asked}"
        )
    attributes = pairs(quality, "--quality", str)
    wanted = EventType(event_type, {}, attributes) if attributes and event_type is not None else event_type

    async def work() -> None:
        async with until_stopped() as stopped, make_node(options) as running:
            stream = running.subscribe(wanted, where, filter=filter_, queue=queue)

            async def crossings() -> None:
                if not fence and nearby is None:
                    await asyncio.Event().wait()
                async for crossing in running.fences(event_type if fence else None, near_m=nearby, queue=queue):
                    click.echo(json.dumps(asdict(crossing)) if options["as_json"] else crossing_line(crossing))

            async def read() -> None:
                seen = 0
                async for event in stream:
                    click.echo(event_json(event) if options["as_json"] else event_line(event))
                    seen += 1
                    if seen == count:
                        return

            await first_done(read(), crossings(), stopped.wait(), *time_limit(for_s))
            if lost := stream.dropped:
                click.echo(f"earshot: {lost:,} events were lost: they arrived faster than they were printed", err=True)

    run_node(work())


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

    A value that looks like a number, true or false is read as that type; any other value is a text. The node
    stays for --linger after the last event, so that nodes that missed the event can ask for it.
    """
    from earshot.events import EventType
    from earshot.geometry import Area, Position, parse_shape

    content = pairs(values, "", _value)
    announced = EventType(event_type, {}, pairs(quality, "--quality", str))
    if stdin and (every is not None or values):
        raise UsageError("--stdin gives the values: leave NAME=VALUE and --every out")
    if every is None and not stdin and (count or 1) > 1:
        raise UsageError(f"--count {count} needs --every or --stdin: without them one event is published")
    if at is not None and within is None:
        raise UsageError("--at needs --within: the shape that is fixed at that place")
    shape = None if within is None else parse_shape(within)
    proximity = shape if shape is None or at is None else Area(shape, Position(*at))

    async def work() -> None:
        async with until_stopped() as stopped, make_node(options) as running:
            publisher = await running.announce(announced, within=proximity)

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

            await first_done(all_of_it(), stopped.wait(), *time_limit(for_s))

    run_node(work())


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
    """List the nodes in range: those that are heard within --for.

    \b
    Examples:
      earshot peers --interface lo
      earshot peers --interface wlan0 --for 5s --json
    """

    async def work() -> None:
        async with until_stopped() as stopped, make_node(options) as running:
            await first_done(asyncio.sleep(for_s), stopped.wait())
            found = running.peers()
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

    run_node(work())


def _moment(time: float) -> str:
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time:g}s"


def crossing_line(crossing: FenceCrossing) -> str:
    """A crossing on one line: `enter ambulance-7 Siren`, `nearby bus-3`."""
    words = (crossing.what, _shown(crossing.peer), _shown(crossing.event_type) if crossing.event_type else "")
    return _escaped(f"{_moment(crossing.time)} {' '.join(words).rstrip()}")


def event_line(event: Event) -> str:
    """An event on one line, also if a peer put control characters into it."""
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
    """A value as one word; quoted if it would look like several."""
    text = str(value)
    plain = text and not any(sign.isspace() or sign in '="' for sign in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _escaped(text: str) -> str:
    """The text with control characters, line ends and the like as escapes: it stays on one line."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def event_json(event: Event) -> str:
    """An event as JSON on one line, and whether its signature is valid; without its content if JSON cannot hold it."""
    try:
        here = {"verified": event.verified, **({"late_s": event.late_s} if event.late_s else {})}
        line = json.dumps({**json.loads(event.to_json()), **here}, ensure_ascii=False)
        return line if line.isprintable() else json.dumps(json.loads(line))
    except EarshotError as error:
        values = {"type": event.type, "id": event.id, "source": event.source, "time": event.time}
        return json.dumps({**values, "unreadable": str(error)})
