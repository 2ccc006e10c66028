"""`earshot plugins` and `earshot new`: which plug-ins are installed, and the package of a new protocol."""

from __future__ import annotations

import re
from pathlib import Path

import click

from earshot.cli.options import json_option
from earshot.cli.tables import print_json, print_table
from earshot.errors import UsageError
from earshot.plugins import KINDS, installed


@click.command()
@json_option("Print them as JSON.")
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
    found = [plugin for kind in KINDS for plugin in installed(kind)]
    if as_json:
        names = ("kind", "name", "reference", "origin")
        print_json([{name: getattr(plugin, name) for name in names} for plugin in found])
        return
    if not found:
        click.echo("no plug-ins are installed; a class in a file works too: --protocol ./file.py:Class")
        return
    print_table(
        ("kind", "name", "object", "from"),
        [(plugin.kind, plugin.name, plugin.reference, plugin.origin) for plugin in found],
    )


@click.group()
def new() -> None:
    """Write the package of a new protocol.

    \b
    Examples:
      earshot new protocol frugal
    """


@new.command()
@click.argument("name")
@click.option(
    "--in", "folder", default=".", type=click.Path(file_okay=False, path_type=Path), help="The folder to write it into."
)
def protocol(name: str, folder: Path) -> None:
    """Write a folder NAME with a protocol that works: machine, settings, tests, scenario and pyproject.toml.

    \b
    Examples:
      earshot new protocol frugal
      pip install --editable ./frugal
      earshot simulate city --protocol frugal
    """
    from earshot.protocols.catalogue import PROTOCOLS

    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(f"{name!r} is not a protocol's name: write small letters, digits and hyphens, as in my-gossip")
    if name in PROTOCOLS:
        raise UsageError(f"there is a built-in protocol {name!r}; choose another name")
    target = folder / name
    if target.exists():
        raise UsageError(f"{target} exists already; choose another name or --in another folder")
    module = name.replace("-", "_")
    words = {"@NAME@": name, "@MODULE@": module, "@CLASS@": "".join(part.capitalize() for part in name.split("-"))}
    templates = Path(__file__).with_name("templates")
    places = {
        "pyproject.toml.txt": "pyproject.toml",
        "readme.md.txt": "README.md",
        "machine.py.txt": f"src/{module}/machine.py",
        "init.py.txt": f"src/{module}/__init__.py",
        "test_machine.py.txt": f"tests/test_{module}.py",
        "scenario.toml.txt": "scenario.toml",
    }
    for template, place in places.items():
        text = (templates / template).read_text(encoding="utf-8")
        for word, meant in words.items():
            text = text.replace(word, meant)
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_text(text, encoding="utf-8")
    click.echo(f"{target}: {', '.join(places.values())}")
    click.echo(f"next: pip install --editable {target}")
    click.echo(f"      earshot simulate {target / 'scenario.toml'} --protocol {name}")
