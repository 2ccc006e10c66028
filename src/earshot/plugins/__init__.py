"""Plug-ins: code of other people, used by name everywhere that a built-in name is accepted.

A name is an entry point of an installed distribution (`frugal`, in the group `earshot.protocols`), a class in a
module (`frugal.machine:Frugal`), or a class in a file (`./frugal.py:Frugal`). Nothing is imported before it is
named. Start with `loading`, which finds and imports; `sources` collects the sources of what was loaded, so that a
run's id contains them and Spark tasks run exactly them.
"""

from earshot.plugins.loading import (
    KINDS,
    InstalledPlugin,
    Plugin,
    PluginError,
    install,
    installed,
    is_outside,
    located,
    name_of,
    named,
    plugin_digest,
    shipment,
)
from earshot.plugins.sources import Code, ModuleSource

__all__ = [
    "KINDS",
    "Code",
    "InstalledPlugin",
    "ModuleSource",
    "Plugin",
    "PluginError",
    "install",
    "installed",
    "is_outside",
    "located",
    "name_of",
    "named",
    "plugin_digest",
    "shipment",
]
