"""Who speaks for a name: proof by echo, contests, and tables that a flood of names cannot fill."""

import asyncio
import socket
import time
from pathlib import Path

import pytest
from desk import Desk, acquainted, free_port, taken, until
from hypothesis import given
from hypothesis import strategies as st

from earshot.live import datagrams
from earshot.live.datagrams import PLAIN, Challenge, Echo, Frame
from earshot.live.node import Node
from earshot.live.peers import CONTEST_S, Peer, PeerLimits, Peers, RateLimits, digest_of
from earshot.live.trust import Address, Refused, Seal

HOME, ELSEWHERE = ("10.0.0.1", 5), ("10.0.0.2", 5)


def frame(sender: str, life: int = 1, sequence: int = 1) -> Frame:
    return Frame(sender, life, sequence, 0.0, "", None, None, "", [], [])


class Table(Peers):
    """Peers whose hosts answer challenges, if they are awake."""

    def __init__(self, limit: int = 4096, newcomers: int = 1024) -> None:
        super().__init__(5.0, self.record, PeerLimits(limit, newcomers))
        self.awake: dict[Address, tuple[str, int]] = {}
        self.sent: list[tuple[Address, Challenge]] = []

    def record(self, peer: Peer, challenge: Challenge) -> None:
        self.sent.append((peer.address, challenge))

    def answer(self, now: float) -> None:
        """Every host that is awake answers the challenges about its own name and life."""
        sent, self.sent = self.sent, []
        for address, challenge in sent:
            if address in self.awake and digest_of(*self.awake[address]) == challenge.digest:
                self.echo(challenge.cookie, address, now)

    def hear(self, name: str, address: Address, now: float, life: int = 1) -> bool:
        """A frame arrives; whether it is accepted."""
        try:
            self.heard(self.find(frame(name, life), address, 0.0, now), None, now)
        except Refused:
            return False
        finally:
            self.answer(now)
            self.settle(now)
        return True

    def speakers(self, now: float) -> dict[str, Address]:
        return {peer.name: peer.address for peer in self.proven(now)}


def test_a_host_that_answers_speaks_for_its_name() -> None:
    peers = Table()
    assert peers.hear("a", HOME, 0.0)
    assert peers.speakers(0.0) == {}
    assert [(peer.name, peer.proven) for peer in peers.present(0.0)] == [("a", False)]
    peers.awake[HOME] = ("a", 1)
    peers.hear("a", HOME, 1.0)
    assert peers.speakers(1.0) == {"a": HOME}
    assert peers.at(HOME) is peers.get("a", 1.0)
    assert peers.get("a", 6.1) is None


@pytest.mark.parametrize("life", [0, 1, 2, 2**62])
def test_no_forged_life_takes_the_name_of_a_host_that_is_there(life: int) -> None:
    peers = Table()
    peers.awake = {HOME: ("a", 1), ELSEWHERE: ("a", life)}
    peers.hear("a", HOME, 0.0)
    for tick in range(1, 40):
        now = tick / 4
        assert peers.hear("a", HOME, now)
        assert not peers.hear("a", ELSEWHERE, now, life=life)
        peers.settle(now)
        peers.answer(now)
    assert peers.speakers(now) == {"a": HOME}


def test_a_forged_hello_with_a_forged_address_changes_nothing() -> None:
    peers = Table()
    peers.awake = {HOME: ("a", 1)}
    peers.hear("a", HOME, 0.0)
    assert not peers.hear("a", HOME, 1.0, life=2**62)
    assert peers.hear("a", HOME, 1.1)
    assert peers.speakers(1.1) == {"a": HOME}


def test_a_restarted_host_has_its_name_back_after_the_contest() -> None:
    peers = Table()
    peers.awake = {HOME: ("a", 7)}
    peers.hear("a", HOME, 0.0, life=7)
    # Its clock is earlier than before: the new life has a smaller number.
    peers.awake = {ELSEWHERE: ("a", 3)}
    assert not peers.hear("a", ELSEWHERE, 0.5, life=3)
    for now in (0.6, 0.75, 0.9):
        peers.settle(now)
        peers.answer(now)
        assert peers.speakers(now) == {"a": HOME}
    peers.settle(0.5 + CONTEST_S)
    assert peers.speakers(1.1) == {"a": ELSEWHERE}
    assert peers.hear("a", ELSEWHERE, 1.6, life=3)
    assert not peers.hear("a", HOME, 1.7, life=7)


def test_a_host_that_starts_again_at_its_address_is_known_at_once() -> None:
    peers = Table()
    peers.awake = {HOME: ("a", 7)}
    peers.hear("a", HOME, 0.0, life=7)
    peers.awake = {HOME: ("b", 1)}
    assert not peers.hear("b", HOME, 0.5)
    assert peers.speakers(0.5) == {"b": HOME}
    assert peers.hear("b", HOME, 0.6)


def test_a_moved_host_keeps_its_window() -> None:
    peers = Table()
    peers.awake = {HOME: ("a", 1)}
    peers.hear("a", HOME, 0.0)
    assert peers.find(frame("a"), HOME, 0.0, 0.1).window.fresh(9)
    peers.awake = {ELSEWHERE: ("a", 1)}
    peers.hear("a", ELSEWHERE, 5.5)
    moved = peers.find(frame("a"), ELSEWHERE, 0.0, 5.6)
    assert moved.proven
    assert not moved.window.fresh(9)


def test_newcomers_displace_newcomers_and_proven_peers_stay() -> None:
    peers = Table(limit=10, newcomers=20)
    peers.awake = {("10.0.0.1", number): (f"n{number}", 1) for number in range(10)}
    for number in range(10):
        assert peers.hear(f"n{number}", ("10.0.0.1", number), 0.0)
    for number in range(1000):
        peers.hear(f"sybil{number}", ("10.0.0.9", number), number / 1000)
        # Even Sybils that answer do not displace a proven peer that is present.
        peers.awake[("10.0.0.8", number)] = (f"many{number}", 1)
        peers.hear(f"many{number}", ("10.0.0.8", number), number / 1000)
    assert len(peers) == 30
    assert sorted(peers.speakers(1.0)) == [f"n{number}" for number in range(10)]
    # The silent ones make room.
    peers.hear("many7", ("10.0.0.8", 7), 5.5)
    assert "many7" in peers.speakers(5.5)


def test_a_new_name_costs_the_same_in_a_full_table() -> None:
    def cost_s(peers: Table) -> float:
        def names(start: int) -> float:
            began = time.perf_counter()
            for number in range(start, start + 2000):
                peers.hear(f"n{number}", ("10.0.0.1", number), 0.0)
            return time.perf_counter() - began

        return min(names(start) for start in (10**6, 2 * 10**6, 3 * 10**6))

    small, full = Table(limit=16, newcomers=16), Table()
    full.awake = {("10.0.1.1", number): (f"p{number}", 1) for number in range(5000)}
    for number in range(5000):
        full.hear(f"p{number}", ("10.0.1.1", number), 0.0)
    assert cost_s(full) < 4 * cost_s(small)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 2), st.booleans()), max_size=60))
def test_names_and_addresses_stay_one_to_one_whatever_is_claimed(
    claims: list[tuple[int, int, int, bool]],
) -> None:
    peers = Table(limit=3, newcomers=3)
    for step, (name, port, life, answers) in enumerate(claims):
        now, address = step * 0.2, ("10.0.0.1", port)
        if answers:
            peers.awake[address] = (f"n{name}", life)
        peers.hear(f"n{name}", address, now, life)
        assert {peer.address: peer for peer in peers._proven.values()} == peers._by_address
        assert {peer.address: peer for peer in peers._newcomers.values()} == peers._newcomer_at
        assert all(peers._proven[peer.name] is peer for peer in peers._by_address.values())
        assert len(peers._proven) <= 3
        assert len(peers._newcomers) <= 3


def test_a_claimant_whose_address_has_another_name_meanwhile_replaces_it() -> None:
    peers = Table()
    peers.awake = {HOME: ("a", 1)}
    peers.hear("a", HOME, 0.0)
    peers.awake = {ELSEWHERE: ("a", 2)}
    peers.hear("a", ELSEWHERE, 0.2, life=2)
    peers.awake = {ELSEWHERE: ("b", 1)}
    peers.hear("b", ELSEWHERE, 0.4)
    assert peers.speakers(0.4) == {"a": HOME, "b": ELSEWHERE}
    peers.settle(1.0)
    assert peers.speakers(1.0) == {"a": ELSEWHERE}
    peers.awake = {ELSEWHERE: ("b", 1)}
    peers.hear("b", ELSEWHERE, 1.2)
    assert peers.speakers(1.2) == {"b": ELSEWHERE}


def test_an_echo_from_another_address_or_made_up_proves_nothing() -> None:
    peers = Table()
    peers.hear("a", HOME, 0.0)
    assert peers.echo(b"12345678", HOME, 0.0) is None
    peers.find(frame("b"), ELSEWHERE, 0.0, 1.0)
    _, challenge = peers.sent[-1]
    assert peers.echo(challenge.cookie, HOME, 1.0) is None
    assert peers.echo(challenge.cookie, ELSEWHERE, 1.0) is None, "a cookie serves once"
    assert peers.speakers(1.0) == {}


def test_one_sender_has_its_limit_and_newcomers_share_one() -> None:
    limits = RateLimits(10)
    known = limits.of(Peer("a", HOME, 1))
    assert sum(limits.allows(limits.of(None), 0.0) for _ in range(1000)) == 10
    assert sum(limits.allows(known, 0.0) for _ in range(50)) == 10
    assert sum(limits.allows(known, 0.5) for _ in range(50)) == 5


def test_work_is_charged_while_others_have_work() -> None:
    limits = RateLimits(1000)
    busy, other = limits.of(Peer("a", HOME, 1)), limits.of(Peer("b", ELSEWHERE, 1))
    assert limits.allows(busy, 0.0)
    limits.charge(busy, 0.4, 0.0)
    assert sum(limits.allows(busy, 0.0) for _ in range(2000)) == 999, "alone, it may take all the time"
    assert limits.allows(busy, 2.0)
    limits.charge(other, 0.0001, 2.0)
    limits.charge(busy, 0.4, 2.0)
    assert sum(limits.allows(busy, 2.0) for _ in range(2000)) == 200
    assert limits.allows(limits.of(None), 2.0)
    limits.charge(limits.of(None), 0.02, 2.0)
    assert sum(limits.allows(limits.of(None), 2.0) for _ in range(2000)) == 20


def test_newcomers_save_up_a_tenth_of_a_second_and_proven_peers_a_second() -> None:
    limits = RateLimits(1000)
    known = limits.of(Peer("a", HOME, 1))
    assert sum(limits.allows(limits.of(None), 5.0) for _ in range(2000)) == 100
    assert sum(limits.allows(known, 5.0) for _ in range(2000)) == 1000
    limits.charge_newcomers(0.0625)
    assert [sum(limits.allows(limits.of(None), at) for _ in range(2000)) for at in (5.125, 5.265625)] == [0, 16]


def test_newcomers_wait_until_several_of_their_datagrams_may_be_read() -> None:
    limits = RateLimits(1000)
    assert limits.newcomers_wait_s(5.0) == 0.0
    assert sum(limits.allows(limits.of(None), 5.0) for _ in range(2000)) == 100
    assert limits.newcomers_wait_s(5.0) == pytest.approx(0.005)
    assert limits.newcomers_wait_s(5.0005) == pytest.approx(0.0045)
    assert limits.newcomers_wait_s(5.0011) == 0.0
    limits.charge_newcomers(0.25)
    assert limits.newcomers_wait_s(5.0) == pytest.approx(0.005 + 1.0 - 0.001)
    slow = RateLimits(2)
    assert sum(slow.allows(slow.of(None), 5.0) for _ in range(9)) == 2
    assert slow.newcomers_wait_s(5.0) == pytest.approx(0.5)


# Over real sockets.


class Forger:
    """A socket that says what it likes, and answers challenges about the names it claims if asked to."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.received = 0

    def hello(self, victim: Node, sender: str, life: int, sequence: int = 10**6) -> int:
        made = Frame(sender, life, sequence, time.time(), "", None, None, "", [], [])
        return self.socket.sendto(PLAIN + datagrams.encode(made), victim.host.transport.address)

    def answer(self, victim: Node) -> None:
        while True:
            try:
                data = self.socket.recv(65_535)
            except BlockingIOError:
                return
            self.received += len(data)
            short = datagrams.decode(data[4:])
            if isinstance(short, Challenge):
                echo = PLAIN + datagrams.encode(Echo(short.cookie, short.digest))
                self.socket.sendto(echo, victim.host.transport.address)


def test_a_node_that_stops_frees_its_name_at_once() -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("b") as b:
            async with desk.node("a") as a:
                await acquainted(a, b)
            await until(lambda: not b.peers())
            async with desk.node("a") as a:
                await acquainted(a, b)
            assert b.drops["forged-sender"] == 0

    asyncio.run(run())


def test_a_forged_life_does_not_silence_a_name() -> None:
    async def run() -> None:
        desk = Desk()
        forger = Forger()
        async with desk.node("a") as a, desk.node("b") as b:
            await acquainted(a, b)
            wanted = b.subscribe("Bell")
            bell = await a.announce("Bell")
            for number in range(8):
                forger.hello(b, "a", 2**62, 10**6 + number)
                await asyncio.sleep(0.2)
                forger.answer(b)
                sent = await bell.publish(n=number)
                assert await taken(wanted, 1) == [sent]
            assert b.drops["forged-sender"] >= 8
        forger.socket.close()

    asyncio.run(run())


def test_a_restarted_node_whose_clock_was_ahead_is_heard_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("b") as b:
            with monkeypatch.context() as an_hour_ahead:
                right = time.time_ns
                an_hour_ahead.setattr(time, "time_ns", lambda: right() + 3600 * 10**9)
                gone = desk.node("a")
                await gone.__aenter__()
            await until(lambda: [peer.name for peer in b.peers() if peer.both_ways] == ["a"])
            # Killed: it says no goodbye.
            gone.host.transport.close()
            async with desk.node("a") as a:
                began = time.monotonic()
                address = a.host.transport.address
                await until(lambda: [peer.address for peer in b.peers() if peer.both_ways] == [address])
                assert time.monotonic() - began < 4.0
            await gone.__aexit__(None, None, None)

    asyncio.run(run())


def test_a_stranger_gets_no_more_than_it_sent_until_it_has_echoed_a_cookie() -> None:
    async def run() -> None:
        name = "n" * 128
        async with Node(name, protocol="flooding", listen=f"127.0.0.1:{free_port()}", settings={}) as node:
            bell = await node.announce("Bell")
            stranger = Forger()
            sent = 0
            for number in range(20):
                sent += stranger.hello(node, "s", 1, number)
                await bell.publish(text="x" * 1000)
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.2)
            while True:
                try:
                    stranger.received += len(stranger.socket.recv(65_535))
                except BlockingIOError:
                    break
            assert 0 < stranger.received <= sent
            # Once it has echoed, it is a peer.
            stranger.hello(node, "s", 1, 100)
            await asyncio.sleep(0.05)
            stranger.answer(node)
            await until(lambda: [peer.name for peer in node.peers() if peer.both_ways] == ["s"])
            await bell.publish(text="x" * 1000)
            before = stranger.received
            stranger.answer(node)
            assert stranger.received - before > 1000
            stranger.socket.close()

    asyncio.run(run())


def test_a_forged_number_does_not_silence_a_name() -> None:
    peers = Table()
    peers.awake = {HOME: ("a", 1)}
    peers.hear("a", HOME, 0.0)
    known = peers.find(frame("a"), HOME, 0.0, 0.0)
    assert known.window.fresh(2**62)
    assert known.window.is_behind(2)
    known.suspects_window = True
    peers.ask(known, 0.0, 1.0)
    peers.answer(1.0)
    assert known.window.fresh(3)


def key_file(folder: Path) -> Path:
    path = folder / "key"
    path.write_text(bytes(range(32)).hex())
    path.chmod(0o600)
    return path


def test_a_replay_from_another_address_binds_no_name_and_a_wrong_clock_costs_no_peer(tmp_path: Path) -> None:
    async def run() -> None:
        desk = Desk(key_file=key_file(tmp_path))
        async with desk.node("b") as b:
            async with desk.node("a") as a:
                await acquainted(a, b)
                overheard: list[bytes] = []
                transmit = a.host.transport._transmit
                a.host.transport._transmit = lambda data, to, priority=0: (
                    overheard.append(data),
                    transmit(data, to, priority),
                )  # type: ignore[method-assign,assign,return-value]
                await (await a.announce("Bell")).publish()
                replayed = overheard.copy()
            attacker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            await until(lambda: not b.peers())
            heard = b.host.counts["receive"]
            for datagram in replayed:
                attacker.sendto(datagram, b.host.transport.address)
            await until(lambda: b.drops["duplicate-datagram"] >= len(replayed))
            assert b.host.counts["receive"] == heard
            assert b.peers() == [], "a replay refreshes nobody"
            async with desk.node("c") as fresh:
                wanted = fresh.subscribe("Bell")
                for datagram in replayed:
                    attacker.sendto(datagram, fresh.host.transport.address)
                await until(lambda: fresh.drops["stale-datagram"] >= len(replayed))
                assert fresh.host.counts["receive"] == len(wanted) == 0
            # A node whose clock is an hour behind proves itself, and is heard.
            async with desk.node("late", clock=lambda: time.time() - 3600) as late:
                await until(lambda: "late" in [peer.name for peer in b.peers() if peer.both_ways])
                before = b.host.counts["receive"]
                await (await late.announce("Bell")).publish()
                await until(lambda: b.host.counts["receive"] > before)
            attacker.close()

    asyncio.run(run())


def test_a_sealed_challenge_is_smaller_than_any_sealed_frame() -> None:
    for seal in (Seal(), Seal([bytes(32)])):
        least = seal.close(datagrams.encode(Frame("a", 0, 0, 0.0, "", None, None, "", [], [])))
        assert len(seal.close(datagrams.encode(Challenge(b"12345678", b"1234")))) <= len(least)
