"""Makes the trace of a small town that ships with Earshot: quiet streets, a morning rush, and the time after it.

    python examples/make_a_trace.py market-town.csv.gz

Cars come in at the ends of streets at random times, more of them during the rush, drive along the streets to
where they leave, and stop at red lights; three buses go up and down the main street all the time. The same seed
gives the same file. `earshot advise market-town` uses the copy that is in the package.
"""

import gzip
import io
import sys
from pathlib import Path
from random import Random

BLOCK_M = 180.0
STREETS_NORTH, STREETS_EAST = 7, 5
"The streets' crossings, from west to east and from south to north."
LASTS_S = 600.0
EVERY_S = 2.0
GREEN_S, CYCLE_S = 18.0, 40.0


def arrivals_per_s(time_s: float) -> float:
    """Quiet, then a rush around 300 s, then a steady stream."""
    if time_s < 150.0:
        return 0.12
    if time_s < 240.0:
        return 0.12 + 0.9 * (time_s - 150.0) / 90.0
    return 0.9 if time_s < 360.0 else 0.35


def route(random: Random) -> list[tuple[int, int]]:
    """Crossings from one end of a street to another, east or west first, then north or south."""
    ends = [(x, y) for x in range(STREETS_NORTH) for y in (0, STREETS_EAST - 1)]
    ends += [(x, y) for x in (0, STREETS_NORTH - 1) for y in range(1, STREETS_EAST - 1)]
    (x, y), (to_x, to_y) = random.sample(ends, 2)
    crossings = [(x, y)]
    legs = [(1, 0), (0, 1)] if random.random() < 0.5 else [(0, 1), (1, 0)]
    for east, north in legs:
        while (east and x != to_x) or (north and y != to_y):
            x += (to_x > x) - (to_x < x) if east else 0
            y += (to_y > y) - (to_y < y) if north else 0
            crossings.append((x, y))
    return crossings


def green_at(time_s: float, crossing: tuple[int, int], eastbound: bool) -> float:
    """When the light at that crossing is next green in that direction."""
    shift_s = 7.0 * ((3 * crossing[0] + 5 * crossing[1]) % 6) + (0.0 if eastbound else CYCLE_S / 2.0)
    into = (time_s - shift_s) % CYCLE_S
    return time_s if into < GREEN_S else time_s + CYCLE_S - into


def drive(crossings: list[tuple[int, int]], start_s: float, speed_m_s: float) -> list[tuple[float, float, float]]:
    """Times and places at which the car starts, turns, stops and arrives."""
    x, y = crossings[0]
    time_s = start_s
    way = [(time_s, x * BLOCK_M, y * BLOCK_M)]
    for number, (to_x, to_y) in enumerate(crossings[1:], 1):
        time_s += BLOCK_M / speed_m_s
        way.append((time_s, to_x * BLOCK_M, to_y * BLOCK_M))
        if number < len(crossings) - 1:
            green_s = green_at(time_s, (to_x, to_y), eastbound=to_x != x)
            if green_s > time_s + 0.1:
                time_s = green_s
                way.append((time_s, to_x * BLOCK_M, to_y * BLOCK_M))
        x, y = to_x, to_y
    return way


def sightings(name: str, way: list[tuple[float, float, float]], side_m: float) -> list[tuple[float, str, float, float]]:
    """Where the node is at every step of the clock; `side_m` is how far from the middle of the street it keeps."""
    found, leg = [], 0
    step = int(way[0][0] // EVERY_S) + 1
    while step * EVERY_S < min(way[-1][0], LASTS_S):
        time_s = step * EVERY_S
        while way[leg + 1][0] <= time_s:
            leg += 1
        (from_s, x, y), (to_s, to_x, to_y) = way[leg], way[leg + 1]
        share = (time_s - from_s) / (to_s - from_s)
        found.append((time_s, name, x + share * (to_x - x) + side_m, y + share * (to_y - y) + side_m))
        step += 1
    return found


def town(seed: int = 7) -> list[tuple[float, str, float, float]]:
    """All rows of the trace, in order of time."""
    random = Random(f"market town {seed}")
    rows = []
    line = [(x, 2) for x in range(STREETS_NORTH)]
    for bus in range(3):
        there_and_back = (line + line[-2:0:-1]) * 12
        rows += sightings(f"bus-{bus}", drive(there_and_back[4 * bus :], -30.0 * bus, 7.0), 2.0)
    time_s, number = -120.0, 0
    while True:
        time_s += random.expovariate(1.0)  # thinned: the rate is never above one car a second
        if time_s >= LASTS_S:
            break
        if random.random() < arrivals_per_s(max(0.0, time_s)):
            way = drive(route(random), time_s, random.uniform(8.0, 14.0))
            rows += sightings(f"car-{number:03}", way, random.choice([-3.0, 3.0]))
            number += 1
    return sorted(row for row in rows if row[0] >= 0.0)


def csv_of(rows: list[tuple[float, str, float, float]]) -> bytes:
    """The rows as compressed CSV; the same rows give the same bytes."""
    lines = ["node,time,x_m,y_m", *(f"{name},{time_s:g},{x:.1f},{y:.1f}" for time_s, name, x, y in rows)]
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as file:
        file.write("\n".join(lines).encode() + b"\n")
    return packed.getvalue()


if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "market-town.csv.gz")
    trace = town()
    file.write_bytes(csv_of(trace))
    nodes = len({name for _, name, _, _ in trace})
    print(f"{file}: {nodes} nodes, {len(trace):,} positions, {file.stat().st_size / 1000:.0f} kB")
