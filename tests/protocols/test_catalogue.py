"""The catalogue: protocols by name, settings from words."""

from dataclasses import dataclass, is_dataclass
from random import Random
from types import SimpleNamespace

import pytest

from earshot.errors import SettingsError, UnknownName
from earshot.plugins import PluginError, loading
from earshot.protocols.catalogue import (
    PROTOCOLS,
    build_settings,
    known_protocols,
    needs_routing,
    protocol,
    protocol_digest,
    protocol_name,
)
from earshot.protocols.codd.machine import Codd
from earshot.protocols.flooding import Flooding, FloodingSettings
from earshot.protocols.gossip import Gossip
from earshot.protocols.machine import FixedLocation, Machine
from earshot.wire import Packet


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
    assert found.needs_two_way_links is (name in ("codd", "drip", "drip-sf", "georendezvous", "siena"))
    assert found.several_producers is (name == "steam")
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


def test_a_protocol_is_named_as_it_was_loaded_and_else_as_it_names_itself() -> None:
    class Mine(Flooding):
        name = "mine"

    assert (protocol_name(Flooding), protocol_name(protocol("drip-sf")), protocol_name(Mine)) == (
        "flooding", "drip-sf", "mine",
    )  # fmt: skip
    assert protocol_name(type("Nameless", (), {})) == "Nameless"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"name": 7}, "Mine lacks 'name'; write in the class: name = \"mine\""),
        ({"paper": None}, "Mine lacks 'paper'"),
        ({"Settings": None}, "Mine lacks its settings; write a frozen dataclass"),
        ({"Settings": type("Plain", (), {})}, "Mine lacks its settings; write a frozen dataclass"),
        ({"Settings": FloodingSettings()}, "Mine lacks its settings; write a frozen dataclass"),
        ({"Settings": dataclass(type("Open", (), {}))}, "Mine: its Settings must be frozen"),
    ],
)
def test_a_class_that_cannot_be_run_says_what_it_lacks(changed: dict[str, object], says: str) -> None:
    with pytest.raises(PluginError) as caught:
        protocol(type("Mine", (Flooding,), changed))
    assert str(caught.value).startswith(says)
    with pytest.raises(PluginError, match="int is not a protocol: derive a class from earshot"):
        protocol(int)  # type: ignore[arg-type]


def test_only_protocols_that_are_known_by_name_need_routing() -> None:
    assert [needs_routing(name) for name in ("codd", "siena", "flooding", "unknown", "nowhere:Mine")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert protocol_digest("flooding") == ""


def test_a_protocol_whose_packet_has_the_tag_of_another_is_refused() -> None:
    class Same(Packet, frozen=True, tag="cbf"):
        pass

    with pytest.raises(PluginError, match=r"Flooding: two packets are tagged 'cbf': .*; give its packet another tag"):
        protocol(Flooding)


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distributions offer two classes under names of their own, a class that does not exist, and a known name."""
    references = {
        "chatter": "earshot.protocols.gossip:Gossip",
        "broken": "earshot.protocols.gossip:Absent",
        "flooding": "earshot.protocols.gossip:Gossip",
        "trees": "earshot.protocols.codd.machine:Codd",
    }
    dist = SimpleNamespace(name="tools", version="1.2")
    points = [SimpleNamespace(name=name, value=value, dist=dist) for name, value in references.items()]
    monkeypatch.setattr(loading, "_entry_points", lambda kind: points if kind == "protocols" else [])
    monkeypatch.setattr(loading, "_loaded", {})


@pytest.mark.usefixtures("offers")
def test_installed_protocols_are_known_and_in_place_of_a_broken_one_the_reason() -> None:
    found = known_protocols()
    assert {name: found[name] for name in ("chatter", "trees", "flooding")} == {
        "chatter": Gossip, "trees": Codd, "flooding": Flooding,
    }  # fmt: skip
    assert found.keys() == {*PROTOCOLS, "chatter", "trees", "broken"}
    assert str(found["broken"]).startswith("broken: there is no 'Absent' in it")


@pytest.mark.usefixtures("offers")
def test_an_installed_protocol_has_its_installed_name_the_digest_of_its_code_and_its_needs() -> None:
    assert protocol_digest("chatter") == "", "it is not loaded yet"
    assert protocol("chatter") is Gossip
    assert (protocol_name(Gossip), protocol_name(Flooding)) == ("chatter", "flooding")
    [loaded] = loading.shipment()
    assert loaded.code.digest
    assert (protocol_digest("chatter"), protocol_digest("gossip")) == (loaded.code.digest, "")
    assert [needs_routing(name) for name in ("chatter", "trees")] == [False, True]


@pytest.mark.usefixtures("offers")
def test_a_name_that_comes_from_data_imports_nothing() -> None:
    name = "earshot.protocols.codd.machine:Codd"
    assert (needs_routing(name), protocol_digest(name), loading.shipment()) == (False, "", ())
