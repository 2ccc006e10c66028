"""The engine: machines on one side, a medium on the other, and simulated time between them.

It calls the machines' entry points, carries out the effects they return, and tells the log what
happened. One queue entry stands for one transmission, however many hear it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from earshot.errors import MachineFailure, SettingsError
from earshot.events import Event
from earshot.geometry import Position, Velocity
from earshot.protocols.machine import (
    NOTHING,
    Announcement,
    Broadcast,
    CancelTimer,
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
    Subscription,
    Timer,
)
from earshot.records import Kind
from earshot.simulation.applications import Application
from earshot.simulation.faults import NO_FAULTS, FaultSettings, Outage, plan
from earshot.simulation.log import Log
from earshot.simulation.media import open_medium
from earshot.simulation.medium import MediumSettings
from earshot.simulation.mobility import Trajectories
from earshot.simulation.queue import Priority, Queue
from earshot.simulation.result import Counts, Deliveries, Wish
from earshot.simulation.transmission import PacketCount, Transmission
from earshot.simulation.workload import Action, Unannounce, Unsubscribe, Workload
from earshot.wire import MAX_PACKET_BYTES, Packet, size, tag_of

MakeMachine = Callable[[str, Location, Random], Machine]
"Builds the machine of a named node; called again when the node restarts."


class NodeLocation:
    """Where a node is, asked by the node's own clock."""

    __slots__ = ("_clock_offset_s", "_node", "_trajectories")

    def __init__(self, trajectories: Trajectories, node: int, clock_offset_s: float) -> None:
        self._trajectories = trajectories
        self._node = node
        self._clock_offset_s = clock_offset_s

    def position(self, now: float) -> Position:
        return Position(*self._trajectories.position(self._node, now - self._clock_offset_s))

    def velocity(self, now: float) -> Velocity:
        return Velocity(*self._trajectories.velocity(self._node, now - self._clock_offset_s))


class Engine:
    """One run. Build it, `run()` it once, read its counts."""

    def __init__(
        self,
        make: MakeMachine,
        trajectories: Trajectories,
        medium: MediumSettings,
        workload: Workload,
        *,
        duration_s: float,
        warm_up_s: float = 0.0,
        faults: FaultSettings = NO_FAULTS,
        seed: int = 0,
        log: Log | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        if not (math.isfinite(duration_s) and duration_s > 0):
            raise SettingsError(f"duration_s must be a positive number of seconds, got {duration_s}")
        n = len(trajectories)
        self.queue = Queue()
        self.names = trajectories.names
        self.up = [False] * n
        self.machines: list[Machine | None] = [None] * n
        self.applications = [Application() for _ in range(n)]
        self.counts, self.warm_up = Counts(), Counts()
        self.published: list[Event] = []
        self.wishes: list[Wish] = []
        self.deliveries = Deliveries()
        self.duration_s = duration_s
        self._make = make
        self._trajectories = trajectories
        self._seed = seed
        self._log = log
        self._progress = progress
        self._number_of = {name: i for i, name in enumerate(self.names)}
        if len(self._number_of) != n:
            raise SettingsError("two nodes have the same name; give each its own")
        faults_planned = plan(faults, self.names, duration_s, seed)
        self._silent = faults_planned.silent
        self._clock_offset_s = faults_planned.clock_offsets_s
        self._locations = [NodeLocation(trajectories, i, self._clock_offset_s[i]) for i in range(n)]
        self._away: list[set[str]] = [{"not yet there"} for _ in range(n)]
        "Why each node is not there; empty where it is."
        self._nobody_away = False
        self._lives = [0] * n
        self._hear: list[Callable[[Packet, str, float], Effects]] = [_deaf] * n
        self._timers: list[dict[Timer, int]] = [{} for _ in range(n)]
        self._members: dict[int, set[int]] = {}
        self._kinds: dict[type[Packet], PacketCount] = {}
        self._event_numbers: dict[str, int] = {}
        self._transmissions = 0
        self._carry: dict[type[Any], Callable[[int, Any], None]] = {
            Broadcast: self._broadcast,
            Send: self._send,
            StartTimer: self._start_timer,
            CancelTimer: self._cancel_timer,
            Deliver: self._deliver,
            Drop: self._drop,
            JoinGroup: self._join_group,
            LeaveGroup: self._leave_group,
            Note: self._note,
        }
        self._medium = open_medium(medium, trajectories, faults.partitions, self, seed)
        self._schedule(workload, faults_planned.outages, warm_up_s)

    def run(self) -> None:
        """Simulate from 0 to the end."""
        if self._log is not None:
            self._log.begin(self.names)
        self.queue.run(self.duration_s)
        if self._progress is not None:
            self._progress(self.duration_s)

    # What is known beforehand.

    def _schedule(self, workload: Workload, outages: Sequence[Outage], warm_up_s: float) -> None:
        queue = self.queue
        for i, presence in enumerate(self._trajectories.presence):
            for start_s, end_s in presence:
                if end_s > 0 and start_s <= self.duration_s:
                    queue.at(max(start_s, 0.0), Priority.WORLD, self._appear, i)
                if 0 < end_s <= self.duration_s:
                    queue.at(end_s, Priority.WORLD, self._vanish, i)
        for outage in outages:
            queue.at(outage.time_s, Priority.WORLD, self._outage, outage)
        self._actions = iter(workload)
        self._next_action()
        if warm_up_s > 0:
            queue.at(warm_up_s, Priority.WORLD, self._end_warm_up)
        if self._log is not None and self._log.positions_every_s is not None:
            queue.at(0.0, Priority.OBSERVER, self._sample_positions, 0)
        if self._progress is not None:
            queue.at(0.0, Priority.OBSERVER, self._tell_progress)

    def _end_warm_up(self, _: None) -> None:
        self.warm_up = self.counts.snapshot()

    def _sample_positions(self, k: int) -> None:
        log, now = self._log, self.queue.now
        assert log is not None and log.positions_every_s is not None
        places = self._trajectories.positions(now).tolist()
        for i, (x, y) in enumerate(places):
            if self.up[i]:
                log.row(Kind.POSITION, now, i, at=(x, y))
        self.queue.at((k + 1) * log.positions_every_s, Priority.OBSERVER, self._sample_positions, k + 1)

    def _tell_progress(self, _: None) -> None:
        assert self._progress is not None
        self._progress(self.queue.now)
        self.queue.at(self.queue.now + self.duration_s / 200, Priority.OBSERVER, self._tell_progress)

    # Nodes come and go.

    def _appear(self, i: int) -> None:
        self._away[i].discard("not yet there")
        self._come(i, "start" if self._lives[i] == 0 else "back")

    def _vanish(self, i: int) -> None:
        self._go(i, "not yet there", "left the scene", graceful=True)

    def _outage(self, outage: Outage) -> None:
        if outage.back:
            self._away[outage.node].discard(outage.cause)
            self._come(outage.node, "restart" if outage.cause == "crash" else "back")
        else:
            self._go(outage.node, outage.cause, outage.cause, outage.graceful)

    def _come(self, i: int, why: str) -> None:
        if self._away[i] or self.up[i]:
            return
        life, name, now = self._lives[i], self.names[i], self.queue.now
        random = Random(f"{self._seed}:{name}" if life == 0 else f"{self._seed}:{name}:{life}")
        self._lives[i] = life + 1
        if self._log is not None:
            self._log.row(Kind.JOIN, now, i, detail=why, at=self._trajectories.position(i, now))
        try:
            machine = self._make(name, self._locations[i], random)
        except Exception as error:
            raise self._failure(i, "construction", error) from error
        self.up[i], self.machines[i] = True, machine
        self._nobody_away = all(self.up)
        self._hear[i] = self._ear(machine, self._clock_offset_s[i])
        self._call(i, "start")
        application = self.applications[i]
        for announcement in list(application.announcements.values()):
            self._call(i, "announce", announcement)
        for subscription in list(application.subscriptions.values()):
            self._call(i, "subscribe", subscription)

    def _go(self, i: int, cause: str, why: str, graceful: bool) -> None:
        self._away[i].add(cause)
        if not self.up[i]:
            return
        if graceful:
            self._call(i, "stop")
        if self._log is not None:
            now = self.queue.now
            self._log.row(Kind.LEAVE, now, i, detail=why, at=self._trajectories.position(i, now))
        self.up[i], self.machines[i], self._hear[i] = False, None, _deaf
        self._nobody_away = False
        self._timers[i] = {}
        for members in self._members.values():
            members.discard(i)
        self._medium.node_down(i, graceful)

    @staticmethod
    def _ear(machine: Machine, offset_s: float) -> Callable[[Packet, str, float], Effects]:
        if offset_s == 0.0:
            return machine.hear
        hear = machine.hear
        return lambda packet, sender, now: hear(packet, sender, now + offset_s)

    # What applications do.

    def _next_action(self) -> None:
        action = next(self._actions, None)
        if action is not None:
            self.queue.at(max(action.time, 0.0), Priority.APPLICATION, self._act, action)

    def _act(self, action: Action) -> None:
        self._next_action()
        i, what, now, log = action.node, action.what, self.queue.now, self._log
        application = self.applications[i]
        match what:
            case Event():
                self._publish(i, what)
            case Subscription():
                self._end_wish(i, what.id)
                application.subscriptions[what.id] = what
                application.wishes[what.id] = wish = Wish(i, what, now)
                self.wishes.append(wish)
                if log is not None:
                    log.row(Kind.SUBSCRIBE, now, i, subscription=what.id, detail=str(what.filter))
                self._call(i, "subscribe", what)
            case Unsubscribe(id):
                if application.subscriptions.pop(id, None) is None:
                    return
                self._end_wish(i, id)
                if log is not None:
                    log.row(Kind.UNSUBSCRIBE, now, i, subscription=id)
                self._call(i, "unsubscribe", id)
            case Announcement(event_type, proximity):
                application.announcements[event_type.subject] = what
                if log is not None:
                    area = "" if proximity is None else f" within {proximity.shape} at {proximity.naval}"
                    log.row(Kind.ANNOUNCE, now, i, detail=f"{event_type.subject}{area}")
                self._call(i, "announce", what)
            case Unannounce(subject):
                if application.announcements.pop(subject, None) is None:
                    return
                if log is not None:
                    log.row(Kind.UNANNOUNCE, now, i, detail=subject)
                self._call(i, "unannounce", subject)

    def _end_wish(self, i: int, subscription: str) -> None:
        wish = self.applications[i].wishes.pop(subscription, None)
        if wish is not None:
            wish.until_s = self.queue.now

    def _publish(self, i: int, event: Event) -> None:
        """Stamp the event as node i's own and hand it to the machine."""
        now = self.queue.now
        if not self.up[i]:
            self.counts.drops["publisher-away"] += 1
            if self._log is not None:
                self._log.row(Kind.DROP, now, i, detail="publisher-away")
            return
        x, y = self._trajectories.position(i, now)
        stamped = self.applications[i].stamp(
            event,
            source=self.names[i],
            time=now + self._clock_offset_s[i],
            position=Position(x, y),
            velocity=Velocity(*self._trajectories.velocity(i, now)),
        )
        self._event_numbers[stamped.id] = len(self.published)
        self.published.append(stamped)
        if self._log is not None:
            text = stamped.to_json().decode()
            self._log.row(Kind.PUBLISH, now, i, event=stamped.id, detail=text, at=(x, y))
        self._call(i, "publish", stamped)

    # Calling machines and carrying out what they ask.

    def _call(self, i: int, entry_point: str, *arguments: Any) -> None:
        machine = self.machines[i]
        if machine is None:
            return
        try:
            effects: Effects = getattr(machine, entry_point)(*arguments, self.queue.now + self._clock_offset_s[i])
        except Exception as error:
            raise self._failure(i, entry_point, error, *arguments) from error
        self._carry_out(i, effects)

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

    def _failure(self, i: int, entry_point: str, error: Exception, *arguments: Any) -> MachineFailure:
        told = ", ".join(_short(argument) for argument in arguments)
        return MachineFailure(
            f"{type(self.machines[i]).__name__} on node {self.names[i]!r} raised {type(error).__name__}: {error}\n"
            f"  at {self.queue.now!r} s, in {entry_point}({told})\n"
            f"  to repeat it: the same scenario and settings with seed {self._seed}"
        )

    def _broadcast(self, i: int, effect: Broadcast) -> None:
        transmission = self._transmission(i, effect.packet)
        if transmission is not None:
            transmission.group = effect.group
            self._medium.broadcast(transmission)

    def _send(self, i: int, effect: Send) -> None:
        transmission = self._transmission(i, effect.packet)
        if transmission is not None:
            transmission.peer = self._number_of.get(effect.peer, -1)
            transmission.peer_name = effect.peer
            transmission.life = self._lives[i]
            self._medium.unicast(transmission)

    def _transmission(self, i: int, packet: Packet) -> Transmission | None:
        """What is to be sent; None where it will not be."""
        kind = self._kinds.get(type(packet))
        if kind is None:
            kind = self._new_kind(packet)
        bytes_ = size(packet)
        event = ""
        if kind.carries_event:
            carried = packet.event  # type: ignore[attr-defined]
            if type(carried) is Event:
                event = carried.id
                if self._silent and i in self._silent and carried.source != self.names[i]:
                    self._drop(i, Drop("silent-node", event))
                    return None
        if bytes_ > MAX_PACKET_BYTES:
            self._drop(i, Drop("packet-too-large", event))
            return None
        return Transmission(i, packet, kind, bytes_, event, packet.hops if kind.counts_hops else -1)  # type: ignore[attr-defined]

    def _new_kind(self, packet: Packet) -> PacketCount:
        fields = type(packet).__struct_fields__
        kind = PacketCount(tag_of(packet), carries_event="event" in fields, counts_hops="hops" in fields)
        self._kinds[type(packet)] = self.counts.packets[kind.tag] = kind
        return kind

    def _start_timer(self, i: int, effect: StartTimer) -> None:
        queue = self.queue
        at = max(effect.at - self._clock_offset_s[i], queue.now)
        queue.at(at, Priority.TIMER, self._fire, (i, effect.name, queue.scheduled + 1))
        self._timers[i][effect.name] = queue.scheduled

    def _fire(self, timer: tuple[int, Timer, int]) -> None:
        i, name, sequence = timer
        if self._timers[i].get(name) == sequence:
            del self._timers[i][name]
            self._call(i, "wake", name)

    def _cancel_timer(self, i: int, effect: CancelTimer) -> None:
        self._timers[i].pop(effect.name, None)

    def _deliver(self, i: int, effect: Deliver) -> None:
        deliveries, now, event = self.deliveries, self.queue.now, effect.event.id
        deliveries.time.append(now)
        deliveries.node.append(i)
        deliveries.event.append(self._event_numbers.get(event, -1))
        deliveries.subscription.append(effect.subscription)
        deliveries.hops.append(effect.hops)
        if self._log is not None:
            self._log.row(
                Kind.DELIVER,
                now,
                i,
                event=event,
                subscription=effect.subscription,
                hops=effect.hops,
                at=self._trajectories.position(i, now),
            )

    def _drop(self, i: int, effect: Drop) -> None:
        self.counts.drops[effect.reason] += 1
        if self._log is not None:
            self._log.row(Kind.DROP, self.queue.now, i, event=effect.event, detail=effect.reason)

    def _join_group(self, i: int, effect: JoinGroup) -> None:
        self._members.setdefault(effect.group, set()).add(i)

    def _leave_group(self, i: int, effect: LeaveGroup) -> None:
        self._members.get(effect.group, set()).discard(i)

    def _note(self, i: int, effect: Note) -> None:
        if self._log is not None:
            self._log.row(Kind.NOTE, self.queue.now, i, detail=f"{effect.topic}: {effect.detail}")

    # What the medium tells: see `transmission.Host`.

    def orphaned(self, transmission: Transmission) -> bool:
        sender = transmission.sender
        return not self.up[sender] or transmission.life != self._lives[sender]

    def sent(self, transmission: Transmission) -> None:
        number = self._transmissions
        self._transmissions = number + 1
        transmission.number = number
        kind = transmission.kind
        kind.sends += 1
        kind.bytes_sent += transmission.bytes
        if self._log is not None:
            peer = transmission.peer
            if peer < 0 and transmission.peer_name:
                peer = transmission.peer_name  # type: ignore[assignment]
            self._log.send(
                self.queue.now, transmission.sender, number, kind.tag, transmission.bytes, peer, transmission.event
            )

    def received(self, transmission: Transmission, receivers: list[int]) -> None:
        if not self._nobody_away:
            up = self.up
            receivers = [i for i in receivers if up[i]]
        if transmission.group is not None:
            members = self._members.get(transmission.group, ())
            receivers = [i for i in receivers if i in members]
        kind, now = transmission.kind, self.queue.now
        kind.receives += len(receivers)
        if self._log is not None:
            self._log.receive(
                now,
                receivers,
                transmission.number,
                kind.tag,
                transmission.bytes,
                transmission.sender,
                transmission.event,
                transmission.hops,
            )
        packet, sender, hear = transmission.packet, self.names[transmission.sender], self._hear
        for i in receivers:
            try:
                effects = hear[i](packet, sender, now)
            except Exception as error:
                raise self._failure(i, "hear", error, packet, sender) from error
            if effects is not NOTHING:
                self._carry_out(i, effects)

    def lost(self, transmission: Transmission, nodes: list[int], reason: str) -> None:
        up, group = self.up, transmission.group
        members = None if group is None else self._members.get(group, ())
        nodes = [i for i in nodes if up[i] and (members is None or i in members)]
        self.counts.drops[reason] += len(nodes)
        if self._log is not None and nodes:
            self._log.receive(
                self.queue.now,
                nodes,
                transmission.number,
                transmission.kind.tag,
                transmission.bytes,
                transmission.sender,
                transmission.event,
                transmission.hops,
                lost=reason,
            )

    def dropped(self, transmission: Transmission, reason: str) -> None:
        self.counts.drops[reason] += 1
        if self._log is not None:
            self._log.row(
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

    def unreachable(self, transmission: Transmission, reason: str = "unreachable") -> None:
        self.dropped(transmission, reason)
        if not self.orphaned(transmission):
            self._call(transmission.sender, "unreachable", transmission.packet, transmission.peer_name)


def _deaf(packet: Packet, sender: str, now: float) -> Effects:
    """The ear of a node that is not there."""
    return NOTHING


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]}..."
