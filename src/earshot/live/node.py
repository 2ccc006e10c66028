"""`Node`: publish and subscribe from Python, between real hosts, without a server. `earshot.live` has an example."""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from earshot.errors import UsageError
from earshot.events import Element, Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import AnyShape, Area, Circle, Ellipse, LocalPlane, Polygon, Position, Proximity, Rectangle
from earshot.live.credentials import Credentials
from earshot.live.host import Host
from earshot.live.location import STALE_S, Fix, Fixed, LocationService
from earshot.live.network import NetworkSettings
from earshot.live.trust import Address
from earshot.protocols.catalogue import build_settings
from earshot.protocols.catalogue import protocol as protocol_named
from earshot.protocols.machine import Announcement
from earshot.protocols.services.fences import Crossed, Fence
from earshot.records import DropReason

logger = logging.getLogger("earshot.live")

QUEUE = 10_000
YIELD_EVERY = 256
"After this many publications in a row, other tasks of the program run."


@dataclass(frozen=True, slots=True)
class HeardPeer:
    """A peer that this node has heard recently."""

    name: str
    address: Address
    position: Position | None
    heard_s_ago: float
    both_ways: bool = True
    "Whether the peer has answered this node, and was not only heard."


class Node:
    """One node of the network. Use it as an async context manager.

    `location` says where the node is (`Fixed`, `Gpsd`, `NmeaFile`, `TracePlayback`); without one it is at the
    origin of a plane without degrees. `identity` (a file) signs this node's events, and `trust` (a file) says whose
    signatures are valid: see `earshot identity`. `clock` gives seconds since the epoch. `network` takes the options of
    `NetworkSettings` by name.
    """

    def __init__(
        self,
        name: str,
        *,
        protocol: str = "hearsay",
        settings: Mapping[str, Any] | None = None,
        location: LocationService | None = None,
        origin: tuple[float, float] | None = None,
        stale_s: float = STALE_S,
        precision_m: float | None = None,
        key_file: str | Path | None = None,
        identity: str | Path | None = None,
        trust: str | Path | None = None,
        require_signed: bool = False,
        spool: str | Path | None = None,
        clock: Callable[[], float] = time.time,
        **network: Any,
    ) -> None:
        self.name = name
        machine = protocol_named(protocol)
        given = dict(settings or {})
        range_m = network.get("emulate_range_m")
        for setting in fields(machine.Settings) if range_m is not None else ():
            if setting.metadata.get("scenario") == "medium.range_m":
                given.setdefault(setting.name, range_m)
        if location is None and any(setting.name == "knows_place" for setting in fields(machine.Settings)):
            given.setdefault("knows_place", False)
        try:
            options = NetworkSettings(**network)
        except TypeError:
            known = NetworkSettings.__dataclass_fields__
            wrong = ", ".join(repr(option) for option in network if option not in known)
            raise UsageError(f"a node has no option {wrong}; the options are: {', '.join(known)}") from None
        credentials = Credentials(name, key_file, identity, trust, require_signed)
        if key_file is not None:
            options = replace(options, keys=credentials.keys)
        if precision_m is not None and not precision_m > 0:
            raise UsageError(f"precision_m must be a positive number of metres, got {precision_m}")
        self._location = location if location is not None else Fixed.on_plane()
        self._plane = None if origin is None else LocalPlane(*origin)
        built = build_settings(machine.Settings, given)
        for doubt in machine.doubts(built):
            logger.warning("%s", doubt)
        self._clock = clock
        self._make_host = partial(
            Host, name, machine, built, options, self._location, spool, stale_s, precision_m, credentials, clock
        )
        self._host: Host | None = None
        self._streams: weakref.WeakSet[ReadQueue[Any]] = weakref.WeakSet()
        self._subscribed = 0

    async def __aenter__(self) -> Node:
        if self._host is not None:
            raise UsageError(f"the node {self.name!r} is already running")
        await self._location.start(self._clock, self._plane)
        try:
            host = self._make_host()
            try:
                host.start()
            except BaseException:
                host.stop()
                raise
        except BaseException:
            await self._location.stop()
            raise
        self._host = host
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        host, self._host = self.host, None
        for stream in list(self._streams):
            stream.end()
        host.stop()
        await self._location.stop()

    @property
    def host(self) -> Host:
        """The host that runs the machine; it counts packets and drops."""
        if self._host is None:
            raise UsageError(f"the node {self.name!r} is not running; use it in: async with Node(...) as node")
        return self._host

    # Publishing.

    async def announce(
        self,
        event_type: EventType | str,
        within: AnyShape | Area | Proximity | None = None,
        *,
        producer: str = "",
    ) -> Publisher:
        """Announce that this node will publish events of this type, and within which proximity.

        A shape moves with the node, an area does not move, None is everywhere. Where several producers on this node
        publish one type, each within its own proximity, give each a name as `producer` (STEAM only).
        """
        host = self.host
        kind = EventType(event_type) if isinstance(event_type, str) else event_type
        announcement = Announcement(kind, self._proximity(within), producer)
        host.announce(announcement)
        return Publisher(self, announcement)

    def _proximity(self, within: AnyShape | Area | Proximity | None) -> Proximity | None:
        match within:
            case None | Proximity():
                return within
            case Area(shape=shape, at=at):
                return Proximity(shape, at)
            case Circle() | Rectangle() | Ellipse() | Polygon():
                host = self.host
                return Proximity(within, host.location.position(host.now()), mobile=True)
        raise UsageError(f"`within` is a shape, an Area, a Proximity or None, got {type(within).__name__}")

    async def publish(self, event: Event) -> Event:
        """Publish an event of an announced type (some protocols need no announcement); returns it stamped."""
        stamped = self.host.publish(event)
        await self._yield_to_loop()
        return stamped

    async def _yield_to_loop(self) -> None:
        """Let other tasks run now and then, and wait while the socket is congested."""
        host = self.host
        if not host.published % YIELD_EVERY:
            await asyncio.sleep(0)
        while host.transport.congested:
            await asyncio.sleep(0.001)

    # Subscribing.

    def subscribe(
        self,
        event_type: str | EventType | None = None,
        where: str | None = None,
        *,
        filter: Filter | str | None = None,
        region: Area | None = None,
        queue: int = QUEUE,
    ) -> Stream:
        """Subscribe to the events of a type that satisfy `where`; returns an async iterator.

        Instead of a type and a `where`, give a whole `filter` (XPath, or `Siren: speed > 10`). The queue holds
        at most `queue` events; if the program is too slow, the oldest are dropped, and `dropped` counts them.

        An `EventType` instead of its name says which attributes the program expects: events of a publisher that
        announces the type with other attributes are refused.
        """
        if queue < 1:
            raise UsageError(f"queue must be at least 1, got {queue}")
        expected = event_type if isinstance(event_type, EventType) else None
        subject = event_type.subject if isinstance(event_type, EventType) else event_type
        wanted = Subscription(self._next_id(), self.name, _wanted(subject, where, filter), region)
        stream = Stream(self.host, wanted.id, queue)
        # The host must not keep alive a stream that the program no longer holds.
        reference = weakref.WeakMethod(stream.put)
        self.host.subscribe(wanted, lambda event: put(event) if (put := reference()) is not None else None, expected)
        self._streams.add(stream)
        return stream

    def fences(
        self, event_type: str | None = None, *, near_m: float | None = None, queue: int = QUEUE
    ) -> FenceCrossings:
        """Report when this node enters or leaves an area that the type is announced with, and with `near_m` when
        another node comes within that distance or goes away; returns an async iterator of `FenceCrossing`."""
        fence = Fence(self._next_id(), event_type, near_m)
        stream = FenceCrossings(self.host, fence.id, queue)
        reference = weakref.WeakMethod(stream.put)

        def crossed(effect: Crossed, now: float) -> None:
            if (put := reference()) is not None:
                put(FenceCrossing(str(effect.crossing), effect.peer, effect.subject, now))

        self.host.fence(fence, crossed)
        self._streams.add(stream)
        return stream

    def call(
        self,
        handler: Callable[[Event], object],
        event_type: str | None = None,
        where: str | None = None,
        *,
        filter: Filter | str | None = None,
        region: Area | None = None,
    ) -> Callable[[], None]:
        """Call `handler` with each event as it arrives, without a queue. Call the returned function to unsubscribe.

        The handler runs in the event loop and must not block; its exceptions are logged and counted.
        """
        host, id = self.host, self._next_id()

        def guarded(event: Event) -> None:
            try:
                handler(event)
            except Exception:
                host.dropped(DropReason.HANDLER_FAILURE, event=event.id)
                logger.exception("%s: the handler of %s failed", self.name, id)

        host.subscribe(Subscription(id, self.name, _wanted(event_type, where, filter), region), guarded)
        return lambda: host.unsubscribe(id)

    def _next_id(self) -> str:
        self._subscribed += 1
        return f"{self.name}/{self._subscribed}"

    # What the node knows.

    def peers(self) -> list[HeardPeer]:
        """The peers that have been heard recently, sorted by name."""
        now = time.monotonic()
        present = self.host.transport.peers.present(now)
        return [HeardPeer(peer.name, peer.address, peer.position, now - peer.heard_at, peer.proven) for peer in present]

    def fix(self) -> Fix:
        """This node's latest fix."""
        return self.host.location.fix(self.host.now())

    @property
    def drops(self) -> Mapping[str, int]:
        """How many packets and events this node dropped, by reason."""
        return self.host.drops


def _wanted(event_type: str | None, where: str | None, filter: Filter | str | None) -> Filter:
    """The filter of a subscription."""
    if filter is not None:
        if where is not None or event_type is not None:
            raise UsageError("give a filter, or a type and a where, not both")
        return Filter.parse(filter) if isinstance(filter, str) else filter
    if where is not None:
        return Filter.where(where, type=event_type)
    if event_type is not None:
        return Filter.of_type(event_type)
    raise UsageError("say what to subscribe to: a type, a where, or a filter")


class Publisher:
    """Publishes events of one announced type."""

    def __init__(self, node: Node, announcement: Announcement) -> None:
        self.event_type = announcement.event_type
        self._name = announcement.name
        self._node = node

    async def publish(self, content: Mapping[str, Any] | Element | None = None, /, **values: Any) -> Event:
        """Publish an event with this content, or with these named values; returns it stamped."""
        kind, host = self.event_type, self._node.host
        given = content if isinstance(content, Element) else {**content, **values} if content else values
        if kind.content:
            event = host.publish(kind.read(Event(kind.subject, given)), self._name)
        else:
            event = host.publish_new(kind.subject, given, announced=self._name)
        if host.transport.congested or not host.published % YIELD_EVERY:
            await self._node._yield_to_loop()
        return event

    async def unannounce(self) -> None:
        """End the announcement: no more events of this type will be published."""
        self._node.host.unannounce(self._name)


T = TypeVar("T")


class ReadQueue(Generic[T]):
    """What arrives for one subscription, to be read with `async for`. It ends with `close`, with the node, or when
    the program holds no reference to it."""

    def __init__(self, host: Host, id: str, limit: int) -> None:
        self.id = id
        "The subscription's id, as records name it."
        self.dropped = 0
        "How many items were lost because the program did not read them in time."
        self._host = host
        self._limit = limit
        self._ended = False
        self._waiting_items: deque[T] = deque()
        self._waiting: asyncio.Future[None] | None = None

    def put(self, item: T) -> None:
        """Add an item; a full queue drops its oldest item."""
        if len(self._waiting_items) >= self._limit:
            lost = self._waiting_items.popleft()
            self.dropped += 1
            self._host.dropped(DropReason.SLOW_SUBSCRIBER, event=getattr(lost, "id", ""))
            if self.dropped == 1:
                self._host.warn(f"slow-subscriber: {self.id} holds {self._limit} events; the oldest are dropped")
        self._waiting_items.append(item)
        if self._waiting is not None:
            self._wake()

    def end(self) -> None:
        """End the stream: no more items will come."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._waiting_items:
            if self._ended:
                raise StopAsyncIteration
            if self._waiting is not None:
                raise UsageError("two tasks cannot read one subscription; subscribe twice instead")
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self._waiting_items.popleft()

    def __len__(self) -> int:
        """How many items wait to be read."""
        return len(self._waiting_items)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._ended:
            self.close()

    def close(self) -> None:
        """Unsubscribe; waiting items can still be read."""
        self.end()
        self._unsubscribe()

    def _unsubscribe(self) -> None:
        self._host.unsubscribe(self.id)


class Stream(ReadQueue[Event]):
    """The events of one subscription."""

    late = 0
    "How many events arrived after their type's deadline; `event.late_s` says by how much."

    def put(self, item: Event) -> None:
        if item.late_s:
            self.late += 1
        super().put(item)


@dataclass(frozen=True, slots=True)
class FenceCrossing:
    """A fence was crossed."""

    what: str
    "`enter`, `leave`, `nearby` or `faraway`."
    peer: str
    "The node that announced the area, or that came near."
    event_type: str
    "The type that the area was announced with; empty for `nearby` and `faraway`."
    time: float


class FenceCrossings(ReadQueue[FenceCrossing]):
    """The crossings of one fence."""

    def _unsubscribe(self) -> None:
        self._host.unfence(self.id)


def run(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, but on uvloop if that is installed: an event then takes a tenth less time."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
