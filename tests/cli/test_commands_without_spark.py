"""What the commands of the pipeline ask of it and print of its answers: the pipeline itself is replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from earshot.cli import earshot
from earshot.cli.advise import check_choice
from earshot.cli.spark import LakeOptions
from earshot.cli.traces import TraceChoice
from earshot.errors import UsageError
from earshot.pipeline.campaigns.board_text import TIE
from earshot.pipeline.campaigns.capacity import CapacityComparison, ProtocolCapacity
from earshot.pipeline.campaigns.sweeps import Outcome
from earshot.pipeline.oracle.reachable import Ceiling
from earshot.pipeline.oracle.why import Explanation, Hop
from earshot.pipeline.traces.contact_statistics import ContactStatistics
from earshot.pipeline.traces.ingest import IngestSettings
from earshot.pipeline.watch.running_metrics import RunningMetrics
from earshot.pipeline.watch.watch_state import Commit, WatchSettings
from earshot.studies.study import Claim, ClaimReading, Finding, Judged


class Pipeline:
    """In place of Spark: remembers what the commands ask for, and answers what a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.lake: Any = SimpleNamespace(session="session", folder=SimpleNamespace(root="root"))
        self.patch = monkeypatch
        for command in ("advise", "campaigns", "pipeline", "studies", "traces", "watch"):
            monkeypatch.setattr(f"earshot.cli.{command}.open_lake", self._opened)

    @contextmanager
    def _opened(self, options: LakeOptions, reads: Any = None, bar: Any = None) -> Iterator[Any]:
        self.asked.append(("open_lake", (options, reads)))
        yield self.lake

    def answers(self, place: str, answer: Any) -> None:
        """The function at that place of `earshot.pipeline` or another room returns the answer."""
        name = place.rpartition(".")[2]

        def replaced(*given: Any, **named: Any) -> Any:
            first = 1 if given and given[0] is self.lake else 0
            asked = ["the lake" if one is self.lake else one for one in given[first:]]
            self.asked.append((name, (*asked, *sorted(named.items()))))
            return answer

        self.patch.setattr(f"earshot.{place}", replaced)

    def __getitem__(self, name: str) -> list[Any]:
        """What the function of that name was called with each time; a lake that comes first is left out."""
        return [given for called, given in self.asked if called == name]


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pipeline:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EARSHOT_PROGRESS", "off")
    monkeypatch.delenv("EARSHOT_LAKE", raising=False)
    return Pipeline(monkeypatch)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(earshot, list(arguments))


def lines_of(*arguments: str) -> list[str]:
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def json_of(*arguments: str) -> Any:
    return json.loads("\n".join(lines_of(*arguments, "--json")))


# Traces.


SUMMARY = {
    "trace": "town", "nodes": 1, "files": ["a.csv"], "format": "csv", "doubts": [], "rows_read": 2, "rows_kept": 2,
    "rejected": {}, "positions": 2, "start": 0.0, "end": 1.0, "interval_s": None, "motion": "samples", "origin": None,
}  # fmt: skip
MET = ContactStatistics("town", 100.0, 5.0, None, 3, 1, 2, 2, 1.0, None, None, None)


def test_ingest_reads_the_files_as_the_options_say_and_tells_what_comes_next(pipeline: Pipeline) -> None:
    pipeline.answers("pipeline.traces.ingest.check_files", None)
    pipeline.answers("pipeline.traces.ingest.ingest", SimpleNamespace(**SUMMARY, as_json=lambda: {"trace": "town"}))
    pipeline.answers("pipeline.traces.contact_statistics.find_contacts", MET)
    Path("a.csv").touch()
    plain = ("ingest", "a.csv", "--lake", "mine")
    assert lines_of(*plain)[-1] == "next: earshot contacts town --range 100m --lake mine"
    settings = IngestSettings(max_speed_m_s=100.0)
    assert pipeline["check_files"] == [(("a.csv",), settings)]
    assert pipeline["ingest"] == [(("a.csv",), None, settings)]
    assert pipeline["open_lake"] == [(LakeOptions("mine"), ("a.csv",))]
    assert pipeline["find_contacts"] == []
    assert json_of(*plain) == {"trace": "town"}
    every = (
        "--format", "csv", "--trace", "bus", "--columns", "node=no", "--geo", "--units", "km", "--strict",
        "--time-format", "%H", "--origin", "53,-2", "--max-speed", "none", "--interval", "2s", "--contacts", "0.2km",
    )  # fmt: skip
    stated = lines_of(*plain, *every)
    assert pipeline["ingest"][-1] == (
        ("a.csv",), "bus",
        IngestSettings("csv", columns="node=no", geo=True, units="km", strict=True, time_format="%H",
                       origin=(53.0, -2.0), max_speed_m_s=float("inf"), interval_s=2.0),
    )  # fmt: skip
    assert pipeline["find_contacts"] == [("town", 200.0)]
    assert stated[stated.index("") + 1] == "town: contacts within 100 m, sampled every 5 s"
    assert not any(line.startswith("next") for line in stated)
    assert json_of(*plain, *every) == {"trace": "town", "contacts": MET.as_json()}


def test_recordings_of_live_nodes_become_runs(pipeline: Pipeline) -> None:
    kept = SimpleNamespace(
        name="monday", nodes=2, start=5.0, end=2005.5, records=12345, rejected=6, runs=["monday-cbf"],
        as_json=lambda: {"name": "monday"},
    )  # fmt: skip
    pipeline.answers("pipeline.watch.spool_segments.check_folders", None)
    pipeline.answers("pipeline.watch.spools.keep_spools", kept)
    asked = ("ingest", "spools", "--format", "spool")
    assert lines_of(*asked) == [
        "monday: 2 nodes, 2,000.5 s",
        "  records              12,345",
        "  unparsable                6  rejected",
        "  run            monday-cbf",
        "next: earshot report lake",
    ]
    assert pipeline["check_folders"] == [(("spools",), ("may_be_empty", False))]
    assert pipeline["open_lake"] == [(LakeOptions("lake"), ("spools",))]
    assert json_of(*asked, "--trace", "mine") == {"name": "monday"}
    assert pipeline["keep_spools"] == [(("spools",), "spools"), (("spools",), "mine")]
    refused = call(*asked, "--contacts", "100m").exception
    assert isinstance(refused, UsageError)
    assert "--contacts is for traces" in str(refused)


def test_contacts_are_found_at_every_step_and_over_no_longer_gap(pipeline: Pipeline) -> None:
    pipeline.answers("pipeline.traces.contact_statistics.find_contacts", MET)
    assert lines_of("contacts", "town", "--range", "100m")[0] == "town: contacts within 100 m, sampled every 5 s"
    assert json_of("contacts", "town", "--range", "1km", "--step", "2s", "--max-gap", "1min") == MET.as_json()
    assert pipeline["find_contacts"] == [("town", 100.0, None, None), ("town", 1000.0, 2.0, 60.0)]
    assert pipeline["open_lake"] == [(LakeOptions("lake"), ())] * 2


def test_a_profile_is_words_facts_and_a_table_or_json_and_perhaps_a_page(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(trace="town", as_json=lambda: {"trace": "town"})
    written: list[Path] = []
    pipeline.lake.arrow = SimpleNamespace(read=lambda table, trace: SimpleNamespace(
        to_pylist=lambda: [{"doubts": [f"{table} of {trace}: odd"]}]))  # fmt: skip
    pipeline.answers("pipeline.traces.ingest.trace_in_lake", "town")
    pipeline.answers("pipeline.traces.trace_profile.profile_trace", found)
    pipeline.answers("pipeline.reports.profile_page.profile_page", SimpleNamespace(write=written.append))
    text = "pipeline.traces.profile_text"
    pipeline.answers(f"{text}.profile_words", "it is whole")
    pipeline.answers(f"{text}.facts_rows", [("span", "10 s")])
    pipeline.answers(f"{text}.range_rows", [["50 m"]])
    monkeypatch.setattr(f"earshot.{text}.RANGE_HEADER", ["range"])
    monkeypatch.setattr(f"earshot.{text}.RANGE_NOTE", "a note")
    done = call("profile", "town.csv", "--range", "1km", "--report", "p.html")
    assert done.stdout.splitlines() == [
        "town: it is whole", "", "  span        10 s", "", "range", "-----", " 50 m", "a note", "", "report: p.html",
    ]  # fmt: skip
    assert done.stderr == "warning: traces of town: odd\n"
    assert written == [Path("p.html")]
    assert json_of("profile", "town.csv", "--again", "--units", "km") == {"trace": "town"}
    assert len(written) == 1
    ranges_and_again = [(given[0], given[1][-1], given[-1]) for given in pipeline["profile_trace"]]
    assert ranges_and_again == [("town", 1000.0, False), ("town", 300.0, True)]
    assert [given[1].units for given in pipeline["trace_in_lake"]] == ["", "km"]


# Workloads.


def test_a_workload_comes_from_a_scenario_or_from_two_files(pipeline: Pipeline) -> None:
    pipeline.answers("pipeline.campaigns.flow.draw_scenario", ("w1", {"events": 3, "nodes": 2}))
    pipeline.answers("pipeline.campaigns.flow.keep_own_workload", {"events": 7})
    assert lines_of("workload", "base", "--seed", "3", "--set", "duration_s=70") == [
        "workload w1: 3 events, 2 nodes", "next: earshot oracle w1 --lake lake",
    ]  # fmt: skip
    ((scenario, seed),) = pipeline["draw_scenario"]
    assert (scenario.duration_s, seed) == (70.0, 3)
    own = ("workload", "fleet", "--events", "e.jsonl", "--events", "f.jsonl", "--subscriptions", "s.txt")
    assert json_of(*own) == {"workload": "fleet", "events": 7}
    assert pipeline["keep_own_workload"] == [("fleet", ["e.jsonl", "f.jsonl"], "s.txt")]
    assert pipeline["open_lake"] == [(LakeOptions("lake"), []), (LakeOptions("lake"), ["e.jsonl", "f.jsonl", "s.txt"])]
    assert lines_of(*own)[0] == "workload fleet: 7 events"


def test_the_oracle_tells_what_is_expected_and_the_ceiling_where_it_is_known(pipeline: Pipeline) -> None:
    counts = "pipeline.campaigns.flow.expected_counts"
    ceiling = "pipeline.campaigns.flow.workload_ceiling"
    pipeline.answers(counts, {"pairs": 1, "events": 1, "nodes": 2})
    pipeline.answers(ceiling, None)
    assert lines_of("oracle", "w1") == ["1 expected delivery of 1 event to 2 nodes, in the table `expected` of lake"]
    assert json_of("oracle", "w1") == {"workload": "w1", "pairs": 1, "events": 1, "nodes": 2}
    pipeline.answers(counts, {"pairs": 2000, "events": 5, "nodes": 2})
    found = Ceiling(2000, 1000, 600)
    pipeline.answers(ceiling, found)
    assert lines_of("oracle", "w1", "--trace", "town", "--range", "90m") == [
        "2,000 expected deliveries of 5 events to 2 nodes, in the table `expected` of lake",
        f"{found}, in the table `reachable`",
    ]
    stated = json_of("oracle", "w1")
    assert (stated["ceiling"], stated["ceiling_at_once"], stated["pairs"]) == (0.8, 0.5, 2000)
    assert pipeline["expected_counts"][2] == ("w1", "town")
    assert pipeline["workload_ceiling"][2] == ("w1", "town", 90.0)
    assert pipeline["workload_ceiling"][0] == ("w1", None, None)


# Campaigns.


DONE = Outcome(
    "r1", "c", "base", "p", "n", "", 100.0, '{"medium.range_m": 90}', "{}", "", "", "w", "cbf", "cbf",
    '{"wait_s": 0.1}', 4, 60.0, 5.0, "done", None, None, 1.5,
)  # fmt: skip
FAILED = replace(DONE, run="r2", variant="steam x", status="failed", error="it broke", seed=5)


@pytest.fixture
def board(pipeline: Pipeline) -> Any:
    """A leaderboard whose words and tables say where they come from."""
    text = "pipeline.campaigns.board_text"
    for name, answer in {
        "board_words": "cbf is best", "ranking_heading": "in town", "verdict_words": "a verdict",
        "ranking_table": (["protocol"], [["cbf"]]), "points_table": (["point"], [["p1"], ["p2"]]),
        "assumption_words": "it assumes", "board_json": {"rankings": ["one"]}, "board_csv": "a,b\n",
    }.items():  # fmt: skip
        pipeline.answers(f"{text}.{name}", answer)
    return SimpleNamespace(rankings=[None], rows=[SimpleNamespace(ties=())], charts=[])


def test_a_sweep_ends_with_the_board_the_failed_runs_and_what_comes_next(pipeline: Pipeline, board: Any) -> None:
    Path("c.toml").write_text('scenarios = ["base"]\nprotocols = ["cbf"]\nseeds = 2\n')
    pipeline.answers("pipeline.campaigns.flow.run_campaign", [DONE])
    pipeline.answers("pipeline.campaigns.flow.lake_leaderboard", board)
    shown = ["cbf is best", "", "in town", "protocol", "--------", "cbf", "it assumes"]
    assert lines_of("sweep", "c.toml", "--metric", "mine") == [
        *shown, "", "1 run done, 0 failed, in lake", "next: earshot report lake",
    ]  # fmt: skip
    assert pipeline["run_campaign"][0][-1] == ("own_metrics", ("mine",))
    assert json_of("sweep", "c.toml") == {
        "runs": [{"run": "r1", "scenario": "base", "protocol": "cbf", "medium.range_m": 90, "settings.wait_s": 0.1,
                  "seed": 4, "status": "done", "error": None, "took_s": 1.5}],
        "rankings": ["one"],
    }  # fmt: skip
    pipeline.answers("pipeline.campaigns.flow.run_campaign", [DONE, FAILED, *[replace(FAILED, run="r3")] * 5])
    some = call("sweep", "c.toml")
    assert some.exit_code == 1
    assert some.stdout.splitlines()[len(shown) + 1 :] == [
        "1 run done, 6 failed, in lake", "  r2 steam x seed 5: it broke", *["  r3 steam x seed 5: it broke"] * 4,
        "next: earshot report lake",
    ]  # fmt: skip
    assert pipeline["lake_leaderboard"][-1] == (["r1"],)
    pipeline.answers("pipeline.campaigns.flow.run_campaign", [FAILED])
    none = call("sweep", "c.toml", "--json")
    assert (none.exit_code, list(json.loads(none.stdout))) == (1, ["runs"])
    assert call("sweep", "c.toml").stdout.startswith("0 runs done, 1 failed")


def test_a_board_of_several_points_has_a_table_for_each_and_one_for_all_if_they_are_many(
    pipeline: Pipeline, board: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("c.toml").write_text('scenarios = ["base"]\nprotocols = ["cbf"]\n')
    monkeypatch.setattr("earshot.pipeline.campaigns.board_text.FEW", 2)
    pipeline.answers("pipeline.campaigns.flow.run_campaign", [DONE])
    pipeline.answers("pipeline.campaigns.flow.lake_leaderboard", board)
    table = ["", "in town", "a verdict", "protocol", "--------", "cbf"]
    for points, shown in ((2, [*table, *table]), (3, ["", "point", "-----", "p1", "p2"])):
        board.rankings, board.rows = [None] * points, [SimpleNamespace(ties=("cost",))]
        assert lines_of("sweep", "c.toml")[:-3] == [
            "cbf is best", *shown, "it assumes",
            f"{TIE}: with these seeds, not clearly different from the best of its column",
        ]  # fmt: skip
    (sized, *_) = pipeline["points_table"]
    assert sized[-1] == 100, "a terminal shows that many characters in a line"


LOADS = CapacityComparison("base", 0.95, 2, 64.0, (ProtocolCapacity("cbf", None, False, (), "it broke"),))


def compared(pipeline: Pipeline, board: Any, *outcomes: Outcome) -> list[Any]:
    """Lets `compare` run with these outcomes; what it wrote as a page, each with its facts."""
    written: list[Any] = []
    pipeline.answers("pipeline.campaigns.flow.run_campaign", list(outcomes))
    pipeline.answers("pipeline.campaigns.capacity.find_capacity", LOADS)
    pipeline.answers("pipeline.reports.report.report_facts", Facts(board))
    pipeline.answers("pipeline.reports.report.facts_json", {"facts": 1})

    def write(facts: Any, _: Any, to: Path) -> Path:
        written.append((facts, to))
        return to

    pipeline.patch.setattr("earshot.pipeline.reports.report.write_page_of", write)
    return written


@dataclass(frozen=True)
class Facts:
    """What a report shows, as far as `compare` uses it."""

    board: Any
    capacity: CapacityComparison | None = None


def test_compare_runs_each_protocol_with_its_settings_and_tells_of_failed_runs(pipeline: Pipeline, board: Any) -> None:
    written = compared(pipeline, board, DONE)
    Path("advice.toml").write_text('protocol = "gossip"\n[settings]\nprobability = 0.7\n')
    asked = ("compare", "base", "--protocols", "cbf,gossip", "--seeds", "2")
    assert lines_of(*asked)[-2:] == ["", "report: lake/report.html"]
    (campaign, _, _, own) = pipeline["run_campaign"][0]
    assert campaign.name == "compare-base"
    assert [(run.protocol, run.seed) for run in campaign.runs] == [
        ("cbf", 0), ("cbf", 1), ("gossip", 0), ("gossip", 1),
    ]  # fmt: skip
    assert own == ("own_metrics", ())
    assert pipeline["report_facts"] == [(["r1"], ("figures", ()))]
    assert [(facts.capacity, to) for facts, to in written] == [(None, Path("lake/report.html"))]
    assert pipeline["find_capacity"] == []
    lines_of(*asked, "--settings", "advice.toml", "--setting", "cbf.range_m=77", "--report", "r.html", "--metric", "m",
             "--figure", "f", "--set", "duration_s=70")  # fmt: skip
    campaign, _, _, own = pipeline["run_campaign"][1]
    settings = {run.protocol: run.settings for run in campaign.runs}
    assert (settings["gossip"], settings["cbf"]) == ({"probability": 0.7}, {"range_m": 77})
    assert {run.scenario.duration_s for run in campaign.runs} == {70.0}
    assert (own, written[-1][1]) == (("own_metrics", ("m",)), Path("r.html"))
    assert pipeline["report_facts"][-1] == (["r1"], ("figures", ("f",)))
    assert json_of(*asked) == {"facts": 1}
    compared(pipeline, board, DONE, FAILED)
    failed = call(*asked)
    assert (failed.exit_code, failed.stderr) == (1, "failed: steam x seed 5: it broke\n")


def test_compare_also_finds_how_much_each_carries(pipeline: Pipeline, board: Any) -> None:
    written = compared(pipeline, board, DONE)
    asked = ("compare", "base", "--protocols", "cbf", "--seeds", "3", "--capacity")
    assert "base: the highest multiple of the event rate at which 95 % of the reachable" in "\n".join(lines_of(*asked))
    lines_of(*asked, "--most", "8", "--set", "duration_s=70")
    assert [facts.capacity for facts, _ in written] == [LOADS, LOADS]
    (one, other) = pipeline["find_capacity"]
    for given, duration_s, most in ((one, 120.0, 64.0), (other, 70.0, 8.0)):
        scenario, names, seeds, *named = given
        options = dict(named)
        assert (scenario.duration_s, names, seeds) == (duration_s, {"cbf": {}}, range(3))
        assert (options["most"], options["named"].duration_s) == (most, 120.0)


def test_capacity_asks_for_a_share_and_prints_a_table_or_json(pipeline: Pipeline) -> None:
    pipeline.answers("pipeline.campaigns.capacity.find_capacity", LOADS)
    asked = ("capacity", "base", "--protocols", "cbf", "--share", "0.9", "--seeds", "3", "--most", "16",
             "--set", "duration_s=70")  # fmt: skip
    assert "delivery against load" in lines_of(*asked)
    assert json_of(*asked) == json.loads(json.dumps(LOADS.as_json()))
    scenario, names, seeds, share, most, named, _ = pipeline["find_capacity"][0]
    assert (scenario.duration_s, names, seeds, share, most) == (70.0, {"cbf": {}}, range(3), 0.9, 16.0)
    assert named.duration_s == 120.0


def test_a_report_is_a_page_json_or_csv(pipeline: Pipeline, board: Any) -> None:
    pipeline.answers("pipeline.campaigns.flow.lake_leaderboard", board)
    pipeline.answers("pipeline.campaigns.flow.measure_all", None)
    pipeline.answers("pipeline.reports.report.report_facts", None)
    pipeline.answers("pipeline.reports.report.facts_json", {"facts": 1})
    pipeline.answers("pipeline.reports.report.write_report", "page.html")
    assert lines_of("report", "mine") == ["report: page.html"]
    assert pipeline["measure_all"] == []
    assert lines_of("report", "mine", "--csv") == ["a,b"]
    assert json_of("report", "mine", "--figure", "f", "--metric", "m") == {"facts": 1}
    assert pipeline["measure_all"] == [(("m",),)]
    assert pipeline["report_facts"] == [(("figures", ("f",)),)]
    assert lines_of("report", "mine", "--out", "there.html", "--figure", "f") == ["report: page.html"]
    assert pipeline["write_report"] == [
        (Path("mine/report.html"), ("figures", ())), (Path("there.html"), ("figures", ("f",))),
    ]  # fmt: skip
    assert set(pipeline["open_lake"]) == {(LakeOptions("mine"), ())}


def test_why_says_what_was_expected_and_where_it_was_lost(pipeline: Pipeline) -> None:
    path = (Hop(1.0, "a", "b", "flood"), Hop(1.25, "b", "c", "flood"))
    got = Explanation("e1", "c", True, True, ["c wants it"], path)
    pipeline.answers("pipeline.oracle.why.ask_why", got)
    assert lines_of("why", "r1", "e1", "c", "--lake", "mine") == [
        "e1 to c: expected, delivered", "  c wants it", "  path: a -> b (1.000 s) -> c (1.250 s)",
    ]  # fmt: skip
    assert json_of("why", "r1", "e1", "c") == json.loads(json.dumps(got.as_json()))
    assert pipeline["ask_why"][0][1:] == ("r1", "e1", "c")
    pipeline.answers("pipeline.oracle.why.ask_why", Explanation("e1", "c", False, False, [], losses=["b: no room"]))
    assert lines_of("why", "r1", "e1", "c") == ["e1 to c: not expected, not delivered", "  b: no room"]


# Advice.


def test_advice_is_words_a_table_a_file_and_a_page(pipeline: Pipeline) -> None:
    pipeline.lake.has = lambda table, trace: (table, trace) == ("traces", "known")
    pipeline.answers("cli.advise.read_into_lake", "town")
    pipeline.answers("cli.advise.check_choice", None)
    pipeline.answers("pipeline.advice.advise.advise", "the advice")
    pipeline.answers("pipeline.reports.report.report_facts", "the facts")
    pipeline.answers("pipeline.reports.report.write_page_of", Path("page.html"))
    for name, answer in {
        "advice_toml": 'protocol = "cbf"\n', "advice_json": {"best": "cbf"}, "advice_words": ["Run cbf.", "Or not."],
        "judged_table": (["protocol"], [["cbf"]]),
    }.items():  # fmt: skip
        pipeline.answers(f"pipeline.advice.advice_text.{name}", answer)
    Path("lake").mkdir()
    Path("mine").mkdir()
    assert lines_of("advise", "known", "--protocols", "cbf") == [
        "Run cbf.", "", "Or not.", "", "protocol", "--------", "cbf", "",
        "for your nodes: lake/advice.toml (earshot node --settings lake/advice.toml)", "report: page.html",
    ]  # fmt: skip
    assert Path("lake/advice.toml").read_text() == 'protocol = "cbf"\n'
    assert pipeline["write_page_of"] == [("the facts", "the lake", Path("lake/report.html"))]
    assert pipeline["report_facts"] == [(("advice", "the advice"),)]
    stated = json_of("advise", "known", "x.csv", "--quick", "--goal", "airtime", "--out", "o.toml",
                     "--report", "r.html", "--lake", "mine", "--window", "0-9")  # fmt: skip
    assert stated == {"best": "cbf", "file": "o.toml", "report": "page.html"}
    assert (Path("o.toml").exists(), Path("mine/advice.toml").exists()) == (True, False)
    assert pipeline["write_page_of"][1] == ("the facts", "the lake", Path("r.html"))
    lines_of("advise", "market-town", "--budget", "99s")
    lines_of("advise", "market-town", "--budget", "99s", "--quick")
    asked = [question for question, *_ in pipeline["advise"]]
    assert [(one.trace, one.window, one.goal.value, one.budget_s, one.quick) for one in asked] == [
        ("town", None, "delivery", 720.0, False), ("town", (0.0, 9.0), "airtime", 240.0, True),
        ("town", None, "delivery", 99.0, False), ("town", None, "delivery", 99.0, True),
    ]  # fmt: skip
    assert asked[0].protocols == ("cbf",)
    read = [given[0] for given in pipeline["read_into_lake"]]
    assert read[:2] == ["known", ["known", "x.csv"]]
    assert Path(read[2]).is_file(), "a trace that ships with Earshot"
    assert [given[0] for given in pipeline["check_choice"]] == ["town"] * 4


@pytest.mark.parametrize(
    ("options", "doubted"),
    [
        ({}, False),
        ({"workload": "news"}, False),
        ({"workload": "mine"}, True),
        ({"events": "e.jsonl", "subscriptions": "s.jsonl"}, True),
        ({"events": "e.jsonl", "subscriptions": "s.jsonl", "workload": "news"}, True),
    ],
)
def test_a_workload_of_ones_own_is_doubted_before_the_search(
    pipeline: Pipeline, options: dict[str, Any], doubted: bool
) -> None:
    about = SimpleNamespace(start=100.0, end=400.0)
    pipeline.answers("traces.lake_tables.trace_about", about)
    pipeline.answers("cli.advise.check_scenarios", None)
    pipeline.answers("pipeline.traces.trace_scenario.TraceAdditions.scenario", "the scenario")
    check_choice("town", TraceChoice(window=(10.0, 300.1), **options), "root")
    check_choice("town", TraceChoice(strict=True, **options), "root")
    assert pipeline["check_scenarios"] == ([(["the scenario"], False), (["the scenario"], True)] if doubted else [])
    assert pipeline["trace_about"] == [("root", "town")] * 2
    made = [given[-4:] for given in pipeline["scenario"]]
    assert made == ([("root", "town", 110.0, 400.1), ("root", "town", 100.0, 400.0)] if doubted else [])


# Studies.


NO_ROWS = Finding  # a claim's function; nobody asks it here
JUDGED = [
    Judged(
        "drip", Claim("It is fast", "section 4", "10 s", NO_ROWS),
        Finding((ClaimReading("natural", "9 s", True, 3, (8.0, 9.5), 10.0),)),
    ),
    Judged(
        "steam", Claim("It is small", "table 2", "2 kB", NO_ROWS),
        Finding((ClaimReading("as printed", "3 kB", False, reason="they count less"), ClaimReading("else", "-", None))),
    ),
]  # fmt: skip


def studied(pipeline: Pipeline) -> list[Path]:
    """Lets `reproduce` find the claims above, and returns the list of reports that it writes."""
    written: list[Path] = []

    def write(to: Path) -> Path:
        written.append(to)
        return to

    experiments = [SimpleNamespace(quick=[1], cases=[1, 2])]
    pipeline.patch.setattr(
        "earshot.studies.study.study", lambda name: SimpleNamespace(name=name, paper="P", experiments=experiments)
    )
    pipeline.patch.setattr(
        "earshot.studies.study.judge", lambda paper, rows: [one for one in JUDGED if one.study == paper.name and rows]
    )
    pipeline.answers("studies.running.run_study", SimpleNamespace(rows=["a row"], origin="from 2 cases"))
    pipeline.answers("studies.running.studies_report", SimpleNamespace(write=write))
    pipeline.answers("studies.running.write_claims", None)
    return written


def test_reproduce_judges_the_claims_of_each_study_and_writes_a_page(pipeline: Pipeline) -> None:
    written = studied(pipeline)
    assert lines_of("reproduce", "drip", "steam") == [
        "",
        "drip: It is fast (section 4)",
        "  paper     10 s",
        "  measured  9 s [8, 9.5], bound 10",
        "  holds",
        "",
        "steam: It is small (table 2)",
        "  paper     2 kB",
        "  reading   as printed",
        "  measured  3 kB",
        "  does not hold: they count less",
        "  reading   else",
        "  measured  -",
        "  not measurable here",
        "",
        "2 claims in their most natural reading: 1 hold, 1 do not hold",
        "report: lake/studies/studies.html",
    ]
    assert [(given[1].name, given[2], given[3]) for given in pipeline["run_study"]] == [
        ("drip", Path("lake/results"), False), ("steam", Path("lake/results"), False),
    ]  # fmt: skip
    assert [given[0] for given in pipeline["run_study"]] == ["session"] * 2
    assert json_of("reproduce", "drip", "--quick", "--out", "there") == json.loads(json.dumps([JUDGED[0].as_json()]))
    assert [given[3] for given in pipeline["run_study"]] == [False, False, True]
    assert written == [Path("lake/studies/studies.html"), Path("there/studies.html")]
    assert [(given[1], given[2]) for given in pipeline["studies_report"]] == [(JUDGED, False), (JUDGED[:1], True)]
    assert pipeline["write_claims"] == []


def test_claims_go_into_the_pages_that_have_marks_for_them(pipeline: Pipeline) -> None:
    studied(pipeline)
    Path("docs").mkdir()
    pipeline.answers("studies.running.pages_of", {"drip": None, "steam": Path("docs/steam.md")})
    done = call("reproduce", "drip", "steam", "--pages", "docs")
    assert done.stderr == "docs/drip.md has no marks for claims: it is left as it is\n"
    assert pipeline["pages_of"] == [(Path("docs"), ["drip", "steam"])]
    assert pipeline["write_claims"] == [(Path("docs/steam.md"), [JUDGED[1]], "from 2 cases")]


def test_studies_are_listed_and_all_of_them_run_where_none_is_named(pipeline: Pipeline) -> None:
    studied(pipeline)
    names = ["codd", "content-odmrp", "drip", "georendezvous", "hearsay", "steam"]
    assert lines_of("reproduce", "--list") == [f"{name:16} P" for name in names]
    assert pipeline.asked == []
    lines_of("reproduce")
    assert [given[1].name for given in pipeline["run_study"]] == names


# The watch.


class Watching:
    """In place of a watch: two commits are reported, then it ends."""

    commits: tuple[Any, ...] = ()
    failure: Exception | None = None
    made: tuple[Any, ...] = ()

    def __init__(self, *given: Any) -> None:
        type(self).made, self.report, self.polls = given[1:4], given[4], 0

    @contextmanager
    def running(self, once: bool) -> Iterator[Any]:
        type(self).made += (once,)
        yield self

    @property
    def isActive(self) -> bool:
        self.polls += 1
        if self.polls <= len(self.commits):
            self.report(self.commits[self.polls - 1])
        return self.polls <= len(self.commits)

    def exception(self) -> Exception | None:
        return self.failure

    def last(self) -> Any:
        return self.commits[-1] if self.commits else None


@pytest.fixture
def alert_rows(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Lets `watch` run without Spark; the alerts that it writes into the lake, each time."""
    written: list[Any] = []
    pipeline.lake.arrow = SimpleNamespace(
        read=lambda *_, **__: SimpleNamespace(to_pylist=list),
        write_rows=lambda table, rows, watch: written.append((table, rows, watch)),
    )
    pipeline.answers("pipeline.watch.spool_segments.check_folders", None)
    monkeypatch.setattr("earshot.pipeline.watch.stream.Watch", Watching)
    monkeypatch.setattr("earshot.cli.watch.POLL_S", 0.0)
    monkeypatch.setattr(Watching, "commits", ())
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "1g")
    return written


def commit(batch: int, late: int = 0) -> Commit:
    counts = {
        "batch": batch, "nodes": 1, "records": 2, "events": 3, "open_events": 0, "late": late, "rejects": 0,
        "subscriptions": 0, "matches": 0, "spools": "[]", "committed_at": 9.0, "newest": 2.0,
    }  # fmt: skip
    return Commit(batch, counts, [], [], metrics=RunningMetrics())


def test_a_watch_has_the_settings_that_the_options_say(pipeline: Pipeline, alert_rows: list[Any]) -> None:
    nothing = call("watch", "spools")
    assert (nothing.stdout, nothing.stderr) == ("", "nothing was recorded yet\n")
    folders, settings, wanted, once = Watching.made
    assert (folders, settings, wanted, once) == (("spools",), WatchSettings(), None, False)
    assert pipeline["open_lake"][0][0].lake == "lake"
    call("watch", "one", "two", "--out", "mine", "--once", "--name", "w", "--every", "1s", "--watermark", "2s",
         "--patience", "3s", "--cell", "4m", "--forget", "5s", "--keep", "6d")  # fmt: skip
    assert Watching.made == (
        ("one", "two"),
        WatchSettings(name="w", delay_s=2.0, patience_s=3.0, cell_m=4.0, every_s=1.0, forget_s=5.0, keep_s=518_400.0),
        None,
        True,
    )
    assert pipeline["open_lake"][1][0].lake == "mine"
    assert pipeline["check_folders"] == [
        (("spools",), ("may_be_empty", True)), (("one", "two"), ("may_be_empty", False)),
    ]  # fmt: skip
    assert alert_rows == []


def test_each_batch_is_shown_and_alerts_become_a_table(
    monkeypatch: pytest.MonkeyPatch, alert_rows: list[Any], pipeline: Pipeline
) -> None:
    monkeypatch.setattr(Watching, "commits", (commit(1), commit(2, late=5)))
    done = call("watch", "spools", "--name", "w", "--alert", "late > 0 for 1m", "--json")
    assert done.exception is None, done.exception
    assert [json.loads(line)["batch"] for line in done.stdout.splitlines()] == [1, 2]
    assert [(table, len(rows), name) for table, rows, name in alert_rows] == [("watched_alerts", 1, "w")]
    plain = call("watch", "spools")
    assert plain.stdout.splitlines()[:2] == ["batch 1, 1 node, 2 records, 3 events (0 open)",
                                             "batch 2, 1 node, 2 records, 3 events (0 open), 5 late"]  # fmt: skip
    assert len(alert_rows) == 1, "no alert, no table"
    pipeline.lake.arrow.read = lambda table, watch: SimpleNamespace(to_pylist=lambda: [f"{table} of {watch}"])
    call("watch", "spools", "--name", "w")
    assert alert_rows[1:] == [("watched_alerts", [], "w")], "alerts of an earlier run are taken back once"


def test_a_watch_that_fails_says_why_and_its_metrics_end_with_it(
    monkeypatch: pytest.MonkeyPatch, alert_rows: list[Any]
) -> None:
    served: list[Any] = []

    def serve(address: str, exported: Any) -> Any:
        served.append((address, exported))
        return lambda: served.append("ended")

    monkeypatch.setattr("earshot.cli.options.serve_metrics", serve)
    monkeypatch.setattr(Watching, "commits", (commit(3),))
    monkeypatch.setattr(Watching, "failure", UsageError("the disk is full"))
    failed = call("watch", "spools", "--metrics", "127.0.0.1:9464")
    assert str(failed.exception) == "the disk is full"
    (address, exported), ended = served
    assert (address, ended) == ("127.0.0.1:9464", "ended")
    assert (exported.watch, exported.commit) == ("live", Watching.commits[0])
    assert alert_rows == []
