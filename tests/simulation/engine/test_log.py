"""The log: in memory, as Parquet and as Arrow, whole or not at all."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_networks import Bench, everybody_wants, failure_of, flooding, ping, send_word, standing

from earshot.errors import UsageError
from earshot.records import COLUMNS, Kind
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.media.medium_settings import UnitDisk
from earshot.simulation.workload.actions import Workload

NODES = standing(*((8.0 * k, 0.0) for k in range(6)))
EMPTY: dict[str, Any] = {"string": "", "int64": -1, "int32": -1, "float64": None}


def run_into(log: Log) -> Engine:
    actions = [*everybody_wants(6), ping(1.0, 0), ping(2.0, 3)]
    engine = Engine(flooding(), NODES, UnitDisk(range_m=17.0), Workload(actions), duration_s=5.0, log=log)
    engine.run()
    return engine


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """NaN does not equal itself; None does."""
    return [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in rows
    ]


def test_a_row_has_every_column_and_what_does_not_apply_is_empty() -> None:
    log = Log()
    log.begin(["a", "b"])
    log.row(Kind.JOIN, 1.5, 1, detail="why")
    (row,) = plain(list(log.rows()))
    assert row == {
        **{name: EMPTY[kind] for name, kind in COLUMNS.items()},
        "time": 1.5,
        "node": "b",
        "kind": "join",
        "detail": "why",
    }
    assert list(row) == list(COLUMNS)


def test_a_transmission_and_its_receipts_share_a_number() -> None:
    log = Log()
    run_into(log)
    rows = [row for row in log.rows() if row["event"] == "a-0" and row["kind"] in ("send", "receive")][:4]
    columns = ("time", "node", "kind", "transmission", "packet", "peer", "hops")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (1.0, "a", "send", 1, "flood", "", -1),
        (1.001, "b", "receive", 1, "flood", "a", 1),
        (1.001, "c", "receive", 1, "flood", "a", 1),
        (1.001, "b", "send", 2, "flood", "", -1),
    ]
    assert len({row["bytes"] for row in rows}) == 1
    assert rows[0]["bytes"] > 20


@pytest.mark.parametrize("chunk_rows", [1, 7, 1 << 17])
def test_memory_parquet_and_arrow_hold_the_same_rows(tmp_path: Path, chunk_rows: int) -> None:
    kept = Log(chunk_rows=chunk_rows)
    run_into(kept)
    expected = plain(list(kept.rows()))
    for name in ("run.parquet", "run.arrow"):
        with Log(tmp_path / "deep" / name, chunk_rows=chunk_rows) as log:
            run_into(log)
        path = tmp_path / "deep" / name
        table = pq.read_table(path) if name.endswith("parquet") else pa.ipc.open_file(str(path)).read_all()
        assert plain(table.to_pylist()) == expected
        assert log.rows_written == len(expected)
    assert plain(kept.to_arrow().to_pylist()) == expected
    types = {name: pa.string() if kind == "string" else pa.type_for_alias(kind) for name, kind in COLUMNS.items()}
    assert {field.name: field.type for field in pa.ipc.open_file(str(tmp_path / "deep" / "run.arrow")).schema} == types


def test_a_stranger_is_logged_by_name() -> None:
    bench = Bench(NODES)
    bench.do(1.0, "a", send_word("who?", "hello"))
    bench.do(1.0, "a", send_word("anybody", "hello"))
    bench.run()
    assert bench.rows("kind", "peer", node="a")[1:] == [
        ("send", "who?"),
        ("send", "anybody"),
        ("drop", "who?"),
        ("drop", "anybody"),
    ]


def test_a_peer_that_is_a_node_has_the_number_of_the_node() -> None:
    bench = Bench(NODES)
    for peer in ("a", "b", "who?"):
        bench.do(1.0, "c", send_word(peer, "hello"))
    bench.run()
    (chunk,) = bench.log.chunks()
    assert chunk.words["peer"] == [*chunk.words["node"], "", "who?"]
    sent = [peer for kind, peer in zip(chunk.columns["kind"], chunk.columns["peer"], strict=True)
            if chunk.words["kind"][kind] == "send"]  # fmt: skip
    assert sent == [0, 1, len(NODES) + 1]


def test_a_file_appears_when_it_is_whole_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with Log(path) as log:
        run_into(log)
        assert not path.exists()
    assert [found.name for found in tmp_path.iterdir()] == ["run.parquet"]


def test_a_run_that_fails_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"

    def fail() -> None:
        with Log(path) as log:
            run_into(log)
            raise UsageError("stopped")

    assert failure_of(fail) == "stopped"
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.arrow"
    path.write_bytes(b"earlier")
    log = Log(path)
    run_into(log)
    assert path.read_bytes() == b"earlier"
    log.close()
    log.close()
    assert pa.ipc.open_file(str(path)).read_all().num_rows == log.rows_written


def test_an_empty_log_is_a_table_without_rows(tmp_path: Path) -> None:
    assert Log().to_arrow().num_rows == 0
    with Log(tmp_path / "run.parquet"):
        pass
    assert pq.read_table(tmp_path / "run.parquet").num_rows == 0


def test_what_cannot_be_logged_is_refused(tmp_path: Path) -> None:
    assert failure_of(lambda: Log(tmp_path / "run.csv")) == "a log's name ends in .parquet or .arrow, got 'run.csv'"
    assert (
        failure_of(lambda: Log(positions_every_s=0)) == "positions_every_s must be a positive number of seconds, got 0"
    )
    assert failure_of(lambda: Log(chunk_rows=0)) == "chunk_rows must be at least 1, got 0"
    log = Log()
    run_into(log)
    assert failure_of(lambda: run_into(log)) == "a log belongs to one run; start another for the next"
    streaming = Log(tmp_path / "run.parquet")
    assert failure_of(streaming.to_arrow) == f"this log streams to {tmp_path / 'run.parquet'}; read it there"
    streaming.discard()


def test_memory_stays_a_chunk(tmp_path: Path) -> None:
    """What is written is not kept: nothing of an earlier chunk is left in the log."""
    log = Log(tmp_path / "run.parquet", chunk_rows=20)
    run_into(log)
    assert log.rows_written >= 20
    assert (len(log._nodes) < 20, log._kept) == (True, [])
    log.close()


def test_each_way_of_writing_ends_a_chunk_that_is_full() -> None:
    from earshot.simulation.engine.result import PacketCount
    from earshot.simulation.media.transmission import Transmission

    sent = Transmission(0, None, PacketCount("word", False, False), 9, "", -1, None)  # type: ignore[arg-type]
    for write in (
        lambda log: log.send(1.0, sent),
        lambda log: log.receive(1.0, sent, [1]),
        lambda log: log.row(Kind.NOTE, 1.0, 0, detail="x"),
    ):
        log = Log(chunk_rows=3)
        log.begin(["a", "b"])
        written = []
        for _ in range(7):
            write(log)  # type: ignore[no-untyped-call]
            written.append(log.rows_written)
        assert written == [0, 0, 3, 3, 3, 6, 6]
        assert len(list(log.rows())) == 7


def test_an_unfinished_file_that_is_gone_already_can_be_discarded(tmp_path: Path) -> None:
    log = Log(tmp_path / "run.parquet")
    for draft in tmp_path.iterdir():
        draft.unlink()
    log.discard()
    log.discard()
    assert list(tmp_path.iterdir()) == []
