"""What Siena's nodes say to each other."""

from __future__ import annotations

from earshot.events import Event
from earshot.wire import Packet


class Enter(Packet, frozen=True, tag="siena-enter"):
    """Give me a place; `gone` is a neighbour that does not answer."""

    gone: str = ""


class Place(Packet, frozen=True, tag="siena-place"):
    """You are a broker, or a client, below this one ("": you are the root)."""

    broker: bool
    above: str


class Elected(Packet, frozen=True, tag="siena-elected"):
    """Nobody is named as the central control: I am it."""


class Connect(Packet, frozen=True, tag="siena-connect"):
    broker: bool


class Bye(Packet, frozen=True, tag="siena-bye"):
    """I am gone."""


class Advertise(Packet, frozen=True, tag="siena-advertise"):
    order: int
    publisher: str
    types: tuple[str, ...]


class Subscribe(Packet, frozen=True, tag="siena-subscribe"):
    order: int
    texts: tuple[str, ...]


class Unsubscribe(Packet, frozen=True, tag="siena-unsubscribe"):
    order: int
    texts: tuple[str, ...]


class Notify(Packet, frozen=True, tag="siena-notify"):
    event: Event
    hops: int
