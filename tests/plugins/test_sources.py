"""The sources of a plug-in: what belongs to its code, what its digest depends on, and what a shipment replaces."""

from __future__ import annotations

import importlib
import math
import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot.errors import UnknownName
from earshot.plugins import PluginError, installed, loading, located, named, sources
from earshot.plugins.loading import is_outside
from earshot.plugins.sources import Code, ModuleSource, _imported, _is_installed, code_of, take_over

TOPS = ("sources_test_alone", "sources_test_pack", "sources_test_friend", "sources_test_friends_friend")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What these tests import and ship is not there for others."""
    yield
    take_over(())
    for name in [name for name in sys.modules if name.partition(".")[0] in TOPS]:
        del sys.modules[name]
    shipped = next(one for one in sys.meta_path if type(one).__name__ == "_ShippedModules")
    for name in [name for name in shipped.sources if name.partition(".")[0] in TOPS]:  # type: ignore[attr-defined]
        del shipped.sources[name]  # type: ignore[attr-defined]


def source(module: str, text: str, is_package: bool = False, by_path: bool = False) -> ModuleSource:
    return ModuleSource(module, f"/somewhere/{module}.py", is_package, text.encode(), by_path)


def test_top_level_modules_are_found_wherever_they_are_imported() -> None:
    text = """
import a.b as x, c
from d.e import f
from . import g
from .h import i
def later():
    import j
    from k import l
"""
    assert _imported(source("m", text)) == {"a", "c", "d", "j", "k"}
    assert _imported(source("m", "import (")) == set()


def test_a_digest_depends_on_names_and_texts_but_not_on_places() -> None:
    def digest(*sources: ModuleSource) -> str:
        return Code(sources).digest

    one = source("m", "x = 1")
    assert digest(one) == digest(ModuleSource("m", "/elsewhere.py", False, b"x = 1"))
    assert len({digest(one), digest(source("m", "x = 2")), digest(source("o", "x = 1")), digest(one, one)}) == 4
    assert digest(source("m", "x = 1", by_path=True)) == digest(source("o", "x = 1", by_path=True))
    assert digest(source("a", "12"), source("b", "3")) != digest(source("a", "1"), source("b", "23"))


def test_the_code_of_a_module_is_its_package_and_what_it_imports_from_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = tmp_path / "sources_test_pack"
    (pack / "inner").mkdir(parents=True)
    (pack / "__init__.py").write_text("import json, pytest, earshot, nowhere_to_be_found\nimport sources_test_friend\n")
    (pack / "inner" / "__init__.py").write_text("")
    (pack / "inner" / "deep.py").write_text("import sources_test_pack\n")
    (tmp_path / "sources_test_friend.py").write_text("import sources_test_friends_friend\n")
    (tmp_path / "sources_test_friends_friend.py").write_text("import sources_test_friend\n")
    (tmp_path / "sources_test_alone.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = code_of("sources_test_pack.inner.deep").sources
    assert [(one.module, one.is_package) for one in found] == [
        ("sources_test_friend", False),
        ("sources_test_friends_friend", False),
        ("sources_test_pack", True),
        ("sources_test_pack.inner", True),
        ("sources_test_pack.inner.deep", False),
    ]
    assert found[4].text == b"import sources_test_pack\n"
    assert found[4].file == str(pack / "inner" / "deep.py")


def test_a_single_files_code_is_the_file_and_what_it_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sources_test_friend.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    single = source("sources_test_alone", "import sources_test_friend, math", by_path=True)
    assert [one.module for one in code_of("sources_test_alone", single).sources] == [
        "sources_test_alone",
        "sources_test_friend",
    ]


def test_a_single_file_does_not_bring_its_neighbours_of_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It imports itself and a friend that imports it back; an installed package that it imports stays out."""
    (tmp_path / "sources_test_alone.py").write_text("WRONG = 1")
    (tmp_path / "sources_test_friend.py").write_text("import sources_test_alone")
    (tmp_path / "sources_test_pack").mkdir()
    (tmp_path / "sources_test_pack" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sources, "_is_installed", lambda place: "sources_test_pack" in place)
    single = source("sources_test_alone", "import sources_test_friend, sources_test_pack", by_path=True)
    assert [(one.module, one.text) for one in code_of("sources_test_alone", single).sources] == [
        ("sources_test_alone", single.text),
        ("sources_test_friend", b"import sources_test_alone"),
    ]
    assert [one.module for one in code_of("sources_test_pack").sources] == ["sources_test_pack"], "its own counts"


def test_modules_without_python_source_have_no_code() -> None:
    assert code_of("math").sources == ()
    assert code_of("sources_test_nowhere").sources == ()
    compiled = ModuleSpec("sources_test_alone", None, origin=__file__.replace(".py", ".so"))
    sys.modules["sources_test_alone"] = SimpleNamespace(__spec__=compiled)  # type: ignore[assignment]
    assert code_of("sources_test_alone").sources == ()


def test_what_is_offered_once_is_loaded_with_its_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_entry_points", lambda _: [offered("pi", "math:pi"), offered("e", "math:e", None)])
    monkeypatch.setattr(loading, "_loaded", {})
    checked = []
    for name in ("pi", "e"):
        named("metrics", name, {}, lambda *given: checked.append(given) or given[1])
    assert checked == [("pi", math.pi), ("e", math.e)]
    assert [(one.kind, one.name, one.module, one.attribute, one.origin) for one in loading.shipment()] == [
        ("metrics", "e", "math", "e", "an unknown distribution"),
        ("metrics", "pi", "math", "pi", "tools 1.2"),
    ]


def test_what_pip_installed_is_no_part_of_a_plug_ins_code() -> None:
    assert _is_installed(str(Path(pytest.__file__)))
    assert _is_installed("/any/where/site-packages/x")
    assert all(_is_installed(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib", "platstdlib"))
    assert not _is_installed("/home/me/project")


def test_shipped_sources_are_imported_before_files_and_replace_what_was_there() -> None:
    take_over([source("sources_test_pack", "A = 1", True), source("sources_test_pack.inner", "B = 2")])
    assert importlib.import_module("sources_test_pack.inner").B == 2
    assert sys.modules["sources_test_pack"].__file__ == "/somewhere/sources_test_pack.py"
    take_over([source("sources_test_friend", "C = 3")])
    assert importlib.import_module("sources_test_pack").A == 1
    take_over([source("sources_test_pack", "A = 9", True)])
    assert importlib.import_module("sources_test_pack").A == 9
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("sources_test_pack.inner")
    assert importlib.import_module("sources_test_friend").C == 3


# Names.


@pytest.mark.parametrize(
    ("name", "outside"),
    [("flooding", False), ("frugal:Frugal", True), ("./f.py:F", True), ("f.py", True), ("f.p", False)],
)
def test_which_names_are_those_of_other_peoples_code(name: str, outside: bool) -> None:
    assert is_outside(name) is outside


def test_a_path_is_resolved_against_the_folder_it_was_written_in() -> None:
    folder = Path("/data/campaigns")
    names = ("../x.py:X", "x.py", "sub/x.py:X.Y", "~/x.py:X")
    assert [located(name, folder) for name in names] == [
        "/data/x.py:X", "/data/campaigns/x.py", "/data/campaigns/sub/x.py:X.Y", "~/x.py:X",
    ]  # fmt: skip
    assert located("./x.py:X", Path()) == "./x.py:X"


def offered(name: str, value: str, distribution: str | None = "tools 1.2") -> Any:
    dist = (
        None
        if distribution is None
        else SimpleNamespace(**dict(zip(("name", "version"), distribution.split(), strict=True)))
    )
    return SimpleNamespace(name=name, value=value, dist=dist)


def test_installed_plug_ins_are_listed_once_without_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = [offered("a", "absent_module:A"), offered("a", "absent_module:A"), offered("b", "absent_module:B", None)]
    monkeypatch.setattr(loading, "_entry_points", lambda kind: offers if kind == "metrics" else [])
    assert [(one.kind, one.name, one.reference, one.origin) for one in installed("metrics")] == [
        ("metrics", "a", "absent_module:A", "tools 1.2"),
        ("metrics", "b", "absent_module:B", "an unknown distribution"),
    ]
    assert installed("figures") == []


def test_two_distributions_that_offer_different_code_under_one_name_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offers = [offered("a", "math:pi", "tools 1.2"), offered("a", "math:e", "other 3"), offered("same", "math:pi")]
    offers.append(offered("same", "math:pi", "other 3"))
    monkeypatch.setattr(loading, "_entry_points", lambda _: offers)
    monkeypatch.setattr(loading, "_loaded", {})
    with pytest.raises(PluginError, match=r"^other 3 and tools 1\.2 both offer a metric named 'a'; uninstall one"):
        named("metrics", "a", {}, lambda _, value: value)
    with pytest.raises(UnknownName, match="no metric named 'sane'; did you mean 'same'"):
        named("metrics", "sane", {"built": 1}, lambda _, value: value)


def test_entry_points_are_read_again_when_a_folder_of_the_path_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = []

    def entry_points(group: str) -> list[EntryPoint]:
        read.append(group)
        return [EntryPoint("b", "m:B", group), EntryPoint("a", "m:Z", group), EntryPoint("a", "m:A", group)]

    monkeypatch.setattr(loading, "entry_points", entry_points)
    monkeypatch.setattr(loading, "_offers", {})
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "absent")])
    for _ in range(2):
        assert [(one.name, one.value) for one in loading._entry_points("media")] == [
            ("a", "m:A"), ("a", "m:Z"), ("b", "m:B"),
        ]  # fmt: skip
    assert read == ["earshot.media"]
    loading._entry_points("traces")
    monkeypatch.setattr(sys, "path", [])
    loading._entry_points("media")
    assert read == ["earshot.media", "earshot.traces", "earshot.media"]
