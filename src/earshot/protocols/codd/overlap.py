"""Overlap of queries (section 3.1): by recent documents (extensional), or by structure while there are few."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from random import Random

from earshot.protocols.codd.dissemination_tree import DisseminationTree
from earshot.protocols.codd.recent_documents import bitmap
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.common.filter_texts import read_filter

MOST_COMPARED = 16
"Filters of one aggregate that a filter is compared with by structure, where it is not among them."


def overhead_of(child: int, parent: int) -> int:
    """compute_overhead(p, n), from bitmaps: how many documents the parent would receive for the child alone."""
    return (child & ~parent).bit_count()


def _filter_overlap(a: str, b: str) -> float:
    one, other = read_filter(a), read_filter(b)
    return 0.0 if one is None or other is None else one.overlap(other)


def structural_overlap(query: Collection[str], aggregate: Collection[str]) -> float:
    """The intensional overlap: the mean of each filter's overlap with the nearest filter of the aggregate."""
    if not query or not aggregate:
        return 0.0
    some = list(islice(aggregate, MOST_COMPARED))
    shares = [1.0 if text in aggregate else max(_filter_overlap(text, other) for other in some) for text in query]
    return sum(shares) / len(shares)


def window(tree: DisseminationTree, settings: CoddSettings) -> int:
    """The number of the first document that counts as recent."""
    return max(0, tree.number - settings.window_documents + 1)


def max_overlap_child(tree: DisseminationTree, query: Iterable[str], settings: CoddSettings, random: Random) -> str:
    """max_overlap_node(q, n): the child that would incur the least overhead by taking a node with this query. Chance
    decides between equals."""
    names = sorted(tree.members)
    costs = _costs(tree, names, [text for text in query if read_filter(text) is not None], settings)
    least = min(costs.values())
    return random.choice([name for name in names if costs[name] == least])


def _costs(
    tree: DisseminationTree, names: Iterable[str], query: Collection[str], settings: CoddSettings
) -> dict[str, float]:
    first = window(tree, settings)
    children = {name: tree.children[name] for name in names}
    against_query = settings.join_against == "query"
    if wanted := _recent_matches(tree, query, first):
        received = {
            name: _recent_matches(tree, child.own, first) if against_query else child.received.since(first)
            for name, child in children.items()
        }
        return {name: float(overhead_of(wanted, received[name])) for name in children}
    return {
        name: -structural_overlap(query, sorted(child.own) if against_query else child.wants)
        for name, child in children.items()
    }


def _recent_matches(tree: DisseminationTree, query: Iterable[str], first: int) -> int:
    """The bitmap of recent documents that the query wants, from the data-summary tree; 0 while statistics are thin."""
    for held in tree.held.since(first):
        if held.number not in tree.summary:
            tree.summary.add(held.number, held.event)
    if tree.summary.is_thin:
        return 0
    found = 0
    for text in query:
        filter = read_filter(text)
        found |= (tree.summary.matching(filter) or 0) if filter is not None else 0
    return bitmap([number for number in tree.summary.ids(found) if isinstance(number, int)], first)


def least_overlap_child(tree: DisseminationTree, settings: CoddSettings) -> str:
    """Section 3.3: the child that contributes most to this node's overhead."""
    first = window(tree, settings)
    wanted = tree.wanted.since(first)
    costs = {name: overhead_of(child.received.since(first), wanted) for name, child in sorted(tree.members.items())}
    return max(costs, key=lambda name: costs[name])


def overhead_for(tree: DisseminationTree, mover: str, bits: bytes, first: int, settings: CoddSettings) -> int:
    """compute_overhead(this, n) for the mover, whose recent documents are the bitmap. The root has none."""
    if tree.is_root:
        return 0
    mine = tree.wanted.since(first)
    if settings.overhead_against == "aggregate":
        for name, child in tree.children.items():
            if name != mover:
                mine |= child.received.since(first)
    return overhead_of(int.from_bytes(bits[: settings.window_documents], "little"), mine)
