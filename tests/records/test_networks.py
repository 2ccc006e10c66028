"""Which nodes are of one network, by what their joins say."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from earshot.records.details import (
    UNKNOWN_NETWORK,
    JoinDetail,
    JoinedNetwork,
    NetworkNames,
    key_id,
    label_of,
    read_join,
    write_detail,
)


def test_nodes_of_one_group_and_key_are_one_network() -> None:
    names = NetworkNames()
    assert names.of(JoinedNetwork("239.0.0.1:4000")) == "239.0.0.1:4000"
    assert names.of(JoinedNetwork("239.0.0.2:4000")) == "239.0.0.2:4000"
    assert names.of(JoinedNetwork("239.0.0.1:4000", keys=["aa"])) == "239.0.0.1:4000#aa"
    assert names.of(JoinedNetwork("239.0.0.1:4000", keys=["bb"])) == "239.0.0.1:4000#bb"
    assert names.of(JoinedNetwork("239.0.0.1:4000")) == "239.0.0.1:4000"
    assert names.of(None) == names.of(JoinedNetwork()) == UNKNOWN_NETWORK


def test_peers_that_name_each_other_are_one_network() -> None:
    names = NetworkNames()
    first = names.of(JoinedNetwork(addresses=["10.0.0.2:1", "10.0.0.3:1"]))
    assert first == "10.0.0.2:1"
    assert names.of(JoinedNetwork(addresses=["10.0.0.3:1", "10.0.0.4:1"])) == first
    assert names.of(JoinedNetwork(addresses=["10.0.0.5:1", "10.0.0.4:1"])) == first
    assert names.of(JoinedNetwork(addresses=["10.0.0.8:1", "10.0.0.9:1"])) == "10.0.0.8:1"
    keyed = JoinedNetwork(addresses=["10.0.0.2:1", "10.0.0.3:1"], keys=["aa"])
    assert names.of(keyed) == names.of(JoinedNetwork(addresses=["10.0.0.7:1"], keys=["aa"])) == "peers#aa"


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12), st.data())
def test_a_network_keeps_its_name_while_its_keys_change(keys: list[str], data: st.DataObject) -> None:
    """As the guide says: for a time the file holds both keys, then the new one alone."""
    names = NetworkNames()
    files = [[keys[0]], *([step for old, new in pairwise(keys) for step in ([new, old], [new])])]
    other = NetworkNames()
    for file in files:
        assert names.of(JoinedNetwork("239.0.0.1:4000", keys=file)) == f"239.0.0.1:4000#{keys[0]}"
        # Written down and read again at any moment.
        names = NetworkNames(dict(names.by_mark)) if data.draw(st.booleans()) else names
        assert other.of(JoinedNetwork("239.0.0.2:4000", keys=["z"])) == "239.0.0.2:4000#z"


def test_the_network_of_a_join_is_read_back_and_a_bad_one_is_unknown() -> None:
    network = JoinedNetwork("239.0.0.1:4000", keys=[key_id(b"x" * 32)])
    assert read_join(write_detail(JoinDetail("steam", network=network))).network == network
    for bad in ("3", '"x"', '{"group": 3}', '{"keys": [1]}', "null"):
        assert read_join(f'{{"protocol": "steam", "network": {bad}}}').network is None


def test_a_key_id_tells_keys_apart() -> None:
    assert key_id(b"x" * 32) != key_id(b"y" * 32)
    assert len(key_id(b"x" * 32)) == 8


def test_labels_name_the_network_where_it_is_known() -> None:
    assert (label_of(UNKNOWN_NETWORK, "steam"), label_of("239.0.0.1:4000", "steam")) == (
        "steam",
        "239.0.0.1:4000 steam",
    )
