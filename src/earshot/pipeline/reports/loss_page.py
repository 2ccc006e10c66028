"""The report's part about lost deliveries: by cause and reason, and on a map."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from earshot.pipeline.campaigns.leaderboard import BoardRow
from earshot.pipeline.reports.charts import AreaCell, Track, area_map, ground_of, stacked
from earshot.pipeline.reports.formats import amount, percent
from earshot.pipeline.reports.losses import CAUSES, DROPPED, HEARD, NEVER_HEARD, NEVER_SENT, LossCount
from earshot.pipeline.reports.marks import Mark
from earshot.pipeline.reports.page import PageBlock, PageCell, PageFigure, PageFold, PageTable, PageWords
from earshot.records.drop_reasons import sentence_of

STYLES = {"lost": "lost", "needed carrying": "carrying", "impossible": "impossible"}
"In the order of the bars: the protocol's own fault first."
MOST_REASONS = 3
_MAP = "By where events were published: the darker a square, the larger the lost share of its expected deliveries."


@dataclass(frozen=True)
class RowLosses:
    """What one row of a leaderboard lost, in all of its runs together."""

    row: BoardRow
    counts: Sequence[LossCount]

    @property
    def expected(self) -> int:
        return sum(one.pairs for one in self.counts)

    def missed(self, cause: str | None = None) -> int:
        """Pairs that were not delivered, of this cause or of any."""
        return sum(one.pairs for one in self.counts if one.cause and cause in (None, one.cause))

    def reasons(self) -> list[tuple[str, int]]:
        """Why the protocol lost what was reachable, the most frequent first."""
        found: dict[str, int] = defaultdict(int)
        for one in self.counts:
            if one.cause in ("lost", "needed carrying"):
                found[one.reason] += one.pairs
        return sorted(found.items(), key=lambda reason: (-reason[1], reason[0]))

    def cells(self) -> list[AreaCell]:
        """By the square of publication."""
        expected: dict[tuple[float, float], int] = defaultdict(int)
        lost: dict[tuple[float, float], int] = defaultdict(int)
        for one in self.counts:
            if one.x_m is not None and one.y_m is not None:
                expected[one.x_m, one.y_m] += one.pairs
                lost[one.x_m, one.y_m] += one.pairs if one.cause else 0
        return [AreaCell(*place, expected[place], lost[place]) for place in sorted(expected)]


def losses_of(rows: Iterable[BoardRow], counts: Iterable[LossCount]) -> list[RowLosses]:
    """The losses of each row, in the rows' order."""
    by_run: dict[str, list[LossCount]] = defaultdict(list)
    for one in counts:
        by_run[one.run].append(one)
    found = [RowLosses(row, [one for run in row.runs.values() for one in by_run[run]]) for row in rows]
    return [one for one in found if one.expected]


def loss_blocks(
    losses: Sequence[RowLosses], marks: Mapping[str, Mark], side_m: float, tracks: Sequence[Track]
) -> list[PageBlock]:
    """Bars by cause with the reasons in words, the map, and every reason behind a click."""
    if not any(one.missed() for one in losses):
        return []
    blocks: list[PageBlock] = [_bars(losses, marks)]
    if maps := _maps(losses, marks, side_m, tracks):
        blocks += [PageWords(_MAP, heading="Where"), *maps]
    blocks.append(PageFold("Every reason", [reasons_table(losses, marks)]))
    return blocks


def _bars(losses: Sequence[RowLosses], marks: Mapping[str, Mark]) -> PageTable:
    most = max(one.missed() / one.expected for one in losses)
    lines = []
    for one in sorted(losses, key=lambda one: (one.missed() / one.expected, one.row.rank)):
        parts = [
            (css, f"{CAUSES[cause]}: {percent(one.missed(cause) / one.expected)}", one.missed(cause) / one.expected)
            for cause, css in STYLES.items()
        ]
        reasons = one.reasons()
        fault = sum(count for _, count in reasons)
        words = [f"{reason_words(reason)} ({percent(count / fault)})" for reason, count in reasons[:MOST_REASONS]]
        lines.append(
            [
                PageCell(one.row.variant, mark=marks[one.row.variant]),
                PageCell(one.missed() / one.expected, " ", drawing=stacked(parts, most, marks[one.row.variant])),
                PageCell(one.missed() / one.expected, percent(one.missed() / one.expected), css="number"),
                PageCell("; ".join(words), "; ".join(words) or "nothing", css="why"),
            ]
        )
    with_causes = any(one.missed("impossible") or one.missed("needed carrying") for one in losses)
    note = (
        "Solid: lost by the protocol though a path existed at once. Light: somebody had to carry the event. "
        "Dashed frame: impossible for any protocol."
    )
    return PageTable(
        "lost-deliveries",
        ["protocol", "", "lost", "why: share of what any protocol could have delivered"],
        lines,
        note if with_causes else "Share of the expected deliveries that did not happen.",
        css="bars causes",
        data=reasons_table(losses, marks),
    )


def reason_words(reason: str) -> str:
    """A reason as a sentence's part."""
    kind, _, word = reason.partition(": ")
    sentence = sentence_of(word).rstrip(".").strip()
    match kind:
        case _ if kind == NEVER_SENT:
            return "nobody sent it"
        case _ if kind == HEARD:
            return "the receiver heard it and did not deliver it"
        case _ if kind == DROPPED:
            return f"at the receiver: {sentence[:1].lower()}{sentence[1:]}"
        case _ if kind == NEVER_HEARD and word:
            return f"it never came near; on the way: {sentence[:1].lower()}{sentence[1:]}"
        case _:
            return "it never came near the receiver"


def reasons_table(losses: Sequence[RowLosses], marks: Mapping[str, Mark]) -> PageTable:
    """All causes and reasons."""
    lines = []
    for one in losses:
        found: dict[tuple[str, str], int] = defaultdict(int)
        for count in one.counts:
            if count.cause:
                found[count.cause, count.reason] += count.pairs
        for (cause, reason), pairs in sorted(found.items(), key=lambda item: -item[1]):
            lines.append(
                [
                    PageCell(one.row.variant, mark=marks[one.row.variant]),
                    CAUSES[cause],
                    PageCell(reason, reason_words(reason)),
                    PageCell(pairs / len(one.row.runs), amount(pairs / len(one.row.runs)), css="number"),
                    PageCell(pairs / one.expected, percent(pairs / one.expected), css="number"),
                ]
            )
    header = ["protocol", "cause", "reason", "lost a run", "of the expected"]
    return PageTable("lost-deliveries", header, lines)


def _maps(
    losses: Sequence[RowLosses], marks: Mapping[str, Mark], side_m: float, tracks: Sequence[Track]
) -> list[PageBlock]:
    shown = [one for one in losses if one.missed() and one.cells()]
    if not shown:
        return []
    most = max(cell.lost / cell.expected for one in shown for cell in one.cells())
    name = f"tracks-{shown[0].row.point.id}".replace(" ", "-")
    ground = ground_of((cell for one in shown for cell in one.cells()), side_m, tracks, name)
    return [
        PageFigure(
            "",
            area_map(one.cells(), side_m, ground, marks[one.row.variant], one.row.variant, most, one is shown[0]),
            keys=[(one.row.variant, marks[one.row.variant], "")],
            css="map",
        )
        for one in shown
    ]
