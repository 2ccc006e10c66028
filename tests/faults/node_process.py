"""One process of the fault harness: a node of every protocol, each in a network of its own.

It takes commands from standard input and writes a journal to standard output, one JSON object a line, at once: a
pipe survives `kill -9`. Datagrams are lost, and partitions made, where the socket is read.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from contextlib import AsyncExitStack
from random import Random
from typing import Any

CONFIG = json.loads(sys.argv[1])
SENDERS: dict[int, tuple[str, str]] = {port: (protocol, node) for protocol, node, port in CONFIG["ports"]}


def journal(what: str, **values: Any) -> None:
    line = json.dumps({"what": what, "node": CONFIG["node"], "life": os.getpid(), "at": time.time(), **values})
    os.write(1, line.encode() + b"\n")


class FaultySocket(socket.socket):
    """A socket that loses what it is to lose."""

    loss = 0.0
    blocked: frozenset[str] = frozenset()
    random = Random(f"{CONFIG['seed']}:{CONFIG['node']}:{time.time_ns()}")

    def recvfrom_into(self, buffer: Any, *more: Any) -> tuple[int, Any]:
        while True:
            size, address = super().recvfrom_into(buffer, *more)
            protocol, sender = SENDERS.get(address[1], ("", ""))
            if not sender or sender == CONFIG["node"]:
                return size, address
            parted = sender in self.blocked
            if not parted and self.random.random() >= self.loss:
                return size, address
            journal(
                "lost",
                protocol=protocol,
                sender=sender,
                why="partition" if parted else "loss",
                events=event_ids(bytes(buffer[:size])),
            )


socket.socket = FaultySocket  # type: ignore[misc]


def event_ids(datagram: bytes) -> list[str]:
    """The events in a datagram that is not sealed."""
    from earshot.errors import MalformedPacket
    from earshot.live import datagrams
    from earshot.protocols.common.packet_events import events_in
    from earshot.wire import decode

    try:
        frame = datagrams.decode(datagram[datagrams.HEADER_BYTES :])
        packets = frame.packets if isinstance(frame, datagrams.Frame) else []
        return [event.id for packet in packets for event in events_in(decode(packet))]
    except MalformedPacket:
        return []


STALL_S = 1.0
"Where the machine does not run this process for longer than this, that is a pause like those of the harness."


async def note_stalls() -> None:
    """Time in which this process worked itself does not count: a protocol that blocks its host is no stall."""
    while True:
        since, worked_s = time.time(), time.process_time()
        await asyncio.sleep(0.1)
        if time.time() - since - (time.process_time() - worked_s) > STALL_S:
            journal("stalled", since=since)


async def main() -> None:
    from earshot.geometry import Circle
    from earshot.live import Fixed, Node

    offset_s = 0.0
    nodes: dict[str, Node] = {}
    publishers: dict[tuple[str, str], Any] = {}
    node_name = CONFIG["node"]
    async with AsyncExitStack() as stack:
        for protocol, group in CONFIG["groups"].items():
            port = next(port for port, sender in SENDERS.items() if sender == (protocol, node_name))
            node = nodes[protocol] = Node(
                node_name,
                protocol=protocol,
                location=Fixed.on_plane(*CONFIG["position"]),
                spool=f"{CONFIG['spools']}/{protocol}",
                interface="lo",
                group=group,
                listen=f"127.0.0.1:{port}",
                emulate_range_m=250.0,
                clock=lambda: time.time() + offset_s,
            )
            await stack.enter_async_context(node)
            for subject, radius_m in CONFIG["types"].items():
                publishers[protocol, subject] = await node.announce(subject, within=Circle(radius_m))
            for number, (subject, where) in enumerate(CONFIG["subscriptions"]):

                def heard(event: Any, protocol: str = protocol, number: int = number) -> None:
                    journal("deliver", protocol=protocol, event=event.id, subscription=number)

                node.call(heard, subject, where)
        journal("up")
        watching = asyncio.create_task(note_stalls())

        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            command = json.loads(line)
            match command.pop("do"):
                case "publish":
                    protocol, subject, content = command["protocol"], command["type"], command["content"]
                    journal("publishing", protocol=protocol, number=content["n"])
                    try:
                        event = await publishers[protocol, subject].publish(content)
                    except Exception as error:
                        journal("failed", protocol=protocol, number=content["n"], error=repr(error))
                    else:
                        journal("published", protocol=protocol, number=content["n"], event=event.to_json().decode())
                case "clock":
                    offset_s += command["step_s"]
                    for node in nodes.values():
                        node.host.now()  # A host sees a new time when it asks; one that starts its protocol again
                    await asyncio.sleep(0)  # does so in the next turn of the loop.
                    journal("clock")
                case "network":
                    FaultySocket.loss = command["loss"]
                    FaultySocket.blocked = frozenset(command["blocked"])
                case "stop":
                    break
        watching.cancel()
        journal("down", drops={protocol: dict(node.drops) for protocol, node in nodes.items()})


asyncio.run(main())
