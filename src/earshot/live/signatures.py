"""Signatures: which keys this node trusts, and how it judges signed events and hellos.

A trust file is the allow-list. Each line binds a name to a key, names an owner whose certificates are trusted, or
revokes a key:

    node ambulance-7 ed25519:... until 2027-01-31
    owner ed25519:...
    revoked ed25519:...

A node in the list must sign: events and hellos under its name without its signature are refused. A certificate in a
signature binds a name that is not in the list. With `require_signed`, everything that is not verified is refused.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import TypeVar

from earshot.errors import UsageError
from earshot.live.datagrams import Frame
from earshot.live.identity import (
    SIGNATURE_BYTES,
    checked_name,
    decode_certificate,
    event_message,
    hello_message,
    is_signed_by,
    key_text,
    parse_key,
)
from earshot.live.peers import Peer
from earshot.live.private_files import read_text
from earshot.live.trust import Address, Refused
from earshot.protocols.common.packet_events import events_in
from earshot.records import DropReason
from earshot.wire import Packet

K = TypeVar("K")

MAX_OWNERS = 16
REMEMBERED = 16_384
"At most this number of verified events and certificates are remembered: a copy of one is not verified again."
FAILURES_A_SECOND = 32.0
"Wrong signatures of one sender that are checked per second; further signed packets are dropped unchecked."


@dataclass(frozen=True)
class TrustFile:
    """The names, owners and revoked keys of a trust file."""

    keys: dict[str, dict[bytes, float]] = field(default_factory=dict)
    "For each name, its keys and until when each is valid. A name may have several keys while its key changes."
    owners: tuple[bytes, ...] = ()
    revoked: frozenset[bytes] = frozenset()


NOBODY = TrustFile()


def parse_until(text: str) -> float:
    """A date or a time in ISO 8601 as seconds since the epoch; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not a date; write it as 2027-01-31") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_trust(path: str | Path) -> TrustFile:
    """Read a trust file."""
    lines = read_text(path, "the trust file").splitlines()
    keys: dict[str, dict[bytes, float]] = {}
    owners: list[bytes] = []
    revoked: set[bytes] = set()
    for number, line in enumerate(lines, 1):
        try:
            match line.partition("#")[0].split() if line.lstrip().startswith("#") else line.split():
                case []:
                    continue
                case ["node", name, key]:
                    keys.setdefault(checked_name(name), {})[parse_key(key)] = inf
                case ["node", name, key, "until", until]:
                    keys.setdefault(checked_name(name), {})[parse_key(key)] = parse_until(until)
                case ["owner", key]:
                    owners.append(parse_key(key))
                case ["revoked", key]:
                    revoked.add(parse_key(key))
                case _:
                    raise UsageError("write: node NAME KEY [until DATE], owner KEY, or revoked KEY")
        except UsageError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
    if len(owners) > MAX_OWNERS:
        raise UsageError(f"{path} names {len(owners)} owners; at most {MAX_OWNERS} are allowed")
    return TrustFile(keys, tuple(owners), frozenset(revoked))


def trust_line(kind: str, key: bytes, name: str = "", until: str = "") -> str:
    """One line of a trust file."""
    if until:
        parse_until(until)
    words = [kind, checked_name(name) if kind == "node" else "", key_text(key), f"until {until}" if until else ""]
    return " ".join(word for word in words if word)


class Verifier:
    """Judges the signatures of events and hellos."""

    def __init__(self, require_signed: bool = False, trust: TrustFile = NOBODY) -> None:
        self.require_signed = require_signed
        self._trust = trust
        self._verified: OrderedDict[bytes, float] = OrderedDict()
        self._certificates: OrderedDict[bytes, float] = OrderedDict()
        self._allowances: OrderedDict[str, list[float]] = OrderedDict()

    def use(self, trust: TrustFile) -> None:
        """Trust other keys from now on."""
        self._trust = trust
        self._verified.clear()
        self._certificates.clear()

    def must_sign(self, name: str) -> bool:
        """Whether nothing unsigned is accepted under this name."""
        return self.require_signed or name in self._trust.keys

    def check_packet(self, packet: Packet, sender: str, now: float) -> None:
        """Mark the packet's events that are verified; Refused if one of them is not acceptable."""
        for event in events_in(packet):
            if self._judge(event.source, event.signature, lambda event=event: event_message(event), sender, now):  # type: ignore[misc]
                event.__dict__["verified"] = True

    def proves(self, hello: Frame, peer: str, now: float) -> bool:
        """Whether the hello is signed by the key of its name; Refused if its signature is wrong.

        `peer` is the name that the sender's address has proved; all other addresses share the empty name.
        """
        return self._judge(hello.sender, hello.signature, lambda: hello_message(hello), peer, now)

    def _judge(
        self, name: str, signature: bytes | None, message_of: Callable[[], bytes], sender: str, now: float
    ) -> bool:
        """Whether this name's key signed the message. Refused if a required signature is missing, or if it is wrong."""
        if signature is None:
            if self.must_sign(name):
                raise Refused(DropReason.NOT_SIGNED)
            return False
        message = message_of()
        digest = blake2b(signature + message, digest_size=16).digest()
        if (until := self._verified.get(digest)) is not None and until >= now:
            return True
        if not self._allows(sender, now):
            raise Refused(DropReason.RATE_LIMIT)
        try:
            until = self._valid_until(name, signature, message, now)
        except Refused:
            self._allowances[sender][0] -= 1.0
            raise
        if until is None:
            if self.require_signed:
                raise Refused(DropReason.UNKNOWN_SIGNER)
            return False
        _remember(self._verified, digest, until)
        return True

    def _valid_until(self, name: str, signature: bytes, message: bytes, now: float) -> float | None:
        """Until when the signature is valid; None if neither the trust file nor a certificate names the signer."""
        keys = self._trust.keys.get(name)
        if keys is None:
            keys = self._certified(name, signature[SIGNATURE_BYTES:], now)
            if keys is None:
                return None
        for key, until in keys.items():
            if is_signed_by(key, signature[:SIGNATURE_BYTES], message):
                if key in self._trust.revoked:
                    raise Refused(DropReason.KEY_REVOKED)
                if until < now:
                    raise Refused(DropReason.KEY_EXPIRED)
                return until
        raise Refused(DropReason.WRONG_SIGNATURE)

    def _certified(self, name: str, data: bytes, now: float) -> dict[bytes, float] | None:
        """The key that a certificate of a trusted owner binds to this name."""
        certificate = decode_certificate(data) if data and self._trust.owners else None
        if certificate is None:
            return None
        if certificate.name != name:
            raise Refused(DropReason.WRONG_SIGNATURE)
        if data not in self._certificates:
            message = certificate.message()
            owners = (owner for owner in self._trust.owners if owner not in self._trust.revoked)
            if not any(is_signed_by(owner, certificate.signature, message) for owner in owners):
                return None
            _remember(self._certificates, data, certificate.until)
        return {certificate.key: float(certificate.until)}

    def _allows(self, sender: str, now: float) -> bool:
        """Whether this sender's signatures are still checked: each wrong signature uses up some of its allowance."""
        allowance = self._allowances.get(sender)
        if allowance is None:
            allowance = self._allowances[sender] = [FAILURES_A_SECOND, now]
            if len(self._allowances) > REMEMBERED:
                self._allowances.popitem(last=False)
        left, since = allowance
        allowance[:] = min(FAILURES_A_SECOND, left + max(0.0, now - since) * FAILURES_A_SECOND), now
        return allowance[0] >= 1.0


HostKey = tuple[str, Address, int]
"A name, the address of a host that uses it, and the host's life."


class SignedNames:
    """Which hosts have sent a signed hello for a name.

    A name that must sign counts only where such a hello came from, and while such hellos come. A hello does not state
    its sender's address, so somebody else may repeat a hello that was lost here: then two hosts have sent one, and a
    challenge decides between them (`peers.py`).
    """

    def __init__(self, verifier: Verifier, expiry_s: float, clock_skew_s: float) -> None:
        self._verifier = verifier
        self._expiry_s = expiry_s
        self._clock_skew_s = clock_skew_s
        self._times: OrderedDict[str, float] = OrderedDict()
        "The time in the latest hello of each name: an older hello proves nothing."
        self._hosts: OrderedDict[HostKey, float] = OrderedDict()
        "When a hello of each host arrived, on the monotonic clock."

    def has_signed(self, name: str, address: Address, life: int, ticks: float) -> bool:
        """Whether a signed hello for this name came recently from this host."""
        return ticks - self._hosts.get((name, address, life), -inf) <= self._expiry_s

    def admits(self, frame: Frame, address: Address, now: float, ticks: float, peer: Peer | None) -> bool:
        """Whether this frame gives its name to its sender; Refused if the name must sign and is not its sender's.

        `now` is the time of the wall clock, `ticks` that of the monotonic one, `peer` the proven peer at the address.
        """
        name = frame.sender
        if frame.signature is None:
            if self._verifier.must_sign(name) and not self.has_signed(name, address, frame.life, ticks):
                raise Refused(DropReason.NOT_SIGNED)
            return False
        if not self._verifier.proves(frame, "" if peer is None else peer.name, now):
            return False
        if abs(frame.time - now) > self._clock_skew_s or frame.time <= self._times.get(name, -inf):
            raise Refused(DropReason.STALE_DATAGRAM)
        _remember(self._times, name, frame.time)
        _remember(self._hosts, (name, address, frame.life), ticks)
        return True


def _remember(table: OrderedDict[K, float], key: K, until: float) -> None:
    table[key] = until
    table.move_to_end(key)
    if len(table) > REMEMBERED:
        table.popitem(last=False)
