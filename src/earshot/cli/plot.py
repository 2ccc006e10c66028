"""`earshot plot`: a figure for a paper from the runs in a lake, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from earshot.cli.options import default_option, json_option, pairs
from earshot.cli.tables import print_json, print_table


@click.command()
@click.argument("lake", metavar="LAKE")
@click.option("--x", required=True, metavar="KEY", help="The swept key, as in medium.range_m or settings.probability.")
@click.option("--y", required=True, metavar="METRIC", help="The metric, as in delivery_ratio.")
@default_option("--by", default="protocol", metavar="COLUMN", help="One line for each value: protocol, variant, ...")
@click.option("--where", "chosen", multiple=True, metavar="COLUMN=VALUE", help="Only runs with this value; repeatable.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="FILE.svg, .pdf, .png or .html.")
@click.option("--csv", "csv_to", type=click.Path(dir_okay=False, path_type=Path), help="Write the points as CSV too.")
@default_option("--width", type=click.Choice(["column", "text"]), default="column", help="8.8 cm or 17.8 cm wide.")
@default_option("--title", default="", help="A title above the figure.")
@json_option("Print the points as JSON.")
def plot(
    lake: str,
    x: str,
    y: str,
    by: str,
    chosen: Sequence[str],
    out: Path | None,
    csv_to: Path | None,
    width: str,
    title: str,
    as_json: bool,
) -> None:
    """Draw a metric against a swept key, with 95 % intervals over the seeds, from every run in LAKE that is done.

    \b
    Examples:
      earshot plot lake --x medium.range_m --y delivery_ratio --by protocol --out figure.pdf
      earshot plot lake --x settings.probability --y cost --where protocol=gossip --out cost.svg --csv cost.csv
      earshot plot lake --x event_rate --y latency_p95_s --json
    """
    from earshot.pipeline.lake.arrow_lake import ArrowLake
    from earshot.pipeline.reports.plots import draw_plot, read_plot

    found = read_plot(ArrowLake(lake), x, y, by, pairs(chosen, "--where", str))
    if out is not None:
        draw_plot(found, out, width, title)
    if csv_to is not None:
        csv_to.write_text(found.csv(), encoding="utf-8")
    if as_json:
        names = ("mean", "low", "high", "seeds")
        print_json(
            [
                {by: point.line, x: point.x, **{name: getattr(point.figure, name) for name in names}}
                for point in found.points
            ]
        )
    elif csv_to is None and out is None:
        click.echo(found.csv(), nl=False)
    else:
        for path in (out, csv_to):
            if path is not None:
                click.echo(f"wrote {path}")


@click.command()
@json_option("Print them as JSON.")
def metrics(as_json: bool) -> None:
    """List the metrics of runs: name, unit, and whether a higher or a lower value is better.

    \b
    Examples:
      earshot metrics
      earshot metrics --json
    """
    from earshot.pipeline.campaigns.leaderboard import COLUMNS

    better = {1: "more", -1: "less", 0: ""}
    rows = [(column.metric, column.title, column.unit, better[column.better]) for column in COLUMNS]
    names = ("metric", "title", "unit", "better")
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(names, rows)
