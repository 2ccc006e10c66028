"""The settings of the extended ODMRP: the paper's own where it gives them."""

from __future__ import annotations

from dataclasses import dataclass, field

from earshot.errors import SettingsError, UsageError
from earshot.filters.summaries.bloom import BloomShape
from earshot.filters.summaries.summary import DEFAULT_SHAPE
from earshot.protocols.content_odmrp.pass_rate import SLACK


@dataclass(frozen=True, slots=True)
class ContentOdmrpSettings:
    refresh_interval_s: float = 5.0
    "Section IV: how often a source that has something to send floods a Join Request."
    forwarding_timeout_s: float = 25.0
    "Section IV: how long flags, routes, reports and groups last without being refreshed."
    report_interval_s: float = 10.0
    "A broker repeats its summary at least so often; in between its stamp is enough."
    gather_s: float = 0.05
    """A node next to the source waits so long for the Join Tables below it, nodes farther away wait less:
    a sixteenth for each hop, which should exceed a hop there and back. Waiting longer saves packets,
    and costs routes on the move."""
    answer_wait_s: float = 0.4
    "A Join Request that has no answer by then leaves its group without a route."
    unanswered_limit: int = 5
    "After so many requests without any answer in a row, events nobody is known to want wait for the refresh."
    acknowledged: bool = False
    """Join Tables go to their next hop alone, acknowledged and repeated by the radio, instead of being
    broadcast. Where packets collide or get lost this saves routes; the paper broadcasts."""
    groups_limit: int = 4
    "A source keeps at most so many groups; section III.D's balance between groups and content."
    noise_limit: float = 1.0
    """An event goes to a group of which at most this share does not want it. 1: any group that has all its
    subscribers, the least constrained (section III.D); 0: the finest groups, and the most requests.
    While forwarding nodes examine events, coarse groups cost no data."""
    examine: bool = True
    "Forwarding nodes look into an event and pass it on only where someone below them may want it."
    advertise: bool = False
    "Advertisement mode: announcing a type floods a Join Request, so that routes stand before the first event."
    predict: bool = False
    "Mobility prediction: refresh when a link on the way is predicted to break."
    range_m: float = field(default=100.0, metadata={"scenario": "medium.range_m"})
    "The radio's range, for the prediction."
    refresh_min_s: float = 1.0
    "The prediction never refreshes more often."
    refresh_max_s: float = 20.0
    "The prediction never refreshes less often."
    vector_bits: int = DEFAULT_SHAPE.bits
    "Size of a summary's vectors (m), one for the whole network."
    vector_hashes: int = DEFAULT_SHAPE.hashes
    "Hashes of a summary's vectors (k), one for the whole network."
    summary_bytes: int = 1000
    "A broker's summary is coarsened to this."
    greedy_share: float = 0.8
    "A broker whose summary lets this share of all events pass reports that it wants them all. Above 1: never."
    packet_bytes: int = 1400
    "Reports beyond this are merged into one by the node that passes them on."
    hop_limit: int = 32
    "Join Requests and data go over at most so many hops."
    lifespan_s: float = 60.0
    "For events that carry no lifespan of their own; older ones are let go."
    memory: int = 4096
    "How many packets a node remembers having heard."
    jitter_s: float = 0.0
    """A node waits an even draw from 0 to this before it passes anything on or answers. Where neighbours
    share a channel they would all begin at once: 0.01 s is usual there."""
    sources_limit: int = 256
    "How many sources a node knows the way to."
    reports_limit: int = 1024
    "How many brokers' reports are kept for each source; beyond them somebody unknown wants everything."

    def __post_init__(self) -> None:
        for name in ("refresh_interval_s", "forwarding_timeout_s", "report_interval_s", "lifespan_s", "range_m"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("gather_s", "jitter_s"):
            if not getattr(self, name) >= 0:
                raise SettingsError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("refresh_interval_s", "report_interval_s", "refresh_max_s"):
            if getattr(self, name) >= self.forwarding_timeout_s:
                raise SettingsError(
                    f"forwarding_timeout_s must exceed {name}, got {self.forwarding_timeout_s:g} "
                    f"and {getattr(self, name):g}"
                )
        if self.answer_wait_s <= self.gather_s:
            raise SettingsError(f"answer_wait_s must exceed gather_s, got {self.answer_wait_s:g} and {self.gather_s:g}")
        if not 0 < self.refresh_min_s <= self.refresh_max_s:
            raise SettingsError(
                f"refresh_min_s must lie between 0 and refresh_max_s, got {self.refresh_min_s:g} "
                f"and {self.refresh_max_s:g}"
            )
        if not 0 <= self.noise_limit <= 1:
            raise SettingsError(f"noise_limit must be a share from 0 to 1, got {self.noise_limit}")
        for name in ("unanswered_limit", "groups_limit", "hop_limit", "memory", "sources_limit", "reports_limit"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.greedy_share > SLACK:
            raise SettingsError(f"greedy_share must exceed {SLACK}, got {self.greedy_share}")
        if not 32 <= self.summary_bytes <= self.packet_bytes - 100:
            raise SettingsError(
                f"summary_bytes must be at least 32 and leave 100 of packet_bytes, got {self.summary_bytes} "
                f"of {self.packet_bytes}"
            )
        try:
            BloomShape(self.vector_bits, self.vector_hashes)
        except UsageError as error:
            raise SettingsError(f"vector_bits and vector_hashes: {error}") from None

    @property
    def shape(self) -> BloomShape:
        """The shape of this network's summaries."""
        return BloomShape(self.vector_bits, self.vector_hashes)
