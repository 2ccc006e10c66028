"""Document type definitions: which elements a document may have, and where.

A DTD may be hostile input: nothing outside the file is loaded, and its size, its nesting and the smallest
document it allows are bounded. Documents are drawn with the help of `least`: the number of elements in the smallest
document with a given number of levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, cast

from lxml import etree

from earshot.errors import DtdEndless, DtdEntityRefused, DtdError, DtdMalformed, DtdTooLarge

BUILT_IN = ("news", "protein", "customer")
"The built-in DTDs, similar in shape to the three in CoDD's figure 13."

MOST_BYTES = 1024 * 1024
MOST_ELEMENTS = 4096
MOST_PARTS = 100_000
"Names and groups in all content models together."
MOST_GROUPS = 32
"Groups inside each other."
MOST_LEVELS = 64

Occurs = Literal["once", "optional", "any", "some"]
_OCCURS: dict[str, Occurs] = {"once": "once", "opt": "optional", "mult": "any", "plus": "some"}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a content model: an element's name, or a sequence or choice of parts."""

    kind: Literal["element", "sequence", "choice"]
    occurs: Occurs
    name: str = ""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeType:
    """An attribute that elements of one name may or must have."""

    name: str
    type: str
    "cdata, id, idref, idrefs, entity, entities, nmtoken, nmtokens, enumeration or notation."
    presence: str
    "required, implied, fixed, or none (there is a default)."
    default: str | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ElementType:
    """What elements of one name contain."""

    name: str
    content: Part | None
    "None: it never contains elements."
    text: bool
    "Whether it contains text."
    attributes: tuple[AttributeType, ...] = ()

    @property
    def children(self) -> tuple[str, ...]:
        """The names of elements that may be inside, each once, in the order of the content model."""
        return tuple(dict.fromkeys(_names(self.content))) if self.content is not None else ()


def _names(part: Part) -> Iterator[str]:
    if part.kind == "element":
        yield part.name
    for inner in part.parts:
        yield from _names(inner)


@dataclass(frozen=True, slots=True, eq=False)
class Dtd:
    """A document type: its root, and all elements by name."""

    root: str
    elements: Mapping[str, ElementType]
    _least: list[dict[str, float]] = field(init=False, repr=False)
    "For each number of levels, from 0 up to where more levels change nothing: the least size of each element."
    _known: dict[tuple[int, int], float] = field(default_factory=dict, init=False, repr=False)
    "A cache, by a part's identity and a number of levels: drawing needs the same values many times."
    _alternatives: dict[tuple[int, int], list[tuple[float, Part]]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        levels: list[dict[str, float]] = [dict.fromkeys(self.elements, math.inf)]
        while len(levels) <= MOST_LEVELS:
            sizes = {element.name: 1 + _least_of(element.content, levels[-1]) for element in self.elements.values()}
            if sizes == levels[-1]:
                break
            levels.append(sizes)
        object.__setattr__(self, "_least", levels)

    def least(self, name: str, levels: int) -> float:
        """The number of elements in the smallest complete element `name` with at most `levels` levels; infinite if
        there is no such element."""
        return self._least[min(levels, len(self._least) - 1)].get(name, math.inf)

    def least_of(self, part: Part, levels: int) -> float:
        """The least number of elements in a part of a content model, with at most `levels` levels below it."""
        return 0.0 if part.occurs in ("optional", "any") else self.least_of_one(part, levels)

    def least_of_one(self, part: Part, levels: int) -> float:
        """The same for a part that occurs exactly once."""
        level = min(levels, len(self._least) - 1)
        known = self._known.get((id(part), level))
        if known is None:
            known = self._known[id(part), level] = _least_of_one(part, self._least[level])
        return known

    def alternatives(self, choice: Part, levels: int) -> list[tuple[float, Part]]:
        """A choice's parts that can be complete within `levels`, the smallest first, each with the number of elements
        that it needs more than the smallest."""
        key = (id(choice), min(levels, len(self._least) - 1))
        known = self._alternatives.get(key)
        if known is None:
            least = self.least_of_one(choice, levels)
            costs = [(self.least_of(part, levels) - least, part) for part in choice.parts]
            known = sorted((pair for pair in costs if pair[0] < math.inf), key=itemgetter(0))
            self._alternatives[key] = known
        return known

    def children(self, name: str) -> tuple[str, ...]:
        """The elements that may be in `name` and can be complete."""
        return tuple(child for child in self.elements[name].children if self.least(child, MOST_LEVELS) < math.inf)


def _least_of(part: Part | None, inside: Mapping[str, float]) -> float:
    return 0.0 if part is None or part.occurs in ("optional", "any") else _least_of_one(part, inside)


def _least_of_one(part: Part, inside: Mapping[str, float]) -> float:
    match part.kind:
        case "element":
            return inside.get(part.name, math.inf)
        case "sequence":
            return sum(_least_of(inner, inside) for inner in part.parts)
        case "choice":
            return min(_least_of(inner, inside) for inner in part.parts)


# Reading.


def built_in_dtd(name: str) -> Path:
    """The file of a built-in DTD."""
    return Path(str(resources.files("earshot"))) / "scenarios" / "dtds" / f"{name}.dtd"


def load_dtd(path: Path, root: str | None = None) -> Dtd:
    """A DTD from a file, cached until the file changes; give `root` if the DTD does not determine it."""
    try:
        found = path.stat()
    except OSError as error:
        raise DtdError(f"{path}: {error.strerror}") from None
    return _loaded(path, root, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=16)
def _loaded(path: Path, root: str | None, _changed: int, size: int) -> Dtd:
    if size > MOST_BYTES:
        raise DtdTooLarge(f"{path}: the DTD has {size:,} bytes; at most {MOST_BYTES:,} are read")
    try:
        return read_dtd(path.read_bytes(), root)
    except OSError as error:
        raise DtdError(f"{path}: {error.strerror}") from None
    except DtdError as error:
        raise type(error)(f"{path}: {error}") from None


def read_dtd(text: bytes, root: str | None = None) -> Dtd:
    """A DTD from its text. Without `root`, the root is the only element that is in no other."""
    if len(text) > MOST_BYTES:
        raise DtdTooLarge(f"the DTD has {len(text):,} bytes; at most {MOST_BYTES:,} are read")
    elements: dict[str, ElementType] = {}
    budget = _Budget()
    for declared in _declarations(text):
        if declared.name in elements:
            raise DtdError(f"two elements are called {declared.name!r} (prefixes are ignored)")
        if len(elements) == MOST_ELEMENTS:
            raise DtdTooLarge(f"the DTD has more than {MOST_ELEMENTS:,} elements")
        elements[declared.name] = _element_type(declared, budget)
    if not elements:
        raise DtdError("the DTD declares no element")
    found = Dtd(_root(elements, root), elements)
    if found.least(found.root, MOST_LEVELS) == math.inf:
        raise DtdEndless(f"no {found.root!r} can be complete: its required content is infinite or not declared")
    return found


_ADDRESS = "earshot:dtd"
"The name of the only external subset."


class _OnlyOurs(etree.Resolver):
    """Gives the parser the DTD's text and loads nothing else."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]
        if system_url != _ADDRESS:
            raise DtdEntityRefused(f"the DTD refers to {system_url!r}; nothing outside its file is loaded")
        return cast(Any, self).resolve_string(self.text, context)


def _declarations(text: bytes) -> Iterator[Any]:
    # Read as an external subset, because only there parameter entities may be inside declarations. Not with
    # etree.DTD, which loads everything that the file refers to.
    parser = etree.XMLParser(load_dtd=True, resolve_entities=False, no_network=True, huge_tree=False)
    parser.resolvers.add(_OnlyOurs(text))
    try:
        root = etree.fromstring(f'<!DOCTYPE any SYSTEM "{_ADDRESS}"><any/>'.encode(), parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        message = (error.msg or "not well formed").partition(f", line {line}")[0].strip()
        if "amplification" in message or "too deep" in message or "too long" in message:
            raise DtdTooLarge(f"the DTD expands to too much at line {line}: {message}") from None
        raise DtdMalformed(f"not a DTD, at line {line}, column {column}: {message}") from None
    dtd = cast(Any, root.getroottree().docinfo).externalDTD
    yield from () if dtd is None else dtd.iterelements()


class _Budget:
    """How many more parts the content models may have."""

    def __init__(self) -> None:
        self.parts = MOST_PARTS

    def take(self, groups: int) -> None:
        self.parts -= 1
        if self.parts < 0:
            raise DtdTooLarge(f"the DTD's content models have more than {MOST_PARTS:,} parts")
        if groups > MOST_GROUPS:
            raise DtdTooLarge(f"a content model has more than {MOST_GROUPS} groups inside each other")


def _element_type(declared: Any, budget: _Budget) -> ElementType:
    attributes = tuple(
        AttributeType(
            attribute.name, attribute.type, attribute.default, attribute.default_value, tuple(attribute.values())
        )
        for attribute in declared.iterattributes()
    )
    content: Part | None = None
    if declared.type == "element":
        content = _part(declared.content, budget, 0)
    elif declared.type == "mixed" and declared.content.type == "or":
        mixed = _part(declared.content, budget, 0)
        content = Part("choice", "any", parts=tuple(part for part in mixed.parts if part.name))
    return ElementType(declared.name, content, declared.type in ("mixed", "any"), attributes)


def _part(declared: Any, budget: _Budget, groups: int) -> Part:
    """A content model from that of libxml2, where a group is a chain of pairs and text is an element without a name."""
    budget.take(groups)
    occurs = _OCCURS[declared.occur]
    if declared.type in ("element", "pcdata"):
        return Part("element", occurs, declared.name or "")
    parts = []
    rest = declared
    while rest.type == declared.type and (rest is declared or rest.occur == "once"):
        parts.append(_part(rest.left, budget, groups + 1))
        rest = rest.right
    parts.append(_part(rest, budget, groups + 1))
    return Part("sequence" if declared.type == "seq" else "choice", occurs, parts=tuple(parts))


def _root(elements: Mapping[str, ElementType], given: str | None) -> str:
    if given is not None:
        if given not in elements:
            raise DtdError(f"the DTD has no element called {given!r}; give its root")
        return given
    inside = {child for element in elements.values() for child in element.children if child != element.name}
    roots = [name for name in elements if name not in inside]
    if len(roots) != 1:
        some = ", ".join((roots or list(elements))[:8])
        raise DtdError(f"the DTD does not determine its root: give one of its elements, such as {some}")
    return roots[0]
