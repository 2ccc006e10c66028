"""Each promise of an event type's quality of service, over the simulator, beside a truth that is computed apart."""

from collections import defaultdict
from dataclasses import fields
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import flooding, standing

from earshot.errors import EventError, QualityError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.protocols.catalogue import PROTOCOLS, build_settings
from earshot.protocols.machine import Announcement
from earshot.quality import NAMES, PLAIN, Quality
from earshot.simulation.engine.engine import Engine
from earshot.simulation.engine.log import Log
from earshot.simulation.media.medium_settings import Contention, Lossy, MediumSettings, UnitDisk
from earshot.simulation.media.open_medium import Network
from earshot.simulation.workload.actions import Action, Workload
from sizes import sized

ROW = 9
NAMES_IN_ROW = "abcdefghi"
FACTS = {"medium.range_m": 100.0, "node_count": ROW, "first_nodes": tuple("abc")}
HOP_S = 0.3
SLOW = UnitDisk(range_m=100.0, latency_s=HOP_S)
Rows = dict[str, list[dict[str, Any]]]


def settings_of(protocol: str) -> Any:
    cls = PROTOCOLS[protocol]
    facts = {one.name: FACTS[path] for one in fields(cls.Settings) if (path := one.metadata.get("scenario")) in FACTS}
    return build_settings(cls.Settings, facts)


def kept(protocol: str) -> frozenset[str]:
    return PROTOCOLS[protocol].kept_qualities(settings_of(protocol))


def ran(protocol: str, actions: list[Action], medium: MediumSettings, duration_s: float, seed: int = 0) -> Rows:
    """Nine nodes in a row, each in range of its two neighbours; what happened, by kind."""
    cls, settings = PROTOCOLS[protocol], settings_of(protocol)
    log = Log()
    engine = Engine(
        lambda node, location, random, channel: cls(node, settings, location, random, channel),
        standing(*[(80.0 * n, 0.0) for n in range(ROW)]),
        Network(medium, routed=cls.uses_routing(settings)),
        Workload(actions),
        duration_s=duration_s,
        seed=seed,
        log=log,
    )
    engine.run()
    found: Rows = defaultdict(list)
    for row in log.rows():
        found[row["kind"]].append(row)
    return found


def wanted(time: float, node: int) -> Action:
    return Action(time, node, Subscription(f"{NAMES_IN_ROW[node]}/s", NAMES_IN_ROW[node], Filter.of_type("Tick")))


def announced(node: int, time: float = 1.0, **quality: Any) -> Action:
    return Action(time, node, Announcement(EventType("Tick", {"n": int}, quality)))


def published(node: int, count: int, from_s: float, every_s: float) -> list[Action]:
    return [Action(from_s + n * every_s, node, Event("Tick", {"n": n})) for n in range(count)]


# Attributes are texts that mean something, and say so where they do not.


@given(
    st.builds(
        Quality,
        st.sampled_from(["best_effort", "reliable"]),
        st.none() | st.floats(0.001, 1e6),
        st.integers(-7, 7),
        st.none() | st.floats(0.001, 1e6),
        st.integers(0, 100),
    )
)
def test_a_quality_is_read_back_from_its_attributes(quality: Quality) -> None:
    kind = EventType("Tick", {}, quality.attributes())
    assert kind.quality == quality
    assert EventType("Tick", {}, {name: getattr(quality, name) for name in kind.attributes}) == kind


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"priority": "high"}, "Tick: priority: must be a whole number, got the text 'high'"),
        ({"history": -1}, "Tick: history: must be from 0 to 100, got -1"),
        ({"reliability": "sure"}, "Tick: reliability: no such choice as 'sure'; there are: best_effort, reliable"),
    ],
)
def test_an_impossible_value_is_refused(attributes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EventError, match=sentence):
        EventType("Tick", {}, attributes)


EXAMPLES: dict[str, Any] = {
    "reliability": "reliable",
    "lifespan_s": 5.0,
    "priority": 2,
    "deadline_s": 1.0,
    "history": 3,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_protocol_refuses_at_announce_what_it_cannot_keep(protocol: str, name: str) -> None:
    actions = [announced(0, **{name: EXAMPLES[name]})]
    if name in kept(protocol):
        assert ran(protocol, actions, SLOW, 3.0)["announce"]
    else:
        with pytest.raises(QualityError, match=f"Tick: {protocol} cannot keep {name} = {EXAMPLES[name]}"):
            ran(protocol, actions, SLOW, 3.0)


def test_only_protocols_with_neighbours_recover_events() -> None:
    for name in ("reliability", "history"):
        assert {protocol for protocol in PROTOCOLS if name not in kept(protocol)} == {"codd", "siena"}


def test_an_attribute_that_nobody_keeps_is_refused() -> None:
    with pytest.raises(QualityError, match="there is no attribute 'prioriy'; did you mean 'priority'"):
        ran("flooding", [announced(0, prioriy=1)], SLOW, 3.0)


def test_two_publishers_use_one_list_of_attributes() -> None:
    with pytest.raises(QualityError, match="has history = 3, this node history = 4; all nodes must use one list"):
        ran("flooding", [announced(0, history=3), announced(1, time=2.0, history=4)], SLOW, 3.0)


# Priority: the order of a radio's queue.


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.integers(2, 20))
def test_events_leave_the_queue_in_order_of_priority(priorities: list[int], room: int) -> None:
    """The first is on air at once; of the others the queue keeps the highest, each in the order they came."""
    actions = [Action(1.0, 0, Event("Tick", {"n": n}, priority=one)) for n, one in enumerate(priorities)]
    log = Log()
    medium = Contention(range_m=100.0, queue_frames=room)
    Engine(flooding(), standing((0, 0), (50, 0)), medium, Workload(actions), duration_s=5.0, log=log).run()
    sent = [int(row["event"].split("-")[1]) for row in log.rows() if (row["kind"], row["node"]) == ("send", "a")]
    others = sorted(range(1, len(priorities)), key=lambda n: (-priorities[n], n))
    assert sent == [0, *others[: room - 1]]


# Lifespan and deadline, against the times of the records.


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_no_event_is_delivered_after_its_lifespan_and_every_late_one_is_reported(protocol: str) -> None:
    for seed in range(sized(10, 40) // 10):
        random = Random(seed)
        lifespan_s, deadline_s = random.uniform(1.0, 3.0), random.uniform(0.4, 1.2)
        publisher = random.randrange(3)
        actions = [
            announced(publisher, lifespan_s=lifespan_s, deadline_s=deadline_s),
            *[wanted(0.5, node) for node in range(ROW)],
            *published(publisher, 8, 25.0, random.uniform(0.5, 1.5)),
        ]
        rows = ran(protocol, actions, SLOW, 45.0, seed)
        times = {row["event"]: row["time"] for row in rows["publish"]}
        latency_s = {(row["event"], row["node"]): row["time"] - times[row["event"]] for row in rows["deliver"]}
        assert latency_s
        assert max(latency_s.values()) <= lifespan_s
        late = {(row["event"], row["node"]): float(row["detail"]) for row in rows["late"]}
        assert late == {
            pair: pytest.approx(taken_s - deadline_s, abs=1e-6)
            for pair, taken_s in latency_s.items()
            if taken_s > deadline_s
        }


# Reliability: what was missed is recovered.


@pytest.mark.parametrize("protocol", [name for name in sorted(PROTOCOLS) if "reliability" in kept(name)])
def test_over_a_lossy_radio_every_subscriber_gets_every_reliable_event(protocol: str) -> None:
    medium = Lossy(range_m=100.0, certain_m=60.0, exponent=2.0, latency_s=0.002)
    for seed in range(sized(10, 60) // 10):
        actions = [
            announced(4, reliability="reliable", lifespan_s=60.0),
            *[wanted(0.5, node) for node in range(ROW) if node != 4],
            *published(4, 15, 25.0, 1.0),
        ]
        rows = ran(protocol, actions, medium, 100.0, seed)
        assert any(row["detail"] == "faded" for row in rows["drop"])
        got = {(row["event"], row["node"]) for row in rows["deliver"]}
        assert got == {(row["event"], node) for row in rows["publish"] for node in NAMES_IN_ROW if node != "e"}


# History: the last events to a late subscriber.


@pytest.mark.parametrize("protocol", [name for name in sorted(PROTOCOLS) if "history" in kept(name)])
def test_a_late_subscriber_gets_the_last_events_once(protocol: str) -> None:
    for seed in range(sized(20, 60) // 10):
        random = Random(seed)
        depth, count, publisher = random.randint(1, 6), random.randint(1, 12), random.randrange(1, ROW - 1)
        joins = {node: random.uniform(30.0, 50.0) for node in range(ROW) if node != publisher}
        actions = [
            announced(publisher, history=depth, lifespan_s=120.0),
            *published(publisher, count, 10.0, 1.0),
            *[wanted(time, node) for node, time in joins.items()],
        ]
        rows = ran(protocol, actions, UnitDisk(range_m=100.0, latency_s=0.002), 60.0, seed)
        events = [row["event"] for row in rows["publish"]]
        assert len(events) == count
        assert not rows["deliver"]
        got: dict[str, list[str]] = defaultdict(list)
        for row in rows["history"]:
            got[row["node"]].append(row["event"])
        for node in joins:
            in_range = abs(node - publisher) == 1
            found = got[NAMES_IN_ROW[node]]
            # A node farther away gets what its neighbours have heard; flooding lets all of them hear everything.
            if in_range or protocol in ("flooding", "cbf", "hearsay"):
                assert found == events[-depth:], (seed, node)
            else:
                assert found == [event for event in events[-depth:] if event in found]


def test_past_events_are_filtered_and_expire() -> None:
    subscription = Subscription("b/s", "b", Filter.where("n >= 3", "Tick"))
    times = {"lifespan_s": 25.0, "history": 4}
    actions = [announced(0, **times), *published(0, 6, 2.0, 4.0), Action(30.0, 1, subscription)]
    rows = ran("flooding", actions, SLOW, 40.0)
    # Published at 2, 6, ..., 22 s; at about 31 s the one of 6 s has just expired, and 3, 4 and 5 match.
    assert [row["event"] for row in rows["history"]] == ["a-3", "a-4", "a-5"]


def test_a_workload_without_quality_sends_no_packet_of_the_services() -> None:
    kind = Announcement(EventType("Tick", {"n": int}))
    actions = [Action(1.0, 0, kind), *[wanted(0.5, node) for node in range(ROW)], *published(0, 5, 5.0, 1.0)]
    rows = ran("flooding", actions, SLOW, 20.0)
    assert {row["packet"] for row in rows["send"]} == {"flood"}
    assert PLAIN.attributes() == {}
