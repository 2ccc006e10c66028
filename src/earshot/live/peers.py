"""Peers: which host speaks for which name, and how much each may send.

A host that was heard is a newcomer until it has echoed a challenge from its address. Then it is proven: it
alone may use its name, unicasts and broadcasts go to it, and it has a rate limit of its own. A newcomer is
heard, but it gets no more bytes than it sent. If the name of a proven peer that is present is claimed (from another
address, or by a restarted host, which has another `life`), the claim is refused and both hosts are challenged: if the
known host is silent and the claimant answers, the claimant gets the name. So neither a forged hello, nor a replay,
nor a wrong clock can take a name from a host that is present, and a host that was killed and restarted gets its name
back in a second.

Newcomers displace only newcomers. All tables are in the order in which peers were heard, and the first peer is
displaced first.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from earshot.geometry import Position
from earshot.live.datagrams import COOKIE_BYTES, Challenge, Frame
from earshot.live.trust import Address, Refused, Window
from earshot.records import DropReason

CONTEST_S = 0.5
"The known host of a name must answer within this time after another host has claimed the name and proved itself."
CONTESTS = 256
CHALLENGE_EVERY_S = 0.1
"Least time between two challenges to one peer."
CHALLENGES = 4096
"At most this many challenges wait for their echo."
PEER_BYTES = 1500
"The most that a peer takes: a name of 128 characters takes up to 588 bytes."
WORK_SHARE = 0.5
"Share of the time that one sender's datagrams may take while other senders have work as well."
LONGEST_CHARGE_S = 0.5
STRANGERS_SHARE = 0.25
"Share of the time that the datagrams of all newcomers together may take."
NEWCOMERS_BURST_S = 0.1
"""Newcomers together may save up the datagrams of this long, a proven peer those of a second: packets of proven peers
wait behind a burst of newcomers."""
LEAST_BURST = 10.0
NEWCOMERS_PAUSE_S = 0.005
"A node that has used up the newcomers' allowance returns to them after at least this time."


class PeerLimits(NamedTuple):
    """How many peers are remembered."""

    proven: int = 4096
    newcomers: int = 1024
    challenges: int = CHALLENGES

    @classmethod
    def within(cls, memory_bytes: int) -> PeerLimits:
        """As many as take a sixteenth, a sixty-fourth and a thirty-second of the memory with the longest names."""
        usual = USUAL_LIMITS
        return cls(
            min(usual.proven, memory_bytes // 16 // PEER_BYTES),
            min(usual.newcomers, memory_bytes // 64 // PEER_BYTES),
            min(usual.challenges, memory_bytes // 32 // PEER_BYTES),
        )


USUAL_LIMITS = PeerLimits()


def digest_of(name: str, life: int) -> bytes:
    """Four bytes that stand for a name and a life of its host in a challenge."""
    return hashlib.blake2s(f"{life}:{name}".encode(), digest_size=4).digest()


@dataclass(slots=True)
class Allowance:
    """How many more datagrams may be read, and when that was computed."""

    left: float
    at: float


@dataclass(slots=True, eq=False)
class Peer:
    """One host that was heard."""

    name: str
    address: Address
    life: int
    heard_at: float = -inf
    "On the monotonic clock, like all times here."
    position: Position | None = None
    window: Window = field(default_factory=Window)
    proven: bool = False
    "Whether it has echoed a challenge from this address."
    credit_bytes: int = 0
    "For a newcomer: how many more bytes it sent than it got."
    clock_ahead_s: float = 0.0
    "How many seconds its clock was ahead of ours when it last echoed a challenge."
    claimed_ahead_s: float = 0.0
    "The same, according to the frame that caused the latest challenge."
    challenged_at: float = -inf
    echoed_at: float = -inf
    suspects_window: bool = False
    "Whether its sequence numbers are far behind its window: without a key, anyone can forge a high number."
    allowance: Allowance = field(default_factory=lambda: Allowance(0.0, -inf))


@dataclass(slots=True, eq=False)
class Contest:
    """Two hosts that claim one name: the known host, and a host that has proved itself at another address."""

    known: Peer
    claimant: Peer
    since: float


class Peers:
    """The peers that were heard: proven peers by name and by address, newcomers by name.

    `challenge` sends a challenge to a peer's address.
    """

    def __init__(
        self,
        expiry_s: float,
        challenge: Callable[[Peer, Challenge], None],
        limits: PeerLimits = USUAL_LIMITS,
    ) -> None:
        self.expiry_s = expiry_s
        self._challenge = challenge
        self._limits = limits
        self._proven: OrderedDict[str, Peer] = OrderedDict()
        self._by_address: dict[Address, Peer] = {}
        self._newcomers: OrderedDict[str, Peer] = OrderedDict()
        self._newcomer_at: dict[Address, Peer] = {}
        self._challenged: OrderedDict[bytes, Peer] = OrderedDict()
        self._contests: dict[str, Contest] = {}

    def __len__(self) -> int:
        return len(self._proven) + len(self._newcomers)

    # Hearing.

    def find(self, frame: Frame, address: Address, clock_ahead_s: float, now: float) -> Peer:
        """The peer that sent this frame: proven, or a newcomer, which is challenged. Refused if its name or its
        address belongs to another host. `clock_ahead_s` is the frame's time less ours.

        Nothing is refreshed here: first the caller checks that the frame is not a replay.
        """
        known = self._proven.get(frame.sender)
        if known is not None and known.address == address and known.life == frame.life:
            return known
        newcomer = self._newcomers.get(frame.sender)
        if newcomer is None or newcomer.address != address or newcomer.life != frame.life:
            newcomer = Peer(frame.sender, address, frame.life)
            if known is not None and known.life == frame.life:
                newcomer.window = known.window
        self.ask(newcomer, clock_ahead_s, now)
        for other in (known, self._by_address.get(address), self._newcomer_at.get(address)):
            if other is not None and other is not newcomer and self._is_present(other, now):
                raise Refused(DropReason.FORGED_SENDER)
        self._admit(newcomer)
        return newcomer

    def _admit(self, newcomer: Peer) -> None:
        for other in (self._newcomers.get(newcomer.name), self._newcomer_at.get(newcomer.address)):
            if other is newcomer:
                return
            if other is not None:
                self._dismiss(other)
        if len(self._newcomers) >= self._limits.newcomers:
            self._dismiss(next(iter(self._newcomers.values())))
        self._newcomers[newcomer.name] = self._newcomer_at[newcomer.address] = newcomer

    def _dismiss(self, newcomer: Peer) -> None:
        if self._newcomers.get(newcomer.name) is newcomer:
            del self._newcomers[newcomer.name]
            del self._newcomer_at[newcomer.address]

    def heard(self, peer: Peer, position: Position | None, now: float) -> None:
        """A fresh frame of this peer has arrived."""
        peer.heard_at = now
        peer.position = position
        (self._proven if peer.proven else self._newcomers).move_to_end(peer.name)

    def goodbye(self, digest: bytes, address: Address) -> None:
        """The host at this address says that it ends. Its window is kept."""
        peer = self._by_address.get(address) or self._newcomer_at.get(address)
        if peer is not None and digest == digest_of(peer.name, peer.life):
            peer.heard_at = -inf

    # Proving.

    def ask(self, peer: Peer, clock_ahead_s: float, now: float) -> None:
        """Challenge the peer at its address, unless that happened just now."""
        if now - peer.challenged_at < CHALLENGE_EVERY_S:
            return
        peer.challenged_at = now
        peer.claimed_ahead_s = clock_ahead_s
        cookie = os.urandom(COOKIE_BYTES)
        if len(self._challenged) >= self._limits.challenges:
            self._challenged.popitem(last=False)
        self._challenged[cookie] = peer
        self._challenge(peer, Challenge(cookie, digest_of(peer.name, peer.life)))

    def echo(self, cookie: bytes, address: Address, now: float) -> Peer | None:
        """An echo arrived. Returns the peer that is proven by it, if it was not proven before."""
        peer = self._challenged.pop(cookie, None)
        if peer is None or peer.address != address:
            return None
        peer.echoed_at = now
        peer.clock_ahead_s = peer.claimed_ahead_s
        if peer.suspects_window:
            peer.suspects_window = False
            peer.window = Window()
        if peer.proven:
            return None
        there = self._by_address.get(address)
        if there is not None and (there.name, there.life) != (peer.name, peer.life):
            # The host at this address is another one now, or has started again.
            self._forget(there)
        known = self._proven.get(peer.name)
        if known is not None and self._is_present(known, now):
            if len(self._contests) < CONTESTS:
                self._contests.setdefault(peer.name, Contest(known, peer, now))
            return None
        return peer if self._prove(peer, now) else None

    def settle(self, now: float) -> tuple[list[Peer], bool]:
        """Challenge the known hosts whose names are contested. Returns the claimants that have won, because the
        known host stayed silent, and whether a contest is still open."""
        won = []
        for name, contest in list(self._contests.items()):
            known = self._proven.get(name)
            if known is not contest.known or known.echoed_at > contest.since:
                del self._contests[name]
            elif now - contest.since >= CONTEST_S:
                del self._contests[name]
                if self._prove(contest.claimant, now):
                    won.append(contest.claimant)
            else:
                self.ask(known, known.clock_ahead_s, now)
        return won, bool(self._contests)

    def _prove(self, peer: Peer, now: float) -> bool:
        known = self._proven.get(peer.name)
        if known is not None:
            if known.life == peer.life:
                peer.window = known.window
            self._forget(known)
        if (there := self._by_address.get(peer.address)) is not None:
            self._forget(there)
        if len(self._proven) >= self._limits.proven:
            oldest = next(iter(self._proven.values()))
            if self._is_present(oldest, now):
                return False
            self._forget(oldest)
        self._dismiss(peer)
        peer.proven = True
        peer.heard_at = now
        self._proven[peer.name] = self._by_address[peer.address] = peer
        return True

    def _forget(self, peer: Peer) -> None:
        peer.proven = False
        del self._proven[peer.name]
        del self._by_address[peer.address]

    def release(self, name: str, has_signed: Callable[[Peer], bool]) -> None:
        """A host has signed that it has this name: hosts that have not signed lose it."""
        known, newcomer = self._proven.get(name), self._newcomers.get(name)
        if known is not None and not has_signed(known):
            self._forget(known)
        if newcomer is not None and not has_signed(newcomer):
            self._dismiss(newcomer)

    # Asking.

    def _is_present(self, peer: Peer, now: float) -> bool:
        return now - peer.heard_at <= self.expiry_s

    def at(self, address: Address) -> Peer | None:
        """The proven peer at this address."""
        return self._by_address.get(address)

    def get(self, name: str, now: float) -> Peer | None:
        """The peer of that name, if it has been heard recently: the proven one, else the newcomer."""
        for table in (self._proven, self._newcomers):
            peer = table.get(name)
            if peer is not None and self._is_present(peer, now):
                return peer
        return None

    def proven(self, now: float) -> Iterator[Peer]:
        """The proven peers that have been heard recently."""
        return (peer for peer in self._proven.values() if self._is_present(peer, now))

    def present(self, now: float) -> list[Peer]:
        """All peers that have been heard recently, sorted by name."""
        found = {name: peer for table in (self._newcomers, self._proven) for name, peer in table.items()}
        return [peer for _, peer in sorted(found.items()) if self._is_present(peer, now)]


class RateLimits:
    """Limits the datagrams per second from one sender, and the work that they cause. All newcomers share one limit, so
    that a flood from many addresses costs no more than a flood from one address.

    While other senders have packets too, a datagram that takes long counts as several, so that one sender takes at most
    half of the time and all newcomers together a quarter.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self.newcomers_burst = min(per_second, max(LEAST_BURST, per_second * NEWCOMERS_BURST_S))
        "How many datagrams newcomers may send at once."
        self._strangers = Allowance(self.newcomers_burst, 0.0)
        self._latest = self._strangers
        "The allowance that last had packets, at `_latest_at`."
        self._latest_at = -inf
        self._others_at = -inf
        "When another allowance last had packets."

    def of(self, peer: Peer | None) -> Allowance:
        """The allowance of a proven peer; None stands for all newcomers together."""
        return self._strangers if peer is None else peer.allowance

    def allows(self, allowance: Allowance, now: float) -> bool:
        """Whether one more datagram may be read."""
        left = self._left(allowance, now)
        allowed = left >= 1.0
        allowance.left, allowance.at = left - allowed, now
        return allowed

    def newcomers_wait_s(self, now: float) -> float:
        """How long the newcomers' datagrams wait: 0 if one may be read now, otherwise until several may."""
        left = self._left(self._strangers, now)
        if left >= 1.0:
            return 0.0
        several = max(1.0, min(self.newcomers_burst, NEWCOMERS_PAUSE_S * self._per_second))
        return (several - left) / self._per_second

    def _left(self, allowance: Allowance, now: float) -> float:
        most = self.newcomers_burst if allowance is self._strangers else self._per_second
        return min(most, allowance.left + (now - allowance.at) * self._per_second)

    def charge(self, allowance: Allowance, worked_s: float, now: float) -> None:
        """Charge the time that a datagram with packets took. (At most half a second counts: the process may have been
        paused.)"""
        if allowance is not self._latest:
            self._latest, self._others_at = allowance, self._latest_at
        self._latest_at = now
        if allowance is self._strangers:
            self.charge_newcomers(worked_s)
        elif now - self._others_at < 1.0:
            allowance.left -= self._cost(worked_s, WORK_SHARE)

    def charge_newcomers(self, worked_s: float) -> None:
        """Charge the time that a newcomer's datagram took, whether it had packets, was refused, or asked for an
        answer."""
        self._strangers.left -= self._cost(worked_s, STRANGERS_SHARE)

    def _cost(self, worked_s: float, share: float) -> float:
        """How many datagrams this much work counts for, beyond the one that was counted."""
        return max(0.0, min(worked_s, LONGEST_CHARGE_S) / share * self._per_second - 1.0)
