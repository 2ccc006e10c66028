"""Events and subscriptions of the user's own: JSON lines, XML documents, and workloads in a lake."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from earshot.errors import EarshotError, ScenarioError
from earshot.events import Event
from earshot.filters import Filter
from earshot.geometry import Area, Position, parse_shape
from earshot.traces.lake_tables import LakeTable, open_table


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """A line of an events file: which node publishes what, and when."""

    time_s: float
    node: str
    event: Event


@dataclass(frozen=True, slots=True)
class TimedSubscription:
    """A line of a subscriptions file: which node subscribes to what, from when until when."""

    node: str
    filter: Filter
    at_s: float = 0.0
    until_s: float | None = None
    region: Area | None = None
    id: str = ""


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a .jsonl file, an .xml document or a folder of them, without times and nodes."""
    return _events(path, _version(path))


@lru_cache(maxsize=16)
def _events(path: Path, _seen: Any) -> tuple[Event, ...]:
    if path.is_dir():
        documents = sorted(path.glob("*.xml"))
        if not documents:
            raise ScenarioError(f"{path}: the folder has no .xml documents")
        return tuple(_document(document) for document in documents)
    if path.suffix == ".xml":
        return (_document(path),)
    return tuple(event for _, event in _lines_of_events(path))


def read_timed_events(path: Path) -> tuple[TimedEvent, ...]:
    """The lines of an events file, each with its time and node."""
    found = []
    for line, row in _rows(path):
        where = f"{path}: line {line}"
        time_s, node = _number(row, "time_s", where), _text(row, "node", where)
        rest = {key: value for key, value in row.items() if key not in ("time_s", "node")}
        found.append(TimedEvent(time_s, node, _event(rest, where)))
    return tuple(found)


def read_timed_subscriptions(path: Path) -> tuple[TimedSubscription, ...]:
    """The lines of a subscriptions file."""
    found = []
    known = ("node", "filter", "at_s", "until_s", "region", "id")
    for line, row in _rows(path):
        where = f"{path}: line {line}"
        for key in row:
            if key not in known:
                raise ScenarioError(f"{where}: no such key as {key!r}; there are: {', '.join(known)}")
        try:
            wanted = Filter.parse(_text(row, "filter", where))
            region = _region(row["region"], where) if row.get("region") is not None else None
        except EarshotError as error:
            raise error if str(error).startswith(where) else ScenarioError(f"{where}: {error}") from None
        found.append(
            TimedSubscription(
                node=_text(row, "node", where),
                filter=wanted,
                at_s=_number(row, "at_s", where) if "at_s" in row else 0.0,
                until_s=_number(row, "until_s", where) if row.get("until_s") is not None else None,
                region=region,
                id=_text(row, "id", where) if "id" in row else "",
            )
        )
    return tuple(found)


# -- a workload in a lake, as `earshot workload` keeps it


@dataclass(frozen=True, slots=True)
class LakeWorkload:
    """The events and subscriptions of a workload in a lake."""

    events: tuple[TimedEvent, ...]
    subscriptions: tuple[TimedSubscription, ...]
    content: str
    "The same for the same events and subscriptions."


def read_lake_workload(lake: str, workload: str) -> LakeWorkload:
    """The workload of that name."""
    made_by = f"earshot workload {workload} --events FILE --subscriptions FILE --lake {lake}"
    tables = (open_table(lake, table, "workload", workload, made_by) for table in ("events", "subscriptions"))
    return _lake_workload(*tables)


@lru_cache(maxsize=4)
def _lake_workload(events: LakeTable, subscriptions: LakeTable) -> LakeWorkload:
    published = events.read(("event", "type", "source", "time", "lifespan_s", "priority", "format", "content"))
    wanted = subscriptions.read(("subscription", "node", "filter", "region", "start", "end"))
    published = sorted(published.to_pylist(), key=lambda row: (row["time"], row["event"]))
    wanted = sorted(wanted.to_pylist(), key=lambda row: (row["start"], row["subscription"]))
    digest = hashlib.sha256(json.dumps([published, wanted], sort_keys=True).encode()).hexdigest()
    return LakeWorkload(
        tuple(TimedEvent(row["time"], row["source"], _lake_event(row)) for row in published),
        tuple(
            TimedSubscription(
                row["node"],
                Filter.parse(row["filter"]),
                row["start"],
                row["end"],
                None if row["region"] is None else msgspec.json.decode(row["region"], type=Area),
                row["subscription"],
            )
            for row in wanted
        ),
        digest[:16],
    )


def _lake_event(row: Mapping[str, Any]) -> Event:
    extra = {"lifespan_s": row["lifespan_s"], "priority": row["priority"] or 0}
    if row["format"] == "xml":
        return Event.from_xml(row["content"], **extra)
    event = Event.from_json(json.dumps({"type": row["type"], "content": json.loads(row["content"])}))
    return msgspec.structs.replace(event, **extra)


def _lines_of_events(path: Path) -> Iterator[tuple[int, Event]]:
    found = False
    for line, row in _rows(path):
        found = True
        rest = {key: value for key, value in row.items() if key not in ("time_s", "node")}
        yield line, _event(rest, f"{path}: line {line}")
    if not found:
        raise ScenarioError(f"{path}: the file has no events")


def _event(row: Mapping[str, Any], where: str) -> Event:
    """`{"type": ..., "content": {...}}`, or `{"xml": "<CD>...</CD>"}`; lifespan_s and priority with either."""
    try:
        if "xml" in row:
            extra = {key: value for key, value in row.items() if key != "xml"}
            for key in extra:
                if key not in ("lifespan_s", "priority"):
                    raise ScenarioError(f"{where}: no such key as {key!r} beside xml; there are: lifespan_s, priority")
            return Event.from_xml(_text(row, "xml", where), **extra)
        return Event.from_json(json.dumps(row))
    except ScenarioError:
        raise
    except EarshotError as error:
        raise ScenarioError(f"{where}: {error}") from None


def _document(path: Path) -> Event:
    try:
        return Event.from_xml(path.read_bytes())
    except EarshotError as error:
        raise ScenarioError(f"{path}: {error}") from None


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        raise ScenarioError(f"{path}: no such file; check the path")
    if path.suffix != ".jsonl":
        raise ScenarioError(f"{path}: write one JSON object a line, in a file named .jsonl")
    with path.open(encoding="utf-8-sig") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise ScenarioError(f"{path}: line {number}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise ScenarioError(f"{path}: line {number}: must be a JSON object")
            yield number, row


def _region(value: Any, where: str) -> Area:
    match value:
        case {"shape": str(shape), "at": [int() | float() as x, int() | float() as y], **rest} if not rest:
            return Area(parse_shape(shape), Position(float(x), float(y)))
        case _:
            raise ScenarioError(f'{where}: a region is {{"shape": "circle:300m", "at": [500, 500]}}')


def _number(row: Mapping[str, Any], key: str, where: str) -> float:
    value = row.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ScenarioError(f"{where}: {key} must be a number of seconds, got {value!r}")
    return float(value)


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise ScenarioError(f"{where}: {key} must be a text, got {value!r}")
    return value


def _version(path: Path) -> Any:
    """Changes when the file changes, so that the cache is not used then."""
    if not path.exists():
        raise ScenarioError(f"{path}: no such file; check the path")
    parts = sorted(path.glob("*.xml")) if path.is_dir() else [path]
    return tuple((part.name, part.stat().st_mtime_ns, part.stat().st_size) for part in parts)
