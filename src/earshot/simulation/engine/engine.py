"""The engine: machines on one side, a medium on the other, and simulated time between them.

It calls the machines' entry points, carries out the effects they return, and logs what
happened. One queue entry stands for one transmission, however many hear it. What is known before
a run begins (who comes when, what applications do) stands in `schedule.py`.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Protocol

import msgspec

from earshot.errors import MachineFailure, QualityError, SettingsError
from earshot.events import Event
from earshot.geometry import Position, Velocity
from earshot.plugins import name_of
from earshot.protocols.machine import (
    NOTHING,
    Broadcast,
    CancelTimer,
    Channel,
    Deliver,
    Drop,
    Effects,
    JoinGroup,
    LeaveGroup,
    Location,
    Machine,
    Note,
    Send,
    StartTimer,
    Timer,
)
from earshot.protocols.machine_failures import MOST_AT_ONE_TIME, checked_effects, failure, is_ours, livelock, short
from earshot.protocols.services.fences import Crossed
from earshot.protocols.services.history import DeliverPast
from earshot.protocols.services.served import Late, Served, Warn
from earshot.records import DropReason, Kind
from earshot.records.details import AirtimeDetail, JoinDetail, write_detail
from earshot.records.trajectories import Trajectories
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import Counts, Deliveries
from earshot.simulation.engine.schedule import Schedule
from earshot.simulation.event_queue import Priority, Queue
from earshot.simulation.faults import NO_FAULTS, FaultSettings, plan
from earshot.simulation.media.channel_use import BusyTime, NodeChannel, RecentUse
from earshot.simulation.media.medium_settings import MediumSettings
from earshot.simulation.media.open_medium import Network, open_network
from earshot.simulation.media.transmission import Frame, PacketCount, Transmission
from earshot.simulation.workload.actions import Services, Workload
from earshot.wire import MAX_PACKET_BYTES, Packet, size, tag_of

MakeMachine = Callable[[str, Location, Random, Channel], Machine]
"Builds the machine of a named node; called again when the node restarts."


class NodeLocation:
    """A node's position, by the node's own clock."""

    __slots__ = ("_clock_offset_s", "_node", "_trajectories")

    def __init__(self, trajectories: Trajectories, node: int, clock_offset_s: float) -> None:
        self._trajectories = trajectories
        self._node = node
        self._clock_offset_s = clock_offset_s

    def position(self, time: float) -> Position:
        return Position(*self._trajectories.position(self._node, time - self._clock_offset_s))

    def velocity(self, time: float) -> Velocity:
        return Velocity(*self._trajectories.velocity(self._node, time - self._clock_offset_s))


class WrongLocation(NodeLocation):
    """A node that believes to be elsewhere."""

    __slots__ = ("_error_m",)

    def __init__(
        self, trajectories: Trajectories, node: int, clock_offset_s: float, error_m: tuple[float, float]
    ) -> None:
        super().__init__(trajectories, node, clock_offset_s)
        self._error_m = error_m

    def position(self, time: float) -> Position:
        return super().position(time).moved(*self._error_m)


class Coupled(Protocol):
    """A world that reacts to what is delivered: see `coupling.py`."""

    def attach(self, engine: Any) -> None: ...

    def delivered(self, node: int, event: Event) -> None: ...


class RunningTimer(msgspec.Struct, eq=False, gc=False):
    """A machine's timer. A postponed timer keeps its queue entry and is queued again when that entry comes
    up: most timers are postponed several times."""

    node: int
    name: Timer
    at: float
    place: int
    queued_at: float
    queued_place: int


class Engine:
    """One run. Build it, `run()` it once, read its counts. It is the media's `MediumHost`."""

    # Slots, because Python shares the keys of at most 30 attributes between instances.
    __slots__ = (
        "_airtime",
        "_carry",
        "_channels",
        "_coupling",
        "_event_numbers",
        "_hear",
        "_kinds",
        "_locations",
        "_make",
        "_medium",
        "_members",
        "_nobody_away",
        "_number_of",
        "_outside",
        "_seed",
        "_services",
        "_sessions",
        "_silent",
        "_sized_event",
        "_sized_kind",
        "_sizes",
        "_timers",
        "_to_all",
        "_to_one",
        "_transmission_log",
        "_transmissions",
        "_woken",
        "_woken_at",
        "clock_offsets_s",
        "counts",
        "deliveries",
        "duration_s",
        "log",
        "machines",
        "names",
        "on_channel",
        "presence",
        "published",
        "queue",
        "schedule",
        "trajectories",
        "up",
        "warm_up",
    )

    def __init__(
        self,
        make: MakeMachine,
        trajectories: Trajectories,
        network: MediumSettings | Network,
        workload: Workload,
        *,
        duration_s: float,
        warm_up_s: float = 0.0,
        faults: FaultSettings = NO_FAULTS,
        seed: int = 0,
        log: Log | None = None,
        progress: Callable[[float], None] | None = None,
        coupling: Coupled | None = None,
    ) -> None:
        if not (math.isfinite(duration_s) and duration_s > 0):
            raise SettingsError(f"duration_s must be a positive number of seconds, got {duration_s}")
        n = len(trajectories)
        self.queue = Queue()
        self.trajectories = trajectories
        self.names = trajectories.names
        self.duration_s = duration_s
        self.log = log
        self._transmission_log = log if log is not None and log.keeps_transmissions else None
        self.up = [False] * n
        self.presence = 0
        self.machines: list[Machine | None] = [None] * n
        self.counts = Counts()
        self.warm_up = Counts()
        self.published: list[Event] = []
        self.deliveries = Deliveries()
        fault_plan = plan(faults, self.names, duration_s, seed)
        self.clock_offsets_s = fault_plan.clock_offsets_s
        self._silent = fault_plan.silent
        self._make = make
        self._seed = seed
        self._number_of = {name: i for i, name in enumerate(self.names)}
        if len(self._number_of) != n:
            raise SettingsError("two nodes have the same name; give each its own")
        self._locations = [NodeLocation(trajectories, i, self.clock_offsets_s[i]) for i in range(n)]
        for i, error_m in enumerate(fault_plan.position_errors_m):
            self._locations[i] = WrongLocation(trajectories, i, self.clock_offsets_s[i], error_m)
        self._nobody_away = False
        self._sessions = [0] * n
        self._hear: list[Callable[[Packet, str, float], Effects]] = [_deaf] * n
        self._timers: list[dict[Timer, RunningTimer]] = [{} for _ in range(n)]
        self._members: dict[int, set[int]] = {}
        self._kinds: dict[type[Packet], PacketCount] = {}
        self._event_numbers: dict[str, int] = {}
        self._transmissions = 0
        self._outside: dict[int, set[str]] = {}
        "Nodes whose machine is not part of this package, and what was subscribed to there: their effects are checked."
        self._woken_at = math.nan
        self._woken: dict[int, int] = {}
        "How often each node's timers have fired at that time."
        self._sized_event: Any = self  # no event yet
        self._sized_kind: PacketCount | None = None
        self._sizes: dict[int, int] = {}
        self._carry: dict[type[Any], Callable[[int, Any], None]] = {
            Broadcast: self._transmit,
            Send: self._transmit,
            StartTimer: self._start_timer,
            CancelTimer: self._cancel_timer,
            Deliver: self._deliver,
            Drop: self._drop,
            JoinGroup: self._join_group,
            LeaveGroup: self._leave_group,
            Note: self._note,
            DeliverPast: self._deliver_past,
            Late: self._late,
            Crossed: self._crossed,
            Warn: self._warn,
        }
        self._services = Services.wanted_by(workload)
        recent_use = RecentUse(n)
        self._airtime = BusyTime(n, recent_use.add) if self._transmission_log is not None else None
        self.on_channel: Callable[[Frame], None] = recent_use.add if self._airtime is None else self._airtime.add
        if not isinstance(network, Network):
            network = Network(network)
        self._medium = open_network(network, trajectories, faults.partitions, self, seed)
        # The ideal radio and the overlay have no channel that could be busy.
        if self._medium.airtime_s(1) == 0:
            self._airtime = None
        self._channels = [NodeChannel(recent_use, i, self.clock_offsets_s[i], self._medium.airtime_s) for i in range(n)]
        self._to_all, self._to_one = self._medium.broadcast, self._medium.unicast
        self._coupling = coupling
        if coupling is not None:
            coupling.attach(self)
        self.schedule = Schedule(self, workload, fault_plan.outages, warm_up_s, progress)

    def run(self) -> None:
        """Simulate from 0 to the end."""
        if self.log is not None:
            self.log.begin(self.names)
        with rare_collections():
            self.queue.run(self.duration_s)
        self.record_airtime()

    # Called by the schedule.

    def come(self, i: int, why: str) -> None:
        """Node i joins, with a new machine."""
        session, name, now = self._sessions[i], self.names[i], self.queue.now
        self._sessions[i] = session + 1
        random = Random(f"{self._seed}:{name}" if session == 0 else f"{self._seed}:{name}:{session}")
        try:
            machine = self._make(name, self._locations[i], random, self._channels[i])
        except Exception as error:
            raise self._failure(i, "construction", error) from error
        if self.log is not None:
            detail = JoinDetail(_name(machine), machine.settings, life=session, reason=why)
            self.log.row(Kind.JOIN, now, i, detail=write_detail(detail), at=self.trajectories.position(i, now))
        if self._airtime is not None:
            self._airtime.take(i, now)
        self.up[i], self.machines[i] = True, machine
        self._nobody_away = all(self.up)
        self.presence += 1
        if self._services.wanted:
            services = Random(f"{self._seed}:{name}:{session}:services")
            machine = self.machines[i] = Served(machine, _name(machine), services)
        self._hear[i] = _ear(machine, self.clock_offsets_s[i])
        if not is_ours(type(machine)):
            self._outside.setdefault(i, set())
            self._hear[i] = self._checked_ear(i, self._hear[i])
        self.call(i, "start")
        if self._services.near:
            self.call(i, "state_position")

    def go(self, i: int, why: str, graceful: bool) -> None:
        """Node i leaves; if `graceful`, its machine is stopped first."""
        if graceful:
            self.call(i, "stop")
        self._record_airtime_of(i)
        if self.log is not None:
            now = self.queue.now
            self.log.row(Kind.LEAVE, now, i, detail=why, at=self.trajectories.position(i, now))
        self.up[i], self.machines[i], self._hear[i] = False, None, _deaf
        self._nobody_away = False
        self.presence += 1
        self._timers[i] = {}
        for members in self._members.values():
            members.discard(i)
        self._medium.node_down(i, graceful)

    def publish(self, i: int, event: Event) -> None:
        """Node i's application publishes this stamped event."""
        self._event_numbers[event.id] = len(self.published)
        self.published.append(event)
        if self.log is not None:
            now = self.queue.now
            at = self.trajectories.position(i, now)
            self.log.row(Kind.PUBLISH, now, i, event=event.id, detail=event.to_json().decode(), at=at)
        self.call(i, "publish", event)

    def call(self, i: int, entry_point: str, *arguments: Any) -> None:
        """Call an entry point of node i's machine, if it has one, and carry out the effects."""
        machine = self.machines[i]
        if machine is None:
            return
        try:
            effects: Effects = getattr(machine, entry_point)(*arguments, self.queue.now + self.clock_offsets_s[i])
        except QualityError:
            raise
        except Exception as error:
            raise self._failure(i, entry_point, error, *arguments) from error
        if i in self._outside:
            if entry_point == "subscribe":
                self._outside[i].add(arguments[0].id)
            self._check(i, entry_point, effects)
        if effects is not NOTHING:
            self._carry_out(i, effects)

    def drop(self, i: int, reason: DropReason, event: str = "") -> None:
        """Node i dropped something."""
        self.counts.drops[reason] += 1
        if self.log is not None:
            self.log.row(Kind.DROP, self.queue.now, i, event=event, detail=reason)

    def record_airtime(self) -> None:
        """Write how busy each present node has found the channel since the last time."""
        if self._airtime is not None:
            for i, present in enumerate(self.up):
                if present:
                    self._record_airtime_of(i)

    def _record_airtime_of(self, i: int) -> None:
        if self._airtime is None or self.log is None:
            return
        span_s, busy_s, sent_s = self._airtime.take(i, self.queue.now)
        if span_s > 0:
            detail = write_detail(AirtimeDetail(round(span_s, 6), round(busy_s, 6), round(sent_s, 6)))
            self.log.row(Kind.AIRTIME, self.queue.now, i, detail=detail)

    # Carrying out effects.

    def _carry_out(self, i: int, effects: Effects) -> None:
        carry = self._carry
        try:
            for effect in effects:
                carry[type(effect)](i, effect)
        except (TypeError, KeyError) as error:
            for effect in effects if isinstance(effects, list | tuple) else (effects,):
                if type(effect) not in carry:
                    wrong = TypeError(f"returned {effect!r} among its effects; entry points end with self.effects()")
                    raise self._failure(i, "its effects", wrong) from error
            raise

    def _checked_ear(self, i: int, hear: Callable[[Packet, str, float], Effects]) -> Callable[..., Effects]:
        def checked(packet: Packet, sender: str, now: float) -> Effects:
            effects = hear(packet, sender, now)
            self._check(i, "hear", effects)
            return effects

        return checked

    def _failure(self, i: int, entry_point: str, error: Exception, *arguments: Any) -> MachineFailure:
        shown = ", ".join(short(argument) for argument in arguments)
        return failure(self.machines[i], self.names[i], error, self.queue.now, entry_point, shown, self._repeat())

    def _repeat(self) -> str:
        return f"the same scenario and settings with seed {self._seed}"

    def _check(self, i: int, entry_point: str, effects: Effects) -> None:
        """Refuse what a machine of other people's must not return."""
        machine = self.machines[i]
        assert machine is not None
        checked_effects(machine, entry_point, effects, self._outside[i], self.queue.now, self._repeat())

    def _transmit(self, i: int, effect: Broadcast | Send) -> None:
        packet = effect.packet
        kind = self._kinds.get(type(packet)) or self._new_kind(i, packet)
        event: Any = packet.event if kind.carries_event else None  # type: ignore[attr-defined]
        event_id, priority = (event.id, event.priority) if type(event) is Event else ("", 0)
        if self._silent and i in self._silent and event_id and event.source != self.names[i]:
            self.drop(i, DropReason.SILENT_NODE, event_id)
            return
        hops = packet.hops if kind.counts_hops else -1  # type: ignore[attr-defined]
        known = self._sizes.get(hops) if event is self._sized_event and kind is self._sized_kind else None
        bytes_ = self._measure(i, packet, kind, event, hops) if known is None else known
        if bytes_ > MAX_PACKET_BYTES:
            self.drop(i, DropReason.PACKET_TOO_LARGE, event_id)
        elif type(effect) is Broadcast:
            self._to_all(Transmission(i, packet, kind, bytes_, event_id, hops, effect.group, priority=priority))
        elif peer := effect.peer:  # type: ignore[union-attr]
            number, session = self._number_of.get(peer, -1), self._sessions[i]
            self._to_one(Transmission(i, packet, kind, bytes_, event_id, hops, None, number, peer, session, priority))
        else:
            raise self._failure(i, "its effects", ValueError("sent to a peer without a name"), effect)

    def _measure(self, i: int, packet: Packet, kind: PacketCount, event: Any, hops: int) -> int:
        """The packet's size. In a flood many nodes forward the same event after the same number of hops: if a
        packet holds nothing else, the sizes of the last event are reused, by hops."""
        try:
            bytes_ = size(packet)
        except Exception as error:
            raise self._failure(i, "its effects", error, packet) from error
        if event is not None and len(packet.__struct_fields__) == 2 and kind.counts_hops:
            if event is not self._sized_event or kind is not self._sized_kind:
                self._sized_event, self._sized_kind, self._sizes = event, kind, {}
            self._sizes[hops] = bytes_
        return bytes_

    def _new_kind(self, i: int, packet: Packet) -> PacketCount:
        if not isinstance(packet, Packet):
            raise self._failure(i, "its effects", TypeError(f"sent {short(packet)}, which is not a packet"))
        fields = type(packet).__struct_fields__
        kind = PacketCount(tag_of(packet), carries_event="event" in fields, counts_hops="hops" in fields)
        self._kinds[type(packet)] = self.counts.packets[kind.tag] = kind
        return kind

    def _start_timer(self, i: int, effect: StartTimer) -> None:
        queue, timers, name = self.queue, self._timers[i], effect.name
        at = effect.at - self.clock_offsets_s[i]
        if not at > queue.now:
            at = queue.now
        timer = timers.get(name)
        if timer is not None and timer.queued_at <= at:
            timer.at, timer.place = at, queue.place()
        else:
            place = queue.scheduled + 1
            timers[name] = timer = RunningTimer(i, name, at, place, at, place)
            queue.at(at, Priority.TIMER, self._fire, timer)

    def _fire(self, timer: RunningTimer) -> None:
        i, name = timer.node, timer.name
        if self._timers[i].get(name) is not timer:
            return  # cancelled, or replaced by an earlier one
        if timer.place != timer.queued_place:
            timer.queued_at, timer.queued_place = timer.at, timer.place
            self.queue.at_place(timer.at, Priority.TIMER, timer.place, self._fire, timer)
            return
        del self._timers[i][name]
        if self.queue.now is not self._woken_at:
            self._woken_at, self._woken = self.queue.now, {}
        self._woken[i] = woken = self._woken.get(i, 0) + 1
        machine = self.machines[i]
        if woken > MOST_AT_ONE_TIME:
            raise livelock(machine, self.names[i], name, self.queue.now, self._repeat())
        if machine is None:
            return
        try:
            effects = machine.wake(name, self.queue.now + self.clock_offsets_s[i])
        except Exception as error:
            raise self._failure(i, "wake", error, name) from error
        if i in self._outside:
            self._check(i, "wake", effects)
        if effects is not NOTHING:
            self._carry_out(i, effects)

    def _cancel_timer(self, i: int, effect: CancelTimer) -> None:
        self._timers[i].pop(effect.name, None)

    def _deliver(self, i: int, effect: Deliver) -> None:
        now, event, subscription, hops = self.queue.now, effect.event.id, effect.subscription, effect.hops
        lifespan_s = effect.event.lifespan_s
        if lifespan_s is not None and now + self.clock_offsets_s[i] - effect.event.time > lifespan_s:
            self.drop(i, DropReason.EXPIRED, event)
            return
        self.deliveries.add(now, i, self._event_numbers.get(event, -1), subscription, hops)
        if self._coupling is not None:
            self._coupling.delivered(i, effect.event)
        if self.log is not None:
            at = self.trajectories.position(i, now)
            self.log.row(Kind.DELIVER, now, i, event=event, subscription=subscription, hops=hops, at=at)

    def _deliver_past(self, i: int, effect: DeliverPast) -> None:
        self._record(Kind.HISTORY, i, event=effect.event.id, subscription=effect.subscription)

    def _late(self, i: int, effect: Late) -> None:
        detail = f"{effect.late_s:.6f}"
        self._record(Kind.LATE, i, event=effect.event.id, subscription=effect.subscription, detail=detail)

    def _crossed(self, i: int, effect: Crossed) -> None:
        detail, peer = f"{effect.crossing} {effect.subject}".rstrip(), self._number_of.get(effect.peer, -1)
        self._record(Kind.FENCE, i, subscription=effect.fence, peer=peer, detail=detail)

    def _warn(self, i: int, effect: Warn) -> None:
        self._record(Kind.NOTE, i, detail=effect.message)

    def _record(self, kind: Kind, i: int, **columns: Any) -> None:
        if self.log is not None:
            now = self.queue.now
            self.log.row(kind, now, i, at=self.trajectories.position(i, now), **columns)

    def _drop(self, i: int, effect: Drop) -> None:
        self.drop(i, effect.reason, effect.event)

    def _join_group(self, i: int, effect: JoinGroup) -> None:
        self._members.setdefault(effect.group, set()).add(i)

    def _leave_group(self, i: int, effect: LeaveGroup) -> None:
        self._members.get(effect.group, set()).discard(i)

    def _note(self, i: int, effect: Note) -> None:
        if self.log is not None:
            self.log.row(Kind.NOTE, self.queue.now, i, detail=f"{effect.topic}: {effect.detail}")

    # Called by the medium: see `MediumHost`.

    def orphaned(self, transmission: Transmission) -> bool:
        sender = transmission.sender
        return not self.up[sender] or transmission.session != self._sessions[sender]

    def sent(self, transmission: Transmission) -> None:
        self._transmissions = number = self._transmissions + 1
        transmission.number = number
        kind = transmission.kind
        kind.sends += 1
        kind.bytes_sent += transmission.bytes
        if self._transmission_log is not None:
            self._transmission_log.send(self.queue.now, transmission)

    def received(self, transmission: Transmission) -> None:
        receivers, kind, now = transmission.receivers, transmission.kind, self.queue.now
        if not self._nobody_away or transmission.group is not None:
            receivers = self._there(receivers, transmission.group)
        kind.receives += len(receivers)
        if self._transmission_log is not None:
            self._transmission_log.receive(now, transmission, receivers)
        packet, sender, hear = transmission.packet, self.names[transmission.sender], self._hear
        for i in receivers:
            try:
                effects = hear[i](packet, sender, now)
            except MachineFailure:
                raise
            except Exception as error:
                raise self._failure(i, "hear", error, packet, sender) from error
            if effects is not NOTHING:
                self._carry_out(i, effects)

    def relayed(self, transmission: Transmission, detail: str = "relayed") -> list[int]:
        present = self._there(transmission.receivers, transmission.group)
        transmission.kind.receives += len(present)
        if self._transmission_log is not None:
            self._transmission_log.receive(self.queue.now, transmission, present, detail=detail)
        return present

    def arrived(self, transmission: Transmission, origin: int) -> None:
        for i in self.relayed(transmission, detail=""):
            self.call(i, "hear", transmission.packet, self.names[origin])

    def withholds(self, node: int, transmission: Transmission) -> bool:
        if node not in self._silent or not transmission.event:
            return False
        event: Event = transmission.packet.event  # type: ignore[attr-defined]
        if event.source == self.names[node]:
            return False
        self.drop(node, DropReason.SILENT_NODE, transmission.event)
        return True

    def control_kind(self, tag: str) -> PacketCount:
        return self.counts.packets.setdefault(tag, PacketCount(tag, carries_event=False, counts_hops=False))

    def _there(self, nodes: list[int], group: int | None) -> list[int]:
        """The nodes that are up and, for a group, members of it: other radios ignore the frame."""
        up = self.up
        if group is None:
            return [i for i in nodes if up[i]]
        members = self._members.get(group, ())
        return [i for i in nodes if up[i] and i in members]

    def lost(self, transmission: Transmission, nodes: list[int], reason: DropReason) -> None:
        if not self._nobody_away or transmission.group is not None:
            nodes = self._there(nodes, transmission.group)
        self.counts.drops[reason] += len(nodes)
        if self._transmission_log is not None:
            self._transmission_log.receive(self.queue.now, transmission, nodes, lost=reason)

    def refuse(self, transmission: Transmission, why: str) -> None:
        raise self._failure(transmission.sender, "its effects", ValueError(why), transmission.packet)

    def dropped(self, transmission: Transmission, reason: DropReason) -> None:
        self.counts.drops[reason] += 1
        if self.log is not None:
            self.log.row(
                Kind.DROP,
                self.queue.now,
                transmission.sender,
                number=transmission.number,
                packet=transmission.kind.tag,
                size=transmission.bytes,
                peer=transmission.peer_name if transmission.peer < 0 else transmission.peer,
                event=transmission.event,
                hops=transmission.hops,
                detail=reason,
            )

    def unreachable(self, transmission: Transmission, reason: DropReason = DropReason.UNREACHABLE) -> None:
        self.dropped(transmission, reason)
        self.failed(transmission)

    def failed(self, transmission: Transmission) -> None:
        if not self.orphaned(transmission):
            self.call(transmission.sender, "unreachable", transmission.packet, transmission.peer_name)


def _name(machine: Machine) -> str:
    """The name that the protocol was loaded by."""
    return name_of("protocols", type(machine)) or str(getattr(machine, "name", ""))


def _deaf(packet: Packet, sender: str, now: float) -> Effects:  # noqa: ARG001
    """`hear` of a node that is away."""
    return NOTHING


def _ear(machine: Machine, clock_offset_s: float) -> Callable[[Packet, str, float], Effects]:
    """The machine's `hear`, called with the node's clock."""
    hear = machine.hear
    if clock_offset_s == 0.0:
        return hear
    return lambda packet, sender, now: hear(packet, sender, now + clock_offset_s)


# Garbage collection during a run.


ALLOCATED = 50_000
"Packets and effects have no cycles; looking for them after every few hundred objects costs a tenth of a run."


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cycles at most once per `ALLOCATED` objects, until the end of the block."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], ALLOCATED), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
