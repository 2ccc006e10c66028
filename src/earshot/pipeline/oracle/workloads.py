"""Workloads: what is published, what is wanted and where everybody is, apart from any protocol.

A scenario under a seed becomes rows of `events`, `subscriptions`, `announcements` and `positions`
(its trajectories' knots, between which motion is straight and even, so nothing is lost by
interpolation). The same tables are filled from files of the user's own, and from the spools of
live nodes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from earshot.documents import read_xml
from earshot.events import Element, Event, Value
from earshot.filters import Subscription
from earshot.geometry import Area, Position, Proximity, Velocity
from earshot.pipeline.lake.tables import EVENTS
from earshot.protocols.machine import Announcement
from earshot.simulation.engine.oracle import Lives
from earshot.simulation.faults import plan
from earshot.simulation.mobility import Trajectories
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.workload.actions import Unannounce, Unsubscribe

Row = dict[str, Any]

_area_decoder = msgspec.json.Decoder(Area)


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
        if dict in map(_class_of, flat.values()):  # a time or a position
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
class Facts:
    """What is true of a scenario under a seed, whichever protocol runs: rows for the lake."""

    events: Sequence[Row]
    subscriptions: Sequence[Row]
    announcements: Sequence[Row]
    positions: Sequence[Row]
    scenario: Row


def facts(workload: str, scenario: Scenario, seed: int) -> Facts:
    """Draw the scenario and tell what will happen in it."""
    trajectories = scenario.trajectories(seed)
    names = trajectories.names
    lives = Lives(trajectories, plan(scenario.faults, names, scenario.duration_s, seed))
    events: list[Row] = []
    wanted: dict[tuple[int, str], tuple[float, Subscription]] = {}
    subscriptions: list[Row] = []
    announced: dict[tuple[int, str], tuple[float, Announcement]] = {}
    announcements: list[Row] = []
    published: dict[int, int] = defaultdict(int)

    def end_subscription(node: int, id: str, end: float) -> None:
        start, subscription = wanted.pop((node, id))
        for since, until in lives.during(node, start, end):
            subscriptions.append(_subscription_row(workload, names[node], subscription, since, until, scenario))

    def end_announcement(node: int, subject: str, end: float) -> None:
        start, announcement = announced.pop((node, subject))
        announcements.append(_announcement_row(workload, names[node], announcement, start, end))

    for action in scenario.workload(seed, trajectories):
        node, time = action.node, action.time
        match action.what:
            case Subscription(id=id) as subscription:
                if (node, id) in wanted:
                    end_subscription(node, id, time)
                wanted[node, id] = (time, subscription)
            case Unsubscribe(id):
                if (node, id) in wanted:
                    end_subscription(node, id, time)
            case Announcement() as announcement:
                subject = announcement.event_type.subject
                if (node, subject) in announced:
                    end_announcement(node, subject, time)
                announced[node, subject] = (time, announcement)
            case Unannounce(subject):
                if (node, subject) in announced:
                    end_announcement(node, subject, time)
            case Event() as event if lives.alive(node, time):
                at = Position(*trajectories.position(node, time))
                said = announced.get((node, event.type))
                proximity = said[1].proximity if said else None
                stamped = event.stamped(
                    id=f"{names[node]}-{published[node]}",
                    source=names[node],
                    time=time,
                    position=at,
                    velocity=Velocity(*trajectories.velocity(node, time)),
                    area=proximity.area(at) if proximity else None,
                )
                published[node] += 1
                events.append(event_row(workload, stamped))
    for node, id in list(wanted):
        end_subscription(node, id, math.inf)
    for node, subject in list(announced):
        end_announcement(node, subject, math.inf)
    ways = list(knot_rows(workload, trajectories, scenario.duration_s))
    described = msgspec.json.encode(scenario.table()).decode()
    told = {"workload": workload, "scenario": scenario.name, "seed": seed, "described": described}
    return Facts(events, subscriptions, announcements, ways, told)


def _subscription_row(
    workload: str, node: str, subscription: Subscription, start: float, end: float, scenario: Scenario
) -> Row:
    return {
        "workload": workload,
        "subscription": subscription.id,
        "node": node,
        "filter": str(subscription.filter),
        "region": area_json(subscription.region),
        "start": start,
        "end": None if end == math.inf or end > scenario.duration_s else end,
    }


def _announcement_row(workload: str, node: str, announcement: Announcement, start: float, end: float) -> Row:
    proximity: Proximity | None = announcement.proximity
    return {
        "workload": workload,
        "node": node,
        "type": announcement.event_type.subject,
        "proximity": None if proximity is None else msgspec.json.encode(proximity).decode(),
        "start": start,
        "end": None if end == math.inf else end,
    }


def knot_rows(trace: str, trajectories: Trajectories, until: float) -> Iterator[Row]:
    """The trajectories as rows of `positions`: where each node is at 0, at every knot, and at the end."""
    for node, name in enumerate(trajectories.names):
        for time, x_m, y_m in trajectories.knots(node, 0.0, until):
            yield {
                "trace": trace,
                "node": name,
                "time": time,
                "x_m": x_m,
                "y_m": y_m,
                "speed_m_s": None,
                "heading_deg": None,
            }
