"""Garbage collection while machines run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATED = 50_000
"Packets and effects hold no cycles; looking for some every few hundred of them costs a tenth of a run."


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cycles no more often than every so many objects, until the end of the block."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], ALLOCATED), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
