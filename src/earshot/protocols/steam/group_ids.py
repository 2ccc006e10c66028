"""Group identifiers: 24 bits computed from the text of an event type and its proximity.

STEAM, section 4.4: every node computes the same identifier from an announcement, so no service has
to assign identifiers. Two texts may share one; the machine checks event types on receipt.
"""

from __future__ import annotations

from msgspec.structs import astuple

from earshot.geometry import AnyShape, Circle, Ellipse, Polygon, Proximity, Rectangle

GROUP_BITS = 24
MULTIPLIER = 2_654_435_769
"Odd, close to 2^32 / 1.618: every character affects the upper bits of the word."

_WORD = 0xFFFF_FFFF


def hashed(text: str) -> int:
    """Preiss' polynomial over the characters by Horner's rule, with a multiplier instead of his
    shift, reduced to 24 bits by the multiplication method: the upper bits of the product."""
    word = 0
    for byte in text.encode():
        word = (word * MULTIPLIER + byte) & _WORD
    return (word * MULTIPLIER & _WORD) >> (32 - GROUP_BITS)


def group_id(subject: str, proximity: Proximity | None) -> int:
    """The group of this event type in this proximity."""
    return hashed(description(subject, proximity))


def description(subject: str, proximity: Proximity | None) -> str:
    """Figure 5: the event type, then the parts of the proximity filter. A mobile proximity is described
    by its first naval, not by where it is now."""
    if proximity is None:
        return f"{subject}|everywhere"
    kind = "mobile" if proximity.mobile else "stationary"
    return f"{subject}|{kind}|{_shape_text(proximity.shape)}|{_numbers(*astuple(proximity.naval))}"


def _shape_text(shape: AnyShape) -> str:
    match shape:
        case Polygon():
            rings = (shape.corners, *shape.holes)
            return "polygon|" + "/".join(_numbers(*(value for corner in ring for value in corner)) for ring in rings)
        case Circle():
            dimensions = f"circle|{_numbers(shape.radius_m)}"
        case Rectangle():
            dimensions = f"rectangle|{_numbers(shape.width_m, shape.height_m, shape.angle_deg)}"
        case Ellipse():
            dimensions = f"ellipse|{_numbers(shape.a_m, shape.b_m, shape.angle_deg)}"
    return f"{dimensions}|{_numbers(*astuple(shape.reference))}"


def _numbers(*values: float) -> str:
    """Exact numbers: two nodes must never write one proximity as two texts."""
    return ",".join(repr(float(value)) for value in values)
