"""Digests: which of its events a node holds, as a Bloom filter with a salt and a span of event times.

A digest may claim an event that its node lacks, with a chance of 2 % at 8 bits an event. The salt changes every
few seconds, so that the next digest makes other mistakes. It never denies an event that its node holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from math import floor
from typing import NamedTuple

HASHES = 4
SALT_S = 8.0
_CYCLE = 1 << 16
_AHEAD = 4 * 60
"Clocks may differ by a minute."


class DigestSpan(NamedTuple):
    """From `since` until before `until`, in quarters of a second."""

    since: int
    until: int

    def holds(self, quarter: int) -> bool:
        return self.since <= quarter < self.until


FARTHEST_S = 1e12
"Clocks read less than this: 30,000 years."


def quarter_of(time: float) -> int:
    """The quarter of a second in which this time lies; a hostile time is taken to the end of all clocks."""
    if -FARTHEST_S < time < FARTHEST_S:
        return floor(4.0 * time)
    return floor(4.0 * min(max(time, -FARTHEST_S), FARTHEST_S))


def wrapped(quarter: int) -> int:
    """As a hello carries it."""
    return quarter % _CYCLE


def unwrapped(since: int, length: int, now: float) -> DigestSpan:
    """The span that a hello means: of all times that it could be, the last one that is not ahead of us."""
    newest = quarter_of(now) + _AHEAD
    begins = newest - (newest - since) % _CYCLE
    return DigestSpan(begins, begins + (length or 2 * _CYCLE))


def salt_at(time: float) -> int:
    return int(time // SALT_S) & 0xFF


def digest_size(events: int, bits_an_event: int, most_bytes: int) -> int:
    """In bytes; in steps of 8, so that neighbours share sizes. No events: no bytes."""
    return min(-(-events * bits_an_event // 64) * 8, most_bytes)


@lru_cache(maxsize=1 << 16)
def mask_of(event_id: str, salt: int, size_bytes: int) -> int:
    """The bits that an event sets in a digest of this size. (Kept: every neighbour asks for it again.)"""
    hashed = int.from_bytes(blake2b(event_id.encode(), digest_size=2 * HASHES, salt=bytes([salt])).digest(), "big")
    if not size_bytes:
        return 0
    bits, mask = 8 * size_bytes, 0
    for _ in range(HASHES):
        mask |= 1 << ((hashed & 0xFFFF) * bits >> 16)
        hashed >>= 16
    return mask


def make_digest(event_ids: Iterable[str], salt: int, size_bytes: int) -> bytes:
    """The digest of these events; empty where it has no bytes."""
    bits = 0
    for event_id in event_ids:
        bits |= mask_of(event_id, salt, size_bytes)
    return bits.to_bytes(size_bytes, "big")


class HeldDigest:
    """A digest that arrived."""

    __slots__ = ("bits", "salt", "size_bytes", "span")

    def __init__(self, digest: bytes, salt: int, span: DigestSpan) -> None:
        self.bits = int.from_bytes(digest, "big")
        self.size_bytes = len(digest)
        self.salt = salt
        self.span = span

    def lacks(self, event_id: str) -> bool:
        """Whether its node surely lacks the event, which must lie in the span."""
        if not self.size_bytes:
            return True
        mask = mask_of(event_id, self.salt, self.size_bytes)
        return self.bits & mask != mask
