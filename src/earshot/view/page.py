"""The page: one document with everything in it, so that it opens without a network.

Scripts and style stand in the document and are allowed by their hashes; nothing else may run. Data
travels as base64 in elements that no browser executes, and the page sets texts, never markup: a
node's name stays a name whatever it says.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

SCRIPTS = ("dom.js", "unpack.js", "replay.js", "layers.js", "map.js", "timeline.js", "panel.js", "input.js", "app.js")
"In this order: each may use what stands before it."


@cache
def _static(name: str) -> str:
    return (files("earshot.view") / "static" / name).read_text("utf-8")


@cache
def _script() -> str:
    body = "\n".join(_static(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy(served: bool) -> str:
    """What the page may do: run its own script, and where it is served, ask its own server."""
    connect = "'self'" if served else "'none'"
    return (
        f"default-src 'none'; script-src {_hash(_script())}; style-src {_hash(_static('style.css'))}; "
        f"img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def page(title: str, shelf: Sequence[Mapping[str, Any]], data: Mapping[str, bytes], served: bool) -> str:
    """The document. `shelf` is what can be chosen; `data` are packed scenes and plays by their address,
    none of them where the page can ask its server for them."""
    start = json.dumps({"title": title, "served": served, "scenes": list(shelf)})
    blocks = [_block("start", "application/json", base64.b64encode(start.encode()).decode())]
    for address, packed in data.items():
        name = base64.b64encode(address.encode()).decode()
        blocks.append(_block(name, "application/gzip", base64.b64encode(packed).decode()))
    pieces = {
        "POLICY": policy(served),
        "STYLE": _static("style.css"),
        "DATA": "\n".join(blocks),
        "SCRIPT": _script(),
    }
    document = _static("page.html")
    for name, piece in pieces.items():
        before, _, after = document.partition(f"<!--{name}-->" if name in ("DATA",) else f"/*{name}*/")
        document = before + piece + after
    return document


def _block(name: str, kind: str, text: str) -> str:
    """An element that holds data; its name and its text are base64, so neither can end it."""
    return f'<script type="{kind}" data-name="{name}">{text}</script>'
