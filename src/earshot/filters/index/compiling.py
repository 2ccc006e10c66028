"""Inner loops compiled by numba, where it is installed: the extra `fast`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

WORTH_COMPILING = 4096
"So many slots are worth loading a compiler for."


def compiled(loop: Callable[..., Any], *example: Any) -> Callable[..., Any] | None:
    """The same loop, compiled for arguments like these before any event waits for it; None where there is
    no compiler."""
    try:
        from numba import njit
    except ImportError:
        return None
    if sys.byteorder != "little":  # Our words are little-endian everywhere, compiled code takes the machine's own.
        return None
    faster: Callable[..., Any] = njit(cache=True, nogil=True)(loop)
    faster(*example)
    return faster
