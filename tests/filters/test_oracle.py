"""The oracle: who should receive an event, against the rule asked of each subscription by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from earshot import Area, Circle, Event, Position, Viewer
from earshot.filters import Oracle
from earshot.filters.subscription import accepts
from earshot.geometry import Velocity
from earshot.records.sessions import SubscriptionSpan

FILTERS = (
    "Car: speed < 10",
    "Car: speed > 5",
    "speed = 7",
    "Car: speed < 10 and within 50 m",
    "within 20 m",
    "Bus: true",
)
NAMES = ("a", "b", "c")
PLACES = {"a": Position(0.0, 0.0), "b": Position(40.0, 0.0)}
"Nobody knows where c is."


def viewer_at(node: str, _: float) -> Viewer | None:
    return Viewer(PLACES[node], Velocity(0.0, 0.0)) if node in PLACES else None


def span(node: str, text: str, start: float = 0.0, end: float = 10.0, region: Area | None = None) -> SubscriptionSpan:
    return SubscriptionSpan(node, f"{node}/{text}", text, region, start, end)


def car(speed: int, source: str = "x", area: Area | None = None) -> Event:
    return Event("Car", {"speed": speed}, id="e", source=source, position=Position(30.0, 0.0), area=area)


def test_a_subscription_counts_from_its_start_until_just_before_its_end() -> None:
    oracle = Oracle([span("a", "Car: true", 2.0, 5.0)])
    times = [1.9, 2.0, 4.9, 5.0]
    events, spans = oracle.candidates([car(1)] * 4, times)
    assert (events.tolist(), spans.tolist()) == ([1, 2], [0, 0])
    assert [oracle.receivers(car(1), time, viewer_at) for time in times] == [set(), {"a"}, {"a"}, set()]


def test_a_publisher_does_not_receive_its_own_event() -> None:
    oracle = Oracle([span("a", "Car: true"), span("b", "Car: true")])
    assert oracle.receivers(car(1, source="b"), 1.0, viewer_at) == {"a"}
    assert oracle.receivers(car(1, source="stranger"), 1.0, viewer_at) == {"a", "b"}


def test_candidates_are_listed_event_by_event_with_all_spans_of_equal_filters() -> None:
    oracle = Oracle([span(name, text) for text in ("Car: speed < 10", "Bus: true", "speed = 7") for name in NAMES])
    events, spans = oracle.candidates([car(7), car(9, source="b"), Event("Bus", {}, source="x"), car(99)], [1.0] * 4)
    found = [{number for event, number in zip(events, spans, strict=True) if event == k} for k in range(4)]
    assert found == [{0, 1, 2, 6, 7, 8}, {0, 2}, {3, 4, 5}, set()]
    assert events.tolist() == sorted(events.tolist())
    assert Oracle([]).candidates([car(7)], [1.0])[0].tolist() == []


def test_place_is_asked_for_where_the_event_the_region_or_the_filter_has_one() -> None:
    near = Area(Circle(10.0), Position(30.0, 0.0))
    oracle = Oracle([span("a", "Car: true"), span("a", "within 50 m"), span("a", "Car: true", region=near)])
    assert [oracle.asks_for_place(car(1), number) for number in range(3)] == [False, True, True]
    assert [oracle.asks_for_place(car(1, area=near), number) for number in range(3)] == [True, True, True]


def test_a_node_counts_once_and_what_one_subscription_refuses_another_may_accept() -> None:
    texts = ("Car: speed > 5", "speed = 7", "within 20 m", "Car: speed < 10")
    oracle = Oracle([span(name, text) for text in texts for name in NAMES])
    assert oracle.receivers(car(7), 1.0, viewer_at) == {"a", "b", "c"}
    places = Oracle(
        [span("a", "within 20 m"), span("a", "within 50 m"), span("c", "within 50 m"), span("b", "within 20 m")]
    )
    asked = []

    def noting(node: str, time: float) -> Viewer | None:
        asked.append((node, time))
        return viewer_at(node, time)

    assert places.receivers(car(7), 2.5, noting) == {"a", "b"}
    assert sorted(set(asked)) == [("a", 2.5), ("b", 2.5), ("c", 2.5)]


def test_a_node_of_an_unknown_place_receives_what_does_not_depend_on_places() -> None:
    oracle = Oracle([span("c", "within 50 m"), span("b", "within 50 m"), span("a", "within 20 m")])
    assert oracle.receivers(car(1), 1.0, viewer_at) == {"b"}
    assert Oracle([span("c", "within 50 m"), span("c", "Car: true")]).receivers(car(1), 1.0, viewer_at) == {"c"}


def test_place_and_content_must_both_agree_whichever_span_asks() -> None:
    near_and_slow = Oracle([span(name, "Car: speed < 10 and within 35 m") for name in NAMES])
    assert near_and_slow.receivers(car(4), 1.0, viewer_at) == {"a", "b"}
    assert near_and_slow.receivers(car(40), 1.0, viewer_at) == set()
    nearer = Oracle([span("a", "Car: within 20 m"), span("a", "Bus: true"), span("b", "Car: speed < 3 or within 20 m")])
    assert nearer.receivers(car(4), 1.0, viewer_at) == {"b"}
    several = Oracle([span("a", "Car: within 20 m"), span("a", "Car: within 31 m"), span("a", "Car: true", 5.0)])
    assert several.receivers(car(4), 1.0, viewer_at) == {"a"}, "one that agrees is enough"
    inside = Area(Circle(35.0), Position(0.0, 0.0))
    regions = Oracle([span("a", "Car: true", region=inside), span("b", "Car: within 5 m", region=inside)])
    assert regions.receivers(car(4), 1.0, viewer_at) == {"a"}


spans = st.lists(
    st.builds(
        span,
        st.sampled_from(NAMES),
        st.sampled_from(FILTERS),
        st.sampled_from([0.0, 2.0]),
        st.sampled_from([2.0, 9.0]),
        st.sampled_from([None, Area(Circle(35.0), Position(0.0, 0.0)), Area(Circle(5.0), Position(0.0, 0.0))]),
    ),
    max_size=9,
)
areas = st.sampled_from([None, Area(Circle(20.0), Position(30.0, 0.0))])


@given(spans, st.integers(4, 11), st.sampled_from(("x", *NAMES)), areas, st.sampled_from([0.0, 1.0, 2.0, 8.9, 9.0]))
def test_the_receivers_are_those_whose_subscriptions_accept_the_event_one_by_one(
    several: list[SubscriptionSpan], speed: int, source: str, area: Area | None, time: float
) -> None:
    event = car(speed, source, area)
    oracle = Oracle(several)
    expected = {
        one.node
        for one, subscription in zip(several, oracle.subscriptions, strict=True)
        if one.start <= time < one.end
        and one.node != source
        and accepts(event, subscription, viewer_at(one.node, time))
        and (one.node in PLACES or (area is None and one.region is None and not subscription.filter.needs_viewer))
    }
    assert oracle.receivers(event, time, viewer_at) == expected
