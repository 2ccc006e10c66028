"""The whole procedure, without Spark, on networks whose best protocol is known: also where a part of them misleads."""

from collections.abc import Sequence

import pytest

from earshot.errors import TraceError
from earshot.pipeline.advice.search import Goal, HalvingSearch, Measured, Results, TunedProtocol
from earshot.pipeline.advice.verdict import Overturned, Verdict, judge_choice
from earshot.pipeline.advice.windows import QUICK, TraceSlot, plan_windows

CARRIER, RELAY, FLOOD = (TunedProtocol(name) for name in ("carrier", "relay", "flood"))
FILLING_UP = [(10.0 * n, 60.0 + 7.0 * n) for n in range(90)]
"Fifteen minutes in which a town fills up."


class Town:
    """Where nodes are many, everybody reaches everybody, and the relay is cheapest. Where they are few, only the
    carrier reaches those who meet later."""

    def __init__(self) -> None:
        self.asked: list[tuple[TraceSlot, ...]] = []

    def __call__(self, candidates: Sequence[TunedProtocol], windows: Sequence[TraceSlot]) -> Results:
        self.asked.append(tuple(windows))
        return {(one, window): self.measured(one, window) for one in candidates for window in windows}

    def measured(self, candidate: TunedProtocol, window: TraceSlot) -> Measured:
        few = max(0.0, (400.0 - window.present) / 400.0)
        delivery = {"carrier": 1.0 - 0.15 * few, "relay": 1.0 - 0.6 * few, "flood": 1.0 - 0.5 * few}
        cost = {"carrier": 0.13, "relay": 0.045, "flood": 2.7}
        return Measured(delivery[candidate.protocol], cost[candidate.protocol], 1.0, 1.0)


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_a_dense_window_where_all_deliver_alike_does_not_decide(rounds: int):
    plan = plan_windows(FILLING_UP, 900.0, QUICK)
    town = Town()
    found = HalvingSearch({"relay": (), "flood": (), "carrier": ()}, plan.rungs[:rounds], town).run()
    assert found is not None
    assert found.leader == CARRIER
    verdict = judge_choice(found.finalists, plan.unseen, town, {}, Goal.DELIVERY, lambda some, *_: some)
    assert (verdict.chosen, verdict.windows, verdict.overturned) == (CARRIER, plan.unseen[0], ())


def judge_relay_first(town: Town, **more) -> tuple[Verdict, Town]:
    """A search that saw dense windows only chose the relay."""
    plan = plan_windows(FILLING_UP, 900.0, QUICK)
    densest = max(plan.rungs[-1], key=lambda one: one.present)
    measured = town([RELAY, CARRIER, FLOOD], [densest])
    settled = {"affords": lambda some, *_: some, **more}
    return judge_choice([RELAY, CARRIER, FLOOD], plan.unseen, town, measured, Goal.DELIVERY, **settled), town


def test_a_choice_that_unseen_windows_speak_against_is_made_again_and_judged_on_others():
    plan = plan_windows(FILLING_UP, 900.0, QUICK)
    verdict, town = judge_relay_first(Town())
    assert verdict.chosen == CARRIER
    assert verdict.windows == plan.unseen[1]
    assert [one.candidate for one in verdict.standings] == [CARRIER, FLOOD, RELAY]
    assert set(verdict.own.by_window) == set(plan.unseen[1]), "no figure is from a window that had a part in the choice"
    (given_up,) = verdict.overturned
    assert (given_up.candidate, given_up.by) == (RELAY, CARRIER)
    assert given_up.delivery > 0.1
    assert town.asked[1:] == [plan.unseen[0], plan.unseen[1]]


def test_without_time_for_further_windows_the_choice_stands_and_is_judged_by_those_it_had():
    plan = plan_windows(FILLING_UP, 900.0, QUICK)
    verdict, _ = judge_relay_first(Town(), affords=lambda *_: [])
    assert (verdict.chosen, verdict.windows, verdict.overturned) == (RELAY, plan.unseen[0], ())
    assert verdict.standings[0].candidate == CARRIER, "the regret is reported"


def test_a_second_judgement_is_asked_for_the_choice_beside_two_rivals_at_least():
    asked = []

    def affords(some: Sequence[TunedProtocol], windows: Sequence[TraceSlot], fewest: int) -> Sequence[TunedProtocol]:
        asked.append((list(some), tuple(windows), fewest))
        return some[:fewest]

    plan = plan_windows(FILLING_UP, 900.0, QUICK)
    verdict, _ = judge_relay_first(Town(), affords=affords)
    assert asked == [([CARRIER, FLOOD, RELAY], plan.unseen[1], 3)]
    assert len(verdict.standings) == 3


def judged(by_name: dict[str, tuple[float, float]], groups: Sequence[Sequence[str]] = (("u", "v"), ("w",))) -> Verdict:
    """Everybody with the same delivery and cost on all windows; the first is the choice."""

    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        return {(one, window): Measured(*by_name[one.protocol], 1.0) for one in candidates for window in windows}

    return judge_choice(
        [TunedProtocol(name) for name in by_name], groups, judge, {}, Goal.DELIVERY, lambda some, *_: some
    )


@pytest.mark.parametrize("measured_as", ["first", "first with other settings"])
@pytest.mark.parametrize(
    ("seen", "chosen", "short"),
    [
        (0.7, "first", {TunedProtocol("other"): pytest.approx(0.2 / 3)}),
        (0.89, "other", {}),  # over all windows it lacks less than the tolerance
    ],
)
def test_who_fell_short_in_the_search_does_not_speak_against_the_choice(measured_as, seen, chosen, short):
    """The unseen windows leave out the phase in which the cheaper one fails."""
    first, other = TunedProtocol("first"), TunedProtocol("other")
    kin = first if measured_as == "first" else TunedProtocol("first", (("wait", 2.0),))

    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        cost = {"first": 0.1, "other": 0.01}
        return {(one, window): Measured(0.9, cost[one.protocol], 1.0) for one in candidates for window in windows}

    measured = {(kin, "rush"): Measured(0.9, 0.1, 1.0), (other, "rush"): Measured(seen, 0.01, 1.0)}
    verdict = judge_choice([first, other], (("u", "v"), ("w",)), judge, measured, Goal.DELIVERY, lambda some, *_: some)
    assert (verdict.chosen.protocol, verdict.fell_short) == (chosen, short)
    assert verdict.standings[0].candidate == other, "the regret is reported"


def test_who_fell_short_is_not_chosen_but_judged_again():
    first, second, other = (TunedProtocol(name) for name in ("first", "second", "other"))
    cost = {first: 0.1, second: 0.05, other: 0.01}

    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        return {(one, window): Measured(0.9, cost[one], 1.0) for one in candidates for window in windows}

    measured = {(one, "rush"): Measured(0.5 if one == other else 0.9, cost[one], 1.0) for one in cost}
    verdict = judge_choice(
        [first, second, other], (("u", "v"), ("w",)), judge, measured, Goal.DELIVERY, lambda some, *_: some
    )
    assert (verdict.chosen, verdict.windows) == (second, ("w",))
    assert [one.by for one in verdict.overturned] == [second]
    assert [one.candidate for one in verdict.standings] == [other, second, first]
    assert verdict.fell_short == {other: pytest.approx(0.4 / 4)}


@pytest.mark.parametrize(
    ("other", "against"),
    [
        ((0.905, 0.1), None),  # a tie in delivery at the same price
        ((0.9, 0.095), None),  # and at nearly the same price
        ((0.9, 0.05), Overturned(TunedProtocol("first"), TunedProtocol("other"), 0.0, 1.0)),
        ((1.0, 0.4), Overturned(TunedProtocol("first"), TunedProtocol("other"), pytest.approx(0.1), -0.75)),
    ],
)
def test_only_a_clear_difference_speaks_against_a_choice(other, against):
    verdict = judged({"first": (0.9, 0.1), "other": other})
    assert verdict.overturned == (() if against is None else (against,))
    assert verdict.chosen.protocol == ("first" if against is None else "other")
    assert verdict.windows == (("u", "v") if against is None else ("w",))


def test_who_fails_on_unseen_windows_is_out_and_the_next_takes_its_place():
    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        works = [one for one in candidates if one != RELAY]
        return {(one, window): Measured(0.9, 0.1, 1.0) for one in works for window in windows}

    verdict = judge_choice([RELAY, FLOOD, CARRIER], [["u"], ["v"]], judge, {}, Goal.DELIVERY, lambda some, *_: some)
    assert (verdict.chosen, verdict.windows) == (FLOOD, ("u",))


def test_further_windows_in_which_nobody_receives_leave_the_verdict_and_first_ones_are_an_error():
    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        delivery = {RELAY: 0.5, CARRIER: 0.9}
        return {(one, window): Measured(delivery[one], 0.1, 1.0) for one in candidates for window in windows if window}

    asked = (judge, {}, Goal.DELIVERY, lambda some, *_: some)
    assert judge_choice([RELAY, CARRIER], [["u"], [""]], *asked).windows == ("u",)
    with pytest.raises(TraceError, match="no event had an expected receiver in the windows that the search did not"):
        judge_choice([RELAY, CARRIER], [[""], ["u"]], *asked)


def test_a_rivals_windows_count_by_the_choices_protocol_where_the_choice_itself_was_not_measured():
    """The search varied the relay: on its first window two others of its kind delivered 0.6 and 0.8, the flood 0.72."""
    quick, slow = (TunedProtocol("relay", (("wait", wait),)) for wait in (1.0, 2.0))
    measured = {
        (one, "s"): Measured(delivery, 0.1, 1.0) for one, delivery in ((quick, 0.6), (slow, 0.8), (FLOOD, 0.72))
    }

    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        delivery = {RELAY: 0.90, FLOOD: 0.80}
        return {(one, window): Measured(delivery[one], 0.1, 1.0) for one in candidates for window in windows}

    verdict = judge_choice([RELAY, FLOOD], [["u"]], judge, measured, Goal.DELIVERY, lambda some, *_: some)
    assert verdict.fell_short == {FLOOD: pytest.approx(((0.7 - 0.72) + (0.9 - 0.8)) / 2)}


class Beside:
    """Both deliver alike; the other is a little dearer on the first windows and half as dear on the further ones."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        self.asked.append(tuple(windows))
        cost = {"u": 0.11, "v": 0.11, "w": 0.05, "x": 0.05}
        return {
            (one, window): Measured(0.9, 0.1 if one == RELAY else cost[window], 1.0)
            for one in candidates
            for window in windows
            if window in cost
        }


def test_a_choice_that_stands_is_judged_on_the_further_windows_too_where_there_is_time():
    judge, wanted = Beside(), []

    def has_time(some: Sequence[TunedProtocol], windows: Sequence[str]) -> bool:
        wanted.append((list(some), tuple(windows)))
        return True

    groups = [["u", "v"], ["w", "x"]]
    verdict = judge_choice([RELAY, FLOOD], groups, judge, {}, Goal.DELIVERY, lambda some, *_: some, has_time)
    assert wanted == [([RELAY, FLOOD], ("w", "x"))], "the choice first, and everybody beside it"
    assert judge.asked == [("u", "v"), ("w", "x")]
    assert (verdict.chosen, verdict.windows, verdict.overturned) == (RELAY, ("u", "v", "w", "x"), ())
    assert [one.candidate for one in verdict.standings] == [FLOOD, RELAY], "its regret is not hidden"
    assert verdict.standings[0].mean.cost == pytest.approx(0.08)
    assert set(verdict.own.by_window) == {"u", "v", "w", "x"}


def test_further_windows_are_left_alone_without_time_rivals_or_receivers():
    settled = ({}, Goal.DELIVERY, lambda some, *_: some)
    for finalists, groups, has_time, asked in (
        ([RELAY, FLOOD], [["u"], ["w"]], False, [("u",)]),
        ([RELAY], [["u"], ["w"]], True, [("u",)]),
        ([RELAY, FLOOD], [["u"], [""]], True, [("u",), ("",)]),
        ([RELAY, FLOOD], [["u"], []], True, [("u",)]),
    ):
        judge = Beside()
        verdict = judge_choice(finalists, groups, judge, *settled, lambda *_, has_time=has_time: has_time)
        assert (verdict.chosen, verdict.windows, judge.asked) == (RELAY, ("u",), asked)


def test_a_choice_that_fails_on_further_windows_keeps_the_figures_it_had():
    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        works = [(one, window) for one in candidates for window in windows if (one, window) != (RELAY, "w")]
        return {place: Measured(0.9, 0.1, 1.0) for place in works}

    groups = [["u"], ["w"]]
    verdict = judge_choice([RELAY, FLOOD], groups, judge, {}, Goal.DELIVERY, lambda some, *_: some, lambda *_: True)
    assert (verdict.chosen, verdict.windows) == (RELAY, ("u",))
