"""The settings of extended ODMRP check each other: soft state must outlive what refreshes it."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.errors import SettingsError
from earshot.protocols.content_odmrp.machine import ContentOdmrpSettings


@pytest.mark.parametrize(
    ("name", "right", "wrong", "says"),
    [
        ("refresh_interval_s", 24.9, 25.0, "forwarding_timeout_s must exceed refresh_interval_s, got 25 and 25"),
        ("report_interval_s", 24.9, 25.0, "forwarding_timeout_s must exceed report_interval_s, got 25 and 25"),
        ("refresh_max_s", 24.9, 25.0, "forwarding_timeout_s must exceed refresh_max_s, got 25 and 25"),
        ("forwarding_timeout_s", 20.1, 20.0, "forwarding_timeout_s must exceed refresh_max_s, got 20 and 20"),
        ("answer_wait_s", 0.06, 0.05, "answer_wait_s must exceed gather_s, got 0.05 and 0.05"),
        ("refresh_min_s", 20.0, 20.5, "refresh_min_s must lie between 0 and refresh_max_s, got 20.5 and 20"),
        ("refresh_min_s", 0.1, 0.0, "refresh_min_s must lie between 0 and refresh_max_s, got 0 and 20"),
        ("greedy_share", 0.21, 0.2, "greedy_share must exceed 0.2, got 0.2"),
        ("summary_bytes", 32, 31, "summary_bytes must be at least 32 and leave 100 of packet_bytes, got 31 of 1400"),
        ("summary_bytes", 1300, 1301, "summary_bytes must be at least 32 and leave 100 of packet_bytes, got 1301"),
        ("vector_hashes", 2, 0, "vector_bits and vector_hashes: "),
        ("hop_limit", 1, 0, "hop_limit must be at least 1, got 0"),
    ],
)
def test_a_setting_at_its_bound_is_taken_and_beyond_it_is_refused(name: str, right: Any, wrong: Any, says: str) -> None:
    assert getattr(ContentOdmrpSettings(**{name: right}), name) == right
    with pytest.raises(SettingsError) as caught:
        ContentOdmrpSettings(**{name: wrong})
    assert str(caught.value).startswith(says)
