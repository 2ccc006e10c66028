"""Documents drawn after a DTD, held to lxml's own validation."""

import re
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from earshot.documents import read_xml, write_xml
from earshot.errors import DtdEndless, DtdEntityRefused, ScenarioError
from earshot.events import Element
from earshot.simulation.draws import Span
from earshot.simulation.workload.dtd import BUILT_IN, MOST_LEVELS, built_in_dtd, read_dtd
from earshot.simulation.workload.dtd_workload import WORDS, DocumentShape, draw_document
from earshot.simulation.workload.generators import XmlDocuments
from sizes import sized

SMALL = DocumentShape(optional=0.5, repeats=(0, 3), attributes=0.5, words=(0, 3), max_depth=8, max_elements=40)


def size_of(root: Element) -> tuple[int, int]:
    """How many elements, and on how many levels."""
    inside = [size_of(child) for child in root.elements]
    return 1 + sum(size for size, _ in inside), 1 + max((levels for _, levels in inside), default=0)


def validated(dtd: bytes, root: Element) -> list[str]:
    """What lxml finds wrong."""
    validator = etree.DTD(BytesIO(dtd))
    validator.validate(etree.fromstring(write_xml(root)))
    return [str(error.message) for error in validator.error_log]


def below(root: Element) -> list[Element]:
    """The element and all inside it."""
    found = [root]
    for element in found:
        found.extend(element.elements)
    return found


def _children(element: Element) -> str:
    return "".join(f"{child.name};" for child in element.elements)


def _as_expression(model: str) -> str:
    """A content model as a regular expression over the names inside, each ended by a semicolon."""
    if model in ("EMPTY", "ANY", "(#PCDATA)"):
        return ""
    spaced = model.replace("#PCDATA |", "").replace(" ", "").replace("(", "(?:").replace(",", "")
    return re.sub("[a-d]", lambda name: f"(?:{name[0]};)", spaced)


def excused(wrong: str, document: Element) -> bool:
    """lxml wants models it can read without looking ahead, and an id for each reference to lead to."""
    has_ids = any("k" in element.attributes for element in below(document))
    return "is not deterministic" in wrong or ("IDREF" in wrong and not has_ids)


def _group(parts: list[str], sign: str, occurs: str) -> str:
    return f"({sign.join(parts)}){occurs}"


NAMES = ("a", "b", "c", "d")
occurrences = st.sampled_from(["", "", "?", "*", "+"])
models = st.recursive(
    st.builds("{}{}".format, st.sampled_from(NAMES[1:]), occurrences),
    lambda inner: st.builds(_group, st.lists(inner, min_size=1, max_size=3), st.sampled_from([",", "|"]), occurrences),
    max_leaves=6,
)
contents = st.one_of(
    models.map("({})".format), st.sampled_from(["EMPTY", "(#PCDATA)", "(#PCDATA | b | d)*", "ANY", "EMPTY"])
)
attribute_lists = st.sampled_from(
    [
        "",
        "<!ATTLIST b k ID #REQUIRED>",
        "<!ATTLIST b k ID #REQUIRED><!ATTLIST c r IDREF #IMPLIED rs IDREFS #IMPLIED>",
        '<!ATTLIST d v (x | y) "x" w NMTOKENS #REQUIRED z CDATA #FIXED "1" k ID #IMPLIED>',
    ]
)


@settings(max_examples=sized(200, 4_000))
@given(st.tuples(*[contents] * len(NAMES)), attribute_lists, st.integers(0, 99), st.integers(1, 60), st.integers(1, 9))
def test_every_document_is_valid_and_within_its_bounds(
    found: tuple[str, ...], attributes: str, seed: int, most: int, levels: int
) -> None:
    declared = zip(NAMES, found, strict=True)
    text = ("".join(f"<!ELEMENT {name} {content}>" for name, content in declared) + attributes).encode()
    try:
        dtd = read_dtd(text, "a")
    except DtdEndless:
        return
    if dtd.least("a", levels) > most:
        return
    models_of = {name: _as_expression(content) for name, content in zip(NAMES, found, strict=True)}
    shape = DocumentShape(0.6, (0, 4), 0.5, (0, 2), levels, most)
    for number in range(3):
        document = draw_document(dtd, shape, Random(f"{seed}:{number}"))
        elements, depth = size_of(document)
        assert all(re.fullmatch(models_of[one.name], _children(one)) for one in below(document))
        assert [one for one in validated(text, document) if not excused(one, document)] == []
        assert elements <= most
        assert depth <= levels
        assert read_xml(write_xml(document)) == document


@pytest.mark.parametrize("name", BUILT_IN)
def test_documents_of_our_own_dtds_are_valid_and_reach_every_element(name: str) -> None:
    source = XmlDocuments(dtd=name)  # type: ignore[arg-type]
    dtd, random = source.document_type(), Random("all")
    documents = [source.draw(random, number) for number in range(400)]
    assert {element.name for event in documents for element in below(event.root)} == set(dtd.elements)
    text = built_in_dtd(name).read_bytes()
    assert [wrong for event in documents[:50] for wrong in validated(text, event.root)] == []
    assert [one.subject for one in source.types()] == [event.type for event in documents[:1]]


def test_documents_of_a_published_recursive_dtd_are_valid(shared_data: Path) -> None:
    path = shared_data / "yfilter" / "nitf-2-5.dtd"
    source, random = XmlDocuments(file=path, max_depth=12, max_elements=200), Random("nitf")
    for number in range(30):
        document = source.draw(random, number).root
        assert validated(path.read_bytes(), document) == []
        assert size_of(document)[0] <= 200
        assert size_of(document)[1] <= 12


def test_a_recursive_dtd_ends_at_the_depth_asked_for() -> None:
    doubling = b"<!ELEMENT a (b?)><!ELEMENT b (a, a)>"
    always = DocumentShape(1.0, (1, 1), 0.0, (0, 0), MOST_LEVELS, 500)
    elements, levels = size_of(draw_document(read_dtd(doubling, "a"), always, Random(1)))
    assert (elements, levels) == (499, 17)


def test_what_must_be_there_is_there_and_nothing_else_where_nothing_is_optional() -> None:
    bare = DocumentShape(0.0, (0, 0), 0.0, (1, 1), 8, 40)
    dtd = read_dtd(b"<!ELEMENT a (b, c?, b*, d+)><!ELEMENT b EMPTY><!ELEMENT c EMPTY><!ELEMENT d (#PCDATA)>")
    document = draw_document(dtd, bare, Random(3))
    assert [child.name for child in document.elements] == ["b", "d"]
    assert document.elements[1].text.isalpha()


@pytest.mark.parametrize("seed", range(5))
def test_a_document_is_filled_up_to_its_largest_size_and_no_further(seed: int) -> None:
    for inside, sizes in (("b*", {7}), ("(b | (c, c, c))*", {7}), ("(b, c)*", {7}), ("(b, c, d)*", {7}), ("b?", {2})):
        declared = f"<!ELEMENT a ({inside})>".encode() + b"".join(b"<!ELEMENT %c EMPTY>" % name for name in b"bcd")
        much = DocumentShape(1.0, (50, 50), 0.0, (0, 0), 8, 7)
        assert size_of(draw_document(read_dtd(declared, "a"), much, Random(seed)))[0] in sizes, inside


def test_a_repeated_part_occurs_as_often_as_asked_for() -> None:
    text = b"<!ELEMENT a (b*, c+, d?)><!ELEMENT b EMPTY><!ELEMENT c EMPTY><!ELEMENT d EMPTY>"
    drawn = {}
    for times in (0, 1, 3):
        document = draw_document(read_dtd(text), DocumentShape(1.0, (times, times), 0.0, (0, 0), 8, 40), Random(1))
        drawn[times] = _children(document)
    assert drawn == {0: "c;d;", 1: "b;c;d;", 3: "b;b;b;c;c;c;d;"}


def test_texts_have_as_many_words_as_asked_for_and_stand_around_every_element() -> None:
    text = b"<!ELEMENT a (#PCDATA | b)*><!ELEMENT b EMPTY>"
    document = draw_document(read_dtd(text), DocumentShape(1.0, (2, 2), 0.0, (3, 3), 8, 40), Random(1))
    assert [part.name if isinstance(part, Element) else len(part.split()) for part in document.children] == [
        3, "b", 3, "b", 3,
    ]  # fmt: skip
    silent = draw_document(read_dtd(text), DocumentShape(1.0, (2, 2), 0.0, (0, 0), 8, 40), Random(1))
    assert [part.name for part in silent.children if isinstance(part, Element)] == ["b", "b"]
    assert len(silent.children) == 2


def test_attributes_are_there_if_they_must_be_or_by_chance() -> None:
    text = b"""<!ELEMENT a EMPTY>
        <!ATTLIST a id ID #REQUIRED one (x) #REQUIRED fixed CDATA #FIXED "f" usual CDATA "u" free CDATA #IMPLIED
            ref IDREF #IMPLIED refs IDREFS #IMPLIED whole ENTITY #IMPLIED wholes ENTITIES #IMPLIED>"""
    always, never = (
        draw_document(read_dtd(text), DocumentShape(0.0, (0, 0), chance, (0, 0), 8, 40), Random(1)).attributes
        for chance in (1.0, 0.0)
    )
    assert never == {"id": "n1", "one": "x", "fixed": "f"}
    assert always == {**never, "usual": "u", "free": always["free"], "ref": "n1", "refs": "n1"}
    assert always["free"] in WORDS


def test_ids_differ_and_references_lead_to_one() -> None:
    text = b"<!ELEMENT a (b+, c)><!ELEMENT b EMPTY><!ELEMENT c EMPTY>"
    text += b"<!ATTLIST b k ID #REQUIRED><!ATTLIST c r IDREF #REQUIRED>"
    document = draw_document(read_dtd(text), SMALL, Random(5))
    ids = [child.attributes["k"] for child in document.elements[:-1]]
    assert len(set(ids)) == len(ids)
    assert document.elements[-1].attributes["r"] in ids


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: XmlDocuments(), r"write one of dtd \(news, protein, customer\) and file"),
        (lambda: XmlDocuments(dtd="news", file=built_in_dtd("news")), "write one of dtd"),
        (lambda: XmlDocuments(dtd="news", optional=1.5), "optional must be from 0 to 1, got 1.5"),
        (lambda: XmlDocuments(dtd="news", attributes=-1), "attributes must be from 0 to 1, got -1"),
        (lambda: XmlDocuments(dtd="news", repeats=Span(0, 0.5)), "repeats must be whole numbers from 0 to 1,000"),
        (lambda: XmlDocuments(dtd="news", words=Span(0, 1e9)), "words must be whole numbers from 0 to 10,000"),
        (lambda: XmlDocuments(dtd="news", max_depth=65), "max_depth must be from 1 to 64, got 65"),
        (lambda: XmlDocuments(dtd="news", max_elements=0), "max_elements must be from 1 to 100,000, got 0"),
        (lambda: XmlDocuments(dtd="news", max_depth=2), "max_depth must be larger: no 'bulletin' is complete on 2"),
        (lambda: XmlDocuments(dtd="news", max_elements=8), "max_elements must be at least 12: the smallest 'bulletin'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        make()


def test_the_least_and_the_most_of_each_setting_may_be_asked_for() -> None:
    least = XmlDocuments(
        dtd="news", repeats=Span(0, 0), words=Span(0, 0), optional=0.0, attributes=0.0, max_elements=12
    )
    most = XmlDocuments(dtd="news", repeats=Span(1000, 1000), words=Span(10_000, 10_000), max_depth=MOST_LEVELS)
    assert size_of(least.draw(Random(1), 0).root)[0] == 12
    assert (most.repeats.high, most.words.high, most.max_depth) == (1000.0, 10_000.0, 64)
    for span, name in ((Span(0, 1001), "repeats"), (Span(0, 10_001), "words"), (Span(-1, 1), "words")):
        with pytest.raises(ScenarioError, match=f"{name} must be whole numbers from 0 to"):
            XmlDocuments(dtd="news", **{name: span})  # type: ignore[arg-type]


def test_an_absurd_smallest_document_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "doubling.dtd"
    levels = "".join(f"<!ELEMENT e{n} (e{n + 1}, e{n + 1})>" for n in range(40))
    file.write_text(f"{levels}<!ELEMENT e40 EMPTY>")
    with pytest.raises(ScenarioError, match=r"max_elements must be at least 2\.19902e\+12: the smallest 'e0'"):
        XmlDocuments(file=file, max_depth=64)
    file.write_text('<!ENTITY % e SYSTEM "file:///etc/hosts">%e;<!ELEMENT a EMPTY>')
    with pytest.raises(DtdEntityRefused, match=r"doubling\.dtd: the DTD refers to 'file:///etc/hosts'"):
        XmlDocuments(file=file)
