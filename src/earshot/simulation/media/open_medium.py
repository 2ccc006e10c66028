"""Opens the network that a scenario's settings describe: a medium, and what carries unicasts over or beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from earshot.records.trajectories import Trajectories
from earshot.simulation.faults import Partition
from earshot.simulation.media.capture import CapturingRadio
from earshot.simulation.media.collision_free import LossyRadio, OverlayNetwork, UnitDiskRadio
from earshot.simulation.media.contention import ContentionRadio
from earshot.simulation.media.links import LinkScript, Partitioned, scripted
from earshot.simulation.media.medium_settings import Contention, Lossy, MediumSettings, OutsideMedium, Overlay, UnitDisk
from earshot.simulation.media.neighbours import FixedNeighbours, Neighbours, neighbours_within
from earshot.simulation.media.reactive_routing import ReactiveRouting
from earshot.simulation.media.reception import Disk
from earshot.simulation.media.reception_draws import reception_draws
from earshot.simulation.media.routing import BesideInfrastructure, IdealRouting
from earshot.simulation.media.transmission import Medium, MediumHost, RoutingHost


@dataclass(frozen=True, slots=True)
class Network:
    """What carries the packets of one protocol."""

    medium: MediumSettings
    routed: bool = False
    "Whether unicasts go to distant peers."
    infrastructure: Overlay | None = None
    "Carries the unicasts beside the radio."

    @property
    def label(self) -> str:
        """The network in a few words: what is equal for all protocols that may be compared."""
        return self.medium.label if self.infrastructure is None else f"{self.medium.label} + infrastructure"

    @property
    def routing(self) -> str:
        """What finds the routes to distant peers over the radio: "ideal routing", "reactive routing", or ""."""
        if not self.routed or self.infrastructure is not None or isinstance(self.medium, Overlay):
            return ""
        return f"{self.medium.routing} routing"


def open_network(
    network: Network, trajectories: Trajectories, partitions: Sequence[Partition], host: RoutingHost, seed: int
) -> Medium:
    """The media between these nodes, one over or beside another."""
    settings, names = network.medium, trajectories.names

    def opened(medium: MediumSettings, under: MediumHost, stream: str) -> Medium:
        return open_medium(medium, trajectories, partitions, under, seed, stream)

    if network.infrastructure is not None:
        carrier = opened(network.infrastructure, host, "medium")
        return BesideInfrastructure(opened(settings, host, "radio"), carrier)
    if not network.routed or isinstance(settings, Overlay):
        return opened(settings, host, "medium")
    if settings.routing == "reactive":
        reactive = ReactiveRouting(names, host, Random(f"{seed}:routing"))
        return reactive.over(opened(settings, reactive, "medium"))
    present = neighbours_in(settings, trajectories, partitions)
    ideal = IdealRouting(names, present, host)
    return ideal.over(opened(settings, ideal, "medium"))


def neighbours_in(
    settings: UnitDisk | Lossy | Contention | OutsideMedium, trajectories: Trajectories, partitions: Sequence[Partition]
) -> Neighbours:
    """Which nodes are in range of each other, where scripts and partitions leave them."""
    return _linked(neighbours_within(trajectories, settings.range_m), settings.links, trajectories, partitions)


def _linked(
    radio: Neighbours, script: LinkScript, trajectories: Trajectories, partitions: Sequence[Partition]
) -> Neighbours:
    neighbours = scripted(trajectories.names, radio, script) if script else radio
    return Partitioned(trajectories, neighbours, partitions) if partitions else neighbours


@dataclass(frozen=True, slots=True)
class OpenAir:
    """What a medium of the user's own is built from."""

    trajectories: Trajectories
    "Where each node is, by its number."
    within: Callable[[float], Neighbours]
    "The neighbours of nodes at a range, where scripted links and partitions leave them."
    host: MediumHost
    "The engine, which is notified of what was sent, received and lost."
    random: Random
    "The medium's own random source."


def open_medium(
    settings: MediumSettings,
    trajectories: Trajectories,
    partitions: Sequence[Partition],
    host: MediumHost,
    seed: int,
    stream: str = "medium",
) -> Medium:
    """The medium between these nodes. It has a random stream of its own."""

    def within(range_m: float) -> Neighbours:
        return _linked(neighbours_within(trajectories, range_m), settings.links, trajectories, partitions)

    random = Random(f"{seed}:{stream}")
    match settings:
        case UnitDisk():
            return UnitDiskRadio(settings, within(settings.range_m), host)
        case Lossy():
            return LossyRadio(settings, trajectories, within(settings.range_m), host, random)
        case Contention():
            heard = within(settings.range_m)
            carrier_m = settings.carrier_range_m
            sensed = heard if carrier_m is None or carrier_m == settings.range_m else within(carrier_m)
            captures = settings.capture_db is not None
            if not captures and isinstance(settings.reception, Disk):
                return ContentionRadio(settings, len(trajectories), heard, sensed, host, random)
            own_random = Random(f"{seed}:{stream}:reception")
            model = settings.reception.open(settings.range_m, own_random)
            drawn = reception_draws(
                model,
                settings.range_m,
                carrier_m or settings.range_m,
                trajectories,
                within,
                own_random,
                with_powers=captures,
                by_distance=not (partitions or settings.links),
            )
            radio = CapturingRadio if captures else ContentionRadio
            return radio(settings, len(trajectories), heard, sensed, host, random, drawn)
        case OutsideMedium():
            opened: Medium = settings.settings.open(OpenAir(trajectories, within, host, random))
            return opened
        case Overlay():
            reachable = None
            if partitions or settings.links:
                nodes = len(trajectories)
                every_node = FixedNeighbours([list(range(nodes))] * nodes)
                reachable = _linked(every_node, settings.links, trajectories, partitions)
            return OverlayNetwork(settings, trajectories, reachable, host, random, seed)
