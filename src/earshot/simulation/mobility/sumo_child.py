"""SUMO in a process of its own: it reads one JSON request a line and answers each with one line.

libsumo holds one simulation a process, brings its own Arrow library, and may end the process; here it disturbs
nobody. `sumo_process` starts this file and talks to it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

NO_LIBSUMO = 3
"The exit status where libsumo is not installed."


def main() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what SUMO itself prints must not stand among the answers
    os.environ["LIBSUMO_AS_TRACI"] = "quiet"
    try:
        import libsumo
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(NO_LIBSUMO)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"answer": _answer(libsumo, name, arguments)}
        except Exception as error:
            answer = {"error": f"{name}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _start(libsumo: Any, arguments: list[str]) -> dict[str, Any]:
    libsumo.start(["sumo", *arguments])
    simulation = libsumo.simulation
    return {"step_s": simulation.getDeltaT(), "begin_s": simulation.getTime(), "end_s": simulation.getEndTime()}


def _step(libsumo: Any) -> dict[str, Any]:
    """One step; then each vehicle's name, x, y, speed, edge, waiting time and, in the step it enters, its type."""
    libsumo.simulationStep()
    vehicle = libsumo.vehicle
    nowhere = libsumo.constants.INVALID_DOUBLE_VALUE
    rows = [
        (
            name,
            *vehicle.getPosition(name),
            vehicle.getSpeed(name),
            vehicle.getRoadID(name),
            vehicle.getWaitingTime(name),
        )
        for name in vehicle.getIDList()
        if vehicle.getPosition(name)[0] != nowhere  # while SUMO moves it by force
    ]
    types = {name: vehicle.getTypeID(name) for name in libsumo.simulation.getDepartedIDList()}
    return {"rows": rows, "types": types, "pending": libsumo.simulation.getPendingVehicles()}


def _answer(libsumo: Any, name: str, arguments: list[Any]) -> Any:
    """`start`, `step`, or a function of libsumo by its own name, as in `vehicle.setSpeed`."""
    if name == "start":
        return _start(libsumo, *arguments)
    if name == "step":
        return _step(libsumo)
    domain, _, function = name.partition(".")
    return getattr(getattr(libsumo, domain), function)(*arguments)


if __name__ == "__main__":
    main()
