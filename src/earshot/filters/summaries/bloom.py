"""Bloom filters: sets of texts in few bits, with false positives and never a false negative.

Positions come from a text's 24-bit fingerprint alone, so that an event can carry fingerprints
instead of texts. Sizes are powers of two: a vector folds to half its size without being rebuilt.
Hashes are the same in every process. On the wire a vector is its bits, or the positions of its
few set bits where that is shorter (`summary_bytes.py`).
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from earshot.errors import UsageError

SMALLEST_BITS = 8
LARGEST_BITS = 1 << 16
MOST_HASHES = 16


@dataclass(frozen=True, slots=True)
class BloomShape:
    """A vector's size in bits (m, a power of two) and its number of hashes (k)."""

    bits: int
    hashes: int

    def __post_init__(self) -> None:
        if not (SMALLEST_BITS <= self.bits <= LARGEST_BITS and self.bits.bit_count() == 1):
            raise UsageError(f"bits must be a power of two from {SMALLEST_BITS} to {LARGEST_BITS}, got {self.bits}")
        if not 1 <= self.hashes <= MOST_HASHES:
            raise UsageError(f"hashes must be from 1 to {MOST_HASHES}, got {self.hashes}")

    @classmethod
    def for_rate(cls, items: int, rate: float) -> BloomShape:
        """The shape that holds `items` at a false-positive rate of at most `rate` in the fewest bytes.

        More hashes need fewer bits in memory; fewer hashes leave a vector sparse, and sparse vectors
        are sent compressed. The bytes that are sent count here.
        """
        if items < 1 or not 0.0 < rate < 1.0:
            raise UsageError(f"a vector holds at least 1 item at a rate between 0 and 1, got {items} at {rate}")
        fitting = [
            shape
            for hashes in range(1, MOST_HASHES + 1)
            for bits in (1 << power for power in range(3, 17))
            if (shape := cls(bits, hashes)).expected_rate(items) <= rate
        ]
        if not fitting:
            raise UsageError(f"no vector of {LARGEST_BITS} bits holds {items} items at a rate of {rate}")
        return min(fitting, key=lambda shape: (shape.expected_bytes(items), shape.bits))

    def expected_rate(self, items: int) -> float:
        """The false-positive rate in theory: (1 - e^(-kn/m))^k."""
        return float((1.0 - math.exp(-self.hashes * items / self.bits)) ** self.hashes)

    def expected_bytes(self, items: int) -> float:
        """The approximate size of a vector of `items` when it is sent."""
        fill = 1.0 - math.exp(-self.hashes * items / self.bits)
        if fill <= 0.0 or fill >= 1.0:
            return self.bits / 8
        entropy = -fill * math.log2(fill) - (1 - fill) * math.log2(1 - fill)
        return self.bits * min(1.0, entropy) / 8


@dataclass(frozen=True, slots=True)
class Bloom:
    """A set of fingerprints. A value: `added` and `merged` give new ones."""

    shape: BloomShape
    data: bytes

    @classmethod
    def empty(cls, shape: BloomShape) -> Bloom:
        return cls(shape, bytes(shape.bits // 8))

    @classmethod
    def of(cls, shape: BloomShape, fingerprints: frozenset[int] | set[int]) -> Bloom:
        """The set of these."""
        data = bytearray(shape.bits // 8)
        for fingerprint in fingerprints:
            for position in _positions(fingerprint, shape):
                data[position >> 3] |= 1 << (position & 7)
        return cls(shape, bytes(data))

    def __contains__(self, fingerprint: int) -> bool:
        data, shape = self.data, self.shape
        mask = shape.bits - 1
        if not data[(fingerprint & mask) >> 3] >> (fingerprint & 7) & 1:
            return False
        return all(data[position >> 3] >> (position & 7) & 1 for position in _positions(fingerprint, shape))

    def __bool__(self) -> bool:
        return any(self.data)

    @property
    def fill(self) -> float:
        """The share of bits that are set."""
        return int.from_bytes(self.data, "little").bit_count() / self.shape.bits

    @property
    def rate(self) -> float:
        """The share of absent items that are reported as present: fill^k."""
        return float(self.fill**self.shape.hashes)

    def merged(self, other: Bloom) -> Bloom:
        """The union; of two sizes, at the smaller one."""
        a, b = self, other
        while a.shape.bits > b.shape.bits:
            a = a.folded()
        while b.shape.bits > a.shape.bits:
            b = b.folded()
        if a.shape.hashes != b.shape.hashes:
            raise UsageError(f"vectors of {a.shape.hashes} and of {b.shape.hashes} hashes cannot be merged")
        return Bloom(a.shape, (np.frombuffer(a.data, np.uint8) | np.frombuffer(b.data, np.uint8)).tobytes())

    def folded(self) -> Bloom:
        """The same set in half the bits, with more false positives; unchanged at the smallest size."""
        if self.shape.bits == SMALLEST_BITS:
            return self
        half = len(self.data) // 2
        shape = BloomShape(self.shape.bits // 2, self.shape.hashes)
        low, high = int.from_bytes(self.data[:half], "little"), int.from_bytes(self.data[half:], "little")
        return Bloom(shape, (low | high).to_bytes(half, "little"))


def _positions(fingerprint: int, shape: BloomShape) -> list[int]:
    """Double hashing; an odd stride visits every position of a power of two."""
    mask = shape.bits - 1
    stride = (_mixed(fingerprint) >> 3) | 1
    return [(fingerprint + index * stride) & mask for index in range(shape.hashes)]


def fingerprint(text: str) -> int:
    """24 bits that stand for a text, equal on every machine and in every process."""
    return _mixed(zlib.crc32(text.encode("utf-8", "surrogatepass"))) >> 8


def combined(fingerprints: tuple[int, ...]) -> int:
    """24 bits that stand for several fingerprints in this order."""
    mixed = len(fingerprints)
    for one in fingerprints:
        mixed = _mixed(mixed * 0x01000193 ^ one)
    return mixed >> 8


@lru_cache(maxsize=4096)
def type_key(name: str) -> int:
    """32 bits that stand for an event type's name."""
    key = _mixed(zlib.crc32(name.encode("utf-8", "surrogatepass")) ^ 0x5BD1E995)
    return key or 1


@lru_cache(maxsize=16384)
def name_key(name: str) -> int:
    """16 bits that stand for the name of an element, attribute or field; the low half of its `type_key`."""
    return type_key(name) & 0xFFFF


def _mixed(value: int) -> int:
    """Spread 32 bits so that each depends on all (the finaliser of MurmurHash3)."""
    value &= 0xFFFFFFFF
    value = ((value ^ value >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    value = ((value ^ value >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return value ^ value >> 16
