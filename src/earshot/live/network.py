"""The network of a live host, as settings: multicast on an interface, or named peers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from earshot.errors import SettingsError

DEFAULT_GROUP = "239.255.69.83"
DEFAULT_PORT = 47474


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
    emulate_range_m: float | None = None
    "Datagrams from farther away are discarded, so that many nodes can be tested on one desk."
    keys: tuple[bytes, ...] = ()
    "The network's keys: the first one encrypts, all of them decrypt."
    hello_interval_s: float = 1.0
    "How often a host sends a hello."
    peer_expiry_s: float = 5.0
    "A peer that has been silent for this long expires."
    acknowledge_s: float = 0.2
    "How long a unicast datagram waits for its acknowledgement before it is sent again."
    attempts: int = 4
    "How often a unicast datagram is sent before its peer counts as unreachable."
    datagram_bytes: int | None = None
    "The largest datagram; by default what the interface carries without fragments."
    rate_limit: float = 5000.0
    "Datagrams per second from one sender; more are dropped unread."
    clock_skew_s: float = 30.0
    "With a key, datagrams whose time differs by more than this are refused."

    def __post_init__(self) -> None:
        for name in ("hello_interval_s", "peer_expiry_s", "acknowledge_s", "rate_limit", "clock_skew_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SettingsError(f"{name} must be positive, got {value}")
        if self.emulate_range_m is not None and not self.emulate_range_m > 0:
            raise SettingsError(f"emulate_range_m must be positive, got {self.emulate_range_m}")
        if self.attempts < 1:
            raise SettingsError(f"attempts must be at least 1, got {self.attempts}")
        if self.datagram_bytes is not None and not 576 <= self.datagram_bytes <= 65_507:
            raise SettingsError(f"datagram_bytes must lie between 576 and 65507, got {self.datagram_bytes}")
        if self.peer_expiry_s <= self.hello_interval_s:
            raise SettingsError(f"peer_expiry_s must exceed hello_interval_s, got {self.peer_expiry_s}")

    @property
    def multicast(self) -> bool:
        """Whether broadcasts go to multicast groups and not to each peer."""
        return not self.peers and (not self.listen or bool(self.interface))
