"""What nodes keep of the documents and keys that came lately."""

from hypothesis import given
from hypothesis import strategies as st

from earshot import Event
from earshot.protocols.codd.recent_documents import Held, HeldDocuments, WantedDocuments, bitmap
from earshot.protocols.common.local_subscriptions import RecentKeys

DOCUMENTS = [Event("CD", {"price": i}) for i in range(6)]


def test_the_oldest_documents_are_forgotten_and_the_rest_come_by_number() -> None:
    held = HeldDocuments(3)
    for number in (1, 4, 2, 3):
        held.add(number, DOCUMENTS[number], hops=number + 1)
    assert held.numbers == [4, 2, 3]
    assert held.since(3) == [Held(3, DOCUMENTS[3], 4), Held(4, DOCUMENTS[4], 5)]


@given(st.lists(st.one_of(st.integers(0, 60).map(lambda first: ("ask", first)), st.just(("come", 0)))))
def test_a_bitmap_that_is_kept_is_the_one_that_would_be_made(steps: list[tuple[str, int]]) -> None:
    wanted = WantedDocuments()
    for number, (what, first) in enumerate(steps):
        if what == "come":
            wanted.numbers.append(number)
            wanted.forget(keep=1)
        else:
            assert wanted.bitmap(first) == bitmap(wanted.numbers, first)


def test_the_oldest_keys_are_forgotten_first() -> None:
    recent = RecentKeys(2)
    assert [recent.add(key) for key in ("a", "b", "a", "c", "a")] == [True, True, False, True, True]
    assert (recent.keys, len(recent), "b" in recent) == ({"a", "c"}, 2, False)
