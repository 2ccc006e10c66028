"""DRIP's election by itself: who is known, who ranks, when changes are forwarded, and who is declared gone."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from earshot.protocols.drip.election import Candidates, Election, Role
from earshot.protocols.drip.packets import PAPER, Abilities, Candidate
from earshot.protocols.machine import Broadcast, Effect, Note, StartTimer

SETTINGS = replace(PAPER, brokers=4, nearest=2, copies=1, spares=1, jitter_s=0.0)


def never(_: str) -> float:
    """No sign of life of any node."""
    return -math.inf


def candidate(node: str, ability: float, alive_at: float = 0.0, gone: bool = False) -> Candidate:
    return Candidate(node, ability, alive_at, gone)


def test_the_ablest_and_some_spares_are_kept_and_twice_as_many_that_are_gone() -> None:
    found = Candidates(2, 1)
    assert (found.digest, found.ablest) == (0, ())
    found.learn(candidate(name, ability) for ability, name in enumerate("abcde"))
    assert (sorted(found.known), found.ablest) == (["c", "d", "e"], ("e", "d"))
    assert not found.learn([candidate("f", 1.0)]), "less able than the last spare"
    assert found.learn([candidate("f", 2.5)])
    assert sorted(found.known) == ["d", "e", "f"]
    for number in range(9):
        found.learn([candidate(f"gone{number}", 9.0, float(number), True)])
    assert sorted(name for name, one in found.known.items() if one.gone) == [f"gone{n}" for n in range(6)]
    assert found.ablest == ("e", "d")


def test_of_two_reports_the_later_sign_of_life_wins_and_then_gone() -> None:
    found = Candidates(2, 1)
    found.learn([candidate("a", 1.0, 5.0)])
    assert not found.learn([candidate("a", 9.0, 4.0)])
    assert not found.learn([candidate("a", 9.0, 5.0)])
    assert found.learn([candidate("a", 1.0, 5.0, True)])
    assert (found.is_gone("a"), found.ablest, found.is_gone("unknown")) == (True, (), False)
    assert not found.declare_alive("a", 5.0)
    assert found.declare_alive("a", 5.1)
    assert found.ablest == ("a",)
    assert not found.learn([candidate("b", float("nan")), candidate("c", 1.0, float("inf"))])


def test_changes_are_forwarded_once() -> None:
    found = Candidates(2, 1)
    found.learn([candidate("b", 1.0), candidate("a", 2.0)])
    assert found.take_changed() == (candidate("a", 2.0), candidate("b", 1.0))
    assert found.take_changed() == ()


def election(role: Role = Role.NON_BROKER, node: str = "n", ability: float = 1.0) -> Election:
    found = Election(node, SETTINGS, Random(1))
    found.start(ability, 0.0)
    found.forward()
    found.role = role
    return found


def named(effects: list[Effect], name: str) -> list[float]:
    return [one.at for one in effects if isinstance(one, StartTimer) and one.name == name]


def test_abilities_are_gathered_for_a_half_to_the_whole_of_the_time() -> None:
    waits = []
    for seed in range(100):
        one = Election("n", SETTINGS, Random(seed))
        effects = one.start(1.0, 10.0)
        assert named(effects, "elect") == [10.0 + SETTINGS.bootstrap_s]
        waits += [at - 10.0 for at in named(effects, "forward-abilities")]
        assert one.on_sign_of_life("b", 1.0, 11.0) == []
    gather_s = SETTINGS.abilities_gather_s
    assert 0.5 * gather_s <= min(waits) < 0.52 * gather_s
    assert 0.98 * gather_s < max(waits) <= gather_s
    assert one.forward() == [Broadcast(Abilities((candidate("n", 1.0, 10.0),), one.candidates.digest))]
    assert one.forward() == []


def test_a_node_that_was_declared_gone_by_mistake_is_declared_alive_by_those_that_heard_it_since() -> None:
    for sign, gone in ((10.0, True), (10.1, False)):
        one = election()
        one.on_abilities(Abilities((candidate("b", 5.0, 10.0, True),), 0), {"b": sign}.__getitem__, 12.0)
        assert one.candidates.is_gone("b") == gone
    for now, gone in ((20.0 + SETTINGS.replace_after_s, True), (19.9 + SETTINGS.replace_after_s, False)):
        one = election()
        one.on_abilities(Abilities((candidate("b", 5.0, 10.0, True),), 0), {"b": 20.0}.__getitem__, now)
        assert one.candidates.is_gone("b") == gone
    itself = election()
    itself.on_abilities(Abilities((candidate("n", 1.0, 10.0, True),), 0), never, 12.0)
    assert not itself.candidates.is_gone("n")
    assert itself.candidates.known["n"].alive_at == 12.0


def test_a_neighbour_that_knows_others_is_sent_all_candidates_but_not_too_often() -> None:
    one = election(Role.BROKER)
    assert one.compare(one.candidates.digest, 5.0) == []
    assert len(named(one.compare(7, 5.0), "forward-abilities")) == 1
    one.forward()
    assert one.compare(7, 4.9 + SETTINGS.announce_interval_s) == []
    assert len(one.compare(7, 5.0 + SETTINGS.announce_interval_s)) == 1
    early = election(Role.GATHERING)
    early.compare(7, 5.0)
    early.forward()
    assert early.compare(7, 4.9 + SETTINGS.bootstrap_s / 4) == []
    assert len(early.compare(7, 5.0 + SETTINGS.bootstrap_s / 4)) == 1


def test_a_node_that_ranks_waits_for_objections_before_it_is_a_broker() -> None:
    one = election()
    effects = one.on_abilities(Abilities((candidate("b", 5.0),), 0), never, 10.0)
    assert (one.role, named(effects, "elect")) == (Role.CANDIDATE, [10.0 + SETTINGS.election_wait_s])
    one.decide(11.0)
    assert (one.role, one._broker_since) == (Role.BROKER, 11.0)
    one.decide(12.0)
    assert one._broker_since == 11.0
    abler = tuple(candidate(name, 9.0) for name in "wxyz")
    effects = one.on_abilities(Abilities(abler, 0), never, 20.0)
    assert (one.role, named(effects, "elect")) == (Role.RESIGNING, [20.0 + SETTINGS.election_wait_s])
    one.decide(21.0)
    assert one.role is Role.NON_BROKER


def test_a_broker_declares_others_gone_that_are_silent_for_too_long() -> None:
    late_s = SETTINGS.replace_after_s
    for sign, now, expected in ((50.0, 50.0 + late_s, []), (50.0, 50.1 + late_s, ["b"]), (0.0, 20.1 + late_s, ["b"])):
        one = election(Role.BROKER)
        one._broker_since = 20.0
        one.on_abilities(Abilities((candidate("b", 5.0),), 0), never, 10.0)
        effects = one.watch({"b": sign}, ["c"], "n", now)
        assert [effect.detail for effect in effects if isinstance(effect, Note)] == expected
        assert named(effects, "watch") == [now + SETTINGS.announce_interval_s]


def test_a_node_without_a_broker_and_without_neighbours_asks_for_some() -> None:
    one = election()
    one.detached_since = 10.0
    late = 10.0 + SETTINGS.replace_after_s
    assert named(one.watch({}, [], "", late), "forward-abilities") == []
    assert len(named(one.watch({}, [], "", late + 0.1), "forward-abilities")) == 1
    assert one.candidates.changed == {"n"}


def test_brokers_are_watched_from_the_first_election_on() -> None:
    one = election(Role.GATHERING)
    assert named(one.decide(5.0), "watch") == [5.0 + SETTINGS.announce_interval_s]
    assert named(one.decide(6.0), "watch") == []


def test_names_that_abler_ones_displace_are_not_kept_for_forwarding() -> None:
    found = Candidates(2, 1)
    for ability in range(50):
        found.learn([Candidate(f"node-{ability}", float(ability), 1.0, False)])
    assert found.changed == set(found.known) == {"node-49", "node-48", "node-47"}


def test_a_node_that_abler_ones_pushed_out_of_the_table_comes_back_when_they_are_gone() -> None:
    one = election(Role.NON_BROKER)
    one.on_abilities(Abilities(tuple(candidate(name, 5.0) for name in "abcde"), 0), never, 10.0)
    assert (sorted(one.candidates.known), one.candidates.ablest) == ([*"abcde"], ("e", "d", "c", "b"))
    gone = tuple(candidate(name, 5.0, gone=True) for name in "de")
    effects = one.on_abilities(Abilities(gone, 0), never, 20.0)
    assert (one.candidates.ablest, one.role) == (("c", "b", "a", "n"), Role.CANDIDATE)
    assert named(effects, "elect") == [20.0 + SETTINGS.election_wait_s]


def test_a_node_that_is_declared_gone_says_that_it_is_alive_now() -> None:
    one = election(Role.BROKER)
    one.on_abilities(Abilities((candidate("n", 1.0, 0.0, True),), 0), never, 30.0)
    assert one.candidates.known["n"] == candidate("n", 1.0, 30.0)
    assert one.role is Role.BROKER


def test_a_node_that_stopped_is_gone_and_stays_so() -> None:
    one = election(Role.BROKER)
    assert one.stop(30.0) == [Broadcast(Abilities((candidate("n", 1.0, 30.0, True),), one.candidates.digest))]
    one.on_abilities(Abilities((candidate("a", 5.0),), 0), never, 31.0)
    assert (one.role, one.candidates.ablest) == (Role.NON_BROKER, ("a",))
    assert one.stop(30.0) == []
