"""Finding and importing a plug-in by its name, and knowing afterwards what was loaded."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from earshot.errors import UnknownName, UsageError, nearest_name
from earshot.plugins.sources import Code, ModuleSource, code_of, take_over

T = TypeVar("T")

KINDS: dict[str, str] = {
    "protocols": "protocol",
    "media": "medium",
    "reception": "reception model",
    "mobility": "mobility model",
    "drivers": "kind of drivers",
    "workload": "workload generator",
    "traces": "trace format",
    "metrics": "metric",
    "figures": "figure of the report",
}
"The kinds of plug-ins, each with its name in sentences. Its entry points are in the group `earshot.<kind>`."


class PluginError(UsageError):
    """A plug-in that cannot be loaded: where, and why."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plug-in that this process has loaded."""

    kind: str
    name: str
    "The name that the user gave."
    module: str
    attribute: str
    origin: str
    "The file, or the distribution and its version."
    code: Code

    @property
    def value(self) -> Any:
        """The class or function itself."""
        return _attribute(sys.modules[self.module], self.attribute, self.name)


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An entry point that a distribution offers; it has not been imported."""

    kind: str
    name: str
    reference: str
    "`module:attribute`."
    origin: str
    "The distribution and its version."


_loaded: dict[tuple[str, str], Plugin] = {}


def is_outside(name: str) -> bool:
    """Whether the name is that of a class in a module or a file, as in `frugal:Frugal` or `./frugal.py:Frugal`."""
    return ":" in name or name.endswith(".py")


def named(
    kind: str,
    name: str,
    built_in: Mapping[str, T],
    check: Callable[[str, Any], T],
    *,
    load: bool = True,
) -> T:
    """The built-in or the plug-in of this name. `check(name, value)` refuses a plug-in that is not of this kind.

    With `load=False` no module or file is imported: only built-in, installed and already loaded names are found. Use
    it for names that come from data.
    """
    if name in built_in:
        return built_in[name]
    if (plugin := _running(kind, name)) is not None:
        return check(name, plugin.value)
    if is_outside(name):
        if not load:
            raise UnknownName(KINDS[kind], name, built_in)
        module, attribute = _reference(name)
        plugin = _from_file(kind, name, module, attribute) if _is_file(module) else _imported(kind, name, name, "")
    else:
        offers = [point for point in _entry_points(kind) if point.name == name]
        if not offers:
            raise UnknownName(KINDS[kind], name, [*built_in, *(point.name for point in _entry_points(kind))])
        if len({point.value for point in offers}) > 1:
            origins = " and ".join(sorted(_origin(point) for point in offers))
            raise PluginError(f"{origins} both offer a {KINDS[kind]} named {name!r}; uninstall one of them")
        plugin = _imported(kind, name, offers[0].value, _origin(offers[0]))
    value = check(name, plugin.value)
    _loaded[kind, name] = plugin
    return value


def _running(kind: str, name: str) -> Plugin | None:
    """The loaded plug-in of this name, unless it is a file that has changed since."""
    plugin = _loaded.get((kind, name))
    if plugin is None or not is_outside(name) or not _is_file(_reference(name)[0]):
        return plugin
    own = next(source for source in plugin.code.sources if source.module == plugin.module)
    try:
        changed = Path(own.file).read_bytes() != own.text
    except OSError:
        return plugin  # shipped from another machine
    return None if changed else plugin


def _reference(name: str) -> tuple[str, str]:
    module, colon, attribute = name.rpartition(":")
    if not colon:
        defined = ", ".join(f"{name}:{class_name}" for class_name in _classes_in(name)) or f"{name}:Class"
        raise PluginError(f"{name!r} lacks the class; write {defined}")
    if not module or not all(part.isidentifier() for part in attribute.split(".")):
        raise PluginError(f"{name!r} is not a plug-in; write module:Class or ./file.py:Class")
    return module, attribute


def _classes_in(file: str) -> list[str]:
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.bases]


def _is_file(module: str) -> bool:
    return module.endswith(".py") or "/" in module or os.sep in module


def located(name: str, folder: Path) -> str:
    """The name; if it is the name of a file, with the file's path relative to `folder` resolved."""
    if not is_outside(name) or not _is_file(name.rpartition(":")[0] or name):
        return name
    module, colon, attribute = name.rpartition(":") if ":" in name else (name, "", "")
    path = Path(module).expanduser()
    return name if path.is_absolute() or folder == Path() else f"{os.path.normpath(folder / path)}{colon}{attribute}"


def _from_file(kind: str, name: str, path: str, attribute: str) -> Plugin:
    file = Path(path).expanduser().resolve()
    try:
        text = file.read_bytes()
    except OSError as error:
        raise PluginError(f"{path}: {error.strerror.lower() if error.strerror else error}; check the path") from None
    module_name = f"{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    source = ModuleSource(module_name, str(file), False, text, by_path=True)
    if not any(source in plugin.code.sources for plugin in _loaded.values()):
        _forget(module_name)
        take_over([source])
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise _failure(name, error, file) from error
    _attribute(module, attribute, name)
    return Plugin(kind, name, module_name, attribute, str(file), code_of(module_name, source))


def _forget(module: str) -> None:
    """Forget the plug-ins of this module's top-level name: other code is about to be imported under that name."""
    top = module.partition(".")[0]
    for key in [key for key, plugin in _loaded.items() if plugin.module.partition(".")[0] == top]:
        del _loaded[key]


def _imported(kind: str, name: str, reference: str, origin: str) -> Plugin:
    module_name, attribute = _reference(reference)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]
        if missing and Path(f"{module_name}.py").is_file():
            hint = f"./{module_name}.py:{attribute}"
            raise PluginError(f"no module named {module_name!r} is installed; for the file write {hint}") from None
        if missing:
            raise PluginError(f"no module named {module_name!r} is installed; install it, or name a file") from None
        raise _failure(name, error, None) from error
    _attribute(module, attribute, name)
    return Plugin(kind, name, module_name, attribute, origin or str(module.__file__), code_of(module_name))


def _attribute(module: ModuleType, attribute: str, name: str) -> Any:
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            known = [name for name in vars(value) if not name.startswith("_")]
            raise PluginError(f"{name}: there is no {part!r} in it; {nearest_name(part, known)}")
        value = getattr(value, part)
    return value


def _failure(name: str, error: Exception, file: Path | None) -> PluginError:
    """Why a module cannot be imported, with the author's own line."""
    if isinstance(error, SyntaxError):
        return PluginError(f"{name} cannot be loaded: {error.msg} ({error.filename}, line {error.lineno})")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = [frame for frame in frames if file is not None and frame.filename == str(file)] or frames[1:]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    more = ""
    if isinstance(error, ModuleNotFoundError) and file is not None and (file.parent / f"{error.name}.py").is_file():
        more = "; a file is loaded alone: put its folder on PYTHONPATH, or make a package of it"
    return PluginError(f"{name} cannot be loaded: {type(error).__name__}: {error}{where}{more}")


# What is installed, and what is loaded.


def _entry_points(kind: str) -> list[EntryPoint]:
    folders = [(folder, os.stat(folder).st_mtime_ns) for folder in sys.path if os.path.isdir(folder)]
    if kind not in _offers or _offers[kind][0] != folders:
        found = entry_points(group=f"earshot.{kind}")
        _offers[kind] = folders, sorted(found, key=lambda point: (point.name, point.value))
    return _offers[kind][1]


_offers: dict[str, tuple[list[tuple[str, int]], list[EntryPoint]]] = {}
"""A cache: the entry points of each kind, while the folders of the path do not change. Reading all distributions takes
50 ms, and a scenario asks ten times."""


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"


def installed(kind: str) -> list[InstalledPlugin]:
    """The entry points of this kind, by name. Nothing is imported."""
    found = [InstalledPlugin(kind, point.name, point.value, _origin(point)) for point in _entry_points(kind)]
    return list(dict.fromkeys(found))


def name_of(kind: str, value: Any) -> str | None:
    """The name under which this class or function was loaded; None if it is not a plug-in."""
    for plugin in _loaded.values():
        if plugin.kind == kind and plugin.value is value:
            return plugin.name
    return None


def plugin_digest(kind: str, name: str) -> str:
    """A hash of the code of a loaded plug-in; empty for what is built in."""
    plugin = _loaded.get((kind, name))
    return "" if plugin is None else plugin.code.digest


def shipment() -> tuple[Plugin, ...]:
    """Everything that this process has loaded, for a process that must run the same code."""
    return tuple(_loaded[key] for key in sorted(_loaded))


def install(plugins: Iterable[Plugin]) -> None:
    """Load the plug-ins of another process from their sources. A plug-in that is already loaded with the same code
    stays."""
    for plugin in plugins:
        same = (plugin.code.digest, plugin.module.partition(".")[0])
        if all((loaded.code.digest, loaded.module.partition(".")[0]) != same for loaded in _loaded.values()):
            _forget(plugin.module)
            take_over(plugin.code.sources)
        importlib.import_module(plugin.module)
        _loaded[plugin.kind, plugin.name] = plugin
