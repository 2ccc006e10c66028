"""Tables whose `kind` names a plug-in: `mobility = { kind = "./orbit.py:Orbit", radius_m = 300 }`.

The plug-in is a `SettingsTable` of its own with the methods of its kind. In a scenario it stands inside a
`PluginTable`, one for each kind of table: the name in `use`, the plug-in itself in `settings`.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from earshot.plugins import PluginError, installed, is_outside, named, plugin_digest
from earshot.settings import KindTable, SettingsTable, fields_of

PLUGIN = "plugin"
"The `kind` that a table with a plug-in's name is read as."

if TYPE_CHECKING:
    PluginSettings = Any
else:
    PluginSettings = ABCMeta("PluginSettings", (), {"__module__": __name__})
    PluginSettings.register(SettingsTable)


@dataclass(frozen=True, slots=True)
class UnreadSettings:
    """A plug-in's class, and its keys as a file has them."""

    cls: type[SettingsTable]
    table: Any


class PluginTable(KindTable, frozen=True):
    """A plug-in, by its name and with its settings."""

    use: str
    "The plug-in: an entry point's name, module:Class or ./file.py:Class."
    settings: PluginSettings
    "The plug-in's own keys; they may also stand beside kind."

    group: ClassVar[str]
    "The kind of plug-in."
    methods: ClassVar[tuple[str, ...]]
    "What its class must have."

    @property
    def code(self) -> str:
        """A hash of the plug-in's code."""
        plugin_class(type(self), self.use)
        return plugin_digest(self.group, self.use)


def plugin_class(table: type[PluginTable], name: str) -> type[SettingsTable]:
    """The class that a plug-in of this kind is; PluginError where it is not one."""

    def checked(name: str, value: Any) -> type[SettingsTable]:
        if not (isinstance(value, type) and issubclass(value, SettingsTable)):
            raise PluginError(f"{name} is not a table: derive a class from earshot.simulation.SettingsTable")
        if missing := [method for method in table.methods if not hasattr(value, method)]:
            raise PluginError(f"{name} lacks {', '.join(missing)}; docs/extending.md shows what each kind needs")
        return value

    return named(table.group, name, {}, checked)


def spelled_plugin(table: type[PluginTable], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A table that names a plug-in as its kind, in the form that `PluginTable` reads; others as they are."""
    kind = value.get("kind")
    if not isinstance(kind, str):
        return value
    if kind != PLUGIN:
        if not is_outside(kind) and all(offer.name != kind for offer in installed(table.group)):
            return value
        value = {**value, "kind": PLUGIN, "use": kind}
    if not isinstance(value.get("use"), str) or isinstance(value.get("settings"), SettingsTable):
        return value
    own = {*fields_of(table), "kind"}
    inside = value.get("settings", {})
    if isinstance(inside, Mapping):
        inside = {**inside, **{key: one for key, one in value.items() if key not in own}}
    kept = {key: one for key, one in value.items() if key in own}
    return {**kept, "settings": UnreadSettings(plugin_class(table, value["use"]), inside)}
