"""Filters by text: a set that counts its holders, and a node's local subscriptions as texts."""

from random import Random

import pytest

from earshot import Circle, Event, Filter, Position, Proximity, Viewer
from earshot.filters import Subscription
from earshot.protocols.common.filter_texts import FilterTexts, LocalFilterTexts, TextCache, could_match_any, read_filter
from earshot.protocols.machine import Deliver, Effects, FixedLocation, Machine

HERE, AWAY = Viewer(Position(0, 0)), Viewer(Position(900, 0))
AREA = Proximity(Circle(300), naval=Position(0, 0)).area(Position(0, 0))
FAST = Event("Siren", {"speed": 18.0}, position=Position(0, 0))


def own(**filters: str) -> LocalFilterTexts:
    found = LocalFilterTexts()
    for id, text in filters.items():
        found.add(Subscription(id, "me", Filter.where(text, type="Siren")), now=0.0)
    return found


def receiving(own: LocalFilterTexts, event: Event, viewer: Viewer) -> Effects:
    machine = Machine("me", None, FixedLocation(viewer.position), Random(0))
    own.deliver_local(machine, event, 2, now=0.0)
    return machine.effects()


def deliveries(event: Event, *subscriptions: str) -> Effects:
    return [Deliver(event, id, 2) for id in subscriptions]


def test_subscriptions_without_a_place_are_delivered_by_content_alone() -> None:
    assert receiving(own(b="speed > 30", a="speed > 10"), FAST, AWAY) == deliveries(FAST, "a")


def test_a_text_leaves_out_the_terms_about_the_consumers_place() -> None:
    assert own(a="speed > 10 and within 200 m").texts == {"a": "Siren: speed > 10"}


def test_a_text_is_in_the_set_while_it_has_a_holder() -> None:
    slow, fast, malformed = "Siren: speed > 10", "Siren: speed > 30", "]["
    texts = FilterTexts()
    assert texts.hold([slow, fast, malformed]) == [slow, fast, malformed]
    assert texts.hold([slow]) == []
    assert texts.matching(FAST) == {slow}
    assert texts.release([slow, fast, malformed, "unknown"]) == [fast, malformed]
    assert (texts.release([slow]), len(texts), texts.matching(FAST)) == ([slow], 0, set())


@pytest.mark.parametrize(("viewer", "expected"), [(HERE, ["a"]), (AWAY, [])])
def test_an_event_with_an_area_is_for_those_in_it(viewer: Viewer, expected: list[str]) -> None:
    event = Event("Siren", {"speed": 18.0}, position=Position(0, 0), area=AREA)
    assert receiving(own(a="speed > 10"), event, viewer) == deliveries(event, *expected)


@pytest.mark.parametrize(("viewer", "expected"), [(HERE, ["a", "b"]), (AWAY, ["a"])])
def test_where_one_asks_for_a_place_all_are_asked_exactly(viewer: Viewer, expected: list[str]) -> None:
    assert receiving(own(a="speed > 10", b="within 200 m"), FAST, viewer) == deliveries(FAST, *expected)


def test_a_region_of_interest_is_a_place_too() -> None:
    held = own()
    held.add(Subscription("a", "me", Filter.where("speed > 10", type="Siren"), region=AREA), now=0.0)
    far = Event("Siren", {"speed": 18.0}, position=Position(900, 0))
    assert (receiving(held, FAST, AWAY), receiving(held, far, HERE)) == (deliveries(FAST, "a"), [])


def test_what_is_removed_or_replaced_is_asked_no_more() -> None:
    held = own(a="speed > 10", b="within 200 m")
    held.remove("b")
    held.add(Subscription("a", "me", Filter.where("speed > 30", type="Siren")), now=0.0)
    assert (len(held.texts), receiving(held, FAST, HERE)) == (1, [])


def test_the_length_of_a_set_counts_each_text_once_with_64_more() -> None:
    texts = FilterTexts()
    texts.hold(["Siren: a > 1", "]["])
    texts.hold(["]["])
    assert texts.length == 12 + 2 + 2 * 64
    texts.release(["][", "]["])
    assert texts.length == 12 + 64
    texts.release(["Siren: a > 1"])
    assert texts.length == 0


def test_a_text_is_in_the_set_until_its_last_holder_leaves() -> None:
    texts = FilterTexts()
    texts.hold(["Siren: a > 1"])
    texts.hold(["Siren: a > 1"])
    texts.hold(["Siren: a > 1"])
    seen = [texts.release(["Siren: a > 1"]) for _ in range(4)]
    assert (seen, "Siren: a > 1" in texts) == ([[], [], ["Siren: a > 1"], []], False)


def test_a_cache_reads_a_text_once_and_forgets_what_was_used_longest_ago() -> None:
    read: list[str] = []

    def length(text: str) -> int:
        read.append(text)
        return len(text)

    cache = TextCache(length, 2 * 64 + 7)
    assert [cache(text) for text in ("aaa", "bbbb", "aaa", "bbbb", "aaa")] == [3, 4, 3, 4, 3]
    assert (read, len(cache)) == (["aaa", "bbbb"], 2)
    assert (cache("c"), len(cache)) == (1, 2)
    assert [cache(text) for text in ("aaa", "c", "bbbb")] == [3, 1, 4]
    assert read == ["aaa", "bbbb", "c", "bbbb"]


def test_a_text_too_long_for_the_cache_is_read_but_not_kept() -> None:
    cache = TextCache(len, 66)
    assert (cache("abc"), len(cache)) == (3, 0)
    assert (cache("ab"), len(cache)) == (2, 1)


def test_a_peers_filter_must_not_ask_for_a_consumers_place() -> None:
    assert read_filter("Siren: speed > 10") == Filter.where("speed > 10", type="Siren")
    assert (read_filter("Siren: within 200 m"), read_filter("][")) == (None, None)


def test_a_text_could_match_if_one_of_the_types_does() -> None:
    asked = [("Siren: speed > 10", ["News", "Siren"]), ("Siren: speed > 10", ["News"]), ("][", ["Siren"])]
    assert [could_match_any(text, types) for text, types in asked] == [True, False, False]


def test_filters_of_two_mebibytes_stay_parsed() -> None:
    """Each text counts 64 more. A text that fills the cache displaces all others; a longer one also itself."""
    full = "]" * (2 * 1024 * 1024 - 64)
    assert (read_filter(full), len(read_filter)) == (None, 1)
    assert (read_filter(full + "]"), len(read_filter)) == (None, 0)
