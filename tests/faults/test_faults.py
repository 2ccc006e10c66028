"""All protocols under kills, pauses, wrong clocks, partitions, loss and a full disk: every event is accounted for."""

import asyncio
import json
from pathlib import Path

import pytest
from accounting import Pair, table
from harness import Harness, Plan

from earshot.protocols.catalogue import PROTOCOLS
from sizes import LONG

SHORT_PLAN = Plan(tuple(sorted(PROTOCOLS)), nodes=4, events=12, calm_s=1.0, faulty_s=5.0, rounds=1)
LONG_PLAN = Plan(tuple(sorted(PROTOCOLS)), nodes=8, events=1000, calm_s=40.0, faulty_s=520.0, rounds=12)
PLAN = LONG_PLAN if LONG else SHORT_PLAN
pytestmark = pytest.mark.timeout(3600)
"The long plan takes about ten minutes, and longer on a busy machine."


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    made = Harness(PLAN, tmp_path_factory.mktemp("faults"))
    asyncio.run(made.run())
    return made


def test_every_kind_of_fault_was_done(harness: Harness) -> None:
    assert {fault.kind for fault in harness.faults} == set(PLAN.kinds)


@pytest.mark.parametrize("protocol", PLAN.protocols)
def test_every_event_is_accounted_for(harness: Harness, protocol: str) -> None:
    run = harness.result(protocol)
    pairs = run.accounts()
    counts = table(pairs)
    print(protocol, json.dumps(counts))
    unexplained: list[Pair] = [pair for pair in pairs if pair.reason == "unexplained"]
    assert unexplained == []
    assert run.twice() == []
    assert run.missing_in_spool() == []


def test_most_events_arrive(harness: Harness) -> None:
    pairs = [pair for protocol in PLAN.protocols for pair in harness.result(protocol).accounts() if pair.expected]
    assert sum(pair.delivered for pair in pairs) > len(pairs) / 2


def test_no_machine_failed_and_no_process_died_by_itself(harness: Harness) -> None:
    ended = [row for row in harness.journal if row["what"] == "down"]
    assert len(ended) == PLAN.nodes
    failures = {
        (row["node"], protocol): drops
        for row in ended
        for protocol, drops in row["drops"].items()
        if {"machine-failure", "handler-failure"} & set(drops)
    }
    assert failures == {}
    assert [row for row in harness.journal if row["what"] == "failed"] == []


def test_logs_hold_no_traceback(harness: Harness) -> None:
    logs = [path.read_text() for path in Path(harness.folder).glob("*.log")]
    assert len(logs) == PLAN.nodes
    assert not any("Traceback" in log for log in logs)
