"""`earshot view`: a replay that people can look at, served on this machine or written as one file."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from earshot.errors import UsageError

if TYPE_CHECKING:
    from earshot.pipeline.reports.catalogues import AnswerableCatalogue
    from earshot.pipeline.reports.lake_replays import Chosen

MOST_ANSWERS = 20_000
"Answers for at most this many pairs of a run are in a file; a served page can ask for all."
MOST_HOPS = 2_000_000
"Hops of a run in a file: some ten megabytes."


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="RUN_OR_LAKE...", type=click.Path(path_type=str))
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write one file instead of serving a page."
)
@click.option("--run", metavar="ID", help="From a lake: the run whose id begins with this.")
@click.option("--scenario", metavar="NAME", help="From a lake: runs of this scenario.")
@click.option("--seed", type=int, help="From a lake: runs of this seed.")
@click.option("--protocols", metavar="A,B", help="From a lake: runs of these protocols.")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="The port to serve the page on  [default: any free port]"
)
@click.option("--no-browser", is_flag=True, help="Print the page's address and do not open a browser.")
def view(
    paths: Sequence[str],
    out: Path | None,
    run: str | None,
    scenario: str | None,
    seed: int | None,
    protocols: str | None,
    port: int,
    no_browser: bool,
) -> None:
    """Look at runs: nodes moving on a map, events spreading hop by hop, what was missed and why.

    RUN_OR_LAKE is a folder that `earshot simulate --log DIR` wrote, a lake with the runs of `earshot
    compare` or `sweep`, or a lake that `earshot watch` is filling: then the page follows it. Several
    run folders of one scenario and seed are shown side by side, as the runs of a lake are.

    \b
      earshot simulate city -p steam --log runs/steam
      earshot view runs/steam
      earshot view lake --scenario city --seed 0
      earshot view lake --run 3fa9 --out replay.html

    The page is served on this machine only, until Ctrl-C; with --out it is one file that opens
    without a network.
    """
    from earshot.pipeline.reports.lake_replays import Chosen

    chosen = Chosen(run, scenario, seed, [name.strip() for name in protocols.split(",")] if protocols else None)
    catalogue = _catalogue(paths, chosen)
    title = ", ".join(Path(path.rstrip("/")).name or path for path in paths)
    if out is not None:
        _write(catalogue, title, out)
    else:
        _serve(catalogue, title, port, no_browser)


def _catalogue(paths: Sequence[str], chosen: Chosen) -> AnswerableCatalogue:
    from earshot.pipeline.lake.arrow_lake import ArrowLake
    from earshot.pipeline.reports.lake_replays import Chosen, LakeCatalogue
    from earshot.pipeline.reports.replays import FolderCatalogue, is_run_folder
    from earshot.pipeline.watch.spool_segments import is_spool
    from earshot.pipeline.watch.watch_replay import WatchCatalogue

    folders = [Path(path) for path in paths]
    if all(is_run_folder(folder) for folder in folders):
        return FolderCatalogue(folders)
    if len(paths) > 1:
        odd = next(path for path, folder in zip(paths, folders, strict=True) if not is_run_folder(folder))
        raise UsageError(f"{odd} is not the folder of a run; of several folders, simulate --log must have written each")
    if folders[0].is_file():
        raise UsageError(
            f"{paths[0]} is a file; name the folder of a run (simulate --log DIR) or a lake (compare, sweep); of a "
            "recording make a lake first: earshot watch SPOOL_DIR --out LAKE --once"
        )
    if "://" not in paths[0] and is_spool(paths[0]):
        raise UsageError(
            f"{paths[0]} is a spool, which live nodes recorded; make a lake of it first: "
            f"earshot watch {paths[0]} --out LAKE --once, then earshot view LAKE"
        )
    if "://" not in paths[0] and not folders[0].is_dir():
        raise UsageError(f"there is no folder {paths[0]}; name a run (simulate --log DIR) or a lake (compare, sweep)")
    tables = ArrowLake(paths[0])
    watched = tables.partitions("watches") and chosen == Chosen()
    return WatchCatalogue(tables) if watched else LakeCatalogue(tables, chosen=chosen)


def _write(catalogue: AnswerableCatalogue, title: str, out: Path) -> None:
    from earshot.view.page import write_page

    entry, *others = catalogue.worlds()
    document = catalogue.document(title, entry, MOST_ANSWERS, MOST_HOPS)
    write_page(out, document)
    runs = ", ".join(run.title for run in entry.runs)
    click.echo(f"{out}: {entry.title}: {runs} ({len(document.encode()) / 1e6:.1f} MB)")
    if others:
        click.echo(f"also in {title}: {len(others)} other scenarios or seeds; choose with --scenario, --seed or --run")


def _serve(catalogue: AnswerableCatalogue, title: str, port: int, no_browser: bool) -> None:
    from earshot.view.server import PageServer

    with PageServer(catalogue, title, port) as server:
        click.echo(f"{server.address}  (Ctrl-C ends)")
        if not no_browser:
            webbrowser.open(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
