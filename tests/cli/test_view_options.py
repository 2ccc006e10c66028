"""What `earshot view` looks for and where it puts it, without a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from earshot.cli import earshot, view
from earshot.pipeline.reports.lake_replays import Chosen


class Catalogue:
    """Worlds with runs, and what is asked of them."""

    def __init__(self, *worlds: str) -> None:
        self.entries = [
            SimpleNamespace(title=one, runs=[SimpleNamespace(title=name) for name in "ab"]) for one in worlds
        ]
        self.asked: list[Any] = []

    def worlds(self) -> list[Any]:
        return self.entries

    def document(self, title: str, entry: Any, *bounds: int) -> str:
        self.asked.append((title, entry.title, *bounds))
        return "é" * 775_000


def called(monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, *arguments: str) -> tuple[str, list[Any]]:
    """What is printed, and for which paths and choice the catalogue was opened."""
    opened: list[Any] = []
    monkeypatch.setattr(view, "_catalogue", lambda *given: opened.append(given) or catalogue)
    done = CliRunner().invoke(earshot, ["view", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout, opened


def test_a_file_has_the_first_world_and_says_what_else_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "page.html")
    many = Catalogue("city, seed 0", "city, seed 1", "town")
    printed, opened = called(
        monkeypatch, many, "runs/one/", "lake", "--out", out, "--run", "3f", "--scenario", "city", "--seed", "0",
        "--protocols", "cbf, gossip",
    )  # fmt: skip
    assert opened == [(("runs/one/", "lake"), Chosen("3f", "city", 0, ["cbf", "gossip"]))]
    assert many.asked == [("one, lake", "city, seed 0", 20_000, 2_000_000)]
    assert printed.splitlines() == [
        f"{out}: city, seed 0: a, b (1.6 MB)",
        "also in one, lake: 2 other scenarios or seeds; choose with --scenario, --seed or --run",
    ]
    assert Path(out).read_text(encoding="utf-8") == "é" * 775_000


def test_without_choices_everything_is_chosen_and_one_world_needs_no_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "page.html")
    printed, opened = called(monkeypatch, Catalogue("town"), "/", "--out", out)
    assert opened == [(("/",), Chosen(None, None, None, None))]
    assert printed == f"{out}: town: a, b (1.6 MB)\n"


def test_a_page_is_served_at_any_free_port_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr(view, "_serve", lambda _, *given: served.append(given))
    called(monkeypatch, Catalogue("town"), "s3://bucket/lake")
    called(monkeypatch, Catalogue("town"), "lake", "--port", "65535", "--no-browser")
    assert served == [("lake", 0, False), ("lake", 65535, True)]
