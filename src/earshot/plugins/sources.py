"""The sources of a plug-in: they are part of a run's id, and another process can run the same code from them.

The unit is a top-level module or package. A plug-in's code is its own unit and the units that it imports from the same
folders. Packages that pip has installed are not part of it: a worker must have them.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

OURS = "earshot"


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """One module's source text."""

    module: str
    file: str
    is_package: bool
    text: bytes
    by_path: bool = False
    "Loaded as a file: its module's name depends on where the file lies."


@dataclass(frozen=True)
class Code:
    """All sources of one plug-in, in the order of their names."""

    sources: tuple[ModuleSource, ...]

    @cached_property
    def digest(self) -> str:
        """A hash of the texts; the places of the files do not matter."""
        digest = hashlib.sha256()
        for source in self.sources:
            digest.update(f"{'' if source.by_path else source.module}\0{len(source.text)}\0".encode())
            digest.update(source.text)
        return digest.hexdigest()[:16]


def code_of(module: str, single: ModuleSource | None = None) -> Code:
    """The code of a loaded module: `single` if it is one file loaded by its path."""
    found: dict[str, ModuleSource] = {} if single is None else {single.module: single}
    waiting = [module.partition(".")[0]] if single is None else sorted(_imported(single))
    seen = {module.partition(".")[0]}
    first = single is None
    while waiting:
        top = waiting.pop()
        seen.add(top)
        for source in _sources_of(top, whole=first):
            found[source.module] = source
            waiting.extend(sorted(_imported(source) - seen))
            seen |= set(waiting)
        first = False
    return Code(tuple(found[name] for name in sorted(found)))


def _sources_of(top: str, whole: bool) -> Iterator[ModuleSource]:
    """The sources of a top-level module or package. `whole`: it is the plug-in's own, so its place does not matter."""
    if top in sys.stdlib_module_names or top in (OURS, "__main__"):
        return
    try:
        spec = sys.modules[top].__spec__ if top in sys.modules else importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    places = list(spec.submodule_search_locations or ()) or ([spec.origin] if spec.origin else [])
    if not whole and any(_is_installed(place) for place in places):
        return
    for place in places:
        path = Path(place)
        if path.is_dir():
            for file in sorted(path.rglob("*.py")):
                parts = [top, *file.relative_to(path).with_suffix("").parts]
                is_package = parts[-1] == "__init__"
                yield ModuleSource(
                    ".".join(parts[:-1] if is_package else parts), str(file), is_package, file.read_bytes()
                )
        elif path.suffix == ".py" and path.is_file():
            yield ModuleSource(top, str(path), False, path.read_bytes())


def _is_installed(place: str) -> bool:
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    return any(Path(place).is_relative_to(folder) for folder in folders if folder) or "site-packages" in place


def _imported(source: ModuleSource) -> set[str]:
    """The top-level modules that a source imports, inside functions too."""
    found: set[str] = set()
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


# In another process.


class _ShippedModules(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Imports modules from sources that came from another process, before any file of the same name."""

    def __init__(self) -> None:
        self.sources: dict[str, ModuleSource] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.sources:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def get_filename(self, fullname: str) -> str:
        return self.sources[fullname].file

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.sources[fullname].text)

    def is_package(self, fullname: str) -> bool:
        return self.sources[fullname].is_package


_shipped = _ShippedModules()


def take_over(sources: Iterable[ModuleSource]) -> None:
    """Import these modules from these sources from now on; forget what was imported under their names."""
    if _shipped not in sys.meta_path:
        sys.meta_path.insert(0, _shipped)
    given = {source.module: source for source in sources}
    for top in {name.partition(".")[0] for name in given}:
        for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
            del sys.modules[name]
        for name in [name for name in _shipped.sources if name == top or name.startswith(f"{top}.")]:
            del _shipped.sources[name]
    _shipped.sources.update(given)
