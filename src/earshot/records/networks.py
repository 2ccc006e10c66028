"""Which network a node joined: what its JOIN record says, and the name that all nodes of the network share.

Nodes belong to one network if they can exchange datagrams: they use the same multicast group, or name each other as
peers, and share a key. Each of these is a mark of the network, and its name is the first mark that was recorded. A
network keeps its name while its key changes, because its nodes hold the old and the new key for a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import msgspec

UNKNOWN_NETWORK = "unknown"
"The network of a node whose join does not state it, as in older spools."
MOST_MARKS = 1024
"At most this many marks of one join are used: a hostile spool may name any number of peers."


class JoinedNetwork(msgspec.Struct, omit_defaults=True):
    """A node's network, as its JOIN record states it."""

    group: str = ""
    "The multicast group and port; empty if the node has named peers instead."
    addresses: list[str] = []
    "Without a group: the node's own address and those of its peers."
    keys: list[str] = []
    "The ids of the network's keys (`key_id`), first the key that encrypts; empty for plain text."

    def marks(self) -> Iterator[str]:
        """The marks: nodes that have one of them in common belong to one network."""
        if self.keys and not self.group:
            yield from (f"peers#{key}" for key in self.keys)
        elif self.keys:
            yield from (f"{self.group}#{key}" for key in self.keys)
        else:
            yield from [self.group] if self.group else sorted(self.addresses)


class NetworkNames:
    """The name of each network, by its marks. The name of a mark never changes."""

    def __init__(self, by_mark: dict[str, str] | None = None) -> None:
        self.by_mark = by_mark if by_mark is not None else {}

    def of(self, network: JoinedNetwork | None) -> str:
        """The name of a joined network; a new network is named after its first mark."""
        marks = [] if network is None else list(network.marks())[:MOST_MARKS]
        if not marks:
            return UNKNOWN_NETWORK
        name = next((self.by_mark[mark] for mark in marks if mark in self.by_mark), marks[0])
        for mark in marks:
            self.by_mark.setdefault(mark, name)
        return name


def label_of(network: str, protocol: str) -> str:
    """A network and a protocol, for people."""
    return protocol if network == UNKNOWN_NETWORK else f"{network} {protocol}"


def key_id(key: bytes) -> str:
    """A short name for a network key, which does not reveal it."""
    return hashlib.sha256(b"earshot network key:" + key).hexdigest()[:8]


def key_ids(keys: Sequence[bytes]) -> list[str]:
    """The names of some keys, in their order."""
    return [key_id(key) for key in keys]
