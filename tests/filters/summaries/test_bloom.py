"""Bloom vectors: members are always found, strangers about as often as the theory says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import MalformedPacket, UsageError
from earshot.filters.summaries.bloom import Bloom, BloomShape, combined, fingerprint, name_key, type_key
from earshot.filters.summaries.summary_bytes import BitReader, BitWriter

shapes = st.builds(BloomShape, st.integers(3, 12).map(lambda power: 1 << power), st.integers(1, 8))
members = st.sets(st.integers(0, (1 << 24) - 1), max_size=60)


@given(shapes, members, members)
def test_a_member_is_found_in_the_vector_in_its_folds_and_in_its_unions(
    shape: BloomShape, ours: set[int], theirs: set[int]
) -> None:
    vector = Bloom.of(shape, ours).merged(Bloom.of(shape, theirs))
    while True:
        assert all(member in vector for member in ours | theirs)
        if vector.shape.bits == 8:
            break
        vector = vector.folded()


@given(shapes, members)
def test_a_fold_is_the_vector_one_would_have_built_at_half_the_size(shape: BloomShape, ours: set[int]) -> None:
    if shape.bits > 8:
        assert Bloom.of(shape, ours).folded() == Bloom.of(BloomShape(shape.bits // 2, shape.hashes), ours)


@pytest.mark.parametrize("bits", [8, 64, 1024])
def test_an_empty_vector_holds_nothing_and_adds_nothing_to_others(bits: int) -> None:
    shape = BloomShape(bits, 2)
    empty, one = Bloom.empty(shape), Bloom.of(shape, {77})
    assert empty == Bloom.of(shape, set())
    assert not empty
    assert one, "a vector with a member is not empty, however few of its bits are set"
    assert not any(member in empty for member in range(0, 1 << 12, 7))
    assert empty.merged(one) == one.merged(empty) == one


def test_vectors_of_two_sizes_merge_at_the_smaller_one() -> None:
    large, small = Bloom.of(BloomShape(256, 2), {1, 2}), Bloom.of(BloomShape(64, 2), {3})
    assert large.merged(small) == small.merged(large) == Bloom.of(BloomShape(64, 2), {1, 2, 3})


@pytest.mark.parametrize(
    ("items", "rate"), [(10, 0.01), (10, 0.05), (64, 0.01), (100, 0.05), (500, 0.01), (1000, 0.05)]
)
def test_a_shape_chosen_from_a_rate_keeps_it(items: int, rate: float) -> None:
    shape = BloomShape.for_rate(items, rate)
    assert shape.expected_rate(items) <= rate
    vector = Bloom.of(shape, {fingerprint(f"member {index}") for index in range(items)})
    trials = 40_000
    found = sum(fingerprint(f"stranger {index}") in vector for index in range(trials)) / trials
    expected = shape.expected_rate(items)
    # Three standard errors, and the spread of a vector's own fill around its mean.
    slack = 3 * math.sqrt(expected / trials) + 3 * expected / math.sqrt(items)
    assert abs(found - expected) < slack
    assert abs(vector.rate - expected) < slack


def test_the_theory_agrees_with_the_text_book() -> None:
    assert BloomShape(1024, 7).expected_rate(100) == pytest.approx((1 - math.exp(-7 * 100 / 1024)) ** 7)
    assert Bloom.empty(BloomShape(64, 2)).rate == 0.0


def test_hashes_are_the_same_on_every_machine() -> None:
    assert (
        fingerprint("jazz"),
        fingerprint("é"),
        combined((1, 2)),
        combined((2, 1)),
        type_key("CD"),
        name_key("CD"),
    ) == (13945594, 7636938, 3696323, 1572680, 2846670535, 48839)


def test_a_member_sets_its_own_bit_and_further_ones_at_an_odd_distance() -> None:
    """MurmurHash3 mixes 1 to 0x514e28b7; an eighth of that, made odd, is 23 more than a multiple of 64."""
    assert Bloom.of(BloomShape(64, 3), {1}).data == sum(1 << bit for bit in (1, 24, 47)).to_bytes(8, "little")
    assert Bloom.of(BloomShape(64, 1), {1, 130}).data == sum(1 << bit for bit in (1, 2)).to_bytes(8, "little")


@pytest.mark.parametrize(("bits", "hashes"), [(7, 1), (100, 1), (1 << 17, 1), (64, 0), (64, 17)])
def test_shapes_that_cannot_be_are_refused(bits: int, hashes: int) -> None:
    with pytest.raises(UsageError, match="must be"):
        BloomShape(bits, hashes)


@pytest.mark.parametrize(("items", "rate"), [(0, 0.1), (5, 0.0), (5, 1.0), (10**9, 0.01)])
def test_rates_that_cannot_be_kept_are_refused(items: int, rate: float) -> None:
    with pytest.raises(UsageError, match="rate"):
        BloomShape.for_rate(items, rate)


def test_vectors_of_other_hashes_are_not_merged() -> None:
    with pytest.raises(UsageError, match="hashes"):
        Bloom.empty(BloomShape(64, 2)).merged(Bloom.empty(BloomShape(64, 3)))


# Bit sets on the wire.


@given(st.integers(1, 3000).flatmap(lambda width: st.tuples(st.just(width), st.sets(st.integers(0, width - 1)))))
@settings(deadline=None)
def test_a_bit_set_reads_back_and_never_takes_more_than_plain(case: tuple[int, set[int]]) -> None:
    width, positions = case
    data = sum(1 << position for position in positions).to_bytes((width + 7) // 8, "little")
    writer = BitWriter()
    writer.bits(data, width)
    writer.count(77)
    reader = BitReader(bytes(writer.data), "set")
    assert reader.bits(width) == data
    assert reader.count(100) == 77
    reader.end()
    assert len(writer.data) - 1 <= len(data) + 1


def test_a_sparse_set_takes_about_what_its_gaps_need() -> None:
    positions = range(0, 65_536, 1024)
    writer = BitWriter()
    writer.bits(sum(1 << position for position in positions).to_bytes(8192, "little"), 65_536)
    assert len(writer.data) == 2 + 64 * 11 / 8


@pytest.mark.parametrize(
    "data", [b"", b"\x1f", b"\x1f\xff", b"\x10", b"\x02\x05", b"\x00\x01\xff\xff", b"\x00\xff\xff\xff\xff"]
)
def test_a_broken_set_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedPacket):
        BitReader(data, "set").bits(5)


def test_bytes_left_over_are_malformed() -> None:
    with pytest.raises(MalformedPacket, match="1 extra bytes"):
        BitReader(b"x", "set").end()


@pytest.mark.parametrize(
    ("data", "count"), [(b"\x00", 0), (b"\x7f", 127), (b"\x80\x01", 128), (b"\xff\xff\x03", 65_535)]
)
def test_a_count_has_seven_bits_a_byte_the_lowest_first(data: bytes, count: int) -> None:
    assert BitReader(data, "set").count(65_535) == count
    with pytest.raises(MalformedPacket, match=f"the set has a count of more than {count - 1}"):
        BitReader(data, "set").count(count - 1)


def test_a_count_without_end_is_refused() -> None:
    with pytest.raises(MalformedPacket, match="the set has a count of more than 9"):
        BitReader(b"\x80" * 9 + b"\x00", "set").count(9)
