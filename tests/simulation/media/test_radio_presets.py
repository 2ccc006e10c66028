"""The presets of radios against what their standards say, computed apart."""

import pytest

from earshot.simulation.faults import crosses
from earshot.simulation.media.radios import RADIOS, radio_of

US = 1e-6


@pytest.mark.parametrize(
    ("name", "slot_us", "sifs_us", "window"),
    [("802.11p-6M", 13, 32, (15, 1023)), ("802.11b-2M", 20, 10, (31, 1023)), ("802.11b-1M", 20, 10, (31, 1023))],
)
def test_a_radio_of_802_11_waits_sifs_and_two_slots(
    name: str, slot_us: int, sifs_us: int, window: tuple[int, int]
) -> None:
    """IEEE 802.11-2020, tables 15-5 and 17-21: DIFS is SIFS and two slots; an acknowledgement has 14 bytes."""
    radio = RADIOS[name]
    assert (radio.slot_s, radio.sifs_s) == pytest.approx((slot_us * US, sifs_us * US))
    assert radio.difs_s == pytest.approx((sifs_us + 2 * slot_us) * US)
    assert (radio.window_min, radio.window_max, radio.ack_bytes) == (*window, 14)


@pytest.mark.parametrize(
    ("name", "range_m", "airtime_us"),
    [
        # 40 us of preamble and signal; 3 bytes of service and tail bits, 64 of headers, at 6 Mb/s.
        ("802.11p-6M", 300.0, 40 + (3 + 64 + 100) * 8 / 6),
        # 144 us of preamble, 48 of header; 64 bytes of headers.
        ("802.11b-2M", 100.0, 192 + (64 + 100) * 8 / 2),
        ("802.11b-1M", 120.0, 192 + (64 + 100) * 8),
        # 20.25 symbols of 1.024 ms, then 7 bits a symbol at a coding rate of 4/5; 16 bytes of header, 2 of checksum.
        ("lora-sf7", 2000.0, 20.25 * 1024 + (18 + 100) * 8 / (7 * 4 / 5) * 1024),
        # 8 bytes of preamble and sync word; a byte of length, 16 of header and 2 of checksum, at 50 kb/s.
        ("lora-fsk-50k", 500.0, (8 + 19 + 100) * 8 / 0.05),
    ],
)
def test_a_packet_of_100_bytes_is_on_air_as_long_as_its_bits_take(name: str, range_m: float, airtime_us: float) -> None:
    assert RADIOS[name].airtime_s(100) == pytest.approx(airtime_us * US)
    assert RADIOS[name].range_m == range_m


def test_the_ideal_radio_has_no_preset() -> None:
    assert (radio_of("ideal"), radio_of("lora-sf7")) == (None, RADIOS["lora-sf7"])


@pytest.mark.parametrize(
    ("c", "d", "meet"),
    [
        ((2.0, 2.0), (6.0, 6.0), True),
        ((4.0, 4.0), (6.0, 6.0), True),
        ((5.0, 5.0), (6.0, 6.0), False),
        ((-2.0, -2.0), (-1.0, -1.0), False),
        ((-2.0, -2.0), (9.0, 9.0), True),
        ((1.0, 1.0), (2.0, 2.0), True),
        ((6.0, 6.0), (3.0, 3.0), True),
    ],
)
def test_lines_on_one_line_cross_where_they_share_a_place(
    c: tuple[float, float], d: tuple[float, float], meet: bool
) -> None:
    assert crosses((0.0, 0.0), (4.0, 4.0), c, d) == crosses(c, d, (4.0, 4.0), (0.0, 0.0)) == meet
