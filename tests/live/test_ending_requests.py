"""What ends when an application no longer wants it: announcements, subscriptions and fences of a host."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.events import EventType
from earshot.filters import Filter, Subscription
from earshot.live.host import Host
from earshot.live.location import Fixed
from earshot.live.network import NetworkSettings
from earshot.protocols.flooding import Flooding, FloodingSettings
from earshot.protocols.machine import NOTHING, Announcement
from earshot.protocols.services.fences import Fence


class Loop:
    """A loop that runs nothing."""

    def call_soon(self, *_: Any) -> None:
        pass

    def call_later(self, *_: Any) -> Any:
        return SimpleNamespace(cancel=lambda: None)


@pytest.fixture
def host() -> Host:
    """A host that runs, on a loop that runs nothing."""

    async def made() -> Host:
        return Host("me", Flooding, FloodingSettings(), NetworkSettings(), Fixed.on_plane(), clock=lambda: 1000.0)

    found = asyncio.run(made())
    found._loop = Loop()  # type: ignore[assignment]
    return found


@pytest.fixture
def ended(host: Host, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, float]]:
    """What the services are asked to end."""
    found: list[tuple[str, str, float]] = []

    def noting(what: str) -> Any:
        def asked(name: str, now: float) -> Any:
            found.append((what, name, now))
            return NOTHING

        return asked

    for what in ("unannounce", "unsubscribe", "unfence"):
        monkeypatch.setattr(host.served, what, noting(what))
    return found


def test_what_was_asked_for_ends_once_and_what_was_not_is_left_alone(
    host: Host, ended: list[tuple[str, str, float]]
) -> None:
    announcement = Announcement(EventType("N"))
    host.announce(announcement)
    host.subscribe(Subscription("s", "me", Filter.parse("N: true")), lambda _: None)
    host.fence(Fence("f", near_m=50.0), lambda *_: None)
    assert (host.subscriptions, list(host._fences), list(host._announcements)) == (1, ["f"], [announcement.name])
    for _ in range(2):
        for name in (announcement.name, "unknown"):
            host.unannounce(name)
        for name in ("s", "unknown"):
            host.unsubscribe(name)
        for name in ("f", "unknown"):
            host.unfence(name)
    assert ended == [("unannounce", announcement.name, 1000.0), ("unsubscribe", "s", 1000.0), ("unfence", "f", 1000.0)]
    assert (host.subscriptions, host._fences, host._announcements, host._handlers) == (0, {}, {}, {})


def test_a_host_that_has_stopped_asks_nothing_more(host: Host, ended: list[tuple[str, str, float]]) -> None:
    host.subscribe(Subscription("s", "me", Filter.parse("N: true")), lambda _: None)
    host.fence(Fence("f", near_m=50.0), lambda *_: None)
    host._loop = None
    host.unsubscribe("s")
    host.unfence("f")
    assert ended == []
