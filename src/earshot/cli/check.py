"""`earshot check`: does a protocol hold what every protocol holds?"""

from __future__ import annotations

import inspect
import sys

import click

from earshot.cli.tables import print_json, print_table
from earshot.errors import EarshotError


@click.command()
@click.argument("protocol")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def check(protocol: str, as_json: bool) -> None:
    """Check that PROTOCOL holds what every protocol holds; exit code 1 where it does not.

    PROTOCOL is a built-in name, module:Class or ./file.py:Class. Six nodes in a row exchange events; the same seed must
    give the same packets, a duplicate must cost nothing, ever new events must not fill the memory, broken packets
    must not raise, the source must read no clock, and the simulator and live nodes must be asked for the same.

    \b
    Examples:
      earshot check flooding
      earshot check ./frugal.py:Frugal
    """
    from earshot.cli.both_hosts import check_by_name, checked_properties
    from earshot.protocols.catalogue import protocol as protocol_named

    machine = protocol_named(protocol)
    found: list[tuple[str, bool, str]] = []
    for name, holds in checked_properties().items():
        what = " ".join((inspect.getdoc(holds) or "").split())
        try:
            check_by_name(machine, name)
        except EarshotError as error:
            found.append((name, False, str(error)))
        else:
            found.append((name, True, what))
    if as_json:
        print_json([{"property": name, "holds": holds, "what": what} for name, holds, what in found])
    else:
        print_table(("property", "holds", ""), [(name, "yes" if holds else "NO", what) for name, holds, what in found])
    sys.exit(0 if all(holds for _, holds, _ in found) else 1)
