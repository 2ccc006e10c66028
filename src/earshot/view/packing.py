"""Packing: plain values and arrays of numbers as one piece of bytes that a page unpacks quickly.

Compressed (gzip): four bytes with the length of a JSON text, the text, then the arrays, each on a
multiple of eight bytes. The text has the plain values under "meta" and under "arrays" each array's
type, length and place. The same data give the same bytes at any time.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
TYPES = {"float32": "<f4", "float64": "<f8", "int32": "<i4", "uint16": "<u2", "uint8": "|u1"}


def pack(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The bytes of a page's data."""
    places: dict[str, list[Any]] = {}
    pieces: list[bytes] = []
    at = 0
    for name, array in arrays.items():
        kind = array.dtype.name
        data = np.ascontiguousarray(array, dtype=TYPES[kind]).tobytes()
        places[name] = [kind, len(array), at]
        padding = -len(data) % 8
        pieces += [data, bytes(padding)]
        at += len(data) + padding
    text = msgspec.json.encode({"meta": meta, "arrays": places})
    text += b" " * (-(len(text) + 4) % 8)
    return gzip.compress(len(text).to_bytes(4, "little") + text + b"".join(pieces), compresslevel=6, mtime=0)


def unpack(packed: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `pack` was given."""
    whole = gzip.decompress(packed)
    length = int.from_bytes(whole[:4], "little")
    found = msgspec.json.decode(whole[4 : 4 + length])
    start = 4 + length
    arrays = {
        name: np.frombuffer(whole, dtype=TYPES[kind], count=count, offset=start + at)
        for name, (kind, count, at) in found["arrays"].items()
    }
    return found["meta"], arrays
