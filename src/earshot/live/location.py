"""Location services: where a live node is, and how old that knowledge is.

A service gives fixes. The machine gets them through a `TrackedLocation`: it warns when a fix is stale,
extrapolates from the last fix of a moving node, remembers recent fixes, so that the machine can ask where
the node was when an event was published, and rounds positions if a precision is set.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from earshot.errors import LocationUnavailable
from earshot.geometry import ORIGIN, STILL, LocalPlane, Position, Velocity
from earshot.protocols.machine import TRACK_S

STALE_S = 10.0
FIX_SPACING_S = 0.25
"A fix replaces an earlier one that is closer in time than this, so that a node remembers a bounded number."


class Fix(msgspec.Struct, frozen=True, gc=False):
    """Where a node was at one time, and its velocity."""

    position: Position
    velocity: Velocity
    time: float

    def age_s(self, now: float) -> float:
        """The age of the fix in seconds."""
        return max(0.0, now - self.time)


class LocationService(Protocol):
    """Where fixes come from."""

    @property
    def plane(self) -> LocalPlane | None:
        """The plane of its positions; None for a plane without an origin on Earth."""
        ...

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        """Start; returns after the first fix. Degrees become metres on `plane`, or on a plane that the
        service chooses."""
        ...

    async def stop(self) -> None:
        """Stop."""
        ...

    def fix(self, now: float) -> Fix:
        """The latest fix. A service whose fixes always have the time `now` never becomes stale."""
        ...


def plane_near(lat_deg: float, lon_deg: float) -> LocalPlane:
    """The plane that nodes use if no origin is given: around the nearest whole degrees. Nodes near the
    border between two such planes must be given the same origin."""
    return LocalPlane(float(round(lat_deg)), float(round(lon_deg)))


def plane_name(plane: LocalPlane | None) -> str:
    """The name of a plane in datagrams."""
    return "" if plane is None else f"{plane.origin_lat_deg!r},{plane.origin_lon_deg!r}"


class Fixed:
    """A node that stays where it is: `Fixed(53.4, -2.97)` in degrees, or `Fixed.on_plane(10, 20)` in metres."""

    def __init__(self, lat_deg: float, lon_deg: float) -> None:
        LocalPlane(lat_deg, lon_deg)
        self.plane: LocalPlane | None = None
        self._lat_lon: tuple[float, float] | None = (lat_deg, lon_deg)
        self._at = ORIGIN

    @classmethod
    def on_plane(cls, x_m: float = 0.0, y_m: float = 0.0) -> Fixed:
        """At this many metres east and north of the network's origin."""
        if not (math.isfinite(x_m) and math.isfinite(y_m)):
            raise LocationUnavailable(f"a position is two finite numbers of metres, got {x_m},{y_m}")
        made = cls(0.0, 0.0)
        made._lat_lon, made._at = None, Position(float(x_m), float(y_m))
        return made

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        self.plane = plane
        if self._lat_lon is not None:
            self.plane = plane or plane_near(*self._lat_lon)
            self._at = self.plane.position(*self._lat_lon)

    async def stop(self) -> None:
        return None

    def fix(self, now: float) -> Fix:
        return Fix(self._at, STILL, now)


class RecentFixes:
    """The fixes of the last `TRACK_S` seconds, with straight lines between them."""

    def __init__(self) -> None:
        self._fixes: deque[Fix] = deque()

    def __len__(self) -> int:
        return len(self._fixes)

    def add(self, fix: Fix) -> None:
        """Remember the latest fix; does nothing if it is known."""
        fixes = self._fixes
        if fixes and fix.time <= fixes[-1].time:
            return
        if len(fixes) > 1 and fix.time - fixes[-2].time < FIX_SPACING_S:
            fixes.pop()
        fixes.append(fix)
        while len(fixes) > 1 and fixes[1].time <= fix.time - TRACK_S:
            fixes.popleft()

    def at(self, time: float) -> Fix:
        """Where the node was at that time: between two fixes, on the line between them; before the first or after the
        last fix, that fix."""
        after = bisect_right(self._fixes, time, key=lambda fix: fix.time)
        before = self._fixes[max(after - 1, 0)]
        if after in (0, len(self._fixes)):
            return before
        ahead = self._fixes[after]
        share = (time - before.time) / (ahead.time - before.time)
        here, there = before.position, ahead.position
        between = here.moved((there.x_m - here.x_m) * share, (there.y_m - here.y_m) * share)
        return Fix(between, before.velocity, time)


@dataclass(slots=True)
class TrackedLocation:
    """The machine's location: the service's latest fix, extrapolated by its velocity while it is fresh, and for
    earlier times the recent fixes. The host asks at least once a second."""

    service: LocationService
    warn: Callable[[str], None]
    stale_s: float = STALE_S
    precision_m: float | None = None
    stale: bool = False
    _recent: RecentFixes = field(default_factory=RecentFixes)
    _now: float = -math.inf
    "The latest time that was asked for: an earlier time is in the past."
    _updated_at: float = -math.inf
    _position: Position = ORIGIN
    _velocity: Velocity = STILL
    _moves: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.service, Fixed):
            self._update(0.0)
            self._moves = False

    def fix(self, now: float) -> Fix:
        """The latest fix. Warns when it becomes stale, and when it is fresh again."""
        fix = self.service.fix(now)
        self._now = max(self._now, now)
        self._recent.add(fix)
        age_s = fix.age_s(now)
        if (age_s > self.stale_s) is not self.stale:
            self.stale = not self.stale
            self.warn(f"stale-fix: {age_s:.0f} s old" if self.stale else "fresh-fix: the location is known again")
        return fix

    def forget(self) -> None:
        """Forget the fixes: the clock was set back, so their times are in the future."""
        self._recent = RecentFixes()
        self._now = self._updated_at = -math.inf

    def exact(self, now: float) -> Position:
        """The best estimate of the node's position: extrapolated from the last fix while that is fresh."""
        return self._extrapolated(self.fix(now), now)

    def _extrapolated(self, fix: Fix, now: float) -> Position:
        ahead_s = min(fix.age_s(now), self.stale_s)
        if not ahead_s or fix.velocity is STILL:
            return fix.position
        return fix.position.moved(fix.velocity.x_m_s * ahead_s, fix.velocity.y_m_s * ahead_s)

    def position(self, time: float) -> Position:
        """The node's position as the machine and other nodes see it, rounded to the precision."""
        if self._moves and time != self._updated_at:
            self._update(time)
        return self._position

    def velocity(self, time: float) -> Velocity:
        """The node's velocity; zero if the fix is stale."""
        if self._moves and time != self._updated_at:
            self._update(time)
        return self._velocity

    def _update(self, time: float) -> None:
        """Ask the service once for each time: all packets of a datagram have the same time."""
        fix = self._recent.at(time) if time < self._now else self.fix(time)
        at, step = self._extrapolated(fix, time), self.precision_m
        if step is not None:
            at = Position(round(at.x_m / step) * step, round(at.y_m / step) * step)
        self._position = at
        self._velocity = STILL if fix.age_s(time) > self.stale_s else fix.velocity
        self._updated_at = time
