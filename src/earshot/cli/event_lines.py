"""Events and crossings as one line each, also if a peer put control characters into them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from earshot.errors import EarshotError

if TYPE_CHECKING:
    from earshot.events import Event
    from earshot.live import FenceCrossing


def _moment(time: float) -> str:
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time:g}s"


def crossing_line(crossing: FenceCrossing) -> str:
    """A crossing on one line: `enter ambulance-7 Siren`, `nearby bus-3`."""
    words = (crossing.what, _shown(crossing.peer), _shown(crossing.event_type) if crossing.event_type else "")
    return _escaped(f"{_moment(crossing.time)} {' '.join(words).rstrip()}")


def event_line(event: Event) -> str:
    """An event on one line, also if a peer put control characters into it."""
    from earshot.events import Element

    moment = _moment(event.time)
    if isinstance(event.content, Element):
        try:
            content = " ".join(event.to_xml().decode().split())
        except EarshotError:
            content = _shown(event.content.text)
    else:
        content = " ".join(f"{_shown(name)}={_shown(value)}" for name, value in event.content.items())
    where = "" if event.position is None else f" at {event.position}"
    verified = " (verified)" if event.verified else ""
    late = f" (late by {event.late_s:.3f} s)" if event.late_s else ""
    return _escaped(f"{moment} {_shown(event.source)} {_shown(event.type)} {content}{where}{verified}{late}")


def _shown(value: object) -> str:
    """A value as one word; quoted if it would look like several."""
    text = str(value)
    plain = text and not any(sign.isspace() or sign in '="' for sign in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _escaped(text: str) -> str:
    """The text with control characters, line ends and the like as escapes: it stays on one line."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def event_json(event: Event) -> str:
    """An event as JSON on one line, and whether its signature is valid; without its content if JSON cannot hold it."""
    try:
        here = {"verified": event.verified, **({"late_s": event.late_s} if event.late_s else {})}
        line = json.dumps({**json.loads(event.to_json()), **here}, ensure_ascii=False)
        return line if line.isprintable() else json.dumps(json.loads(line))
    except EarshotError as error:
        values = {"type": event.type, "id": event.id, "source": event.source, "time": event.time}
        return json.dumps({**values, "unreadable": str(error)})
