"""The bridge with a real broker: both directions, nothing lost while it is away, nothing goes round."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desk import free_port, until
from mosquitto import Mosquitto, needs_mosquitto
from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from earshot.live import Node
from earshot.live.bridge import Bridge, FromMqtt, Mapping, MqttBroker, ToMqtt
from earshot.live.bridge.bridge import mark_of

pytestmark = needs_mosquitto

OUT = Mapping(to_mqtt=(ToMqtt("Siren", "city/sirens/{source}"),))
IN = Mapping(from_mqtt=(FromMqtt("city/closures/+", "Closure"),))
BOTH = Mapping(OUT.to_mqtt, IN.from_mqtt)


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path / "broker")
    broker.start()
    yield broker
    broker.stop()


class Office:
    """A client of the broker, as an office has it: it keeps its session, and reconnects."""

    def __init__(self, port: int, topic: str = "", name: str = "office") -> None:
        self.heard: list[paho.MQTTMessage] = []
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, name, protocol=paho.MQTTv5)
        self._client.reconnect_delay_set(0.1, 0.2)
        self._client.max_queued_messages_set(0)
        self._client.on_message = lambda _client, _data, message: self.heard.append(message)
        self._ready = threading.Event()
        asked = Properties(PacketTypes.CONNECT)
        asked.SessionExpiryInterval = 3600

        def on_connect(*_: Any) -> None:
            if topic:
                self._client.subscribe(topic, qos=1)
            self._ready.set()

        self._client.on_connect = on_connect
        self._client.connect("127.0.0.1", port, clean_start=False, properties=asked)
        self._client.loop_start()
        assert self._ready.wait(10)

    def send(self, topic: str, content: dict[str, Any], retain: bool = False) -> paho.MQTTMessageInfo:
        return self._client.publish(topic, json.dumps(content), qos=1, retain=retain)

    def __enter__(self) -> Office:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def node(name: str, port: int) -> Node:
    return Node(name, protocol="flooding", interface="lo", group=f"239.255.69.90:{port}")


def test_events_go_out_and_messages_come_in(mosquitto: Mosquitto, tmp_path: Path) -> None:
    async def work() -> None:
        port, broker = free_port(), MqttBroker("127.0.0.1", mosquitto.port)
        async with (
            node("car", port) as car,
            node(mark_of(broker), port) as gate,
            Bridge(gate, broker, BOTH, tmp_path / "q.db") as bridge,
        ):
            with Office(mosquitto.port, "city/sirens/#") as office:
                closures = car.subscribe("Closure")
                siren = await car.announce("Siren")
                await until(lambda: bridge.connected and gate.peers() and car.peers())
                await siren.publish(speed=18.0)
                await until(lambda: office.heard)
                office.send("city/closures/north", {"road": "B1"})
                closure = await asyncio.wait_for(anext(closures), 20)
                assert (closure.type, closure.content) == ("Closure", {"road": "B1"})
                (heard,) = office.heard
                assert heard.topic == "city/sirens/car"
                assert json.loads(heard.payload)["content"] == {"speed": 18.0}
            await until(lambda: not bridge.waiting)
            assert (bridge.counts["out"], bridge.counts["in"], bridge.counts["refused"]) == (1, 1, 0)

    asyncio.run(work())


def test_two_bridges_of_one_network_do_not_send_an_event_round(mosquitto: Mosquitto, tmp_path: Path) -> None:
    everything = Mapping((ToMqtt("Siren", "city/sirens"),), (FromMqtt("city/sirens", "Siren", payload="event"),))

    async def work() -> None:
        port, broker = free_port(), MqttBroker("127.0.0.1", mosquitto.port)
        async with (
            node("car", port) as car,
            node(f"{mark_of(broker)}-a", port) as a,
            node(f"{mark_of(broker)}-b", port) as b,
            Bridge(a, broker, everything, tmp_path / "a.db") as first,
            Bridge(b, broker, everything, tmp_path / "b.db") as second,
        ):
            with Office(mosquitto.port, "city/sirens") as office:
                heard = car.subscribe("Siren")
                siren = await car.announce("Siren")
                await until(lambda: first.connected and second.connected and len(car.peers()) == 2)
                await siren.publish(speed=18.0)
                await until(lambda: len(office.heard) == 2)  # once from each bridge
                office.send("city/sirens", {"type": "Siren", "content": {"speed": 1.0}})
                await until(lambda: len(heard) == 2)  # once from each bridge
                await asyncio.sleep(1.0)
                assert Counter(json.loads(one.payload)["content"]["speed"] for one in office.heard) == {18.0: 2, 1.0: 1}
                assert [event.content["speed"] for event in [await anext(heard), await anext(heard)]] == [1.0, 1.0]
                assert len(heard) == 0
            assert first.counts["in"] == second.counts["in"] == 1
            assert first.counts["looped"] + second.counts["looped"] >= 2

    asyncio.run(work())


def test_messages_wait_for_a_bridge_and_a_broker_that_were_away(mosquitto: Mosquitto, tmp_path: Path) -> None:
    async def work() -> None:
        port, broker = free_port(), MqttBroker("127.0.0.1", mosquitto.port)
        async with node("car", port) as car:
            siren = await car.announce("Siren")
            closures = car.subscribe("Closure")
            with Office(mosquitto.port, "city/sirens/#") as office:
                gate = node(mark_of(broker), port)
                async with gate, Bridge(gate, broker, BOTH, tmp_path / "q.db") as bridge:
                    await until(lambda: bridge.connected and car.peers() and gate.peers())
                    await asyncio.sleep(0.3)
                    mosquitto.stop()
                    await until(lambda: not bridge.connected)
                    for number in range(20):
                        await siren.publish(number=number)
                    await until(lambda: bridge.waiting == 20)
                mosquitto.start()
                await until(lambda: office.send("city/closures/x", {"road": "B1"}).rc == 0)
                gate = node(mark_of(broker), port)
                async with gate, Bridge(gate, broker, BOTH, tmp_path / "q.db") as bridge:
                    await until(lambda: len(office.heard) >= 20)
                    await until(lambda: not bridge.waiting)
                    assert (await asyncio.wait_for(anext(closures), 20)).content == {"road": "B1"}
                assert [json.loads(one.payload)["content"]["number"] for one in office.heard] == list(range(20))

    asyncio.run(work())


@pytest.mark.parametrize("events", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_nothing_is_lost_while_the_broker_is_killed_five_times(
    mosquitto: Mosquitto, tmp_path: Path, events: int
) -> None:
    async def work() -> None:
        port, broker = free_port(), MqttBroker("127.0.0.1", mosquitto.port)
        async with (
            node("car", port) as car,
            node(mark_of(broker), port) as gate,
            Bridge(gate, broker, BOTH, tmp_path / "q.db") as bridge,
        ):
            arrived: list[int] = []
            stop = car.call(lambda event: arrived.append(event.content["number"]), "Closure")
            siren = await car.announce("Siren")
            with (
                Office(mosquitto.port, "city/sirens/#") as office,
                Office(mosquitto.port, "city/closures/#", "witness") as witness,
                Office(mosquitto.port, name="dispatch") as dispatch,
            ):
                await until(lambda: bridge.connected and car.peers() and gate.peers())

                async def both_ways() -> None:
                    for number in range(events):
                        await siren.publish(number=number)
                        dispatch.send("city/closures/x", {"number": number})
                        if number % 20 == 0:
                            await asyncio.sleep(0.02)

                async def kills() -> None:
                    for _ in range(5):
                        await asyncio.sleep(events / 20 * 0.02 / 6)
                        await asyncio.to_thread(mosquitto.stop)
                        await asyncio.sleep(0.2)
                        await asyncio.to_thread(mosquitto.start)
                        await until(lambda: bridge.connected)

                await asyncio.gather(both_ways(), kills())
                await until(lambda: len(office.heard) >= events and len(arrived) >= events)
                await until(lambda: not bridge.waiting and len(witness.heard) >= events)
                await asyncio.sleep(1.0)
                sirens = [json.loads(one.payload)["content"]["number"] for one in office.heard]
                assert list(dict.fromkeys(sirens)) == list(range(events))
                # The dispatcher's client mixes up its own messages when it reconnects: the broker's order counts.
                closures = [json.loads(one.payload)["number"] for one in witness.heard]
                assert list(dict.fromkeys(arrived)) == list(dict.fromkeys(closures))
                assert set(arrived) == set(range(events))
                # Twice at most what QoS 1 allows: what the bridge sent again, and what the broker marked as repeated.
                repeated = sum(one.dup for one in office.heard)
                assert len(sirens) - events <= bridge.counts["sent again"] + repeated
                assert len(arrived) - events <= len(closures) - events + bridge.counts["came again"] + 200
            stop()
            assert bridge.counts["out"] == events
            assert bridge.counts["in"] == len(arrived)
            assert bridge.counts["lost"] == bridge.counts["refused"] == 0

    asyncio.run(work())
