"""User properties are written as paho writes them."""

from __future__ import annotations

import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed")

from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from earshot.live.bridge.mqtt import UserProperties

TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=200)


@given(st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_user_properties_are_what_paho_packs(properties: dict[str, str]) -> None:
    theirs = Properties(PacketTypes.PUBLISH)
    if properties:
        theirs.UserProperty = list(properties.items())
    assert UserProperties(properties).pack() == theirs.pack()
