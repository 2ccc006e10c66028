"""Subscriptions, and the one predicate that decides whether an event is for a subscriber.

`accepts` asks everything at once: type, content, the event's area around the subscriber, and the
subscriber's region of interest around the event. Machines, the simulator, the oracle, `why` and the
replay page all ask it here.
"""

from __future__ import annotations

from dataclasses import dataclass

from earshot.events import Event
from earshot.filters.filter import Filter
from earshot.filters.language.matching import Viewer
from earshot.geometry import Area


@dataclass(frozen=True, slots=True)
class Subscription:
    """A filter, an id and its owner; `region` is the subscriber's region of interest, if any."""

    id: str
    owner: str
    filter: Filter
    region: Area | None = None


def accepts(event: Event, subscription: Subscription, viewer: Viewer | None) -> bool:
    """Whether the event is for this subscription, seen from the subscriber: type, content and place agree."""
    return agrees_in_place(event, subscription.region, viewer) and subscription.filter.matches(event, viewer)


def agrees_in_place(event: Event, region: Area | None, viewer: Viewer | None) -> bool:
    """The part of `accepts` that concerns places outside the filter.

    The subscriber is inside the event's area, and the event happened inside the subscriber's
    region of interest. An index that has matched the filter asks only this.
    """
    if event.area is not None and (viewer is None or not event.area.contains(viewer.position)):
        return False
    return region is None or (event.position is not None and region.contains(event.position))
