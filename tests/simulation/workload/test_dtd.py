"""Reading DTDs: what they say, and those that are refused."""

import math
from pathlib import Path

import pytest

from earshot.errors import DtdEndless, DtdEntityRefused, DtdError, DtdMalformed, DtdTooLarge
from earshot.simulation.workload.dtd import (
    MOST_GROUPS,
    MOST_PARTS,
    AttributeType,
    Dtd,
    ElementType,
    Part,
    _Budget,
    built_in_dtd,
    load_dtd,
    read_dtd,
)


def depth(dtd: Dtd, name: str, above: tuple[str, ...] = ()) -> int:
    """How many levels documents can have; an error where that is endless."""
    assert name not in above, f"{name} stands in itself"
    return 1 + max((depth(dtd, child, (*above, name)) for child in dtd.elements[name].children), default=0)


def test_content_models_and_attributes_are_read_as_they_stand() -> None:
    dtd = read_dtd(
        b"""<!ENTITY % inside "#PCDATA | b">
        <!ELEMENT a ((b, c?)+ | d)>
        <!ELEMENT b (#PCDATA)>
        <!ELEMENT c (%inside;)*>
        <!ELEMENT d EMPTY>
        <!ATTLIST d k ID #REQUIRED v (x | y) "y" w CDATA #IMPLIED z CDATA #FIXED "1">"""
    )
    b, c, d = (Part("element", "once", name) for name in "bcd")
    pair = Part("sequence", "some", parts=(b, Part("element", "optional", "c")))
    assert dtd.root == "a"
    assert dict(dtd.elements) == {
        "a": ElementType("a", Part("choice", "once", parts=(pair, d)), text=False),
        "b": ElementType("b", None, text=True),
        "c": ElementType("c", Part("choice", "any", parts=(b,)), text=True),
        "d": ElementType(
            "d",
            None,
            False,
            (
                AttributeType("k", "id", "required"),
                AttributeType("v", "enumeration", "none", "y", ("x", "y")),
                AttributeType("w", "cdata", "implied"),
                AttributeType("z", "cdata", "fixed", "1"),
            ),
        ),
    }
    assert c != b
    assert dtd.children("a") == ("b", "c", "d")


def test_the_least_that_completes_an_element_depends_on_the_levels_left() -> None:
    dtd = read_dtd(b"<!ELEMENT a (b | (c, c, c))><!ELEMENT b (d)><!ELEMENT c EMPTY><!ELEMENT d (a?)>", "a")
    assert [dtd.least("a", levels) for levels in range(5)] == [math.inf, math.inf, 4, 3, 3]
    choice = dtd.elements["a"].content
    assert choice is not None
    assert (dtd.least_of(choice, 1), dtd.least_of(choice, 2)) == (3, 2)
    assert [(extra, part.kind) for extra, part in dtd.alternatives(choice, 2)] == [(0, "element"), (1, "sequence")]
    assert [(extra, part.kind) for extra, part in dtd.alternatives(choice, 1)] == [(0, "sequence")]


@pytest.mark.parametrize(("name", "elements", "levels"), [("news", 132, 12), ("protein", 66, 9), ("customer", 78, 6)])
def test_our_own_dtds_have_the_shapes_of_the_papers(name: str, elements: int, levels: int) -> None:
    dtd = load_dtd(built_in_dtd(name))
    assert (len(dtd.elements), depth(dtd, dtd.root)) == (elements, levels)
    assert {child for one in dtd.elements.values() for child in one.children} | {dtd.root} == set(dtd.elements)


def test_a_published_dtd_is_read(shared_data: Path) -> None:
    dtd = load_dtd(shared_data / "yfilter" / "nitf-2-5.dtd")
    assert (dtd.root, len(dtd.elements)) == ("nitf", 123)
    assert dtd.children("nitf") == ("head", "body")


def test_the_root_is_given_if_the_dtd_does_not_determine_it() -> None:
    two = b"<!ELEMENT a EMPTY><!ELEMENT b (b?)>"
    with pytest.raises(DtdError, match="does not determine its root: give one of its elements, such as a, b"):
        read_dtd(two)
    assert read_dtd(two, "b").root == "b"
    with pytest.raises(DtdError, match="no element called 'c'; give its root"):
        read_dtd(two, "c")
    with pytest.raises(DtdError, match="does not determine its root: give one of its elements, such as a, b"):
        read_dtd(b"<!ELEMENT a (b?)><!ELEMENT b (a?)>")


def test_what_is_not_declared_is_never_drawn() -> None:
    dtd = read_dtd(b"<!ELEMENT a (b | c)*><!ELEMENT c EMPTY>")
    assert dtd.children("a") == ("c",)
    with pytest.raises(DtdEndless, match="no 'a' can be complete"):
        read_dtd(b"<!ELEMENT a (b)>")


ENTITIES = b"".join(
    b'<!ENTITY %% e%d "%s">' % (level, b"%%e%d;" % (level - 1) * 10 if level else b"(b, b)") for level in range(12)
)


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        (b"<!ELEMENT a (", DtdMalformed, "not a DTD, at line 1, column 14"),
        (b"<CD/>", DtdMalformed, "not a DTD, at line 1"),
        (b"\xff\xfe\x00 nonsense", DtdMalformed, "not a DTD"),
        (b"", DtdError, "the DTD declares no element"),
        (b"<!ELEMENT a (%none;)>", DtdMalformed, "Entity 'none' not defined"),
        (b"<!ELEMENT a EMPTY><!ELEMENT a EMPTY>", DtdMalformed, "Redefinition of element a"),
        (b"<!ELEMENT p:a EMPTY><!ELEMENT q:a EMPTY>", DtdError, "two elements are called 'a'"),
        (b"<!ELEMENT a (a)>", DtdEndless, "no 'a' can be complete"),
        (b"<!ELEMENT a (b, c?)><!ELEMENT b (c)><!ELEMENT c (b)>", DtdEndless, "no 'a' can be complete"),
        (b'<!ENTITY % e SYSTEM "file:///etc/hosts">%e;<!ELEMENT a EMPTY>', DtdEntityRefused, "file:///etc/hosts"),
        (b'<!ENTITY % e PUBLIC "x" "http://a.test/b">%e;<!ELEMENT a EMPTY>', DtdEntityRefused, "http://a.test/b"),
        (
            b"<!ENTITY % e \"<!ENTITY &#37; f &#83;YSTEM 'file:///etc/hosts'>\">%e;%f;<!ELEMENT a EMPTY>",
            DtdEntityRefused,
            "file:///etc/hosts",
        ),
        (ENTITIES + b"<!ELEMENT a (%e11;)>", DtdTooLarge, "expands to too much"),
        (b"<!ELEMENT a " + b"(" * 1000 + b"b" + b")" * 1000 + b">", DtdTooLarge, "expands to too much"),
        (b"<!ELEMENT a " + b"(b, " * 40 + b"c" + b")*" * 40 + b">", DtdTooLarge, "more than 32 groups inside"),
        (b"<!ELEMENT a (" + b",".join([b"b"] * 100_000) + b")>", DtdTooLarge, "more than 100,000 parts"),
        (b"".join(b"<!ELEMENT e%d EMPTY>" % number for number in range(4097)), DtdTooLarge, "more than 4,096 elements"),
        (b" " * (1024 * 1024 + 1), DtdTooLarge, "has 1,048,577 bytes; at most 1,048,576 are read"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, bytes) else "",
)
def test_hostile_and_broken_dtds_are_refused_by_name(text: bytes, error: type[DtdError], problem: str) -> None:
    with pytest.raises(error, match=problem) as refused:
        read_dtd(text)
    assert type(refused.value) is error


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "my.dtd"
    with pytest.raises(DtdError, match=r"my\.dtd: No such file"):
        load_dtd(file)
    file.write_text("<!ELEMENT a EMPTY>")
    assert load_dtd(file) is load_dtd(file)
    file.write_text("<!ELEMENT ab EMPTY>")
    assert load_dtd(file).root == "ab"
    file.write_text("<!ELEMENT ab ")
    with pytest.raises(DtdMalformed, match=r"my\.dtd: not a DTD, at line 1"):
        load_dtd(file)


def test_a_dtd_may_have_exactly_the_most_parts_and_groups() -> None:
    budget = _Budget()
    for _ in range(MOST_PARTS):
        budget.take(MOST_GROUPS)
    with pytest.raises(DtdTooLarge, match="more than 100,000 parts"):
        budget.take(0)
    with pytest.raises(DtdTooLarge, match=f"more than {MOST_GROUPS} groups inside each other"):
        _Budget().take(MOST_GROUPS + 1)


@pytest.mark.parametrize("last", [True, False], ids=["at the end", "at the begin"])
def test_thirty_two_groups_may_lie_inside_each_other(last: bool) -> None:
    def model(groups: int) -> bytes:
        inner = b"c"
        for _ in range(groups):
            inner = b"(b, " + inner + b")*" if last else b"(" + inner + b", b)*"
        return b"<!ELEMENT a " + inner + b"><!ELEMENT b EMPTY><!ELEMENT c EMPTY>"

    assert set(read_dtd(model(32)).elements["a"].children) == {"b", "c"}
    with pytest.raises(DtdTooLarge, match="more than 32 groups inside each other"):
        read_dtd(model(33))
