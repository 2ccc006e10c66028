"""Routing over a radio: a unicast to a distant peer goes hop by hop, every hop a frame of its own.

A routed medium stands between the engine and the radio. To the engine it is the medium; to the radio it is
the host, so that relays forward packets below their machines. Each hop is sent, may collide, takes airtime and
is logged like any other frame; at a relay the log's detail says `relayed`.

`ideal` is the most favourable case: shortest paths of the present graph, found at no cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from earshot.records import DropReason
from earshot.simulation.media.neighbours import Neighbours
from earshot.simulation.media.transmission import Medium, RoutingHost, Transmission
from earshot.wire import Packet

NO_ROUTE_S = 0.01
"After this time a machine learns that there is no route, so that time passes for one that tries again at once."
ATTEMPTS = 3
"How often a packet whose link or route failed is sent again, as transports do."
HOP_LIMIT = 64
"Routes change while packets are under way: a packet that has taken this many hops is dropped."


class RoutedHop(Transmission, eq=False, gc=False, kw_only=True):
    """One hop of a routed packet. It has the packet's own kind, size and event."""

    request: Transmission
    "What the machine asked for: its sender, and the peer it is for."
    taken: int
    "How many hops the packet has taken with this one."
    path: list[int]
    "With ideal routing the nodes after this hop's peer, with reactive routing those before its sender."
    attempt: int = 0
    "How often its sender has looked for another route before."


class ControlFrame(Transmission, eq=False, gc=False):
    """A frame of the routing itself. It carries no packet of a machine."""


NO_PACKET = Packet()


class RoutedMedium(ABC):
    """Packets to distant peers over a radio. How the next hop is found is for the class below."""

    def __init__(self, names: Sequence[str], host: RoutingHost) -> None:
        self._names = names
        self._host = host
        self._radio: Medium
        self._lives = [0] * len(names)
        "How often each node has gone: what a relay held is lost with it."
        self.queue = host.queue
        self.up = host.up
        self.on_channel = host.on_channel

    def over(self, radio: Medium) -> RoutedMedium:
        """Use this radio, which has the routed medium as its host."""
        self._radio = radio
        self.airtime_s = radio.airtime_s
        return self

    # What a way of routing decides.

    @abstractmethod
    def _start(self, request: Transmission) -> None:
        """A machine sends this packet; its peer exists and is another node."""

    @abstractmethod
    def _relay(self, hop: RoutedHop) -> None:
        """The hop has arrived at a relay, its peer: pass it on."""

    @abstractmethod
    def _link_failed(self, hop: RoutedHop, reason: DropReason) -> None:
        """The radio could not deliver this hop."""

    def _control(self, frame: ControlFrame, receivers: list[int]) -> None:  # noqa: B027
        """These nodes have received a frame of the routing itself."""

    def _control_failed(self, frame: ControlFrame) -> None:  # noqa: B027
        """The radio could not deliver this frame of the routing itself."""

    # What it is to the engine: a medium.

    def broadcast(self, transmission: Transmission) -> None:
        self._radio.broadcast(transmission)

    def unicast(self, transmission: Transmission) -> None:
        now = self.queue.now
        if transmission.peer == transmission.sender:
            self.queue.on_air(now, self._loop_back, transmission)
        elif transmission.peer < 0:
            self.queue.on_air(now + NO_ROUTE_S, self._host.unreachable, transmission)
        else:
            self._start(transmission)

    def _loop_back(self, transmission: Transmission) -> None:
        """A packet to the node itself takes no frame."""
        transmission.receivers = [transmission.peer]
        self._host.received(transmission)

    def node_down(self, node: int, graceful: bool) -> None:
        self._lives[node] += 1
        self._radio.node_down(node, graceful)

    # What it is to the radio: a host.

    def orphaned(self, transmission: Transmission) -> bool:
        sender = transmission.sender
        return not self.up[sender] or transmission.session != self._lives[sender]

    def sent(self, transmission: Transmission) -> None:
        self._host.sent(transmission)

    def received(self, transmission: Transmission) -> None:
        if not isinstance(transmission, RoutedHop):
            if isinstance(transmission, ControlFrame):
                self._control(transmission, self._host.relayed(transmission))
            else:
                self._host.received(transmission)
        elif transmission.peer == transmission.request.peer:
            self._host.arrived(transmission, transmission.request.sender)
        elif self._host.relayed(transmission):
            if self._host.withholds(transmission.peer, transmission):
                return
            if transmission.taken < HOP_LIMIT:
                self._relay(transmission)
            else:
                self._drop_at_relay(transmission, DropReason.HOP_LIMIT)

    def lost(self, transmission: Transmission, nodes: list[int], reason: DropReason) -> None:
        self._host.lost(transmission, nodes, reason)

    def refuse(self, transmission: Transmission, why: str) -> None:
        self._host.refuse(transmission, why)

    def dropped(self, transmission: Transmission, reason: DropReason) -> None:
        self._host.dropped(transmission, reason)

    def unreachable(self, transmission: Transmission, reason: DropReason = DropReason.UNREACHABLE) -> None:
        if isinstance(transmission, RoutedHop):
            self._link_failed(transmission, reason)
        else:
            self._host.dropped(transmission, reason)
            if isinstance(transmission, ControlFrame):
                self._control_failed(transmission)

    # Parts for the classes below.

    def _forward(self, node: int, request: Transmission, taken: int, path: list[int], attempt: int = 0) -> None:
        """Send the packet from this node to the first of the path."""
        self._radio.unicast(self._hop(node, path[0], request, taken, path[1:], attempt))

    def _hop(
        self, node: int, to: int, request: Transmission, taken: int, path: list[int], attempt: int = 0
    ) -> RoutedHop:
        return RoutedHop(
            node,
            request.packet,
            request.kind,
            request.bytes,
            request.event,
            request.hops,
            None,
            to,
            self._names[to],
            self._lives[node],
            request.priority,
            request=request,
            taken=taken,
            path=path,
            attempt=attempt,
        )

    def _drop_at_relay(self, hop: RoutedHop, reason: DropReason) -> None:
        """The node that has received this hop has no way to pass it on."""
        request = hop.request
        self._host.dropped(self._hop(hop.peer, request.peer, request, hop.taken, []), reason)


class IdealRouting(RoutedMedium):
    """The sender takes the shortest path of the present graph. A relay whose next hop has gone takes the shortest
    path from there. A hop that the radio gives up is tried again, up to three times; then the sender learns at once."""

    def __init__(self, names: Sequence[str], neighbours: Neighbours, host: RoutingHost) -> None:
        super().__init__(names, host)
        self._neighbours = neighbours
        self._graph: object = None
        "The present graph's version; the distances are of this one."
        self._distances: dict[int, tuple[dict[int, int], set[int]]] = {}
        "By destination: how far the nodes found so far are from it, and the farthest of them."

    def _start(self, request: Transmission) -> None:
        path = self.path(request.sender, request.peer)
        if path:
            self._forward(request.sender, request, 1, path)
        else:
            self.queue.on_air(self.queue.now + NO_ROUTE_S, self._host.unreachable, request)

    def _relay(self, hop: RoutedHop) -> None:
        node, path = hop.peer, hop.path
        if not (self.up[path[0]] and path[0] in self._neighbours.of(node, self.queue.now)):
            path = self.path(node, hop.request.peer)
        if path:
            self._forward(node, hop.request, hop.taken + 1, path)
        else:
            self._drop_at_relay(hop, DropReason.UNREACHABLE)
            self._host.failed(hop.request)

    def _link_failed(self, hop: RoutedHop, reason: DropReason) -> None:
        node, request = hop.sender, hop.request
        if reason is not DropReason.QUEUE_FULL and hop.attempt < ATTEMPTS and not self.orphaned(hop):
            path = self.path(node, request.peer)
            if path:
                self._forward(node, request, hop.taken, path, hop.attempt + 1)
                return
        self._host.dropped(hop, reason)
        self._host.failed(request)

    def path(self, origin: int, destination: int) -> list[int]:
        """The nodes from the origin, without it, to the destination: of several shortest paths the one whose nodes
        come first. Empty if there is no path."""
        now, of = self.queue.now, self._neighbours.of
        if not self.up[destination]:
            return []
        graph = (self._neighbours.version(now), self._host.presence)
        if graph != self._graph:
            self._graph, self._distances = graph, {}
        distance, farthest = self._distances.get(destination) or ({destination: 0}, {destination})
        # Breadth first from the destination, no farther than needed; sets because they unite many lists at once.
        while origin not in distance and farthest:
            far = distance[next(iter(farthest))] + 1
            reached = set[int]().union(*[of(node, now) for node in farthest]).difference(distance)
            farthest = {node for node in reached if self.up[node]}
            distance.update(dict.fromkeys(farthest, far))
        self._distances[destination] = distance, farthest
        if origin not in distance:
            return []
        path, node = [], origin
        while node != destination:
            nearer = distance[node] - 1
            node = next(near for near in of(node, now) if distance.get(near) == nearer)
            path.append(node)
        return path


class BesideInfrastructure:
    """A radio for broadcasts, and infrastructure that carries unicasts between any two nodes."""

    def __init__(self, radio: Medium, infrastructure: Medium) -> None:
        self._media = (radio, infrastructure)
        self.broadcast = radio.broadcast
        self.airtime_s = radio.airtime_s
        self.unicast = infrastructure.unicast

    def node_down(self, node: int, graceful: bool) -> None:
        for medium in self._media:
            medium.node_down(node, graceful)
