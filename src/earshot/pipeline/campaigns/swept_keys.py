"""The table `runs` with a column for every swept key and every setting of a protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake


def run_columns(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of `runs` with a column for every swept scenario key, and one for every setting of a protocol
    (`settings.probability`). A run that left a swept key alone has the value of its named scenario."""
    base: dict[tuple[str, str], Any] = {}
    for row in runs:
        for key, value in json.loads(row["base"] or "{}").items():
            base[row["scenario"], key] = value
    keys = sorted({key for _, key in base})
    found = []
    for row in runs:
        changed = json.loads(row["changed"] or "{}")
        swept = {key: changed.get(key, base.get((row["scenario"], key))) for key in keys}
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
