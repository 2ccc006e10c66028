"""Places: positions on one plane in metres, shapes, areas and proximities.

All nodes of a network agree on one plane (`LocalPlane`, with an origin in latitude and longitude);
inside Earshot every position is in metres on this plane. A shape has dimensions and a reference point
(its own origin). An area is a shape whose reference point is at a position. A proximity is a publisher's
shape whose reference point is at its naval: a fixed position (stationary) or the moving publisher (mobile).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from earshot.errors import GeometryError

if TYPE_CHECKING:
    import numpy as np
    from pyproj import Transformer
    from shapely import Polygon as ShapelyPolygon


class Position(msgspec.Struct, frozen=True, array_like=True):
    """A point on the network's plane, in metres east (x) and north (y) of its origin."""

    x_m: float
    y_m: float

    def distance_to(self, other: Position) -> float:
        """Metres between the two points."""
        return math.hypot(other.x_m - self.x_m, other.y_m - self.y_m)

    def moved(self, dx_m: float, dy_m: float) -> Position:
        """The point `dx_m` east and `dy_m` north of this one."""
        return Position(self.x_m + dx_m, self.y_m + dy_m)

    def __str__(self) -> str:
        return f"{_plain(self.x_m)},{_plain(self.y_m)}"


ORIGIN = Position(0.0, 0.0)


class Velocity(msgspec.Struct, frozen=True, array_like=True):
    """Metres a second east and north."""

    x_m_s: float
    y_m_s: float

    @property
    def speed_m_s(self) -> float:
        """Metres a second in the direction of motion."""
        return math.hypot(self.x_m_s, self.y_m_s)


STILL = Velocity(0.0, 0.0)
Corner = tuple[float, float]


def closing_speed_m_s(a: Position, a_velocity: Velocity, b: Position, b_velocity: Velocity) -> float:
    """How fast the distance between two moving points shrinks; negative while it grows."""
    dx, dy = b.x_m - a.x_m, b.y_m - a.y_m
    distance = math.hypot(dx, dy)
    if distance == 0.0:
        return 0.0
    relative_x = b_velocity.x_m_s - a_velocity.x_m_s
    relative_y = b_velocity.y_m_s - a_velocity.y_m_s
    return -(dx * relative_x + dy * relative_y) / distance


def _plain(number: float) -> str:
    """The shortest text that reads back as the same number: 300, not 300.0."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise GeometryError(f"{what} must be a positive number of metres, got {value}")


def _share_defaults(value: Shape | Area) -> None:
    """Replace field values that equal their default with the default object itself: only that object is left out on the
    wire, and a shape must have the same size after it was copied to another process."""
    for name, default in _DEFAULTS[type(value)]:
        given = getattr(value, name)
        if given is not default and given == default:
            msgspec.structs.force_setattr(value, name, default)


class Shape(msgspec.Struct, frozen=True, tag_field="shape", omit_defaults=True, dict=True):
    """Dimensions around a reference point. `reference` says where in the shape that point lies,
    as an offset in metres from its centre (of a polygon: from the origin of its corners)."""

    def contains(self, position: Position, at: Position) -> bool:
        """Whether the shape contains the position (border included), with the reference point at `at`."""
        raise TypeError(f"{type(self).__name__} is the base of all shapes, not a shape")  # pragma: no cover

    def polygon(self, at: Position = ORIGIN) -> ShapelyPolygon:
        """The outline as a shapely polygon, for drawing and for set operations."""
        from shapely.affinity import translate

        return translate(self._outline, at.x_m, at.y_m)

    @cached_property
    def _outline(self) -> ShapelyPolygon:
        from shapely import Polygon as Outline
        from shapely import prepare

        border, *holes = self._rings()
        outline = Outline(border, holes)
        prepare(outline)
        return outline

    @property
    def reach_m(self) -> float:
        """The distance from the reference point to the farthest point of the shape."""
        return max(math.hypot(x, y) for x, y in self._rings()[0])

    def _rings(self) -> Sequence[Sequence[Corner]]:
        """The corners of the border, then those of the holes."""
        raise TypeError(f"{type(self).__name__} is the base of all shapes, not a shape")  # pragma: no cover


class Circle(Shape, frozen=True, tag="circle"):
    """All points within `radius_m` of the centre."""

    radius_m: float
    reference: Position = ORIGIN

    def __post_init__(self) -> None:
        _positive("a circle's radius", self.radius_m)
        _share_defaults(self)

    def contains(self, position: Position, at: Position) -> bool:
        x = position.x_m - at.x_m + self.reference.x_m
        y = position.y_m - at.y_m + self.reference.y_m
        return x * x + y * y <= self.radius_m * self.radius_m

    @property
    def reach_m(self) -> float:
        return self.radius_m + math.hypot(self.reference.x_m, self.reference.y_m)

    def _rings(self) -> Sequence[Sequence[Corner]]:
        return [_ring(self.radius_m, self.radius_m, 0.0, self.reference)]

    def __str__(self) -> str:
        return f"circle:{_plain(self.radius_m)}m{_reference_text(self.reference)}"


class Rectangle(Shape, frozen=True, tag="rectangle"):
    """`width_m` along an axis turned `angle_deg` counter-clockwise from east, `height_m` across it."""

    width_m: float
    height_m: float
    angle_deg: float = 0.0
    reference: Position = ORIGIN

    def __post_init__(self) -> None:
        _positive("a rectangle's width", self.width_m)
        _positive("a rectangle's height", self.height_m)
        if not math.isfinite(self.angle_deg):
            raise GeometryError(f"an angle must be finite, got {self.angle_deg}")
        _share_defaults(self)

    def contains(self, position: Position, at: Position) -> bool:
        x, y = _turned_back(position, at, self.reference, self.angle_deg)
        slack = 1e-9 * (self.width_m + self.height_m)
        return abs(x) <= self.width_m / 2 + slack and abs(y) <= self.height_m / 2 + slack

    def _rings(self) -> Sequence[Sequence[Corner]]:
        half_w, half_h = self.width_m / 2, self.height_m / 2
        square = [(-half_w, -half_h), (half_w, -half_h), (half_w, half_h), (-half_w, half_h)]
        return [[_turned(x, y, self.angle_deg, self.reference) for x, y in square]]

    def __str__(self) -> str:
        sides = f"{_plain(self.width_m)}x{_plain(self.height_m)}m"
        return f"rectangle:{sides}{_angle_text(self.angle_deg)}{_reference_text(self.reference)}"


class Ellipse(Shape, frozen=True, tag="ellipse"):
    """Half-axes `a_m` along an axis turned `angle_deg` counter-clockwise from east, `b_m` across it."""

    a_m: float
    b_m: float
    angle_deg: float = 0.0
    reference: Position = ORIGIN

    def __post_init__(self) -> None:
        _positive("an ellipse's half-axis", self.a_m)
        _positive("an ellipse's half-axis", self.b_m)
        if not math.isfinite(self.angle_deg):
            raise GeometryError(f"an angle must be finite, got {self.angle_deg}")
        _share_defaults(self)

    def contains(self, position: Position, at: Position) -> bool:
        x, y = _turned_back(position, at, self.reference, self.angle_deg)
        along, across = x / self.a_m, y / self.b_m
        return along * along + across * across <= 1.0 + 1e-12  # not a power: that raises where a product is infinite

    @property
    def reach_m(self) -> float:
        """The distance to the farthest point; up to a thousandth more if the reference point is not the centre."""
        if self.reference == ORIGIN:
            return max(self.a_m, self.b_m)
        around = 1.0 / math.cos(math.pi / _RING_CORNERS)
        ring = _ring(self.a_m * around, self.b_m * around, self.angle_deg, self.reference)
        return max(math.hypot(x, y) for x, y in ring)

    def _rings(self) -> Sequence[Sequence[Corner]]:
        return [_ring(self.a_m, self.b_m, self.angle_deg, self.reference)]

    def __str__(self) -> str:
        axes = f"{_plain(self.a_m)}x{_plain(self.b_m)}m"
        return f"ellipse:{axes}{_angle_text(self.angle_deg)}{_reference_text(self.reference)}"


class Polygon(Shape, frozen=True, tag="polygon"):
    """A ring of corners in metres from the reference point, with holes; the border belongs to the polygon."""

    corners: tuple[Corner, ...]
    holes: tuple[tuple[Corner, ...], ...] = ()

    def __post_init__(self) -> None:
        from shapely import is_valid_reason

        msgspec.structs.force_setattr(self, "corners", _corner_tuples(self.corners))
        msgspec.structs.force_setattr(self, "holes", tuple(_corner_tuples(hole) for hole in self.holes))
        for ring in self._rings():
            if len(ring) < 3:
                raise GeometryError(f"a polygon's ring needs at least 3 corners, got {len(ring)}")
            if not all(math.isfinite(x) and math.isfinite(y) for x, y in ring):
                raise GeometryError("a polygon's corners must be finite numbers of metres")
        reason = is_valid_reason(self._outline)
        if reason != "Valid Geometry":
            raise GeometryError(f"not a polygon: {reason}")
        if self._outline.area == 0.0:
            raise GeometryError("a polygon must enclose an area")

    def contains(self, position: Position, at: Position) -> bool:
        from shapely import intersects_xy

        return bool(intersects_xy(self._outline, position.x_m - at.x_m, position.y_m - at.y_m))

    def _rings(self) -> Sequence[Sequence[Corner]]:
        return [self.corners, *self.holes]

    def __str__(self) -> str:
        rings = [" ".join(f"{_plain(x)},{_plain(y)}" for x, y in ring) for ring in self._rings()]
        return f"polygon:{' / '.join(rings)}"


def _corner_tuples(ring: Iterable[Iterable[float]]) -> tuple[Corner, ...]:
    try:
        return tuple((float(x), float(y)) for x, y in ring)
    except (TypeError, ValueError):
        raise GeometryError("a polygon's corners are pairs of numbers, as in [(0, 0), (100, 0), (0, 100)]") from None


AnyShape = Circle | Rectangle | Ellipse | Polygon


def _rotated(x: float, y: float, angle_deg: float) -> Corner:
    if angle_deg == 0.0:
        return x, y
    angle = math.radians(angle_deg)
    cos, sin = math.cos(angle), math.sin(angle)
    return x * cos - y * sin, x * sin + y * cos


def _turned(x: float, y: float, angle_deg: float, reference: Position) -> Corner:
    x, y = _rotated(x, y, angle_deg)
    return x - reference.x_m, y - reference.y_m


def _turned_back(position: Position, at: Position, reference: Position, angle_deg: float) -> Corner:
    return _rotated(position.x_m - at.x_m + reference.x_m, position.y_m - at.y_m + reference.y_m, -angle_deg)


_RING_CORNERS = 64


def _ring(a_m: float, b_m: float, angle_deg: float, reference: Position) -> list[Corner]:
    turns = [2 * math.pi * k / _RING_CORNERS for k in range(_RING_CORNERS)]
    return [_turned(a_m * math.cos(t), b_m * math.sin(t), angle_deg, reference) for t in turns]


def _angle_text(angle_deg: float) -> str:
    return f"@{_plain(angle_deg)}" if angle_deg else ""


def _reference_text(reference: Position) -> str:
    return f"+{reference}" if reference != ORIGIN else ""


class Area(msgspec.Struct, frozen=True, omit_defaults=True):
    """A shape at a fixed position: a region of interest, or a place named in a filter."""

    shape: AnyShape
    at: Position = ORIGIN

    def __post_init__(self) -> None:
        _share_defaults(self)

    def contains(self, position: Position) -> bool:
        """Whether the position lies in the area, border included."""
        return self.shape.contains(position, self.at)

    def polygon(self) -> ShapelyPolygon:
        """The outline on the network's plane."""
        return self.shape.polygon(self.at)

    @property
    def centre(self) -> Position:
        """The middle of a circle, a rectangle or an ellipse; for a polygon, the origin of its corners."""
        if isinstance(self.shape, Polygon):
            return self.at
        return self.at.moved(-self.shape.reference.x_m, -self.shape.reference.y_m)

    def overlaps(self, other: Area) -> bool:
        """Whether the two areas share a point. (An ellipse is approximated by 64 corners.)"""
        a, b = (self, other) if isinstance(self.shape, Circle) else (other, self)
        if not isinstance(a.shape, Circle):
            return bool(a.polygon().intersects(b.polygon()))
        if isinstance(b.shape, Circle):
            return a.centre.distance_to(b.centre) <= a.shape.radius_m + b.shape.radius_m
        from shapely import Point

        return bool(b.polygon().distance(Point(a.centre.x_m, a.centre.y_m)) <= a.shape.radius_m)

    def includes(self, other: Area) -> bool:
        """True only if this area contains every point of the other. It may be False although the area does, if the
        borders touch, or if the border of a round area comes within a thousandth of the other border."""
        if self == other:
            return True
        dx, dy = other.centre.x_m - self.centre.x_m, other.centre.y_m - self.centre.y_m
        match self.shape, other.shape:
            case Circle(radius_m=radius), Circle(radius_m=smaller):
                distance = math.hypot(dx, dy)
                return (distance + smaller) * (1.0 + 1e-12 * (distance > 0)) <= radius
            case Rectangle(width_m=width, height_m=height, angle_deg=angle), Rectangle() as inner if (
                angle == inner.angle_deg
            ):
                x, y = _turned_back(other.centre, self.centre, ORIGIN, angle)
                return abs(x) + inner.width_m / 2 <= width / 2 and abs(y) + inner.height_m / 2 <= height / 2
        margin = 1e-9 * (1.0 + math.hypot(dx, dy) + self.shape.reach_m + other.shape.reach_m)
        return bool(self.polygon().covers(other._polygon_around().buffer(margin, join_style="mitre")))

    def _polygon_around(self) -> ShapelyPolygon:
        """An outline that contains the whole area: drawn around a circle or an ellipse, not inside it."""
        from shapely.affinity import scale

        if not isinstance(self.shape, Circle | Ellipse):
            return self.polygon()
        factor = 1.0 / math.cos(math.pi / _RING_CORNERS)
        return scale(self.polygon(), factor, factor, origin=(self.centre.x_m, self.centre.y_m))


_DEFAULTS: dict[type, tuple[tuple[str, Any], ...]] = {
    kind: tuple(
        (field.name, field.default) for field in msgspec.structs.fields(kind) if field.default is not msgspec.NODEFAULT
    )
    for kind in (Circle, Rectangle, Ellipse, Area)
}


class Proximity(msgspec.Struct, frozen=True):
    """The publisher's area. Its naval is the place of the shape's reference point: a fixed
    position (stationary), or the moving publisher (mobile, identified by its first naval)."""

    shape: AnyShape
    naval: Position
    mobile: bool = False

    def contains(self, position: Position, at: Position | None = None) -> bool:
        """Whether the position lies inside. `at` is the present naval of a mobile proximity.

        A stationary proximity ignores `at`; a mobile proximity is at its first naval if `at` is missing.
        """
        naval = at if self.mobile and at is not None else self.naval
        return self.shape.contains(position, naval)

    def area(self, at: Position | None = None) -> Area:
        """The area that the proximity covers now."""
        return Area(self.shape, at if self.mobile and at is not None else self.naval)


def is_area_of(area: Area | None, proximity: Proximity | None) -> bool:
    """Whether the proximity covers exactly this area or, if it is mobile, may cover it; None is everywhere."""
    if area is None or proximity is None:
        return area is None and proximity is None
    return area.shape == proximity.shape and (proximity.mobile or area.at == proximity.naval)


_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SHAPE_TEXT = re.compile(
    rf"(?P<kind>circle|rectangle|ellipse):(?P<first>{_NUMBER})(?:x(?P<second>{_NUMBER}))?(?P<unit>m|km|)"
    rf"(?:@(?P<angle>{_NUMBER}))?(?:\+(?P<rx>{_NUMBER}),(?P<ry>{_NUMBER}))?"
)


def parse_shape(text: str) -> AnyShape:
    """Read `circle:300m`, `rectangle:100x50m@30`, `ellipse:80x40m`, `polygon:0,0 10,0 0,10 / hole`; lengths are in
    metres, or in kilometres as in `circle:2km`."""
    kind, _, rest = text.strip().partition(":")
    if kind == "polygon":
        rings = tuple(_parse_ring(ring, text) for ring in rest.split("/"))
        return Polygon(rings[0], rings[1:])
    found = _SHAPE_TEXT.fullmatch(text.strip())
    if found is None or (found["second"] is None) != (found["kind"] == "circle"):
        raise GeometryError(
            f"cannot read the shape {text!r}; write circle:300m, rectangle:100x50m@30, "
            "ellipse:80x40m@30 or polygon:0,0 100,0 0,100"
        )
    metres = 1000.0 if found["unit"] == "km" else 1.0
    first, angle = float(found["first"]) * metres, float(found["angle"] or 0.0)
    reference = Position(float(found["rx"] or 0.0), float(found["ry"] or 0.0))
    if kind == "circle":
        return Circle(first, reference)
    return (Rectangle if kind == "rectangle" else Ellipse)(first, float(found["second"]) * metres, angle, reference)


def _parse_ring(ring: str, text: str) -> tuple[Corner, ...]:
    try:
        return tuple((float(x), float(y)) for x, y in (corner.split(",") for corner in ring.split()))
    except ValueError:
        raise GeometryError(
            f"cannot read a corner of {text!r}; each must be x,y in metres, as in polygon:0,0 100,0 0,100"
        ) from None


class LocalPlane(msgspec.Struct, frozen=True, dict=True):
    """The plane all nodes of a network agree on: azimuthal equidistant around an origin (WGS 84)."""

    origin_lat_deg: float
    origin_lon_deg: float

    def __post_init__(self) -> None:
        _check_lat_lon(self.origin_lat_deg, self.origin_lon_deg)

    @cached_property
    def _forward(self) -> Transformer:
        return _transformer(self.origin_lat_deg, self.origin_lon_deg)

    def position(self, lat_deg: float, lon_deg: float) -> Position:
        """Latitude and longitude to the plane."""
        _check_lat_lon(lat_deg, lon_deg)
        x, y = self._forward.transform(lon_deg, lat_deg)
        return Position(float(x), float(y))

    def positions(self, lat_deg: np.ndarray, lon_deg: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Many latitudes and longitudes to the plane: arrays of x_m and y_m."""
        x, y = self._forward.transform(lon_deg, lat_deg)
        return x, y

    def lat_lon(self, position: Position) -> tuple[float, float]:
        """Back to latitude and longitude, in degrees."""
        lon, lat = self._forward.transform(position.x_m, position.y_m, direction="INVERSE")
        return float(lat), float(lon)


def _check_lat_lon(lat_deg: float, lon_deg: float) -> None:
    if not -90.0 <= lat_deg <= 90.0:
        raise GeometryError(f"a latitude must be from -90 to 90 degrees, got {lat_deg}")
    if not -180.0 <= lon_deg <= 180.0:
        raise GeometryError(f"a longitude must be from -180 to 180 degrees, got {lon_deg}")


@lru_cache(maxsize=64)
def _transformer(origin_lat_deg: float, origin_lon_deg: float) -> Transformer:
    from pyproj import Transformer

    plane = f"+proj=aeqd +lat_0={origin_lat_deg} +lon_0={origin_lon_deg} +datum=WGS84 +units=m"
    return Transformer.from_crs("EPSG:4326", plane, always_xy=True)
