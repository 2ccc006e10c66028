"""What is published and asked for: event generators, interests, timing."""

import itertools
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from earshot.errors import ScenarioError
from earshot.events import Event
from earshot.filters import Filter
from earshot.settings import kinds_of
from earshot.simulation.draws import Span, zipf_rank
from earshot.simulation.workload.generators import (
    Attributes,
    Boolean,
    Cds,
    Choice,
    EventGenerator,
    Integer,
    Number,
    Numbers,
    OwnEvents,
    Topics,
)
from earshot.simulation.workload.interests import CdFilters, Conjunctions, NumberIntervals, Types, Written
from earshot.simulation.workload.traffic import AtTimes, Periodic, Poisson, PublishingNode

REPORT = Attributes(
    "Report",
    {
        "severity": Integer(1, 5),
        "speed": Number(0.0, 50.0, decimals=1),
        "street": Choice(("Mill Road", "High Street"), zipf=1.0),
        "wet": Boolean(0.25),
    },
)


def draws(generator: Any, count: int = 2000) -> list[Event]:
    random = Random("draws")
    return [generator.draw(random, number) for number in range(count)]


@pytest.mark.parametrize(
    "generator", [Cds(), Cds("random"), Numbers(), Topics(5), Topics(5, payload_bytes=10), REPORT], ids=repr
)
def test_every_event_has_the_structure_of_its_announced_type(generator: Any) -> None:
    types = {one.subject: one for one in generator.types()}
    for event in draws(generator, 200):
        assert types[event.type].read(event) == event
        assert (event.id, event.source, event.position) == ("", "", None)


def test_zipf_ranks_fall_like_their_law() -> None:
    random = Random("zipf")
    counts = Counter(zipf_rank(random, 5, 1.0) for _ in range(20_000))
    whole = sum(1 / rank for rank in range(1, 6))
    for rank in range(5):
        assert counts[rank] / 20_000 == pytest.approx(1 / (rank + 1) / whole, abs=0.015)
    even = Counter(zipf_rank(random, 4, 0.0) for _ in range(8000))
    assert sorted(even) == [0, 1, 2, 3]
    assert min(even.values()) > 1800


def test_the_cds_of_figure_2_come_in_turn_and_meet_the_filters_of_figure_3() -> None:
    wanted = [CdFilters().draw(Random(0), number, {}) for number in range(5)]
    matched = [[subscription.matches(event) for subscription in wanted] for event in draws(Cds(), 4)]
    assert matched == [
        [True, False, False, False, False],
        [False, True, False, False, False],
        [False, False, False, True, False],
        [True, False, False, False, False],
    ]


def test_random_cds_meet_random_filters_now_and_then() -> None:
    random = Random("cds")
    filters = [CdFilters("random").draw(random, number, {}) for number in range(50)]
    events = draws(Cds("random"), 50)
    share = sum(subscription.matches(event) for subscription in filters for event in events) / 2500
    assert 0.02 < share < 0.5


def test_number_intervals_are_as_the_drip_paper_has_them() -> None:
    random = Random("numbers")
    subscriptions = [NumberIntervals().draw(random, number, {}) for number in range(1500)]
    events = [Event("Number", {"value": value}) for value in range(1, 101)]
    met = [
        [event.content["value"] for event in events if subscription.matches(event)] for subscription in subscriptions
    ]  # type: ignore[index]
    assert all(values == list(range(values[0], values[-1] + 1)) for values in met if values)
    # A centre on a whole number and a length of 5 in the mean: about 5 values, fewer at the ends.
    assert sum(map(len, met)) / len(met) == pytest.approx(5.0, abs=0.3)
    values = [event.content["value"] for event in draws(Numbers(3, 7), 300)]  # type: ignore[index]
    assert set(values) == {3, 4, 5, 6, 7}


def test_topics_and_types_are_drawn_by_popularity() -> None:
    topics = Topics(4, zipf=1.0)
    published = Counter(event.type for event in draws(topics))
    assert [name for name, _ in published.most_common()] == ["topic-1", "topic-2", "topic-3", "topic-4"]
    random = Random("types")
    asked = Counter(str(Types("t", zipf=2.0).draw(random, 0, {"t": topics})) for _ in range(2000))
    assert [name for name, _ in asked.most_common()] == [str(Filter.of_type(f"topic-{i}")) for i in range(1, 5)]


def test_attributes_stay_in_their_bounds() -> None:
    events = draws(REPORT)
    assert {event.content["severity"] for event in events} == {1, 2, 3, 4, 5}  # type: ignore[index]
    speeds = [event.content["speed"] for event in events]  # type: ignore[index]
    assert min(speeds) >= 0
    assert max(speeds) <= 50
    assert all(round(speed, 1) == speed for speed in speeds)
    streets = Counter(event.content["street"] for event in events)  # type: ignore[index]
    assert streets["Mill Road"] / len(events) == pytest.approx(2 / 3, abs=0.04)
    assert sum(event.content["wet"] for event in events) / len(events) == pytest.approx(0.25, abs=0.04)  # type: ignore[index]


def test_conjunctions_have_the_number_of_terms_and_the_width_asked_for() -> None:
    random, sources = Random("conjunctions"), {"r": REPORT}
    events = draws(REPORT, 3000)
    broad = Conjunctions("r", terms=Span(0, 0)).draw(random, 0, sources)
    assert broad == Filter.of_type("Report")
    only_speed = Attributes("Report", {"speed": Number(0, 50, decimals=6)})
    speeds = draws(only_speed, 3000)
    half = [
        Conjunctions("r", terms=Span(1, 1), width=Span(0.5, 0.5)).draw(random, 0, {"r": only_speed}) for _ in range(9)
    ]
    for subscription in half:
        assert sum(subscription.matches(event) for event in speeds) / 3000 == pytest.approx(0.5, abs=0.04)
    near = Conjunctions("r", terms=Span(4, 9), also="within 300 m").draw(random, 0, sources)
    text = str(near)
    assert text.startswith("Report:")
    assert all(word in text for word in ("severity", "speed", "street", "wet", "within 300 m"))
    assert not any(near.matches(event) for event in events)


def test_written_filters_come_in_turn_or_by_popularity() -> None:
    texts = tuple(Filter.of_type(name) for name in "ABC")
    turn = Written(texts, choose="in-turn")
    assert [turn.draw(Random(0), number, {}).type for number in range(4)] == ["A", "B", "C", "A"]
    random = Random("written")
    drawn = Counter(Written(texts, zipf=2.0).draw(random, 0, {}).type for _ in range(1000))
    assert [name for name, _ in drawn.most_common()] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Numbers(5, 4), "low must not exceed high, got 5 and 4"),
        (lambda: Integer(5, 4), "low must not exceed high, got 5 and 4"),
        (lambda: Number(5, 4), "low must not exceed high, got 5 and 4"),
        (lambda: Number(1, 4, decimals=13), "decimals must be from 0 to 12, got 13"),
        (lambda: Choice(()), "of needs at least one text"),
        (lambda: Boolean(2), "chance must be from 0 to 1, got 2"),
        (lambda: Attributes("", {"a": Boolean()}), "type must not be empty"),
        (lambda: Attributes("A", {}), "attributes needs at least one"),
        (
            lambda: Attributes("A", {"payload": Boolean()}, payload_bytes=1),
            "payload_bytes adds an attribute named payload",
        ),
        (lambda: Topics(payload_bytes=-1), "payload_bytes must not be negative, got -1"),
        (lambda: Written(()), "texts needs at least one filter"),
        (lambda: Written((Filter.of_type("A"),), zipf=-1), "zipf must not be negative, got -1"),
        (lambda: NumberIntervals(5, 4), "low must not exceed high"),
        (lambda: NumberIntervals(length_mean=-1), "length_mean must not be negative, got -1"),
        (lambda: Conjunctions("r", terms=Span(-1, 1)), "terms must not be negative, got -1"),
        (lambda: Conjunctions("r", width=Span(0, 2)), r"width must be from 0 to 1, got \[0, 2\]"),
        (lambda: Periodic(1.0, jitter_s=-1), "jitter_s must not be negative, got -1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        make()


# When.


def publishers(count: int) -> list[PublishingNode]:
    return [PublishingNode(node, ability=1.0 + 9.0 * (node == 0), random=Random(f"p{node}")) for node in range(count)]


def times(timing: Any, count: int, from_s: float = 10.0, until_s: float = 20.0) -> list[tuple[float, int]]:
    drawn = timing.times(publishers(count), Random("times"), from_s, until_s)
    return sorted((time, publisher.node) for time, publisher in drawn)


def test_periodic_events_keep_their_interval() -> None:
    assert times(Periodic(4.0, phase="zero"), 2) == [(t, node) for t in (10.0, 14.0, 18.0) for node in (0, 1)]
    assert times(Periodic(4.0, of="all", choose="in-turn"), 2) == [(10.0, 0), (14.0, 1), (18.0, 0)]
    by_phase = times(Periodic(4.0), 1)
    assert 10.0 <= by_phase[0][0] < 14.0
    assert {round(later[0] - earlier[0], 9) for earlier, later in itertools.pairwise(by_phase)} == {4.0}
    late = times(Periodic(4.0, phase="zero", jitter_s=1.0), 1)
    assert all(0 < time - due < 1 for (time, _), due in zip(late, (10.0, 14.0, 18.0), strict=True))


def test_poisson_events_come_at_their_rate_and_independently() -> None:
    together = times(Poisson(5.0), 3, until_s=1010.0)
    assert len(together) == pytest.approx(5000, abs=250)
    gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(together)]
    # Exponential: the deviation equals the mean.
    mean = sum(gaps) / len(gaps)
    assert (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(mean, rel=0.08)
    each = Counter(node for _, node in times(Poisson(5.0, of="each"), 3, until_s=1010.0))
    assert [each[node] for node in range(3)] == pytest.approx([5000] * 3, abs=300)


def test_able_publishers_publish_more() -> None:
    counts = Counter(node for _, node in times(Poisson(5.0, choose="ability"), 3, until_s=1010.0))
    assert counts[0] / sum(counts.values()) == pytest.approx(10 / 12, abs=0.03)


def test_written_times_are_kept() -> None:
    assert times(AtTimes((5.0, 12.0, 13.0, 20.0)), 2) == [(12.0, 0), (12.0, 1), (13.0, 0), (13.0, 1)]
    assert times(AtTimes((12.0, 13.0), of="all"), 2) == [(12.0, 0), (13.0, 1)]


# From files.


def test_events_come_from_a_file_in_turn_or_at_random(tmp_path: Path) -> None:
    lines = '{"type": "A", "content": {"n": 1}}\n\n{"xml": "<CD><price>9</price></CD>", "priority": 2}\n'
    (tmp_path / "events.jsonl").write_text(lines, encoding="utf-8-sig")
    source = OwnEvents(tmp_path / "events.jsonl")
    events = draws(source, 3)
    assert [event.type for event in events] == ["A", "CD", "A"]
    assert events[1].priority == 2
    assert [one.subject for one in source.types()] == ["A", "CD"]
    assert source.types()[0].content == {"n": "integer"}
    random = OwnEvents(tmp_path / "events.jsonl", choose="random")
    assert {event.type for event in draws(random, 50)} == {"A", "CD"}


def test_a_structure_types_the_values_of_xml(tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_text("<CD><price>9.5</price></CD>")
    (tmp_path / "two.xml").write_text("<CD><price>dear</price></CD>")
    source = OwnEvents(tmp_path, structure={"CD": {"price": "float"}})
    assert draws(source, 1)[0].fields["price"] == (9.5,)
    with pytest.raises(ScenarioError, match="CD: 'price' must be float, got 'dear'"):
        draws(source, 2)
    assert [event.type for event in draws(OwnEvents(tmp_path / "one.xml"), 2)] == ["CD", "CD"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("e.jsonl", "{", "line 1: not JSON"),
        ("e.jsonl", "[]", "line 1: must be a JSON object"),
        ("e.jsonl", '{"content": {}}', "line 1: not an event in JSON"),
        ("e.jsonl", '{"xml": "<CD>"}', "line 1: not well-formed XML"),
        ("e.jsonl", '{"xml": "<CD/>", "speed": 3}', "line 1: no such key as 'speed' beside xml"),
        ("e.jsonl", "", "the file has no events"),
        ("e.json", "{}", "write one JSON object a line, in a file named .jsonl"),
        ("e.xml", "<a>", "not well-formed XML"),
    ],
)
def test_a_bad_file_of_events_is_refused_with_the_reason(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError, match=f"{name}: .*{problem}|{name}: {problem}"):
        draws(OwnEvents(tmp_path / name), 1)


def test_missing_files_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"the folder has no .xml documents"):
        draws(OwnEvents(tmp_path), 1)
    with pytest.raises(ScenarioError, match="no such file"):
        draws(OwnEvents(tmp_path / "none.jsonl"), 1)


def test_a_generator_is_chosen_by_its_kind() -> None:
    kinds = kinds_of(EventGenerator)
    assert list(kinds) == ["cd", "numbers", "topics", "attributes", "buckets", "xml", "file", "plugin"]
    assert [one().kind for one in (kinds["cd"], kinds["numbers"], kinds["topics"])] == ["cd", "numbers", "topics"]


def test_a_condition_may_accept_a_whole_range_or_one_number() -> None:
    only_speed = Attributes("Report", {"speed": Number(10.0, 30.0)})
    for width, least, most in ((0.0, 10.0, 30.0), (1.0, 10.0, 10.0)):
        wanted = Conjunctions("r", terms=Span(1, 1), width=Span(width, width)).draw(Random(1), 0, {"r": only_speed})
        low, high = sorted(float(number) for number in re.findall(r"[\d.]+", str(wanted).partition(":")[2]))
        assert least <= low <= most
        assert high - low == pytest.approx(width * 20.0)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda: Numbers(4, 4), 4),
        (lambda: Attributes("A", {"value": Integer(-2, -2)}), -2),
        (lambda: Attributes("A", {"value": Number(1.5, 1.5)}), 1.5),
        (lambda: Attributes("A", {"value": Number(1.26, 1.26, decimals=1)}), 1.3),
        (lambda: Attributes("A", {"value": Boolean(1.0)}), True),
        (lambda: Attributes("A", {"value": Boolean(0.0)}), False),
        (lambda: Attributes("A", {"value": Choice(("only",))}), "only"),
    ],
)
def test_what_leaves_no_choice_is_always_the_same(make: Any, value: Any) -> None:
    assert [event.content["value"] for event in draws(make(), 20)] == [value] * 20  # type: ignore[index]


def test_an_interval_may_be_one_number_and_stays_within_its_bounds() -> None:
    for subscription in (NumberIntervals(5, 5), NumberIntervals(5, 5, length_mean=0.0, length_variance=0.0)):
        drawn = [subscription.draw(Random(seed), 0, {}) for seed in range(5)]
        assert drawn == [Filter.parse("Number: value in 5..5")] * 5


def test_a_payload_is_announced_where_there_is_one() -> None:
    bare, full = Topics(1), Topics(1, payload_bytes=3)
    assert [sorted(one.types()[0].content or ()) for one in (bare, full)] == [["number"], ["number", "payload"]]
    assert [len(str((event.content or {})["payload"])) for event in draws(full, 2)] == [3, 3]  # type: ignore[index]


def test_numbers_are_from_one_to_a_hundred_unless_the_scenario_says_otherwise() -> None:
    random = Random(1)
    drawn = {Numbers().draw(random, number).content["value"] for number in range(3000)}  # type: ignore[index]
    assert drawn == set(range(1, 101))
