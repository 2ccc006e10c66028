"""What `earshot.protocols` exports: people write protocols against these names."""

import subprocess
import sys
import textwrap

import pytest

import earshot.protocols
from earshot.protocols import catalogue, machine, tabletop

EXPORTS = [
    "NOTHING", "PROPERTIES", "PROTOCOLS", "QUIET_CHANNEL", "Announcement", "Broadcast", "CancelTimer", "Channel",
    "Deliver", "Drop", "DropReason", "Effects", "FixedLocation", "JoinGroup", "LeaveGroup", "LocalSubscriptions",
    "Location", "Machine", "Note", "Packet", "RecentKeys", "Send", "StartTimer", "Subscription", "Tabletop",
    "Timer", "build_settings", "check_property", "protocol",
]  # fmt: skip


def test_the_exports_are_these() -> None:
    assert earshot.protocols.__all__ == EXPORTS
    assert all(hasattr(earshot.protocols, name) for name in EXPORTS)


def test_the_exports_are_the_originals() -> None:
    exported = earshot.protocols
    assert (exported.Machine, exported.Deliver) == (machine.Machine, machine.Deliver)
    assert exported.Tabletop is tabletop.Tabletop
    assert (exported.PROTOCOLS, exported.protocol) == (catalogue.PROTOCOLS, catalogue.protocol)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Engine'"):
        _ = earshot.protocols.Engine  # type: ignore[attr-defined]


def test_the_example_in_the_docstring_runs() -> None:
    assert earshot.protocols.__doc__ is not None
    indented = [line for line in earshot.protocols.__doc__.splitlines() if line.startswith("    ") or not line]
    exec(textwrap.dedent("\n".join(indented)), {})


def test_importing_the_room_imports_no_protocol() -> None:
    script = "import earshot.protocols, sys; print([name for name in sys.modules if name.endswith('.steam.machine')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
