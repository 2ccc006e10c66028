"""The library of scenarios: the built-in scenarios, and the user's files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from earshot.errors import ScenarioError, UnknownName
from earshot.plugins import located
from earshot.simulation.scenario.scenario import Scenario, leaves, merged, spelled, without
from earshot.simulation.settings_reader import LocatedError, Where, read
from earshot.traces.files import is_address

MAX_BASES = 16


def built_in() -> dict[str, Path]:
    """The built-in scenarios' files by name."""
    folder = Path(str(resources.files("earshot"))) / "scenarios"
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def built_in_traces() -> dict[str, Path]:
    """The traces that ship with the package, by name."""
    folder = Path(str(resources.files("earshot"))) / "scenarios" / "traces"
    return {file.name.partition(".")[0]: file for file in sorted(folder.glob("*.csv.gz"))}


def load_scenario(scenario: str | Path, folder: Path = Path()) -> Scenario:
    """A built-in scenario by its name, or one from a TOML file by its path from `folder`."""
    file = _file(str(scenario), folder)
    table, origins = _with_bases(file, [])
    table.setdefault("name", file.stem)
    return read(Scenario, table, Where(str(file), folder=file.parent, origins=origins))


def _file(scenario: str, folder: Path) -> Path:
    known = built_in()
    if scenario in known:
        return known[scenario]
    path = folder / Path(scenario).expanduser()
    if path.is_file():
        return path
    if path.exists():
        what = "a folder" if path.is_dir() else "no regular file"
        raise ScenarioError(f"{scenario} is {what}; name a scenario file (.toml) or a built-in scenario")
    if path.suffix == ".toml" or "/" in scenario:
        raise ScenarioError(f"{scenario}: no such scenario file; check the path")
    raise UnknownName("scenario", scenario, known)


def _with_bases(file: Path, above: list[Path]) -> tuple[dict[str, Any], dict[str, str]]:
    """The file's table merged with its base's, and the file that each key came from."""
    if file.resolve() in above:
        raise LocatedError(str(file), "base", "leads back to itself")
    if len(above) >= MAX_BASES:
        raise LocatedError(str(file), "base", f"has more than {MAX_BASES} bases below it")
    try:
        table = _absolute(spelled(_parsed(file)), file.parent)
    except ScenarioError as error:
        raise error if str(file) in str(error) else ScenarioError(f"{file}: {error}") from None
    left_out = _texts(table.pop("without", []), file)
    base = table.pop("base", None)
    origins: dict[str, str] = {}
    under: dict[str, Any] = {}
    if base is not None:
        under, origins = _with_bases(_base_file(base, file), [*above, file.resolve()])
        under.pop("name", None)
        under.pop("description", None)
    elif left_out:
        raise LocatedError(str(file), "without", "there is no base to remove anything from")
    for key in left_out:
        try:
            under = without(under, key)
        except KeyError:
            raise LocatedError(str(file), "without", f"the base has no {key!r}") from None
    origins.update(dict.fromkeys(leaves(table), str(file)))
    return merged(under, table, Scenario), origins


def _base_file(base: Any, file: Path) -> Path:
    if not isinstance(base, str):
        raise LocatedError(str(file), "base", "must be the name of a built-in scenario or a path to one")
    try:
        return _file(base, file.parent)
    except (ScenarioError, UnknownName) as error:
        raise LocatedError(str(file), "base", str(error)) from None


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file}: not TOML: {error}") from None
    except OSError as error:
        raise ScenarioError(f"{file}: {error.strerror}") from None


def _texts(value: Any, file: Path) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
        raise LocatedError(str(file), "without", 'must be a list of keys of the base, as in ["nodes.node"]')
    return value


def _absolute(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The table with absolute paths for the files it names: a base may be in another folder."""
    for section, inner in (("nodes", "mobility"), ("publish", "events")):
        for entry in _tables(table.get(section)):
            _place_plugin(entry, inner, folder)
            for chosen in _tables({"": entry.get(inner)}):
                _resolve(chosen, "file", folder)
                _resolve(chosen, "lake", folder)
    _place_plugin(table, "medium", folder)
    for medium in _tables({"": table.get("medium")}):
        _place_plugin(medium, "reception", folder)
    for own in _tables({"": table.get("own")}):
        _resolve(own, "events", folder)
        _resolve(own, "subscriptions", folder)
        _resolve(own, "lake", folder)
    return table


def _place_plugin(table: dict[str, Any], key: str, folder: Path) -> None:
    """If a table's kind is a plug-in in a file, make the path of that file relative to this process."""
    chosen = table.get(key)
    if isinstance(chosen, str):
        table[key] = located(chosen, folder)
    elif isinstance(chosen, dict):
        for name in ("kind", "use"):
            if isinstance(chosen.get(name), str):
                chosen[name] = located(chosen[name], folder)


def _tables(value: Any) -> list[dict[str, Any]]:
    return [inner for inner in value.values() if isinstance(inner, dict)] if isinstance(value, Mapping) else []


def _resolve(table: dict[str, Any], key: str, folder: Path) -> None:
    if isinstance(table.get(key), str) and not is_address(table[key]):
        table[key] = str((folder / Path(table[key]).expanduser()).resolve())
