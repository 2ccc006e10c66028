"""Keeping: a page as one file, with the scenes and plays in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlencode

from earshot.errors import UsageError
from earshot.view.catalogue import SceneEntry
from earshot.view.page import page
from earshot.view.runs import Play
from earshot.view.world import Scene

Fetch = Callable[[str], Scene]
FetchPlay = Callable[[str, str], Play]


def whole_page(title: str, entries: Iterable[SceneEntry], scene: Fetch, play: FetchPlay, most_hops: int | None) -> str:
    """The document with all of those scenes and plays in it."""
    entries = list(entries)
    data: dict[str, bytes] = {}
    for entry in entries:
        of = scene(entry.key)
        data[f"/scene?{urlencode({'scene': entry.key})}"] = of.packed()
        for one in entry.plays:
            address = f"/play?{urlencode({'scene': entry.key, 'play': one.key})}"
            data[address] = play(entry.key, one.key).packed(of, most_hops)
    return page(title, [entry.as_json() for entry in entries], data, served=False)


def write_page(to: Path, document: str) -> Path:
    """The file is there whole or not at all."""
    draft = to.with_name(f".{to.name}.draft")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(document, "utf-8")
        draft.replace(to)
    except OSError as error:
        raise UsageError(f"cannot write {to}: {error.strerror}") from None
    return to
