"""Peers, limits and fixes at their bounds: times, counts and shares, without sockets."""

from __future__ import annotations

import pytest

from earshot.geometry import STILL, LocalPlane, Position, Velocity
from earshot.live import peers as peers_module
from earshot.live.datagrams import Challenge, Frame
from earshot.live.location import FIX_SPACING_S, STALE_S, Fix, RecentFixes, TrackedLocation, plane_name, plane_near
from earshot.live.peers import Peer, PeerLimits, Peers, RateLimits, digest_of
from earshot.live.trust import Refused

HOME, ELSEWHERE = ("10.0.0.1", 5), ("10.0.0.2", 5)


class Asked(Peers):
    """Peers that note their challenges."""

    def __init__(self, limit: int = 9, newcomers: int = 9, challenges: int = 4096) -> None:
        self.sent: list[tuple[str, Challenge]] = []
        limits = PeerLimits(limit, newcomers, challenges)
        super().__init__(5.0, lambda peer, challenge: self.sent.append((peer.name, challenge)), limits)

    def hear(self, name: str, address: tuple[str, int], now: float, life: int = 1, ahead_s: float = 0.0) -> Peer:
        made = Frame(name, life, 1, 0.0, "", None, None, "", [], [])
        found = self.find(made, address, ahead_s, now)
        self.heard(found, None, now)
        return found

    def proves(self, name: str, address: tuple[str, int], now: float, life: int = 1) -> Peer:
        """It is heard, and answers its challenge."""
        found = self.hear(name, address, now, life)
        self.echo(self.sent[-1][1].cookie, address, now)
        assert found.proven
        return found


def test_a_peer_is_challenged_every_tenth_of_a_second_at_most() -> None:
    peers = Asked()
    for now in (1.0, 1.09, 1.1, 1.15):
        peers.hear("a", HOME, now)
    assert len(peers.sent) == 2
    assert peers.sent[0][1].digest == digest_of("a", 1) != digest_of("a", 2)


def test_a_peer_is_challenged_again_after_exactly_a_tenth_of_a_second() -> None:
    peers = Asked()
    for now in (0.0, 0.1):
        peers.hear("a", HOME, now)
    assert len(peers.sent) == 2


def test_the_second_answer_of_a_host_that_is_proven_does_not_replace_it() -> None:
    """Two challenges to the same host are under way; the answer to the second comes after it is proven by the first."""
    peers = Asked(newcomers=1)
    first = peers.hear("a", HOME, 1.0)
    peers.hear("b", ELSEWHERE, 1.0)
    second = peers.hear("a", HOME, 1.0)
    assert first is not second
    for_first, _, for_second = (challenge.cookie for _, challenge in peers.sent)
    assert peers.echo(for_first, HOME, 1.1) is first
    assert peers.echo(for_second, HOME, 1.1) is None
    assert (peers.at(HOME), first.proven, second.proven) == (first, True, False)


def test_a_host_that_starts_again_at_its_address_replaces_its_earlier_life_at_once() -> None:
    peers = Asked()
    old = peers.proves("a", HOME, 1.0, life=1)
    with pytest.raises(Refused):
        peers.hear("a", HOME, 2.0, life=2)
    new = peers.echo(peers.sent[-1][1].cookie, HOME, 2.0)
    assert new is not None
    assert (new.life, peers.at(HOME), old.proven, list(peers._contests)) == (2, new, False, [])


def test_a_peer_is_present_for_its_expiry_and_not_longer() -> None:
    peers = Asked()
    peers.proves("a", HOME, 1.0)
    peers.hear("b", ELSEWHERE, 1.0)
    for now, names in ((6.0, ["a", "b"]), (6.1, [])):
        assert [peer.name for peer in peers.present(now)] == names
        assert [peer.name for peer in peers.proven(now)] == names[:1]
        assert [name for name in "ab" if peers.get(name, now) is not None] == names
    assert len(peers) == 2
    with pytest.raises(Refused):
        peers.hear("a", ELSEWHERE, 6.0)
    assert peers.hear("a", ELSEWHERE, 6.2).address == ELSEWHERE, "the host of that name is gone"


def test_the_clock_that_an_echo_confirms_is_that_of_the_frame_that_was_challenged() -> None:
    peers = Asked()
    peer = peers.hear("a", HOME, 1.0, ahead_s=3.0)
    assert (peer.clock_ahead_s, peer.claimed_ahead_s) == (0.0, 3.0)
    peers.echo(peers.sent[-1][1].cookie, HOME, 1.5)
    assert (peer.clock_ahead_s, peer.echoed_at) == (3.0, 1.5)


def test_the_first_of_too_many_challenges_is_forgotten() -> None:
    bounds = (peers_module.CHALLENGES, peers_module.CONTESTS, peers_module.CHALLENGE_EVERY_S, peers_module.CONTEST_S)
    assert bounds == (4096, 256, 0.1, 0.5)
    peers = Asked(challenges=2)
    addresses = [("10.0.0.1", port) for port in range(3)]
    for name, address in zip("abc", addresses, strict=True):
        peers.hear(name, address, 1.0)
    proven = [
        peers.echo(challenge.cookie, address, 1.1)
        for (_, challenge), address in zip(peers.sent, addresses, strict=True)
    ]
    assert [one.name if one else None for one in proven] == [None, "b", "c"]


def test_a_full_table_keeps_those_that_are_present_and_replaces_the_one_heard_first() -> None:
    peers = Asked(limit=2)
    for number, name in enumerate("ab"):
        peers.proves(name, ("10.0.0.1", number), 1.0)
    peers.hear("a", ("10.0.0.1", 0), 3.0)
    newcomer = peers.hear("c", HOME, 6.0)
    assert peers.echo(peers.sent[-1][1].cookie, HOME, 6.0) is None
    assert not newcomer.proven
    peers.hear("c", HOME, 6.2)
    assert peers.echo(peers.sent[-1][1].cookie, HOME, 6.2) is newcomer
    assert sorted(peer.name for peer in peers.proven(6.2)) == ["a", "c"], "b was silent for longest"


def test_newcomers_displace_the_newcomer_that_was_heard_first() -> None:
    peers = Asked(newcomers=2)
    for number, name in enumerate("abc"):
        peers.hear(name, ("10.0.0.1", number), 1.0)
    assert [peer.name for peer in peers.present(1.0)] == ["b", "c"]


def test_a_host_that_ends_frees_its_name_but_only_by_its_own_digest_and_address() -> None:
    peers = Asked()
    peers.proves("a", HOME, 1.0)
    peers.goodbye(digest_of("a", 2), HOME)
    peers.goodbye(digest_of("a", 1), ELSEWHERE)
    assert peers.get("a", 1.0) is not None
    peers.goodbye(digest_of("a", 1), HOME)
    assert peers.get("a", 1.0) is None
    assert peers.proves("a", ELSEWHERE, 1.1, life=2).proven


def test_a_contest_ends_after_half_a_second_of_silence_or_with_an_echo() -> None:
    for echoes in (False, True):
        peers = Asked()
        peers.proves("a", HOME, 1.0)
        with pytest.raises(Refused):
            peers.hear("a", ELSEWHERE, 2.0, life=2)
        peers.echo(peers.sent[-1][1].cookie, ELSEWHERE, 2.0)
        assert peers.settle(2.2) == ([], True)
        if echoes:
            peers.echo(peers.sent[-1][1].cookie, HOME, 2.3)
            assert peers.settle(2.5) == ([], False)
        else:
            assert peers.settle(2.4999) == ([], True)
            won, is_open = peers.settle(2.5)
            assert ([peer.address for peer in won], is_open) == ([ELSEWHERE], False)


def test_a_window_that_was_forged_is_replaced_with_the_next_echo() -> None:
    peers = Asked()
    peer = peers.proves("a", HOME, 1.0)
    before = peer.window
    peer.suspects_window = True
    peers.ask(peer, 0.0, 2.0)
    assert peers.echo(peers.sent[-1][1].cookie, HOME, 2.0) is None
    assert (peer.suspects_window, peer.window is before) == (False, False)


def test_a_name_that_another_host_has_signed_is_taken_from_those_that_have_not() -> None:
    peers = Asked()
    peers.proves("a", HOME, 1.0)
    peers.release("a", lambda _: True)
    assert peers.get("a", 1.0) is not None
    peers.release("a", lambda _: False)
    assert (peers.get("a", 1.0), len(peers)) == (None, 0)
    peers.hear("b", ELSEWHERE, 1.0)
    peers.release("b", lambda _: False)
    assert len(peers) == 0


# Limits.


def test_an_allowance_fills_up_to_a_second() -> None:
    limits = RateLimits(8.0)
    mine = limits.of(Peer("a", HOME, 1))
    assert sum(limits.allows(mine, 5.0) for _ in range(20)) == 8
    assert not limits.allows(mine, 5.0625)
    assert limits.allows(mine, 5.125)
    assert sum(limits.allows(mine, 500.0) for _ in range(20)) == 8


def test_fixes_closer_than_a_quarter_of_a_second_replace_each_other() -> None:
    assert len(recent(1.0, 1.0625, 1.125, 1.1875, 1.25)) == 3
    assert len(recent(1.0, 1.25, 1.5)) == 3
    assert len(recent(1.0, 1.0, 0.5)) == 1
    assert [round(recent(*map(float, range(200))).at(time).position.x_m) for time in (0.0, 78.0, 80.0)] == [79, 79, 80]


def left_after(worked_s: float, others_s: float | None, stranger: bool = False) -> float:
    """What is left of an allowance of 1000 after a datagram that took this long; others worked this long before."""
    limits = RateLimits(1000.0)
    mine = limits.of(None if stranger else Peer("a", HOME, 1))
    mine.left = 1000.0
    if others_s is not None:
        limits.charge(limits.of(Peer("b", ELSEWHERE, 1)), 0.0, 10.0 - others_s)
    limits.charge(mine, worked_s, 10.0)
    return mine.left


@pytest.mark.parametrize(
    ("worked_s", "others_s", "left"),
    [
        (0.1, 0.5, 801.0),
        (0.1, 0.99, 801.0),
        (0.1, 1.0, 1000.0),
        (0.1, None, 1000.0),
        (9.0, 0.5, 1.0),
        (0.0, 0.5, 1000.0),
    ],
)
def test_work_is_charged_twofold_while_another_sender_worked_in_the_last_second(
    worked_s: float, others_s: float | None, left: float
) -> None:
    assert left_after(worked_s, others_s) == pytest.approx(left)


def test_work_of_newcomers_is_always_charged_fourfold() -> None:
    assert left_after(0.1, None, stranger=True) == pytest.approx(1000.0 - 399.0)
    assert left_after(0.0001, None, stranger=True) == 1000.0


# Fixes.


class Going:
    """A service that gives the fix that it was given."""

    plane = None

    def __init__(self, fix: Fix) -> None:
        self.latest = fix

    async def start(self, clock: object, plane: object) -> None: ...

    async def stop(self) -> None: ...

    def fix(self, now: float) -> Fix:
        return self.latest


def test_a_fix_is_stale_after_ten_seconds_and_extrapolated_until_then() -> None:
    warnings: list[str] = []
    where = TrackedLocation(Going(Fix(Position(0.0, 100.0), Velocity(1.0, -2.0), 50.0)), warnings.append)
    assert (STALE_S, FIX_SPACING_S) == (10.0, 0.25)
    assert (where.position(60.0), where.velocity(60.0), where.stale) == (
        Position(10.0, 80.0),
        Velocity(1.0, -2.0),
        False,
    )
    assert (where.position(60.1), where.velocity(60.1), where.stale) == (Position(10.0, 80.0), STILL, True)
    assert warnings == ["stale-fix: 10 s old"]
    assert where.exact(55.0) == Position(5.0, 90.0)
    assert where.fix(49.0).age_s(49.0) == 0.0, "a fix from the future has no age"


def test_a_clock_that_was_set_back_forgets_the_fixes_of_the_future() -> None:
    service = Going(Fix(Position(0.0, 0.0), STILL, 100.0))
    where = TrackedLocation(service, [].append)
    where.position(100.0)
    service.latest = Fix(Position(7.0, 0.0), STILL, 20.0)
    assert where.position(20.0) == Position(0.0, 0.0)
    where.forget()
    assert where.position(20.0) == Position(7.0, 0.0)


def recent(*times: float) -> RecentFixes:
    found = RecentFixes()
    for time in times:
        found.add(Fix(Position(time, -2.0 * time), Velocity(time, 0.0), time))
    return found


def test_between_two_fixes_a_node_is_on_the_line_between_them() -> None:
    found = recent(10.0, 20.0)
    assert [found.at(time).position for time in (0.0, 10.0, 12.5, 20.0, 99.0)] == [
        Position(10.0, -20.0), Position(10.0, -20.0), Position(12.5, -25.0), Position(20.0, -40.0),
        Position(20.0, -40.0),
    ]  # fmt: skip
    between = found.at(15.0)
    assert (between.velocity, between.time) == (Velocity(10.0, 0.0), 15.0)


def test_planes_are_named_by_the_nearest_whole_degrees() -> None:
    assert plane_near(53.4, -2.6) == LocalPlane(53.0, -3.0)
    assert (plane_name(LocalPlane(53.0, -3.0)), plane_name(None)) == ("53.0,-3.0", "")


def test_a_full_table_forgets_the_one_that_makes_room_by_name_and_by_address() -> None:
    peers = Asked(limit=1)
    old = peers.proves("a", ELSEWHERE, 1.0)
    peers.proves("b", HOME, 7.0)
    assert (old.proven, len(peers), peers.at(ELSEWHERE)) == (False, 1, None)


def test_only_the_same_life_of_a_host_keeps_its_window_when_it_moves() -> None:
    for life, keeps in ((1, True), (2, False)):
        peers = Asked()
        known = peers.proves("a", HOME, 1.0)
        moved = peers.hear("a", ELSEWHERE, 7.0, life=life)
        moved.window = type(known.window)()
        peers.echo(peers.sent[-1][1].cookie, ELSEWHERE, 7.0)
        assert (moved.window is known.window) is keeps


def test_so_many_names_are_contested_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "CONTESTS", 1)
    peers = Asked()
    for number, name in enumerate("ab"):
        peers.proves(name, ("10.0.0.1", number), 1.0)
        with pytest.raises(Refused):
            peers.hear(name, ("10.0.0.2", number), 2.0, life=2)
        peers.echo(peers.sent[-1][1].cookie, ("10.0.0.2", number), 2.0)
    assert list(peers._contests) == ["a"]
