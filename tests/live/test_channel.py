"""The live channel service: what a node sent and heard, against the radio's bit rate."""

import asyncio

import pytest
from desk import Desk, acquainted, taken

from earshot.events import Event
from earshot.live.channel import HEADER_BYTES, MeasuredChannel


def test_the_busy_share_is_of_the_last_five_whole_seconds() -> None:
    channel = MeasuredChannel(bit_rate_bps=8000.0)
    channel.count(500 - HEADER_BYTES, now=100.2)
    channel.count(500 - HEADER_BYTES, now=103.9)
    assert channel.airtime_s(500 - HEADER_BYTES) == 0.5
    shares = {now: channel.busy_share(now) for now in (100.9, 101.1, 104.5, 105.9, 106.0, 109.0)}
    assert shares == pytest.approx({100.9: 0.0, 101.1: 0.1, 104.5: 0.2, 105.9: 0.2, 106.0: 0.1, 109.0: 0.0})


def test_five_busy_seconds_count_in_the_sixth() -> None:
    channel = MeasuredChannel(bit_rate_bps=8000.0)
    for second in range(7):
        channel.count(436, now=100.0 + second)
    assert channel.busy_share(106.5) == pytest.approx(0.5), "500 bytes with headers take half a second of each second"


def test_the_headers_around_a_packet_are_those_of_the_simulators_radios() -> None:
    """24 of the MAC, 8 of the LLC, 20 of IP, 8 of UDP and 4 of the checksum."""
    assert HEADER_BYTES == 24 + 8 + 20 + 8 + 4


def test_a_share_is_at_most_one() -> None:
    channel = MeasuredChannel(bit_rate_bps=8.0)
    channel.count(1000, now=1.0)
    assert channel.busy_share(2.0) == 1.0


def test_without_a_bit_rate_the_channel_is_quiet() -> None:
    channel = MeasuredChannel(None)
    channel.count(1000, now=1.0)
    assert (channel.busy_share(2.0), channel.airtime_s(1000)) == (0.0, 0.0)


def test_a_node_counts_what_it_sends_and_hears() -> None:
    async def run() -> None:
        desk = Desk(protocol="flooding", bit_rate_bps=1e6)
        async with desk.node("a") as a, desk.node("b", 50.0) as b:
            await acquainted(a, b)
            wanted = b.subscribe("Siren")
            await a.publish(Event("Siren", {"speed": 18.0}))
            await taken(wanted, 1)
            for node in (a, b):
                host = node.host
                assert host.machine.channel is host.channel
                assert 0.0 < host.channel.busy_share(host.now() + 1.0) < 0.1

    asyncio.run(run())
