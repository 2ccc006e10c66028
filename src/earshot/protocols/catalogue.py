"""All protocols by name, plug-ins included, and how their settings are built from words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from earshot.errors import UnknownName
from earshot.plugins import PluginError, installed, name_of, named, plugin_digest
from earshot.protocols.cbf import Cbf
from earshot.protocols.codd.machine import Codd
from earshot.protocols.content_odmrp.machine import ContentOdmrp
from earshot.protocols.content_odmrp.odmrp import Odmrp
from earshot.protocols.drip.machine import Drip, SimpleFramework
from earshot.protocols.flooding import Flooding
from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.protocols.gossip import Gossip
from earshot.protocols.hearsay.machine import Hearsay
from earshot.protocols.machine import Machine
from earshot.protocols.siena.machine import Siena
from earshot.protocols.steam.machine import Steam
from earshot.settings import read_settings
from earshot.wire import check_tags

PROTOCOLS: dict[str, type[Machine]] = {
    "cbf": Cbf,
    "codd": Codd,
    "content-odmrp": ContentOdmrp,
    "drip": Drip,
    "drip-sf": SimpleFramework,
    "flooding": Flooding,
    "georendezvous": GeoRendezvous,
    "gossip": Gossip,
    "hearsay": Hearsay,
    "odmrp": Odmrp,
    "siena": Siena,
    "steam": Steam,
}

S = TypeVar("S")


def protocol(name: str | type[Machine], *, load: bool = True) -> type[Machine]:
    """The protocol with this name: a built-in one, an installed plug-in, `module:Class` or `./file.py:Class`.

    A class is returned as it is. With `load=False`, for names that come from data, no module or file is imported.
    """
    if isinstance(name, str):
        return named("protocols", name, PROTOCOLS, _checked, load=load)
    return _checked(getattr(name, "__name__", str(name)), name)


def protocol_name(machine: type[Machine]) -> str:
    """The name by which `protocol` finds this class again; its own where it was given as a class."""
    return name_of("protocols", machine) or str(getattr(machine, "name", machine.__name__))


def needs_routing(name: str) -> bool:
    """Whether the protocol of this name, which comes from data, needs routing; False where nobody knows it."""
    try:
        return protocol(name, load=False).needs_routing
    except (UnknownName, PluginError):
        return False


def protocol_digest(name: str) -> str:
    """A hash of the code of a protocol that is a plug-in; empty for a built-in one."""
    return "" if name in PROTOCOLS else plugin_digest("protocols", name)


def known_protocols() -> dict[str, type[Machine] | PluginError]:
    """The built-in protocols and the installed plug-ins; in place of one that cannot be loaded, why."""
    found: dict[str, type[Machine] | PluginError] = dict(PROTOCOLS)
    for offer in installed("protocols"):
        try:
            found.setdefault(offer.name, protocol(offer.name))
        except PluginError as error:
            found[offer.name] = error
    return found


def _checked(name: str, machine: Any) -> type[Machine]:
    """The class, if it can be run as a protocol."""
    if not isinstance(machine, type) or not issubclass(machine, Machine):
        raise PluginError(f"{name} is not a protocol: derive a class from earshot.protocols.Machine")
    for attribute, example in (("name", 'name = "mine"'), ("paper", 'paper = "where it was published"')):
        if not isinstance(getattr(machine, attribute, None), str):
            raise PluginError(f"{name} lacks {attribute!r}; write in the class: {example}")
    settings = getattr(machine, "Settings", None)
    if not (isinstance(settings, type) and dataclasses.is_dataclass(settings)):
        raise PluginError(f"{name} lacks its settings; write a frozen dataclass, and in the class: Settings = ...")
    if not settings.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise PluginError(f"{name}: its Settings must be frozen; write @dataclass(frozen=True)")
    try:
        check_tags()
    except TypeError as error:
        raise PluginError(f"{name}: {error}; give its packet another tag") from None
    return machine


def build_settings(settings: type[S], given: Mapping[str, Any]) -> S:
    """A protocol's settings with these values, and its defaults for the others.

    Values may be texts, as on a command line; they are converted to the setting's type.
    """
    return read_settings(settings, dict(given), strict=False)
