"""What all commands that run a node share: their options, and how the node is made, runs and stops."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import (
    LENGTH,
    PLACE,
    SIZE,
    json_option,
    pairs,
    read_settings_file,
    setting_option,
    settings_file_option,
    together,
    two_numbers,
)
from earshot.errors import LocationUnavailable, UsageError

if TYPE_CHECKING:
    from earshot.live import LocationService, Node

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
    click.option(
        "--listen", default="", metavar="[HOST:]PORT", help="The port where peers reach this node without multicast."
    ),
    click.option(
        "--emulate-range", metavar="200m", type=LENGTH, help="Discard packets from nodes farther away than this."
    ),
    click.option("--key-file", metavar="FILE", help="The network's key: encrypts and authenticates every datagram."),
    click.option(
        "--identity", metavar="FILE", help="This node's own key: signs its events and gives the node its name."
    ),
    click.option("--trust", metavar="FILE", help="The trust file: which keys to trust (earshot identity trust)."),
    click.option(
        "--require-signed", is_flag=True, help="Refuse events and peers without a valid signature by a trusted key."
    ),
    click.option("--precision", metavar="100m", type=LENGTH, help="Round the position that other nodes get."),
    click.option("--memory", metavar="64MB", type=SIZE, help="Hold at most this much data from peers. [default: 64MB]"),
    click.option(
        "--rate-limit", type=float, metavar="N", help="At most N datagrams a second per sender. [default: 5000]"
    ),
    click.option(
        "--bit-rate",
        type=float,
        metavar="BPS",
        help="The radio's bits a second, so that the protocol can slow down on a busy channel. [default: unknown]",
    ),
    click.option("--spool", metavar="DIR", help="Record what happens, in files in DIR."),
    json_option("Print JSON, one object on each line."),
)
"The options of all commands that run a node."


quality_option = click.option(
    "--quality",
    multiple=True,
    metavar="NAME=VALUE",
    help="An attribute of the type: reliability, lifespan_s, priority, deadline_s or history.",
)


def make_node(options: dict[str, Any]) -> Node:
    """The node these options ask for."""
    from earshot.live.network import DEFAULT_PORT, LEAST_MEMORY_BYTES
    from earshot.live.node import Node

    group = options["group"]
    if group and (options["peers"] or (options["listen"] and not options["interface"])):
        raise UsageError("--group is not used with --peer, or with --listen alone: without multicast there is no group")
    if group and ":" not in group:
        group = f"{group}:{DEFAULT_PORT}"
    if options["memory"] is not None and options["memory"] < LEAST_MEMORY_BYTES:
        raise UsageError(f"--memory must be at least {LEAST_MEMORY_BYTES / 1e6:g}MB, got {options['memory'] / 1e6:g}MB")
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


def run_node(work: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine, with the node's warnings on standard error."""
    logging.basicConfig(format="earshot: %(message)s", stream=sys.stderr, level=logging.WARNING)
    try:
        from earshot.live import run

        run(work)
    finally:
        work.close()  # Ctrl-C may come before it has begun: Python would say that it was never awaited.


@asynccontextmanager
async def until_stopped() -> AsyncIterator[asyncio.Event]:
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


async def first_done(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of the coroutines is done; raise what it raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def time_limit(for_s: float | None) -> list[Coroutine[Any, Any, None]]:
    """A coroutine that ends after the time of `--for`; none without that option."""
    return [] if for_s is None else [asyncio.sleep(for_s)]
