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
from earshot.records.sessions import SubscriptionSpan


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
    return _inside_area(event, viewer) and inside_region(event, region)


def _inside_area(event: Event, viewer: Viewer | None) -> bool:
    return event.area is None or (viewer is not None and event.area.contains(viewer.position))


def inside_region(event: Event, region: Area | None) -> bool:
    """The part of `accepts` that needs no viewer: a join that does not know yet where nodes are asks it first."""
    return region is None or (event.position is not None and region.contains(event.position))


def explain_acceptance(event: Event, subscription: Subscription, viewer: Viewer | None) -> tuple[bool, str]:
    """What `accepts` answers, and in words why: which part failed, or why the filter matched."""
    if not _inside_area(event, viewer):
        if viewer is None or event.area is None:
            return False, "the node's position at that time is not known, and the event has an area"
        distance_m = viewer.position.distance_to(event.area.at)
        return False, f"the node was outside the event's area {event.area.shape}, {distance_m:.0f} m from its naval"
    region = subscription.region
    if region is not None and not inside_region(event, region):
        return False, f"the event happened outside the region of interest, {region.shape} at {region.at}"
    return subscription.filter.matches(event, viewer), subscription.filter.explain(event, viewer)


# Spans, tables and logs hold a filter's text. Each distinct text is parsed once.

_FILTERS: dict[str, Filter] = {}
_MOST_FILTERS = 200_000


def parsed(text: str) -> Filter:
    """A filter by its text."""
    return _FILTERS.get(text) or _keep(text, Filter.parse(text))


def filter_text(filter: Filter) -> str:
    """A filter's text; `parsed` then gives this filter back."""
    text = str(filter)
    if text not in _FILTERS:
        _keep(text, filter)
    return text


def _keep(text: str, filter: Filter) -> Filter:
    if len(_FILTERS) >= _MOST_FILTERS:
        del _FILTERS[next(iter(_FILTERS))]
    _FILTERS[text] = filter
    return filter


def subscription_of(span: SubscriptionSpan) -> Subscription:
    """The subscription that a span is of."""
    return Subscription(span.subscription, span.node, parsed(span.filter), span.region)
