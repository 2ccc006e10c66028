"""Opens the medium that a scenario's settings describe."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from earshot.records.trajectories import Trajectories
from earshot.simulation.faults import Partition
from earshot.simulation.media.collision_free import LossyRadio, OverlayNetwork, UnitDiskRadio
from earshot.simulation.media.contention import ContentionRadio
from earshot.simulation.media.links import Everybody, LinkScript, Partitioned, scripted
from earshot.simulation.media.medium_settings import Contention, Lossy, MediumSettings, Overlay, UnitDisk
from earshot.simulation.media.neighbours import Neighbours, neighbours_within
from earshot.simulation.media.transmission import Medium, MediumHost


def open_medium(
    settings: MediumSettings, trajectories: Trajectories, partitions: Sequence[Partition], host: MediumHost, seed: int
) -> Medium:
    """The medium between these nodes. It has a random stream of its own."""

    def linked(radio: Neighbours, script: LinkScript) -> Neighbours:
        neighbours = scripted(trajectories.names, radio, script) if script else radio
        return Partitioned(trajectories, neighbours, partitions) if partitions else neighbours

    def within(range_m: float) -> Neighbours:
        return linked(neighbours_within(trajectories, range_m), settings.links)

    random = Random(f"{seed}:medium")
    match settings:
        case UnitDisk():
            return UnitDiskRadio(settings, within(settings.range_m), host)
        case Lossy():
            return LossyRadio(settings, trajectories, within(settings.range_m), host, random)
        case Contention():
            heard = within(settings.range_m)
            carrier_m = settings.carrier_range_m
            sensed = heard if carrier_m is None or carrier_m == settings.range_m else within(carrier_m)
            return ContentionRadio(settings, len(trajectories), heard, sensed, host, random)
        case Overlay():
            cut = bool(partitions or settings.links)
            reachable = linked(Everybody(len(trajectories)), settings.links) if cut else None
            return OverlayNetwork(settings, trajectories, reachable, host, random, seed)
