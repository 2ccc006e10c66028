"""XML documents to content trees and back, with hostile input in mind.

Names are local names: namespaces are read and ignored, so `/CD` finds a namespaced `CD`. Entities
other than XML's own five, external loading and anything past the limits are refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from earshot.errors import XmlEntityRefused, XmlMalformed, XmlTooDeep, XmlTooLarge, XmlTooManyElements
from earshot.events import Element


@dataclass(frozen=True, slots=True)
class XmlLimits:
    """How much one document may ask of us."""

    bytes: int = 4 * 1024 * 1024
    depth: int = 250
    elements: int = 100_000


LIMITS = XmlLimits()

_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
"A text is decoded already: the encoding its declaration names no longer holds."


def read_xml(document: bytes | str, limits: XmlLimits = LIMITS) -> Element:
    """The document's tree of local names, attributes and text."""
    raw = _DECLARATION.sub("", document).encode() if isinstance(document, str) else bytes(document)
    if len(raw) > limits.bytes:
        raise XmlTooLarge(f"the document has {len(raw):,} bytes; at most {limits.bytes:,} are read")
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        message = (error.msg or "not well formed").splitlines()[0]
        if "xcessive depth" in message:
            raise XmlTooDeep(f"nested deeper than {limits.depth} elements at line {line}, column {column}") from None
        raise XmlMalformed(f"not well-formed XML at line {line}, column {column}: {message}") from None
    except ValueError as error:
        raise XmlMalformed(f"not well-formed XML: {error}") from None
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and next(iter(dtd.iterentities()), None) is not None:
        raise XmlEntityRefused("the document declares entities of its own; they are never expanded")
    return _tree(root, limits)


def _tree(root: etree._Element, limits: XmlLimits) -> Element:
    """Children before parents, without recursion: depth is the document's to choose."""
    count = 0
    open_elements: list[tuple[etree._Element, list[Element | str]]] = []
    done: list[Element | str] = []
    for action, node in etree.iterwalk(root, events=("start", "end")):
        if not isinstance(node.tag, str):
            raise XmlEntityRefused(f"the document uses the entity {node.text!r} at line {node.sourceline}")
        if action == "start":
            count += 1
            if count > limits.elements:
                raise XmlTooManyElements(f"more than {limits.elements:,} elements, at line {node.sourceline}")
            open_elements.append((node, done))
            if len(open_elements) > limits.depth:
                raise XmlTooDeep(f"nested deeper than {limits.depth} elements at line {node.sourceline}")
            done = [node.text] if node.text else []
        else:
            _, outer = open_elements.pop()
            attributes = {_local(name): value for name, value in sorted(node.attrib.items())}
            outer.append(Element(_local(node.tag), attributes, tuple(done)))
            if node.tail and open_elements:
                outer.append(node.tail)
            done = outer
    (tree,) = done
    assert isinstance(tree, Element)
    return tree


def _local(name: str | bytes) -> str:
    text = name if isinstance(name, str) else name.decode()
    return text.rpartition("}")[2]


def write_xml(root: Element) -> bytes:
    """The tree as a document, encoded in UTF-8."""
    try:
        return etree.tostring(_node(root), encoding="UTF-8", xml_declaration=True)
    except ValueError as error:
        raise XmlMalformed(f"cannot be written as XML: {error}") from None


def _node(root: Element) -> etree._Element:
    top = etree.Element(root.name, dict(root.attributes))
    stack = [(root, top)]
    while stack:
        element, node = stack.pop()
        last: etree._Element | None = None
        for child in element.children:
            if isinstance(child, Element):
                last = etree.SubElement(node, child.name, dict(child.attributes))
                stack.append((child, last))
            elif last is None:
                node.text = (node.text or "") + child
            else:
                last.tail = (last.tail or "") + child
    return top
