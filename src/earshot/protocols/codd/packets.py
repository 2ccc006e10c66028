"""CoDD's packets, named as in the paper's figures 2 to 6.

A tree is named after its source and the time at which the source started (`news#1a2b`): a source that lost its
memory starts a new tree.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from earshot.events import Event
from earshot.wire import FilterText, Packet, Word

Texts = tuple[FilterText, ...]
Names = tuple[Word, ...]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
NEW = -2
"Stands for the number of the last document that a newcomer has: it wants only future ones."
Known = Annotated[int, msgspec.Meta(ge=NEW, le=1 << 62)]
"The number of a document; -1 before the first; NEW where no past documents are wanted."
Share = Annotated[float, msgspec.Meta(ge=0, le=1e18)]


def source_of(tree: str) -> str:
    """The node at a tree's root."""
    return tree.rpartition("#")[0]


class TreePacket(Packet, frozen=True):
    """A packet about one tree."""

    tree: Word


# The system agent's directory.


class Source(msgspec.Struct, frozen=True, array_like=True):
    """A tree, the event types of its documents, and where to join it."""

    tree: Word
    types: Names
    seeds: Names


class Register(TreePacket, frozen=True, tag="codd-register"):
    """A source exists, or has new event types."""

    types: Names


class Unregister(TreePacket, frozen=True, tag="codd-unregister"):
    """The source has ended."""


class GetSeedSet(Packet, frozen=True, tag="codd-get-seeds"):
    """Figure 2: which trees exist, and where do newcomers join them?"""


class SeedSet(Packet, frozen=True, tag="codd-seeds"):
    sources: tuple[Source, ...]


# Joining.


class Add(TreePacket, frozen=True, tag="codd-add"):
    newcomer: Word
    request: Count
    wants: Texts


class AddResult(TreePacket, frozen=True, tag="codd-add-result"):
    request: Count
    spare: bool


class AddChild(TreePacket, frozen=True, tag="codd-add-child"):
    """Take me as a child, with my own query and my subtree's. I have all documents up to `since`. `replaces` names the
    child whose place I take."""

    request: Count
    own: Texts
    wants: Texts
    since: Known
    replaces: Word = ""


class Answer(TreePacket, frozen=True, tag="codd-answer"):
    """Yes: these are your ancestors, and your documents are numbered from `link` on; or no."""

    request: Count
    accepted: bool
    ancestors: Names = ()
    link: Count = 0


class AddQuery(TreePacket, frozen=True, tag="codd-add-query"):
    """A node below wants these too. `path` names the nodes that passed it on, beginning with its origin."""

    version: Count
    texts: Texts
    since: Known
    path: Names


class Registered(TreePacket, frozen=True, tag="codd-registered"):
    """The query has reached the source. Sent back along its path. All documents after `number` will come."""

    path: Names
    number: Known


class RemoveQuery(TreePacket, frozen=True, tag="codd-remove-query"):
    version: Count
    texts: Texts


class GetAggregate(TreePacket, frozen=True, tag="codd-get-aggregate"):
    """Some of your queries got lost: send me all."""


class Aggregate(TreePacket, frozen=True, tag="codd-aggregate"):
    version: Count
    own: Texts
    wants: Texts


class NewPath(TreePacket, frozen=True, tag="codd-path"):
    """Your ancestors have changed."""

    ancestors: Names


# Leaving.


class Leave(TreePacket, frozen=True, tag="codd-leave"):
    """I am no longer your child; the successor, if there is one, takes my place."""

    successor: Word = ""


class NewParent(TreePacket, frozen=True, tag="codd-new-parent"):
    """Figure 4: I leave. To the successor: take my place below `parent`, and keep documents for the guests until they
    are below you. To the others: join again, beginning at `parent`."""

    parent: Word
    successor: bool
    complete: Known
    link: Count
    guests: tuple[tuple[Word, Texts], ...] = ()


class Gone(TreePacket, frozen=True, tag="codd-gone"):
    """The source has ended its tree."""


class KeepAlive(Packet, frozen=True, tag="codd-keep-alive"):
    """To a child, for each tree: all documents up to this number were sent, the last with this link number. To a
    parent, for each tree: the version of the last query sent."""

    down: tuple[tuple[Word, Known, Count], ...]
    up: tuple[tuple[Word, Count], ...]


# Documents.


class Document(Packet, frozen=True, tag="codd-document"):
    """`number` counts the source's documents, `link` those sent from this parent to this child. All that the child
    wants up to `complete` were sent."""

    event: Event
    hops: Count
    tree: Word
    number: Count
    link: Count
    complete: Known


class Resend(TreePacket, frozen=True, tag="codd-resend"):
    links: tuple[Count, ...]


# Reorganising.


class Move(TreePacket, frozen=True, tag="codd-move"):
    """Section 3.3: please move to another part of the network; this is my overhead."""

    overhead: Share


class Reorganize(TreePacket, frozen=True, tag="codd-reorganize"):
    overhead: Share


class Granted(TreePacket, frozen=True, tag="codd-granted"):
    """The source lets a node move."""


class Moved(TreePacket, frozen=True, tag="codd-moved"):
    moved: bool


class GetOverhead(TreePacket, frozen=True, tag="codd-get-overhead"):
    """How much overhead would I cause you? `bits` are my recent documents: bit i is the number first + i."""

    request: Count
    first: Count
    bits: bytes


class Overhead(TreePacket, frozen=True, tag="codd-overhead"):
    request: Count
    overhead: Share
    spare: bool
    children: Names
