"""A report as a value: sections of words, figures and tables, and the one self-contained HTML page of it."""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from earshot.pipeline.reports.svg import COLOURS, Mark
from earshot.view.page import write_page


@dataclass(frozen=True)
class PageLink:
    """A cell that is a link; in a download, the link's address."""

    words: str
    href: str

    def __str__(self) -> str:
        return self.href


@dataclass(frozen=True)
class PageCell:
    """A cell that shows more than its value."""

    value: Any
    "What a download holds, and what the column is sorted by."
    words: str = ""
    "What is shown; by default the value."
    note: str = ""
    "Small, after the words: an interval, an assumption."
    mark: Mark | None = None
    drawing: str = ""
    "Inline SVG, as the charts make it."
    css: str = ""

    def __str__(self) -> str:
        return "" if self.value is None else str(self.value)


@dataclass(frozen=True)
class PageTable:
    """A table of the page; every one can be downloaded as CSV."""

    kind: ClassVar[str] = "table"
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    more: Sequence[int] = ()
    "The columns that are shown only after a click."
    less: Sequence[int] = ()
    "The columns that a phone shows only after a click."
    css: str = ""
    data: PageTable | None = None
    "What the download holds, where it is more than what is shown."

    @property
    def download(self) -> str:
        """The whole table as a data address."""
        return "data:text/csv;base64," + b64encode((self.data or self).csv().encode()).decode()

    def csv(self) -> str:
        """The table for programs."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return text.getvalue()


@dataclass(frozen=True)
class PageFigure:
    """A drawing with a title; the figures in it stand in a table behind a click."""

    kind: ClassVar[str] = "figure"
    title: str
    drawing: str = ""
    "Inline SVG, as the charts make it."
    shown: PageTable | None = None
    "The drawing, where it is a table of bars."
    phone: str = ""
    "The same for a narrow window, where it must differ."
    keys: Sequence[tuple[str, Mark, str]] = ()
    "The names in the drawing with their marks; the last text is a class of the mark's line."
    note: str = ""
    table: PageTable | None = None
    wide: bool = False
    "It takes the whole width."
    extra: str = ""
    "Inline SVG that explains the drawing."
    css: str = ""


@dataclass(frozen=True)
class PageWords:
    """A paragraph, perhaps under a small heading."""

    kind: ClassVar[str] = "words"
    words: str
    heading: str = ""
    css: str = ""


@dataclass(frozen=True)
class PageVerdict:
    """The answer: a headline with the winner's mark, and the sentence behind it."""

    kind: ClassVar[str] = "verdict"
    heading: str
    headline: str
    mark: Mark | None
    words: str
    parts: Sequence[tuple[str, Mark]] = ()
    "The same in a word for each part of the question, with the winner's mark."


@dataclass(frozen=True)
class PageFold:
    """Parts that are shown after a click."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: Sequence[PageBlock]


PageBlock = PageTable | PageFigure | PageWords | PageVerdict | PageFold


@dataclass(frozen=True)
class PageSection:
    """A heading and what stands under it."""

    title: str
    words: str = ""
    blocks: Sequence[PageBlock] = ()
    note: str = ""
    "Small, beside the title."


@dataclass(frozen=True)
class ReportPage:
    """A page: sections in order."""

    title: str
    subtitle: str
    sections: Sequence[PageSection] = field(default_factory=list)

    def html(self) -> str:
        """The page, whole."""
        from jinja2 import Environment

        folder = files("earshot.pipeline.reports") / "pages"
        template = (folder / "report.html").read_text("utf-8")
        style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
        page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(template)
        return page.render(report=self, style=style, script=script, colours=COLOURS)

    def write(self, to: Path) -> Path:
        """Write the page; it appears whole or not at all."""
        return write_page(to, self.html())
