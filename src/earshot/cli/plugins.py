"""`earshot plugins`: which plug-ins are installed, and where each comes from."""

from __future__ import annotations

import click

from earshot.cli.tables import print_json, print_table
from earshot.plugins import KINDS, installed


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def plugins(as_json: bool) -> None:
    """List the plug-ins that installed distributions offer, and from where each comes. None of them is imported.

    A plug-in is a Python entry point in one of the groups earshot.protocols, earshot.media, earshot.reception,
    earshot.mobility, earshot.drivers, earshot.workload, earshot.traces, earshot.metrics and earshot.figures. Its name
    is accepted wherever a built-in name is; so are module:Class and ./file.py:Class, which need no installation.

    \b
    Examples:
      earshot plugins
      earshot plugins --json
    """
    found = [one for kind in KINDS for one in installed(kind)]
    if as_json:
        names = ("kind", "name", "reference", "origin")
        print_json([{name: getattr(one, name) for name in names} for one in found])
        return
    if not found:
        click.echo("no plug-ins are installed; a class in a file works too: --protocol ./file.py:Class")
        return
    print_table(("kind", "name", "object", "from"), [(one.kind, one.name, one.reference, one.origin) for one in found])
