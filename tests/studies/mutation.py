"""A claim that holds could have failed: a named mutation of the protocol turns its verdict."""

from __future__ import annotations

from collections.abc import Callable

from earshot.studies.study import Claims, Rows


def flips(claims: Claims, start: str, measure: Callable[[], Rows], mutate: Callable[[], None]) -> None:
    """The one claim that starts with these words names a mutation, holds as measured, and does not hold after it."""
    (claim,) = [claim for claim in claims if claim.claim.startswith(start)]
    assert claim.fails_if
    assert claim.judge(measure()).holds is True
    mutate()
    assert claim.judge(measure()).holds is False
