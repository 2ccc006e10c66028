"""When a search goes on and who takes part, and what an overturned choice is judged by; on judges of fixed figures."""

from collections.abc import Sequence

import pytest

from earshot.pipeline.advice.search import (
    Goal,
    HalvingSearch,
    Measured,
    Results,
    Round,
    SearchResult,
    Standing,
    TunedProtocol,
    contenders,
    is_separated,
    standing_of,
)
from earshot.pipeline.advice.verdict import CLEARLY, Verdict, _against, _on_common_windows, judge_choice

ALL = ("a", "b", "c", "d")


def standing(name: str, delivery: float = 0.9, cost: float = 0.1, windows: int = 2) -> Standing:
    return standing_of(TunedProtocol(name), {n: Measured(delivery, cost, 0.1) for n in range(windows)})


def fixed(by_name: dict[str, float], only: Sequence[str] | None = None):
    """A judge that gives each protocol its delivery; on windows that are not in `only`, nothing finishes."""

    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        return {
            (one, window): Measured(by_name[one.protocol], 0.1, 0.1)
            for one in candidates
            for window in windows
            if only is None or window in only
        }

    return judge


def search(rungs: Sequence[Sequence[str]], affordable: Sequence[int], count: int = 4, **more) -> HalvingSearch:
    left = list(affordable)
    deliveries = dict(zip(ALL, (0.9, 0.89, 0.88, 0.87), strict=True))
    return HalvingSearch(
        dict.fromkeys(ALL[:count], ()),
        rungs,
        fixed(deliveries, **more),
        affords=lambda some, _: some[: left.pop(0)],
    )


def ended(found: SearchResult | None) -> tuple[str, int]:
    assert found is not None
    return found.ended, len(found.rounds)


RUNGS = (("u", "v"), ("u", "w"), ("u", "x"))


def test_a_first_round_with_one_candidate_is_worth_it_and_a_later_one_is_not() -> None:
    assert ended(search(RUNGS[:1], [1]).run()) == ("all its windows are used", 1)
    assert ended(search(RUNGS[:2], [4, 1]).run()) == ("its time is spent", 1)
    assert ended(search(RUNGS[:2], [4, 2]).run()) == ("all its windows are used", 2)
    assert search(RUNGS[:1], [0]).run() is None


def test_of_two_candidates_one_alone_is_not_worth_a_later_round() -> None:
    assert ended(search(RUNGS[:2], [2, 1], count=2).run()) == ("its time is spent", 1)


def test_the_only_candidate_goes_on_to_further_rounds() -> None:
    assert ended(search(RUNGS[:2], [1, 1], count=1).run()) == ("the leader is separated from all others", 2)


def test_a_later_round_in_which_nothing_finishes_ends_the_search_with_the_leader_so_far() -> None:
    found = search((("u", "v"), ("bad", "worse")), [4, 4], only=("u", "v")).run()
    assert ended(found) == ("no run finished", 1)
    assert found is not None
    assert found.leader.protocol == "a"


def test_two_rounds_are_needed_and_enough_to_settle() -> None:
    windows = ("u", "v", "w")
    judge = fixed({"good": 0.97, "poor": 0.5})
    found = HalvingSearch({"good": (), "poor": ()}, (windows, windows, windows), judge).run()
    assert ended(found) == ("the leader is separated from all others", 2)


@pytest.mark.parametrize(("before", "after"), [(2, 2), (3, 2), (4, 2), (5, 3), (8, 4)])
def test_the_better_half_goes_on_but_two_at_least(before: int, after: int) -> None:
    names = "abcdefgh"[:before]
    found = HalvingSearch(dict.fromkeys(names, ()), (), lambda *_: {})
    found.bases = {name: {} for name in names}
    found.rounds = [Round((), (), ()), Round((), tuple(standing(name) for name in names), ())]
    assert [one.protocol for one in found._next()] == list(names[:after])


def test_the_standings_of_a_search_are_the_last_rounds_then_the_best_of_each_other_protocol() -> None:
    def tuned(name: str, value: float, delivery: float) -> Standing:
        return standing_of(TunedProtocol(name, (("n", value),)), {0: Measured(delivery, 0.1, 0.1)})

    first = Round((0,), (tuned("a", 1, 0.9), tuned("b", 1, 0.8), tuned("b", 2, 0.7), tuned("c", 1, 0.6)), ())
    second = Round((0,), (tuned("a", 2, 0.95), tuned("b", 3, 0.85)), ())
    third = Round((0,), (tuned("a", 2, 0.95), tuned("a", 3, 0.94)), ())
    found = SearchResult(TunedProtocol("a"), (first, second, third), "")
    assert [str(one.candidate) for one in found.best_standings] == ["a n=2", "a n=3", "b n=3", "c n=1"]
    assert [str(one) for one in found.finalists] == ["a n=2", "a n=3"]
    assert found.tried == 7


def test_a_rival_may_deliver_less_by_exactly_the_margin() -> None:
    others = [standing("b", 0.01, 0.2), standing("c", 0.01, 0.3)]
    for delivery, expected in ((0.0, ["a", "b", "d"]), (-0.001, ["a", "b", "c"])):
        found = contenders([standing("a", 0.02, 0.4), *others, standing("d", delivery, 0.05)])
        assert [one.protocol for one in found] == expected


@pytest.mark.parametrize(
    ("leads_by", "cheaper_by", "apart"),
    [
        (0.02, 0.0, True),
        (0.01, 0.0, False),
        (0.0, 0.1, True),
        (0.0, 0.0, False),
        (-0.005, 0.1, True),
        (-0.02, 0.1, False),
        (0.005, -0.1, False),
    ],
)
def test_who_is_separated_where_windows_agree(leads_by: float, cheaper_by: float, apart: bool) -> None:
    leader, other = standing("a", leads_by, 1.0, windows=3), standing("b", 0.0, 1.0 + cheaper_by, windows=3)
    assert is_separated(leader, other, Goal.DELIVERY) == apart


def test_exactly_the_tolerance_behind_is_too_much_to_be_separated_by_price() -> None:
    leader, other = standing("a", 0.0, 1.0, windows=3), standing("b", 0.01, 2.0, windows=3)
    assert not is_separated(leader, other, Goal.DELIVERY)


def test_a_price_that_is_a_multiple_in_every_window_separates_however_busy_the_windows_are() -> None:
    busy = [0.2, 0.02, 0.001]
    leader = standing_of(TunedProtocol("a"), {n: Measured(0.9, cost, 0.1) for n, cost in enumerate(busy)})
    other = standing_of(TunedProtocol("b"), {n: Measured(0.9, 1.3 * cost, 0.1) for n, cost in enumerate(busy)})
    mixed = standing_of(
        TunedProtocol("c"),
        {n: Measured(0.9, t * cost, 0.1) for n, (t, cost) in enumerate(zip((2, 1, 0.9), busy, strict=True))},
    )
    assert is_separated(leader, other, Goal.DELIVERY)
    assert not is_separated(other, leader, Goal.DELIVERY)
    assert not is_separated(leader, mixed, Goal.DELIVERY)


# The verdict.


def verdict(*standings: Standing, chosen: str = "a") -> Verdict:
    return Verdict(TunedProtocol(chosen), ("u",), standings)


def test_a_tenth_more_is_not_clearly_dearer_and_exactly_the_tolerance_is_not_less() -> None:
    assert CLEARLY == 0.1
    for cost, overturned in ((1.0, False), (1.09, False), (1.11, True)):
        speaks = _against(verdict(standing("b", 0.9, 1.0), standing("a", 0.9, cost)), Goal.DELIVERY)
        assert (speaks is not None) == overturned
    for delivery, overturned in ((0.01, False), (0.011, True)):
        speaks = _against(verdict(standing("b", delivery, 1.0), standing("a", 0.0, 1.0)), Goal.DELIVERY)
        assert (speaks is not None) == overturned
    assert _against(verdict(standing("a", 0.5, 9.0), standing("b", 0.9, 1.0)), Goal.DELIVERY) is None


def test_the_price_is_compared_where_the_other_one_has_one() -> None:
    speaks = _against(verdict(standing("b", 0.5, 0.0), standing("a", 0.0, 3.0)), Goal.DELIVERY)
    assert speaks is not None
    assert (speaks.delivery, speaks.price, speaks.by) == (0.5, 0.0, TunedProtocol("b"))


def test_unseen_windows_are_counted_in_words() -> None:
    assert Verdict(TunedProtocol("a"), ("u",), ()).windows_words == "1 unseen window"
    assert Verdict(TunedProtocol("a"), ("u", "v"), ()).windows_words == "2 unseen windows"


def test_candidates_are_compared_on_the_windows_that_all_of_them_have() -> None:
    a, b = TunedProtocol("a"), TunedProtocol("b")
    known = {
        (a, "u"): Measured(0.9, 0.1, 0.1), (b, "u"): Measured(0.8, 0.1, 0.1),
        (a, "v"): Measured(0.7, 0.1, 0.1), (b, "v"): Measured(0.6, 0.1, 0.1),
        (b, "w"): Measured(1.0, 0.1, 0.1),
    }  # fmt: skip
    found = _on_common_windows([a, b], known, Goal.DELIVERY)
    assert [(one.candidate, list(one.by_window), round(one.mean.delivery, 9)) for one in found] == [
        (a, ["u", "v"], 0.8), (b, ["u", "v"], 0.7),
    ]  # fmt: skip


@pytest.mark.parametrize(("deliveries", "affordable"), [({"a": 0.5, "b": 0.9}, 0), ({"a": 0.9, "b": 0.5}, 2)])
def test_nothing_more_is_measured_without_time_or_where_nothing_speaks_against_the_choice(
    deliveries: dict[str, float], affordable: int
) -> None:
    asked = []

    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        asked.append(tuple(windows))
        return fixed(deliveries)(candidates, windows)

    finalists = [TunedProtocol("a"), TunedProtocol("b")]
    judge_choice(finalists, [["u"], ["v"]], judge, {}, Goal.DELIVERY, lambda some, *_: some[:affordable])
    assert asked == [("u",)]
