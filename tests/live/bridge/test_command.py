"""`earshot bridge` as people use it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from desk import free_port
from mosquitto import Mosquitto, needs_mosquitto
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from earshot.cli import earshot
from earshot.live.bridge import MqttBroker


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["http://host", "--out", "A -> a"], "write mqtt://HOST:PORT or mqtts://HOST:PORT"),
        (["mqtt://u:secret@host", "--out", "A -> a"], "give --password-file FILE"),
        (["mqtt://host:99999", "--out", "A -> a"], "cannot read 'mqtt://host:99999'"),
        (["mqtt://host", "--ca-file", "x", "--out", "A -> a"], "begins with mqtts://"),
        (["mqtt://host", "--password-file", "x", "--out", "A -> a"], "needs a user"),
        (["mqtt://host"], "nothing to bridge"),
        (["mqtt://host", "--map", "none.toml"], "cannot be read"),
    ],
)
def test_mistakes_say_what_to_do(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(earshot, ["bridge", *arguments])
    assert result.exit_code != 0
    assert message in str(result.exception)


def test_a_password_comes_from_a_file_and_is_not_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n")
    broker = MqttBroker.at("mqtts://office@host", str(secret))
    assert (broker.port, broker.user, broker.password) == (8883, "office", "hunter2")
    assert "hunter2" not in repr(broker)


@needs_mosquitto
def test_a_bridge_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    mosquitto = Mosquitto(tmp_path / "broker")
    network = ["--interface", "lo", "--group", f"239.255.69.91:{free_port()}", "--protocol", "flooding"]
    address = f"mqtt://127.0.0.1:{mosquitto.port}"

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "earshot", "bridge", address, "--out", "Siren -> city/sirens", *network]
        command += ["--queue", str(tmp_path / "q.db"), "--name", "gate"]
        process = subprocess.Popen(
            [*command, "--queue", str(tmp_path / "q.db"), "--name", "gate"],
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert process.stdout is not None
        assert "bridges to" in process.stdout.readline()
        return process

    bridge = start()  # the broker is not there yet
    for speed in ("1", "2"):
        publish = ["pub", "Siren", f"speed={speed}", "--settle", "3s", *network]
        subprocess.run([sys.executable, "-m", "earshot", *publish], check=True, timeout=60)
    bridge.kill()
    bridge.communicate()
    mosquitto.start()
    heard: list[float] = []
    office = paho.Client(CallbackAPIVersion.VERSION2, "office")
    office.on_connect = lambda *_: office.subscribe("city/sirens", 1)
    office.on_message = lambda _client, _data, found: heard.append(json.loads(found.payload)["content"]["speed"])
    subscribed: list[bool] = []
    office.on_subscribe = lambda *_: subscribed.append(True)
    office.connect("127.0.0.1", mosquitto.port)
    office.loop_start()
    until = time.monotonic() + 60
    while not subscribed and time.monotonic() < until:
        time.sleep(0.02)
    bridge = start()
    while len(heard) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.5)
    bridge.send_signal(signal.SIGINT)
    output, _ = bridge.communicate(timeout=60)
    office.disconnect()
    office.loop_stop()
    mosquitto.stop()
    assert heard == [1, 2]
    assert output.strip() == "0 events out, 0 in; 2 acknowledged"
