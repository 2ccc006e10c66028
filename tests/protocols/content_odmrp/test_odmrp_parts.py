"""Groups, pass rates, reports and the mesh of ODMRP by themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from odmrp_table import cd, extended, plain

from earshot import Event, Filter
from earshot.errors import SettingsError
from earshot.filters import Subscription
from earshot.filters.summaries.bloom import BloomShape
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from earshot.protocols.common.byte_budget import TableBudgets
from earshot.protocols.common.local_subscriptions import LocalSubscriptions
from earshot.protocols.content_odmrp import reports
from earshot.protocols.content_odmrp.forwarding_mesh import MeshSettings, mesh_tuning
from earshot.protocols.content_odmrp.groups import ContentGroup, ContentGroups
from earshot.protocols.content_odmrp.local_summaries import LocalSummaries, PassRates
from earshot.protocols.content_odmrp.machine import (
    ContentOdmrpSettings,
    OfferedRoute,
    PendingTable,
    PublishingPace,
    SentReport,
    hold_s,
)
from earshot.protocols.content_odmrp.machine import Data as ContentData
from earshot.protocols.content_odmrp.odmrp import Data, JoinRequest, JoinTable
from earshot.protocols.content_odmrp.reports import (
    UNKNOWN,
    ReportTable,
    SummaryReport,
    fitting,
    full_report,
    read_summary,
)
from earshot.protocols.flooding import Flood
from earshot.protocols.machine import Broadcast, Deliver
from earshot.protocols.tuning import Surroundings

SHAPE = BloomShape(512, 1)
AROUND = Surroundings(
    nodes=9, present=9.0, width_m=9.0, height_m=9.0, range_m=100.0, mean_neighbours=9.0, median_speed_m_s=9.0,
    link_lifetime_s=12.0, events_per_s=9.0, packet_airtime_s=0.001,
)  # fmt: skip


# The mesh.


def test_defaults_of_the_mesh() -> None:
    found = MeshSettings()
    assert (found.refresh_interval_s, found.forwarding_timeout_s, found.hop_limit) == (5.0, 25.0, 32)
    assert (found.lifespan_s, found.memory, found.jitter_s) == (60.0, 4096, 0.02)
    with pytest.raises(SettingsError, match="forwarding_timeout_s must exceed refresh_interval_s"):
        MeshSettings(refresh_interval_s=25.0)
    assert MeshSettings(refresh_interval_s=24.9).refresh_interval_s == 24.9


@pytest.mark.parametrize(
    ("lasts_s", "neighbours", "refresh_s", "jitter_s"),
    [(12.0, 9.0, 3.0, 0.02), (1.0, 0.0, 1.0, 0.005), (400.0, 500.0, 10.0, 0.1), (13.5, 12.6, 3.4, 0.027)],
)
def test_first_guesses_follow_the_life_of_links_and_the_number_of_neighbours(
    lasts_s: float, neighbours: float, refresh_s: float, jitter_s: float
) -> None:
    around = replace(AROUND, link_lifetime_s=lasts_s, mean_neighbours=neighbours)
    found = mesh_tuning(around, {"forwarding_timeout_s": 5.0})
    assert [(one.name, one.first, one.low, one.high, one.step, dict(one.follows)) for one in found] == [
        ("refresh_interval_s", refresh_s, 0.5, 20.0, 2.0, {"forwarding_timeout_s": 5.0}),
        ("jitter_s", jitter_s, 0.002, 0.3, 3.0, {}),
    ]


def test_an_event_that_rode_on_a_request_is_not_handled_again_as_data() -> None:
    node = plain("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse("/CD")), 0.0)
    event = cd(0, source="s")
    assert Deliver(event, "b/1", 1) in node.hear(JoinRequest("s", 0, 7, 1, event), "a", now=1.0)
    assert list(node.hear(Data(0, event, 2), "c", now=1.1)) == []


def test_a_publisher_does_not_hear_its_own_request_or_data_again() -> None:
    node = plain("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse("/CD")), 0.0)
    first, second = cd(0, source="b"), cd(1, source="b")
    assert list(node.publish(first, 1.0)) == [Broadcast(JoinRequest("b", 0, 1, 1, first))]
    assert list(node.hear(JoinRequest("b", 0, 1, 2, first), "a", now=1.1)) == []
    assert list(node.publish(second, 5.9)) == [Broadcast(Data(0, second, 1))]
    assert list(node.hear(Data(0, second, 2), "a", now=5.95)) == []
    third = cd(2, source="b")
    assert list(node.publish(third, 6.0)) == [Broadcast(JoinRequest("b", 0, 2, 1, third))]


def test_packets_of_other_kinds_and_tables_for_others_have_no_effect() -> None:
    node = plain("b")
    node.hear(JoinRequest("s", 0, 7, 1), "a", now=1.0)
    assert list(node.hear(JoinTable(0, {"b": "x", "s": "y"}), "c", now=1.1)) == []
    assert list(node.hear(Flood(cd(1), 1), "c", now=1.1)) == []


# Pass rates.


def counted(rates: PassRates, *passes: bool, type: int = 1) -> list[bool]:
    return [rates.count(type, one) for one in passes]


def test_a_pass_rate_counts_from_the_twelfth_event_on() -> None:
    rates = PassRates(0.75, 9)
    assert counted(rates, *[True] * 11) == [False] * 11
    assert (rates.count(1, True), rates.greedy(1), rates.greedy(2)) == (True, True, False)


def test_the_limit_itself_is_greedy_and_a_fifth_below_it_is_not() -> None:
    rates = PassRates(0.75, 9)
    counted(rates, *[True] * 9, *[False] * 3)
    assert rates.greedy(1), "9 of 12"
    counted(rates, *[False] * 4)
    assert rates.greedy(1), "9 of 16 is above 0.55"
    assert counted(rates, False) == [True], "9 of 17 is below it"
    assert not rates.greedy(1)


def test_after_64_events_earlier_ones_count_half() -> None:
    rates = PassRates(0.9, 9)
    counted(rates, *[True] * 63)
    assert rates._counts[1] == (63.0, 63.0)
    rates.count(1, False)
    assert rates._counts[1] == (32.0, 31.5)


def test_pass_rates_of_so_many_types_are_kept() -> None:
    rates = PassRates(0.5, 2)
    for type in (1, 2, 3):
        counted(rates, *[True] * 12, type=type)
    assert [rates.greedy(type) for type in (1, 2, 3)] == [True, True, False]
    rates.clear()
    assert not rates.greedy(1)
    counted(rates, *[True] * 12, type=3)
    assert rates.greedy(3)


# Reports.


def summary(*texts: str) -> Summary:
    return Summary.of([Filter.parse(text) for text in texts], SHAPE)


def report(name: str, *texts: str) -> SummaryReport:
    return full_report(name, summary(*texts).to_bytes())


CHEAP, EVENT = "CD: price < 10", Event("CD", {"price": 5})


def test_a_stamp_keeps_what_is_known_and_an_unknown_stamp_wants_everything() -> None:
    found = ReportTable(4, SHAPE)
    full = report("b", CHEAP)
    found.hear(full, 0.0, 10.0)
    found.hear(SummaryReport("b", full.stamp), 5.0, 20.0)
    reporter = found.table.get("b", 15.0)
    assert reporter is not None
    assert reporter.summary is not None
    found.hear(SummaryReport("b", full.stamp + 1), 5.0, 20.0)
    assert found.wanting(Event("News", {}), 6.0) == {"b"}
    assert found.vague(["b"], 6.0)
    found.hear(report("b", CHEAP), 6.0, 20.0)
    assert not found.vague(["b"], 7.0)
    assert (found.vague(["stranger"], 7.0), found.vague(["b+"], 7.0), found.vague([], 7.0)) == (True, True, False)


def test_the_summary_of_a_stamp_that_was_unknown_counts_when_it_comes() -> None:
    found, full = ReportTable(4, SHAPE), report("b", CHEAP)
    found.hear(SummaryReport("b", full.stamp), 0.0, 10.0)
    assert found.wanting(Event("News", {}), 1.0) == {"b"}
    found.hear(full, 2.0, 12.0)
    assert (found.wanting(Event("News", {}), 3.0), found.wanting(EVENT, 3.0)) == (frozenset(), {"b"})


def test_a_reporter_that_wants_nothing_any_longer_is_removed() -> None:
    found = ReportTable(4, SHAPE)
    found.hear(report("b", CHEAP), 0.0, 10.0)
    found.hear(report("b"), 1.0, 10.0)
    assert len(found) == 0


def test_a_full_table_keeps_the_rest_as_one_that_wants_everything() -> None:
    found = ReportTable(2, SHAPE)
    for name in "abc":
        found.hear(report(name, CHEAP), 0.0, 10.0)
    assert found.wanting(Event("News", {}), 1.0) == {UNKNOWN}
    found.hear(report("a", "News"), 1.0, 10.0)
    assert found.wanting(Event("News", {}), 1.0) == {"a", UNKNOWN}, "who is known may change"
    found.hear(report("d", CHEAP), 10.0, 20.0)
    assert found.wanting(EVENT, 10.0) == {"d"}, "the others have fallen silent and made room"


def test_reports_stay_within_the_budget_of_bytes_and_reporters_without_room_want_everything() -> None:
    budgets = TableBudgets()
    found = ReportTable(10**6, SHAPE, budgets)
    budgets.limit(0.01)
    names = [f"{number:036d}" for number in range(99)]
    for name in names:
        found.hear(report(name, CHEAP), 0.0, 10.0)
        assert found.table.bytes <= budgets.table_bytes == 20_000
    kept = names[: (20_000 - (64 + 256)) // (100 + 256)]
    assert found.wanting(EVENT, 1.0) == {*kept, UNKNOWN}, "none of those that were known is forgotten"
    assert found.wanting(Event("News", {}), 1.0) == {UNKNOWN}
    found.hear(report(kept[0], "News"), 1.0, 10.0)
    assert found.wanting(Event("News", {}), 1.0) == {kept[0], UNKNOWN}, "who is known may change"
    found.hear(report(names[-1], CHEAP), 10.0, 20.0)
    assert found.wanting(EVENT, 10.0) == {names[-1]}, "the others have fallen silent and made room"


def test_long_summaries_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reports.REMEMBERED_BYTES == 4096
    data = summary(CHEAP).to_bytes()
    assert read_summary(data, SHAPE) is read_summary(data, SHAPE)
    monkeypatch.setattr(reports, "REMEMBERED_BYTES", len(data) - 1)
    assert read_summary(data, SHAPE) is not read_summary(data, SHAPE)


# Groups.


def groups(limit: int = 2, noise_limit: float = 0.5) -> ContentGroups:
    return ContentGroups(limit, noise_limit, 0.4, "smallest", ReportTable(9, SHAPE))


def test_counts_of_groups_begin_at_nothing() -> None:
    found = groups()
    assert (found.made, found.split, found.combined, found.by_id) == (0, 0, 0, {})


@pytest.mark.parametrize(
    ("offered_at", "answered_at", "now", "has_route"),
    [
        (-math.inf, -math.inf, 5.0, False),
        (5.0, -math.inf, 5.1, False),
        (5.0, 5.0, 9.0, True),
        (5.0, 4.0, 5.39, True),
        (5.0, 4.0, 5.4, False),
    ],
)
def test_a_group_has_a_route_from_its_answer_on(
    offered_at: float, answered_at: float, now: float, has_route: bool
) -> None:
    group = ContentGroup(1, "CD", [], 0.0, 0.0, offered_at=offered_at, answered_at=answered_at)
    assert groups().has_route(group, now) == has_route


def test_the_least_used_group_of_another_type_makes_room() -> None:
    found = groups(limit=2)
    first, second, third = (
        found.open(Digest.of_type(type), type, frozenset(), now) for type, now in (("A", 1.0), ("B", 2.0), ("C", 3.0))
    )
    assert ([group.id for group in found.by_id.values()], found.made, found.combined) == ([2, 3], 3, 0)
    assert (first.id, second.used_at, third.made_at) == (1, 2.0, 3.0)


def test_unused_and_unwanted_groups_are_removed() -> None:
    found = groups()
    group = found.open(Digest.of(EVENT), "CD", frozenset(), 1.0)
    found.reports.hear(report("b", CHEAP), 1.0, 100.0)
    found.regroup(1.4, 10.0)
    assert list(found.by_id) == [group.id], "it has a member"
    assert found.first_end(10.0) == 11.0
    found.regroup(10.9, 10.0)
    assert list(found.by_id) == [group.id]
    found.regroup(11.0, 10.0)
    assert (found.by_id, found.first_end(10.0)) == ({}, math.inf)
    found.open(Digest.of(Event("News", {})), "News", frozenset(), 20.0)
    found.regroup(20.3, 10.0)
    assert len(found.by_id) == 1, "members may still be found"
    found.regroup(20.4, 10.0)
    assert found.by_id == {}


def test_offers_and_answers_are_noted() -> None:
    found = groups()
    group = found.open(Digest.of(EVENT), "CD", frozenset(), 1.0)
    assert found.offered(2.0) == ((group.id, Digest.of(EVENT).data),)
    found.answered((group.id, 99), 2.5)
    assert (group.offered_at, group.answered_at) == (2.0, 2.5)


def test_audiences_are_noted_for_so_many_groups_and_only_where_somebody_wants_the_event() -> None:
    found = groups(limit=2)
    group = found.choose(Digest.of(EVENT), "CD", frozenset(), 1.0)
    assert (group.audiences, group.used_at) == ({}, 1.0)
    for number in range(5):
        found.choose(Digest.of(EVENT), "CD", frozenset({f"b{number}"}), 2.0)
    assert len(group.audiences) == 3, "one more than there may be groups: then it cannot be split"


def test_what_reporters_and_local_subscribers_want_together() -> None:
    found = ReportTable(4, SHAPE)
    found.hear(report("b", CHEAP), 0.0, 10.0)
    merged = found.merged(summary("News"), 1.0)
    wanted = [merged.may_match(event) for event in (EVENT, Event("News", {}), Event("Other", {}))]
    assert wanted == [True, True, False]
    found.hear(SummaryReport("c", 5), 0.0, 10.0)
    assert found.merged(summary("News"), 1.0).may_match(Event("Other", {})), "its summary is missing"
    assert (found.wants(EVENT, 1.0), found.wants(EVENT, 11.0)) == (True, False)


def test_reports_that_do_not_fit_become_one_within_the_budget_and_stamps_that_fit_stay() -> None:
    full = [report(f"b{number}", f"CD: price < {number}") for number in range(9)]
    stamps = [SummaryReport(f"c{number}", number) for number in range(9)]
    everything = sum(len(one.reporter) + 10 + len(one.summary) for one in (*full, *stamps))
    assert fitting([*stamps, *full], "n", everything, SHAPE) == (*full, *stamps)
    for budget in (everything - 1, 150, 100):
        *kept, whole = fitting([*stamps, *full], "n", budget, SHAPE)
        assert (whole.reporter, kept) == ("n+", stamps[: len(kept)])
        assert sum(len(one.reporter) + 10 + len(one.summary) for one in (*kept, whole)) <= budget
        assert read_summary(whole.summary, SHAPE).may_match(Event("CD", {"price": 1}))
    assert len(fitting([*stamps, *full], "n", everything - 1, SHAPE)) == 10, "every stamp fits beside the whole"


def test_a_summary_is_stated_wider_than_it_is_for_greedy_types_only() -> None:
    subscriptions = LocalSubscriptions()
    subscriptions.add(Subscription("b/1", "b", Filter.parse(CHEAP)), 0.0)
    rates = PassRates(0.5, 9)
    local = LocalSummaries("b", subscriptions, SHAPE, 1000, True, rates)
    kind = Digest.of(EVENT).type
    dear = Event("CD", {"price": 50})
    assert not local.about(frozenset({kind})).stated.may_match(dear)
    for _ in range(12):
        local.count(EVENT)
    found = local.about(frozenset({kind}))
    assert (found.exact.may_match(dear), found.stated.may_match(dear)) == (False, True)
    assert found.report == full_report("b", found.stated.to_bytes())


def test_of_the_groups_that_suit_the_one_with_the_fewest_members_is_taken_then_the_oldest() -> None:
    found = groups(limit=9, noise_limit=0.9)
    for name, filter in (("a", "CD: price < 10"), ("b", "CD: price < 20"), ("c", "CD: price < 30")):
        found.reports.hear(report(name, filter), 0.0, 100.0)
    three, two, also_two = (
        found.open(Digest.of(Event("CD", {"price": price})), "CD", frozenset(), 1.0) for price in (5, 15, 16)
    )
    assert [sorted(found.members(group, 1.0)) for group in (three, two, also_two)] == [[*"abc"], [*"bc"], [*"bc"]]
    new = Digest.of(Event("CD", {"price": 14}))
    assert found.choose(new, "CD", frozenset({"b", "c"}), 1.0) is two
    assert found.choose(new, "CD", frozenset({"a", "c"}), 1.0) is three
    assert found.choose(Digest.of(Event("CD", {"price": 16})), "CD", frozenset({"b", "c"}), 1.0) is two


def test_a_group_suits_an_event_up_to_exactly_the_noise_that_is_allowed() -> None:
    found = groups(limit=9, noise_limit=0.5)
    for name in ("a", "b"):
        found.reports.hear(report(name, CHEAP), 0.0, 100.0)
    group = found.open(Digest.of(EVENT), "CD", frozenset({"a", "b"}), 1.0)
    other = Digest.of(Event("CD", {"price": 6}))
    assert found._suits(group, other, "CD", frozenset({"a"}), 1.0), "one of two members"
    found.noise_limit = 0.49
    assert not found._suits(group, other, "CD", frozenset({"a"}), 1.0)
    assert not found._suits(group, other, "News", frozenset({"a", "b"}), 1.0)
    assert not found._suits(group, other, "CD", frozenset(), 1.0)


def test_sequence_numbers_begin_with_the_milliseconds_of_the_start() -> None:
    node = plain("b")
    node.start(2.5)
    event = cd(0, source="b")
    assert list(node.publish(event, 3.0)) == [Broadcast(JoinRequest("b", 0, 2501, 1, event))]


def test_settings_at_their_bounds() -> None:
    with pytest.raises(SettingsError, match=r"answer_wait_s must exceed gather_s, got 0.2 and 0.2"):
        ContentOdmrpSettings(answer_wait_s=0.2, gather_s=0.2)
    with pytest.raises(SettingsError, match=r"refresh_min_s must lie between 0 and refresh_max_s, got 5 and 4"):
        ContentOdmrpSettings(refresh_min_s=5.0, refresh_max_s=4.0)
    with pytest.raises(SettingsError, match=r"refresh_min_s must lie between 0 and refresh_max_s, got 0 and 4"):
        ContentOdmrpSettings(refresh_min_s=0.0, refresh_max_s=4.0)
    assert ContentOdmrpSettings(refresh_min_s=4.0, refresh_max_s=4.0).refresh_min_s == 4.0
    with pytest.raises(SettingsError, match=r"greedy_share must exceed 0.2, got 0.2"):
        ContentOdmrpSettings(greedy_share=0.2)


def test_a_source_of_the_extended_protocol_does_not_handle_its_own_event_again() -> None:
    node = extended("b")
    node.subscribe(Subscription("b/1", "b", Filter.parse("/CD")), 0.0)
    event = cd(0, source="b")
    node.publish(event, 1.0)
    assert list(node.hear(ContentData(1, event, 2), "a", now=1.1)) == []


def test_summaries_of_so_many_sets_of_types_are_kept() -> None:
    subscriptions = LocalSubscriptions()
    subscriptions.add(Subscription("b/1", "b", Filter.parse(CHEAP)), 0.0)
    local = LocalSummaries("b", subscriptions, SHAPE, 1000, True, PassRates(0.5, 2))
    for number, kept in ((1, 1), (2, 2), (2, 2), (3, 1)):
        local.about(frozenset({number}))
        assert len(local.by_types) == kept


def noisy_groups(limit: int) -> ContentGroups:
    """One group with three members whose two audiences are one member each."""
    found = groups(limit=limit, noise_limit=0.5)
    for name in ("a", "b", "c"):
        found.reports.hear(report(name, CHEAP), 0.0, 100.0)
    group = found.open(Digest.of(EVENT), "CD", frozenset({"a", "b", "c"}), 1.0)
    for name, price in (("a", 1), ("b", 2)):
        group.audiences[frozenset({name})] = Digest.of(Event("CD", {"price": price}))
    return found


def test_a_noisy_group_becomes_one_group_an_audience_where_there_is_room() -> None:
    found = noisy_groups(limit=2)
    found._split(2.0)
    digests = [Digest.of(Event("CD", {"price": price})) for price in (1, 2)]
    assert [(group.id, group.digests, group.made_at) for group in found.by_id.values()] == [
        (2, [digests[0]], 2.0), (3, [digests[1]], 2.0),
    ]  # fmt: skip
    assert (found.split, found.made) == (1, 3)
    crowded = noisy_groups(limit=1)
    crowded._split(2.0)
    assert (list(crowded.by_id), crowded.split) == ([1], 0)
    assert crowded.by_id[1].audiences == {}, "each round counts anew"


def test_groups_that_are_given_up_for_a_wider_one_are_counted() -> None:
    found = groups(limit=9)
    for now, price in ((1.0, 1), (2.0, 2)):
        found.open(Digest.of(Event("CD", {"price": price})), "CD", frozenset(), now)
    found.reports.hear(report("many+", CHEAP), 0.0, 100.0)
    wide = found.open(Digest.of(EVENT), "CD", frozenset({"many+"}), 3.0)
    assert (list(found.by_id.values()), wide.digests, found.combined) == ([wide], [Digest.of_type("CD")], 2)


def test_where_there_are_too_many_groups_the_nearest_represents_one_more_event_and_then_all_of_the_type() -> None:
    found = groups(limit=2)
    low, high = (Digest.of(Event("CD", {"price": price})) for price in (5, 50))
    found.reports.hear(report("a", CHEAP), 0.0, 100.0)
    found.reports.hear(report("b", "CD: price > 20"), 0.0, 100.0)
    cheap = found.open(low, "CD", frozenset({"a"}), 1.0)
    dear = found.open(high, "CD", frozenset({"b"}), 2.0)
    dear.answered_at = cheap.answered_at = 3.0
    more = Digest.of(Event("CD", {"price": 60}))
    assert found.open(more, "CD", frozenset({"b"}), 4.0) is dear
    assert (dear.digests, dear.answered_at, cheap.digests, cheap.answered_at) == ([high, more], -math.inf, [low], 3.0)
    assert (found.combined, found.made) == (1, 2)
    wide = found.open(Digest.of(Event("CD", {"price": 70})), "CD", frozenset({"b"}), 5.0)
    assert (list(found.by_id.values()), wide.wide, found.combined, found.made) == ([wide], True, 3, 3)


def test_a_type_that_has_a_wide_group_gets_no_second_one() -> None:
    found = groups(limit=9)
    found.reports.hear(report("many+", CHEAP), 0.0, 100.0)
    wide = found.open(Digest.of(EVENT), "CD", frozenset({"many+"}), 1.0)
    narrow = found._new("CD", Digest.of(Event("CD", {"price": 1})), 2.0)
    other = found.open(Digest.of(Event("CD", {"price": 2})), "CD", frozenset({"many+"}), 3.0)
    assert list(found.by_id.values()) == [wide, narrow, other]
    assert (other.wide, other.digests) == (False, [Digest.of(Event("CD", {"price": 2}))])


def test_groups_whose_members_have_become_the_same_are_combined() -> None:
    found = groups(limit=9)
    found.reports.hear(report("a", CHEAP), 0.0, 100.0)
    first = found.open(Digest.of(Event("CD", {"price": 1})), "CD", frozenset({"a"}), 1.0)
    found._new("CD", Digest.of(Event("CD", {"price": 2})), 2.0)
    found.regroup(3.0, 50.0)
    assert (list(found.by_id), found.combined, first.used_at) == ([first.id], 1, 2.0)


def test_a_merged_summary_uses_the_room_to_the_last_byte() -> None:
    full = [report(f"b{number}", f"CD: price < {number}") for number in range(9)]
    merged = Summary({}, SHAPE)
    for one in full:
        merged = merged.merged(read_summary(one.summary, SHAPE))
    budget = len("n+") + 10 + len(merged.within(10_000).to_bytes())
    (whole,) = fitting(full, "n", budget, SHAPE)
    assert whole == full_report("n+", merged.within(10_000).to_bytes())


def test_a_summary_that_is_coarsened_fits_beside_its_name_and_stamp() -> None:
    """Ten bytes of a report are its stamp and its frame; half of a packet at least is for the summary."""
    full = [report(f"b{number:02}", f"CD: title{number} = 'a{number}' and price < {number}") for number in range(30)]
    whole_bytes = len(fitting(full, "n", 100_000, SHAPE)[0].summary)
    assert whole_bytes > 0
    for budget in range(120, 1200, 20):
        (whole,) = fitting(full, "node", budget, SHAPE)
        assert whole.reporter == "node+"
        assert len("node+") + 10 + len(whole.summary) <= budget
    for budget in (140, 200, 400):
        stamps = [SummaryReport(f"c{number}", number) for number in range(40)]
        *kept, whole = fitting([*full, *stamps], "node", budget, SHAPE)
        assert len("node+") + 10 + len(whole.summary) <= budget // 2
        assert sum(len(one.reporter) + 10 for one in kept) + len("node+") + 10 + len(whole.summary) <= budget


def test_nodes_farther_from_the_source_gather_for_less_time_and_at_sixteen_hops_not_at_all() -> None:
    assert [hold_s(hops, 0.4) for hops in (0, 4, 8, 15, 16, 17)] == pytest.approx([0.4, 0.3, 0.2, 0.025, 0.0, 0.0])


def test_the_pace_of_a_source_begins_at_three_intervals_and_follows_a_quarter_of_each_change() -> None:
    pace = PublishingPace(4.0)
    assert pace.interval_s == 12.0
    found = []
    for now in (10.0, 14.0, 24.0, 25.0):
        pace.published(now)
        found.append(pace.interval_s)
    assert found == [12.0, 10.0, 10.0, 7.75], "one event alone shows no pace"


def test_a_join_table_gathers_groups_the_shortest_life_and_the_fullest_reports() -> None:
    gathered = PendingTable()
    full, stamp = report("b", CHEAP), SummaryReport("b", report("b", CHEAP).stamp)
    gathered.add({1}, [full], 9.0)
    gathered.add({2, 1}, [stamp, SummaryReport("c", 5)], 12.0)
    assert (gathered.groups, gathered.lifetime_s) == ({1, 2}, 9.0)
    assert gathered.reports == {"b": full, "c": SummaryReport("c", 5)}
    gathered.add(set(), [SummaryReport("b", 77), report("c", CHEAP)], 3.0)
    assert gathered.reports == {"b": SummaryReport("b", 77), "c": report("c", CHEAP)}, "a new stamp is news"
    assert gathered.lifetime_s == 3.0


def test_a_report_stands_while_it_says_the_same_to_the_same_neighbour_and_is_not_too_old() -> None:
    sent = SentReport(7, "up", 10.0)
    route = OfferedRoute("up", 1, 2, (), math.inf, 9.0)
    assert sent.stands(SummaryReport("me", 7), route, 9.9)
    assert not sent.stands(SummaryReport("me", 7), route, 10.0)
    assert not sent.stands(SummaryReport("me", 8), route, 9.9)
    assert not sent.stands(SummaryReport("me", 7), replace(route, upstream="other"), 9.9)
