"""PySpark's columns as DuckDB's SQL.

`functions` and `Window` build columns without Java where Spark's variable for Connect is set. A column is then a tree,
and becomes SQL here: with Spark's meaning, where the two languages differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

SETTINGS = {"default_null_order": "nulls_first_on_asc_last_on_desc"}
MACROS = """
create macro spark_floor(x) as floor(x)::bigint;
create macro spark_ceil(x) as ceil(x)::bigint;
create macro spark_whole(x) as
    case when typeof(x) in ('DOUBLE', 'FLOAT') then trunc(try_cast(x as double))::bigint else x::bigint end;
create macro spark_pmod(x, y) as ((x % y) + y) % y;
create macro spark_wrapped(x) as (
    (((x + 9223372036854775808::hugeint) % 18446744073709551616::hugeint) + 18446744073709551616::hugeint)
    % 18446744073709551616::hugeint - 9223372036854775808::hugeint
)::bigint;
create macro spark_shiftleft(x, bits) as spark_wrapped(x::hugeint * (1::hugeint << bits));
create macro spark_sequence(a, b) as generate_series(a, b, case when a <= b then 1 else -1 end);
create macro spark_get(list, place) as list[greatest(place + 1, 0)::bigint];
"""
"For a database: what Spark does otherwise than DuckDB. Casts to whole numbers cut off, shifts drop bits."

CASTS = {"string": "varchar", "long": "bigint", "binary": "blob", "array<string>": "varchar[]"}
WHOLE = ("int", "integer", "long", "bigint")
OPERATORS = {
    "==": "=", "!=": "<>", "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "<": "<", "<=": "<=", ">": ">",
    ">=": ">=", "and": "and", "or": "or", "like": "like", "&": "&", "|": "|", "<=>": "is not distinct from",
}  # fmt: skip
NAMED = {
    "explode": "unnest", "array": "list_value", "startswith": "starts_with", "^": "xor", "size": "len",
} | {name: f"spark_{name}" for name in ("floor", "ceil", "pmod", "shiftleft", "sequence", "get")}  # fmt: skip
TEMPLATES = {
    "not": "(not {0})", "negative": "(-{0})", "isNull": "({0} is null)", "isnull": "({0} is null)",
    "isNotNull": "({0} is not null)", "hypot": "sqrt({0} * {0} + {1} * {1})", "to_json": "to_json({0})::varchar",
    "percentile_approx": "quantile_disc({0}, {1})", "percentile": "quantile_cont({0}, {1})",
    "count_if": "count(*) filter (where {0})",
    "collect_list": "coalesce(list({0}) filter (where {0} is not null), [])",
}  # fmt: skip


def exact(name: str) -> str:
    return f'"{name}"'


def quoted(name: str) -> str:
    """A column's name: `a.b` is b of a, and what is between backticks is one name."""
    parts = re.findall(r"`([^`]*)`|([^.`]+)", name)
    return ".".join(exact(whole or part) for whole, part in parts)


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
            return text_sql(tree._expr)
        case "ColumnAlias":
            return f"{sql_of(tree._child)} as {exact(tree._alias[0])}"
        case "CastExpression":
            kind = tree._data_type if isinstance(tree._data_type, str) else tree._data_type.simpleString()
            inner = sql_of(tree._expr)
            return f"({f'spark_whole({inner})' if kind in WHOLE else inner})::{CASTS.get(kind, kind)}"
        case "CaseWhen":
            cases = " ".join(f"when {sql_of(when)} then {sql_of(then)}" for when, then in tree._branches)
            rest = "" if tree._else_value is None else f" else {sql_of(tree._else_value)}"
            return f"(case {cases}{rest} end)"
        case "SortOrder":
            nulls = "first" if tree._nullsFirst else "last"
            return f"{sql_of(tree._child)} {'asc' if tree._ascending else 'desc'} nulls {nulls}"
        case "UnresolvedExtractValue":
            return f"({sql_of(tree._child)})[{sql_of(tree._extraction)}]"
        case "WindowExpression" if tree._windowSpec._frame is None:
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
    if name in ("xxhash64", "hash"):
        return f"(hash({', '.join(given)}) >> 1)::bigint"
    if name in ("struct", "named_struct"):
        return f"struct_pack({', '.join(f'{name_of(arg)} := {bare_sql(arg)}' for arg in args)})"
    if name == "map":
        return f"map([{', '.join(given[::2])}], [{', '.join(given[1::2])}])"
    if is_distinct and len(given) > 1:
        known = " and ".join(f"{one} is not null" for one in given)
        return f"{name}(distinct ({', '.join(given)})) filter (where {known})"
    return f"{NAMED.get(name, name)}({'distinct ' if is_distinct else ''}{', '.join(given)})"


def bare_sql(tree: Any) -> str:
    return sql_of(tree._child if type(tree).__name__ == "ColumnAlias" else tree)


def name_of(tree: Any) -> str:
    if type(tree).__name__ == "ColumnAlias":
        return exact(tree._alias[0])
    return exact(sql_of(tree).rpartition(".")[2].strip('"'))


def text_sql(text: str) -> str:
    """A condition or an expression that is SQL already."""
    return text.replace("`", '"')


def column_sql(column: Any) -> str:
    """A column, or the one of that name."""
    if not isinstance(column, str):
        return sql_of(column._expr)
    if column == "*" or column.endswith(".*"):
        return "*" if column == "*" else f"{quoted(column[:-2])}.*"
    return quoted(column)


def columns_sql(given: Iterable[Any]) -> str:
    return ", ".join(map(column_sql, given))


def condition_sql(condition: Any) -> str:
    return text_sql(condition) if isinstance(condition, str) else sql_of(condition._expr)
