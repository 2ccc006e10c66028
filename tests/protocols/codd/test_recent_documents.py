"""What nodes keep of the documents and keys that came lately."""

from hypothesis import given
from hypothesis import strategies as st

from earshot import Event
from earshot.protocols.codd.recent_documents import HeldDocument, HeldDocuments, RecentBitmap, bitmap
from earshot.protocols.common.local_subscriptions import RecentKeys

DOCUMENTS = [Event("CD", {"price": i}) for i in range(6)]


def test_the_oldest_documents_are_forgotten_and_the_rest_come_by_number() -> None:
    held = HeldDocuments(3)
    for number in (1, 4, 2, 3):
        held.add(number, DOCUMENTS[number], hops=number + 1)
    assert held.numbers == [4, 2, 3]
    assert held.since(3) == [HeldDocument(3, DOCUMENTS[3], 4), HeldDocument(4, DOCUMENTS[4], 5)]


@given(st.lists(st.one_of(st.integers(0, 60).map(lambda first: ("ask", first)), st.just(("come", 0)))))
def test_a_recent_bitmap_has_the_last_numbers(steps: list[tuple[str, int]]) -> None:
    recent, numbers = RecentBitmap(capacity=4), list[int]()
    for number, (what, first) in enumerate(steps):
        if what == "come":
            numbers.append(number)
            recent.add(number)
        else:
            last = numbers[-1] if numbers else 0
            kept = [number for number in numbers if number >= max(first, last - 4)]
            assert recent.since(max(first, last - 4)) == bitmap(kept, max(first, last - 4))
            assert recent.since(first) | bitmap(numbers, first) == bitmap(numbers, first)


def test_a_bitmap_from_a_number_out_of_reach_is_empty() -> None:
    recent = RecentBitmap(capacity=4)
    recent.add(1 << 60)
    assert (recent.since(0), bitmap([1 << 60], 0)) == (0, 0)
    assert recent.since(1 << 60) == 1


def test_the_oldest_keys_are_forgotten_first() -> None:
    recent = RecentKeys(2)
    assert [recent.add(key) for key in ("a", "b", "a", "c", "a")] == [True, True, False, True, True]
    assert (recent.keys, len(recent), "b" in recent) == ({"a", "c"}, 2, False)
