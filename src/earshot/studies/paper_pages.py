"""A study's claims as Markdown, written into the paper's page between two marks.

`earshot reproduce STUDY --pages docs/papers` writes the tables: no number in them is copied by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from earshot.errors import UsageError
from earshot.studies.study import Judged

BEGIN, END = "<!-- claims: written by `earshot reproduce --pages` -->", "<!-- end of claims -->"
COLUMNS = ("the paper says", "where", "reading", "measured", "seeds", "95 % interval", "verdict")


def claims_text(judged: Sequence[Judged], origin: str) -> str:
    """What the table comes from, and one row a reading; then why something does not hold, and what would make the
    claims that hold fail."""
    held = sum(verdict.finding.holds is True for verdict in judged)
    failed = sum(verdict.finding.holds is False for verdict in judged)
    lines = [
        f"{len(judged)} claims: {held} hold in their most natural reading, {failed} do not, "
        f"{len(judged) - held - failed} cannot be measured here. {origin}",
        "",
        _row(COLUMNS),
        _row(["---"] * len(COLUMNS)),
    ]
    reasons, mutations = [], []
    for number, verdict in enumerate(judged, 1):
        claim = verdict.claim
        for place, reading in enumerate(verdict.finding.all_readings):
            head = (f"{number}. {claim.claim}: {claim.paper}", claim.where) if place == 0 else ("", "")
            seeds = str(reading.seeds) if reading.seeds else "-"
            lines.append(
                _row([*head, reading.reading, reading.measured, seeds, reading.interval_text, reading.verdict])
            )
            if reading.reason:
                reasons.append(f"- {number}, {reading.reading}: {reading.reason}.")
        if claim.fails_if and any(reading.holds for reading in verdict.finding.all_readings):
            mutations.append(f"- {number} fails if {claim.fails_if}.")
    if reasons:
        lines += ["", "Why:", "", *reasons]
    if mutations:
        lines += ["", "What would make those that hold fail:", "", *mutations]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def pages_of(folder: Path, studies: Iterable[str]) -> dict[str, Path | None]:
    """The page of each study; None for a page without marks, which is left as it is."""
    pages = {name: folder / f"{name}.md" for name in studies}
    found = {name: page if _around_claims(page) else None for name, page in pages.items()}
    if not any(found.values()):
        named = ", ".join(map(str, pages.values()))
        raise UsageError(f"no place for the claims in {named}: write {BEGIN!r} and {END!r} where they belong")
    return found


def write_claims(page: Path, judged: Sequence[Judged], origin: str) -> None:
    """Replace what stands between the page's marks."""
    around = _around_claims(page)
    if around is None:
        raise UsageError(f"{page} has no place for the claims: write {BEGIN!r} and {END!r} where they belong")
    before, after = around
    page.write_text(f"{before}{BEGIN}\n{claims_text(judged, origin)}\n{END}{after}", "utf-8")


def _around_claims(page: Path) -> tuple[str, str] | None:
    """The text before and after the marks; None if the page or one of its marks is missing."""
    text = page.read_text("utf-8") if page.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return (before, after) if begin and end else None
