"""Where a broker is, and what an address may say."""

from pathlib import Path

import pytest

from earshot.errors import UsageError
from earshot.live.bridge.mqtt import MqttBroker, _variable_length


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mqtt://h", ("h", 1883, False, "")),
        ("mqtts://h", ("h", 8883, True, "")),
        ("mqtt://ann@h:77/", ("h", 77, False, "ann")),
    ],
)
def test_an_address_names_host_port_and_user(url: str, expected: tuple[str, int, bool, str]) -> None:
    broker = MqttBroker.at(url)
    assert (broker.host, broker.port, broker.tls, broker.user) == expected
    assert str(broker) == f"mqtt{'s' if broker.tls else ''}://h:{broker.port}"


def test_certificates_and_a_password_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(" open sesame \nmore\n")
    broker = MqttBroker.at("mqtts://ann@h", str(tmp_path / "secret"), ca_file="a", certificate_file="b", key_file="c")
    assert (broker.password, broker.ca_file, broker.certificate_file, broker.key_file) == ("open sesame", "a", "b", "c")
    assert "sesame" not in repr(broker)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://h", "write mqtt://HOST:PORT"),
        ("mqtt://", "write mqtt://HOST:PORT"),
        ("mqtt://h/topic", "write mqtt://HOST:PORT"),
        ("mqtt://h:99999", "cannot read"),
        ("mqtt://ann:secret@h", "seen by all users"),
    ],
)
def test_an_address_that_cannot_be_says_why(url: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        MqttBroker.at(url)


def test_a_password_needs_a_user_and_certificates_need_tls(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a user"):
        MqttBroker.at("mqtt://h", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="no password on its first line"):
        MqttBroker.at("mqtt://ann@h", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="certificates need"):
        MqttBroker.at("mqtt://h", None, ca_file="a")


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (16_383, b"\xff\x7f"), (16_384, b"\x80\x80\x01")],
)
def test_a_length_has_seven_bits_in_each_byte(number: int, expected: bytes) -> None:
    assert _variable_length(number) == expected
