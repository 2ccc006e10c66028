"""One node's view of one dissemination tree (section 3): its parent, its children and what each of them wants, and
the documents that came recently. It changes its state and returns what is to be sent; the machine sends it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from earshot.filters import FilterIndex
from earshot.filters.summaries.data_summary import DataSummary
from earshot.protocols.codd.join import Join
from earshot.protocols.codd.packets import NEW, AddQuery, Aggregate, Registered, RemoveQuery, source_of
from earshot.protocols.codd.recent_documents import HeldDocument, HeldDocuments, RecentBitmap
from earshot.protocols.codd.reorganising import MoveRequests, Search
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.common.filter_texts import FilterTexts
from earshot.protocols.machine import Send

MOST_MISSING = 1000
"Lost documents that are asked for at a time."
MOST_EARLY = 64
"Queries of a child that are kept until the ones before them have come."
LINKS_A_CHILD = 1 << 32
"The documents sent to a child, and its queries, are numbered from a multiple of this on. So numbers of an earlier "
"bond between the same two nodes are recognised."


@dataclass(slots=True)
class Child:
    """What a parent knows about a child."""

    own: frozenset[str]
    "The child's own query."
    wants: dict[str, None]
    "Its aggregate filter query: that of its whole subtree."
    heard_at: float
    first_link: int
    link: int
    "The number of the last document sent to it."
    sent: deque[int]
    "The source's numbers of the last documents sent to it, in order of links."
    received: RecentBitmap
    "The same documents as a bitmap."
    version: int = 0
    "The number of its last query that came in order."
    early: dict[int, AddQuery | RemoveQuery] = field(default_factory=dict)
    "Queries that came before their turn."
    guest: bool = False
    "Not a child yet: documents for it are wanted, but not sent."

    def send(self, number: int) -> int:
        """A document is sent to it. Returns the link's number for it."""
        self.sent.append(number)
        self.received.add(number)
        self.link += 1
        return self.link

    def number_at(self, link: int) -> int | None:
        """The number of the document that was sent with this link number."""
        place = link - self.link + len(self.sent) - 1
        return self.sent[place] if 0 <= place < len(self.sent) else None

    def in_turn(self, query: AddQuery | RemoveQuery) -> list[AddQuery | RemoveQuery]:
        """A query came. Returns the queries whose turn it is now, in order."""
        if self.guest or query.version <= self.version:
            return []
        if query.version == self.version + 1 or len(self.early) < MOST_EARLY:
            self.early[query.version] = query
        due = []
        while (following := self.early.pop(self.version + 1, None)) is not None:
            self.version += 1
            due.append(following)
        return due


class DisseminationTree:
    """One node's place in one tree. The node is in the tree where it is the root or has a parent."""

    def __init__(self, id: str, node: str, is_root: bool, settings: CoddSettings, index: FilterIndex) -> None:
        self.id = id
        self.source = source_of(id)
        self.node = node
        self.is_root = is_root
        self.parent = ""
        self.ancestors: tuple[str, ...] = ()
        "From the root to the parent."
        self.parent_heard_at = 0.0
        self.children: dict[str, Child] = {}
        self.own: tuple[str, ...] = ()
        "The node's own query."
        self.wants = FilterTexts(index)
        "The aggregate filter query: the node's own query and its children's."
        self.version = 0
        "The number of the last query sent to the parent."
        self.number = -1
        "The greatest known number of a document."
        self.complete = NEW
        "Every wanted document up to this number has come."
        self.registering = False
        "The source does not know about the new bond yet; until it does, `complete` stays as it is."
        self.registering_since = 0.0
        self.pending: dict[str, int] = {}
        "By node below, the number since which its query counts, for queries that the source does not know yet."
        self.first_link = self.heard_link = 0
        self.ahead: dict[int, int] = {}
        "Link numbers that came before their turn, and the `complete` that came with each."
        self.held = HeldDocuments(settings.held_documents)
        self.transfers = self.extraneous = 0
        "Documents sent to this node, and how many of them its own query does not ask for."
        self._window = 2 * settings.window_documents
        "Peers' numbers may be behind this node's by as much as a window."
        self.wanted = RecentBitmap(self._window)
        "The documents that came and that its own query asks for."
        self.summary = DataSummary(settings.window_documents, settings.summary_vertices, settings.enough_documents)
        self.next_look = settings.reorganise_every
        "The number of the document at which the node looks at its overhead next."
        self.looked_at = (0, 0)
        "Transfers and extraneous ones when it last looked."
        self.asked_at: int | None = None
        "The number of the document at which it last asked for a reorganisation."
        self.join = Join()
        self.search: Search | None = None
        self.move_requests = MoveRequests(id, settings)
        self._bonds = 0

    @property
    def is_in(self) -> bool:
        return self.is_root or self.parent != ""

    @property
    def members(self) -> dict[str, Child]:
        """The children without guests."""
        return {name: child for name, child in self.children.items() if not child.guest}

    @property
    def fan_out(self) -> int:
        return sum(not child.guest for child in self.children.values())

    @property
    def grandparent(self) -> str:
        return self.ancestors[-2] if len(self.ancestors) > 1 else ""

    @property
    def since(self) -> int:
        """The number after which a new parent must send documents again."""
        return min((since for since in (self.complete, *self.pending.values()) if since > NEW), default=NEW)

    # Parent and children.

    def bond(self, parent: str, link: int, now: float) -> None:
        """The node has this parent now, which counts documents and queries from this link number on."""
        self.parent, self.parent_heard_at = parent, now
        self.first_link = self.heard_link = self.version = link
        self.ahead.clear()

    def take(self, name: str, own: Iterable[str], wants: Iterable[str], now: float, guest: bool = False) -> Child:
        """Add a child, or make a new bond with an old one."""
        before = self.children.get(name)
        self._bonds += 1
        first = self._bonds * LINKS_A_CHILD
        sent = deque[int](maxlen=self.held.capacity)
        received = RecentBitmap(self._window)
        child = Child(frozenset(own), dict.fromkeys(wants), now, first, first, sent, received, first, guest=guest)
        self.children[name] = child
        self.wants.hold(sorted(child.wants))
        if before is not None:
            self.wants.release(sorted(before.wants))
        return child

    def give_up(self, name: str) -> list[str]:
        """Remove a child. Returns the texts that no node here wants now."""
        child = self.children.pop(name, None)
        return self.wants.release(sorted(child.wants)) if child is not None else []

    def lose(self, names: Iterable[str]) -> list[Send]:
        """Remove children, and what only they wanted at the parent."""
        return [send for name in list(names) for send in self.remove_query(self.give_up(name))]

    # The aggregate filter query, and what the parent must know about it.

    def add_query(self, texts: Sequence[str], since: int, path: tuple[str, ...]) -> list[Send]:
        """TYPE_ADD_QUERY; `path` ends with this node. Where there is no parent, the next bond states the query."""
        if self.is_root:
            return []
        if path[0] != self.node:
            self.pending[path[0]] = since
        if not self.parent:
            return []
        self.version += 1
        return [Send(self.parent, AddQuery(self.id, self.version, tuple(texts), since, path))]

    def remove_query(self, texts: Sequence[str]) -> list[Send]:
        """TYPE_REMOVE_QUERY, where there is something to remove."""
        if not texts or not self.parent:
            return []
        self.version += 1
        return [Send(self.parent, RemoveQuery(self.id, self.version, tuple(texts)))]

    def change_own(self, own: tuple[str, ...]) -> list[Send]:
        """The node's own query is now this, in sorted order."""
        new = self.wants.hold(text for text in own if text not in self.own)
        gone = self.wants.release(text for text in self.own if text not in own)
        self.own = own
        return [*(self.add_query(new, NEW, (self.node,)) if new else []), *self.remove_query(gone)]

    def add_to_child(self, child: Child, texts: Iterable[str], is_own: bool) -> None:
        new = [text for text in texts if text not in child.wants]
        child.wants.update(dict.fromkeys(new))
        self.wants.hold(new)
        if is_own:
            child.own |= frozenset(new)

    def remove_from_child(self, child: Child, texts: Iterable[str]) -> list[Send]:
        held = [text for text in texts if text in child.wants]
        for text in held:
            del child.wants[text]
        child.own -= frozenset(held)
        return self.remove_query(self.wants.release(held))

    def on_aggregate(self, packet: Aggregate, name: str, wants: Sequence[str]) -> list[Send]:
        """A child states its whole query again, because some of its changes got lost."""
        child = self.children[name]
        if packet.version < child.version:
            return []
        new = self.wants.hold(text for text in wants if text not in child.wants)
        gone = self.wants.release(text for text in child.wants if text not in wants)
        child.own, child.wants, child.version = frozenset(packet.own), dict.fromkeys(wants), packet.version
        child.early = {version: early for version, early in child.early.items() if version > packet.version}
        return [*(self.add_query(new, NEW, (name, self.node)) if new else []), *self.remove_query(gone)]

    def on_registered(self, packet: Registered) -> list[Send]:
        """The source has a query; back along its path, which ends with this node."""
        if not packet.path or packet.path[-1] != self.node:
            return []
        if self.complete == NEW:  # from here on every document counts, if only for nodes below
            self.complete = packet.number
        below = packet.path[:-1]
        if not below:
            self.registering = False
            return []
        self.pending.pop(below[0], None)
        return [Send(below[-1], Registered(self.id, below, packet.number))] if below[-1] in self.children else []

    # Documents.

    def missed(self, child: Child, texts: Iterable[str], since: int) -> list[HeldDocument]:
        """The held documents after `since` that these filters want and that were not sent to the child."""
        if since >= self.number:
            return []
        wanted, sent = set(texts), set(child.sent)
        return [
            held
            for held in self.held.since(since + 1)
            if held.number not in sent and not wanted.isdisjoint(self.wants.matching(held.event))
        ]

    def arrived(self, link: int, complete: int) -> bool:
        """A document came over the link from the parent. Returns False where some before it are missing."""
        if not self.first_link < link <= self.first_link + LINKS_A_CHILD or link <= self.heard_link:
            return True
        if link > self.heard_link + 1:
            self.ahead[link] = complete
            return False
        self.heard_link = link
        while self.heard_link + 1 in self.ahead:
            self.heard_link += 1
            complete = max(complete, self.ahead.pop(self.heard_link))
        self.completed(complete)
        return not self.ahead

    def completed(self, complete: int) -> None:
        """The parent states that every wanted document up to this number has come."""
        if not self.registering and complete > self.complete:
            self.complete = complete

    def missing_links(self, last: int) -> tuple[int, ...]:
        """The link numbers up to the last one that have not come; none where the last is of another bond."""
        if not self.first_link <= last < self.first_link + LINKS_A_CHILD:
            return ()
        last = min(last, self.heard_link + MOST_MISSING)
        return tuple(link for link in range(self.heard_link + 1, last + 1) if link not in self.ahead)

    def excessive_overhead(self, settings: CoddSettings) -> float | None:
        """Section 3.3: at the reorganisation frequency, or on demand, look at the node's overhead. Returns it where
        it is above the threshold and the time limit since the node's last request is over."""
        every = settings.reorganise_every
        period_over = self.number >= self.next_look
        transfers, extraneous = self.transfers - self.looked_at[0], self.extraneous - self.looked_at[1]
        overhead = extraneous / transfers if transfers else 0.0
        if period_over:
            self.looked_at = (self.transfers, self.extraneous)
        self.next_look = self.number + 1 if settings.on_demand else (self.number // every + 1) * every
        rested = self.asked_at is None or self.number - self.asked_at >= settings.rest_documents
        interior = self.parent != "" and self.fan_out > 0
        excessive = transfers >= settings.enough_documents and overhead > settings.overhead_threshold
        if not (settings.reorganise and interior and rested and excessive):
            return None
        self.asked_at = self.number // every * every if period_over else self.number
        return overhead
