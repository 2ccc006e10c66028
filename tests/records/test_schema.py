"""A live node's record has every column, and says nothing where a column does not apply."""

import math

import msgspec
import pytest

from earshot.records.schema import COLUMNS, Record


def test_empty_columns_are_minus_one_nothing_or_no_number() -> None:
    row = Record(1.5, "a", "join").row()
    assert list(row) == list(COLUMNS)
    assert math.isnan(row.pop("x_m"))
    assert math.isnan(row.pop("y_m"))
    assert row == {
        "time": 1.5, "node": "a", "kind": "join", "transmission": -1, "packet": "", "bytes": -1, "peer": "",
        "event": "", "subscription": "", "hops": -1, "detail": "",
    }  # fmt: skip


def test_places_stay_numbers() -> None:
    row = Record(1.5, "a", "position", x_m=0.0, y_m=-2.0).row()
    assert (row["x_m"], row["y_m"]) == (0.0, -2.0)


@pytest.mark.parametrize("name", ["bytes", "hops"])
@pytest.mark.parametrize("value", [2**31 - 1, 2**31, -(2**31), -(2**31) - 1])
def test_counts_fit_into_32_bits(name: str, value: int) -> None:
    text = msgspec.json.encode({"time": 1.0, "node": "a", "kind": "send", name: value})
    if value in (2**31 - 1, -(2**31)):
        assert getattr(msgspec.json.decode(text, type=Record), name) == value
    else:
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=Record)


def test_what_is_empty_is_not_written() -> None:
    assert msgspec.json.encode(Record(1.0, "a", "leave")) == b'{"time":1.0,"node":"a","kind":"leave"}'
