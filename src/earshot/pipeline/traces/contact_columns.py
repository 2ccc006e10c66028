"""Contacts as columns of numbers, and the helpers of tuples of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ContactColumns(NamedTuple):
    """One row a contact: nodes a and b, by number, are linked from start to end, both included."""

    a: Ints
    b: Ints
    start: Floats
    end: Floats


Columns = TypeVar("Columns", bound=tuple[Any, ...])


def rows_of(columns: Columns, rows: Any) -> Columns:
    """Some rows of a tuple of columns."""
    return type(columns)(*(column[rows] for column in columns))


def contact_columns(rows: Sequence[tuple[int, int, float, float]]) -> ContactColumns:
    """Rows as columns."""
    a, b, start, end = zip(*rows, strict=True) if rows else ((), (), (), ())
    return ContactColumns(np.array(a, np.int64), np.array(b, np.int64), np.array(start, float), np.array(end, float))


def joined(parts: Sequence[ContactColumns]) -> ContactColumns:
    """All rows of several."""
    columns: list[Any] = [np.concatenate(some) for some in zip(*parts, strict=True)]
    return ContactColumns(*columns)


def no_contacts() -> ContactColumns:
    """No rows."""
    return contact_columns([])
