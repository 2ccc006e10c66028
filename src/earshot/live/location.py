"""Location services: where a live node is, and how old that knowledge is.

A service gives fixes; `Whereabouts` stands between it and the machine: it says when a fix is stale,
carries a moving node on from its last fix, and coarsens what leaves the node where that is wished.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Protocol

import msgspec

from earshot.errors import LocationUnavailable
from earshot.geometry import ORIGIN, STILL, LocalPlane, Position, Velocity

logger = logging.getLogger("earshot.live")

STALE_S = 10.0
MOMENT_S = 0.005


class Fix(msgspec.Struct, frozen=True, gc=False):
    """Where a node was at one time, and how it moved."""

    position: Position
    velocity: Velocity
    time: float

    def age_s(self, now: float) -> float:
        """Seconds since it was true."""
        return max(0.0, now - self.time)


class LocationService(Protocol):
    """Where fixes come from."""

    @property
    def plane(self) -> LocalPlane | None:
        """What its positions are measured from; None for a plane that is nowhere in particular."""
        ...

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        """Begin; returns once there is a first fix. Latitudes become metres on `plane`, or on one the
        service chooses."""
        ...

    async def stop(self) -> None:
        """End."""
        ...

    def fix(self, now: float) -> Fix:
        """The latest fix; one whose time is `now` never grows stale."""
        ...


def plane_near(lat_deg: float, lon_deg: float) -> LocalPlane:
    """The plane nodes agree on without being told: around the nearest whole degrees. Nodes near the
    border between two of them must be given one origin."""
    return LocalPlane(float(round(lat_deg)), float(round(lon_deg)))


def plane_name(plane: LocalPlane | None) -> str:
    """How datagrams name a plane."""
    return "" if plane is None else f"{plane.origin_lat_deg!r},{plane.origin_lon_deg!r}"


class Fixed:
    """A node that stays where it is: `Fixed(53.4, -2.97)` in degrees, or `Fixed.on_plane(10, 20)` in metres."""

    def __init__(self, lat_deg: float, lon_deg: float) -> None:
        LocalPlane(lat_deg, lon_deg)
        self._lat_lon: tuple[float, float] | None = (lat_deg, lon_deg)
        self._at = ORIGIN
        self._plane: LocalPlane | None = None

    @classmethod
    def on_plane(cls, x_m: float = 0.0, y_m: float = 0.0) -> Fixed:
        """At so many metres east and north of the network's own origin."""
        if not (math.isfinite(x_m) and math.isfinite(y_m)):
            raise LocationUnavailable(f"a position is two finite numbers of metres, got {x_m},{y_m}")
        made = cls(0.0, 0.0)
        made._lat_lon, made._at = None, Position(float(x_m), float(y_m))
        return made

    @property
    def plane(self) -> LocalPlane | None:
        return self._plane

    async def start(self, clock: Callable[[], float], plane: LocalPlane | None) -> None:
        if self._lat_lon is not None:
            self._plane = plane or plane_near(*self._lat_lon)
            self._at = self._plane.position(*self._lat_lon)
        else:
            self._plane = plane

    async def stop(self) -> None:
        return None

    def fix(self, now: float) -> Fix:
        return Fix(self._at, STILL, now)


class Whereabouts:
    """The machine's location: the service's latest fix, carried on by its velocity while it is fresh."""

    def __init__(
        self,
        service: LocationService,
        said: Callable[[str], None],
        *,
        stale_s: float = STALE_S,
        precision_m: float | None = None,
    ) -> None:
        self._service = service
        self._said = said
        self._stale_s = stale_s
        self._precision_m = precision_m
        self.stale = False
        self._asked_at = -math.inf
        self._position = ORIGIN
        self._velocity = STILL
        self._moves = True
        if isinstance(service, Fixed):
            self._look(0.0)
            self._moves = False

    def fix(self, now: float) -> Fix:
        """The latest fix, as it is; a stale one is said, once."""
        fix = self._service.fix(now)
        age_s = fix.age_s(now)
        if (age_s > self._stale_s) is not self.stale:
            self.stale = not self.stale
            self._said(f"stale-fix: {age_s:.0f} s old" if self.stale else "fresh-fix: the location is known again")
        return fix

    def exact(self, now: float) -> Position:
        """Where the node is, as well as it knows: carried on from the last fix, for as long as that is fresh."""
        return self._carried_on(self.fix(now), now)

    def _carried_on(self, fix: Fix, now: float) -> Position:
        onward_s = min(fix.age_s(now), self._stale_s)
        if not onward_s or fix.velocity is STILL:
            return fix.position
        return fix.position.moved(fix.velocity.x_m_s * onward_s, fix.velocity.y_m_s * onward_s)

    def position(self, now: float) -> Position:
        """Where the machine, and with it everybody else, is told the node is."""
        if self._moves and now != self._asked_at:
            self._look(now)
        return self._position

    def velocity(self, now: float) -> Velocity:
        """How the node moves; a stale fix says nothing about that."""
        if self._moves and now != self._asked_at:
            self._look(now)
        return self._velocity

    def _look(self, now: float) -> None:
        """Once for each moment: a datagram's events are all heard at one."""
        fix = self.fix(now)
        at, step = self._carried_on(fix, now), self._precision_m
        if step is not None:
            at = Position(round(at.x_m / step) * step, round(at.y_m / step) * step)
        self._position = at
        self._velocity = STILL if self.stale else fix.velocity
        self._asked_at = now

    def lately(self, now: float) -> Position:
        """The position told last, where that was a moment ago: good enough to head a datagram."""
        return self._position if now - self._asked_at < MOMENT_S or not self._moves else self.position(now)
