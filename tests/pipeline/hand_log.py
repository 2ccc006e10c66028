"""Rows of a log that is written by hand."""

from __future__ import annotations

from typing import Any

from earshot.records import COLUMNS

BLANK: dict[str, Any] = {
    name: {"float64": float("nan"), "int64": -1, "int32": -1, "string": ""}[kind] for name, kind in COLUMNS.items()
}


def record(time: float, node: str, kind: str, **values: Any) -> dict[str, Any]:
    return {"run": "r", **BLANK, "time": time, "node": node, "kind": kind, **values}


def publish(time: float, node: str, event: str, type: str, **values: Any) -> dict[str, Any]:
    return record(time, node, "publish", event=event, detail=f'{{"type":"{type}","content":{{}}}}', **values)


def airtime(time: float, node: str, span_s: float, busy_s: float) -> dict[str, Any]:
    return record(time, node, "airtime", detail=f'{{"span_s":{span_s},"busy_s":{busy_s},"sent_s":0.0}}')
