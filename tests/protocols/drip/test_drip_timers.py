"""What DRIP's timers do at one node: choosing its broker, watching, electing; and who counts as alive."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from earshot.protocols.drip.broker import Broker
from earshot.protocols.drip.election import Role
from earshot.protocols.drip.machine import Drip
from earshot.protocols.drip.packets import (
    PAPER,
    Abilities,
    BrokerAnnouncement,
    Candidate,
    DripSettings,
    Registration,
    Retirement,
)
from earshot.protocols.machine import Broadcast, Effects, FixedLocation, Note, QuietChannel, StartTimer

SETTINGS = replace(PAPER, brokers=4, nearest=2, copies=1, spares=1, jitter_s=0.0)
WAITING = replace(SETTINGS, jitter_s=0.5)


def node(settings: DripSettings = SETTINGS, seed: int = 1) -> Drip:
    return Drip("me", settings, FixedLocation(), Random(seed))


def broker() -> Drip:
    machine = node()
    machine.start(0.0)
    machine.wake("elect", 4.0)
    return machine


def announcement(broker: str, sent_at: float = 9.5, sequence: int = 1, digest: int = 0) -> BrokerAnnouncement:
    return BrokerAnnouncement(broker, sequence, sent_at, 1, broker, digest)


def candidate(name: str, ability: float = 5.0, alive_at: float = 0.0, gone: bool = False) -> Candidate:
    return Candidate(name, ability, alive_at, gone)


def timers(effects: Effects, name: object) -> list[float]:
    return [one.at for one in effects if isinstance(one, StartTimer) and one.name == name]


def notes(effects: Effects) -> list[tuple[str, str]]:
    return [(one.topic, one.detail) for one in effects if isinstance(one, Note)]


# The local broker.


def test_a_node_waits_for_other_copies_before_it_chooses_its_broker() -> None:
    """Six times the random wait of one node: a copy over a faster path may have waited longer."""
    machine = node(WAITING)
    assert timers(machine.hear(announcement("b"), "x", 10.0), "settle") == [13.0]
    assert timers(machine.hear(announcement("c", 8.0), "y", 11.0), "settle") == [], "it waits already"
    assert machine.local_broker == ""
    assert notes(machine.wake("settle", 13.0)) == [("attached", "b")]
    assert timers(machine.hear(announcement("b", 13.5, 2), "x", 14.0), "settle") == [17.0]


def test_a_node_leaves_a_broker_when_its_last_announcement_expires() -> None:
    machine, expiry_s = node(), SETTINGS.expiry_s
    assert timers(machine.hear(announcement("b"), "x", 10.0), "expire") == [10.0 + expiry_s]
    assert timers(machine.hear(announcement("c"), "y", 11.0), "expire") == [10.0 + expiry_s], "the first to expire"
    left = machine.wake("expire", 10.0 + expiry_s)
    assert (notes(left), timers(left, "expire")) == ([("attached", "c")], [11.0 + expiry_s])
    last = machine.wake("expire", 11.0 + expiry_s)
    assert (notes(last), timers(last, "expire")) == ([("attached", "")], [])


def test_an_announcement_of_a_broker_that_has_retired_is_not_forwarded() -> None:
    machine = node(WAITING)
    machine.hear(announcement("b"), "x", 10.0)
    assert list(machine.forwarding) == ["b"]
    machine.hear(Retirement("b", 2), "x", 10.1)
    assert (machine.forwarding, list(machine.wake(("forward", "b"), 10.4))) == ({}, [])


def test_the_first_reports_and_renewals_of_nodes_spread_over_an_interval() -> None:
    for name, interval_s in (("bridge", SETTINGS.bridge_interval_s), ("renew", SETTINGS.register_interval_s)):
        waits = []
        for seed in range(200):
            [at] = timers(node(seed=seed).start(10.0), name)
            waits.append((at - 10.0 - SETTINGS.bootstrap_s) / interval_s)
        assert 0.0 <= min(waits) < 0.02
        assert 0.98 < max(waits) < 1.0


class Busy(QuietChannel):
    def busy_share(self, now: float) -> float:
        return 0.6


@pytest.mark.parametrize("timer", ["announce", "renew"])
def test_on_a_busy_channel_announcements_and_registrations_come_less_often(timer: str) -> None:
    """A channel that is idle for two fifths of the time stretches an interval by a quarter."""
    machine = broker()
    machine.channel, machine.settings = Busy(), replace(SETTINGS, channel_stretch=1.5)
    machine.registered_at = 0.0
    interval_s = {"announce": SETTINGS.announce_interval_s, "renew": SETTINGS.register_interval_s}[timer]
    assert timers(machine.wake(timer, 100.0), timer) == [pytest.approx(100.0 + 1.25 * interval_s)]


# Watching.


def test_what_is_silent_is_forgotten_at_each_watch() -> None:
    machine, expiry_s = node(), SETTINGS.expiry_s
    machine.start(0.0)
    machine.wake("elect", 4.0)
    machine.hear(announcement("b"), "x", 10.0)
    machine.wake("watch", 9.9 + expiry_s)
    assert (list(machine.regions.brokers), list(machine.regions.neighbours)) == (["b"], ["x"])
    machine.wake("watch", 10.1 + expiry_s)
    assert (machine.regions.brokers, machine.regions.neighbours) == ({}, {})


def test_reports_of_bridges_are_counted_for_half_an_interval() -> None:
    machine, half_s = node(), SETTINGS.bridge_interval_s / 2.0
    machine.reported.put(("b", "c"), (10.0, 1))
    machine.wake("watch", 10.0 + half_s)
    assert list(machine.reported) == [("b", "c")]
    machine.wake("watch", 10.1 + half_s)
    assert list(machine.reported) == []


def test_a_broker_notes_who_has_fallen_silent_at_each_watch() -> None:
    machine = broker()
    assert isinstance(machine.broker, Broker)
    machine.broker.receive(Registration("s", "me", "", 1, 9.0, 0.5, ("me",), ("N: v > 0",), ()), 10.0)
    last_s = 10.0 + 3.0 * SETTINGS.register_interval_s
    assert ("silent", "s") not in notes(machine.wake("watch", last_s))
    assert ("silent", "s") in notes(machine.wake("watch", last_s + 0.1))


@pytest.mark.parametrize(("sign", "replaced"), [(50.0, []), (30.0, [("replaced", "b")])])
def test_a_broker_replaces_another_of_which_it_has_heard_nothing_for_too_long(
    sign: float, replaced: list[tuple[str, str]]
) -> None:
    machine = broker()
    machine.hear(Abilities((candidate("b"),), 0), "x", 10.0)
    assert machine.broker is not None
    machine.broker.on_sign_of_life("b", sign, sign)
    now = 40.0 + SETTINGS.replace_after_s
    machine.regions.hear_neighbour("x", "b", now)
    assert notes(machine.wake("watch", now)) == replaced


# Electing.


def test_the_only_node_becomes_a_broker_and_steps_down_for_four_that_are_abler() -> None:
    machine = node()
    assert timers(machine.start(0.0), "elect") == [SETTINGS.bootstrap_s]
    assert notes(machine.wake("elect", 4.0)) == [("broker", "me"), ("attached", "me")]
    assert notes(machine.wake("elect", 5.0)) == [], "it is one already"
    abler = tuple(candidate(name) for name in "abcd")
    assert timers(machine.hear(Abilities(abler, 0), "x", 6.0), "elect") == [6.0 + SETTINGS.election_wait_s]
    assert machine.broker is not None, "others may object"
    assert notes(machine.wake("elect", 7.0)) == [("broker", ""), ("attached", "")]
    assert (machine.broker, machine.regions.is_broker) == (None, False)
    assert notes(machine.wake("elect", 8.0)) == []


def test_a_neighbour_with_other_candidates_is_sent_all_and_one_with_the_same_is_not() -> None:
    machine = node()
    machine.start(0.0)
    machine.wake("forward-abilities", 1.0)
    machine.wake("elect", 4.0)
    same = machine.election.candidates.digest
    assert timers(machine.hear(announcement("b", digest=same), "x", 10.0), "forward-abilities") == []
    [at] = timers(machine.hear(announcement("c", digest=same + 1), "x", 10.0), "forward-abilities")
    [sent] = [one.packet for one in machine.wake("forward-abilities", at) if isinstance(one, Broadcast)]
    assert sent == Abilities((Candidate("me", 1.0, 0.0, False),), same)


def test_changes_that_come_while_others_wait_are_forwarded_with_them() -> None:
    machine = node()
    assert len(timers(machine.start(0.0), "forward-abilities")) == 1
    assert timers(machine.hear(Abilities((candidate("b"),), 0), "x", 0.1), "forward-abilities") == []
    [sent] = [one.packet for one in machine.wake("forward-abilities", 0.2) if isinstance(one, Broadcast)]
    assert [one.node for one in sent.candidates] == ["b", "me"]
    assert list(machine.wake("forward-abilities", 0.3)) == [], "nothing has changed"
    assert len(timers(machine.hear(Abilities((candidate("c"),), 0), "x", 9.0), "forward-abilities")) == 1


@pytest.mark.parametrize(
    ("role", "local_broker", "neighbours"),
    [(Role.GATHERING, "", []), (Role.NON_BROKER, "", ["x"]), (Role.NON_BROKER, "b", [])],
)
def test_a_node_without_a_broker_learns_its_neighbours_from_their_abilities(
    role: Role, local_broker: str, neighbours: list[str]
) -> None:
    machine = node()
    machine.start(0.0)
    machine.election.role, machine.local_broker = role, local_broker
    machine.hear(Abilities((candidate("b"),), 0), "x", 5.0)
    assert list(machine.regions.neighbours) == neighbours


@pytest.mark.parametrize(
    ("announced", "reported", "gone"),
    [
        (None, None, True),
        (9.0, None, True),
        (9.5, None, False),
        (None, 9.5, False),
        (9.5, 8.0, False),
        (8.0, 9.5, False),
    ],
)
def test_who_has_heard_of_a_broker_since_it_was_declared_gone_declares_it_alive(
    announced: float | None, reported: float | None, gone: bool
) -> None:
    """By its announcement, or, as a broker, by what other brokers report."""
    machine = node() if reported is None else broker()
    if reported is None:
        machine.start(0.0)
    if announced is not None:
        machine.hear(announcement("b", announced), "x", 10.0)
    if machine.broker is not None and reported is not None:
        machine.broker.signs_of_life = {"b": reported}
    machine.hear(Abilities((candidate("b", alive_at=9.0, gone=True),), 0), "x", 11.0)
    assert machine.election.candidates.is_gone("b") == gone
