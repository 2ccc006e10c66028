"""CoDD's keep-alives (section 3.2): parents and children tell each other that they are there, and how far
documents and queries have come, so that what got lost is noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earshot.protocols.codd.dissemination_tree import Tree
from earshot.protocols.codd.packets import Answer, GetAggregate, KeepAlive, Leave, Resend

if TYPE_CHECKING:
    from earshot.protocols.codd.machine import Codd


class KeepAlives:
    """A node's keep-alives, for all its trees."""

    def __init__(self, codd: Codd) -> None:
        self.codd = codd
        self.running = False

    def begin(self, now: float) -> None:
        """The node is in a tree: speak from now on."""
        if not self.running:
            self.running = True
            self.codd.start_timer(
                "alive", at=now + self.codd.settings.keep_alive_s * self.codd.random.uniform(0.5, 1.0)
            )

    def tick(self, now: float) -> None:
        """Section 3.2: one message a peer, for all trees; and see who has been silent."""
        codd = self.codd
        down: dict[str, list[tuple[str, int, int]]] = {}
        up: dict[str, list[tuple[str, int]]] = {}
        for tree in list(codd.trees.values()):
            self.see_who_is_silent(tree, now)
            for name, child in tree.children.items():
                if not child.guest:
                    child.forget_sent(codd.settings.held_documents)
                    down.setdefault(name, []).append((tree.id, tree.complete, child.link))
            if tree.parent:
                up.setdefault(tree.parent, []).append((tree.id, tree.version))
            tree.wanted.forget(codd.settings.window_documents)
        for peer in sorted({*down, *up}):
            codd.send(peer, KeepAlive(tuple(down.get(peer, ())), tuple(up.get(peer, ()))))
        if codd.trees:
            codd.start_timer("alive", at=now + codd.settings.keep_alive_s)
        else:
            self.running = False

    def see_who_is_silent(self, tree: Tree, now: float) -> None:
        codd = self.codd
        silence_s = codd.settings.silence_s
        silent = [name for name, child in tree.children.items() if not child.guest and now - child.heard_at > silence_s]
        for name in silent:
            codd.queries.remove(tree, tree.give_up(name))
        if tree.parent and now - tree.parent_heard_at > silence_s:
            codd.membership.orphaned(tree, now)
        elif tree.parent and tree.registering and now - tree.registering_since > silence_s:
            codd.queries.register_again(tree, now)
        elif not tree.is_in:
            codd.membership.see_to(tree, now)

    def on_keep_alive(self, packet: KeepAlive, sender: str, now: float) -> None:
        codd = self.codd
        for id, complete, link in packet.down:
            tree = codd.trees.get(id)
            if tree is None or tree.parent != sender:
                codd.send(sender, Leave(id))
                continue
            tree.parent_heard_at = now
            if missing := tree.missing_links(link):
                codd.send(sender, Resend(id, missing))
            else:
                tree.completed(complete)
        for id, version in packet.up:
            tree = codd.trees.get(id)
            child = None if tree is None else tree.children.get(sender)
            if tree is None or child is None or child.guest:
                codd.send(sender, Answer(id, 0, accepted=False))
                continue
            child.heard_at = now
            if version > child.version:
                codd.send(sender, GetAggregate(id))
