"""Spreading: which nodes could have an event by when, if every contact passed on everything at once.

The kernel of the ceiling, without Spark. Contacts are closed intervals of time; an event is held by whole
components of the contact graph, and a node that holds it keeps it. One sweep over time serves many
events: each is a bit, and where a contact begins only the bits that one side lacks are passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot.filters.index.bits import compiled
from earshot.pipeline.traces.exact_contacts import ContactColumns, rows_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EVENTS_AT_ONCE = 4096
"One sweep serves at most this number of events: each is a bit of every node."
NO, BY_CARRYING, AT_ONCE = 0, 1, 2
REACHES = ("no", "by carrying", "at once")
"The words for the three answers, by number."


class PublishedColumns(NamedTuple):
    """One row an event: which node published it, when, and the last moment at which it may arrive."""

    source: Ints
    time: Floats
    deadline: Floats


def reach_of_pairs(
    nodes: int,
    contacts: ContactColumns,
    events: PublishedColumns,
    pair_event: Ints,
    pair_node: Ints,
    silent: Ints | None = None,
) -> npt.NDArray[np.int8]:
    """For each pair of an event and a node, both by number: AT_ONCE, BY_CARRYING or NO.

    `silent` nodes pass on only what they published themselves.
    """
    reach = np.zeros(len(pair_event), dtype=np.int8)
    by_event = np.argsort(pair_event, kind="stable")
    in_order = np.argsort(events.time, kind="stable")
    first = np.searchsorted(pair_event[by_event], np.arange(len(events.time) + 1))
    for at in range(0, len(in_order), EVENTS_AT_ONCE):
        chosen = in_order[at : at + EVENTS_AT_ONCE]
        counts = first[chosen + 1] - first[chosen]
        chosen, counts = chosen[counts > 0], counts[counts > 0]
        pairs = by_event[np.repeat(first[chosen] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        some = rows_of(events, chosen)
        reach[pairs] = _sweep(nodes, contacts, some, np.append(0, np.cumsum(counts)), pair_node[pairs], silent)
    return reach


def _sweep(
    nodes: int, contacts: ContactColumns, events: PublishedColumns, bounds: Ints, pair_node: Ints, silent: Ints | None
) -> npt.NDArray[np.int8]:
    """The answers for events in order of time; the pairs of event e are those from bounds[e] to bounds[e + 1]."""
    if not len(events.time):
        return np.zeros(0, dtype=np.int8)
    touching = (contacts.end >= events.time[0]) & (contacts.start <= events.deadline.max())
    a, b, start, end = rows_of(contacts, touching)
    # Slots are taken in order, and the number of events open at once is bounded.
    words = -(-len(events.time) // 64)
    relays = np.ones(nodes, dtype=np.int64)
    if silent is not None:
        relays[silent] = 0
    arguments: list[Any] = [
        a,
        b,
        start,
        np.argsort(start, kind="stable"),
        end,
        np.argsort(end, kind="stable"),
        events.source,
        events.time,
        events.deadline,
        np.argsort(events.deadline, kind="stable"),
        bounds,
        pair_node,
        relays,
        np.left_shift(np.uint64(1), np.arange(64, dtype=np.uint64)),  # the bits of a word
        np.zeros(nodes * words, dtype=np.uint64),  # what each node holds
        np.zeros(nodes * words, dtype=np.uint64),  # what each silent node published itself
        np.full(nodes, -1, dtype=np.int64),  # each node's first link, and each link's next and previous
        np.full(2 * len(a), -1, dtype=np.int64),
        np.full(2 * len(a), -1, dtype=np.int64),
        np.full(nodes, -1, dtype=np.int64),  # nodes that have yet to pass on
        np.full(len(events.time), -1, dtype=np.int64),  # the slot of each open event
        np.arange(64 * words, dtype=np.int64)[::-1].copy(),  # free slots
        np.zeros(len(pair_node), dtype=np.int64),
    ]
    loop: Callable[..., Any] = compiled_sweep() or sweep_loop
    if loop is sweep_loop:
        # Plain Python reads lists three times as fast as arrays.
        arguments = [column.tolist() for column in arguments]
    return np.asarray(loop(*arguments, words), dtype=np.int8)


@cache
def compiled_sweep() -> Callable[..., Any] | None:
    """The loop, compiled; None without a compiler."""
    ints, floats, bits = np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(64, dtype=np.uint64)
    none, nothing = ints[:0], floats[:0]
    return compiled(
        sweep_loop,
        *(none, none, nothing, none, nothing, none),
        *(none, nothing, nothing, none, ints, none),
        *(ints, bits, bits, bits, ints, none, none, ints, none, ints, none, 1),
    )


def sweep_loop(
    a: Any,
    b: Any,
    start: Any,
    by_start: Any,
    end: Any,
    by_end: Any,
    source: Any,
    published: Any,
    deadline: Any,
    by_deadline: Any,
    bounds: Any,
    pair_node: Any,
    relays: Any,
    bit_of: Any,
    held: Any,
    own: Any,
    head: Any,
    following: Any,
    before: Any,
    stack: Any,
    slot: Any,
    free: Any,
    reach: Any,
    words: int,
) -> Any:
    """Arrays and a compiler, or lists and plain Python. At one moment contacts begin, then events are
    published, then events end, then contacts end: all borders are included."""
    contacts, events = len(start), len(published)
    starts = ends = news = olds = 0
    free_slots = len(free)
    used_words = 0
    while news < events or olds < events:
        now, what = deadline[by_deadline[olds]], 2
        if news < events and published[news] <= now:
            now, what = published[news], 1
        if starts < contacts and start[by_start[starts]] <= now:
            now, what = start[by_start[starts]], 0
        if ends < contacts and end[by_end[ends]] < now:
            now, what = end[by_end[ends]], 3
        first_word, last_word, contact, event = 0, 0, 0, 0
        if what == 3:
            contact = by_end[ends]
            ends += 1
            for link in range(2 * contact, 2 * contact + 2):
                node = a[contact] if link == 2 * contact else b[contact]
                if before[link] >= 0:
                    following[before[link]] = following[link]
                else:
                    head[node] = following[link]
                if following[link] >= 0:
                    before[following[link]] = before[link]
        elif what == 0:
            contact = by_start[starts]
            starts += 1
            for link in range(2 * contact, 2 * contact + 2):
                node = a[contact] if link == 2 * contact else b[contact]
                following[link] = head[node]
                before[link] = -1
                if head[node] >= 0:
                    before[head[node]] = link
                head[node] = link
            last_word = used_words
        elif what == 1:
            event = news
            news += 1
            free_slots -= 1
            slot[event] = free[free_slots]
            first_word = slot[event] // 64
            last_word = first_word + 1
            used_words = max(used_words, last_word)
        # Pass on, word by word, what one side has and the other lacks.
        for word in range(first_word, last_word):
            for side in range(2):
                if what == 1:
                    if side == 1:
                        continue
                    here = source[event]
                    mask = bit_of[slot[event] % 64]
                    own[here * words + word] |= mask
                else:
                    there = a[contact] if side == 0 else b[contact]
                    here = b[contact] if side == 0 else a[contact]
                    given = held[there * words + word] if relays[there] else own[there * words + word]
                    mask = given & ~held[here * words + word]
                if mask == 0:
                    continue
                held[here * words + word] |= mask
                waiting = 0
                if relays[here] or what == 1:
                    stack[0] = here
                    waiting = 1
                while waiting > 0:
                    waiting -= 1
                    link = head[stack[waiting]]
                    while link >= 0:
                        other = b[link // 2] if link % 2 == 0 else a[link // 2]
                        if mask & ~held[other * words + word]:
                            held[other * words + word] |= mask
                            if relays[other]:
                                stack[waiting] = other
                                waiting += 1
                        link = following[link]
        if what != 1 and what != 2:
            continue
        ended = what == 2
        if ended:
            event = by_deadline[olds]
            olds += 1
            if slot[event] < 0:
                continue
        place, mask = slot[event] // 64, bit_of[slot[event] % 64]
        answer, missing = 1 if ended else 2, 0
        for pair in range(bounds[event], bounds[event + 1]):
            if reach[pair] == 0:
                if held[pair_node[pair] * words + place] & mask:
                    reach[pair] = answer
                else:
                    missing += 1
        if ended or missing == 0:
            for node in range(len(head)):
                held[node * words + place] &= ~mask
            own[source[event] * words + place] &= ~mask
            free[free_slots] = slot[event]
            free_slots += 1
            slot[event] = -1
    return reach
