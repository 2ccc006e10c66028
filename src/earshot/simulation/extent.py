"""The extent: the rectangle that a scenario's nodes are in."""

from __future__ import annotations

from earshot.errors import ScenarioError
from earshot.geometry import Area, Position, Rectangle
from earshot.settings import Finite, Positive, SettingsTable

Box = tuple[Finite, Finite, Finite, Finite]
"Least x, least y, most x, most y, in metres."


class Extent(SettingsTable, frozen=True):
    """The rectangle the nodes are in: x from 0 to `width_m`, y from 0 to `height_m`."""

    width_m: Positive = 1000.0
    "From west to east."
    height_m: Positive = 1000.0
    "From south to north."

    @property
    def area(self) -> Area:
        """The extent as an area."""
        return Area(Rectangle(self.width_m, self.height_m), Position(self.width_m / 2, self.height_m / 2))


def box_of(box: Box | None, extent: Extent) -> Box:
    """The box, or the whole extent if there is none."""
    if box is None:
        return (0.0, 0.0, extent.width_m, extent.height_m)
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= extent.width_m and 0 <= y0 < y1 <= extent.height_m):
        raise ScenarioError(
            f"box_m must be [least x, least y, most x, most y] inside the area of "
            f"{extent.width_m:g} x {extent.height_m:g} m, got {list(box)}"
        )
    return box
