"""Quality of service: what a publisher promises about the events of a type.

The promises are attributes of an `EventType`, STEAM's list of non-functional attributes::

    EventType("Siren", {"speed": float}, {"priority": 2, "deadline_s": 0.5, "history": 3})

Attributes are texts on the wire and in records; `Quality` is their meaning. docs/quality.md says which part keeps which
promise, and where it cannot be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from msgspec import Meta

from earshot.errors import EventError, QualityError, SettingsError, nearest_name
from earshot.settings import Positive, check_bounds, read_settings

MOST_HISTORY = 100
MOST_PRIORITY = 7


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of service of an event type. The default promises nothing."""

    reliability: Literal["best_effort", "reliable"] = "best_effort"
    "Whether subscribers that missed an event recover it while its lifespan lasts."
    lifespan_s: Positive | None = None
    "An event is not delivered later than this after its publication."
    priority: Annotated[int, Meta(ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = 0
    "An event of higher priority leaves a node's send queue first."
    deadline_s: Positive | None = None
    "An event that is delivered later than this after its publication is reported to the subscriber."
    history: Annotated[int, Meta(ge=0, le=MOST_HISTORY)] = 0
    "A late subscriber gets this many of each publisher's last events."

    def __post_init__(self) -> None:
        check_bounds(self)

    def attributes(self) -> dict[str, str]:
        """What differs from the default, as an event type's attributes."""
        return {
            attribute.name: attribute_text(value)
            for attribute in fields(self)
            if (value := getattr(self, attribute.name)) != attribute.default
        }


NAMES = tuple(attribute.name for attribute in fields(Quality))


def quality_of(subject: str, attributes: Mapping[str, str]) -> Quality:
    """The quality that these attributes describe; attributes that are not in `Quality` are left to the application."""
    known = {name: attributes[name] for name in NAMES if name in attributes}
    if not known:
        return PLAIN
    try:
        return read_settings(Quality, known, strict=False)
    except SettingsError as error:
        raise EventError(f"{subject}: {error}") from None


PLAIN = Quality()


def attribute_text(value: Any) -> str:
    """An attribute's text on the wire and in records: equal values have equal texts."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def check_kept(subject: str, attributes: Mapping[str, str], protocol: str, kept: frozenset[str]) -> None:
    """Refuse unknown attributes, and attributes that the protocol cannot keep."""
    quality = quality_of(subject, attributes)
    for name in attributes:
        if name not in NAMES:
            raise QualityError(f"{subject}: there is no attribute {name!r}; {nearest_name(name, NAMES)}")
        if name not in kept and getattr(quality, name) != getattr(PLAIN, name):
            raise QualityError(
                f"{subject}: {protocol} cannot keep {name} = {attributes[name]}: {_REASONS[name]}; choose another "
                f"protocol, or announce the type without it"
            )


_REASONS = {
    "reliability": "its nodes have no neighbours that they could ask for missed events",
    "lifespan_s": "its nodes do not let events expire",
    "priority": "its nodes have no send queue",
    "deadline_s": "its nodes do not know how old an event is",
    "history": "its nodes have no neighbours that they could ask for past events",
}


def difference(subject: str, here: Mapping[str, Any], there: Mapping[str, Any], who: str) -> str:
    """Why two nodes refuse each other's events of one type: their attributes differ. Empty if they agree."""
    if here == there:
        return ""
    return (
        f"{subject}: {who} has {_listed(there)}, this node {_listed(here)}; all nodes must use one list of attributes "
        "for a type"
    )


def _listed(attributes: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(attributes.items())) or "no attributes"
