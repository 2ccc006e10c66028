"""What a node is before anything happens to it: it has heard and counted nothing, and its tables are as large as its
settings allow. A state that begins elsewhere shows only once, at the first packet or the first timer of a node."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from random import Random
from typing import Any

import pytest
from msgspec.structs import fields as msgspec_fields

from earshot.filters import FilterIndex
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.codd.dissemination_tree import Child, DisseminationTree
from earshot.protocols.codd.join import Join
from earshot.protocols.codd.packets import NEW, Answer
from earshot.protocols.codd.reorganising import Search
from earshot.protocols.codd.settings import CoddSettings
from earshot.protocols.content_odmrp.groups import ContentGroup, ContentGroups
from earshot.protocols.drip.broker import PeerUpdates
from earshot.protocols.drip.packets import Confirmation
from earshot.protocols.drip.region_interests import InterestOffer, Interests
from earshot.protocols.drip.sharing import HeldEvent
from earshot.protocols.drip.subscribers import Subscriber
from earshot.protocols.georendezvous.cell_hash_routing import Beacon, NodeEntered
from earshot.protocols.georendezvous.path_choice import PathChoice
from earshot.protocols.georendezvous.rendezvous_cell import Notify
from earshot.protocols.georendezvous.rendezvous_table import Advertise
from earshot.protocols.georendezvous.shared_links import LinkBeacon
from earshot.protocols.machine import Deliver, FixedLocation
from earshot.protocols.services.history import Asking
from earshot.protocols.siena.machine import BrokerLink
from earshot.protocols.steam.announcements import LocalAnnouncement
from earshot.protocols.steam.location_updates import UpdatedLocation
from earshot.protocols.steam.machine import GatheredAdvert, WaitingEvent
from earshot.protocols.steam.packets import Advert, Raised, Recovered
from earshot.protocols.steam.relevant_proximities import RelevantProximity
from earshot.protocols.tuning import Surroundings, Tunable

FLOODING = {"heard.capacity": 4096, "jittered._capacity": 4096}
DRIP = {
    "registered_at": -math.inf,
    "election._compared_at": -math.inf,
    "election.candidates._capacity": 15,  # ten brokers and five spares
    "election.candidates._gone_capacity": 30,
    "election.candidates.k": 10,
    "regions.capacity": 20,
    "regions.return_routes.capacity": 4096,
    "jittered._capacity": 4096,
    "jittered._jitter_s": 0.03,
    "flooded.capacity": 4096,
    "delivered.capacity": 4096,
    "brokered.capacity": 4096,
    "copies.passed.capacity": 4096,
    "reported.capacity": 4096,
}
MESH = {
    "mesh.heard.capacity": 4096,
    "mesh.jittered._capacity": 4096,
    "mesh.jittered._jitter_s": 0.02,
}
FIRST: dict[str, dict[str, float]] = {
    "cbf": {"heard.capacity": 4096},
    "codd": {},
    "content-odmrp": {
        **MESH,
        "offers": True,
        "mesh.routes.capacity": 256,
        "mesh.flags.capacity": 1024,  # four groups of each source
        "pace.interval_s": 15.0,
        "reports.capacity": 1024,
        "reports.table.capacity": 1025,  # one more for the reporters without a name
        "groups.answer_wait_s": 0.4,
        "groups.limit": 4,
        "groups.noise_limit": 1.0,
        "local_summaries.budget_bytes": 1000,
        "local_summaries.combinations": True,
        "local_summaries.pass_rates.capacity": 256,
        "local_summaries.pass_rates.limit": 0.8,
        "sent_reports.capacity": 256,
        "passed_up.capacity": 4096,
    },
    "drip": DRIP,
    "drip-sf": DRIP,
    "flooding": FLOODING,
    "georendezvous": {
        "routing._listening": True,
        "routing.fresh": True,
        "routing.grid.side_m": pytest.approx(100.0 / math.sqrt(8.0)),  # two cells across fit into the radio's range
        "rendezvous.handover_delay_s": 0.05,
        "rendezvous.keep_records": 12,
        "rendezvous.place_margin_m": pytest.approx(2.5 * 100.0 / math.sqrt(8.0)),
        "rendezvous.record_lifespan_s": 560.0,  # eight times 70 s: records from far away are renewed seldom
        "rendezvous.table.longest_s": 560.0,
        "seen.capacity": 10_000,
    },
    "gossip": FLOODING,
    "hearsay": {
        "alone_s": pytest.approx(3.2 * 6.0),
        "best_share": 0.62,
        "repair_airtime_s": pytest.approx(0.1 * 5.0),
        "settling_s": pytest.approx(20.0 * 3.0 * 3.0 * 0.003),
        "heard.capacity": 8192,
        "live.carry_bytes": 2_000_000,
        "live.memory": 8192,
        "neighbours.capacity": 512,
        "reach._recent": 64.0,
        "reach._steps_per_m": pytest.approx(10.0 / 100.0),
    },
    "odmrp": {**MESH, "mesh.routes.capacity": 4096, "mesh.flags.capacity": 1, "delivered.capacity": 4096},
    "siena": {"seen.capacity": 4096, "strangers.capacity": 1024},
    "steam": {
        "relevant.capacity": 2048,
        "relevant.producer_capacity": 1024,
        "recent_events.capacity": 65_536,
        "recovery.receptions.capacity": 2048,
        "recovery.receptions.limit": 64,
        "recovery.recent_answers.capacity": 65_536,
    },
}
"By protocol, with its default settings: the numbers of a node and of its parts that are not zero, False or None."
OF_EVERY_TABLE = {"_budgets", "budgets", "_usual_bytes", "_short"}
"How many bytes a table may hold has tests of its own."


def attributes(part: Any) -> dict[str, Any]:
    slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
    found = {name: getattr(part, name, None) for name in slots} | getattr(part, "__dict__", {})
    return {name: value for name, value in found.items() if name not in OF_EVERY_TABLE}


def numbers(part: Any, path: str = "", seen: dict[int, Any] | None = None) -> Iterator[tuple[str, float]]:
    """All numbers in a machine and its parts that are not zero, by their place in it. A part that several others use
    counts once."""
    seen = {id(part): part} if seen is None else seen
    for name, value in attributes(part).items():
        if isinstance(value, int | float) and value:
            yield f"{path}{name}", value
        elif is_part(type(value)) and id(value) not in seen:
            seen[id(value)] = value
            yield from numbers(value, f"{path}{name}.", seen)


def is_part(kind: type[Any]) -> bool:
    ours = kind.__module__.startswith("earshot.protocols")
    return ours and "Settings" not in kind.__name__ and not issubclass(kind, Enum)


@pytest.mark.parametrize("name", FIRST)
def test_a_new_node_has_counted_nothing_and_its_tables_have_the_room_of_its_settings(name: str) -> None:
    cls = PROTOCOLS[name]
    assert dict(numbers(cls("n", cls.Settings(), FixedLocation(), Random(1)))) == FIRST[name]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            DisseminationTree("s#0", "n", False, CoddSettings(), FilterIndex()),
            {"number": -1, "complete": NEW, "next_look": 200},
        ),
        (Search("n", "p", "s", 3, 0b101, None), {"first": 3, "best_overhead": math.inf}),
        (FixedLocation().position(1.0), {}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_new_part_has_counted_nothing(part: Any, expected: dict[str, float]) -> None:
    found = dict(numbers(part)).items()
    assert {name: value for name, value in found if "." not in name and not name.startswith("_")} == expected


NEVER = -math.inf
UNSTATED: dict[type[Any], dict[str, float]] = {
    Deliver: {"hops": -1},
    Tunable: {"step": 2.0},
    Surroundings: {"packet_airtime_s": 0.0, "fewest_nodes": math.inf},
    Child: {"version": 0, "guest": False},
    Join: {"request": 0, "failures": 0},
    Answer: {"link": 0},
    BrokerLink: {"sent": 0, "heard": 0, "failed": False},
    PeerUpdates: {"offered_at": NEVER, "offered_version": -1, "confirmed_version": 0},
    HeldEvent: {"copies": 0, "at_source": False, "flooded": False},
    InterestOffer: {"version": 0, "until": NEVER, "attempts": 0, "confirmed": 0},
    Interests: {"shared_at": NEVER},
    Subscriber: {"version": 0, "renew_s": 0.0},
    Confirmation: {"version": 0},
    ContentGroup: {"offered_at": NEVER, "answered_at": NEVER},
    ContentGroups: {"made": 0, "split": 0, "combined": 0},
    PathChoice: {"heard_at": 0.0},
    Notify: {"passed": False},
    Advertise: {"asked": False},
    Beacon: {"fresh": False},
    LinkBeacon: {"fresh": False, "links": 0},
    NodeEntered: {"since": NEVER},
    LocalAnnouncement: {"beacon": 0, "rounds_left": 0, "raised_at": 0.0},
    GatheredAdvert: {"copies": 0},
    WaitingEvent: {"copies": 0},
    RelevantProximity: {"forwarded_at": NEVER},
    Advert: {"hops": 0, "interval_s": 1.0, "margin_m": 0.0},
    Raised: {"hops": 1},
    Recovered: {"hops": 1},
    UpdatedLocation: {"phase_s": 0.0},
    Asking: {"rounds": 0, "before_round": -1},
}
"The numbers that a value has where its maker does not state them."


@pytest.mark.parametrize("kind", UNSTATED, ids=lambda kind: kind.__name__)
def test_what_is_not_stated_counts_as_nothing_or_as_never(kind: type[Any]) -> None:
    defaults = {one.name: one.default for one in (fields(kind) if is_dataclass(kind) else msgspec_fields(kind))}
    assert {name: value for name, value in defaults.items() if isinstance(value, int | float)} == UNSTATED[kind]
