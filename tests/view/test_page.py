"""The page of a replay as a document and as a file."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from earshot.errors import UsageError
from earshot.view.page import page, whole_page, write_page
from earshot.view.runs import RunEntry, WorldEntry


def test_a_page_appears_whole_in_folders_that_are_made_for_it(tmp_path: Path) -> None:
    to = tmp_path / "new" / "folder" / "page.html"
    for text in ("first, ü", "second"):
        assert write_page(to, text) == to
        assert to.read_text("utf-8") == text
        assert [one.name for one in to.parent.iterdir()] == ["page.html"], "no draft is left"


def test_a_page_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=rf"^cannot write {tmp_path}/file/page.html: (Not a directory|File exists)$"):
        write_page(tmp_path / "file" / "page.html", "text")


@pytest.mark.parametrize("served", [True, False])
def test_a_page_holds_its_title_its_worlds_and_its_data(served: bool) -> None:
    document = page("</script> a title", [{"key": "w"}], {"/world?world=w": b"packed"}, served)
    blocks = re.findall(r'<script type="([^"]+)" data-name="([^"]*)">([^<]*)</script>', document)
    (kind, name, start), (other, address, packed) = blocks
    assert (kind, name, other) == ("application/json", "start", "application/gzip")
    assert json.loads(base64.b64decode(start)) == {
        "title": "</script> a title",
        "served": served,
        "worlds": [{"key": "w"}],
    }
    assert (base64.b64decode(address), base64.b64decode(packed)) == (b"/world?world=w", b"packed")
    assert not any(mark in document for mark in ("/*POLICY*/", "/*STYLE*/", "<!--DATA-->", "/*SCRIPT*/"))


def test_a_whole_page_has_every_world_and_run_by_its_address_with_few_enough_hops() -> None:
    asked: list[object] = []

    class Packed:
        def __init__(self, words: str) -> None:
            self.words = words

        def packed(self, *given: object) -> bytes:
            asked.append((self.words, *given))
            return self.words.encode()

    worlds = {key: Packed(f"world {key}") for key in ("a b", "c")}
    entries = [
        WorldEntry("a b", "first", [RunEntry("r&1", "one"), RunEntry("r2", "two")]),
        WorldEntry("c", "second", []),
    ]
    document = whole_page(
        "t", entries, worlds.__getitem__, lambda world, run: Packed(f"run {run} of {world}"), 70  # type: ignore[arg-type, return-value]
    )  # fmt: skip
    blocks = re.findall(r'<script type="application/gzip" data-name="([^"]*)">([^<]*)</script>', document)
    assert {base64.b64decode(name).decode(): base64.b64decode(data).decode() for name, data in blocks} == {
        "/world?world=a+b": "world a b", "/run?world=a+b&run=r%261": "run r&1 of a b", "/run?world=a+b&run=r2":
        "run r2 of a b", "/world?world=c": "world c",
    }  # fmt: skip
    assert asked[1] == ("run r&1 of a b", worlds["a b"], 70)
    (start,) = re.findall(r'data-name="start">([^<]*)</script>', document)
    reported = json.loads(base64.b64decode(start))
    assert (reported["title"], reported["served"], [world["title"] for world in reported["worlds"]]) == (
        "t",
        False,
        ["first", "second"],
    )
    assert "connect-src 'none'" in document, "a file asks nobody"
