"""The report: one self-contained HTML page out of a lake, readable on a phone and in print.

Spark aggregates; what arrives here is small. Figures are Plotly's, its library is in the page, so
the page opens without a network.
"""

from __future__ import annotations

import csv
import io
import textwrap
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot.pipeline.campaigns.board_text import columns_with_figures, heading, number, point_words, verdict_words
from earshot.pipeline.campaigns.board_text import ranking_table as cells_of
from earshot.pipeline.campaigns.leaderboard import COLUMNS, BoardRow, KeyedRow, Ranking, keyed_rows, leaderboard

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from pyspark.sql import DataFrame

    from earshot.pipeline.lake.lake import Lake

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c510a", "#000000")
"The colours of Okabe and Ito, which colour-blind people can distinguish."
TITLE_WIDTH = 58
"Characters of a figure's title in a line: what half a page holds."


@dataclass(frozen=True)
class PageLink:
    """A cell that is a link; in a download, the link's address."""

    words: str
    href: str

    def __str__(self) -> str:
        return self.href


@dataclass(frozen=True)
class PageTable:
    """A table of the page; every one can be downloaded as CSV."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    @property
    def download(self) -> str:
        """The whole table as a data address."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return "data:text/csv;base64," + b64encode(text.getvalue().encode()).decode()


@dataclass(frozen=True)
class PageSection:
    """A heading, words, figures and tables."""

    title: str
    words: str = ""
    figures: Sequence[str] = ()
    tables: Sequence[PageTable] = ()


@dataclass(frozen=True)
class ReportPage:
    """A page: sections in order."""

    title: str
    subtitle: str
    sections: Sequence[PageSection] = field(default_factory=list)

    def html(self) -> str:
        """The page, whole."""
        from jinja2 import Environment
        from plotly.offline import get_plotlyjs

        template = (files("earshot.pipeline.reports") / "pages" / "report.html").read_text("utf-8")
        page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(template)
        with_figures = any(section.figures for section in self.sections)
        return page.render(report=self, plotly=get_plotlyjs() if with_figures else "")


def write_report(lake: Lake, to: Path, runs: Sequence[str] | None = None) -> Path:
    """Write the report on those runs, or on all in the lake; the page appears whole or not at all."""
    from pyspark.sql import functions as F

    from earshot.pipeline.campaigns.flow import runs_and_metrics
    from earshot.pipeline.reports.replay_files import write_replays

    chosen, metrics = runs_and_metrics(lake, runs)
    drawn = chosen.groupBy("scenario").agg(F.min("workload").alias("workload")).limit(3).collect()
    workloads = [row["workload"] for row in drawn]
    positions = lake.read_or_empty("positions").where(F.col("trace").isin(workloads))
    done = [row["run"] for row in chosen.where("status = 'done'").select("run").collect()]
    replays = write_replays(lake, to, done) if done else {}
    page = lake_report(chosen, metrics, positions, replays=replays).html()
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = to.with_name(f".{to.name}.draft")
    draft.write_text(page, "utf-8")
    draft.replace(to)
    return to


def lake_report(
    runs: DataFrame,
    metrics: DataFrame,
    positions: DataFrame | None = None,
    replays: Mapping[str, str] | None = None,
) -> ReportPage:
    """The page about a lake: leaderboard, a figure for each metric, over time, by type, the map,
    and where the replays of its runs are."""
    board = leaderboard(runs, metrics)
    sections = [
        PageSection(
            f"Leaderboard: {point_words(ranking.point)} on {ranking.point.network}",
            verdict_words(ranking),
            tables=[leader_table(ranking)],
        )
        for ranking in board.rankings
    ]
    sections.append(PageSection("Each metric", figures=[figure_html(figure) for figure in metric_figures(board.rows)]))
    shown = ("delivery_ratio", "precision", "latency_p50_s")
    over_time = grouped_figures(keyed_rows(runs, metrics, "minute", shown), "minute of publication", "lines")
    sections.append(PageSection("Over time", figures=over_time))
    by_type = grouped_figures(keyed_rows(runs, metrics, "type", shown), "event type", "bars")
    sections.append(PageSection("By event type", figures=by_type))
    sections.append(PageSection("What was lost, and why", tables=[drops_table(keyed_rows(runs, metrics, "reason"))]))
    if positions is not None:
        sections.append(
            PageSection("The network's map", figures=[figure_html(figure) for figure in map_figures(positions)])
        )
    sections.append(PageSection("Runs", tables=[runs_table(runs, replays or {})]))
    done = sum(row["count"] for row in runs.where("status = 'done'").groupBy("status").count().collect())
    return ReportPage("Earshot report", f"{done} runs, {len(board.rankings)} points", _with_content(sections))


def _with_content(sections: Iterable[PageSection]) -> list[PageSection]:
    return [section for section in sections if section.figures or any(table.rows for table in section.tables)]


def leader_table(ranking: Ranking) -> PageTable:
    """One line a protocol, best first; means over seeds with 95 % confidence intervals."""
    header, rows = cells_of(ranking)
    note = "Mean over seeds ± half of the 95 % confidence interval; ≈ marks what ties with the column's best."
    return PageTable("leaderboard", header, rows, note)


def metric_figures(rows: Sequence[BoardRow]) -> list[go.Figure]:
    """One figure per metric, with a bar for each protocol, grouped by point."""
    import plotly.graph_objects as go

    variants = sorted({row.variant for row in rows})
    one_point = len({row.point for row in rows}) == 1
    figures = []
    for column in columns_with_figures(rows):
        figure = _blank(column.title, heading(column))
        for i, variant in enumerate(variants):
            own = [row for row in rows if row.variant == variant and column.metric in row.figures]
            found = [row.figures[column.metric] for row in own]
            figure.add_trace(
                go.Bar(
                    name=variant,
                    x=[row.variant if one_point else point_words(row.point) for row in own],
                    y=[each.mean for each in found],
                    error_y={
                        "type": "data",
                        "array": [each.high - each.mean if each.has_interval else 0 for each in found],
                        "arrayminus": [each.mean - each.low if each.has_interval else 0 for each in found],
                    },
                    marker_color=COLOURS[i % len(COLOURS)],
                    showlegend=not one_point,
                )
            )
        figures.append(figure)
    return figures


def grouped_figures(rows: Sequence[KeyedRow], key_title: str, style: str) -> list[str]:
    """A figure by the rows' key, for each point and metric."""
    import plotly.graph_objects as go

    titles = {column.metric: column.title for column in COLUMNS}
    figures = []
    for point in dict.fromkeys(row.point for row in rows):
        for metric in titles:
            own = [row for row in rows if row.point == point and metric in row.figures]
            if len({row.key for row in own}) < 2:
                continue
            title = f"{titles[metric]} by {key_title}: {point_words(point)} on {point.network}"
            figure = _blank(title, titles[metric], key_title)
            for i, variant in enumerate(sorted({row.variant for row in own})):
                line = [(_sortable(row.key), row.figures[metric].mean) for row in own if row.variant == variant]
                x, y = [at for at, _ in line], [mean for _, mean in line]
                colour = COLOURS[i % len(COLOURS)]
                figure.add_trace(
                    go.Scatter(name=variant, x=x, y=y, mode="lines+markers", line_color=colour)
                    if style == "lines"
                    else go.Bar(name=variant, x=x, y=y, marker_color=colour)
                )
            figures.append(figure_html(figure))
    return figures


def _sortable(key: str) -> int | str:
    return int(key) if key.lstrip("-").isdigit() else key


def drops_table(rows: Sequence[KeyedRow]) -> PageTable:
    """The number of drops per run, by protocol and reason."""
    lines = [
        [point_words(row.point), row.point.network, row.variant, row.key, number(row.figures["drops"])] for row in rows
    ]
    return PageTable("drops", ["scenario", "network", "protocol", "reason", "drops a run"], lines)


def runs_table(runs: DataFrame, replays: Mapping[str, str]) -> PageTable:
    """Every run; a failed one with its error, one that has a replay with a link to it."""
    names = ["run", "scenario", "variant", "seed", "status", "took_s", "error"]
    rows = [
        [
            row["run"],
            row["scenario"],
            row["variant"],
            row["seed"],
            row["status"],
            f"{row['took_s']:.2f}",
            PageLink("replay", replays[row["run"]]) if row["run"] in replays else "",
            row["error"] or "",
        ]
        for row in runs.select(*names).orderBy("scenario", "variant", "seed").collect()
    ]
    header = ["run", "scenario", "protocol", "seed", "status", "took (s)", "replay", "error"]
    note = "Any run can be looked at: earshot view LAKE --run ID." if replays else ""
    return PageTable("runs", header, rows, note)


def map_figures(positions: DataFrame, most: int = 3) -> list[go.Figure]:
    """The trajectories of the nodes of each trace, sampled down to what a page can hold."""
    import plotly.graph_objects as go
    from pyspark.sql import functions as F

    figures = []
    traces = [row["trace"] for row in positions.select("trace").distinct().orderBy("trace").limit(most).collect()]
    for trace in traces:
        own = positions.where(F.col("trace") == trace)
        nodes = [row["node"] for row in own.select("node").distinct().orderBy("node").limit(200).collect()]
        sampled = own.where(F.col("node").isin(nodes)).select("node", "time", "x_m", "y_m")
        rows = sampled.orderBy("node", "time").limit(20_000).collect()
        figure = _blank(f"trajectories of {len(nodes)} nodes: {trace}", "y (m)", "x (m)")
        by_node: dict[str, list[Any]] = {}
        for row in rows:
            by_node.setdefault(row["node"], []).append(row)
        for node, seen in by_node.items():
            x, y = [row["x_m"] for row in seen], [row["y_m"] for row in seen]
            marks = {"mode": "lines" if len(seen) > 1 else "markers", "line": {"width": 1}, "opacity": 0.6}
            figure.add_trace(go.Scattergl(x=x, y=y, name=node, showlegend=False, **marks))
        figure.update_yaxes(scaleanchor="x", scaleratio=1)
        figure.update_layout(height=520)
        figures.append(figure)
    return figures


def _blank(title: str, y_title: str, x_title: str = "") -> go.Figure:
    import plotly.graph_objects as go

    lines = textwrap.wrap(title, TITLE_WIDTH) or [""]
    figure = go.Figure()
    figure.update_layout(
        title={"text": "<br>".join(lines), "font": {"size": 14}, "x": 0.02, "xanchor": "left"},
        template="plotly_white",
        height=360 + 18 * (len(lines) - 1),
        margin={"l": 60, "r": 20, "t": 50 + 18 * (len(lines) - 1), "b": 50},
        legend={"orientation": "h", "y": -0.2},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    figure.update_xaxes(title=x_title)
    figure.update_yaxes(title=y_title, rangemode="tozero")
    return figure


def figure_html(figure: go.Figure) -> str:
    """The figure as a piece of the page; the library itself stands in the page once."""
    return str(
        figure.to_html(full_html=False, include_plotlyjs=False, config={"responsive": True, "displayModeBar": False})
    )


def line_figure(
    title: str, x_title: str, y_title: str, lines: Sequence[Mapping[str, Any]], log_x: bool = False
) -> go.Figure:
    """Lines with intervals: the figures of the studies. A line is {name, x, y, low, high, paper}."""
    import plotly.graph_objects as go

    figure = _blank(title, y_title, x_title)
    for i, line in enumerate(lines):
        colour = COLOURS[i % len(COLOURS)]
        error = None
        if line.get("high"):
            over = [high - y for high, y in zip(line["high"], line["y"], strict=True)]
            error = {"type": "data", "array": over, "thickness": 1}
        figure.add_trace(
            go.Scatter(
                name=line["name"],
                x=list(line["x"]),
                y=list(line["y"]),
                error_y=error,
                mode="markers" if line.get("paper") else "lines+markers",
                marker={"color": colour, "symbol": "diamond-open" if line.get("paper") else "circle", "size": 9},
                line={"color": colour},
            )
        )
    if log_x:
        figure.update_xaxes(type="log")
    return figure
