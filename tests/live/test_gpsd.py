"""A gpsd that does not answer: what the user reads."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from earshot.errors import LocationUnavailable
from earshot.live.gpsd import Gpsd


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "Connection refused"),
     (OSError("Multiple exceptions: one, other"), "Multiple exceptions: one, other")],
)  # fmt: skip
def test_a_gpsd_that_cannot_be_reached_is_named_with_the_reason(
    error: OSError, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_connection(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    with pytest.raises(LocationUnavailable) as caught:
        asyncio.run(Gpsd("roof", 2948).start(lambda: 0.0, None))
    assert str(caught.value) == f"no gpsd at roof:2948 ({reason}); start it, or name another"
