"""The filter language: one predicate over type, content and place, the same on every host."""

from earshot.filters.filter import Filter
from earshot.filters.index.filter_index import FilterIndex
from earshot.filters.language.matching import Viewer

__all__ = ["Filter", "FilterIndex", "Viewer"]
