"""Trust: sealed datagrams and refused replays.

With a key every datagram is encrypted and authenticated (ChaCha20-Poly1305). All nodes of a network
share the key; a second key is accepted while the network changes its key. Each datagram has a new random nonce,
so that a forked process or a restored snapshot never uses a nonce again. Each peer has a window of sequence
numbers, which refuses replays. A node that has just started has no windows yet, so it also refuses old datagrams
by their time. Which host may use a name: `peers.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from earshot.errors import UsageError
from earshot.live.datagrams import HEADER_BYTES, PLAIN, SEALED
from earshot.live.private_files import read_text, warn_if_readable
from earshot.records import DropReason
from earshot.records.details import key_ids

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
        self.key_ids = key_ids(keys)
        self.keyed = bool(keys)

    @property
    def overhead_bytes(self) -> int:
        """How many bytes it adds to a frame."""
        return HEADER_BYTES + (SEAL_BYTES if self._ciphers else 0)

    def close(self, frame: bytes) -> bytes:
        """The datagram for a frame."""
        if not self._ciphers:
            return PLAIN + frame
        nonce = os.urandom(NONCE_BYTES)
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


def read_keys(path: str | Path) -> tuple[bytes, ...]:
    """The keys in a file, 64 hexadecimal digits in each line. The first one encrypts, all of them decrypt."""
    lines = read_text(path, "the key file", encoding="ascii").split()
    try:
        keys = tuple(bytes.fromhex(line) for line in lines)
    except ValueError:
        keys = ()
    if not 1 <= len(keys) <= 2 or any(len(key) != KEY_BYTES for key in keys):
        raise UsageError(
            f"the key file {path} must hold one or two keys, 64 hexadecimal digits a line; make one with: "
            "openssl rand -hex 32"
        )
    warn_if_readable(path, "the key file")
    return keys


@dataclass(slots=True)
class Window:
    """Which of a sender's sequence numbers have arrived: the highest, and the thousand before it."""

    WIDTH: ClassVar[int] = 1024
    _MASK: ClassVar[int] = (1 << WIDTH) - 1
    _highest: int = -1
    _bits: int = 0

    def fresh(self, sequence: int) -> bool:
        """Whether this number is new; the window then remembers it. A number before the window counts as old."""
        ahead = sequence - self._highest
        if ahead > 0:
            self._bits = (self._bits << ahead | 1) & self._MASK if ahead < self.WIDTH else 1
            self._highest = sequence
            return True
        if -ahead >= self.WIDTH or self._bits >> -ahead & 1:
            return False
        self._bits |= 1 << -ahead
        return True

    def is_behind(self, sequence: int) -> bool:
        """Whether this number is before the window."""
        return self._highest - sequence >= self.WIDTH


Address = tuple[str, int]
