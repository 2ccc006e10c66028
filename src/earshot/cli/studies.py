"""`earshot reproduce` and `earshot drip-brokers`: the papers' experiments, claims and formulas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from earshot.cli.options import default_option, json_option
from earshot.cli.spark import LakeOptions, ProgressBar, lake_options, open_lake
from earshot.cli.tables import print_json, print_table


@click.command()
@click.argument("studies", nargs=-1, metavar="[STUDY...]")
@click.option("--quick", is_flag=True, help="Run the same experiments at smaller sizes.")
@json_option("Print the claims as JSON, with the numbers behind each figure.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the report  [default: LAKE/studies]")
@click.option(
    "--pages",
    type=click.Path(exists=True, file_okay=False),
    help="Write the claims into the pages STUDY.md of this folder, between their marks; pages without marks stay.",
)
@click.option("--list", "only_list", is_flag=True, help="List the studies.")
@lake_options
def reproduce(
    studies: Sequence[str],
    quick: bool,
    as_json: bool,
    out: str | None,
    pages: str | None,
    only_list: bool,
    lake: LakeOptions,
) -> None:
    """Run the papers' own experiments and judge their claims.

    Without STUDY, all studies run. Prints what each paper claims, what we measured and whether the
    claim holds; if it does not, a known reason is given. Finished cases are kept in the
    lake and not run again.

    \b
      earshot reproduce --list
      earshot reproduce steam --quick
    """
    from earshot.studies.study import STUDIES, judge, study, tally

    if only_list:
        for name in STUDIES:
            click.echo(f"{name:16} {study(name).paper}")
        return
    from earshot.studies.running import pages_of, run_study, studies_report, write_claims

    chosen = [study(name) for name in (studies or STUDIES)]
    # Checked before hours of runs, so that a page without marks does not lose their results.
    targets = pages_of(Path(pages), [paper.name for paper in chosen]) if pages else {}
    for name, page_path in targets.items():
        if page_path is None:
            click.echo(f"{pages}/{name}.md has no marks for claims: it is left as it is", err=True)
    judged, origins = [], {}
    folder = Path(out) if out else Path(lake.lake) / "studies"
    with open_lake(lake) as opened:
        for paper in chosen:
            total = sum(len(experiment.quick if quick else experiment.cases) for experiment in paper.experiments)
            with ProgressBar(f"study {paper.name}", total) as bar:
                done = run_study(opened.session, paper, Path(lake.lake) / "results", quick, bar.runs)
            judged += judge(paper, done.rows)
            origins[paper.name] = done.origin
    target = studies_report(chosen, judged, quick).write(folder / "studies.html")
    for name, page_path in targets.items():
        if page_path is not None:
            write_claims(page_path, [verdict for verdict in judged if verdict.study == name], origins[name])
    if as_json:
        print_json([verdict.as_json() for verdict in judged])
        return
    for verdict in judged:
        click.echo(f"\n{verdict.study}: {verdict.claim.claim} ({verdict.claim.where})")
        click.echo(f"  paper     {verdict.claim.paper}")
        for reading in verdict.finding.readings:
            if len(verdict.finding.readings) > 1:
                click.echo(f"  reading   {reading.reading}")
            bound = f", bound {reading.bound_text}" if reading.bound_text else ""
            click.echo(f"  measured  {reading.measured} {reading.interval_text}".rstrip() + bound)
            click.echo(f"  {reading.verdict}" + (f": {reading.reason}" if reading.reason else ""))
    click.echo(f"\n{tally(judged)}\nreport: {target}")


@click.command("drip-brokers")
@click.option("--delay", required=True, type=float, help="The wanted delay, in steps of the random walk.")
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
    from earshot.protocols.drip.delay import brokers_for, exact_delay, printed_delay

    rows = []
    for name, formula in (("as it follows", exact_delay), ("as printed", printed_delay)):
        found = brokers_for(delay, nearest, copies, grid, formula)
        chosen = "none" if found.k is None else f"{found.k:,}"
        at = "-" if found.k is None else f"{formula(found.k, nearest, copies, grid):,.1f}"
        rows.append((name, chosen, at, f"{found.least:,.1f} to {found.most:,.1f}"))
    print_table(("formula", "brokers", "delay there", "delays it can give"), rows)
