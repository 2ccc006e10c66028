import asyncio
import logging
import socket
from pathlib import Path

import pytest
from desk import Desk, acquainted, taken, until
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import UsageError
from earshot.events import EventType
from earshot.live import datagrams
from earshot.live.datagrams import Frame
from earshot.live.trust import Refused, Seal, Window, read_keys

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


def test_no_nonce_is_used_twice_even_when_the_count_runs_over() -> None:
    seal = Seal([NEW])
    seal._counter = 2**32 - 2
    nonces = [seal.close(b"")[4:16] for _ in range(5)]
    assert len(set(nonces)) == 5


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


def key_file(folder: Path, *keys: bytes) -> Path:
    path = folder / f"key-{keys[0][:2].hex()}-{len(keys)}"
    path.write_text("\n".join(key.hex() for key in keys))
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
            a.host.transport._transmit = lambda data, to: (overheard.append(data), transmit(data, to))  # type: ignore[method-assign,assign,return-value]
            await (await a.announce(EventType("Siren"))).publish()
            await taken(wanted, 1)
            before = b.host.counts["receive"]
            replayed = overheard[-1]
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
        assert isinstance(made, Frame)
