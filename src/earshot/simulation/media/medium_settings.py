"""Media: who hears whom, when, and what is lost on the way; as settings.

========== ========================================================================
unit-disk  all within range hear everything, after a fixed latency
lossy      the farther away, the likelier a packet is lost
contention one channel: carrier sense, random back-off, collisions, bounded queues
overlay    any live node reaches any other, with a latency; no broadcast
========== ========================================================================

What each models and leaves out: docs/simulator.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from earshot.errors import SettingsError
from earshot.simulation.media.links import LinkScript


def _positive(what: str, value: float, unit: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise SettingsError(f"{what} must be a positive number of {unit}, got {value}")


def _not_negative(what: str, value: float, unit: str) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise SettingsError(f"{what} must be a number of {unit} from 0 on, got {value}")


@dataclass(frozen=True, slots=True)
class UnitDisk:
    """All nodes within `range_m` hear everything; nothing is lost, nobody waits."""

    kind: ClassVar[str] = "unit-disk"

    range_m: float = 100.0
    "All nodes within it hear each other."
    latency_s: float = 0.001
    "From the send to every receipt: the time on air and in the radios, the same for all packets."
    links: LinkScript = LinkScript()
    "Who hears whom by decree."

    def __post_init__(self) -> None:
        _positive("range_m", self.range_m, "metres")
        _positive("latency_s", self.latency_s, "seconds")


@dataclass(frozen=True, slots=True)
class Lossy:
    """Reception is certain up to `certain_m` and impossible beyond `range_m`; between the two its
    probability is 1 - ((d - certain_m) / (range_m - certain_m)) ** exponent, drawn anew each time."""

    kind: ClassVar[str] = "lossy"

    range_m: float = 100.0
    "From here on nothing is received."
    certain_m: float = 50.0
    "Up to here everything is."
    exponent: float = 2.0
    "How the loss grows between the two: 1 evenly, more with a later and steeper rise."
    latency_s: float = 0.001
    "From the send to every receipt, and between the tries of a unicast."
    retries: int = 3
    "How often an unacknowledged unicast is sent again before it counts as unreachable."
    links: LinkScript = LinkScript()
    "Who hears whom by decree."

    def __post_init__(self) -> None:
        _positive("range_m", self.range_m, "metres")
        _not_negative("certain_m", self.certain_m, "metres")
        if self.certain_m > self.range_m:
            raise SettingsError(f"certain_m must not exceed range_m, got {self.certain_m} of {self.range_m}")
        if not (math.isfinite(self.exponent) and self.exponent > 0):
            raise SettingsError(f"exponent must be positive, got {self.exponent}")
        _positive("latency_s", self.latency_s, "seconds")
        if self.retries < 0:
            raise SettingsError(f"retries must not be negative, got {self.retries}")


@dataclass(frozen=True, slots=True)
class Contention:
    """One shared channel after 802.11's distributed coordination function; the timings are 802.11b's."""

    kind: ClassVar[str] = "contention"

    range_m: float = 100.0
    "A frame is understood up to here."
    carrier_range_m: float | None = None
    "A frame is sensed, and spoils others, up to here; None: up to range_m."
    bit_rate_bps: float = 2e6
    "For everything behind the preamble, broadcast and unicast alike."
    preamble_s: float = 192e-6
    "Physical preamble and header before each frame."
    header_bytes: int = 64
    "MAC, LLC, IP and UDP headers and checksum around each packet."
    slot_s: float = 20e-6
    "The unit of back-off; a frame is sensed half a slot after it begins."
    sifs_s: float = 10e-6
    "Between a unicast frame and its acknowledgement."
    difs_s: float = 50e-6
    "How long the channel must be idle before a node counts down."
    ack_bytes: int = 14
    "Size of an acknowledgement."
    window_min: int = 31
    "Back-off is drawn from 0..window_min slots (CWmin); doubled (plus one) at each unicast retry."
    window_max: int = 1023
    "CWmax."
    retry_limit: int = 7
    "A unicast frame is sent at most so often."
    queue_frames: int = 64
    "Frames a node holds while it waits for the channel, the one at the head included."
    links: LinkScript = LinkScript()
    "Who hears whom by decree."

    def __post_init__(self) -> None:
        _positive("range_m", self.range_m, "metres")
        if self.carrier_range_m is not None:
            _positive("carrier_range_m", self.carrier_range_m, "metres")
            if self.carrier_range_m < self.range_m:
                raise SettingsError(
                    f"carrier_range_m must be at least range_m, got {self.carrier_range_m} under {self.range_m}"
                )
        if not (math.isfinite(self.bit_rate_bps) and self.bit_rate_bps > 0):
            raise SettingsError(f"bit_rate_bps must be a positive number of bits a second, got {self.bit_rate_bps}")
        _not_negative("preamble_s", self.preamble_s, "seconds")
        for name in ("slot_s", "sifs_s", "difs_s"):
            _positive(name, getattr(self, name), "seconds")
        if self.difs_s <= self.sifs_s:
            raise SettingsError(f"difs_s must be longer than sifs_s, got {self.difs_s} and {self.sifs_s}")
        for name in ("header_bytes", "ack_bytes"):
            _not_negative(name, getattr(self, name), "bytes")
        if not 0 <= self.window_min <= self.window_max:
            raise SettingsError(
                f"window_min must lie between 0 and window_max, got {self.window_min} and {self.window_max}"
            )
        for name in ("retry_limit", "queue_frames"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Overlay:
    """Unicast between any two live nodes. A message takes
    latency_s + latency_s_per_km * distance + a share of spread_s fixed for the pair
    + a share of jitter_s drawn anew + its bits / bit_rate_bps."""

    kind: ClassVar[str] = "overlay"

    latency_s: float = 0.05
    "What every message takes at least."
    latency_s_per_km: float = 0.0
    "For delays that grow with the way; the paths of mobile nodes are taken where they are."
    spread_s: float = 0.0
    "Pairs differ by up to so much, for good and in both directions alike."
    jitter_s: float = 0.0
    "Messages of one pair differ by up to so much; they may overtake each other."
    bit_rate_bps: float | None = None
    "None: size does not matter."
    loss: float = 0.0
    "The chance that a message is lost on the way; its sender does not learn of it."
    links: LinkScript = LinkScript()
    "A link held down cuts the pair; a graph leaves only its own pairs."

    def __post_init__(self) -> None:
        for name in ("latency_s", "latency_s_per_km", "spread_s", "jitter_s"):
            _not_negative(name, getattr(self, name), "seconds")
        if self.latency_s + self.spread_s + self.jitter_s + self.latency_s_per_km == 0:
            raise SettingsError("an overlay needs a latency: set latency_s")
        if self.bit_rate_bps is not None and not (math.isfinite(self.bit_rate_bps) and self.bit_rate_bps > 0):
            raise SettingsError(f"bit_rate_bps must be a positive number of bits a second, got {self.bit_rate_bps}")
        if not 0 <= self.loss < 1:
            raise SettingsError(f"loss is a chance from 0 to below 1, got {self.loss}")


MediumSettings = UnitDisk | Lossy | Contention | Overlay
MEDIA: dict[str, type[UnitDisk] | type[Lossy] | type[Contention] | type[Overlay]] = {
    medium.kind: medium for medium in (UnitDisk, Lossy, Contention, Overlay)
}
