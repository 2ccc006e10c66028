"""What options of several commands share: numbers with units, pairs of numbers, NAME=VALUE, and --metrics."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from earshot.errors import UsageError


class Quantity(click.ParamType[float]):
    """A positive number with a unit, as in `100m`, `90km/h` or `30s`; a number alone is in the first unit."""

    def __init__(self, name: str, units: dict[str, float], or_zero: bool = False, or_none: bool = False) -> None:
        self.name = name
        self.units = units
        self.or_zero = or_zero
        self.or_none = or_none

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float | int):
            return float(value)
        if self.or_none and value.strip().lower() == "none":
            return math.inf
        match = re.fullmatch(r"\s*([0-9.eE+-]+?)\s*([a-zA-Z/]*)\s*", value)
        unit = self.units.get(match[2] or next(iter(self.units))) if match else None
        try:
            number = float(match[1]) * unit if match and unit else math.nan
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and (number > 0 or (number == 0 and self.or_zero))):
            choice = ", ".join(self.units) + (" or 'none'" if self.or_none else "")
            self.fail(f"{value!r} is not a {self.name}: give a positive number and a unit ({choice})", param, ctx)
        return number


SECONDS = {"s": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0, "d": 86_400.0}
LENGTH = Quantity("length", {"m": 1.0, "km": 1000.0})
DURATION = Quantity("duration", SECONDS)
DELAY = Quantity("duration", SECONDS, or_zero=True)
SIZE = Quantity("size", {"MB": 1e6, "kB": 1e3, "GB": 1e9})
SPEED = Quantity("speed", {"m/s": 1.0, "km/h": 1 / 3.6}, or_none=True)


def two_numbers(text: str) -> tuple[float, float]:
    """Two finite numbers, as in `120,80`; ValueError if the text is anything else."""
    first, second = (float(part) for part in text.split(","))
    if not (math.isfinite(first) and math.isfinite(second)):
        raise ValueError(f"{text!r} is not finite")
    return first, second


class Pair(click.ParamType[tuple[float, float]]):
    """Two numbers with a comma between them."""

    def __init__(self, name: str, what: str, example: str) -> None:
        self.name = name
        self.what = what
        self.example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        try:
            return value if isinstance(value, tuple) else two_numbers(value)
        except ValueError:
            self.fail(f"{value!r} is not {self.what}: write {self.name}, as in {self.example}", param, ctx)


PLACE = Pair("LAT,LON", "a place in degrees", "53.43,-2.95")
POINT = Pair("X,Y", "two numbers", "120,80")


def pairs(texts: Sequence[str], option: str, read: Callable[[str], Any]) -> dict[str, Any]:
    """The `name=value` texts of an option, with each value parsed by `read`."""
    found: dict[str, Any] = {}
    given = f"{option} " if option else ""
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"{given}{text!r}: write {given}name=value")
        found[name.strip()] = read(value.strip())
    return found


def toml_value(text: str) -> Any:
    """A value as TOML writes it; anything else is a text. An empty text is None: it removes the key."""
    if not text:
        return None
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return table["value"] if set(table) == {"value"} else text


def chosen_protocols(names: str | None) -> list[str]:
    """The protocols that a comma-separated text names, all of them by default; an unknown one is refused."""
    from earshot.protocols.catalogue import PROTOCOLS, protocol

    chosen = list(PROTOCOLS) if names is None else [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        protocol(name)
    return chosen


@dataclass(frozen=True)
class SettingsFile:
    """A protocol with its settings, as `earshot advise` writes them."""

    protocol: str
    settings: Mapping[str, Any]
    network: Mapping[str, Any]
    "What the file says about the network. Only nodes use it: a scenario has a network of its own."


def read_settings_file(path: str, protocol_named: str | None = None) -> SettingsFile:
    """The file's protocol and settings; UsageError if it is not such a file, or is for another protocol."""
    from earshot.protocols.catalogue import build_settings, protocol

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file; `earshot advise` writes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: not a file of settings: {error}") from None
    name, rest = table.pop("protocol", None), {key: table.pop(key, {}) for key in ("settings", "network")}
    if table or not isinstance(name, str) or not all(isinstance(value, dict) for value in rest.values()):
        raise UsageError(f'{path}: write protocol = "NAME", a table [settings] and, for nodes, a table [network]')
    if protocol_named is not None and protocol_named != name:
        raise UsageError(f"{path} has settings for {name}, not for {protocol_named}: leave --protocol out")
    try:
        build_settings(protocol(name).Settings, {**rest["network"], **rest["settings"]})
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return SettingsFile(name, rest["settings"], rest["network"])


default_option = partial(click.option, show_default=True)
"An option whose default the help shows."


def json_option(help: str = "Print JSON.") -> Callable[..., Any]:
    """--json, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help)


protocols_option = click.option("--protocols", help="Comma-separated names; all of them by default.")
set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a key of the scenario: --set medium.range_m=150.",
)
settings_file_option = click.option(
    "--settings",
    "settings_file",
    type=click.Path(dir_okay=False),
    help="A protocol and its settings from a file, such as the advice.toml of `earshot advise`.",
)
setting_option = click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change a setting of the protocol; repeatable. A list is written a,b.",
)


def together(*options: Callable[..., Any]) -> Callable[..., Any]:
    """Several options as one decorator, in this order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def serve_metrics(address: str, collector: Any) -> Callable[[], None]:
    """Serve the collector's metrics at `HOST:PORT`; returns a function that stops the server."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        raise UsageError("metrics need the package prometheus-client: pip install 'earshot[metrics]'") from None
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"cannot serve metrics at {address!r}; write HOST:PORT, as in 127.0.0.1:9464")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry)
    except OSError as error:
        raise UsageError(
            f"cannot serve metrics at {address}: {error.strerror or error}; take another port, and an address of this "
            "machine: 127.0.0.1 for itself, 0.0.0.0 for all networks"
        ) from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(5)

    return stop
