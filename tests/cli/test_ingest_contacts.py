"""`earshot ingest` and `earshot contacts`: what they print, and how they fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from earshot.cli import main

pytestmark = pytest.mark.spark

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """The command line, in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return call


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli") / "lake"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "pair.csv"
    rows = [f"{node},{t},{x},0" for t in range(4) for node, x in (("a", 0), ("b", 5 if t < 3 else 80))]
    path.write_text("\n".join(["node,time,x,y", *rows, "a,3,0,0", "b,soon,0,0"]) + "\n")
    return path


@pytest.mark.usefixtures("spark")
def test_ingest_counts_what_it_kept_and_rejected(run: Run, trace: Path, lake: Path) -> None:
    assert run("ingest", trace, "--lake", lake) == (
        0,
        f"pair: 2 nodes from {trace} (csv)\n"
        "  rows read                10\n"
        "  rows kept                 8\n"
        "  unparsable                1  rejected\n"
        "  duplicate                 1  rejected\n"
        "  duration                3.0  s\n"
        "  interval               1.00  s between samples (median)\n"
        f"next: earshot contacts pair --range 100m --lake {lake}\n",
        "",
    )


@pytest.mark.usefixtures("spark")
def test_contacts_print_statistics_for_people_and_for_programs(run: Run, trace: Path, lake: Path) -> None:
    run("ingest", trace, "--trace", "again", "--lake", lake)
    code, out, err = run("contacts", "again", "--range", "0.01km", "--lake", lake)
    assert (code, err) == (0, "")
    assert out.splitlines()[:5] == [
        "again: contacts within 10 m, sampled every 1 s",
        "  contacts                       1",
        "  pairs that met                 1",
        "  nodes                          2  of which 2 met another",
        "  neighbours at once          0.75  (mean over nodes and time)",
    ]
    code, out, err = run("contacts", "again", "--range", "10m", "--json", "--lake", lake)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["contacts"], found["contact_s"]["p50"], found["inter_contact_s"]) == (1, 2.0, None)


def test_one_command_reads_a_trace_and_finds_its_contacts(run: Run, trace: Path, lake: Path) -> None:
    code, out, err = run("ingest", trace, "--trace", "once", "--contacts", "10m", "--lake", lake)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("once: 2 nodes from ")
    assert "once: contacts within 10 m, sampled every 1 s" in out.splitlines()
    code, out, _ = run("ingest", trace, "--trace", "once", "--contacts", "10m", "--json", "--lake", lake)
    assert (code, json.loads(out)["nodes"], json.loads(out)["contacts"]["contacts"]) == (0, 2, 1)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest", "nowhere.csv"], "there is no trace file nowhere.csv; check the path"),
        (["contacts", "nowhere", "--range", "10m"], "has no trace nowhere, only trace "),
    ],
)
def test_what_the_caller_did_wrong_is_one_line_and_exit_code_2(
    run: Run, trace: Path, lake: Path, arguments: list[str], message: str
) -> None:
    run("ingest", trace, "--lake", lake)
    code, out, err = run(*arguments, "--lake", lake)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["contacts", "x", "--range", "near"], "'near' is not a length: give a positive number and a unit (m, km)"),
        (["contacts", "x", "--range", "-5m"], "'-5m' is not a length"),
        (["ingest", "x", "--format", "spool", "--contacts", "5m"], "--contacts is for traces"),
        (
            ["ingest", "x", "--max-speed", "3 furlongs"],
            "is not a speed: give a positive number and a unit (m/s, km/h or",
        ),
        (["ingest", "x", "--origin", "Liverpool"], "'Liverpool' is not a place"),
    ],
)
def test_an_option_that_cannot_be_read_says_how_to_write_it(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_a_format_that_nobody_knows_is_refused_with_those_there_are(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "town.csv"
    trace.write_text("node,time,x,y\na,0,0,0\n")
    code, out, err = run("ingest", str(trace), "--format", "shapefile", "--lake", str(tmp_path / "lake"))
    assert (code, out) == (2, "")
    assert "no trace format named 'shapefile'; there are: bonnmotion, csv, gpx" in err
