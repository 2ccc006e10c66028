"""Spark's frames, computed by DuckDB: a test runs a stage with its real plan in milliseconds, without a session.

`functions` and `Window` build columns without Java where Spark's variable for Connect is set; a column is then a tree,
which becomes SQL here. A frame is computed at each step, in one partition. Spark's own tests say that Spark gives the
same; these say quickly which line is wrong.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

TYPES = {
    "string": pa.string(), "double": pa.float64(), "bigint": pa.int64(), "long": pa.int64(),
    "int": pa.int32(), "boolean": pa.bool_(), "binary": pa.binary(), "array<string>": pa.list_(pa.string()),
}  # fmt: skip
CASTS = {"string": "varchar", "long": "bigint", "binary": "blob", "array<string>": "varchar[]"}
OPERATORS = {
    "==": "=", "!=": "<>", "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "<": "<", "<=": "<=", ">": ">",
    ">=": ">=", "and": "and", "or": "or",
}  # fmt: skip
NAMED = {
    "explode": "unnest", "array": "list_value", "sequence": "generate_series",
}  # fmt: skip
TEMPLATES = {
    "not": "(not {0})", "isNull": "({0} is null)",
    "isNotNull": "({0} is not null)", "floor": "floor({0})::bigint", "ceil": "ceil({0})::bigint",
    "pmod": "((({0} % {1}) + {1}) % {1})", "hypot": "sqrt({0} * {0} + {1} * {1})",
    "count_if": "count(*) filter (where {0})",
    "to_json": "to_json({0})::varchar", "percentile_approx": "quantile_disc({0}, {1})",
    "percentile": "quantile_cont({0}, {1})",
}  # fmt: skip


def schema_of(ddl: str) -> pa.Schema:
    parts = [re.match(r"\s*`?([^`]+?)`?\s+(\S+)\s*$", part) for part in ddl.split(",")]
    return pa.schema([(part[1], TYPES[part[2]]) for part in parts if part])


def quoted(name: str) -> str:
    parts = [name[1:-1]] if name.startswith("`") else name.split(".")
    return ".".join(f'"{part}"' for part in parts)


def value_sql(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"'{value!r}'::double"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_sql, value))}]"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def sql_of(tree: Any) -> str:
    """The SQL of a column's tree."""
    match type(tree).__name__:
        case "ColumnReference":
            return quoted(tree._unparsed_identifier)
        case "UnresolvedStar":
            return "*" if tree._unparsed_target is None else f"{quoted(tree._unparsed_target[:-2])}.*"
        case "LiteralExpression":
            return value_sql(tree._value)
        case "SQLExpression":
            return str(tree._expr).replace("`", '"')
        case "ColumnAlias":
            return f'{sql_of(tree._child)} as "{tree._alias[0]}"'
        case "CastExpression":
            kind = tree._data_type if isinstance(tree._data_type, str) else tree._data_type.simpleString()
            return f"({sql_of(tree._expr)})::{CASTS.get(kind, kind)}"
        case "CaseWhen":
            cases = " ".join(f"when {sql_of(when)} then {sql_of(then)}" for when, then in tree._branches)
            rest = "" if tree._else_value is None else f" else {sql_of(tree._else_value)}"
            return f"(case {cases}{rest} end)"
        case "SortOrder":
            return f"{sql_of(tree._child)} {'asc nulls first' if tree._ascending else 'desc nulls last'}"
        case "UnresolvedExtractValue":
            return f"({sql_of(tree._child)})[{sql_of(tree._extraction)}]"
        case "WindowExpression":
            keys = ", ".join(sql_of(key) for key in tree._windowSpec._partitionSpec)
            order = ", ".join(sql_of(key) for key in tree._windowSpec._orderSpec)
            by = (f"partition by {keys} " if keys else "") + (f"order by {order}" if order else "")
            return f"({sql_of(tree._windowFunction)} over ({by}))"
        case "UnresolvedFunction":
            return function_sql(tree._name, tree._args, tree._is_distinct)
    raise NotImplementedError(type(tree).__name__)


def function_sql(name: str, args: Sequence[Any], is_distinct: bool) -> str:
    given = [sql_of(arg) for arg in args]
    if name in OPERATORS:
        return f"({given[0]} {OPERATORS[name]} {given[1]})"
    if name in TEMPLATES:
        return TEMPLATES[name].format(*given)
    if name == "in":
        return f"({given[0]} in ({', '.join(given[1:])}))" if given[1:] else "false"
    if name == "concat":
        return f"({' || '.join(given)})"
    if name == "xxhash64":
        return f"(hash({', '.join(given)}) >> 1)::bigint"
    if name == "struct":
        return f"struct_pack({', '.join(f'{name_of(arg)} := {bare_sql(arg)}' for arg in args)})"
    if name == "map":
        return f"map([{', '.join(given[::2])}], [{', '.join(given[1::2])}])"
    return f"{NAMED.get(name, name)}({'distinct ' if is_distinct else ''}{', '.join(given)})"


def bare_sql(tree: Any) -> str:
    return sql_of(tree._child if type(tree).__name__ == "ColumnAlias" else tree)


def name_of(tree: Any) -> str:
    if type(tree).__name__ == "ColumnAlias":
        return f'"{tree._alias[0]}"'
    return '"' + (sql_of(tree).rpartition(".")[2].strip('"')) + '"'


class Frame:
    """Rows, with the methods of Spark's frames that the project uses."""

    def __init__(self, session: DuckSession, table: pa.Table) -> None:
        self.sparkSession = session
        self.table = table
        self.task: Any = None
        "The number of the task that a row is dealt to; None: there is one task."

    @property
    def columns(self) -> list[str]:
        return [name for name in self.table.column_names if name != "_metadata"]

    @property
    def schema(self) -> StructType:
        return from_arrow_schema(self.table.select(self.columns).schema)

    def __getitem__(self, name: str) -> Any:
        return F.col(f"`{name}`")

    def _sql(self, query: str, **others: Frame) -> Frame:
        return self.sparkSession.query(query, t=self, **others)

    # -- rows to rows

    def select(self, *given: Any) -> Frame:
        return self._sql(f"select {', '.join(map(selected, flat(given)))} from t")

    def selectExpr(self, *given: str) -> Frame:
        return self._sql(f"select {', '.join(given)} from t")

    def where(self, condition: Any) -> Frame:
        return self._sql(f"select * from t where {column_sql(condition, text=True)}")

    filter = where

    def withColumns(self, given: dict[str, Any]) -> Frame:
        made = {name: f'{column_sql(column)} as "{name}"' for name, column in given.items()}
        kept = [made.pop(name, f'"{name}"') for name in self.table.column_names]
        return self._sql(f"select {', '.join([*kept, *made.values()])} from t")

    def withColumn(self, name: str, column: Any) -> Frame:
        return self.withColumns({name: column})

    def drop(self, *names: str) -> Frame:
        return Frame(self.sparkSession, self.table.select([n for n in self.table.column_names if n not in names]))

    def distinct(self) -> Frame:
        return self._sql("select distinct * from t")

    def orderBy(self, *given: Any) -> Frame:
        keys = [column_sql(key) for key in flat(given)]
        keys = [key if key.endswith((" nulls first", " nulls last")) else f"{key} nulls first" for key in keys]
        return self._sql(f"select * from t order by {', '.join(keys)}")

    sort = orderBy

    def sortWithinPartitions(self, *given: Any) -> Frame:
        return self.orderBy(*given)._dealt(self.task)

    def limit(self, count: int) -> Frame:
        return Frame(self.sparkSession, self.table.slice(0, count))

    def _same(self, *_: Any) -> Frame:
        return self

    coalesce = repartition = repartitionByRange = persist = unpersist = _same

    def _dealt(self, task: Any) -> Frame:
        self.task = task
        return self

    def repartitionById(self, tasks: int, number: Any) -> Frame:
        return Frame(self.sparkSession, self.table)._dealt(number)

    # -- frames to frames

    def transform(self, stage: Callable[..., Frame], *args: Any) -> Frame:
        return stage(self, *args)

    def union(self, other: Frame) -> Frame:
        return self._sql("select * from t union all select * from u", u=other)

    def unionByName(self, other: Frame, allowMissingColumns: bool = False) -> Frame:
        assert allowMissingColumns or set(self.columns) == set(other.columns)
        return self._sql("select * from t union all by name select * from u", u=other)

    def crossJoin(self, other: Frame) -> Frame:
        return self._sql("select * from t cross join u", u=other)

    def join(self, other: Frame, on: Any = None, how: str = "inner") -> Frame:
        how = {"left_semi": "semi", "leftsemi": "semi", "left_anti": "anti", "leftanti": "anti"}.get(how, how)
        if not isinstance(on, str) and not (isinstance(on, list) and all(isinstance(one, str) for one in on)):
            return self._sql(f"select * from t {how} join u on {column_sql(on)}", u=other)
        keys = [on] if isinstance(on, str) else on
        mine = [f"t.{quoted(name)}" for name in self.columns if name not in keys]
        theirs = [f"u.{quoted(name)}" for name in other.columns if name not in keys]
        taken = [*map(quoted, keys), *mine, *([] if how in ("semi", "anti") else theirs)]
        return self._sql(f"select {', '.join(taken)} from t {how} join u using ({', '.join(keys)})", u=other)

    def groupBy(self, *keys: Any) -> Groups:
        return Groups(self, flat(keys))

    def agg(self, *given: Any) -> Frame:
        return self.select(*given)

    def mapInArrow(self, task: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], ddl: str) -> Frame:
        schema = schema_of(ddl)
        parts = [self.table]
        if self.task is not None:
            numbers = self.select(F.coalesce(self.task, F.lit(-1)).alias("number")).table.column("number")
            parts = [self.table.filter(pc.equal(numbers, number)) for number in pc.unique(numbers).sort().to_pylist()]
        found = [pa.Table.from_batches([batch]) for part in parts for batch in task(iter(part.to_batches()))]
        tables = [table.select(schema.names).cast(schema) for table in found]
        return Frame(self.sparkSession, pa.concat_tables([schema.empty_table(), *tables]))

    # -- frames to values

    def collect(self) -> list[Row]:
        return [row_of(row) for row in self.table.to_pylist()]

    def first(self) -> Row | None:
        return next(iter(self.collect()), None)

    def count(self) -> int:
        return int(self.table.num_rows)

    def toArrow(self) -> pa.Table:
        return self.table


class Groups:
    """Rows by keys."""

    def __init__(self, frame: Frame, keys: Sequence[Any]) -> None:
        self.frame, self.keys = frame, keys

    def agg(self, *given: Any) -> Frame:
        keys = [selected(key) for key in self.keys]
        grouped = ", ".join(str(number) for number in range(1, len(keys) + 1))
        query = f"select {', '.join([*keys, *map(selected, given)])} from t"
        return self.frame._sql(f"{query} group by {grouped} order by {grouped}" if keys else query)

    def count(self) -> Frame:
        return self.agg(F.count("*").alias("count"))

    def applyInArrow(self, task: Callable[..., pa.Table], ddl: str) -> Frame:
        schema = schema_of(ddl)
        (key,) = self.keys
        column = self.frame.table.column(key)
        parts = [self.frame.table.filter(pc.equal(column, value)) for value in pc.unique(column).sort().to_pylist()]
        made = [task(part).select(schema.names).cast(schema) for part in parts]
        return Frame(self.frame.sparkSession, pa.concat_tables([schema.empty_table(), *made]))


class Reader:
    """Reads Parquet files, and our own sources."""

    def __init__(self, session: DuckSession) -> None:
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
        files = "[" + ", ".join(value_sql(re.sub(r"^file:(//)?|\\(?=.)", "", path)) for path in paths) + "]"
        found = self.session.query(
            "select *, struct_pack(file_path := 'file://' || replace(filename, ' ', '%20'), "
            "file_name := parse_filename(filename), row_index := file_row_number) as _metadata from "
            f"read_parquet({files}, hive_partitioning=true, hive_types_autocast=false, filename=true, "
            "file_row_number=true, union_by_name=true)"
        ).drop("filename", "file_row_number")
        if not self.ddl:
            return found
        schema = schema_of(self.ddl)
        nothing = pa.nulls(found.table.num_rows)
        columns = [found.table.column(name) if name in found.columns else nothing for name in schema.names]
        return Frame(self.session, pa.table(columns, names=schema.names).cast(schema))

    def load(self, path: str | None = None) -> Frame:
        source = self.session.sources[self.named](self.given | ({} if path is None else {"path": path}))
        reader = source.reader(None)
        found = [batch for part in reader.partitions() for batch in reader.read(part)]
        schema = schema_of(source.schema())
        return Frame(self.session, pa.Table.from_batches(found, schema=schema) if found else schema.empty_table())


class DuckSession:
    """What stages ask of a Spark session; as one over Connect, it has no Java."""

    version = "4.1.0"
    _earshot_parallelism = 2

    def __init__(self) -> None:
        self.duck = duckdb.connect(config={"threads": 1})
        self.sources: dict[str, Any] = {}
        self.dataSource = SimpleNamespace(register=lambda source: self.sources.update({source.name(): source}))

    @property
    def read(self) -> Reader:
        return Reader(self)

    def query(self, text: str, **frames: Frame) -> Frame:
        for name, frame in frames.items():
            self.duck.register(name, frame.table)
        found = self.duck.sql(text).to_arrow_table()
        whole = [pa.field(f.name, pa.int64() if pa.types.is_decimal(f.type) else f.type) for f in found.schema]
        return Frame(self, found.cast(pa.schema(whole)))  # sums of whole numbers

    def interruptAll(self) -> None:
        pass

    def range(self, start: int, end: int, step: int = 1, _parts: int = 1) -> Frame:
        return Frame(self, pa.table({"id": pa.array(range(start, end, step), pa.int64())}))

    def createDataFrame(self, rows: Iterable[Sequence[Any]], ddl: str) -> Frame:
        schema = schema_of(ddl)
        columns = list(itertools.zip_longest(*rows)) or [()] * len(schema)
        return Frame(
            self, pa.table([pa.array(c, k) for c, k in zip(columns, schema.types, strict=True)], schema=schema)
        )


def flat(given: Iterable[Any]) -> list[Any]:
    return [one for some in given for one in (some if isinstance(some, list | tuple) else [some])]


def column_sql(column: Any, text: bool = False) -> str:
    if isinstance(column, str):
        return column.replace("`", '"') if text else ("*" if column == "*" else quoted(column))
    return sql_of(column._expr)


def selected(column: Any) -> str:
    if isinstance(column, str) and column.endswith(".*"):
        return f"{quoted(column[:-2])}.*"
    return column_sql(column)


def row_of(values: dict[str, Any]) -> Row:
    return Row(**{name: row_of(value) if isinstance(value, dict) else value for name, value in values.items()})
