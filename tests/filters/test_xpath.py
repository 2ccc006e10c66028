import pytest
from hypothesis import example, given, settings
from lxml import etree
from xpath_cases import documents, queries, with_namespaces

from earshot import Event, Filter
from sizes import sized

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def selects(query: str, document: str) -> bool:
    """The independent truth: what lxml says."""
    return bool(etree.ElementTree(etree.fromstring(document)).xpath(query))


@settings(max_examples=sized(500, 12_000))
@given(documents, queries)
@example("<a>5<!-- c -->20</a>", "/a[text()=520]")
@example("<a>5<!-- c -->20</a>", "/a[text()=20]")
@example("<a><b><b>y</b>x</b></a>", '/a[contains(.//b/text(), "x")]')
def test_a_filter_matches_exactly_the_documents_lxml_selects_from(document: str, query: str) -> None:
    filter = Filter.xpath(query)
    assert filter.matches(Event.from_xml(document)) == selects(query, document)
    assert filter.matches(Event.from_xml(with_namespaces(document))) == selects(query, document)


@settings(max_examples=sized(300, 3_000))
@given(documents, queries)
def test_the_canonical_text_is_an_equal_filter_and_to_lxml_the_same_xpath(document: str, query: str) -> None:
    filter = Filter.xpath(query)
    assert Filter.parse(str(filter)) == filter
    if str(filter) in ("true", "false"):
        assert filter.matches(Event.from_xml(document)) == (str(filter) == "true") == selects(query, document)
    else:
        assert selects(str(filter), document) == selects(query, document)
