"""The settings of media: which nodes hear which, when, and what is lost.

========== ========================================================================
unit-disk  all within range hear everything, after a fixed latency
lossy      the farther away, the likelier a packet is lost
contention one channel: carrier sense, random back-off, collisions, bounded queues
overlay    any live node reaches any other, with a latency; no broadcast
plugin     a medium of the user's own
========== ========================================================================

What each models and leaves out: docs/simulator.md.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from earshot.errors import SettingsError
from earshot.settings import AtLeastOne, Count, KindTable, NotNegative, Positive
from earshot.simulation.media.links import LinkScript
from earshot.simulation.media.radios import IDEAL, RADIOS, RadioName
from earshot.simulation.media.reception import Disk, LossyReception, ReceptionSettings
from earshot.simulation.settings_reader import PLUGIN, PluginTable

Routing = Literal["ideal", "reactive"]
FROM_RADIO: Any = None
"The default of a key whose value the radio's preset gives."


class UnitDisk(KindTable, frozen=True, tag="unit-disk"):
    """All nodes within `range_m` hear everything; nothing is lost, and there is no contention."""

    range_m: Positive = 100.0
    "All nodes within it hear each other."
    latency_s: Positive = 0.001
    "From sending to every reception: the time on air and in the radios, the same for all packets."
    radio: RadioName = "ideal"
    "The radio that gives each packet its time on air, for the airtime metrics; nothing collides."
    routing: Routing = "ideal"
    "How a unicast finds its way to a distant peer: by the shortest path, or by route discovery as in AODV."
    links: LinkScript = LinkScript()
    "Which links are scripted instead of left to the radio."

    @property
    def label(self) -> str:
        """The network in a few words."""
        return (
            f"{self.radio} {self.range_m:g} m" if self.radio == IDEAL else f"{self.radio} unit-disk {self.range_m:g} m"
        )


class Lossy(KindTable, frozen=True, tag="lossy"):
    """Reception is certain up to `certain_m` and impossible beyond `range_m`; between the two its
    probability is 1 - ((d - certain_m) / (range_m - certain_m)) ** exponent, drawn for each packet."""

    range_m: Positive = 100.0
    "Beyond this distance nothing is received."
    certain_m: NotNegative = 50.0
    "Up to this distance everything is received."
    exponent: Positive = 2.0
    "How the loss grows between the two: 1 is linear, a larger value rises later and steeper."
    latency_s: Positive = 0.001
    "From sending to every reception, and between the attempts of a unicast."
    retries: Count = 3
    "How often an unacknowledged unicast is sent again before its peer counts as unreachable."
    radio: RadioName = "ideal"
    "The radio that gives each packet its time on air, for the airtime metrics; nothing collides."
    routing: Routing = "ideal"
    "How a unicast finds its way to a distant peer: by the shortest path, or by route discovery as in AODV."
    links: LinkScript = LinkScript()
    "Which links are scripted instead of left to the radio."

    @property
    def label(self) -> str:
        """The network in a few words."""
        radio = "" if self.radio == IDEAL else f"{self.radio} "
        return f"{radio}lossy {self.certain_m:g} to {self.range_m:g} m"

    def validate(self) -> None:
        if self.certain_m > self.range_m:
            raise SettingsError(f"certain_m must not exceed range_m, got {self.certain_m} of {self.range_m}")


class Contention(KindTable, frozen=True, tag="contention"):
    """One shared channel after 802.11's distributed coordination function. What is not given is the radio's."""

    radio: RadioName = "802.11b-2M"
    "The preset of a real radio that gives the keys below their values."
    range_m: Positive = FROM_RADIO
    "A frame is understood up to this distance."
    carrier_range_m: Positive | None = None
    "A frame is sensed, and collides with others, up to this distance; by default range_m."
    bit_rate_bps: Positive = FROM_RADIO
    "The bit rate after the preamble, for broadcasts and unicasts."
    preamble_s: NotNegative = FROM_RADIO
    "Physical preamble and header before each frame."
    header_bytes: Count = FROM_RADIO
    "MAC, LLC, IP and UDP headers and checksum around each packet."
    slot_s: Positive = FROM_RADIO
    "The unit of back-off; a frame is sensed half a slot after it begins."
    sifs_s: Positive = FROM_RADIO
    "Between a unicast frame and its acknowledgement."
    difs_s: Positive = FROM_RADIO
    "How long the channel must be idle before a node counts down."
    eifs_s: Positive | None = None
    "The same after a frame that the node could not read; by default SIFS, an acknowledgement and DIFS."
    ack_bytes: Count = FROM_RADIO
    "Size of an acknowledgement."
    window_min: Count = FROM_RADIO
    "Back-off is drawn from 0..window_min slots (CWmin); doubled (plus one) at each unicast retry."
    window_max: Count = FROM_RADIO
    "CWmax."
    reception: ReceptionSettings = Disk()
    "Which nodes can read a frame that nothing disturbs: disk, lossy, shadowing, nakagami, or a plug-in."
    capture_db: NotNegative | None = None
    "A frame that is this much stronger than all others that overlap it is read; by default none of them is."
    retry_limit: AtLeastOne = 7
    "A unicast frame is sent at most this often."
    queue_frames: AtLeastOne = 64
    "At most this many frames wait for the channel at a node, with the one that is being sent."
    routing: Routing = "ideal"
    "How a unicast finds its way to a distant peer: by the shortest path, or by route discovery as in AODV."
    links: LinkScript = LinkScript()
    "Which links are scripted instead of left to the radio."

    def __post_init__(self) -> None:
        preset = RADIOS.get(self.radio)
        if preset is not None:
            for field in dataclasses.fields(preset):
                if getattr(self, field.name) is FROM_RADIO:
                    msgspec.structs.force_setattr(self, field.name, getattr(preset, field.name))
        elif self.radio == IDEAL:
            raise SettingsError('radio: an ideal radio has no contention; write kind = "unit-disk"')
        super().__post_init__()

    @property
    def label(self) -> str:
        """The network in a few words, with the figures in which it differs from its radio."""
        preset = RADIOS[self.radio]
        names = [field.name for field in dataclasses.fields(preset) if field.name != "range_m"]
        other = [f"{name}={getattr(self, name):g}" for name in names if getattr(self, name) != getattr(preset, name)]
        if self.carrier_range_m not in (None, self.range_m):
            other.append(f"carrier_range_m={self.carrier_range_m:g}")
        if self.reception.label:
            other.append(self.reception.label)
        if self.capture_db is not None:
            other.append(f"capture_db={self.capture_db:g}")
        return f"{self.radio} {self.range_m:g} m" + (f" ({', '.join(other)})" if other else "")

    def default_of(self, name: str) -> Any:
        """The radio's value. The radio itself is always written, so that another kind keeps it."""
        return None if name == "radio" else getattr(RADIOS[self.radio], name, super().default_of(name))

    def validate(self) -> None:
        if self.carrier_range_m is not None and self.carrier_range_m < self.range_m:
            raise SettingsError(
                f"carrier_range_m must be at least range_m, got {self.carrier_range_m} under {self.range_m}"
            )
        if isinstance(self.reception, LossyReception) and self.reception.certain_m > self.range_m:
            raise SettingsError(
                f"reception.certain_m must not exceed range_m, got {self.reception.certain_m} of {self.range_m}"
            )
        if self.difs_s <= self.sifs_s:
            raise SettingsError(f"difs_s must be longer than sifs_s, got {self.difs_s} and {self.sifs_s}")
        if self.eifs() < self.difs_s:
            raise SettingsError(f"eifs_s must be at least difs_s, got {self.eifs_s} and {self.difs_s}")
        if self.window_min > self.window_max:
            raise SettingsError(
                f"window_min must lie between 0 and window_max, got {self.window_min} and {self.window_max}"
            )

    def eifs(self) -> float:
        """How long a node waits after a frame that it could not read."""
        if self.eifs_s is not None:
            return self.eifs_s
        return self.sifs_s + self.preamble_s + self.ack_bytes * 8 / self.bit_rate_bps + self.difs_s


class Overlay(KindTable, frozen=True, tag="overlay"):
    """Unicast between any two live nodes. A message takes
    latency_s + latency_s_per_km * distance + a share of spread_s fixed for the pair
    + a share of jitter_s drawn for each message + its bits / bit_rate_bps."""

    latency_s: NotNegative = 0.05
    "The least latency of a message."
    latency_s_per_km: NotNegative = 0.0
    "Additional latency for each kilometre between the two nodes at the time of sending."
    spread_s: NotNegative = 0.0
    "Each pair of nodes has a constant additional latency of up to this much, the same in both directions."
    jitter_s: NotNegative = 0.0
    "Each message has a random additional latency of up to this much; messages may overtake each other."
    bit_rate_bps: Positive | None = None
    "The time to send the bits of a message; by default size does not matter."
    loss: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    "The chance that a message is lost; its sender is not notified."
    links: LinkScript = LinkScript()
    "A link held down cuts the pair; a graph leaves only its own pairs."

    @property
    def label(self) -> str:
        """The network in a few words."""
        return f"overlay {self.latency_s:g} s"

    def validate(self) -> None:
        if self.latency_s + self.spread_s + self.jitter_s + self.latency_s_per_km == 0:
            raise SettingsError("an overlay needs a latency: set latency_s")


class OutsideMedium(PluginTable, frozen=True, tag=PLUGIN):
    """A radio of yours. Its class has a key `range_m`, beyond which nothing is heard, and a method `open(air)`: a
    `Medium` between the nodes, over what `air` (`OpenAir`) gives it."""

    routing: Routing = "ideal"
    "How a unicast finds its way to a distant peer: by the shortest path, or by route discovery as in AODV."
    links: LinkScript = LinkScript()
    "Which links are scripted instead of left to the radio."

    group = "media"
    methods = ("open", "range_m")

    @property
    def range_m(self) -> float:
        """Beyond this distance nothing is heard."""
        return float(self.settings.range_m)

    @property
    def label(self) -> str:
        """The network in a few words: the plug-in's own, else its name and range."""
        return str(getattr(self.settings, "label", f"{self.use} {self.range_m:g} m"))


MediumSettings = UnitDisk | Lossy | Contention | Overlay | OutsideMedium
