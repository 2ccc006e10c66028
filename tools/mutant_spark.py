"""Judge mutants with Spark's tests: a process of their own for each, with a changed copy of the source.

Spark's workers import the source themselves, so that a change in the memory of one process does not reach them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mutant_judge import LIVES, NOTICED, Case, Verdict

SPARK = "spark and not long and not slow and not cluster"


class SparkJudge:
    """Holds the copy of the source; a test that fails without any change judges nothing."""

    def __init__(self, source: Path, root: Path, longest_s: float) -> None:
        self.source, self.root, self.longest_s = source, root, longest_s
        self.copy = Path(tempfile.mkdtemp(prefix="mutants-spark-"))
        self.trusted: set[str] = set()
        self.distrusted: set[str] = set()

    def __enter__(self) -> SparkJudge:
        shutil.copytree(self.source, self.copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        return self

    def __exit__(self, *exc: object) -> None:
        shutil.rmtree(self.copy, ignore_errors=True)

    def verdict(self, case: Case, tests: Iterable[Path]) -> Verdict:
        """Noticed by the first test that fails. A mutant that takes too long is not said to be noticed."""
        file = self.copy / "src" / case.path.relative_to(self.source)
        files = in_order(case.path, tests)
        while files:
            file.write_text(case.text)
            failed = self.first_failing(files)
            file.write_text(case.path.read_text())
            if not failed:
                return Verdict(LIVES)
            if failed not in self.trusted:
                if self.first_failing([failed]):
                    self.distrusted.add(failed)
                    continue
                self.trusted.add(failed)
            return Verdict(NOTICED, failed)
        return Verdict(LIVES)

    def first_failing(self, tests: list[str]) -> str:
        """The first of these tests that fails with the copy as it is, if one does in time."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", SPARK, "-rfE"]
        without = [f"--deselect={name}" for name in sorted(self.distrusted)]
        # A mutant and its original may have one size and one second: compiled code of the one would pass for the other.
        environment = {**os.environ, "PYTHONPATH": str(self.copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        with tempfile.TemporaryDirectory(prefix="mutants-spark-tests-") as folder, suppress(subprocess.TimeoutExpired):
            process = subprocess.Popen(
                [*command, f"--basetemp={folder}/tests", *without, *tests],
                cwd=self.root, env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            )  # fmt: skip
            try:
                said, _ = process.communicate(timeout=self.longest_s)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            if process.returncode not in (0, 5):
                found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
                return found[1] if found else tests[0]
        return ""


def in_order(path: Path, tests: Iterable[Path]) -> list[str]:
    """The files of Spark's tests: first the one with the module's name, then its folder's, then the others."""
    spark = [test for test in tests if "spark" in test.read_text()]
    return [str(test) for test in sorted(spark, key=lambda one: (one.stem != f"test_{path.stem}",
            one.parent.name != path.parent.name, str(one)))]  # fmt: skip
