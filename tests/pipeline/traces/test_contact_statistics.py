"""Statistics of contacts from the row that Spark gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from earshot.pipeline.traces.contact_statistics import SHARES, Spread, _in_one_row, _spread


class Rows:
    """A frame of a few rows."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = rows

    def unionByName(self, other: Rows, allowMissingColumns: bool = False) -> Rows:
        assert allowMissingColumns
        return Rows(*self.rows, *other.rows)

    def collect(self) -> list[Any]:
        return [SimpleNamespace(asDict=lambda row=row: row) for row in self.rows]


def test_frames_of_one_row_become_one_row_without_what_is_null() -> None:
    first, second = Rows({"contacts": 3, "peers": None}), Rows({"contacts": None, "peers": 0})
    assert _in_one_row(first, second) == {"contacts": 3, "peers": 0}  # type: ignore[arg-type]
    assert _in_one_row(Rows({"contacts": None})) == {}  # type: ignore[arg-type]


def test_a_spread_has_its_figures_in_order_and_is_none_where_nothing_was_measured() -> None:
    assert SHARES == (0.5, 0.9, 0.95, 0.99)
    row = {"contact_s mean": 2.0, "contact_s shares": [1.0, 3.0, 4.0, 5.0], "contact_s most": 6.0}
    assert _spread(row, "contact_s") == Spread(mean=2.0, p50=1.0, p90=3.0, p95=4.0, p99=5.0, most=6.0)
    assert _spread(row, "peers") is None
