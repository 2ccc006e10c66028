"""The search, on artificial judges whose best candidate is known."""

import math
from collections.abc import Sequence
from random import Random

import pytest

from earshot.errors import RunTooSlow
from earshot.pipeline.advice.search import (
    Goal,
    HalvingSearch,
    Measured,
    Results,
    Standing,
    TunedProtocol,
    as_good,
    contenders,
    is_separated,
    ranked,
)
from earshot.pipeline.campaigns import sweeps
from earshot.protocols.tuning import Tunable

INTERVAL = Tunable("interval_s", 2.0, 0.25, 16.0, "because")
COPIES = Tunable("copies", 2, 1, 8, "because")
RUNGS = (("a", "b"), ("a", "c"), ("c", "d", "e"), ("c", "d", "e", "f"), ("c", "d", "e", "f", "g", "h"))


class Judge:
    """Delivery falls with the distance from each protocol's best settings; windows add the same noise to all."""

    def __init__(self, best: dict[str, tuple[float, float, float]], noise: float = 0.003) -> None:
        self.best = best
        self.noise = noise
        self.asked: list[tuple[int, int]] = []

    def measured(self, candidate: TunedProtocol, window: str) -> Measured:
        delivery, interval_s, copies = self.best[candidate.protocol]
        wanted = {"interval_s": interval_s, "copies": copies}
        chosen = dict(candidate.chosen)
        off = sum(abs(math.log2(chosen[name] / best)) if name in chosen else 2.5 for name, best in wanted.items())
        shared = Random(window).gauss(0.0, self.noise)
        own = Random(f"{window}{candidate}").gauss(0.0, self.noise / 4.0)
        cost = 0.1 * (1.0 + 0.2 * off) * (2.0 if candidate.protocol == "dear" else 1.0)
        return Measured(max(0.0, delivery - 0.03 * off + shared + own), cost + own / 10.0, off + 1.0, 1.0)

    def __call__(self, candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        self.asked.append((len(candidates), len(windows)))
        return {(one, window): self.measured(one, window) for one in candidates for window in windows}


def search(best: dict[str, tuple[float, float, float]], goal: Goal = Goal.DELIVERY, **more) -> HalvingSearch:
    return HalvingSearch(dict.fromkeys(best, (INTERVAL, COPIES)), RUNGS, Judge(best), goal, **more)


@pytest.mark.parametrize(
    ("interval_s", "copies"), [(2.0, 2), (4.0, 2), (1.0, 1), (4.0, 4), (8.0, 2), (0.5, 1), (8.0, 4)]
)
def test_the_best_protocol_and_its_best_settings_are_found(interval_s: float, copies: int):
    best = {"good": (0.97, interval_s, copies), "fair": (0.9, 1.0, 4), "poor": (0.5, 2.0, 2), "none": (0.1, 1.0, 1)}
    found = search(best).run()
    assert found is not None
    assert found.leader.protocol == "good"
    assert dict(found.leader.chosen) == {"interval_s": interval_s, "copies": copies}
    assert found.ended == "the leader is separated from all others"


def test_of_equal_delivery_the_cheaper_one_leads():
    best = {"cheap": (0.97, 2.0, 2), "dear": (0.97, 2.0, 2), "other": (0.6, 2.0, 2)}
    found = search(best).run()
    assert found is not None
    assert found.leader.protocol == "cheap"


def test_rounds_have_fewer_candidates_on_more_windows():
    # All alike but for chance: nobody is separated early.
    best = dict.fromkeys(("a", "b", "c", "d", "e", "f"), (0.97, 2.0, 2))
    trial = HalvingSearch(dict.fromkeys(best, (INTERVAL, COPIES)), RUNGS, Judge(best, 0.3))
    found = trial.run()
    assert found is not None
    asked = trial.judge.asked  # type: ignore[attr-defined]
    assert asked[0] == (12, 2)
    counts = [count for count, _ in asked[1:]]
    assert counts == sorted(counts, reverse=True)


def test_a_search_without_time_says_so_and_keeps_its_leader():
    best = {"good": (0.97, 2.0, 2), "fair": (0.9, 2.0, 2)}
    left = [100, 3, 0]

    def affords(some: Sequence[TunedProtocol], windows: Sequence[str]) -> Sequence[TunedProtocol]:
        del windows
        return some[: left.pop(0)]

    found = search(best, affords=affords).run()
    assert found is not None
    assert (found.leader.protocol, found.ended, len(found.rounds)) == ("good", "its time is spent", 2)


def test_a_candidate_that_fails_on_a_window_is_out_and_a_window_without_results_is_left_out():
    def judge(candidates: Sequence[TunedProtocol], windows: Sequence[str]) -> Results:
        good = {
            (one, window): Measured(0.9, 0.1, 0.1)
            for one in candidates
            for window in windows
            if one.protocol == "works" and window != "b"
        }
        return good

    found = HalvingSearch({"works": (), "fails": ()}, RUNGS, judge).run()
    assert found is not None
    assert found.leader == TunedProtocol("works")
    assert found.rounds[0].failed == (TunedProtocol("fails"),)
    assert found.rounds[1].windows == ("a", "c")


def test_nothing_that_can_be_judged_is_no_result():
    assert HalvingSearch({"fails": ()}, RUNGS, lambda *_: {}).run() is None


def test_settings_that_a_protocol_refuses_are_not_tried():
    best = {"good": (0.97, 8.0, 8)}
    trial = search(best, accepts=lambda _, settings: settings.get("interval_s", 0.0) <= 4.0)
    found = trial.run()
    assert found is not None
    tried = [one.candidate for one_round in found.rounds for one in one_round.standings]
    assert max(dict(one.chosen).get("interval_s", 0.0) for one in tried) == 4.0


def standing(name: str, *measured: Measured) -> Standing:
    mean = Measured(*(sum(values) / len(measured) for values in zip(*map(values_of, measured), strict=True)))
    return Standing(TunedProtocol(name), mean, dict(enumerate(measured)))


def values_of(one: Measured) -> tuple[float, float, float]:
    return one.delivery, one.cost, one.latency_s


def test_ranking_by_delivery_then_price():
    a, b, c = (
        standing("a", *2 * [Measured(0.97, 0.2, 0.1)]),
        standing("b", *2 * [Measured(0.965, 0.1, 0.3)]),
        standing("c", *2 * [Measured(0.93, 0.05, 0.05)]),
    )
    assert [one.candidate.protocol for one in ranked([a, b, c], Goal.DELIVERY)] == ["b", "a", "c"]
    assert [one.candidate.protocol for one in ranked([a, b, c], Goal.AIRTIME)] == ["c", "b", "a"]
    assert [one.candidate.protocol for one in ranked([a, b, c], Goal.LATENCY)] == ["c", "a", "b"]


def test_on_one_window_only_delivery_counts():
    a, b, c = (
        standing("a", Measured(0.97, 0.2, 0.1)),
        standing("b", Measured(0.965, 0.1, 0.3)),
        standing("c", Measured(0.965, 0.05, 0.05)),
    )
    for goal in Goal:
        assert ranked([a, b, c], goal)[0].candidate.protocol == "a"
    assert [one.candidate.protocol for one in ranked([a, b, c], Goal.DELIVERY)] == ["a", "c", "b"]


def test_separation_needs_three_windows_that_agree():
    many = [Measured(0.97 + 0.001 * n, 0.1, 0.1) for n in range(4)]
    fewer = [Measured(0.9 + 0.001 * n, 0.1, 0.1) for n in range(4)]
    mixed = [Measured(0.9 + 0.08 * (n % 2), 0.1, 0.1) for n in range(4)]
    assert is_separated(standing("a", *many), standing("b", *fewer), Goal.DELIVERY)
    assert not is_separated(standing("a", *many[:2]), standing("b", *fewer[:2]), Goal.DELIVERY)
    assert not is_separated(standing("a", *many), standing("b", *mixed), Goal.DELIVERY)
    assert as_good(standing("a", Measured(0.97, 0.1, 1)), standing("b", Measured(0.965, 0.104, 1)), Goal.DELIVERY)
    assert not as_good(standing("a", Measured(0.97, 0.1, 1)), standing("b", Measured(0.965, 0.12, 1)), Goal.DELIVERY)


def test_a_run_that_takes_too_much_processor_time_is_stopped(monkeypatch: pytest.MonkeyPatch):
    clock = iter([100.0, 101.0, 103.0])
    monkeypatch.setattr(sweeps.time, "process_time", lambda: next(clock))
    watch = sweeps._limit(2.0)
    assert watch is not None
    watch(5.0)
    with pytest.raises(RunTooSlow, match=r"stopped at 10 s after 2 s of processor time"):
        watch(10.0)
    assert sweeps._limit(None) is None


def test_a_leader_is_judged_beside_its_rivals_and_the_cheapest_that_delivers_nearly_as_much():
    def standing(name: str, delivery: float, cost: float) -> Standing:
        protocol, _, number = name.partition("-")
        chosen = (("number", float(number)),) if number else ()
        return Standing(TunedProtocol(protocol, chosen), Measured(delivery, cost, 1.0), {})

    first, second = standing("good", 0.98, 0.1), standing("good-2", 0.98, 0.11)
    other, cheap = standing("other", 0.97, 0.3), standing("cheap", 0.965, 0.05)
    poor = standing("poor", 0.5, 0.01)

    def names(*some: Standing) -> list[str]:
        return [str(one) for one in contenders(some)]

    assert names(first, second, other, cheap, poor) == ["good", "good number=2", "other", "cheap"]
    assert names(first, other, second, poor) == ["good", "other", "good number=2"]
    assert names(first, second, poor) == ["good", "good number=2", "poor"]
    assert names(first) == ["good"]
