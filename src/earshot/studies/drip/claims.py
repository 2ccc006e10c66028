"""What DRIP's rows say about the claims of sections IV.A, V.B and VI: figures 3 and 4, under several readings.

"Grows", "falls" and "rises" are judged on means over seeds, from one value of the parameter to the next, with a
tolerance of 5 %: a curve may stay level for a step but must have moved at its end. Steps are taken seed by seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from random import Random

from earshot.events import Event
from earshot.filters import Subscription
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.scenario.scenario import Scenario
from earshot.studies.figures import (
    Compared,
    Curve,
    Estimate,
    Row,
    above,
    always,
    at_least,
    at_most,
    below,
    curve,
    difference_to,
    every,
    grouped,
    mean_of,
    ratio_to,
    rows_at,
)
from earshot.studies.study import ClaimReading, Claims, Finding, Rows, all_hold, found, read_as

CLAIMS = Claims()
claim = CLAIMS.claim
figure_3a = partial(CLAIMS.claim, where="Figure 3(a), l = 4", y_label="brokers that hold the event / k")
figure_3b = partial(CLAIMS.claim, where="Figure 3(b), l = 5", y_label="delay, s")

LEVEL = 0.05
"A step against the direction by at most this share counts as level."
SYMBOLS = {"brokers": "k", "copies": "m", "nearest": "l"}
NAMES = {"drip": "DRIP", "drip-sf": "SF"}
DELAYS = {"delay_s": "mean delay of what arrived", "delay_p50_s": "median delay of what arrived"}


def moves(rows: Sequence[Row], x: str, y: str, sign: int) -> Compared:
    """Whether y rises (sign 1) or falls (-1) over x: no step back, and at the end it has moved. The figures are by
    how much a value is above 95 or 105 % of an earlier one, seed by seed."""
    by_x = list(grouped([row for row in rows if row[y] is not None], x).values())

    def step(earlier: Sequence[Row], later: Sequence[Row], least: float) -> Estimate:
        return difference_to(later, earlier, y, "seed", times=1 + sign * least)

    steps = [step(a, b, -LEVEL) for a, b in pairwise(by_x)]
    end = step(by_x[0], by_x[-1], LEVEL)
    if sign > 0:
        return every([above(end, 0.0), *(at_least(one, 0.0) for one in steps)])
    return every([below(end, 0.0), *(at_most(one, 0.0) for one in steps)])


def units_of(rows: Sequence[Row]) -> str:
    """How long the shortest of the runs is, in words."""
    return f"{min(row['units'] for row in rows)} units"


def line_of(rows: Sequence[Row], x: str, y: str) -> Curve:
    """The curve of the rows that have a figure."""
    return curve([row for row in rows if row[y] is not None], x, y)


def trend(
    rows: Sequence[Row], x: str, lines: str, columns: dict[str, str], sign: int, why: str, digits: int = 2
) -> Finding:
    """Whether y moves in one direction over x on each of the lines, for each column."""
    readings, series = [], []
    for place, (y, name) in enumerate(columns.items()):
        measured, right = [], []
        for (value,), group in grouped(rows, lines).items():
            line, label = line_of(group, x, y), f"{SYMBOLS[lines]} = {value:g}"
            right.append(moves(group, x, y, sign))
            measured.append(f"{label} (by {SYMBOLS[x]}) {line:.{digits}f}")
            if place == 0:
                series.append(line.series(label))
        text = f"{'; '.join(measured)}, {units_of(rows)}"
        do = sum(one.holds for one in right)
        readings.append(read_as(name, text, every(right), rows, f"{do} of {len(right)} lines do; {why}"))
    return found(*readings, series=series)


COVERAGE = {
    "coverage_then": "brokers that had held the event when a subscriber got it, over k",
    "coverage": "brokers that held the event at some time of the run, over k",
}
"First as section VI.A defines it, then as VI.B.1 has it: the brokers that get the delivered events."
_COVERED = "a few subscribers name many brokers as destinations, and the m carriers add little to them"


@figure_3a(
    "Broker coverage grows with the number of copies m",
    paper="as m increases, broker coverage is growing too",
    x_label="copies m",
    fails_if="the source broker hands the event to destinations only, and to no carriers",
)
def coverage_by_copies(rows: Rows) -> Finding:
    return trend(rows["coverage"], "copies", "brokers", COVERAGE, 1, _COVERED)


@figure_3a(
    "Broker coverage falls with the number of brokers k",
    paper="m and l fixed and k growing, the broker coverage is generally reduced",
    x_label="brokers k",
    fails_if="events go to every broker, as in SF",
)
def coverage_by_brokers(rows: Rows) -> Finding:
    return trend(rows["coverage"], "brokers", "copies", COVERAGE, -1, _COVERED)


@claim(
    "Even in the worst case at most m + l brokers have a copy of an event",
    "Section VI.B.1",
    "only m + l brokers are required to have a copy",
    fails_if="events go to every broker, as in SF",
)
def few_copies(rows: Rows) -> Finding:
    one = [row for row in rows["one subscriber"] if row["one_deliveries"]]
    moved = "the source broker adds destinations when it hears that the subscriber has moved and names other brokers"
    beside = "the source broker has its copy beside the m carriers and the l destinations"
    readings = [
        _held_for_one(f"events that one node wants, {moment}; the source broker {counts}", one, when, source, why)
        for when, moment in (("then", "when the node gets it"), ("end", "by the end of the run"))
        for source, counts, why in (("", "does not count", moved), ("_with_source", "counts", beside))
    ]
    why = "about five subscribers want an event, and each of them has its own l brokers"
    readings.append(
        _held("all events, the l brokers of each subscriber; the source broker counts", rows["coverage"], why)
    )
    if common := rows_at(rows["settings"], variant="common destinations", protocol="drip", selection="ability"):
        words = "all events, the l brokers that most of an event's subscribers name; the source broker counts"
        readings.append(_held(words, common, f"{beside}; and a subscriber that has moved names other brokers"))
    return found(*readings)


def _held_for_one(name: str, rows: Sequence[Row], when: str, source: str, why: str) -> ClaimReading:
    more, mean = mean_of(rows, f"one_more_{when}{source}"), mean_of(rows, f"one_held_{when}")
    deliveries, most = sum(row["one_deliveries"] for row in rows), max(row[f"one_most_{when}"] for row in rows)
    measured = (
        f"more than m + l at {more.mean:.1%} of {deliveries:,} deliveries; {mean.mean:.1f} brokers on average, at most "
        f"{most}, the source broker among them; {units_of(rows)}"
    )
    return read_as(name, measured, always(more, 0.0), rows, why)


def _held(name: str, rows: Sequence[Row], why: str) -> ClaimReading:
    more, mean = mean_of(rows, "held_more"), mean_of(rows, "held_then")
    measured = (
        f"more than m + l at {more.mean:.1%} of the deliveries; {mean.mean:.1f} brokers on average, at most "
        f"{max(row['held_most'] for row in rows)}; {units_of(rows)}"
    )
    return read_as(name, measured, always(more, 0.0), rows, why)


LOST = {"lost": "share of the expected deliveries that is lost"}


COST = {
    "cost": "transmissions with events, for each event",
    "held_then": "brokers that had held the event when a subscriber got it: memory",
    "held": "brokers that held the event at some time of the run: memory",
}


@figure_3a(
    "More copies make delivery more likely",
    paper="we can raise the possibility of delivering matching events to their subscribers by enlarging m",
    fails_if="the source broker hands the event to destinations only, and to no carriers",
)
def copies_deliver(rows: Rows) -> Finding:
    runs = [{**row, "lost": 1 - row["delivery_ratio"]} for row in rows["coverage"]]
    return trend(runs, "copies", "brokers", LOST, -1, "where few events are lost, more copies save few", 4)


@figure_3a(
    "More copies need more transmission and memory",
    paper="more network transmission and memory is required",
    fails_if="the source broker hands the event to destinations only, and to no carriers",
)
def copies_cost(rows: Rows) -> Finding:
    why = "destinations, not carriers, take most of the copies"
    found_each = trend(rows["coverage"], "copies", "brokers", COST, 1, why)
    return found(
        all_hold("transmission, and memory in both ways", found_each.readings),
        *found_each.readings,
        series=found_each.series,
    )


@figure_3b(
    "Delivery delay falls with m",
    paper="for a fixed k, delivery delay decreases as m is increasing",
    x_label="copies m",
    fails_if="carriers keep their copies for themselves",
)
def delay_by_copies(rows: Rows) -> Finding:
    why = "more copies find a destination earlier, but they also load the channel and the one contact at a time"
    return trend(rows["delay"], "copies", "brokers", DELAYS, -1, why)


@figure_3b(
    "Delivery delay rises with k",
    paper="when m is fixed, delivery delay goes up with k",
    x_label="brokers k",
    fails_if="every broker reaches every other at once",
)
def delay_by_brokers(rows: Rows) -> Finding:
    return trend(rows["delay"], "brokers", "copies", DELAYS, 1, "smaller regions also make routes shorter")


def _compared(rows: Sequence[Row], others: Sequence[Row], names: tuple[str, str], y: str) -> tuple[str, Compared]:
    """Whether y is lower in the first rows, at every k, seed by seed; in words, with the ratio."""
    line, other = line_of(rows, "brokers", y), line_of(others, "brokers", y)
    ratio = ratio_to(rows, others, y, "brokers", "seed")
    shared = [k for k in line.means if k in other.means]
    less = (difference_to(rows_at(rows, brokers=k), others, y, "brokers", "seed") for k in shared)
    measured = f"(by k) {names[0]} {line:.2f}, {names[1]} {other:.2f}; {ratio.mean:.2f} times"
    return measured, every([Compared(bool(shared)), *(below(one, 0.0) for one in less)])


_LATE = (
    "an epidemic uses every contact and so finds every path that a copy could take; it costs time only where its "
    "copies fill the channel or the contacts"
)


@figure_3b(
    "DRIP's delay is below that of the epidemic SF",
    paper="our scheme costs less time than the SF scheme",
    x_label="brokers k",
    fails_if="a contact carries all events at once and takes no airtime",
)
def below_epidemic(rows: Rows) -> Finding:
    readings, lines = [], [line_of(rows["epidemic"], "brokers", "delay_s").series("SF")]
    by_copies = grouped(rows["delay"], "copies")
    for y, name in DELAYS.items():
        parts, lower_at = [], []
        for (m,), group in by_copies.items():
            measured, lower = _compared(group, rows["epidemic"], ("DRIP", "SF"), y)
            parts.append(f"m = {m} {measured} SF's")
            lower_at.append(lower)
            if y == "delay_s":
                lines.append(line_of(group, "brokers", y).series(f"DRIP, m = {m}"))
        text = f"{'; '.join(parts)}; {units_of(rows['delay'])}"
        readings.append(read_as(f"{name}, at every m", text, every(lower_at), rows["delay"], _LATE))
    for (rate,), group in grouped(rows["load"], "rate").items():
        drip, epidemic = (rows_at(group, protocol=protocol) for protocol in NAMES)
        measured, lower = _compared(drip, epidemic, ("DRIP", "SF"), "delay_s")
        arrived = [mean_of(group, "delivery_ratio").mean for group in (drip, epidemic)]
        text = f"{measured}; delivered {arrived[0]:.2f} and {arrived[1]:.2f}, {units_of(group)}"
        readings.append(read_as(f"mean delay at {rate:g} events a second", text, lower, group, _LATE))
    return found(*readings, series=lines)


@claim(
    "DRIP needs less transmission than the epidemic SF",
    "Sections V.B.2 and VI.B.1",
    "sending only matched events to interested brokers reduces network throughput",
    fails_if="events go to every broker, as in SF",
)
def cheaper(rows: Rows) -> Finding:
    group = rows_at(rows["delay"], copies=2)
    why = (
        "not at every k: announcements and registrations, which both have, are most of them where SF's copies are few, "
        "and SF shares no subscriptions"
    )
    return found(
        *(
            read_as(words, *_compared(group, rows["epidemic"], ("DRIP", "SF"), column), group, why)
            for words, column in (
                ("transmissions with events, for each event", "cost"),
                ("all transmissions a second", "transmissions_per_s"),
            )
        )
    )


@claim(
    "Only a subset of the brokers has an event, where SF gives it to all",
    "Section VI.B.2",
    "SF needs to deliver every single event to all brokers, DRIP to a subset",
    "brokers k",
    "brokers that hold the event / k",
    fails_if="events go to every broker, as in SF",
)
def subset(rows: Rows) -> Finding:
    group, readings = rows_at(rows["delay"], copies=2), []
    for column, words in reversed(COVERAGE.items()):  # SF's copies go on after a delivery, until all brokers have one
        measured, lower = _compared(group, rows["epidemic"], ("DRIP", "SF"), column)
        readings.append(read_as(f"{words}; m = 2", f"{measured}, {units_of(group)}", lower, group))
    lines = [line_of(group, "brokers", "coverage"), line_of(rows["epidemic"], "brokers", "coverage")]
    return found(*readings, series=[lines[0].series("DRIP"), lines[1].series("SF")])


@claim(
    "Subscription packets are smaller than events",
    "Section V.B.2",
    "compared to events, subscription packets are smaller; thus sharing them reduces network throughput",
    fails_if="a subscription names all k brokers",
)
def small_subscriptions(rows: Rows) -> Finding:
    readings = []
    for column, words in (
        ("packet_bytes", "packets from broker to broker: one subscriber with its l = 5 brokers, one event"),
        ("bare_bytes", "the condition and the event's content alone, as text"),
    ):
        asked, event = (rows_at(rows["packets"], what=what) for what in ("subscription", "event"))
        text = f"{mean_of(asked, column).mean:.0f} bytes, an event {mean_of(event, column).mean:.0f}"
        why = "an event of the number intervals is one number; a subscription has two, and names its l brokers"
        smaller = below(difference_to(asked, event, column, "seed"), 0.0)
        readings.append(read_as(words, text, smaller, rows["packets"], why))
    return found(*readings)


@claim(
    "Larger ability lets brokers delete unneeded events locally",
    "Section IV.A",
    "improves the possibility of deletion, which conserves memory and bandwidth",
    fails_if="brokers are chosen at random",
)
def deletion(_: Rows) -> Finding:
    """Abilities, events and subscriptions decide this: it needs no run of the protocol."""
    shares: list[Row] = []
    for seed in MORE_SEEDS:
        scenario, detected = _detected(seed, wanted=False)
        if not detected:
            continue  # in some runs every event is wanted
        ablest, nodes = _ablest(scenario, seed), range(scenario.node_count)
        for k in BROKERS:
            by = {"ability": ablest[:k], "random": Random(f"{seed}:{k}").sample(nodes, k)}
            counts = {name: sum(detected[node] for node in brokers) for name, brokers in by.items()}
            row = {name: count / detected.total() for name, count in counts.items()}
            shares.append({"brokers": k, "seed": seed, "events": detected.total(), **row})
    able, drawn = (curve(shares, "brokers", name) for name in ("ability", "random"))
    events = sum(row["events"] for row in rows_at(shares, brokers=BROKERS[0]))
    measured = f"(by k) by ability {able:.2f}, at random {drawn:.2f}; {events} events that no node wants"
    more = [
        above(difference_to(group, group, "ability", "seed", other="random"), 0.0)
        for group in grouped(shares, "brokers").values()
    ]
    bandwidth = "bandwidth: the share of the unwanted events that a broker detects, and need not be sent to one"
    return found(
        read_as(bandwidth, measured, every(more), shares, "few unwanted events are detected by brokers"),
        ClaimReading("memory", "-", None, seeds=0, reason=_NO_MEMORY),
    )


_NO_MEMORY = (
    "the paper states no size of a broker's memory, and with the 0.8 events a second of section VI.A a memory of 200 "
    "events is never full"
)


@claim(
    "Brokers chosen by ability give less delay than brokers chosen at random",
    "Figure 4",
    "DRIP incurs less delivery delay",
    "brokers k",
    "delay, s",
    fails_if="brokers are chosen at random",
)
def selection(rows: Rows) -> Finding:
    group, readings = rows_at(rows["delay"], copies=2), []
    why = (
        "the route that is saved, from publisher to broker, is a few hops of milliseconds, in a delay of seconds that "
        "waits for brokers to meet"
    )
    for y, name in DELAYS.items():
        measured, lower = _compared(group, rows["selection"], ("by ability", "at random"), y)
        readings.append(read_as(name, f"{measured}, {units_of(group)}", lower, group, why))
    lines = [line_of(group, "brokers", "delay_s"), line_of(rows["selection"], "brokers", "delay_s")]
    return found(*readings, series=[lines[0].series("by ability"), lines[1].series("at random")])


@claim(
    "Brokers chosen by ability need less transmission than brokers chosen at random",
    "Section IV.A",
    "assigning nodes with larger ability can reduce network throughput",
    fails_if="brokers are chosen at random",
)
def selection_cost(rows: Rows) -> Finding:
    group = rows_at(rows["delay"], copies=2)
    measured, lower = _compared(group, rows["selection"], ("by ability", "at random"), "cost")
    why = "most transmissions carry copies between brokers and floods in regions, which cost the same"
    return found(read_as("transmissions with events, for each event", measured, lower, group, why))


@claim(
    "Most events are detected by brokers themselves, where those are the ablest nodes",
    "Section VI.B.2, to explain figure 4",
    "saves a step: most of the detected events need to be transferred to the brokers first",
    "brokers k",
    "share of the events that a broker detects",
    fails_if="brokers are chosen at random",
)
def detected_by_brokers(_: Rows) -> Finding:
    """Abilities and events decide this: it needs no run of the protocol."""
    shares: list[Row] = []
    for seed in SEEDS:
        scenario, detected = _detected(seed)
        ablest = _ablest(scenario, seed)
        shares += [
            {"brokers": k, "seed": seed, "share": sum(detected[node] for node in ablest[:k]) / detected.total()}
            for k in BROKERS
        ]
    line = curve(shares, "brokers", "share")
    tenth = f"with ours, -2.5, the ablest tenth detects {line.means[20]:.2f} of all"
    why = f"the paper gives no exponent for its power law; {tenth}"
    reading = read_as("at every k", f"(by k) {line:.2f}; 500 units", at_least(line, 0.5), shares, why)
    return found(reading, series=[line.series("by ability")])


BROKERS, SEEDS, MORE_SEEDS, UNITS = (10, 20, 30), range(10), range(30), 500.0
"Of what abilities and the workload decide alone; more seeds for events that no node wants, which are few."


def _ablest(scenario: Scenario, seed: int) -> list[int]:
    """The nodes, the ablest first."""
    abilities = scenario.abilities(seed)
    return sorted(range(len(abilities)), key=lambda node: -abilities[node])


def _detected(seed: int, wanted: bool | None = None) -> tuple[Scenario, Counter[int]]:
    """The study's scenario, and how many events each node detects: all, or those that some node or no node wants."""
    scenario = load_scenario("drip").with_({"duration_s": UNITS})
    work = list(scenario.workload(seed))
    asked = [action.what.filter for action in work if isinstance(action.what, Subscription)]
    detected: Counter[int] = Counter()
    for action in work:
        event = action.what
        if isinstance(event, Event) and wanted in (None, any(filter.matches(event) for filter in asked)):
            detected[action.node] += 1
    return scenario, detected
