"""The table `runs` with a column for every swept key and every setting of a protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake


def swept_keys(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By run: the keys that some run of its scenario changed, each with its value in this run. A run that left a swept
    key alone has the value of its named scenario."""
    bases: dict[str, dict[str, Any]] = {}
    for row in runs:
        bases.setdefault(row["scenario"], {}).update(json.loads(row["base"] or "{}"))
    return {row["run"]: {**bases[row["scenario"]], **json.loads(row["changed"] or "{}")} for row in runs}


def run_columns(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of `runs` with a column for every swept scenario key, and one for every setting of a protocol
    (`settings.probability`)."""
    values = swept_keys(runs)
    keys = sorted({key for swept in values.values() for key in swept})
    found = []
    for row in runs:
        swept = {key: values[row["run"]].get(key) for key in keys}
        settings = {f"settings.{key}": value for key, value in json.loads(row["settings"] or "{}").items()}
        found.append({**row, **swept, **settings})
    return found


def swept_runs(lake: Lake) -> DataFrame:
    """`runs` with its swept keys as columns, each named as in the scenario ("`medium.range_m`" in backquotes).
    A column of numbers is a double, of true and false a boolean, any other a text."""
    from earshot.pipeline.lake.tables import RUNS

    runs = lake.read("runs")
    rows = run_columns([row.asDict() for row in runs.collect()])
    added = sorted({name for row in rows for name in row} - set(RUNS.columns))
    types = {name: _type([row.get(name) for row in rows]) for name in added}
    ddl = ", ".join(["run string", *(f"`{name}` {kind}" for name, kind in types.items())])
    values = [(row["run"], *(_as(row.get(name), types[name]) for name in added)) for row in rows]
    return runs.join(lake.session.createDataFrame(values, ddl), "run")


def _type(values: Sequence[Any]) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return "boolean"
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    return "double" if known and numbers else "string"


def _as(value: Any, kind: str) -> Any:
    if value is None or kind == "boolean":
        return value
    if kind == "double":
        return float(value)
    return value if isinstance(value, str) else json.dumps(value)
