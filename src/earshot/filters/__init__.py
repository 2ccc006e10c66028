"""The filter language: one predicate over type, content and place, the same on every host."""

from earshot.filters.filter import Filter
from earshot.filters.index.filter_index import FilterIndex
from earshot.filters.language.matching import Viewer
from earshot.filters.oracle import Oracle
from earshot.filters.subscription import Subscription, accepts, agrees_in_place, filter_text, parsed

__all__ = [
    "Filter",
    "FilterIndex",
    "Oracle",
    "Subscription",
    "Viewer",
    "accepts",
    "agrees_in_place",
    "filter_text",
    "parsed",
]
