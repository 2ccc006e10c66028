"""`earshot simulate`, `protocols` and `scenarios` as people call them."""

import json
import os
import pty
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from earshot.cli import earshot, main
from earshot.cli.traces import check_scenarios
from earshot.protocols.catalogue import PROTOCOLS
from earshot.simulation.scenario.library import built_in, load_scenario

SHORT = ("--set", "duration_s=30", "--set", "nodes.node.count=20")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(earshot, arguments, catch_exceptions=False, standalone_mode=False)


def json_of(*arguments: str) -> Any:
    return json.loads(call(*arguments, "--json").output)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_a_run_ends_with_its_summary() -> None:
    text = call("simulate", "base", "-p", "flooding", *SHORT).output
    assert text.startswith("base, flooding, seed 1: 20 nodes, 10 s measured, took ")
    for measure in ("delivery ratio", "precision", "cost", "data bytes", "control bytes", "latency, median"):
        assert measure in text


def test_the_same_seed_gives_the_same_summary_and_another_seed_another() -> None:
    one, again = (json_of("simulate", "base", "-p", "flooding", *SHORT) for _ in range(2))
    other = json_of("simulate", "base", "-p", "flooding", "--seed", "2", *SHORT)
    assert one == again
    assert one["events"] > 0
    assert {name for name in one if one[name] != other[name]} > {"seed", "transmissions"}


def test_settings_and_scenario_keys_are_changed_from_the_command_line() -> None:
    summary = json_of(
        "simulate", "base", "-p", "gossip", "--setting", "probability=0", "--setting", "distance_m=0", *SHORT
    )
    assert summary["settings"]["probability"] == 0.0
    assert summary["nodes"] == 20
    assert summary["cost"] == 1.0
    apart = json_of(
        "simulate", "base", "-p", "flooding", "--set", "medium.kind=lossy", "--set", "medium.certain_m=1", *SHORT
    )
    assert apart["drops"] != {}


def test_values_are_written_as_in_toml_or_plain_and_an_empty_value_removes_a_key() -> None:
    changes = ("--set", "publish.news.count=", "--set", "nodes.node.mobility={kind = 'uniform'}", "--set", "name=x y")
    assert json_of("simulate", "base", "-p", "flooding", *changes, *SHORT)["scenario"] == "x y"


def test_a_scenario_file_of_the_user_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "base"\nduration_s = 30\n[nodes.node]\ncount = 10')
    assert json_of("simulate", str(tmp_path / "mine.toml"), "-p", "flooding")["scenario"] == "mine"


def street(folder: Path, nodes: int = 2) -> str:
    """A scenario that plays back a file in which each node drives for 50 s, straight to the east."""
    rows = [f"car{node},{time},{10 * time},{50 * node}" for node in range(nodes) for time in range(0, 51, 5)]
    (folder / "street.csv").write_text("\n".join(["node,time,x,y", *rows]) + "\n")
    (folder / "street.toml").write_text(
        'base = "base"\nwithout = ["nodes.node.count"]\nduration_s = 50\nwarm_up_s = 5\ncool_down_s = 5\n'
        "[area]\nwidth_m = 500\nheight_m = 100\n[publish.news]\ncount = 1\n"
        '[nodes.node]\nmobility = {kind = "playback", file = "street.csv"}\n'
    )
    return str(folder / "street.toml")


def doubts(*arguments: str) -> list[str]:
    stated = call("simulate", *arguments, "-p", "flooding").stderr.splitlines()
    return [line.removeprefix("warning: ") for line in stated if line.startswith("warning: ")]


def test_playback_of_a_file_beyond_its_end_is_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = street(tmp_path)
    assert doubts(file) == []
    beyond = "the window 0 to 90 s reaches beyond trace street.csv, which lasts from 0 to 50 s: for 40 s nobody moves"
    assert doubts(file, "--set", "duration_s=90") == [beyond]
    assert doubts(file, "--set", "duration_s=90", "--set", "warm_up_s=60") == [
        beyond,
        "no node is there while events are published, from 60 to 85 s of the run: change duration_s, warm_up_s, "
        "cool_down_s or the trace's start_s",
    ]
    assert beyond in refused(capsys, "simulate", file, "-p", "flooding", "--set", "duration_s=90", "--strict")


def test_playback_of_a_file_with_times_of_another_age_is_doubted(tmp_path: Path) -> None:
    file = street(tmp_path)
    with (tmp_path / "street.csv").open("a") as rows:
        rows.write("car0,2999-01-01T00:00:00Z,500,0\n")
    (stated,) = doubts(file)
    assert stated.startswith("times of trace street.csv reach until 2999-01-01 00:00:00, after the year 2200: a clock")


def test_a_trace_of_one_node_is_doubted(tmp_path: Path) -> None:
    assert doubts(street(tmp_path, nodes=1)) == [
        "only node car0 is there while events are published, from 5 to 45 s of the run: nobody else can receive them"
    ]


def test_a_trace_that_cannot_run_does_not_keep_a_sweep_from_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beyond = load_scenario(street(tmp_path)).with_(duration_s=90.0)
    (tmp_path / "twice").mkdir()
    broken = load_scenario(street(tmp_path / "twice"))
    with (tmp_path / "twice" / "street.csv").open("a") as file:
        file.write("car1,50,0,0\n")
    check_scenarios([broken, beyond, beyond])
    (stated,) = capsys.readouterr().err.splitlines()
    assert stated.startswith("warning: the window 0 to 90 s reaches beyond trace street.csv")


def test_doubts_are_about_the_scenario_that_runs(tmp_path: Path) -> None:
    file = street(tmp_path)
    (tmp_path / "small.toml").write_text('base = "street.toml"\n[area]\nwidth_m = 100\n')
    (stated,) = doubts(str(tmp_path / "small.toml"))
    assert stated.startswith("the area is smaller than the trace: ")
    assert doubts(str(tmp_path / "small.toml"), "--set", "area.width_m=500") == []
    (stated,) = doubts(file, "--set", "area.width_m=100")
    assert stated.startswith("the area is smaller than the trace: ")


def test_a_log_is_written_beside_what_was_run(tmp_path: Path) -> None:
    import pyarrow.parquet

    folder = tmp_path / "deep" / "one"
    text = call("simulate", "base", "-p", "flooding", "--log", str(folder), "--positions-every", "5", *SHORT).output
    assert text.rstrip().endswith(f"log: {folder / 'log.parquet'}")
    assert sorted(path.name for path in folder.iterdir()) == ["log.parquet", "run.json"]
    log = pyarrow.parquet.read_table(folder / "log.parquet").to_pylist()
    kinds = {row["kind"] for row in log}
    assert {"publish", "send", "receive", "deliver", "subscribe", "announce", "join", "position"} <= kinds
    assert sorted({row["time"] for row in log if row["kind"] == "position"}) == [0, 5, 10, 15, 20, 25, 30]
    run = json.loads((folder / "run.json").read_text())
    assert (run["protocol"], run["seed"], run["scenario"]["duration_s"]) == ("flooding", 1, 30.0)
    assert run["summary"]["delivered"] == len({(row["event"], row["node"]) for row in log if row["kind"] == "deliver"})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("citty", "-p", "flooding"), "earshot: no scenario named 'citty'; did you mean 'city'?"),
        (("base", "-p", "flodding"), "earshot: no protocol named 'flodding'; did you mean 'flooding'?"),
        (("base",), "earshot: name a protocol with --protocol"),
        (("base", "-p", "flooding", "--set", "x"), "earshot: --set 'x': write --set name=value"),
        (("base", "-p", "flooding", "--set", "medium.range=9"), "medium.range: lacks its unit; write range_m (metres)"),
        (("base", "-p", "gossip", "--setting", "probability=2"), "probability: must be from 0 to 1, got 2"),
        (("base", "-p", "gossip", "--setting", "probabilty=1"), "did you mean probability?"),
        (("base", "-p", "flooding", "--seed", "-1"), "Invalid value for '--seed'"),
        (("none.toml", "-p", "flooding"), "earshot: none.toml: no such scenario file; check the path"),
    ],
)
def test_mistakes_are_reported_in_one_line_with_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    assert problem in refused(capsys, "simulate", *arguments)


def test_a_log_that_cannot_be_written_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    problem = refused(capsys, "simulate", "base", "-p", "flooding", "--log", str(tmp_path / "file" / "x"))
    assert f"--log {tmp_path / 'file' / 'x'}: Not a directory" in problem


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "earshot", *arguments]


def on_a_terminal(arguments: list[str], until: bytes) -> tuple[subprocess.Popen[str], int, bytes]:
    """Start a command with its errors on a terminal, and read there until these words appear."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=follower, text=True)
    os.close(follower)
    seen = b""
    while until not in seen:
        seen += os.read(leader, 4096)
    return process, leader, seen


def test_there_is_a_progress_bar_on_a_terminal_and_none_in_a_pipe() -> None:
    arguments = command("simulate", "base", "-p", "flooding", "--json", *SHORT)
    piped = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    process, leader, seen = on_a_terminal(arguments, until=b"100%")
    out, _ = process.communicate()
    os.close(leader)
    assert b"base, flooding, seed 1" in seen
    assert json.loads(out).keys() == json.loads(piped.stdout).keys()


@pytest.mark.parametrize(
    ("before", "asked_by"),
    [((), signal.SIGINT), ((), signal.SIGTERM), (("sh", "-c", 'trap "" INT; exec "$@"', "sh"), signal.SIGTERM)],
    ids=["ctrl-c", "kill", "kill-in-the-background"],
)
def test_a_stopped_run_leaves_no_log_and_an_earlier_one_untouched(
    before: tuple[str, ...], asked_by: signal.Signals, tmp_path: Path
) -> None:
    """The run is stopped after a while; otherwise it would take very long. A script's background command ignores
    Ctrl-C, but not SIGTERM."""
    (tmp_path / "log.parquet").write_text("an earlier one")
    run = command("simulate", "base", "-p", "flooding", "--log", str(tmp_path), "--set", "duration_s=10000")
    arguments = [*before, *run]
    process, leader, _ = on_a_terminal(arguments, until=b"1%")
    process.send_signal(asked_by)
    out, _ = process.communicate()
    os.close(leader)
    assert (process.returncode, out) == (128 + asked_by, "")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"log.parquet": "an earlier one"}


# What there is.


def test_every_protocol_is_listed_with_paper_medium_and_settings() -> None:
    rows = {row["name"]: row for row in json_of("protocols")}
    assert set(rows) == set(PROTOCOLS)
    for name, row in rows.items():
        assert row["paper"]
        assert row["needs_routing"] is (row["name"] in ("codd", "siena"))
        fields = list(PROTOCOLS[name].Settings.__dataclass_fields__)
        assert [setting["name"] for setting in row["settings"]] == fields
    distance = next(setting for setting in rows["gossip"]["settings"] if setting["name"] == "distance_m")
    assert (distance["default"], distance["unit"], distance["type"]) == (200.0, "metres", "number")
    assert distance["doc"].startswith("d: ")


def test_one_protocol_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = call("protocols", "gossip").output
    assert text.startswith("gossip\n")
    assert "    distance_m = 200.0 metres\n        d: " in text
    assert "flooding" not in text.splitlines()[0]
    assert "no protocol named 'gosip'; did you mean 'gossip'?" in refused(capsys, "protocols", "gosip")


def test_every_scenario_is_listed_with_its_description() -> None:
    rows = {row["name"]: row for row in json_of("scenarios")}
    assert set(rows) == set(built_in())
    assert rows["drip"]["nodes"] == 200
    assert rows["drip"]["medium"] == "contention"
    text = call("scenarios").output
    assert all(row["description"] in text for row in rows.values())


def test_a_scenario_is_printed_whole_and_can_be_run_from_that(tmp_path: Path) -> None:
    text = call("scenarios", "city").output
    (tmp_path / "city.toml").write_text(text)
    assert load_scenario(tmp_path / "city.toml") == load_scenario("city")
    assert json_of("scenarios", "city") == tomllib.loads(text)


@pytest.mark.parametrize("name", ["simulate", "protocols", "scenarios"])
def test_help_teaches_with_examples_that_exist(name: str) -> None:
    text = call(name, "--help").output
    assert f"  earshot {name}" in text
    assert "Examples:" in text
