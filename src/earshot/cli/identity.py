"""`earshot identity`: make a node's key, show it, certify it, and choose which keys to trust."""

from __future__ import annotations

import json
import math
import time
from datetime import UTC, datetime
from pathlib import Path

import click

from earshot.cli.options import default_option, json_option
from earshot.cli.tables import print_table
from earshot.errors import UsageError
from earshot.live.identity import (
    certificate_line,
    decode_certificate,
    key_text,
    new_identity,
    parse_key,
    parse_named_key,
    read_identity,
)
from earshot.live.private_files import read_text
from earshot.live.signatures import read_trust, trust_line

DAY_S = 86_400


@click.group()
def identity() -> None:
    """Make and show a node's key, and choose which keys to trust.

    \b
    Examples:
      earshot identity new ambulance-7
      earshot identity trust network.trust ambulance-7=ed25519:...
      earshot identity new owner
      earshot identity certify owner.identity ambulance-7=ed25519:... >> ambulance-7.identity
      earshot node --identity ambulance-7.identity --trust network.trust --require-signed
    """


@identity.command()
@click.argument("name")
@click.option("--file", metavar="FILE", help="The file to write. [default: NAME.identity]")
def new(name: str, file: str | None) -> None:
    """Make a key for the node NAME, in a file that only you can read; prints NAME=KEY, the public key for others."""
    made = new_identity(name, file or f"{name}.identity")
    click.echo(f"{made.name}={key_text(made.public_key)}")


@identity.command()
@click.argument("file")
@json_option()
def show(file: str, as_json: bool) -> None:
    """Show an identity (its public part) or a trust file."""
    rows = _rows(file)
    if as_json:
        click.echo(json.dumps(rows))
    else:
        print_table(("what", "name", "key", "until"), [tuple(str(value) for value in row.values()) for row in rows])


def _rows(file: str) -> list[dict[str, str]]:
    """What an identity or a trust file holds."""
    if _is_identity(file):
        found = read_identity(file)
        rows = [_row("identity", found.public_key, found.name)]
        if (certificate := decode_certificate(found.certificate)) is not None:
            rows.append(_row("certificate", certificate.key, certificate.name, certificate.until))
        return rows
    trust = read_trust(file)
    nodes = [
        _row("revoked node" if key in trust.revoked else "node", key, name, until)
        for name, keys in trust.keys.items()
        for key, until in keys.items()
    ]
    owners = [_row("revoked owner" if key in trust.revoked else "owner", key) for key in trust.owners]
    listed = {key for keys in trust.keys.values() for key in keys} | set(trust.owners)
    return nodes + owners + [_row("revoked", key) for key in sorted(trust.revoked - listed)]


def _is_identity(file: str) -> bool:
    return any(line.startswith("private ") for line in read_text(file, "the file").splitlines())


def _row(what: str, key: bytes, name: str = "", until: float = math.inf) -> dict[str, str]:
    ends = "" if until == math.inf else datetime.fromtimestamp(min(until, 253_402_300_799), UTC).isoformat()
    return {"what": what, "name": name, "key": key_text(key), "until": ends}


@identity.command()
@click.argument("file")
@click.argument("nodes", metavar="[NAME=KEY]...", nargs=-1)
@click.option("--until", default="", metavar="DATE", help="Trust these nodes until this date, as in 2027-01-31.")
@click.option("--owner", "owners", multiple=True, metavar="KEY", help="Trust the certificates that this key signs.")
@click.option("--revoke", "revoked", multiple=True, metavar="KEY", help="Stop trusting this key.")
def trust(file: str, nodes: tuple[str, ...], until: str, owners: tuple[str, ...], revoked: tuple[str, ...]) -> None:
    """Add to the trust file FILE: nodes with their keys, owners whose certificates are trusted, revoked keys.

    Running nodes read the file again when it changes.
    """
    if not nodes and not owners and not revoked:
        raise UsageError("name what to trust or revoke: NAME=KEY, --owner KEY or --revoke KEY")
    lines = [trust_line("node", key, name, until) for name, key in map(parse_named_key, nodes)]
    lines += [trust_line("owner", parse_key(key)) for key in owners]
    lines += [trust_line("revoked", parse_key(key)) for key in revoked]
    path = Path(file)
    if path.exists():
        read_trust(path)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    added = [line for line in lines if line not in before.splitlines()]
    try:
        with path.open("a", encoding="utf-8") as opened:
            opened.write(("" if not before or before.endswith("\n") else "\n") + "".join(f"{line}\n" for line in added))
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
    for line in added:
        click.echo(line)


@identity.command()
@click.argument("owner_file")
@click.argument("node", metavar="NAME=KEY")
@default_option(
    "--days", default=365, type=click.IntRange(1, 36_500), metavar="N", help="How many days the certificate is valid."
)
def certify(owner_file: str, node: str, days: int) -> None:
    """Print a certificate for a node, signed with the identity in OWNER_FILE; append it to the node's identity file."""
    name, key = parse_named_key(node)
    click.echo(certificate_line(read_identity(owner_file).certify(name, key, int(time.time()) + days * DAY_S)))
