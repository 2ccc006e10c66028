"""Frames, short datagrams and fragments at their bounds, without a socket."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from earshot import Position
from earshot.errors import MalformedPacket
from earshot.live.datagrams import (
    PIECE_BYTES,
    Challenge,
    Echo,
    Fragment,
    Frame,
    Goodbye,
    Reassembly,
    Short,
    decode,
    encode,
    split,
)
from earshot.records import DropReason
from earshot.wire import MAX_PACKET_BYTES

FRAME = Frame("a", 1, 2, 3.0, "", None, None, "", [], [])


def frame(**changed: Any) -> Frame:
    return msgspec.structs.replace(FRAME, **changed)


@pytest.mark.parametrize(
    ("name", "fits", "too_much"),
    [
        ("sender", "a" * 128, "a" * 129),
        ("sender", "a", ""),
        ("plane", "p" * 128, "p" * 129),
        ("to", "t" * 128, "t" * 129),
        ("life", 2**62, 2**62 + 1),
        ("sequence", 0, -1),
        ("group", 2**24 - 1, 2**24),
        ("group", 0, -1),
        ("acks", [1] * 512, [1] * 513),
        ("packets", [b""] * 4096, [b""] * 4097),
        ("time", 1e300, float("inf")),
        ("time", 0.0, float("nan")),
        ("position", Position(1.0, 2.0), Position(float("nan"), 2.0)),
        ("position", None, Position(1.0, float("inf"))),
        ("fragment", Fragment(1, 0, 1, b""), Fragment(1, 1, 1, b"")),
        ("fragment", Fragment(1, 4095, 4096, b""), Fragment(1, 4096, 4097, b"")),
    ],
)
def test_a_frame_is_read_within_its_bounds_and_malformed_beyond(name: str, fits: Any, too_much: Any) -> None:
    assert decode(encode(frame(**{name: fits}))) == frame(**{name: fits})
    with pytest.raises(MalformedPacket):
        decode(encode(frame(**{name: too_much})))


@pytest.mark.parametrize("name", ["packets", "acks", "to", "fragment"])
def test_a_signed_frame_carries_nothing(name: str) -> None:
    assert decode(encode(frame(signature=b"s"))) == frame(signature=b"s")
    carried = {"packets": [b"p"], "acks": [1], "to": "b", "fragment": Fragment(1, 0, 1, b"")}
    assert decode(encode(frame(**{name: carried[name]}))) == frame(**{name: carried[name]})
    with pytest.raises(MalformedPacket, match="a signed frame is a hello"):
        decode(encode(frame(signature=b"s", **{name: carried[name]})))


def test_a_transmission_has_one_number_for_all_its_receivers() -> None:
    one = frame(life=5_000_000, sequence=3)
    assert one.transmission() == 5 << 43 | 3 * 4096
    assert [one.transmission(index) - one.transmission() for index in (1, 4095)] == [1, 4095]
    assert frame(life=5_999_999, sequence=3).transmission() == one.transmission()
    assert frame(life=6_000_000, sequence=3).transmission() != one.transmission()
    assert frame(life=5_000_000, sequence=9, fragment=Fragment(3, 1, 2, b"")).transmission() == one.transmission()
    assert frame(life=2**20 * 1_000_000, sequence=2**31).transmission() == 0


@pytest.mark.parametrize("short", [Challenge(b"c" * 8, b"d" * 4), Echo(b"c" * 8, b"d" * 4), Goodbye(b"d" * 4)])
def test_a_short_datagram_is_read_as_what_it_was(short: Short) -> None:
    data = encode(short)
    assert (len(data), decode(data)) == (13, short)
    for other in (data + b"x", data[:-1]):
        with pytest.raises(MalformedPacket):
            decode(other)


def test_bytes_of_no_kind_are_malformed() -> None:
    with pytest.raises(MalformedPacket):
        decode(b"\x03" + bytes(12))


def test_a_packet_is_split_into_pieces_of_one_size_and_the_rest() -> None:
    assert split(b"abcdefgh", 3) == [b"abc", b"def", b"gh"]
    assert split(b"abcdef", 3) == [b"abc", b"def"]


class Desk:
    """A reassembly, and what it dropped."""

    def __init__(self, **bounds: Any) -> None:
        self.dropped: list[DropReason] = []
        self.held = Reassembly(self.dropped.append, **{"piece_bytes": 0, **bounds})

    def add(
        self, number: int, index: int, count: int, piece: bytes, sender: str = "a", now: float = 0.0
    ) -> bytes | None:
        return self.held.add(sender, 1, Fragment(number, index, count, piece), now)


def test_a_fragment_waits_for_exactly_its_patience() -> None:
    desk = Desk()
    desk.add(1, 0, 2, b"ab", now=1.0)
    desk.held.expire(6.0)
    assert (len(desk.held), desk.dropped) == (1, [])
    desk.held.expire(6.1)
    assert (len(desk.held), desk.dropped, desk.held.held_bytes) == (0, [DropReason.FRAGMENTS_MISSING], 0)


def test_fragments_that_disagree_about_their_count_are_left_out() -> None:
    desk = Desk()
    assert desk.add(1, 0, 2, b"ab") is None
    assert desk.add(1, 1, 3, b"cd") is None
    assert desk.add(1, 0, 2, b"xx") is None
    assert desk.add(1, 1, 2, b"cd") == b"abcd"
    assert desk.add(1, 1, 2, b"cd") is None
    assert (len(desk.held), desk.held.held_bytes, dict(desk.held._held)) == (0, 0, {})


def test_a_packet_of_the_largest_size_is_whole_and_one_byte_more_is_dropped() -> None:
    desk = Desk()
    half = bytes(MAX_PACKET_BYTES // 2)
    rest = bytes(MAX_PACKET_BYTES - len(half))
    desk.add(1, 0, 2, half)
    assert desk.add(1, 1, 2, rest) == half + rest
    desk.add(2, 0, 2, half)
    assert desk.add(2, 1, 2, rest + b"x") is None
    assert (desk.dropped, len(desk.held)) == ([DropReason.PACKET_TOO_LARGE], 0)


def test_a_sender_beyond_its_share_loses_its_own_oldest_packet() -> None:
    desk = Desk(sender_bytes=10)
    desk.add(1, 0, 2, bytes(9), sender="b")
    for number in (1, 2):
        desk.add(number, 0, 2, bytes(5))
    assert (len(desk.held), desk.dropped) == (3, [])
    desk.add(3, 0, 2, b"x")
    assert desk.dropped == [DropReason.FRAGMENT_BUFFER_FULL]
    assert sorted((sender, number) for sender, _, number in desk.held._partials) == [("a", 2), ("a", 3), ("b", 1)]


def test_a_whole_packet_leaves_the_bytes_of_its_senders_other_packets_counted() -> None:
    desk = Desk()
    assert (desk.held.sender_bytes, desk.held.total_bytes) == (2 * MAX_PACKET_BYTES, 16 * MAX_PACKET_BYTES)
    desk.add(1, 0, 2, b"ab")
    desk.add(2, 0, 2, b"xyz")
    desk.add(1, 1, 2, b"cd")
    assert (dict(desk.held._held), desk.held.held_bytes) == ({"a": 3}, 3)


def test_a_fragment_counts_what_it_takes_beside_its_bytes() -> None:
    desk = Desk(piece_bytes=PIECE_BYTES, sender_bytes=100 * PIECE_BYTES)
    for number in range(1000):
        desk.add(number // 20, number % 20, 4096, b"x")
    assert 80 * PIECE_BYTES < desk.held.held_bytes <= 100 * PIECE_BYTES
    assert desk.held.held_bytes == sum((1 + PIECE_BYTES) * len(one.pieces) for one in desk.held._partials.values())


def test_a_fragment_of_one_byte_counts_161_bytes_unless_it_is_set_otherwise() -> None:
    held = Reassembly([].append)
    held.add("a", 1, Fragment(1, 0, 2, b"x"), 0.0)
    assert (held.held_bytes, dict(held._held)) == (161, {"a": 161})


def test_two_hundred_and_fifty_six_packets_wait_for_their_fragments_at_a_time() -> None:
    desk = Desk()
    for number in range(257):
        desk.add(number, 0, 2, b"x")
    assert (len(desk.held), desk.dropped) == (256, [DropReason.FRAGMENT_BUFFER_FULL])
    assert ("a", 1, 0) not in desk.held._partials, "the oldest is lost"


def test_beyond_the_bounds_of_all_the_sender_that_holds_most_loses() -> None:
    desk = Desk(total_bytes=10)
    desk.add(1, 0, 2, bytes(4), sender="b")
    desk.add(1, 0, 2, bytes(3))
    desk.add(2, 0, 2, bytes(3))
    assert desk.dropped == []
    desk.add(9, 0, 2, b"x", sender="c")
    assert sorted((sender, number) for sender, _, number in desk.held._partials) == [("a", 2), ("b", 1), ("c", 9)]
    few = Desk(partial_limit=2)
    for sender in "aba":
        few.add(len(few.held), 0, 2, b"x", sender=sender)
    assert sorted((sender, number) for sender, _, number in few.held._partials) == [("a", 2), ("b", 1)]


def test_only_the_last_4096_whole_packets_are_remembered() -> None:
    desk = Desk()
    for number in range(4097):
        assert desk.add(number, 0, 1, b"x") == b"x"
    assert desk.add(1, 0, 1, b"x") is None
    assert desk.add(0, 0, 1, b"x") == b"x"
