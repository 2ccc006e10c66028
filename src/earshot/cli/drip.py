"""`earshot drip-brokers`: the number of brokers that DRIP's analysis gives."""

from __future__ import annotations

import click

from earshot.cli.options import default_option
from earshot.cli.tables import print_table


@click.command("drip-brokers")
@click.option("--delay", required=True, type=float, help="The delay wanted, in steps of the random walk.")
@default_option("--nearest", default=4, help="l: destinations of each subscriber.")
@default_option("--copies", default=2, help="m: brokers that carry copies.")
@default_option("--grid", default=400.0, help="N: points of the grid that nodes walk on.")
def drip_brokers(delay: float, nearest: int, copies: int, grid: float) -> None:
    """How many brokers (k) give a wanted delay, by the analysis in the DRIP paper.

    Two answers: from the expectation that follows from equation (1), and from equation (2) as printed. They
    differ, see docs/papers/drip.md. The analysis holds for nodes that walk at random on a grid.

    \b
    Example:
      earshot drip-brokers --delay 150 --nearest 4 --copies 2 --grid 400
    """
    from earshot.studies.drip.delay import brokers_for, exact_delay, printed_delay

    rows = []
    for name, formula in (("as it follows", exact_delay), ("as printed", printed_delay)):
        found = brokers_for(delay, nearest, copies, grid, formula)
        chosen = "none" if found.k is None else f"{found.k:,}"
        at = "-" if found.k is None else f"{formula(found.k, nearest, copies, grid):,.1f}"
        rows.append((name, chosen, at, f"{found.least:,.1f} to {found.most:,.1f}"))
    print_table(("formula", "brokers", "delay there", "delays it can give"), rows)
