"""Files as frames of a session that DuckDB runs in place of Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from spark_on_duckdb import Frame, Session, schema_of


class Reader:
    """Reads files of the formats that Earshot reads with Spark."""

    def __init__(self, session: Session, wanted: pa.Schema | None = None, **options: str) -> None:
        self.session, self.wanted, self.options = session, wanted, options

    def schema(self, ddl: str) -> Reader:
        return Reader(self.session, schema_of(ddl), **self.options)

    def option(self, name: str, value: str) -> Reader:
        return Reader(self.session, self.wanted, **{**self.options, name: value})

    def format(self, name: str) -> Reader:
        assert name == "binaryFile"
        return self

    def load(self, paths: Sequence[str]) -> Frame:
        rows = [{"path": f"file:{path}", "content": Path(path).read_bytes()} for path in paths]
        return self.session.createDataFrame(rows, "path string, content binary")

    def text(self, paths: Sequence[str]) -> Frame:
        rows = [(line, {"file_path": f"file:{path}"}) for path in paths for line in Path(path).read_text().splitlines()]
        kind = pa.struct([("file_path", pa.string())])
        columns = {"value": pa.array([one[0] for one in rows], pa.string()), "_metadata": [one[1] for one in rows]}
        return self.session.frame_of(pa.table({**columns, "_metadata": pa.array(columns["_metadata"], kind)}))

    def parquet(self, *paths: str) -> Frame:
        """Files, or all of a folder; with the columns that folders below `basePath` name."""
        plain = [Path(re.sub(r"\\(.)", r"\1", path).removeprefix("file:")) for path in paths]
        files = [file for path in plain for file in (sorted(path.rglob("*.parquet")) if path.is_dir() else [path])]
        return self.session.frame_of(pa.concat_tables([self._file(file) for file in files]))

    def _file(self, file: Path) -> pa.Table:
        rows = pq.ParquetFile(file).read()
        if self.wanted is None:
            return rows
        base = self.options.get("basePath", str(file.parent)).removeprefix("file:")
        names = [part.partition("=") for part in file.parent.relative_to(base).parts]
        for name, _, text in names:
            rows = rows.append_column(name, pa.repeat(unquote(text).replace("Infinity", "inf"), rows.num_rows))
        for field in self.wanted:
            if field.name not in rows.schema.names:
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        place = pa.array([{"file_name": file.name}] * rows.num_rows, pa.struct([("file_name", pa.string())]))
        return rows.select(self.wanted.names).cast(self.wanted).append_column("_metadata", place)
