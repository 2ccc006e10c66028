"""What the content-based ODMRP study measures: one function per kind of measurement, for one case at a time.

The networks are in `worlds`. Conversion is wall-clock time of this machine, without a network.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from statistics import fmean, median
from typing import Any

from earshot.events import Element, Event, EventType
from earshot.filters import Filter, Subscription, parsed
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.summary import Summary
from earshot.protocols.content_odmrp.machine import AS_WRITTEN, PAPER, ContentOdmrp, ContentOdmrpSettings, Data
from earshot.protocols.machine import Announcement, FixedLocation
from earshot.protocols.tabletop import Tabletop
from earshot.records import Kind
from earshot.simulation.engine.engine import rare_collections
from earshot.simulation.engine.log import Log
from earshot.simulation.engine.result import RunResult
from earshot.simulation.engine.run import run
from earshot.simulation.engine.summary import summarise
from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.workload.interests import FIGURE_3
from earshot.studies.content_odmrp import worlds
from earshot.studies.figures import Row
from earshot.studies.study import Case


def _run(scenario: Scenario, case: Case, **settings: Any) -> tuple[RunResult, Log]:
    protocol, own = worlds.SYSTEMS[case["system"]]
    log = Log()
    return run(scenario, protocol, {**own, **settings}, seed=case["seed"], log=log), log


def _received(log: Log) -> Iterator[Row]:
    """The records of what nodes received, in order."""
    return (row for row in log.rows() if row["kind"] == Kind.RECEIVE)


# Section IV.A.


def traffic(case: Case) -> list[Row]:
    """Figure 7: what comes in at each broker, and what it delivers. One row per broker."""
    scenario = worlds.tree(case["subscribers"])
    result, log = _run(scenario, case)
    figures = summarise(scenario, result)
    bytes_in: Counter[str] = Counter()
    for row in _received(log):
        bytes_in[row["node"]] += row["bytes"]
    delivered = Counter(result.nodes[node] for node in result.deliveries.node)
    expected = Counter(
        name
        for name in result.nodes
        for event in result.published
        for span in result.subscriptions
        if span.node == name and parsed(span.filter).matches(event)
    )
    return [
        {
            "broker": name,
            "bytes_in": bytes_in[name],
            "delivered": delivered[name],
            "expected": expected[name],
            "delivery_ratio": figures.delivery_ratio,
            "precision": figures.precision,
        }
        for name in result.nodes
    ]


def throughput(case: Case) -> list[Row]:
    """Figures 6 and 8: messages per second, from the first to the last sent or delivered, over a
    radio channel of 2 Mbit/s. All systems wait up to 10 ms before they pass a packet on: otherwise it collides."""
    scenario = worlds.on_one_channel(worlds.tree(case["subscribers"], case["interval_s"]))
    result, log = _run(scenario, case, jitter_s=0.01)
    figures = summarise(scenario, result)
    first = result.published[0].time
    last = max((*result.deliveries.time, result.published[-1].time))
    arrived = len(set(result.deliveries.event))
    bytes_in = sum(row["bytes"] for row in _received(log))
    return [
        {
            "throughput_per_s": arrived / (last - first),
            "delivery_ratio": figures.delivery_ratio,
            "bytes_in": bytes_in,
            "transmissions": figures.transmissions,
        }
    ]


MOST_STEPS = 30
"A filter nests at most 32 levels of steps, predicates and parentheses: a bound against hostile filters."


def conversion(case: Case) -> list[Row]:
    """Section IV.A: the time to turn an event with this many nested elements into a digest; subscriptions into a
    summary: to its innermost element, with this many terms, with this many nested steps (at most 30); and to compare
    digest and summary. Medians, in microseconds."""
    names = [f"e{index}" for index in range(case["elements"])]
    innermost = Filter.xpath(f"/e0[.//{names[-1]} = 'x' or . = 'x']")
    terms = Filter.xpath("/e0" + "".join(f"[{name} = 'x']" for name in names))
    steps = Filter.xpath(f"/{'/'.join(names[:MOST_STEPS])} = 'x'")
    digest = Digest.of(_nested(names))
    summary = Summary.of([innermost])

    def summarising(filter: Filter) -> float:
        return _median_us(lambda: filter, lambda each: Summary.of([each]))

    return [
        {
            "event_us": _median_us(lambda: _nested(names), Digest.of),
            "innermost_us": summarising(innermost),
            "terms_us": summarising(terms),
            "steps": min(len(names), MOST_STEPS),
            "steps_us": summarising(steps),
            "comparison_us": _median_us(lambda: digest, summary.may_match_digest),
            "matches": summary.may_match_digest(digest),
        }
    ]


def matching(case: Case) -> list[Row]:
    """The processor time that a message of figure 2 takes of all brokers together, with the subscriptions of figure 3:
    to read it from XML and to match it with one subscription, to convert it, and to compare its digest with the five
    brokers' summaries. One row for each of the three messages, in microseconds."""
    wanted = [Filter.xpath(text) for text in FIGURE_3]
    events = [action.what for action in worlds.tree().workload(case["seed"]) if isinstance(action.what, Event)]
    return [{"message": place, **_times(event, wanted)} for place, event in enumerate(events[:MESSAGES])]


def _times(event: Event, wanted: list[Filter]) -> Row:
    summaries = [Summary.of([each]) for each in wanted]
    digest, document = Digest.of(event), event.to_xml()

    def compare(one: Digest) -> int:
        return sum(summary.may_match_digest(one) for summary in summaries)

    return {
        "brokers": len(wanted),
        "wanted_by": sum(each.matches(event) for each in wanted),
        "passed": compare(digest),
        "reading_us": _median_us(lambda: document, Event.from_xml),
        "matching_us": fmean(_median_us(lambda: event, each.matches) for each in wanted),
        "converting_us": _median_us(lambda: Event(event.type, event.root), Digest.of),
        "comparing_us": _median_us(lambda: digest, compare),
    }


MESSAGES = 3
"Figure 2's, which the source repeats."


def _nested(names: list[str]) -> Event:
    element = Element(names[-1], {}, ("x",))
    for name in reversed(names[:-1]):
        element = Element(name, {}, (element,))
    return Event(element.name, element)


def _median_us(make: Callable[[], Any], convert: Callable[[Any], object], repeats: int = 51) -> float:
    spent = []
    for _ in range(repeats):
        thing = make()
        start = time.perf_counter()
        convert(thing)
        spent.append(time.perf_counter() - start)
    return median(spent) * 1e6


# Section IV.B.

START_UP_S = 10.0
"Two refresh intervals: until then either link may still have no route."


def moving(case: Case) -> list[Row]:
    """Figures 10 to 12: how much reaches a moving receiver, by which kind of packet, over how many hops.

    The seed decides where on its path the receiver is when the first message is sent, and its exact
    pace within a fifth: otherwise moves, messages and refreshes would stay in step.
    """
    random = Random(f"pace:{case['seed']}")
    step_s = case["step_s"] * random.uniform(0.8, 1.2)
    scenario = worlds.moving(case["world"], step_s, random.uniform(0.0, 9 * step_s))
    result, log = _run(scenario, case)
    ids = [event.id for event in result.published]
    late = {event.id for event in result.published if event.time >= result.published[0].time + START_UP_S}
    deliveries = [place for place, node in enumerate(result.deliveries.node) if result.nodes[node] == "R1"]
    by_packet: dict[str, str] = {}
    sizes = []
    for row in _received(log):
        if row["node"] == "R1" and row["time"] >= result.published[0].time:
            sizes.append(row["bytes"])
            if row["event"]:
                by_packet.setdefault(row["event"], row["packet"])
    delivered = [ids[result.deliveries.event[place]] for place in deliveries]
    on_requests = sum(by_packet[event].endswith("join-request") for event in delivered)
    hops = [result.deliveries.hops[place] for place in deliveries]
    detours = sum(count > min(hops) for count in hops)
    last = max((result.deliveries.time[place] for place in deliveries), default=0.0)
    lasting_s = max(last, result.published[-1].time) - result.published[0].time
    return [
        {
            "delivery_ratio": len(delivered) / len(ids),
            "later_ratio": sum(event in late for event in delivered) / len(late),
            "share_on_requests": on_requests / len(delivered) if delivered else None,
            "on_requests": on_requests,
            "on_data": len(delivered) - on_requests,
            "delivered": len(delivered),
            "share_of_detours": detours / len(hops) if hops else None,
            "throughput_per_s": len(delivered) / lasting_s,
            "packets_in": len(sizes),
            "packet_bytes": sum(sizes) / len(sizes) if sizes else None,
        }
    ]


# Sections III and V: summaries, aggregation, soft state.


def summaries(case: Case) -> list[Row]:
    """Of random events and conjunctions of two terms: how many events a summary lets pass without a match, how many
    it misses, and its size beside that of the subscriptions' texts."""
    random = Random(f"summaries:{case['seed']}:{case['subscriptions']}")
    texts = [_conjunction(random) for _ in range(case["subscriptions"])]
    filters = [Filter.xpath(text) for text in texts]
    events = [_disc(random, number) for number in range(500)]
    matching = [any(filter.matches(event) for filter in filters) for event in events]
    rows: list[Row] = []
    for form, summary in (
        ("four structures", Summary.of(filters).without_combinations()),
        ("with combinations", Summary.of(filters)),
    ):
        read = Summary.from_bytes(summary.to_bytes())
        passing = [read.may_match(event) for event in events]
        wrong = sum(passes and not matches for passes, matches in zip(passing, matching, strict=True))
        rows.append(
            {
                "form": form,
                "missed": sum(matches and not passes for passes, matches in zip(passing, matching, strict=True)),
                "matching": sum(matching),
                "false_share": wrong / max(1, len(events) - sum(matching)),
                "summary_bytes": len(summary.to_bytes()),
                "text_bytes": sum(map(len, texts)),
            }
        )
    return rows


def _conjunction(random: Random) -> str:
    terms = [
        f'category="c{random.randrange(20)}"',
        f'composer="m{random.randrange(50)}"',
        f'price<"{random.randrange(1, 30)}"',
    ]
    return "/CD" + "".join(f"[{term}]" for term in random.sample(terms, 2))


def _disc(random: Random, number: int) -> Event:
    content = {
        "category": f"c{random.randrange(20)}",
        "composer": f"m{random.randrange(50)}",
        "price": random.uniform(0.0, 30.0),
    }
    return Event("CD", content, id=f"S-{number}", source="S")


REFRESH_S = PAPER.refresh_interval_s
DISCS = (("jazz", "Evans", 18.0), ("jazz", "Davis", 10.0), ("classic", "Bach", 22.0))
"Figure 2."


def changes(case: Case) -> list[Row]:
    """Subscriptions that change while figure 2's events go out every half second over figure 4's tree: at 20 s broker
    3 subscribes to what broker 1 wants, at 40 s broker 1 cancels, at 60 s the source falls silent. One row."""
    top = _table({**AS_WRITTEN, "aggregate": case["aggregate"], "advertise": case["advertise"]})
    if case["advertise"]:
        top.do("S", "announce", Announcement(EventType("CD")))
        top.run(until=1.0)
    first, sent_before = top.now, len(top.sent)
    got: dict[str, list[float]] = {"R1": [], "R3": []}
    raised = []
    for number in range(120):
        if top.now >= first + 20.0 and not case["still"]:
            _subscribe_once(top, "R3", "R3/2", FIGURE_3[0])
        if top.now >= first + 40.0 and not case["still"] and "R1/1" in _machine(top, "R1").subscriptions.by_id:
            top.do("R1", "unsubscribe", "R1/1")
        category, composer, price = DISCS[number % 3]
        content = {"category": category, "composer": composer, "price": price}
        seen = len(top.delivered)
        top.do("S", "publish", Event("CD", content, id=f"S-{number}", source="S", time=top.now))
        if number == 0:
            on_data = any(isinstance(packet, Data) for _, packet in top.sent[sent_before:])
        top.run(until=top.now + 0.5)
        if number % 3 == 0:
            raised.append(top.now - 0.5 - first)
            for node, _, _ in top.delivered[seen:]:
                if node in got:
                    got[node].append(top.now - 0.5 - first)
    reporters = [name for name, _ in _machine(top, "S").reports.table.items(top.now)]
    forwarding = []
    for wait_s in (0.0, 15.0, 16.0):
        top.run(until=top.now + wait_s)
        forwarding.append(_forwarding(top))
    wanted = [at for at in raised if at >= 20.0]
    return [
        {
            "registered_got": len(got["R3"]),
            "registered_wanted": len(wanted),
            "registered_missed": sum(at not in got["R3"] for at in wanted if at >= 20.0 + REFRESH_S),
            "cancelled_got": sum(at >= 40.0 for at in got["R1"]),
            "before_cancelling": [sum(at < 40.0 for at in got["R1"]), sum(at < 40.0 for at in raised)],
            "first_on_data": on_data,
            "first_delivered": bool(got["R1"]) and got["R1"][0] == 0.0,
            "forwarding": forwarding,
            "reporters": len(reporters),
        }
    ]


def _table(settings: dict[str, Any]) -> Tabletop:
    links = worlds.tree().medium.links.graph or ()
    names = sorted({name for pair in links for name in pair})
    made = ContentOdmrpSettings(**settings)
    top = Tabletop([ContentOdmrp(name, made, FixedLocation(), Random(name)) for name in names], links)
    for number, text in enumerate(FIGURE_3, 1):
        _subscribe_once(top, f"R{number}", f"R{number}/1", text)
    return top


def _machine(top: Tabletop, node: str) -> ContentOdmrp:
    machine = top.machines[node]
    assert isinstance(machine, ContentOdmrp)
    return machine


def _subscribe_once(top: Tabletop, node: str, id: str, text: str) -> None:
    if id not in _machine(top, node).subscriptions.by_id:
        top.do(node, "subscribe", Subscription(id, node, Filter.xpath(text)))


def _forwarding(top: Tabletop) -> int:
    """The nodes with a forwarding flag that has not expired."""
    return sum(any(True for _ in _machine(top, node).mesh.flags.items(top.now)) for node in top.machines)


# Section III.D, and beyond the paper: many brokers that move.


def regrouping(case: Case) -> list[Row]:
    """Four kinds of events for four brokers, three groups at most: kinds are combined. Then two kinds stop, or nobody
    wants them any more: their groups expire, and there is room to split the one that carries both others. Where
    subscriptions change, two brokers want both kinds in the end: their groups can be combined."""
    settings = {**AS_WRITTEN, "groups_limit": 3, "noise_limit": case["noise_limit"]}
    links = [("S", f"R{number}") for number in range(4)]
    made = ContentOdmrpSettings(**settings)
    names = ["S", *(name for _, name in links)]
    top = Tabletop([WatchedGroups(name, made, FixedLocation(), Random(name)) for name in names], links)
    source = _machine(top, "S")
    assert isinstance(source, WatchedGroups)
    noise, published = [], 0

    def subscribe(broker: int, kind: int) -> None:
        filter = Filter.xpath(f'/CD[category="c{kind}"]')
        top.do(f"R{broker}", "subscribe", Subscription(f"c{kind}", f"R{broker}", filter))

    def publish(count: int, kinds: tuple[int, ...], measured: int) -> None:
        """Publish events of these kinds in turn. The noise is that of the last `measured` of them."""
        nonlocal published
        for number in range(count):
            if number == count - measured:
                source.noise = source.sent_to = 0
            content: dict[str, Any] = {"category": f"c{kinds[number % len(kinds)]}"}
            top.do("S", "publish", Event("CD", content, id=f"S-{published}", source="S", time=top.now))
            top.run(until=top.now + 0.5)
            published += 1
        noise.append(source.noise / source.sent_to)

    every, remaining = (0, 1, 2, 3), (0, 3)
    for kind in every:
        subscribe(kind, kind)
    publish(80, every, 80)
    before = source.groups.combined, source.groups.split
    if case["changing"] == "events":
        publish(120, remaining, 20)
        wanted = 200
    else:
        for kind in every:
            if kind not in remaining:
                top.do(f"R{kind}", "unsubscribe", f"c{kind}")
        publish(120, every, 20)
        subscribe(0, 3)
        subscribe(3, 0)
        publish(120, every, 20)
        wanted = 80 + 60 + 120
    return [
        {
            "combined": before[0],
            "combined_later": source.groups.combined - before[0],
            "split_later": source.groups.split - before[1],
            "delivered": len(top.delivered),
            "wanted": wanted,
            "noise": noise,
        }
    ]


class WatchedGroups(ContentOdmrp):
    """Counts what its groups do as a source."""

    name = "watched-content-odmrp"
    made_here: list[WatchedGroups] = []  # noqa: RUF012  (one run at a time fills and reads it)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.noise, self.sent_to = 0, 0
        self.made_here.append(self)

    def send_to_group(self, event: Event, wanting: frozenset[str], due: bool, now: float) -> None:
        super().send_to_group(event, wanting, due, now)
        group = max(self.groups.by_id.values(), key=lambda group: (group.used_at, group.id), default=None)
        if group is not None and wanting:
            members = self.groups.members(group, now)
            self.noise += len(members - wanting)
            self.sent_to += len(members | wanting)


GRAINS: dict[str, dict[str, Any]] = {
    "least constrained": {"group_choice": "least-constrained"},
    "smallest": {},
    "noise at most a half": {"noise_limit": 0.5, "groups_limit": 6},
    "finest": {"noise_limit": 0.0, "groups_limit": 16},
}
"From coarse to fine, as settings beside `AS_WRITTEN`."


@rare_collections()
def grain(case: Case) -> list[Row]:
    """Section III.D: coarse against fine groups as brokers move faster."""
    WatchedGroups.made_here.clear()
    scenario = worlds.market(case["speed_m_s"])
    settings = {**AS_WRITTEN, **GRAINS[case["grain"]]}
    result = run(scenario, WatchedGroups, settings, seed=case["seed"])
    machines = list(WatchedGroups.made_here)
    figures = summarise(scenario, result)
    noise, sent_to = sum(machine.noise for machine in machines), sum(machine.sent_to for machine in machines)
    return [
        {
            **_sizes_of(result, figures),
            "noise": noise / sent_to if sent_to else 0.0,
            "groups": sum(machine.groups.made for machine in machines),
            "split": sum(machine.groups.split for machine in machines),
            "combined": sum(machine.groups.combined for machine in machines),
        }
    ]


@rare_collections()
def growing(case: Case) -> list[Row]:
    """Beyond the paper: many brokers that move, many subscriptions each."""
    scenario = worlds.city(case["brokers"], case["subscriptions"])
    protocol, own = worlds.SYSTEMS[case["system"]]
    settings = {name: case[name] for name in ("summary_bytes", "packet_bytes", "predict") if name in case}
    result = run(scenario, protocol, {**own, **settings}, seed=case["seed"])
    return [_sizes_of(result, summarise(scenario, result))]


def _sizes_of(result: RunResult, figures: Any) -> dict[str, Any]:
    data = [packet for tag, packet in result.counts.packets.items() if tag.endswith("-data")]
    return {
        "delivery_ratio": figures.delivery_ratio,
        "precision": figures.precision,
        "expected": figures.expected,
        "events": figures.events,
        "transmissions": figures.transmissions,
        "bytes": figures.data_bytes + figures.control_bytes,
        "control_bytes": figures.control_bytes,
        "mesh_bytes": sum(packet.bytes_sent for packet in data),
    }
