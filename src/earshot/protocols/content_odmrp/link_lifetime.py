"""How long two moving nodes will hear each other, as far as position and velocity tell.

Mobility prediction after W. Su, S. Lee and M. Gerla (2000), which the paper names as what ODMRP can
use to adapt its refresh interval.
"""

from __future__ import annotations

import math

from earshot.geometry import Position, Velocity


def link_lifetime_s(a: Position, a_velocity: Velocity, b: Position, b_velocity: Velocity, range_m: float) -> float:
    """Seconds until the distance exceeds the range, if both keep their velocity.

    D = (-(ab + cd) + sqrt((a^2 + c^2) r^2 - (ad - bc)^2)) / (a^2 + c^2), with a, c the relative
    velocity and b, d the relative position. Infinite where nothing moves; 0 where they are apart already.
    """
    x, y = a.x_m - b.x_m, a.y_m - b.y_m
    if math.hypot(x, y) > range_m:
        return 0.0
    speed_x, speed_y = a_velocity.x_m_s - b_velocity.x_m_s, a_velocity.y_m_s - b_velocity.y_m_s
    square = speed_x * speed_x + speed_y * speed_y
    if square == 0.0:
        return math.inf
    reach = square * range_m * range_m - (speed_x * y - x * speed_y) ** 2
    return max(0.0, (-(speed_x * x + speed_y * y) + math.sqrt(max(0.0, reach))) / square)
