"""Peers: who has been heard lately, from where, and what of theirs has come before."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from earshot.geometry import Position
from earshot.live.datagrams import Frame
from earshot.live.trust import Address, Refused, Window
from earshot.records import DropReason


@dataclass(slots=True)
class Peer:
    """One of them."""

    name: str
    address: Address
    life: int
    heard_at: float
    position: Position | None = None
    window: Window = field(default_factory=Window)


class Peers:
    """By name and by address: one address speaks for one name, one name for one address, until it has
    been silent for `expiry_s`. A restarted host comes from another address, with a later life."""

    def __init__(self, expiry_s: float, limit: int = 4096) -> None:
        self.expiry_s = expiry_s
        self._limit = limit
        self._by_name: OrderedDict[str, Peer] = OrderedDict()
        self._by_address: dict[Address, str] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def admit(self, frame: Frame, address: Address, now: float) -> tuple[Peer, bool]:
        """The peer this frame is from, now heard, and whether it is new; Refused where another speaks in its name."""
        peer = self._by_name.get(frame.sender)
        new = peer is None or peer.address != address or peer.life != frame.life
        if peer is None or new:
            peer = self._introduce(frame, address, now, peer)
        peer.heard_at = now
        peer.position = frame.position
        return peer, new

    def _introduce(self, frame: Frame, address: Address, now: float, known: Peer | None) -> Peer:
        if known is not None and (
            frame.life < known.life or (frame.life == known.life and now - known.heard_at <= self.expiry_s)
        ):
            raise Refused(DropReason.FORGED_SENDER)
        there = self._by_name.get(self._by_address.get(address, ""))
        if there is not None and there.name != frame.sender and now - there.heard_at <= self.expiry_s:
            raise Refused(DropReason.FORGED_SENDER)
        for old in (known, there):
            if old is not None:
                self._forget(old)
        if len(self._by_name) >= self._limit:
            self._forget(min(self._by_name.values(), key=lambda peer: peer.heard_at))
        window = known.window if known is not None and known.life == frame.life else Window()
        peer = self._by_name[frame.sender] = Peer(frame.sender, address, frame.life, now, frame.position, window)
        self._by_address[address] = frame.sender
        return peer

    def _forget(self, peer: Peer) -> None:
        if self._by_name.get(peer.name) is peer:
            del self._by_name[peer.name]
            self._by_address.pop(peer.address, None)

    def get(self, name: str, now: float) -> Peer | None:
        """The peer of that name, where it has been heard lately."""
        peer = self._by_name.get(name)
        return peer if peer is not None and now - peer.heard_at <= self.expiry_s else None

    def present(self, now: float) -> list[Peer]:
        """All that have been heard lately, by name."""
        found = [peer for peer in self._by_name.values() if now - peer.heard_at <= self.expiry_s]
        return sorted(found, key=lambda peer: peer.name)
