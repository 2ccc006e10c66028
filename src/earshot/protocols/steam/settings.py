"""STEAM's settings: what the paper leaves to the application, and the bounds under it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from earshot.errors import SettingsError

MOST_ASKED = 4096
"Events in one request; a consumer asks for no more than its `cache_size`."


@dataclass(frozen=True, slots=True)
class SteamSettings:
    range_m: float = field(default=200.0, metadata={"scenario": "medium.range_m"})
    "T_R, section 5: this node's own radio range; decides between one hop and many."
    beacon_interval_s: float = 1.0
    "Section 4.5: the period of the beacons, application-specific."
    beacon_gather_s: float = 0.05
    """How long a node gathers what it passes on, so that many producers' announcements share a beacon;
    0: each beacon is passed on by itself, at once."""
    beacon_copies: int = 3
    "Heard so often again while it was gathered, an announcement is not passed on: the neighbours have done it."
    beacon_jitter: float = 0.1
    "The share by which one period may be longer or shorter, so that producers do not beacon in step."
    expiry_s: float = 3.5
    "A proximity whose beacons have stopped for so long is taken off the list."
    forwarding: Literal["flood", "gossip"] = "flood"
    "How members pass events on, section 4.3; gossip is section 5.4.1's."
    gossip_distance_m: float = 200.0
    "d of G(d, p): who stands nearer to the producer always passes on."
    gossip_probability: float = 0.8
    "p of G(d, p): who stands farther does so with this probability."
    hop_limit: int = 32
    "A net under the proximity's own bound."
    lifespan_s: float = 60.0
    "How long an event that names no lifespan of its own is worth passing on or recovering."
    cache_size: int = 64
    "Events a producer holds for recovery, for each announcement; 0: nothing is recovered."
    recovery_delay_s: float = 0.25
    "How long a gap may be mere disorder before it is asked for; requests are spread over as long again."
    recovery_attempts: int = 3
    proximity_limit: int = 2048
    "The list of relevant proximities holds no more."
    announcement_limit: int = 1024
    "One producer has no more of them: on this node, and in its list."
    adverts_per_beacon: int = 16
    "More announcements make more beacons, not larger ones."
    seen_limit: int = 65_536
    "Event ids remembered against duplicates."

    def __post_init__(self) -> None:
        for name in ("range_m", "beacon_interval_s", "expiry_s", "lifespan_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SettingsError(f"{name} must be positive, got {value}")
        if not 0.0 <= self.gossip_probability <= 1.0:
            raise SettingsError(f"gossip_probability must lie between 0 and 1, got {self.gossip_probability}")
        if not 0.0 <= self.beacon_jitter < 1.0:
            raise SettingsError(f"beacon_jitter must be at least 0 and below 1, got {self.beacon_jitter}")
        if self.expiry_s <= self.beacon_interval_s * (1 + self.beacon_jitter):
            raise SettingsError(
                f"expiry_s must be longer than a beacon's period of up to "
                f"{self.beacon_interval_s * (1 + self.beacon_jitter):g} s, got {self.expiry_s}"
            )
        if self.forwarding not in ("flood", "gossip"):
            raise SettingsError(f"forwarding must be flood or gossip, got {self.forwarding!r}")
        for name in ("recovery_delay_s", "beacon_gather_s", "gossip_distance_m"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise SettingsError(f"{name} must be 0 or more, got {getattr(self, name)}")
        for name in (
            "hop_limit",
            "proximity_limit",
            "announcement_limit",
            "adverts_per_beacon",
            "seen_limit",
            "beacon_copies",
        ):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.cache_size > MOST_ASKED:
            raise SettingsError(f"cache_size must be at most {MOST_ASKED}, got {self.cache_size}")
        for name in ("cache_size", "recovery_attempts"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} must be 0 or more, got {getattr(self, name)}")


PAPER = SteamSettings(cache_size=0, beacon_gather_s=0.0)
"The prototype of section 5: best effort, nothing recovered, beacons passed on one by one."
