import asyncio
import logging
import os
import socket
from pathlib import Path

import pytest
from desk import Desk, acquainted, taken, until
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import UsageError
from earshot.events import EventType
from earshot.live import datagrams
from earshot.live.datagrams import Frame, Short
from earshot.live.spool import read_records
from earshot.live.trust import Refused, Seal, Window, read_keys
from earshot.records.details import key_id
from earshot.records.sessions import SessionReader

OLD, NEW, OTHER = bytes(32), bytes(range(32)), b"o" * 32


def opened(seal: Seal, datagram: bytes) -> bytes:
    return bytes(seal.open(memoryview(datagram)))


def test_what_is_sealed_opens_with_the_key_and_shows_nothing_without() -> None:
    datagram = Seal([NEW]).close(b"where the gold is")
    assert opened(Seal([NEW]), datagram) == b"where the gold is"
    assert b"gold" not in datagram
    for seal, reason in ((Seal([OTHER]), "wrong-key"), (Seal(), "sealed")):
        with pytest.raises(Refused, match=reason):
            opened(seal, datagram)
    with pytest.raises(Refused, match="not-sealed"):
        opened(Seal([NEW]), Seal().close(b"open"))


def test_a_second_key_is_accepted_while_the_first_is_changed() -> None:
    changing = Seal([NEW, OLD])
    assert opened(changing, Seal([OLD]).close(b"a")) == b"a"
    assert opened(Seal([NEW]), changing.close(b"b")) == b"b"
    with pytest.raises(Refused, match="wrong-key"):
        opened(Seal([OLD]), changing.close(b"b"))


@given(st.binary(max_size=60), st.integers(0, 200), st.integers(1, 255))
def test_a_datagram_changed_in_any_bit_is_refused(frame: bytes, at: int, change: int) -> None:
    datagram = bytearray(Seal([NEW]).close(frame))
    datagram[at % len(datagram)] ^= change
    with pytest.raises(Refused):
        opened(Seal([NEW]), bytes(datagram))


def test_no_nonce_is_used_twice_by_a_forked_process_or_a_restored_snapshot() -> None:
    seal = Seal([NEW])
    seal.close(b"")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"".join(seal.close(b"")[4:16] for _ in range(50)))
        os._exit(0)
    os.waitpid(child, 0)
    forked = os.read(reading, 12 * 50)
    for end in (reading, writing):
        os.close(end)
    nonces = [forked[start : start + 12] for start in range(0, len(forked), 12)]
    snapshot = dict(vars(seal))
    nonces += [seal.close(b"")[4:16] for _ in range(50)]
    vars(seal).update(snapshot)
    nonces += [seal.close(b"")[4:16] for _ in range(50)]
    assert len(set(nonces)) == 150


def test_a_network_changes_its_key_while_it_runs_and_is_whole_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Add the new key everywhere, then put it first everywhere, then remove the old one: node by node, no restart."""
    monkeypatch.setattr("earshot.live.host.POSITION_EVERY_S", 0.05)
    paths = {name: tmp_path / name for name in "abc"}

    def write(name: str, *keys: bytes) -> None:
        paths[name].write_text("\n".join(key.hex() for key in keys))
        paths[name].chmod(0o600)

    async def run() -> None:
        for name in paths:
            write(name, OLD)
        desk = Desk(spool=tmp_path / "spools")
        async with (
            desk.node("a", key_file=paths["a"]) as a,
            desk.node("b", key_file=paths["b"]) as b,
            desk.node("c", key_file=paths["c"]) as c,
        ):
            nodes = (a, b, c)
            await acquainted(*nodes)
            ticks = {node: await node.announce(EventType("Tick")) for node in nodes}
            wanted = {node: node.subscribe("Tick") for node in nodes}
            for keys in ((OLD, NEW), (NEW, OLD), (NEW,)):
                for changed in nodes:
                    write(changed.name, *keys)
                    await until(lambda changed=changed, keys=keys: changed.host._credentials.keys == keys)  # type: ignore[misc]
                    for node in nodes:
                        await ticks[node].publish()
                    for node in nodes:
                        sources = {event.source for event in await taken(wanted[node], 2)}
                        assert sources == set("abc") - {node.name}
            assert all(not node.drops["wrong-key"] for node in nodes)
            assert opened(Seal([NEW]), a.host.transport._seal.close(b"new")) == b"new"
            paths["a"].write_text("half a key")
            await until(lambda: not a.host._credentials._watched[0][0].changed())
            await ticks[a].publish()
            assert len(await taken(wanted[b], 1)) == 1

    asyncio.run(run())
    sessions = SessionReader()
    for record in sorted(read_records(tmp_path / "spools"), key=lambda record: record.time):
        sessions.read(record.time, record.node, record.kind, record.subscription, record.detail)
    # To its records it stayed one network, and its applications went on.
    assert len(list(sessions)) == 3 * 4
    assert {session.network.partition("#")[2] for session in sessions} == {key_id(OLD)}
    assert len(list(sessions.subscription_spans())) == 3


def test_a_key_that_others_can_read_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = key_file(tmp_path, NEW)
    read_keys(path)
    assert not caplog.records
    path.chmod(0o640)
    read_keys(path)
    assert f"chmod 600 {path}" in caplog.text


@given(st.lists(st.integers(0, 3000), max_size=60))
def test_a_window_lets_each_number_in_once(sequences: list[int]) -> None:
    window, seen, highest = Window(), set[int](), -1
    for sequence in sequences:
        expected = sequence > highest or (sequence not in seen and highest - sequence < Window.WIDTH)
        assert window.fresh(sequence) is expected
        seen.add(sequence)
        highest = max(highest, sequence)


def test_a_key_file_holds_one_or_two_keys(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(f"{NEW.hex()}\n{OLD.hex()}\n")
    assert read_keys(path) == (NEW, OLD)
    for bad in ("", "abc", f"{NEW.hex()}00", "z" * 64, "\n".join([NEW.hex()] * 3)):
        path.write_text(bad)
        with pytest.raises(UsageError, match="openssl rand -hex 32"):
            read_keys(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_keys(tmp_path / "none")


@pytest.mark.parametrize("keys", [(NEW, OLD[1:]), (OLD[1:], NEW)], ids=["second", "first"])
def test_of_two_keys_neither_may_be_too_short(tmp_path: Path, keys: tuple[bytes, bytes]) -> None:
    with pytest.raises(UsageError, match="must hold one or two keys, 64 hexadecimal digits a line"):
        read_keys(key_file(tmp_path, *keys))


def key_file(folder: Path, *keys: bytes) -> Path:
    path = folder / f"key-{keys[0][:2].hex()}-{len(keys)}"
    path.write_text("\n".join(key.hex() for key in keys))
    path.chmod(0o600)
    return path


def test_nodes_with_the_key_hear_each_other_and_count_the_others(tmp_path: Path) -> None:
    async def run() -> None:
        desk = Desk()
        new, rotating = key_file(tmp_path, NEW), key_file(tmp_path, NEW, OLD)
        other = key_file(tmp_path, OTHER)
        async with (
            desk.node("a", key_file=new) as a,
            desk.node("b", key_file=rotating) as b,
            desk.node("stranger", key_file=other) as stranger,
            desk.node("naked") as naked,
        ):
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            sent = await (await a.announce(EventType("Siren"))).publish()
            assert await taken(wanted, 1) == [sent]
            await until(lambda: a.drops["wrong-key"] and a.drops["not-sealed"] and naked.drops["sealed"])
            assert [peer.name for peer in b.peers()] == ["a"]
            assert stranger.peers() == naked.peers() == []

    asyncio.run(run())


def test_a_replayed_datagram_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        desk = Desk()
        keys = key_file(tmp_path, NEW)
        async with desk.node("a", key_file=keys) as a, desk.node("b", key_file=keys) as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            overheard: list[bytes] = []
            transmit = a.host.transport._transmit
            a.host.transport._transmit = lambda data, to, priority=0: (
                overheard.append(data),
                transmit(data, to, priority),
            )  # type: ignore[method-assign,assign,return-value]
            await (await a.announce(EventType("Siren"))).publish()
            await taken(wanted, 1)
            before = b.host.counts["receive"]
            replayed = max(overheard, key=len)  # not a hello or an echo
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
                attacker.sendto(replayed, b.host.transport.address)
                await until(lambda: b.drops["forged-sender"])
            assert a.host.transport._own is not None
            a.host.transport._own.sendto(replayed, b.host.transport.address)
            await until(lambda: b.drops["duplicate-datagram"])
            assert b.host.counts["receive"] == before

        async with desk.node("b", key_file=keys, clock_skew_s=0.001) as late:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
                attacker.sendto(replayed, late.host.transport.address)
                await until(lambda: late.drops["stale-datagram"])
            assert late.host.counts["receive"] == 0

    asyncio.run(run())


def test_a_node_without_a_key_says_so_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        desk = Desk()
        async with desk.node("bare"), desk.node("dressed", key_file=key_file(tmp_path, NEW)):
            pass

    with caplog.at_level(logging.WARNING, logger="earshot.live"):
        asyncio.run(run())
    assert [record.getMessage()[:22] for record in caplog.records] == ["bare: no network key: "]


@given(st.binary(max_size=400))
def test_random_bytes_are_not_a_frame(data: bytes) -> None:
    try:
        made = datagrams.decode(data)
    except Exception as error:
        assert type(error).__name__ == "MalformedPacket"  # noqa: PT017
    else:
        assert isinstance(made, Frame | Short)
