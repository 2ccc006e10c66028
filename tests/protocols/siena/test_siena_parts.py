"""Siena's parts by themselves: places, links in order, patience, memory, and who is the control."""

from __future__ import annotations

from random import Random

import pytest

from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.machine import (
    Announcement,
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    Effects,
    FixedLocation,
    Note,
    Send,
    StartTimer,
)
from earshot.protocols.siena import machine as siena
from earshot.protocols.siena.machine import (
    Advertise,
    Bye,
    Connect,
    Control,
    Elected,
    Enter,
    Notify,
    Place,
    Siena,
    SienaSettings,
    Subscribe,
    Unsubscribe,
)
from earshot.protocols.tuning import Surroundings
from earshot.records import DropReason

SETTINGS = SienaSettings(agents=("a",), clients=3, retry_s=5.0, patience_s=20.0)
CHEAP, DEAR = (str(Filter.where(text, type="Document")) for text in ("price < 10", "price > 20"))


def node(name: str = "n", settings: SienaSettings = SETTINGS) -> Siena:
    return Siena(name, settings, FixedLocation(), Random(1))


def broker(*clients: str, settings: SienaSettings = SETTINGS) -> Siena:
    """A broker below b, with these clients."""
    found = node(settings=settings)
    found.hear(Place(True, "b"), "a", 0.0)
    for client in clients:
        found.hear(Connect(False), client, 0.1)
    return found


def sent(effects: Effects, to: str) -> list[object]:
    return [one.packet for one in effects if isinstance(one, Send) and one.peer == to]


def dropped(effects: Effects) -> list[DropReason]:
    return [one.reason for one in effects if isinstance(one, Drop)]


# A place.


def test_the_control_places_brokers_then_their_clients() -> None:
    control = Control(SienaSettings(clients=2), Random(1))
    assert [control.place(name, "") for name in "abcdef"] == [
        Place(True, ""), Place(False, "a"), Place(False, "a"), Place(True, "a"), Place(False, "d"), Place(False, "d"),
    ]  # fmt: skip
    assert control.place("d", "a") == Place(True, ""), "the root is gone"
    assert control.place("b", "a") == Place(True, "d"), "there is one root only"


def test_after_the_root_is_gone_its_children_stay_one_network() -> None:
    control = Control(SienaSettings(clients=1), Random(1))
    for name in "abcdefghij":
        control.place(name, "")
    root, *others = control.brokers
    above = {broker: control.place(broker, root).above for broker in others}
    assert [broker for broker, one in above.items() if not one] == others[:1]
    assert all(one in others for broker, one in above.items() if broker != others[0])


def test_a_node_asks_for_a_place_once_and_again_later() -> None:
    one = node()
    wanted = Subscription("n/1", "n", Filter.of_type("Document"))
    assert one.subscribe(wanted, 10.0) == [StartTimer("enter", 15.0), Send("a", Enter(""))]
    assert one.announce(Announcement(EventType("Document")), 11.0) == []
    assert one.wake("enter", 15.0) == [StartTimer("enter", 20.0), Send("a", Enter(""))]
    assert one.hear(Enter(""), "m", 16.0) == [Drop(DropReason.NOT_AN_AGENT)]
    assert sent(one.hear(Place(False, "b"), "stranger", 17.0), "b") == []
    assert sent(one.hear(Place(False, "b"), "a", 17.0), "b")[0] == Connect(False)
    assert one.hear(Place(False, "c"), "a", 18.0) == [], "it has a place"


def test_packets_of_future_neighbours_wait_for_the_place_and_are_bounded() -> None:
    one = node(settings=SienaSettings(agents=("a",), memory=2))
    for packet in (Connect(False), Subscribe(1, (CHEAP,)), Subscribe(2, (DEAR,))):
        one.hear(packet, "c", 1.0)
    one.hear(Place(True, ""), "a", 2.0)
    assert list(one.links["c"].wants) == [CHEAP]


def test_a_client_sends_away_whom_it_cannot_serve_and_a_broker_has_1024_links(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (siena.MOST_LINKS, siena.MOST_TEXT, siena.MOST_TYPES, siena.PATIENCE_BELOW) == (1024, 1 << 20, 256, 10)
    client = node()
    client.hear(Place(False, "b"), "a", 0.0)
    assert client.hear(Connect(False), "c", 1.0) == [Send("c", Bye())]
    monkeypatch.setattr(siena, "MOST_LINKS", 2)
    full = broker("c")
    assert full.hear(Connect(False), "d", 1.0) == [Send("d", Bye())]
    assert Send("c", Bye()) not in full.hear(Connect(False), "c", 2.0), "it is known"


def test_a_neighbour_that_connects_again_wants_nothing_of_before() -> None:
    one = broker("c")
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    one.hear(Connect(False), "c", 2.0)
    assert (list(one.links["c"].wants), list(one.texts.holders), one.links["c"].heard) == ([], [], 0)


# Messages in order.


def test_messages_of_a_neighbour_are_handled_in_their_order_and_once() -> None:
    one = broker("c")
    one.hear(Unsubscribe(2, (CHEAP,)), "c", 1.0)
    one.hear(Subscribe(3, (DEAR,)), "c", 1.0)
    assert list(one.links["c"].wants) == []
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    assert (list(one.links["c"].wants), one.links["c"].heard) == ([DEAR], 3)
    one.hear(Unsubscribe(3, (DEAR,)), "c", 1.0)
    assert list(one.links["c"].wants) == [DEAR], "this order came before"


def test_a_node_without_a_place_is_no_broker_and_takes_no_client() -> None:
    new = node()
    assert (new.hear(Connect(False), "c", 1.0), new.broker, new.links) == ([], False, {})
    assert sent(new.hear(Place(False, "b"), "a", 2.0), "c") == [Bye()], "the client that came early"


def test_what_comes_before_its_connection_waits_within_bounds() -> None:
    one = broker(settings=SienaSettings(agents=("a",), memory=1))
    assert one.hear(Subscribe(1, (CHEAP,)), "c", 1.0) == []
    assert one.hear(Subscribe(1, (CHEAP,)), "d", 1.0) == [Drop(DropReason.NOT_CONNECTED)]
    one.hear(Connect(False), "c", 2.0)
    assert list(one.links["c"].wants) == [CHEAP]


# What is wanted and published.


def test_a_subscription_with_another_filter_replaces_the_one_before() -> None:
    one = broker()
    one.hear(Advertise(1, "p", ("Document",)), "b", 0.5)
    assert sent(one.subscribe(Subscription("n/1", "n", Filter.parse(CHEAP)), 1.0), "b") == [Subscribe(1, (CHEAP,))]
    changed = sent(one.subscribe(Subscription("n/1", "n", Filter.parse(DEAR)), 2.0), "b")
    assert changed == [Subscribe(2, (DEAR,)), Unsubscribe(3, (CHEAP,))]
    assert sent(one.subscribe(Subscription("n/1", "n", Filter.parse(DEAR)), 3.0), "b") == []
    assert sent(one.unsubscribe("n/1", 4.0), "b") == [Unsubscribe(4, (DEAR,))]
    assert one.unsubscribe("n/1", 5.0) == []


def test_a_broker_keeps_at_most_so_much_text_of_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    one = broker("c")
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    monkeypatch.setattr(siena, "MOST_TEXT", one.texts.length + len(DEAR))
    assert dropped(one.hear(Subscribe(2, (DEAR,)), "c", 1.0)) == []
    monkeypatch.setattr(siena, "MOST_TEXT", one.texts.length + len(DEAR) - 1)
    other = str(Filter.where("price > 21", type="Document"))
    assert len(other) == len(DEAR)
    assert dropped(one.hear(Subscribe(3, (other,)), "c", 1.0)) == [DropReason.BROKER_MEMORY]
    assert list(one.links["c"].wants) == [CHEAP, DEAR]


def test_advertisements_go_to_all_other_brokers_and_are_bounded() -> None:
    one = broker("c", settings=SienaSettings(agents=("a",), memory=2))
    one.hear(Connect(True), "d", 0.2)
    passed = one.hear(Advertise(1, "p", ("Document",)), "b", 1.0)
    assert (sent(passed, "d"), sent(passed, "c"), sent(passed, "b")) == ([Advertise(1, "p", ("Document",))], [], [])
    assert one.hear(Advertise(2, "p", ("Document",)), "b", 1.0) == [], "it is known"
    assert one.hear(Advertise(3, "n", ("Document",)), "b", 1.0) == [], "that is this node itself"
    assert dropped(one.hear(Advertise(4, "q", ("x",) * 257), "b", 1.0)) == [DropReason.BROKER_MEMORY]
    assert dropped(one.hear(Advertise(5, "q", ("x",) * 256), "b", 1.0)) == []
    assert dropped(one.hear(Advertise(6, "r", ("x",)), "b", 1.0)) == [DropReason.BROKER_MEMORY]
    assert list(one.links["b"].advertised) == ["p", "q"]


def test_a_new_broker_learns_who_publishes_what_and_what_is_wanted() -> None:
    one = broker("c")
    one.hear(Advertise(1, "p", ("Document",)), "b", 1.0)
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    effects = one.hear(Connect(True), "d", 2.0)
    assert sent(effects, "d") == [Advertise(1, "p", ("Document",))]
    assert sent(one.hear(Advertise(1, "q", ("Document",)), "d", 3.0), "d") == [Subscribe(2, (CHEAP,))]


def test_what_is_announced_no_longer_is_advertised_no_longer() -> None:
    one = broker()
    for subject in ("Document", "News"):
        one.announce(Announcement(EventType(subject)), 1.0)
    assert sent(one.unannounce("Document", 2.0), "b") == [Advertise(3, "n", ("News",))]


def test_an_event_goes_to_each_neighbour_that_wants_it_but_not_back() -> None:
    one = broker("c", "d")
    one.subscribe(Subscription("n/1", "n", Filter.parse(CHEAP)), 0.5)
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    one.hear(Subscribe(1, (DEAR,)), "d", 1.0)
    event = Event("Document", {"price": 5}, "e", "s", time=1.5)
    effects = one.hear(Notify(event, 2), "b", 2.0)
    assert Deliver(event, "n/1", 2) in effects
    assert (sent(effects, "c"), sent(effects, "d"), sent(effects, "b")) == ([Notify(event, 3)], [], [])


# Neighbours that cannot be reached.


def test_a_neighbour_below_is_kept_ten_times_as_long_as_the_broker_above() -> None:
    for name, patience_s in (("b", 20.0), ("c", 200.0)):
        one = broker("c")
        assert one.unreachable(Subscribe(1, (CHEAP,)), name, 100.0) == [StartTimer(("again", name), 105.0)]
        assert one.wake(("again", name), 100.0 + patience_s)[0] == Send(name, Subscribe(1, (CHEAP,)))
        one.unreachable(Subscribe(1, (CHEAP,)), name, 100.0 + patience_s)
        one.wake(("again", name), 100.1 + patience_s)
        assert (name in one.links) is False


def test_what_waits_is_sent_when_the_neighbour_is_back() -> None:
    one = broker("c")
    one.unreachable(Subscribe(1, (CHEAP,)), "c", 10.0)
    one.send_to("c", Subscribe(2, (DEAR,)))
    assert one.wake(("again", "c"), 15.0) == [
        Send("c", Subscribe(1, (CHEAP,))), Send("c", Subscribe(2, (DEAR,))), StartTimer(("again", "c"), 20.0),
    ]  # fmt: skip
    assert one.wake(("again", "c"), 20.0) == []
    assert one.links["c"].failing_since is None
    assert one.wake(("again", "c"), 25.0) == []


def test_what_waits_for_a_neighbour_is_bounded() -> None:
    one = broker("c", settings=SienaSettings(agents=("a",), memory=2))
    for number in (1, 2, 3):
        one.unreachable(Subscribe(number, (CHEAP,)), "c", 10.0)
    assert len(one.links["c"].unsent) == 2
    one.send_to("c", Subscribe(4, (CHEAP,)))
    assert dropped(one.effects()) == [DropReason.TOO_MANY_PACKETS_WAITING]


def test_the_broker_above_that_leaves_is_named_to_the_control() -> None:
    one = broker("c")
    assert one.hear(Bye(), "b", 10.0) == [StartTimer("enter", 15.0), Send("a", Enter("b"))]
    assert broker("c").hear(Bye(), "c", 10.0) == []
    assert [one.packet for one in broker("c").stop(20.0) if isinstance(one, Send)] == [Bye(), Bye()]


# Without a named control.

OPEN = SienaSettings(clients=3, retry_s=5.0)


def test_a_node_that_nobody_answers_becomes_the_control() -> None:
    one = node("m", OPEN)
    effects = one.announce(Announcement(EventType("Document")), 10.0)
    assert Broadcast(Enter("")) in effects
    [elect] = [effect.at for effect in effects if isinstance(effect, StartTimer) and effect.name == "elect"]
    assert 10.25 <= elect <= 12.5
    one.hear(Enter(""), "z", 10.1)
    elected = one.wake("elect", elect)
    assert elected[:2] == [Broadcast(Elected()), StartTimer("elected", elect + 5.0)]
    assert (one.elected, one.above, one.broker) == ("m", "", True)
    assert sent(elected, "z") == [Place(False, "m")]
    assert one.askers == {}
    assert one.wake("elected", 20.0) == [Broadcast(Elected()), StartTimer("elected", 25.0)]


def test_of_two_controls_the_later_name_steps_down_and_others_keep_their_place() -> None:
    one = node("m", OPEN)
    one.announce(Announcement(EventType("Document")), 10.0)
    one.wake("elect", 11.0)
    one.hear(Connect(False), "c", 12.0)
    assert one.hear(Elected(), "z", 13.0) == [], "m sorts first"
    stepped = one.hear(Elected(), "b", 14.0)
    assert (sent(stepped, "c"), sent(stepped, "b"), one.links, one.elected) == ([Bye()], [Enter("")], {}, "b")
    client = node("k", OPEN)
    client.elected = "m"
    client.hear(Place(False, "m"), "m", 1.0)
    assert client.hear(Elected(), "b", 2.0) == []
    assert (client.above, client.elected, list(client.links)) == ("m", "b", ["m"])
    named = node("n")
    named.hear(Elected(), "b", 1.0)
    assert named.elected == "", "the settings name the control"


def test_a_control_that_cannot_be_reached_is_forgotten() -> None:
    one = node("k", OPEN)
    one.elected = "m"
    assert one.unreachable(Enter(""), "x", 1.0) == [Drop(DropReason.NO_CONTROL)]
    assert one.elected == "m"
    assert one.unreachable(Enter(""), "m", 1.0) == [Drop(DropReason.NO_CONTROL)]
    assert one.elected == ""


@pytest.mark.parametrize(("present", "clients"), [(2.0, 3), (100.0, 6), (1000.0, 12)])
def test_first_guesses_grow_with_the_network(present: float, clients: int) -> None:
    around = Surroundings(
        nodes=1000, present=present, width_m=9.0, height_m=9.0, range_m=100.0, mean_neighbours=9.0,
        median_speed_m_s=1.0, link_lifetime_s=9.0, events_per_s=9.0,
    )  # fmt: skip
    [found] = Siena.tuning(around)
    assert (found.name, found.first, found.low, found.high) == ("clients", clients, 2, 24)


# Neighbours that have started again.


def test_a_node_that_sends_as_a_neighbour_and_is_not_a_neighbour_learns_it_after_a_while() -> None:
    """A broker that had started again never informed its clients, which then received nothing."""
    found = broker("c")
    event = Notify(Event("Document", {"price": 1}, id="1"), 1)
    for packet in (event, Subscribe(1, (CHEAP,))):
        assert sent(found.hear(packet, "x", 1.0), "x") == [], "its Connect may be on its way"
        assert sent(found.hear(packet, "x", 5.99), "x") == []
        assert sent(found.hear(packet, "x", 6.0), "x") == [siena.NoNeighbour()]
        assert (found.early, found.early_bytes) == ([], 0), "what it sent before it connects is void"
    assert sent(found.hear(event, "c", 99.0), "c") == []
    found.hear(event, "y", 1.0)
    found.hear(Connect(False), "y", 2.0)
    assert (sent(found.hear(event, "y", 9.0), "y"), len(found.strangers)) == ([], 0)


def test_a_broker_that_becomes_a_client_parts_from_its_clients() -> None:
    """They would hear nothing more: a client passes nothing on."""
    found = broker("x", "y")
    found.hear(Bye(), "b", 1.0)
    assert sorted(found.links) == ["x", "y"]
    placed = found.hear(Place(False, "x"), "a", 2.0)
    assert (sent(placed, "y"), sent(placed, "x")[:1], list(found.links)) == ([Bye()], [Connect(False)], ["x"])
    again = broker("x", "y")
    again.hear(Bye(), "b", 1.0)
    again.hear(Place(True, "c"), "a", 2.0)
    assert sorted(again.links) == ["c", "x", "y"], "a broker that stays one keeps them"


def test_a_control_is_there_even_if_a_node_could_not_reach_it() -> None:
    control = node("a", SienaSettings(agents=("a",)))
    control.subscribe(Subscription("s", "a", Filter.of_type("Tick")), 0.0)
    assert (control.broker, control.above) == (True, "")
    assert sent(control.hear(Enter("a"), "n", 1.0), "n") == [Place(False, "a")]
    assert sent(control.hear(Enter(""), "n", 2.0), "n") == [Place(False, "a")]


def test_an_elected_control_is_there_even_if_an_asker_has_lost_it() -> None:
    one = node("m", SienaSettings())
    one.hear(Enter("m"), "x", 0.0)
    one.enter(1.0)
    found = one.wake("elect", 2.0)
    assert (sent(found, "x"), one.above) == ([Place(False, "m")], "")


def test_strangers_are_bounded_and_not_noted_without_a_place() -> None:
    found, event = broker(), Notify(Event("Document", {"price": 1}, id="1"), 1)
    for number in range(siena.MOST_LINKS + 9):
        found.hear(event, f"x{number}", 1.0)
    assert len(found.strangers) == siena.MOST_LINKS
    assert sent(found.hear(event, f"x{siena.MOST_LINKS + 8}", 9.0), f"x{siena.MOST_LINKS + 8}") == [siena.NoNeighbour()]
    assert sent(found.hear(event, "x0", 9.0), "x0") == [], "the oldest were displaced"
    new = node()
    new.hear(event, "x", 1.0)
    assert len(new.strangers) == 0


def test_a_client_that_its_broker_has_forgotten_connects_again() -> None:
    client = node()
    client.hear(Place(False, "b"), "a", 0.0)
    client.subscribe(Subscription("s", "n", Filter.parse(CHEAP)), 1.0)
    client.hear(Advertise(1, "p", ("Document",)), "b", 2.0)
    assert sent(client.hear(siena.NoNeighbour(), "b", 3.0), "b") == [Connect(False), Subscribe(1, (CHEAP,))]
    assert client.above == "b"


def test_a_client_connects_again_when_its_broker_asks_for_a_place_as_at_its_start() -> None:
    settings = SienaSettings(agents=(), clients=3)
    client = node(settings=settings)
    client.hear(Place(False, "b"), "a", 0.0)
    assert sent(client.hear(Enter("z"), "b", 1.0), "b") == [], "it has lost the broker above it, and knows its clients"
    assert sent(client.hear(Enter(), "c", 1.0), "c") == []
    assert sent(client.hear(Enter(), "b", 1.0), "b") == [Connect(False)]


def test_a_broker_forgets_a_neighbour_below_that_has_forgotten_it() -> None:
    found = broker("c")
    assert sent(found.hear(siena.NoNeighbour(), "c", 3.0), "c") == []
    assert (list(found.links), found.above) == (["b"], "b")


# Whole exchanges.

DOCUMENT = Announcement(EventType("Document"))
NEWS = str(Filter.of_type("News"))


def document(number: int, source: str = "n") -> Event:
    return Event("Document", {"price": 5}, f"e{number}", source, time=1.0)


def test_a_node_that_gets_a_place_connects_and_sends_what_waited() -> None:
    one = node(settings=SienaSettings(agents=("a",), memory=2))
    one.announce(DOCUMENT, 1.0)
    for number in (1, 2, 3):
        assert one.publish(document(number), 1.0) == []
    one.subscribe(Subscription("n/1", "n", Filter.parse(CHEAP)), 1.6)
    assert one.hear(Place(False, "b"), "a", 2.0) == [
        CancelTimer("enter"), CancelTimer("elect"), Note("place", "client below b"), Send("b", Connect(False)),
        Send("b", Advertise(1, "n", ("Document",))), Send("b", Subscribe(2, (CHEAP,))),
        Send("b", Notify(document(2), 1)), Send("b", Notify(document(3), 1)),
    ]  # fmt: skip
    assert one.publish(document(4), 3.0) == [Send("b", Notify(document(4), 1))]
    news = Event("News", {}, "e5", "n", time=3.0)
    assert one.publish(news, 3.0) == [Send("b", Advertise(3, "n", ("Document", "News"))), Send("b", Notify(news, 1))]


def test_the_root_has_nobody_to_send_to() -> None:
    one = node(settings=SienaSettings(agents=("n",)))
    assert one.publish(document(1), 1.0) == [
        StartTimer("enter", 6.0), CancelTimer("enter"), CancelTimer("elect"), Note("place", "broker below nobody"),
    ]  # fmt: skip
    assert (one.waiting, one.broker, one.above) == ([], True, "")
    assert one.wake("enter", 6.0) == [], "it has a place"


def test_a_broker_publishes_to_the_neighbours_that_want_it() -> None:
    one = broker("c", "d")
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    one.hear(Subscribe(1, (DEAR,)), "d", 1.0)
    one.announce(DOCUMENT, 1.0)
    assert one.publish(document(1), 1.5) == [Send("c", Notify(document(1), 1))]


def test_a_client_passes_nothing_on() -> None:
    one = node()
    one.subscribe(Subscription("n/1", "n", Filter.parse(CHEAP)), 0.5)
    one.hear(Place(False, "b"), "a", 0.6)
    assert one.hear(Notify(document(1, "s"), 3), "b", 2.0) == [Deliver(document(1, "s"), "n/1", 3)]
    assert one.hear(Advertise(1, "p", ("Document",)), "b", 2.0) == []


def test_what_only_brokers_below_want_is_unwanted_by_this_broker_and_its_clients() -> None:
    one = broker("c")
    one.hear(Connect(True), "d", 0.2)
    one.hear(Subscribe(1, (CHEAP,)), "d", 1.0)
    one.hear(Notify(document(1, "s"), 1), "b", 2.0)
    one.hear(Subscribe(1, (CHEAP,)), "c", 3.0)
    one.hear(Notify(document(2, "s"), 1), "b", 4.0)
    one.subscribe(Subscription("n/1", "n", Filter.parse(CHEAP)), 0.5)
    one.hear(Notify(document(3, "s"), 1), "b", 5.0)
    assert (one.transfers, one.extraneous, one.unwanted) == (3, 2, 1)


def test_the_texts_of_packets_that_wait_are_counted_until_their_turn() -> None:
    one = broker("c", "d")
    late, advert = Subscribe(3, (CHEAP, DEAR)), Advertise(2, "p", ("Document",))
    both = 2 * 64 + len(CHEAP) + len(DEAR) + 64 + len("Document")
    for packet in (late, late, advert, advert):
        one.hear(packet, "c", 1.0)
    assert one.early_bytes == both
    one.hear(Subscribe(1, ()), "c", 1.0)
    assert (one.early_bytes, one.links["c"].heard, one.links["c"].early) == (0, 3, {})
    assert (list(one.links["c"].wants), one.links["c"].advertised) == ([CHEAP, DEAR], {"p": ("Document",)})
    one.hear(late, "d", 1.0)
    one.hear(Bye(), "d", 2.0)
    assert one.early_bytes == 0
    one.hear(late, "e", 2.0)
    assert one.early_bytes == 2 * 64 + len(CHEAP) + len(DEAR)
    one.hear(Connect(False), "e", 2.1)
    assert (one.early, one.early_bytes) == ([], 2 * 64 + len(CHEAP) + len(DEAR)), "it waits at its link now"


def test_so_many_bytes_may_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    one = broker("c")
    monkeypatch.setattr(siena, "MOST_TEXT", 2 * (64 + len(CHEAP)))
    for order in (3, 4, 5):
        one.hear(Subscribe(order, (CHEAP,)), "c", 1.0)
    assert sorted(one.links["c"].early) == [3, 4]
    few = broker("c", settings=SienaSettings(agents=("a",), memory=2))
    for order in (3, 4, 5):
        few.hear(Subscribe(order, (CHEAP,)), "c", 1.0)
    assert sorted(few.links["c"].early) == [3, 4]


def test_a_client_learns_what_its_broker_publishes_and_a_broker_what_all_publish() -> None:
    one = broker()
    one.announce(DOCUMENT, 0.5)
    one.hear(Advertise(1, "p", ("News",)), "b", 1.0)
    assert one.hear(Connect(False), "c", 2.0) == [Send("c", Advertise(1, "n", ("Document",)))]
    assert one.hear(Connect(True), "d", 2.0) == [
        Send("d", Advertise(1, "n", ("Document",))), Send("d", Advertise(2, "p", ("News",))),
    ]  # fmt: skip
    one.hear(Advertise(1, "q", ("News",)), "d", 3.0)
    again = one.hear(Connect(True), "d", 4.0)
    assert sent(again, "d") == [Advertise(1, "n", ("Document",)), Advertise(2, "p", ("News",))], "not its own back"


def test_a_broker_forwards_toward_publishers_of_the_type_and_not_back() -> None:
    one = broker("c")
    one.hear(Connect(True), "d", 0.2)
    one.hear(Advertise(1, "p", ("News",)), "b", 0.3)
    one.hear(Advertise(1, "q", ("Document",)), "d", 0.3)
    assert one.hear(Subscribe(1, (CHEAP, NEWS, CHEAP, "][")), "c", 1.0) == [
        Send("b", Subscribe(2, (NEWS,))), Send("d", Subscribe(2, (CHEAP,))),
    ]  # fmt: skip
    assert list(one.links["c"].wants) == [CHEAP, NEWS]
    assert one.hear(Subscribe(2, (CHEAP,)), "d", 2.0) == [], "nobody else wants it of b, who publishes no documents"
    assert one.hear(Subscribe(2, (CHEAP,)), "c", 2.0) == []
    assert one.hear(Unsubscribe(3, (CHEAP, DEAR)), "c", 3.0) == [Send("d", Unsubscribe(3, (CHEAP,)))]
    assert list(one.texts.holders.items()) == [(CHEAP, 1), (NEWS, 1)]


def test_what_two_clients_want_is_withdrawn_with_the_second() -> None:
    one = broker("c", "d")
    one.hear(Advertise(1, "p", ("Document",)), "b", 0.3)
    one.hear(Subscribe(1, (CHEAP,)), "c", 1.0)
    assert one.hear(Subscribe(1, (CHEAP,)), "d", 1.0) == []
    assert one.hear(Unsubscribe(2, (CHEAP,)), "c", 2.0) == []
    assert one.hear(Unsubscribe(2, (CHEAP,)), "d", 3.0) == [Send("b", Unsubscribe(2, (CHEAP,)))]


def test_a_node_whose_place_is_full_again_goes_where_there_is_room() -> None:
    control = Control(SienaSettings(clients=2), Random(1))
    for name in "abcdef":
        control.place(name, "")
    assert control.place("b", "") == Place(False, "a"), "its own place is free"
    assert control.place("b", "z") == Place(False, "a")
    assert control.place("d", "d") == Place(True, "a"), "a broker does not name itself gone"
    assert control.place("g", "") == Place(True, "a")
    assert control.place("h", "") == Place(False, "g")


# Who is the control, step by step.


def test_a_node_asks_the_control_that_it_knows_unless_that_one_is_gone() -> None:
    one = node("k", OPEN)
    one.hear(Elected(), "m", 0.5)
    assert one.announce(DOCUMENT, 1.0) == [StartTimer("enter", 6.0), Send("m", Enter(""))]
    one.hear(Place(False, "m"), "m", 1.5)
    lost = one.hear(Bye(), "m", 2.0)
    assert [type(effect) for effect in lost] == [StartTimer, Broadcast, StartTimer]
    assert lost[:2] == [StartTimer("enter", 7.0), Broadcast(Enter("m"))]
    one.elected = "m"
    again = one.wake("enter", 7.0)
    assert (one.elected, again[:2]) == ("", [StartTimer("enter", 12.0), Broadcast(Enter(""))]), "m has not answered"


def test_a_node_with_a_place_elects_nobody_and_answers_nobody() -> None:
    one = node("k", OPEN)
    one.hear(Place(False, "m"), "m", 0.5)
    assert one.wake("elect", 1.0) == []
    assert one.wake("elected", 1.0) == []
    assert one.wake("other", 1.0) == []
    assert (one.hear(Enter(""), "z", 1.0), one.askers) == ([], {})


def test_a_new_control_answers_the_nodes_that_asked_as_many_as_it_remembers() -> None:
    one = node("m", SienaSettings(clients=3, retry_s=5.0, memory=2))
    one.announce(DOCUMENT, 1.0)
    for name in ("x", "y", "z"):
        one.hear(Enter(""), name, 1.0)
    assert one.wake("elect", 2.0) == [
        Broadcast(Elected()), StartTimer("elected", 7.0), StartTimer("enter", 7.0), CancelTimer("enter"),
        CancelTimer("elect"), Note("place", "broker below nobody"), Send("x", Place(False, "m")),
        Send("y", Place(False, "m")),
    ]  # fmt: skip
    assert one.hear(Enter(""), "z", 3.0) == [Send("z", Place(False, "m"))]
    assert one.unreachable(Place(False, "m"), "z", 4.0) == [Drop(DropReason.NO_CONTROL)]


def test_a_place_counts_from_any_sender_only_where_no_agent_is_named() -> None:
    one = node("k", SienaSettings(agents=("a", "b")))
    assert one.hear(Place(False, "m"), "x", 0.5) == []
    assert one.hear(Place(False, "m"), "b", 0.5)[2:] == [Note("place", "client below m"), Send("m", Connect(False))]
