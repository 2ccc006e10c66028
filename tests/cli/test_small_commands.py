"""Commands that need neither Spark nor a network: a lake, a plot, plug-ins, a page, and the start of a session."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from earshot.cli import earshot, pytest_plugin, spark, view
from earshot.cli.check import same_in_both_hosts
from earshot.cli.lake import _moment
from earshot.cli.options import LENGTH, PLACE, SIZE, SPEED
from earshot.cli.replay import RecordedRun
from earshot.cli.simulate import _progress
from earshot.cli.spark import LakeOptions, ProgressBar, open_lake, spark_settings
from earshot.cli.traces import TraceChoice, check_scenarios, named_trace
from earshot.errors import ScenarioError, TraceError, UsageError
from earshot.pipeline.campaigns.intervals import Figure
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.reports.lake_replays import Chosen
from earshot.pipeline.reports.plots import Plot, PlotPoint
from earshot.plugins.loading import InstalledPlugin
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.conformance import Nonconforming
from earshot.simulation.mobility import Playback
from earshot.simulation.scenario.library import load_scenario


def call(*arguments: str) -> Any:
    done = CliRunner().invoke(earshot, list(arguments))
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def lines_of(*arguments: str) -> list[str]:
    found: list[str] = call(*arguments).stdout.splitlines()
    return found


def json_of(*arguments: str) -> Any:
    return json.loads(call(*arguments, "--json").stdout)


# Options.


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (SIZE, "3", 3e6), (SIZE, "3MB", 3e6), (SIZE, "3kB", 3e3), (SIZE, "2GB", 2e9), (LENGTH, "2km", 2000.0),
        (LENGTH, "2", 2.0), (SPEED, "36 km/h", 10.0), (SPEED, "None", float("inf")), (SPEED, "1e1m/s", 10.0),
    ],
)  # fmt: skip
def test_a_quantity_has_a_unit(quantity: Any, text: str, value: float) -> None:
    assert quantity.convert(text, None, None) == pytest.approx(value)
    assert quantity.convert(7, None, None) == 7.0


@pytest.mark.parametrize(
    ("quantity", "text", "choice"),
    [(SIZE, "3m", "MB, kB, GB"), (LENGTH, "-1m", "m, km"), (LENGTH, "none", "m, km"), (LENGTH, "0m", "m, km"),
     (SPEED, "1e999m/s", "m/s, km/h or 'none'"), (LENGTH, "1-2", "m, km")],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_its_units(quantity: Any, text: str, choice: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        quantity.convert(text, None, None)
    reported = f"{text!r} is not a {quantity.name}: give a positive number and a unit ({choice})"
    assert refused.value.message == reported


def test_a_place_is_two_finite_numbers() -> None:
    assert PLACE.convert("53.43,-2.95", None, None) == PLACE.convert((53.43, -2.95), None, None) == (53.43, -2.95)
    for text in ("1", "1,2,3", "a,b", "nan,1", "1,inf"):
        with pytest.raises(click.BadParameter, match=r"not a place in degrees: write LAT,LON, as in 53\.43,-2\.95"):
            PLACE.convert(text, None, None)


# A lake.


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Four commits in two tables, a second apart."""
    opened = ArrowLake(tmp_path / "lake")
    for number in range(2):
        opened.write_rows("runs", [{"run": f"r{number}"}])
        opened.write_rows("positions", [{"node": "a", "time": float(number)}], trace="walk")
    return str(tmp_path / "lake")


def test_tables_are_listed_with_what_they_hold(lake: str) -> None:
    names = ["table", "version", "partitions", "files", "rows", "bytes"]
    reported = json_of("lake", "tables", lake)
    assert [[row[name] for name in names[:-1]] for row in reported] == [["positions", 2, 1, 1, 1], ["runs", 2, 2, 2, 2]]
    header, _, *rows = lines_of("lake", "tables", lake)
    assert header.split() == list(reported[0])
    assert [row.split()[:2] for row in rows] == [["positions", "2"], ["runs", "2"]]


def test_the_history_of_all_tables_has_the_newest_commit_first(lake: str) -> None:
    header, _, *rows = lines_of("lake", "history", lake)
    assert " ".join(header.split()) == "table time (UTC) version change files rows bytes files replaced"
    times = [" ".join(row.split()[1:3]) for row in rows]
    assert times == sorted(times, reverse=True)
    reported = json_of("lake", "history", lake, "runs")
    assert {row["table"] for row in reported} == {"runs"}
    (newest, *_) = lines_of("lake", "history", lake, "runs")[2:]
    assert newest.split()[3] == "2"


def test_a_commit_has_its_time_in_utc() -> None:
    assert _moment(86_400.5) == "1970-01-02 00:00:00"


def test_small_files_are_joined_and_files_that_nobody_needs_removed(lake: str) -> None:
    assert json_of("lake", "compact", lake, "runs") == [{"table": "runs", "files_before": 2, "files_after": 1}]
    assert lines_of("lake", "compact", lake) == ["positions: nothing to join", "runs: nothing to join"]
    dry = lines_of("lake", "vacuum", lake, "positions", "--keep", "0", "--dry-run")
    assert (dry[0], len(dry)) == ("positions: 1 files would be removed", 2)
    assert dry[1].startswith("  trace=walk/")
    reported = json_of("lake", "vacuum", lake, "--keep", "0")
    assert (reported["dry_run"], {name: len(files) for name, files in reported["files"].items()}) == (
        False, {"positions": 1, "runs": 2},
    )  # fmt: skip
    assert lines_of("lake", "vacuum", lake) == ["positions: 0 files removed", "runs: 0 files removed"]
    assert lines_of("lake", "convert", lake) == [f"{lake} has no tables of the old form"]
    assert json_of("lake", "convert", lake) == {}


def test_converted_tables_are_reported_with_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.pipeline.lake.old_lakes.convert", lambda _: {"runs": 12})
    assert lines_of("lake", "convert", "old") == ["runs: 12 rows"]
    assert json_of("lake", "convert", "old") == {"runs": 12}


# A plot.


def test_points_are_printed_drawn_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    found = Plot("range_m", "cost", "protocol", (PlotPoint("cbf", 90.0, Figure(2.0, 1.5, 2.5, 3)),))
    reports = "earshot.pipeline.reports.plots"
    monkeypatch.setattr(f"{reports}.read_plot", lambda lake, *given: asked.append((lake.folder.root, *given)) or found)
    monkeypatch.setattr(f"{reports}.draw_plot", lambda *given: asked.append(given))
    plain = ("plot", str(tmp_path), "--x", "range_m", "--y", "cost")
    shown = ["protocol,range_m,cost,low,high,seeds", "cbf,90,2,1.5,2.5,3"]
    assert lines_of(*plain) == shown
    assert asked == [(str(tmp_path), "range_m", "cost", "protocol", {})]
    assert json_of(*plain) == [{"protocol": "cbf", "range_m": 90.0, "mean": 2.0, "low": 1.5, "high": 2.5, "seeds": 3}]
    svg, table = tmp_path / "p.svg", tmp_path / "p.csv"
    both = lines_of(*plain, "--out", str(svg), "--csv", str(table), "--by", "variant", "--where", "protocol=cbf",
                    "--width", "text", "--title", "T")  # fmt: skip
    assert both == [f"wrote {svg}", f"wrote {table}"]
    assert table.read_text().splitlines() == shown
    assert asked[-2:] == [(str(tmp_path), "range_m", "cost", "variant", {"protocol": "cbf"}), (found, svg, "text", "T")]
    assert lines_of(*plain, "--csv", str(table)) == [f"wrote {table}"]
    assert lines_of(*plain, "--out", str(svg)) == [f"wrote {svg}"]
    assert asked[-1] == (found, svg, "column", "")


# Plug-ins.


def test_plug_ins_are_listed_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("earshot.cli.plugins.installed", lambda _: [])
    assert json_of("plugins") == []
    assert lines_of("plugins") == [
        "no plug-ins are installed; a class in a file works too: --protocol ./file.py:Class"
    ]  # fmt: skip
    mine = InstalledPlugin("protocols", "shout", "shout:Shout", "shout 1.0")
    monkeypatch.setattr("earshot.cli.plugins.installed", lambda kind: [mine] if kind == "protocols" else [])
    assert json_of("plugins") == [
        {"kind": "protocols", "name": "shout", "reference": "shout:Shout", "origin": "shout 1.0"}
    ]  # fmt: skip
    assert lines_of("plugins") == [
        "kind       name   object       from",
        "---------  -----  -----------  ---------",
        "protocols  shout  shout:Shout  shout 1.0",
    ]


def test_a_new_protocol_is_a_package_with_its_names_filled_in(tmp_path: Path) -> None:
    reported = lines_of("new", "protocol", "my-gossip2", "--in", str(tmp_path))
    target = tmp_path / "my-gossip2"
    places = ["pyproject.toml", "README.md", "src/my_gossip2/machine.py", "src/my_gossip2/__init__.py",
              "tests/test_my_gossip2.py", "scenario.toml"]  # fmt: skip
    assert reported == [
        f"{target}: {', '.join(places)}",
        f"next: pip install --editable {target}",
        f"      earshot simulate {target}/scenario.toml --protocol my-gossip2",
    ]
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()) == sorted(places)
    texts = {place: (target / place).read_text() for place in places}
    assert not [place for place, text in texts.items() if "@" in text.replace("@dataclass", "").replace("@pytest", "")]
    assert "class MyGossip2(" in texts["src/my_gossip2/machine.py"]
    assert 'my-gossip2 = "my_gossip2' in texts["pyproject.toml"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("My", "is not a protocol's name"), ("a--b", "is not a protocol's name"), ("1a", "is not a protocol's name"),
     ("gossip", "there is a built-in protocol 'gossip'"), ("there", "exists already; choose another name or --in")],
)  # fmt: skip
def test_a_name_that_cannot_be_a_new_protocols_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "there").mkdir()
    refused = CliRunner().invoke(earshot, ["new", "protocol", name, "--in", str(tmp_path)]).exception
    assert isinstance(refused, UsageError)
    assert reason in str(refused)


class Config:
    """What pytest tells a plug-in."""

    def __init__(self, own: list[str], given: list[str]) -> None:
        self.own, self.given = own, given
        self.options: list[Any] = []

    def getini(self, name: str) -> list[str]:
        return self.own if name == "earshot_protocols" else []

    def getoption(self, name: str) -> list[str]:
        return self.given if name == "--check-protocol" else []

    def getgroup(self, name: str) -> Config:
        self.options.append(name)
        return self

    def addoption(self, name: str, **given: Any) -> None:
        self.options.append((name, given["action"], given["default"]))

    def addini(self, name: str, _: str, **given: Any) -> None:
        self.options.append((name, given["type"], given["default"]))


def test_pytest_gets_a_test_for_each_rule_of_each_protocol_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = Config([], [])
    pytest_plugin.pytest_addoption(config)
    assert config.options == ["earshot", ("--check-protocol", "append", []), ("earshot_protocols", "linelist", [])]
    monkeypatch.setattr("earshot.cli.check.checked_properties", lambda: {"repeats": None, "bounded": None})
    monkeypatch.setattr(pytest_plugin.PropertyItem, "from_parent", lambda _, **given: tuple(given.values()))
    items: list[Any] = ["a test"]
    pytest_plugin.pytest_collection_modifyitems(session=Any, config=config, items=items)  # type: ignore[arg-type]
    assert items == ["a test"]
    both: Any = Config(["cbf"], ["gossip", "cbf"])
    pytest_plugin.pytest_collection_modifyitems(session=Any, config=both, items=items)  # type: ignore[arg-type]
    assert items[1:] == [
        (f"{name}[{rule}]", name, rule) for name in ("cbf", "gossip") for rule in ("repeats", "bounded")
    ]  # fmt: skip


def test_a_rule_that_is_broken_fails_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    item: Any = SimpleNamespace(protocol="cbf", checked="repeats", path=Path("x"))
    monkeypatch.setattr("earshot.cli.check.check_by_name", lambda cls, rule: checked.append((cls.__name__, rule)))
    pytest_plugin.PropertyItem.runtest(item)
    assert checked == [("Cbf", "repeats")]
    broken: Any = SimpleNamespace(value=Nonconforming("it forgot"))
    assert pytest_plugin.PropertyItem.repr_failure(item, broken) == "cbf does not hold 'repeats': it forgot"
    assert pytest_plugin.PropertyItem.reportinfo(item) == (Path("x"), None, "cbf: repeats")


@pytest.mark.parametrize(
    ("effect", "simulated", "live", "same"),
    [
        (("a", "Deliver", 1, "a/s"), 1, 1, True), (("a", "Deliver", 1, "a/s"), 2, 1, False),
        (("a", "Broadcast", "flood", 1), 3, 1, True), (("a", "Broadcast", "flood", 1), 1, 0, False),
        (("a", "Send", "flood", 1), 0, 1, False),
    ],
)  # fmt: skip
def test_hosts_agree_on_deliveries_one_by_one_and_on_which_packets_there_are(
    effect: Any, simulated: int, live: int, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.cli.check._simulated", lambda *_: Counter({effect: simulated}))
    monkeypatch.setattr("earshot.cli.check._live", lambda *_: Counter({effect: live}))
    if same:
        same_in_both_hosts(PROTOCOLS["flooding"])
        return
    with pytest.raises(Nonconforming, match=f"asked for .* {simulated} times in the simulator and {live} times as a"):
        same_in_both_hosts(PROTOCOLS["flooding"])


# A page.


def test_a_page_is_served_until_ctrl_c_and_opens_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Server:
        address = "http://127.0.0.1:8000/"

        def __init__(self, catalogue: Any, title: str, port: int) -> None:
            seen.append((type(catalogue).__name__, title, port))

        def __enter__(self) -> Server:
            return self

        def __exit__(self, *_: object) -> None:
            seen.append("closed")

        def serve_forever(self) -> None:
            seen.append("served")
            raise KeyboardInterrupt

    ArrowLake(tmp_path / "town").write_rows("runs", [{"run": "r"}])
    monkeypatch.setattr("earshot.pipeline.reports.lake_replays.LakeCatalogue", lambda *_, chosen: chosen)
    monkeypatch.setattr("earshot.view.server.PageServer", Server)
    monkeypatch.setattr("webbrowser.open", lambda address: seen.append(address))
    asked = ["view", str(tmp_path / "town") + "/", "--port", "8000"]
    done = CliRunner().invoke(earshot, asked)
    assert done.stdout == "http://127.0.0.1:8000/  (Ctrl-C ends)\n"
    assert seen == [("Chosen", "town", 8000), "http://127.0.0.1:8000/", "served", "closed"]
    seen.clear()
    CliRunner().invoke(earshot, [*asked, "--no-browser"])
    assert seen[1:] == ["served", "closed"]


def test_a_lake_that_a_watch_fills_is_followed_unless_a_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("earshot.pipeline.reports.lake_replays.LakeCatalogue", lambda *_, chosen: chosen)
    lake = ArrowLake(tmp_path / "lake")
    lake.write_rows("watches", [{"batch": 1}], watch="live")
    folder = [str(tmp_path / "lake")]
    assert type(view._catalogue(folder, Chosen())).__name__ == "WatchCatalogue"
    assert view._catalogue(folder, Chosen(scenario="city")) == Chosen(scenario="city")


# A session.


def test_a_session_is_started_as_the_options_say_and_its_jobs_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EARSHOT_PROGRESS", "off")
    started: list[Any] = []
    watched: list[Any] = []

    @contextmanager
    def watch(session: str, show: Any) -> Iterator[None]:
        watched.append((session, show))
        yield

    def start(*given: Any, **named: Any) -> str:
        started.append((*given, named["small"]))
        return "session"

    monkeypatch.setattr("earshot.pipeline.spark.session.start_session", start)
    monkeypatch.setattr("earshot.pipeline.spark.progress.watch_jobs", watch)
    monkeypatch.setattr("earshot.pipeline.lake.lake.Lake", lambda session, lake: (session, lake))
    options = LakeOptions(str(tmp_path), "local[2]", None, ("spark.x=a=b",))
    bar = ProgressBar("t")
    with open_lake(options, [], bar) as opened:
        assert opened == ("session", str(tmp_path))
    with open_lake(options.at("other")) as opened:
        assert opened == ("session", "other")
    assert started == [("local[2]", None, {"spark.x": "a=b"}, True), ("local[2]", None, {"spark.x": "a=b"}, False)]
    assert watched == [("session", bar.tasks)], "without a bar nothing is shown"


def test_what_is_no_setting_of_sparks_is_refused() -> None:
    assert spark_settings([]) == {}
    for text in ("spark.x", "x=1", "=1"):
        with pytest.raises(UsageError, match="takes a setting of Spark's"):
            spark_settings([text])


@pytest.mark.parametrize(("terminal", "reported"), [(True, "starting\n"), (False, "")])
def test_a_notice_is_for_people(
    terminal: bool, reported: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark.sys.stderr, "isatty", lambda: terminal)
    spark._notice("starting")
    assert capsys.readouterr().err == reported


# A trace as a scenario.


def test_a_trace_in_the_lake_needs_no_spark_and_a_file_is_read_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EARSHOT_PROGRESS", "off")
    ArrowLake(tmp_path / "lake").write_rows("traces", [{"nodes": 1}], trace="town")
    lake = LakeOptions(str(tmp_path / "lake"))
    assert named_trace("town", lake, TraceChoice()) == "town"
    asked: list[Any] = []

    @contextmanager
    def opened(options: LakeOptions, bar: Any) -> Iterator[str]:
        asked.append((options, bar.title))
        yield "the lake"

    monkeypatch.setattr("earshot.cli.traces.open_lake", opened)
    monkeypatch.setattr("earshot.cli.traces.read_into_lake", lambda lake, trace, *_: f"{trace} in {lake}")
    monkeypatch.setattr("earshot.pipeline.traces.ingest.check_files", lambda *given: asked.append(given))
    file = str(tmp_path / "lake")
    choice = TraceChoice(units="km")
    assert named_trace(file, lake, choice) == f"{file} in the lake"
    assert asked == [([file], choice.reading), (lake, f"ingest of {file}")]
    named_trace("elsewhere", lake, choice)
    assert len(asked) == 3, "what is no file is not checked as one"


def test_a_trace_becomes_a_scenario_of_its_window_or_of_its_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    about = SimpleNamespace(start=100.0, end=1400.0)
    made: list[Any] = []
    base = load_scenario("base")
    monkeypatch.setattr("earshot.cli.traces.named_trace", lambda trace, *_: trace)
    monkeypatch.setattr("earshot.traces.lake_tables.trace_about", lambda *_: about)
    monkeypatch.setattr(
        "earshot.pipeline.traces.trace_scenario.TraceAdditions.scenario", lambda *given: made.append(given[1:]) or base
    )
    lake = LakeOptions(str(tmp_path))
    assert TraceChoice("town").scenario(lake) is base
    reported = capsys.readouterr().err
    assert reported == "window: 120 s in the middle of 1,300 s; --window FROM-TO chooses another\n"
    TraceChoice("town", window=(10.0, 30.0)).scenario(lake)
    about.end = 220.0
    TraceChoice("town").scenario(lake)
    assert capsys.readouterr().err == ""
    assert made == [
        (str(tmp_path), "town", None, None), (str(tmp_path), "town", 110.0, 130.0), (str(tmp_path), "town", None, None),
    ]  # fmt: skip


def test_doubts_about_scenarios_are_reported_once_and_failures_are_left_to_the_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base = load_scenario("base")
    played: Any = SimpleNamespace(nodes={"a": SimpleNamespace(mobility=Playback(file="x.csv")), **base.nodes})
    doubts: dict[int, Any] = {}

    def doubted(scenario: Any) -> list[str]:
        found = doubts[id(scenario)]
        if isinstance(found, Exception):
            raise found
        return list(found)

    monkeypatch.setattr("earshot.pipeline.traces.trace_scenario.scenario_doubts", doubted)
    other, broken, missing = (SimpleNamespace(nodes=played.nodes) for _ in range(3))
    doubts = {
        id(played): ["odd", "far"],
        id(other): ["far"],
        id(broken): ScenarioError("x"),
        id(missing): TraceError("x"),
    }
    check_scenarios([base, played, broken, missing, other])
    assert capsys.readouterr().err == "warning: odd\nwarning: far\n"
    with pytest.raises(TraceError, match="odd"):
        check_scenarios([played], strict=True)


def test_a_scenario_of_a_trace_is_printed_as_toml(monkeypatch: pytest.MonkeyPatch) -> None:
    base = load_scenario("base")
    chosen: list[Any] = []
    checked: list[Any] = []
    monkeypatch.setattr(
        "earshot.cli.traces.TraceChoice.scenario", lambda choice, lake: chosen.append((choice, lake.lake)) or base
    )
    monkeypatch.setattr("earshot.cli.traces.check_scenarios", lambda *given: checked.append(given))
    reported = call("scenario", "from-trace", "town", "--workload", "news", "--strict", "--lake", "mine").stdout
    assert "duration_s = 120" in reported
    assert chosen == [(TraceChoice("town", workload="news", strict=True), "mine")]
    assert checked == [([base], True)]


# Simulating and replaying.


def test_a_bar_on_a_terminal_grows_with_the_simulated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[Any] = []

    @contextmanager
    def progressbar(length: int, label: str, **_: Any) -> Iterator[Any]:
        grown.append((length, label))
        yield SimpleNamespace(update=grown.append)

    base: Any = SimpleNamespace(name="base", duration_s=50.0)
    with _progress(base, "cbf", 3) as advance:
        assert advance is None, "the output goes elsewhere"
    monkeypatch.setattr("earshot.cli.simulate.sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(click, "progressbar", progressbar)
    with _progress(base, "cbf", 3) as advance:
        assert advance is not None
        for now_s in (10.0, 10.0, 50.0):
            advance(now_s)
    assert grown == [(1000, "base, cbf, seed 3"), 200, 0, 800]


@pytest.mark.parametrize(
    ("simulated", "status", "lines"),
    [
        ({("b", "b/1", "a-0")}, 0, ["cbf, 2 nodes, 1 event: 1 deliveries in both, 0 only live, 0 only simulated"]),
        ({("c", "c/1", "a-0"), ("c", "c/1", "z")}, 1,
         ["cbf, 2 nodes, 1 event: 0 deliveries in both, 1 only live, 2 only simulated",
          "only live: live-7 to b (b/1)", "only simulated: live-7 to c (c/1)", "only simulated: z to c (c/1)"]),
    ],
)  # fmt: skip
def test_a_replay_says_where_the_deliveries_differ_and_which_lines_it_left_out(
    simulated: set[Any], status: int, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = RecordedRun(
        "cbf", events={"live-7": "a-0"}, deliveries={("b", "b/1", "a-0")}, damaged=["x.jsonl: odd", "y.jsonl: odd"]
    )
    recorded.sessions.sessions.update({"a": [], "b": []})
    asked: list[Any] = []
    monkeypatch.setattr("earshot.cli.replay.read_run", lambda _: recorded)
    monkeypatch.setattr("earshot.cli.replay.simulate_again", lambda _, *given: asked.append(given) or simulated)
    plain = ["replay", str(tmp_path)]
    done = CliRunner().invoke(earshot, plain, standalone_mode=False)
    assert (done.return_value, done.stdout.splitlines()) == (status, lines)
    assert done.stderr == "earshot: 2 lines were left out; the first: x.jsonl: odd\n"
    reported = json.loads(CliRunner().invoke(earshot, [*plain, "--json", "--seed", "4", "--protocol", "cbf"]).stdout)
    assert (reported["nodes"], reported["both"], reported["damaged_lines"]) == (2, int(status == 0), 2)
    assert [len(reported["only_live"]), len(reported["only_simulated"])] == ([0, 0] if status == 0 else [1, 2])
    assert asked == [(0, None), (4, "cbf")]
