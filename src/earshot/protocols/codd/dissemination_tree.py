"""One node's place in one dissemination tree: its parent, its children and what each of them wants,
the documents that came lately. It says nothing itself; `codd.py` and its parts do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from earshot.protocols.codd.packets import NEW, AddQuery, RemoveQuery, source_of
from earshot.protocols.codd.recent_documents import Held, HeldDocuments, WantedDocuments, bitmap
from earshot.protocols.common.filter_answers import FilterTexts, meets

MOST_MISSING = 1000
"Lost documents asked for at a time."
LINKS_A_CHILD = 1 << 32
"Documents to a child, and its queries, are numbered from a multiple of this on: those of an earlier bond "
"are told apart."


@dataclass(slots=True)
class Child:
    """What a parent knows of a child."""

    own: frozenset[str]
    "Its own query,"
    wants: dict[str, None]
    "and its subtree's: its aggregate filter query."
    heard_at: float
    first_link: int
    link: int
    "Of the last document sent to it."
    version: int = 0
    "Of its last query that has come, in order;"
    early: dict[int, AddQuery | RemoveQuery] = field(default_factory=dict)
    "and those that came before their turn."
    guest: bool = False
    "Not a child yet: documents for it are wanted, but not sent."
    sent: list[int] = field(default_factory=list)
    "The numbers of the last documents sent to it, in order of links."

    def number_at(self, link: int) -> int | None:
        """Which document had this link."""
        place = link - self.link + len(self.sent) - 1
        return self.sent[place] if 0 <= place < len(self.sent) else None

    def forget_sent(self, keep: int) -> None:
        """List only the last ones."""
        if len(self.sent) > 2 * keep:
            del self.sent[:-keep]


class Tree:
    """A node in a tree. It is in it where it is the root or has a parent."""

    def __init__(self, id: str, node: str, is_root: bool, held_documents: int) -> None:
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
        self.wants = FilterTexts()
        "The aggregate: the node's own query and its children's."
        self.version = 0
        "Of the last query sent to the parent."
        self.number = -1
        "The greatest number known of,"
        self.complete = NEW
        "and the one up to which everything wanted has come."
        self.registering = False
        "A new bond has yet to be known at the source; until then `complete` stays as it is."
        self.registering_since = 0.0
        self.pending: dict[str, int] = {}
        "Queries passed up for those below that are not yet known at the source, and since when they count."
        self.first_link = self.heard_link = 0
        self.ahead: dict[int, int] = {}
        "Links that came before their turn, and their `complete`."
        self.held = HeldDocuments(held_documents)
        self.transfers = self.extraneous = 0
        "Documents sent to this node, and those of them that its own query does not ask for."
        self.wanted = WantedDocuments()
        self.next_look = 0
        "At which number the node looks at its overhead next."
        self.looked_at = (0, 0)
        "Transfers and extraneous ones when it last did."
        self.asked_at: int | None = None
        "The number at which it last asked for a reorganisation."
        self._bonds = 0

    @property
    def is_in(self) -> bool:
        return self.is_root or self.parent != ""

    @property
    def fan_out(self) -> int:
        """How many children there are."""
        return sum(not child.guest for child in self.children.values())

    @property
    def since(self) -> int:
        """From where on a new parent must send documents again."""
        return min((since for since in (self.complete, *self.pending.values()) if since > NEW), default=NEW)

    # Children.

    def take(self, name: str, own: Iterable[str], wants: Iterable[str], now: float, guest: bool = False) -> list[str]:
        """A new child, or a new bond to an old one; the texts that nobody here wanted before."""
        before = self.children.get(name)
        self._bonds += 1
        first = self._bonds * LINKS_A_CHILD
        child = Child(frozenset(own), dict.fromkeys(wants), now, first, first, version=first, guest=guest)
        self.children[name] = child
        new = self.wants.hold(sorted(child.wants))
        if before is not None:
            self.wants.release(sorted(before.wants))
        return new

    def give_up(self, name: str) -> list[str]:
        """A child is gone; the texts that nobody here wants any more."""
        child = self.children.pop(name, None)
        return self.wants.release(sorted(child.wants)) if child is not None else []

    def replace_own(self, own: Iterable[str]) -> tuple[list[str], list[str]]:
        """The node's own query has changed; the texts new to the aggregate, and those gone from it."""
        own = tuple(sorted(set(own)))
        new = self.wants.hold(text for text in own if text not in self.own)
        gone = self.wants.release(text for text in self.own if text not in own)
        self.own = own
        return new, gone

    # Documents.

    def missed(self, child: Child, texts: Iterable[str], since: int) -> Iterator[Held]:
        """Held documents after `since` that these filters want and that have not gone to the child yet."""
        if since >= self.number:
            return
        sent = set(child.sent)
        wanted = tuple(texts)
        for held in self.held.since(since + 1):
            if held.number not in sent and meets(held.event, wanted, self.wants.answers(held.event)):
                yield held

    def arrived(self, link: int, complete: int) -> bool:
        """A document came over the link from the parent; False where some before it are missing."""
        if link == self.heard_link + 1 and not self.ahead:
            self.heard_link = link
            if complete > self.complete and not self.registering:
                self.complete = complete
            return True
        if not self.first_link < link <= self.first_link + LINKS_A_CHILD:
            return True
        if link > self.heard_link + 1:
            self.ahead[link] = complete
            return False
        if link <= self.heard_link:
            return True
        self.heard_link = link
        while self.heard_link + 1 in self.ahead:
            self.heard_link += 1
            complete = max(complete, self.ahead.pop(self.heard_link))
        self.completed(complete)
        return not self.ahead

    def completed(self, complete: int) -> None:
        """Everything wanted has come up to this number, so the parent says."""
        if not self.registering and complete > self.complete:
            self.complete = complete

    def missing_links(self, last: int) -> tuple[int, ...]:
        """The links up to the last one that have not come; none where that is of another bond."""
        if not self.first_link <= last < self.first_link + LINKS_A_CHILD:
            return ()
        last = min(last, self.heard_link + MOST_MISSING)
        return tuple(link for link in range(self.heard_link + 1, last + 1) if link not in self.ahead)

    # Statistics.

    def sent_to(self, child: Child, first: int) -> int:
        """The bitmap of recent documents that went to a child."""
        return bitmap(child.sent, first)
