"""`earshot sweep`, `compare`, `capacity`, `report` and `why`: campaigns of simulations on Spark."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import (
    chosen_protocols,
    default_option,
    json_option,
    pairs,
    protocols_option,
    read_settings_file,
    set_option,
    settings_file_option,
    toml_value,
)
from earshot.cli.spark import LakeOptions, ProgressBar, cluster_options, lake_option, lake_options, open_lake
from earshot.cli.tables import WIDTH, print_json, print_table, print_words, warn
from earshot.cli.traces import TraceChoice, check_scenarios, scenario_or_trace, trace_options
from earshot.errors import UsageError
from earshot.words import counted

if TYPE_CHECKING:
    from earshot.pipeline.campaigns.capacity import CapacityComparison, LoadPoint, ProtocolCapacity
    from earshot.pipeline.campaigns.leaderboard import Leaderboard

DEFAULT_SEEDS = 5
MULTIPLE = click.FloatRange(1.0, 1e6)
"Of an event rate."
MOST_MULTIPLE = 64.0


metric_option = click.option(
    "--metric", "own_metrics", multiple=True, metavar="NAME", help="Measure this metric of yours too; repeatable."
)
figure_option = click.option(
    "--figure", "figures", multiple=True, metavar="NAME", help="Put this figure of yours into the report; repeatable."
)


@click.command()
@click.argument("campaign", type=click.Path(dir_okay=False))
@metric_option
@lake_options
@json_option("Print the leaderboard and the outcome of each run as JSON.")
def sweep(campaign: str, own_metrics: Sequence[str], lake: LakeOptions, as_json: bool) -> None:
    """Run a campaign: protocols x settings x scenarios x seeds, one Spark task for each run.

    CAMPAIGN is a TOML file:

    \b
      scenarios = ["city"]
      protocols = ["flooding", "gossip"]
      seeds = 5
      [set]                         # scenario keys; a list is swept over
      "medium.range_m" = [100, 150]
      [settings.gossip]             # protocol settings; a list is swept over
      probability = [0.6, 0.8]

    Each value of a swept key is a point with its own ranking. Runs that are in the lake are not run again;
    Ctrl-C keeps what is finished.
    """
    from earshot.pipeline.campaigns.board_text import board_json
    from earshot.pipeline.campaigns.campaigns import read_campaign
    from earshot.pipeline.campaigns.flow import lake_leaderboard, run_campaign
    from earshot.pipeline.campaigns.sweeps import Outcome
    from earshot.pipeline.campaigns.swept_keys import run_columns

    wanted = read_campaign(campaign)
    check_scenarios({id(run.scenario): run.scenario for run in wanted.runs}.values())
    warn(wanted.doubts())
    with ProgressBar(f"campaign {wanted.name}", len(wanted.runs)) as bar, open_lake(lake, bar=bar) as opened:
        outcomes = run_campaign(opened, wanted, bar.say, bar.runs, own_metrics=own_metrics)
        done = [outcome.run for outcome in outcomes if outcome.status == "done"]
        board = lake_leaderboard(opened, done) if done else None
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if as_json:
        rows = [
            {
                "run": one.run,
                "scenario": one.scenario,
                "protocol": one.variant,
                **{name: value for name, value in columns.items() if name not in Outcome.__dataclass_fields__},
                "seed": one.seed,
                "status": one.status,
                "error": one.error,
                "took_s": one.took_s,
            }
            for one, columns in zip(outcomes, run_columns([asdict(one) for one in outcomes]), strict=True)
        ]
        print_json({"runs": rows, **(board_json(board) if board else {})})
    else:
        if board:
            _print_board(board)
            click.echo()
        click.echo(f"{counted(len(outcomes) - len(failed), 'run')} done, {len(failed)} failed, in {lake.lake}")
        for outcome in failed[:5]:
            click.echo(f"  {outcome.run} {outcome.variant} seed {outcome.seed}: {outcome.error}")
        click.echo(f"next: earshot report {lake.lake}")
    if failed:
        sys.exit(1)


@click.command()
@click.argument("scenario", required=False)
@trace_options
@protocols_option
@settings_file_option
@default_option("--seeds", type=click.IntRange(1, 10_000), default=DEFAULT_SEEDS, help="How many seeds.")
@set_option
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="PROTOCOL.NAME=VALUE",
    help="Change a setting of one protocol: --setting gossip.probability=0.6.",
)
@metric_option
@figure_option
@lake_options
@click.option(
    "--capacity",
    "with_capacity",
    is_flag=True,
    help="Also find how much load each protocol carries, with the same seeds.",
)
@click.option(
    "--most", type=MULTIPLE, help=f"With --capacity: the highest multiple to try  [default: {MOST_MULTIPLE:g}]"
)
@click.option("--report", "report_to", type=click.Path(dir_okay=False), help="The report  [default: LAKE/report.html]")
@json_option("Print the leaderboard as JSON.")
def compare(
    scenario: str | None,
    choice: TraceChoice,
    protocols: str | None,
    settings_file: str | None,
    seeds: int,
    changes: Sequence[str],
    settings: Sequence[str],
    own_metrics: Sequence[str],
    figures: Sequence[str],
    lake: LakeOptions,
    with_capacity: bool,
    most: float | None,
    report_to: str | None,
    as_json: bool,
) -> None:
    """Compare protocols on one scenario, or on your own trace, and print the leaderboard.

    Simulates every protocol with every seed, computes which nodes should have received each event, and
    measures delivery ratio, precision, cost and latency with confidence intervals. Ends with the path of
    a report that opens in any browser.

    \b
      earshot compare city
      earshot compare city --protocols flooding,gossip --seeds 5 --set medium.range_m=150
      earshot compare city --protocols gossip,cbf --setting gossip.probability=0.6
      earshot compare city --protocols gossip,cbf --capacity --most 8
      earshot compare --trace bologna --window 5min-7min --workload alerts-nearby
      earshot compare --trace bologna --settings advice.toml
    """
    from earshot.pipeline.campaigns.campaigns import campaign
    from earshot.pipeline.campaigns.capacity import find_capacity
    from earshot.pipeline.campaigns.flow import run_campaign
    from earshot.pipeline.reports.report import facts_json, report_facts, write_page_of

    if most is not None and not with_capacity:
        raise UsageError("--most is the highest multiple that --capacity tries: give both, or neither")
    named = scenario_or_trace(scenario, choice, lake)
    changed = named.with_(**pairs(changes, "--set", toml_value))
    check_scenarios([changed], choice.strict)
    names: dict[str, dict[str, Any]] = {name: {} for name in chosen_protocols(protocols)}
    if settings_file is not None:
        advised = read_settings_file(settings_file)
        names[advised.protocol] = dict(advised.settings)
    for key, value in pairs(settings, "--setting", toml_value).items():
        protocol, _, setting = key.rpartition(".")
        if protocol not in names:
            raise UsageError(f"--setting {key}: write PROTOCOL.NAME=VALUE with one of: {', '.join(names)}")
        names[protocol][setting] = value
    title = f"compare-{changed.name}"
    wanted = campaign(title, [changed], names, range(seeds), [named])
    warn(wanted.doubts())
    title = f"{len(names)} protocols on {changed.name}"
    with ProgressBar(title, len(wanted.runs)) as bar, open_lake(lake, bar=bar) as opened:
        outcomes = run_campaign(opened, wanted, bar.say, bar.runs, own_metrics=own_metrics)
        loads = None
        if with_capacity:
            loads = find_capacity(
                opened, changed, names, range(seeds), most=most or MOST_MULTIPLE, named=named, say=bar.say
            )
        bar.say("writing the report")
        done = [outcome.run for outcome in outcomes]
        facts = replace(report_facts(opened, done, figures=figures), capacity=loads)
        page = write_page_of(facts, opened, Path(report_to or Path(lake.lake) / "report.html"))
    if as_json:
        print_json(facts_json(facts))
    else:
        _print_board(facts.board)
        if loads is not None:
            print_capacity(loads)
        for outcome in outcomes:
            if outcome.status == "failed":
                click.echo(f"failed: {outcome.variant} seed {outcome.seed}: {outcome.error}", err=True)
        click.echo(f"\nreport: {page}")
    if any(outcome.status == "failed" for outcome in outcomes):
        sys.exit(1)


def _print_board(board: Leaderboard) -> None:
    """Print the verdict, then a table for each point, or one table for all points if there are many. Lines have at
    most 100 characters."""
    from earshot.pipeline.campaigns import board_text as text

    print_words(text.board_words(board))
    if len(board.rankings) > text.FEW:
        click.echo()
        print_table(*text.points_table(board, text.NARROW, WIDTH))
    else:
        for ranking in board.rankings:
            click.echo()
            print_words(text.ranking_heading(ranking))
            if len(board.rankings) > 1:
                print_words(text.verdict_words(ranking))
            print_table(*text.ranking_table(ranking, text.NARROW, WIDTH))
    print_words(text.assumption_words(board.rows))
    if any(row.ties for row in board.rows):
        click.echo(f"{text.TIE}: with these seeds, not clearly different from the best of its column")


@click.command()
@click.argument("lake_folder", metavar="LAKE")
@click.option("--out", type=click.Path(dir_okay=False), help="Where the page goes  [default: LAKE/report.html]")
@json_option("Print what the page shows as JSON instead of writing it.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the leaderboard as CSV, one line for each row and metric.")
@metric_option
@figure_option
@cluster_options
def report(
    lake_folder: str,
    out: str | None,
    as_json: bool,
    as_csv: bool,
    own_metrics: Sequence[str],
    figures: Sequence[str],
    lake: LakeOptions,
) -> None:
    """Write one self-contained HTML page about everything in a lake.

    The page has the answer in words, delivery against cost, ranked bars, what was lost, where and why, and swept keys
    as lines. Each table can be downloaded. The page opens without a network, also on a phone, and can be printed.

    \b
    Examples:
      earshot report lake
      earshot report lake --out monday.html
      earshot report lake --json
    """
    from earshot.pipeline.campaigns.board_text import board_csv
    from earshot.pipeline.campaigns.flow import lake_leaderboard, measure_all
    from earshot.pipeline.reports.report import facts_json, report_facts, write_report

    with open_lake(lake.at(lake_folder), reads=()) as opened:
        if own_metrics:
            measure_all(opened, own_metrics)
        if as_json:
            print_json(facts_json(report_facts(opened, figures=figures)))
            return
        if as_csv:
            click.echo(board_csv(lake_leaderboard(opened)), nl=False)
            return
        page = write_report(opened, Path(out or Path(lake_folder) / "report.html"), figures=figures)
    click.echo(f"report: {page}")


@click.command()
@click.argument("run")
@click.argument("event")
@click.argument("node")
@lake_option
@json_option("Print the answer as JSON.")
def why(run: str, event: str, node: str, lake_folder_: str, as_json: bool) -> None:
    """Say whether NODE should have received EVENT in RUN, whether it did, by which path, or where it was lost.

    RUN is a run's id, or its first characters; the report lists the ids.

    \b
    Example:
      earshot why 3fa9 car-07-4 bus-12
    """
    from earshot.pipeline.lake.arrow_lake import ArrowLake
    from earshot.pipeline.oracle.why import ask_why

    answer = ask_why(ArrowLake(lake_folder_), run, event, node)
    if as_json:
        print_json(answer.as_json())
        return
    click.echo(
        f"{event} to {node}: {'expected' if answer.expected else 'not expected'}, "
        f"{'delivered' if answer.delivered else 'not delivered'}"
    )
    for reason in answer.reasons:
        click.echo(f"  {reason}")
    if answer.path:
        hops = " -> ".join([answer.path[0].sender, *(f"{hop.receiver} ({hop.time:.3f} s)" for hop in answer.path)])
        click.echo(f"  path: {hops}")
    for loss in answer.losses:
        click.echo(f"  {loss}")


@click.command()
@click.argument("scenario")
@protocols_option
@default_option(
    "--share",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.95,
    help="The share of the reachable deliveries that must arrive.",
)
@default_option("--seeds", type=click.IntRange(1, 1000), default=2, help="How many seeds each load is tried with.")
@default_option("--most", type=MULTIPLE, default=MOST_MULTIPLE, help="The highest multiple to try.")
@set_option
@lake_options
@json_option("Print capacities and curves as JSON.")
def capacity(
    scenario: str,
    protocols: str | None,
    share: float,
    seeds: int,
    most: float,
    changes: Sequence[str],
    lake: LakeOptions,
    as_json: bool,
) -> None:
    """Find the highest multiple of the scenario's event rate that each protocol carries.

    Doubles the rate until too few of the reachable deliveries arrive, then narrows the gap to a tenth. Prints
    each protocol's capacity, and delivery and airtime at every rate that was tried. Runs are kept in the lake: a
    repeated command does not run them again.

    \b
      earshot capacity city --protocols flooding,gossip
      earshot capacity city --share 0.9 --most 16 --json
    """
    from earshot.pipeline.campaigns.campaigns import campaign
    from earshot.pipeline.campaigns.capacity import find_capacity
    from earshot.simulation.scenario.library import load_scenario

    named = load_scenario(scenario)
    changed = named.with_(**pairs(changes, "--set", toml_value))
    check_scenarios([changed])
    chosen: dict[str, dict[str, Any]] = {name: {} for name in chosen_protocols(protocols)}
    warn(campaign("capacity", [changed], chosen, range(1)).doubts())
    with ProgressBar(f"capacity on {changed.name}", 0) as bar, open_lake(lake, bar=bar) as opened:
        found = find_capacity(opened, changed, chosen, range(seeds), share, most, named, bar.say)
    if as_json:
        print_json(found.as_json())
    else:
        print_capacity(found)


def print_capacity(found: CapacityComparison) -> None:
    """The capacities, then the curves."""
    click.echo(
        f"\n{found.scenario}: the highest multiple of the event rate at which {100 * found.share:g} % of the reachable "
        f"deliveries arrive, {'one seed' if found.seeds == 1 else f'mean of {found.seeds} seeds'}"
    )
    header = ["protocol", "capacity", "events a second", "delivered", "airtime", "airtime, busiest"]
    print_table(header, [[row.protocol, _capacity_text(row), *_cells(row.at_capacity)] for row in found.protocols])
    click.echo("\ndelivery against load")
    points = [(row.protocol, point) for row in found.protocols for point in row.points]
    header[1] = "load"
    print_table(header, [[name, f"{point.multiple:.3g}x", *_cells(point)] for name, point in points])
    for row in found.protocols:
        if never := row.never_words(found.share):
            click.echo(never)
        if row.error is not None:
            click.echo(f"failed: {row.protocol}: {row.error}", err=True)


def _capacity_text(row: ProtocolCapacity) -> str:
    if row.capacity is None:
        return "-" if row.error else "none"
    return f"{row.capacity:.3g}x" + (" or more" if row.exceeds else "")


def _cells(point: LoadPoint | None) -> list[str]:
    if point is None:
        return ["-"] * 4
    shares = (point.airtime_mean, point.airtime_busiest)
    return [
        f"{point.events_per_s:.3g}",
        f"{point.delivery_of_reachable:.3f}",
        *("-" if share is None else f"{100 * share:.1f} %" for share in shares),
    ]
