"""Spark's frames on DuckDB: the queries of the pipeline without a JVM, each in some milliseconds.

It has what Earshot's queries use and no more, and means by it what Spark means. Tests with the marker `spark` try the
same queries in Spark itself. What Spark does in tasks is done here by the same functions, a batch for each partition.
"""

from __future__ import annotations

import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

ARROW = {
    "string": pa.string(), "double": pa.float64(), "bigint": pa.int64(), "long": pa.int64(), "int": pa.int32(),
    "boolean": pa.bool_(), "binary": pa.binary(), "array<string>": pa.list_(pa.string()),
}  # fmt: skip
SQL = {"string": "VARCHAR", "long": "BIGINT", "array<string>": "VARCHAR[]"}


def schema_of(ddl: str) -> pa.Schema:
    pairs = [part.replace("`", "").split() for part in ddl.split(",")]
    return pa.schema([(name, ARROW[kind]) for name, kind in pairs])


# Columns.


class Column:
    """A piece of SQL, and the name of its result."""

    def __init__(self, sql: str, name: str = "") -> None:
        self.sql, self.name = sql, name

    def alias(self, name: str) -> Column:
        return Column(self.sql, name)

    def cast(self, kind: str) -> Column:
        return Column(f"CAST({self.sql} AS {SQL.get(kind, kind)})", self.name)

    def _with(self, operator: str, other: Any) -> Column:
        return Column(f"({self.sql} {operator} {value(other)})")

    def _after(self, operator: str, other: Any) -> Column:
        return Column(f"({value(other)} {operator} {self.sql})")

    def __add__(self, other: Any) -> Column:
        return self._with("+", other)

    def __sub__(self, other: Any) -> Column:
        return self._with("-", other)

    def __mul__(self, other: Any) -> Column:
        return self._with("*", other)

    def __truediv__(self, other: Any) -> Column:
        return self._with("/", other)

    def __mod__(self, other: Any) -> Column:
        return self._with("%", other)

    def __pow__(self, other: Any) -> Column:
        return self._with("**", other)

    def __radd__(self, other: Any) -> Column:
        return self._after("+", other)

    def __rsub__(self, other: Any) -> Column:
        return self._after("-", other)

    def __rmul__(self, other: Any) -> Column:
        return self._after("*", other)

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return self._with("=", other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return self._with("<>", other)

    def __lt__(self, other: Any) -> Column:
        return self._with("<", other)

    def __le__(self, other: Any) -> Column:
        return self._with("<=", other)

    def __gt__(self, other: Any) -> Column:
        return self._with(">", other)

    def __ge__(self, other: Any) -> Column:
        return self._with(">=", other)

    def __and__(self, other: Any) -> Column:
        return self._with("AND", other)

    def __or__(self, other: Any) -> Column:
        return self._with("OR", other)

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.sql})")

    def __bool__(self) -> bool:
        raise ValueError("a column is neither true nor false")

    def __getitem__(self, key: Any) -> Column:
        return Column(f"({self.sql})[{value(key)}]")

    def isin(self, *values: Any) -> Column:
        some = list(values[0]) if len(values) == 1 and isinstance(values[0], list) else list(values)
        return Column(f"({self.sql} IN ({', '.join(map(value, some))}))" if some else "FALSE")

    def isNull(self) -> Column:
        return Column(f"({self.sql} IS NULL)")

    def isNotNull(self) -> Column:
        return Column(f"({self.sql} IS NOT NULL)")

    def between(self, low: Any, high: Any) -> Column:
        return Column(f"({self.sql} BETWEEN {value(low)} AND {value(high)})")

    def bitwiseAND(self, other: Any) -> Column:
        return self._with("&", other)

    def bitwiseXOR(self, other: Any) -> Column:
        return Column(f"xor({self.sql}, {value(other)})")

    def over(self, window: str) -> Column:
        return Column(f"({self.sql} OVER ({window}))")


class When(Column):
    """CASE: further branches, and what is left."""

    def __init__(self, branches: str) -> None:
        super().__init__(f"({branches} END)")
        self.branches = branches

    def when(self, condition: Column, then: Any) -> When:
        return When(f"{self.branches} WHEN {condition.sql} THEN {value(then)}")

    def otherwise(self, then: Any) -> Column:
        return Column(f"({self.branches} ELSE {value(then)} END)")


def value(one: Any) -> str:
    """A column, or a value of Python's, as SQL."""
    match one:
        case Column():
            return one.sql
        case None:
            return "NULL"
        case bool():
            return str(one).upper()
        case float():
            return f"'{one!r}'::DOUBLE"
        case int():
            return str(one)
        case str():
            return "'" + one.replace("'", "''") + "'"
    raise TypeError(f"no value for SQL: {one!r}")


def column(one: Any) -> Column:
    """A column, or the one of that name."""
    if isinstance(one, Column):
        return one
    assert isinstance(one, str), one
    quoted = ".".join(f'"{part}"' for part in re.findall(r"`([^`]*)`|([^.`]+)", one) for part in part if part)
    return Column(quoted, one.rpartition(".")[2].strip("`"))


def call(name: str) -> Callable[..., Column]:
    return lambda *given: Column(f"{name}({', '.join(column(one).sql for one in given)})")


def condition(one: str | Column) -> str:
    """A condition as Spark's SQL writes it, or a column."""
    return one.sql if isinstance(one, Column) else one.replace("`", '"')


def _whole(sql: str) -> Column:
    """As a bigint, or the nearest there is."""
    return Column(f"CAST(least(greatest({sql}, -9.2e18), 9.2e18) AS BIGINT)")


def _shifted(one: Any, bits: int) -> Column:
    """What leaves a bigint on the left is lost."""
    wide = f"({column(one).sql}::HUGEINT * {1 << bits}::HUGEINT)"
    size, half = f"{1 << 64}::HUGEINT", f"{1 << 63}::HUGEINT"
    return Column(f"((((({wide} + {half}) % {size}) + {size}) % {size}) - {half})::BIGINT")


def _sequence(first: Any, last: Any) -> Column:
    low, high = column(first).sql, column(last).sql
    return Column(f"(CASE WHEN {low} <= {high} THEN range({low}, {high} + 1) ELSE range({low}, {high} - 1, -1) END)")


def _map(*pairs: Column) -> Column:
    keys, values = (", ".join(one.sql for one in pairs[at::2]) for at in (0, 1))
    return Column(f"MAP([{keys}], [{values}])")


def _distinct(*some: Any) -> Column:
    names = [column(one).sql for one in some]
    known = " AND ".join(f"{name} IS NOT NULL" for name in names)
    return Column(f"count(DISTINCT ({', '.join(names)})) FILTER (WHERE {known})")


functions = SimpleNamespace(
    col=column,
    lit=lambda one: one if isinstance(one, Column) else Column(value(one)),
    expr=lambda text: Column(f"({condition(text)})"),
    when=lambda test, then: When(f"CASE WHEN {test.sql} THEN {value(then)}"),
    broadcast=lambda one: one,
    array=lambda *some: Column(f"[{', '.join(column(one).sql for one in some)}]"),
    get=lambda some, at: Column(f"list_extract({column(some).sql}, CAST({value(at)} + 1 AS BIGINT))"),
    sequence=_sequence,
    explode=call("unnest"),
    # Texts compare as structs do where it counts: equal or not.
    struct=lambda *some: Column("concat_ws('|', " + ", ".join(column(one).sql for one in some) + ")"),
    floor=lambda one: _whole(f"floor({column(one).sql})"),
    ceil=lambda one: _whole(f"ceil({column(one).sql})"),
    log=call("ln"),
    shiftleft=_shifted,
    hash=lambda *some: Column(f"CAST(hash({', '.join(column(one).sql for one in some)}) % 2147483647 AS INTEGER)"),
    pmod=lambda one, by: Column(f"((({column(one).sql} % {column(by).sql}) + {column(by).sql}) % {column(by).sql})"),
    create_map=_map,
    count=lambda one: Column("count(*)", "count(1)") if one == "*" else call("count")(one),
    count_distinct=_distinct,
    **{name: call(name) for name in ("least", "greatest", "coalesce", "sqrt", "lead", "lag", "min", "max", "trim")},
)


class Window:
    """The part of a row's window, as SQL."""

    @staticmethod
    def partitionBy(*names: str) -> SimpleNamespace:
        by = "PARTITION BY " + ", ".join(column(name).sql for name in names)
        return SimpleNamespace(orderBy=lambda *order: f"{by} ORDER BY " + ", ".join(column(one).sql for one in order))


# Frames.


class Row(dict[str, Any]):
    """A row, by name or by place."""

    def __getitem__(self, key: str | int) -> Any:
        return list(self.values())[key] if isinstance(key, int | slice) else super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return iter(self.values())

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, Row) else other)

    __hash__ = None  # type: ignore[assignment]

    def asDict(self) -> dict[str, Any]:
        return dict(self.items())


Split = Callable[[pa.Table], list[pa.Table]]
"How the rows are dealt to tasks."


class Frame:
    """Rows of a table, or of tables joined, before anything is selected from them."""

    def __init__(self, session: Session, source: str, where: Sequence[str] = (), split: Split | None = None) -> None:
        self.sparkSession, self.source, self.conditions = session, source, list(where)
        self.split: Split = split or (lambda rows: [rows])

    @property
    def rest(self) -> str:
        """All of the query but what it selects."""
        conditions = " AND ".join(f"({one})" for one in self.conditions)
        return f"FROM {self.source}" + (f" WHERE {conditions}" if conditions else "")

    @property
    def sql(self) -> str:
        return f"SELECT * {self.rest}"

    def _query(self, selected: str, more: str = "") -> Frame:
        return self.sparkSession.kept(f"SELECT {selected} {self.rest}{more}")

    @cached_property
    def columns(self) -> list[str]:
        return list(self.sparkSession.run(f"{self.sql} LIMIT 0").schema.names)

    # Rows and columns.

    def select(self, *some: Any) -> Frame:
        some = tuple(some[0]) if len(some) == 1 and isinstance(some[0], list | tuple) else some
        return self._query(", ".join(_named(one) for one in some))

    def where(self, test: str | Column) -> Frame:
        return Frame(self.sparkSession, self.source, [*self.conditions, condition(test)], self.split)

    def withColumn(self, name: str, one: Column) -> Frame:
        return self.withColumns({name: one})

    def withColumns(self, new: Mapping[str, Column]) -> Frame:
        there = self.columns
        replaced = [f"{one.sql} AS {_quoted(name)}" for name, one in new.items() if name in there]
        added = [f"{one.sql} AS {_quoted(name)}" for name, one in new.items() if name not in there]
        return self._query(", ".join([f"* REPLACE ({', '.join(replaced)})" if replaced else "*", *added]))

    def drop(self, *names: str) -> Frame:
        gone = [name for name in names if name in self.columns]
        return self._query(f"* EXCLUDE ({', '.join(map(_quoted, gone))})") if gone else self

    def distinct(self) -> Frame:
        return self._query("DISTINCT *")

    def orderBy(self, *names: Any) -> Frame:
        return self._query("*", " ORDER BY " + ", ".join(column(one).sql for one in names))

    sortWithinPartitions = orderBy

    def limit(self, most: int) -> Frame:
        return self._query("*", f" LIMIT {most}")

    def unionByName(self, other: Frame, allowMissingColumns: bool = False) -> Frame:
        assert allowMissingColumns or {*self.columns} == {*other.columns}, (self.columns, other.columns)
        return self.sparkSession.kept(f"({self.sql}) UNION ALL BY NAME ({other.sql})")

    def alias(self, name: str) -> Frame:
        return Frame(self.sparkSession, f"({self.sql}) AS {name}")

    def join(self, other: Frame, on: str | Sequence[str], how: str = "inner") -> Frame:
        assert isinstance(other, Frame), other
        kind = {"inner": "JOIN", "left": "LEFT JOIN", "left_semi": "SEMI JOIN", "left_anti": "ANTI JOIN"}[how]
        names = ", ".join(map(_quoted, [on] if isinstance(on, str) else on))
        return Frame(self.sparkSession, f"{self._as_source('l')} {kind} {other._as_source('r')} USING ({names})")

    def crossJoin(self, other: Frame) -> Frame:
        return Frame(self.sparkSession, f"{self._as_source('l')} CROSS JOIN {other._as_source('r')}")

    def _as_source(self, default: str) -> str:
        known = not self.conditions and re.fullmatch(r"\(.*\) AS \w+", self.source, re.DOTALL)
        return self.source if known else f"({self.sql}) AS {default}{next(self.sparkSession.numbers)}"

    def transform(self, change: Callable[[Frame], Frame]) -> Frame:
        return change(self)

    def groupBy(self, *names: str) -> Grouped:
        return Grouped(self, names)

    def agg(self, *some: Column) -> Frame:
        return Grouped(self, ()).agg(*some)

    def persist(self) -> Frame:
        self.sparkSession.persisted.append(self)
        return self

    def unpersist(self) -> None:
        self.sparkSession.persisted.remove(self)

    # Tasks.

    def repartition(self, tasks: int, *names: str) -> Frame:
        return Frame(self.sparkSession, self.source, self.conditions, lambda rows: _dealt(rows, names, tasks))

    def repartitionById(self, tasks: int, number: Column) -> Frame:
        def split(rows: pa.Table) -> list[pa.Table]:
            parts = _dealt(rows, [number.name], None)
            numbers = [part.column(number.name)[0].as_py() for part in parts]
            assert all(0 <= one < tasks for one in numbers), (numbers, tasks)
            return parts

        return Frame(self.sparkSession, self.source, self.conditions, split)

    def coalesce(self, tasks: int) -> Frame:
        assert tasks == 1
        return Frame(self.sparkSession, self.source, self.conditions)

    def mapInArrow(self, task: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], ddl: str) -> Frame:
        """A task gets several batches: it must not count on having all of its rows at once."""
        schema = schema_of(ddl)
        parts = self.split(self.toArrow())
        found = [
            batch for part in parts for batch in task(iter(part.to_batches(max_chunksize=max(3, part.num_rows // 3))))
        ]
        return self.sparkSession.frame_of(_as(found, schema))

    # Answers.

    def toArrow(self) -> pa.Table:
        return self.sparkSession.run(self.sql)

    def collect(self) -> list[Row]:
        return [Row(row) for row in self.toArrow().to_pylist()]

    def count(self) -> int:
        return self.toArrow().num_rows


class Grouped:
    """A frame's rows by the values of some columns."""

    def __init__(self, frame: Frame, names: Sequence[str]) -> None:
        self.frame, self.names = frame, list(names)

    def agg(self, *some: Column) -> Frame:
        keys = [_quoted(name) for name in self.names]
        chosen = [f"{one.sql} AS {_quoted(one.name or f'_{at}')}" for at, one in enumerate(some)]
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        return self.frame._query(", ".join([*keys, *chosen]), by)

    def count(self) -> Frame:
        return self.agg(Column("count(*)", "count"))

    def parts(self) -> tuple[dict[tuple[Any, ...], pa.Table], pa.Schema]:
        """The rows by their key, and what columns they have."""
        rows = self.frame.toArrow()
        parts = _dealt(rows, self.names, None)
        return {tuple(part.column(name)[0].as_py() for name in self.names): part for part in parts}, rows.schema

    def applyInArrow(self, work: Callable[..., pa.Table], ddl: str) -> Frame:
        parts, _ = self.parts()
        keyed = {tuple(pa.scalar(one) for one in key): rows for key, rows in parts.items()}
        with_key = len(inspect.signature(work).parameters) == 2
        found = [work(key, rows) if with_key else work(rows) for key, rows in keyed.items()]
        return self.frame.sparkSession.frame_of(_as([b for one in found for b in one.to_batches()], schema_of(ddl)))

    def cogroup(self, other: Grouped) -> Cogrouped:
        return Cogrouped(self, other)


class Cogrouped:
    """Rows of two frames that have the same key."""

    def __init__(self, one: Grouped, other: Grouped) -> None:
        self.one, self.other = one, other

    def applyInArrow(self, work: Callable[[pa.Table, pa.Table], pa.Table], ddl: str) -> Frame:
        (ours, our_schema), (theirs, their_schema) = self.one.parts(), self.other.parts()
        found = [
            work(ours.get(key, our_schema.empty_table()), theirs.get(key, their_schema.empty_table()))
            for key in dict.fromkeys([*ours, *theirs])
        ]
        session = self.one.frame.sparkSession
        return session.frame_of(_as([batch for one in found for batch in one.to_batches()], schema_of(ddl)))


def _quoted(name: str) -> str:
    return f'"{name}"'


def _named(one: str | Column) -> str:
    if isinstance(one, str) and one == "*":
        return one
    one = column(one)
    return f"{one.sql} AS {_quoted(one.name)}" if one.name else one.sql


def _dealt(rows: pa.Table, names: Sequence[str], tasks: int | None) -> list[pa.Table]:
    """The rows in parts: those of equal values together, in this number of parts or each by itself."""
    keys = list(zip(*(rows.column(name).to_pylist() for name in names), strict=True)) or list(range(rows.num_rows))
    place: dict[Any, int] = {}
    numbers = [place.setdefault(key, len(place) if tasks is None else len(place) % tasks) for key in keys]
    by_part: dict[int, list[int]] = {}
    for at, number in enumerate(numbers):
        by_part.setdefault(number, []).append(at)
    return [rows.take(places) for places in by_part.values()]


def _as(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The batches as the schema has them: by name, where a task may have them in another order."""
    parts = [pa.Table.from_batches([batch]).select(schema.names).cast(schema) for batch in batches]
    return pa.concat_tables([schema.empty_table(), *parts])


# The session.


NUMBERS = itertools.count()


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One for all sessions of a process: to make one takes longer than most queries."""
    return duckdb.connect(config={"threads": 1})


class Session:
    """In place of a Spark session: it makes frames from rows, from Arrow tables and from files."""

    version = "4.1.0"
    _jsparkSession = None

    def __init__(self) -> None:
        self.connection, self.numbers = database(), NUMBERS
        self.persisted: list[Frame] = []
        self.sparkContext = SimpleNamespace(master="local[2]", defaultParallelism=2)

    @property
    def read(self) -> Any:
        from files_on_duckdb import Reader

        return Reader(self)

    def run(self, sql: str) -> pa.Table:
        found = self.connection.cursor().execute(sql).arrow()
        table = found.read_all() if isinstance(found, pa.RecordBatchReader) else found
        return table.cast(pa.schema([(field.name, _plain(field.type)) for field in table.schema]))

    def kept(self, sql: str) -> Frame:
        """A frame with what the query gives now: queries upon it stay short."""
        name = f"t{next(self.numbers)}"
        self.connection.execute(f"CREATE TABLE {name} AS {sql}")
        return Frame(self, name)

    def frame_of(self, rows: pa.Table) -> Frame:
        view = f"v{next(self.numbers)}"
        self.connection.register(view, rows)
        found = self.kept(f"SELECT * FROM {view}")
        self.connection.unregister(view)
        return found

    def createDataFrame(self, rows: Iterable[Any], ddl: str) -> Frame:
        schema = schema_of(ddl)
        known = [row if isinstance(row, Mapping) else dict(zip(schema.names, row, strict=True)) for row in rows]
        return self.frame_of(pa.Table.from_pylist(known, schema=schema))

    def range(self, first: int, last: int, step: int, tasks: int) -> Frame:
        assert (first, step, tasks) == (0, 1, last), "a task for each number"
        frame = self.createDataFrame([(number,) for number in range(last)], "id long")
        return Frame(self, frame.source, (), lambda rows: [rows.slice(at, 1) for at in range(rows.num_rows)])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_decimal(kind) or pa.types.is_unsigned_integer(kind):
        return pa.int64()
    return kind


def instead_of_spark(monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session here; the pipeline's queries are written for it until the test ends."""
    import pyspark.sql

    from earshot.pipeline.spark import tasks

    real = pyspark.sql.functions, pyspark.sql.Window
    monkeypatch.setattr(pyspark.sql, "functions", functions)
    monkeypatch.setattr(tasks, "_freeze_survivors", lambda: None)
    for name, module in list(sys.modules.items()):
        if name.startswith("earshot."):
            for own, there, here in (("F", real[0], functions), ("Window", real[1], Window)):
                if getattr(module, own, None) is there:
                    monkeypatch.setattr(module, own, here)
    return Session()
