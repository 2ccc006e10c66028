"""Results in the terminal: paragraphs, tables and JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import click

WIDTH = 100
"Of a line of text, in characters."


def print_json(value: Any) -> None:
    """Print a whole result as JSON, indented."""
    click.echo(json.dumps(value, indent=2))


def warn(doubts: Iterable[str]) -> None:
    """What is probably wrong, on standard error."""
    for doubt in doubts:
        click.echo(f"warning: {doubt}", err=True)


def print_words(words: str, indent: int = 0) -> None:
    """Print a paragraph in lines of at most `WIDTH` characters."""
    for line in textwrap.wrap(words, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent):
        click.echo(line)


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print columns as wide as their content, numbers aligned to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max([len(name), *(len(row[i]) for row in texts)]) for i, name in enumerate(header)]
    right = [bool(texts) and all(_is_number(row[i]) for row in texts) for i in range(len(header))]
    for line in aligned([list(header), ["-" * width for width in widths], *texts], right):
        click.echo(line)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Rows as lines with columns of equal width; `right` says which columns are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if end else cell.ljust(width) for cell, width, end in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _is_number(text: str) -> bool:
    return text in ("", "-") or text[0].isdigit() or (text[0] in "-+" and text[1:2].isdigit())
