"""The extent: the rectangle that a scenario's nodes are in."""

from __future__ import annotations

from earshot.errors import ScenarioError
from earshot.geometry import Area, Position, Rectangle
from earshot.settings import Finite, Positive, SettingsTable

Box = tuple[Finite, Finite, Finite, Finite]
"Least x, least y, most x, most y, in metres."


class Extent(SettingsTable, frozen=True):
    """The rectangle the nodes are in: x from `west_m` on, y from `south_m` on."""

    width_m: Positive = 1000.0
    "From west to east."
    height_m: Positive = 1000.0
    "From south to north."
    west_m: Finite = 0.0
    "The x of its west side: a trace keeps its own coordinates."
    south_m: Finite = 0.0
    "The y of its south side."

    @property
    def box(self) -> Box:
        """Least x, least y, most x, most y."""
        return self.west_m, self.south_m, self.west_m + self.width_m, self.south_m + self.height_m

    @property
    def area(self) -> Area:
        """The extent as an area."""
        middle = Position(self.west_m + self.width_m / 2, self.south_m + self.height_m / 2)
        return Area(Rectangle(self.width_m, self.height_m), middle)


def box_of(box: Box | None, extent: Extent) -> Box:
    """The box, or the whole extent if there is none."""
    if box is None:
        return extent.box
    (x0, y0, x1, y1), (west, south, east, north) = box, extent.box
    if not (west <= x0 < x1 <= east and south <= y0 < y1 <= north):
        where = "" if (west, south) == (0.0, 0.0) else f" from [{west:g}, {south:g}] on"
        raise ScenarioError(
            f"box_m must be [least x, least y, most x, most y] inside the area of "
            f"{extent.width_m:g} x {extent.height_m:g} m{where}, got {list(box)}"
        )
    return box
