"""Trust: sealed datagrams, refused replays, limits for each sender, and the peers that were heard.

With a key every datagram is encrypted and authenticated (ChaCha20-Poly1305). All nodes of a network
share it; a second key is accepted while the first is being changed. Each peer has a window of sequence
numbers, which refuses replays. A node that has just started has no windows yet, so old datagrams are
also refused by their time. One address speaks for one name.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from earshot.errors import UsageError
from earshot.geometry import Position
from earshot.live.datagrams import HEADER_BYTES, PLAIN, SEALED, Frame
from earshot.records import DropReason

KEY_BYTES = 32
NONCE_BYTES = 12
SEAL_BYTES = NONCE_BYTES + 16
"What a seal adds to a datagram: a nonce and a tag."


class Refused(Exception):
    """A datagram that is not accepted, and why."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason)
        self.reason = reason


class Seal:
    """Encrypts and decrypts datagrams. Without keys they are sent in plain text."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        for key in keys:
            if len(key) != KEY_BYTES:
                raise UsageError(f"a network key has {KEY_BYTES} bytes, got {len(key)}")
        self._ciphers = [ChaCha20Poly1305(key) for key in keys]
        self._renew()

    @property
    def keyed(self) -> bool:
        return bool(self._ciphers)

    @property
    def overhead_bytes(self) -> int:
        """How many bytes it adds to a frame."""
        return HEADER_BYTES + (SEAL_BYTES if self._ciphers else 0)

    def close(self, frame: bytes) -> bytes:
        """The datagram for a frame."""
        if not self._ciphers:
            return PLAIN + frame
        if self._counter == 2**32:
            self._renew()
        nonce = self._prefix + self._counter.to_bytes(4, "big")
        self._counter += 1
        return SEALED + nonce + self._ciphers[0].encrypt(nonce, frame, SEALED)

    def open(self, datagram: memoryview) -> bytes | memoryview:
        """The frame in a datagram; Refused if it does not belong to this network."""
        header = bytes(datagram[:HEADER_BYTES])
        if header == PLAIN:
            if self._ciphers:
                raise Refused(DropReason.NOT_SEALED)
            return datagram[HEADER_BYTES:]
        if header != SEALED:
            raise Refused(DropReason.NOT_A_DATAGRAM)
        if not self._ciphers:
            raise Refused(DropReason.SEALED)
        nonce = bytes(datagram[HEADER_BYTES : HEADER_BYTES + NONCE_BYTES])
        hidden = bytes(datagram[HEADER_BYTES + NONCE_BYTES :])
        if len(nonce) == NONCE_BYTES:
            for cipher in self._ciphers:
                try:
                    return cipher.decrypt(nonce, hidden, SEALED)
                except InvalidTag:
                    continue
        raise Refused(DropReason.WRONG_KEY)

    def _renew(self) -> None:
        """A nonce is never used twice: it is a random prefix of 8 bytes and a counter."""
        self._prefix = os.urandom(NONCE_BYTES - 4)
        self._counter = 0


def read_keys(path: str | Path) -> tuple[bytes, ...]:
    """The keys in a file, 64 hexadecimal digits in each line. The first one encrypts, all of them decrypt."""
    try:
        lines = Path(path).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the key file {path}: {error}") from None
    try:
        keys = tuple(bytes.fromhex(line) for line in lines)
    except ValueError:
        keys = ()
    if not 1 <= len(keys) <= 2 or any(len(key) != KEY_BYTES for key in keys):
        raise UsageError(
            f"the key file {path} must hold one or two keys, 64 hexadecimal digits a line; make one with: "
            "openssl rand -hex 32"
        )
    return keys


@dataclass(slots=True)
class Window:
    """Which of a sender's sequence numbers have arrived: the highest, and the thousand before it."""

    WIDTH: ClassVar[int] = 1024
    _MASK: ClassVar[int] = (1 << WIDTH) - 1
    _highest: int = -1
    _bits: int = 0

    def fresh(self, sequence: int) -> bool:
        """Whether this number is new; afterwards it is not. A number before the window counts as old."""
        ahead = sequence - self._highest
        if ahead > 0:
            self._bits = (self._bits << ahead | 1) & self._MASK if ahead < self.WIDTH else 1
            self._highest = sequence
            return True
        if -ahead >= self.WIDTH or self._bits >> -ahead & 1:
            return False
        self._bits |= 1 << -ahead
        return True


Address = tuple[str, int]


class RateLimits:
    """Datagrams per second from one address. All addresses that have not sent a valid datagram yet
    share one limit, so that a flood from many ports costs no more than a flood from one port."""

    def __init__(self, per_second: float, addresses: int = 4096) -> None:
        self._per_second = per_second
        self._addresses = addresses
        self._known: OrderedDict[Address, list[float]] = OrderedDict()
        self._strangers = [per_second, 0.0]

    def allows(self, address: Address, now: float) -> bool:
        """Whether one more datagram from this address may be read."""
        bucket = self._known.get(address, self._strangers)
        left = min(self._per_second, bucket[0] + (now - bucket[1]) * self._per_second)
        allowed = left >= 1.0
        bucket[:] = left - allowed, now
        return allowed

    def know(self, address: Address, now: float) -> None:
        """A valid datagram came from this address: from now on it has its own limit."""
        if address in self._known:
            return
        if len(self._known) >= self._addresses:
            self._known.popitem(last=False)
        self._known[address] = [self._per_second, now]


@dataclass(slots=True)
class Peer:
    """One host that was heard."""

    name: str
    address: Address
    life: int
    heard_at: float
    position: Position | None = None
    window: Window = field(default_factory=Window)


class Peers:
    """Peers by name and by address. One address speaks for one name, and one name has one address, until the peer
    has been silent for `expiry_s`. A restarted host has another address and a later start."""

    def __init__(self, expiry_s: float, limit: int = 4096) -> None:
        self.expiry_s = expiry_s
        self._limit = limit
        self._by_name: OrderedDict[str, Peer] = OrderedDict()
        self._by_address: dict[Address, str] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def admit(self, frame: Frame, address: Address, now: float) -> tuple[Peer, bool]:
        """The peer that sent this frame, and whether it is new; Refused if its name or address is another's."""
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
        """The peer of that name, if it has been heard recently."""
        peer = self._by_name.get(name)
        return peer if peer is not None and now - peer.heard_at <= self.expiry_s else None

    def present(self, now: float) -> list[Peer]:
        """All peers that have been heard recently, sorted by name."""
        found = [peer for peer in self._by_name.values() if now - peer.heard_at <= self.expiry_s]
        return sorted(found, key=lambda peer: peer.name)
