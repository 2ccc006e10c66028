"""The filter language: one predicate over type, content and place, the same on every host.

Start with `filter.py`: `Filter` is what people write, match, explain, compare and index. `subscription.py` has
`accepts`, the one predicate with places. The rooms below and above it:

- `language`: text to conditions and back, and whether an event meets a condition;
- `relations`: normal form, covering, merging and overlap of conditions;
- `index`: many filters, one event (`FilterIndex`);
- `summaries`: many filters or many documents in few bytes.
"""

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
