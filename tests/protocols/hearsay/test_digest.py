"""Digests never deny what is held, claim little that is not, and name their span in a few bits."""

from hashlib import blake2b
from struct import unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.protocols.hearsay.digest import (
    DigestSpan,
    HeldDigest,
    digest_size,
    make_digest,
    mask_of,
    quarter_of,
    salt_at,
    unwrapped,
    wrapped,
)

ALWAYS = DigestSpan(0, 10)


@given(st.sets(st.text(max_size=8), max_size=60), st.integers(0, 255), st.integers(1, 64))
def test_a_digest_never_denies_an_event_that_is_held(held: set[str], salt: int, size: int) -> None:
    digest = HeldDigest(make_digest(sorted(held), salt, size), salt, ALWAYS)
    assert not any(digest.lacks(event) for event in held)


def test_a_digest_claims_little_else_and_another_salt_makes_other_mistakes() -> None:
    held = [f"x-{k}" for k in range(100)]
    wrong = []
    for salt in (1, 2):
        digest = HeldDigest(make_digest(held, salt, digest_size(100, 8, 192)), salt, ALWAYS)
        wrong.append({k for k in range(5000) if not digest.lacks(f"y-{k}")})
    assert all(len(one) < 0.04 * 5000 for one in wrong)
    assert len(wrong[0] & wrong[1]) < 0.004 * 5000


def test_an_empty_digest_lacks_everything() -> None:
    assert make_digest([], 1, digest_size(0, 8, 192)) == b""
    assert HeldDigest(b"", 1, ALWAYS).lacks("x")


@given(st.floats(0.0, 4e9), st.floats(-50.0, 16_000.0), st.integers(0, 0xFFFF))
def test_a_span_survives_the_wire(now: float, age_s: float, length: int) -> None:
    since = quarter_of(now - age_s)
    span = unwrapped(wrapped(since), length, now)
    assert span.since == since
    assert span.until > quarter_of(now) if not length else span.until == since + length


@pytest.mark.parametrize(("events", "expected"), [(0, 0), (1, 8), (8, 8), (9, 16), (1000, 192)])
def test_sizes(events: int, expected: int) -> None:
    assert digest_size(events, 8, 192) == expected


def test_a_digest_grows_by_eight_bytes_after_each_64_bits() -> None:
    assert [digest_size(bits, 1, 192) for bits in (64, 65, 128, 129)] == [8, 16, 16, 24]


@given(st.text(max_size=8), st.integers(0, 255), st.integers(1, 192))
def test_each_of_four_hashes_of_16_bits_sets_the_bit_at_its_share_of_the_digest(id: str, salt: int, size: int) -> None:
    hashes = unpack(">4H", blake2b(id.encode(), digest_size=8, salt=bytes([salt])).digest())
    expected = {one * 8 * size // 65536 for one in hashes}
    assert {bit for bit in range(8 * size + 64) if mask_of(id, salt, size) >> bit & 1} == expected


@pytest.mark.parametrize(
    ("time", "salt"), [(0.0, 0), (7.9, 0), (8.0, 1), (8.0 * 255, 255), (8.0 * 256, 0), (-1.0, 255)]
)
def test_the_salt_changes_every_eight_seconds(time: float, salt: int) -> None:
    assert salt_at(time) == salt


def test_a_span_without_a_length_ends_two_cycles_after_it_begins() -> None:
    assert unwrapped(40, 0, 10.0) == DigestSpan(40, 40 + 2 * 65536)
    assert unwrapped(40, 3, 10.0) == DigestSpan(40, 43)


def test_a_span_may_begin_a_minute_ahead_and_no_more() -> None:
    now = 20_000.0
    ahead = quarter_of(now) + 240
    assert unwrapped(wrapped(ahead), 1, now).since == ahead
    assert unwrapped(wrapped(ahead + 1), 1, now).since == ahead + 1 - 65536


def test_a_span_holds_its_first_quarter_and_not_its_end() -> None:
    assert [DigestSpan(4, 6).holds(quarter) for quarter in (3, 4, 5, 6)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("time", "quarter"), [(0.0, 0), (0.24, 0), (0.25, 1), (-0.1, -1), (1e13, 4 * 10**12), (-1e13, -4 * 10**12)]
)
def test_quarters_are_counted_between_the_ends_of_all_clocks(time: float, quarter: int) -> None:
    assert quarter_of(time) == quarter
