"""The bounds and times of a live node that no setting changes: formats, limits of memory and work, and waits. Peers,
operators and the documentation rely on them, so that a change of one is made here too."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from typing import Any

import pytest

from earshot.live.network import NetworkSettings

BOUNDS: dict[str, dict[str, Any]] = {
    "bridge.bridge": {
        "GATHER_S": 0.01,
        "RETRY_S": 1.0,
        "MOST_GATHERED": 10_000,
        "MOST_RECEIVED": 10_000,
        "MOST_ANNOUNCED": 256,
        "REMEMBERED": 10_000,
        "DEFAULT_QUEUE_BYTES": 256_000_000,
    },
    "bridge.mapping": {"MAX_PAYLOAD_BYTES": 1_000_000, "MAX_TOPIC_BYTES": 1000},
    "bridge.mqtt": {
        "FIRST_RETRY_S": 0.5,
        "LONGEST_RETRY_S": 30.0,
        "KEEP_ALIVE_S": 20,
        "SESSION_S": 604_800,
        "UNACKNOWLEDGED": 200,
    },
    "channel": {"RECENT_SECONDS": 5, "HEADER_BYTES": 64},
    "datagrams": {
        "HEADER_BYTES": 4,
        "PLAIN": b"ES\x01\x00",
        "SEALED": b"ES\x01\x01",
        "MAX_DATAGRAM_BYTES": 65_507,
        "MAX_NAME": 128,
        "MAX_PACKETS": 4096,
        "MAX_ACKS": 512,
        "COOKIE_BYTES": 8,
        "DIGEST_BYTES": 4,
        "SHORT_BYTES": 13,
    },
    "gpsd": {"MAX_LINE_BYTES": 65_536, "RETRY_S": 2.0},
    "host": {
        "POSITION_EVERY_S": 1.0,
        "CLOCK_STEP_S": 2.0,
        "TIMER_AGAIN_S": 1.0,
        "MAX_TIMERS": 65_536,
        "MAX_DELIVERED": 10_000,
    },
    "identity": {"SIGNATURE_BYTES": 64, "PUBLIC_KEY_BYTES": 32},
    "location": {"STALE_S": 10.0, "FIX_SPACING_S": 0.25},
    "network": {"DEFAULT_PORT": 47_474},
    "nmea": {"KNOT_M_S": 1852 / 3600, "FIRST_FIX_S": 30.0, "MAX_LINE": 256},
    "node": {"QUEUE": 10_000},
    "node_metrics": {"BUCKETS_S": (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)},
    "peers": {
        "CONTEST_S": 0.5,
        "CONTESTS": 256,
        "CHALLENGE_EVERY_S": 0.1,
        "CHALLENGES": 4096,
        "WORK_SHARE": 0.5,
        "LONGEST_CHARGE_S": 0.5,
        "STRANGERS_SHARE": 0.25,
        "NEWCOMERS_BURST_S": 0.1,
        "LEAST_BURST": 10.0,
    },
    "signatures": {"MAX_OWNERS": 16, "REMEMBERED": 16_384, "FAILURES_A_SECOND": 32.0},
    "sockets": {"GROUPS_A_SOCKET": 20},
    "spool": {"SEGMENT_BYTES": 16_777_216, "WAITING_BYTES": 4_194_304, "AGAIN_S": 1.0},
    "transport": {
        "PENDING_LIMIT": 4096,
        "IP_AND_UDP_BYTES": 28,
        "LARGEST_SHARED_BYTES": 32_768,
        "GREET_S": 0.02,
        "SETTLE_S": 0.1,
        "CLOCK_WARNING_S": 2.0,
        "MOST_SHARED": 4.0,
        "FRAME_BYTES": 480,
        "EXPEDITED": 184,
    },
    "trust": {"KEY_BYTES": 32, "NONCE_BYTES": 12, "SEAL_BYTES": 28},
}


@pytest.mark.parametrize("module", BOUNDS)
def test_bounds(module: str) -> None:
    found = import_module(f"earshot.live.{module}")
    assert {name: getattr(found, name) for name in BOUNDS[module]} == BOUNDS[module]


def test_the_settings_of_a_network() -> None:
    assert asdict(NetworkSettings()) == {
        "interface": "",
        "group": "239.255.69.83:47474",
        "peers": (),
        "listen": "",
        "emulate_range_m": None,
        "keys": (),
        "hello_interval_s": 1.0,
        "peer_expiry_s": 5.0,
        "acknowledge_s": 0.2,
        "attempts": 4,
        "datagram_bytes": None,
        "memory_bytes": 64_000_000,
        "rate_limit": 5000.0,
        "bit_rate_bps": None,
        "clock_skew_s": 30.0,
    }
