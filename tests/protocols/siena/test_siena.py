"""Siena, as CoDD's paper emulates it."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import SettingsError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.machine import Announcement, Drop, FixedLocation, Send, StartTimer
from earshot.protocols.siena.machine import (
    MOST_TEXT,
    Advertise,
    Connect,
    Control,
    Enter,
    Notify,
    Place,
    Siena,
    SienaSettings,
    Subscribe,
    Unsubscribe,
)
from earshot.protocols.tabletop import Tabletop
from sizes import sized

SETTINGS = SienaSettings(agents=("a00",), clients=3)


def network(count, settings=SETTINGS):
    names = [f"a{i:02}" for i in range(count)]
    table = Tabletop([Siena(name, settings, FixedLocation(), Random(name)) for name in names], [])
    for name in names:
        table.do(name, "announce", Announcement(EventType("Document")))
        table.run(table.now + 0.1)
    return table, names


def subscribe(table, name, text, id="1"):
    table.do(name, "subscribe", Subscription(f"{name}/{id}", name, Filter.where(text, type="Document")))
    table.run(table.now + 0.5)


def publish(table, source, number, **content):
    event = Event("Document", content, f"{source}/{number}", source, time=table.now)
    table.do(source, "publish", event)
    table.run(table.now + 0.5)
    return event.id


def receivers(table, event):
    return sorted(node for node, id, _ in table.delivered if id == event)


def test_one_in_f_plus_1_is_a_broker_with_f_clients_in_a_balanced_tree():
    control = Control(SienaSettings(clients=6), Random(1))
    places = {f"n{i:03}": control.place(f"n{i:03}", "") for i in range(400)}
    brokers = [name for name, place in places.items() if place.broker]
    assert len(brokers) == 58
    clients = Counter(place.above for place in places.values() if not place.broker)
    assert max(clients.values()) == 6
    children = Counter(place.above for name, place in places.items() if place.broker and place.above)
    assert set(children.values()) <= {1, 2}
    assert len(children) == 29  # the interior brokers of the paper's figure 8
    assert sum(not place.above for place in places.values()) == 1


def test_brokers_may_have_as_many_brokers_below_them_as_clients():
    control = Control(SienaSettings(clients=6, broker_fan_out=0), Random(1))
    places = [control.place(f"n{i:03}", "") for i in range(400)]
    assert max(Counter(place.above for place in places if place.broker).values()) == 6


def test_a_broker_that_is_gone_is_passed_over():
    control = Control(SienaSettings(clients=1), Random(1))
    places = {name: control.place(name, "") for name in "abcdefghij"}
    (root,) = [name for name, place in places.items() if place.broker and not place.above]
    below = next(name for name, place in places.items() if place.broker and place.above == root)
    assert control.place(below, root).above == ""
    lower = [name for name, place in places.items() if place.broker and place.above == below]
    assert all(control.place(name, below).above != below for name in lower)


def test_events_of_any_publisher_reach_all_who_want_them_once():
    table, names = network(30)
    for i, name in enumerate(names[1:], 1):
        subscribe(table, name, f"size > {i}")
    assert receivers(table, publish(table, "a00", 0, size=12)) == names[1:12]
    assert receivers(table, publish(table, "a07", 0, size=12)) == [name for name in names[1:12] if name != "a07"]


def test_a_covered_subscription_is_not_forwarded_until_the_covering_one_is_taken_back():
    broker = Siena("b", SETTINGS, FixedLocation(), Random(1))
    broker.hear(Place(True, "up"), "a00", 0.0)
    broker.hear(Advertise(1, "s", ("Document",)), "up", 0.0)
    for name in ("x", "y"):
        broker.hear(Connect(False), name, 0.0)
    wide, narrow = "Document: size > 1", "Document: size > 5"
    assert broker.hear(Subscribe(1, (wide,)), "x", 1.0) == [Send("up", Subscribe(1, (wide,)))]
    assert broker.hear(Subscribe(1, (narrow,)), "y", 1.0) == []
    assert broker.hear(Unsubscribe(2, (wide,)), "x", 2.0) == [
        Send("up", Unsubscribe(2, (wide,))),
        Send("up", Subscribe(3, (narrow,))),
    ]


def test_overhead_is_counted_against_the_brokers_own_query_and_its_clients_too():
    broker = Siena("b", SienaSettings(agents=("a00",)), FixedLocation(), Random(1))
    broker.hear(Place(True, "up"), "a00", 0.0)
    broker.hear(Connect(False), "x", 0.0)
    broker.hear(Subscribe(1, ("Document: size > 1",)), "x", 1.0)
    for number, size in enumerate((3, 0)):
        broker.hear(Notify(Event("Document", {"size": size}, str(number), "s"), 1), "up", 2.0)
    assert (broker.transfers, broker.extraneous, broker.unwanted) == (2, 2, 1)


def test_a_network_that_loses_a_broker_recovers():
    table, names = network(30)
    for name in names[1:]:
        subscribe(table, name, "size > 1")
    lost = next(name for name in names[1:] if table.machines[name].broker)
    table.do(lost, "stop")
    del table.machines[lost]
    table.run(table.now + 10.0)
    publish(table, "a00", 0, size=3)
    table.run(table.now + 10.0)
    assert receivers(table, publish(table, "a00", 1, size=3)) == [name for name in names[1:] if name != lost]


def broker_of_two():
    """A broker below "up" with the clients "x" and "y", which want everything above 1."""
    broker = Siena("b", SETTINGS, FixedLocation(), Random(1))
    broker.hear(Place(True, "up"), "a00", 0.0)
    for name in ("x", "y"):
        broker.hear(Connect(False), name, 0.0)
        broker.hear(Subscribe(1, ("Document: size > 1",)), name, 0.0)
    return broker


def notify(number):
    return Notify(Event("Document", {"size": 3}, str(number), "s"), 1)


def test_a_client_that_cannot_be_reached_for_a_while_gets_what_it_missed():
    broker = broker_of_two()
    first, second = notify(1), notify(2)
    sent = broker.hear(first, "up", 1.0)
    assert [effect.peer for effect in sent] == ["x", "y"]
    assert broker.unreachable(sent[0].packet, "x", 1.5) == [StartTimer(("again", "x"), 1.5 + SETTINGS.retry_s)]
    assert [effect.peer for effect in broker.hear(second, "up", 2.0)] == ["y"]
    again = broker.wake(("again", "x"), 6.5)
    missed = [effect.packet for effect in again if isinstance(effect, Send)]
    assert [(packet.event.id, effect.peer) for packet, effect in zip(missed, again, strict=False)] == [
        ("1", "x"),
        ("2", "x"),
    ]
    assert broker.wake(("again", "x"), 11.5) == []
    assert [effect.peer for effect in broker.hear(notify(3), "up", 12.0)] == ["x", "y"]


@pytest.mark.parametrize(("name", "patience_s"), [("x", 200.0), ("up", 20.0)])
def test_a_neighbour_that_stays_away_is_gone(name, patience_s):
    broker = broker_of_two()
    packet, now = notify(1), 1.0
    broker.unreachable(packet, name, now)
    while name in broker.links:
        now += SETTINGS.retry_s
        broker.wake(("again", name), now)
        broker.unreachable(packet, name, now + 0.1) if name in broker.links else None
    assert 1.0 + patience_s < now <= 1.0 + patience_s + 2 * SETTINGS.retry_s
    assert (broker.above is None) == (name == "up")


def test_without_patience_a_neighbour_is_gone_at_once():
    broker = Siena("b", SienaSettings(agents=("a00",), patience_s=0.0), FixedLocation(), Random(1))
    broker.hear(Place(True, "up"), "a00", 0.0)
    broker.hear(Connect(False), "x", 0.0)
    broker.unreachable(notify(1), "x", 1.0)
    assert list(broker.links) == ["up"]


def test_events_published_before_the_node_has_a_place_are_sent_later():
    table, _ = network(4)
    subscribe(table, "a01", "size > 1")
    late = Siena("z", SETTINGS, FixedLocation(), Random("z"))
    table.machines["z"] = late
    table.do("z", "start")
    table.do("z", "announce", Announcement(EventType("Document")))
    assert receivers(table, publish(table, "z", 0, size=5)) == ["a01"]


@settings(max_examples=sized(25, 300), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("on"), st.integers(1, 19), st.integers(0, 9)),
            st.tuples(st.just("off"), st.integers(1, 19), st.integers(0, 9)),
            st.tuples(st.just("event"), st.integers(0, 19), st.integers(0, 10)),
        ),
        max_size=60,
    )
)
def test_every_node_gets_what_it_wants_under_any_changes(script):
    table, names = network(20)
    wants: dict[str, dict[int, int]] = {name: {} for name in names}
    for number, (what, node, size) in enumerate(script):
        name = names[node]
        if what == "on":
            subscribe(table, name, f"size > {size}", str(size))
            wants[name][size] = 1
        elif what == "off" and size in wants[name]:
            table.do(name, "unsubscribe", f"{name}/{size}")
            table.run(table.now + 0.5)
            del wants[name][size]
        elif what == "event":
            got = receivers(table, publish(table, name, number, size=size))
            expected = {other: sum(size > wanted for wanted in wants[other]) for other in names if other != name}
            assert Counter(got) == Counter({other: count for other, count in expected.items() if count})


def test_bad_settings_and_a_missing_control_are_named():
    with pytest.raises(SettingsError, match="clients must be at least 1, got 0"):
        SienaSettings(clients=0)
    node = Siena("n", SETTINGS, FixedLocation(), Random(1))
    node.subscribe(Subscription("1", "n", Filter.of_type("Document")), 0.0)
    assert Drop("no-control") in node.unreachable(Enter(), "a00", 1.0)
    assert Send("a00", Enter()) in node.wake("enter", 5.0)


def test_where_no_control_is_named_one_in_range_is_elected():
    names = ["a", "b", "c", "d"]
    links = [(one, other) for one in names for other in names if one < other]
    table = Tabletop([Siena(name, SienaSettings(), FixedLocation(), Random(name)) for name in names], links)
    for name in names:
        table.do(name, "announce", Announcement(EventType("Document")))
        subscribe(table, name, "size > 1")
    table.run(table.now + 10.0)
    assert len({table.machines[name].elected or name for name in names}) == 1
    assert receivers(table, publish(table, "c", 0, size=3)) == ["a", "b", "d"]


def test_of_two_controls_the_one_whose_name_sorts_first_stays():
    names = ["a", "b", "c", "d"]
    table = Tabletop(
        [Siena(name, SienaSettings(), FixedLocation(), Random(name)) for name in names], [("a", "b"), ("c", "d")]
    )
    for name in names:
        table.do(name, "announce", Announcement(EventType("Document")))
        subscribe(table, name, "size > 1")
    table.run(table.now + 10.0)
    for one in ("a", "b"):
        for other in ("c", "d"):
            table.link(one, other)
    controls = sorted(name for name in names if table.machines[name].elected == name)
    assert len(controls) == 2
    table.run(table.now + 20.0)
    assert [name for name in names if table.machines[name].elected == name] == controls[:1]
    assert receivers(table, publish(table, "c", 0, size=3)) == ["a", "b", "d"]


def test_an_event_that_comes_twice_is_delivered_once():
    node = Siena("n", SETTINGS, FixedLocation(), Random(1))
    node.subscribe(Subscription("n/1", "n", Filter.of_type("Document")), 0.0)
    node.hear(Place(False, "b"), "a00", 0.1)
    again = Notify(Event("Document", {"size": 3}, "1", "s"), 2)
    assert [effect.subscription for effect in node.hear(again, "b", 1.0)] == ["n/1"]
    assert node.hear(again, "b", 1.1) == []
    assert node.hear(Notify(Event("Document", {}, "", "s"), 1), "b", 1.2) == [Drop("malformed-document")]


def test_packets_that_wait_for_their_turn_are_bounded_by_their_texts():
    """Each of 4,096 packets may carry a megabyte: their number alone is no bound."""
    machine = Siena("a01", SETTINGS, FixedLocation(), Random(1))
    machine.start(0.0)
    for number in range(300):
        machine.hear(Subscribe(number + 2, ("Document: text = '" + "y" * 19_000 + f"{number}'",) * 10), "m", 0.0)
    waiting = sum(len(text) for packet, _ in machine.early for text in packet.texts)
    assert 800_000 < waiting <= MOST_TEXT
    assert machine.early_bytes == waiting + 64 * 10 * len(machine.early)


def test_the_next_packet_of_a_neighbour_is_heard_even_if_no_more_may_wait():
    table, _ = network(6)
    broker = next(node for node in table.machines.values() if node.broker and len(node.links) > 1)
    sender = next(name for name, link in broker.links.items() if not link.broker)
    order, texts = broker.links[sender].heard, ("Document: text = '" + "y" * 19_000 + "'",) * 10
    for number in range(300):
        broker.hear(Subscribe(order + 2 + number, texts), sender, table.now)
    assert 800_000 < broker.early_bytes <= MOST_TEXT
    broker.hear(Subscribe(order + 1, ("Document: number = 7",)), sender, table.now)
    assert "Document: number = 7" in broker.links[sender].wants
    assert broker.early_bytes == 0
