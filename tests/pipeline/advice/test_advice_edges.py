"""Edges of an advice: words at a bound, candidates that fail on one window, and a verdict that time ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import SettingsError
from earshot.pipeline.advice.advice_text import _long, _sentence, _time, _times, _two_digits, network_facts, types_words
from earshot.pipeline.advice.search import Goal, HalvingSearch, Measured, Results, TunedProtocol, standing_of
from earshot.pipeline.advice.verdict import Verdict, _deliveries, _fell_short, judge_choice
from earshot.pipeline.campaigns.intervals import figure_of
from earshot.protocols.tuning import Surroundings, Tunable

A, B, C = (TunedProtocol(name) for name in "abc")


# Words.


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (5.0, 0.0, "other airtime"), (float("inf"), 1.0, "other airtime"), (0.0, 1.0, "0 times the airtime"),
        (1.04, 1.0, "the same airtime"), (0.96, 1.0, "the same airtime"), (1.06, 1.0, "1.1 times the airtime"),
        (0.5, 1.0, "0.5 times the airtime"), (1.5, 0.01, "150 times the airtime"),
    ],
)  # fmt: skip
def test_a_price_is_a_multiple_of_another(ours: float, theirs: float, words: str) -> None:
    assert _times(ours, theirs, "airtime") == words


@pytest.mark.parametrize(("value", "shown"), [(0.434, "0.43"), (99.4, "99"), (99.5, "100"), (150.4, "150"), (0.0, "0")])
def test_two_digits_count_and_all_before_the_point(value: float, shown: str) -> None:
    assert _two_digits(value) == shown


def test_times_and_sentences() -> None:
    assert [_time(value) for value in (0.1, 0.099, 12.34)] == ["0.1 s", "99 ms", "12 s"]
    assert [_long(value) for value in (99.9, 100.0, 5999.9, 6000.0)] == ["100 s", "1.67 min", "100 min", "1.67 h"]
    assert (_sentence("it is so"), _sentence("x"), _sentence("")) == ("It is so.", "X.", "")


@pytest.mark.parametrize(("other", "words"), [(0.01, ""), (0.011, "For T alone, b delivers 1.1 points more.")])
def test_a_point_more_of_one_type_is_not_named(other: float, words: str) -> None:
    rows = [
        SimpleNamespace(variant=name, protocol=name, figures={"delivery_of_reachable": figure_of({0: value})})
        for name, value in (("a", 0.0), ("b", other))
    ]
    by_type = [SimpleNamespace(event_type="T", rows=rows)]
    advice: Any = SimpleNamespace(ranking=SimpleNamespace(by_type=by_type), names={A: "a"}, chosen=A)
    assert types_words(advice) == words


def test_facts_of_the_network_fit_the_chosen_settings() -> None:
    around = Surroundings(300, 80.0, 900.0, 700.0, 200.0, 12.0, 9.0, 20.0, 1.0, 0.0004)

    def facts(settings: dict[str, Any]) -> dict[str, Any]:
        chosen = SimpleNamespace(protocol="georendezvous", settings=settings)
        advice: Any = SimpleNamespace(chosen=chosen, surroundings=around)
        return network_facts(advice)

    assert set(facts({}).values()) <= {300, 900.0, 700.0, 200.0}
    with pytest.raises(SettingsError, match="nothing_like_it"):
        facts({"nothing_like_it": 1})


# The search.


@dataclass
class Table:
    """A judge that knows the delivery of candidates by window; what it does not know failed."""

    deliveries: dict[tuple[str, str], float]
    asked: list[tuple[list[str], list[str]]] = field(default_factory=list)

    def __call__(self, candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        self.asked.append(([one.protocol for one in candidates], list(windows)))
        return {
            (one, window): Measured(self.deliveries[one.protocol, window], 0.1, 0.1)
            for one in candidates for window in windows if (one.protocol, window) in self.deliveries
        }  # fmt: skip


def test_a_candidate_that_fails_on_one_of_two_windows_is_out() -> None:
    judge = Table({("a", "u"): 0.9, ("b", "u"): 0.8, ("b", "v"): 0.7})
    found = HalvingSearch({"a": (), "b": (), "c": ()}, [["u", "v", "w"]], judge).run()
    assert found is not None
    (only,) = found.rounds
    assert (only.windows, [one.candidate for one in only.standings], only.failed) == (("u", "v"), [B], (A, C))
    assert only.standings[0].mean == Measured(0.75, 0.1, 0.1, 0.0)
    assert (found.leader, found.ended, found.tried) == (B, "all its windows are used", 1)


def test_a_setting_that_stayed_does_not_hide_the_next_that_helped() -> None:
    tunables = [Tunable(name, 2.0, 0.25, 16.0, "because") for name in ("first_s", "second_s", "third_s")]
    search = HalvingSearch({"p": tunables}, (), lambda *_: {})
    leader = TunedProtocol("p", (("first_s", 2.0), ("third_s", 4.0)))
    (further,) = search._further(leader)
    assert dict(further.chosen) == {"first_s": 2.0, "third_s": 4.0 * tunables[2].step}


def test_settings_that_are_refused_together_are_not_tried_further() -> None:
    tunable = Tunable("wait_s", 2.0, 0.25, 16.0, "because")
    refused = HalvingSearch({"p": [tunable]}, (), lambda *_: {}, accepts=lambda _, settings: settings["wait_s"] < 5.0)
    assert refused._further(TunedProtocol("p", (("wait_s", 4.0),))) == []
    (fewer,) = refused._further(TunedProtocol("p", (("wait_s", 1.0),)))
    assert dict(fewer.chosen) == {"wait_s": 1.0 / tunable.step}


# The verdict.


def test_where_time_ends_no_later_group_is_judged() -> None:
    judge = Table({(name, window): value for name, value in (("a", 0.5), ("b", 0.9)) for window in "uvw"})
    asked: list[tuple[str, ...]] = []

    def affords(some: Sequence[TunedProtocol], group: Sequence[str], _: int) -> Sequence[TunedProtocol]:
        asked.append(tuple(group))
        return some if len(asked) > 1 else []

    verdict = judge_choice([A, B], [["u"], ["v"], ["w"]], judge, {}, Goal.DELIVERY, affords)
    assert (verdict.chosen, verdict.windows, verdict.overturned) == (A, ("u",), ())
    assert (asked, [windows for _, windows in judge.asked]) == ([("v",)], [["u"]])


def test_a_choice_may_be_overturned_twice() -> None:
    of_window = {"u": (0.5, 0.9, 0.6), "v": (0.5, 0.3, 0.95), "w": (0.9, 0.9, 0.9)}
    judge = Table({(name, window): values["abc".index(name)] for window, values in of_window.items() for name in "abc"})
    verdict = judge_choice([A, B, C], [["u"], [], ["v"], ["w"]], judge, {}, Goal.DELIVERY, lambda some, *_: some)
    assert [(one.candidate, one.by) for one in verdict.overturned] == [(A, B), (B, C)]
    assert verdict.windows == ("w",)
    assert verdict.overturned[0].delivery == pytest.approx(0.4)
    assert verdict.overturned[1].delivery == pytest.approx(0.65)


def test_who_delivers_less_on_all_windows_so_far_fell_short() -> None:
    known = {
        **{(A, window): Measured(0.9, 0.1, 0.1) for window in "uv"},
        **{(B, window): Measured(value, 0.1, 0.1) for window, value in (("u", 0.9), ("v", 0.86))},
        **{(C, window): Measured(0.885, 0.1, 0.1) for window in "uvw"},
    }
    standings = tuple(standing_of(one, {"u": known[one, "u"]}) for one in (A, B, C))
    found = _fell_short(Verdict(A, ("u",), standings), known, Goal.DELIVERY)
    assert found == {B: pytest.approx(0.02), C: pytest.approx(0.015)}
    assert _fell_short(Verdict(A, ("u",), standings), known, Goal.LATENCY) == {}


def test_what_was_not_measured_of_a_candidate_is_its_protocols_mean() -> None:
    other = TunedProtocol("a", (("wait_s", 2.0),))
    known = {
        (A, "u"): Measured(0.9, 0.1, 0.1), (other, "u"): Measured(0.5, 0.1, 0.1), (other, "v"): Measured(0.5, 0.1, 0.1),
        (TunedProtocol("a", (("wait_s", 4.0),)), "v"): Measured(0.7, 0.1, 0.1), (B, "w"): Measured(0.1, 0.1, 0.1),
    }  # fmt: skip
    assert _deliveries(A, known) == {"u": 0.9, "v": pytest.approx(0.6)}
