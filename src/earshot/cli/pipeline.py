"""What comes into a lake before any run: `ingest` and `contacts` for traces, `workload` and `oracle` for events,
subscriptions and who should receive them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from earshot.cli.options import (
    DURATION,
    LENGTH,
    PLACE,
    SPEED,
    default_option,
    json_option,
    pairs,
    set_option,
    toml_value,
)
from earshot.cli.spark import LakeOptions, ProgressBar, lake_options, open_lake
from earshot.cli.tables import print_json, warn
from earshot.errors import UsageError
from earshot.words import counted

if TYPE_CHECKING:
    from earshot.pipeline.traces.contact_statistics import ContactStatistics, Spread
    from earshot.pipeline.traces.ingest import IngestSummary


FORMATS = "sumo-fcd, ns2, bonnmotion, one, gpx, csv, spool, or a plug-in"


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "format_name", metavar="NAME", help=f"The trace's format: {FORMATS}.  [default: detected]")
@click.option("--trace", metavar="NAME", help="The trace's name in the lake.  [default: the first file's name]")
@click.option("--columns", default="", metavar="ROLE=NAME,...", help="For CSV and Parquet: node=bus,time=when,...")
@click.option("--geo", is_flag=True, help="x and y are longitude and latitude (SUMO's --fcd-output.geo).")
@click.option(
    "--units",
    default="",
    metavar="UNIT,...",
    help="The units, if they are in doubt: s, ms, us, ns; m, km, cm, mm, degrees; lonlat.",
)
@click.option("--strict", is_flag=True, help="Treat a doubt about the trace as an error, and write nothing.")
@click.option("--time-format", default="", metavar="FORMAT", help="For CSV: the format of times: %d/%m/%Y %H:%M.")
@click.option("--origin", type=PLACE, help="The plane's origin.  [default: the trace's median place]")
@default_option(
    "--max-speed",
    type=SPEED,
    default="100m/s",
    help="Reject positions that would need a higher speed than this; 'none' for no limit.",
)
@click.option("--interval", type=DURATION, help="Interpolate positions at every multiple of this time, such as 1s.")
@click.option("--contacts", "range_m", type=LENGTH, metavar="RANGE", help="Also find the contacts within this range.")
@lake_options
@json_option("Print the summary as JSON.")
def ingest(
    files: Sequence[str],
    format_name: str | None,
    trace: str | None,
    columns: str,
    geo: bool,
    units: str,
    strict: bool,
    time_format: str,
    origin: tuple[float, float] | None,
    max_speed: float,
    interval: float | None,
    range_m: float | None,
    lake: LakeOptions,
    as_json: bool,
) -> None:
    """Read mobility traces into a lake's positions.

    FILE may be compressed, a folder or a pattern; several files make one trace. Rows that are
    duplicated, out of order, impossible or unreadable go to the table `rejects`, with file, line and reason.

    FILE may also be a folder that live nodes recorded into (`earshot node --spool`; `--format spool`): each
    protocol in it becomes a run NAME-PROTOCOL, judged and measured like a simulated run.

    \b
      earshot ingest city.fcd.xml.gz --contacts 100m
      earshot ingest buses.csv --trace buses --columns node=vehicle_id
      earshot ingest scenario.ns_movements --interval 1s
      earshot ingest spools --format spool --trace monday
    """
    if format_name == "spool" or (format_name is None and _are_spools(files)):
        if range_m is not None:
            raise UsageError("--contacts is for traces; recordings of live nodes become runs: leave it out")
        _ingest_spools(files, trace, lake, as_json)
        return
    from earshot.pipeline.traces.contact_statistics import find_contacts
    from earshot.pipeline.traces.ingest import IngestSettings, check_files
    from earshot.pipeline.traces.ingest import ingest as ingest_files

    settings = IngestSettings(
        format=format_name,
        columns=columns,
        geo=geo,
        units=units,
        strict=strict,
        time_format=time_format,
        origin=origin,
        max_speed_m_s=max_speed,
        interval_s=interval,
    )
    check_files(files, settings)
    with ProgressBar("ingest") as bar, open_lake(lake, files, bar) as opened:
        bar.say("reading")
        summary = ingest_files(opened, files, trace, settings)
        met = None
        if range_m is not None:
            bar.say("finding contacts")
            met = find_contacts(opened, summary.trace, range_m)
    if as_json:
        result = summary.as_json() if met is None else {**summary.as_json(), "contacts": met.as_json()}
        print_json(result)
        return
    _print_summary(summary)
    if met is None:
        click.echo(f"next: earshot contacts {summary.trace} --range 100m --lake {lake.lake}")
    else:
        click.echo("")
        _print_statistics(met)


def _are_spools(files: Sequence[str]) -> bool:
    from earshot.pipeline.watch.spool_segments import is_spool

    return all(is_spool(file) for file in files)


def _ingest_spools(folders: Sequence[str], name: str | None, lake: LakeOptions, as_json: bool) -> None:
    from earshot.pipeline.watch.spool_segments import check_folders

    check_folders(folders, may_be_empty=False)
    from earshot.pipeline.watch.spools import keep_spools

    with open_lake(lake, reads=folders) as opened:
        kept = keep_spools(opened, folders, name or Path(folders[0]).absolute().name)
    if as_json:
        print_json(kept.as_json())
        return
    click.echo(f"{kept.name}: {counted(kept.nodes, 'node')}, {kept.end - kept.start:,.1f} s")
    click.echo(f"  records        {kept.records:>12,}")
    click.echo(f"  unparsable     {kept.rejected:>12,}  rejected")
    for run in kept.runs:
        click.echo(f"  run            {run}")
    click.echo(f"next: earshot report {lake.lake}")


def _print_summary(summary: IngestSummary) -> None:
    files = summary.files[0] if len(summary.files) == 1 else f"{len(summary.files)} files"
    click.echo(f"{summary.trace}: {counted(summary.nodes, 'node')} from {files} ({summary.format})")
    warn(summary.doubts)
    click.echo(f"  rows read      {summary.rows_read:>12,}")
    click.echo(f"  rows kept      {summary.rows_kept:>12,}")
    for reason, count in summary.rejected.items():
        click.echo(f"  {reason:<14} {count:>12,}  rejected")
    if summary.positions != summary.rows_kept:
        click.echo(f"  positions      {summary.positions:>12,}")
    click.echo(f"  duration       {summary.end - summary.start:>12,.1f}  s")
    if summary.interval_s is not None:
        kind = "between turns" if summary.motion == "waypoints" else "between samples"
        click.echo(f"  interval       {summary.interval_s:>12,.2f}  s {kind} (median)")
    if summary.origin is not None:
        click.echo(f"  origin         {summary.origin[0]:>12.6f}, {summary.origin[1]:.6f}")


@click.command()
@click.argument("trace")
@click.option("--range", "range_m", type=LENGTH, required=True, help="Nodes within this range are in contact: 100m.")
@click.option(
    "--step",
    type=DURATION,
    help="Compare positions at every multiple of this time.  [default: the times of the trace]",
)
@click.option("--max-gap", type=DURATION, help="Do not interpolate over longer gaps than this.")
@lake_options
@json_option("Print the statistics as JSON.")
def contacts(
    trace: str, range_m: float, step: float | None, max_gap: float | None, lake: LakeOptions, as_json: bool
) -> None:
    """Find which nodes of TRACE meet, when and for how long.

    Writes the table `contacts` and prints statistics of contacts and of the times between them.

    \b
      earshot contacts bologna --range 100m
    """
    from earshot.pipeline.traces.contact_statistics import find_contacts

    with ProgressBar(f"contacts of {trace}") as bar, open_lake(lake, (), bar) as opened:
        bar.say("finding contacts")
        statistics = find_contacts(opened, trace, range_m, step, max_gap)
    if as_json:
        print_json(statistics.as_json())
    else:
        _print_statistics(statistics)


def _print_statistics(found: ContactStatistics) -> None:
    how = f"compared every {found.step_s:g} s" if found.step_s else f"sampled every {found.interval_s:g} s"
    click.echo(f"{found.trace}: contacts within {found.range_m:g} m, {how}")
    click.echo(f"  contacts            {found.contacts:>12,}")
    click.echo(f"  pairs that met      {found.pairs:>12,}")
    click.echo(f"  nodes               {found.nodes:>12,}  of which {found.nodes_met:,} met another")
    click.echo(f"  neighbours at once  {found.mean_degree:>12.2f}  (mean over nodes and time)")
    click.echo("")
    click.echo(f"  {'':<28}{'mean':>10}{'p50':>10}{'p90':>10}{'p95':>10}{'p99':>10}{'most':>10}")
    for title, spread in (
        ("length of a contact, s", found.contact_s),
        ("time between contacts, s", found.inter_contact_s),
        ("nodes met by a node", found.peers),
    ):
        click.echo(f"  {title:<28}{_spread_text(spread)}")


def _spread_text(spread: Spread | None) -> str:
    if spread is None:
        return "         -"
    values = (spread.mean, spread.p50, spread.p90, spread.p95, spread.p99, spread.most)
    return "".join(f"{value:>10,.1f}" for value in values)


@click.command()
@click.argument("name")
@default_option("--seed", type=click.IntRange(0), default=0, help="For a scenario: its seed.")
@set_option
@click.option("--events", multiple=True, metavar="FILE", help="Your own events: .jsonl, .xml or .parquet; repeatable.")
@click.option(
    "--subscriptions", metavar="FILE", help="Your own subscriptions: .jsonl, .txt (one filter per line) or .parquet."
)
@lake_options
@json_option("Print the workload's id and counts as JSON.")
def workload(
    name: str,
    seed: int,
    changes: Sequence[str],
    events: Sequence[str],
    subscriptions: str | None,
    lake: LakeOptions,
    as_json: bool,
) -> None:
    """Put a workload into a lake: events, subscriptions, and where the nodes are.

    NAME is a scenario (the workload's id is then a hash of it and the seed), or, with --events and
    --subscriptions, the name your own workload gets.

    \b
      earshot workload city --seed 3
      earshot workload fleet --events sirens.jsonl --subscriptions wanted.txt
    """
    from earshot.pipeline.campaigns.flow import draw_scenario, keep_own_workload

    if bool(events) != bool(subscriptions):
        raise UsageError("a workload of your own needs both --events and --subscriptions")
    with open_lake(lake, reads=[*events, *([subscriptions] if subscriptions else [])]) as opened:
        if subscriptions:
            counts = keep_own_workload(opened, name, list(events), subscriptions)
            id = name
        else:
            from earshot.simulation.scenario.library import load_scenario

            scenario = load_scenario(name).with_(**pairs(changes, "--set", toml_value))
            id, counts = draw_scenario(opened, scenario, seed)
    if as_json:
        click.echo(json.dumps({"workload": id, **counts}))
        return
    click.echo(f"workload {id}: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    click.echo(f"next: earshot oracle {id} --lake {lake.lake}")


@click.command()
@click.argument("workload")
@click.option("--trace", help="Where the nodes were: an ingested trace  [default: the workload's own positions]")
@click.option("--range", "range_m", type=LENGTH, help="The radios' range, as in 100m  [default: the scenario's]")
@lake_options
@json_option("Print the counts as JSON.")
def oracle(workload: str, trace: str | None, range_m: float | None, lake: LakeOptions, as_json: bool) -> None:
    """Compute which nodes should receive each event, and what is reachable: the tables `expected` and `reachable`.

    A node is expected to receive an event if one of its subscriptions is active at that time and accepts the
    event's type, content and place. The protocol plays no part.

    If the radios' range is known, the command also computes the ceiling: which of these deliveries any protocol
    could have made, because contacts between nodes led from the publisher to the receiver within the event's lifespan.

    \b
    Examples:
      earshot oracle fleet --trace buses
      earshot oracle fleet --trace buses --range 100m --json
    """
    from earshot.pipeline.campaigns.flow import expected_counts, workload_ceiling

    with ProgressBar(f"oracle of {workload}") as bar, open_lake(lake, (), bar) as opened:
        bar.say("finding the expected receivers")
        counts = expected_counts(opened, workload, trace)
        bar.say("finding what is reachable")
        ceiling = workload_ceiling(opened, workload, trace, range_m)
    if as_json:
        shares = {"ceiling": ceiling.share, "ceiling_at_once": ceiling.share_at_once} if ceiling else {}
        click.echo(json.dumps({"workload": workload, **counts, **shares}))
        return
    pairs_found = "1 expected delivery" if counts["pairs"] == 1 else f"{counts['pairs']:,} expected deliveries"
    click.echo(
        f"{pairs_found} of {counted(counts['events'], 'event')} to {counted(counts['nodes'], 'node')}, "
        f"in the table `expected` of {lake.lake}"
    )
    if ceiling is not None:
        click.echo(f"{ceiling}, in the table `reachable`")
