"""The rooms and the arrows between them (docs/architecture.md), read off the imports."""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "earshot"

GROUND = {
    "errors",
    "events",
    "geometry",
    "wire",
    "documents",
    "records",
    "traces",
    "pairs",
    "settings",
    "plugins",
    "quality",
    "words",
}
MAY_IMPORT = {
    **dict.fromkeys(GROUND, GROUND),
    "filters": GROUND | {"filters"},
    "protocols": GROUND | {"filters", "protocols"},
    "simulation": GROUND | {"filters", "protocols", "simulation", "scenarios"},
    "scenarios": GROUND,
    "live": GROUND | {"filters", "protocols", "live"},
    "pipeline": GROUND | {"filters", "protocols", "simulation", "scenarios", "pipeline", "view", ""},
    "view": GROUND | {"filters", "protocols", "view"},
    "studies": GROUND | {"filters", "protocols", "simulation", "scenarios", "pipeline", "studies"},
    "cli": GROUND
    | {"filters", "protocols", "simulation", "scenarios", "live", "pipeline", "view", "studies", "cli", ""},
    "": GROUND | {"filters", "live"},
    "__main__": {"cli"},
}
ONLY_IN = {
    "asyncio": {"live", "cli"},
    "socket": {"live"},
    "pyspark": {"pipeline", "studies"},
    "py4j": {"pipeline", "studies"},
}
NO_CLOCK_OR_CHANCE = {
    "events",
    "geometry",
    "traces",
    "pairs",
    "filters",
    "protocols",
    "simulation",
    "wire",
    "records",
} | {"quality"}


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@cache
def names_imported(path: Path) -> list[tuple[str, str | None]]:
    """What a file imports: modules, with the names that it takes from each."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            found += [(node.module, alias.name) for alias in node.names]
    return found


def imports_of(path: Path) -> set[str]:
    return {f"earshot.{name}" if module == "earshot" and name else module for module, name in names_imported(path)}


def room_of_file(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_from_rooms_to_its_left(path: Path) -> None:
    room = room_of_file(path)
    ours = {room_of(name) for name in imports_of(path) if name.split(".")[0] == "earshot"}
    assert ours - {room} <= MAY_IMPORT[room], f"{room} may not import {sorted(ours - MAY_IMPORT[room])}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_sockets_and_spark_stay_in_their_rooms(path: Path) -> None:
    room = room_of_file(path)
    for name in imports_of(path):
        rooms = ONLY_IN.get(name.split(".")[0])
        assert rooms is None or room in rooms, f"{room} may not import {name}"


PAPERS = ("codd", "content_odmrp", "drip", "georendezvous", "hearsay", "steam")
PROTOCOLS = (*PAPERS, "cbf", "flooding", "gossip", "siena")
NODE = tuple(path.stem for path in (SOURCE / "live").glob("*.py") if path.stem not in ("__init__", "node_metrics"))
"The files of a live node: no bridge, no metrics. The test of circles orders them."
SHARED = {"draws", "event_queue", "extent", "settings_reader", "faults"}
INSIDE: dict[str, dict[str, set[str]]] = {
    "pipeline": {
        "spark": set(),
        "lake": {"spark"},
        "traces": {"spark", "lake"},
        "oracle": {"spark", "lake", "traces"},
        "campaigns": {"spark", "lake", "traces", "oracle"},
        "advice": {"spark", "lake", "traces", "oracle", "campaigns"},
        "reports": {"spark", "lake", "traces", "oracle", "campaigns", "advice"},
        "watch": {"spark", "lake", "traces", "oracle", "campaigns", "reports"},
        "session": {"spark", "traces", "watch"},
        "__init__": {"spark", "lake", "traces", "oracle", "campaigns", "reports", "session"},
    },
    "filters": {
        "language": set(),
        "relations": {"language"},
        "filter": {"language", "relations"},
        "subscription": {"language", "filter"},
        "index": {"language", "filter"},
        "summaries": {"language", "filter", "index"},
        "oracle": {"language", "filter", "index", "subscription"},
        "__init__": {"language", "filter", "index", "subscription", "oracle"},
    },
    "simulation": {
        "draws": set(),
        "event_queue": set(),
        "extent": set(),
        "settings_reader": {"draws"},
        "settings_schema": {"settings_reader"},
        "faults": {"settings_reader"},
        "mobility": SHARED,
        "media": SHARED,
        "workload": SHARED,
        "scenario": SHARED | {"mobility", "media", "workload"},
        "engine": SHARED | {"mobility", "media", "workload", "scenario"},
        "__init__": SHARED | {"media", "workload", "scenario", "engine"},
    },
    "protocols": {
        "tuning": set(),
        "common": {"machine"},
        "machine": {"common", "tuning"},
        "machine_failures": {"machine"},
        "tabletop": {"machine", "machine_failures"},
        "services": {"machine", "common"},
        **{one: {"machine", "common", "tuning"} for one in PROTOCOLS},
        "gossip": {"flooding", "tuning"},
        "catalogue": {"machine", *PROTOCOLS},
        "conformance": {"machine", "machine_failures", "tabletop", "catalogue"},
        "__init__": {"machine", "common", "tabletop", "catalogue", "conformance"},
    },
    "live": {
        **{one: set(NODE) for one in NODE},
        "bridge": {"node"},
        "node_metrics": {"node"},
        "__init__": {"gpsd", "location", "network", "nmea", "node", "spool", "trace_location"},
    },
    "studies": {
        "figures": set(),
        "study": {"figures"},
        "running": {"figures", "study"},
        **{one: {"figures", "study"} for one in PAPERS},
        "__init__": set(),
    },
}
"For each room that holds rooms: what each of these may import of the others."


@pytest.mark.parametrize("room", INSIDE)
def test_a_file_imports_only_from_inner_rooms_to_its_left(room: str) -> None:
    may_import = INSIDE[room]
    for path in sorted((SOURCE / room).rglob("*.py")):
        inner = path.relative_to(SOURCE / room).parts[0].removesuffix(".py")
        imported = {name.split(".")[2] for name in imports_of(path) if name.startswith(f"earshot.{room}.")}
        assert imported - {inner} <= may_import[inner], f"{path}: may not import {sorted(imported - may_import[inner])}"


def modules_imported_by(path: Path, modules: set[str]) -> set[str]:
    """The modules of ours that a file imports, where `from package import module` names the module."""
    return (imports_of(path) | {f"{module}.{name}" for module, name in names_imported(path) if name}) & modules


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    """Imports for types alone count too."""
    paths = {
        ".".join(("earshot", *path.relative_to(SOURCE).with_suffix("").parts)): path
        for path in FILES
        if path.name != "__init__.py"
    }
    graph = {name: modules_imported_by(path, set(paths)) for name, path in paths.items()}
    list(TopologicalSorter(graph).static_order())  # CycleError names the cycle


def test_every_room_says_where_to_start_reading() -> None:
    docs = {path.parent: ast.get_docstring(ast.parse(path.read_text())) for path in FILES if path.name == "__init__.py"}
    assert len(docs) > 30
    said = re.compile(r"[Ss]tart\s+(reading\s+)?(with|there)\b")
    assert [str(room) for room, doc in docs.items() if doc is None or not said.search(doc)] == []


def test_no_module_shadows_the_standard_library() -> None:
    assert [str(path) for path in FILES if path.stem in sys.stdlib_module_names] == []


def is_packet(node: ast.ClassDef) -> bool:
    tagged = any(keyword.arg == "tag" for keyword in node.keywords)
    return tagged or any(isinstance(base, ast.Name) and base.id == "Packet" for base in node.bases)


def test_a_class_name_has_one_meaning_outside_packets() -> None:
    """Packets are a protocol's own words: their tags tell them apart."""
    defined: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not is_packet(node):
                defined.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}


CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
OTHER_CHANCE = {"os.urandom", "uuid.uuid4", "uuid.uuid1", "secrets.token_bytes"}
GLOBAL_NUMPY = {"rand", "randn", "randint", "random", "choice", "shuffle", "permutation", "seed", "uniform", "normal"}


def forbidden_uses(path: Path) -> set[str]:
    """Clocks, and sources of chance that nobody injected."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                found |= {f"import {alias.name}" for alias in names if alias.name in ("time", "random", "secrets")}
            case ast.ImportFrom(module="time"):
                found.add("from time import")
            case ast.ImportFrom(module="random", names=names):
                found |= {f"random.{alias.name}" for alias in names if alias.name != "Random"}
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                found |= {f"{owner}.{name}"} & (CLOCKS | OTHER_CHANCE)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"), attr=name):
                found |= {f"np.random.{name}"} & {f"np.random.{one}" for one in GLOBAL_NUMPY}
    return found


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if room_of_file(path) in NO_CLOCK_OR_CHANCE],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_no_clock_and_no_global_chance_where_runs_must_repeat(path: Path) -> None:
    assert forbidden_uses(path) == set()
