"""Settings that may be a table or a list, that have a kind of their own, or that msgspec does not know."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from earshot.errors import SettingsError
from earshot.settings import KindTable, Positive, SettingsProblem, SettingsTable, read_settings


class Step(SettingsTable, frozen=True):
    length_m: Positive = 1.0
    kind: Literal["long", "short"] = "long"
    "Its own key, which chooses no class."

    def validate(self) -> None:
        if self.length_m == 13.0:
            raise SettingsError("length_m: brings bad luck")


class Colour:
    """A type that msgspec does not know."""

    def __init__(self, name: str) -> None:
        self.name = name


class Walk(KindTable, frozen=True, tag="walk"):
    steps: Step | tuple[Positive, ...] = ()
    colour: Colour | None = None
    hue_deg: Colour | None = None


class Rest(KindTable, frozen=True, tag="rest"):
    pass


class Day(SettingsTable, frozen=True):
    way: Walk | Rest = Rest()


def read_colour(_: Any, value: Any) -> Colour:
    if value == "dark":
        raise SettingsProblem("shade", "must be a number from 1")
    if value == "grue":
        raise ValueError("grue is no colour of ours")
    return Colour(value)


def read(**way: Any) -> Day:
    return read_settings(Day, {"way": {"kind": "walk", **way}}, read_other=read_colour)


def test_a_setting_is_a_table_or_a_list_as_it_is_written() -> None:
    assert read(steps={"length_m": 2.0, "kind": "short"}).way == Walk(Step(2.0, "short"))
    assert read(steps=[1.0, 2.0]).way == Walk((1.0, 2.0))
    found = read(colour="red").way
    assert isinstance(found, Walk)
    assert found.colour is not None
    assert found.colour.name == "red"


@pytest.mark.parametrize(
    ("way", "problem"),
    [
        ({"steps": {"length_m": 0.0}}, "way.steps.length_m: must be a positive number of metres, got 0.0"),
        ({"steps": {"length_m": 13.0}}, "way.steps.length_m: brings bad luck"),
        ({"steps": {"kind": "lang"}}, "way.steps.kind: no such choice as 'lang'; did you mean 'long'?"),
        ({"steps": {"size": 1.0}}, "way.steps.size: no such key; there are: kind, length_m"),
        ({"steps": [1.0, 0.0]}, "way.steps[1]: must be positive, got 0.0"),
        ({"colour": "dark"}, "way.colour.shade: must be a number from 1"),
        ({"hue_deg": "dark"}, "way.hue_deg.shade: must be a number of degrees from 1"),
        ({"colour": "grue"}, "way.colour: grue is no colour of ours"),
    ],
)
def test_a_problem_is_found_in_the_form_that_was_written(way: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsProblem) as caught:
        read(**way)
    assert str(caught.value) == problem
    key, _, sentence = problem.partition(": ")
    assert (caught.value.key, caught.value.sentence) == (key, sentence)
