from typing import AnyStr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from earshot import Element, Event
from earshot.documents import LIMITS, XmlLimits, read_xml, write_xml
from earshot.errors import (
    XmlEntityRefused,
    XmlError,
    XmlMalformed,
    XmlTooDeep,
    XmlTooLarge,
    XmlTooManyElements,
)
from sizes import sized


def test_names_are_local_and_namespaces_are_ignored() -> None:
    document = """<m:CD xmlns:m="urn:music" xmlns="urn:other" m:id="7"><title xml:lang="en">x</title></m:CD>"""
    assert read_xml(document) == Element("CD", {"id": "7"}, (Element("title", {"lang": "en"}, ("x",)),))


def test_of_attributes_with_one_local_name_the_plain_one_counts() -> None:
    document = '<a xmlns:p="urn:p" xmlns:q="urn:q" p:x="1" q:x="2" x="3" q:y="4" p:y="5"/>'
    assert read_xml(document) == Element("a", {"x": "3", "y": "4"})


def test_text_is_kept_as_it_stands_between_elements_comments_and_instructions() -> None:
    document = "<a> 1<b/>2<!-- c -->3<?pi?>4<![CDATA[<5>]]>&amp;&#54;</a>"
    assert read_xml(document) == Element("a", {}, (" 1", Element("b"), "2", "3", "4<5>&6"))


def test_what_stands_around_the_root_is_left_out() -> None:
    assert read_xml("<?xml version='1.0'?><!-- x --><!DOCTYPE a><?pi?><a/>\n<!-- y -->\n") == Element("a")


@pytest.mark.parametrize(
    "document",
    [
        "<?xml version='1.0' encoding='latin-1'?><a>é</a>",
        "<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>".encode("latin-1"),
        "<a>é</a>".encode(),
        "<a>é</a>".encode("utf-16"),
        bytearray("<a>é</a>".encode()),
    ],
)
def test_any_encoding_is_read_by_its_own_rules(document: bytes | str) -> None:
    assert read_xml(document) == Element("a", {}, ("é",))


names = st.sampled_from(["a", "b", "c.d", "e-f", "größe"])
texts = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"), include_characters="\n\t\r&<>'\""), min_size=1
)
trees = st.recursive(
    st.builds(Element, names, st.dictionaries(names, texts, max_size=2)),
    lambda inner: st.builds(
        Element,
        names,
        st.dictionaries(names, texts, max_size=2),
        st.lists(st.one_of(inner, texts), max_size=4).map(tuple),
    ),
    max_leaves=8,
)


@settings(max_examples=sized(200, 5_000))
@given(trees)
def test_what_is_written_is_read_back_the_same(tree: Element) -> None:
    assert read_xml(write_xml(tree)) == tree
    assert etree.fromstring(write_xml(tree)).xpath("string()") == tree.text


def test_an_empty_text_is_not_written() -> None:
    assert read_xml(write_xml(Element("a", {}, ("", Element("b"), "")))) == Element("a", {}, (Element("b"),))


@pytest.mark.parametrize("tree", [Element("a b"), Element("a", {"": "x"}), Element("a", {}, ("\0",)), Element("")])
def test_what_xml_cannot_say_is_refused(tree: Element) -> None:
    with pytest.raises(XmlMalformed, match="cannot be written as XML"):
        write_xml(tree)


LAUGHS = "<!DOCTYPE l [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{level} '{f'&a{level - 1};' * 10}'>\n" for level in range(1, 12)
)


@pytest.mark.parametrize(
    ("document", "error", "reason"),
    [
        ("", XmlMalformed, "line 1, column 1"),
        ("   ", XmlMalformed, "line 1"),
        ("plain text", XmlMalformed, "line 1, column 1"),
        ("<a>\n<b>\n</a>", XmlMalformed, "line 3, column 5"),
        ("<a/><b/>", XmlMalformed, "line 1, column 5"),
        ("<a x='1' x='2'/>", XmlMalformed, "Attribute x redefined"),
        ("<a>\0</a>", XmlMalformed, "line 1"),
        ("<a>\ud800</a>", XmlMalformed, "surrogate"),
        ("<p:a/>", XmlMalformed, "Namespace prefix p"),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", XmlMalformed, "encoding"),
        (b"<a>\xff</a>", XmlMalformed, "line 1"),
        (f"{LAUGHS}]><l>&a11;</l>", XmlEntityRefused, "entit"),
        (f"{LAUGHS}]><l x='&a11;'/>", XmlEntityRefused, "line"),
        ("<!DOCTYPE a [\n<!ENTITY e 'x'>]><a/>", XmlEntityRefused, "declares the entity 'e' at line 2"),
        ("<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/hostname'>]><a>&e;</a>", XmlEntityRefused, "'e'"),
        ("<!DOCTYPE a [<!ENTITY % p SYSTEM 'file:///etc/hostname'> %p;]><a/>", XmlEntityRefused, "'p'"),
        ("<!DOCTYPE a SYSTEM 'nowhere.dtd'><a>\n&e;</a>", XmlEntityRefused, "'&e;' at line 2"),
        ("<a>&nbsp;</a>", XmlEntityRefused, "line 1, column 10"),
        ("<a>" * 10_000 + "</a>" * 10_000, XmlTooDeep, "deeper than 250 elements at line 1"),
        ("<a>" * 251 + "</a>" * 251, XmlTooDeep, "deeper than 250 elements at line 1"),
        ("<a>\n" + "<b/>" * LIMITS.elements + "</a>", XmlTooManyElements, "more than 100,000 elements, at line 2"),
        ("<a " + " ".join(f"a{n}='1'" for n in range(300)) + "/>", XmlTooManyElements, "256 attributes"),
        (f"<{'a' * 100_000}/>", XmlTooLarge, "too large at line 1"),
    ],
)
def test_a_hostile_or_broken_document_is_refused_by_name(
    document: str | bytes, error: type[XmlError], reason: str
) -> None:
    with pytest.raises(XmlError, match=reason) as refused:
        read_xml(document)
    assert type(refused.value) is error


@pytest.mark.parametrize(("start", "letter"), [("<a>", "x"), (b"<a>", b"x")])
def test_a_hundred_megabytes_are_refused_unread(start: AnyStr, letter: AnyStr) -> None:
    document = start + letter * 100_000_000
    with pytest.raises(XmlTooLarge, match="100,000,003 bytes or more; at most 4,194,304 are read"):
        Event.from_xml(document)


def test_a_text_is_measured_in_bytes() -> None:
    with pytest.raises(XmlTooLarge, match="the document has 5,000,007 bytes"):
        read_xml("<a>" + "é" * 2_500_000 + "</a>")


def test_as_deep_and_as_many_as_allowed_are_read() -> None:
    deep = read_xml("<a>" * LIMITS.depth + "x" + "</a>" * LIMITS.depth)
    assert deep.text == "x"
    wide = read_xml("<a>" + "<b/>" * (LIMITS.elements - 1) + "</a>")
    assert len(wide.elements) == LIMITS.elements - 1


def test_limits_can_be_set() -> None:
    small = XmlLimits(bytes=30, depth=2, elements=3, attributes=1)
    assert read_xml("<a><b x='1'/><b/></a>", small).text == ""
    for document, error in (
        ("<a><b><c/></b></a>", XmlTooDeep),
        ("<a><b/><b/><b/></a>", XmlTooManyElements),
        ("<a x='1' y='2'/>", XmlTooManyElements),
        ("<a>" + "x" * 30 + "</a>", XmlTooLarge),
    ):
        with pytest.raises(error):
            read_xml(document, small)


@settings(max_examples=sized(300, 10_000))
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(max_size=60),
        trees.map(write_xml).flatmap(
            lambda document: st.integers(0, len(document)).map(lambda at: document[:at] + document[at + 1 :])
        ),
    )
)
def test_noise_is_a_document_or_an_xml_error(document: bytes | str) -> None:
    try:
        tree = read_xml(document)
    except XmlError as error:
        tree = None
        reported = str(error)
    assert tree is not None or reported


def test_comments_and_instructions_cost_no_more_than_their_length() -> None:
    """Read with lxml's own walker, this document takes a hundred times as long."""
    document = "<a>x" + "<!---->" * 300_000 + "<?y?>" * 300_000 + "z</a>"
    assert read_xml(document) == Element("a", {}, ("x", "z"))


@pytest.mark.parametrize(
    ("children", "text"),
    [
        ((), ""),
        (("one",), "one"),
        (("one", Element("b")), "one"),
        (("one", Element("b", {}, ("two",))), "onetwo"),
        (("one", "two"), "onetwo"),
        ((Element("b", {}, ("one",)),), "one"),
        ((Element("b", {}, ("one",)), "two"), "onetwo"),
    ],
)
def test_the_text_of_an_element_is_that_of_all_its_children(children: tuple[Element | str, ...], text: str) -> None:
    assert Element("a", {}, children).text == text


def test_an_element_is_looked_up_by_the_words_of_its_attributes() -> None:
    assert Element("a", {"x": "1", "y": "2"}).attribute_words == ("x", "y", "1", "2")
