"""The catalogue: protocols by name, settings from words."""

from dataclasses import dataclass, is_dataclass
from random import Random

import pytest

from earshot.errors import SettingsError, UnknownName
from earshot.protocols.catalogue import PROTOCOLS, build_settings, protocol
from earshot.protocols.flooding import Flooding, FloodingSettings
from earshot.protocols.machine import FixedLocation, Machine


def test_a_protocol_is_found_by_its_name() -> None:
    assert protocol("flooding") is Flooding


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no protocol named 'floding'; did you mean 'flooding'\?"):
        protocol("floding")


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_every_protocol_says_what_it_is_and_can_be_built_by_default(name: str) -> None:
    found = PROTOCOLS[name]
    machine = found("a", build_settings(found.Settings, {}), FixedLocation(), Random(1))
    assert isinstance(machine, Machine)
    assert found.name == name
    assert found.paper
    assert found.needs_routing is (name in ("codd", "siena"))
    assert is_dataclass(found.Settings)


def test_settings_are_built_from_values_and_from_words() -> None:
    expected = FloodingSettings(hop_limit=3, jitter_s=0.5)
    assert build_settings(FloodingSettings, {"hop_limit": 3, "jitter_s": 0.5}) == expected
    assert build_settings(FloodingSettings, {"hop_limit": "3", "jitter_s": "0.5"}) == expected


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(SettingsError) as caught:
        build_settings(FloodingSettings, {"hop_limt": 3})
    assert str(caught.value) == "hop_limt: no such key; did you mean hop_limit?"
    with pytest.raises(SettingsError) as caught:
        build_settings(FloodingSettings, {"xyz": 3})
    assert str(caught.value) == "xyz: no such key; there are: hop_limit, jitter_s, lifespan_s, memory"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hop_limit": "many"}, "hop_limit: must be a whole number, got the text 'many'"),
        ({"hop_limit": 2.5}, "hop_limit: must be a whole number, got the number 2.5"),
        ({"hop_limit": 0}, "hop_limit: must be at least 1, got 0"),
    ],
)
def test_an_invalid_value_is_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_settings(FloodingSettings, given)
    assert str(caught.value) == message


def test_settings_may_be_words_numbers_choices_and_lists() -> None:
    @dataclass(frozen=True)
    class Mixed:
        word: str = ""
        flag: bool = False
        maybe: float | None = None
        several: tuple[str, ...] = ()

    given = {"word": "3", "flag": "true", "maybe": "2.5", "several": ["a", "b"]}
    assert build_settings(Mixed, given) == Mixed("3", True, 2.5, ("a", "b"))
    assert build_settings(Mixed, {"several": "a, b", "word": "a, b"}) == Mixed("a, b", several=("a", "b"))
    assert build_settings(Mixed, {"several": "a"}) == Mixed(several=("a",))
