"""The extended ODMRP: digests ask, summaries answer, groups follow content, soft state expires."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import msgspec
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odmrp_table import FIGURE_3, TREE, cd, extended, publish, sent, subscribe, table

from earshot import Event, EventType, Filter, Position
from earshot.errors import SettingsError
from earshot.filters import Subscription
from earshot.filters.summaries.bloom import BloomShape
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from earshot.geometry import Area, Circle, Velocity
from earshot.protocols.content_odmrp.local_summaries import PassRates
from earshot.protocols.content_odmrp.machine import (
    ContentOdmrpSettings,
    Data,
    JoinRequest,
    JoinTable,
    Motion,
    hold_s,
    link_lifetime_s,
)
from earshot.protocols.content_odmrp.reports import SummaryReport, full_report
from earshot.protocols.machine import Announcement, Broadcast, Deliver, Drop, Send, StartTimer
from earshot.protocols.tabletop import Tabletop
from sizes import sized

LINE = [("S", "A"), ("A", "B"), ("B", "R")]
JAZZ = 'CD: category = "jazz"'


def report_of(node: str, *texts: str) -> SummaryReport:
    return full_report(node, Summary.of([Filter.parse(text) for text in texts]).to_bytes())


def asking(event: Event, sequence: int = 7, hops: int = 1, group: int = 1) -> JoinRequest:
    return JoinRequest(event.source, sequence, hops, ((group, Digest.of(event).data),), event)


def play(top: Tabletop, count: int, interval_s: float = 0.5, source: str = "S") -> None:
    """Publish `count` of figure 2's events, one per interval, from now on."""
    start = top.now
    for number in range(count):
        top.run(until=start + number * interval_s)
        publish(top, cd(number + round(start * 1000), source))
    top.run(until=start + count * interval_s)


def figure_3_deliveries(count: int) -> list[tuple[str, str, str]]:
    wanted = [(f"R{receiver}", kind) for kind, receiver in enumerate((1, 2, 4))]
    return sorted((name, f"S-{number}", f"{name}/1") for name, kind in wanted for number in range(kind, count, 3))


# One node at a time.


def test_a_request_is_delivered_passed_on_and_answered_after_gathering() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse(JAZZ)), 0.0)
    event = cd(0, source="s")
    assert list(node.hear(asking(event), "a", now=1.0)) == [
        StartTimer("forget", at=26.0),
        Deliver(event, "b/1", 1),
        Broadcast(asking(event, hops=2)),
        StartTimer(("join-table", "s"), at=1.0 + hold_s(1, 0.05)),
    ]
    assert list(node.wake(("join-table", "s"), now=1.19))[-1] == Broadcast(
        JoinTable("s", "a", (1,), (report_of("b", JAZZ),))
    )
    assert list(node.hear(asking(event), "c", now=1.2)) == []


def test_a_broker_that_wants_other_events_of_the_type_reports_without_joining() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse('CD: category = "pop"')), 0.0)
    node.hear(asking(cd(0, source="s")), "a", now=1.0)
    assert list(node.wake(("join-table", "s"), now=1.19))[-1] == Broadcast(
        JoinTable("s", "a", (), (report_of("b", 'CD: category = "pop"'),))
    )


def test_a_broker_that_wants_nothing_of_the_type_stays_silent() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse("Siren: speed > 3")), 0.0)
    node.hear(asking(cd(0, source="s")), "a", now=1.0)
    assert node.pending == {}


def test_between_full_reports_a_stamp_is_enough() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse(JAZZ)), 0.0)
    whole = report_of("b", JAZZ)
    answers = []
    for sequence, now in ((1, 0.0), (2, 5.0), (3, 10.0)):
        node.hear(asking(cd(0, source="s"), sequence), "a", now)
        answers.append(list(node.wake(("join-table", "s"), now + 0.2))[-1])
    stamp = SummaryReport("b", whole.stamp)
    assert answers == [Broadcast(JoinTable("s", "a", (1,), (report,))) for report in (whole, stamp, whole)]


def test_a_stamp_does_not_replace_a_summary_that_is_still_waiting() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse(JAZZ)), 0.0)
    for sequence, now in ((1, 0.0), (2, 0.01)):
        node.hear(asking(cd(0, source="s"), sequence), "a", now)
    assert list(node.wake(("join-table", "s"), 0.2))[-1] == Broadcast(
        JoinTable("s", "a", (1,), (report_of("b", JAZZ),))
    )


def test_a_new_route_to_the_source_gets_the_whole_summary() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse(JAZZ)), 0.0)
    node.hear(asking(cd(0, source="s"), 1), "a", 0.0)
    node.wake(("join-table", "s"), 0.2)
    node.hear(asking(cd(3, source="s"), 2), "c", 1.0)
    assert list(node.wake(("join-table", "s"), 1.2))[-1] == Broadcast(
        JoinTable("s", "c", (1,), (report_of("b", JAZZ),))
    )


def test_data_is_passed_on_where_the_flag_is_set_and_a_reporter_below_may_want_it() -> None:
    node = extended("b")
    node.hear(asking(cd(0, source="s")), "a", now=0.0)
    node.hear(JoinTable("s", "b", (1,), (report_of("c", JAZZ),)), "c", now=0.1)
    jazz, classic = cd(1, source="s"), cd(2, source="s")
    assert list(node.hear(Data(1, jazz, 1), "a", now=1.0)) == [Broadcast(Data(1, jazz, 2))]
    assert list(node.hear(Data(1, jazz, 2), "c", now=1.0)) == []
    assert list(node.hear(Data(1, classic, 1), "a", now=1.1)) == []
    assert list(node.hear(Data(2, cd(3, source="s"), 1), "a", now=1.2)) == []
    assert list(node.hear(Data(1, cd(4, source="s"), 1), "a", now=25.1)) == []


def test_without_examination_the_flag_alone_decides() -> None:
    node = extended("b", examine=False)
    node.hear(asking(cd(0, source="s")), "a", now=0.0)
    node.hear(JoinTable("s", "b", (1,), (report_of("c", JAZZ),)), "c", now=0.1)
    assert list(node.hear(Data(1, cd(2, source="s"), 1), "a", now=1.1)) == [Broadcast(Data(1, cd(2, source="s"), 2))]


def test_a_stamp_without_its_summary_is_taken_to_want_everything() -> None:
    node = extended("b")
    node.hear(asking(cd(0, source="s")), "a", now=0.0)
    node.hear(JoinTable("s", "b", (1,), (SummaryReport("c", 12345),)), "c", now=0.1)
    assert list(node.hear(Data(1, cd(2, source="s"), 1), "a", now=1.0)) == [Broadcast(Data(1, cd(2, source="s"), 2))]


# Bad input.


def test_reports_at_the_source_and_on_the_way_to_it_have_the_share_of_memory_of_their_machine() -> None:
    node = extended("b")
    node.budgets.limit(0.005)
    node.hear(asking(cd(0, source="s")), "a", now=0.0)
    reports = tuple(report_of(f"{number:036d}", JAZZ) for number in range(99))
    for source in ("b", "s"):
        node.hear(JoinTable(source, "b", (1,), reports), "c", now=0.1)
    held = [node.reports, node.below["s"]]
    assert [len(table) for table in held] == [(10_000 - (64 + 256)) // (100 + 256) + 1] * 2, "and one for the others"
    assert all(9_000 < table.table.bytes <= 10_000 for table in held)


def test_a_join_table_for_an_unknown_source_is_dropped() -> None:
    node = extended("b")
    table = JoinTable("s", "b", (1,), (report_of("c", JAZZ),))
    assert list(node.hear(table, "c", now=0.0)) == [Drop("unknown-source")]


def test_a_summary_of_another_version_or_size_is_dropped() -> None:
    node = extended("b")
    node.hear(asking(cd(0, source="s")), "a", now=0.0)
    good = report_of("c", JAZZ).summary
    small = Summary.of([Filter.parse(JAZZ)], BloomShape(64, 2)).to_bytes()
    for data in (b"\x09" + good[1:], small, good[:-1]):
        effects = list(node.hear(JoinTable("s", "b", (1,), (SummaryReport("c", 1, data),)), "c", now=0.1))
        assert len(effects) == 1
        assert isinstance(effects[0], Drop)
        assert effects[0].reason == "malformed-summary"
    assert not node.mesh.flags.holds(("s", 1), 0.2)


def test_a_digest_that_cannot_be_read_is_dropped_and_not_passed_on() -> None:
    node = extended("b")
    effects = list(node.hear(JoinRequest("s", 1, 1, ((1, b"\x0f nonsense"),)), "a", now=0.0))
    assert len(effects) == 1
    assert isinstance(effects[0], Drop)
    assert effects[0].reason == "malformed-digest"


def test_an_acknowledged_join_table_goes_to_its_next_hop_and_a_broken_route_is_removed() -> None:
    node = extended("b", acknowledged=True)
    node.subscribe(Subscription("b/1", "b", Filter.parse(JAZZ)), 0.0)
    node.hear(asking(cd(0, source="s")), "a", now=1.0)
    table = JoinTable("s", "a", (1,), (report_of("b", JAZZ),))
    assert list(node.wake(("join-table", "s"), now=1.19))[-1] == Send("a", table)
    assert list(node.unreachable(table, "a", now=1.3)) == [Drop("next-hop-unreachable")]
    assert not node.mesh.routes.holds("s", 1.3)


def test_with_jitter_packets_wait_a_moment() -> None:
    node = extended("b", jitter_s=0.01)
    effects = list(node.hear(asking(cd(0, source="s")), "a", now=1.0))
    (timer,) = [effect for effect in effects if isinstance(effect, StartTimer) and effect.name != "forget"]
    assert 1.0 <= timer.at <= 1.01
    assert not any(isinstance(effect, Broadcast) for effect in effects)
    assert list(node.wake(timer.name, timer.at)) == [Broadcast(asking(cd(0, source="s"), hops=2))]


# The paper's experiment.


def test_figure_4_exactly_the_matching_brokers_deliver() -> None:
    top = table(extended, TREE, FIGURE_3)
    play(top, 100)
    assert sorted(top.delivered) == figure_3_deliveries(100)
    assert top.drops == []


def test_each_kind_of_event_gets_a_group_and_goes_only_where_it_is_wanted() -> None:
    top = table(extended, TREE, FIGURE_3)
    play(top, 30)
    source = top.machines["S"]
    assert [sorted(source.groups.members(group, top.now)) for group in source.groups.by_id.values()] == [
        ["R1"],
        ["R2"],
        ["R4"],
    ]
    data = [node for node, kind in sent(top) if kind == "data"]
    assert (data.count("N1"), data.count("N2"), data.count("N3")) == (16, 9, 9)


def test_an_event_without_subscribers_is_not_sent_between_requests() -> None:
    top = table(extended, TREE, {"R1": FIGURE_3["R1"]})
    play(top, 6)
    assert [(node, kind) for node, kind in sent(top) if node == "S"] == [("S", "join-request"), ("S", "data")]
    assert top.drops == [("S", "no-subscriber")] * 4


def test_a_source_that_publishes_seldom_asks_for_no_answers() -> None:
    top = table(extended, LINE, {"R": "/CD"}, spare_slow_sources=True)
    for number in range(4):
        top.run(until=6.0 * number)
        publish(top, cd(number, time=6.0 * number))
    top.run(until=30.0)
    assert {kind for _, kind in sent(top)} == {"join-request"}
    assert [event for _, event, _ in top.delivered] == ["S-0", "S-1", "S-2", "S-3"]


def test_a_source_that_publishes_often_gets_its_routes_after_a_few_events() -> None:
    top = table(extended, LINE, {"R": "/CD"}, spare_slow_sources=True)
    for number in range(12):
        top.run(until=0.5 * number)
        publish(top, cd(number, time=0.5 * number))
    top.run(until=10.0)
    kinds = [kind for node, kind in sent(top) if node == "S"]
    assert kinds[:5] == ["join-request"] * 5
    assert kinds[-5:] == ["data"] * 5
    assert len(top.delivered) == 12


def test_events_ride_on_requests_until_the_first_answers_are_in() -> None:
    top = table(extended, LINE, {"R": "/CD"})
    for number in range(4):
        top.run(until=0.005 * number)
        publish(top, cd(number))
    top.run(until=1.0)
    assert [kind for node, kind in sent(top) if node == "S"] == ["join-request"] * 4
    assert [event for _, event, _ in top.delivered] == ["S-0", "S-1", "S-2", "S-3"]


def test_a_source_without_an_answer_asks_five_times_and_then_only_to_refresh() -> None:
    top = table(extended, LINE, {})
    play(top, 30)
    assert [packet.event.time for node, packet in top.sent if node == "S" and packet.event] == [
        *(0.0, 0.5, 1.0, 1.5, 2.0),
        *(7.0, 12.0),
    ]
    assert top.drops == [("S", "no-subscriber")] * 23


# Subscriptions change.


def test_a_new_subscription_is_reported_at_once_and_served_before_the_next_refresh() -> None:
    top = table(extended, LINE, {"R": FIGURE_3["R1"]})
    play(top, 3)
    subscribe(top, "B", FIGURE_3["R2"])
    top.run(until=1.6)
    publish(top, cd(4))
    top.run(until=2.0)
    assert ("B", "S-4", "B/1") in top.delivered


def test_an_unsubscription_is_reported_at_once_and_nothing_more_is_sent() -> None:
    top = table(extended, LINE, {"R": "/CD"})
    play(top, 3)
    top.do("R", "unsubscribe", "R/1")
    top.run(until=1.6)
    sends = len(top.sent)
    publish(top, cd(4))
    top.run(until=2.0)
    assert top.drops == [("S", "no-subscriber")]
    assert len(top.sent) == sends
    assert len(top.machines["S"].reports) == len(top.machines["A"].below["S"]) == 0


def test_several_changes_at_one_time_make_one_join_table() -> None:
    top = table(extended, LINE, {"R": FIGURE_3["R1"]})
    play(top, 1)
    before = sent(top).count(("R", "join-table"))
    for number in range(5):
        wanted = Filter.parse(f"CD: price = {number}")
        top.do("R", "subscribe", Subscription(f"R/more/{number}", "R", wanted))
    top.run(until=1.0)
    assert sent(top).count(("R", "join-table")) == before + 1


# Groups.


def groups_of(top: Tabletop) -> list[tuple[int, list[str]]]:
    source = top.machines["S"]
    return [(group.id, sorted(source.groups.members(group, top.now))) for group in source.groups.by_id.values()]


def test_an_event_goes_to_the_smallest_group_that_has_all_its_subscribers() -> None:
    """The least constrained subscriber is in every group; one group serves events for it alone."""
    star = [("S", name) for name in ("R1", "R2", "all")]
    top = table(extended, star, {"R1": FIGURE_3["R1"], "R2": FIGURE_3["R2"], "all": "/CD"})
    play(top, 9)
    assert groups_of(top) == [(1, ["R1", "all"]), (2, ["R2", "all"])]
    assert len(top.delivered) == 9 + 3 + 3


def test_finest_groups_make_one_more() -> None:
    star = [("S", name) for name in ("R1", "R2", "all")]
    wanted = {"R1": FIGURE_3["R1"], "R2": FIGURE_3["R2"], "all": "/CD"}
    top = table(extended, star, wanted, noise_limit=0.0)
    play(top, 9)
    assert groups_of(top) == [(1, ["R1", "all"]), (2, ["R2", "all"]), (3, ["all"])]


def test_too_many_groups_are_combined_and_split_again_when_there_is_room() -> None:
    top = table(extended, TREE, FIGURE_3, groups_limit=2, noise_limit=0.4)
    play(top, 9)
    assert groups_of(top) == [(1, ["R1", "R4"]), (2, ["R2"])]
    assert sorted(top.delivered) == figure_3_deliveries(9)
    top.do("R2", "unsubscribe", "R2/1")
    for number in range(9, 60):
        top.run(until=top.now + 0.5)
        publish(top, cd(number))
    assert sorted(members for _, members in groups_of(top)) == [["R1"], ["R4"]]


def test_beyond_two_events_a_group_represents_its_whole_type() -> None:
    top = table(extended, TREE, FIGURE_3, groups_limit=1)
    play(top, 9)
    assert groups_of(top) == [(2, ["R1", "R2", "R3", "R4", "R5"])]
    assert sorted(top.delivered) == figure_3_deliveries(9)


def test_groups_whose_members_have_become_the_same_are_combined() -> None:
    star = [("S", name) for name in ("R1", "R2")]
    top = table(extended, star, {"R1": FIGURE_3["R1"], "R2": FIGURE_3["R2"]})
    play(top, 6)
    assert groups_of(top) == [(1, ["R1"]), (2, ["R2"])]
    for name in ("R1", "R2"):
        subscribe(top, name, "/CD")
    play(top, 12)
    assert [members for _, members in groups_of(top)] == [["R1", "R2"]]


# Advertisement mode.


def test_in_advertisement_mode_the_first_event_finds_its_route() -> None:
    top = table(extended, LINE, {"R": "/CD"}, advertise=True)
    top.do("S", "announce", Announcement(EventType("CD", {"category": str, "composer": str, "price": float})))
    top.run(until=4.0)
    publish(top, cd(0))
    top.run(until=4.5)
    assert [kind for node, kind in sent(top) if node == "S"] == ["join-request", "data"]
    assert top.delivered == [("R", "S-0", "R/1")]
    top.run(until=21.0)
    assert [kind for node, kind in sent(top) if node == "S"].count("join-request") == 5
    top.do("S", "unannounce", "CD")
    top.run(until=60.0)
    assert [kind for node, kind in sent(top) if node == "S"].count("join-request") == 5


# Soft state.


def state(machine) -> tuple[int, ...]:  # type: ignore[no-untyped-def]
    return (
        len(machine.mesh.routes),
        len(machine.mesh.flags),
        len(machine.sent_reports),
        len(machine.below),
        len(machine.reports),
        len(machine.groups.by_id),
    )


def test_a_source_that_stops_refreshing_is_forgotten_everywhere_within_the_timeout() -> None:
    top = table(extended, TREE, FIGURE_3)
    play(top, 3)
    assert all(len(machine.mesh.routes) for name, machine in top.machines.items() if name != "S")
    del top.machines["S"]
    top.run(until=1.5 + 25.3)
    assert {state(machine) for machine in top.machines.values()} == {(0, 0, 0, 0, 0, 0)}


def test_a_broker_that_stops_refreshing_is_forgotten_everywhere_within_the_timeout() -> None:
    top = table(extended, LINE, {"R": "/CD", "B": FIGURE_3["R2"]})
    play(top, 3)
    del top.machines["R"]
    gone_at = top.now
    number = 3
    while top.now < gone_at + 25.3:
        publish(top, cd(number))
        number += 1
        top.run(until=top.now + 0.5)
    known = [
        {reporter for reporter, _ in reports.table.items(top.now)}
        for reports in (top.machines["S"].reports, top.machines["A"].below["S"])
    ]
    assert known == [{"B"}, {"B"}]
    assert "S" not in top.machines["B"].below
    assert not len(top.machines["B"].mesh.flags)


def test_when_a_request_is_not_answered_events_ride_on_requests() -> None:
    top = table(extended, LINE, {"R": "/CD"})
    play(top, 9)
    top.cut("B", "R")
    top.link("A", "R")
    sends = len(sent(top))
    for number in range(9, 12):
        publish(top, cd(number))
        top.run(until=top.now + 0.7)
    assert [kind for node, kind in sent(top)[sends:] if node == "S"] == ["data", "join-request", "data"]


def test_tables_are_bounded() -> None:
    node = extended("b", sources_limit=3, reports_limit=2)
    drops = []
    for number in range(5):
        event = cd(0, source=f"s{number}")
        drops += [one for one in node.hear(asking(event), "a", now=float(number)) if isinstance(one, Drop)]
        for reporter in "cdef":
            node.hear(JoinTable(f"s{number}", "b", (1,), (report_of(reporter, JAZZ),)), "c", now=float(number))
    assert drops == [Drop("too-many-sources")] * 2
    assert len(node.mesh.routes) == 3
    assert max(len(reports) for reports in node.below.values()) == 3
    # Who did not fit may want anything: nothing is lost.
    assert list(node.hear(Data(1, cd(2, source="s4"), 1), "a", now=5.0)) == [Broadcast(Data(1, cd(2, source="s4"), 2))]


def test_reports_that_do_not_fit_a_packet_are_merged_by_the_node_that_passes_them_on() -> None:
    star = [("S", "A"), *(("A", f"R{index}") for index in range(20))]
    wanted = {f"R{index}": f"CD: price = {index} and category = 'c{index}'" for index in range(20)}
    top = table(extended, star, wanted, packet_bytes=400, summary_bytes=300)
    publish(top, cd(0))
    top.run(until=1.0)
    (joined,) = [packet for node, packet in top.sent if node == "A" and isinstance(packet, JoinTable)]
    assert [report.reporter for report in joined.reports] == ["A+"]
    assert len(joined.reports[0].summary) <= 400
    top.run(until=2.0)
    for index in range(20):
        event = Event(type="CD", content={"price": index, "category": f"c{index}"}, id=f"e{index}", source="S")
        publish(top, event)
        top.run(until=top.now + 0.3)
    assert sorted(event for _, event, _ in top.delivered) == sorted(f"e{index}" for index in range(20))


def test_a_broker_that_wants_nearly_everything_reports_it_in_a_few_bytes() -> None:
    node = extended("b")
    for number in range(50):
        node.subscribe(Subscription(f"b/{number}", "b", Filter.parse(f"CD: price in {number}..{number + 1}")), 0.0)
    sizes = []
    for sequence in range(40):
        event = cd(sequence, source="s", time=sequence * 11.0)
        node.hear(asking(event, sequence), "a", now=sequence * 11.0)
        (table,) = [
            one.packet for one in node.wake(("join-table", "s"), sequence * 11.0 + 1) if isinstance(one, Broadcast)
        ]
        sizes.append(len(table.reports[0].summary))
    assert sizes[0] > 60
    assert sizes == [sizes[0]] * 11 + [8] * 29
    node.unsubscribe("b/0", 500.0)
    assert not node.local_summaries.pass_rates.greedy(Digest.of(cd(0)).type)


def test_events_from_the_mesh_do_not_count_towards_a_pass_rate() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse(JAZZ)), 0.0)
    for number in range(60):
        node.hear(Data(1, cd(3 * number, source="s"), 1), "a", now=0.0)
    assert not node.local_summaries.pass_rates.greedy(Digest.of(cd(0)).type)


def test_a_pass_rate_rises_and_falls_with_what_is_heard() -> None:
    rates = PassRates(limit=0.8, capacity=1)
    changes = [number for number in range(200) if rates.count(7, passes=number < 100)]
    assert len(changes) == 2
    assert changes[0] == 11
    assert 100 < changes[1] < 130
    assert not rates.count(8, passes=True)
    assert not rates.greedy(8)


# Mobility prediction.


def test_link_lifetime() -> None:
    still, east = Velocity(0, 0), Velocity(10, 0)
    here, there = Position(0, 0), Position(30, 0)
    assert link_lifetime_s(here, still, there, still, 100) == math.inf
    assert link_lifetime_s(here, still, there, east, 100) == pytest.approx(7.0)
    assert link_lifetime_s(here, still, there, Velocity(-10, 0), 100) == pytest.approx(13.0)
    assert link_lifetime_s(here, east, there, east, 100) == math.inf
    assert link_lifetime_s(here, still, Position(60, 0), Velocity(0, 8), 100) == pytest.approx(10.0)
    assert link_lifetime_s(here, still, Position(101, 0), still, 100) == 0.0


@given(st.lists(st.floats(-50, 50), min_size=8, max_size=8))
def test_at_the_end_of_its_lifetime_a_link_is_as_long_as_the_range(numbers: list[float]) -> None:
    a, b = Position(*numbers[:2]), Position(*numbers[2:4])
    a_velocity, b_velocity = Velocity(*numbers[4:6]), Velocity(*numbers[6:])
    lifetime_s = link_lifetime_s(a, a_velocity, b, b_velocity, 150.0)
    if lifetime_s > 1e4:
        return
    apart = a.moved(a_velocity.x_m_s * lifetime_s, a_velocity.y_m_s * lifetime_s).distance_to(
        b.moved(b_velocity.x_m_s * lifetime_s, b_velocity.y_m_s * lifetime_s)
    )
    assert apart == pytest.approx(150.0, abs=0.01)


def test_the_refresh_interval_follows_the_shortest_lived_link() -> None:
    names = {"S": (0, 0), "A": (50, 0), "R": (100, 0)}
    east = {"R": Velocity(5.0, 0.0)}
    machines = [
        extended(name, Position(*at), east.get(name, Velocity(0, 0)), predict=True, range_m=100.0)
        for name, at in names.items()
    ]
    top = Tabletop(machines, [("S", "A"), ("A", "R")])
    subscribe(top, "R", "/CD")
    play(top, 30)
    # A and R are 50 m apart and part at 5 m/s: the link lasts 10 s.
    requests = [packet for node, packet in top.sent if node == "S" and isinstance(packet, JoinRequest)]
    assert top.machines["S"].predicted_s == pytest.approx(10.0)
    assert [request.event.time for request in requests if request.event] == [0.0, 10.0]
    assert requests[0].motion == Motion(Position(0, 0), Velocity(0, 0), 1e6)


# Any still network.


@settings(max_examples=sized(80, 3000), deadline=None)
@pytest.mark.timeout(3600)
@given(
    st.integers(2, 12),
    st.integers(0, 10**6),
    st.lists(st.sampled_from([*FIGURE_3.values(), "/CD", "CD: price > 15", "not category = 'jazz'"]), max_size=11),
    st.fixed_dictionaries(
        {
            "examine": st.booleans(),
            "groups_limit": st.sampled_from([1, 2, 8]),
            "noise_limit": st.sampled_from([0.0, 0.5, 1.0]),
            "packet_bytes": st.sampled_from([140, 1400]),
            "summary_bytes": st.just(40),
        }
    ),
)
def test_in_any_still_network_exactly_the_matching_brokers_deliver(
    n: int, seed: int, texts: list[str], given_settings: dict[str, Any]
) -> None:
    graph = nx.gnp_random_graph(n, 0.35, seed=seed)
    graph = graph.subgraph(nx.node_connected_component(graph, 0))
    if graph.number_of_edges() == 0:
        return
    wanted = {f"n{node:02}": text for node, text in zip(sorted(graph.nodes)[1:], texts, strict=False)}
    links = [(f"n{a:02}", f"n{b:02}") for a, b in graph.edges]
    top = table(extended, links, wanted, **given_settings)
    play(top, 24, source="n00")
    filters = {name: Filter.parse(text) for name, text in wanted.items()}
    assert sorted(top.delivered) == sorted(
        (name, f"n00-{number}", f"{name}/1")
        for name, filter in filters.items()
        for number in range(24)
        if filter.matches(cd(number))
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"refresh_interval_s": 0.0}, "refresh_interval_s must be a positive number of seconds, got 0.0"),
        ({"refresh_interval_s": 30.0}, "forwarding_timeout_s must exceed refresh_interval_s"),
        ({"noise_limit": 1.5}, "noise_limit must be from 0 to 1, got 1.5"),
        ({"gather_s": 0.5}, "answer_wait_s must exceed gather_s"),
        ({"gather_s": -1.0}, "gather_s must not be negative"),
        ({"refresh_min_s": 30.0}, "refresh_min_s must lie between"),
        ({"summary_bytes": 10}, "summary_bytes must be at least 32"),
        ({"vector_bits": 100}, "vector_bits and vector_hashes: bits must be a power of two"),
        ({"groups_limit": 0}, "groups_limit must be at least 1"),
        ({"greedy_share": 0.1}, "greedy_share must exceed"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict, message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(SettingsError, match=message):
        ContentOdmrpSettings(**wrong)


# Areas.


def test_a_request_for_events_of_an_area_ends_one_hop_beyond_it() -> None:
    names = [f"N{k}" for k in range(8)]
    places = {name: Position(150.0 * k, 0.0) for k, name in enumerate(names)}
    top = Tabletop([extended(name, at=places[name], range_m=160.0) for name in names], list(pairwise(names)))
    for name in names:
        subscribe(top, name, "/CD")
    near = msgspec.structs.replace(cd(0, source="N0"), area=Area(Circle(300.0), places["N0"]))
    publish(top, near)
    top.run(0.3)
    requests = [node for node, packet in top.sent if isinstance(packet, JoinRequest)]
    assert requests == ["N0", "N1", "N2", "N3"], "N4, at 600 m, hears it and keeps it to itself"
    assert [node for node, _, _ in top.delivered] == ["N1", "N2"]


def test_a_request_that_also_offers_events_for_everywhere_goes_everywhere() -> None:
    near = msgspec.structs.replace(cd(0), area=Area(Circle(300.0), Position(0.0, 0.0)))
    news = (2, Digest.of(Event("News", {"x": 1})).data)
    for offers, passed_on in ((asking(near).offers, 0), ((*asking(near).offers, news), 1)):
        far = extended("far", at=Position(600.0, 0.0), range_m=160.0)
        request = msgspec.structs.replace(asking(near), offers=offers)
        effects = far.hear(request, "S", 0.1)
        assert sum(isinstance(one, Broadcast) and isinstance(one.packet, JoinRequest) for one in effects) == passed_on
