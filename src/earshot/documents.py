"""XML documents to content trees and back, with hostile input in mind.

Names are local names: namespaces are read and ignored, so `/CD` finds a namespaced `CD`. If several
attributes of an element have the same local name, the attribute without a namespace counts, otherwise the first.
Comments and processing instructions are left out, but the texts before and after them stay two
pieces, as in XPath. Entities other than XML's own five, external loading and documents beyond the
limits are refused with named errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import TYPE_CHECKING, Any, cast

import msgspec

from earshot.errors import XmlEntityRefused, XmlError, XmlMalformed, XmlTooDeep, XmlTooLarge, XmlTooManyElements

if TYPE_CHECKING:
    from lxml import etree


class Element(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """One element of a content tree: a local name, attributes, and children in document order."""

    name: str
    attributes: dict[str, str] = msgspec.field(default_factory=dict)
    children: tuple[Element | str, ...] = ()

    @property
    def text(self) -> str:
        """XPath's string value: the text of the element and of everything below it, in order.

        It is computed on each call: if elements stored it, the text of a deep document would be
        stored once for each level.
        """
        if len(self.children) == 1 and isinstance(self.children[0], str):
            return self.children[0]
        parts: list[str] = []
        stack: list[Element | str] = list(reversed(self.children))
        while stack:
            child = stack.pop()
            if isinstance(child, str):
                parts.append(child)
            else:
                stack.extend(reversed(child.children))
        return "".join(parts)

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The child elements, in document order."""
        return tuple([child for child in self.children if not isinstance(child, str)])

    @cached_property
    def attribute_words(self) -> tuple[str, ...]:
        """The names of the attributes, then their values: indexes look elements up by them."""
        return (*self.attributes, *self.attributes.values())


@dataclass(frozen=True, slots=True)
class XmlLimits:
    """How large one document may be. (The parser itself stops at 256 levels.)"""

    bytes: int = 4 * 1024 * 1024
    depth: int = 250
    elements: int = 100_000
    attributes: int = 256
    "On one element: the time to read them grows with their square."


LIMITS = XmlLimits()

_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
"A text is already decoded: the encoding that its declaration names does not apply."


def read_xml(document: bytes | str, limits: XmlLimits = LIMITS) -> Element:
    """The document's tree of local names, attributes and text."""
    from lxml import etree  # loaded with the first document: most programs read none

    if len(document) > limits.bytes:
        raise XmlTooLarge(f"the document has {len(document):,} bytes or more; at most {limits.bytes:,} are read")
    raw = _encoded(document) if isinstance(document, str) else bytes(document)
    if len(raw) > limits.bytes:
        raise XmlTooLarge(f"the document has {len(raw):,} bytes; at most {limits.bytes:,} are read")
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as error:
        raise _refusal(error, limits) from None
    except ValueError as error:
        raise XmlMalformed(f"not well-formed XML: {error}") from None
    dtd = cast(Any, root.getroottree().docinfo.internalDTD)
    if dtd is not None and (entity := next(iter(dtd.iterentities()), None)) is not None:
        line = raw[: max(raw.find(b"<!ENTITY"), 0)].count(b"\n") + 1
        raise XmlEntityRefused(
            f"the document declares the entity {entity.name!r} at line {line}; entities are never expanded"
        )
    return _tree(root, limits)


def _encoded(document: str) -> bytes:
    try:
        return _DECLARATION.sub("", document).encode()
    except UnicodeEncodeError as error:
        line = document.count("\n", 0, error.start) + 1
        raise XmlMalformed(f"not well-formed XML at line {line}: half a surrogate pair is not a character") from None


def _refusal(error: etree.XMLSyntaxError, limits: XmlLimits) -> XmlError:
    """The parser's error as one of our named errors."""
    from lxml.etree import ErrorTypes

    line, column = error.position
    where = f"at line {line}, column {column}"
    message = (error.msg or "not well formed").partition(f", line {line}")[0].strip()
    if "xcessive depth" in message:
        return XmlTooDeep(f"nested deeper than {limits.depth} elements {where}")
    if (
        cast(Any, error).code in (ErrorTypes.ERR_ENTITY_LOOP, ErrorTypes.ERR_UNDECLARED_ENTITY)
        or "entity amplification" in message
    ):
        return XmlEntityRefused(f"the document uses entities of its own {where}: {message}")
    if "too long" in message:
        return XmlTooLarge(f"a part of the document is too large {where}: {message}")
    return XmlMalformed(f"not well-formed XML {where}: {message}")


class _OpenElement:
    """An element some of whose children are still to come."""

    __slots__ = ("attributes", "awaited", "children", "node")

    def __init__(self, node: etree._Element, attributes: dict[str, str], children: list[Element | str]) -> None:
        self.node = node
        self.attributes = attributes
        self.children = children
        self.awaited = len(node)
        "How many elements, comments and processing instructions are still to come."


def _tree(root: etree._Element, limits: XmlLimits) -> Element:
    """The tree, built children before parents and without recursion: a hostile document may be very deep."""
    from lxml import etree

    count = 0
    open_elements: list[_OpenElement] = []
    for node in root.iter():
        tag, complete = node.tag, None
        if isinstance(tag, str):
            count += 1
            if count > limits.elements:
                raise XmlTooManyElements(f"more than {limits.elements:,} elements, at line {node.sourceline}")
            if len(open_elements) >= limits.depth:
                raise XmlTooDeep(f"nested deeper than {limits.depth} elements at line {node.sourceline}")
            text = node.text
            attributes = _attributes(node, limits)
            if len(node):
                open_elements.append(_OpenElement(node, attributes, [text] if text else []))
                continue
            complete = Element(_local(tag), attributes, (text,) if text else ())
        elif tag is etree.Entity:
            raise XmlEntityRefused(f"the document uses the entity {node.text!r} at line {node.sourceline}")
        while open_elements:
            above = open_elements[-1]
            if complete is not None:
                above.children.append(complete)
            if tail := node.tail:
                above.children.append(tail)
            above.awaited -= 1
            if above.awaited:
                break
            node = open_elements.pop().node
            complete = Element(_local(node.tag), above.attributes, tuple(above.children))
    assert complete is not None
    return complete


def _attributes(node: etree._Element, limits: XmlLimits) -> dict[str, str]:
    """An element's attributes in document order."""
    given = node.attrib
    if not given:
        return {}
    if len(given) > limits.attributes:
        raise XmlTooManyElements(f"more than {limits.attributes} attributes on one element, at line {node.sourceline}")
    found: dict[str, str] = {}
    for name, value in cast("list[tuple[str, str]]", given.items()):
        if "}" not in name:
            found[intern(name)] = value
        elif (local := _local(name)) not in found:
            found[local] = value
    return found


def _local(name: str) -> str:
    """The local name, one object for all documents: then equal names are found equal at once, and share memory."""
    return intern(name.rpartition("}")[2])


def write_xml(root: Element) -> bytes:
    """The tree as a document, encoded in UTF-8. An empty comment separates two adjacent texts, so that they
    are read back as two."""
    from lxml import etree

    try:
        return etree.tostring(_node(root), encoding="UTF-8", xml_declaration=True)
    except ValueError as error:
        raise XmlMalformed(f"cannot be written as XML: {error}") from None


def _node(root: Element) -> etree._Element:
    from lxml import etree

    top = etree.Element(root.name, dict(root.attributes))
    stack = [(root, top)]
    while stack:
        element, node = stack.pop()
        last: etree._Element | None = None
        for child in element.children:
            if isinstance(child, Element):
                last = etree.SubElement(node, child.name, dict(child.attributes))
                stack.append((child, last))
                continue
            if not child:
                continue
            if (node.text if last is None else last.tail) is not None:
                last = etree.Comment("")
                node.append(last)
            if last is None:
                node.text = child
            else:
                last.tail = child
    return top
