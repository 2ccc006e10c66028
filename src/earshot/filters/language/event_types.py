"""Event types with levels, as topics have them, and wildcards for levels: `traffic/*/jam`, `traffic/**`.

In a type with slashes, a level `*` stands for any one level and `**` for any number of levels, also for none.
A type without slashes is taken as it is.
"""

from __future__ import annotations

from functools import lru_cache

ONE, ANY_NUMBER = "*", "**"


def is_type_pattern(type: str) -> bool:
    """Whether the type stands for several types."""
    return "/" in type and not {ONE, ANY_NUMBER}.isdisjoint(type.split("/"))


@lru_cache(maxsize=1 << 14)
def type_matches(wanted: str, type: str) -> bool:
    """Whether an event of this type is of the wanted type or kind of types."""
    return wanted == type if not is_type_pattern(wanted) else _reads(wanted.split("/"), type.split("/"), False)


@lru_cache(maxsize=1 << 14)
def type_includes(general: str, special: str) -> bool:
    """True only if every type that `special` stands for is one that `general` stands for."""
    if general == special:
        return True
    return is_type_pattern(general) and _reads(general.split("/"), special.split("/"), is_type_pattern(special))


def _reads(pattern: list[str], levels: list[str], wild: bool) -> bool:
    """Whether the pattern can be read as the levels. With `wild`, a wildcard among the levels is read only by a
    wildcard that stands for as much."""
    places = _skipping({0}, pattern)
    for level in levels:
        many = wild and level == ANY_NUMBER
        after = {at for at in places if at < len(pattern) and pattern[at] == ANY_NUMBER}
        if not many:
            after |= {at + 1 for at in places if at < len(pattern) and pattern[at] in (ONE, level)}
        places = _skipping(after, pattern)
    return len(pattern) in places


def _skipping(places: set[int], pattern: list[str]) -> set[int]:
    """The places, and those behind a `**` that stands for no level."""
    found = set(places)
    for at in sorted(places):
        while at < len(pattern) and pattern[at] == ANY_NUMBER:
            at += 1
            found.add(at)
    return found
