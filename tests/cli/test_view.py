"""`earshot view`: what it writes, and what it says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from spool_cases import write_spools

from earshot.cli.simulate import simulate
from earshot.cli.view import view
from earshot.errors import UsageError
from earshot.records import Record


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(view, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for protocol in ("flooding", "gossip"):
        changes = ["--set", "duration_s=12", "--set", "warm_up_s=2", "--set", "nodes.node.count=20"]
        done = CliRunner().invoke(simulate, ["base", "-p", protocol, *changes, "--log", str(folder / protocol)])
        assert done.exit_code == 0, done.output
    return folder


def test_runs_become_one_file_that_names_no_other(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages" / "replay.html"
    done = run(folder / "flooding", folder / "gossip", "--out", out)
    assert (done.exit_code, done.output) == (0, f"{out}: base, seed 1: flooding, gossip (0.1 MB)\n")
    document = out.read_text()
    assert "http://" not in document
    assert "https://" not in document
    assert "src=" not in document
    assert [path.name for path in out.parent.iterdir()] == ["replay.html"]


def test_the_same_runs_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        assert run(folder / "gossip", "--out", tmp_path / name).exit_code == 0
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def stated(*arguments: str | Path) -> str:
    error = run(*arguments).exception
    assert isinstance(error, UsageError)
    return str(error)


def test_what_cannot_be_shown_is_said(folder: Path, tmp_path: Path) -> None:
    assert stated(tmp_path / "none").startswith("there is no folder")
    assert "has no finished run; run: earshot compare SCENARIO" in stated(tmp_path)
    recorded = [Record(time=0.0, node="a", kind="join"), Record(time=1.0, node="a", kind="leave")]
    write_spools(tmp_path / "spools" / "car", recorded)
    assert stated(tmp_path / "spools") == (
        f"{tmp_path}/spools is a spool, which live nodes recorded; make a lake of it first: "
        f"earshot watch {tmp_path}/spools --out LAKE --once, then earshot view LAKE"
    )
    assert "log.parquet is a file; name the folder of a run" in stated(folder / "gossip" / "log.parquet")
    assert "is not the folder of a run" in stated(folder / "gossip", tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text((folder / "gossip" / "run.json").read_text())
    (tmp_path / "broken" / "log.parquet").write_text("no parquet")
    assert "is not a log" in stated(tmp_path / "broken", "--out", tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
    assert "cannot write" in stated(folder / "gossip", "--out", folder / "gossip" / "run.json" / "x.html")
