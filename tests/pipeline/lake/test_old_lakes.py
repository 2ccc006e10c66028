"""Lakes written before they were Delta tables: refused with the command to run, and converted with every row."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.errors import LakeError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.traces.files import expanded
from earshot.traces.formats import read_trace


def old_partition(root: Path, partition: str, stamp: int, rows: list[dict[str, object]], marked: bool = True) -> None:
    folder = root / partition / f"version={stamp:020d}-3f2a"
    folder.mkdir(parents=True)
    schema = None if rows else pa.schema([("event", pa.string()), ("node", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "part-0.parquet")
    if marked:
        (folder / "_COMMITTED-1b2c3d4e").touch()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    root = tmp_path / "old"
    place = {"time": 0.0, "x_m": 1.0, "y_m": 2.0}
    old_partition(root, "positions/trace=o%27er%2Fsea", 1, [{"node": "replaced", **place}])
    old_partition(root, "positions/trace=o%27er%2Fsea", 2, [{"node": "a", **place}, {"node": "b", **place}])
    old_partition(root, "positions/trace=o%27er%2Fsea", 3, [{"node": "never whole", **place}], marked=False)
    old_partition(root, "contacts/trace=city/range_m=100.0", 1, [{"a": "x", "b": "y", "start": 0.0, "end": 1.0}])
    old_partition(root, "expected/workload=nobody", 1, [])
    for number in range(12):
        old_partition(root, f"runs/run=r{number}", 1, [{"seed": number, "status": "done"}])
    (root / "_leases").mkdir()
    return root


def test_an_old_lake_is_refused_with_the_command_and_converted_whole(old: Path) -> None:
    lake = ArrowLake(old)
    for attempt in (lambda: lake.read("positions"), lambda: lake.write_rows("positions", [], trace="x")):
        with pytest.raises(
            LakeError, match=r"written by an earlier version of earshot; .*: earshot lake convert .*old"
        ):
            attempt()
    done = CliRunner().invoke(earshot, ["lake", "convert", str(old), "--json"])
    assert json.loads(done.output) == {"positions": 2, "contacts": 1, "expected": 0, "runs": 12}
    assert lake.read("positions").select(["trace", "node", "x_m", "speed_m_s"]).to_pylist() == [
        {"trace": "o'er/sea", "node": node, "x_m": 1.0, "speed_m_s": None} for node in "ab"
    ]
    assert lake.partitions("contacts") == [{"trace": "city", "range_m": "100.0"}]
    assert lake.has("expected", workload="nobody")
    assert sorted(row["seed"] for row in lake.read("runs").to_pylist()) == list(range(12))
    assert not list(old.rglob("version=*"))
    assert not (old / "_leases").exists()
    again = CliRunner().invoke(earshot, ["lake", "convert", str(old)])
    assert again.output == f"{old} has no tables of the old form\n"


def test_a_table_of_which_no_version_is_whole_is_not_there(tmp_path: Path) -> None:
    old_partition(tmp_path, "positions/trace=city", 1, [{"node": "a"}], marked=False)
    lake = ArrowLake(tmp_path)
    assert lake.partitions("positions") == []
    lake.write_rows("positions", [{"node": "b"}], trace="city")
    assert lake.read("positions")["node"].to_pylist() == ["b"]


def test_a_conversion_that_was_killed_is_begun_again(old: Path) -> None:
    lake = ArrowLake(old)
    # Killed after the commit of positions, before the old folders were removed.
    before = sorted(path for path in (old / "positions").rglob("*") if path.is_file())
    contents = {path: path.read_bytes() for path in before}
    CliRunner().invoke(earshot, ["lake", "convert", str(old)])
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    CliRunner().invoke(earshot, ["lake", "convert", str(old)])
    assert sorted(lake.read("positions")["node"].to_pylist()) == ["a", "b"]
    assert not list(old.rglob("version=*"))


def test_the_commands_show_a_lake_and_keep_it_small(tmp_path: Path) -> None:
    run = CliRunner()
    lake = ArrowLake(tmp_path / "lake")
    none = run.invoke(earshot, ["lake", "tables", str(tmp_path / "none")])
    assert isinstance(none.exception, LakeError)
    for number in range(6):
        lake.write_rows("runs", [{"run": f"r{number}"}])
        lake.write_rows("positions", [{"node": "a", "time": float(number)}], trace="walk")
    root = str(tmp_path / "lake")
    tables = json.loads(run.invoke(earshot, ["lake", "tables", root, "--json"]).output)
    assert [(row["table"], row["version"], row["rows"], row["files"]) for row in tables] == [
        ("positions", 6, 1, 1),
        ("runs", 6, 6, 6),
    ]
    assert "positions" in run.invoke(earshot, ["lake", "tables", root]).output
    history = json.loads(run.invoke(earshot, ["lake", "history", root, "positions", "--json"]).output)
    assert [row["version"] for row in history] == [6, 5, 4, 3, 2, 1, 0]
    assert (history[0]["change"], history[0]["rows"], history[0]["files_replaced"]) == ("replace", 1, 1)
    assert "files replaced" in run.invoke(earshot, ["lake", "history", root]).output
    assert (
        run.invoke(earshot, ["lake", "compact", root]).output == "positions: nothing to join\nruns: 6 files became 1\n"
    )
    assert len(lake.keys("runs")) == 6
    listed = json.loads(run.invoke(earshot, ["lake", "vacuum", root, "--keep", "0", "--dry-run", "--json"]).output)
    assert {name: len(files) for name, files in listed["files"].items()} == {"positions": 5, "runs": 6}
    assert run.invoke(earshot, ["lake", "vacuum", root]).output == "positions: 0 files removed\nruns: 0 files removed\n"
    emptied = run.invoke(earshot, ["lake", "vacuum", root, "--keep", "0"]).output
    assert emptied == "positions: 5 files removed\nruns: 6 files removed\n"
    assert lake.read("positions")["time"].to_pylist() == [5.0]


def test_a_lake_that_is_not_there_is_named(tmp_path: Path) -> None:
    run = CliRunner()
    for command in ("tables", "history", "compact", "vacuum"):
        missing = run.invoke(earshot, ["lake", command, str(tmp_path / "nowhere")]).exception
        assert f"there is no lake at {tmp_path}/nowhere; give" in str(missing)
        empty = run.invoke(earshot, ["lake", command, str(tmp_path)]).exception
        assert str(empty) == f"the lake {tmp_path} has no tables"


def test_a_trace_in_a_lake_is_played_back_as_its_newest_version_has_it(tmp_path: Path) -> None:
    lake = ArrowLake(tmp_path / "lake")
    for x_m in (1.0, 2.0):
        lake.write_rows("positions", [{"node": "a", "time": 0.0, "x_m": x_m, "y_m": 0.0}], trace="walk")
    lake.write_rows("positions", [{"node": "b", "time": 0.0, "x_m": 9.0, "y_m": 0.0}], trace="other")
    assert read_trace(tmp_path / "lake" / "positions" / "trace=walk").x_m.tolist() == [2.0]
    (file,) = expanded([str(tmp_path / "lake" / "positions" / "trace=walk")])
    assert Path(file).name.startswith("part-")
