"""The network of a live host, as settings: multicast on an interface, or named peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from earshot.errors import SettingsError
from earshot.settings import AtLeastOne, Positive, check_bounds

DEFAULT_GROUP = "239.255.69.83"
DEFAULT_PORT = 47474
DEFAULT_MEMORY_BYTES = 64_000_000
LEAST_MEMORY_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Where datagrams go, and what the host accepts."""

    interface: str = ""
    "The network interface for multicast; without one, the system chooses."
    group: str = f"{DEFAULT_GROUP}:{DEFAULT_PORT}"
    "The multicast group and port of the whole network; groups of events use the same port."
    peers: tuple[str, ...] = ()
    "HOST:PORT of peers. If there are any, a broadcast goes to each peer and multicast is not used."
    listen: str = ""
    "The [HOST:]PORT to listen on. With it and without an interface, multicast is not used."
    emulate_range_m: Annotated[float, Meta(gt=0)] | None = None
    "Datagrams from farther away are discarded, so that many nodes can be tested on one desk."
    keys: tuple[bytes, ...] = ()
    "The network's keys: the first one encrypts, all of them decrypt."
    hello_interval_s: Positive = 1.0
    "How often a host sends a hello."
    peer_expiry_s: Positive = 5.0
    "A peer that has been silent for this long expires."
    acknowledge_s: Positive = 0.2
    "How long a unicast datagram waits for its acknowledgement before it is sent again."
    attempts: AtLeastOne = 4
    "How often a unicast datagram is sent before its peer counts as unreachable."
    datagram_bytes: Annotated[int, Meta(ge=576, le=65_507)] | None = None
    "The largest datagram; by default what the interface carries without fragments."
    memory_bytes: Annotated[int, Meta(ge=LEAST_MEMORY_BYTES)] = DEFAULT_MEMORY_BYTES
    "At most about this many bytes from peers are held: events, fragments, packets under way, and all tables."
    rate_limit: Positive = 5000.0
    "Datagrams per second from one sender; more are dropped unread."
    bit_rate_bps: Positive | None = None
    "The radio's bit rate, so that a protocol can know how busy the channel is; by default unknown."
    clock_skew_s: Positive = 30.0
    "With a key, datagrams whose time differs by more than this are refused."

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.peer_expiry_s <= self.hello_interval_s:
            raise SettingsError(f"peer_expiry_s must exceed hello_interval_s, got {self.peer_expiry_s}")

    @property
    def multicast(self) -> bool:
        """Whether broadcasts go to multicast groups and not to each peer."""
        return not self.peers and (not self.listen or bool(self.interface))
