"""Plots for papers: a metric against a swept key, one line for each protocol, with intervals over the seeds.

Reads a lake without Spark. Drawn by matplotlib (`earshot[plots]`) as SVG, PDF or PNG, at the widths of a paper's
columns; the same points as CSV.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot.errors import UnknownName, UsageError
from earshot.pipeline.campaigns.intervals import AMOUNT, Figure, figure_of
from earshot.pipeline.campaigns.leaderboard import COLUMN
from earshot.pipeline.campaigns.swept_keys import run_columns
from earshot.settings import unit_of

if TYPE_CHECKING:
    from earshot.pipeline.lake.arrow_lake import ArrowLake

FORMATS = (".svg", ".pdf", ".png", ".html")
WIDTHS_CM = {"column": 8.8, "text": 17.8}
"One column and the whole width of a two-column page."
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"Okabe and Ito's: they differ for colour-blind readers too."
MARKERS = "osD^v<>P"


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One point of a line: where, and the metric over the seeds."""

    line: str
    x: float | str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Plot:
    """What is drawn."""

    x: str
    y: str
    by: str
    points: tuple[PlotPoint, ...]

    def csv(self) -> str:
        """The points as CSV: one line for each point."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow((self.by, self.x, self.y, "low", "high", "seeds"))
        for point in self.points:
            bounds = [_shown(value) for value in (point.figure.mean, point.figure.low, point.figure.high)]
            writer.writerow((point.line, _shown(point.x), *bounds, point.figure.seeds))
        return text.getvalue()


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else "" if math.isnan(value) else f"{value:.12g}"


def read_plot(lake: ArrowLake, x: str, y: str, by: str, where: Mapping[str, str] | None = None) -> Plot:
    """The points of a plot from everything that is done in a lake."""
    rows = [row for row in run_columns(lake.read("runs").to_pylist()) if row["status"] == "done"]
    if not rows:
        raise UsageError("no run in the lake is done; run a campaign first: earshot sweep CAMPAIGN.toml")
    names = sorted({name for row in rows for name in row} - {"error", "traceback", "status", "changed", "base"})
    for name in (x, by, *(where or {})):
        if name not in names:
            raise UnknownName("column of runs", name, names)
    for name, value in (where or {}).items():
        rows = [row for row in rows if str(row.get(name)) == value]
        if not rows:
            raise UsageError(f"no run that is done has {name} = {value}")
    values = _values(lake, y)
    seeds: dict[tuple[str, Any], dict[int, float]] = {}
    for row in rows:
        if row["run"] not in values or row.get(x) is None:
            continue
        place = (str(row.get(by)), row[x] if isinstance(row[x], int | float) else str(row[x]))
        if row["seed"] in seeds.setdefault(place, {}):
            raise UsageError(
                f"several runs have {by} = {place[0]}, {x} = {place[1]} and seed {row['seed']}; "
                "distinguish them with --by variant, or choose some with --where NAME=VALUE; where only their code "
                "differs, give the campaign another name before the sweep, and --where campaign=NAME"
            )
        seeds[place][row["seed"]] = values[row["run"]]
    if not seeds:
        raise UsageError(f"no run that is done has a value of {x!r} and of the metric {y!r}")
    bounds = COLUMN[y].bounds if y in COLUMN else AMOUNT
    order = sorted(seeds, key=lambda place: (place[0], isinstance(place[1], str), place[1]))
    return Plot(x, y, by, tuple(PlotPoint(line, at, figure_of(seeds[line, at], bounds)) for line, at in order))


def _values(lake: ArrowLake, metric: str) -> dict[str, float]:
    """The metric of each run, of the whole run."""
    import pyarrow.compute as pc

    whole = lake.read("metrics")
    whole = whole.filter(pc.equal(whole["by"], "all"))
    known = sorted(set(whole["metric"].to_pylist()))
    if metric not in known:
        raise UnknownName("metric in the lake", metric, known)
    rows = whole.filter(pc.equal(whole["metric"], metric)).select(["run", "value"]).to_pylist()
    return {row["run"]: row["value"] for row in rows}


def draw_plot(plot: Plot, out: Path, width: str = "column", title: str = "") -> None:
    """Draw the plot into a file, by the file's ending."""
    if out.suffix not in FORMATS:
        raise UsageError(f"--out {out}: the name ends in {', '.join(FORMATS)}")
    try:
        import matplotlib
    except ImportError:
        raise UsageError("drawing needs matplotlib; run: pip install 'earshot[plots]'") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    wide = WIDTHS_CM[width] / 2.54
    style: dict[Any, Any] = {
        "font.size": 8, "axes.labelsize": 8, "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7,
        "font.family": "serif", "axes.linewidth": 0.6, "lines.linewidth": 1.0, "lines.markersize": 3.5,
        "svg.hashsalt": "earshot", "svg.fonttype": "path", "pdf.fonttype": 42, "savefig.dpi": 300,
    }  # fmt: skip
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(wide, 0.68 * min(wide, 10 / 2.54)), layout="constrained")
        texts = [str(point.x) for point in plot.points]
        named = any(isinstance(point.x, str) for point in plot.points)
        places = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        for number, line in enumerate(dict.fromkeys(point.line for point in plot.points)):
            points = [point for point in plot.points if point.line == line]
            at = [places[str(point.x)] if named else float(point.x) for point in points]
            means = [point.figure.mean for point in points]
            below = [0.0 if math.isnan(point.figure.low) else point.figure.mean - point.figure.low for point in points]
            above = [
                0.0 if math.isnan(point.figure.high) else point.figure.high - point.figure.mean for point in points
            ]
            axes.errorbar(
                at, means, [below, above], label=line, capsize=2, elinewidth=0.7,
                color=COLOURS[number % len(COLOURS)], marker=MARKERS[number % len(MARKERS)],
                linestyle=("-", "--", ":", "-.")[number // len(COLOURS) % 4],
            )  # fmt: skip
        if named:
            axes.set_xticks(list(places.values()), list(places))
        axes.set_xlabel(_with_unit(plot.x))
        axes.set_ylabel(COLUMN[plot.y].title if plot.y in COLUMN else _with_unit(plot.y))
        if title:
            axes.set_title(title, fontsize=8)
        axes.grid(linewidth=0.3, alpha=0.6)
        if len({point.line for point in plot.points}) > 1:
            axes.legend(frameon=False)
        if out.suffix == ".html":
            drawn = io.StringIO()
            figure.savefig(drawn, format="svg", metadata={"Date": None})
            picture = drawn.getvalue()
            out.write_text(f"<!doctype html>\n<meta charset='utf-8'>\n{picture[picture.index('<svg') :]}", "utf-8")
        else:
            dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[out.suffix]
            figure.savefig(out, metadata=dated)
        pyplot.close(figure)


def _with_unit(name: str) -> str:
    last = name.rpartition(".")[2]
    unit = unit_of(last)
    words = last.replace("_", " ")
    if not unit:
        return words
    for ending in ("per_s", "m_s", "m", "s", "bytes", "bps"):
        if last.endswith(f"_{ending}"):
            words = last.removesuffix(f"_{ending}").replace("_", " ")
            break
    return f"{words} ({unit})"
