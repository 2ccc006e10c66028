"""What CoDD's nodes say to each other. The names are the paper's, of figures 2 to 6.

A tree is named after its source and the time the source came up (`news#1a2b`): a source that lost its
memory grows a new one.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from earshot.events import Event
from earshot.wire import Packet

Texts = tuple[str, ...]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
NEW = -2
"Where a newcomer's documents begin: with those that are to come."
Known = Annotated[int, msgspec.Meta(ge=NEW, le=1 << 62)]
"The number of a document; -1 before the first, NEW where nothing is asked for again."
Share = Annotated[float, msgspec.Meta(ge=0, le=1e18)]


def source_of(tree: str) -> str:
    """The node at a tree's root."""
    return tree.rpartition("#")[0]


# The system agent's directory.


class Source(msgspec.Struct, frozen=True, array_like=True):
    """A tree, the event types that come down it, and where to join it."""

    tree: str
    types: Texts
    seeds: Texts


class Register(Packet, frozen=True, tag="codd-register"):
    """A source is there, or has new event types."""

    tree: str
    types: Texts


class Unregister(Packet, frozen=True, tag="codd-unregister"):
    tree: str


class GetSeedSet(Packet, frozen=True, tag="codd-get-seeds"):
    """Figure 2: what trees are there, and where do they take newcomers?"""


class SeedSet(Packet, frozen=True, tag="codd-seeds"):
    sources: tuple[Source, ...]


# Joining.


class Add(Packet, frozen=True, tag="codd-add"):
    tree: str
    newcomer: str
    request: Count
    wants: Texts


class AddResult(Packet, frozen=True, tag="codd-add-result"):
    tree: str
    request: Count
    spare: bool


class AddChild(Packet, frozen=True, tag="codd-add-child"):
    """Take me: this is my own query, this my subtree's; I have everything up to `since`.
    `replaces` names the child whose place I take over."""

    tree: str
    request: Count
    own: Texts
    wants: Texts
    since: Known
    replaces: str = ""


class Answer(Packet, frozen=True, tag="codd-answer"):
    """Yes: under these ancestors, documents numbered from `link` on; or no."""

    tree: str
    request: Count
    accepted: bool
    ancestors: Texts = ()
    link: Count = 0


class AddQuery(Packet, frozen=True, tag="codd-add-query"):
    """Some node below wants these too. `path` are the nodes it has come through, the origin first."""

    tree: str
    version: Count
    texts: Texts
    since: Known
    path: Texts


class Registered(Packet, frozen=True, tag="codd-registered"):
    """The query has reached the source; back along its path. Everything after `number` will come."""

    tree: str
    path: Texts
    number: Known


class RemoveQuery(Packet, frozen=True, tag="codd-remove-query"):
    tree: str
    version: Count
    texts: Texts


class GetAggregate(Packet, frozen=True, tag="codd-get-aggregate"):
    """Some of your queries got lost on the way: tell me all."""

    tree: str


class Aggregate(Packet, frozen=True, tag="codd-aggregate"):
    tree: str
    version: Count
    own: Texts
    wants: Texts


class NewPath(Packet, frozen=True, tag="codd-path"):
    """Your ancestors have changed."""

    tree: str
    ancestors: Texts


# Leaving.


class Leave(Packet, frozen=True, tag="codd-leave"):
    """I am no longer your child; the successor, if any, is in my place."""

    tree: str
    successor: str = ""


class NewParent(Packet, frozen=True, tag="codd-new-parent"):
    """Figure 4: I leave. To the successor: take my place below `parent`, and keep documents for these
    until they are below you. To the others: join again, beginning at `parent`."""

    tree: str
    parent: str
    successor: bool
    complete: Known
    link: Count
    guests: tuple[tuple[str, Texts], ...] = ()


class Gone(Packet, frozen=True, tag="codd-gone"):
    """The source is gone for good, and its tree with it."""

    tree: str


class KeepAlive(Packet, frozen=True, tag="codd-keep-alive"):
    """To a child: tree, complete up to which number, documents numbered up to which link. To a parent:
    tree, and the version of the last query sent."""

    down: tuple[tuple[str, Known, Count], ...]
    up: tuple[tuple[str, Count], ...]


# Documents.


class Document(Packet, frozen=True, tag="codd-document"):
    """`number` counts the source's documents, `link` those sent from this parent to this child; all up
    to `complete` have been sent that the child wants."""

    event: Event
    hops: Count
    tree: str
    number: Count
    link: Count
    complete: Known


class Resend(Packet, frozen=True, tag="codd-resend"):
    tree: str
    links: tuple[Count, ...]


# Reorganising.


class Move(Packet, frozen=True, tag="codd-move"):
    """Section 3.3: please move to another part of the network; this is my overhead."""

    tree: str
    overhead: Share


class Reorganize(Packet, frozen=True, tag="codd-reorganize"):
    tree: str
    overhead: Share


class Granted(Packet, frozen=True, tag="codd-granted"):
    tree: str


class Moved(Packet, frozen=True, tag="codd-moved"):
    tree: str
    moved: bool


class GetOverhead(Packet, frozen=True, tag="codd-get-overhead"):
    """What overhead would I cause you? My recent documents: bit i is the number first + i."""

    tree: str
    request: Count
    first: Count
    bits: bytes


class Overhead(Packet, frozen=True, tag="codd-overhead"):
    tree: str
    request: Count
    overhead: Share
    spare: bool
    children: Texts
