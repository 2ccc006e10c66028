"""A claim that holds could have failed: a named mutation of the protocol turns its verdict."""

from __future__ import annotations

from collections.abc import Callable

from earshot.studies.study import Claims, Rows


def flips(
    claims: Claims,
    start: str,
    measure: Callable[[], Rows],
    mutate: Callable[[], None],
    reading: str = "",
    before: Rows | None = None,
) -> None:
    """The one claim that starts with these words names a mutation, holds as measured, and does not hold after it: in
    its most natural reading, or in the one reading that starts with the words of `reading`. Where several mutations
    start from the same rows, `before` has them."""
    (claim,) = [claim for claim in claims if claim.claim.startswith(start)]
    assert claim.fails_if

    def verdict(rows: Rows) -> bool | None:
        first, *others = claim.judge(rows).readings
        if not reading:
            return first.holds
        (chosen,) = [one for one in (first, *others) if one.reading.startswith(reading)]
        return chosen.holds

    assert verdict(measure() if before is None else before) is True
    mutate()
    assert verdict(measure()) is False
