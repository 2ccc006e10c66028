"""Parsing a filter's text: what both languages share: blanks, names, literals, limits, errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isinf
from typing import NoReturn

from earshot.errors import FilterSyntaxError, UsageError
from earshot.filters.language.syntax import And, Comparison, Condition, Or

MAX_LENGTH = 20_000
"Characters in one filter."
MAX_DEPTH = 32
"Nested steps, predicates and parentheses; evaluation recurses as deep."

_BLANKS = re.compile(r"[ \t\r\n]*")
_NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME_CHARACTERS = f"{_NAME_START}0-9.\\-\u00b7\u0300-\u036f\u203f\u2040"
_NAME = re.compile(f"[{_NAME_START}][{_NAME_CHARACTERS}]*")
"A name as XML 1.0 has it, without the colon."
_LEVELS = re.compile(f"(?:[{_NAME_START}0-9.+\\-]+|\\*\\*?)(?:/(?:[{_NAME_START}0-9.+\\-]+|\\*\\*?))+")
"An event type with levels, as in traffic/*/jam."
_NUMBER = re.compile(r"(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PLAIN_STEP = re.compile(f"({_NAME.pattern}|\\*)[ \\t\\r\\n]*([:(\\[]?)")
"A step, and what follows where it is an axis, a prefix or a call, or has predicates."
_OPERATOR = re.compile(f"!=|<=|>=|[=<>+*\\-]|(?:div|mod)(?![{_NAME_CHARACTERS}])")
_COMPARISON = re.compile(r"!=|<=|>=|=|<|>")
_STRING = re.compile(r'"[^"]*(?:""[^"]*)*"' r"|'[^']*(?:''[^']*)*'")

_BACKQUOTED = re.compile(r"`(?:[^`]|``)+`")


class Parser:
    """A place in a filter's text, and what can be read there. It skips blanks between tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0
        self._word_at = -1
        self._word: str | None = None
        if not isinstance(text, str):
            raise UsageError(f"a filter is a text, got {type(text).__name__}: {text!r:.60}")
        if len(text) > MAX_LENGTH:
            self.fail(f"a filter has at most {MAX_LENGTH:,} characters, this one {len(text):,}", 0)
        self.blanks()

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        """Refuse the text at this place, or at the one given."""
        raise FilterSyntaxError(reason, self.text, (self.at if at is None else at) + 1)

    def blanks(self) -> None:
        self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]

    @property
    def ended(self) -> bool:
        return self.at >= len(self.text)

    def sees(self, symbol: str) -> bool:
        return self.text.startswith(symbol, self.at)

    def take(self, symbol: str) -> bool:
        """Read the symbol if it is next."""
        text, at = self.text, self.at
        if not text.startswith(symbol, at):
            return False
        self.at = at = at + len(symbol)
        if text[at : at + 1].isspace():  # Most often none follow, and the check is quick.
            self.blanks()
        return True

    def expect(self, symbol: str, why: str) -> None:
        if not self.take(symbol):
            self.fail(f"expected {symbol!r} {why}, found {self.here()}")

    def here(self) -> str:
        """What is next, for an error message."""
        if self.ended:
            return "the end"
        word = _NAME.match(self.text, self.at)
        return repr(word[0][:40] if word else self.text[self.at])

    def word(self) -> str | None:
        """The next name, without reading it."""
        if self._word_at != self.at:  # asked many times at one place
            found = _NAME.match(self.text, self.at)
            self._word_at, self._word = self.at, found[0] if found else None
        return self._word

    def take_word(self, word: str) -> bool:
        """Read the word if it is the next name."""
        return self.word() == word and self.take(word)

    def name(self) -> str | None:
        """Read a name."""
        found = self.word()
        if found is not None:
            self.take(found)
        return found

    def levels(self) -> str | None:
        """Read an event type with levels."""
        found = _LEVELS.match(self.text, self.at)
        if found is None:
            return None
        self.take(found[0])
        return found[0]

    def operator(self) -> str | None:
        """The next operator of XPath between two values, without reading it."""
        found = _OPERATOR.match(self.text, self.at)
        return found[0] if found else None

    def plain_step(self) -> str | None:
        """Read a name or `*` that is a step of its own: nothing that belongs to the step follows it."""
        found = _PLAIN_STEP.match(self.text, self.at)
        if found is None or found[2]:
            return None
        self.at = found.end()
        return found[1]

    def comparison(self) -> Comparison | None:
        found = _COMPARISON.match(self.text, self.at)
        if found is None:
            return None
        self.take(found[0])
        return Comparison(found[0])

    def number(self) -> float | None:
        """Read a number, with a minus in front or without."""
        start = self.at
        negative = self.take("-")
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self.at = start
            return None
        value = float(found[0])
        if isinf(value):
            self.fail(f"the number {found[0][:40]} is too large")
        self.take(found[0])
        return (-value if negative else value) + 0.0

    def string(self) -> str | None:
        """Read a quoted text; its own quote is written twice inside."""
        if not (self.sees('"') or self.sees("'")):
            return None
        found = _STRING.match(self.text, self.at)
        if found is None:
            self.fail(f"the text that begins here has no closing {self.text[self.at]}")
        quote = self.text[self.at]
        self.take(found[0])
        return found[0][1:-1].replace(quote * 2, quote)

    def backquoted(self) -> str:
        """Read a name in backquotes; a backquote inside is written twice."""
        found = _BACKQUOTED.match(self.text, self.at)
        if found is None:
            self.fail("the name that begins here is empty or has no closing backquote")
        self.take(found[0])
        return found[0][1:-1].replace("``", "`")

    def literal(self) -> str | float | None:
        """Read a quoted text or a number."""
        string = self.string()
        return string if string is not None else self.number()

    def enter(self) -> None:
        """Enter one more level of nesting. (A failure ends the parsing, so nothing undoes it.)"""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail(f"a filter nests at most {MAX_DEPTH} levels of steps, predicates and parentheses")

    def leave(self, levels: int = 1) -> None:
        """Leave this many levels of nesting."""
        self._depth -= levels


def quoted(text: str) -> str:
    """A text as a literal: in whichever quotes need no doubling, double ones by preference."""
    quote = "'" if '"' in text and "'" not in text else '"'
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"


def is_name(text: str) -> bool:
    """Whether the text can be written as a name, in both languages."""
    return _NAME.fullmatch(text) is not None


def is_levels(text: str) -> bool:
    """Whether the text can be written as an event type with levels."""
    return _LEVELS.fullmatch(text) is not None


def name_text(name: str, reserved: frozenset[str] = frozenset()) -> str:
    """A name as it is written: in backquotes where it would be parsed as something else."""
    if is_name(name) and name not in reserved:
        return name
    return f"`{name.replace('`', '``')}`"


def number_text(number: float) -> str:
    """A number as a literal that reads back the same."""
    short = f"{number:.15g}"
    return short if float(short) == number else repr(number)


MIRRORED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.NE: Comparison.NE,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}
"`20 > price` is `price < 20`."


def disjunction(parser: Parser, term: Callable[[Parser], Condition]) -> Condition:
    """One term or several, with `or` and, which binds tighter, `and` between them."""
    either: list[Condition] = []
    while not either or parser.take_word("or"):
        both = [term(parser)]
        while parser.take_word("and"):
            both.append(term(parser))
        either.append(both[0] if len(both) == 1 else And(tuple(both)))
    return either[0] if len(either) == 1 else Or(tuple(either))


def parenthesis(parser: Parser, term: Callable[[Parser], Condition]) -> Condition | None:
    """A disjunction in parentheses, if there is one."""
    if not parser.take("("):
        return None
    inner = disjunction(parser, term)
    parser.expect(")", "to close the parenthesis")
    return inner
