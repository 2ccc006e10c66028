"""`earshot capacity`: how much load each protocol carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import chosen_protocols, default_option, pairs, set_option, toml_value
from earshot.cli.spark import LakeOptions, ProgressBar, lake_options, open_lake
from earshot.cli.tables import print_json, print_table, warn
from earshot.cli.traces import check_scenarios

if TYPE_CHECKING:
    from earshot.pipeline.campaigns.capacity import CapacityComparison, LoadPoint, ProtocolCapacity

MULTIPLE = click.FloatRange(1.0, 1e6)
"Of an event rate."
MOST_MULTIPLE = 64.0


@click.command()
@click.argument("scenario")
@click.option("--protocols", help="Comma-separated names; all of them by default.")
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
@click.option("--json", "as_json", is_flag=True, help="Print capacities and curves as JSON.")
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
