"""Why an event meets a filter, or which of its terms it fails, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earshot.events import Event
from earshot.filters.matching import Viewer, matches
from earshot.filters.text import condition_text

if TYPE_CHECKING:
    from earshot.filters.filter import Filter


def explanation(filter: Filter, event: Event, viewer: Viewer | None) -> str:
    """Why the event meets the filter, or which term it fails."""
    verb = "matches" if matches(filter, event, viewer) else "does not match"
    return f"{verb} {condition_text(filter.condition)}"
