"""The connection to an MQTT broker, in the event loop of the node: one thread, nothing to lock.

paho handles the protocol (version 5). After a lost connection the bridge connects again, at first after half a second,
then at growing intervals; messages that the broker had not acknowledged are sent again.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from earshot.errors import UsageError

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage, SocketLike

logger = logging.getLogger("earshot.bridge")

FIRST_RETRY_S = 0.5
LONGEST_RETRY_S = 30.0
KEEP_ALIVE_S = 20
SESSION_S = 7 * 24 * 3600
"How long the broker keeps messages for a bridge that is away."
UNACKNOWLEDGED = 200
"At most this number of messages are on their way to the broker at once, and as many from it."


class UserProperties:
    """The user properties of a message, in the form of MQTT 5. paho's own class, which supports all properties, takes
    longer than the rest of the message."""

    __slots__ = ("_packed",)

    def __init__(self, properties: Mapping[str, str]) -> None:
        texts = [text.encode() for pair in properties.items() for text in pair]
        written = b"".join(
            b"\x26" * (number % 2 == 0) + len(text).to_bytes(2, "big") + text for number, text in enumerate(texts)
        )
        self._packed = _variable_length(len(written)) + written

    def pack(self) -> bytes:
        """The bytes that paho sends."""
        return self._packed


def _variable_length(number: int) -> bytes:
    """A number as MQTT writes it: seven bits in each byte, the low bits first; all bytes but the last have the eighth
    bit set."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


@dataclass(frozen=True, slots=True)
class MqttBroker:
    """Where the broker is and how to log in."""

    host: str
    port: int
    tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str | None = None
    "Certificates to trust instead of the system's."
    certificate_file: str | None = None
    key_file: str | None = None

    @classmethod
    def at(cls, url: str, password_file: str | None = None, **files: str | None) -> MqttBroker:
        """Read `mqtt://[USER@]HOST[:PORT]` or `mqtts://...`; the password comes from a file, never from the URL."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UsageError(f"cannot read {url!r}: {error}; write mqtt://HOST:PORT or mqtts://HOST:PORT") from None
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or parts.path.strip("/"):
            raise UsageError(f"cannot read {url!r}; write mqtt://HOST:PORT or mqtts://HOST:PORT")
        if parts.password:
            raise UsageError("a password in an address is seen by all users of the machine; give --password-file FILE")
        tls = parts.scheme == "mqtts"
        if any(files.values()) and not tls:
            raise UsageError("certificates need an address that begins with mqtts://")
        password = ""
        if password_file is not None:
            if not parts.username:
                raise UsageError("--password-file needs a user: mqtt://USER@HOST")
            password = _first_line(password_file)
        return cls(
            parts.hostname, port or (8883 if tls else 1883), tls, parts.username or "", password,
            files.get("ca_file"), files.get("certificate_file"), files.get("key_file"),
        )  # fmt: skip

    def __str__(self) -> str:
        return f"mqtt{'s' if self.tls else ''}://{self.host}:{self.port}"


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[0].strip()
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise UsageError(f"{path}: no password on its first line ({error})") from None


class Connection:
    """A connection that reconnects when it is lost. Callbacks run in the event loop."""

    def __init__(
        self,
        broker: MqttBroker,
        client_id: str,
        topics: list[tuple[str, int]],
        *,
        received: Callable[[MQTTMessage], None],
        acknowledged: Callable[[int], None],
        changed: Callable[[bool], None],
    ) -> None:
        try:
            from paho.mqtt import client as paho
            from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
        except ImportError:
            raise UsageError("a bridge needs the package paho-mqtt: pip install 'earshot[bridge]'") from None
        self.broker = broker
        self.connected = False
        self.problem = ""
        "Why the last attempt failed."
        self.connections = 0
        self._topics = topics
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._lost = asyncio.Event()
        self._client: Client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        self._client.max_inflight_messages_set(UNACKNOWLEDGED)
        self._client.max_queued_messages_set(0)
        if broker.user:
            self._client.username_pw_set(broker.user, broker.password or None)
        if broker.tls:
            try:
                self._client.tls_set(broker.ca_file, broker.certificate_file, broker.key_file)
            except (OSError, ValueError, ssl.SSLError) as error:
                raise UsageError(f"the certificates cannot be used: {error}") from None
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = lambda _client, _data, message: received(message)
        self._client.on_publish = lambda _client, _data, mid, *_: acknowledged(mid)
        self._client.on_socket_open = lambda _client, _data, sock: self._in_loop(self._watch_reading, sock)
        self._client.on_socket_close = lambda _client, _data, sock: self._in_loop(self._unwatch, sock)
        self._client.on_socket_register_write = lambda _client, _data, sock: self._in_loop(self._watch_writing, sock)
        self._client.on_socket_unregister_write = lambda _client, _data, sock: self._in_loop(
            self._unwatch_writing, sock
        )

    def start(self) -> None:
        """Connect, and stay connected."""
        self._tasks = [asyncio.create_task(self._stay_connected()), asyncio.create_task(self._keep_alive())]

    async def stop(self) -> None:
        """Say goodbye and close. The broker keeps the session for `SESSION_S`."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._client.disconnect()
        self._client.loop_write()
        self._client._sock_close()

    def publish(self, topic: str, payload: bytes, qos: int, retain: bool, properties: dict[str, str]) -> int:
        """Send a message; returns the number by which `acknowledged` names it."""
        carried = UserProperties(properties)
        return self._client.publish(topic, payload, qos, retain, carried).mid  # type: ignore[arg-type]

    def acknowledge(self, message: MQTTMessage) -> None:
        """Acknowledge a message that has been handled, so that the broker does not send it again."""
        if message.qos and self.connected:
            self._client.ack(message.mid, message.qos)

    # Staying connected.

    async def _stay_connected(self) -> None:
        wait_s = FIRST_RETRY_S
        while True:
            self._lost.clear()
            try:
                await asyncio.to_thread(self._connect)
                await asyncio.wait_for(self._answered(), KEEP_ALIVE_S)
                wait_s = FIRST_RETRY_S
                await self._lost.wait()
            except (OSError, ValueError, TimeoutError) as error:
                self._warn(str(error) or type(error).__name__)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_RETRY_S) if not self.connections or self.problem else FIRST_RETRY_S

    async def _answered(self) -> None:
        while not self.connected:
            if self._lost.is_set():
                raise OSError(self.problem or "the broker closed the connection")
            await asyncio.sleep(0.01)

    def _connect(self) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        asked = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        asked.SessionExpiryInterval = SESSION_S
        asked.ReceiveMaximum = UNACKNOWLEDGED
        self._client.connect(self.broker.host, self.broker.port, KEEP_ALIVE_S, clean_start=False, properties=asked)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._client.loop_misc()

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            self._warn(f"refused: {reason}")
            self._lost.set()
            return
        self.connected, self.problem = True, ""
        self.connections += 1
        self._subscribe()
        # After this handler paho sends unacknowledged messages again; new messages must come after them.
        self._loop.call_soon(self._changed, True)

    def _subscribe(self) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        # Without this bridge's own messages, and with retained messages only for a new subscription.
        wanted = [(topic, SubscribeOptions(qos, noLocal=True, retainHandling=1)) for topic, qos in self._topics]
        if wanted:
            self._client.subscribe(wanted)

    def _on_disconnect(self, *_: Any) -> None:
        was, self.connected = self.connected, False
        self._lost.set()
        if was:
            self._changed(False)

    def _warn(self, problem: str) -> None:
        """Warn of a problem, unless it is the same as before."""
        if problem != self.problem:
            logger.warning("%s: %s; trying again", self.broker, problem)
        self.problem = problem

    # The socket in the event loop.

    def _in_loop(self, work: Callable[[SocketLike], None], sock: SocketLike) -> None:
        """Do the work at once in the loop's own thread; from another thread (which connects), schedule it there."""
        try:
            running = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            running = False
        if running:
            work(sock)
        else:
            self._loop.call_soon_threadsafe(work, sock)

    def _watch_reading(self, sock: SocketLike) -> None:
        if sock.fileno() >= 0:
            self._loop.add_reader(sock, self._client.loop_read)

    def _unwatch(self, sock: SocketLike) -> None:
        if sock.fileno() >= 0:
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)

    def _watch_writing(self, sock: SocketLike) -> None:
        if sock.fileno() >= 0:
            self._loop.add_writer(sock, self._client.loop_write)

    def _unwatch_writing(self, sock: SocketLike) -> None:
        if sock.fileno() >= 0:
            self._loop.remove_writer(sock)
