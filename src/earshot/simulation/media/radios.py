"""Presets of real radios: what `medium.radio` stands for. docs/simulator.md names the sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

RadioName = Literal["802.11p-6M", "802.11b-2M", "802.11b-1M", "lora-sf7", "lora-fsk-50k", "ideal"]
IDEAL: Final = "ideal"
"Not a radio: packets take no time on air, and nothing collides."


@dataclass(frozen=True, slots=True)
class Radio:
    """A radio's figures, under the names that `Contention` has for them."""

    range_m: float
    bit_rate_bps: float
    preamble_s: float
    header_bytes: int
    slot_s: float
    sifs_s: float
    difs_s: float
    ack_bytes: int
    window_min: int
    window_max: int

    def airtime_s(self, packet_bytes: int) -> float:
        """How long a packet of that size keeps the channel busy."""
        return self.preamble_s + (self.header_bytes + packet_bytes) * 8 / self.bit_rate_bps


RADIOS: Final[dict[str, Radio]] = {
    # IEEE 802.11-2020, OFDM with 10 MHz channels: 32 us preamble, 8 us SIGNAL, 22 service and tail bits.
    "802.11p-6M": Radio(300.0, 6e6, 40e-6, 67, 13e-6, 32e-6, 58e-6, 14, 15, 1023),
    # IEEE 802.11-2020, DSSS with the long preamble. 64 bytes: MAC 24 + 4, LLC 8, IP 20, UDP 8.
    "802.11b-2M": Radio(100.0, 2e6, 192e-6, 64, 20e-6, 10e-6, 50e-6, 14, 31, 1023),
    "802.11b-1M": Radio(120.0, 1e6, 192e-6, 64, 20e-6, 10e-6, 50e-6, 14, 31, 1023),
    # Semtech AN1200.13: SF7, 125 kHz, coding rate 4/5; preamble and fixed header are 20.25 symbols of 1.024 ms.
    # Slots and windows as Meshtastic's listen before talk, with its 16 byte header.
    "lora-sf7": Radio(2000.0, 5468.75, 20.736e-3, 18, 10.2e-3, 5e-3, 25.4e-3, 4, 7, 255),
    # LoRaWAN's data rate 7 in Europe: FSK at 50 kb/s, 5 bytes of preamble, 3 of sync word, 1 of length, 2 of checksum.
    "lora-fsk-50k": Radio(500.0, 50e3, 1.28e-3, 19, 8e-3, 5e-3, 21e-3, 4, 7, 255),
}


def radio_of(name: str) -> Radio | None:
    """The preset of that name; None for the ideal radio."""
    return RADIOS.get(name)
