"""What a machine did wrong, and where: the words of a `MachineFailure`.

Hosts check the effects of machines that are not part of this package before they carry them out; a Tabletop
checks those of all.
"""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Container
from pathlib import Path
from typing import Any

from earshot.errors import MachineFailure
from earshot.events import Event
from earshot.protocols.machine import (
    NOTHING,
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    Effects,
    JoinGroup,
    LeaveGroup,
    Machine,
    Note,
    Send,
    StartTimer,
)
from earshot.records import DropReason
from earshot.wire import Packet

END = "an entry point ends with `return self.effects()`, or with `return NOTHING` where it did nothing"
OURS = Path(__file__).parents[1]
MOST_AT_ONE_TIME = 10_000
"A host that has called this many timers of one node without time passing has found a livelock."


def is_ours(machine: type[Machine]) -> bool:
    """Whether the machine's class is part of this package: our tests hold its effects."""
    return machine.__module__.startswith("earshot.")


def wrong_effects(machine: Machine, effects: Any, subscriptions: Container[str] | None) -> str | None:
    """What is wrong with what an entry point returned; None where a host can carry it out. `subscriptions` are the
    ids that the application has subscribed with; None where nobody knows."""
    waiting = getattr(machine, "_effects", ())
    if effects is NOTHING:
        if waiting:
            shown = short(waiting[0])
            waiting.clear()
            return f"it asked for {shown} and then returned NOTHING, which loses it; {END}"
        return None
    if not isinstance(effects, list | tuple):
        return f"it returned {short(effects)} instead of a list of effects; {END}"
    if waiting:
        return f"it returned {short(effects)} while {short(waiting[0])} still waits to be returned; {END}"
    for effect in effects:
        if (problem := _wrong_effect(effect, subscriptions)) is not None:
            return problem
    return None


def _wrong_effect(effect: Any, subscriptions: Container[str] | None) -> str | None:
    match effect:
        case Broadcast(packet) | Send(_, packet) if not isinstance(packet, Packet):
            return f"it sent {short(packet)}, which is not a packet; declare class Hello(Packet, tag='hello')"
        case Broadcast(packet) | Send(_, packet) if not isinstance(type(packet).__struct_config__.tag, str):
            return f"its packet {type(packet).__name__} has no tag; declare it with tag='...'"
        case Send(peer) if not isinstance(peer, str) or not peer:
            return f"it sent to the peer {short(peer)}; a peer is a node's name"
        case Broadcast(_, group) | JoinGroup(group) | LeaveGroup(group) if not isinstance(group, int | None):
            return f"it used the group {short(group)}; a group is a whole number"
        case StartTimer(name, at):
            if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at):
                return f"it started the timer {short(name)} at {short(at)}; a time is a finite number of seconds"
            return _unhashable(name)
        case CancelTimer(name):
            return _unhashable(name)
        case Deliver(event, subscription):
            if not isinstance(event, Event):
                return f"it delivered {short(event)}, which is not an Event"
            if subscriptions is not None and subscription not in subscriptions:
                return f"it delivered {event.id!r} to the subscription {short(subscription)}, which nobody made here"
        case Drop(reason) if not isinstance(reason, DropReason):
            return f"it dropped something for {short(reason)}; a reason is a member of DropReason"
        case Broadcast() | Send() | JoinGroup() | LeaveGroup() | Drop() | Note():
            pass
        case _:
            return f"it returned {short(effect)} among its effects; {END}"
    return None


def _unhashable(name: Any) -> str | None:
    try:
        hash(name)
    except TypeError as error:
        return f"its timer is named {short(name)}, which cannot be a name: {error}; use a word or a tuple of words"
    return None


def checked_effects(
    machine: Machine,
    entry_point: str,
    effects: Effects,
    subscriptions: Container[str] | None,
    now: float,
    repeat: str = "",
) -> Effects:
    """The effects; `MachineFailure` where a host cannot carry them out."""
    problem = wrong_effects(machine, effects, subscriptions)
    if problem is None:
        return effects
    where = place_of_method(getattr(type(machine), entry_point, None))
    raise MachineFailure(_as_sentence(machine, f"did wrong: {problem}", now, entry_point, "", where, repeat))


def failure(
    machine: Any, node: str, error: Exception, now: float, call: str, arguments: str, repeat: str
) -> MachineFailure:
    """The failure of a machine that raised, with the line of its author's file."""
    what = f"raised {type(error).__name__}: {error}"
    return MachineFailure(_as_sentence(machine, what, now, call, arguments, place_of_error(error), repeat, node))


def livelock(machine: Any, node: str, timer: Any, now: float, repeat: str) -> MachineFailure:
    """A machine that starts a timer for the present time again and again."""
    what = (
        f"did wrong: it has woken {MOST_AT_ONE_TIME:,} times without time passing, last by the timer {short(timer)}; "
    )
    where = place_of_method(getattr(type(machine), "wake", None))
    return MachineFailure(
        _as_sentence(machine, f"{what}start a timer later than now", now, "wake", short(timer), where, repeat, node)
    )


def _as_sentence(
    machine: Any, what: str, now: float, call: str, arguments: str, where: str, repeat: str, node: str | None = None
) -> str:
    lines = [f"{type(machine).__name__} on node {machine.node if node is None else node!r} {what}"]
    lines.append(f"  at {now!r} s, in {call}({arguments}){f' ({where})' if where else ''}")
    return "\n".join([*lines, f"  to repeat it: {repeat}"] if repeat else lines)


def place_of_method(method: Any) -> str:
    """The file and first line of a method."""
    code = getattr(method, "__code__", None)
    return "" if code is None else f"{code.co_filename}, line {code.co_firstlineno}"


def place_of_error(error: BaseException) -> str:
    """The file and line where the author's own code failed: the last one outside this package and Python's."""
    frames = traceback.extract_tb(error.__traceback__)
    base = Path(sys.base_prefix)
    outside = [
        frame
        for frame in frames
        if not Path(frame.filename).is_relative_to(OURS)
        and not (Path(frame.filename).is_relative_to(base) and "site-packages" not in frame.filename)
    ]
    chosen = outside[-1] if outside else frames[-1] if frames else None
    return "" if chosen is None else f"{chosen.filename}, line {chosen.lineno}: {chosen.line}"


def short(value: Any) -> str:
    """A value in at most 500 characters."""
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]}..."
