"""What hosts refuse among a machine's effects, and the words in which they tell its author."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from earshot.errors import EventError, MachineFailure
from earshot.events import Event
from earshot.protocols.flooding import Flood, Flooding
from earshot.protocols.machine import (
    NOTHING,
    Broadcast,
    CancelTimer,
    Deliver,
    Drop,
    FixedLocation,
    JoinGroup,
    LeaveGroup,
    Machine,
    Note,
    Send,
    StartTimer,
)
from earshot.protocols.machine_failures import (
    checked_effects,
    failure,
    is_ours,
    livelock,
    place_of_error,
    place_of_method,
    short,
    wrong_effects,
)
from earshot.records import DropReason
from earshot.wire import Packet

EVENT = Event("Ping", id="e", source="a")
FLOOD = Flood(EVENT, 1)


class Untagged(Packet, frozen=True):
    text: str = ""


def machine() -> Machine:
    return Machine("a", None, FixedLocation(), Random(1))


@pytest.mark.parametrize(
    "effect",
    [
        Broadcast(FLOOD), Broadcast(FLOOD, 5), Send("b", FLOOD), StartTimer("tick", 1), StartTimer(("tick", 2), 0.5),
        CancelTimer("tick"), Deliver(EVENT, "s"), Drop(DropReason.EXPIRED), JoinGroup(5), LeaveGroup(5), Note("a", "b"),
    ],
)  # fmt: skip
def test_every_effect_of_the_interface_is_carried_out(effect: Any) -> None:
    assert wrong_effects(machine(), [effect], {"s"}) is None
    assert wrong_effects(machine(), (effect,), None) is None


@pytest.mark.parametrize(
    ("effect", "says"),
    [
        (Broadcast("hello"), "it sent 'hello', which is not a packet"),  # type: ignore[arg-type]
        (Send("b", "hello"), "it sent 'hello', which is not a packet"),  # type: ignore[arg-type]
        (Broadcast(Untagged()), "its packet Untagged has no tag; declare it with tag='...'"),
        (Send("b", Untagged()), "its packet Untagged has no tag"),
        (Send("", FLOOD), "it sent to the peer ''; a peer is a node's name"),
        (Send(7, FLOOD), "it sent to the peer 7"),  # type: ignore[arg-type]
        (Broadcast(FLOOD, "all"), "it used the group 'all'; a group is a whole number"),  # type: ignore[arg-type]
        (JoinGroup("all"), "it used the group 'all'"),  # type: ignore[arg-type]
        (LeaveGroup(1.5), "it used the group 1.5"),  # type: ignore[arg-type]
        (StartTimer("tick", "soon"), "it started the timer 'tick' at 'soon'"),  # type: ignore[arg-type]
        (StartTimer("tick", True), "it started the timer 'tick' at True"),
        (StartTimer("tick", float("inf")), "it started the timer 'tick' at inf; a time is a finite number of seconds"),
        (StartTimer(["tick"], 1.0), "its timer is named ['tick'], which cannot be a name: unhashable"),
        (CancelTimer(["tick"]), "its timer is named ['tick'], which cannot be a name: unhashable"),
        (Deliver("hello", "s"), "it delivered 'hello', which is not an Event"),  # type: ignore[arg-type]
        (Deliver(EVENT, "t"), "it delivered 'e' to the subscription 't', which nobody made here"),
        (Drop("bored"), "it dropped something for 'bored'; a reason is a member of DropReason"),  # type: ignore[arg-type]
        (FLOOD, "it returned Flood("),
        (None, "it returned None among its effects"),
    ],
)
def test_what_a_host_cannot_carry_out_is_named(effect: Any, says: str) -> None:
    reported = wrong_effects(machine(), [Note("fine", ""), effect], {"s"})
    assert reported is not None
    assert reported.startswith(says)


def test_effects_that_would_be_lost_or_are_no_list_are_named() -> None:
    one = machine()
    assert wrong_effects(one, NOTHING, None) is None
    one.note("x", "y")
    reported = wrong_effects(one, NOTHING, None)
    assert reported is not None
    assert reported.startswith("it asked for Note(topic='x', detail='y') and then returned NOTHING, which loses it")
    assert wrong_effects(one, NOTHING, None) is None, "it is reported once"
    one.note("x", "y")
    reported = wrong_effects(one, [Note("other", "")], None)
    assert reported is not None
    assert reported.startswith(
        "it returned [Note(topic='other', detail='')] while Note(topic='x', detail='y') still waits"
    )
    reported = wrong_effects(machine(), Note("x", "y"), None)
    assert reported is not None
    assert reported.startswith("it returned Note(topic='x', detail='y') instead of a list of effects")


def test_a_refusal_says_where_and_how_to_repeat_it() -> None:
    good = [Note("x", "y")]
    assert checked_effects(machine(), "wake", good, None, 2.5) is good
    code = Machine.wake.__code__
    with pytest.raises(MachineFailure) as caught:
        checked_effects(machine(), "wake", [None], None, 2.5, "seed 4")  # type: ignore[list-item]
    first, second, third = str(caught.value).split("\n")
    assert first.startswith("Machine on node 'a' did wrong: it returned None among its effects")
    assert second == f"  at 2.5 s, in wake() ({code.co_filename}, line {code.co_firstlineno})"
    assert third == "  to repeat it: seed 4"
    with pytest.raises(MachineFailure) as caught:
        checked_effects(machine(), "no_such_method", [None], None, 2.5)  # type: ignore[list-item]
    assert str(caught.value).split("\n")[1:] == ["  at 2.5 s, in no_such_method()"]


def test_a_livelock_names_the_timer() -> None:
    code = Machine.wake.__code__
    assert str(livelock(machine(), "b", "tick", 3.0, "")) == (
        "Machine on node 'b' did wrong: it has woken 10,000 times without time passing, last by the timer 'tick'; "
        f"start a timer later than now\n  at 3.0 s, in wake('tick') ({code.co_filename}, line {code.co_firstlineno})"
    )


def failing(text: object) -> Exception:
    try:
        json.loads(text)  # type: ignore[arg-type]
    except Exception as error:
        return error
    raise AssertionError


def test_an_error_is_reported_with_the_authors_last_line_not_with_pythons_own() -> None:
    error = failing("{")
    line = failing.__code__.co_firstlineno + 2
    where = f"{__file__}, line {line}: json.loads(text)  # type: ignore[arg-type]"
    assert place_of_error(error) == where
    assert str(failure(machine(), "b", error, 1.0, "hear", "'x'", "")) == (
        f"Machine on node 'b' raised JSONDecodeError: {error}\n  at 1.0 s, in hear('x') ({where})"
    )
    assert place_of_error(ValueError("never raised")) == ""
    with pytest.raises(EventError) as caught:
        Event("", id="e")
    assert caught.value.__traceback__ is not None
    caught.value.__traceback__ = caught.value.__traceback__.tb_next
    assert "events.py" in place_of_error(caught.value), "with no line of the author's, the last one"


def test_a_method_is_found_where_it_begins_and_ours_are_distinguished_from_others() -> None:
    assert place_of_method(failing) == f"{__file__}, line {failing.__code__.co_firstlineno}"
    assert place_of_method(None) == place_of_method(len) == ""
    assert is_ours(Flooding)
    assert not is_ours(type("Other", (Machine,), {"__module__": "earshotter.flooding"}))


def test_long_values_are_cut_after_500_characters() -> None:
    assert short("x" * 498) == repr("x" * 498)
    assert short("x" * 499) == f"'{'x' * 499}..."
