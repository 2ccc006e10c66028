"""Which format a trace file has, from its first bytes."""

from __future__ import annotations

import re

from earshot.errors import TraceError
from earshot.pipeline.traces.sources.columns import is_number, plain
from earshot.pipeline.traces.sources.readings import break_in, open_trace

_HEAD_BYTES = 65_536


def head_of(file: str) -> bytes:
    """The file's first bytes, unpacked; TraceError where it is empty or cannot be unpacked."""
    with open_trace(file) as stream:
        head = stream.read(_HEAD_BYTES)
        why = break_in(stream)
    if not head.strip():
        raise TraceError(f"{file} cannot be unpacked: {why}" if why else f"{file} is empty: there is no trace in it")
    return head


def guess_format(file: str) -> tuple[str, str] | None:
    """(format, form): form is "xml", "csv", "parquet" or "text". None where the bytes do not say."""
    head = head_of(file)
    if head.startswith(b"PAR1"):
        return "csv", "parquet"
    text = head.decode("utf-8-sig", "replace")
    if text.lstrip().startswith("<"):
        root = re.search(r"<(?:\w+:)?([A-Za-z][\w-]*)[\s>/]", re.sub(r"<[?!][^>]*>|<!--.*?-->", "", text, flags=re.S))
        return {"fcd-export": ("sumo-fcd", "xml"), "gpx": ("gpx", "xml")}.get(root[1] if root else "")
    if re.search(r'^\s*\$\w+\([^)]+\)\s+set\s+[XYZ]_|^\s*\$\w+\s+at\s+\S+\s+"\$\w+\([^)]+\)\s+setdest', text, re.M):
        return "ns2", "text"
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    first = lines[0] if lines else ""
    words = first.split()
    if words and all(is_number(word) for word in words):
        second = lines[1].split() if len(lines) > 1 else []
        if len(words) in (6, 8) and len(second) in (4, 5):
            return "one", "text"
        if len(words) >= 3 and (len(words) % 3 == 0 or len(words) % 4 == 0):
            return "bonnmotion", "text"
        return None
    if any(sign in first for sign in ";,\t|"):
        names = {plain(name) for name in re.split(r"[;,\t|]", first)}
        return ("sumo-fcd" if "timesteptime" in names else "csv"), "csv"
    return None
