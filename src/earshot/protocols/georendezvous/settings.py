"""GeoRendezvous' settings: the paper's n and m, and the times of its soft state."""

from __future__ import annotations

from dataclasses import dataclass, field

from earshot.errors import SettingsError
from earshot.geometry import Position
from earshot.protocols.georendezvous.cell_hash_routing import CellSettings, check_positive
from earshot.protocols.georendezvous.rendezvous_points import rendezvous_point


@dataclass(frozen=True, slots=True)
class GeoRendezvousSettings(CellSettings):
    """GeoRendezvous' settings, on top of the cells'."""

    rendezvous: int = 8
    "Symbol n: how many positions a topic hashes to (section 2.3)."
    nearest: int = 2
    "Symbol m: at how many of them, nearest first, a subscriber subscribes (section 2.4)."
    width_m: float = field(default=1000.0, metadata={"scenario": "area.width_m"})
    "The rectangle that topics hash into, from the origin east,"
    height_m: float = field(default=1000.0, metadata={"scenario": "area.height_m"})
    "and north; a simulated one is its scenario's area."
    content_at_rendezvous: bool = False
    "Whether rendezvous cells apply subscribers' filters; the paper's are topic-only."
    renew_interval_s: float = 10.0
    "How often owners renew their advertisements and subscriptions (section 2.2)."
    record_lifespan_s: float = 35.0
    "What is not renewed for so long is removed."
    choose_after_s: float = 1.0
    "How long a subscriber waits for the slower paths of its first notification before it chooses."
    hold_s: float = 5.0
    "A publisher keeps what it publishes this soon after its announcement for the cells that have yet to ask."
    handover_delay_s: float = 0.05
    "Members of a cell answer a newcomer after a random part of this, so that one of them does."
    remembered_events: int = 10_000
    "How many events a node knows again."

    def __post_init__(self) -> None:
        CellSettings.__post_init__(self)
        if self.rendezvous < 1:
            raise SettingsError(f"rendezvous (n) must be at least 1: a topic needs a place, got {self.rendezvous}")
        if not 1 <= self.nearest <= self.rendezvous:
            raise SettingsError(
                f"nearest (m) must lie between 1 and rendezvous (n = {self.rendezvous}), got {self.nearest}: "
                "a subscriber can choose only among the places there are"
            )
        for name in ("width_m", "height_m", "renew_interval_s", "choose_after_s", "hold_s", "handover_delay_s"):
            check_positive(name, getattr(self, name))
        if not self.record_lifespan_s > self.renew_interval_s:
            raise SettingsError(
                f"record_lifespan_s must be longer than renew_interval_s ({self.renew_interval_s:g} s), or records "
                f"end before they are renewed, got {self.record_lifespan_s}"
            )
        if self.remembered_events < 1:
            raise SettingsError(f"remembered_events must be at least 1, got {self.remembered_events}")

    def point(self, topic: str, index: int) -> Position:
        """The topic's rendezvous point of that index."""
        origin = Position(self.origin_x_m, self.origin_y_m)
        return rendezvous_point(topic, index, origin, self.width_m, self.height_m)

    def points(self, topic: str) -> list[Position]:
        """The topic's n rendezvous points."""
        return [self.point(topic, index) for index in range(self.rendezvous)]


PAPER = GeoRendezvousSettings()
