"""A jam warning in SUMO: a car breaks down, and drivers who are warned of the jam take another road.

    pip install 'earshot[sumo]'
    python examples/jam_warning.py [SEEDS]

Runs jam/jam.toml with drivers who act on warnings and with drivers who do not, and prints their travel times.
"""

import sys
from pathlib import Path
from statistics import mean

from earshot.simulation import load_scenario, run

scenario = load_scenario(str(Path(__file__).parent / "jam" / "jam.toml"))
seeds = range(1, 1 + int(sys.argv[1] if len(sys.argv) > 1 else 2))


def travel_times_s(heed: float, seed: int) -> list[float]:
    """How long each car was on the road, from entering to leaving."""
    changed = scenario.with_({"nodes.car.mobility.drivers.heed": heed})
    result = run(changed, "flooding", seed=seed)
    return [intervals[-1][1] - intervals[0][0] for intervals in result.trajectories.presence]


print("seed  without warning  with warning")
for seed in seeds:
    without, warned = travel_times_s(0.0, seed), travel_times_s(1.0, seed)
    print(f"{seed:4}  {mean(without):13.1f} s  {mean(warned):10.1f} s")
