"""Files that unpack to far more than a trace: refused by name, before they fill the memory."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from earshot.errors import TraceError
from earshot.traces.files import open_trace


@pytest.mark.parametrize(("piece", "reason"), [(b"0" * 1024, "a line of more than"), (b"0,a,1,2\n" * 128, "400 times")])
@pytest.mark.parametrize("by_line", [True, False])
def test_a_bomb_is_refused_in_bounded_memory(tmp_path: Path, piece: bytes, reason: str, by_line: bool) -> None:
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as out:
        out.write(b"time,node,x_m,y_m\n")
        for _ in range(100):
            out.write(piece * 1024)
    tracemalloc.start()
    with open_trace(str(bomb), by_line) as stream, pytest.raises(TraceError, match=reason if by_line else "400 times"):
        list(iter(lambda: len(stream.read(1 << 16)), 0))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000_000


def test_a_regular_trace_is_read(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv.gz"
    rows = b"".join(b"%d,car,%d,0\n" % (second, second * 7 % 1000) for second in range(200_000))
    with gzip.open(trace, "wb") as out:
        out.write(b"time,node,x_m,y_m\n" + rows)
    with open_trace(str(trace), by_line=True) as stream:
        assert len(stream.read()) == len(rows) + 18
