"""What `earshot.live` exports: programs import these names and nothing deeper."""

import textwrap

import earshot
import earshot.live
from earshot.live import node, spool

EXPORTS = [
    "FenceCrossing", "FenceCrossings", "Fix", "Fixed", "Gpsd", "HeardPeer", "LocationService", "NetworkSettings",
    "NmeaFile", "Node", "Publisher", "Stream", "TracePlayback", "read_spool", "run",
]  # fmt: skip


def test_the_exports_are_these() -> None:
    assert earshot.live.__all__ == EXPORTS
    assert all(hasattr(earshot.live, name) for name in EXPORTS)


def test_the_exports_are_the_originals() -> None:
    assert (earshot.live.Node, earshot.live.run, earshot.live.read_spool) == (node.Node, node.run, spool.read_spool)
    assert earshot.Node is earshot.live.Node


def test_the_example_in_the_docstring_runs() -> None:
    assert earshot.live.__doc__ is not None
    indented = [line for line in earshot.live.__doc__.splitlines() if line.startswith("    ") or not line]
    exec(textwrap.dedent("\n".join(indented)), {})
