"""The network a live host is on, as settings: multicast on an interface, or named peers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from earshot.errors import SettingsError

DEFAULT_GROUP = "239.255.69.83"
DEFAULT_PORT = 47474


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Where datagrams go, and what the host puts up with."""

    interface: str = ""
    "The network interface for multicast; the system's choice where not given."
    group: str = f"{DEFAULT_GROUP}:{DEFAULT_PORT}"
    "The multicast group and port of the whole network; event groups are joined beside it, on the same port."
    peers: tuple[str, ...] = ()
    "HOST:PORT of peers; with some, there is no multicast and a broadcast goes to every peer."
    listen: str = ""
    "[HOST:]PORT to be reached by; with it, and no interface, there is no multicast."
    emulate_range_m: float | None = None
    "What comes from farther is discarded, so that many nodes can share one desk."
    keys: tuple[bytes, ...] = ()
    "The network's keys: the first seals, all open."
    hello_interval_s: float = 1.0
    "How often a host says that it is there."
    peer_expiry_s: float = 5.0
    "A peer that has been silent for so long is gone."
    acknowledge_s: float = 0.2
    "How long a unicast datagram waits for its acknowledgement before it is sent again."
    attempts: int = 4
    "How often it is sent before its peer counts as unreachable."
    datagram_bytes: int | None = None
    "The largest datagram; what the interface carries whole, where not given."
    rate_limit: float = 5000.0
    "Datagrams a second from one sender; more are dropped unread."
    clock_skew_s: float = 30.0
    "With a key: datagrams whose time differs by more are refused."

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
        """Whether broadcasts go to groups rather than to peers one by one."""
        return not self.peers and (not self.listen or bool(self.interface))
