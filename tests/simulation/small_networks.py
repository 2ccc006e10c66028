"""Small networks for the tests of the engine and its media: nodes at given places, machines that keep notes."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from earshot.errors import EarshotError
from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.protocols.flooding import Flooding, FloodingSettings
from earshot.protocols.machine import Channel, Effects, Location, Machine
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.media.medium_settings import MediumSettings, UnitDisk
from earshot.simulation.mobility import Trajectories, Trajectory
from earshot.simulation.workload.actions import Action, Workload
from earshot.wire import Packet


class Word(Packet, frozen=True, tag="word of the tests"):
    text: str


class Probe(Machine):
    """Keeps note of every call; does what a test puts into `on` for the entry point's name."""

    name = "probe"
    paper = "none"

    def __init__(self, node: str, location: Location, random: Random, channel: Channel) -> None:
        super().__init__(node, None, location, random, channel)
        self.calls: list[tuple[Any, ...]] = []
        self.on: dict[str, Callable[..., None]] = {}

    def _noted(self, entry_point: str, *arguments: Any) -> Effects:
        self.calls.append((entry_point, *arguments))
        if entry_point in self.on:
            self.on[entry_point](self, *arguments)
        return self.effects()

    def start(self, now: float) -> Effects:
        return self._noted("start", now)

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        return self._noted("subscribe", subscription.id, now)

    def unsubscribe(self, subscription: str, now: float) -> Effects:
        return self._noted("unsubscribe", subscription, now)

    def announce(self, announcement: Any, now: float) -> Effects:
        return self._noted("announce", announcement.event_type.subject, now)

    def unannounce(self, subject: str, now: float) -> Effects:
        return self._noted("unannounce", subject, now)

    def publish(self, event: Event, now: float) -> Effects:
        return self._noted("publish", event, now)

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        return self._noted("hear", packet, sender, now)

    def wake(self, timer: Any, now: float) -> Effects:
        return self._noted("wake", timer, now)

    def unreachable(self, packet: Packet, peer: str, now: float) -> Effects:
        return self._noted("unreachable", packet, peer, now)

    def stop(self, now: float) -> Effects:
        return self._noted("stop", now)


def standing(*points: tuple[float, float], names: str = "abcdefghijklmnopqrstuvwxyz") -> Trajectories:
    """Nodes a, b, c, ... that never move."""
    return Trajectories([Trajectory.standing(name, x, y) for name, (x, y) in zip(names, points, strict=False)])


class Bench:
    """Probes on a network. `do(time, node, action)` lets a test act as node's machine at that time."""

    def __init__(
        self,
        trajectories: Trajectories,
        medium: MediumSettings | None = None,
        duration_s: float = 10.0,
        actions: Iterable[Action] = (),
        on: dict[str, Callable[..., None]] | None = None,
        **more: Any,
    ) -> None:
        self.log = Log()
        self.lives: list[Probe] = []
        "Every machine ever built, in order."
        self._acts: dict[str, list[tuple[float, Callable[[Probe], None]]]] = {}
        self._on = on or {}
        self.engine = Engine(
            self._make,
            trajectories,
            medium or UnitDisk(range_m=10.0),
            Workload(actions),
            duration_s=duration_s,
            log=self.log,
            **more,
        )

    def _make(self, node: str, location: Location, random: Random, channel: Channel) -> Probe:
        probe = Probe(node, location, random, channel)
        probe.on = {"start": self._start, "wake": self._wake, **self._on}
        self.lives.append(probe)
        return probe

    def _start(self, probe: Probe, now: float) -> None:
        for k, (time, _) in enumerate(self._acts.get(probe.node, [])):
            if time >= now:
                probe.start_timer(("act", k), time)

    def _wake(self, probe: Probe, timer: Any, now: float) -> None:
        if isinstance(timer, tuple) and timer[0] == "act":
            probe.calls.pop()
            self._acts[probe.node][timer[1]][1](probe)

    def do(self, time: float, node: str, act: Callable[[Probe], None]) -> None:
        self._acts.setdefault(node, []).append((time, act))

    def run(self) -> "Bench":
        self.engine.run()
        return self

    def probe(self, node: str) -> Probe:
        """The node's first machine."""
        return next(probe for probe in self.lives if probe.node == node)

    def calls(self, node: str, entry_point: str) -> list[tuple[Any, ...]]:
        """What the node's machines were called with, over all their lives."""
        return [
            call[1:] for probe in self.lives if probe.node == node for call in probe.calls if call[0] == entry_point
        ]

    def rows(self, *columns: str, **where: str) -> list[tuple[Any, ...]]:
        """These columns of the log's rows that have these values."""
        return [
            tuple(row[column] for column in columns)
            for row in self.log.rows()
            if all(row[name] == value for name, value in where.items())
        ]


def say(text: str) -> Callable[[Probe], None]:
    """Broadcast a word."""
    return lambda probe: probe.broadcast(Word(text))


def send_word(peer: str, text: str) -> Callable[[Probe], None]:
    """Send a word to a peer."""
    return lambda probe: probe.send(peer, Word(text))


def flooding(settings: FloodingSettings | None = None) -> Callable[[str, Location, Random, Channel], Flooding]:
    return lambda node, location, random, channel: Flooding(
        node, settings or FloodingSettings(), location, random, channel
    )


def everybody_wants(nodes: int, event_type: str = "Ping") -> list[Action]:
    """Every node subscribes to the type at time 0."""
    return [Action(0.0, i, Subscription(f"s{i}", f"n{i}", Filter.of_type(event_type))) for i in range(nodes)]


def ping(time: float, node: int, value: int = 0) -> Action:
    return Action(time, node, Event(type="Ping", content={"value": value}))


def failure_of(act: Callable[[], Any]) -> str:
    """The message of the error it raises."""
    try:
        act()
    except EarshotError as error:
        return str(error)
    raise AssertionError("nothing was raised")
