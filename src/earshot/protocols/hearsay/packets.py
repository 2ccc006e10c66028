"""Hearsay's settings and packets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Meta

from earshot.events import Event
from earshot.settings import AtLeastOne, NotNegative, Positive, Share, check_bounds
from earshot.wire import Packet, Whole

MAX_DIGEST_BYTES = 512
"A longer digest is refused when it is decoded."
MOST_ALSO_SAID = 32
"A packet with more further events is refused when it is decoded."
MAX_COORDINATE_M = 100_000_000
"Farther than the way around the Earth."


@dataclass(frozen=True, slots=True)
class HearsaySettings:
    """How long nodes wait, how often they greet, and what they hold. docs/papers/hearsay.md gives the reasons."""

    range_m: Positive = field(default=100.0, metadata={"scenario": "medium.range_m"})
    "How far the radio is believed to reach, until the nodes have learnt it."
    reach_trust: Positive = 4.0
    "That disk counts as this many observations at each distance; 1e9: the reach is never learnt."
    knows_place: bool = True
    "False: this node does not know where it is. It then counts copies instead of measuring distances."
    hop_limit: AtLeastOne = 64
    "An event is transmitted over at most this many hops."
    lifespan_s: Positive = 60.0
    "For events without a lifespan of their own; older events are dropped."

    area_margin: NotNegative = 0.02
    "Rule 2: neighbours this share of the range outside an event's area count as inside: places are rounded."
    wait_frames: NotNegative = 20.0
    "Rule 2: the longest wait before an event is passed on, in times that its packet takes on air."
    crowd: Positive = 12.0
    "Rules 2 and 4: with more neighbours than this, waits and hello intervals grow in proportion."
    crowd_stretch: Annotated[float, Meta(ge=1)] = 3.0
    "Rules 2 and 4: a crowd makes them at most this many times as long."
    worth: Share = 0.2
    "Rules 2, 3 and 5: speak for a neighbour while the chance that it lacks the event and hears us is at least this."

    echo: Share = 0.3
    """Rule 3: each further copy leaves this share of the chance that a neighbour lacks the event, though its sender
    does not reach it: where many speak, others that we do not hear speak too."""
    patience: Annotated[float, Meta(ge=1)] = 3.0
    "Rule 2: a node that would reach only one neighbour anew waits this many times longer."

    together_bytes: NotNegative = 1_400.0
    """Rule 3: on a busy channel, what waits is said together, in packets of at most about this size; 0: each event
    alone. It is to fit into one frame of the radio."""

    hello_interval_s: Positive = 6.0
    "Rule 4: the time between a node's hellos, on a radio that is fast enough; a half where it depends on repair."
    hello_airtime: Annotated[float, Meta(gt=0, le=1)] = 0.02
    "Rule 4: the hellos of a neighbourhood may take this share of the airtime; on slow radios they become rarer."
    hello_drift: NotNegative = 0.15
    "Rule 4: a node greets early when it is this share of the range away from where its last hello puts it."
    neighbour_hellos: Annotated[float, Meta(ge=1)] = 3.2
    "Rule 4: a neighbour that is silent for this many of its intervals is forgotten."
    neighbour_limit: AtLeastOne = 512
    "At most this many neighbours are known; the one that has been silent longest makes room."

    repair_frames: NotNegative = 50.0
    "Rule 5: the longest wait before the first missing event is sent again, in times of a packet on air."
    repair_batch: AtLeastOne = 32
    "Rule 5: at most this many events are sent again after one hello."
    repair_tries: AtLeastOne = 3
    "Rule 5: an event is offered to one neighbour at most this often."
    repair_airtime: Share = 0.1
    "Rule 5: repairs take at most this share of the airtime, in the long run."

    digest_bytes: Annotated[int, Meta(ge=8, le=MAX_DIGEST_BYTES)] = 192
    "Rule 6: the longest digest in a hello."
    digest_bits: AtLeastOne = 8
    "Rule 6: bits of a digest for each event in it."
    carry_bytes: AtLeastOne = 2_000_000
    "Live events are held up to this many bytes; the least useful are dropped first."
    memory: AtLeastOne = 8192
    "How many events a node remembers having heard; the oldest are forgotten first."

    gateways: tuple[str, ...] = ()
    """Rule 7: nodes that reach each other over infrastructure, such as a cellular network. Each event that one of them
    has is sent to the others; equal at all nodes."""
    gateway_wait_s: NotNegative = 0.2
    "Rule 7: the longest time in which another gateway that heard the event too may come first."

    def __post_init__(self) -> None:
        object.__setattr__(self, "gateways", tuple(self.gateways))
        check_bounds(self)


PLAIN = HearsaySettings()

Metres = Annotated[int, Meta(ge=-MAX_COORDINATE_M, le=MAX_COORDINATE_M)]
TenthsPerSecond = Annotated[int, Meta(ge=-100_000, le=100_000)]
Byte = Annotated[int, Meta(ge=0, le=255)]
Quarters = Annotated[int, Meta(ge=0, le=0xFFFF)]


class Said(Packet, frozen=True, tag="said"):
    """An event; `hops` counts the transmissions, this one included."""

    event: Event
    hops: Whole
    at: tuple[Metres, Metres] | None
    "Where its sender is; None: it does not know."


class AlsoSaid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A further event in a packet, and its hops."""

    event: Event
    hops: Whole


class SaidTogether(Packet, frozen=True, tag="also"):
    """Several events of others that its sender passes on at once: the first as in `Said`, and further ones."""

    event: Event
    hops: Whole
    at: tuple[Metres, Metres] | None
    also: Annotated[tuple[AlsoSaid, ...], Meta(min_length=1, max_length=MOST_ALSO_SAID)]

    def each(self) -> Iterator[Said]:
        """The events one by one."""
        yield Said(self.event, self.hops, self.at)
        for one in self.also:
            yield Said(one.event, one.hops, self.at)


class Relayed(Packet, frozen=True, tag="far"):
    """An event that one gateway sends to another over infrastructure."""

    event: Event
    hops: Whole


class Hello(Packet, frozen=True, tag="hi"):
    """Where a node is and which live events it holds."""

    number: Byte
    "Counts the node's hellos, so that its neighbours notice the ones they missed."
    at: tuple[Metres, Metres] | None
    velocity: tuple[TenthsPerSecond, TenthsPerSecond]
    again_s: Annotated[int, Meta(ge=1, le=0xFFFF)]
    "The next hello comes within about this time."
    since: Quarters
    "The digest covers events from this time on, in quarters of a second modulo 2 ** 16."
    length: Quarters
    "For this many quarters of a second; 0: until now."
    salt: Byte
    digest: Annotated[bytes, Meta(max_length=MAX_DIGEST_BYTES)]
