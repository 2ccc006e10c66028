"""A recorded run as a replay reads and repeats it: from records written by hand, without sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.cli.replay import RecordedRun, read_run, simulate_again, write_log
from earshot.errors import UsageError
from earshot.events import Event, EventType
from earshot.filters import Filter, Subscription
from earshot.geometry import Area, Circle, Position, Proximity
from earshot.protocols.machine import Announcement
from earshot.records import Kind, Record
from earshot.records.details import JoinDetail, SubscribeDetail, write_announcement, write_detail
from earshot.simulation.workload.actions import Unannounce, Unsubscribe

START = 1_800_000_000.0
AREA = Proximity(Circle(50.0), Position(1.0, 2.0))
REGION = Area(Circle(9.0), Position(3.0, 4.0))


class Recorder:
    """Records of nodes, by seconds since the first one."""

    def __init__(self, protocol: str = "flooding", range_m: float | None = 150.0) -> None:
        self.protocol, self.range_m = protocol, range_m
        self.records: list[Record] = []

    def add(self, at: float, node: str, kind: Kind, **columns: Any) -> None:
        self.records.append(Record(START + at, node, kind, **columns))

    def join(self, at: float, node: str, x_m: float, **settings: Any) -> None:
        detail = write_detail(JoinDetail(self.protocol, settings, emulate_range_m=self.range_m, reason="started"))
        self.add(at, node, Kind.JOIN, detail=detail, x_m=x_m, y_m=0.0)

    def stay(self, at: float, *nodes: str) -> None:
        """The nodes are still there."""
        for node in nodes:
            self.add(at, node, Kind.NOTE)

    def leave(self, at: float, node: str) -> None:
        self.add(at, node, Kind.LEAVE, detail="stopped")

    def subscribe(self, at: float, node: str, id: str, filter: str, region: Area | None = None) -> None:
        self.add(at, node, Kind.SUBSCRIBE, subscription=id, detail=write_detail(SubscribeDetail(filter, region)))

    def publish(self, at: float, node: str, id: str, n: int, **given: Any) -> None:
        event = Event("Siren", {"n": n}, id=id, source=node, position=Position(9.0, 9.0), time=START + at, **given)
        self.add(at, node, Kind.PUBLISH, event=id, detail=event.to_json().decode())

    def deliver(self, at: float, node: str, id: str, event: str) -> None:
        self.add(at, node, Kind.DELIVER, subscription=id, event=event)

    def write(self, folder: Path, *more: bytes) -> Path:
        lines = [msgspec.json.encode(record) for record in self.records]
        (folder / "nodes.jsonl").write_bytes(b"".join(line + b"\n" for line in [*lines, *more]))
        return folder

    def deliveries(self, folder: Path) -> set[Any]:
        """What is delivered when the run is repeated."""
        return simulate_again(read_run(self.write(folder)))


def test_a_recording_says_what_each_application_did_and_which_nodes_heard_each_other(tmp_path: Path) -> None:
    tape = Recorder()
    tape.join(2.0, "b", 100.0, repeats=1)
    tape.join(0.0, "a", 0.0, repeats=1)
    tape.add(3.0, "b", Kind.ANNOUNCE, detail=write_announcement(EventType("Siren"), AREA))
    tape.subscribe(4.0, "b", "b/1", "Siren: n > 1", REGION)
    tape.publish(5.0, "a", "a-7f-1", 1)
    tape.publish(6.0, "a", "a-7f-2", 2, lifespan_s=5.0, priority=1)
    tape.publish(6.5, "b", "b-9c-1", 3)
    for node, peer in (("b", "a"), ("a", "b")):
        tape.add(6.6, node, Kind.RECEIVE, peer=peer)
    tape.deliver(6.7, "b", "b/1", "a-7f-2")
    tape.deliver(6.7, "b", "b/1", "of an earlier run")
    tape.add(7.0, "b", Kind.POSITION, x_m=110.0, y_m=5.0)
    tape.add(7.5, "b", Kind.POSITION, x_m=110.0)
    tape.add(8.0, "b", Kind.UNSUBSCRIBE, subscription="b/1")
    tape.add(9.0, "b", Kind.UNANNOUNCE, detail="Siren")
    run = read_run(tape.write(tmp_path, b"no record"))
    assert (run.protocol, run.settings, run.range_m, run.duration_s) == ("flooding", {"repeats": 1}, 150.0, 9.5)
    assert run.events == {"a-7f-1": "a-0", "a-7f-2": "a-1", "b-9c-1": "b-0"}
    assert run.deliveries == {("b", "b/1", "a-1"), ("b", "b/1", "of an earlier run")}
    assert (run.heard, len(run.damaged)) == ({("a", "b")}, 1)
    assert run.knots == {"a": [(0.0, 0.0, 0.0)], "b": [(2.0, 100.0, 0.0), (7.0, 110.0, 5.0)]}
    assert run.actions == [
        (3.0, "b", Announcement(EventType("Siren"), AREA)),
        (4.0, "b", Subscription("b/1", "b", Filter.parse("Siren: n > 1"), REGION)),
        (5.0, "a", Event("Siren", {"n": 1})),
        (6.0, "a", Event("Siren", {"n": 2}, lifespan_s=5.0, priority=1)),
        (6.5, "b", Event("Siren", {"n": 3})),
        (8.0, "b", Unsubscribe("b/1")),
        (9.0, "b", Unannounce("Siren")),
    ]


def test_a_recording_without_a_start_or_with_other_settings_is_refused(tmp_path: Path) -> None:
    tape = Recorder()
    tape.join(0.0, "a", 0.0)
    tape.publish(1.0, "b", "b-1", 1)
    with pytest.raises(UsageError, match="the spool does not say how 'b' started; are segments missing"):
        read_run(tape.write(tmp_path))
    for protocol, range_m, settings in (("gossip", 150.0, {}), ("flooding", 99.0, {}), ("flooding", 150.0, {"x": 1})):
        other = Recorder(protocol, range_m)
        other.join(1.0, "b", 0.0, **settings)
        other.records.insert(0, tape.records[0])
        with pytest.raises(UsageError, match=f"'b' ran {protocol} with other settings than the rest"):
            read_run(other.write(tmp_path))


def test_the_simulator_repeats_what_was_within_the_range_from_node_to_node(tmp_path: Path) -> None:
    tape = Recorder()
    for number, node in enumerate("abcd"):
        tape.join(0.0, node, (0.0, 100.0, 200.0, 400.0)[number])
        tape.subscribe(1.0, node, f"{node}/1", "Siren: n > 1")
    tape.publish(2.0, "a", "a-7f-1", 1)
    tape.publish(3.0, "a", "a-7f-2", 2)
    tape.stay(9.0, *"abcd")
    assert tape.deliveries(tmp_path) == {(node, f"{node}/1", "a-1") for node in "bc"}, "d is 200 m from the next"


def test_without_a_range_the_nodes_that_heard_each_other_are_linked_wherever_they_are(tmp_path: Path) -> None:
    tape = Recorder(range_m=None)
    for node in "abc":
        tape.join(0.0, node, 9000.0 if node == "b" else 0.0)
        tape.subscribe(1.0, node, f"{node}/1", "Siren: true")
    tape.publish(2.0, "a", "a-7f-1", 1)
    tape.add(2.1, "b", Kind.RECEIVE, peer="a")
    tape.add(2.2, "b", Kind.RECEIVE, peer="somebody else")
    tape.stay(9.0, *"abc")
    assert tape.deliveries(tmp_path) == {("b", "b/1", "a-0")}


@pytest.mark.parametrize(("last_s", "arrives"), [(5.6, True), (5.4, False)])
def test_a_node_stays_half_a_second_after_its_last_record(last_s: float, arrives: bool, tmp_path: Path) -> None:
    tape = Recorder()
    tape.join(0.0, "a", 0.0)
    tape.join(0.0, "b", 100.0)
    tape.subscribe(1.0, "b", "b/1", "Siren: true")
    tape.stay(last_s, "b")
    tape.publish(6.0, "a", "a-7f-1", 1)
    assert tape.deliveries(tmp_path) == ({("b", "b/1", "a-0")} if arrives else set())


def test_the_applications_of_a_node_end_with_it_and_the_node_is_away_until_it_starts_again(tmp_path: Path) -> None:
    tape = Recorder()
    tape.join(0.0, "a", 0.0)
    tape.join(0.0, "b", 100.0)
    tape.subscribe(1.0, "b", "b/1", "Siren: true")
    tape.publish(2.0, "a", "first", 1)
    tape.leave(3.0, "b")
    tape.publish(4.0, "a", "while b is away", 2, lifespan_s=0.1)
    tape.join(5.0, "b", 100.0)
    tape.publish(6.0, "a", "nobody asks", 3, lifespan_s=0.1)
    tape.subscribe(7.0, "b", "b/2", "Siren: true")
    tape.publish(8.0, "a", "last", 4, lifespan_s=0.1)
    tape.stay(9.0, *"ab")
    assert tape.deliveries(tmp_path) == {("b", "b/1", "a-0"), ("b", "b/2", "a-3")}


def test_a_recorded_plug_in_is_not_loaded_unless_it_is_named() -> None:
    for protocol, hint in (("town.radio:Radio", "; for a plug-in give --protocol module:Class"), ("unknown", "")):
        with pytest.raises(UsageError) as caught:
            simulate_again(RecordedRun(protocol))
        assert str(caught.value).startswith(f"the recording ran {protocol!r}: ")
        assert ("for a plug-in give --protocol" in str(caught.value)) is bool(hint)
        assert str(caught.value).endswith(hint)


def test_a_log_has_the_records_in_order_and_a_name_that_says_what_it_is(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from earshot.simulation.engine.log import arrow_schema

    tape = Recorder()
    tape.leave(5.0, "a")
    tape.join(0.0, "a", 7.0)
    (tmp_path / "spool").mkdir()
    spool = tape.write(tmp_path / "spool")
    with pytest.raises(UsageError, match=r"a log's name ends in \.parquet"):
        write_log(spool, tmp_path / "run.csv")
    write_log(spool, tmp_path / "run.parquet")
    table = parquet.read_table(tmp_path / "run.parquet")
    assert table.schema.equals(arrow_schema())
    rows = [(row["time"], row["kind"], row["hops"], row["peer"]) for row in table.to_pylist()]
    assert rows == [(START, "join", -1, ""), (START + 5.0, "leave", -1, "")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.parquet", "spool"]


def test_a_replay_writes_the_log_that_is_asked_for_and_compares(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    tape = Recorder()
    tape.join(0.0, "a", 0.0)
    tape.join(0.0, "b", 100.0)
    tape.subscribe(1.0, "b", "b/1", "Siren: true")
    tape.publish(2.0, "a", "a-7f-1", 1)
    tape.deliver(2.1, "b", "b/1", "a-7f-1")
    tape.stay(9.0, *"ab")
    (tmp_path / "spool").mkdir()
    spool, log = tape.write(tmp_path / "spool"), tmp_path / "run.parquet"
    done = CliRunner().invoke(earshot, ["replay", str(spool), "--log", str(log)], standalone_mode=False)
    assert (done.return_value, log.exists()) == (0, True), done.output
    assert done.stdout == "flooding, 2 nodes, 1 event: 1 deliveries in both, 0 only live, 0 only simulated\n"
