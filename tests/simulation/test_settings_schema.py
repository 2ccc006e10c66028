"""What settings classes say about their keys, on classes written here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from earshot.filters import Filter
from earshot.geometry import Circle, Position
from earshot.settings import KindTable, NotNegative, Positive, SettingsTable
from earshot.simulation.draws import Span
from earshot.simulation.settings_reader import AreaSetting, FilterSetting, ShapeSetting, SpanSetting
from earshot.simulation.settings_schema import (
    Setting,
    field_docs,
    reference,
    settings_described,
    tables_within,
    type_words,
)


class Square(KindTable, frozen=True, tag="square"):
    """A square
    of some size."""

    side_m: Positive = 1.0
    "Its side, or a | wall."


class Disc(KindTable, frozen=True, tag="disc"):
    """A disc."""

    radius_m: Positive
    "Its radius,"
    "in the middle."


class Turn(SettingsTable, frozen=True):
    """One turn."""


class Top(SettingsTable, frozen=True):
    """All of it."""

    name: str
    "What it is called."
    shape: Square | Disc = Square()
    "What it looks like."
    turns: tuple[Turn, ...] = ()
    others: dict[str, Turn] = msgspec.field(default_factory=dict)
    "By name."

    def about(self) -> str:
        "Not a doc of a key."
        return self.name


class Below(Top, frozen=True):
    """More of it."""

    wait_s: NotNegative | None = None
    "How long."


@dataclass(frozen=True, slots=True)
class Plain:
    """A dataclass."""

    count: int = 3
    "How many."


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (bool, "true or false"),
        (int, "whole number"),
        (Positive, "number"),
        (str | None, "text"),
        (float | None, "number"),
        (int | str, "whole number or text"),
        (Annotated[int, msgspec.Meta(ge=1)] | int, "whole number"),
        (Literal["a", "b", 3], '"a" or "b" or 3'),
        (tuple[str, ...], "list of text"),
        (tuple[float, float], "[number, number]"),
        (tuple[tuple[float, str], ...], "list of [number, text]"),
        (dict[str, int], "table of whole number"),
        (Path, "path"),
        (Position, "[x, y]"),
        (SpanSetting, "number or [low, high]"),
        (ShapeSetting, "shape"),
        (AreaSetting, "area"),
        (FilterSetting, "filter"),
        (Turn, "table"),
        (Plain, "table"),
        (bytes, "bytes"),
    ],
)
def test_a_type_is_reported_in_the_words_of_someone_who_writes_a_table(hint: object, words: str) -> None:
    assert type_words(hint) == words


def test_every_key_has_its_type_its_default_its_unit_and_its_doc() -> None:
    assert settings_described(Below) == [
        Setting("name", "text", True, None, "", "What it is called."),
        Setting("shape", "table with a kind", False, {"kind": "square", "side_m": 1.0}, "", "What it looks like."),
        Setting("turns", "list of table", False, [], "", ""),
        Setting("others", "table of table", False, {}, "", "By name."),
        Setting("wait_s", "number", False, None, "seconds", "How long."),
    ]
    assert settings_described(Plain)[0].as_dict() == {
        "name": "count", "type": "whole number", "required": False, "default": 3, "unit": "", "doc": "How many.",
    }  # fmt: skip
    assert field_docs(Disc) == {"radius_m": "Its radius, in the middle."}
    assert field_docs(type("Made", (SettingsTable,), {})) == {}


def test_defaults_are_written_as_a_file_has_them() -> None:
    class Written(SettingsTable, frozen=True):
        span: SpanSetting = Span(1, 2)
        shape: ShapeSetting = Circle(5)
        at: Position = Position(1, 2)
        wanted: FilterSetting = Filter.of_type("A")

    found = {key.name: key.default for key in settings_described(Written)}
    assert found == {"span": [1.0, 2.0], "shape": "circle:5m", "at": [1.0, 2.0], "wanted": str(Filter.of_type("A"))}


def test_the_tables_inside_a_table_have_the_keys_that_lead_to_them() -> None:
    assert list(tables_within(Below)) == [
        ("", Below), ("shape", Square), ("shape", Disc), ("turns[]", Turn), ("others.*", Turn),
    ]  # fmt: skip
    assert list(tables_within(Disc, "a.b")) == [("a.b", Disc)]


def test_the_page_has_a_section_for_each_key_and_a_table_for_each_class() -> None:
    assert reference(Below).split("\n") == [
        "### The top of the file",
        "",
        "More of it.",
        "",
        "| key | value | default | |",
        "| --- | --- | --- | --- |",
        "| `name` | text | must be given | What it is called. |",
        '| `shape` | table with a kind | kind = "square" | What it looks like. |',
        "| `turns` | list of table |  |  |",
        "| `others` | table of table |  | By name. |",
        "| `wait_s` | number, seconds |  | How long. |",
        "",
        "### `[shape]`",
        "",
        '#### kind = "square"',
        "",
        "A square of some size.",
        "",
        "| key | value | default | |",
        "| --- | --- | --- | --- |",
        "| `side_m` | number, metres | 1.0 | Its side, or a \\| wall. |",
        "",
        '#### kind = "disc"',
        "",
        "A disc.",
        "",
        "| key | value | default | |",
        "| --- | --- | --- | --- |",
        "| `radius_m` | number, metres | must be given | Its radius, in the middle. |",
        "",
        "### `[[turns]]`",
        "",
        "One turn.",
        "",
        "No keys.",
        "",
    ]
