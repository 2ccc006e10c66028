"""Signed events and hellos: by their source, end to end, through every protocol."""

import asyncio
import contextlib
import logging
import socket
import stat
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from desk import Desk, acquainted, taken, until
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import MalformedPacket, UsageError
from earshot.events import Element, Event, EventType
from earshot.geometry import Area, Circle, Position
from earshot.live import datagrams
from earshot.live.datagrams import PLAIN, Challenge, Echo, Frame
from earshot.live.identity import (
    Identity,
    certificate_line,
    event_message,
    is_signed_by,
    key_text,
    new_identity,
    parse_key,
    parse_named_key,
    read_identity,
)
from earshot.live.signatures import FAILURES_A_SECOND, SignedNames, TrustFile, Verifier, read_trust, trust_line
from earshot.live.trust import Refused
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.common.packet_events import events_in
from earshot.protocols.flooding import Flood
from earshot.wire import decode, encode

NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Identity]:
    folder = tmp_path_factory.mktemp("people")
    return {name: new_identity(name, folder / name) for name in ("a", "b", "mallory", "owner")}


def event(source: str = "a", **changes: object) -> Event:
    stamped = Event("Siren", {"speed": 18}).stamped(id=f"{source}-1", source=source, time=NOW)
    return msgspec.structs.replace(stamped, **changes)


def trusting(*named: Identity, owners: Iterable[Identity] = (), revoked: Iterable[Identity] = ()) -> TrustFile:
    return TrustFile(
        {one.name: {one.public_key: float("inf")} for one in named},
        tuple(one.public_key for one in owners),
        frozenset(one.public_key for one in revoked),
    )


def judged(verifier: Verifier, one: Event, now: float = NOW) -> bool | str:
    """Whether the event counts as verified at its receiver, or why it is refused."""
    packet = decode(encode(Flood(one, 1)))
    try:
        verifier.check_packet(packet, "relay", now)
    except Refused as refused:
        return str(refused.reason)
    (heard,) = events_in(packet)
    return heard.verified


def test_an_event_of_a_trusted_name_is_verified_and_none_is_taken_for_it(people: dict[str, Identity]) -> None:
    a, mallory = people["a"], people["mallory"]
    verifier = Verifier(trust=trusting(a))
    signed = a.sign_event(event())
    assert judged(verifier, signed) is True
    assert judged(verifier, msgspec.structs.replace(signed, priority=1)) == "wrong-signature"
    assert judged(verifier, msgspec.structs.replace(signed, content={"speed": 19})) == "wrong-signature"
    assert judged(verifier, mallory.sign_event(event("a"))) == "wrong-signature"
    assert judged(verifier, event("a")) == "not-signed"
    assert judged(verifier, mallory.sign_event(event("mallory"))) is False
    assert judged(verifier, event("stranger")) is False
    strict = Verifier(True, trusting(a))
    assert judged(strict, signed) is True
    assert judged(strict, mallory.sign_event(event("mallory"))) == "unknown-signer"
    assert judged(strict, event("stranger")) == "not-signed"


def test_a_certificate_of_a_trusted_owner_binds_a_name(people: dict[str, Identity]) -> None:
    a, b, mallory, owner = (people[name] for name in ("a", "b", "mallory", "owner"))

    def certified(one: Identity, by: Identity, until_s: float = NOW + 60, name: str = "") -> Identity:
        given = by.certify(name or one.name, one.public_key, int(until_s))
        return Identity(one.name, one.private_key, given.encoded())

    verifier = Verifier(True, trusting(owners=[owner]))
    assert judged(verifier, certified(a, owner).sign_event(event())) is True
    assert judged(verifier, certified(a, owner).sign_event(event()), NOW + 61) == "key-expired"
    assert judged(verifier, certified(a, mallory).sign_event(event())) == "unknown-signer"
    assert judged(verifier, certified(mallory, owner).sign_event(event("a"))) == "wrong-signature"
    stolen = Identity("b", mallory.private_key, certified(b, owner).certificate)
    assert judged(verifier, stolen.sign_event(event("b"))) == "wrong-signature"
    assert judged(verifier, certified(b, owner).sign_event(event("b"))) is True
    for gone in (b, owner):
        verifier.use(trusting(owners=[owner], revoked=[gone]))
        refused = judged(verifier, certified(b, owner).sign_event(event("b")), 1)
        assert refused == ("key-revoked" if gone is b else "unknown-signer")


def test_keys_expire_are_revoked_and_are_changed_one_after_the_other(
    people: dict[str, Identity], tmp_path: Path
) -> None:
    old, new = people["a"], Identity("a", people["b"].private_key)
    path = tmp_path / "trust"
    soon = datetime.fromtimestamp(NOW + 60, UTC).isoformat()
    path.write_text(f"# all\n{trust_line('node', old.public_key, 'a', soon)}\n")
    verifier = Verifier(trust=read_trust(path))
    assert judged(verifier, old.sign_event(event())) is True
    assert judged(verifier, old.sign_event(event()), NOW + 61) == "key-expired"
    path.write_text(path.read_text() + trust_line("node", new.public_key, "a"))
    verifier.use(read_trust(path))
    assert judged(verifier, old.sign_event(event())) is judged(verifier, new.sign_event(event())) is True
    path.write_text(f"{path.read_text()}\n{trust_line('revoked', old.public_key)}")
    verifier.use(read_trust(path))
    assert judged(verifier, old.sign_event(event())) == "key-revoked"
    assert judged(verifier, new.sign_event(event())) is True


def test_wrong_signatures_of_one_sender_cost_a_bounded_time(
    people: dict[str, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []
    monkeypatch.setattr(
        "earshot.live.signatures.is_signed_by", lambda *given: (looked.append(given[1]), is_signed_by(*given))[1]
    )
    verifier = Verifier(trust=trusting(people["a"], people["b"]))
    forged = [people["mallory"].sign_event(event("a", id=f"a-{number}")) for number in range(200)]
    refused = [judged(verifier, one) for one in forged]
    assert len(looked) == FAILURES_A_SECOND
    assert refused == ["wrong-signature"] * 32 + ["rate-limit"] * 168
    packet = Flood(people["b"].sign_event(event("b")), 1)
    verifier.check_packet(packet, "somebody else", NOW)
    assert packet.event.verified
    assert judged(verifier, people["a"].sign_event(event()), NOW + 1) is True


def test_a_copy_of_a_verified_event_is_not_verified_again(
    people: dict[str, Identity], monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier, signed = Verifier(trust=trusting(people["a"])), people["a"].sign_event(event())
    assert judged(verifier, signed) is True
    monkeypatch.setattr("earshot.live.signatures.is_signed_by", lambda *_: pytest.fail("verified twice"))
    assert judged(verifier, signed) is True
    verifier.use(trusting())
    assert judged(verifier, signed) is False


numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(), st.booleans())
values = st.one_of(
    numbers,
    st.text(max_size=8),
    st.builds(Position, st.floats(-1e6, 1e6), st.integers(-9, 9)),
    st.datetimes(timezones=st.just(UTC)),
)
trees = st.builds(
    lambda text, name: Element("Siren", {name: text}, (text,)), st.text("aé<& ", min_size=1), st.just("n")
)


@settings(max_examples=200)
@given(
    content=st.one_of(st.dictionaries(st.text(max_size=5), values, max_size=4), trees),
    lifespan_s=st.one_of(st.none(), st.integers(1, 99), st.floats(1, 99)),
    x_m=st.one_of(st.integers(-99, 99), st.floats(-99, 99)),
)
def test_what_was_signed_is_what_a_receiver_decodes(
    people: dict[str, Identity], content: dict[str, object] | Element, lifespan_s: float | None, x_m: float
) -> None:
    at = Position(x_m, 0)
    made = Event("Siren", content, "a-1", "a", at, None, NOW, Area(Circle(5), at), lifespan_s)  # type: ignore[arg-type]
    signed = people["a"].sign_event(made)
    heard = decode(encode(Flood(signed, hops=3)))
    assert isinstance(heard, Flood)
    assert heard.event.signature == signed.signature
    assert event_message(heard.event) == event_message(signed)
    assert judged(Verifier(True, trusting(people["a"])), signed) is True
    assert Event.from_json(signed.to_json()).signature == signed.signature


def test_only_a_hello_is_signed_and_only_its_own_node_signs_it(people: dict[str, Identity]) -> None:
    a, verifier = people["a"], Verifier(trust=trusting(people["a"]))
    hello = a.sign_hello(Frame("a", 1, 1, NOW, "", None, None, "", [], []))
    assert verifier.proves(hello, "", NOW)
    with pytest.raises(MalformedPacket, match="carries nothing"):
        datagrams.decode(datagrams.encode(msgspec.structs.replace(hello, packets=[b"more"])))
    with pytest.raises(Refused, match="wrong-signature"):
        verifier.proves(msgspec.structs.replace(hello, sequence=2), "", NOW)
    mistaken = people["mallory"].sign_hello(Frame("a", 2, 1, NOW, "", None, None, "", [], []))
    with pytest.raises(Refused, match="wrong-signature"):
        verifier.proves(mistaken, "", NOW)


# Files.


def test_an_identity_is_a_file_that_only_its_owner_reads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.identity"
    made = new_identity("a", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_identity(path).public_key == made.public_key
    assert not caplog.records
    with pytest.raises(UsageError, match="exists"):
        new_identity("a", path)
    path.chmod(0o644)
    read_identity(path)
    assert "chmod 600" in caplog.text
    owner = new_identity("owner", tmp_path / "owner")
    with path.open("a") as file:
        file.write(certificate_line(owner.certify("a", made.public_key, int(NOW))) + "\n")
    assert read_identity(path).certificate
    other = new_identity("b", tmp_path / "b")
    path.write_text(path.read_text() + certificate_line(owner.certify("b", other.public_key, int(NOW))))
    with pytest.raises(UsageError, match="another name or key"):
        read_identity(path)


def test_files_that_are_wrong_are_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in ("", "name a\n", "name a\nprivate zz\n", "name a b\nprivate " + "A" * 43):
        path.write_text(text)
        with pytest.raises(UsageError):
            read_identity(path)
    for text in ("nobody a", "node a ed25519:short", "owner a b", "node a b c d e"):
        path.write_text(f"# first\n{text}\n")
        with pytest.raises(UsageError, match="line 2"):
            read_trust(path)
    for missing in (read_identity, read_trust):
        with pytest.raises(UsageError, match="cannot read"):
            missing(tmp_path / "none")
    with pytest.raises(UsageError, match="without spaces"):
        new_identity("a b", tmp_path / "x")
    with pytest.raises(UsageError, match="not a public key"):
        parse_key("ed25519:???")


@given(st.binary(min_size=32, max_size=32))
def test_a_key_is_read_back_from_its_text(key: bytes) -> None:
    assert parse_named_key(f"a=b={key_text(key)}") == ("a=b", key)


def test_a_key_is_valid_until_its_time_and_not_after(people: dict[str, Identity]) -> None:
    a = people["a"]
    verifier = Verifier(trust=TrustFile({"a": {a.public_key: NOW + 5.0}}))
    signed = a.sign_event(event())
    for _ in range(2):
        assert [judged(verifier, signed, now) for now in (NOW, NOW + 5.0, NOW + 5.1)] == [True, True, "key-expired"]


def test_of_several_keys_of_a_name_the_one_that_signed_counts(people: dict[str, Identity]) -> None:
    a, b = people["a"], people["b"]
    verifier = Verifier(trust=TrustFile({"a": {b.public_key: NOW - 1.0, a.public_key: NOW + 1.0}}))
    assert judged(verifier, a.sign_event(event())) is True
    assert judged(verifier, Identity("a", b.private_key).sign_event(event())) == "key-expired"


def test_after_thirty_two_wrong_signatures_a_sender_waits_a_thirty_second_of_a_second_for_each(
    people: dict[str, Identity],
) -> None:
    verifier = Verifier(trust=trusting(people["a"]))
    wrong = [people["mallory"].sign_event(event("a", priority=number)) for number in range(40)]

    def refused(now: float, count: int) -> list[bool | str]:
        return [judged(verifier, wrong.pop(), now) for _ in range(count)]

    assert refused(NOW, 33) == ["wrong-signature"] * 32 + ["rate-limit"]
    assert refused(NOW + 1 / 64, 1) == ["rate-limit"]
    assert refused(NOW + 2 / 64, 2) == ["wrong-signature", "rate-limit"]
    assert judged(verifier, people["a"].sign_event(event()), NOW + 2 / 64) == "rate-limit", "a right one is not checked"
    assert judged(verifier, people["a"].sign_event(event()), NOW + 5 / 64) is True
    assert judged(verifier, people["a"].sign_event(event()), NOW + 5 / 64) is True, "a right one costs nothing"
    assert verifier._allowances["relay"][0] < 2.0
    judged(verifier, wrong.pop(), NOW + 1000.0)
    assert verifier._allowances["relay"][0] == 31.0, "at most 32 are saved up"


def test_a_trust_file_names_at_most_sixteen_owners(tmp_path: Path) -> None:
    path = tmp_path / "trust"
    owners = [f"owner {key_text(bytes([number] * 32))}\n" for number in range(17)]
    path.write_text("".join(owners[:16]))
    assert len(read_trust(path).owners) == 16
    path.write_text("".join(owners))
    with pytest.raises(UsageError, match="names 17 owners; at most 16 are allowed"):
        read_trust(path)


HOME, AWAY = ("10.0.0.1", 5), ("10.0.0.2", 5)


def hello(identity: Identity | None, time_s: float = NOW, life: int = 3, sender: str = "a") -> Frame:
    plain = Frame(sender, life, 1, time_s, "", None, None, "", [], [])
    return plain if identity is None else identity.sign_hello(plain)


def admitted(names: SignedNames, frame: Frame, address: tuple[str, int] = HOME, ticks: float = 50.0) -> bool | str:
    try:
        return names.admits(frame, address, NOW, ticks, None)
    except Refused as refused:
        return str(refused.reason)


def test_a_name_that_must_sign_counts_where_a_signed_hello_came_from_while_such_hellos_come(
    people: dict[str, Identity],
) -> None:
    names = SignedNames(Verifier(trust=trusting(people["a"])), expiry_s=5.0, clock_skew_s=30.0)
    assert admitted(names, hello(None)) == "not-signed"
    assert admitted(names, hello(None, sender="stranger")) is False
    assert admitted(names, hello(people["a"])) is True
    assert [names.has_signed("a", HOME, 3, ticks) for ticks in (50.0, 55.0, 55.1)] == [True, True, False]
    assert [names.has_signed(*host, 50.0) for host in (("a", AWAY, 3), ("a", HOME, 4), ("b", HOME, 3))] == [False] * 3
    unsigned = [(HOME, 3, 55.0), (HOME, 3, 55.1), (AWAY, 3, 50.0), (HOME, 4, 50.0)]
    found = [admitted(names, hello(None, life=life), address, ticks) for address, life, ticks in unsigned]
    assert found == [False, "not-signed", "not-signed", "not-signed"]


def test_a_signed_hello_counts_once_in_order_and_near_its_time(people: dict[str, Identity]) -> None:
    a = people["a"]
    names = SignedNames(Verifier(trust=trusting(a)), expiry_s=5.0, clock_skew_s=30.0)
    times = (-30.1, -30.0, -30.0, -31.0, 5.0, 4.9, 30.0, 30.1)
    assert [admitted(names, hello(a, NOW + ahead_s)) for ahead_s in times] == [
        "stale-datagram", True, "stale-datagram", "stale-datagram", True, "stale-datagram", True, "stale-datagram",
    ]  # fmt: skip
    unknown = SignedNames(Verifier(), expiry_s=5.0, clock_skew_s=30.0)
    assert admitted(unknown, hello(a)) is False
    assert not unknown.has_signed("a", HOME, 3, 50.0), "nobody vouches for the key"


# Nodes.


def files(folder: Path, *names: str, trusted: Iterable[str] = ()) -> dict[str, Path]:
    """An identity for each name, and a trust file of all of them or of those that are given."""
    made = {name: new_identity(name, folder / f"{name}.identity") for name in names}
    path = folder / "trust"
    path.write_text("".join(trust_line("node", made[name].public_key, name) + "\n" for name in trusted or names))
    return {**{name: folder / f"{name}.identity" for name in names}, "trust": path}


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_signed_event_passes_every_protocol_and_arrives_verified(protocol: str, tmp_path: Path) -> None:
    found = files(tmp_path, "a", "b", "c")
    # Some protocols send to any node by its name: they need it in range.
    apart_m = 50 if PROTOCOLS[protocol].needs_routing else 100

    async def run() -> None:
        desk = Desk(protocol=protocol, trust=found["trust"], require_signed=True, emulate_range_m=150)
        schema = EventType("Siren", content={"speed": float})
        async with (
            desk.node("a", 0, identity=found["a"]) as a,
            desk.node("b", apart_m, identity=found["b"]) as b,
            desk.node("c", 2 * apart_m, identity=found["c"]) as c,
        ):
            await acquainted(a, b)
            await acquainted(b, c)
            wanted = [node.subscribe("Siren") for node in (b, c)]
            await a.announce(schema, within=Circle(1000))
            heard: dict[int, Event] = {}
            last = time.monotonic() + 60

            async def publish() -> None:
                while time.monotonic() < last and len(heard) < len(wanted):
                    await a.publish(Event("Siren", {"speed": 18}))
                    await asyncio.sleep(0.2)

            async def read(index: int) -> None:
                heard[index] = (await taken(wanted[index], 1))[0]

            await asyncio.gather(publish(), read(0), read(1))
            for one in heard.values():
                assert (one.source, one.verified, one.content["speed"]) == ("a", True, 18.0)
                assert len(one.signature or b"") == 64
            for node in (a, b, c):
                assert {"wrong-signature", "machine-failure"}.isdisjoint(node.drops)

    asyncio.run(run())


def test_a_node_that_requires_signatures_hears_no_other_and_lists_none_as_a_peer(tmp_path: Path) -> None:
    found = files(tmp_path, "a", "b", "mallory", trusted=["a", "b"])

    async def run() -> None:
        desk = Desk(trust=found["trust"])
        async with (
            desk.node("b", identity=found["b"], require_signed=True) as b,
            desk.node("a", identity=found["a"]) as a,
            desk.node("mallory", identity=found["mallory"]) as mallory,
            desk.node("plain") as plain,
        ):
            await acquainted(a, mallory, plain)
            await acquainted(a, b)
            strict, lenient = b.subscribe("Siren"), a.subscribe("Siren")
            for node in (mallory, plain, a):
                await (await node.announce(EventType("Siren"))).publish()
            assert [(one.source, one.verified) for one in await taken(strict, 1)] == [("a", True)]
            assert {(one.source, one.verified) for one in await taken(lenient, 2)} == {
                ("mallory", False),
                ("plain", False),
            }
            assert [peer.name for peer in b.peers()] == ["a"]
            await until(lambda: b.drops["not-signed"] and b.drops["unknown-signer"])

    asyncio.run(run())


def test_nobody_speaks_under_a_trusted_name_and_a_revoked_node_is_silenced(tmp_path: Path) -> None:
    found = files(tmp_path, "a", "b")

    async def run() -> None:
        desk = Desk(trust=found["trust"])
        async with desk.node("b", identity=found["b"]) as b:
            wanted = b.subscribe("Siren")
            async with Desk.node(desk, "a", trust=None) as impostor:
                await until(lambda: b.drops["not-signed"])
                await (await impostor.announce(EventType("Siren"))).publish()
                assert b.peers() == []
            async with desk.node("a", identity=found["a"]) as a:
                await acquainted(a, b)
                siren = await a.announce(EventType("Siren"))
                await siren.publish()
                assert (await taken(wanted, 1))[0].verified
                key = key_text(read_identity(found["a"]).public_key)
                with found["trust"].open("a") as file:
                    file.write(f"revoked {key}\n")
                await until(lambda: b.drops["key-revoked"])
                await siren.publish()
                await until(lambda: not b.peers())
                assert len(wanted) == 0

    asyncio.run(run())


def test_a_signed_hello_takes_a_name_back_from_an_impostor(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before the trust file names it, anybody may have had the name, even with a start far in the future."""
    found = files(tmp_path, "a", "b")
    found["trust"].write_text("")

    async def run() -> None:
        desk = Desk(trust=found["trust"])
        later = lambda: time.time() + 20  # noqa: E731
        async with desk.node("b", identity=found["b"]) as b, desk.node("a", clock=later) as impostor:
            await until(lambda: b.peers())
            async with desk.node("a", identity=found["a"]) as a:
                key = key_text(read_identity(found["a"]).public_key)
                found["trust"].write_text(f"node a {key}\n")
                await until(lambda: [peer.address for peer in b.peers()] == [a.host.transport.address])
                before = b.drops["not-signed"]
                await until(lambda: b.drops["not-signed"] > before)
                assert [peer.address for peer in b.peers()] != [impostor.host.transport.address]

    with caplog.at_level(logging.CRITICAL, logger="earshot.live"):
        asyncio.run(run())


def test_a_signed_hello_that_another_host_repeats_does_not_take_the_name(tmp_path: Path) -> None:
    """The hello was lost at its receiver, so it is new there, and the other host answers all challenges."""

    found = files(tmp_path, "a")

    async def run() -> None:
        desk = Desk(trust=found["trust"])
        async with desk.node("b") as b, desk.node("a", identity=found["a"]) as a:
            await acquainted(a, b)
            await until(lambda: b.peers()[0].both_ways)
            wanted, bell = b.subscribe("Bell"), await a.announce("Bell")
            transport = a.host.transport
            hello = transport._identity.sign_hello(transport._frame(None, []))  # type: ignore[union-attr]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thief:
                thief.bind(("127.0.0.1", 0))
                thief.setblocking(False)
                thief.sendto(PLAIN + datagrams.encode(hello), b.host.transport.address)
                challenges = 0

                def answer() -> int:
                    nonlocal challenges
                    with contextlib.suppress(BlockingIOError):
                        short = datagrams.decode(thief.recv(65_535)[4:])
                        if isinstance(short, Challenge):
                            challenges += 1
                            echo = datagrams.encode(Echo(short.cookie, short.digest))
                            thief.sendto(PLAIN + echo, b.host.transport.address)
                    return challenges

                await until(answer)
                before = b.host.transport.peers._proven["a"]
                echoes = before.echoed_at
                await until(lambda: answer() and before.echoed_at > echoes and not b.host.transport.peers._contests)
                for number in range(3):
                    sent = await bell.publish(n=number)
                    assert await taken(wanted, 1) == [sent]
                assert [peer.address for peer in b.peers()] == [transport.address]

    asyncio.run(run())


def test_what_makes_no_sense_is_refused_at_once(tmp_path: Path) -> None:
    found = files(tmp_path, "a")
    with pytest.raises(UsageError, match="belongs to 'a'"):
        Desk().node("b", identity=found["a"])
    with pytest.raises(UsageError, match="needs a trust file"):
        Desk().node("a", require_signed=True)
