"""Earshot: publish/subscribe for things that move."""

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
    "Polygon",
    "Position",
    "Proximity",
    "Rectangle",
    "Velocity",
    "Viewer",
    "__version__",
]
