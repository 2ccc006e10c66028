"""The answer in words, from facts that are made here."""

import math
import tomllib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.pipeline.advice.advice_text import (
    advice_json,
    advice_toml,
    advice_words,
    honest_words,
    judged_table,
    loses_words,
    others_words,
    reasons_words,
    search_words,
    types_words,
    use_words,
)
from earshot.pipeline.advice.advise import Advice, Question, Regret, regret_of
from earshot.pipeline.advice.judge import Effort, short_names
from earshot.pipeline.advice.search import Goal, Measured, Round, SearchResult, TunedProtocol, standing_of
from earshot.pipeline.advice.verdict import Overturned, Verdict
from earshot.pipeline.advice.windows import QUICK, plan_windows
from earshot.pipeline.campaigns.capacity import ProtocolCapacity
from earshot.pipeline.campaigns.intervals import figure_of
from earshot.pipeline.campaigns.leaderboard import board_of
from earshot.protocols.catalogue import protocol
from earshot.protocols.tuning import Surroundings

STEAM = TunedProtocol("steam", (("beacon_interval_s", 0.5),), {"beacon_interval_s": 0.5, "expiry_s": 1.75})
ODMRP = TunedProtocol("odmrp")
GOSSIP = TunedProtocol("gossip")
FIGURES = {
    STEAM: {"Alert": 0.99, "News": 0.9},
    ODMRP: {"Alert": 0.985, "News": 0.985},
    GOSSIP: {"Alert": 0.7, "News": 0.7},
}


def advice() -> Advice:
    plan = plan_windows([(0.0, 10.0), (150.0, 100.0)], 300.0, QUICK)
    first, second = plan.unseen[0]
    measured = {
        STEAM: (Measured(0.999, 0.07, 0.4), Measured(0.979, 0.07, 0.4)),
        ODMRP: (Measured(0.985, 0.147, 0.1), Measured(0.985, 0.147, 0.1)),
        GOSSIP: (Measured(0.7, 0.03, 0.1), Measured(0.7, 0.03, 0.1)),
    }
    standings = tuple(standing_of(one, {first: a, second: b}) for one, (a, b) in measured.items())
    rounds = (Round((first,), standings, ()),)
    runs, rows, by_type = [], [], []
    for one in measured:
        for number in range(2):
            run = f"{one.protocol}-{number}"
            about = {"scenario": "town", "protocol": one.protocol, "variant": one.protocol, "settings": "{}"}
            where = {"point": "p", "network": "radio", "assumes": "", "changed": "{}", "base": "{}"}
            runs.append({"run": run, "seed": number, "trace": "town", "window": "w", **about, **where})
            mean = measured[one][number]
            values = {"delivery_of_reachable": mean.delivery, "ceiling": 0.964, "airtime_mean": mean.cost}
            values["latency_p95_s"] = mean.latency_s
            rows += [{"run": run, "metric": name, "key": "", "value": value} for name, value in values.items()]
            by_type += [
                {"run": run, "metric": "delivery_of_reachable", "key": key, "value": value}
                for key, value in FIGURES[one].items()
            ]
    around = Surroundings(300, 80.0, 900.0, 700.0, 200.0, 12.0, 9.0, 20.0, 1.0, 0.0004)
    return Advice(
        question=Question("town"),
        surroundings=around,
        plan=plan,
        search=SearchResult(STEAM, rounds, "its time is spent"),
        verdict=Verdict(STEAM, (first, second), standings),
        ranking=board_of(runs, rows, by_type).rankings[0],
        regret=Regret(STEAM, 0.0, 0.0),
        losses={"impossible": 0.036, "never heard": 0.01, "dropped: queue-full": 0.001},
        capacity=ProtocolCapacity("steam", 6.0, False, ()),
        left_out={"codd": "a run takes more than 20 s here"},
        failed={},
        names={one: one.protocol for one in measured},
        runs={},
        effort=Effort(12, 600.0, 40.0, 38.0),
        took_s=100.0,
    )


def test_the_answer_says_what_to_use_and_what_to_expect():
    assert use_words(advice()) == (
        "Use steam with beacon_interval_s = 0.5: 98.9 % of what is reachable (ceiling 96.4 %), 7.0 % airtime, "
        "p95 0.4 s, holds 6 times your event rate."
    )
    more = replace(advice(), capacity=ProtocolCapacity("steam", 16.0, True, ()))
    assert "holds at least 16 times your event rate" in use_words(more)
    assert "holds" not in use_words(replace(advice(), capacity=None))


def test_the_whole_answer_in_words():
    _, others, types, loses, honest, search, left_out = advice_words(advice())
    assert others == (
        "odmrp ties on delivery at 2.1 times the airtime; gossip delivers 28.9 points less at 0.43 times the airtime."
    )
    assert types == "For News alone, odmrp delivers 8.5 points more."
    assert loses == (
        "Where it loses: of News events 90.0 % arrive; 3.6 % of what is expected is lost because no path led to "
        "the receiver in time; 1.0 % of what is expected is lost because nobody who had the event was heard."
    )
    assert honest.startswith(
        "Judged on 2 windows that the search did not see: 50 to 100 s (sparse, 10 nodes); 200 to 250 s (dense, 100 "
    )
    turned = advice().verdict
    turned = replace(advice(), verdict=replace(turned, windows=turned.windows[::-1]))
    assert advice_words(turned)[4] == honest, "windows are named in the order of their times"
    assert honest.endswith("Regret: none: of 3 candidates judged there it is the best in hindsight too.")
    assert search == (
        "The search tried 3 candidates of 3 protocols in 1 round and ended because its time is spent. Search and "
        "judgement took 12 runs, together 10 min of the trace, and 1.67 min of a budget of 12 min."
    )
    assert left_out.startswith("Left out: codd (a run takes more than 20 s here).")


def test_every_candidate_that_failed_is_named_with_the_reason():
    many, more = (TunedProtocol("drip", (("brokers", count),), {"brokers": count}) for count in (20, 41))
    slow = TunedProtocol("georendezvous")
    small = "brokers must not exceed the network's nodes"
    failed = replace(advice(), failed={many: small, slow: "a run takes more than 9 s here", more: small})
    assert advice_words(failed)[-1] == (
        "Failed, so not compared further: drip with brokers = 20 and drip with brokers = 41 (brokers "
        "must not exceed the network's nodes); georendezvous with its defaults (a run takes more than 9 s here)."
    )
    assert advice_json(failed)["failed"] == [
        {"protocol": "drip", "settings": {"brokers": 20}, "reason": small},
        {"protocol": "georendezvous", "settings": {}, "reason": "a run takes more than 9 s here"},
        {"protocol": "drip", "settings": {"brokers": 41}, "reason": small},
    ]
    assert len(advice_words(advice())) == 7, "nothing failed, nothing is said"


def test_regret_is_reported_with_the_one_that_was_better():
    regretted = replace(advice(), regret=Regret(ODMRP, 0.012, 0.04))
    assert advice_words(regretted)[4].endswith(
        "Regret: 1.2 points of delivery and 4 % of airtime against odmrp with its defaults, the best of 3 candidates "
        "judged there."
    )


def test_regret_says_where_the_better_one_fell_short():
    reported = replace(advice(), regret=Regret(ODMRP, 0.0, 1.36))
    reported = replace(reported, verdict=replace(reported.verdict, fell_short={ODMRP: 0.047}))
    assert advice_words(reported)[4].endswith(
        "the best of 3 candidates judged there, which delivered 4.7 points less when the search's windows count too."
    )


def test_with_latency_as_the_goal_the_regret_is_of_latency():
    whole = advice()
    quicker = replace(
        whole, question=replace(whole.question, goal=Goal.LATENCY), verdict=replace(whole.verdict, chosen=GOSSIP)
    )
    regret = regret_of(quicker.verdict)
    assert regret == Regret(STEAM, pytest.approx(0.289), 0.0, 0.0), "it is cheaper and faster, and delivers less"
    slow = replace(quicker, regret=Regret(ODMRP, 0.012, 0.04, 0.3))
    assert "Regret: 1.2 points of delivery and 30 % of latency against odmrp" in " ".join(advice_words(slow))
    assert advice_json(slow)["regret"]["latency"] == 0.3
    assert advice_words(replace(quicker, verdict=whole.verdict))[1].startswith(
        "odmrp ties on delivery at 0.25 times the latency; "
    )
    steam = replace(whole.verdict, standings=whole.standings[::-1])
    assert regret_of(steam) == Regret(GOSSIP, 0.0, pytest.approx(0.07 / 0.03 - 1.0), pytest.approx(3.0))
    assert regret_of(replace(steam, standings=whole.standings[:1])) is None


def test_the_regret_of_a_choice_that_was_judged_alone_is_not_known():
    whole = advice()
    alone = replace(whole, regret=None, verdict=replace(whole.verdict, standings=whole.standings[:1]))
    assert advice_words(alone)[3].endswith(
        "Regret: not known, since no other candidate could be judged there: a larger --budget judges more of them."
    )
    assert advice_json(alone)["regret"] is None
    rounds = (replace(whole.search.rounds[0], standings=whole.standings[:1]),)
    single = replace(alone, search=replace(whole.search, rounds=rounds))
    assert advice_words(single)[3].endswith("Regret: not known, since no other candidate was asked for.")


def test_a_busy_machine_is_reported():
    busy = replace(advice(), effort=Effort(12, 600.0, 90.0, 38.0))
    assert advice_words(busy)[5].endswith(
        "The machine was busy: runs took 2.4 times their processor time. On a quiet machine the same budget may "
        "try more."
    )
    assert advice_json(busy)["effort"]["slowdown"] == pytest.approx(90.0 / 38.0)
    assert Effort(1, 10.0, 0.9, 0.1).slowdown == 1.0, "too short to say"


def test_a_machine_is_busy_where_runs_take_half_as_much_time_again():
    for took_s, is_reported in ((59.0, False), (60.0, True)):
        words = advice_words(replace(advice(), effort=Effort(12, 600.0, took_s, 40.0)))[5]
        assert ("The machine was busy" in words) is is_reported


def test_a_choice_that_was_given_up_is_reported_with_the_reason():
    given_up = Overturned(GOSSIP, STEAM, 0.13, 0.0)
    changed = replace(advice(), verdict=replace(advice().verdict, overturned=(given_up,)))
    assert advice_words(changed)[4].startswith(
        "The search's first choice was gossip with its defaults; on windows that it had not seen steam with "
        "beacon_interval_s = 0.5 was better (13.0 points more delivered), so the choice was made again with these "
        "windows. Judged on 2 windows that had no part in the choice: "
    )
    cheaper = replace(given_up, delivery=0.0, price=1.0)
    changed_again = replace(advice(), verdict=replace(advice().verdict, overturned=(cheaper,)))
    assert "was better (50 % less airtime), so the choice" in advice_words(changed_again)[4]
    (reported,) = advice_json(changed)["overturned"]
    assert (reported["protocol"], reported["by"]["protocol"], reported["delivery"]) == ("gossip", "steam", 0.13)


def test_the_file_for_nodes_has_protocol_settings_and_network():
    text = advice_toml(advice())
    assert tomllib.loads(text) == {
        "protocol": "steam",
        "settings": {"beacon_interval_s": 0.5, "expiry_s": 1.75},
        "network": {"range_m": 200.0},
    }
    assert text.startswith("# Advice of `earshot advise` for trace town.\n# Use steam with")


def test_json_has_the_same_facts():
    reported = advice_json(advice())
    assert (reported["protocol"], reported["settings"]["expiry_s"], reported["capacity"]) == ("steam", 1.75, 6.0)
    assert reported["figures"]["ceiling"]["mean"] == pytest.approx(0.964)
    assert [one["protocol"] for one in reported["judged"]] == ["steam", "odmrp", "gossip"]
    first, second = advice().verdict.windows
    assert [(one["start_s"], one["end_s"], one["words"]) for one in reported["windows"]] == [
        (first.start_s, first.end_s, str(first)),
        (second.start_s, second.end_s, str(second)),
    ]
    assert reported["search"]["rounds"][0]["windows"] == reported["windows"][:1]


def test_a_second_candidate_of_a_protocol_has_a_number():
    again = TunedProtocol("steam", (("beacon_interval_s", 2.0),))
    assert short_names([STEAM, ODMRP, again]) == {STEAM: "steam", ODMRP: "odmrp", again: "steam (2)"}


# Where a word begins and ends to hold.


def losing(*, worst: float = 0.9, losses: dict[str, float] | None = None, figures: dict | None = None) -> Advice:
    """The choice delivers 1.0 in its other window, so its mean lies in the middle."""
    whole = advice()
    first, second = whole.verdict.windows
    own = standing_of(STEAM, {first: Measured(1.0, 0.07, 0.4), second: Measured(worst, 0.07, 0.4)})
    verdict = replace(whole.verdict, standings=(own, *whole.standings[1:]))
    ranking = replace(whole.ranking, by_type=())
    return replace(whole, verdict=verdict, ranking=ranking, losses=losses or {}, **(figures or {}))


def test_the_worst_window_is_named_where_it_lacks_more_than_two_and_a_half_points():
    # The mean of 1.0 and the worst window lies half as far away from the worst as the best does.
    assert loses_words(losing(worst=0.94)) == (
        "Where it loses: in the window 200 to 250 s (dense, 100 nodes) 94.0 % of the reachable arrive."
    )
    assert loses_words(losing(worst=0.96)) == "Where it loses: nowhere that shows in these windows."


def test_the_three_most_frequent_causes_are_named_from_half_a_percent():
    losses = {"needed carrying": 0.04, "never sent": 0.03, "dropped: queue-full": 0.02, "heard, not delivered": 0.01}
    assert loses_words(losing(worst=1.0, losses=losses)) == (
        "Where it loses: 4.0 % of what is expected is lost because nodes had to carry the event to a later contact; "
        "3.0 % of what is expected is lost because the publisher's node did not send it; "
        "2.0 % of what is expected is lost because packets were dropped (queue-full)."
    )
    assert loses_words(losing(worst=1.0, losses={"expired": 0.005})).endswith("0.5 % of what is expected is lost "
                                                                             "because expired.")  # fmt: skip
    assert loses_words(losing(worst=1.0, losses={"expired": 0.0049})).endswith("nowhere that shows in these windows.")


def by_type(event_type: str, **deliveries: float) -> Any:
    """A ranking of an event type with these deliveries by protocol."""
    rows = [
        SimpleNamespace(variant=name, protocol=name, figures={"delivery_of_reachable": figure_of({0: value})})
        for name, value in deliveries.items()
    ]
    return SimpleNamespace(event_type=event_type, rows=rows)


def test_an_event_type_is_named_where_another_protocol_delivers_more_than_a_point_more():
    whole = losing(worst=1.0)
    rankings = (
        by_type("Alert", steam=0.9, odmrp=0.95),
        by_type("News", steam=0.9, odmrp=0.909),
        by_type("Chat", odmrp=0.9),
        by_type("Other"),
        by_type("Last", steam=0.5, gossip=0.6),
    )
    reported = replace(whole, ranking=replace(whole.ranking, by_type=rankings))
    assert types_words(reported) == (
        "For Alert alone, odmrp delivers 5.0 points more; for Last alone, gossip delivers 10.0 points more."
    )
    rankings = (by_type("Alert", steam=0.94), by_type("News", steam=0.96), by_type("Chat", odmrp=0.1))
    reported = replace(whole, ranking=replace(whole.ranking, by_type=rankings))
    assert loses_words(reported) == "Where it loses: of Alert events 94.0 % arrive."


def test_three_other_protocols_are_compared_each_by_its_best():
    whole = advice()
    first, second = whole.verdict.windows

    def others(*some: tuple[str, float, float]) -> str:
        standings = [
            standing_of(
                TunedProtocol(name, (("n", float(n)),)), dict.fromkeys((first, second), Measured(*figures, 0.4))
            )
            for n, (name, *figures) in enumerate(some)
        ]
        own = standing_of(STEAM, dict.fromkeys((first, second), Measured(0.9, 0.1, 0.4)))
        return others_words(replace(whole, verdict=replace(whole.verdict, standings=(own, *standings))))

    assert others(
        ("a", 0.909, 0.1049), ("a", 0.9, 9.0), ("b", 0.92, 0.1051), ("c", 0.889, 0.0951), ("d", 0.9, 0.1)
    ) == (
        "a ties on delivery at the same airtime; b delivers 2.0 points more at 1.1 times the airtime; "
        "c delivers 1.1 points less at the same airtime."
    )
    assert others(("a", 0.9, 15.0)) == "a ties on delivery at 150 times the airtime."
    assert others(("a", 0.9, math.inf)) == "a ties on delivery at other airtime."
    assert others() == ""


@pytest.mark.parametrize(
    ("latency_s", "shown"),
    [(0.1, "0.1 s"), (0.0994, "99 ms"), (0.0999, "100 ms"), (0.0023, "2.3 ms"), (2.44, "2.4 s"), (99.4, "99 s"),
     (99.6, "100 s"), (1234.0, "1234 s"), (math.inf, "-")],
)  # fmt: skip
def test_a_latency_has_two_digits_that_count(latency_s: float, shown: str):
    whole = advice()
    standings = (standing_of(STEAM, {whole.verdict.windows[0]: Measured(0.9, 0.07, latency_s)}),)
    _, (row,) = judged_table(replace(whole, verdict=replace(whole.verdict, standings=standings)))
    assert row == ["steam", "90.0 %", "7.0 %", shown, "beacon_interval_s = 0.5"]


def test_without_a_channel_bytes_stand_in_the_place_of_airtime():
    whole = advice()
    figures = {"delivery_ratio": figure_of({0: 0.5}), "bytes_per_delivery": figure_of({0: 1234.4})}
    rows = tuple(replace(row, figures=figures, assumes="ideal routing") for row in whole.ranking.rows)
    reported = replace(whole, ranking=replace(whole.ranking, rows=rows))
    assert use_words(reported) == (
        "Use steam with beacon_interval_s = 0.5: 50.0 % of what is expected, 1,234 bytes a delivery, holds 6 times "
        "your event rate. It was given ideal routing."
    )
    header, table = judged_table(reported)
    assert header == ["candidate", "of the reachable", "bytes a delivery", "latency p95", "settings"]
    assert table[1] == ["odmrp", "98.5 %", "0", "0.1 s", "defaults"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(99.4, "99 s"), (100.0, "1.67 min"), (5999.0, "100 min"), (6000.0, "1.67 h"), (36_000.0, "10 h")],
)
def test_how_long_a_search_took(seconds: float, shown: str):
    assert f" and {shown} of a budget of 12 min." in search_words(replace(advice(), took_s=seconds))


def test_a_capacity_that_was_not_found_to_its_end_is_a_lower_bound():
    for capacity, at_least in (
        (ProtocolCapacity("steam", 6.0, False, ()), False),
        (ProtocolCapacity("steam", 6.0, True, ()), True),
        (ProtocolCapacity("steam", 6.0, False, (), error="a run failed"), True),
        (None, False),
    ):
        reported = replace(advice(), capacity=capacity)
        assert advice_json(reported)["capacity_at_least"] is at_least
        assert ("holds at least 6 times" in use_words(reported)) is at_least
    assert advice_json(replace(advice(), capacity=None))["capacity"] is None


def test_each_chosen_setting_is_reported_with_the_rule_behind_its_first_guess():
    (tunable,) = [one for one in protocol("steam").tuning(advice().surroundings) if one.name == "beacon_interval_s"]
    assert tunable.first != 0.5
    assert reasons_words(advice()) == [
        f"beacon_interval_s = 0.5: the first guess was {tunable.first:g}, because {tunable.reason}."
    ]
    guessed = TunedProtocol("steam", (("beacon_interval_s", tunable.first),))
    whole = advice()
    verdict = replace(whole.verdict, chosen=guessed)
    assert reasons_words(replace(whole, verdict=verdict)) == [
        f"beacon_interval_s = {tunable.first:g}: the first guess, because {tunable.reason}."
    ]


def test_a_trace_that_is_too_short_to_keep_a_part_back_is_said_to_be_so():
    whole = advice()
    short = replace(whole, plan=replace(whole.plan, whole=False))
    assert honest_words(short).startswith(
        "The trace is too short to keep a part of it back: judged on the same 50 s with 2 workloads that the search "
        "did not see. Regret: none"
    )


def test_figures_without_an_end_are_none_for_programs():
    whole = advice()
    first, _ = whole.verdict.windows
    never = standing_of(GOSSIP, {first: Measured(0.0, 0.03, math.inf)})
    reported = advice_json(
        replace(whole, regret=Regret(GOSSIP, 0.1, 0.2, math.inf), verdict=replace(whole.verdict, standings=(
            *whole.standings[:1], never)))
    )  # fmt: skip
    assert reported["judged"][1] == {
        "protocol": "gossip", "settings": {}, "delivery": 0.0, "cost": 0.03, "latency_p95_s": None,
    }  # fmt: skip
    assert reported["regret"] == {
        "best": {"protocol": "gossip", "settings": {}}, "delivery": 0.1, "cost": 0.2, "latency": None,
    }  # fmt: skip


def test_only_facts_that_are_known_go_into_the_file_for_nodes():
    whole = advice()
    anywhere = replace(whole, surroundings=replace(whole.surroundings, range_m=math.inf))
    assert "network" not in tomllib.loads(advice_toml(anywhere))
    assert all(len(line) <= 102 for line in advice_toml(whole).splitlines()), "lines of comment are wrapped"
