"""Tables: which column has which role, and what each row's values become."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from earshot.errors import TraceError
from earshot.traces.sightings import Sightings, TraceOptions
from earshot.traces.tables import (
    MICROSECONDS_FROM,
    MILLISECONDS_FROM,
    NANOSECONDS_FROM,
    TableColumns,
    _arrow_values,
    _filled,
    _is_blank,
    _split,
    _unquoted,
    checked_block,
    csv_header,
    find_columns,
    parse_csv,
)


def roles(names: str, **options: Any) -> dict[str, tuple[str, ...]]:
    return dict(find_columns("t.csv", names.split(","), TraceOptions(**options)).by_role)


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [
        ("node,time,x,y", {}, {"node": ("node",), "time": ("time",), "x": ("x",), "y": ("y",)}),
        ("id,vehicle_id,t,X,Y", {}, {"node": ("vehicle_id",), "time": ("t",), "x": ("X",), "y": ("Y",)}),
        ("time,x,y,lat,lon", {}, {"time": ("time",), "lat": ("lat",), "lon": ("lon",)}),
        ("time,x_m,y_m,lat,lon", {}, {"time": ("time",), "x": ("x_m",), "y": ("y_m",)}),
        ("time,x_m,y,lat,lon", {}, {"time": ("time",), "lat": ("lat",), "lon": ("lon",)}),
        ("time,x,y_m,lat,lon", {}, {"time": ("time",), "lat": ("lat",), "lon": ("lon",)}),
        ("time,x,y,lat,lon", {"columns": {"x": "x"}}, {"time": ("time",), "x": ("x",), "y": ("y",)}),
        ("time,x,y,lat,lon", {"columns": {"y": "x"}}, {"time": ("time",), "x": ("x",), "y": ("x",)}),
        ("time,x,y,lat", {}, {"time": ("time",), "x": ("x",), "y": ("y",)}),
        ("time,x,y", {"geo": True}, {"time": ("time",), "lat": ("y",), "lon": ("x",)}),
        ("time,lat,lon", {"swapped": True}, {"time": ("time",), "lat": ("lon",), "lon": ("lat",)}),
        ("time,x,y", {"geo": True, "swapped": True}, {"time": ("time",), "lat": ("x",), "lon": ("y",)}),
        ("Time,time,x,y", {}, {"time": ("Time",), "x": ("x",), "y": ("y",)}),
        (
            "t,x,y,speed,heading,type,node",
            {"columns": {"node": "type"}},
            {"node": ("type",), "time": ("t",), "x": ("x",), "y": ("y",), "speed": ("speed",),
             "heading": ("heading",), "type": ("type",)},
        ),
    ],
)  # fmt: skip
def test_columns_by_role(names: str, options: dict[str, Any], expected: dict[str, tuple[str, ...]]) -> None:
    found = find_columns("t.csv", names.split(","), TraceOptions(**options))
    assert found.by_role == expected
    assert found.geo == ("lat" in expected)


def test_sumos_travellers_share_roles_unless_a_column_is_given() -> None:
    names = "timestep_time,vehicle_id,person_id,container_id,vehicle_x,person_x,vehicle_y,person_y,vehicle_angle"
    found = roles(names)
    assert found["node"] == ("vehicle_id", "person_id", "container_id")
    assert (found["x"], found["heading"]) == (("vehicle_x", "person_x"), ("vehicle_angle",))
    assert roles(names, columns={"node": "person_id"})["node"] == ("person_id",)
    assert roles(names.replace("timestep_time", "time"))["node"] == ("vehicle_id",)


def test_units_and_further_columns() -> None:
    fast = find_columns("t", ["time", "x", "y", "Speed km/h", "", "driver", "driver"], TraceOptions(others=True))
    assert (fast.speed_factor, fast.others, fast.time_factor) == (1 / 3.6, ("driver",), None)
    plain = find_columns("t", ["time", "x", "y", "speed", "driver"], TraceOptions(time_factor=0.5))
    assert (plain.speed_factor, plain.others, plain.time_factor) == (1.0, (), 0.5)
    assert plain.used == ["time", "x", "y", "speed"]
    assert plain.of("heading") == ()


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(TraceError, match=r"t.csv has no column 'who'; it has node, time"):
        roles("node,time,x,y", columns={"node": "who"})
    with pytest.raises(TraceError, match="could be the time among node, x, y"):
        roles("node,x,y")
    for names in ("time,x,z", "time,y,z", "time,lat,z", "time,lon,z"):
        with pytest.raises(TraceError, match="could be the place among"):
            roles(names)


XY = TableColumns({"time": ("t",), "x": ("x",), "y": ("y",)}, geo=False)
GLOBE = TableColumns({"node": ("n",), "time": ("t",), "lat": ("lat",), "lon": ("lon",)}, geo=True)


def block(columns: TableColumns, time_format: str | None = None, **by_name: Any) -> Sightings:
    count = len(next(iter(by_name.values())))
    return checked_block("/folder/bus.csv.gz", by_name, np.arange(2, count + 2), columns, time_format)


def listed(values: Any) -> list[Any]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def test_a_table_without_nodes_is_one_node_named_after_its_file() -> None:
    found = block(XY, t=["1", "2"], x=["3", "4"], y=["5", "6"])
    assert (list(found.node), found.line.tolist(), found.problem) == (["bus", "bus"], [2, 3], [None, None])
    assert [listed(found.number(name)) for name in ("time", "x_m", "y_m", "lat_deg", "speed_m_s")] == [
        [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [None, None], [None, None],
    ]  # fmt: skip
    assert (found.type, found.others) == (None, None)


def test_each_row_keeps_its_first_problem() -> None:
    found = block(
        GLOBE,
        n=["a", None, " ", "b", "c", "d", "e"],
        t=["1", "soon", "1", "soon", "1", "", "1"],
        lat=["1", "1", "", "north", "north", "1", "91"],
        lon=["1", "1", "1", "1", "", "1", "181"],
    )
    assert found.problem == [
        None, "no node", "no node", "time 'soon' is not a time", "no longitude", "no time",
        "latitude 91 is outside -90..90",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lat", "lon", "problem"),
    [
        ("90", "180", None),
        ("-90", "-180", None),
        ("90.5", "0", "latitude 90.5 is outside -90..90"),
        ("0", "-180.5", "longitude -180.5 is outside -180..180"),
        ("inf", "0", "latitude 'inf' is not a number"),
        ("0", "nan", "longitude 'nan' is not a number"),
    ],
)
def test_places_on_the_globe(lat: str, lon: str, problem: str | None) -> None:
    assert block(GLOBE, n=["a"], t=["1"], lat=[lat], lon=[lon]).problem == [problem]


def times(texts: Any, factor: float | None = None, time_format: str | None = None) -> list[Any]:
    columns = TableColumns(XY.by_role, geo=False, time_factor=factor)
    count = len(texts)
    return listed(block(columns, time_format, t=texts, x=["0"] * count, y=["0"] * count).number("time"))


def test_times_are_seconds_smaller_units_from_1e11_on_or_dates() -> None:
    assert (MILLISECONDS_FROM, MICROSECONDS_FROM, NANOSECONDS_FROM) == (1e11, 1e14, 1e17)
    now_s = 1_700_000_000.0
    assert times([f"{now_s * factor:.0f}" for factor in (1, 1e3, 1e6, 1e9)]) == [now_s] * 4
    assert times(["1e14", "-1e14", "9e13", "1e17", "9e16", ""]) == [1e8, -1e8, 9e10, 1e8, 9e10, None]
    assert times(["99999999999", "1e11", "-1e11", "-5", "1970-01-01T00:00:10Z", " 1970-01-02 "]) == [
        99999999999.0, 1e8, -1e8, -5.0, 10.0, 86400.0,
    ]  # fmt: skip
    assert times(["5", "1e12"], factor=0.5) == [2.5, 5e11]
    assert times(np.array([5.0, 2e11])) == [5.0, 2e8]
    assert times(["02/01/1970", "86400"], time_format="%d/%m/%Y") == [86400.0, None]


def test_speeds_headings_and_types_may_be_missing_without_being_a_problem() -> None:
    columns = TableColumns(
        {**XY.by_role, "speed": ("v",), "heading": ("h",), "type": ("k",)}, geo=False, speed_factor=0.5
    )
    found = block(
        columns, t=["1"] * 3, x=["1"] * 3, y=["1"] * 3, v=["8", "fast", "inf"], h=["90", "", "east"], k=["bus", " ", ""]
    )
    assert (listed(found.number("speed_m_s")), listed(found.number("heading_deg"))) == (
        [4.0, None, None], [90.0, None, None],
    )  # fmt: skip
    assert (found.type, found.problem) == (["bus", None, None], [None, None, None])


def test_only_a_row_without_any_value_is_an_empty_line() -> None:
    found = block(XY, t=["", " ", "1"], x=["", "5", "1"], y=["", "", "1"])
    assert found.problem == ["an empty line", "no time", None]


def test_further_values_are_kept_as_json() -> None:
    columns = TableColumns(XY.by_role, geo=False, others=("line", "crew"))
    found = block(columns, t=["1", "2"], x=["1", "2"], y=["1", "2"], line=["14", " "], crew=np.array([2.0, math.nan]))
    assert found.others == ['{"line": "14", "crew": "2.0"}', None]


def test_blank_values() -> None:
    assert [_is_blank(value) for value in ("", "  ", None, math.nan, "x", 0.0)] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]


def test_the_first_column_with_a_value_counts_in_each_row() -> None:
    columns = TableColumns({"x": ("a", "b", "c")}, geo=False)
    numbers = {"a": np.array([1.0, math.nan, math.nan]), "b": np.array([4.0, 5.0, math.nan]), "c": np.full(3, 9.0)}
    assert listed(_filled(numbers, columns, "x")) == [1.0, 5.0, 9.0]
    texts = {"a": ["1", " ", None], "b": np.array([4.0, 5.0, math.nan]), "c": ["7", "8", "9"]}
    assert _filled(texts, columns, "x") == ["1", "5.0", "9"]


# -- CSV


def test_lines_are_split_with_their_numbers_and_quoted_ones_come_last() -> None:
    raw = [b'a,"1,5",2\r\n', b"b,1,2\n", b"\n", b"c,1\n", b"d,1,2,3\n", b"e,1,2"]
    values, lines, wrong = _split(raw, 7, ",", 3)
    assert values == ["b", "1", "2", "e", "1", "2", "a", "1,5", "2", "", "", ""]
    assert lines.tolist() == [8, 12, 7, 9]
    assert [(one.line, one.problem) for one in wrong] == [
        (10, "2 values for 3 columns"),
        (11, "4 values for 3 columns"),
    ]


def test_only_wrong_lines_leave_no_value() -> None:
    values, lines, wrong = _split([b"a\n"], 2, ",", 3)
    assert (values, lines.tolist(), len(wrong)) == ([], [], 1)


def test_a_value_that_is_too_long_for_csv_is_one_value() -> None:
    long = '"' + "x" * 200_000 + '",2'
    assert _unquoted(long, ",") == [long]
    assert _unquoted('"a,b";c', ";") == ["a,b", "c"]


def table(folder: Path, text: str) -> str:
    path = folder / "t.csv"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("first", "names", "delimiter"),
    [
        ("a,b,c", ["a", "b", "c"], ","),
        (" a ;b, c;d ", ["a", "b, c", "d"], ";"),
        ("a\tb\tc", ["a", "b", "c"], "\t"),
        ('a|"b"|3', ["a", "b", "3"], "|"),
        ("1,b,c", ["1", "b", "c"], ","),
        ("1,2,time", ["1", "2", "time"], ","),
    ],
)
def test_a_header_names_columns(tmp_path: Path, first: str, names: list[str], delimiter: str) -> None:
    assert csv_header(table(tmp_path, f"{first}\r\n1,2,3\n")) == (names, delimiter, True)


@pytest.mark.parametrize("first", ["a,b", "1,2,3", "1,,3", "a b c", "a,,3,"])
def test_a_line_without_three_names_is_no_header(tmp_path: Path, first: str) -> None:
    with pytest.raises(TraceError, match="has no column names in its first line"):
        csv_header(table(tmp_path, f"{first}\n"))


def test_columns_without_names_are_numbered_from_1_where_they_are_given_by_number(tmp_path: Path) -> None:
    path = table(tmp_path, "a,1,2,3\n")
    assert csv_header(path, ["1", "4"]) == (["1", "2", "3", "4"], ",", False)
    for given in ([], ["0"], ["1", "5"], ["node"]):
        with pytest.raises(TraceError, match="has no column names in its first line"):
            csv_header(path, given)


def test_a_piece_of_a_file_has_no_header_and_its_own_line_numbers(tmp_path: Path) -> None:
    path = table(tmp_path, "node,time,x,y\na,1,2,3\nb,4,5,6\n")
    for text, first_line, expected in (
        (b"node,time,x,y\na,1,2,3\nb,4,5,6\n", 1, [("a", 2), ("b", 3)]),
        (b"b,4,5,6\n", 3, [("b", 3)]),
        (b"b,4,5,6\nc,1\n", 9, [("b", 9), (None, 10)]),
    ):
        found = list(parse_csv(io.BytesIO(text), path, TraceOptions(), first_line))
        assert [
            (node, line) for one in found for node, line in zip(one.node, one.line.tolist(), strict=True)
        ] == expected


# -- Parquet


def test_columns_of_arrow_become_texts_or_numbers() -> None:
    moment = pa.array([1_500_000_000, None], pa.timestamp("ns"))
    assert listed(_arrow_values(moment, False)) == [1.5, None]
    assert listed(_arrow_values(pa.array([7, None]), False)) == [7.0, None]
    assert listed(_arrow_values(pa.array([Decimal("1.5"), None]), False)) == [1.5, None]
    assert _arrow_values(pa.array([7, None]), True) == ["7", None]
    assert _arrow_values(pa.array(["a", None]), False) == ["a", None]
    assert _arrow_values(pa.array([True]), False) == ["true"]
    assert _arrow_values(moment, True)[0].startswith("1970-01-01 00:00:01.5")  # type: ignore[union-attr]


def test_speeds_are_in_metres_a_second_where_no_unit_is_named() -> None:
    columns = TableColumns({**XY.by_role, "speed": ("v",)}, geo=False)
    assert listed(block(columns, t=["1"], x=["2"], y=["3"], v=["4.5"]).number("speed_m_s")) == [4.5]
