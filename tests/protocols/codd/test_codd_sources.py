"""CoDD where a source is lost: which trees a node leaves, and who hears of it."""

from codd_table import SMALL, TREE, A, member

from earshot.protocols.codd.packets import NEW, Add, AddChild, Gone, SeedSet, Source
from earshot.protocols.machine import CancelTimer, Send, StartTimer


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
