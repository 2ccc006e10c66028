"""How good advice is, and how long it takes: the regret of `earshot advise` on four traces.

    python benchmarks/advice.py [--quick] [--budget 8min] [--master local[1]] [--data FOLDER] [bologna] [liverpool]
        [ns2] [highway]

For each trace: what is advised, its delivery and airtime on windows that had no part in the choice, and what it lacks
there against the best in hindsight: at most 2 points of delivery and 10 % of airtime are asked for, and 6 minutes with
--quick, 20 without, on two quiet cores. The first three traces are real ones that others recorded: DATA has their
folders `sumo-bologna`, `liverpool-bus` and `ns2-mobility`. The highway is the built-in scenario's, once a second.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from earshot.pipeline.oracle.workloads import workload_tables
from earshot.simulation import load_scenario

FILES = {
    "bologna": "sumo-bologna/acosta_1800_2100.fcd.csv.gz",
    "liverpool": "liverpool-bus/route14_outbound.csv",
    "ns2": "ns2-mobility/default.ns_movements",
}
LASTS_S = 600.0
JUMP_M_S = 1000.0
"A vehicle at the end of its lane jumps to the start: faster than this, and from there on it is another vehicle."


def highway(file: Path) -> Path:
    """The built-in highway as a trace."""
    scenario = load_scenario("highway").with_({"duration_s": LASTS_S})
    rows, laps = ["node,time,x_m,y_m"], Counter[str]()
    for leg in sorted(workload_tables("highway", scenario, 0).positions, key=lambda row: (row["node"], row["time"])):
        if abs(leg["x_m_s"]) > JUMP_M_S:
            laps[leg["node"]] += 1
            continue
        for moment in range(math.ceil(leg["time"]), math.ceil(min(leg["until"], LASTS_S))):
            passed_s = moment - leg["time"]
            x_m, y_m = leg["x_m"] + leg["x_m_s"] * passed_s, leg["y_m"] + leg["y_m_s"] * passed_s
            rows.append(f"{leg['node']}-{laps[leg['node']]},{moment},{x_m:.2f},{y_m:.2f}")
    file.write_text("\n".join(rows) + "\n")
    return file


def advised(trace: Path, lake: Path, options: Sequence[str]) -> dict[str, Any]:
    """The answer of one command, as a user gives it, into a fresh lake."""
    command = [sys.executable, "-m", "earshot", "advise", str(trace), "--lake", str(lake), "--json"]
    done = subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", choices=[*FILES, "highway", []], help="all where none is named")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder with the traces of others")
    parser.add_argument("--quick", action="store_true", help="earshot advise --quick")
    parser.add_argument("--budget", help="earshot advise --budget: on a busy machine, more than its default")
    parser.add_argument("--master", help="earshot advise --master, as in local[1]: on one core")
    asked = parser.parse_args()
    given = {"--budget": asked.budget, "--master": asked.master}
    options = [*(["--quick"] if asked.quick else []), *(part for one in given.items() if one[1] for part in one)]
    print(
        "trace       delivery   airtime   regret: points   regret: airtime   judged   runs   busy   wall (s)   advice"
    )
    with TemporaryDirectory() as folder:
        for name in asked.traces or [*FILES, "highway"]:
            trace = highway(Path(folder) / "highway.csv") if name == "highway" else asked.data / FILES[name]
            began = time.monotonic()
            found = advised(trace, Path(folder) / name, options)
            took_s = time.monotonic() - began
            chosen = found["protocol"], found["settings"]
            own = next(one for one in found["judged"] if (one["protocol"], one["settings"]) == chosen)
            regret = found["regret"] or {"delivery": math.nan, "cost": math.nan}
            given_up = " (second choice)" if found["overturned"] else ""
            settings = ", ".join(f"{key} = {value:g}" for key, value in found["settings"].items()) or "defaults"
            print(
                f"{name:<10}  {100 * own['delivery']:>6.1f} %  {100 * own['cost']:>6.3f} %  "
                f"{100 * regret['delivery']:>15.1f}  {100 * regret['cost']:>13.0f} %  {len(found['judged']):>7}  "
                f"{found['effort']['runs']:>5}  {found['effort']['slowdown']:>4.1f}x  "
                f"{took_s:>9.0f}   {found['protocol']}: {settings}{given_up}",
                flush=True,
            )


if __name__ == "__main__":
    main()
