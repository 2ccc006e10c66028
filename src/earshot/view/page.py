"""The page: one document with everything in it, so that it opens without a network.

Scripts and style are in the document and are allowed by their hashes; nothing else may run. Data
travels as base64 in elements that no browser executes, and the page sets texts, never markup: a
node's name is always shown as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from earshot.errors import UsageError
from earshot.view.runs import ReplayedRun, WorldEntry
from earshot.view.world import World

SCRIPTS = (
    "dom.js",
    "unpack.js",
    "replay.js",
    "layers.js",
    "map.js",
    "timeline.js",
    "panel.js",
    "input.js",
    "glance.js",
    "app.js",
)
"In this order: each may use those before it."


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
    """The content security policy: the page may run its own script and, if served, request from its own server."""
    connect = "'self'" if served else "'none'"
    return (
        f"default-src 'none'; script-src {_hash(_script())}; style-src {_hash(_static('style.css'))}; "
        f"img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def page(title: str, entries: Sequence[Mapping[str, Any]], data: Mapping[str, bytes], served: bool) -> str:
    """The document. The reader chooses among `entries`; `data` are packed worlds and runs by their address,
    empty if the page can request them from its server."""
    start = json.dumps({"title": title, "served": served, "worlds": list(entries)})
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


Fetch = Callable[[str], World]
FetchRun = Callable[[str, str], ReplayedRun]


def whole_page(title: str, entries: Iterable[WorldEntry], world: Fetch, run: FetchRun, most_hops: int | None) -> str:
    """The document with all of those worlds and runs in it."""
    entries = list(entries)
    data: dict[str, bytes] = {}
    for entry in entries:
        of = world(entry.key)
        data[f"/world?{urlencode({'world': entry.key})}"] = of.packed()
        for listed in entry.runs:
            address = f"/run?{urlencode({'world': entry.key, 'run': listed.key})}"
            data[address] = run(entry.key, listed.key).packed(of, most_hops)
    return page(title, [entry.as_json() for entry in entries], data, served=False)


def write_page(to: Path, document: str) -> Path:
    """Write the file; it appears only when it is complete."""
    draft = to.with_name(f".{to.name}.draft")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(document, "utf-8")
        draft.replace(to)
    except OSError as error:
        raise UsageError(f"cannot write {to}: {error.strerror}") from None
    return to
