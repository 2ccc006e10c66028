"""Pairs of filters that differ in a token or two: near enough that one often covers the other."""

from __future__ import annotations

import re

from hypothesis import strategies as st

_TOKEN = re.compile(r"//|[<>!]=|\.\.|\"[^\"]*\"|'[^']*'|[\w.\-]+|\s+|.", re.DOTALL)
_OTHERS = (
    ("/", "//"),
    ("<", "<=", ">", ">=", "=", "!="),
    ("and", "or"),
    ("a", "b", "c", "*"),
    ("5", "10", "20", "-3", '"5"', '"jazz"', '"ja"', '"2026-01-31"', "2.5"),
    ("contains", "starts-with"),
    ("price", "name", "live", "t"),
    ("200", "50", "100", "80"),
    ("true", "false"),
    ("not(", "("),
)


@st.composite
def neighbours(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> tuple[str, str]:
    """A filter's text and the same with a token or two exchanged or left out; it may not be a filter any more."""
    text = draw(texts)
    tokens = _TOKEN.findall(text)
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.integers(0, len(tokens) - 1))
        choices = [other for kind in _OTHERS if tokens[place] in kind for other in kind]
        tokens[place] = draw(st.sampled_from(choices)) if choices else tokens[place]
    other = "".join(tokens)
    if draw(st.booleans()):
        other = re.sub(r"\[[^\[\]]*\]", "", other, count=1)
    return (text, other) if draw(st.booleans()) else (other, text)
