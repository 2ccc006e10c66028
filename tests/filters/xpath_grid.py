"""Random documents and XPath 1.0 expressions at every corner of the language, made fast, for millions of cases."""

from __future__ import annotations

from random import Random

NAMES = ("a", "a", "a", "b", "b", "c", "d.e", "f-g", "and", "div", "text", "count")
ATTRIBUTES = ("id", "id", "x.y", "or")
TEXTS = ("5", "20", " 5 ", "5.0", "-3", ".5", "1e1", "NaN", "jazz", "jazzy", " a  jazz ", "true", "0", "a", "b", "2")
AXES = (
    *("ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self"),
    *("following", "following-sibling", "parent", "preceding", "preceding-sibling", "self"),
)
COMPARISONS = ("=", "=", "!=", "<", "<=", ">", ">=")


class DocumentMaker:
    """Small documents, alike enough that the expressions often meet them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def document(self) -> str:
        return self._element(self.chance.choice("ab"), 0)

    def _element(self, name: str, depth: int) -> str:
        chance = self.chance
        attributes = {chance.choice(ATTRIBUTES): chance.choice(TEXTS) for _ in range(chance.choice((0, 0, 1, 2)))}
        written = "".join(f' {attribute}="{text}"' for attribute, text in attributes.items())
        most = max(0, 4 - depth)
        parts = [
            chance.choice(TEXTS) if chance.random() < 0.4 else self._element(chance.choice(NAMES), depth + 1)
            for _ in range(chance.randint(0, most))
        ]
        return f"<{name}{written}>{''.join(parts)}</{name}>"


class ExpressionMaker:
    """XPath texts; `depth` bounds how far they nest."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def expression(self) -> str:
        """An expression for the document: mostly a path."""
        kind = self.chance.random()
        if kind < 0.75:
            return self._path(2, absolute=True)
        if kind < 0.8:
            return f"{self._path(1, True)} | {self._path(1, True)}"
        if kind < 0.85:
            return f"({self._path(1, True)}){self._predicate(1)}"
        return self._boolean(2, absolute=True)

    def _path(self, depth: int, absolute: bool) -> str:
        chance = self.chance
        steps = [self._step(depth) for _ in range(chance.choice((1, 1, 2, 2, 3)))]
        start = chance.choice(("/", "//", "//")) if absolute else chance.choice(("", "", "", ".//", "./", "../", "//"))
        if not absolute and chance.random() < 0.1:
            return chance.choice((".", "..", "@*", "text()", "node()"))
        text = start + steps[0]
        for step in steps[1:]:
            text += chance.choice(("/", "/", "//")) + step
        if chance.random() < 0.2:
            text += chance.choice(("/..", "/@id", "/text()", "//@*", "/.", "/node()"))
        return text

    def _step(self, depth: int) -> str:
        chance = self.chance
        test = chance.choice((*NAMES, "*", "*", "*"))
        if chance.random() < 0.3:
            axis = chance.choice(AXES)
            test = f"{axis}::{chance.choice(ATTRIBUTES) if axis == 'attribute' else chance.choice((test, 'node()'))}"
        while depth and chance.random() < 0.4:
            test += self._predicate(depth - 1)
        return test

    def _predicate(self, depth: int) -> str:
        if self.chance.random() < 0.25:
            return f"[{self.chance.choice(_POSITIONS)}]"
        return f"[{self._boolean(depth, absolute=False)}]"

    def _boolean(self, depth: int, absolute: bool) -> str:
        chance = self.chance
        kind = chance.randrange(9 if depth else 6)
        if kind == 0:
            return self._path(0, absolute)
        if kind in (1, 2):
            return f"{self._path(0, absolute)} {chance.choice(COMPARISONS)} {self._literal()}"
        if kind == 3:
            return f"{self._value(depth, absolute)} {chance.choice(COMPARISONS)} {self._value(depth, absolute)}"
        if kind == 4:
            return f"{chance.choice(('contains', 'starts-with'))}({self._text(depth, absolute)}, {self._quoted()})"
        if kind == 5:
            return f"{self._number(depth, absolute)} {chance.choice(COMPARISONS)} {chance.choice('0123')}"
        inner = self._boolean(depth - 1, absolute)
        if kind == 6:
            return f"not({inner})"
        return f"({inner} {chance.choice(('and', 'or'))} {self._boolean(depth - 1, absolute)})"

    def _value(self, depth: int, absolute: bool) -> str:
        kind = self.chance.randrange(4)
        if kind == 0:
            return self._path(0, absolute)
        if kind == 1:
            return self._number(depth, absolute)
        if kind == 2:
            return self._text(depth, absolute)
        return self.chance.choice(("true()", "false()", self._literal()))

    def _number(self, depth: int, absolute: bool) -> str:
        chance, path = self.chance, self._path(0, absolute)
        if depth and chance.random() < 0.3:
            one, other = self._number(depth - 1, absolute), self._number(depth - 1, absolute)
            return f"({one} {chance.choice(('+', '-', '*', 'div', 'mod'))} {other})"
        choices = (
            f"count({path})",
            f"sum({path})",
            f"number({path})",
            f"string-length({path})",
            f"{chance.choice(('floor', 'ceiling', 'round'))}({path})",
            f"-{path}",
            chance.choice(("1", "2", "0.5", "10")),
        )
        return chance.choice(choices if absolute else (*choices, "position()", "last()", "string-length()"))

    def _text(self, depth: int, absolute: bool) -> str:
        chance, path = self.chance, self._path(0, absolute)
        choices = (
            f"string({path})",
            f"normalize-space({path})",
            f"concat({path}, {self._quoted()})",
            f"substring({path}, {chance.choice(('0', '1', '2', '1.5', '-1'))})",
            f"substring({path}, {chance.choice('012')}, {chance.choice(('1', '2', '0.5'))})",
            f"substring-before({path}, {self._quoted()})",
            f"substring-after({path}, {self._quoted()})",
            f"translate({path}, 'jaz5', 'JA')",
            f"local-name({path})",
            f"string({self._number(0, absolute)})",
            path,
        )
        return chance.choice(choices if absolute else (*choices, "local-name()", "name()", "normalize-space()", "."))

    def _quoted(self) -> str:
        return self.chance.choice(('"jazz"', "'a'", "'5'", '""', "'zz'", "' '"))

    def _literal(self) -> str:
        return self.chance.choice((*(f"'{text}'" for text in TEXTS), "5", "20", "-3", ".5", "0", "2"))


_POSITIONS = (
    *("1", "2", "3", "last()", "position() = 2", "position() < 3", "position() = last()", "last() - 1"),
    *("position() > 1 and position() < 4", "position() mod 2 = 1", "not(position() = 1)", "last() = 2", "count(*)"),
)
