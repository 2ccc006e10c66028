"""Packed data reads back as it was written."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from earshot.view.world import TYPES, pack, unpack

KINDS = st.sampled_from(sorted(TYPES))
COLUMNS = st.dictionaries(st.text(max_size=8), KINDS.flatmap(lambda kind: arrays.arrays(kind, st.integers(0, 20))))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), COLUMNS)
def test_what_was_packed_comes_out(meta: dict[str, object], columns: dict[str, np.ndarray]) -> None:
    packed = pack(meta, columns)
    reported, found = unpack(packed)
    assert reported == meta
    assert {name: (one.dtype.name, one.tobytes()) for name, one in found.items()} == {
        name: (one.dtype.name, one.tobytes()) for name, one in columns.items()
    }
    assert pack(meta, columns) == packed


def test_every_array_begins_at_a_multiple_of_eight_bytes_as_the_page_needs_it() -> None:
    columns = {str(count): np.ones(count, dtype=np.uint8) for count in range(1, 18)}
    whole = gzip.decompress(pack({"a": 1}, columns))
    length = int.from_bytes(whole[:4], "little")
    begins = [at for _, _, at in json.loads(whole[4 : 4 + length])["arrays"].values()]
    assert (4 + length) % 8 == 0
    assert begins == [sum(-(-count // 8) * 8 for count in range(1, last)) for last in range(1, 18)]


def test_a_type_no_page_reads_is_refused() -> None:
    with pytest.raises(KeyError):
        pack({}, {"long": np.zeros(3, dtype=np.int64)})
