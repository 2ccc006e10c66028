"""CoDD at the edges: a source that is lost, a child that is new, a channel that is full."""

from __future__ import annotations

from random import Random

import pytest
from codd_table import SMALL, TREE, A, member, sent

from earshot.errors import MalformedPacket
from earshot.events import Event
from earshot.protocols.codd.machine import Codd
from earshot.protocols.codd.packets import NEW, Add, AddChild, Document, Gone, Move, SeedSet, Source
from earshot.protocols.machine import CancelTimer, FixedLocation, QuietChannel, Send, StartTimer
from earshot.wire import decode, encode


def test_a_tree_whose_source_has_a_new_one_is_left_and_its_children_hear_of_it() -> None:
    machine = member()
    machine.hear(AddChild(TREE, 1, (A,), (A,), NEW), "x", 1.0)
    effects = machine.hear(SeedSet((Source("source-0#1", ("Document",), ("source-0",)),)), "source-0", 2.0)
    assert effects == [
        CancelTimer("asked"), Send("x", Gone(TREE)), Send("source-0", Add("source-0#1", "n", 3, (A,))),
        StartTimer(("candidates", "source-0#1"), 2.0 + SMALL.candidate_wait_s),
    ]  # fmt: skip
    assert list(machine.trees) == ["source-0#1"]


def test_a_node_keeps_its_place_in_a_tree_that_no_agent_lists() -> None:
    """The agent may have started again; while the tree's members hear from their parents, it has not ended."""
    machine = member()
    assert machine.hear(SeedSet(()), "source-0", 2.0) == [CancelTimer("asked")]
    assert list(machine.trees) == [TREE]


def test_a_child_that_has_heard_no_document_yet_gets_all_that_are_held() -> None:
    """It states that it is complete up to -1, the number before the first document. A newcomer states less."""
    for since, expected in ((-1, [0, 1]), (NEW, [])):
        machine = Codd("source-0", SMALL, FixedLocation(), Random(1))
        for number in (0, 1):
            machine.publish(Event("Document", {"category": "a"}, f"d{number}", "source-0"), 0.0)
        effects = machine.hear(AddChild(TREE, 1, (A,), (A,), since), "x", 1.0)
        assert [packet.number for _, packet in sent(effects, Document)] == expected


@pytest.mark.parametrize(("share", "times"), [(0.0, 1.0), (0.5, 2.0), (0.9375, 16.0), (0.97, 16.0), (1.0, 16.0)])
def test_a_node_waits_at_most_16_times_longer_on_a_busy_channel(share: float, times: float) -> None:
    class Busy(QuietChannel):
        def busy_share(self, now: float) -> float:
            return share

    assert Codd("n", SMALL, FixedLocation(), Random(1), Busy()).pace(0.0) == times


def test_an_overhead_on_the_wire_is_at_most_10_to_the_18() -> None:
    assert decode(encode(Move(TREE, 1e18))) == Move(TREE, 1e18)
    with pytest.raises(MalformedPacket):
        decode(encode(Move(TREE, 1.1e18)))


def test_the_last_two_windows_of_documents_are_remembered_for_the_node_and_for_each_child() -> None:
    """Peers' numbers may be behind this node's by as much as a window, which is 40 documents here. A bitmap forgets
    the older half when it is twice as full as it must be."""
    tree = member().trees[TREE]
    for bitmap in (tree.wanted, tree.take("x", (A,), (A,), 1.0).received):
        for number in (0, 79, 80, 159):
            bitmap.add(number)
        assert bitmap.since(0) == 1 | 1 << 79 | 1 << 80 | 1 << 159
        bitmap.add(160)
        assert bitmap.since(0) == 1 << 80 | 1 << 159 | 1 << 160
