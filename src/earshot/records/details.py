"""The record dialect: how the `detail` of JOIN, SUBSCRIBE, ANNOUNCE and AIRTIME records is written and read.

Details are JSON objects, written alike by the simulator and by live nodes. Reading never fails: a
detail of an older version, or of a hostile node, gives what can be understood of it. Older logs hold
prose (the reason of a join, a filter's text, "Siren within circle:300m of 0,0"), older spools hold a
proximity as the keys `shape`, `x_m`, `y_m` and `mobile`.

A JOIN says which network the node joined. Nodes belong to one network if they can exchange datagrams: they use the
same multicast group, or name each other as peers, and share a key. Each of these is a mark of the network, and its
name is the first mark that was recorded. A network keeps its name while its key changes, because its nodes hold the
old and the new key for a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from earshot.errors import EarshotError
from earshot.events import EventType
from earshot.geometry import Area, Position, Proximity, parse_shape

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


STARTED, STOPPED = "started", "stopped"
"Why a live node joins and leaves: its process starts and stops, and its applications with it."
KEYS_CHANGED = "keys changed"
"A running node joins again with the network's new keys; its applications continue."


class JoinDetail(msgspec.Struct, omit_defaults=True):
    """How a node runs from now on, and why it joined."""

    protocol: str = ""
    settings: Any = {}
    "The protocol's settings; read as a table of plain values."
    plane: str = ""
    emulate_range_m: float | None = None
    life: int | None = None
    "Distinguishes the starts of one node."
    reason: str = ""
    network: JoinedNetwork | None = None
    "The network of a live node; None if the record does not say."

    @property
    def starts_applications(self) -> bool:
        """Whether the node's applications start again when it joins. Those of live nodes do; those of a simulated
        node continue after its absence. Older spools give no reason."""
        return self.reason in ("", STARTED)


class SubscribeDetail(msgspec.Struct, omit_defaults=True):
    """A filter's text and the subscriber's region of interest."""

    filter: str
    region: Area | None = None


class AnnounceDetail(msgspec.Struct, omit_defaults=True):
    """An announced event type and its proximity (None: everywhere)."""

    subject: str
    content: dict[str, str] = {}
    attributes: dict[str, str] = {}
    proximity: Proximity | None = None
    producer: str = ""
    "Which of several producers on the node announces it."

    @property
    def event_type(self) -> EventType:
        """The announced event type; EventError if it is impossible."""
        return EventType(self.subject, self.content, self.attributes)


class AirtimeDetail(msgspec.Struct):
    """How busy the channel was at a node, in the span of time that ends with the record."""

    span_s: float
    busy_s: float
    "How long the node found the channel busy, its own sending included."
    sent_s: float
    "How long the node sent."


_encoder = msgspec.json.Encoder(enc_hook=str)
_subscribe_decoder = msgspec.json.Decoder(SubscribeDetail)
_announce_decoder = msgspec.json.Decoder(AnnounceDetail)
_airtime_decoder = msgspec.json.Decoder(AirtimeDetail)


def write_detail(detail: JoinDetail | SubscribeDetail | AnnounceDetail | AirtimeDetail) -> str:
    """The detail as the text of a record."""
    return _encoder.encode(detail).decode()


def announcement_name(subject: str, producer: str = "") -> str:
    """What an UNANNOUNCE record names: the event type, and the producer if several on the node announce it."""
    return f"{subject}#{producer}" if producer else subject


def write_announcement(event_type: EventType, proximity: Proximity | None, producer: str = "") -> str:
    """The detail of an ANNOUNCE record."""
    return write_detail(
        AnnounceDetail(event_type.subject, dict(event_type.content), dict(event_type.attributes), proximity, producer)
    )


def read_join(text: str) -> JoinDetail:
    """The detail of a JOIN record; in older logs the text is the reason."""
    if not text.startswith("{"):
        return JoinDetail(reason=text or "unknown")
    found = _table(text)

    def known(name: str, kind: type[Any], default: Any) -> Any:
        value = found.get(name)
        return value if isinstance(value, kind) and not isinstance(value, bool) else default

    range_m = known("emulate_range_m", int | float, None)  # type: ignore[arg-type]
    return JoinDetail(
        known("protocol", str, ""),
        known("settings", dict, {}),
        known("plane", str, ""),
        None if range_m is None else float(range_m),
        known("life", int, None),
        known("reason", str, ""),
        _network(known("network", dict, None)),
    )


def _network(found: dict[str, Any] | None) -> JoinedNetwork | None:
    try:
        return None if found is None else msgspec.convert(found, JoinedNetwork)
    except msgspec.ValidationError:
        return None


def read_subscribe(text: str) -> SubscribeDetail:
    """The detail of a SUBSCRIBE record; a text that is not in this dialect is the filter's text."""
    try:
        return _subscribe_decoder.decode(text)
    except (msgspec.DecodeError, EarshotError, ValueError, RecursionError):
        return SubscribeDetail(text)


def read_announce(text: str) -> AnnounceDetail:
    """The detail of an ANNOUNCE record; in older logs the text begins with the subject."""
    found = _table(text)
    if not found:
        return AnnounceDetail(text.partition(" within ")[0])
    try:
        if "shape" in found:
            naval = Position(float(found["x_m"]), float(found["y_m"]))
            proximity = Proximity(parse_shape(found["shape"]), naval, bool(found["mobile"]))
            content, attributes = dict(found.get("content", {})), dict(found.get("attributes", {}))
            return AnnounceDetail(str(found["subject"]), content, attributes, proximity)
        return _announce_decoder.decode(text)
    except (msgspec.DecodeError, EarshotError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return AnnounceDetail(str(found.get("subject", "")))


def read_airtime(text: str) -> AirtimeDetail | None:
    """The detail of an AIRTIME record; None if it is not one."""
    try:
        return _airtime_decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _table(text: str) -> dict[str, Any]:
    """A JSON object; empty if the text is not one."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
