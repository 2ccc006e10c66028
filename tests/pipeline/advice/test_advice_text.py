"""The answer in words, from facts that are made here."""

import tomllib
from dataclasses import replace

import pytest

from earshot.pipeline.advice.advice_text import advice_json, advice_toml, advice_words, use_words
from earshot.pipeline.advice.advise import Advice, Question, Regret, regret_of
from earshot.pipeline.advice.judge import Effort, short_names
from earshot.pipeline.advice.search import Goal, Measured, Round, SearchResult, TunedProtocol, standing_of
from earshot.pipeline.advice.verdict import Overturned, Verdict
from earshot.pipeline.advice.windows import QUICK, plan_windows
from earshot.pipeline.campaigns.capacity import ProtocolCapacity
from earshot.pipeline.campaigns.leaderboard import board_of
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
    small = "SettingsError: brokers must not exceed the network's nodes"
    failed = replace(advice(), failed={many: small, slow: "a run takes more than 9 s here", more: small})
    assert advice_words(failed)[-1] == (
        "Failed, so not compared further: drip with brokers = 20 and drip with brokers = 41 (SettingsError: brokers "
        "must not exceed the network's nodes); georendezvous with its defaults (a run takes more than 9 s here)."
    )
    assert advice_json(failed)["failed"] == [
        {"protocol": "drip", "settings": {"brokers": 20}, "reason": small},
        {"protocol": "georendezvous", "settings": {}, "reason": "a run takes more than 9 s here"},
        {"protocol": "drip", "settings": {"brokers": 41}, "reason": small},
    ]
    assert len(advice_words(advice())) == 7, "nothing failed, nothing is said"


def test_regret_is_told_with_the_one_that_was_better():
    regretted = replace(advice(), regret=Regret(ODMRP, 0.012, 0.04))
    assert advice_words(regretted)[4].endswith(
        "Regret: 1.2 points of delivery and 4 % of airtime against odmrp with its defaults, the best of 3 candidates "
        "judged there."
    )


def test_regret_says_where_the_better_one_fell_short():
    told = replace(advice(), regret=Regret(ODMRP, 0.0, 1.36))
    told = replace(told, verdict=replace(told.verdict, fell_short={ODMRP: 0.047}))
    assert advice_words(told)[4].endswith(
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


def test_a_busy_machine_is_told():
    busy = replace(advice(), effort=Effort(12, 600.0, 90.0, 38.0))
    assert advice_words(busy)[5].endswith(
        "The machine was busy: runs took 2.4 times their processor time. On a quiet machine the same budget may "
        "try more."
    )
    assert advice_json(busy)["effort"]["slowdown"] == pytest.approx(90.0 / 38.0)
    assert Effort(1, 10.0, 0.9, 0.1).slowdown == 1.0, "too short to say"


def test_a_choice_that_was_given_up_is_told_with_the_reason():
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
    (told,) = advice_json(changed)["overturned"]
    assert (told["protocol"], told["by"]["protocol"], told["delivery"]) == ("gossip", "steam", 0.13)


def test_the_file_for_nodes_has_protocol_settings_and_network():
    text = advice_toml(advice())
    assert tomllib.loads(text) == {
        "protocol": "steam",
        "settings": {"beacon_interval_s": 0.5, "expiry_s": 1.75},
        "network": {"range_m": 200.0},
    }
    assert text.startswith("# Advice of `earshot advise` for trace town.\n# Use steam with")


def test_json_has_the_same_facts():
    told = advice_json(advice())
    assert (told["protocol"], told["settings"]["expiry_s"], told["capacity"]) == ("steam", 1.75, 6.0)
    assert told["figures"]["ceiling"]["mean"] == pytest.approx(0.964)
    assert [one["protocol"] for one in told["judged"]] == ["steam", "odmrp", "gossip"]
    first, second = advice().verdict.windows
    assert [(one["start_s"], one["end_s"], one["words"]) for one in told["windows"]] == [
        (first.start_s, first.end_s, str(first)),
        (second.start_s, second.end_s, str(second)),
    ]
    assert told["search"]["rounds"][0]["windows"] == told["windows"][:1]


def test_a_second_candidate_of_a_protocol_has_a_number():
    again = TunedProtocol("steam", (("beacon_interval_s", 2.0),))
    assert short_names([STEAM, ODMRP, again]) == {STEAM: "steam", ODMRP: "odmrp", again: "steam (2)"}
