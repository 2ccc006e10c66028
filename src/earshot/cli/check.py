"""`earshot check`: does a protocol keep the rules for all protocols?"""

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
    """Check that PROTOCOL keeps the rules for all protocols; exit code 1 if it does not.

    PROTOCOL is a built-in name, module:Class or ./file.py:Class. Six nodes in a row exchange events. The same seed must
    give the same packets, a duplicate must cost nothing, a stream of new events must not fill the memory, damaged
    packets must not raise, the source must not read a clock, and the effects must be the same in the simulator and on
    live nodes.

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
