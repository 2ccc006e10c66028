"""Generated documents and XPath filters, small and alike enough that they often meet."""

from __future__ import annotations

import re

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d.e", "f-g", "and", "text")
ATTRIBUTES = ("id", "x.y", "or")
TEXTS = ("5", "20", " 5 ", "5.0", "-3", "- 3", ".5", "1e1", "1e", "+5", "NaN", "jazz", "jazzy", "a jazz", "true", "0")

names = st.sampled_from(("a", "a", "b", "b", "c", *NAMES))
texts = st.sampled_from(TEXTS)


def _attributes(values: dict[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in values.items())


def _element(name: str, attributes: dict[str, str], parts: list[str]) -> str:
    return f"<{name}{_attributes(attributes)}>{''.join(parts)}</{name}>"


_parts = st.one_of(texts, texts, st.sampled_from(["<!-- c -->", "<?p i?>", "<![CDATA[jazz]]>", "&#53;"]))
_attribute_sets = st.dictionaries(st.sampled_from(ATTRIBUTES), texts, max_size=2)
elements = st.recursive(
    st.builds(_element, names, _attribute_sets, st.lists(_parts, max_size=2)),
    lambda inner: st.builds(_element, names, _attribute_sets, st.lists(st.one_of(inner, inner, _parts), max_size=4)),
    max_leaves=12,
)
documents = st.builds(_element, st.sampled_from(["a", "b"]), _attribute_sets, st.lists(elements, max_size=4))
"XML texts without namespaces."


def with_namespaces(document: str) -> str:
    """The same document with every element in one of two namespaces, and some attributes too."""
    prefixed = re.sub(r"(</?)b\b(?=[ >])", r"\1p:b", document).replace(' id="', ' p:id="')
    name_ends = re.search(r"[ >]", prefixed).start()
    return f'{prefixed[:name_ends]} xmlns="urn:one" xmlns:p="urn:two"{prefixed[name_ends:]}'


literals = st.one_of(
    texts.map(lambda text: f'"{text}"'),
    texts.map(lambda text: f"'{text}'"),
    st.sampled_from(["5", "20", "-3", "0.5", ".5", "10", "5.", "0", "1e1", "- 3"]),
)
strings = st.sampled_from(['"jazz"', "'a'", '"5"', '""', '"zz"'])
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
blanks = st.sampled_from(["", "", "", " ", "\n"])
element_tests = st.one_of(names, names, st.just("*"))
positions = st.one_of(
    st.sampled_from(["1", "2", "1.5", " 3 "]),
    st.builds(lambda op, number: f"position() {op} {number}", comparisons, st.integers(0, 3)),
    st.builds(lambda op, number: f"{number}{op}position()", comparisons, st.integers(0, 3)),
)


def _steps(predicates: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One or more element steps with predicates."""
    some = st.lists(predicates, max_size=1).map("".join)
    step = st.builds(lambda name, found: name + found, element_tests, some)
    return st.builds(
        lambda first, rest: first + "".join(f"{slash}{next_one}" for slash, next_one in rest),
        step,
        st.lists(st.tuples(st.sampled_from(["/", "/", "//", "/./"]), step), max_size=2),
    )


def _lasts(predicates: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An attribute or text step, sometimes with a predicate."""
    last = st.sampled_from([*(f"@{name}" for name in ATTRIBUTES), "@*", "text()"])
    return st.builds(lambda test, found: test + found, last, st.one_of(st.just(""), st.just(""), predicates))


def _paths(predicates: st.SearchStrategy[str], leaf_predicates: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Steps, and perhaps an attribute or text at their end."""
    steps, last = _steps(predicates), _lasts(leaf_predicates)
    ended = st.builds(lambda path, slash, end: path + slash + end, steps, st.sampled_from(["/", "//"]), last)
    return st.one_of(steps, ended)


def _relatives(predicates: st.SearchStrategy[str], leaf_predicates: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    paths = _paths(predicates, leaf_predicates)
    return st.one_of(
        paths, _lasts(leaf_predicates), paths.map(".//{}".format), st.just("."), st.just(".//@*"), st.just(".//text()")
    )


def _conditions(paths: st.SearchStrategy[str], inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        paths,
        st.builds(lambda path, b, op, literal: f"{path}{b}{op}{b}{literal}", paths, blanks, comparisons, literals),
        st.builds(lambda literal, op, path: f"{literal}{op}{path}", literals, comparisons, paths),
        st.builds(
            lambda name, path, b, text: f"{name}({b}{path}{b},{b}{text})",
            st.sampled_from(["contains", "starts-with"]),
            paths,
            blanks,
            strings,
        ),
        st.builds(lambda left, word, right: f"{left} {word} {right}", inner, st.sampled_from(["and", "or"]), inner),
        inner.map("not({})".format),
        inner.map("({})".format),
    )


_leaf_conditions = st.builds(lambda op, literal: f". {op} {literal}", comparisons, literals) | strings.map(
    "contains(., {})".format
)
_leaf_predicates = st.builds(lambda inner: f"[{inner}]", _leaf_conditions)
_no_predicates = st.just("")
_simple = _conditions(_relatives(_no_predicates, _leaf_predicates), _leaf_conditions)
predicates = st.recursive(
    st.builds(lambda inner: f"[{inner}]", st.one_of(_simple, _simple, positions)),
    lambda inner: st.builds(
        lambda condition: f"[{condition}]", _conditions(_relatives(inner, _leaf_predicates), _simple)
    ),
    max_leaves=3,
)
queries = st.builds("{}{}".format, st.sampled_from(["/", "//"]), _paths(predicates, _leaf_predicates))
"XPath filters of the supported subset, at every corner of it."
