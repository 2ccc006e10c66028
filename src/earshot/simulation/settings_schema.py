"""What settings classes say about their keys: names, types, defaults, units, docs; and the page of all keys."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from earshot.events import Element
from earshot.filters import Filter
from earshot.geometry import Position
from earshot.settings import alternatives, fields_of, is_table, kind_of, kinds_of, unit_of
from earshot.simulation.settings_reader import (
    AreaSetting,
    FilterSetting,
    PluginSettings,
    ShapeSetting,
    SpanSetting,
    as_table,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of a settings class."""

    name: str
    type: str
    required: bool
    default: Any
    "As in JSON; None if there is none."
    unit: str
    doc: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def settings_described(cls: Any) -> list[Setting]:
    """Every key of a settings class, in its own order."""
    docs = field_docs(cls)
    found = []
    for name, key in fields_of(cls).items():
        default = None if key.required else as_table(key.default)
        type_name = "table with a kind" if len(kinds_of(key.hint)) > 1 else type_words(key.hint)
        found.append(Setting(name, type_name, key.required, default, unit_of(name), docs.get(name, "")))
    return found


@lru_cache(maxsize=256)
def field_docs(cls: type[Any]) -> dict[str, str]:
    """The docstrings below a class's fields; empty if its source is not available."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if is_dataclass(base) or is_table(base):
            found.update(_docs_in_source(base))
    return found


def _docs_in_source(cls: type[Any]) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return {}
    (definition,) = tree.body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    field = ""
    for statement in definition.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                field = name
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                found[field] = f"{found[field]} {text}" if field in found else text
            case _:
                field = ""
    return {name: " ".join(text.split()) for name, text in found.items()}


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    SpanSetting: "number or [low, high]",
    Path: "path",
    Element: "XML",
    ShapeSetting: "shape",
    Position: "[x, y]",
    AreaSetting: "area",
    FilterSetting: "filter",
    Filter: "filter",
    PluginSettings: "table",
}


def type_words(hint: Any) -> str:
    """A type in a TOML author's words."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return type_words(arguments[0])
    if origin is typing.Literal:
        return " or ".join(f'"{literal}"' if isinstance(literal, str) else str(literal) for literal in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_words(choice) for choice in alternatives(hint)))
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return f"list of {type_words(arguments[0])}"
        return f"[{', '.join(type_words(argument) for argument in arguments)}]"
    if origin in (dict, Mapping):
        return "table of " + type_words(arguments[1])
    return "table" if is_dataclass(hint) or is_table(hint) else getattr(hint, "__name__", str(hint))


def tables_within(cls: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every settings class inside another, with its key: `nodes.*.mobility` and so on."""
    yield key, cls
    for name, key_type in fields_of(cls).items():
        yield from _tables_in_type(key_type.hint, f"{key}.{name}" if key else name)


def _tables_in_type(hint: Any, key: str) -> Iterator[tuple[str, Any]]:
    for choice in alternatives(hint):
        origin, arguments = typing.get_origin(choice), typing.get_args(choice)
        if is_table(choice):
            yield from tables_within(choice, key)
        elif origin is tuple:
            for item in arguments:
                yield from _tables_in_type(item, f"{key}[]")
        elif origin is dict:
            yield from _tables_in_type(arguments[1], f"{key}.*")


def reference(cls: Any) -> str:
    """A settings class and all tables inside it as Markdown: a section for each key, a table for each class."""
    sections: dict[str, list[Any]] = {}
    seen: set[Any] = set()
    for key, found in tables_within(cls):
        if found not in seen:
            sections.setdefault(key, []).append(found)
            seen.add(found)
    lines: list[str] = []
    for key, classes in sections.items():
        lines.extend((f"### {_heading(key)}", ""))
        for cls in classes:
            if len(classes) > 1:
                lines.extend((f'#### kind = "{kind_of(cls)}"', ""))
            lines.extend((" ".join((inspect.getdoc(cls) or "").split()), ""))
            lines.extend(_rows(cls))
    return "\n".join(lines)


def _heading(key: str) -> str:
    if not key:
        return "The top of the file"
    return f"`[[{key[:-2]}]]`" if key.endswith("[]") else f"`[{key}]`"


def _rows(cls: Any) -> list[str]:
    described = settings_described(cls)
    if not described:
        return ["No keys.", ""]
    lines = ["| key | value | default | |", "| --- | --- | --- | --- |"]
    for key in described:
        value = f"{key.type}, {key.unit}" if key.unit else key.type
        default = "must be given" if key.required else "" if key.default in (None, [], {}) else _default(key.default)
        lines.append(f"| `{key.name}` | {_cell(value)} | {_cell(default)} | {_cell(key.doc)} |")
    return [*lines, ""]


def _default(value: Any) -> str:
    if isinstance(value, Mapping):
        return f'kind = "{value["kind"]}"' if "kind" in value else "see below"
    return json.dumps(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
