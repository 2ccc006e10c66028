"""DRIP by hand: on the tabletop, where a hop takes a millisecond and nothing is lost."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from earshot.errors import SettingsError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Position
from earshot.protocols.catalogue import build_settings
from earshot.protocols.drip.election import TRANSITIONS, Candidates, Role, Trigger
from earshot.protocols.drip.machine import Drip, SimpleFramework
from earshot.protocols.drip.packets import (
    AS_WRITTEN,
    PAPER,
    Abilities,
    BridgeReport,
    BrokerAnnouncement,
    Candidate,
    Confirmation,
    DripSettings,
    EventCopy,
    Exchange,
    InRegion,
    Notice,
    PlacedRegistration,
    PublishedEvent,
    Quit,
    Registration,
    Retirement,
    SubscriberRecord,
)
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import EventMemory, HeldEvent, Sharing, destinations_of
from earshot.protocols.drip.subscribers import MOST_TEXT, Subscriber, Subscribers
from earshot.protocols.machine import Broadcast, FixedLocation
from earshot.protocols.tabletop import Tabletop
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario

SETTINGS = replace(PAPER, brokers=4, nearest=2, copies=1, jitter_s=0.0)
UP_S = SETTINGS.bootstrap_s + 3 * SETTINGS.announce_interval_s
LINE = [f"n{i:02d}" for i in range(12)]
ABLE = {"n01": 9.0, "n04": 8.0, "n07": 7.0, "n10": 6.0}
"On the line of twelve, four regions of three."


def line(settings: DripSettings = SETTINGS, machine: type[Drip] = Drip, able: dict[str, float] = ABLE) -> Tabletop:
    machines = []
    for name in LINE:
        made = machine(name, settings, FixedLocation(), Random(name))
        made.ability = able.get(name, 1.0)
        machines.append(made)
    table = Tabletop(machines, list(pairwise(LINE)))
    table.run(UP_S)
    return table


def drip(table: Tabletop, name: str) -> Drip:
    machine = table.machines[name]
    assert isinstance(machine, Drip)
    return machine


def want(table: Tabletop, node: str, text: str = "Number: value > 10") -> None:
    table.do(node, "subscribe", Subscription(f"{node}/1", node, Filter.parse(text)))


def publish(table: Tabletop, node: str, value: int = 50, id: str = "e1") -> None:
    stamp: dict[str, Any] = {"id": id, "source": node, "time": table.now}
    table.do(node, "publish", Event("Number", {"value": value}).stamped(**stamp))


def sent(table: Tabletop, kind: type[Any]) -> list[tuple[str, Any]]:
    return [(node, packet) for node, packet in table.sent if type(packet) is kind]


# Settings.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"brokers": 6}, "nearest + copies must stay below brokers (l + m < k), got 4 + 2 of 6"),
        ({"nearest": 8}, "nearest + copies must stay below brokers (l + m < k), got 8 + 2 of 10"),
        ({"copies": 0}, "copies: must be at least 1, got 0"),
        ({"brokers": 30, "network_nodes": 20}, "got 30 brokers of 20 nodes"),
        ({"expiry_periods": 1.0}, "expiry_periods: must be above 1, got 1.0"),
        ({"replace_after_s": 3.0}, "replace_after_s must exceed expiry_periods announcement intervals (3.4 s), got 3"),
        ({"announce_interval_s": 0}, "announce_interval_s: must be a positive number of seconds, got 0"),
        ({"jitter_s": -1}, "jitter_s: must not be negative, got -1"),
        ({"memory_events": 0}, "memory_events: must be at least 1, got 0"),
        ({"spares": -1}, "spares: must not be negative, got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_the_reason(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_settings(DripSettings, {**AS_WRITTEN, **given})
    assert message in str(caught.value)


def test_a_run_refuses_more_brokers_than_its_network_has_nodes() -> None:
    scenario = load_scenario("drip").with_({"nodes.node.count": 20, "duration_s": 30.0})
    with pytest.raises(SettingsError) as caught:
        run(scenario, "drip", {"brokers": 21})
    assert str(caught.value) == "brokers must not exceed the network's nodes, got 21 brokers of 20 nodes"


def test_without_a_setting_a_small_network_has_as_many_brokers_as_nodes() -> None:
    assert [DripSettings(network_nodes=nodes).k for nodes in (4, 200)] == [4, 10]
    assert DripSettings().k == 10


# Section IV.A.


def test_the_ablest_become_brokers_and_every_node_attaches_to_the_nearest() -> None:
    table = line()
    assert [drip(table, name).local_broker for name in LINE] == [*["n01"] * 3, *["n04"] * 3, *["n07"] * 3, *["n10"] * 3]
    assert [name for name in LINE if drip(table, name).broker is not None] == sorted(ABLE)


def test_abilities_stop_at_nodes_that_know_enough_abler_ones() -> None:
    table = line(replace(PAPER, brokers=4, nearest=2, copies=1, jitter_s=0.0, spares=0))
    reported = {candidate.node for _, packet in sent(table, Abilities) for candidate in packet.candidates}
    far = [node for node, packet in sent(table, Abilities) if node == "n11" and "n00" in str(packet.candidates)]
    assert reported == set(LINE)
    assert far == []


def test_random_selection_does_not_look_at_ability() -> None:
    settings = replace(PAPER, brokers=4, nearest=2, copies=1, jitter_s=0.0, selection="random")
    draws = {name: Random(name).random() for name in LINE}
    table = line(settings)
    brokers = {name for name in LINE if drip(table, name).broker is not None}
    assert brokers == set(sorted(draws, key=lambda name: draws[name])[-4:])


ENDING = {"n01": 9.0, "n04": 8.0, "n07": 7.0, "n11": 6.0, "n09": 5.0}
"The last of the line is a broker: it stays whole without it. The next able is n09."


def brokers_of(table: Tabletop) -> list[str]:
    return [name for name in sorted(table.machines) if drip(table, name).broker is not None]


def test_a_silent_broker_is_replaced_by_the_next_able_node() -> None:
    table = line(able=ENDING)
    assert brokers_of(table) == ["n01", "n04", "n07", "n11"]
    crashed_at = table.now
    del table.machines["n11"]
    table.run(crashed_at + 2 * SETTINGS.announce_interval_s)
    assert drip(table, "n10").local_broker == "n07"
    table.run(crashed_at + SETTINGS.replace_after_s + 8.0)
    assert brokers_of(table) == ["n01", "n04", "n07", "n09"]
    assert {detail for _, topic, detail in table.notes if topic == "replaced"} == {"n11"}


def test_a_broker_that_comes_back_takes_its_place_again_and_its_replacement_steps_down() -> None:
    table = line(able=ENDING)
    table.cut("n10", "n11")
    table.run(table.now + SETTINGS.replace_after_s + 8.0)
    assert brokers_of(table) == ["n01", "n04", "n07", "n09", "n11"]
    table.link("n10", "n11")
    table.run(table.now + SETTINGS.replace_after_s)
    assert brokers_of(table) == ["n01", "n04", "n07", "n11"]
    assert drip(table, "n10").local_broker == "n11"


def test_a_broker_that_stops_in_good_order_is_dropped_and_replaced_at_once() -> None:
    table = line(able=ENDING)
    table.do("n11", "stop")
    table.run(table.now + 0.01)
    assert drip(table, "n10").local_broker == "n07"
    del table.machines["n11"]
    table.run(table.now + 3.0)
    assert brokers_of(table) == ["n01", "n04", "n07", "n09"]


def test_a_part_that_is_left_without_a_broker_finds_its_own() -> None:
    table = line()
    table.cut("n04", "n05")
    table.cut("n06", "n07")
    table.run(table.now + 2 * SETTINGS.replace_after_s)
    assert [drip(table, name).local_broker for name in ("n05", "n06")] == ["n06", "n06"]
    # Of the four there are to be, the next able ones are out of reach; they are given up in their turn.
    table.run(table.now + 2 * SETTINGS.replace_after_s)
    assert [drip(table, name).local_broker for name in ("n05", "n06")] == ["n05", "n06"]


def test_candidates_are_the_same_in_whatever_order_reports_come() -> None:
    reports = [
        Candidate("a", 5.0, 0.0, False),
        Candidate("b", 4.0, 0.0, False),
        Candidate("c", 3.0, 0.0, False),
        Candidate("a", 5.0, 0.0, True),
    ]
    one, other = Candidates(2, 1), Candidates(2, 1)
    for report in reports:
        one.learn([report])
    other.learn(reversed(reports))
    assert one.ablest == other.ablest == ("b", "c")
    assert one.digest == other.digest
    assert one.declare_alive("a", 3.0)
    assert one.ablest == ("a", "b")
    assert not one.learn([Candidate("a", 5.0, 1.0, True)])  # older than the sign of life


def role_after(role: Role, *triggers: Trigger) -> Role:
    for trigger in triggers:
        role = TRANSITIONS[role, trigger]
    return role


def test_every_role_has_an_answer_to_every_trigger() -> None:
    assert set(TRANSITIONS) == {(role, trigger) for role in Role for trigger in Trigger}


def test_a_node_becomes_a_broker_and_steps_down_only_after_a_wait() -> None:
    ranked, outranked, elected, rejected = Trigger.RANKED, Trigger.OUTRANKED, Trigger.ELECTED, Trigger.REJECTED
    assert role_after(Role.GATHERING, ranked, outranked) is Role.GATHERING
    assert (role_after(Role.GATHERING, elected), role_after(Role.GATHERING, rejected)) == (Role.BROKER, Role.NON_BROKER)
    assert role_after(Role.NON_BROKER, ranked) is Role.CANDIDATE
    assert role_after(Role.NON_BROKER, ranked, ranked, elected) is Role.BROKER
    assert role_after(Role.NON_BROKER, ranked, outranked) is Role.NON_BROKER  # an objection came in time
    assert role_after(Role.BROKER, outranked) is Role.RESIGNING
    assert role_after(Role.BROKER, outranked, ranked) is Role.BROKER
    assert role_after(Role.BROKER, outranked, rejected) is Role.NON_BROKER
    assert {role_after(role, Trigger.STOPPED) for role in Role} == {Role.NON_BROKER}
    assert {role for role in Role if role.is_broker} == {Role.BROKER, Role.RESIGNING}


def test_a_node_has_the_parts_of_a_broker_exactly_while_its_role_is_one() -> None:
    table = line(able=ENDING)
    table.cut("n10", "n11")
    for _ in range(60):
        table.run(table.now + 0.5)
        machines = [drip(table, name) for name in LINE]
        assert [machine.broker is not None for machine in machines] == [
            machine.election.role.is_broker for machine in machines
        ]


# Section IV.B.


def heard(regions: Regions, broker: str, delay_s: float, sequence: int = 1, now: float = 10.0, by: str = "x") -> bool:
    return regions.hear(BrokerAnnouncement(broker, sequence, now - delay_s, 2, broker, 0), by, now)


def test_an_announcement_that_does_not_improve_the_list_is_not_forwarded() -> None:
    regions = Regions("me", replace(PAPER, nearest=2, improvement_s=0.0))
    assert [heard(regions, "a", 0.003), heard(regions, "b", 0.002)] == [True, True]
    assert not heard(regions, "c", 0.003)
    assert heard(regions, "c", 0.001)
    assert regions.nearest_names() == ("c", "b")
    assert not heard(regions, "c", 0.001)  # again, no faster
    assert heard(regions, "c", 0.009, sequence=2)  # a newer announcement counts, although the broker is farther now
    assert regions.nearest_names() == ("b", "c")
    assert not heard(regions, "b", 0.001, sequence=0)  # older than what is known


def test_time_waited_on_purpose_is_not_delay() -> None:
    settings = replace(PAPER, jitter_s=0.5)
    machine = Drip("me", settings, FixedLocation(), Random(1))
    machine.start(0.0)
    effects = machine.hear(BrokerAnnouncement("b", 1, 9.999, 1, "b", 0), "b", 10.0)
    wake = next(effect for effect in effects if getattr(effect, "name", "") == ("forward", "b"))
    (passed,) = machine.wake(("forward", "b"), wake.at)
    assert isinstance(passed, Broadcast)
    assert isinstance(passed.packet, BrokerAnnouncement)
    assert passed.packet.hops == 2
    assert wake.at - passed.packet.sent_at == pytest.approx(0.001)


# Section V.A.


def test_an_event_is_flooded_only_in_regions_where_it_is_wanted() -> None:
    table = line()
    want(table, "n00")
    table.run(table.now + 8.0)
    publish(table, "n03")
    table.run(table.now + 4.0)
    assert table.delivered == [("n00", "e1", "n00/1")]
    assert {packet.region for _, packet in sent(table, InRegion)} == {"n01"}
    assert {node for node, _ in sent(table, InRegion)} <= {"n00", "n01", "n02"}


def test_an_event_without_subscribers_stops_at_its_broker() -> None:
    table = line()
    want(table, "n00")
    table.run(table.now + 8.0)
    publish(table, "n03", value=5)
    table.run(table.now + 4.0)
    assert (table.delivered, sent(table, InRegion), sent(table, EventCopy)) == ([], [], [])


def test_a_subscriber_that_changes_its_region_quits_and_registers_with_its_subscriptions() -> None:
    table = line()
    want(table, "n00")
    table.run(table.now + 8.0)
    before = len(table.sent)
    table.cut("n00", "n01")
    table.link("n00", "n02")  # still in reach of its old broker,
    table.link("n00", "n04")  # and next to its new one
    table.run(table.now + 2 * SETTINGS.announce_interval_s)
    packets = [packet for node, packet in table.sent[before:] if node == "n00" and type(packet) in (Quit, Registration)]
    assert {packet.target for packet in packets if type(packet) is Quit} == {"n01"}
    new = [packet for packet in packets if packet.target == "n04"]
    assert {packet.subscriptions for packet in new} == {("Number: value > 10",)}
    homes = {}
    for name in ("n01", "n04"):
        broker = drip(table, name).broker
        assert broker is not None
        homes[name] = broker.subscribers.table["n00"].record.broker
    assert homes == {"n01": "n04", "n04": "n04"} or homes == {"n01": "", "n04": "n04"}


def test_what_waited_for_a_subscriber_reaches_it_when_it_comes_into_the_region() -> None:
    table = line()
    want(table, "n00")
    table.run(table.now + 15.0)
    table.cut("n00", "n01")  # out of reach of everybody
    publish(table, "n03")
    table.run(table.now + 6.0)
    assert table.delivered == []
    table.link("n00", "n03")
    table.run(table.now + 6.0)
    assert table.delivered == [("n00", "e1", "n00/1")]


def test_an_event_published_before_there_are_brokers_waits_for_one() -> None:
    machines = [Drip(name, SETTINGS, FixedLocation(), Random(name)) for name in ("a", "b")]
    table = Tabletop(machines, [("a", "b")])
    want(table, "b")
    publish(table, "a")
    table.run(UP_S)
    assert table.delivered == [("b", "e1", "b/1")]


def test_memory_drops_the_least_related_first_and_then_the_oldest() -> None:
    memory = EventMemory(2)

    def held(id: str, time: float, relation: int) -> HeldEvent:
        return HeldEvent(Event("Number", {}).stamped(id=id, source="a", time=time), 100.0, relation, 1)

    for one in (held("old", 1.0, 1), held("unrelated", 2.0, 0)):
        assert memory.add(one) == []
    assert [gone.event.id for gone in memory.add(held("new", 3.0, 1))] == ["unrelated"]
    assert [gone.event.id for gone in memory.add(held("newer", 4.0, 1))] == ["old"]
    assert sorted(memory.held) == ["new", "newer"]


# Section V.B.


def test_brokers_share_events_over_bridges() -> None:
    table = line()
    want(table, "n08")
    table.run(table.now + 12.0)
    publish(table, "n04")
    table.run(table.now + 3.0)
    assert table.delivered == [("n08", "e1", "n08/1")]
    over = [(node, packet.via) for node, packet in sent(table, EventCopy) if packet.target == "n07"]
    assert over[:3] == [("n04", "n05"), ("n05", ""), ("n06", "")]  # n06 is the bridge's neighbour in the other region


def subscriber(name: str, *nearest: str) -> Subscriber:
    return Subscriber(SubscriberRecord(name, 1.0, nearest[0], nearest, ("Number: value > 10",), 0.0), 0.0, ())


def test_destinations_are_the_nearest_brokers_of_each_subscriber_or_the_common_ones() -> None:
    wanting = [subscriber("s", "a", "b"), subscriber("t", "b", "c"), subscriber("u", "b", "me")]
    each, common = replace(PAPER, nearest=2), replace(PAPER, nearest=2, destinations="common")
    assert destinations_of(wanting, "me", each) == ("a", "b", "c")
    assert destinations_of(wanting, "me", common) == ("a", "b")


def test_m_brokers_are_asked_to_carry_and_the_source_goes_to_destinations_itself() -> None:
    sharing = Sharing(replace(PAPER, nearest=2, copies=2))
    held = HeldEvent(Event("Number", {}).stamped(id="e", source="s", time=0.0), 60.0, 1, 1)
    sharing.at_source(held, [subscriber("s", "x", "y")], "me")
    assert (held.destinations, held.pending, held.copies) == (("x", "y"), {"x", "y"}, 2)
    for peer in ("a", "b"):
        assert sharing.carries(held, peer, 0.0)
        held.send_to(peer, True, 0.0, 1.0)
    assert not sharing.is_due(held, "c", 0.5)  # two are being asked
    assert sharing.is_due(held, "x", 0.5)  # a destination
    held.confirm("a")
    assert sharing.is_due(held, "c", 1.5)  # b has not answered
    for peer in ("b", "x", "y"):
        held.confirm(peer)
    assert (held.carriers, sharing.is_done(held)) == ({"a", "b"}, True)


def test_a_carrier_takes_an_event_to_the_destinations_and_a_destination_only_keeps_it() -> None:
    sharing = Sharing(PAPER)
    for carry, pending in ((True, {"x"}), (False, set())):
        held = HeldEvent(Event("Number", {}).stamped(id="e", source="s", time=0.0), 60.0, 1, 1)
        sharing.at_receiver(held, EventCopy("source", "me", "", 1, held.event, 1, ("me", "source", "x"), carry), "me")
        assert held.pending == pending


def test_sf_brings_every_event_to_every_broker_wanted_or_not() -> None:
    table = line(machine=SimpleFramework)
    publish(table, "n00", value=5)
    table.run(table.now + 12.0)
    held = {}
    for name in ABLE:
        broker = drip(table, name).broker
        assert broker is not None
        held[name] = list(broker.events.held)
    assert held == {name: ["e1"] for name in ABLE}


def test_sf_sends_no_broker_a_second_copy() -> None:
    """A baseline that wastes copies would flatter the protocol that is compared with it."""
    table = line(machine=SimpleFramework)
    for number in range(3):
        publish(table, "n00", value=5, id=f"e{number}")
        table.run(table.now + 12.0)
    # A copy is relayed hop by hop: only what its origin sends is a new one.
    copies = Counter(
        (packet.event.id, packet.target) for node, packet in sent(table, EventCopy) if packet.origin == node
    )
    assert set(copies.values()) == {1}
    for number in range(3):
        assert sum(count for (event, _), count in copies.items() if event == f"e{number}") == len(ABLE) - 1


def test_subscriber_updates_are_offered_until_the_other_broker_has_them() -> None:
    subscribers = Subscribers("me", 10, 30.0)
    first = SubscriberRecord("s", 1.0, "me", ("me", "b"), ("Number: value > 10",), 0.5)
    assert subscribers.learn(first, 1.0) is not None
    assert [one.record.subscriber for one in subscribers.updates_for("b", 0, 8)] == ["s"]
    assert subscribers.learn(first, 2.0, "b") is None  # b reports what is known here: b knows it too
    assert subscribers.updates_for("b", 0, 8) == []
    version = subscribers.version
    moved = SubscriberRecord("s", 3.0, "b", ("b", "me"), None, 0.5)
    assert subscribers.learn(moved, 3.0, "b") is not None  # to a broker it was near to: others need not know
    assert subscribers.version == version
    assert subscribers.learn(SubscriberRecord("s", 4.0, "z", ("z",), None, 0.5), 4.0) is not None
    assert subscribers.version == version + 1
    assert [one.record.subscriber for one in subscribers.matching(Event("Number", {"value": 50}))] == ["s"]
    assert subscribers.learn(SubscriberRecord("t", 4.0, "z", ("z",), ("not a filter (",), 0.5), 4.0) is None


def test_an_unsubscribed_node_is_sent_nothing_more() -> None:
    table = line()
    want(table, "n08")
    table.run(table.now + 12.0)
    table.do("n08", "unsubscribe", "n08/1")
    table.run(table.now + 12.0)
    publish(table, "n00")
    table.run(table.now + 5.0)
    assert (table.delivered, sent(table, EventCopy)) == ([], [])


# What strangers send.


def test_impossible_packets_do_no_harm() -> None:
    table = line()
    broker = drip(table, "n01")
    nan, event = float("nan"), Event("Number", {"value": 50}).stamped(id="x", source="z", time=0.0)
    packets: list[Any] = [
        BrokerAnnouncement("evil", 1, nan, -5, "", 0),
        BrokerAnnouncement("evil", 2**62, float("inf"), 1, "", 0),
        Abilities((Candidate("evil", float("inf"), nan, False), Candidate("evil", 1e308, 0.0, True)), 0),
        Registration("evil", "n01", "", 1, nan, nan, ("n01",), ("not a filter (",), ()),
        PlacedRegistration("away", "n01", "", 1, 1.0, 1.0, ("n01",), ("Number",), (), Position(float("inf"), 0.0)),
        Quit("evil", "n01", "", -(2**62), 1.0),
        Quit("evil", "nobody", "n01", 5, 1.0),
        EventCopy("evil", "n01", "", 1, event, 1, ("n01", "evil"), True),
        Exchange(
            "evil", "n01", "", 1, 3, (SubscriberRecord("s", nan, "b", (), None, nan),), {"b": float("inf")}, ("x",)
        ),
        BridgeReport("evil", "n01", "", 1, "n01"),
        Confirmation("evil", "n01", "", 1, "unknown"),
        Notice("evil", "n01", "", 1, event, 1),
        PublishedEvent("evil", "n01", "", 1, event, 1),
        InRegion(event, -1, "n01"),
        Retirement("nobody", 2**62),
    ]
    for packet in packets:
        broker.hear(packet, "evil", table.now)
    table.run(table.now + 10.0)
    want(table, "n00")
    table.run(table.now + 6.0)
    publish(table, "n02")
    table.run(table.now + 2.0)
    assert table.delivered == [("n00", "e1", "n00/1")]


def test_a_table_of_subscribers_is_bounded_by_its_texts() -> None:
    """Each of 4,096 subscribers may register a megabyte: their number alone is no bound."""
    subscribers = Subscribers("b", 4096, 10.0)
    text = "Number: text = '" + "y" * 19_000 + "'"
    for number in range(100):
        subscribers.learn(SubscriberRecord(f"s{number}", 1.0, "b", ("b",), (text,) * 10, 1.0), 0.0)
    held = sum(len(text) + 64 for one in subscribers.table.values() for text in one.record.subscriptions or ())
    assert 700_000 < held <= subscribers.text <= MOST_TEXT
    assert list(subscribers.table) == ["s95", "s96", "s97", "s98", "s99"]
    assert subscribers.learn(SubscriberRecord("s", 1.0, "b", ("b",), (text,) * 20, 1.0), 0.0) is None


def test_a_registration_that_claims_many_hops_expires_too() -> None:
    assert PAPER.register_after_s(2**62) == PAPER.register_after_s(PAPER.hop_limit)


def test_tables_stay_bounded_under_a_flood() -> None:
    settings = replace(PAPER, brokers=4, nearest=2, copies=1, memory=16, memory_events=4, jitter_s=0.0)
    table = line(settings)
    broker = drip(table, "n01")
    assert broker.broker is not None
    for number in range(200):
        name = f"evil-{number}"
        event = Event("Number", {"value": 50}).stamped(id=name, source=name, time=table.now)
        broker.hear(Registration(name, "n01", "", 1, 1.0, 1.0, ("n01",), ("Number: value > 10",), ()), name, table.now)
        broker.hear(PublishedEvent(name, "n01", "", 1, event, 1), name, table.now)
        broker.hear(BrokerAnnouncement(name, 1, table.now, 1, name, broker.election.candidates.digest), name, table.now)
        broker.hear(BridgeReport(name, "n01", "", 1, name), name, table.now)
        broker.hear(Abilities((Candidate(name, 1e6 + number, 0.0, number % 2 == 0),), 0), name, table.now)
    inside = broker.broker
    sizes = [
        len(inside.subscribers.table),
        len(inside.events.held),
        len(inside.bridges),
        len(broker.regions.neighbours),
        len(broker.regions.return_routes),
        len(inside.signs_of_life),
    ]
    assert all(size <= 16 for size in sizes)
    assert len(broker.regions.brokers) <= 2
    assert len(broker.election.candidates.known) <= 3 * (settings.k + settings.spares)
