"""Shapes, areas and proximities, with shapely and pyproj as the independent truth."""

import math

import msgspec
import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyproj import Geod
from shapely import affinity

from earshot import Area, Circle, Ellipse, LocalPlane, Polygon, Position, Proximity, Rectangle, Velocity
from earshot.errors import GeometryError
from earshot.geometry import AnyShape, closing_speed_m_s, is_area_of, parse_shape
from sizes import sized

metres = st.floats(-500, 500)
sizes = st.floats(1, 400)
angles = st.floats(-720, 720)
positions = st.builds(Position, metres, metres)
circles = st.builds(Circle, sizes, positions)
rectangles = st.builds(Rectangle, sizes, sizes, angles, positions)
ellipses = st.builds(Ellipse, sizes, sizes, angles, positions)


@st.composite
def polygons(draw: st.DrawFn) -> Polygon:
    """A star-shaped ring with, perhaps, a hole like it inside."""
    radii = draw(st.lists(st.floats(20, 300), min_size=3, max_size=8))
    turns = [2 * math.pi * place / len(radii) for place in range(len(radii))]
    ring = [(r * math.cos(t), r * math.sin(t)) for r, t in zip(radii, turns, strict=True)]
    holes = [[(x / 3, y / 3) for x, y in ring]] if draw(st.booleans()) else []
    return Polygon(ring, holes)  # type: ignore[arg-type]


shapes = st.one_of(circles, rectangles, ellipses, polygons())
areas = st.builds(Area, shapes, positions)


def outline(area: Area) -> shapely.Geometry:
    """The area as shapely builds it from its own parts."""
    shape, at = area.shape, area.at
    if isinstance(shape, Polygon):
        return affinity.translate(shapely.Polygon(shape.corners, shape.holes), at.x_m, at.y_m)
    if isinstance(shape, Rectangle):
        plain = shapely.box(-shape.width_m / 2, -shape.height_m / 2, shape.width_m / 2, shape.height_m / 2)
    elif isinstance(shape, Ellipse):
        plain = affinity.scale(shapely.Point(0, 0).buffer(1, quad_segs=256), shape.a_m, shape.b_m)
    else:
        plain = shapely.Point(0, 0).buffer(shape.radius_m, quad_segs=256)
    turned = plain if isinstance(shape, Circle) else affinity.rotate(plain, shape.angle_deg, origin=(0, 0))
    return affinity.translate(turned, at.x_m - shape.reference.x_m, at.y_m - shape.reference.y_m)


@settings(max_examples=sized(400, 10_000))
@given(areas, positions)
def test_a_shape_contains_what_shapely_says(area: Area, position: Position) -> None:
    truth, point = outline(area), shapely.Point(position.x_m, position.y_m)
    assume(truth.boundary.distance(point) > 0.1)
    assert area.contains(position) == truth.covers(point)


@settings(max_examples=sized(200, 3_000))
@given(areas)
def test_the_polygon_of_an_area_is_nearly_the_area(area: Area) -> None:
    truth = outline(area)
    assert area.polygon().symmetric_difference(truth).area <= 0.002 * truth.area


@settings(max_examples=sized(200, 3_000))
@given(areas)
def test_reach_is_the_distance_of_the_farthest_point_or_a_little_more(area: Area) -> None:
    farthest = shapely.hausdorff_distance(outline(area), shapely.Point(area.at.x_m, area.at.y_m))
    assert farthest * 0.9999 <= area.shape.reach_m <= farthest * 1.002 + 0.01


@settings(max_examples=sized(300, 5_000))
@given(areas, areas)
def test_areas_overlap_when_shapely_says_so(a: Area, b: Area) -> None:
    a_truth, b_truth = outline(a), outline(b)
    apart, common = a_truth.distance(b_truth), a_truth.intersection(b_truth).area
    assume(apart > 1.0 or common > 20.0)
    assert a.overlaps(b) == b.overlaps(a) == (apart == 0.0)


@settings(max_examples=sized(300, 5_000))
@given(areas, areas)
def test_an_area_includes_another_only_if_shapely_says_so(a: Area, b: Area) -> None:
    smaller = Area(_scaled(b.shape, 0.3), a.at)
    for other in (b, smaller):
        if a.includes(other):
            assert outline(a).buffer(0.05).covers(outline(other))
        elif not isinstance(a.shape, Polygon):
            assert not affinity.scale(outline(a), 0.98, 0.98).covers(outline(other))
    assert a.includes(a)


def _scaled(shape: AnyShape, factor: float) -> AnyShape:
    match shape:
        case Circle(radius_m=radius):
            return Circle(radius * factor)
        case Rectangle(width_m=width, height_m=height, angle_deg=angle):
            return Rectangle(width * factor, height * factor, angle)
        case Ellipse(a_m=a, b_m=b, angle_deg=angle):
            return Ellipse(a * factor, b * factor, angle)
        case Polygon(corners=corners):
            return Polygon(tuple((x * factor, y * factor) for x, y in corners))


@pytest.mark.parametrize(
    ("outer", "inner", "included"),
    [
        (Area(Circle(10)), Area(Circle(10)), True),
        (Area(Circle(10)), Area(Circle(5), Position(4, 0)), True),
        (Area(Circle(10)), Area(Circle(5), Position(6, 0)), False),
        (Area(Circle(10)), Area(Rectangle(13, 13)), True),
        (Area(Circle(10)), Area(Rectangle(15, 15)), False),
        (Area(Rectangle(20, 10, 30)), Area(Rectangle(10, 10, 30)), True),
        (Area(Rectangle(20, 10, 30)), Area(Rectangle(10, 10, 60)), False),
        (Area(Rectangle(20, 20)), Area(Circle(9.9)), True),
        (Area(Rectangle(20, 20)), Area(Circle(10.1)), False),
        (Area(Ellipse(20, 10)), Area(Ellipse(19, 9)), True),
        (Area(Polygon(((0, 0), (9, 0), (9, 9), (0, 9)))), Area(Circle(4), Position(4.5, 4.5)), True),
        (
            Area(Polygon(((0, 0), (9, 0), (9, 9), (0, 9)), (((4, 4), (5, 4), (4, 5)),))),
            Area(Circle(4), Position(4.5, 4.5)),
            False,
        ),
    ],
)
def test_inclusion(outer: Area, inner: Area, included: bool) -> None:
    assert outer.includes(inner) is included


def test_borders_belong_to_the_area() -> None:
    assert [
        Area(Circle(10)).contains(Position(10, 0)),
        Area(Rectangle(20, 10)).contains(Position(10, 5)),
        Area(Ellipse(20, 10)).contains(Position(0, -10)),
        Area(Polygon(((0, 0), (9, 0), (0, 9)))).contains(Position(4.5, 4.5)),
        Area(Circle(10)).contains(Position(10.000001, 0)),
    ] == [True, True, True, True, False]


def test_a_polygons_hole_is_outside_it_and_its_border_inside() -> None:
    ring = Area(Polygon(((0, 0), (9, 0), (9, 9), (0, 9)), (((3, 3), (6, 3), (6, 6), (3, 6)),)))
    assert [ring.contains(Position(x, 4.5)) for x in (1, 3, 4.5, 6, 8, 10)] == [True, True, False, True, True, False]


def test_an_angle_turns_counter_clockwise_from_east() -> None:
    assert Rectangle(100, 10, 45).contains(Position(30, 30), Position(0, 0))
    assert not Rectangle(100, 10, 45).contains(Position(30, -30), Position(0, 0))


def test_a_shape_lies_around_its_reference_point() -> None:
    ahead = Circle(10, reference=Position(-20, 0))  # the centre is 20 m east of the reference point
    assert ahead.contains(Position(120, 0), at=Position(100, 0))
    assert not ahead.contains(Position(100, 0), at=Position(100, 0))
    assert Area(ahead, Position(100, 0)).centre == Position(120, 0)


def test_a_stationary_proximity_stays_and_a_mobile_one_moves_with_its_naval() -> None:
    here, there = Position(0, 0), Position(1000, 0)
    fixed, moving = Proximity(Circle(100), here), Proximity(Circle(100), here, mobile=True)
    asked = [(here, None), (here, there), (there, there)]
    assert [fixed.contains(position, at=at) for position, at in asked] == [True, True, False]
    assert [moving.contains(position, at=at) for position, at in asked] == [True, False, True]
    assert (fixed.area(there), moving.area(there)) == (Area(Circle(100), here), Area(Circle(100), there))


def test_proximities_may_nest_and_overlap() -> None:
    street, district = Proximity(Circle(100), Position(50, 0)), Proximity(Rectangle(800, 600), Position(0, 0))
    assert district.area().includes(street.area())
    assert street.area().overlaps(district.area())
    position = Position(120, 10)
    assert (street.contains(position), district.contains(position)) == (True, True)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: Circle(0), "a circle's radius must be a positive number of metres, got 0"),
        (lambda: Circle(math.inf), "radius"),
        (lambda: Circle(math.nan), "radius"),
        (lambda: Rectangle(-1, 2), "width"),
        (lambda: Rectangle(1, 0), "height"),
        (lambda: Rectangle(1, 2, math.nan), "an angle must be finite"),
        (lambda: Ellipse(0, 1), "half-axis"),
        (lambda: Ellipse(1, 2, math.inf), "an angle must be finite"),
        (lambda: Polygon(((0, 0), (1, 1))), "at least 3 corners, got 2"),
        (lambda: Polygon(((0, 0), (1, 1), (2, 2))), "not a polygon|enclose an area"),
        (lambda: Polygon(((0, 0), (9, 9), (9, 0), (0, 9))), "not a polygon: Self-intersection"),
        (lambda: Polygon(((0, 0), (9, 0), (0, math.nan))), "finite"),
        (lambda: Polygon(((0, 0), (9, 0), (0, 9)), (((20, 20), (30, 20), (20, 30)),)), "not a polygon: Hole"),
        (lambda: Polygon(((0, 0), (9, 0), "x")), "pairs of numbers"),  # type: ignore[arg-type]
        (lambda: Polygon(((0, 0), (9, 0), (1, 2, 3))), "pairs of numbers"),  # type: ignore[arg-type]
        (lambda: parse_shape("circle:300ft"), "cannot read the shape 'circle:300ft'"),
        (lambda: parse_shape("circle:3x3m"), "cannot read the shape"),
        (lambda: parse_shape("rectangle:3m"), "cannot read the shape"),
        (lambda: parse_shape("blob:3m"), "cannot read the shape"),
        (lambda: parse_shape(""), "cannot read the shape"),
        (lambda: parse_shape("circle:-3m"), "positive"),
        (lambda: parse_shape("polygon:0,0 9,0 x,9"), "cannot read a corner"),
        (lambda: parse_shape("polygon:0,0 9,0 0,9,9"), "must be x,y in metres"),
        (lambda: LocalPlane(91, 0), "latitude"),
        (lambda: LocalPlane(0, 181), "longitude"),
        (lambda: LocalPlane(0, 0).position(math.nan, 0), "latitude"),
    ],
)
def test_what_cannot_be_is_refused(build: object, reason: str) -> None:
    with pytest.raises(GeometryError, match=reason):
        build()  # type: ignore[operator]


@settings(max_examples=sized(200, 3_000))
@given(shapes)
def test_a_shapes_text_reads_back_as_the_shape(shape: AnyShape) -> None:
    assert parse_shape(str(shape)) == shape


@settings(max_examples=sized(100, 2_000))
@given(areas)
def test_an_area_comes_back_from_the_wire(area: Area) -> None:
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(area), type=Area)
    assert (again, hash(again)) == (area, hash(area))


def test_a_polygon_is_the_same_from_lists_and_whole_numbers() -> None:
    from_lists = Polygon([[0, 0], [9, 0], [0, 9]])  # type: ignore[arg-type, list-item]
    assert (from_lists, hash(from_lists)) == (Polygon(((0.0, 0.0), (9.0, 0.0), (0.0, 9.0))), hash(from_lists))


@settings(max_examples=sized(200, 3_000))
@given(positions, st.builds(Velocity, metres, metres), positions, st.builds(Velocity, metres, metres))
def test_closing_speed_is_how_fast_the_distance_shrinks(
    a: Position, a_velocity: Velocity, b: Position, b_velocity: Velocity
) -> None:
    assume(a.distance_to(b) > 1.0)
    moment = 1e-6
    later_a = a.moved(a_velocity.x_m_s * moment, a_velocity.y_m_s * moment)
    later_b = b.moved(b_velocity.x_m_s * moment, b_velocity.y_m_s * moment)
    shrunk = (a.distance_to(b) - later_a.distance_to(later_b)) / moment
    assert closing_speed_m_s(a, a_velocity, b, b_velocity) == pytest.approx(shrunk, abs=2.0)


def test_two_at_one_place_neither_approach_nor_recede() -> None:
    here = Position(3, 4)
    assert closing_speed_m_s(here, Velocity(1, 0), here, Velocity(-1, 0)) == 0.0


# Latitude and longitude.


@settings(max_examples=sized(100, 2_000))
@given(st.floats(-70, 70), st.floats(-170, 170), st.floats(-0.2, 0.2), st.floats(-0.2, 0.2))
def test_the_plane_keeps_distances_from_its_origin_and_gives_positions_back(
    lat: float, lon: float, dlat: float, dlon: float
) -> None:
    plane = LocalPlane(lat, lon)
    position = plane.position(lat + dlat, lon + dlon)
    _, _, distance = Geod(ellps="WGS84").inv(lon, lat, lon + dlon, lat + dlat)
    assert position.distance_to(Position(0, 0)) == pytest.approx(distance, abs=0.01)
    assert plane.lat_lon(position) == pytest.approx((lat + dlat, lon + dlon), abs=1e-7)


def test_north_is_up_and_east_is_right() -> None:
    plane = LocalPlane(53.4, -3.0)
    north, east = plane.position(53.41, -3.0), plane.position(53.4, -2.99)
    assert (round(north.x_m), round(north.y_m)) == (0, 1113)
    assert (round(east.x_m), round(east.y_m)) == (665, 0)


def test_many_at_once_are_as_one_by_one() -> None:
    plane = LocalPlane(53.4, -3.0)
    lat, lon = np.array([53.4, 53.41, 53.39]), np.array([-3.0, -2.98, -3.05])
    x, y = plane.positions(lat, lon)
    one_by_one = [plane.position(float(a), float(o)) for a, o in zip(lat, lon, strict=True)]
    assert [Position(float(a), float(b)) for a, b in zip(x, y, strict=True)] == one_by_one


def test_a_shapes_lengths_have_units_as_options_have() -> None:
    assert parse_shape("circle:300") == parse_shape("circle:300m") == parse_shape("circle:0.3km")
    assert parse_shape("rectangle:1x0.5km@30") == parse_shape("rectangle:1000x500m@30")


def test_a_circle_includes_its_own_circle_around_another_reference_point() -> None:
    same = Area(Circle(10.0, reference=Position(3.0, 4.0)), Position(3.0, 4.0))
    assert same.centre == Position(0.0, 0.0)
    assert (Area(Circle(10.0)).includes(same), same.includes(Area(Circle(10.0)))) == (True, True)
    assert not Area(Circle(10.0)).includes(Area(Circle(7.0), Position(3.0, 0.0))), "the borders touch"
    assert Area(Rectangle(20.0, 10.0)).includes(Area(Rectangle(10.0, 4.0), Position(5.0, -3.0)))
    assert not Area(Rectangle(20.0, 10.0)).includes(Area(Rectangle(10.0, 4.0), Position(5.0, 3.1)))
    assert not Area(Rectangle(20.0, 10.0)).includes(Area(Rectangle(10.0, 4.0), Position(-5.1, 0.0)))


def test_an_area_is_that_of_a_proximity_by_shape_and_place_or_by_shape_if_that_moves() -> None:
    here, there, small, large = Position(0, 0), Position(9, 0), Circle(5), Circle(6)
    fixed, moving = Proximity(small, here), Proximity(small, here, mobile=True)
    assert [is_area_of(Area(small, at), fixed) for at in (here, there)] == [True, False]
    assert [is_area_of(Area(small, at), moving) for at in (here, there)] == [True, True]
    assert [is_area_of(Area(large, here), one) for one in (fixed, moving)] == [False, False]
    assert [is_area_of(None, None), is_area_of(None, fixed), is_area_of(Area(small), None)] == [True, False, False]


def test_circles_overlap_when_they_touch() -> None:
    ten, at = Area(Circle(10.0)), Position(15.0, 0.0)
    assert [ten.overlaps(Area(Circle(radius), at)) for radius in (4.9, 5.0, 5.1)] == [False, True, True]
    assert [Area(Rectangle(width, 2.0), at).overlaps(ten) for width in (9.8, 10.0, 10.2)] == [False, True, True]
    square = Area(Rectangle(4.0, 4.0))
    assert [square.overlaps(Area(Rectangle(4.0, 4.0), Position(x, 0))) for x in (3.9, 4.1)] == [True, False]


def test_a_step_leads_east_and_north() -> None:
    start = Position(1.0, 2.0)
    assert (start.moved(3.0, 4.0), start.distance_to(start.moved(3.0, 4.0))) == (Position(4.0, 6.0), 5.0)
    assert Velocity(3.0, -4.0).speed_m_s == 5.0


@pytest.mark.parametrize(
    ("lat_deg", "lon_deg", "refused"),
    [(90.0, 180.0, ""), (-90.0, -180.0, ""), (90.1, 0.0, "latitude"), (-90.1, 0.0, "latitude"),
     (0.0, 180.1, "longitude"), (0.0, -180.1, "longitude"), (math.nan, 0.0, "latitude"), (0.0, math.nan, "longitude")],
)  # fmt: skip
def test_places_on_earth_have_latitudes_up_to_the_poles_and_longitudes_half_around(
    lat_deg: float, lon_deg: float, refused: str
) -> None:
    if not refused:
        assert LocalPlane(lat_deg, lon_deg).origin_lat_deg == lat_deg
        return
    with pytest.raises(GeometryError, match=f"a {refused} must be from"):
        LocalPlane(lat_deg, lon_deg)
