"""Reactive routing: routes are found on demand, as AODV does it (RFC 3561), and its frames are billed.

A node that has no route floods a route request in growing rings; the destination, or a node that knows a
fresh route, sends a reply back along the way the request came. A link that breaks makes the node report a
route error to the packet's sender. Left out: hello messages (the radio reports broken links), local repair,
precursor lists (an error goes back by the way of the packet that failed), multicast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from earshot.records import DropReason
from earshot.simulation.media.routing import ATTEMPTS, NO_PACKET, NO_ROUTE_S, ControlFrame, RoutedHop, RoutedMedium
from earshot.simulation.media.transmission import Medium, PacketCount, RoutingHost, Transmission

# Section 10: the default parameters.
ACTIVE_ROUTE_S: Final = 3.0
OWN_ROUTE_S: Final = 2 * ACTIVE_ROUTE_S
NODE_TRAVERSAL_S: Final = 0.04
NETWORK_DIAMETER: Final = 35
RING_STEP: Final = 2
LAST_RING: Final = 7
"TTL_START is 1; rings grow by TTL_INCREMENT up to TTL_THRESHOLD, then a request goes everywhere."
REPEATS: Final = 2
"RREQ_RETRIES: how often a request that goes everywhere is repeated; each time the wait doubles."
TIMEOUT_BUFFER: Final = 2
REQUEST_SPACING_S: Final = 0.1
"RREQ_RATELIMIT: a node begins at most ten requests a second."
JITTER_S: Final = 0.01
"A request is passed on after a random time, or neighbours that heard it together would send together (RFC 5148)."
WAITING_PACKETS: Final = 64
"At most this many packets wait for a search; the oldest is dropped."

SEQUENCE_STEP: Final = 1000
"""A node's own number grows by this with each request. The RFC's 1 is not more than what a broken link adds to the
number that others know: its requests would then seem old, and its neighbours would have no way back to it."""
UNKNOWN: Final = -1
"A sequence number that is not known."


class RouteRequest(ControlFrame, eq=False, gc=False, kw_only=True):
    """RREQ: who looks for whom. Broadcast; `reach` hops are left to it."""

    origin: int
    origin_sequence: int
    search: int
    destination: int
    sequence: int
    "The last known sequence number of the destination."
    of_destination: bool
    travelled: int
    reach: int


class RouteReply(ControlFrame, eq=False, gc=False, kw_only=True):
    """RREP: the way to the destination, on its way back to the origin."""

    origin: int
    destination: int
    sequence: int
    distance: int
    "From the node that sends this frame to the destination."
    lifetime_s: float


class RouteError(ControlFrame, eq=False, gc=False, kw_only=True):
    """RERR: the packet could not be passed on to its destination."""

    request: Transmission
    came_by: list[int]
    "The nodes before its peer on the packet's way, from its sender on."
    attempt: int


SIZES: Final[dict[type[ControlFrame], int]] = {RouteRequest: 24, RouteReply: 20, RouteError: 12}
"In bytes: the message formats for IPv4 (section 5); an error names one destination."
F = TypeVar("F", bound=ControlFrame)


@dataclass(slots=True)
class Route:
    """What a node knows about the way to a destination."""

    next_hop: int
    distance: int
    sequence: int
    expires_at: float
    valid: bool = True
    "Neither expired nor broken."

    def invalidate(self) -> None:
        """Section 6.1: only newer news may bring it back, so that no loop forms."""
        if self.valid:
            self.valid = False
            if self.sequence != UNKNOWN:
                self.sequence += 1


@dataclass(slots=True, eq=False)
class RouteSearch:
    """An origin's search for a route."""

    origin: int
    destination: int
    reach: int
    "How far its requests go now."
    repeats: int = 0
    of_destination: bool = False
    "Whether only the destination may answer: what others know has proved wrong."
    waiting: list[tuple[Transmission, int]] = field(default_factory=list)
    "Packets, and how often their sender has looked for another route before."


class ReactiveRouting(RoutedMedium):
    """Every node's routing table, and the frames that fill it."""

    def __init__(self, names: Sequence[str], host: RoutingHost, random: Random) -> None:
        super().__init__(names, host)
        nodes = len(names)
        self._draw = random.random
        self._tables: list[dict[int, Route]] = [{} for _ in range(nodes)]
        self._sequences = [0] * nodes
        self._searches: dict[tuple[int, int], RouteSearch] = {}
        self._requests = 0
        self._next_request_at = [0.0] * nodes
        self._heard: dict[int, set[int]] = {}
        "By the number of a request: the nodes that have heard it."
        self._kinds: dict[type[ControlFrame], PacketCount] = {
            RouteRequest: host.control_kind("route-request"),
            RouteReply: host.control_kind("route-reply"),
            RouteError: host.control_kind("route-error"),
        }

    def over(self, radio: Medium) -> RoutedMedium:
        # On a slow radio a node takes longer than the RFC's default to pass a frame on.
        self._traversal_s = max(NODE_TRAVERSAL_S, 4 * radio.airtime_s(SIZES[RouteRequest]))
        self._network_s = 2 * self._traversal_s * NETWORK_DIAMETER
        return super().over(radio)

    def node_down(self, node: int, graceful: bool) -> None:
        super().node_down(node, graceful)
        # It keeps the numbers; the RFC lets it wait instead (section 6.13). Without them old routes could form a loop.
        for route in self._tables[node].values():
            route.invalidate()
        for pair in [pair for pair in self._searches if pair[0] == node]:
            del self._searches[pair]

    # Packets.

    def _start(self, request: Transmission) -> None:
        self._try(request, 0)

    def _try(self, request: Transmission, attempt: int) -> None:
        if not self._pass_on(request.sender, request, [], attempt):
            self._wait_for_route(request, attempt)

    def _relay(self, hop: RoutedHop) -> None:
        self._refresh(hop.peer, hop.request.sender)
        came_by = [*hop.path, hop.sender]
        if not self._pass_on(hop.peer, hop.request, came_by, hop.attempt):
            self._drop_at_relay(hop, DropReason.NO_ROUTE)
            self._report_error(hop.peer, hop.request, came_by, hop.attempt)

    def _pass_on(self, node: int, request: Transmission, came_by: list[int], attempt: int) -> bool:
        """Send the packet along this node's route, if it has one. A route in use stays (section 6.2)."""
        route = self._route(node, request.peer)
        if route is None:
            return False
        self._refresh(node, request.peer)
        self._refresh(node, route.next_hop)
        self._forward(node, request, len(came_by) + 1, [route.next_hop, *came_by], attempt)
        return True

    def _link_failed(self, hop: RoutedHop, reason: DropReason) -> None:
        """Section 6.11: the link is broken, unless only the node's own queue was full."""
        node, request = hop.sender, hop.request
        self._host.dropped(hop, reason)
        if reason is not DropReason.QUEUE_FULL:
            self._break_link(node, hop.peer)
        if node == request.sender:
            self._start_again((request, hop.attempt))
        elif reason is DropReason.QUEUE_FULL:
            self._error_lost(request, hop.attempt)
        else:
            self._report_error(node, request, hop.path, hop.attempt)

    def _control_failed(self, frame: ControlFrame) -> None:
        """A reply that is lost is asked for again; an error is not."""
        self._break_link(frame.sender, frame.peer)
        if isinstance(frame, RouteError):
            self._error_lost(frame.request, frame.attempt)

    # Tables.

    def _known(self, node: int, destination: int) -> Route | None:
        """What the node knows about the destination, valid or not."""
        route = self._tables[node].get(destination)
        if route is not None and route.expires_at <= self.queue.now:
            route.invalidate()
        return route

    def _route(self, node: int, destination: int) -> Route | None:
        route = self._known(node, destination)
        return route if route is not None and route.valid else None

    def _refresh(self, node: int, destination: int) -> None:
        route = self._route(node, destination)
        if route is not None:
            route.expires_at = max(route.expires_at, self.queue.now + ACTIVE_ROUTE_S)

    def _learn(self, node: int, destination: int, next_hop: int, distance: int, sequence: int, until: float) -> None:
        """Section 6.2: a newer sequence number, or as new and nearer, replaces what is known."""
        known = self._known(node, destination)
        if known is None:
            self._tables[node][destination] = Route(next_hop, distance, sequence, until)
        elif sequence > known.sequence or (
            sequence in (UNKNOWN, known.sequence) and (not known.valid or distance < known.distance)
        ):
            known.sequence = max(sequence, known.sequence)
            known.next_hop, known.distance, known.expires_at, known.valid = next_hop, distance, until, True
        elif known.next_hop == next_hop and known.valid:
            known.expires_at = max(known.expires_at, until)

    def _learn_neighbour(self, node: int, neighbour: int) -> None:
        self._learn(node, neighbour, neighbour, 1, UNKNOWN, self.queue.now + ACTIVE_ROUTE_S)

    def _break_link(self, node: int, neighbour: int) -> None:
        for route in self._tables[node].values():
            if route.next_hop == neighbour:
                route.invalidate()

    # Searches.

    def _wait_for_route(self, request: Transmission, attempt: int) -> None:
        pair = (request.sender, request.peer)
        search = self._searches.get(pair)
        if search is None:
            known = self._known(*pair)
            reach = 1 if known is None else known.distance + RING_STEP
            search = self._searches[pair] = RouteSearch(*pair, reach if reach <= LAST_RING else NETWORK_DIAMETER)
            self._begin_ring(search)
        search.of_destination |= attempt > 0
        search.waiting.append((request, attempt))
        if len(search.waiting) > WAITING_PACKETS:
            oldest, _ = search.waiting.pop(0)
            self.queue.on_air(self.queue.now + NO_ROUTE_S, self._give_up_full, oldest)

    def _begin_ring(self, search: RouteSearch) -> None:
        at = max(self.queue.now, self._next_request_at[search.origin])
        self._next_request_at[search.origin] = at + REQUEST_SPACING_S
        self.queue.on_air(at, self._request, search)

    def _request(self, search: RouteSearch) -> None:
        """Section 6.3: flood a request as far as this ring goes, and wait for the reply (section 6.4)."""
        origin, destination, now = search.origin, search.destination, self.queue.now
        if self._searches.get((origin, destination)) is not search:
            return
        known, reach = self._known(origin, destination), search.reach
        self._sequences[origin] += SEQUENCE_STEP
        self._requests += 1
        self._heard[self._requests] = {origin}
        self.queue.on_air(now + 2 * self._network_s, self._forget, self._requests)
        self._flood(
            self._frame(
                RouteRequest,
                origin,
                origin=origin,
                origin_sequence=self._sequences[origin],
                search=self._requests,
                destination=destination,
                sequence=UNKNOWN if known is None else known.sequence,
                of_destination=search.of_destination,
                travelled=0,
                reach=reach,
            )
        )
        if reach < NETWORK_DIAMETER:
            wait_s = 2 * self._traversal_s * (reach + TIMEOUT_BUFFER)
        else:
            wait_s = self._network_s * 2.0**search.repeats
        self.queue.on_air(now + wait_s, self._ring_over, search)

    def _flood(self, request: RouteRequest) -> None:
        if self.up[request.sender]:
            self._radio.broadcast(request)

    def _forget(self, number: int) -> None:
        del self._heard[number]

    def _ring_over(self, search: RouteSearch) -> None:
        pair = (search.origin, search.destination)
        if self._searches.get(pair) is not search:
            return
        if search.reach < NETWORK_DIAMETER:
            grown = search.reach + RING_STEP
            search.reach = grown if grown <= LAST_RING else NETWORK_DIAMETER
        elif search.repeats < REPEATS:
            search.repeats += 1
        else:
            del self._searches[pair]
            for request, _ in search.waiting:
                self._host.unreachable(request)
            return
        self._begin_ring(search)

    def _give_up_full(self, request: Transmission) -> None:
        self._host.unreachable(request, DropReason.TOO_MANY_PACKETS_WAITING)

    def _found(self, origin: int, destination: int) -> None:
        search = self._searches.pop((origin, destination), None)
        for request, attempt in search.waiting if search is not None else ():
            self._try(request, attempt)

    # Frames of the routing itself.

    def _frame(self, made: type[F], node: int, to: int = -1, **fields: Any) -> F:
        """A frame from this node to a neighbour, or to all of them."""
        kind, name = self._kinds[made], self._names[to] if to >= 0 else ""
        return made(node, NO_PACKET, kind, SIZES[made], "", -1, None, to, name, self._lives[node], **fields)

    def _control(self, frame: ControlFrame, receivers: list[int]) -> None:
        for node in receivers:
            self._learn_neighbour(node, frame.sender)
            match frame:
                case RouteRequest():
                    self._on_request(node, frame)
                case RouteReply():
                    self._on_reply(node, frame)
                case RouteError():
                    self._on_error(node, frame)

    def _on_request(self, node: int, request: RouteRequest) -> None:
        """Sections 6.5 and 6.6."""
        heard = self._heard.get(request.search)
        if heard is None or node in heard:
            return
        heard.add(node)
        now, origin, travelled = self.queue.now, request.origin, request.travelled + 1
        until = now + 2 * self._network_s - 2 * travelled * self._traversal_s
        self._learn(node, origin, request.sender, travelled, request.origin_sequence, until)
        towards = self._known(node, request.destination)
        route = towards if towards is not None and towards.valid else None
        if node == request.destination:
            self._sequences[node] = max(self._sequences[node], request.sequence)
            self._reply(node, origin, node, self._sequences[node], 0, OWN_ROUTE_S)
        elif (
            not request.of_destination
            and route is not None
            and route.sequence >= max(request.sequence, 0)
            and route.next_hop != request.sender
        ):
            lifetime_s = route.expires_at - now
            self._reply(node, origin, request.destination, route.sequence, route.distance, lifetime_s)
        elif request.reach > 1:
            passed_on = self._frame(
                RouteRequest,
                node,
                origin=origin,
                origin_sequence=request.origin_sequence,
                search=request.search,
                destination=request.destination,
                sequence=request.sequence if towards is None else max(request.sequence, towards.sequence),
                of_destination=request.of_destination,
                travelled=travelled,
                reach=request.reach - 1,
            )
            self.queue.on_air(now + JITTER_S * self._draw(), self._flood, passed_on)

    def _reply(self, node: int, origin: int, destination: int, sequence: int, distance: int, lifetime_s: float) -> None:
        back = self._route(node, origin)
        if back is not None:
            reply = self._frame(
                RouteReply,
                node,
                back.next_hop,
                origin=origin,
                destination=destination,
                sequence=sequence,
                distance=distance,
                lifetime_s=lifetime_s,
            )
            self._radio.unicast(reply)

    def _on_reply(self, node: int, reply: RouteReply) -> None:
        """Section 6.7."""
        distance, until = reply.distance + 1, self.queue.now + reply.lifetime_s
        self._learn(node, reply.destination, reply.sender, distance, reply.sequence, until)
        if node == reply.origin:
            self._found(node, reply.destination)
        else:
            self._refresh(node, reply.origin)
            self._reply(node, reply.origin, reply.destination, reply.sequence, distance, reply.lifetime_s)

    def _report_error(self, node: int, request: Transmission, came_by: list[int], attempt: int) -> None:
        """Section 6.11: the nodes by which the packet came learn that this route has ended."""
        error = self._frame(RouteError, node, came_by[-1], request=request, came_by=came_by[:-1], attempt=attempt)
        self._radio.unicast(error)

    def _error_lost(self, request: Transmission, attempt: int) -> None:
        """The sender does not hear of it: no answer comes."""
        self.queue.on_air(self.queue.now + self._network_s, self._start_again, (request, attempt))

    def _on_error(self, node: int, error: RouteError) -> None:
        request = error.request
        route = self._known(node, request.peer)
        if route is not None and route.next_hop == error.sender:
            route.invalidate()
        if node == request.sender:
            self._start_again((request, error.attempt))
        else:
            self._report_error(node, request, error.came_by, error.attempt)

    def _start_again(self, failed: tuple[Transmission, int]) -> None:
        request, attempt = failed
        if attempt < ATTEMPTS and not self._host.orphaned(request):
            self._try(request, attempt + 1)
        else:
            self._host.failed(request)
