"""Judge mutants in one warm process: import and collect once, then fork for each mutant.

A plug-in of pytest takes over after the collection. A first child runs every test once and notes which statements of
the modules it runs. For each mutant, a child runs only the tests that run its statement, the fastest first, and stops
at the first that fails. The child puts the changed code into the functions that exist already. A mutant outside of
functions, or in code that imports run, needs the project's modules anew: its child forgets them and collects again,
while other people's packages stay imported. Tests of golden logs run last.

A test that fails without any change judges nothing: each test that notices something for the first time is run once
more without the mutant.

All times are those that a process had: what it waited for a free processor does not count, so that a busy machine
changes no verdict.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib.machinery
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

NOTICED, GOLDEN, LIVES, HANGS, UNSEEN = "noticed", "only by golden logs", "lives", "does not end", "no test runs it"

FAST = "not long and not slow and not spark and not cluster"
"Spark's tests take seconds each, and their workers import the source themselves."


@dataclass(frozen=True)
class Case:
    """One mutant of one file, as the judge sees it: where the change begins, and the whole changed text."""

    path: Path
    start: int
    "The first character that is changed."
    text: str


@dataclass(frozen=True)
class Verdict:
    word: str
    test: str = ""
    "The first test that failed."


@dataclass(frozen=True)
class Place:
    """The first line of a statement, and the outermost function it stands in."""

    line: int
    function: str
    function_line: int

    @property
    def is_compiled(self) -> bool:
        """Loops that numba compiles: it cannot compile a counter, and a change of them needs a new compilation."""
        return self.function.endswith("_loop")


class Places:
    """The statements and functions of a source file."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self._source = source
        self._starts = [0]
        for line in source.split("\n"):
            self._starts.append(self._starts[-1] + len(line.encode()) + 1)

    def at(self, start: int) -> Place | None:
        """The innermost statement at a character; None outside of functions, as decorators and default values are."""
        byte = len(self._source[:start].encode())
        names: list[str] = []
        body: Sequence[ast.stmt] = self.tree.body
        while (found := self._within(body, byte)) is not None:
            if isinstance(found, ast.ClassDef):
                names.append(found.name)
                body = found.body
            elif isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = self._within(found.body, byte)
                if inner is None:
                    return None
                first = min([found.lineno, *(one.lineno for one in found.decorator_list)])
                return Place(self._innermost(inner, byte).lineno, ".".join([*names, found.name]), first)
            elif isinstance(found, ast.If | ast.Try | ast.With):
                body = [one for one in ast.iter_child_nodes(found) if isinstance(one, ast.stmt)]
            else:
                return None
        return None

    def _within(self, body: Sequence[ast.stmt], byte: int) -> ast.stmt | None:
        return next((one for one in body if self._holds(one, byte)), None)

    def _holds(self, node: Any, byte: int) -> bool:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        return bool(start <= byte < end)

    def _innermost(self, statement: ast.stmt, byte: int) -> ast.stmt:
        for node in ast.walk(statement):
            if node is not statement and isinstance(node, ast.stmt) and self._holds(node, byte):
                return self._innermost(node, byte)
        return statement


def with_counters(source: str) -> ast.Module:
    """The source with a call before each statement of a function, which notes the statement's line."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not function.name.endswith("_loop"):
            for node in [function, *_blocks(function)]:
                for name in ("body", "orelse", "finalbody"):
                    block = getattr(node, name, None)
                    if isinstance(block, list) and block and not isinstance(block[0], ast.expr):
                        setattr(node, name, _counted(block))
    return ast.fix_missing_locations(tree)


def _blocks(function: ast.AST) -> Iterator[ast.AST]:
    """What holds statements within a function, except functions and classes in it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            yield from _blocks(node)


def _counted(block: list[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for number, statement in enumerate(block):
        is_docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_docstring:
            call = ast.Call(ast.Name("__hit__", ast.Load()), [ast.Constant(statement.lineno)], [])
            found.append(ast.copy_location(ast.Expr(ast.copy_location(call, statement)), statement))
        found.append(statement)
    return found


class Source(importlib.machinery.SourceFileLoader):
    """Loads a module from a text: with counters, or with a change in it."""

    def __init__(self, name: str, path: str, code: CodeType, hit: Callable[[int], None]) -> None:
        super().__init__(name, path)
        self._code, self._hit = code, hit

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def exec_module(self, module: Any) -> None:
        module.__dict__["__hit__"] = self._hit
        super().exec_module(module)


@dataclass
class Hook:
    """Finds the modules under test before Python's own finders do."""

    root: Path
    codes: dict[str, tuple[Path, CodeType]] = field(default_factory=dict)
    hits: dict[Path, set[int]] = field(default_factory=dict)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in self.codes:
            return None
        file, code = self.codes[name]
        from importlib.util import spec_from_file_location

        loader = Source(name, str(file), code, self.hits.setdefault(file, set()).add)
        return spec_from_file_location(name, file, loader=loader)

    def name_of(self, path: Path) -> str:
        return ".".join(path.relative_to(self.root).with_suffix("").parts)

    def count(self, path: Path) -> None:
        self.codes[self.name_of(path)] = path, compile(with_counters(path.read_text()), str(path), "exec")

    def change(self, case: Case) -> None:
        self.codes[self.name_of(case.path)] = case.path, compile(case.text, str(case.path), "exec")


def code_of(text: str, path: Path, name: str, line: int) -> CodeType | None:
    """The code of one function of a text."""
    left = [compile(text, str(path), "exec")]
    while left:
        code = left.pop()
        if (code.co_qualname, code.co_firstlineno) == (name, line):
            return code
        left += [one for one in code.co_consts if isinstance(one, CodeType)]
    return None


class Judge:
    """Takes over after the collection: finds which tests run which statements, then judges the mutants."""

    def __init__(
        self, cases: Sequence[Case], own_tests: dict[Path, set[Path]], source: Path, tests: Path, until: float,
        judged: Callable[[int, Verdict], None], tell: Callable[[str], None], longest_s: float,
    ) -> None:  # fmt: skip
        self.cases, self.own_tests, self.until, self.longest_s = cases, own_tests, until, longest_s
        self.judged, self.tell = judged, tell
        self.hook = Hook(source)
        self.tests = tests
        self.paths = sorted({case.path for case in cases})
        self.places = {path: Places(path.read_text()) for path in self.paths}
        self.folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self.files = sorted(set().union(*own_tests.values()))
        self.seconds: dict[str, float] = {}
        self.runs: dict[tuple[Path, int], set[str]] = {}
        self.of_module: dict[Path, set[str]] = {}
        self.trusted: set[str] = set()
        self.failing: dict[str, str] = {}
        "Tests that fail without any change, and why."
        self.noticed: Counter[tuple[str, str]] = Counter()
        "How often a test noticed a mutant of a function, or one outside of functions: (function, test)."

    # -- the warm process

    def judge(self) -> str:
        """Judge all; returns what is wrong, or nothing."""
        for path in self.paths:
            self.hook.count(path)
        sys.meta_path.insert(0, self.hook)
        log = self.folder / "log"
        try:
            with _output_to(log):
                code = pytest.main([*self.arguments(), *map(str, self.files)], plugins=[self])
            return "" if code in (0, 5) else log.read_text()[-4000:]
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def arguments(self) -> list[str]:
        return [
            "-q",
            "--assert=plain",
            "-m",
            FAST,
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            f"--basetemp={self.folder}/tests",
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        no_shrinking()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        self.items = {item.nodeid: item for item in session.items}
        self.at_import = {path: set(self.hook.hits.get(path, ())) for path in self.paths}
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self.caches: list[functools._lru_cache_wrapper[Any]] = []
        files = {str(path) for path in self.paths}
        for one in gc.get_objects():
            if type(one) is FunctionType and one.__code__.co_filename in files:
                code = one.__code__
                self.functions.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(one)
            elif type(one) is functools._lru_cache_wrapper:
                cached = getattr(one.__wrapped__, "__code__", None)
                if cached is not None and cached.co_filename in files:
                    self.caches.append(one)
        gc.collect()
        gc.freeze()
        self.measure()
        self.tell(f"{len(self.seconds)} of {len(self.items)} tests pass, in {sum(self.seconds.values()):.0f} s")
        for name, why in self.failing.items():
            self.tell(f"{name} fails without a change and judges nothing: {why}")
        for number, case in enumerate(self.cases):
            if time.monotonic() > self.until:
                break
            self.judged(number, self.verdict(case))
        return True

    def measure(self) -> None:
        """Run every test once and note how long it takes and which statements it runs; a failing test is left out."""
        found = self.folder / "measured"

        def work() -> None:
            with found.open("w") as rows:
                for item, following in _with_next(list(self.items.values())):
                    for hits in self.hook.hits.values():
                        hits.clear()
                    for cache in self.caches:
                        cache.cache_clear()  # else only the first test that asks would run the statements
                    began = time.monotonic() - waited_s(os.getpid())
                    why = _failure(item, following)
                    lines = {str(path): sorted(hits) for path, hits in self.hook.hits.items() if hits}
                    seconds = time.monotonic() - waited_s(os.getpid()) - began
                    rows.write(json.dumps([item.nodeid, seconds, lines, why]) + "\n")
                    rows.flush()

        in_child(work, max(60.0, self.until - time.monotonic()))
        for row in found.read_text().splitlines():
            name, seconds, lines, why = json.loads(row)
            if why:
                self.failing[name] = why
                continue
            self.seconds[name] = seconds
            for file, numbers in lines.items():
                path = Path(file)
                self.of_module.setdefault(path, set()).add(name)
                for line in numbers:
                    self.runs.setdefault((path, line), set()).add(name)

    # -- one mutant

    def verdict(self, case: Case) -> Verdict:
        place = self.places[case.path].at(case.start)
        warm = self.put_in(case, place)
        if place is None or place.is_compiled or place.line in self.at_import[case.path]:
            tests = self.all_tests(case.path)
        else:
            tests = self.runs.get((case.path, place.line), set())
        if not tests:
            return Verdict(UNSEEN)
        # One test of all default values notices mutants outside of functions in many files.
        function = f"{case.path}:{place.function}" if place is not None else ""
        while True:
            order = self.in_order(tests, function)
            plain = [name for name in order if "golden" not in name.lower()]
            golden = [name for name in order if "golden" in name.lower()]
            for names, word in ((plain, NOTICED), (golden, GOLDEN)):
                if not names:
                    continue
                outcome = self.outcome(case, names, warm, function)
                if outcome == HANGS:
                    return Verdict(HANGS)
                if outcome:
                    if not self.passes_without(outcome):
                        tests = tests - {outcome}
                        break
                    self.noticed[function, outcome] += 1
                    return Verdict(word, outcome)
            else:
                return Verdict(LIVES)

    def all_tests(self, path: Path) -> set[str]:
        """The tests that run any function of the module, or stand in a file that imports it."""
        files = {str(file) for file in self.own_tests[path]}
        return self.of_module.get(path, set()) | {name for name in self.seconds if str(self.items[name].path) in files}

    def in_order(self, tests: set[str], function: str) -> list[str]:
        """The fastest ones, as many as the time for one mutant allows; those first that noticed most other mutants of
        the function."""
        names = sorted(tests, key=lambda name: (self.seconds[name], name))
        used = 0.0
        found: list[str] = []
        for name in names:
            used += self.seconds[name]
            if found and used > self.longest_s:
                break
            found.append(name)
        return sorted(found, key=lambda name: -self.noticed[function, name])

    def put_in(self, case: Case, place: Place | None) -> Callable[[], None] | None:
        """What changes the code of a function that exists; None if the modules have to be imported anew."""
        if place is None or place.is_compiled or place.line in self.at_import[case.path]:
            return None
        functions = self.functions.get((str(case.path), place.function, place.function_line), [])
        code = code_of(case.text, case.path, place.function, place.function_line)
        if not functions or code is None:
            return None
        if any(one.__code__.co_freevars != code.co_freevars for one in functions):
            return None

        def patch() -> None:
            for one in functions:
                one.__code__ = code

        return patch

    def run(self, case: Case, names: list[str], warm: Callable[[], None] | None) -> str:
        """The first of the tests that fails, HANGS, or nothing."""

        def in_place() -> str:
            assert warm is not None
            warm()
            return self.first_failing(names)

        def anew() -> str:
            if "numba" in sys.modules:
                # Else it would take the loops that it compiled before the change.
                sys.modules["numba"].config.CACHE_DIR = str(self.folder / f"compiled-{os.getpid()}")
            self.hook.change(case)
            _forget(self.hook.root, self.tests)
            chosen = Chosen({name: self.longest_for(name) for name in names})
            files = sorted({str(self.items[name].path) for name in names})
            code = pytest.main([*self.arguments(), "-x", *files], plugins=[chosen])
            return chosen.failed or ("" if code in (0, 5) else names[0])

        limit = 20.0 + 5.0 * sum(self.seconds[name] for name in names)
        return in_child(in_place if warm else anew, limit, crashed=names[0])

    def outcome(self, case: Case, names: list[str], warm: Callable[[], None] | None, function: str) -> str:
        """As `run`. Where the modules are imported anew, the test that noticed most is tried alone: that is quick."""
        best = names[0]
        if warm is None and len(names) > 1 and self.noticed[function, best]:
            return self.run(case, [best], warm) or self.run(case, names[1:], warm)
        return self.run(case, names, warm)

    def first_failing(self, names: list[str]) -> str:
        for item, following in _with_next([self.items[name] for name in names]):
            end_after(self.longest_for(item.nodeid))
            if not _passes(item, following):
                return item.nodeid
        return ""

    def longest_for(self, name: str) -> float:
        """The processor time after which a test is said not to end."""
        return 10.0 + 5.0 * self.seconds[name]

    def passes_without(self, name: str) -> bool:
        """Whether a test passes alone and without a change; asked once for each test."""
        if name in self.trusted:
            return True
        if in_child(lambda: self.first_failing([name]), 60.0 + 5.0 * self.seconds[name], crashed=name):
            self.seconds.pop(name, None)
            for tests in (*self.runs.values(), *self.of_module.values()):
                tests.discard(name)
            return False
        self.trusted.add(name)
        return True


class Chosen:
    """Keeps the chosen tests of a new collection, in the order given, and the name of the first that fails.

    Given with each is the processor time after which it is said not to end."""

    def __init__(self, longest_s: dict[str, float]) -> None:
        self.rank = {name: number for number, name in enumerate(longest_s)}
        self.longest_s = longest_s
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        no_shrinking()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((one for one in items if one.nodeid in self.rank), key=lambda one: self.rank[one.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        end_after(self.longest_s[nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def no_shrinking() -> None:
    """Hypothesis stops at the first example that fails."""
    from hypothesis import Phase, settings

    settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate], database=None)
    settings.load_profile("mutants")


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not _failure(item, following)


def _failure(item: pytest.Item, following: pytest.Item | None) -> str:
    """What a failing test says, in one line; nothing if it passes."""
    from _pytest.runner import runtestprotocol

    failed = [report for report in runtestprotocol(item, nextitem=following, log=False) if report.failed]
    if not failed:
        return ""
    crash = getattr(failed[0].longrepr, "reprcrash", None)
    return (crash.message if crash is not None else failed[0].longreprtext).strip().partition("\n")[0] or "no reason"


def _with_next(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _forget(*places: Path) -> None:
    """Drop the project's modules: they are imported anew."""
    folders = tuple(f"{place}{os.sep}" for place in places)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(folders):
            del sys.modules[name]


def in_child(work: Callable[[], str | None], longest_s: float, crashed: str = "") -> str:
    """What the work returns in a process of its own, HANGS after so long, `crashed` if the process ends otherwise."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setsid()
            os.close(reading)
            answer = work() or ""
            os.write(writing, answer.encode() + b"\n")
            code = 0
        os._exit(code)
    os.close(writing)
    began = time.monotonic()
    left_s = longest_s
    said = None
    try:
        while left_s > 0 and said is None:
            ready, _, _ = select.select([reading], [], [], left_s)
            said = os.read(reading, 65536).decode() if ready else None
            left_s = longest_s + waited_s(pid) - (time.monotonic() - began)
    finally:
        os.close(reading)
        for end in (os.killpg, os.kill):  # on a busy machine it may not lead its own group yet
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    if said is None or os.waitstatus_to_exitcode(status) == -signal.SIGPROF:
        return HANGS
    return said[:-1] if said.endswith("\n") else crashed


def end_after(processor_s: float) -> None:
    """The system ends this process after so much more processor time, whatever it does then."""
    signal.setitimer(signal.ITIMER_PROF, processor_s)


def waited_s(pid: int) -> float:
    """How long a process has waited for a free processor; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


@contextlib.contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Send what pytest prints to a file."""
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("w") as target:
        os.dup2(target.fileno(), 1)
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        os.close(kept[0])
        os.close(kept[1])
