"""Earshot: publish/subscribe for things that move."""

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
    from earshot.live.node import Node

__version__ = "0.1.0"

__all__ = [
    "Area",
    "Circle",
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
    """The live node is loaded when it is asked for: matching filters needs no network."""
    if name == "Node":
        from earshot.live.node import Node

        return Node
    raise AttributeError(f"module 'earshot' has no attribute {name!r}")
