"""Figures of the user's own in the report: a function from the runs and their metrics to a drawing.

A plug-in of the kind `figures` is a `ReportFigure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earshot.plugins import PluginError, named

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the user's own."""

    name: str
    draw: Callable[[Rows], str]
    """From runs that are done, each a dictionary with the columns of `runs`, its swept keys, its settings and, under
    `metrics`, the figures of the whole run by name, to an SVG text; "" where there is nothing to draw."""
    title: str = ""
    note: str = ""
    "A sentence below."


def named_figures(names: Iterable[str]) -> dict[str, ReportFigure]:
    """The figures of these names."""
    return {name: named("figures", name, {}, _checked) for name in names}


def _checked(name: str, value: Any) -> ReportFigure:
    if not isinstance(value, ReportFigure):
        raise PluginError(
            f"{name} is not a figure: make a ReportFigure of it (from earshot.pipeline import ReportFigure)"
        )
    return value


def drawn_figures(figures: Mapping[str, ReportFigure], rows: Rows) -> list[tuple[ReportFigure, str]]:
    """Each figure with its drawing; those that have nothing to draw are left out."""
    found = []
    for name, figure in figures.items():
        try:
            drawing = figure.draw(rows)
        except Exception as error:
            raise PluginError(f"{name} could not be drawn: {type(error).__name__}: {error}") from error
        if not isinstance(drawing, str) or (drawing and "<svg" not in drawing[:2000]):
            raise PluginError(f"{name}: draw() must return an SVG text, got a {type(drawing).__name__}")
        if drawing:
            found.append((figure, drawing[drawing.index("<svg") :]))
    return found
