"""The CoDD study: its streams are the paper's, its host agrees with the simulator, its claims can fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from mutation import flips

from earshot.cli import earshot
from earshot.protocols.codd.dissemination_tree import DisseminationTree
from earshot.protocols.codd.machine import Codd
from earshot.protocols.codd.packets import Add
from earshot.protocols.codd.reorganising import MoveRequests
from earshot.protocols.machine import Effect
from earshot.simulation.draws import Span
from earshot.simulation.engine.run import run
from earshot.simulation.scenario.library import load_scenario
from earshot.simulation.workload.codd_workload import CoddDocuments
from earshot.studies.codd import beyond_claims, claims
from earshot.studies.codd.beyond import churning
from earshot.studies.codd.runs import (
    AS_PRINTED,
    AS_READ,
    POLICIES,
    READINGS,
    SyntheticStream,
    XmlStream,
    joining_from,
    synthetic,
)
from earshot.studies.codd.study import STUDY
from earshot.studies.running import BEGIN, END
from earshot.studies.study import Finding, judge, study

Measured = Mapping[str, list[dict[str, Any]]]
SMALL = {"nodes": 60, "fan_out": 4, "documents": 400, "seed": 1, "systems": ["codd-r", "codd-nr", "siena"]}


@pytest.fixture(scope="module")
def quick() -> Measured:
    return {
        experiment.name: [{**case, **row} for case in experiment.quick for row in experiment.measure(case)]
        for experiment in STUDY.experiments
    }


def test_the_whole_study_runs_and_claims_that_do_not_depend_on_readings_hold(quick: Measured) -> None:
    judged = {one.claim.judge: one.finding for one in judge(STUDY, quick)}
    assert study("codd") is STUDY
    assert len(judged) == len(STUDY.claims) == 28
    assert [one.claim for one in STUDY.claims if not one.fails_if] == []
    assert all(finding.measured for finding in judged.values())
    certain = (beyond_claims.exact, beyond_claims.under_churn, beyond_claims.at_size)
    assert [judged[claim].holds for claim in certain] == [True] * 3
    json.dumps(quick)


def bent(quick: Measured, experiment: str, system: str | None = None, **factors: float) -> Measured:
    """The rows with some columns multiplied."""
    changed = []
    for row in quick[experiment]:
        mine = system is None or row.get("system") == system
        changed.append({**row, **({name: row[name] * factor for name, factor in factors.items()} if mine else {})})
    return {**quick, experiment: changed}


def test_claims_follow_the_numbers(quick: Measured) -> None:
    lower = bent(quick, "default", "codd-r", node_overhead=0.2)
    higher = bent(quick, "default", "codd-r", node_overhead=5.0)
    assert (claims.halved(lower).holds, claims.halved(higher).holds) == (True, False)
    assert (claims.below_siena(lower).holds, claims.below_siena(higher).holds) == (True, False)
    assert beyond_claims.exact(bent(quick, "default", "siena", deliveries=0.5)).holds is False
    assert beyond_claims.exact(bent(quick, "large", delivery_ratio=0.999)).holds is False
    assert beyond_claims.under_churn(bent(quick, "churn", delivery_ratio=0.9)).holds is False
    assert beyond_claims.at_size(bent(quick, "large", delivery_ratio=0.9)).holds is False
    assert beyond_claims.under_loss(bent(quick, "loss", delivery_ratio=0.9)).holds is False
    assert beyond_claims.xml_overhead(bent(quick, "xml", system_overhead=0.01)).holds is True
    assert beyond_claims.xml_overhead(bent(quick, "xml", system_overhead=100.0)).holds is False
    assert claims.depth_lowered(bent(quick, "default", "codd-r", depth=3.0)).holds is False
    assert beyond_claims.few_messages(bent(quick, "default", "codd-r", control=100)).holds is False
    assert beyond_claims.same_shape(bent(quick, "shapes", mean_depth=1.5)).holds is False


def verdicts(finding: Finding, start: str) -> list[bool | None]:
    """Of the readings that start with these words."""
    return [reading.holds for reading in finding.readings if reading.reading.startswith(start)]


def test_the_hundred_highest_are_judged_seed_by_seed() -> None:
    def row(system: str, seed: int, top: float, with_overhead: int) -> dict[str, Any]:
        run = {"system": system, "seed": seed, "documents": 100, **dict.fromkeys(claims.WAYS, 0.5)}
        return {**run, "top_100": [top] * 100, "with_overhead": with_overhead}

    rows = [row("codd-nr", 0, 0.8, 100), row("codd-nr", 1, 0.6, 110)]
    better = [row("codd-r", 0, 0.2, 250), row("codd-r", 1, 0.24, 270)]
    worse = [row("codd-r", 0, 0.6, 250), row("codd-r", 1, 0.6, 270)]
    for others, holds in ((better, True), (worse, False)):
        found = claims.halved({"default": [*rows, *others], "readings": []})
        (highest,) = [reading for reading in found.readings if reading.reading.startswith("the 100 highest")]
        assert highest.holds is holds
        assert highest.interval is not None
        # The interval is of what is gained, seed by seed: 75 % and 60 %, or 25 % and nothing.
        assert sum(highest.interval) / 2 == pytest.approx(0.675 if holds else 0.125)
    assert highest.reason.startswith("without reorganisation 105 nodes have overhead at some time, with it 260")


def test_a_policy_must_be_cheaper_and_lose_little() -> None:
    def rows(overhead: float, control: int) -> Measured:
        plain = {"system": "codd-r", "seed": 0, "node_overhead": 0.5, "control": 100, "moves": 10, "documents": 100}
        limited = {**plain, "node_overhead": 0.5 * overhead, "control": control}
        return {
            "policies": [
                *({**plain, "reading": name} for name in (AS_READ, AS_PRINTED)),
                *({**limited, "reading": name} for name in POLICIES),
            ]
        }

    assert {reading.holds for reading in claims.policies(rows(1.05, 50)).readings} == {True}
    assert {reading.holds for reading in claims.policies(rows(1.2, 50)).readings} == {False}
    assert {reading.holds for reading in claims.policies(rows(1.0, 100)).readings} == {False}
    # A delta-threshold is compared with figure 6 as printed, the other policies with the paper as read.
    mixed = [{**row, "control": 40} if row["reading"] == AS_PRINTED else row for row in rows(1.0, 50)["policies"]]
    found = claims.policies({"policies": mixed})
    assert verdicts(found, "delta") == [False] * 3
    assert verdicts(found, "top-c") == [True] * 2
    # The verdict is that of all three policies, whichever is listed first.
    assert found.holds is False
    assert found.measured == "frequency and overhead threshold: yes; top-c: yes; delta-threshold: no"
    assert verdicts(found, "one policy") == [True]
    # One setting of a policy is enough.
    two_fail = [
        {**row, "control": 110} if row["reading"].startswith("delta-threshold, a gain") else row
        for row in rows(1.0, 50)["policies"]
    ]
    found = claims.policies({"policies": two_fail})
    assert (found.holds, verdicts(found, "delta")) == (True, [True, False, False])


def rows_by_fan_out(values: Mapping[int, float], system: str) -> Measured:
    columns = [*claims.WAYS, *claims.BROKERS]
    rows = [
        {"fan_out": fan_out, "system": system, "seed": 0, **dict.fromkeys(columns, value)}
        for fan_out, value in values.items()
    ]
    default = [row for row in rows if row["fan_out"] == 6]
    return {"fan-outs": [row for row in rows if row not in default], "default": default}


def test_a_curve_must_be_steep_first_and_flat_then(quick: Measured) -> None:
    steep = {2: 0.6, 3: 0.4, 4: 0.3, 6: 0.28, 8: 0.27, 10: 0.26}
    even = {2: 0.6, 3: 0.55, 4: 0.5, 6: 0.4, 8: 0.3, 10: 0.2}
    others = [row for row in quick["fan-outs"] if row["system"] != "codd-r"]
    # Another tree of Siena's brokers is not a line of the figure.
    binary = [{**row, "system": "siena-binary"} for row in quick["default"]]
    for values, expected in ((steep, True), (even, False), ({k: -v for k, v in steep.items()}, False)):
        rows = rows_by_fan_out(values, "codd-r")
        runs = {"fan-outs": [*rows["fan-outs"], *others], "default": [*rows["default"], *binary]}
        found = claims.steep_then_flat(runs)
        assert (found.holds, "6: 0." in found.measured or "6: -0." in found.measured) == (expected, True)
    rising = {fan_out: 0.1 + fan_out / 100 for fan_out in (2, 4, 6, 8)}
    assert claims.siena_rises(rows_by_fan_out(rising, "siena")).holds is True
    assert claims.siena_rises(rows_by_fan_out(steep, "siena")).holds is False
    # A slope that other seeds might turn is not shown.
    uneven = claims.siena_rises(rows_by_fan_out({2: 0.1, 3: 0.5, 4: 0.1, 6: 0.5, 8: 0.2}, "siena"))
    assert (uneven.holds, uneven.readings[0].in_doubt) == (False, True)


def test_an_overhead_that_falls_with_the_size_does_not_rise_more_slowly() -> None:
    def sizes(with_: float, without: float) -> Measured:
        """Overheads that change by this much for each doubling of the nodes."""
        rows = [
            {"nodes": 100 * 2**doubling, "fan_out": fan_out, "system": system, "seed": 0, "documents": 100}
            | dict.fromkeys(claims.WAYS, start + slope * doubling)
            for doubling in range(3)
            for fan_out in (4, 6)
            for system, start, slope in (("codd-r", 0.3, with_), ("codd-nr", 0.5, without))
        ]
        return {"sizes": rows, "fan-outs": [], "default": []}

    for slopes, holds in (
        ((0.01, 0.05), [True, True]),
        ((-0.05, -0.01), [True, False]),
        ((0.05, 0.01), [False, False]),
    ):
        found = claims.size_lowered(sizes(*slopes))
        rises, *slopes = found.readings
        assert [slopes[0].holds, rises.holds] == holds


def test_sizes_are_compared_with_the_default_size_at_the_same_length() -> None:
    def runs(nodes: int, fan_out: int, documents: int, depth: float) -> dict[str, Any]:
        return {"nodes": nodes, "fan_out": fan_out, "documents": documents, "depth": depth, "seed": 0} | {
            "system": "codd-r"
        }

    rows = {
        "sizes": [runs(100, 6, 1000, 3.0), runs(200, 6, 1000, 4.0), runs(100, 4, 200, 3.0)],
        "fan-outs": [runs(400, 6, 200, 9.0), runs(400, 4, 200, 5.0)],
        "default": [runs(400, 6, 1000, 5.0)],
    }
    measured = claims.depth_with(rows).measured
    assert measured.startswith("1,000 documents, by nodes 100: 3.00, 200: 4.00, 400: 5.00; ")


def test_over_time_and_late_moves_are_judged_by_their_ends() -> None:
    def runs(series: list[float], ratios: list[float]) -> Measured:
        row = {
            "system": "codd-r",
            "seed": 0,
            "series": [[i, y] for i, y in enumerate(series)],
            "ratios": [[i, y] for i, y in enumerate(ratios)],
        }
        return {"default": [row], "readings": []}

    falling = [0.6 - i / 100 for i in range(50)]
    assert beyond_claims.over_time(runs(falling, [])).holds is True
    assert beyond_claims.over_time(runs(falling[::-1], [])).holds is False
    better = [1.5, 0.9, 1.2, 0.8, 0.7, 0.9, 0.5, 0.6, 0.4]
    assert beyond_claims.late_moves(runs([], better)).holds is True
    assert beyond_claims.late_moves(runs([], better[::-1])).holds is False


# Named mutations of the protocol turn the verdicts.


def measured(systems: list[str], **changed: Any) -> list[dict[str, Any]]:
    case = {**SMALL, "reading": AS_READ, "systems": systems, "documents": 250, **changed}
    return [{**case, **row} for row in synthetic(case)]


def test_a_tree_that_is_a_chain_has_more_overhead_than_siena(monkeypatch: pytest.MonkeyPatch) -> None:
    def chain() -> None:
        monkeypatch.setattr(DisseminationTree, "fan_out", property(lambda tree: 99 if tree.members else 0))

    flips(
        claims.CLAIMS,
        "CoDD's overhead is below Siena's",
        lambda: {"default": measured(["codd-r", "siena", "siena-binary"], seed=2)},
        chain,
    )


def test_a_tree_that_is_a_chain_has_fewer_leaves_than_siena(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = []

    def leaves() -> Measured:
        rows[:] = measured(["codd-r", "codd-nr", "siena", "siena-binary"])
        return {"default": rows}

    def chain() -> None:
        monkeypatch.setattr(DisseminationTree, "fan_out", property(lambda tree: 99 if tree.members else 0))

    flips(
        claims.CLAIMS, "A larger share of CoDD's nodes", leaves, chain, "leaves of the tree; the brokers' tree binary"
    )
    # A chain has one leaf, its last node; moves shorten CoDD-R's only where they gain.
    assert rows[1]["leaf_share"] == pytest.approx(1 / 60)


def test_a_join_that_asks_all_children_takes_more_messages_than_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Codd.on_add

    def to_all(self: Codd, packet: Add, tree: DisseminationTree) -> None:
        if tree.fan_out < self.settings.fan_out:
            plain(self, packet, tree)
        for name in sorted(tree.members):
            self.send(name, packet)

    flips(
        claims.CLAIMS,
        "A join takes at most h x s messages",
        lambda: {"default": measured(["codd-nr"]), "fan-outs": [], "readings": []},
        lambda: monkeypatch.setattr(Codd, "on_add", to_all),
    )


def test_joins_that_go_down_to_a_leaf_make_the_tree_grow_linearly(monkeypatch: pytest.MonkeyPatch) -> None:
    def down() -> None:
        monkeypatch.setattr(DisseminationTree, "fan_out", property(lambda tree: 99 if tree.members else 0))

    flips(
        claims.CLAIMS,
        "The depth of the tree grows logarithmically",
        lambda: {
            "sizes": measured(["codd-nr"], fan_out=6, nodes=150, documents=100),
            "fan-outs": [],
            "default": [],
        },
        down,
    )


def test_a_policy_that_refuses_every_move_loses_what_moves_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "top-c, c = 20"
    plain = MoveRequests.accept

    def policies() -> Measured:
        free, limited = (measured(["codd-r"], documents=400, reading=reading) for reading in (AS_READ, name))
        others = [{**row, "reading": other} for other in (AS_PRINTED, *POLICIES) if other != name for row in free]
        return {"policies": [*free, *limited, *others]}

    def refuse(self: MoveRequests, now: float) -> list[Effect]:
        if self.settings.top is not None:
            self.pending.clear()
        return plain(self, now)

    flips(
        claims.CLAIMS,
        "Policies lower the cost",
        policies,
        lambda: monkeypatch.setattr(MoveRequests, "accept", refuse),
        reading=name,
    )


# The streams.


def test_the_synthetic_data_has_the_papers_selectivity_under_every_reading() -> None:
    for changed in READINGS.values():
        stream = SyntheticStream(400, 200, 3, changed)
        random = Random(1)
        wanted = [len(stream.generator.audience(random, number)[1]) for number in range(200)]
        assert 0.15 < sum(wanted) / 200 / 400 < 0.25


def test_a_shuffle_splits_some_buckets_and_merges_the_halves() -> None:
    generator = CoddDocuments(query_buckets=Span(1.0, 1.0), document_buckets=4)
    before, after = generator.members(0), generator.members(1)
    changed = [i for i in range(20) if before[i] != after[i]]
    assert 2 <= len(changed) <= 4
    assert Counter(q for bucket in before for q in bucket) == Counter(q for bucket in after for q in bucket)
    for i in changed:
        sources = [len(after[i] & before[j]) for j in changed if after[i] & before[j]]
        assert len(sources) <= 2
    assert [generator.epoch(number) for number in (0, 199, 200, 400)] == [0, 0, 1, 2]


def test_a_document_is_for_the_queries_in_its_buckets_under_both_shuffles() -> None:
    for shuffle in ("data", "subscriptions"):
        generator = CoddDocuments(queries=60, shuffle=shuffle, shuffle_every=10)  # type: ignore[arg-type]
        for number in (0, 9, 10, 35):
            event = generator.draw(Random(number), number)
            _, wanted = generator.audience(Random(number), number)
            epoch = generator.epoch(number)
            found = {
                query
                for query in range(60)
                if any(filter.matches(event) for filter in generator.filters_in(query, epoch))
            }
            assert found == wanted


# The runs.


def test_every_system_and_every_reading_delivers_all_there_is() -> None:
    wanted = None
    for reading in (AS_READ, "the high-overhead node itself moves", "figure 6 as printed, no gain asked"):
        counts = {row["deliveries"] for row in synthetic({**SMALL, "reading": reading})}
        assert len(counts) == 1
        wanted = wanted or counts
        assert counts == wanted
    (before,) = {
        row["deliveries"]
        for row in synthetic({**SMALL, "reading": "all nodes join before the first document", "systems": ["codd-r"]})
    }
    random = Random("1:documents")
    generator = SyntheticStream(60, 400, 1, {}).generator
    assert before == sum(len(generator.audience(random, number)[1]) for number in range(400))


def test_subscriptions_that_follow_the_shuffle_are_met_too() -> None:
    rows = synthetic({**SMALL, "reading": "categories are the query text"})
    assert len({row["deliveries"] for row in rows}) == 1
    with_, without, siena = rows
    assert with_["moves"] > 0
    assert without["moves"] == siena["moves"] == 0


def test_the_same_case_gives_the_same_rows() -> None:
    case = {**SMALL, "reading": AS_READ, "documents": 250}
    assert synthetic(case) == synthetic(case)


def test_brokers_overhead_is_counted_against_their_own_queries_and_their_clients_too() -> None:
    (row,) = measured(["siena-binary"], documents=100)
    assert row["own, all brokers"] > row["clients, all brokers"] > 0
    assert row["clients, with overhead"] <= row["interior_brokers"] + 1 < row["brokers"]


def test_siena_drops_at_the_first_rank_without_overhead() -> None:
    def rows(with_overhead: int) -> Measured:
        run = {"nodes": 400, "brokers": 57, "interior_brokers": 28, "seed": 0}
        counts = {f"{kind}, with overhead": with_overhead for kind in ("own", "clients")}
        return {"default": [{**run, **counts, "system": system} for system in ("siena", "siena-binary")]}

    for with_overhead, holds in ((28, True), (26, True), (25, False), (56, False)):
        found = claims.the_29th_broker(rows(with_overhead))
        assert {reading.holds for reading in found.readings} == {holds}
        assert found.measured == f"the first rank without overhead is {with_overhead + 1}; the root has none"


def test_leaves_are_the_nodes_without_any_below_them() -> None:
    (flat,) = measured(["codd-nr"], fan_out=60, documents=100)
    assert flat["leaf_share"] == 1.0
    (row,) = measured(["siena-binary"], documents=100)
    assert row["leaf_share"] == pytest.approx(1 - row["interior_brokers"] / row["brokers"])
    # With its clients a broker is no leaf, but for the last one, which has none yet.
    assert row["leaf_share_with_clients"] == pytest.approx(1 - (row["brokers"] - 1) / 60)


def test_documents_flow_before_the_first_node_joins() -> None:
    (row,) = measured(["codd-nr"], documents=250)
    first, last = joining_from(250)
    assert (first, last) == (25, 50)
    assert len(row["joins"]) == 60
    assert all(0 < adds <= levels for adds, _, levels in row["joins"])


def test_the_selectivity_is_of_the_documents_since_a_node_joined() -> None:
    (row,) = measured(["codd-nr"], documents=100)
    generator = SyntheticStream(60, 100, 1, {}).generator
    random = Random("1:documents")
    wanted = [len(generator.audience(random, number)[1]) for number in range(100)]
    # All have joined after 50 documents; before that too, documents meet as many of those that have.
    assert row["selectivity"] == pytest.approx(sum(wanted) / 60 / 100, rel=0.1)


def test_a_data_set_can_change_half_way() -> None:
    stream = XmlStream(["news", "protein"], 3, 10, 0)
    assert [len(stream.filters(node)) for node in range(3)] == [2, 2, 2]
    kinds = [event.type for event in stream.documents()]
    assert kinds == [stream.types[0].subject] * 5 + [stream.types[1].subject] * 5


def test_a_changed_data_set_must_do_well_at_each_fan_out() -> None:
    def rows(narrow: float, wide: float) -> Measured:
        """Second halves' overhead after a change of the set, at fan-outs 2 and 6; of the second set alone it is 0.4."""
        return {
            "xml": [
                {"dtds": list(dtds), "system": system, "fan_out": fan_out, "seed": 0, "halves": [0.4, second]}
                for dtds, seconds in ((claims.DTDS[:2], (narrow, wide)), (claims.DTDS[1:2], (0.4, 0.4)))
                for fan_out, second in zip((2, 6), seconds, strict=True)
                for system in claims.BOTH
            ]
        }

    for (narrow, wide), holds in (((0.4, 0.44), True), ((0.32, 0.52), False), ((0.52, 0.32), False)):
        found = beyond_claims.changed_set(rows(narrow, wide))
        assert [reading.holds for reading in found.readings] == [holds] * 2


def test_in_the_simulator_every_word_of_a_document_is_a_delivery() -> None:
    changes = {"nodes.node.count": 60, "publish.documents.events.queries": 60, "duration_s": 75.0}
    result = run(load_scenario("codd").with_(changes), "codd", {}, 1)
    words = sum(len(event.root.elements) for event in result.published)
    assert len(result.deliveries) == words > 2000


def test_an_orphan_finds_another_parent_within_seconds() -> None:
    (row,) = churning({"nodes": 60, "documents": 300, "rate_per_min": 2.0, "seed": 2})
    assert row["delivery_ratio"] > 0.9
    assert row["orphans"] > 0
    assert 0 < row["recovery_median_s"] < 6.0


def test_claims_about_multicast_leaves_and_overlap_times_can_hold_and_fail(quick: Measured) -> None:
    for factor, holds in ((0.1, True), (10.0, False)):
        assert claims.below_multicast(bent(quick, "default", "codd-r", system_overhead=factor)).holds is holds
        assert beyond_claims.efficient(bent(quick, "overlap-times", extensional_us=factor**4)).holds is holds
    for factor, holds in ((2.0, True), (0.1, False)):
        assert claims.more_leaves(bent(quick, "default", "codd-r", leaf_share=factor)).holds is holds
    never = [
        verdicts(claims.more_leaves(bent(quick, "default", "codd-r", with_overhead=factor)), "never")
        for factor in (0.0, 5.0)
    ]
    assert never == [[True] * 4, [False] * 4]
    early = [row for row in quick["readings"] if row["reading"] == claims.EARLY]
    for factor, holds in ((0.1, True), (10.0, False)):
        later = [{**row, "reading": AS_READ, "node_overhead": row["node_overhead"] / factor} for row in early]
        assert claims.early_places({"readings": [*early, *later]}).holds is holds


@pytest.mark.long
def test_the_study_is_reproduced_from_the_command_line(tmp_path: Path) -> None:
    page = tmp_path / "codd.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    lake = str(tmp_path / "lake")
    done = CliRunner().invoke(
        earshot, ["reproduce", "codd", "--quick", "--json", "--lake", lake, "--pages", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "lake" / "studies" / "studies.html").exists()
    assert "| 1. " in page.read_text()
    # No case runs again. The terminal ends with the page's first sentence: how many hold, and how many by the mean.
    reported = CliRunner().invoke(earshot, ["reproduce", "codd", "--quick", "--lake", lake])
    (count,) = [line for line in reported.output.splitlines() if line.startswith("28 claims in their most natural")]
    assert f"{count}. From " in page.read_text()
