"""`earshot workload` and `earshot oracle`: events, subscriptions, and which nodes should receive which events."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from earshot.cli.options import LENGTH, default_option, pairs, set_option, toml_value
from earshot.cli.spark import LakeOptions, ProgressBar, lake_options, open_lake
from earshot.errors import UsageError


@click.command()
@click.argument("name")
@default_option("--seed", type=click.IntRange(0), default=0, help="For a scenario: its seed.")
@set_option
@click.option("--events", multiple=True, metavar="FILE", help="Your own events: .jsonl, .xml or .parquet; repeatable.")
@click.option(
    "--subscriptions", metavar="FILE", help="Your own subscriptions: .jsonl, .txt (a filter a line) or .parquet."
)
@lake_options
@click.option("--json", "as_json", is_flag=True, help="Print the workload's id and counts as JSON.")
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
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
def oracle(workload: str, trace: str | None, range_m: float | None, lake: LakeOptions, as_json: bool) -> None:
    """Compute which nodes should receive each event, and what is reachable: the tables `expected` and `reachable`.

    A node is expected to receive an event if one of its subscriptions is active at that time and accepts the
    event's type, content and place. The protocol plays no part.

    If the radios' range is known, the command also computes the ceiling: which of these deliveries any protocol
    could have made, because contacts between nodes led from the publisher to the receiver within the event's lifespan.
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
    click.echo(
        f"{counts['pairs']} expected deliveries of {counts['events']} events to {counts['nodes']} nodes, "
        f"in the table `expected` of {lake.lake}"
    )
    if ceiling is not None:
        click.echo(f"{ceiling}, in the table `reachable`")
