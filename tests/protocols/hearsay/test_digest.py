"""Digests never deny what is held, claim little that is not, and name their span in a few bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.protocols.hearsay.digest import (
    DigestSpan,
    HeldDigest,
    digest_size,
    make_digest,
    quarter_of,
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
