"""Both directions of a bridge.

An event that a rule accepts is on disk before it is sent, and leaves the disk when the broker has acknowledged it.
A message is acknowledged after it was published into the network. So at quality of service 1 nothing is lost while
the broker is away or the bridge is killed; a message may come twice.

No event travels in a circle: the broker does not send a bridge its own messages; a message names the network that it
came from, and bridges of that network ignore it; an event that a bridge published carries the broker's mark in its
source's name, and bridges to that broker ignore it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from earshot.errors import EarshotError
from earshot.events import Event
from earshot.geometry import AnyShape, Area, parse_shape
from earshot.live.bridge.mapping import FromMqtt, Mapping, ToMqtt
from earshot.live.bridge.mqtt import UNACKNOWLEDGED, Connection, MqttBroker
from earshot.live.bridge.waiting_messages import Message, QueueFailed, WaitingMessages
from earshot.live.node import Node, Publisher
from earshot.protocols.common.local_subscriptions import RecentKeys

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

logger = logging.getLogger("earshot.bridge")

GATHER_S = 0.01
"Events of so short a time are written to the disk together."
RETRY_S = 1.0
"The time until the next attempt after the disk could not be written."
MOST_GATHERED = 10_000
"The most events that wait in memory while the disk cannot be written; the oldest are lost first."
MOST_RECEIVED = 10_000
MOST_ANNOUNCED = 256
REMEMBERED = 10_000
DEFAULT_QUEUE_BYTES = 256_000_000

EVENT_PROPERTY = "earshot-event"
NETWORK_PROPERTY = "earshot-network"


def mark_of(broker: MqttBroker) -> str:
    """A short word for a broker. The names of the nodes that bridge to it begin with this word."""
    return "bridge-" + sha256(f"{broker.host}:{broker.port}".encode()).hexdigest()[:8]


class Bridge:
    """A bridge beside a running node. Use it as an async context manager.

    `network` is the network's name on the broker: all bridges of one network give the same. The node's name should
    begin with `mark_of(broker)`, as the command line does it, if the network has several bridges to one broker.
    """

    def __init__(
        self,
        node: Node,
        broker: MqttBroker,
        mapping: Mapping,
        queue: str | Path,
        *,
        network: str = "earshot",
        queue_bytes: int = DEFAULT_QUEUE_BYTES,
    ) -> None:
        self.node = node
        self.broker = broker
        self.mapping = mapping
        self.network = network
        self.counts: Counter[str] = Counter()
        "out, in: events bridged; acknowledged; sent again, came again: duplicates; refused; looped; lost."
        self._mark = mark_of(broker)
        self._waiting = WaitingMessages(queue, queue_bytes)
        self._gathered: deque[Message] = deque()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._sent_up_to = 0
        self._on_the_way: dict[int, int] = {}
        "From paho's number of a message to the queue's."
        self._acknowledged: list[int] = []
        self._received: asyncio.Queue[tuple[int, MQTTMessage]] = asyncio.Queue(MOST_RECEIVED)
        "Messages of the broker, each with the number of the connection that it came over."
        self._seen = RecentKeys(REMEMBERED)
        "Ids of events that went from the network to the broker."
        self._handled: OrderedDict[int, tuple[str, bytes]] = OrderedDict()
        "Messages published into the network, by the number of their packet, so that a repeated message is recognised."
        self._announced: OrderedDict[str, tuple[Area | None, Publisher]] = OrderedDict()
        self._stops: list[Callable[[], None]] = []
        self._inward: asyncio.Task[None] | None = None
        self._connection: Connection | None = None

    @property
    def connected(self) -> bool:
        """Whether the broker is connected."""
        return self._connection is not None and self._connection.connected

    @property
    def waiting(self) -> int:
        """How many messages the broker has not acknowledged."""
        return len(self._waiting) + len(self._gathered)

    async def __aenter__(self) -> Bridge:
        topics = list(dict.fromkeys((rule.topic, rule.qos) for rule in self.mapping.from_mqtt))
        name = f"earshot-{sha256(f'{self.network}:{self.node.name}'.encode()).hexdigest()[:16]}"
        self._connection = Connection(
            self.broker,
            name,
            topics,
            received=self._receive,
            acknowledged=self._on_acknowledged,
            changed=self._on_changed,
        )
        for rule in self.mapping.to_mqtt:
            self._stops.append(self.node.call(partial(self._heard, rule), filter=rule.filter))
        self._inward = asyncio.create_task(self._publish_received())
        self._connection.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for stop in self._stops:
            stop()
        assert self._connection is not None
        assert self._inward is not None
        self._flush()
        await self.drained(2.0)
        self._inward.cancel()
        await asyncio.gather(self._inward, return_exceptions=True)
        await self._connection.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._forget_acknowledged()
        self._waiting.close()

    async def drained(self, longest_s: float) -> bool:
        """Wait at most this long until the broker has everything. Returns whether it has."""
        until = asyncio.get_running_loop().time() + longest_s
        while self.waiting and self.connected and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.01)
        return not self.waiting

    # From the network to the broker.

    def _heard(self, rule: ToMqtt, event: Event) -> None:
        if event.source.startswith(self._mark):
            self.counts["looped"] += 1
            return
        try:
            topic, payload = rule.message(event)
        except EarshotError as error:
            self._refuse(str(error))
            return
        self._seen.add(event.id)
        self.counts["out"] += 1
        if len(self._gathered) >= MOST_GATHERED:
            self._gathered.popleft()
            self.counts["lost"] += 1
        self._gathered.append(Message(topic, payload, rule.qos, rule.retain, event.id))
        self._schedule("flush", GATHER_S, self._flush)

    def _schedule(self, name: str, delay_s: float, work: Callable[[], None]) -> None:
        """Do the work once after the delay, unless work of this name is already scheduled."""
        if name not in self._timers:

            def now() -> None:
                del self._timers[name]
                work()

            self._timers[name] = asyncio.get_running_loop().call_later(delay_s, now)

    def _flush(self) -> None:
        """Write the gathered events to the disk, and send them."""
        if not self._gathered:
            return
        lost = self._waiting.lost
        try:
            self._waiting.add(self._gathered)
        except QueueFailed as error:
            if not self.counts["disk refused"]:
                logger.warning("the queue cannot be written: %s; events wait in memory", error)
            self.counts["disk refused"] += 1
            self._schedule("flush", RETRY_S, self._flush)
            return
        if self._waiting.lost > lost:
            if not self.counts["lost"]:
                logger.warning("the queue is full: the oldest messages are lost")
            self.counts["lost"] += self._waiting.lost - lost
        self._gathered.clear()
        self._send_more()

    def _send_more(self) -> None:
        """Hand messages to the connection, in order, until too many are unacknowledged."""
        connection = self._connection
        if connection is None or not connection.connected:
            return
        free = UNACKNOWLEDGED - len(self._on_the_way)
        if free <= UNACKNOWLEDGED // 4 and self._on_the_way:
            return
        sent_once = []
        for number, message in self._waiting.after(self._sent_up_to, free):
            self._sent_up_to = number
            properties = {EVENT_PROPERTY: message.event, NETWORK_PROPERTY: self.network}
            mid = connection.publish(message.topic, message.payload, message.qos, message.retain, properties)
            if message.qos:
                self._on_the_way[mid] = number
            else:
                sent_once.append(number)
        if sent_once:
            self._acknowledged += sent_once
            self._schedule("forget", GATHER_S, self._forget_acknowledged)

    def _on_acknowledged(self, mid: int) -> None:
        number = self._on_the_way.pop(mid, None)
        if number is None:
            return
        self.counts["acknowledged"] += 1
        self._acknowledged.append(number)
        self._schedule("forget", GATHER_S, self._forget_acknowledged)
        self._send_more()

    def _forget_acknowledged(self) -> None:
        numbers, self._acknowledged = self._acknowledged, []
        try:
            self._waiting.remove(numbers)
        except QueueFailed:
            self._acknowledged += numbers
            self._schedule("forget", RETRY_S, self._forget_acknowledged)
            return
        self._send_more()

    def _on_changed(self, connected: bool) -> None:
        if connected:
            self.counts["sent again"] += len(self._on_the_way)
            self._send_more()

    # From the broker to the network.

    def _receive(self, message: MQTTMessage) -> None:
        assert self._connection is not None
        try:
            self._received.put_nowait((self._connection.connections, message))
        except asyncio.QueueFull:
            self.counts["lost"] += 1

    async def _publish_received(self) -> None:
        assert self._connection is not None
        while True:
            connection, message = await self._received.get()
            if message.qos and not (self._connection.connected and connection == self._connection.connections):
                continue  # The broker sends it again over the new connection.
            try:
                await self._publish(message)
            except EarshotError as error:
                self._refuse(f"{message.topic[:100]}: {error}")
            except Exception:
                self.counts["refused"] += 1
                logger.exception("a message on %s could not be published", message.topic[:100])
            self._connection.acknowledge(message)

    async def _publish(self, message: MQTTMessage) -> None:
        properties = dict(getattr(message.properties, "UserProperty", ()))
        if properties.get(NETWORK_PROPERTY) == self.network or properties.get(EVENT_PROPERTY) in self._seen:
            self.counts["looped"] += 1
            return
        key = (message.topic, sha256(message.payload).digest())
        if message.dup and self._handled.get(message.mid) == key:
            self.counts["came again"] += 1
            return
        found = self.mapping.rule_for(message.topic)
        if found is None:
            self._refuse(f"{message.topic[:100]}: no rule is for this topic")
            return
        rule, stood_for = found
        event, area = rule.event(stood_for, bytes(message.payload))
        await self._announce(event.type, rule, area)
        await self.node.publish(event)
        self.counts["in"] += 1
        if message.qos:
            self._handled[message.mid] = key
            self._handled.move_to_end(message.mid)  # A broker that was restarted uses its numbers again.
            if len(self._handled) > 2 * UNACKNOWLEDGED:
                self._handled.popitem(last=False)

    async def _announce(self, subject: str, rule: FromMqtt, area: Area | None) -> None:
        """Announce the type; announce it again if its area has changed."""
        known = self._announced.get(subject)
        if known is not None and known[0] == area:
            self._announced.move_to_end(subject)
            return
        within: Area | AnyShape | None = area if area is not None or not rule.within else parse_shape(rule.within)
        self._announced[subject] = area, await self.node.announce(subject, within)
        if len(self._announced) > MOST_ANNOUNCED:
            _, (_, oldest) = self._announced.popitem(last=False)
            await oldest.unannounce()

    def _refuse(self, reason: str) -> None:
        self.counts["refused"] += 1
        if self.counts["refused"] <= 10:
            logger.warning("refused: %s", reason)
