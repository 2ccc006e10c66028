"""The accounting itself: it must be able to fail."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
from accounting import Fault, Pair, Published, Run, Session, table
from harness import Harness, Plan

from earshot.events import Event
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position

EVENT = Event("Tick", {"n": 1}, "a-1", "a", Position(0, 0), None, 100.0, Area(Circle(50), Position(0, 0)))


def run(**changes: object) -> Run:
    """b is near and wants the event, c is far away."""
    positions = {"a": Position(0, 0), "b": Position(40, 0), "c": Position(60, 0)}
    made = Run(
        positions=positions,
        subscriptions={name: [Subscription(f"{name}/0", name, Filter.of_type("Tick"))] for name in positions},
        sessions=[Session(name, 1, 0.0, 10.0, 900.0, killed=False) for name in positions],
        faults=[],
        published=[Published(EVENT, "a", 100.0)],
        delivered=Counter({("a-1", "b", 1, 0): 1}),
        delivered_at={("a-1", "b"): 100.1, ("a-1", "c"): 100.1},
        spooled={("a-1", "b")},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_only_the_near_node_is_expected() -> None:
    assert run().accounts() == [Pair("a-1", "b", True, True)]
    assert table(run().accounts()) == {"delivered": 1}


def test_a_loss_without_a_fault_is_unexplained() -> None:
    assert run(delivered=Counter()).accounts() == [Pair("a-1", "b", True, False, "unexplained")]


def test_a_delivery_to_a_node_that_is_far_away_is_unexplained() -> None:
    far = Counter({("a-1", "b", 1, 0): 1, ("a-1", "c", 1, 0): 1})
    assert run(delivered=far).accounts()[1] == Pair("a-1", "c", False, True, "unexplained")
    clock = [Fault("clock", frozenset("c"), 90.0, 91.0)]
    assert run(delivered=far, faults=clock).accounts()[1].reason == "clocks differed"


def test_a_second_delivery_counts_in_one_life_only() -> None:
    assert run(delivered=Counter({("a-1", "b", 1, 0): 2})).twice() == [("a-1", "b", 1, 0)]
    assert run(delivered=Counter({("a-1", "b", 1, 0): 1, ("a-1", "b", 2, 0): 1})).twice() == []


def test_a_delivery_that_the_spool_lacks_is_found_unless_the_disk_was_full() -> None:
    assert run(spooled=set()).missing_in_spool() == [("a-1", "b")]
    assert run(spooled=set(), faults=[Fault("disk", frozenset("b"), 99.0, 101.0)]).missing_in_spool() == []


def test_reasons_of_losses() -> None:
    def reason(**changes: object) -> str:
        return run(delivered=Counter(), **changes).accounts()[0].reason

    both = [Session("a", 1, 0.0, 10.0, 900.0, killed=False), Session("b", 1, 0.0, 10.0, 101.0, killed=True)]
    assert reason(sessions=both) == "receiver went down"
    assert reason(sessions=[replace(both[0], down=101.0, killed=True), replace(both[1], down=900.0)]) == (
        "publisher went down"
    )
    assert reason(sessions=[both[0], replace(both[1], killed=False)]) == "unexplained"
    assert reason(dropped={("a-1", "b"): "expired"}) == "dropped: expired"
    assert reason(dropped={("a-1", "a"): "no-subscriber"}) == "dropped by its publisher: no-subscriber"
    assert reason(lost={("a-1", "b"): "loss"}) == "loss"
    assert reason(lost={("a-1", "c"): "loss"}) == "unexplained"
    assert reason(faults=[Fault("partition", frozenset("b"), 99.0, 101.0)]) == "partition"
    assert reason(faults=[Fault("partition", frozenset("c"), 99.0, 101.0)]) == "unexplained"
    assert reason(faults=[Fault("pause", frozenset("b"), 99.0, 101.0)]) == "paused"
    assert reason(faults=[Fault("kill", frozenset("c"), 80.0, 81.0)]) == "unexplained"
    assert reason(faults=[Fault("kill", frozenset("c"), 80.0, 81.0)], repair_s=30.0) == "repairing after kill"


def test_repairing_explains_only_what_a_fault_can_have_broken() -> None:
    def reason(kind: str, nodes: str, end: float, **changes: object) -> str:
        faults = [Fault(kind, frozenset(nodes), end - 1.0, end)]
        return run(delivered=Counter(), faults=faults, repair_s=20.0, **changes).accounts()[0].reason

    assert reason("lose", "c", 81.0) == "repairing after lose"
    assert reason("lose", "c", 79.0) == "unexplained", "the repair is over"
    assert reason("disk", "b", 99.0) == "unexplained", "a full disk damages no protocol"
    assert reason("lose", "c", 99.0, through_others=False) == "unexplained", "nothing passes c"
    assert reason("lose", "b", 99.0, through_others=False) == "repairing after lose"


def test_a_node_that_stays_deaf_through_many_faults_of_others_is_unexplained() -> None:
    """Every ten seconds a fault of c: without the limit, each would explain the next losses of b for ever."""
    published = [Published(msgspec.structs.replace(EVENT, id=f"a-{at}"), "a", float(at)) for at in range(100, 200, 5)]
    faults = [Fault("kill", frozenset("c"), at - 1.0, at) for at in range(95, 200, 10)]
    deaf = run(published=published, delivered=Counter(), faults=faults, repair_s=20.0)
    reasons = [pair.reason for pair in deaf.accounts()]
    assert reasons == ["repairing after kill"] * 9 + ["unexplained"] * 11
    again = replace(deaf, faults=[*faults, Fault("kill", frozenset("b"), 138.0, 139.0)])
    assert [pair.reason for pair in again.accounts()].count("unexplained") == 4, "its own fault begins anew, at 139"
    heard = replace(deaf, delivered=Counter({("a-140", "b", 1, 0): 1}))
    assert [pair.reason for pair in heard.accounts()].count("unexplained") == 2, (
        "so does the next loss after a delivery, at 145"
    )


def test_a_node_that_was_away_is_not_expected_and_one_that_is_subscribing_is_not_judged() -> None:
    away = [Session("a", 1, 0.0, 10.0, 900.0, False), Session("b", 1, 110.0, 111.0, 900.0, False)]
    assert run(sessions=away, delivered=Counter()).accounts() == []
    assert run(sessions=away).accounts() == [Pair("a-1", "b", False, True, "unexplained")]
    starting = [away[0], replace(away[1], started=99.0)]
    assert run(sessions=starting).accounts() == run(sessions=starting, delivered=Counter()).accounts() == []


def test_a_pause_by_a_busy_machine_explains_a_loss(tmp_path: Path) -> None:
    harness = Harness(Plan(("flooding",), nodes=2, events=1, calm_s=1.0, faulty_s=1.0, rounds=1), tmp_path)
    harness.journal = [
        {"what": "up", "node": "b", "life": 7, "at": 10.0},
        {"what": "stalled", "node": "b", "life": 7, "since": 99.0, "at": 101.5},
    ]
    assert harness.stalls() == [Fault("pause", frozenset({"b"}), 99.0, 101.5)]
    paused = run(delivered=Counter(), faults=harness.stalls())
    assert paused.accounts() == [Pair("a-1", "b", True, False, "paused")]
