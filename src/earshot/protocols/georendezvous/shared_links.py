"""Beyond the paper: Cell Hash Routing in networks where a node does not hear every cell around its own.

Cells small enough that all nodes of neighbouring cells hear each other (section 2.1) are mostly empty in a network
of a dozen neighbours a node, and the cell graph falls apart. In larger cells some neighbouring nodes do not hear
each other. So beacons say which neighbouring cells their sender hears, and a cell is what the paper calls it, a
virtual node: what one member hears, all members can reach, over that member. Greedy steps go to any cell that is
heard, and look two cells ahead before they turn to a walk around a face. Ranks fall with every such pair of steps, so
routing still ends; a walk ends after `walk_limit` steps at the latest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from random import Random
from typing import Final

import msgspec

from earshot.geometry import Position
from earshot.protocols.georendezvous import cells
from earshot.protocols.georendezvous.cell_hash_routing import (
    Beacon,
    CellAppeared,
    CellHashRouting,
    CellSettings,
    Heading,
    NodeEntered,
    RoutedPacket,
    Walk,
    lost,
    sent,
)
from earshot.protocols.georendezvous.cells import Cell, Perimeter, rank, towards
from earshot.protocols.machine import Drop, Effect, Send
from earshot.records import DropReason
from earshot.wire import Whole

RETURN_S: Final = 10.0
"A member or a cell that was not heard for less than this is not new: on a busy channel beacons are lost."


class LinkBeacon(Beacon, frozen=True, tag="chr-links"):
    """A beacon that says which of the eight neighbouring cells its sender hears, one bit a direction."""

    links: Whole = 0


class SharedLinks(CellHashRouting):
    """One node's cell, its neighbours and what they hear, and the next hop of a packet."""

    def __init__(self, node: str, settings: CellSettings, random: Random) -> None:
        super().__init__(node, settings, random)
        self.links: dict[str, int] = {}
        "Which cells around their own the neighbours hear."
        self.lost_members: dict[str, float] = {}
        "Members of this cell that are no longer heard or did not answer, and when they were heard last."
        self.lost_cells: dict[Cell, float] = {}
        "The same of neighbouring cells."

    def beacon(self) -> Beacon:
        plain = super().beacon()
        return LinkBeacon(plain.cell, plain.fresh, self.neighbourhood)

    def on_beacon(self, beacon: Beacon, sender: str, now: float) -> CellAppeared | NodeEntered | None:
        known = self.neighbours.get(sender)
        was_member = known is not None and known.cell == self.cell
        changed = super().on_beacon(beacon, sender, now)
        if isinstance(beacon, LinkBeacon) and sender in self.neighbours:
            self.links[sender] = beacon.links & 0xFF
        last_heard_at = self.lost_members.pop(sender, -math.inf)
        if changed is None and not was_member and beacon.cell == self.cell:
            # It is back, or its fresh beacon was lost.
            return NodeEntered(sender, last_heard_at)
        if isinstance(changed, CellAppeared) and changed.cell in self.lost_cells:
            return None
        return changed

    def on_beacon_timer(self, now: float) -> list[Effect]:
        self.lost_members = {node: at for node, at in self.lost_members.items() if now - at < RETURN_S}
        self.lost_cells = {cell: at for cell, at in self.lost_cells.items() if now - at < RETURN_S}
        return super().on_beacon_timer(now)

    def move_to(self, position: Position) -> Cell | None:
        left = super().move_to(position)
        if left is not None:
            self.lost_members.clear()
            self.lost_cells.clear()
        return left

    def forget(self, node: str) -> None:
        known = self.neighbours.get(node)
        if known is not None and known.cell == self.cell:
            self.lost_members[node] = known.heard_at
        super().forget(node)
        self.links.pop(node, None)
        if known is not None and known.cell not in self.members:
            self.lost_cells[known.cell] = known.heard_at

    def shared_neighbourhood(self) -> int:
        """The neighbouring cells that some member of this cell hears, one bit a direction."""
        bits = self.neighbourhood
        for member in self.members.get(self.cell, ()):
            bits |= self.links.get(member, 0)
        return bits

    def cells_around(self, target: Cell) -> list[str]:
        around = sorted(cell for cell in self.members if cell != self.cell and cells.adjacent(cell, target))
        return [self._latest(self.members[cell]) for cell in around]

    def _next_hop(self, packet: RoutedPacket, walk: Walk | None, now: float) -> Send | Drop | RoutedPacket:
        """Greedily, then around the face; to the node itself as soon as it is heard."""
        heading = packet.heading
        if not 0 <= packet.hops < self.settings.hop_limit:
            return lost(packet, DropReason.HOP_LIMIT)
        if heading.node in self.neighbours:
            return sent(heading.node, packet, Heading(heading.target, heading.node))
        least = rank(self.cell, heading.target)
        if walk is not None:
            least = min(least, rank(walk.entry, heading.target))
        if peer := self._closer_peer(heading.target, least):
            return sent(peer, packet, Heading(heading.target, heading.node))
        return self._around(packet, walk, now)

    def _closer_peer(self, target: Cell, least: tuple[int, int, int]) -> str:
        """A neighbour whose cell ranks before `least`, else one that hears such a cell; empty if there is none."""
        own = {peer: found for peer, known in self.neighbours.items() if (found := rank(known.cell, target)) < least}
        ahead = {} if own else {peer: self._rank_ahead(peer, target) for peer in self.neighbours}
        closer = own or {peer: found for peer, found in ahead.items() if found < least}
        best = min(closer.values(), default=least)
        return self._latest(peer for peer, found in closer.items() if found == best) if closer else ""

    def _rank_ahead(self, peer: str, target: Cell) -> tuple[int, int, int]:
        """The best rank among the cells that a neighbour hears around its own."""
        bits, cell = self.links.get(peer, 0), self.neighbours[peer].cell
        around = (towards(cell, direction) for direction in range(8) if bits >> direction & 1)
        return min((rank(one, target) for one in around), default=rank(cell, target))

    def _latest(self, peers: Iterable[str]) -> str:
        """The one that was heard last: it is the least likely to have moved away."""
        return max(peers, key=lambda peer: (self.neighbours[peer].heard_at, peer))

    def _around(self, packet: RoutedPacket, walk: Walk | None, now: float) -> Send | Drop | RoutedPacket:
        """At a local minimum, or on a walk: the next step around the face, over another member if need be."""
        heading, bits = packet.heading, self.shared_neighbourhood()
        if cells.adjacent(self.cell, heading.target):
            # `cells_around` asks the other cells around the target; a node that is not heard here is not found by
            # walking around its cell.
            return self._arrived(packet)
        came_from = None if walk is None else cells.direction_to(self.cell, walk.at)
        perimeter = None
        if walk is not None and came_from is not None:
            perimeter = Perimeter(walk.entry, walk.first)
        direction, onward = cells.step(self.cell, bits, heading.target, perimeter, came_from or 0)
        if direction == cells.HOME or onward is None:
            if perimeter is not None:
                self.homes[heading.target] = now
            return self._arrived(packet)
        begins = onward is not perimeter
        steps = 1 if begins or walk is None else walk.steps + 1
        if begins and self._need_not_walk(heading, now):
            return self._arrived(packet)
        if walk is not None and steps > self.settings.walk_limit:
            return self._end_walk(packet, walk, now)
        peers = list(self.members.get(towards(self.cell, direction), ()))
        if not peers:
            # Another member hears that cell: it takes the same step.
            over = [node for node in self.others() if self.links.get(node, 0) >> direction & 1]
            return sent(self._latest(over), packet, heading) if over else self._arrived(packet)
        before = None if begins or walk is None else walk.at
        mark = (self.cell, direction)
        taken = Walk(*onward, at=self.cell, before=before, steps=steps, mark=mark)
        return sent(self._latest(peers), packet, Heading(heading.target, heading.node, taken))

    def _end_walk(self, packet: RoutedPacket, walk: Walk, now: float) -> Send | Drop | RoutedPacket:
        """Too long a face: the local minimum where the walk began is taken for the home cell."""
        if packet.heading.node or self.cell == walk.entry:
            return self._arrived(packet)
        returning = msgspec.structs.replace(packet, heading=Heading(walk.entry))
        return self._next_hop(returning, None, now)

    def _arrived(self, packet: RoutedPacket) -> Send | Drop | RoutedPacket:
        """A packet for a node that nobody here hears asks one other member of the cell, then is lost."""
        heading, others = packet.heading, self.others()
        if heading.node and heading.walk is None and others and self.cell == heading.target:
            marked = Walk(self.cell, 0, at=self.cell, before=None, steps=self.settings.walk_limit, mark=(self.cell, 0))
            asked = msgspec.structs.replace(heading, walk=marked)
            return sent(self.random.choice(others), packet, asked)
        return super()._arrived(packet)
