"""Reading settings from tables: every mistake is reported with file, key and way out."""

import math
import pickle
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import field

from earshot.errors import ScenarioError, SettingsError
from earshot.filters import Filter
from earshot.geometry import Area, Circle, Position
from earshot.settings import KindTable, NotNegative, SettingsProblem, SettingsTable, unit_of
from earshot.simulation.draws import Span
from earshot.simulation.media.links import LinkScript, Rotation
from earshot.simulation.settings_reader import (
    AreaSetting,
    FilterSetting,
    ShapeSetting,
    SpanSetting,
    Where,
    as_table,
    content_hash,
    read,
    to_json,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(SettingsTable, frozen=True):
    size_bytes: int = 1
    ratio: float = 0.5


class Square(KindTable, frozen=True, tag="square"):
    side_m: float = 1.0


class Disc(KindTable, frozen=True, tag="disc"):
    radius_m: float


class Outer(SettingsTable, frozen=True):
    range_m: NotNegative
    name: str = "x"
    on: bool = False
    mode: Literal["fast", "slow"] = "fast"
    colour: Colour = Colour.RED
    speed_m_s: SpanSetting = Span(1, 2)
    at: Position | None = None
    shape: ShapeSetting = Circle(10)
    area: AreaSetting | None = None
    wanted: FilterSetting | None = None
    corners: tuple[tuple[float, float], ...] = ()
    box_m: tuple[float, float] | None = None
    inner: Inner = Inner()
    inners: dict[str, Inner] = field(default_factory=dict)
    many: tuple[Inner, ...] = ()
    either: Square | Disc | None = None
    picked: Square | Disc = Square()
    who: str | tuple[str, ...] = "all"
    file: Path | None = None

    def validate(self) -> None:
        if self.name == "":
            raise SettingsError("there must be a name")


HERE = Where("town.toml", "medium")


def outer(**table: Any) -> Outer:
    return read(Outer, {"range_m": 100, **table}, HERE)


def test_a_table_becomes_its_settings_class() -> None:
    made = outer(
        name="n",
        on=True,
        mode="slow",
        colour="blue",
        speed_m_s=[3, 4],
        at=[1, 2],
        shape="circle:50m",
        area={"shape": "circle:50m", "at": [5, 6]},
        wanted="Siren: speed > 10",
        corners=[[0, 0], [1, 2]],
        box_m=[1, 2],
        inner={"size_bytes": 3},
        inners={"a": {"ratio": 1}},
        many=[{"size_bytes": 4}],
        either={"kind": "disc", "radius_m": 2},
        picked={"kind": "disc", "radius_m": 3},
        who=["a", "b"],
    )
    assert made == Outer(
        range_m=100.0,
        name="n",
        on=True,
        mode="slow",
        colour=Colour.BLUE,
        speed_m_s=Span(3.0, 4.0),
        at=Position(1.0, 2.0),
        shape=Circle(50.0),
        area=Area(Circle(50.0), Position(5.0, 6.0)),
        wanted=Filter.parse("Siren: speed > 10"),
        corners=((0.0, 0.0), (1.0, 2.0)),
        box_m=(1.0, 2.0),
        inner=Inner(size_bytes=3),
        inners={"a": Inner(ratio=1.0)},
        many=(Inner(size_bytes=4),),
        either=Disc(2.0),
        picked=Disc(3.0),
        who=("a", "b"),
    )
    assert read(Outer, as_table(made), HERE) == made
    assert read(Outer, as_table(made, sparse=True), HERE) == made


def test_short_forms() -> None:
    assert outer(speed_m_s=3).speed_m_s == Span(3.0, 3.0)
    assert outer(picked="square").picked == Square()
    assert outer(area="circle:50m at 5,6").area == Area(Circle(50.0), Position(5.0, 6.0))
    assert outer(area="circle:50m").area == Area(Circle(50.0), Position(0.0, 0.0))
    assert outer(inner={"size_bytes": 3.0}).inner == Inner(3)
    assert as_table(Outer(range_m=1.0), sparse=True) == {"range_m": 1.0}


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"rang_m": 1}, "medium.rang_m: no such key; did you mean range_m (metres)?"),
        ({"range": 200}, "medium.range: lacks its unit; write range_m (metres)"),
        ({"speed": 2}, "medium.speed: lacks its unit; write speed_m_s (metres a second)"),
        ({"range_km": 1}, "medium.range_km: no such key; did you mean range_m (metres)?"),
        ({"inner": {"size": 1}}, "medium.inner.size: lacks its unit; write size_bytes (bytes)"),
        ({"inner": {"zzz": 1}}, "medium.inner.zzz: no such key; there are: ratio, size_bytes"),
        ({"range_m": -1}, "medium.range_m: must not be negative, got -1"),
        ({"range_m": "far"}, "medium.range_m: must be a number of metres, got the text 'far'"),
        ({"range_m": True}, "medium.range_m: must be a number of metres, got the boolean true"),
        ({"range_m": math.nan}, "medium.range_m: must be a number of metres, got nan"),
        ({"name": 3}, "medium.name: must be a text, got the number 3"),
        ({"name": ""}, "medium: there must be a name"),
        ({"on": 1}, "medium.on: must be true or false, got the number 1"),
        ({"mode": "fats"}, "medium.mode: no such choice as 'fats'; did you mean 'fast'?"),
        ({"mode": "zzz"}, "medium.mode: no such choice as 'zzz'; there are: fast, slow"),
        ({"colour": "rod"}, "medium.colour: no such choice as 'rod'; did you mean 'red'?"),
        ({"speed_m_s": [1, 2, 3]}, "medium.speed_m_s: must be a number or [low, high], got a list of 3"),
        ({"speed_m_s": [2, 1]}, "medium.speed_m_s: a span is [low, high], got [2, 1]"),
        ({"speed_m_s": [1, "x"]}, "medium.speed_m_s[1]: must be a number of metres a second, got the text 'x'"),
        ({"at": [1]}, "medium.at: must be a list of 2 values, got 1"),
        ({"at": 1}, "medium.at: must be a list, got the number 1"),
        ({"shape": "blob"}, "medium.shape: cannot read the shape 'blob'"),
        ({"area": {"at": [0, 0]}}, "medium.area.shape: is missing"),
        ({"area": {"shap": "circle:5m"}}, "medium.area.shap: no such key; did you mean shape?"),
        ({"area": 3}, "medium.area: must be a table as in { shape"),
        ({"wanted": "price <"}, "medium.wanted: "),
        ({"corners": [[0, 0], [1]]}, "medium.corners[1]: must be a list of 2 values, got 1"),
        ({"inner": 3}, "medium.inner: must be a table, got the number 3"),
        ({"inners": [1]}, "medium.inners: must be a table, got a list"),
        ({"inners": {"a": {"ratio": "x"}}}, "medium.inners.a.ratio: must be a number, got the text 'x'"),
        ({"many": [{"size_bytes": 1.5}]}, "medium.many[0].size_bytes: must be a whole number, got the number 1.5"),
        ({"either": {"radius_m": 1}}, "medium.either.kind: is missing; there are: square, disc"),
        ({"picked": {"kind": "dsc"}}, "medium.picked.kind: no such choice as 'dsc'; did you mean 'disc'?"),
        ({"picked": {"kind": "disc"}}, "medium.picked.radius_m: is missing; it is in metres"),
        ({"picked": 3}, "medium.picked: must be a table with a kind, got the number 3"),
        ({"either": {"kind": "disc", "side_m": 1}}, "medium.either.side_m: no such key; there are: radius_m"),
        ({"who": 3}, "medium.who: must be a text or a list, got the number 3"),
        ({"file": "nowhere.csv"}, "medium.file: no such file: "),
    ],
)
def test_an_error_names_file_and_key(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        outer(**table)
    assert str(caught.value).startswith(f"town.toml: {problem}")


def test_a_missing_key_and_a_missing_table_are_reported() -> None:
    with pytest.raises(ScenarioError, match=r"town.toml: medium.range_m: is missing; it is in metres"):
        read(Outer, {}, HERE)
    with pytest.raises(ScenarioError, match=r"town.toml: medium: must be a table, got the number 3"):
        read(Outer, 3, HERE)


def test_an_error_names_the_file_that_the_key_came_from() -> None:
    where = Where("child.toml", origins={"inner.ratio": "base.toml", "picked.kind": "base.toml"})
    with pytest.raises(ScenarioError, match=r"base.toml: inner.ratio: must be a number, got the text 'x'"):
        read(Outer, {"range_m": 1, "inner": {"ratio": "x"}}, where)
    with pytest.raises(ScenarioError, match=r"base.toml: picked.radius_m: is missing"):
        read(Outer, {"range_m": 1, "picked": {"kind": "disc"}}, where)
    with pytest.raises(ScenarioError, match=r"child.toml: range_m: must be a number"):
        read(Outer, {"range_m": "x"}, where)


def test_an_error_survives_pickling() -> None:
    with pytest.raises(ScenarioError) as caught:
        outer(on=1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_a_file_is_found_from_its_folder_and_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1")
    (tmp_path / "b.csv").write_text("1")
    where = Where("town.toml", folder=tmp_path)
    one = read(Outer, {"range_m": 1, "file": "a.csv"}, where)
    other = read(Outer, {"range_m": 1, "file": "b.csv"}, where)
    assert one.file == (tmp_path / "a.csv").resolve()
    assert as_table(one)["file"] == str((tmp_path / "a.csv").resolve())
    assert as_table(one, by_content=True) == as_table(other, by_content=True)
    (tmp_path / "b.csv").write_text("2")
    assert as_table(one, by_content=True) != as_table(other, by_content=True)


def test_a_folder_is_known_by_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text("<a/>")
    before = content_hash(tmp_path)
    (tmp_path / "x.xml").rename(tmp_path / "y.xml")
    assert content_hash(tmp_path) != before
    with pytest.raises(ScenarioError, match="no such file"):
        content_hash(tmp_path / "gone")


def test_units_are_read_off_names() -> None:
    assert [unit_of(name) for name in ("range_m", "speed_m_s", "rate_per_s", "latency_s_per_km", "m", "count")] == [
        "metres",
        "metres a second",
        "a second",
        "seconds a kilometre",
        "",
        "",
    ]


def test_json_is_the_same_for_the_same_values() -> None:
    assert to_json({"b": 1.0, "a": [1, "x"]}) == to_json({"a": [1, "x"], "b": 1.0}) == b'{"a":[1,"x"],"b":1.0}'


def test_sets_are_written_in_order_and_what_no_table_can_have_is_refused() -> None:
    assert as_table(frozenset({"b", "a"})) == ["a", "b"]
    with pytest.raises(TypeError, match="object cannot be written as a table"):
        as_table(object())


def test_short_forms_are_written_out_in_lists_of_tables_too() -> None:
    turn = {"links": [["a", "b"]], "interval_s": 5, "together": 1.0}
    (found,) = read(LinkScript, {"rotations": [turn]}, Where("t")).rotations
    assert found == Rotation((("a", "b"),), 5.0, together=1)
    assert type(found.together) is int


def test_a_problem_names_its_key_if_it_has_one_and_survives_a_change_of_process() -> None:
    one, whole = SettingsProblem("medium.range_m", "must be positive"), SettingsProblem("", "a table is missing")
    assert (str(one), str(whole)) == ("medium.range_m: must be positive", "a table is missing")
    again = pickle.loads(pickle.dumps(one))
    assert (str(again), again.key, again.sentence) == (str(one), "medium.range_m", "must be positive")
