"""CoDD's aggregate filter queries, kept up the tree (figures 3 and 5, ADD_QUERY and REMOVE_QUERY).

An added query goes up to the source. On the way each node sends down what its holder has missed since
a given number, and a node that meets its own name on the query's path knows that it is below itself.
The source's word that it is registered goes back along the path. A removed query goes up only as far
as nobody else wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from earshot.protocols.codd.dissemination_tree import Child, Tree
from earshot.protocols.codd.packets import NEW, AddQuery, Aggregate, Registered, RemoveQuery
from earshot.protocols.common.filter_answers import read_filter
from earshot.records import DropReason

if TYPE_CHECKING:
    from earshot.protocols.codd.machine import Codd

MOST_EARLY = 64


class Queries:
    """What of aggregates is said between parents and children."""

    def __init__(self, codd: Codd) -> None:
        self.codd = codd

    def readable(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Filters from a peer, without those that are none."""
        found = tuple(text for text in texts if read_filter(text) is not None)
        if len(found) < len(texts):
            self.codd.drop(DropReason.MALFORMED_FILTER)
        return found

    # To the parent.

    def add(self, tree: Tree, texts: Sequence[str], since: int, path: tuple[str, ...]) -> None:
        """Pass a query up; `path` ends with this node. Without a parent it is told with the next bond."""
        if tree.is_root:
            return
        if path[0] != self.codd.node:
            tree.pending[path[0]] = since
        if tree.parent:
            tree.version += 1
            self.codd.send(tree.parent, AddQuery(tree.id, tree.version, tuple(texts), since, path))

    def remove(self, tree: Tree, texts: Sequence[str]) -> None:
        if texts and tree.parent:
            tree.version += 1
            self.codd.send(tree.parent, RemoveQuery(tree.id, tree.version, tuple(texts)))

    def change_own(self, tree: Tree, own: Sequence[str]) -> None:
        """The node's own query has changed."""
        if tuple(own) == tree.own:
            return
        new, gone = tree.replace_own(own)
        if new:
            self.add(tree, new, NEW, (self.codd.node,))
        self.remove(tree, gone)

    def register_again(self, tree: Tree, now: float) -> None:
        """The source has not answered: tell it again."""
        tree.registering_since = now
        self.add(tree, sorted(tree.wants.holders), tree.since, (self.codd.node,))

    # From children.

    def on_add_query(self, packet: AddQuery, tree: Tree, sender: str, now: float) -> None:
        child = self._in_turn(packet, tree, sender)
        if child is not None:
            self._add(packet, tree, sender, child, now)
            self._early_ones(tree, sender, child, now)

    def on_remove_query(self, packet: RemoveQuery, tree: Tree, sender: str, now: float) -> None:
        child = self._in_turn(packet, tree, sender)
        if child is not None:
            self._remove(packet, tree, child)
            self._early_ones(tree, sender, child, now)

    def _in_turn(self, packet: AddQuery | RemoveQuery, tree: Tree, sender: str) -> Child | None:
        """The child, where this is the next of its queries; one that came early waits."""
        child = tree.children.get(sender)
        if child is None or child.guest or packet.version <= child.version:
            return None
        if packet.version > child.version + 1:
            if len(child.early) < MOST_EARLY:
                child.early[packet.version] = packet
            return None
        child.version = packet.version
        return child

    def _early_ones(self, tree: Tree, sender: str, child: Child, now: float) -> None:
        while (packet := child.early.pop(child.version + 1, None)) is not None:
            child.version += 1
            if isinstance(packet, AddQuery):
                self._add(packet, tree, sender, child, now)
            else:
                self._remove(packet, tree, child)

    def _add(self, packet: AddQuery, tree: Tree, sender: str, child: Child, now: float) -> None:
        codd = self.codd
        if codd.node in packet.path:
            codd.membership.below_itself(tree, now)
            return
        texts = self.readable(packet.texts)
        new = [text for text in texts if text not in child.wants]
        child.wants.update(dict.fromkeys(new))
        tree.wants.hold(new)
        if packet.path == (sender,):
            child.own |= frozenset(new)
        gone = self.no_longer_guest(tree, packet.path)
        if packet.since > NEW:
            codd.send_missed(tree, sender, child, texts, packet.since)
        if tree.is_root:
            codd.send(sender, Registered(tree.id, packet.path, tree.number))
        else:
            self.add(tree, texts, packet.since, (*packet.path, codd.node))
        self.remove(tree, gone)

    def no_longer_guest(self, tree: Tree, path: Sequence[str]) -> list[str]:
        """The query's origin has come below: it need not be held a place any more."""
        guest = tree.children.get(path[0])
        return tree.give_up(path[0]) if guest is not None and guest.guest else []

    def _remove(self, packet: RemoveQuery, tree: Tree, child: Child) -> None:
        held = [text for text in packet.texts if text in child.wants]
        for text in held:
            del child.wants[text]
        child.own -= frozenset(held)
        self.remove(tree, tree.wants.release(held))

    # From the source, back along the path.

    def on_registered(self, packet: Registered, tree: Tree, sender: str) -> None:
        if sender != tree.parent or not packet.path or packet.path[-1] != self.codd.node:
            return
        below = packet.path[:-1]
        if below:
            tree.pending.pop(below[0], None)
            if below[-1] in tree.children:
                self.codd.send(below[-1], Registered(tree.id, below, packet.number))
        else:
            tree.registering = False
        if tree.complete == NEW:  # from here on everything counts, if only for those below
            tree.complete = packet.number

    # Queries that got lost.

    def on_get_aggregate(self, tree: Tree, sender: str) -> None:
        if sender == tree.parent:
            self.codd.send(sender, Aggregate(tree.id, tree.version, tree.own, tuple(sorted(tree.wants.holders))))

    def on_aggregate(self, packet: Aggregate, tree: Tree, sender: str) -> None:
        child = tree.children.get(sender)
        if child is None or child.guest or packet.version < child.version:
            return
        wants = dict.fromkeys(self.readable(packet.wants))
        new = [text for text in wants if text not in child.wants]
        old = [text for text in child.wants if text not in wants]
        child.own, child.wants, child.version = frozenset(packet.own), wants, packet.version
        child.early = {version: early for version, early in child.early.items() if version > packet.version}
        fresh, gone = tree.wants.hold(new), tree.wants.release(old)
        if fresh:
            self.add(tree, fresh, NEW, (sender, self.codd.node))
        self.remove(tree, gone)
