"""Progress: plain lines with the time left where there is no terminal, and nothing where it is off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from earshot.cli import spark
from earshot.cli.spark import ProgressBar, duration_words
from earshot.pipeline.campaigns.campaigns import Run
from earshot.pipeline.campaigns.sweeps import _planned, slow_words
from earshot.simulation.scenario.library import load_scenario


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(spark.time, "monotonic", lambda: now[0])
    monkeypatch.delenv("EARSHOT_PROGRESS", raising=False)
    return now


def test_elsewhere_a_line_comes_every_few_seconds_with_the_time_left(
    clock: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    with ProgressBar("compare", 20) as bar:
        bar.say("simulating")
        for second in range(31):
            clock[0] = float(second)
            bar.runs(second // 3, 20 - second // 3, 0, "slow: codd 9 s a run" if second > 25 else "")
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 6
    assert lines[1] == "compare: [####....................] 3 done, 17 left, about 57 s left"
    assert lines[-1] == ("compare: [############............] 10 done, 10 left, about 30 s left; slow: codd 9 s a run")


def test_tasks_are_shown_where_runs_are_not_counted_and_there_are_several(
    clock: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    bar = ProgressBar("ingest")
    bar.say("reading")
    for second, show in (
        (5.0, lambda: bar.tasks(0, 1)), (6.0, lambda: bar.tasks(1, 4)), (10.0, lambda: bar.tasks(2, 4)),
        (11.0, lambda: bar.tasks(3, 4)), (16.0, lambda: bar.runs(1, 3, 2)), (21.0, lambda: bar.tasks(3, 4)),
        (26.0, lambda: bar.runs(4, 0, 0)), (31.0, lambda: bar.tasks(6, 6)),
    ):  # fmt: skip
        clock[0] = second
        show()
    assert capfd.readouterr().err.splitlines() == [
        "ingest: reading [######..................] 1 of 4 tasks",
        "ingest: reading [##################......] 3 of 4 tasks, about 2 s left",
        "ingest: [####....................] 1 done, 3 left, 2 failed",
        "ingest: [########################] 4 done, 0 left",
        "ingest: reading [########################] 6 of 6 tasks",
    ]


def test_tasks_are_shown_before_anything_was_announced(clock: list[float], capfd: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar("report")
    clock[0] = 5.0
    bar.tasks(1, 2)
    assert capfd.readouterr().err == "report:  [############............] 1 of 2 tasks\n"


def test_on_a_terminal_one_line_changes_and_is_empty_at_the_end(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(spark.sys.stderr, "isatty", lambda: True)
    with ProgressBar("compare") as bar:
        bar.say("simulating")
        bar.runs(1, 1, 0)
    empty = "\r\x1b[2K"
    assert capfd.readouterr().err == (
        f"{empty}compare: simulating{empty}compare: [############............] 1 done, 1 left{empty}"
    )
    monkeypatch.setenv("TERM", "dumb")
    assert not ProgressBar("compare").live
    assert clock == [0.0]


def test_progress_can_be_turned_off(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EARSHOT_PROGRESS", "off")
    with ProgressBar("compare", 20) as bar:
        clock[0] = 60.0
        bar.runs(3, 17, 0)
    assert capfd.readouterr().err == ""


def test_times_are_said_as_people_say_them() -> None:
    assert [duration_words(seconds) for seconds in (0.2, 45, 200, 9000)] == ["1 s", "45 s", "3 min", "2.5 h"]
    assert [duration_words(seconds) for seconds in (89.4, 90, 5399, 5400)] == ["89 s", "2 min", "90 min", "1.5 h"]


def test_slow_protocols_are_named() -> None:
    base = _planned("c", Run(load_scenario("base"), "flooding"))
    outcomes = [
        replace(base, protocol=name, took_s=took_s)
        for name, took_s in (("flooding", 2.0), ("gossip", 1.0), ("steam", 2.0), ("codd", 30.0), ("codd", 20.0))
    ]
    assert slow_words(outcomes) == "slow: codd 25 s a run"
    assert slow_words(outcomes[:3]) == ""
    assert slow_words([]) == ""
    several = [
        replace(base, protocol=name, took_s=took_s) for name, took_s in zip("abcde", (1, 1, 1, 3.1, 9), strict=True)
    ]
    assert slow_words(several) == "slow: e 9 s a run, d 3 s a run"
    quick = [replace(base, protocol=name, took_s=took_s) for name, took_s in zip("abc", (0.1, 0.1, 0.9), strict=True)]
    assert slow_words(quick) == "", "within a second nobody is slow"
