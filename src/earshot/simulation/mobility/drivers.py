"""Drivers: what the people in SUMO's vehicles do with the events that their nodes receive.

A driver is an application: it publishes, and it acts on what is delivered. Machines know nothing of it. A kind of
drivers is a table with two methods: `types()`, the event types that drivers publish, and `open(random)`, which
returns `Drivers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Protocol

from earshot.events import Event, EventType
from earshot.settings import KindTable, NotNegative, Positive, Share
from earshot.simulation.mobility.sumo_process import SumoProcess, VehicleState
from earshot.simulation.settings_reader import PLUGIN, PluginTable

FAR_S = 1e6
"How long an edge that a driver avoids is said to take."


class Vehicle:
    """A vehicle in SUMO, as its driver sees and steers it."""

    __slots__ = ("_traffic", "state")

    def __init__(self, traffic: Traffic, state: VehicleState) -> None:
        self._traffic = traffic
        self.state = state

    @property
    def name(self) -> str:
        """SUMO's name of it, which is also the node's."""
        return self.state.name

    @property
    def edge(self) -> str:
        """The edge of SUMO's network that it is on."""
        return self.state.edge

    @property
    def speed_m_s(self) -> float:
        """How fast it is."""
        return self.state.speed_m_s

    @property
    def waiting_s(self) -> float:
        """How long it has been standing."""
        return self.state.waiting_s

    def edges_ahead(self) -> tuple[str, ...]:
        """The edges of its route that it has not reached yet."""
        sumo = self._traffic.sumo
        done: int = sumo.ask("vehicle.getRouteIndex", self.name)
        return tuple(sumo.ask("vehicle.getRoute", self.name)[done + 1 :])

    def avoid(self, edge: str, for_s: float) -> bool:
        """Take the fastest route without this edge, if there is one; says whether the route has changed."""
        before = self.edges_ahead()
        if edge not in before:
            return False
        sumo, now_s = self._traffic.sumo, self._traffic.sumo_time_s
        sumo.ask("vehicle.setAdaptedTraveltime", self.name, edge, FAR_S, now_s, now_s + for_s)
        sumo.ask("vehicle.rerouteTraveltime", self.name, False)
        return self.edges_ahead() != before

    def slow_down(self, to_m_s: float, for_s: float) -> None:
        """Drive at most this fast for this long; SUMO still keeps the distance to the vehicle ahead."""
        self._traffic.slow(self.name, to_m_s, for_s)


class Traffic:
    """All vehicles at one time, and SUMO itself."""

    def __init__(self, sumo: SumoProcess) -> None:
        self.sumo = sumo
        self.vehicles: dict[str, Vehicle] = {}
        "By name, those without a node included."
        self.now = 0.0
        self._slow_until: dict[str, float] = {}

    @property
    def sumo_time_s(self) -> float:
        """The time as SUMO counts it."""
        return self.sumo.begin_s + self.now

    def ask(self, function: str, *arguments: object) -> object:
        """Call a function of libsumo by its name: `ask("vehicle.setColor", name, (255, 0, 0, 255))`."""
        return self.sumo.ask(function, *arguments)

    def slow(self, name: str, to_m_s: float, for_s: float) -> None:
        """See `Vehicle.slow_down`."""
        self._slow_until[name] = self.now + for_s
        self.sumo.ask("vehicle.setSpeed", name, to_m_s)

    def at(self, now: float, states: Iterable[VehicleState]) -> None:
        """The vehicles are now in these states."""
        self.now = now
        self.vehicles = {state.name: Vehicle(self, state) for state in states}
        for name in [name for name, until in self._slow_until.items() if until <= now or name not in self.vehicles]:
            del self._slow_until[name]
            if name in self.vehicles:
                self.sumo.ask("vehicle.setSpeed", name, -1.0)


class Drivers(Protocol):
    """What the drivers of a run do."""

    def delivered(self, vehicle: Vehicle, event: Event, now: float) -> None:
        """The vehicle's node has received this event since the last step."""
        ...

    def step(self, traffic: Traffic, now: float) -> Iterable[tuple[str, Event]]:
        """Called before each step of SUMO: the events to be published, each with its vehicle's name."""
        ...


class OutsideDrivers(PluginTable, frozen=True, tag=PLUGIN):
    """Drivers of yours. Their class has the methods `types()`, the event types that they publish, and
    `open(random)`, which returns `Drivers`."""

    group = "drivers"
    methods = ("open", "types")

    def types(self) -> tuple[EventType, ...]:
        return tuple(self.settings.types())

    def open(self, random: Random) -> Drivers:
        opened: Drivers = self.settings.open(random)
        return opened


class JamWarning(KindTable, frozen=True, tag="jam-warning"):
    """A driver who stands in a jam publishes its edge as a `Jam`; a driver who receives a `Jam` ahead avoids it."""

    stands_s: NotNegative = 20.0
    "Who stands for this long is in a jam."
    every_s: Positive = 20.0
    "A jam is published again after this time, by a driver who has not heard of it in the meantime."
    avoid_s: Positive = 300.0
    "For this long a driver avoids the edge."
    heed: Share = 1.0
    "The share of drivers who act on warnings."

    def types(self) -> tuple[EventType, ...]:
        return (EventType("Jam", {"edge": str}),)

    def open(self, random: Random) -> Drivers:
        return JamWarningDrivers(self, random)


class JamWarningDrivers:
    """The drivers of a run, each with what it knows."""

    def __init__(self, settings: JamWarning, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._heeds: dict[str, bool] = {}
        self._known: dict[tuple[str, str], float] = {}
        "When a driver last knew of a jam on an edge."

    def delivered(self, vehicle: Vehicle, event: Event, now: float) -> None:
        edge = event.fields.get("edge", [None])[0]
        if event.type != "Jam" or not isinstance(edge, str):
            return
        self._known[vehicle.name, edge] = now
        if self._heeds.setdefault(vehicle.name, self._random.random() < self._settings.heed):
            vehicle.avoid(edge, self._settings.avoid_s)

    def step(self, traffic: Traffic, now: float) -> Iterator[tuple[str, Event]]:
        for name, vehicle in traffic.vehicles.items():
            if vehicle.waiting_s < self._settings.stands_s:
                continue
            if now - self._known.get((name, vehicle.edge), -FAR_S) >= self._settings.every_s:
                self._known[name, vehicle.edge] = now
                yield name, Event("Jam", {"edge": vehicle.edge})


DriverSettings = JamWarning | OutsideDrivers
"Every kind of `drivers` table."
