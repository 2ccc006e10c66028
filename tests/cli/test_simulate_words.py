"""What `earshot simulate`, `protocols` and `scenarios` print, line by line."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.cli import simulate as module
from earshot.errors import UsageError
from earshot.simulation.engine.summary import RunSummary
from earshot.simulation.settings_schema import Setting

SUMMARY = RunSummary(
    "town", "cbf", 7, nodes=1, measured_s=90.5, events=1200, expected=4000, delivered=3000, delivery_ratio=0.74,
    precision=0.99, transmissions=5000, cost=4.15, data_bytes=1_000_000, control_bytes=2000, bytes_per_delivery=333.4,
    latency_p50_s=0.0123, latency_p95_s=0.9994, latency_p99_s=1.0, hops_mean=2.04, drops={"expired": 1500},
)  # fmt: skip
NOTHING = replace(
    SUMMARY, events=0, expected=0, delivered=0, delivery_ratio=None, precision=None, cost=None, bytes_per_delivery=None,
    latency_p50_s=None, latency_p95_s=None, latency_p99_s=None, hops_mean=None, drops={},
)  # fmt: skip


def printed(*arguments: str) -> list[str]:
    done = CliRunner().invoke(earshot, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def cells(lines: list[str]) -> list[list[str]]:
    """The columns of a table, which are two spaces or more apart."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


def test_a_summary_has_shares_counts_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    module._print_summary(SUMMARY, 2.34)
    first, blank, *table = capsys.readouterr().out.splitlines()
    assert (first, blank) == ("town, cbf, seed 7: 1 node, 90.5 s measured, took 2.3 s", "")
    assert cells(table)[2:] == [
        ["events published", "1,200"],
        ["delivery ratio", "0.7400", "of 4,000 expected deliveries"],
        ["precision", "0.9900", "30 of 3,000 deliveries unexpected"],
        ["transmissions", "5,000"],
        ["cost", "4.2", "transmissions with an event, per event"],
        ["data bytes", "1,000,000"],
        ["control bytes", "2,000"],
        ["bytes per delivery", "333.4"],
        ["latency, median", "12.3 ms"],
        ["latency, 95 %", "999.4 ms"],
        ["latency, 99 %", "1.00 s"],
        ["hops, mean", "2.0"],
        ["drops: expired", "1,500"],
    ]


def test_a_summary_of_nothing_has_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    module._print_summary(NOTHING, 0.0)
    rows = cells(capsys.readouterr().out.splitlines()[2:])[2:]
    assert [row for row in rows if "-" in row] == [
        ["delivery ratio", "-", "of 0 expected deliveries"],
        ["precision", "-", "0 of 0 deliveries unexpected"],
        ["cost", "-", "transmissions with an event, per event"],
        *([name, "-"] for name in ("bytes per delivery", "latency, median", "latency, 95 %", "latency, 99 %")),
        ["hops, mean", "-"],
    ]


def test_a_run_shows_its_progress_and_writes_its_log_into_a_folder_that_may_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    log, progress = nullcontext("the log"), nullcontext("the progress")

    def run(scenario: Any, protocol: str, given: Any, **named: Any) -> Any:
        asked.append((scenario.name, protocol, given, named))
        return "the result"

    monkeypatch.setattr(module, "_progress", lambda scenario, *given: asked.append((scenario.name, *given)) or progress)
    monkeypatch.setattr(module, "_log", lambda *given: asked.append(given) or log)
    monkeypatch.setattr(module, "_write_run", lambda *given: asked.append((given[0], *given[2:])))
    monkeypatch.setattr(module, "_print_summary", lambda *given: asked.append(given[0]))
    monkeypatch.setattr("earshot.simulation.engine.run.run", run)
    monkeypatch.setattr("earshot.simulation.engine.summary.summarise", lambda _, result: f"of {result}")
    lines = printed("simulate", "base", "-p", "gossip", "--seed", "3", "--setting", "probability=0.5",
                    "--log", str(tmp_path), "--positions-every", "2")  # fmt: skip
    named = {"seed": 3, "log": "the log", "progress": "the progress"}
    assert asked == [
        ("base", "gossip", 3), (tmp_path, 2.0), ("base", "gossip", {"probability": "0.5"}, named),
        (tmp_path, "the result", "of the result"), "of the result",
    ]  # fmt: skip
    assert lines == ["", f"log: {tmp_path / 'log.parquet'}"]


def test_a_log_has_positions_at_an_interval_or_never_in_a_folder_that_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []

    def log(path: Path, positions_every_s: float | None) -> Any:
        opened.append((path, positions_every_s))
        return nullcontext()

    monkeypatch.setattr("earshot.simulation.engine.log.Log", log)
    with module._log(None, 1.0) as nothing:
        assert nothing is None
    module._log(tmp_path / "deep" / "one", 5.0)
    module._log(tmp_path / "deep" / "one", 0.0)
    path = tmp_path / "deep" / "one" / "log.parquet"
    assert opened == [(path, 5.0), (path, None)]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--log .*file/one: Not a directory"):
        module._log(tmp_path / "file" / "one", 1.0)


LONG = "How long it waits. It waits for everybody who could come, and then a little, and then it waits for the rest."
FOUND = [
    Setting("wait_s", "number", True, None, "seconds", LONG),
    Setting("share", "number", False, 0.5, "", "A share."),
    Setting("limit_m", "number", False, None, "metres", "A limit."),
]


def test_protocols_are_shown_with_their_paper_medium_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    shout: Any = SimpleNamespace(paper="A. Author: Shouting (Venue, 1999)", needs_routing=False, Settings="those")
    routed: Any = SimpleNamespace(paper="B. Author: Routing", needs_routing=True, Settings="none")
    described = {"those": FOUND, "none": []}
    monkeypatch.setattr("earshot.simulation.settings_schema.settings_described", described.__getitem__)
    monkeypatch.setattr(
        "earshot.protocols.catalogue.known_protocols",
        lambda: {"shout": shout, "broken": UsageError("cannot be loaded"), "routed": routed},
    )
    done = CliRunner().invoke(earshot, ["protocols"], catch_exceptions=False)
    assert done.stderr == "earshot: cannot be loaded\n"
    assert done.stdout.splitlines() == [
        "shout",
        "  A. Author: Shouting (Venue, 1999)",
        "    wait_s (must be given)",
        "        How long it waits. It waits for everybody who could come, and then a little, and then it",
        "        waits for the rest.",
        "    share = 0.5",
        "        A share.",
        "    limit_m = not set metres",
        "        A limit.",
        "",
        "routed  (needs routing)",
        "  B. Author: Routing",
    ]


def test_scenarios_are_a_table_with_their_nodes_medium_and_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {
        name: SimpleNamespace(
            name=name,
            names=lambda count=count: ["n"] * count,
            medium=SimpleNamespace(kind=kind),
            duration_s=duration_s,
            description=f"A {name}.",
        )
        for name, count, kind, duration_s in (("town", 12, "unit_disk", 90.0), ("sea", 3, "overlay", 0.5))
    }
    monkeypatch.setattr("earshot.simulation.scenario.library.built_in", lambda: list(made))
    monkeypatch.setattr("earshot.simulation.scenario.library.load_scenario", made.__getitem__)
    assert printed("scenarios") == [
        "scenario  nodes  medium     duration",
        "--------  -----  ---------  --------  -------",
        "town         12  unit_disk      90 s  A town.",
        "sea           3  overlay       0.5 s  A sea.",
    ]
