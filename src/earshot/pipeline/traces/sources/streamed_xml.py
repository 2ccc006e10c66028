"""XML as a stream of events, never a tree: a file of any size takes the memory of one block.

By expat, which knows the line of every element (libxml2 loses count at 65,535). Hostile input in mind:
entities of the document's own are refused, nothing outside it is loaded, depth and the size of one
tag are limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple
from xml.parsers import expat

from earshot.errors import TraceError

MAX_DEPTH = 250
MAX_TAG_BYTES = 8 << 20
_BLOCK_BYTES = 1 << 17


class Element(NamedTuple):
    """The start of an element, with its attributes, or its end, with its own text."""

    starts: bool
    name: str
    attributes: Mapping[str, str]
    text: str
    line: int


class BreaksOff(ValueError):
    """Not well formed from here on; `line` says where."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def elements(stream: IO[bytes], file: str, *, root: str, expected: str) -> Iterator[Element]:
    """Every element's start and end, by local name; the text of an end is what stands directly in it.

    TraceError where the document is of another kind, BreaksOff where it is not well formed.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    found: list[Element] = []
    texts: list[list[str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if not texts and local != root:
            raise TraceError(f"{file} is not {expected}: its root element is <{local}>, not <{root}>")
        texts.append([])
        if len(texts) > MAX_DEPTH:
            raise TraceError(f"{file} is nested deeper than {MAX_DEPTH} elements, line {parser.CurrentLineNumber}")
        found.append(Element(True, local, attributes, "", parser.CurrentLineNumber))

    def end(name: str) -> None:
        text = "".join(texts.pop()).strip()
        found.append(Element(False, name.rpartition(":")[2], {}, text, parser.CurrentLineNumber))

    def refuse(*_declaration: object) -> None:
        raise TraceError(f"{file} declares entities of its own; they are never expanded")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda data: texts[-1].append(data)
    parser.EntityDeclHandler = refuse
    quiet_bytes = 0
    while True:
        block = stream.read(_BLOCK_BYTES)
        try:
            parser.Parse(block, not block)
        except expat.ExpatError as error:
            yield from found
            raise BreaksOff(str(error), error.lineno) from None
        quiet_bytes = 0 if found else quiet_bytes + len(block)
        if quiet_bytes > MAX_TAG_BYTES:
            raise TraceError(f"{file} has a tag or text of more than {MAX_TAG_BYTES >> 20} MB")
        yield from found
        found.clear()
        if not block:
            return
