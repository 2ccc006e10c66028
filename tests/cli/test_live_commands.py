"""What the commands that run a node ask of it and print, with a node that has no network."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from earshot import Event
from earshot.cli import earshot, nodes
from earshot.cli.live import _line_content, _value
from earshot.cli.nodes import first_done, make_node, parse_location, time_limit
from earshot.errors import LocationUnavailable, UsageError
from earshot.events import EventType
from earshot.geometry import Area, Circle, Position
from earshot.live import Fixed, Gpsd, NmeaFile, TracePlayback
from earshot.live.bridge.bridge import mark_of
from earshot.live.bridge.mqtt import MqttBroker
from earshot.live.node import FenceCrossing


class Alone:
    """In place of a node: it does nothing but remember what it is asked."""

    name = "car"

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.host = SimpleNamespace(
            counts=Counter(receive=1200, send=3),
            transport=SimpleNamespace(address=("127.0.0.1", 4000)),
            on_deliver=None,
        )
        self.drops = {"duplicate": 2}
        self.events: list[Event] = []
        self.crossings: list[FenceCrossing] = []
        self.near: list[Any] = []

    async def __aenter__(self) -> Alone:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.asked.append("ended")

    def subscribe(self, *given: Any, **named: Any) -> Stream:
        self.asked.append(("subscribe", *given, named))
        return Stream(self.events)

    def fences(self, event_type: str | None, **named: Any) -> Stream:
        self.asked.append(("fences", event_type, named))
        return Stream(self.crossings)

    async def announce(self, wanted: EventType, within: Any) -> Alone:
        self.asked.append(("announce", wanted, within))
        return self

    async def publish(self, content: Any) -> Event:
        self.asked.append(dict(content))
        return Event("Siren", dict(content), id="car-1", source="car", time=5.0)

    def peers(self) -> list[Any]:
        return self.near

    @property
    def published(self) -> list[Any]:
        return [one for one in self.asked if isinstance(one, dict)]


class Stream:
    """What waits is read; then nothing comes any more."""

    dropped = 0

    def __init__(self, waiting: list[Any]) -> None:
        self._waiting: Iterator[Any] = iter(waiting)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Any:
        for one in self._waiting:
            return one
        return await asyncio.Event().wait()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Alone:
    node = Alone()
    for command in ("live", "bridge"):
        monkeypatch.setattr(f"earshot.cli.{command}.make_node", lambda _: node)
    return node


def printed(*arguments: str, given: str | None = None) -> list[str]:
    done = CliRunner().invoke(earshot, list(arguments), input=given)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout.splitlines()


# A node.


def test_a_node_says_where_it_is_and_what_it_counted(alone: Alone) -> None:
    assert printed("node", "--for", "0") == [
        "car is up at 127.0.0.1:4000", "car heard 1,200 packets and sent 3",
    ]  # fmt: skip
    first, last = map(json.loads, printed("node", "--count", "1200", "--json"))
    assert first == {"node": "car", "address": "127.0.0.1:4000"}
    assert last == {"node": "car", "counts": {"receive": 1200, "send": 3}, "drops": {"duplicate": 2}}
    assert alone.asked == ["ended", "ended"]


def test_a_nodes_metrics_are_served_until_it_ends(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []

    def serve(address: str, metrics: Any) -> Any:
        served.append((address, metrics.node))
        return lambda: served.append("ended")

    monkeypatch.setattr("earshot.cli.options.serve_metrics", serve)
    printed("node", "--for", "0", "--metrics", "127.0.0.1:9465")
    assert served == [("127.0.0.1:9465", alone), "ended"]


OPTIONS: dict[str, Any] = {
    "name": "car", "protocol": None, "settings": (), "settings_file": None, "location": None, "origin": None,
    "interface": "", "group": None, "peers": (), "listen": "", "emulate_range": None, "key_file": None,
    "identity": None, "trust": None, "require_signed": False, "precision": None, "memory": None, "rate_limit": None,
    "bit_rate": None, "spool": None,
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "protocol": "hearsay", "settings": {}, "location": None, "origin": None, "precision_m": None, "key_file": None,
    "identity": None, "trust": None, "require_signed": False, "spool": None, "interface": "", "peers": (),
    "listen": "", "emulate_range_m": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"group": "239.1.1.1"}, {"group": "239.1.1.1:47474"}),
        ({"group": "239.1.1.1:5", "listen": ":7", "interface": "lo"},
         {"group": "239.1.1.1:5", "listen": ":7", "interface": "lo"}),
        ({"memory": 16e6, "rate_limit": 9.0, "bit_rate": 6e6},
         {"memory_bytes": 16_000_000, "rate_limit": 9.0, "bit_rate_bps": 6e6}),
        ({"protocol": "cbf", "settings": ("range_m=90", "longest_wait_s=0.1")},
         {"protocol": "cbf", "settings": {"range_m": "90", "longest_wait_s": "0.1"}}),
        ({"origin": (53.0, -2.0), "precision": 100.0, "key_file": "k", "identity": "i", "trust": "t",
          "require_signed": True, "spool": "s", "peers": ["a:1"], "listen": "5", "emulate_range": 200.0},
         {"origin": (53.0, -2.0), "precision_m": 100.0, "key_file": "k", "identity": "i", "trust": "t",
          "require_signed": True, "spool": "s", "peers": ("a:1",), "listen": "5", "emulate_range_m": 200.0}),
    ],
)  # fmt: skip
def test_a_node_is_made_as_the_options_say(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    monkeypatch.setattr("earshot.live.node.Node", lambda name, **given: (name, given))
    assert make_node({**OPTIONS, **options}) == ("car", {**PLAIN, **expected})


def test_settings_of_a_file_count_where_no_option_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("earshot.live.node.Node", lambda _, **given: (given["protocol"], given["settings"]))
    file = tmp_path / "advice.toml"
    file.write_text('protocol = "cbf"\n[settings]\nlongest_wait_s = 0.1\n[network]\nrange_m = 90.0\n')
    found: Any = make_node({**OPTIONS, "settings_file": str(file)})
    assert found == ("cbf", {"range_m": 90.0, "longest_wait_s": 0.1})
    found = make_node({**OPTIONS, "settings_file": str(file), "settings": ("range_m=70",)})
    assert found == ("cbf", {"range_m": "70", "longest_wait_s": 0.1})


@pytest.mark.parametrize(
    "options",
    [{"peers": ("a:1",)}, {"listen": "5"}, {"peers": ("a:1",), "interface": "lo"}],
)
def test_a_group_needs_multicast(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="without multicast there is no group"):
        make_node({**OPTIONS, "group": "239.1.1.1", **options})


def test_a_node_without_a_name_has_that_of_its_host_and_process_or_of_its_identity(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("earshot.live.node.Node", lambda name, **_: name)
    monkeypatch.setattr(nodes.os, "uname", lambda: SimpleNamespace(nodename="car.example.org"))
    assert make_node({**OPTIONS, "name": None}) == f"car-{os.getpid()}"
    monkeypatch.chdir(tmp_path)
    printed("identity", "new", "ambulance-7")
    assert make_node({**OPTIONS, "name": None, "identity": "ambulance-7.identity"}) == "ambulance-7"
    assert make_node({**OPTIONS, "identity": "ambulance-7.identity"}) == "car"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fixed:53.5,-2.25", (Fixed, {"_lat_lon": (53.5, -2.25)})),
        ("plane:10,-20", (Fixed, {"_at": Position(10.0, -20.0), "_lat_lon": None})),
        ("gpsd", (Gpsd, {"_address": ("127.0.0.1", 2947)})),
        ("gpsd:box:99", (Gpsd, {"_address": ("box", 99)})),
        ("nmea:/dev/gps", (NmeaFile, {"_path": Path("/dev/gps")})),
        ("trace:town.csv#bus", (TracePlayback, {"_path": Path("town.csv"), "_node": "bus"})),
        ("trace:town.csv", (TracePlayback, {"_path": Path("town.csv"), "_node": ""})),
    ],
)
def test_a_location_is_one_of_these_forms(text: str, expected: tuple[type, dict[str, Any]]) -> None:
    found = parse_location(text)
    kind, values = expected
    assert (type(found), {name: getattr(found, name) for name in values}) == (kind, values)


@pytest.mark.parametrize(
    "text", ["mars", "fixed", "fixed:1", "plane:a,b", "gpsd:99", "gpsd:box:", "gpsd:box:x", "nmea", "nmea:", "trace:"]
)
def test_a_location_of_another_form_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(LocationUnavailable, match="write fixed:LAT,LON, plane:X,Y in metres"):
        parse_location(text)


def test_the_first_that_is_done_ends_the_others_and_its_failure_is_reported() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("forever")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise UsageError("broken")

    async def main() -> None:
        await first_done(forever(), *time_limit(0.0))
        with pytest.raises(UsageError, match="broken"):
            await first_done(forever(), fails(), *time_limit(None))

    asyncio.run(main())
    assert ended == ["forever"] * 2


# Subscribing.


def siren(speed: int, **more: Any) -> Event:
    return Event("Siren", {"speed": speed}, id=f"van-{speed}", source="van", time=0.0, **more)


def test_sub_prints_events_until_there_are_as_many_as_wanted(alone: Alone) -> None:
    alone.events = [siren(5), siren(18), siren(20)]
    assert printed("sub", "Siren", "--where", "speed > 1", "--count", "2", "--queue", "7") == [
        "1970-01-01T00:00:00.000+00:00 van Siren speed=5",
        "1970-01-01T00:00:00.000+00:00 van Siren speed=18",
    ]
    assert alone.asked == [("subscribe", "Siren", "speed > 1", {"filter": None, "queue": 7}), "ended"]
    (line,) = printed("sub", "--filter", "Siren: speed > 1", "--count", "1", "--json")
    assert json.loads(line)["content"] == {"speed": 5}
    assert alone.asked[2] == ("subscribe", None, None, {"filter": "Siren: speed > 1", "queue": 10_000})
    assert len(printed("sub", "Siren", "--for", "0")) == 3


def test_sub_says_how_many_events_it_lost(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    alone.events = [siren(5)]
    done = CliRunner().invoke(earshot, ["sub", "Siren", "--count", "1"])
    assert done.stderr == ""
    monkeypatch.setattr(Stream, "dropped", 1234)
    done = CliRunner().invoke(earshot, ["sub", "Siren", "--count", "1"])
    assert done.stderr == "earshot: 1,234 events were lost: they arrived faster than they were printed\n"


def test_sub_prints_crossings_of_fences_and_of_nodes_nearby(alone: Alone) -> None:
    alone.crossings = [FenceCrossing("enter", "van", "Siren", 0.0), FenceCrossing("nearby", "bus 3", "", 1.0)]
    alone.events = [siren(5)]
    moment = "1970-01-01T00:00:0"
    assert printed("sub", "Siren", "--fence", "--nearby", "50m", "--for", "0") == [
        f"{moment}0.000+00:00 van Siren speed=5",
        f"{moment}0.000+00:00 enter van Siren",
        f'{moment}1.000+00:00 nearby "bus 3"',
    ]
    assert ("fences", "Siren", {"near_m": 50.0, "queue": 10_000}) in alone.asked
    lines = printed("sub", "Siren", "--nearby", "0.1km", "--for", "0", "--json", "--queue", "3")
    assert json.loads(lines[1]) == {"what": "enter", "peer": "van", "event_type": "Siren", "time": 0.0}
    assert ("fences", None, {"near_m": 100.0, "queue": 3}) in alone.asked


def test_sub_wants_a_type_with_these_attributes(alone: Alone) -> None:
    printed("sub", "Siren", "--quality", "priority=2", "--for", "0")
    assert alone.asked[0][1] == EventType("Siren", {}, {"priority": "2"})
    for options in (["--fence"], ["--quality", "priority=2"]):
        refused = CliRunner().invoke(earshot, ["sub", "--filter", "Siren: n > 1", *options]).exception
        assert isinstance(refused, UsageError)
        assert f"{options[0]}" in str(refused)


# Publishing.


AT_ONCE = ("--settle", "0", "--linger", "0")


def test_pub_publishes_once_or_at_an_interval(alone: Alone) -> None:
    assert printed("pub", "Siren", "speed=18", "loud=true", "x=1.5", "tune=yelp", *AT_ONCE) == []
    assert alone.published == [{"speed": 18, "loud": True, "x": 1.5, "tune": "yelp"}]
    assert alone.asked[0] == ("announce", EventType("Siren"), None)
    lines = printed("pub", "Siren", "n=1", "--every", "0", "--count", "3", "--json", *AT_ONCE)
    assert [json.loads(line)["content"] for line in lines] == [{"n": 1}] * 3
    assert alone.published[1:] == [{"n": 1}] * 3
    printed("pub", "Siren", "n=2", "--count", "1", *AT_ONCE)
    assert alone.published[4:] == [{"n": 2}]


def test_pub_publishes_each_line_until_there_are_as_many_as_wanted(alone: Alone) -> None:
    given = '{"celsius": 21.5}\n\ncelsius=22 room=hall\n{"celsius": 23}\n'
    every = [{"celsius": 21.5}, {"celsius": 22, "room": "hall"}, {"celsius": 23}]
    printed("pub", "Reading", "--stdin", *AT_ONCE, given=given)
    assert alone.published == every
    printed("pub", "Reading", "--stdin", "--count", "2", *AT_ONCE, given=given)
    assert alone.published[3:] == every[:2]


def test_pub_waits_before_the_first_event_and_after_the_last(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(seconds: float) -> None:
        alone.asked.append(seconds)

    monkeypatch.setattr("earshot.cli.live.asyncio.sleep", sleep)
    printed("pub", "Siren", "n=1", "--every", "3s", "--count", "2")
    assert alone.asked[1:] == [0.5, {"n": 1}, 3.0, {"n": 1}, 0.5, "ended"]


def test_pub_announces_an_area_that_moves_or_stays_and_attributes(alone: Alone) -> None:
    printed("pub", "Siren", "--within", "circle:300m", "--quality", "priority=2", *AT_ONCE)
    assert alone.asked[0] == ("announce", EventType("Siren", {}, {"priority": "2"}), Circle(300.0))
    alone.asked.clear()
    printed("pub", "Siren", "--within", "circle:300m", "--at", "10,20", *AT_ONCE)
    assert alone.asked[0][2] == Area(Circle(300.0), Position(10.0, 20.0))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--stdin", "a=1"], "--stdin gives the values"),
        (["--stdin", "--every", "1s"], "--stdin gives the values"),
        (["--count", "2"], "--count 2 needs --every or --stdin"),
        (["--at", "1,2"], "--at needs --within"),
    ],
)
def test_pub_refuses_what_contradicts_itself(alone: Alone, arguments: list[str], reason: str) -> None:
    refused = CliRunner().invoke(earshot, ["pub", "Siren", *arguments, *AT_ONCE]).exception
    assert isinstance(refused, UsageError)
    assert reason in str(refused)
    assert alone.asked == []


def test_a_line_is_a_json_object_or_pairs() -> None:
    assert [_value(text) for text in ("true", "false", "7", "-1.5", "1e3", "x y", "")] == [
        True, False, 7, -1.5, 1000.0, "x y", "",
    ]  # fmt: skip
    assert _line_content(' {"a": [1]}') == {"a": [1]}
    with pytest.raises(UsageError, match=r"not a JSON object: '\{x'"):
        _line_content("{x")


# Peers.


def test_peers_are_a_table_or_json(alone: Alone) -> None:
    assert printed("peers", "--for", "0") == ["no node was heard"]
    assert printed("peers", "--for", "0", "--json") == []
    alone.near = [
        SimpleNamespace(name="bus", address=("10.0.0.2", 5), position=Position(1.5, -20.0), heard_s_ago=0.12345),
        SimpleNamespace(name="van", address=("10.0.0.3", 6), position=None, heard_s_ago=1.0),
    ]
    assert printed("peers", "--for", "0") == [
        "node     address  position",
        "----  ----------  --------",
        "bus   10.0.0.2:5   1.5,-20",
        "van   10.0.0.3:6         -",
    ]
    assert [json.loads(line) for line in printed("peers", "--for", "0", "--json")] == [
        {"name": "bus", "address": "10.0.0.2:5", "x_m": 1.5, "y_m": -20.0, "heard_s_ago": 0.123},
        {"name": "van", "address": "10.0.0.3:6", "x_m": None, "y_m": None, "heard_s_ago": 1.0},
    ]


# A bridge.


class Bridged:
    """In place of a bridge: it moved these messages."""

    waiting = 2000
    counts: dict[str, int] = {}  # noqa: RUF012
    made: tuple[Any, ...] = ()

    def __init__(self, node: Any, *given: Any, **named: Any) -> None:
        type(self).made = (node.name, *given, named)

    async def __aenter__(self) -> Bridged:
        return self

    async def __aexit__(self, *_: object) -> None:
        type(self).waiting = 0


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({"out": 1200, "in": 3}, "1,200 events out, 3 in"),
        ({}, "0 events out, 0 in"),
        ({"in": 1, "refused": 1000, "lost": 0, "doubles": 2}, "0 events out, 1 in; 2 doubles, 1,000 refused"),
    ],
)
def test_a_bridge_says_what_it_moved(
    alone: Alone, monkeypatch: pytest.MonkeyPatch, counts: dict[str, int], line: str
) -> None:
    monkeypatch.setattr("earshot.live.bridge.Bridge", Bridged)
    monkeypatch.setattr(Bridged, "counts", counts)
    monkeypatch.setattr(Bridged, "waiting", 2000)
    asked = ("bridge", "mqtt://office", "--out", "Siren -> city/{source}", "--for", "0")
    assert printed(*asked) == ["car bridges to mqtt://office:1883; 2,000 messages wait from an earlier run", line]
    (reported,) = printed(*asked, "--json")
    assert json.loads(reported) == {"node": "car", "broker": "mqtt://office:1883", **counts, "waiting": 0}
    assert alone.asked == ["ended", "ended"]


def test_a_bridge_has_the_queue_the_rules_and_a_name_by_its_broker(
    alone: Alone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named: list[Any] = []
    monkeypatch.setattr("earshot.live.bridge.Bridge", Bridged)
    monkeypatch.setattr("earshot.cli.bridge.make_node", lambda options: named.append(options["name"]) or alone)
    (tmp_path / "rules.toml").write_text('[[to_mqtt]]\nevents = "Siren"\ntopic = "a"\n')
    (tmp_path / "secret").write_text("hush\n")
    printed("bridge", "mqtts://me@office:9", "--map", str(tmp_path / "rules.toml"), "--in", "b -> Closure", "--queue",
            "there/q.db", "--queue-mb", "3", "--network", "n", "--password-file", str(tmp_path / "secret"), "--ca-file",
            "ca", "--certificate-file", "c", "--certificate-key-file", "k", "--for", "0")  # fmt: skip
    broker = MqttBroker("office", 9, True, "me", "hush", "ca", "c", "k")
    name, at, mapping, queue, more = Bridged.made
    assert (name, at, queue, more) == ("car", broker, "there/q.db", {"network": "n", "queue_bytes": 3_000_000})
    assert (len(mapping.to_mqtt), len(mapping.from_mqtt)) == (1, 1)
    printed("bridge", "mqtt://office", "--out", "Siren -> a", "--name", "east", "--for", "0")
    mark = mark_of(MqttBroker("office", 1883))
    assert named == [f"{mark_of(broker)}-q", f"{mark}-east"]
    assert Bridged.made[-1] == {"network": "earshot", "queue_bytes": 256_000_000}
