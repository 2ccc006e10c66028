"""All protocols by name, and how their settings are built from words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from earshot.errors import UnknownName
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


def protocol(name: str) -> type[Machine]:
    """The protocol with this name."""
    if name not in PROTOCOLS:
        raise UnknownName("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]


def build_settings(settings: type[S], given: Mapping[str, Any]) -> S:
    """A protocol's settings with these values, and its defaults for the others.

    Values may be texts, as on a command line; they are converted to the setting's type.
    """
    return read_settings(settings, dict(given), strict=False)
