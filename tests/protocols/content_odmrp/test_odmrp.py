"""ODMRP: requests flood, tables name the route back, data follows the flags, soft state expires."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odmrp_table import FIGURE_3, TREE, cd, plain, publish, sent, subscribe, table

from earshot import Event, Filter
from earshot.errors import SettingsError
from earshot.filters import Subscription
from earshot.protocols.content_odmrp.odmrp import Data, JoinRequest, JoinTable, OdmrpSettings
from earshot.protocols.machine import Broadcast, Deliver, Drop, StartTimer
from earshot.records import DropReason
from sizes import sized

CDS = "/CD"


def test_a_new_request_is_delivered_passed_on_and_answered_by_a_member() -> None:
    node = plain("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse(CDS)), 0.0)
    event = cd(0, source="s")
    assert list(node.hear(JoinRequest("s", 0, 7, 1, event), "a", now=1.0)) == [
        StartTimer("forget", at=26.0),
        Deliver(event, "b/1", 1),
        Broadcast(JoinRequest("s", 0, 7, 2, event)),
        Broadcast(JoinTable(0, {"s": "a"})),
    ]
    assert list(node.hear(JoinRequest("s", 0, 7, 5, event), "c", now=1.1)) == []


def test_a_node_is_a_member_until_its_last_subscription_ends_replaced_ones_counted_once() -> None:
    node = plain("b")
    for id in ("b/1", "b/2", "b/2"):
        node.subscribe(Subscription(id, "b", Filter.parse(CDS)), 0.0)
    answers = []
    for round, ended in enumerate(("nobody's", "b/1", "b/2")):
        node.unsubscribe(ended, 0.0)
        answers.append(Broadcast(JoinTable(0, {"s": "a"})) in node.hear(JoinRequest("s", 0, round, 1), "a", now=1.0))
    assert answers == [True, True, False]


def test_a_node_that_is_named_sets_its_flag_and_names_the_next_once_a_round() -> None:
    node = plain("b")
    node.hear(JoinRequest("s", 0, 7, 1), "a", now=1.0)
    assert list(node.hear(JoinTable(0, {"s": "b"}), "c", now=1.1)) == [Broadcast(JoinTable(0, {"s": "a"}))]
    assert list(node.hear(JoinTable(0, {"s": "b"}), "d", now=1.2)) == []
    assert list(node.hear(Data(0, cd(1), 3), "a", now=1.3)) == [Broadcast(Data(0, cd(1), 4))]
    assert list(node.hear(Data(0, cd(1), 4), "c", now=1.4)) == []


def test_an_event_that_is_too_old_is_neither_delivered_nor_passed_on() -> None:
    node = plain("b", lifespan_s=60.0, forwarding_timeout_s=100.0)
    node.subscribe(Subscription("b/1", "b", Filter.parse(CDS)), 0.0)
    node.hear(JoinRequest("s", 0, 7, 1), "a", now=1.0)
    node.hear(JoinTable(0, {"s": "b"}), "c", now=1.1)
    last, old = cd(1, time=1.0), cd(2, time=0.9)
    assert list(node.hear(Data(0, last, 3), "a", now=61.0)) == [Deliver(last, "b/1", 3), Broadcast(Data(0, last, 4))]
    assert list(node.hear(Data(0, old, 3), "a", now=61.0)) == [Drop(DropReason.EXPIRED, old.id)]


def test_a_node_that_is_not_named_neither_answers_nor_forwards() -> None:
    node = plain("b")
    node.hear(JoinRequest("s", 0, 7, 1), "a", now=1.0)
    assert list(node.hear(JoinTable(0, {"s": "x"}), "c", now=1.1)) == []
    assert list(node.hear(Data(0, cd(1), 1), "a", now=1.3)) == []


def test_a_join_table_for_an_unknown_source_or_channel_is_dropped() -> None:
    node = plain("b")
    assert list(node.hear(JoinTable(0, {"s": "b"}), "c", now=1.0)) == [Drop("unknown-source")]
    assert list(node.hear(JoinTable(3, {"s": "b"}), "c", now=1.0)) == [Drop("unknown-channel")]


def test_a_flag_expires_and_data_is_no_longer_passed_on() -> None:
    node = plain("b")
    node.hear(JoinRequest("s", 0, 7, 1), "a", now=0.0)
    node.hear(JoinTable(0, {"s": "b"}), "c", now=0.0)
    assert list(node.hear(Data(0, cd(1), 1), "a", now=24.9)) == [Broadcast(Data(0, cd(1), 2))]
    assert list(node.hear(Data(0, cd(2), 1), "a", now=25.0)) == []


def test_a_source_requests_every_five_seconds_and_sends_data_in_between() -> None:
    top = table(plain, [("S", "A"), ("A", "R")], {"R": CDS})
    for number in range(22):
        top.run(until=number * 0.5)
        publish(top, cd(number))
    top.run(until=12.0)
    kinds = [kind for node, kind in sent(top) if node == "S"]
    assert kinds == ["join-request", *["data"] * 9, "join-request", *["data"] * 9, "join-request", "data"]
    assert [event for node, event, _ in top.delivered] == [f"S-{number}" for number in range(22)]


def test_one_channel_sends_every_event_to_every_member() -> None:
    top = table(plain, TREE, FIGURE_3)
    for number in range(9):
        top.run(until=number * 0.5)
        publish(top, cd(number))
    top.run(until=10.0)
    assert sorted(top.delivered) == sorted(
        (f"R{receiver}", f"S-{number}", f"R{receiver}/1")
        for kind, receiver in enumerate((1, 2, 4))
        for number in range(kind, 9, 3)
    )
    assert [kind for node, kind in sent(top) if node == "N3"].count("data") == 8


def test_predefined_channels_carry_an_event_only_where_its_channel_has_members() -> None:
    top = table(plain, TREE, FIGURE_3, channels=tuple(FIGURE_3.values()))
    for number in range(9):
        top.run(until=number * 0.5)
        publish(top, cd(number))
    top.run(until=10.0)
    assert len(top.delivered) == 9
    assert [kind for node, kind in sent(top) if node == "N3"].count("data") == 2
    assert [kind for node, kind in sent(top) if node == "N1"].count("data") == 4


def test_a_subscription_no_channel_covers_joins_them_all_and_hears_each_event_once() -> None:
    channels = ('CD: category = "jazz"', "CD: price < 20")
    top = table(plain, [("S", "R")], {"R": "/CD"}, channels=channels)
    for number in range(3):
        publish(top, cd(number))
    top.run(until=1.0)
    assert top.delivered == [("R", f"S-{number}", "R/1") for number in range(3)]
    assert OdmrpSettings(channels=channels).channels_of(cd(0)) == [1, 2]
    assert OdmrpSettings(channels=channels).channels_of(cd(2)) == [0]
    assert OdmrpSettings(channels=channels).channels_for(Filter.parse("CD: price < 10")) == [2]


def test_a_subscription_joins_the_first_channel_that_covers_it_and_else_all_with_the_rest() -> None:
    settings = OdmrpSettings(channels=("CD: price < 20", "CD: price < 30", 'CD: category = "jazz"'))
    assert settings.channels_for(Filter.parse("CD: price < 10")) == [1]
    assert settings.channels_for(Filter.parse("CD: price < 25")) == [2]
    assert settings.channels_for(Filter.parse("CD: price < 40")) == [0, 1, 2, 3]
    assert OdmrpSettings().channels_for(Filter.parse("CD: price < 10")) == [0]
    assert settings.channels_of(Event("CD", {"price": 25, "category": "jazz"})) == [2, 3]
    assert settings.channels_of(Event("CD", {"price": 40})) == [0]


def test_when_a_link_breaks_the_mesh_takes_another_way() -> None:
    """Figure 9A: the receiver's forwarding node hears the source, and another forwarding node."""
    top = table(plain, [("S", "F1"), ("S", "F2"), ("F1", "F2"), ("F1", "R"), ("F2", "Q")], {"R": CDS, "Q": CDS})
    publish(top, cd(0))
    top.run(until=1.0)
    top.cut("S", "F1")
    publish(top, cd(1))
    top.run(until=2.0)
    assert [(node, event) for node, event, _ in top.delivered if node == "R"] == [("R", "S-0"), ("R", "S-1")]


def test_what_is_not_refreshed_expires_everywhere_within_the_timeout() -> None:
    top = table(plain, TREE, FIGURE_3)
    publish(top, cd(0))
    top.run(until=1.0)
    assert all(len(top.machines[name].mesh.routes) for name in top.machines if name != "S")
    assert all(len(top.machines[name].mesh.flags) for name in ("N1", "N2", "N3"))
    top.run(until=26.0)
    assert [(len(one.mesh.routes), len(one.mesh.flags)) for one in top.machines.values()] == [(0, 0)] * 9


def test_a_source_that_restarts_is_heard_again() -> None:
    top = table(plain, [("S", "R")], {"R": CDS})
    publish(top, cd(0))
    top.run(until=3.0)
    top.machines["S"] = plain("S")
    top.do("S", "start")
    publish(top, cd(1))
    top.run(until=4.0)
    assert [event for _, event, _ in top.delivered] == ["S-0", "S-1"]


def test_an_event_past_its_lifespan_is_dropped() -> None:
    node = plain("b", lifespan_s=10.0)
    assert list(node.hear(Data(0, cd(1), 1), "a", now=10.5)) == [Drop("expired", "S-1")]


def test_with_jitter_packets_wait_a_moment() -> None:
    node = plain("b", jitter_s=0.01)
    node.hear(JoinRequest("s", 0, 7, 1), "a", now=0.0)
    (timer,) = list(node.hear(JoinTable(0, {"s": "b"}), "c", now=1.0))
    assert isinstance(timer, StartTimer)
    assert 1.0 <= timer.at <= 1.01
    assert list(node.wake(timer.name, timer.at)) == [Broadcast(JoinTable(0, {"s": "a"}))]


def test_hops_are_limited() -> None:
    node = plain("b", hop_limit=2)
    effects = node.hear(JoinRequest("s", 0, 7, 2, cd(0)), "a", now=0.0)
    assert [effect for effect in effects if not isinstance(effect, StartTimer)] == [Drop("hop-limit", "S-0")]


@settings(max_examples=sized(30, 1000), deadline=None)
@pytest.mark.timeout(3600)
@given(st.integers(2, 12), st.integers(0, 10**6), st.data())
def test_in_any_still_network_every_member_in_reach_gets_every_event_once(
    n: int, seed: int, data: st.DataObject
) -> None:
    graph = nx.gnp_random_graph(n, 0.35, seed=seed)
    names = [f"n{index:02}" for index in range(n)]
    members = data.draw(st.sets(st.sampled_from(names[1:]), min_size=1))
    links = [(names[a], names[b]) for a, b in graph.edges] or [(names[0], names[0])]
    top = table(plain, links, {})
    for name in members & set(top.machines):
        subscribe(top, name, CDS)
    if names[0] not in top.machines:
        return
    for number in range(14):
        top.run(until=number * 0.5)
        publish(top, cd(number, source=names[0]))
    top.run(until=10.0)
    reached = {names[index] for index in nx.node_connected_component(graph, 0)} & members
    assert sorted(top.delivered) == sorted(
        (name, f"{names[0]}-{number}", f"{name}/1") for name in reached for number in range(14)
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"refresh_interval_s": 0.0}, "refresh_interval_s must be a positive number of seconds, got 0.0"),
        ({"refresh_interval_s": 30.0}, "forwarding_timeout_s must exceed"),
        ({"hop_limit": 0}, "hop_limit must be at least 1"),
        ({"channels": ("within 3 m",)}, "cannot depend on where its consumer is"),
        ({"channels": ("price <",)}, "channels: "),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(SettingsError, match=message):
        OdmrpSettings(**wrong)
