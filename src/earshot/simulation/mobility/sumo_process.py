"""A running SUMO, as its caller sees it: start, step, ask."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import msgspec

from earshot.errors import ScenarioError
from earshot.simulation.mobility import sumo_child

SEEDS = 2**31
"SUMO's seeds are numbers below this."


class VehicleState(NamedTuple):
    """A vehicle after a step."""

    name: str
    x_m: float
    y_m: float
    speed_m_s: float
    edge: str
    waiting_s: float
    "How long it has been standing."


class SumoStep(NamedTuple):
    """All vehicles after a step."""

    vehicles: list[VehicleState]
    types: dict[str, str]
    "Of those that entered in this step."
    pending: list[str]
    "Those that should have entered, and find no room."


class SumoProcess:
    """SUMO with one configuration and one seed. Close it, or use it in a `with` block."""

    def __init__(self, config: Path, seed: int, options: Sequence[str] = ()) -> None:
        self._config = config
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open until `close`
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", inspect.getsource(sumo_child)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._steps = 0
        arguments = ["-c", str(config), "--seed", str(seed % SEEDS), "--no-step-log", "--duration-log.disable"]
        try:
            about = self.ask("start", [*arguments, *options])
        except BaseException:
            self.close()
            raise
        self.step_s: float = about["step_s"]
        self.begin_s: float = about["begin_s"]
        self.end_s: float | None = about["end_s"] if about["end_s"] >= 0 else None
        "When the configuration says that it ends, if it does."

    def step(self) -> SumoStep:
        """Simulate one step."""
        answer = self.ask("step")
        self._steps += 1
        vehicles = [VehicleState(*row) for row in answer["rows"]]
        return SumoStep(vehicles, answer["types"], answer["pending"])

    def ask(self, function: str, *arguments: Any) -> Any:
        """Call a function of libsumo by its name, as in `vehicle.setSpeed`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode([function, *arguments]) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = b""
        if not line:
            raise self._ended()
        answer = msgspec.json.decode(line)
        if "error" in answer:
            raise ScenarioError(f"{self._config}: SUMO refused {answer['error']}{self._printed()}")
        return answer["answer"]

    def _ended(self) -> ScenarioError:
        status = self._process.wait()
        if status == sumo_child.NO_LIBSUMO:
            return ScenarioError(
                f"mobility: SUMO is not installed; install it with: pip install 'earshot[sumo]'{self._printed()}"
            )
        after = f"after {self._steps} steps" if self._steps else "before its first step"
        return ScenarioError(f"{self._config}: SUMO ended {after} (exit status {status}){self._printed()}")

    def _printed(self) -> str:
        """The last lines that SUMO printed."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()[-3:]
        return f": {' '.join(line.strip() for line in lines)}" if lines else ""

    def close(self) -> None:
        """End SUMO."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def __enter__(self) -> SumoProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
