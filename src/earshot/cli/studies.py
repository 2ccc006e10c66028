"""`earshot reproduce`: the papers' experiments and the verdicts on their claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from earshot.cli.spark import LakeOptions, ProgressBar, lake_options, open_lake
from earshot.cli.tables import print_json


@click.command()
@click.argument("studies", nargs=-1, metavar="[STUDY...]")
@click.option("--quick", is_flag=True, help="Run the same experiments at smaller sizes.")
@click.option("--json", "as_json", is_flag=True, help="Print the claims as JSON, with the numbers behind each figure.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the report  [default: LAKE/studies]")
@click.option("--list", "only_list", is_flag=True, help="List the studies.")
@lake_options
def reproduce(
    studies: Sequence[str], quick: bool, as_json: bool, out: str | None, only_list: bool, lake: LakeOptions
) -> None:
    """Run the papers' own experiments and judge their claims.

    Without STUDY, all studies run. Prints what each paper claims, what we measured and whether the
    claim holds; if it does not, the reason is given where it is known. Finished cases are kept in the
    lake and not run again.

    \b
      earshot reproduce --list
      earshot reproduce steam --quick
    """
    from earshot.studies.study import STUDIES, judge, study

    if only_list:
        for name in STUDIES:
            click.echo(f"{name:16} {study(name).paper}")
        return
    from earshot.studies.running import VERDICTS, run_study, studies_report

    chosen = [study(name) for name in (studies or STUDIES)]
    judged = []
    folder = Path(out) if out else Path(lake.lake) / "studies"
    with open_lake(lake) as opened:
        for paper in chosen:
            total = sum(len(experiment.quick if quick else experiment.cases) for experiment in paper.experiments)
            with ProgressBar(f"study {paper.name}", total) as bar:
                rows = run_study(opened.session, paper, Path(lake.lake) / "results", quick, bar.runs)
            judged += judge(paper, rows)
    page = studies_report(chosen, judged, quick)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "studies.html"
    draft = target.with_name(".studies.html.draft")
    draft.write_text(page.html(), "utf-8")
    draft.replace(target)
    if as_json:
        print_json([one.as_json() for one in judged])
        return
    for one in judged:
        click.echo(f"\n{one.study}: {one.claim.claim} ({one.claim.where})")
        click.echo(f"  paper     {one.claim.paper}")
        click.echo(f"  measured  {one.finding.measured}")
        click.echo(f"  {VERDICTS[one.finding.holds]}" + (f": {one.finding.reason}" if one.finding.reason else ""))
    held = sum(one.finding.holds is True for one in judged)
    click.echo(f"\n{held} of {len(judged)} claims hold\nreport: {target}")
