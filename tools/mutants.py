"""Do the tests notice a wrong line? Change one thing at a time, and run the tests that cover it.

    make mutants MODULES="protocols/cbf.py filters/language/values.py"
    python tools/mutants.py protocols/cbf.py --count 20 --seed 7
    python tools/mutants.py --since main~5          # only lines changed since that commit

Each mutant is one small wrong change: `<` for `<=`, `+` for `-`, `and` for `or`, a number one higher, a condition
turned round, a call left out, two arguments exchanged. The tests are those that import one of the modules, or stand in
the folder that mirrors its own or its room; slow tests are left out. Of these, only the tests that run the changed
line judge a mutant (mutant_judge.py). Tests of golden logs run last: that only they notice a mutant is counted apart,
for they say that something changed and not what is wrong. Spark's tests take seconds each: with `--spark SECONDS` they
judge only those that no other test noticed, each for at most so long (mutant_spark.py).

Results are kept in .mutants.json: the same command goes on where it was stopped, and shows the table at once when all
is done. A mutant that lives is shown as a diff, with a number. Judge each one: without effect, or a hole in the tests.
`--harmless NUMBER --because REASON` notes that it has no effect: then it no longer counts. A verdict stands until the
tests it rests on are changed; `--again` judges once more those that no test had noticed. The last line says which share
of the mutants that change behaviour was noticed, and which share of these by golden logs alone.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from mutant_judge import GOLDEN, HANGS, LIVES, NOTICED, UNSEEN, Case, Judge, Verdict
from mutant_spark import SparkJudge

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "earshot"
TESTS = ROOT / "tests"
STATE = ROOT / ".mutants.json"
HARMLESS = "no effect"
APART = "EARSHOT_MUTANTS_APART"
"Set inside the network of its own."

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True)
class Mutant:
    """One wrong change: the text between two places of a file is replaced."""

    line: int
    start: int
    end: int
    text: str
    what: str

    def applied(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def mutants_of(source: str) -> list[Mutant]:
    """Every change that can be made to a file, in order."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()

    def place(line: int, column: int) -> int:
        """The character at a line and a column; ast counts columns in bytes."""
        return len(data[: starts[line - 1] + column].decode())

    found = []
    for node, changed, what in _changes(tree):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)
        text = ast.unparse(changed) if changed is not None else "pass"
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant | ast.Name):
            text = f"({text})"
        if text != source[start:end]:
            found.append(Mutant(node.lineno, start, end, text, what))
    return sorted(set(found), key=lambda one: (one.start, one.end, one.text))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST | None, str]]:
    """Nodes, what they become (None: nothing), and the change in words."""
    hidden = _not_behaviour(tree)
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Compare):
            for number, operator in enumerate(node.ops):
                other = COMPARISONS.get(type(operator))
                if other is not None:
                    changed = deepcopy(node)
                    changed.ops[number] = other()
                    yield node, changed, "another comparison"
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node):
            changed_operation = deepcopy(node)
            changed_operation.op = ARITHMETIC[type(node.op)]()
            yield node, changed_operation, "another operation"
        elif isinstance(node, ast.BoolOp):
            turned = deepcopy(node)
            turned.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, turned, "and for or"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield node, node.operand, "without its sign"
        elif isinstance(node, ast.Constant):
            yield from _constants(node)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node.test, ast.UnaryOp(ast.Not(), node.test), "a condition turned round"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, None, "a call left out"
        elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            stepped = deepcopy(node)
            stepped.op = ARITHMETIC[type(node.op)]()
            yield node, stepped, "another operation"
        elif isinstance(node, ast.Call):
            yield from _calls(node)
        elif isinstance(node, ast.Continue | ast.Break):
            yield node, ast.Break() if isinstance(node, ast.Continue) else ast.Continue(), "break for continue"


def _constants(node: ast.Constant) -> Iterator[tuple[ast.expr, ast.AST, str]]:
    if isinstance(node.value, bool):
        yield node, ast.Constant(not node.value), "true for false"
    elif isinstance(node.value, int):
        yield node, ast.Constant(node.value + 1), "a number one higher"
    elif isinstance(node.value, float):
        yield node, ast.Constant(node.value * 2 if node.value else 1.0), "a number doubled"


def _calls(node: ast.Call) -> Iterator[tuple[ast.expr, ast.AST, str]]:
    if isinstance(node.func, ast.Name) and node.func.id in EXCHANGED:
        other = deepcopy(node)
        assert isinstance(other.func, ast.Name)
        other.func.id = EXCHANGED[node.func.id]
        yield node, other, f"{other.func.id} for {node.func.id}"
    plain = [one for one in node.args if not isinstance(one, ast.Starred)]
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name in ("min", "max", "maximum", "minimum", "hypot", "uniform"):
        return  # Their order makes no difference.
    if len(plain) >= 2 and len(plain) == len(node.args) and ast.dump(plain[0]) != ast.dump(plain[1]):
        swapped = deepcopy(node)
        swapped.args[0], swapped.args[1] = swapped.args[1], swapped.args[0]
        yield node, swapped, "two arguments exchanged"


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _not_behaviour(tree: ast.Module) -> set[int]:
    """Annotations, decorators, texts of errors, checks of zip and what only type checkers read."""
    hidden: set[int] = set()

    def hide(*nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                hidden.update(id(inner) for inner in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            hide(node.returns, *node.decorator_list)
        elif isinstance(node, ast.ClassDef):
            hide(*node.decorator_list, *(keyword.value for keyword in node.keywords))
        elif isinstance(node, ast.arg | ast.AnnAssign):
            hide(node.annotation)
        elif isinstance(node, ast.JoinedStr | ast.Assert):
            hide(node)
        elif isinstance(node, ast.Raise):
            hide(node.exc)
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            hide(node)  # of zip: it only finds mistakes
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            hide(node)
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.BinOp | ast.Subscript)
            and (
                isinstance(node.targets[0], ast.Name)
                and node.targets[0].id[:1].isupper()
                and "|" in ast.unparse(node.value)
            )
        ):
            hide(node)  # an alias of types
    return hidden


def tests_of(path: Path) -> list[Path]:
    """The tests that import a module, and those in the folders that mirror its own and the rooms around it."""
    module = ".".join(["earshot", *path.relative_to(SOURCE).with_suffix("").parts])
    mirror = TESTS / path.relative_to(SOURCE).parent
    named = re.compile(rf"^\s*(?:from {re.escape(module)} import|import {re.escape(module)})", re.MULTILINE)
    package, _, name = module.rpartition(".")
    from_room = re.compile(rf"^\s*from {re.escape(package)} import .*\b{re.escape(name)}\b", re.MULTILINE)
    found = {
        test
        for test in TESTS.rglob("test_*.py")
        if named.search(text := test.read_text()) or from_room.search(text) or test.name == f"test_{path.name}"
    }
    while mirror != TESTS:
        found |= set(mirror.glob("test_*.py"))
        mirror = mirror.parent
    return sorted(found)


def changed_lines(commit: str) -> dict[Path, set[int]]:
    """The lines of each source file that were written since a commit."""
    command = ["git", "diff", "--unified=0", commit, "--", "src/earshot"]
    found: dict[Path, set[int]] = {}
    path = None
    for line in subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        if line.startswith("+++ "):
            path = ROOT / line[6:] if line.endswith(".py") else None
        elif path is not None and (hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(path, set()).update(range(first, first + count))
    return found


def chosen(path: Path, count: int, seed: int, lines: set[int] | None) -> list[Mutant]:
    """So many mutants of a module, drawn by the seed."""
    every = [one for one in mutants_of(path.read_text()) if lines is None or one.line in lines]
    return Random(f"{seed}:{path.relative_to(SOURCE)}").sample(every, min(count, len(every)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="files or folders below src/earshot")
    parser.add_argument("--since", metavar="COMMIT", help="only lines changed since this commit")
    parser.add_argument("--count", type=int, default=12, help="mutants a module (12)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this long (60); run again to go on")
    parser.add_argument("--seconds", type=float, default=60.0, help="tests of one mutant take at most this long (60)")
    parser.add_argument("--tests", action="append", default=[], metavar="FOLDER", help="only tests below this folder")
    parser.add_argument(
        "--harmless", action="append", default=[], metavar="NUMBER", help="this mutant was judged: it has no effect"
    )
    parser.add_argument("--because", default="", metavar="REASON", help="why the --harmless ones have no effect")
    parser.add_argument("--again", action="store_true", help="judge again those that no test noticed")
    parser.add_argument(
        "--spark", type=float, metavar="SECONDS", help="Spark's tests judge the rest, each mutant at most this long"
    )
    options = parser.parse_args()
    lines = changed_lines(options.since) if options.since else None
    paths = sorted({found for name in options.modules for found in _files(SOURCE / name)} or set(lines or ()))
    if not paths:
        parser.error("name modules, as in protocols/cbf.py, or give --since COMMIT")
    if any(path.is_relative_to(SOURCE / "live") for path in paths):
        go_apart()
    state = _known()
    some = {
        path: chosen(path, options.count, options.seed, None if lines is None else lines.get(path, set()))
        for path in paths
    }
    judged_harmless = [one for one in state if one.rpartition(":")[2] in options.harmless]
    if len(judged_harmless) < len(set(options.harmless)):
        parser.error("--harmless takes the number that stands beside a mutant that lives")
    if judged_harmless:
        state |= dict.fromkeys(judged_harmless, HARMLESS)
        state |= {f"{one}:because": options.because for one in judged_harmless if options.because}
        _keep(state)
    until = time.monotonic() + 60.0 * options.minutes
    judge(some, state, options, until)
    stopped = bool(options.spark) and not judge_with_spark(some, state, options, until)
    words = (NOTICED, HANGS, GOLDEN, LIVES, UNSEEN, HARMLESS)
    rows: list[list[Any]] = []
    living = []
    for path, mutants in some.items():
        tests = chosen_tests(path, options.tests)
        verdicts = {one: word for one in mutants if (word := standing(state, path, one, tests, options.seconds))}
        stopped |= len(verdicts) < len(mutants)
        counts = Counter(verdicts.values())
        name = str(path.relative_to(SOURCE))
        rows.append([name, *(counts[word] for word in words), len(mutants) - len(verdicts)])
        living += [(path, one) for one, verdict in verdicts.items() if verdict in (LIVES, UNSEEN)]
    rows.append(["all", *(sum(row[column] for row in rows) for column in range(1, len(words) + 2))])
    print()
    for cells in [["module", *words, "not judged"], *rows]:
        print(
            f"{cells[0]:48}"
            + "".join(f"{cell!s:>{width}}" for cell, width in zip(cells[1:], (10, 15, 22, 8, 18, 11, 13), strict=True))
        )
    for path, mutants in some.items():
        for one in mutants:
            if reason := state.get(f"{key(path, one)}:because"):
                print(f"\n{path.relative_to(ROOT)}:{one.line}: {one.what}: {HARMLESS}, because {reason}")
    for path, mutant in living:
        source = path.read_text()
        number = key(path, mutant).rpartition(":")[2]
        print(f"\n{path.relative_to(ROOT)}:{mutant.line}: {mutant.what}: {state[key(path, mutant)]} ({number})")
        shown = difflib.unified_diff(source.splitlines(), mutant.applied(source).splitlines(), n=1, lineterm="")
        print("\n".join(list(shown)[2:]))
    print("\n" + shares(Counter(dict(zip(words, rows[-1][1:-1], strict=True)))))
    if stopped:
        print("\nNot all were run: the same command goes on from here.")


def go_apart() -> None:
    """Start again in a network of its own, where the system allows it. A mutant of the code that asks for an
    interface's MTU can set it instead, and so take down the machine's loopback interface."""
    if APART in os.environ:
        return
    own = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    loopback = ["ip", "link", "set", "lo", "up"]
    tools = shutil.which("unshare") and shutil.which("ip")
    if not tools or subprocess.run([*own, *loopback], capture_output=True, check=False).returncode:
        print("this system allows no network of its own (unshare --net): mutants of live code see the real one")
        return
    again = ["sh", "-c", f'{" ".join(loopback)} && exec "$@"', "sh", sys.executable, *sys.argv]
    os.execvpe(own[0], [*own, *again], {**os.environ, APART: "1"})


def shares(counts: Counter[str]) -> str:
    """Of the mutants that change behaviour, the share that was noticed; of these, the share of golden logs alone."""
    noticed = counts[NOTICED] + counts[HANGS] + counts[GOLDEN]
    changing = noticed + counts[LIVES] + counts[UNSEEN]
    if not noticed:
        return f"None of {changing} mutants was noticed."
    return (
        f"{noticed} of {changing} mutants were noticed ({noticed / changing:.1%}), {counts[GOLDEN]} of these by golden "
        f"logs alone ({counts[GOLDEN] / noticed:.1%}). {counts[HARMLESS]} more were judged to have no effect."
    )


def _known() -> dict[str, str]:
    """The verdicts so far."""
    return dict(json.loads(STATE.read_text())) if STATE.exists() else {}


def _keep(state: dict[str, str]) -> None:
    draft = STATE.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(state, indent=0))
    draft.replace(STATE)


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return [path for path in place.rglob("*.py") if path.name != "__init__.py"]
    if not place.is_file():
        raise SystemExit(f"there is no {place.relative_to(ROOT)}")
    return [place]


def judge(some: dict[Path, list[Mutant]], state: dict[str, str], options: argparse.Namespace, until: float) -> None:
    """Find the verdicts that are not known yet, all in one warm process."""
    own_tests = {path: chosen_tests(path, options.tests) for path in some}
    left = [
        (path, one)
        for path, mutants in some.items()
        for one in mutants
        if (known := standing(state, path, one, own_tests[path], options.seconds)) is None
        or (options.again and known in (LIVES, UNSEEN))
    ]
    if not left:
        return
    own_tests = {path: own_tests[path] for path, _ in left}
    out = os.fdopen(os.dup(1), "w")

    def tell(text: str) -> None:
        print(text, file=out, flush=True)

    def judged(number: int, verdict: Verdict) -> None:
        path, one = left[number]
        state.update(_known())  # another run may write too
        note(state, path, one, verdict, own_tests[path], options.seconds)
        by = f" by {verdict.test}" if verdict.test else ""
        tell(f"{path.relative_to(SOURCE)}:{one.line}: {one.what}: {verdict.word}{by}")
        _keep(state)

    cases = [Case(path, one.start, one.applied(path.read_text())) for path, one in left]
    tell(f"{len(left)} mutants; first the tests run once without a change")
    os.chdir(ROOT)
    if problem := Judge(cases, own_tests, ROOT / "src", TESTS, until, judged, tell, options.seconds).judge():
        raise SystemExit(problem)


def judge_with_spark(
    some: dict[Path, list[Mutant]], state: dict[str, str], options: argparse.Namespace, until: float
) -> bool:
    """Judge those that no other test noticed; what lives through Spark's tests too is remembered.

    Returns whether the time was enough."""
    with SparkJudge(ROOT / "src", ROOT, options.spark) as spark:
        for path, mutants in some.items():
            for one in mutants:
                seen, tests = f"{key(path, one)}:spark", chosen_tests(path, options.tests)
                basis = basis_of(frozenset(tests), f"{options.spark}")
                word = standing(state, path, one, tests, options.seconds)
                if word not in (LIVES, UNSEEN) or (state.get(seen) == basis and not options.again):
                    continue
                if time.monotonic() > until:
                    return False
                verdict = spark.verdict(Case(path, one.start, one.applied(path.read_text())), sorted(tests))
                state.update(_known(), **{seen: basis})
                if verdict.word != LIVES:
                    note(state, path, one, verdict, tests, options.seconds)
                _keep(state)
                by = f" by {verdict.test}" if verdict.test else " with Spark's tests too"
                print(f"{path.relative_to(SOURCE)}:{one.line}: {one.what}: {verdict.word}{by}", flush=True)
    return True


def chosen_tests(path: Path, folders: list[str]) -> set[Path]:
    """The tests of a module that stand below one of these folders."""
    below = [ROOT / folder for folder in folders or ["tests"]]
    return {test for test in tests_of(path) if any(test.is_relative_to(folder) for folder in below)}


def note(state: dict[str, str], path: Path, one: Mutant, verdict: Verdict, tests: set[Path], seconds: float) -> None:
    """Remember a verdict and what it rests on: the test that noticed, or all tests that did not."""
    name = key(path, one)
    state |= {name: verdict.word, f"{name}:by": verdict.test}
    state[f"{name}:basis"] = _basis(verdict.test, tests, seconds)


def standing(state: dict[str, str], path: Path, one: Mutant, tests: set[Path], seconds: float) -> str | None:
    """The verdict on a mutant, unless other tests or another time for them could change it.

    That a mutant was noticed rests on the file of the test that noticed it; that it lives, on all tests that were
    asked, on their size and on the time they had."""
    name = key(path, one)
    word, by = state.get(name), state.get(f"{name}:by", "")
    if word is None or word in (HARMLESS, HANGS):
        return word
    return word if state.get(f"{name}:basis") == _basis(by, tests, seconds) else None


def _basis(by: str, tests: set[Path], seconds: float) -> str:
    if by:
        return basis_of(frozenset({ROOT / by.partition("::")[0]}), "")
    return basis_of(frozenset(tests), f"{os.environ.get('EARSHOT_TEST_SIZE')} {seconds}")


@cache
def basis_of(tests: frozenset[Path], more: str) -> str:
    """What tests say, in few letters: their texts, and those of the helpers that they may import."""
    helpers = {path for path in TESTS.rglob("*.py") if not path.name.startswith("test_")}
    return hash_of("\0".join([*(path.read_text() for path in sorted(tests | helpers) if path.exists()), more]))


def key(path: Path, mutant: Mutant) -> str:
    return f"{path.relative_to(SOURCE)}:{hash_of(mutant.applied(path.read_text()))}"


def hash_of(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
