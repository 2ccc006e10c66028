"""The connection to a broker without a broker: a client that only keeps notes stands in for paho's."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("paho.mqtt", reason="paho-mqtt is not installed")

from paho.mqtt import client as paho
from paho.mqtt.enums import MQTTProtocolVersion

from earshot.errors import UsageError
from earshot.live.bridge import mqtt
from earshot.live.bridge.mqtt import Connection, MqttBroker, UserProperties

BROKER = MqttBroker("broker.example", 1884, user="ann", password="open sesame")
WEEK_S = 7 * 86_400


class Client:
    """Keeps note of every call; `connect` does what a test says."""

    last: Client

    def __init__(self, version: Any, client_id: str, **options: Any) -> None:
        self.options = {"client_id": client_id, **options}
        self.calls: list[tuple[Any, ...]] = []
        self.on: dict[str, Callable[..., Any]] = {}
        Client.last = self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("on_"):
            raise AttributeError(name)

        def noted(*arguments: Any, **more: Any) -> Any:
            self.calls.append((name, *arguments, *more.items()))
            return self.on[name](*arguments) if name in self.on else None

        return noted

    def said(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]


class Notes:
    """What the connection tells its bridge."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.acknowledged: list[int] = []
        self.changed: list[bool] = []

    def connection(self, broker: MqttBroker = BROKER, topics: list[tuple[str, int]] | None = None) -> Connection:
        return Connection(
            broker, "town", [("news/#", 1)] if topics is None else topics, received=self.received.append,
            acknowledged=self.acknowledged.append, changed=self.changed.append,
        )  # fmt: skip


@pytest.fixture(autouse=True)
def _no_paho(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paho, "Client", Client)


def in_loop(story: Callable[[Notes], Awaitable[None]]) -> None:
    async def whole() -> None:
        await story(Notes())

    asyncio.run(whole())


def answer(failure: bool, words: str = "") -> Any:
    class Reason:
        is_failure = failure

        def __str__(self) -> str:
            return words

    return Reason()


def test_a_client_speaks_mqtt_5_acknowledges_itself_and_logs_in() -> None:
    async def story(notes: Notes) -> None:
        notes.connection()
        client = Client.last
        assert client.options == {
            "client_id": "town", "protocol": MQTTProtocolVersion.MQTTv5, "manual_ack": True,
            "reconnect_on_failure": False,
        }  # fmt: skip
        assert client.said("username_pw_set") == [("ann", "open sesame")]
        assert client.said("tls_set") == []
        notes.connection(MqttBroker("h", 1, user="ann"))
        assert Client.last.said("username_pw_set") == [("ann", None)]
        notes.connection(MqttBroker("h", 1))
        assert Client.last.said("username_pw_set") == []

    in_loop(story)


def test_certificates_are_given_to_the_client_and_bad_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(notes: Notes) -> None:
        safe = MqttBroker("h", 8883, tls=True, ca_file="ca", certificate_file="certificate", key_file="key")
        notes.connection(safe)
        assert Client.last.said("tls_set") == [("ca", "certificate", "key")]

        def refuse(*_: Any) -> None:
            raise OSError("no such file")

        monkeypatch.setattr(Client, "tls_set", refuse, raising=False)
        with pytest.raises(UsageError, match="the certificates cannot be used: no such file"):
            notes.connection(safe)

    in_loop(story)


def test_as_many_messages_may_be_under_way_from_the_broker_as_to_it_for_a_session_of_a_week() -> None:
    async def story(notes: Notes) -> None:
        connection = notes.connection()
        client = Client.last
        connection._connect()
        ((host, port, keep_alive_s, clean, (_, asked)),) = client.said("connect")
        assert (host, port, clean) == ("broker.example", 1884, ("clean_start", False))
        assert asked.SessionExpiryInterval == WEEK_S
        assert client.said("max_inflight_messages_set") == [(asked.ReceiveMaximum,)] == [(200,)]
        assert client.said("max_queued_messages_set") == [(0,)], "there is no bound beside it"
        assert 0 < keep_alive_s <= 60

    in_loop(story)


def test_a_connection_subscribes_without_its_own_messages_and_tells_its_bridge_afterwards() -> None:
    async def story(notes: Notes) -> None:
        connection = notes.connection(topics=[("news/#", 1), ("ticks", 0)])
        connection.problem = "refused before"
        connection._on_connect(None, None, None, answer(failure=False), None)
        assert (connection.connected, connection.problem, connection.connections, notes.changed) == (True, "", 1, [])
        ((wanted,),) = Client.last.said("subscribe")
        assert [(topic, how.QoS, how.noLocal, how.retainHandling) for topic, how in wanted] == [
            ("news/#", 1, True, 1), ("ticks", 0, True, 1),
        ]  # fmt: skip
        await asyncio.sleep(0)
        assert notes.changed == [True]
        for _ in range(2):
            connection._on_disconnect(None, None, None, None, None)
        assert (connection.connected, notes.changed) == (False, [True, False])
        connection._on_connect(None, None, None, answer(failure=False), None)
        assert connection.connections == 2

    in_loop(story)


def test_a_connection_without_topics_subscribes_to_nothing() -> None:
    async def story(notes: Notes) -> None:
        notes.connection(topics=[])._on_connect(None, None, None, answer(failure=False), None)
        assert Client.last.said("subscribe") == []

    in_loop(story)


def test_a_broker_that_refuses_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story(notes: Notes) -> None:
        connection = notes.connection()
        for words in ("Not authorized", "Not authorized", "Banned"):
            connection._on_connect(None, None, None, answer(failure=True, words=words), None)
        await asyncio.sleep(0)
        assert (connection.connected, connection.connections, notes.changed) == (False, 0, [])
        assert connection.problem == "refused: Banned"
        with pytest.raises(OSError, match="refused: Banned"):
            await connection._answered()
        connection.problem = ""
        with pytest.raises(OSError, match="the broker closed the connection"):
            await connection._answered()

    with caplog.at_level(logging.WARNING, logger="earshot.bridge"):
        in_loop(story)
    assert [record.getMessage() for record in caplog.records] == [
        "mqtt://broker.example:1884: refused: Not authorized; trying again",
        "mqtt://broker.example:1884: refused: Banned; trying again",
    ]


def test_messages_go_out_with_their_properties_and_in_and_are_acknowledged_while_connected() -> None:
    async def story(notes: Notes) -> None:
        connection = notes.connection()
        client = Client.last
        client.on["publish"] = lambda *_: SimpleNamespace(mid=17)
        assert connection.publish("city", b"hi", 1, True, {"a": "b"}) == 17
        ((topic, payload, qos, retain, properties),) = client.said("publish")
        assert (topic, payload, qos, retain) == ("city", b"hi", 1, True)
        assert properties.pack() == UserProperties({"a": "b"}).pack()
        client.on_message(None, None, "a message")  # type: ignore[attr-defined]
        client.on_publish(None, None, 17, "more", "yet more")  # type: ignore[attr-defined]
        assert (notes.received, notes.acknowledged) == (["a message"], [17])
        sure, unsure = SimpleNamespace(mid=5, qos=1), SimpleNamespace(mid=6, qos=0)
        connection.acknowledge(sure)  # type: ignore[arg-type]
        assert client.said("ack") == [], "the broker sends it again with the next connection"
        connection.connected = True
        connection.acknowledge(sure)  # type: ignore[arg-type]
        connection.acknowledge(unsure)  # type: ignore[arg-type]
        assert client.said("ack") == [(5, 1)]

    in_loop(story)


def test_a_connection_that_stops_says_goodbye_before_it_closes() -> None:
    async def story(notes: Notes) -> None:
        connection = notes.connection()
        client = Client.last
        connection.start()
        tasks = list(connection._tasks)
        await asyncio.sleep(0)
        await connection.stop()
        assert [task.done() for task in tasks] == [True, True]
        assert [call[0] for call in client.calls][-3:] == ["disconnect", "loop_write", "_sock_close"]

    in_loop(story)


class Clock:
    """Stands for asyncio inside the module: time passes at once, and the waits are noted."""

    def __init__(self, longest: int) -> None:
        self.waits: list[float] = []
        self.longest = longest

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.waits.append(seconds)
        if len(self.waits) >= self.longest:
            raise asyncio.CancelledError

    async def to_thread(self, work: Callable[[], None]) -> None:
        work()

    async def wait_for(self, answered: Awaitable[None], limit_s: float) -> None:
        await answered


def test_attempts_come_after_twice_the_time_up_to_half_a_minute_and_soon_after_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = ["fails"] * 8 + ["connects", "fails", "fails"]
    clock = Clock(len(outcomes))

    async def story(notes: Notes) -> None:
        connection = notes.connection()

        def connect(*_: Any) -> None:
            if outcomes.pop(0) == "fails":
                raise OSError("no route")
            connection._on_connect(None, None, None, answer(failure=False), None)
            asyncio.get_running_loop().call_soon(connection._on_disconnect)

        Client.last.on["connect"] = connect
        monkeypatch.setattr(mqtt, "asyncio", clock)
        with pytest.raises(asyncio.CancelledError):
            await connection._stay_connected()
        assert (connection.problem, connection.connections) == ("no route", 1)

    in_loop(story)
    assert clock.waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 0.5, 0.5, 1.0]


def test_a_broker_that_does_not_answer_is_given_up_after_the_keep_alive_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1)
    limits: list[float] = []

    async def wait_for(answered: Any, limit_s: float) -> None:
        answered.close()
        limits.append(limit_s)
        raise TimeoutError

    async def story(notes: Notes) -> None:
        connection = notes.connection()
        monkeypatch.setattr(mqtt, "asyncio", clock)
        with pytest.raises(asyncio.CancelledError):
            await connection._stay_connected()
        assert connection.problem == "TimeoutError"
        connection._connect()
        assert limits == [Client.last.said("connect")[-1][2]]

    clock.wait_for = wait_for  # type: ignore[method-assign]
    in_loop(story)


def test_the_client_looks_after_its_keep_alive_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(3)

    async def story(notes: Notes) -> None:
        connection = notes.connection()
        monkeypatch.setattr(mqtt, "asyncio", clock)
        with pytest.raises(asyncio.CancelledError):
            await connection._keep_alive()
        assert (clock.waits, len(Client.last.said("loop_misc"))) == ([1.0, 1.0, 1.0], 2)

    in_loop(story)


def test_the_loop_watches_an_open_socket_and_leaves_a_closed_one_alone() -> None:
    async def story(notes: Notes) -> None:
        notes.connection()
        client, loop = Client.last, asyncio.get_running_loop()
        near, far = socket.socketpair()
        near.setblocking(False)
        try:
            client.on["loop_read"] = lambda: near.recv(10)
            client.on["loop_write"] = lambda: client.on_socket_unregister_write(None, None, near)  # type: ignore[attr-defined]
            client.on_socket_open(None, None, near)  # type: ignore[attr-defined]
            far.send(b"hello")
            client.on_socket_register_write(None, None, near)  # type: ignore[attr-defined]
            for _ in range(5):
                await asyncio.sleep(0)
            assert (len(client.said("loop_read")), len(client.said("loop_write"))) == (1, 1)
            client.on_socket_register_write(None, None, near)  # type: ignore[attr-defined]
            client.on_socket_close(None, None, near)  # type: ignore[attr-defined]
            assert (loop.remove_reader(near), loop.remove_writer(near)) == (False, False), "nobody watches it"
        finally:
            near.close()
            far.close()
        for reported in ("open", "close", "register_write", "unregister_write"):
            getattr(client, f"on_socket_{reported}")(None, None, near)

    in_loop(story)


def test_a_socket_that_another_thread_opens_is_watched_in_the_loops_own() -> None:
    async def story(notes: Notes) -> None:
        connection = notes.connection()
        where: list[int] = []

        def work(_: Any) -> None:
            where.append(threading.get_ident())

        here = threading.get_ident()
        connection._in_loop(work, None)  # type: ignore[arg-type]
        assert where == [here], "at once"
        await asyncio.to_thread(connection._in_loop, work, None)  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert where == [here, here]

    in_loop(story)


def test_a_password_file_without_a_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(UsageError, match="no password on its first line"):
        MqttBroker.at("mqtt://ann@h", str(tmp_path / "empty"))
