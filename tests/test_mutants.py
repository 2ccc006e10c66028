"""The tool that makes mutants: each is one small change that still can be read."""

import ast
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    sys.path.remove(str(ROOT / "tools"))
    return module


SOURCE = '''
def nearest(places: list[float] | None, limit: int = 3) -> float:
    """The docstring stays."""
    if not places or limit <= 0:
        raise ValueError(f"nothing within {limit + 1}")
    note("é", places)
    return min(places) * -2.0 if limit < 5 else places[limit - 1]
'''


def test_each_kind_of_change_is_made_and_nothing_that_is_no_behaviour(tool: ModuleType) -> None:
    changed = {one.applied(SOURCE) for one in tool.mutants_of(SOURCE)}
    for text in changed:
        ast.parse(text)
        assert text != SOURCE
        assert "The docstring stays." in text
        assert "nothing within {limit + 1}" in text
        assert "list[float] | None" in text
    for piece in (
        "limit: int = 4", "(limit < 0)", "(not places and limit <= 0)", "    pass\n", "max(places)", "2.0) if",
        "4.0", "(limit <= 5)", "(limit + 1)", "limit - 2", 'note(places, "é")', "(places) or limit <= 0",
    ):  # fmt: skip
        assert any(piece in text.replace("'", '"') for text in changed), piece


def test_a_seed_draws_the_same_mutants_and_real_modules_can_be_changed(tool: ModuleType) -> None:
    path = ROOT / "src" / "earshot" / "protocols" / "cbf.py"
    some = tool.chosen(path, 10, 1, None)
    assert some == tool.chosen(path, 10, 1, None) != tool.chosen(path, 10, 2, None)
    assert len(some) == 10
    for one in some:
        compile(one.applied(path.read_text()), str(path), "exec")
    (line,) = {one.line for one in tool.chosen(path, 10, 1, {some[0].line})}
    assert line == some[0].line


def test_a_module_is_judged_by_the_tests_that_import_it(tool: ModuleType) -> None:
    found = tool.tests_of(ROOT / "src" / "earshot" / "protocols" / "cbf.py")
    assert ROOT / "tests" / "protocols" / "test_cbf.py" in found
    assert ROOT / "tests" / "filters" / "language" / "test_where.py" not in found


MODULE = """
from functools import lru_cache
STEP = 1
def step(number):
    return number + STEP
def logged(number):
    return number * 2
def unused(number):
    return number - 1
def bounded(number):
    return min(number, 9)
@lru_cache
def cached(number):
    return number ** 2
def at_import():
    return 5
FIVE = at_import()
"""
TESTS_OF_MODULE = """
from stepping import FIVE, bounded, cached, logged, step
def test_a_step_adds_one():
    assert step(1) == 2
def test_golden_log():
    assert logged(3) == 6
seen = []
def test_small_numbers_are_not_bounded():
    seen.append(bounded(3))
def test_fails_alone():
    bounded(3)
    assert seen
def test_fails_always():
    assert step(1) == 9, "it never was"
def test_a_square_is_kept():
    cached(3)
def test_three_squared_is_nine():
    assert cached(3) == 9
def test_the_constant_is_five():
    assert FIVE == 5
"""
JUDGING = """
import json, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from mutant_judge import Case, Judge, in_child
root = Path(sys.argv[2])
module = root / "src" / "stepping.py"
source = module.read_text()
cases = []
for old, new in json.loads(sys.argv[3]):
    cases.append(Case(module, source.index(old), source.replace(old, new)))
found, reported = [], []
judge = Judge(
    cases, {module: {root / "tests" / "test_stepping.py"}}, root / "src", root / "tests", time.monotonic() + 600,
    lambda number, verdict: found.append([verdict.word, verdict.test.partition("::")[2]]), reported.append, 60.0,
)
assert judge.judge() == "", judge.judge()
print(json.dumps([found, reported[1:], in_child(signal.pause, 0.01), in_child(lambda: "done", 60.0)]))
"""


def test_mutants_are_judged_by_the_tests_that_run_their_line(tmp_path: Path) -> None:
    for folder, name, text in (("src", "stepping.py", MODULE), ("tests", "test_stepping.py", TESTS_OF_MODULE)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\nmarkers =\n  long\n  slow\n  spark\n  cluster\n")
    changes = {
        "number + STEP": ["number - STEP", "noticed", "test_a_step_adds_one"],
        "number * 2": ["number * 3", "only by golden logs", "test_golden_log"],
        "number - 1": ["number - 2", "no test runs it", ""],
        "min(number, 9)": ["max(number, 9)", "lives", ""],
        "number ** 2": ["number ** 3", "noticed", "test_three_squared_is_nine"],
        "STEP = 1": ["STEP = 2", "noticed", "test_a_step_adds_one"],
        "return 5": ["return 6", "noticed", "test_the_constant_is_five"],
    }
    replaced = json.dumps([[old, new] for old, (new, _, _) in changes.items()])
    command = [sys.executable, "-c", JUDGING, str(ROOT / "tools"), str(tmp_path), replaced]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    name = "tests/test_stepping.py::test_fails_always"
    failing = f"{name} fails without a change and judges nothing: AssertionError: it never was"
    assert json.loads(run.stdout) == [[one[1:] for one in changes.values()], [failing], "does not end", "done"]


def test_a_verdict_stands_until_other_tests_could_change_it(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ROOT", "TESTS", "SOURCE"):
        monkeypatch.setattr(tool, name, tmp_path)
    monkeypatch.setenv("EARSHOT_TEST_SIZE", "")
    module, first, second, helper = (tmp_path / name for name in ("a.py", "test_a.py", "test_b.py", "cases.py"))
    for file in (module, first, second, helper):
        file.write_text("x = 1\n")
    words = (tool.NOTICED, tool.LIVES, tool.HARMLESS)
    mutants = [tool.Mutant(1, 4, 5, str(number), "a number") for number in range(2, 5)]
    state: dict[str, str] = {}
    for one, word, by in zip(mutants, words, ("test_a.py::test_x", "", ""), strict=True):
        tool.note(state, module, one, tool.Verdict(word, by), {first, second}, 60.0)

    def now(*tests: Path, seconds: float = 60.0) -> list[str | None]:
        tool.basis_of.cache_clear()
        return [tool.standing(state, module, one, set(tests), seconds) for one in mutants]

    assert now(first, second) == list(words)
    assert now(first) == [tool.NOTICED, None, tool.HARMLESS], "fewer tests were asked"
    assert now(first, second, seconds=90.0) == [tool.NOTICED, None, tool.HARMLESS], "more tests have time"
    monkeypatch.setenv("EARSHOT_TEST_SIZE", "another")
    assert now(first, second) == [tool.NOTICED, None, tool.HARMLESS], "tests try more cases"
    monkeypatch.setenv("EARSHOT_TEST_SIZE", "")
    second.write_text("x = 2\n")
    assert now(first, second) == [tool.NOTICED, None, tool.HARMLESS], "a test that had not noticed was changed"
    first.write_text("x = 2\n")
    assert now(first, second) == [None, None, tool.HARMLESS], "the test that had noticed was changed"
    first.write_text("x = 1\n")
    assert now(first, second)[0] == tool.NOTICED
    helper.write_text("x = 2\n")
    assert now(first, second) == [None, None, tool.HARMLESS], "tests import helpers"


def test_a_mutant_that_waits_for_a_processor_does_not_hang(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = sys.modules[tool.Judge.__module__]
    reading, writing = os.pipe()

    def waited_s(_pid: int) -> float:
        os.write(writing, b"a processor is free")
        return 60.0

    monkeypatch.setattr(judge, "waited_s", waited_s)
    assert judge.in_child(lambda: os.read(reading, 19).decode(), 0.01) == "a processor is free"
    monkeypatch.setattr(judge, "waited_s", lambda _pid: 0.0)
    assert judge.in_child(signal.pause, 0.01) == tool.HANGS
    os.close(reading)
    os.close(writing)


def test_a_child_that_does_not_lead_its_group_yet_is_ended_too(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = sys.modules[tool.Judge.__module__]
    monkeypatch.setattr(os, "setsid", lambda: None)
    assert judge.in_child(signal.pause, 0.01) == tool.HANGS


def test_a_test_that_works_without_end_is_ended_by_its_processor_time(tool: ModuleType) -> None:
    judge = sys.modules[tool.Judge.__module__]

    def work() -> None:
        judge.end_after(0.01)
        while True:
            pass

    assert judge.in_child(work, 600.0, crashed="a test") == tool.HANGS
    assert judge.in_child(lambda: os._exit(1), 600.0, crashed="a test") == "a test"


def test_waiting_for_a_processor_is_what_the_system_says(tool: ModuleType) -> None:
    judge = sys.modules[tool.Judge.__module__]
    reported = Path(f"/proc/{os.getpid()}/schedstat")
    if not reported.exists():
        assert judge.waited_s(os.getpid()) == 0.0
        return
    before = int(reported.read_text().split()[1]) / 1e9
    found = judge.waited_s(os.getpid())
    assert before <= found <= int(reported.read_text().split()[1]) / 1e9
    assert judge.waited_s(2**22 + 1) == 0.0  # no process has such a number


SPARK_TESTS = """
from pytest import mark
import stepping
pytestmark = mark.spark
def test_always_fails():
    assert stepping.step(1) == 9
def test_a_step_adds_one():
    assert stepping.step(1) == 2
def test_the_log_is_not_read():
    stepping.logged(3)
"""


def test_sparks_tests_judge_a_changed_copy_of_the_source(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    module, tests = tmp_path / "src" / "stepping.py", tmp_path / "tests" / "test_stepping.py"
    module.write_text(MODULE)
    tests.write_text(SPARK_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  long\n  slow\n  spark\n  cluster\n")
    with tool.SparkJudge(tmp_path / "src", tmp_path, 60.0) as judge:
        wrong = tool.Case(module, 0, MODULE.replace("number + STEP", "number - STEP"))
        assert judge.verdict(wrong, [tests]) == tool.Verdict("noticed", "tests/test_stepping.py::test_a_step_adds_one")
        assert judge.distrusted == {"tests/test_stepping.py::test_always_fails"}
        unread = tool.Case(module, 0, MODULE.replace("number * 2", "number * 3"))
        assert judge.verdict(unread, [tests]) == tool.Verdict("lives", "")
        copy = judge.copy
        assert (copy / "src" / "stepping.py").read_text() == MODULE == module.read_text()
    assert not copy.exists()


def test_the_shares_are_of_the_mutants_that_change_behaviour(tool: ModuleType) -> None:
    words = (tool.NOTICED, tool.HANGS, tool.GOLDEN, tool.LIVES, tool.UNSEEN, tool.HARMLESS)
    counts = Counter(dict(zip(words, (80, 5, 10, 4, 1, 7), strict=True)))
    assert tool.shares(counts) == (
        "95 of 100 mutants were noticed (95.0%), 10 of these by golden logs alone (10.5%). "
        "7 more were judged to have no effect."
    )
    assert tool.shares(Counter()) == "None of 0 mutants was noticed."


def test_exchanged_arguments_that_make_no_difference_are_no_change(tool: ModuleType) -> None:
    for call in ("max(a, b)", "hypot(a, b)", "random.uniform(a, b)"):
        assert not any("exchanged" in one.what for one in tool.mutants_of(f"{call}\n"))
    assert any("exchanged" in one.what for one in tool.mutants_of("place(a, b)\n"))


def test_mutants_of_live_code_run_in_a_network_of_their_own(tmp_path: Path) -> None:
    """A mutant of live/sockets.py can set what it should only read of an interface."""
    probe = ["unshare", "--net", "ip", "link", "set", "lo", "up"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no network namespaces (unshare --net)")
    script = tmp_path / "apart.py"
    script.write_text(
        f"import os, socket, sys\nsys.path.insert(0, {str(ROOT / 'tools')!r})\nimport mutants\nmutants.go_apart()\n"
        "socket.socket().bind(('127.0.0.1', 0))\nprint(os.readlink('/proc/self/ns/net'), *sys.argv[1:])\n"
    )
    command = [sys.executable, str(script), "live/sockets.py"]
    network, module = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert network != Path("/proc/self/ns/net").readlink().name
    assert module == "live/sockets.py"
