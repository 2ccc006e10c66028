"""Small helps for work on Arrow batches inside tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def table_of(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """All of a task's batches as one table; None where there are no rows."""
    import pyarrow as pa

    some = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(some) if some else None


def coded(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Texts as numbers in the texts' own order, and the texts. Nulls are the empty text."""
    import pyarrow.compute as pc

    encoded = pc.fill_null(column, "").combine_chunks().dictionary_encode()
    names = encoded.dictionary.to_pylist()
    by_name = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[by_name] = np.arange(len(names))
    return rank[encoded.indices.to_numpy()], [names[i] for i in by_name]
