"""CoDD's directory: who is asked, who answers, and when sources and members expire."""

from __future__ import annotations

from random import Random

import pytest

from earshot.errors import SettingsError
from earshot.filters import Filter, Subscription
from earshot.protocols.codd.directory import MOST_SOURCES, Directory
from earshot.protocols.codd.dissemination_tree import MOST_EARLY, MOST_MISSING
from earshot.protocols.codd.join import Join
from earshot.protocols.codd.machine import MOST_RESENT, Codd
from earshot.protocols.codd.overlap import MOST_COMPARED, _filter_overlap, overhead_of, structural_overlap
from earshot.protocols.codd.packets import NEW, Answer, GetSeedSet, Register, Registered, SeedSet, Source, Unregister
from earshot.protocols.codd.recent_documents import MOST_BITS, RecentBitmap, bitmap
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.machine import Broadcast, Drop, FixedLocation, Send, StartTimer
from earshot.records import DropReason

SETTINGS = CoddSettings(agents=("a", "b"), directory_s=30.0, candidate_wait_s=2.0, retry_s=10.0)


def directory(node: str = "n", settings: CoddSettings = SETTINGS, pace: float = 1.0) -> Directory:
    return Directory(node, settings, Random(1), lambda _: pace)


def agent_with(*sources: tuple[str, float], settings: CoddSettings = SETTINGS) -> Directory:
    """An agent at which these trees registered."""
    agent = directory("a", settings)
    for tree, at in sources:
        agent.on_agent_packet(Register(tree, ("Document",)), tree.rpartition("#")[0], at)
    return agent


def test_a_node_visits_its_agents_once_a_period_from_a_random_time_on() -> None:
    waits = []
    for seed in range(100):
        node = Directory("n", SETTINGS, Random(seed), lambda _: 1.0)
        [timer] = node.begin(100.0)
        assert isinstance(timer, StartTimer)
        assert (timer.name, node.begin(101.0)) == ("directory", [])
        waits.append(timer.at - 100.0)
    assert 15.0 <= min(waits) < 16.0
    assert 29.0 < max(waits) <= 30.0
    assert node.visit(False, 130.0) == [StartTimer("directory", 160.0)]
    node.own = Register("n#1", ("Document",))
    assert node.visit(False, 160.0) == [Send("a", node.own), Send("b", node.own), StartTimer("directory", 190.0)]


def test_sources_and_members_expire_after_more_than_three_silent_periods() -> None:
    agent = agent_with(("s#1", 10.0))
    agent.on_agent_packet(GetSeedSet(), "m", 10.0)
    agent.visit(False, 100.0)
    assert (list(agent.register), list(agent.members)) == (["s#1"], ["m"])
    agent.visit(False, 100.1)
    assert (agent.register, agent.members) == ({}, {})


def test_without_agents_what_expired_is_reported_to_the_node_itself() -> None:
    alone = CoddSettings(directory_s=30.0)
    node = directory("a", alone)
    node.on_agent_packet(Register("s#1", ("Document",)), "s", 10.0)
    assert node.visit(True, 100.0) == [Broadcast(GetSeedSet()), StartTimer("directory", 130.0)]
    assert node.visit(False, 101.0) == [Send("a", SeedSet(())), StartTimer("directory", 131.0)]


def test_each_agent_is_asked_once_and_after_the_last_one_a_node_waits() -> None:
    node = directory()
    for visit in (0.0, 100.0):
        first, second = ("a", "b")
        assert node.visit(True, visit)[:2] == [StartTimer("asked", visit + 2.0), Send(first, GetSeedSet())]
        assert node.no_answer(visit + 2.0) == [StartTimer("asked", visit + 4.0), Send(second, GetSeedSet())]
        assert node.no_answer(visit + 4.0) == [
            Drop(DropReason.NO_AGENT_ANSWERS), StartTimer("ask-again", visit + 14.0),
        ]  # fmt: skip


def test_an_answer_or_a_visit_begins_the_count_of_failures_anew() -> None:
    node = directory()
    node.ask(0.0)
    node.no_answer(2.0)
    node.on_seed_set(SeedSet(()))
    assert node.no_answer(4.0)[-1] == Send("a", GetSeedSet()), "this is the first failure"
    node.visit(True, 30.0)
    assert node.no_answer(32.0)[-1] == Send("b", GetSeedSet())


def test_an_agent_that_does_not_answer_the_first_question_is_followed_by_the_next() -> None:
    node = directory()
    assert node.ask(0.0) == [StartTimer("asked", 2.0), Send("a", GetSeedSet())]
    assert node.no_answer(2.0) == [StartTimer("asked", 4.0), Send("b", GetSeedSet())]


def test_an_agent_asks_itself_without_waiting() -> None:
    assert directory("a").ask(5.0) == [Send("a", GetSeedSet())]


def test_on_a_busy_channel_a_node_asks_again_only_when_its_wait_is_over() -> None:
    node = directory(pace=3.0)
    assert node.ask(10.0)[0] == StartTimer("asked", 16.0)
    assert (node.ask(15.9), node.ask(16.0)[0]) == ([], StartTimer("asked", 22.0))
    assert node.no_answer(22.0)[0] == StartTimer("asked", 28.0)
    assert node.no_answer(28.0)[1] == StartTimer("ask-again", 28.0 + 30.0)


def test_only_a_source_registers_its_tree_and_a_repetition_only_keeps_it() -> None:
    agent = directory("a")
    assert agent.on_agent_packet(Register("s#1", ("Document",)), "x", 1.0) == [Drop(DropReason.NOT_REGISTERED)]
    assert agent.on_agent_packet(Register("s#1", ("Document",)), "s", 1.0) == [StartTimer("push", 1.2)]
    assert agent.on_agent_packet(Register("s#1", ("Document",)), "s", 5.0) == []
    assert agent.register["s#1"].heard_at == 5.0
    assert agent.on_agent_packet(Register("s#1", ("Other",)), "s", 6.0) == [StartTimer("push", 6.2)]
    assert agent.on_agent_packet(Register("s#2", ("Other",)), "s", 7.0) == [StartTimer("push", 7.2)]
    assert list(agent.register) == ["s#2"], "the tree before it is gone"
    assert agent.on_agent_packet(Unregister("s#2"), "x", 8.0) == []
    assert agent.on_agent_packet(Unregister("s#2"), "s", 8.0) == [StartTimer("push", 8.2)]
    assert agent.on_agent_packet(Unregister("s#2"), "s", 8.0) == []
    assert directory("n").on_agent_packet(GetSeedSet(), "m", 1.0) == [Drop(DropReason.NOT_AN_AGENT)]


def test_an_agent_registers_10000_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = (MOST_SOURCES, MOST_MISSING, MOST_EARLY, MOST_RESENT, MOST_COMPARED, MOST_BITS)
    assert bounds == (10_000, 1000, 64, 1000, 16, 65_536)
    monkeypatch.setattr("earshot.protocols.codd.directory.MOST_SOURCES", 2)
    agent = agent_with(("s#1", 0.0), ("t#1", 0.0))
    assert agent.on_agent_packet(Register("u#1", ("Document",)), "u", 1.0) == [Drop(DropReason.NOT_REGISTERED)]


def test_seeds_are_the_root_and_as_many_members_as_asked_for() -> None:
    agent = agent_with(("s#1", 0.0), settings=CoddSettings(agents=("a",), seeds=3))
    for name in "mnop":
        agent.on_agent_packet(GetSeedSet(), name, 1.0)
    [source] = agent.seed_set().sources
    assert (source.tree, source.types, source.seeds[0], len(set(source.seeds))) == ("s#1", ("Document",), "s", 3)
    assert set(source.seeds[1:]) <= set("mnop")
    assert [one.seeds for one in agent_with(("s#1", 0.0)).seed_set().sources] == [("s",)]
    assert [one.peer for one in agent.push()] == list("mnop")  # type: ignore[union-attr]


def test_of_several_trees_of_one_source_the_newest_counts_and_never_ones_own() -> None:
    node = directory("n")
    trees = ("s#9", "s#1f", "s#zz", "t#1", "n#5")
    node.on_seed_set(SeedSet(tuple(Source(tree, (), (tree,)) for tree in trees)))
    assert list(node.sources) == ["s#1f", "t#1"]
    assert (node.seeds("s#1f"), node.seeds("unknown#1")) == (("s#1f",), ("unknown",))


def test_a_tree_without_a_readable_time_is_older_than_any_other() -> None:
    for unreadable in ("s#zz", "s#", "s#1z"):
        node = directory("n")
        node.on_seed_set(SeedSet(tuple(Source(tree, (), (tree,)) for tree in ("s#1", unreadable, "s#0"))))
        assert list(node.sources) == ["s#1"]


# Small formulas and settings.


def test_the_overhead_is_what_the_parent_receives_for_the_child_alone() -> None:
    assert [overhead_of(0b1110, parent) for parent in (0b0000, 0b0110, 0b1111)] == [3, 1, 0]


def test_structural_overlap_is_the_mean_of_the_nearest_filters() -> None:
    low, high, other = (f'type = "Document" and price {text}' for text in ("< 10", "> 20", "< 10 and price > 5"))
    assert structural_overlap([low], [low, high]) == 1.0
    assert structural_overlap([low, high], [low]) == pytest.approx((1.0 + _filter_overlap(high, low)) / 2.0)
    assert 0.0 < _filter_overlap(other, low) < 1.0
    assert _filter_overlap(other, high) == 0.0
    for aggregate in ([low, high], [high, low]):
        assert structural_overlap([other], aggregate) == _filter_overlap(other, low), "the nearest one counts"
    assert structural_overlap([], [low]) == structural_overlap([low], []) == 0.0
    assert _filter_overlap("price <", low) == _filter_overlap(low, "price <") == 0.0
    assert _filter_overlap(other, low) > 0.0


def test_a_bitmap_begins_at_any_number() -> None:
    recent = RecentBitmap(4)
    for number in (1, 3):
        recent.add(number)
    assert [recent.since(first) for first in (0, 1, 2, 3, 4)] == [0b1010, 0b101, 0b10, 0b1, 0]
    assert recent.since(-2) == 0b101000
    assert (recent.since(1 - MOST_BITS) > 0, recent.since(-MOST_BITS)) == (True, 0)
    recent.add(8)
    assert recent.since(4) == 0b10000, "with twice its capacity, the oldest are forgotten"
    assert recent.since(0) == 0b100000000
    recent.add(2)
    assert recent.since(0) == 0b100000000


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"fan_out": 1}, {"fan_out": 0}),
        ({"silence_s": 5.1}, {"silence_s": 5.0}),
        ({"held_documents": 200}, {"held_documents": 199}),
        ({"delta": 1.0}, {"delta": 1.1}),
        ({"delta": 0.0}, {"delta": -0.1}),
        ({"overhead_threshold": 1.0}, {"overhead_threshold": 1.1}),
    ],
)
def test_settings_at_their_bounds(right: dict[str, float], wrong: dict[str, float]) -> None:
    assert CoddSettings(**right)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        CoddSettings(**wrong)  # type: ignore[arg-type]


def test_a_bitmap_has_bits_for_65536_numbers_from_its_first_on() -> None:
    assert bitmap([4, 5, 9], 5) == 0b10001
    assert bitmap([5 + MOST_BITS - 1], 5) == 1 << (MOST_BITS - 1)
    assert bitmap([5 + MOST_BITS], 5) == 0


def test_agents_may_be_given_as_a_list() -> None:
    assert CoddSettings(agents=["a", "b"]).agents == ("a", "b")  # type: ignore[arg-type]


def test_defaults_of_answers_and_joins() -> None:
    assert (Answer("s#1", 1, True).link, Answer("s#1", 1, True).ancestors) == (0, ())
    assert Join().failures == 0


def test_a_tree_is_obsolete_where_its_source_has_a_newer_one_or_is_gone_and_no_place_was_found() -> None:
    node = Codd("n", SETTINGS, FixedLocation(), Random(1))
    node.subscribe(Subscription("n/1", "n", Filter.of_type("Document")), 0.0)
    node.hear(SeedSet((Source("s#1", ("Document",), ("s",)),)), "a", 0.1)
    tree = node.trees["s#1"]

    def obsolete(*trees: str, failures: int = 0) -> bool:
        node.directory.sources = {one: Source(one, ("Document",), ("s",)) for one in trees}
        tree.join.failures = failures
        return node.is_obsolete(tree)

    attempts = SETTINGS.join_attempts
    assert [obsolete("s#1"), obsolete("s#1", failures=attempts)] == [False, False], "it is listed"
    assert (obsolete("s#2"), obsolete("t#1")) == (True, False)
    assert [obsolete(failures=failed) for failed in (attempts - 1, attempts)] == [False, True]
    tree.parent = "s"
    assert not obsolete(failures=attempts), "it has a place"
    assert obsolete("s#2")


def test_a_registration_that_does_not_end_here_is_ignored() -> None:
    node = Codd("n", SETTINGS, FixedLocation(), Random(1))
    node.subscribe(Subscription("n/1", "n", Filter.of_type("Document")), 0.0)
    node.hear(SeedSet((Source("s#1", ("Document",), ("s",)),)), "a", 0.1)
    tree = node.trees["s#1"]
    for path in ((), ("m",), ("n", "m")):
        assert tree.on_registered(Registered("s#1", path, 5)) == []
    assert tree.complete == NEW
    tree.on_registered(Registered("s#1", ("n",), 5))
    assert tree.complete == 5
