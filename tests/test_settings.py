"""Settings by themselves: bounds in words, keys and units, tables from a command line."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import pytest

from earshot.errors import SettingsError
from earshot.settings import (
    AtLeastOne,
    Count,
    Finite,
    KindTable,
    NotNegative,
    Positive,
    SettingsProblem,
    SettingsTable,
    Share,
    alternatives,
    check_bounds,
    fields_of,
    kind_of,
    kinds_of,
    no_such_choice,
    read_settings,
    shown,
    unit_of,
    unknown_key,
)


class Bounded(SettingsTable, frozen=True):
    range_m: Positive = 1.0
    weight: Positive = 1.0
    rate_per_s: Positive = 1.0
    place_m: Finite = 0.0
    wait_s: NotNegative = 0.0
    share: Share = 0.0
    count: Count = 0
    copies: AtLeastOne = 1
    port: Annotated[int, msgspec.Meta(ge=1024, le=65_535)] = 1024
    loss: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    power: Annotated[float, msgspec.Meta(gt=2)] = 3.0
    ratio: Annotated[float, msgspec.Meta(gt=1, lt=2)] = 1.5
    names: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("a",)
    steps_s: tuple[Positive, ...] = ()
    limit_s: Positive | None = None
    mode: Literal["fast", "slow"] = "fast"

    def validate(self) -> None:
        if self.range_m == 13.0:
            raise SettingsError("range_m brings bad luck")


WRONG: list[tuple[str, Any, str]] = [
    ("range_m", 0.0, "must be a positive number of metres, got 0.0"),
    ("range_m", math.inf, "must be a positive number of metres, got inf"),
    ("range_m", math.nan, "must be a number of metres, got nan"),
    ("range_m", 13.0, "brings bad luck"),
    ("weight", -1.0, "must be positive, got -1.0"),
    ("rate_per_s", 0.0, "must be positive, got 0.0"),
    ("place_m", -math.inf, "must be a finite number of metres, got -inf"),
    ("wait_s", -0.1, "must not be negative, got -0.1"),
    ("share", 1.1, "must be from 0 to 1, got 1.1"),
    ("share", -0.1, "must be from 0 to 1, got -0.1"),
    ("count", -1, "must not be negative, got -1"),
    ("copies", 0, "must be at least 1, got 0"),
    ("port", 80, "must be from 1024 to 65,535, got 80"),
    ("port", 65_536, "must be from 1024 to 65,535, got 65536"),
    ("loss", 1.0, "must be at least 0 and below 1, got 1.0"),
    ("power", 2.0, "must be above 2, got 2.0"),
    ("ratio", 2.0, "must be between 1 and 2, got 2.0"),
    ("names", (), "must have at least 1, got ()"),
    ("limit_s", 0.0, "must be a positive number of seconds, got 0.0"),
    ("limit_s", "soon", "must be a number of seconds, got the text 'soon'"),
    ("mode", "fats", "no such choice as 'fats'; did you mean 'fast'?"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_a_bound_is_reported_in_words_whether_a_table_or_python_has_the_value(
    name: str, value: Any, sentence: str
) -> None:
    with pytest.raises(SettingsError) as built:
        Bounded(**{name: value})
    between = ": " if sentence.startswith("no such") else " "
    assert str(built.value) == f"{name}{between}{sentence}"
    with pytest.raises(SettingsProblem) as read:
        read_settings(Bounded, {name: value})
    assert (read.value.key, read.value.sentence) == (name, sentence)


def test_an_item_of_a_list_is_reported_by_its_place() -> None:
    with pytest.raises(SettingsProblem) as caught:
        read_settings(Bounded, {"steps_s": [1.0, 0.0]})
    assert str(caught.value) == "steps_s[1]: must be a positive number of seconds, got 0.0"


@pytest.mark.parametrize(
    ("name", "value"),
    [("share", 0.0), ("share", 1.0), ("count", 0), ("copies", 1), ("port", 65_535), ("loss", 0.0), ("wait_s", 0.0),
     ("limit_s", None), ("place_m", -1e308), ("power", 2.1), ("mode", "slow")],
)  # fmt: skip
def test_what_a_bound_allows_is_read(name: str, value: Any) -> None:
    assert getattr(read_settings(Bounded, {name: value}), name) == value
    assert getattr(Bounded(**{name: value}), name) == value


# Dataclasses, as protocols have them.


@dataclass(frozen=True, slots=True)
class Options:
    interval_s: Positive
    names: tuple[str, ...] = ()
    text: str = "x"
    some: str | tuple[str, ...] = ""
    made: list[int] = field(default_factory=lambda: [1, 2])

    def __post_init__(self) -> None:
        check_bounds(self)


def test_a_command_line_gives_texts_that_become_numbers_and_lists() -> None:
    given = {"interval_s": "2.5", "names": " a, b ,,c", "text": "a,b", "some": "a,b"}
    assert read_settings(Options, given, strict=False) == Options(2.5, ("a", "b", "c"), "a,b", "a,b")
    with pytest.raises(SettingsProblem, match=r"interval_s: must be a number of seconds, got the text '2\.5'"):
        read_settings(Options, {"interval_s": "2.5"})


def test_a_dataclass_refuses_keys_that_it_does_not_have() -> None:
    with pytest.raises(SettingsProblem, match="interval: lacks its unit; write interval_s"):
        read_settings(Options, {"interval_s": 1.0, "interval": 2})
    with pytest.raises(SettingsProblem, match="interval_s: is missing; it is in seconds"):
        read_settings(Options, {})
    with pytest.raises(SettingsError, match="interval_s must be a positive number of seconds"):
        Options(0.0)


def test_a_key_is_required_or_has_a_default() -> None:
    found = fields_of(Options)
    assert [(name, one.required, one.default) for name, one in found.items()] == [
        ("interval_s", True, None), ("names", False, ()), ("text", False, "x"), ("some", False, ""),
        ("made", False, [1, 2]),
    ]  # fmt: skip
    assert (fields_of(Bounded)["copies"].default, Bounded(copies=5).default_of("copies")) == (1, 1)


# Kinds.


class Square(KindTable, frozen=True, tag="square"):
    side_m: Positive = 1.0


class Disc(KindTable, frozen=True, tag="disc"):
    radius_m: Positive = 1.0


def test_a_table_is_chosen_by_its_kind() -> None:
    assert (Square().kind, kind_of(Disc), kind_of(Bounded), kind_of(int), kind_of(3)) == ("square", "disc", "", "", "")
    assert kinds_of(Square | Disc | None) == {"square": Square, "disc": Disc}
    assert (kinds_of(Bounded), kinds_of(int | None)) == ({}, {})
    assert (alternatives(int | str | None), alternatives(int), alternatives(None.__class__)) == ((int, str), (int,), ())


class Plan(SettingsTable, frozen=True):
    shape: Square | Disc = Square()
    many: dict[str, Square | Disc] = msgspec.field(default_factory=dict)
    inner: Bounded = Bounded()


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"shape": {"kind": "disc", "radius_m": 0}}, "shape.radius_m: must be a positive number of metres, got 0"),
        ({"shape": {"kind": "disk"}}, "shape.kind: no such choice as 'disk'; did you mean 'disc'?"),
        ({"shape": {"side_m": 1}}, "shape.kind: is missing; there are: square, disc"),
        ({"shape": [1]}, "shape: must be a table with a kind, got a list"),
        ({"many": {"a": {"kind": "disc"}, "b": {"kind": "square", "side_m": "x"}}},
         "many.b.side_m: must be a number of metres, got the text 'x'"),
        ({"inner": {"range_m": 13.0}}, "inner.range_m: brings bad luck"),
        ({"inner": {"steps_s": [1, 2, -3]}}, "inner.steps_s[2]: must be a positive number of seconds, got -3"),
        ({"inner": {"names": 5}}, "inner.names: must be a list, got the number 5"),
        ({"inner": {"count": {"a": 1}}}, "inner.count: must be a whole number, got a table"),
        ({"inner": {"limit_s": False}}, "inner.limit_s: must be a number of seconds, got the boolean false"),
    ],
)  # fmt: skip
def test_a_problem_deep_in_a_table_has_its_whole_key(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsProblem) as caught:
        read_settings(Plan, table)
    assert str(caught.value) == problem


# Words for keys and values.


def test_the_unit_at_the_end_of_a_name_is_its_longest() -> None:
    names = (
        "latency_s_per_km",
        "speed_m_s",
        "rate_per_min",
        "range_m",
        "m_s",
        "per_s",
        "s",
        "rate_bits_per_s",
        "power",
    )
    assert [unit_of(name) for name in names] == [
        "seconds a kilometre", "metres a second", "a minute", "metres", "seconds", "seconds", "", "bits a second", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "known", "sentence"),
    [
        ("range", ["range_m", "name"], "lacks its unit; write range_m (metres)"),
        ("range_km", ["speed_m_s", "range_m"], "no such key; did you mean range_m (metres)?"),
        ("speed_per_s", ["speed_m_s", "range_m"], "no such key; did you mean speed_m_s (metres a second)?"),
        ("nmae", ["name", "range_m"], "no such key; did you mean name?"),
        ("wait_ms", ["weight", "wait_s"], "no such key; did you mean wait_s (seconds)?"),
        ("zzz", ["range_m", "name"], "no such key; there are: name, range_m"),
        ("zzz", [], "no such key; there are: none"),
        ("range", ["range_of_nodes"], "no such key; there are: range_of_nodes"),
    ],
)
def test_an_unknown_key_says_what_to_write(key: str, known: list[str], sentence: str) -> None:
    assert unknown_key(key, known) == sentence


@pytest.mark.parametrize(
    ("value", "words"),
    [(True, "the boolean true"), (3, "the number 3"), (2.5, "the number 2.5"), ("x", "the text 'x'"), ([1], "a list"),
     ((1,), "a list"), ({"a": 1}, "a table"), (None, "None"), ("y" * 99, "the text '" + "y" * 59)],
)  # fmt: skip
def test_a_value_is_shown_with_its_type(value: Any, words: str) -> None:
    assert shown(value) == words


def test_a_choice_that_does_not_exist_is_reported_with_the_nearest() -> None:
    assert no_such_choice("reed", ["red", "blue"]) == "no such choice as 'reed'; did you mean 'red'?"
    assert no_such_choice(7, [1, 2]) == "no such choice as 7; there are: 1, 2"
