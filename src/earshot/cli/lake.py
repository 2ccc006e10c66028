"""`earshot lake`: what a lake contains, how it changed, and how to keep it small. No command here needs Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from earshot.cli.options import default_option, json_option
from earshot.cli.tables import print_json, print_table

if TYPE_CHECKING:
    from earshot.pipeline.lake.arrow_lake import ArrowLake

_json = json_option()
_lake = click.argument("lake", metavar="LAKE")
_table = click.argument("table", required=False)


@click.group()
def lake() -> None:
    """Manage a lake: its tables, their history and their files.

    A table is a folder LAKE/TABLE in the Delta Lake format, which Spark, DuckDB, Polars and pandas read.

    \b
    Examples:
      earshot lake tables lake
      earshot lake history lake runs
      earshot lake compact lake
      earshot lake vacuum lake --dry-run
    """


def _open(path: str) -> ArrowLake:
    from earshot.pipeline.lake.arrow_lake import ArrowLake

    return ArrowLake(path)


@lake.command()
@_lake
@_json
def tables(lake: str, as_json: bool) -> None:
    """List the tables of LAKE: version, partitions, files, rows and bytes."""
    opened = _open(lake)
    opened.logs()
    found = opened.tables()
    if as_json:
        print_json(found)
    else:
        print_table(list(found[0]), [list(row.values()) for row in found])


@lake.command()
@_lake
@_table
@_json
def history(lake: str, table: str | None, as_json: bool) -> None:
    """List the commits of TABLE, or of every table of LAKE, the newest first.

    Every version named here can be read until a vacuum removes its files: `lake.read_version("contacts", 3)`
    in Python, or the time travel of another program.
    """
    rows = [{"table": log.kind.name, **commit} for log in _open(lake).logs(table) for commit in log.history()]
    if as_json:
        print_json(rows)
        return
    columns = ("version", "change", "files", "rows", "bytes", "files_replaced")
    print_table(
        ["table", "time (UTC)", *(name.replace("_", " ") for name in columns)],
        [
            [row["table"], _moment(row["time"]), *(row.get(name, "-") for name in columns)]
            for row in sorted(rows, key=lambda row: row["time"], reverse=True)
        ],
    )


@lake.command()
@_lake
@_table
@_json
def compact(lake: str, table: str | None, as_json: bool) -> None:
    """Join the small files of TABLE, or of every table of LAKE. The rows stay the same."""
    found = []
    for log in _open(lake).logs(table):
        before, after = log.compact()
        found.append({"table": log.kind.name, "files_before": before, "files_after": after})
    if as_json:
        print_json(found)
        return
    for row in found:
        joined = f"{row['files_before']} files became {row['files_after']}"
        click.echo(f"{row['table']}: {joined if row['files_before'] else 'nothing to join'}")


@lake.command()
@_lake
@_table
@default_option(
    "--keep",
    "keep_h",
    type=click.FloatRange(min=0),
    default=168.0,
    metavar="HOURS",
    help="Keep what a version of the last HOURS needs. 0 also removes files of writes that are still running.",
)
@click.option("--dry-run", is_flag=True, help="List the files and remove none.")
@_json
def vacuum(lake: str, table: str | None, keep_h: float, dry_run: bool, as_json: bool) -> None:
    """Remove files that TABLE, or any table of LAKE, no longer needs.

    These are files that a newer version replaced, and files that killed commands left. Versions older than --keep
    can no longer be read afterwards. A reader that takes longer than --keep can lose its files.
    """
    found = {log.kind.name: log.vacuum(keep_h, dry_run) for log in _open(lake).logs(table)}
    if as_json:
        print_json({"dry_run": dry_run, "files": found})
        return
    for name, files in found.items():
        click.echo(f"{name}: {len(files)} files {'would be removed' if dry_run else 'removed'}")
        if dry_run:
            for file in files:
                click.echo(f"  {file}")


@lake.command()
@_lake
@_json
def convert(lake: str, as_json: bool) -> None:
    """Convert a LAKE that an earlier version of earshot wrote. Converting it again does nothing."""
    from earshot.pipeline.lake.folder import Folder
    from earshot.pipeline.lake.old_lakes import convert as convert_tables

    converted = convert_tables(Folder(lake))
    if as_json:
        print_json(converted)
        return
    for name, rows in converted.items():
        click.echo(f"{name}: {rows} rows")
    if not converted:
        click.echo(f"{lake} has no tables of the old form")


def _moment(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
