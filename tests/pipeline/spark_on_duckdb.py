"""Spark's frames, computed by DuckDB: a test runs a stage with its real plan in milliseconds, without a JVM.

It has what Earshot's queries use and no more. A frame is computed at each step; only a join of frames with aliases
waits for what is selected from it. What Spark does in tasks is done here by the same functions, each part of the rows
in several batches. `test_spark_on_duckdb.py` compares it with Spark.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from columns_as_sql import MACROS, SETTINGS, column_sql, columns_sql, condition_sql, exact
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

TYPES = {
    "string": pa.string(), "double": pa.float64(), "float": pa.float32(), "bigint": pa.int64(), "long": pa.int64(),
    "int": pa.int32(), "boolean": pa.bool_(), "binary": pa.binary(), "array<string>": pa.list_(pa.string()),
    "array<double>": pa.list_(pa.float64()),
}  # fmt: skip
JOINS = {"left_semi": "semi", "leftsemi": "semi", "left_anti": "anti", "leftanti": "anti", "outer": "full"}
SHUFFLE_PARTITIONS = 2

Task = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def schema_of(ddl: str) -> pa.Schema:
    parts = [re.match(r"\s*`?([^`]+?)`?\s+(\S+)\s*$", part) for part in ddl.split(",")]
    return pa.schema([(part[1], TYPES[part[2]]) for part in parts if part])


def flat(given: Iterable[Any]) -> list[Any]:
    return [one for some in given for one in (some if isinstance(some, list | tuple) else [some])]


def row_of(values: dict[str, Any]) -> Row:
    return Row(**{name: row_of(value) if isinstance(value, dict) else value for name, value in values.items()})


def grouped_rows(table: pa.Table, keys: Sequence[Any]) -> dict[Any, pa.Table]:
    """The rows of each key, in the order of their first rows."""
    places: dict[Any, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return {key: table.take(pa.array(some, pa.int64())) for key, some in places.items()}


class Frame:
    """Rows, with the methods of Spark's frames that the project uses."""

    isStreaming = False
    name = ""
    "Its alias."

    def __init__(self, session: Session, table: pa.Table | None = None, parts: Sequence[pa.Table] | None = None):
        self.sparkSession = session
        if table is not None:
            self.table = table
        self.parts = parts
        "The rows of each task; None: there is one task."

    @cached_property
    def table(self) -> pa.Table:
        return self.sparkSession.run(f"select * from {self.source}")

    @cached_property
    def source(self) -> str:
        """What SQL selects from: a table, or a join and its conditions."""
        return self.sparkSession.registered(self.table)

    @property
    def columns(self) -> list[str]:
        return [name for name in self.table.column_names if name != "_metadata"]

    @property
    def schema(self) -> StructType:
        return from_arrow_schema(self.table.select(self.columns).schema)

    def __getitem__(self, name: str) -> Any:
        return F.col(f"`{name}`")

    def _made(self, selected: str, rest: str = "") -> Frame:
        return Frame(self.sparkSession, self.sparkSession.run(f"select {selected} from {self.source} {rest}"))

    def _keys(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The values of some columns, row by row."""
        table = self.table.select(names) if all(isinstance(one, str) for one in names) else self.select(*names).table
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    # -- rows to rows

    def select(self, *given: Any) -> Frame:
        return self._made(columns_sql(flat(given)))

    def where(self, condition: Any) -> Frame:
        if "table" in vars(self):
            return self._made("*", f"where {condition_sql(condition)}")
        found = Frame(self.sparkSession)
        word = "and" if " where (" in self.source else "where"
        found.source = f"{self.source} {word} ({condition_sql(condition)})"
        return found

    filter = where

    def withColumns(self, given: Mapping[str, Any]) -> Frame:
        made = {name: f"{column_sql(column)} as {exact(name)}" for name, column in given.items()}
        kept = [made.pop(name, exact(name)) for name in self.table.column_names]
        return self._made(", ".join([*kept, *made.values()]))

    def withColumn(self, name: str, column: Any) -> Frame:
        return self.withColumns({name: column})

    def withColumnRenamed(self, old: str, new: str) -> Frame:
        return Frame(self.sparkSession, self.table.rename_columns([new if n == old else n for n in self.columns]))

    def drop(self, *names: str) -> Frame:
        return Frame(self.sparkSession, self.table.select([n for n in self.table.column_names if n not in names]))

    def distinct(self) -> Frame:
        return self._made("distinct *")

    def dropDuplicates(self, names: Sequence[str]) -> Frame:
        return self._made(f"distinct on ({', '.join(map(exact, names))}) *")

    def orderBy(self, *given: Any) -> Frame:
        return self._made("*", f"order by {columns_sql(flat(given))}")

    sort = orderBy

    def sortWithinPartitions(self, *given: Any) -> Frame:
        if self.parts is None:
            return self.orderBy(*given)
        return self._dealt([Frame(self.sparkSession, part).orderBy(*given).table for part in self.parts])

    def limit(self, count: int) -> Frame:
        return Frame(self.sparkSession, self.table.slice(0, count))

    def alias(self, name: str) -> Frame:
        found = Frame(self.sparkSession, self.table)
        found.source, found.name = f"{self.source} as {name}", name
        return found

    def _same(self, *_: Any) -> Frame:
        return self

    hint = _same

    def persist(self) -> Frame:
        self.sparkSession.persisted.append(self)
        return self

    def unpersist(self) -> Frame:
        if self in self.sparkSession.persisted:
            self.sparkSession.persisted.remove(self)
        return self

    # -- rows to tasks

    def _dealt(self, parts: Iterable[pa.Table]) -> Frame:
        parts = list(parts)
        return Frame(self.sparkSession, pa.concat_tables([self.table.slice(0, 0), *parts]), parts)

    def coalesce(self, tasks: int) -> Frame:
        assert tasks == 1
        return Frame(self.sparkSession, self.table)

    repartitionByRange = coalesce

    def repartition(self, *given: Any) -> Frame:
        """Rows of equal values in the columns have one task."""
        tasks, *names = given if isinstance(given[0], int) else (SHUFFLE_PARTITIONS, *given)
        place: dict[Any, int] = {}
        keys = self._keys(names) if names else range(self.count())
        numbers = [place.setdefault(key, len(place)) % tasks for key in keys]
        return self._dealt(grouped_rows(self.table, numbers).values())

    def repartitionById(self, tasks: int, number: Any) -> Frame:
        parts = grouped_rows(self.table, [number for (number,) in self._keys([F.coalesce(number, F.lit(0))])])
        assert all(0 <= number < tasks for number in parts), (parts.keys(), tasks)
        return self._dealt(parts[number] for number in sorted(parts))

    def mapInArrow(self, task: Task, ddl: str) -> Frame:
        """A task gets several batches: it must not count on having all of its rows at once."""
        parts = [self.table] if self.parts is None else self.parts
        return self.sparkSession.frame_of(
            (batch for part in parts for batch in task(iter(part.to_batches(max(3, part.num_rows // 3))))), ddl
        )

    # -- frames to frames

    def transform(self, stage: Callable[..., Frame], *args: Any) -> Frame:
        return stage(self, *args)

    def _union(self, how: str, other: Frame) -> Frame:
        mine, theirs = (self.sparkSession.registered(one.table) for one in (self, other))
        found = self.sparkSession.run(f"select * from {mine} union all {how} select * from {theirs}")
        return Frame(self.sparkSession, found)

    def union(self, other: Frame) -> Frame:
        return self._union("", other)

    def unionByName(self, other: Frame, allowMissingColumns: bool = False) -> Frame:
        assert allowMissingColumns or set(self.columns) == set(other.columns), (self.columns, other.columns)
        return self._union("by name", other)

    def crossJoin(self, other: Frame) -> Frame:
        return self._made("*", f"cross join {other.source}")

    def join(self, other: Frame, on: Any = None, how: str = "inner") -> Frame:
        assert isinstance(other, Frame), other
        how = JOINS.get(how, how)
        if not all(isinstance(one, str) for one in flat([on])):
            return self._made("*", f"{how} join {other.source} on {condition_sql(on)}")
        keys = flat([on])
        using = f"{how} join {other.source} using ({', '.join(map(exact, keys))})"
        if self.name or other.name:
            found = Frame(self.sparkSession)
            found.source = f"{self.source} {using}"
            return found
        taken = [exact(name) for name in keys]
        for frame in (self, other) if how not in ("semi", "anti") else (self,):
            taken += [f"{frame.source}.{exact(name)}" for name in frame.columns if name not in keys]
        return self._made(", ".join(taken), using)

    def groupBy(self, *keys: Any) -> Groups:
        return Groups(self, flat(keys))

    groupby = groupBy

    def agg(self, *given: Any) -> Frame:
        return self.select(*given)

    # -- frames to values

    def collect(self) -> list[Row]:
        return [row_of(row) for row in self.table.to_pylist()]

    def first(self) -> Row | None:
        return next(iter(self.collect()), None)

    head = first

    def count(self) -> int:
        return int(self.table.num_rows)

    def isEmpty(self) -> bool:
        return self.count() == 0

    def toArrow(self) -> pa.Table:
        return self.table

    def toLocalIterator(self) -> Iterator[Row]:
        return iter(self.collect())


class Groups:
    """Rows by keys."""

    def __init__(self, frame: Frame, keys: Sequence[Any]) -> None:
        self.frame, self.keys = frame, keys

    def agg(self, *given: Any) -> Frame:
        numbers = ", ".join(str(number) for number in range(1, len(self.keys) + 1))
        return self.frame._made(
            columns_sql([*self.keys, *given]), f"group by {numbers} order by {numbers}" if numbers else ""
        )

    def count(self) -> Frame:
        return self.agg(F.count("*").alias("count"))

    def parts(self) -> dict[tuple[Any, ...], pa.Table]:
        return grouped_rows(self.frame.table, self.frame._keys(self.keys))

    def applyInArrow(self, task: Callable[..., pa.Table], ddl: str) -> Frame:
        with_key = len(inspect.signature(task).parameters) == 2
        made = [
            task(tuple(map(pa.scalar, key)), part) if with_key else task(part) for key, part in self.parts().items()
        ]
        return self.frame.sparkSession.frame_of((batch for table in made for batch in table.to_batches()), ddl)

    def cogroup(self, other: Groups) -> Cogroups:
        return Cogroups(self, other)


class Cogroups:
    """Rows of two frames that have the same key."""

    def __init__(self, one: Groups, other: Groups) -> None:
        self.one, self.other = one, other

    def applyInArrow(self, task: Callable[[pa.Table, pa.Table], pa.Table], ddl: str) -> Frame:
        ours, theirs = self.one.parts(), self.other.parts()
        no_ours, no_theirs = (groups.frame.table.slice(0, 0) for groups in (self.one, self.other))
        made = [task(ours.get(key, no_ours), theirs.get(key, no_theirs)) for key in dict.fromkeys([*ours, *theirs])]
        return self.one.frame.sparkSession.frame_of((batch for table in made for batch in table.to_batches()), ddl)


class Reader:
    """Reads Parquet files, texts and binary files, and our own sources."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.ddl = ""
        self.named = ""
        self.given: dict[str, str] = {}

    def schema(self, ddl: str) -> Reader:
        self.ddl = ddl
        return self

    def option(self, name: str, value: str) -> Reader:
        self.given[name] = value
        return self

    def options(self, **given: str) -> Reader:
        self.given |= given
        return self

    def format(self, name: str) -> Reader:
        self.named = name
        return self

    def parquet(self, *paths: str) -> Frame:
        """Files, or all of a folder; with the columns that folders below `basePath` name."""
        tables = []
        for path in paths:
            there = Path(re.sub(r"^file:(//)?|\\(?=.)", "", path))
            base = re.sub(
                r"^file:(//)?", "", self.given.get("basePath", str(there if there.is_dir() else there.parent))
            )
            files = sorted(there.rglob("*.parquet")) if there.is_dir() else [there]
            tables += [self._file(file, Path(base)) for file in files]
        return Frame(self.session, pa.concat_tables(tables, promote_options="default"))

    def _file(self, file: Path, base: Path) -> pa.Table:
        rows = pq.ParquetFile(file).read()
        for part in file.relative_to(base).parent.parts:
            name, _, text = part.partition("=")
            rows = rows.append_column(name, pa.repeat(unquote(text).replace("Infinity", "inf"), rows.num_rows))
        if self.ddl:
            schema, nothing = schema_of(self.ddl), pa.nulls(rows.num_rows)
            columns = [rows.column(name) if name in rows.column_names else nothing for name in schema.names]
            rows = pa.table(columns, names=schema.names).cast(schema)
        about = {"file_path": file.as_uri(), "file_name": file.name}
        places = [about | {"row_index": place} for place in range(rows.num_rows)]
        kind = pa.struct([("file_path", pa.string()), ("file_name", pa.string()), ("row_index", pa.int64())])
        return rows.append_column("_metadata", pa.array(places, kind))

    def text(self, paths: Sequence[str]) -> Frame:
        lines = [(Path(path).as_uri(), line) for path in paths for line in Path(path).read_text().splitlines()]
        about = pa.array([{"file_path": path} for path, _ in lines], pa.struct([("file_path", pa.string())]))
        return Frame(
            self.session, pa.table({"value": pa.array([line for _, line in lines], pa.string()), "_metadata": about})
        )

    def load(self, path: str | Sequence[str] | None = None) -> Frame:
        if self.named == "binaryFile":
            rows = [(f"file:{one}", Path(one).read_bytes()) for one in flat([path])]
            return self.session.createDataFrame(rows, "path string, content binary")
        source = self.session.sources[self.named](self.given | ({} if path is None else {"path": path}))
        reader = source.reader(None)
        return self.session.frame_of(
            (batch for part in reader.partitions() for batch in reader.read(part)), source.schema()
        )


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all sessions: what one registers is in its own cursor, which no other sees."""
    database = duckdb.connect(config={"threads": 1, **SETTINGS})
    database.execute(MACROS)
    return database


class Session:
    """In place of a Spark session: it makes frames from rows and from files. As one over Connect, it has no Java."""

    version = "4.1.0"
    _earshot_parallelism = 2

    def __init__(self) -> None:
        self.connection = _database().cursor()
        self.numbers = itertools.count()
        self.persisted: list[Frame] = []
        self.sources: dict[str, Any] = {}
        self.dataSource = SimpleNamespace(register=lambda source: self.sources.update({source.name(): source}))

    @property
    def read(self) -> Reader:
        return Reader(self)

    def run(self, sql: str) -> pa.Table:
        found = self.connection.sql(sql).to_arrow_table()
        return found.cast(pa.schema([(field.name, _known_type(field.type)) for field in found.schema]))

    def registered(self, table: pa.Table) -> str:
        name = f"t{next(self.numbers)}"
        self.connection.register(name, table)
        return name

    def frame_of(self, batches: Iterable[pa.RecordBatch], ddl: str) -> Frame:
        """The batches as the schema has them: by name, where a task may have them in another order."""
        schema = schema_of(ddl)
        tables = [pa.Table.from_batches([batch]).select(schema.names).cast(schema) for batch in batches]
        return Frame(self, pa.concat_tables([schema.empty_table(), *tables]))

    def createDataFrame(self, rows: Iterable[Any], ddl: str) -> Frame:
        schema = schema_of(ddl)
        known = [row if isinstance(row, Mapping) else dict(zip(schema.names, row, strict=True)) for row in rows]
        return Frame(self, pa.Table.from_pylist(known, schema=schema))

    def range(self, start: int, end: int, step: int = 1, tasks: int = 1) -> Frame:
        table = pa.table({"id": pa.array(range(start, end, step), pa.int64())})
        size = -(-table.num_rows // tasks)
        return Frame(self, table)._dealt(table.slice(at, size) for at in range(0, table.num_rows, size))

    def interruptAll(self) -> None:
        pass


def _known_type(kind: pa.DataType) -> pa.DataType:
    """Sums of whole numbers are decimals in DuckDB."""
    if pa.types.is_decimal(kind) or pa.types.is_unsigned_integer(kind):
        return pa.int64()
    return pa.string() if pa.types.is_large_string(kind) else kind


def instead_of_spark(monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session here; until the test ends, columns are made without Java."""
    from earshot.pipeline.spark import tasks

    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(F, "broadcast", lambda frame: frame)
    monkeypatch.setattr(tasks, "_freeze_survivors", lambda: None)
    return Session()
