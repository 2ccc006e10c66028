from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from earshot.live.datagrams import Fragment, Reassembly, split
from earshot.wire import MAX_PACKET_BYTES


def reassembly(**limits: float) -> tuple[Reassembly, Counter[str]]:
    drops: Counter[str] = Counter()

    def dropped(reason: str) -> None:
        drops[reason] += 1

    return Reassembly(dropped, **limits), drops  # type: ignore[arg-type]


@given(st.binary(min_size=1, max_size=2000), st.integers(1, 300), st.randoms(use_true_random=False))
def test_pieces_in_any_order_and_twice_make_the_packet_once(packet: bytes, size: int, random: object) -> None:
    pieces = split(packet, size)
    fragments = [Fragment(7, index, len(pieces), piece) for index, piece in enumerate(pieces)] * 2
    random.shuffle(fragments)  # type: ignore[attr-defined]
    buffers, drops = reassembly()
    whole = [made for one in fragments if (made := buffers.add("a", 1, one, 0.0)) is not None]
    assert (whole, buffers.held_bytes, len(buffers), drops) == ([packet], 0, 0, Counter())


def test_packets_of_two_senders_and_two_lives_do_not_mix() -> None:
    buffers, _ = reassembly()
    for sender, life in (("a", 1), ("b", 1), ("a", 2)):
        assert buffers.add(sender, life, Fragment(7, 0, 2, b"x"), 0.0) is None
    assert buffers.add("b", 1, Fragment(7, 1, 2, b"y"), 0.0) == b"xy"
    assert len(buffers) == 2


def test_pieces_that_wait_too_long_are_given_up() -> None:
    buffers, drops = reassembly(patience_s=5.0)
    buffers.add("a", 1, Fragment(7, 0, 2, b"x"), 0.0)
    buffers.expire(5.0)
    assert len(buffers) == 1
    buffers.expire(5.1)
    assert (len(buffers), buffers.held_bytes, drops) == (0, 0, Counter({"fragments-missing": 1}))


def test_a_flood_of_fragments_costs_only_its_sender() -> None:
    buffers, drops = reassembly(sender_bytes=10_000, total_bytes=50_000, partial_limit=32)
    buffers.add("honest", 1, Fragment(1, 0, 2, b"h" * 500), 0.0)
    for number in range(1000):
        for flooder in ("x", "y", "z"):
            buffers.add(flooder, 1, Fragment(number, 0, 2, b"f" * 1000), 0.0)
    assert buffers.held_bytes <= 50_000
    assert len(buffers) <= 32
    assert drops["fragment-buffer-full"] > 2900
    assert buffers.add("honest", 1, Fragment(1, 1, 2, b"!"), 0.0) == b"h" * 500 + b"!"


def test_a_packet_larger_than_any_is_given_up() -> None:
    buffers, drops = reassembly()
    half = b"x" * (MAX_PACKET_BYTES // 2 + 1)
    assert buffers.add("a", 1, Fragment(1, 0, 3, half), 0.0) is None
    assert buffers.add("a", 1, Fragment(1, 1, 3, half), 0.0) is None
    assert (buffers.held_bytes, drops) == (0, Counter({"packet-too-large": 1}))


def test_one_sender_holds_no_more_than_its_share() -> None:
    buffers, drops = reassembly(sender_bytes=10_000, total_bytes=1_000_000, piece_bytes=0)
    for number in range(100):
        buffers.add("x", 1, Fragment(number, 0, 2, b"f" * 1000), 0.0)
    assert (buffers.held_bytes, len(buffers), drops) == (10_000, 10, Counter({"fragment-buffer-full": 90}))
