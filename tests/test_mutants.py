"""The tool that makes mutants: each is one small change that still can be read."""

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
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
