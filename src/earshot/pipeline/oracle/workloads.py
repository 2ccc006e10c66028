"""Workloads: events, subscriptions, announcements and positions, apart from any protocol.

A scenario under a seed becomes rows of `events`, `subscriptions`, `announcements` and `positions`
(its trajectories' knots, between which motion is straight and even, so nothing is lost by
interpolation). The same tables are filled from users' files and from the spools of live nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from earshot.documents import read_xml
from earshot.errors import ScenarioError
from earshot.events import Element, Event, Value
from earshot.filters import Subscription
from earshot.geometry import Area, Position, Proximity, Velocity
from earshot.pipeline.lake.tables import EVENTS
from earshot.protocols.machine import Announcement
from earshot.records.sessions import AnnouncementSpan, Session, SubscriptionSpan
from earshot.records.trajectories import Interval, Trajectories, legs_from
from earshot.simulation.engine.oracle import is_up, up_intervals
from earshot.simulation.engine.run import run
from earshot.simulation.engine.schedule import Application
from earshot.simulation.faults import plan
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.workload.actions import Unannounce, Unsubscribe

Row = dict[str, Any]
_ARROW = {"string": pa.string(), "double": pa.float64(), "int": pa.int32()}
EVENTS_ARROW = pa.schema([(name, _ARROW[kind]) for name, kind in EVENTS.columns.items()])

_area_decoder = msgspec.json.Decoder(Area)
_proximity_decoder = msgspec.json.Decoder(Proximity)


def area_json(area: Area | None) -> str | None:
    """An area as tables hold it; None for everywhere."""
    return None if area is None else msgspec.json.encode(area).decode()


def area_of(text: str | None) -> Area | None:
    """What `area_json` wrote."""
    return None if text is None else _area_decoder.decode(text)


def event_row(workload: str, event: Event) -> Row:
    """One row of `events`."""
    tree = isinstance(event.content, Element)
    position, velocity = event.position, event.velocity
    return {
        "workload": workload,
        "event": event.id,
        "type": event.type,
        "source": event.source,
        "time": event.time,
        "x_m": position.x_m if position else None,
        "y_m": position.y_m if position else None,
        "x_m_s": velocity.x_m_s if velocity else None,
        "y_m_s": velocity.y_m_s if velocity else None,
        "area": area_json(event.area),
        "lifespan_s": event.lifespan_s,
        "priority": event.priority,
        "format": "xml" if tree else "json",
        "content": event.to_xml().decode() if tree else flat_json(event.content),
    }


def flat_json(content: Any) -> str:
    """Flat content as `Event.to_json` writes it."""
    whole = msgspec.json.decode(Event(type="_", content=dict(content)).to_json())
    return msgspec.json.encode(whole.get("content", {})).decode()


_flat_decoder = msgspec.json.Decoder(dict[str, Any])


def event_of(row: Mapping[str, Any]) -> Event:
    """The event of one row of `events`."""
    return _event(*(row[name] for name in _EVENT_FIELDS))


def events_of(batch: Any) -> Iterator[Event]:
    """The events of an Arrow batch of `events`."""
    return map(_event, *(batch.column(name).to_pylist() for name in _EVENT_FIELDS))


_class_of = type
_EVENT_FIELDS = tuple(name for name in EVENTS.columns if name != "workload")


def _event(
    event: str,
    type: str,
    source: str,
    time: float,
    x_m: float | None,
    y_m: float | None,
    x_m_s: float | None,
    y_m_s: float | None,
    area: str | None,
    lifespan_s: float | None,
    priority: int,
    format: str,
    content: str,
) -> Event:
    """In the order of the table's columns."""
    values: dict[str, Value] | Element
    if format == "xml":
        values = read_xml(content)
    else:
        flat: dict[str, Any] = _flat_decoder.decode(content)
        values = flat
        if not {dict, list}.isdisjoint(map(_class_of, flat.values())):  # a time or a position, or nested
            values = Event.from_json(msgspec.json.encode({"type": type, "content": flat})).content
    return Event(
        type,
        values,
        event,
        source,
        None if x_m is None or y_m is None else Position(x_m, y_m),
        None if x_m_s is None or y_m_s is None else Velocity(x_m_s, y_m_s),
        time,
        area_of(area),
        lifespan_s,
        priority,
    )


@dataclass(frozen=True)
class WorkloadTables:
    """What a scenario and a seed determine, the same for every protocol: rows for the lake."""

    events: Sequence[Row]
    subscriptions: Sequence[Row]
    announcements: Sequence[Row]
    positions: Sequence[Row]
    sessions: Sequence[Row]
    scenario: Row


def workload_tables(workload: str, scenario: Scenario, seed: int) -> WorkloadTables:
    """Draw the scenario's workload and positions."""
    if scenario.reacts:
        raise ScenarioError(
            f"{scenario.name}: drivers react to events, so that events and positions depend on the protocol"
        )
    trajectories = scenario.trajectories(seed)
    names = trajectories.names
    up = up_intervals(trajectories, plan(scenario.faults, names, scenario.duration_s, seed))
    applications = [Application(Session(name)) for name in names]
    events: list[Row] = []
    for action in scenario.workload(seed, trajectories):
        node, time, application = action.node, action.time, applications[action.node]
        match action.what:
            case Subscription() as subscription:
                application.subscribe(subscription, time)
            case Unsubscribe(id):
                application.unsubscribe(id, time)
            case Announcement() as announcement:
                application.announce(announcement, time)
            case Unannounce(subject):
                application.unannounce(subject, time)
            case Event() as event if is_up(up[node], time):
                position, velocity = trajectories.position(node, time), trajectories.velocity(node, time)
                stamped = application.stamp(event, time, Position(*position), Velocity(*velocity))
                events.append(event_row(workload, stamped))
    sessions = [application.session for application in applications]
    return _tables(workload, scenario, seed, trajectories, up, sessions, events)


def reacting_tables(workload: str, scenario: Scenario, seed: int, protocol: str, settings: Any) -> WorkloadTables:
    """The same where drivers react, so that events and positions depend on the protocol: what its run gives."""
    result = run(scenario, protocol, settings, seed)
    trajectories = result.trajectories
    assert trajectories is not None
    names = trajectories.names
    faults = plan(scenario.faults, names, scenario.duration_s, seed)
    up = up_intervals(trajectories, faults)
    sessions = {name: Session(name) for name in names}
    for span in result.subscriptions:
        sessions[span.node].subscribe(span)
    for action in scenario.workload(seed):
        if isinstance(action.what, Announcement):
            name, what = names[action.node], action.what
            sessions[name].announce(AnnouncementSpan(name, what.event_type.subject, what.proximity, action.time))
    offsets = dict(zip(names, faults.clock_offsets_s, strict=True))
    events = [
        event_row(workload, msgspec.structs.replace(event, time=event.time - offsets[event.source]))
        for event in result.published
    ]
    return _tables(workload, scenario, seed, trajectories, up, list(sessions.values()), events)


def _tables(
    workload: str,
    scenario: Scenario,
    seed: int,
    trajectories: Trajectories,
    up: Sequence[Sequence[Interval]],
    sessions: Sequence[Session],
    events: Sequence[Row],
) -> WorkloadTables:
    names = trajectories.names
    described = msgspec.json.encode(scenario.table()).decode()
    return WorkloadTables(
        events,
        [
            subscription_row(workload, part, scenario.duration_s)
            for node, session in enumerate(sessions)
            for spans in session.subscriptions.values()
            for span in spans
            for part in span.during(up[node])
        ],
        [
            announcement_row(workload, span)
            for session in sessions
            for spans in session.announcements.values()
            for span in spans
        ],
        list(knot_rows(workload, trajectories, scenario.duration_s)),
        [
            {"workload": workload, "node": name, "start": start, "end": None if end == math.inf else end}
            for name, intervals in zip(names, up, strict=True)
            for start, end in intervals
        ],
        {"workload": workload, "scenario": scenario.name, "seed": seed, "described": described},
    )


def subscription_row(workload: str, span: SubscriptionSpan, until: float = math.inf) -> Row:
    """One row of `subscriptions`; one that lasts beyond `until` has no end."""
    return {
        "workload": workload,
        "subscription": span.subscription,
        "node": span.node,
        "filter": span.filter,
        "region": area_json(span.region),
        "start": span.start,
        "end": None if span.end == math.inf or span.end > until else span.end,
    }


def span_of(row: Mapping[str, Any]) -> SubscriptionSpan:
    """The span of one row of `subscriptions`."""
    end = math.inf if row["end"] is None else row["end"]
    return SubscriptionSpan(row["node"], row["subscription"], row["filter"], area_of(row["region"]), row["start"], end)


def announcement_row(workload: str, span: AnnouncementSpan) -> Row:
    """One row of `announcements`."""
    return {
        "workload": workload,
        "node": span.node,
        "type": span.type,
        "proximity": None if span.proximity is None else msgspec.json.encode(span.proximity).decode(),
        "start": span.start,
        "end": None if span.end == math.inf else span.end,
    }


def announcement_of(row: Mapping[str, Any]) -> AnnouncementSpan:
    """The span of one row of `announcements`."""
    proximity = None if row["proximity"] is None else _proximity_decoder.decode(row["proximity"])
    end = math.inf if row["end"] is None else row["end"]
    return AnnouncementSpan(row["node"], row["type"], proximity, row["start"], end)


def knot_rows(trace: str, trajectories: Trajectories, until: float) -> Iterator[Row]:
    """The trajectories as rows of `positions`: where each node is at 0, at every knot, and at the end."""
    for node, name in enumerate(trajectories.names):
        time, x, y = (np.array(column) for column in zip(*trajectories.knots(node, 0.0, until), strict=True))
        legs = legs_from(np.zeros(len(time), dtype=np.int64), time, x, y)
        for row in np.stack([time, x, y, *legs], axis=1).tolist():
            known = dict(zip(("time", "x_m", "y_m", "until", "x_m_s", "y_m_s"), row, strict=True))
            yield {"trace": trace, "node": name, **known, "speed_m_s": None, "heading_deg": None}
