"""Earshot: publish/subscribe for things that move.

An event is something that happened; a filter is a predicate over its type, content and place::

    from earshot import Event, Filter, Position, Viewer

    siren = Event("Siren", {"speed": 18}, position=Position(0, 0))
    near = Filter.where("speed > 10 and within 200 m")
    assert near.matches(siren, Viewer(Position(150, 0)))

`Node` publishes and subscribes between real hosts. Protocols, the simulator, the Spark pipeline and the
live host have public interfaces of their own: `earshot.protocols`, `earshot.simulation`,
`earshot.pipeline`, `earshot.live`. Errors are in `earshot.errors`.

To read the code, start with `events` and `filters`, then `protocols`; docs/architecture.md shows all rooms.
"""

from typing import TYPE_CHECKING, Any

from earshot.events import Element, Event, EventType
from earshot.filters import Filter, FilterIndex, Viewer
from earshot.geometry import (
    Area,
    Circle,
    Ellipse,
    LocalPlane,
    Polygon,
    Position,
    Proximity,
    Rectangle,
    Velocity,
)

if TYPE_CHECKING:
    from earshot.filters.summaries.data_summary import DataSummary
    from earshot.live.node import Node

__version__ = "0.1.0"

__all__ = [
    "Area",
    "Circle",
    "DataSummary",
    "Element",
    "Ellipse",
    "Event",
    "EventType",
    "Filter",
    "FilterIndex",
    "LocalPlane",
    "Node",
    "Polygon",
    "Position",
    "Proximity",
    "Rectangle",
    "Velocity",
    "Viewer",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """The live node and the data summary are loaded at first use: matching filters needs neither."""
    if name == "Node":
        from earshot.live.node import Node

        return Node
    if name == "DataSummary":
        from earshot.filters.summaries.data_summary import DataSummary

        return DataSummary
    raise AttributeError(f"module 'earshot' has no attribute {name!r}")
