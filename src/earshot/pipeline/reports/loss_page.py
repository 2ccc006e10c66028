"""The report's part about lost deliveries: by cause, with the reasons in words, and on a map."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from earshot.pipeline.campaigns.leaderboard import BoardRow, KeyedRow
from earshot.pipeline.campaigns.run_figures import AREA_M
from earshot.pipeline.reports.charts import AreaCell, Track, area_map, ground_of, stacked
from earshot.pipeline.reports.page import PageBlock, PageCell, PageFigure, PageFold, PageTable, PageWords
from earshot.pipeline.reports.svg import Mark
from earshot.records.drop_reasons import sentence_of
from earshot.words import amount, percent

STYLES = {"lost": "lost by the protocol", "carrying": "needed carrying", "impossible": "impossible"}
"The parts of a bar in their order, the protocol's own fault first: the class of each, and its words."
MOST_REASONS = 3
MOST_SQUARES = 16
"A map is this number of squares wide; a larger network has larger squares."
_OF_WHAT = "Shares of the expected deliveries of all runs together; the ratios above are means over the runs."
_MAP = "By where events were published: the darker a square, the larger the lost share of its expected deliveries."


@dataclass(frozen=True)
class RowLosses:
    """What one row of a leaderboard lost, means over its seeds."""

    row: BoardRow
    expected: float
    causes: Mapping[str, float]
    "Lost deliveries by cause, as the metrics name it; the largest first."
    cells: Sequence[AreaCell]

    def share(self, style: str | None = None) -> float:
        """The share of the expected that was lost, of one part of the bar or of all."""
        lost = sum(count for cause, count in self.causes.items() if style in (None, style_of(cause)))
        return lost / self.expected if self.expected else 0.0


def style_of(cause: str) -> str:
    """Which part of a bar a cause belongs to."""
    return {"impossible": "impossible", "needed carrying": "carrying"}.get(cause, "lost")


def losses_of(rows: Iterable[BoardRow], causes: Sequence[KeyedRow], areas: Sequence[KeyedRow]) -> list[RowLosses]:
    """The losses of each row, in the rows' order."""
    found = []
    for row in rows:
        own = {keyed.key: keyed.figures["lost"].mean for keyed in causes if _is_about(keyed, row)}
        ordered = dict(sorted(own.items(), key=lambda cause: (-cause[1], cause[0])))
        cells = [cell for keyed in areas if _is_about(keyed, row) and (cell := _cell(keyed))]
        if expected := row.figures.get("expected"):
            found.append(RowLosses(row, expected.mean, ordered, cells))
    return found


def _is_about(keyed: KeyedRow, row: BoardRow) -> bool:
    return (keyed.point, keyed.variant) == (row.point, row.variant)


def _cell(area: KeyedRow) -> AreaCell | None:
    """A square from its key, the south-west corner as in `2000,-1000`."""
    if not {"expected", "lost"} <= area.figures.keys() or "," not in area.key:
        return None
    x_m, y_m = map(float, area.key.split(","))
    return AreaCell(x_m, y_m, area.figures["expected"].mean, area.figures["lost"].mean)


def loss_blocks(losses: Sequence[RowLosses], marks: Mapping[str, Mark], tracks: Sequence[Track]) -> list[PageBlock]:
    """Bars by cause with the reasons in words, the map, and every reason behind a click."""
    if not any(loss.causes for loss in losses):
        return []
    blocks: list[PageBlock] = [_bars(losses, marks)]
    if maps := _maps(losses, marks, tracks):
        blocks += [PageWords(_MAP, heading="Where"), *maps]
    blocks.append(PageFold("Every reason", [causes_table(losses, marks)]))
    return blocks


def _bars(losses: Sequence[RowLosses], marks: Mapping[str, Mark]) -> PageTable:
    most = max(loss.share() for loss in losses)
    lines = []
    for loss in sorted(losses, key=lambda loss: (loss.share(), loss.row.rank)):
        mark = marks[loss.row.variant]
        parts = [(css, f"{words}: {percent(loss.share(css))}", loss.share(css)) for css, words in STYLES.items()]
        shares = {cause: count / loss.expected for cause, count in loss.causes.items()}
        why = "; ".join(f"{cause_words(cause)} {percent(lost)}" for cause, lost in list(shares.items())[:MOST_REASONS])
        lines.append(
            [
                PageCell(loss.row.variant, mark=mark),
                PageCell(loss.share(), " ", drawing=stacked(parts, most, mark)),
                PageCell(loss.share(), percent(loss.share()), css="number"),
                PageCell(why, why or "nothing", css="why"),
            ]
        )
    note = (
        f"{_OF_WHAT} Solid: lost by the protocol though a path existed at once. "
        "Light: somebody had to carry the event. Dashed frame: impossible for any protocol."
    )
    if not any(loss.share("impossible") or loss.share("carrying") for loss in losses):
        note = _OF_WHAT
    header = ["protocol", "", "lost", "why"]
    return PageTable("lost-deliveries", header, lines, note, css="bars causes", data=causes_table(losses, marks))


def cause_words(cause: str) -> str:
    """A cause as a sentence's part."""
    kind, _, reason = cause.partition(": ")
    if kind == "dropped" and reason:
        sentence = sentence_of(reason).rstrip(".")
        return f"at the receiver: {sentence[:1].lower()}{sentence[1:]}"
    plain = {
        "heard, not delivered": "the receiver heard it and did not deliver it",
        "never heard": "it never came near the receiver",
        "never sent": "nobody sent it",
        "impossible": "no path in time",
        "needed carrying": "somebody had to carry it",
    }
    return plain.get(cause, cause)


def causes_table(losses: Sequence[RowLosses], marks: Mapping[str, Mark]) -> PageTable:
    """Every cause of every row."""
    lines = [
        [
            PageCell(loss.row.variant, mark=marks[loss.row.variant]),
            STYLES[style_of(cause)],
            PageCell(cause, cause_words(cause)),
            PageCell(count, amount(count), css="number"),
            PageCell(count / loss.expected, percent(count / loss.expected), css="number"),
        ]
        for loss in losses
        for cause, count in loss.causes.items()
    ]
    return PageTable("lost-deliveries", ["protocol", "cause", "reason", "lost a run", "of the expected"], lines)


def _maps(losses: Sequence[RowLosses], marks: Mapping[str, Mark], tracks: Sequence[Track]) -> list[PageBlock]:
    shown = [loss for loss in losses if loss.causes and loss.cells]
    if not shown:
        return []
    name = f"tracks-{shown[0].row.point.id}".replace(" ", "-")
    ground = ground_of((cell for loss in shown for cell in loss.cells), AREA_M, tracks, name)
    side_m = AREA_M * max(1, math.ceil(max(ground.wide_m, ground.high_m) / AREA_M / MOST_SQUARES))
    maps = [(loss.row.variant, merged_cells(loss.cells, side_m)) for loss in shown]
    most = max(cell.lost / cell.expected for _, cells in maps for cell in cells if cell.expected)
    return [
        PageFigure(
            "",
            area_map(cells, side_m, ground, marks[variant], variant, most, first=number == 0),
            keys=[(variant, marks[variant], "")],
            css="map",
        )
        for number, (variant, cells) in enumerate(maps)
    ]


def merged_cells(cells: Iterable[AreaCell], side_m: float) -> list[AreaCell]:
    """The same counts in squares of a larger side."""
    sums: dict[tuple[float, float], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for cell in cells:
        corner = sums[math.floor(cell.x_m / side_m) * side_m, math.floor(cell.y_m / side_m) * side_m]
        corner[0] += cell.expected
        corner[1] += cell.lost
    return [AreaCell(*corner, *counts) for corner, counts in sorted(sums.items())]
