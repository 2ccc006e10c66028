"""The readings of the paper as settings: the preset `PAPER`, both group choices, aggregation next to the source."""

from __future__ import annotations

from typing import Any

import pytest
from odmrp_table import FIGURE_3, TREE, cd, extended, publish, table

from earshot import Event, Filter
from earshot.filters import Subscription
from earshot.filters.summaries.digest import Digest
from earshot.protocols.content_odmrp.machine import AS_WRITTEN, PAPER, ContentOdmrp, ContentOdmrpSettings, JoinTable
from earshot.protocols.tabletop import Tabletop


def rounds(count: int = 12, **settings: Any) -> Tabletop:
    """Figure 2's events over figure 4's tree."""
    top = table(extended, TREE, FIGURE_3, **settings)
    for number in range(count):
        publish(top, cd(number))
        top.run(until=top.now + 0.5)
    return top


def source(top: Tabletop) -> ContentOdmrp:
    machine = top.machines["S"]
    assert isinstance(machine, ContentOdmrp)
    return machine


def tables(top: Tabletop, node: str) -> list[JoinTable]:
    return [packet for name, packet in top.sent if name == node and isinstance(packet, JoinTable)]


def test_as_written_every_join_table_goes_out_at_once_and_carries_its_summary() -> None:
    top = rounds(**AS_WRITTEN)
    assert all(report.summary for packet in tables(top, "R1") for report in packet.reports)
    assert any(not report.summary for packet in tables(rounds(), "R1") for report in packet.reports)
    # N1 passes the tables of R1 and R2 on one by one; gathered, they make one a round.
    assert len(tables(top, "N1")) > len(tables(rounds(), "N1"))
    assert ContentOdmrpSettings(**AS_WRITTEN) == PAPER


def test_as_written_the_summary_loses_which_values_belong_together() -> None:
    wanted = {"category": "jazz", "composer": "Bach", "price": 10.0}
    crossed = Digest.of(Event(type="CD", content=wanted, id="x", source="S"))
    answers = []
    for settings in ({}, AS_WRITTEN):
        node = extended("b", **settings)
        for number, text in enumerate((FIGURE_3["R1"], FIGURE_3["R4"])):
            node.subscribe(Subscription(f"b/{number}", "b", Filter.parse(text)), 0.0)
        answers.append(node.local_summaries.about(frozenset({crossed.type})).stated.may_match_digest(crossed))
    assert answers == [False, True]


@pytest.mark.parametrize(
    ("choice", "groups", "hears"),
    [("smallest", 3, {"R1", "R2", "R4"}), ("least-constrained", 1, {"R1", "R2", "R3", "R4", "R5"})],
)
def test_groups_are_the_smallest_or_the_least_constrained(choice: str, groups: int, hears: set[str]) -> None:
    top = rounds(group_choice=choice, **AS_WRITTEN)
    assert len(source(top).groups.by_id) == groups
    joining = {node for node in FIGURE_3 for packet in tables(top, node)[-1:] if packet.groups}
    assert joining == hears
    delivered = {(node, event) for node, event, _ in top.delivered}
    assert delivered == {
        (node, f"S-{number}")
        for node, text in FIGURE_3.items()
        for number in range(12)
        if Filter.parse(text).matches(cd(number))
    }


def test_a_node_next_to_the_source_reports_for_all_below_it_if_it_aggregates() -> None:
    top = rounds(aggregate=True)
    assert {report.reporter for node in ("N1", "N2") for packet in tables(top, node) for report in packet.reports} == {
        "N1+",
        "N2+",
    }
    assert {report.reporter for packet in tables(top, "N3") for report in packet.reports} == {"R4", "R5"}
    apart = {name for name, _ in source(rounds()).reports.table.items(0.0)}
    assert {name for name, _ in source(top).reports.table.items(0.0)} == {"N1+", "N2+"} != apart
    assert [sum(event == f"S-{number}" for _, event, _ in top.delivered) for number in range(12)] == [1] * 12


def test_a_broker_that_aggregates_states_its_own_subscriptions_too() -> None:
    top = table(extended, [("S", "N"), ("N", "R")], {"N": FIGURE_3["R1"], "R": FIGURE_3["R2"]}, aggregate=True)
    for number in range(9):
        publish(top, cd(number))
        top.run(until=top.now + 0.5)
    assert sorted((node, event) for node, event, _ in top.delivered) == sorted(
        [("N", f"S-{number}") for number in (0, 3, 6)] + [("R", f"S-{number}") for number in (1, 4, 7)]
    )


def test_groups_split_and_combine_as_settings_ask() -> None:
    wanted = {f"R{index}": f"CD: price < {5 * index}" for index in range(1, 6)}
    star = [("S", "A"), *(("A", name) for name in wanted)]
    counted = {}
    for noise_limit in (1.0, 0.2):
        top = table(extended, star, wanted, noise_limit=noise_limit, groups_limit=4)
        for number in range(60):
            publish(top, cd(number))
            top.run(until=top.now + 0.5)
        groups = source(top).groups
        counted[noise_limit] = groups.made
    assert counted[0.2] > counted[1.0]
