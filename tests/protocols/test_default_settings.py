"""The values that a node has when nobody chooses others, and those of the papers' presets: every figure of the
documentation rests on them, so that a change of one is made here too."""

from dataclasses import asdict, fields
from typing import Any

import pytest

from earshot.errors import SettingsError
from earshot.protocols.catalogue import PROTOCOLS
from earshot.protocols.cbf import CbfSettings
from earshot.protocols.codd.settings import PAPER as CODD
from earshot.protocols.content_odmrp.machine import PAPER as CONTENT_ODMRP
from earshot.protocols.content_odmrp.odmrp import OdmrpSettings
from earshot.protocols.drip.packets import PAPER as DRIP
from earshot.protocols.flooding import FloodingSettings
from earshot.protocols.georendezvous.settings import PAPER as GEORENDEZVOUS
from earshot.protocols.gossip import GossipSettings
from earshot.protocols.hearsay.packets import HearsaySettings
from earshot.protocols.siena.machine import SienaSettings
from earshot.protocols.steam.packets import PAPER as STEAM

DEFAULTS: dict[type[Any], dict[str, Any]] = {
    FloodingSettings: {"hop_limit": 64, "lifespan_s": 60.0, "memory": 4096, "jitter_s": 0.0},
    GossipSettings: {
        "hop_limit": 64,
        "lifespan_s": 60.0,
        "memory": 4096,
        "jitter_s": 0.0,
        "distance_m": 200.0,
        "probability": 0.8,
    },
    CbfSettings: {
        "range_m": 1000.0,
        "shortest_wait_s": 0.001,
        "longest_wait_s": 0.1,
        "hop_limit": 10,
        "lifespan_s": 60.0,
        "memory": 4096,
    },
    HearsaySettings: {
        "range_m": 100.0,
        "reach_trust": 4.0,
        "knows_place": True,
        "hop_limit": 64,
        "lifespan_s": 60.0,
        "area_margin": 0.02,
        "wait_frames": 20.0,
        "crowd": 12.0,
        "crowd_stretch": 3.0,
        "worth": 0.2,
        "echo": 0.3,
        "patience": 3.0,
        "hello_interval_s": 6.0,
        "hello_airtime": 0.02,
        "hello_drift": 0.15,
        "neighbour_hellos": 3.2,
        "neighbour_limit": 512,
        "repair_frames": 50.0,
        "repair_batch": 32,
        "repair_tries": 3,
        "repair_airtime": 0.1,
        "together_bytes": 1_400.0,
        "digest_bytes": 192,
        "digest_bits": 8,
        "carry_bytes": 2000000,
        "memory": 8192,
        "gateways": (),
        "gateway_wait_s": 0.2,
    },
    OdmrpSettings: {
        "refresh_interval_s": 5.0,
        "forwarding_timeout_s": 25.0,
        "hop_limit": 32,
        "lifespan_s": 60.0,
        "memory": 4096,
        "jitter_s": 0.02,
        "channels": (),
    },
    SienaSettings: {
        "agents": (),
        "clients": 6,
        "broker_fan_out": 2,
        "retry_s": 5.0,
        "patience_s": 20.0,
        "memory": 4096,
    },
}
BEYOND_THE_PAPER: list[tuple[Any, dict[str, Any]]] = [
    (
        GEORENDEZVOUS,
        {
            "cell_nodes": 2.0,
            "links": "shared",
            "burst_packets": 2,
            "neighbour_lifespan_s": 2.5,
            "home_memory_s": 30.0,
            "hop_limit": 200,
            "rendezvous": 2,
            "nearest": 1,
            "content_at_rendezvous": True,
            "asked_first": True,
            "keep_records": 12,
            "renew_interval_s": 20.0,
            "renew_cells": 4,
            "record_lifespan_s": 70.0,
        },
    ),
    (
        STEAM,
        {
            "beacon_stretch": 32.0,
            "beacon_gather_s": 0.2,
            "keep_stationary": False,
            "questions": 2,
            "relays": True,
            "forward_jitter_s": 0.06,
            "hop_limit": 64,
            "cache_size": 64,
        },
    ),
    (CODD, {}),
    (
        CONTENT_ODMRP,
        {
            "jitter_s": 0.02,
            "stamps": True,
            "gather_s": 0.05,
            "examine": True,
            "spare_slow_sources": True,
            "value_combinations": True,
            "greedy_share": 0.8,
            "packet_bytes": 1400,
        },
    ),
    (
        DRIP,
        {
            "announce_interval_s": 3.0,
            "announced_to": "all",
            "enough_copies": 3,
            "hop_delay_s": 0.002,
            "expiry_periods": 2.7,
            "handover_margin_s": 0.003,
            "channel_stretch": 1.5,
            "register_interval_s": 10.0,
            "near_hops": 2,
            "bootstrap_s": 8.0,
            "abilities_gather_s": 0.1,
            "brokers_know": "regions",
            "contact_confirmed": True,
            "contact_records": 8,
            "upstreams": 6,
            "next_hop": "nearest",
            "hop_limit": 64,
            "jitter_s": 0.03,
        },
    ),
]
"What the defaults have otherwise than the paper's preset, whose values stand below."
PAPERS: list[tuple[Any, dict[str, Any]]] = [
    (
        GEORENDEZVOUS,
        {
            "range_m": 100.0,
            "cell_side_m": None,
            "cell_nodes": 0.0,
            "links": "own",
            "burst_packets": 0,
            "walk_limit": 12,
            "origin_x_m": 0.0,
            "origin_y_m": 0.0,
            "beacon_interval_s": 1.0,
            "neighbour_lifespan_s": 3.5,
            "home_memory_s": 10.0,
            "hop_limit": 2000,
            "rendezvous": 8,
            "nearest": 2,
            "width_m": 1000.0,
            "height_m": 1000.0,
            "network_nodes": None,
            "content_at_rendezvous": False,
            "asked_first": False,
            "place_margin_cells": 2.5,
            "keep_records": 0,
            "renew_interval_s": 10.0,
            "renew_cells": 0,
            "record_lifespan_s": 35.0,
            "choose_after_s": 1.0,
            "hold_s": 5.0,
            "handover_delay_s": 0.05,
            "remembered_events": 10000,
        },
    ),
    (
        STEAM,
        {
            "range_m": 200.0,
            "beacon_interval_s": 1.0,
            "beacon_stretch": 1.0,
            "margin_share": 0.25,
            "consumer_speed_m_s": 15.0,
            "beacon_gather_s": 0.0,
            "beacon_copies": 3,
            "beacon_jitter": 0.1,
            "expiry_s": 3.5,
            "keep_stationary": True,
            "location_interval_s": 0.0,
            "deliver_own": False,
            "questions": 0,
            "relays": False,
            "forward_jitter_s": 0.0,
            "forward_copies": 4,
            "forwarding": "flood",
            "gossip_distance_m": 200.0,
            "gossip_probability": 0.8,
            "hop_limit": 32,
            "lifespan_s": 60.0,
            "cache_size": 0,
            "recovery_delay_s": 0.25,
            "recovery_attempts": 3,
            "proximity_limit": 2048,
            "announcement_limit": 1024,
            "adverts_per_beacon": 16,
            "seen_limit": 65536,
        },
    ),
    (
        CODD,
        {
            "agents": (),
            "fan_out": 6,
            "seeds": 1,
            "candidate_wait_s": 2.0,
            "join_attempts": 4,
            "retry_s": 10.0,
            "join_against": "aggregate",
            "overhead_against": "query",
            "keep_alive_s": 5.0,
            "silence_s": 15.0,
            "directory_s": 30.0,
            "reorganise": True,
            "reorganise_every": 200,
            "on_demand": False,
            "overhead_threshold": 0.2,
            "rest_documents": 200,
            "mover": "child",
            "top": None,
            "delta": 0.0,
            "gather_s": 0.5,
            "window_documents": 200,
            "enough_documents": 20,
            "summary_vertices": 2000,
            "held_documents": 1000,
        },
    ),
    (
        CONTENT_ODMRP,
        {
            "refresh_interval_s": 5.0,
            "forwarding_timeout_s": 25.0,
            "hop_limit": 32,
            "lifespan_s": 60.0,
            "memory": 4096,
            "jitter_s": 0.0,
            "report_interval_s": 10.0,
            "stamps": False,
            "gather_s": 0.0,
            "answer_wait_s": 0.4,
            "unanswered_limit": 5,
            "acknowledged": False,
            "groups_limit": 4,
            "group_choice": "smallest",
            "noise_limit": 1.0,
            "examine": False,
            "spare_slow_sources": False,
            "advertise": False,
            "predict": False,
            "range_m": 100.0,
            "refresh_min_s": 1.0,
            "refresh_max_s": 20.0,
            "vector_bits": 8192,
            "vector_hashes": 1,
            "value_combinations": False,
            "aggregate": False,
            "summary_bytes": 1000,
            "greedy_share": 1.1,
            "packet_bytes": 60000,
            "sources_limit": 256,
            "reports_limit": 1024,
        },
    ),
    (
        DRIP,
        {
            "brokers": None,
            "nearest": 4,
            "copies": 2,
            "network_nodes": None,
            "selection": "ability",
            "announce_interval_s": 2.0,
            "announced_to": "nearest",
            "enough_copies": 0,
            "hop_delay_s": 0.0,
            "expiry_periods": 1.7,
            "improvement_s": 0.001,
            "handover_margin_s": 0.0,
            "channel_stretch": 1.0,
            "register_interval_s": 5.0,
            "near_hops": 0,
            "bootstrap_s": 4.0,
            "abilities_gather_s": 0.25,
            "spares": 5,
            "replace_after_s": 12.0,
            "election_wait_s": 1.0,
            "brokers_know": "subscribers",
            "interest_filters": 0,
            "interest_renew_s": 30.0,
            "place_margin_m": 200.0,
            "stranded_wait_s": 1.0,
            "contact_interval_s": 0.2,
            "contact_confirmed": False,
            "contact_events": 4,
            "contact_records": 20,
            "exchange_interval_s": 3.0,
            "taken_wait_s": 1.0,
            "source_carries": True,
            "destinations": "each",
            "bridge_interval_s": 4.0,
            "bridge_reports": 1,
            "routes": "announcements",
            "upstreams": 3,
            "next_hop": "fastest",
            "memory_events": 200,
            "lifespan_s": 60.0,
            "known_events": 8,
            "memory": 4096,
            "hop_limit": 32,
            "jitter_s": 0.01,
        },
    ),
]


@pytest.mark.parametrize("settings", DEFAULTS, ids=lambda settings: settings.__name__)
def test_defaults(settings: type[Any]) -> None:
    assert asdict(settings()) == DEFAULTS[settings]


@pytest.mark.parametrize(("preset", "expected"), PAPERS, ids=lambda one: type(one).__name__)
def test_a_papers_preset_keeps_its_values(preset: Any, expected: dict[str, Any]) -> None:
    assert {name: getattr(preset, name) for name in expected} == expected


@pytest.mark.parametrize(("preset", "expected"), BEYOND_THE_PAPER, ids=lambda one: type(one).__name__)
def test_the_defaults_differ_from_the_paper_in_these_values(preset: Any, expected: dict[str, Any]) -> None:
    default, written = (
        {one.name: getattr(settings, one.name) for one in fields(settings)} for settings in (type(preset)(), preset)
    )
    assert {name: value for name, value in default.items() if value != written[name]} == expected


def test_gateways_may_be_given_as_a_list_and_settings_check_their_bounds() -> None:
    assert HearsaySettings(gateways=["a", "b"]).gateways == ("a", "b")  # type: ignore[arg-type]
    for wrong in ({"hop_limit": 0}, {"digest_bytes": 7}, {"digest_bytes": 513}, {"patience": 0.9}, {"worth": 1.1}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            HearsaySettings(**wrong)  # type: ignore[arg-type]
    assert HearsaySettings(digest_bytes=512).digest_bytes == 512


@pytest.mark.parametrize(
    ("protocol", "wrong", "says"),
    [
        ("cbf", {"longest_wait_s": 0.0}, "longest_wait_s must be a positive number of seconds, got 0.0"),
        ("codd", {"keep_alive_s": 0.0}, "keep_alive_s must be a positive number of seconds, got 0.0"),
        ("content-odmrp", {"sources_limit": 0}, "sources_limit must be at least 1, got 0"),
        ("drip", {"spares": -1}, "spares must not be negative, got -1"),
        ("flooding", {"memory": 0}, "memory must be at least 1, got 0"),
        ("georendezvous", {"walk_limit": 0}, "walk_limit must be at least 1, got 0"),
        ("gossip", {"distance_m": -1.0}, "distance_m must not be negative, got -1.0"),
        ("hearsay", {"crowd": 0.0}, "crowd must be positive, got 0.0"),
        ("odmrp", {"jitter_s": -0.1}, "jitter_s must not be negative, got -0.1"),
        ("siena", {"clients": 0}, "clients must be at least 1, got 0"),
        ("steam", {"seen_limit": 0}, "seen_limit must be at least 1, got 0"),
    ],
)
def test_every_protocol_refuses_a_setting_beyond_its_bounds(protocol: str, wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        PROTOCOLS[protocol].Settings(**wrong)
    assert str(caught.value).startswith(says)
