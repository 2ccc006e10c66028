"""What each long command says that it does, and how much there is to do."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from earshot.cli import earshot

COMMANDS = ("advise", "campaigns", "pipeline", "studies", "traces")


class Bar:
    """A bar that notes what it is asked to show."""

    def __init__(self, title: str, total: int = 0) -> None:
        self.title, self.total = title, total
        self.said: list[Any] = []

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.said.append("ended")

    def say(self, stage: str) -> None:
        self.said.append(stage)

    def runs(self, *counts: Any) -> None:
        self.said.append(counts)

    def clear(self) -> None:
        self.said.append("cleared")


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Bar]:
    """The bars of the commands that are called, whose pipeline is replaced."""
    made: list[Bar] = []
    doubtless = SimpleNamespace(to_pylist=lambda: [{"doubts": None}])
    lake: Any = SimpleNamespace(
        session=None, folder=SimpleNamespace(root="root"), has=lambda *_, **__: True,
        arrow=SimpleNamespace(read=lambda *_, **__: doubtless),
    )  # fmt: skip

    def bar(*given: Any) -> Bar:
        made.append(Bar(*given))
        return made[-1]

    @contextmanager
    def opened(_: Any, *given: Any, **named: Any) -> Any:
        assert named.get("bar", given[-1] if given else None) is (made[-1] if made else None), "it shows Spark's jobs"
        yield lake

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EARSHOT_LAKE", raising=False)
    for command in COMMANDS:
        monkeypatch.setattr(f"earshot.cli.{command}.open_lake", opened)
        monkeypatch.setattr(f"earshot.cli.{command}.ProgressBar", bar, raising=False)
    return made


def answers(monkeypatch: pytest.MonkeyPatch, **functions: Any) -> None:
    """These functions, by their places with double underscores for dots, return the answer."""
    for place, answer in functions.items():
        monkeypatch.setattr(f"earshot.{place.replace('__', '.')}", lambda *_, found=answer, **__: found)


def shown(bars: list[Bar], *arguments: str) -> list[tuple[str, int, list[Any]]]:
    """What the bars of one command showed."""
    del bars[:]
    done = CliRunner().invoke(earshot, [*arguments, "--json"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    return [(bar.title, bar.total, bar.said) for bar in bars]


def test_ingest_and_contacts_say_what_they_do(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(trace="town", as_json=dict)
    answers(
        monkeypatch, pipeline__traces__ingest__check_files=None, pipeline__traces__ingest__ingest=found,
        pipeline__traces__contact_statistics__find_contacts=found,
    )  # fmt: skip
    assert shown(bars, "ingest", "a.csv") == [("ingest", 0, ["reading", "ended"])]
    assert shown(bars, "ingest", "a.csv", "--contacts", "9m") == [
        ("ingest", 0, ["reading", "finding contacts", "ended"])
    ]
    assert shown(bars, "contacts", "town", "--range", "9m") == [
        ("contacts of town", 0, ["finding contacts", "ended"])
    ]  # fmt: skip


def test_an_oracle_says_what_it_finds(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    answers(
        monkeypatch, pipeline__campaigns__flow__expected_counts={}, pipeline__campaigns__flow__workload_ceiling=None
    )
    assert shown(bars, "oracle", "w1") == [
        ("oracle of w1", 0, ["finding the expected receivers", "finding what is reachable", "ended"])
    ]  # fmt: skip


def test_a_trace_that_is_read_clears_the_line_before_its_doubts(
    bars: list[Bar], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(trace="town", as_json=dict)
    answers(
        monkeypatch,
        pipeline__traces__ingest__trace_in_lake="town",
        pipeline__traces__trace_profile__profile_trace=found,
    )
    assert shown(bars, "profile", "town.csv") == [
        ("profile of town.csv", 0, ["reading the trace", "cleared", "ended"])
    ]  # fmt: skip


def test_campaigns_show_as_many_runs_as_there_are_and_what_comes_after_them(
    bars: list[Bar], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_campaign(_: Any, wanted: Any, say: Any, runs: Any, **__: Any) -> list[Any]:
        say(wanted.name)
        runs(1, 2, 3)
        return []

    def find_capacity(*given: Any, **named: Any) -> Any:
        (named.get("say") or given[-1])("loads")
        return SimpleNamespace(as_json=dict)

    monkeypatch.setattr("earshot.pipeline.campaigns.flow.run_campaign", run_campaign)
    monkeypatch.setattr("earshot.pipeline.campaigns.capacity.find_capacity", find_capacity)
    monkeypatch.setattr("earshot.cli.campaigns.replace", lambda facts, **_: facts)
    answers(
        monkeypatch, pipeline__reports__report__report_facts="facts", pipeline__reports__report__facts_json={},
        pipeline__reports__report__write_page_of=Path("page.html"),
    )  # fmt: skip
    Path("c.toml").write_text('scenarios = ["base"]\nprotocols = ["cbf"]\nseeds = 2\n')
    assert shown(bars, "sweep", "c.toml") == [("campaign c", 2, ["c", (1, 2, 3), "ended"])]
    two = ("compare", "base", "--protocols", "cbf,gossip", "--seeds", "3")
    page = ["writing the report", "ended"]
    assert shown(bars, *two) == [("2 protocols on base", 6, ["compare-base", (1, 2, 3), *page])]
    assert shown(bars, *two, "--capacity") == [("2 protocols on base", 6, ["compare-base", (1, 2, 3), "loads", *page])]
    assert shown(bars, "capacity", "base", "--protocols", "cbf") == [("capacity on base", 0, ["loads", "ended"])]


def test_advice_shows_its_stages_and_runs(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    def advise(_: Any, question: Any, say: Any, runs: Any) -> Any:
        say("trying")
        runs(4, 5, 0)
        return question

    monkeypatch.setattr("earshot.pipeline.advice.advise.advise", advise)
    answers(
        monkeypatch, cli__advise__read_into_lake="town", cli__advise__check_choice=None,
        pipeline__reports__report__report_facts="facts", pipeline__reports__report__write_page_of=Path("page.html"),
        pipeline__advice__advice_text__advice_toml="", pipeline__advice__advice_text__advice_json={},
    )  # fmt: skip
    Path("lake").mkdir()
    assert shown(bars, "advise", "town", "other", "--protocols", "cbf") == [
        ("advice on town", 0, ["trying", (4, 5, 0), "writing the report", "ended"])
    ]  # fmt: skip


def test_a_study_shows_how_many_cases_of_its_experiments_are_done(
    bars: list[Bar], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_study(*given: Any) -> Any:
        given[-1](1, 0, 0)
        return SimpleNamespace(rows=[], origin="")

    experiments = [SimpleNamespace(quick=[1], cases=[1, 2]), SimpleNamespace(quick=[1, 2], cases=[1, 2, 3])]
    monkeypatch.setattr(
        "earshot.studies.study.study", lambda name: SimpleNamespace(name=name, paper="P", experiments=experiments)
    )
    monkeypatch.setattr("earshot.studies.running.run_study", run_study)
    page = SimpleNamespace(write=lambda to: to)
    answers(monkeypatch, studies__study__judge=[], studies__running__studies_report=page)
    for more, cases in (((), 5), (("--quick",), 3)):
        assert shown(bars, "reproduce", "drip", *more) == [("study drip", cases, [(1, 0, 0), "ended"])]
