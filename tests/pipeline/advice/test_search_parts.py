"""The parts of the search by themselves: who is separated, what is combined, when it is settled."""

from collections.abc import Sequence

from earshot.pipeline.advice.search import (
    Goal,
    HalvingSearch,
    Measured,
    Results,
    Round,
    Standing,
    TunedProtocol,
    as_good,
    contenders,
    is_separated,
    ranked,
    standing_of,
)
from earshot.pipeline.advice.verdict import judge_choice
from earshot.pipeline.advice.windows import QUICK, THOROUGH, Lengths, TraceSlot, _spread, plan_windows
from earshot.protocols.tuning import Tunable

INTERVAL = Tunable("interval_s", 2.0, 0.25, 16.0, "because")
COPIES = Tunable("copies", 2, 1, 8, "because")
WAIT = Tunable("wait_s", 1.0, 0.1, 9.0, "because")


def standing(name: str, *some: Measured, **chosen: float) -> Standing:
    return standing_of(TunedProtocol(name, tuple(sorted(chosen.items()))), dict(enumerate(some)))


def searching(*standings: Standing) -> HalvingSearch:
    """A search that has done one round."""
    found = HalvingSearch({"p": (INTERVAL, COPIES, WAIT), "q": ()}, (), lambda *_: {})
    found.rounds = [Round((), standings, ())]
    found.bases = {"p": {"interval_s": 2.0, "copies": 2, "wait_s": 1.0}, "q": {}}
    return found


def test_three_windows_are_enough_to_separate() -> None:
    more, less = ([Measured(delivery + 0.001 * n, 0.1, 0.1) for n in range(3)] for delivery in (0.97, 0.9))
    assert is_separated(standing("a", *more), standing("b", *less), Goal.DELIVERY)
    assert not is_separated(standing("a", *more[:2]), standing("b", *less[:2]), Goal.DELIVERY)


def test_of_equal_delivery_a_lower_price_separates() -> None:
    cheap, dear = ([Measured(0.97, cost + 0.001 * n, 0.1) for n in range(3)] for cost in (0.1, 0.2))
    assert is_separated(standing("a", *cheap), standing("b", *dear), Goal.DELIVERY)
    assert not is_separated(standing("a", *dear), standing("b", *cheap), Goal.DELIVERY)
    assert not is_separated(standing("a", *cheap), standing("b", *dear), Goal.LATENCY)


def test_two_are_as_good_up_to_the_tolerance_and_a_twentieth_of_the_price() -> None:
    def alike(delivery: float, cost: float, goal: Goal = Goal.DELIVERY) -> bool:
        pair = standing("a", Measured(0.5, 1.0, 1.0)), standing("b", Measured(delivery, cost, 1.0))
        assert as_good(*pair, goal) == as_good(*reversed(pair), goal)
        return as_good(*pair, goal)

    assert [alike(0.491, 1.0), alike(0.489, 1.0), alike(0.46, 1.0, Goal.AIRTIME), alike(0.44, 1.0, Goal.AIRTIME)] == [
        True, False, True, False,
    ]  # fmt: skip
    assert [alike(0.5, 1.05), alike(0.5, 1.06), alike(0.5, 0.96), alike(0.5, 0.94)] == [True, False, True, False]


def test_a_difference_of_exactly_the_tolerance_is_none() -> None:
    nothing, little = (standing(name, *2 * [Measured(delivery, cost, 0.1)]) for name, delivery, cost in
                       (("a", 0.0, 0.1), ("b", 0.01, 0.2)))  # fmt: skip
    assert [one.candidate.protocol for one in ranked([little, nothing], Goal.DELIVERY)] == ["a", "b"]
    assert as_good(standing("a", Measured(0.0, 0.0, 0.0)), standing("b", Measured(0.01, 0.0, 0.0)), Goal.DELIVERY)
    assert as_good(standing("a", Measured(0.0, 0.0, 0.0)), standing("b", Measured(0.05, 0.0, 0.0)), Goal.LATENCY)


def test_a_search_is_settled_only_if_everybody_else_is_apart() -> None:
    def measured(delivery: float) -> list[Measured]:
        return [Measured(delivery + 0.001 * n, 0.1, 0.1) for n in range(3)]

    near = [Measured(0.95 + 0.1 * (n % 2), 0.1, 0.1) for n in range(3)]
    leader = standing("q", *measured(0.97))
    assert searching(leader, standing("p", *measured(0.9))).is_settled()
    assert not searching(leader, standing("p", *near), standing("p", *measured(0.5), copies=4)).is_settled()


def test_a_search_whose_leader_suggests_more_is_not_settled() -> None:
    some = [Measured(0.97, 0.1, 0.1)] * 3
    assert not searching(standing("p", *some, interval_s=4.0, copies=2, wait_s=1.0)).is_settled()


def test_the_changes_of_the_three_best_are_combined_two_by_two() -> None:
    base = {"interval_s": 2.0, "copies": 2, "wait_s": 1.0}
    one = Measured(0.9, 0.1, 0.1)
    changes = [{"interval_s": 4.0}, {"copies": 4}, {"wait_s": 2.0}, {"wait_s": 0.5}]
    search = searching(*(standing("p", one, **{**base, **change}) for change in changes), standing("q", one))
    together = search._together(search.rounds[-1].standings[0].candidate)
    assert [dict(found.chosen) for found in together] == [
        {**base, "interval_s": 4.0, "copies": 4},
        {**base, "interval_s": 4.0, "wait_s": 2.0},
        {**base, "copies": 4, "wait_s": 2.0},
    ]


def test_what_two_changed_alike_is_that_of_the_better_one() -> None:
    base = {"interval_s": 2.0, "copies": 2, "wait_s": 1.0}
    one = Measured(0.9, 0.1, 0.1)
    search = searching(standing("p", one, **{**base, "copies": 4}), standing("p", one, **{**base, "copies": 1}))
    (both,) = search._together(search.rounds[-1].standings[0].candidate)
    assert dict(both.chosen) == {**base, "copies": 4}


def test_a_value_that_helped_is_taken_one_step_further_on_its_side() -> None:
    search = searching()
    leader = TunedProtocol("p", (("copies", 4), ("interval_s", 1.0), ("wait_s", 1.0)))
    assert [dict(one.chosen) for one in search._further(leader)] == [
        {"copies": 4, "interval_s": 0.5, "wait_s": 1.0},
        {"copies": 8, "interval_s": 1.0, "wait_s": 1.0},
    ]
    assert search._further(TunedProtocol("p")) == []


def test_a_choice_is_judged_beside_two_others_where_there_are_two() -> None:
    def named(name: str, delivery: float) -> Standing:
        return standing("p", Measured(delivery, 0.1, 0.1), copies=float(name))

    first, *others = (named(name, delivery) for name, delivery in (("1", 0.9), ("2", 0.6), ("3", 0.5), ("4", 0.4)))
    assert [dict(one.chosen)["copies"] for one in contenders([first, *others])] == [1.0, 2.0, 3.0]


def test_equal_candidates_stand_in_the_order_of_their_names() -> None:
    some = [standing(name, Measured(0.9, 0.1, 0.1), Measured(0.9, 0.1, 0.1)) for name in "bca"]
    assert [one.candidate.protocol for one in ranked(some, Goal.DELIVERY)] == ["a", "b", "c"]


def test_the_means_are_over_all_windows() -> None:
    found = standing("a", Measured(0.8, 0.1, 1.0, 5.0), Measured(1.0, 0.3, 2.0, 7.0)).mean
    assert (found.delivery, found.cost, found.latency_s, found.took_s) == (0.9, 0.2, 1.5, 6.0)


def sizes(lengths: Lengths) -> list[tuple[int, float]]:
    presence = [(0.0, 200.0), (300.0, 90.0), (600.0, 40.0)]
    return [(len(rung), rung[0].duration_s) for rung in plan_windows(presence, 900.0, lengths).rungs]


def test_rungs_have_these_numbers_and_lengths_of_windows() -> None:
    assert sizes(QUICK) == [(2, 22.0), (3, 32.0), (3, 50.0), (5, 50.0)]
    assert sizes(THOROUGH) == [(2, 30.0), (3, 40.0), (4, 75.0), (6, 75.0)]


def test_warm_up_and_cool_down_take_at_most_a_third_and_a_tenth() -> None:
    short, long = TraceSlot(0.0, 30.0), TraceSlot(10.0, 400.0)
    assert [(QUICK.warm_up_of(one), QUICK.cool_down_of(one)) for one in (short, long)] == [(10.0, 3.0), (12.0, 3.0)]
    assert QUICK.cool_down_of(TraceSlot(0.0, 20.0)) == 2.0


def test_slots_without_nodes_are_left_out_where_there_are_others() -> None:
    slots = [TraceSlot(float(n), n + 1.0, present=present) for n, present in enumerate((0.0, 5.0, 9.0, 0.0, 7.0))]
    assert [one.present for one in _spread(slots, 5)] == [9.0, 7.0, 5.0]
    assert [one.present for one in _spread(slots, 2)] == [9.0, 5.0]
    assert [one.present for one in _spread(slots, 1)] == [9.0]
    assert [one.present for one in _spread(slots[:2], 2)] == [5.0, 0.0]


def test_the_cheapest_is_a_rival_only_if_it_delivers_nearly_as_much() -> None:
    def named(protocol: str, delivery: float, cost: float) -> Standing:
        return standing(protocol, Measured(delivery, cost, 0.1))

    others = [named("b", 0.9, 0.2), named("c", 0.9, 0.3)]
    for delivery, cheap in ((0.885, ["d"]), (0.87, [])):
        found = contenders([named("a", 0.9, 0.1), *others, named("e", 0.5, 0.01), named("d", delivery, 0.05)])
        assert [one.protocol for one in found] == ["a", "b", *(cheap or ["c"])]


def test_protocols_near_the_best_and_the_better_half_stay() -> None:
    def kept(*deliveries: float) -> list[str]:
        some = [
            standing(name, Measured(delivery, 0.1, 0.1)) for name, delivery in zip("abcdefgh", deliveries, strict=False)
        ]
        return [one.candidate.protocol for one in searching()._protocols_to_keep(some)]

    assert kept(0.9, 0.5, 0.4, 0.3, 0.2) == ["a", "b", "c"]
    assert kept(0.9, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05) == ["a", "b", "c", "d"]
    assert kept(0.05, 0.04, 0.03, 0.0, 0.0) == ["a", "b", "c", "d", "e"]
    assert kept(0.06, 0.04, 0.03, 0.0, 0.02) == ["a", "b", "c", "e"]


def test_a_candidate_that_fails_on_one_of_the_unseen_windows_is_out() -> None:
    first, second = TunedProtocol("a"), TunedProtocol("b")

    def judge(*_: object) -> Results:
        one = Measured(0.9, 0.1, 1.0)
        return {(first, "u"): one, (second, "u"): one, (second, "v"): one}

    verdict = judge_choice([first, second], [["u", "v"]], judge, {}, Goal.DELIVERY, lambda some, *_: some)
    assert (verdict.chosen, verdict.windows, len(verdict.standings)) == (second, ("u", "v"), 1)


def test_a_price_of_nothing_is_not_divided_by() -> None:
    first, second = TunedProtocol("a"), TunedProtocol("b")

    def judge(_: object, windows: Sequence[str]) -> Results:
        delivery = {first: 0.9, second: 0.905}
        return {(one, window): Measured(delivery[one], 0.0, 1.0) for one in delivery for window in windows}

    groups = [["u", "v"], ["w", "x"]]
    verdict = judge_choice([first, second], groups, judge, {}, Goal.DELIVERY, lambda some, *_: some)
    assert (verdict.chosen, verdict.windows, verdict.overturned) == (first, ("u", "v"), ())


def test_a_second_judgement_has_other_parts_of_a_long_trace() -> None:
    first, second = plan_windows([(0.0, 200.0), (300.0, 90.0), (600.0, 40.0)], 900.0, THOROUGH).unseen
    assert (len(first), len(second)) == (3, 3)
    assert not any(one.start_s < other.end_s and other.start_s < one.end_s for one in first for other in second)


def test_two_slots_with_nodes_are_enough_to_leave_out_the_others() -> None:
    slots = [TraceSlot(float(n), n + 1.0, present=present) for n, present in enumerate((0.0, 5.0, 9.0))]
    assert [one.present for one in _spread(slots, 3)] == [9.0, 5.0]
