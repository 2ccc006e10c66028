import pytest
from hypothesis import example, given, settings
from lxml import etree
from xpath_cases import documents, queries, with_namespaces

from earshot import Element, Event, Filter, FilterIndex
from earshot.errors import FilterSyntaxError, FilterTooCostly
from earshot.filters.language import matching
from earshot.filters.language.matching import DocumentWords
from earshot.filters.language.parser import MAX_DEPTH, MAX_LENGTH
from earshot.filters.language.xpath import FUNCTIONS
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


@pytest.mark.parametrize(
    ("query", "document", "selected"),
    [
        # conversions of XPath 1.0
        ('/CD[price < "20"]', "<CD><price> 18.00 </price></CD>", True),
        ('/CD[price = "18"]', "<CD><price>18.00</price></CD>", False),
        ("/CD[price = 18]", "<CD><price>18.00</price></CD>", True),
        ("/CD[20 > price]", "<CD><price>18</price></CD>", True),
        ("/CD[price != 18]", "<CD><price>18</price><price>19</price></CD>", True),
        ("/CD[not(price = 18)]", "<CD><price>18</price><price>19</price></CD>", False),
        ("/CD[price != 18]", "<CD><price>cheap</price></CD>", True),
        ("/CD[price != 18]", "<CD/>", False),
        ("/CD[price <= 18]", "<CD><price>cheap</price></CD>", False),
        ('/CD[price != "cheap"]', "<CD><price>cheap</price></CD>", False),
        ('/CD[price < "cheap"]', "<CD><price>1</price></CD>", False),
        ("/CD[price = 1e2]", "<CD><price>100</price></CD>", True),
        ("/CD[price > -3]", "<CD><price>-2.5</price></CD>", True),
        # the first node, and the empty text of none
        ('/CD[contains(title, "b")]', "<CD><title>a</title><title>b</title></CD>", False),
        ('/CD[starts-with(title, "a")]', "<CD><title>a</title><title>b</title></CD>", True),
        ('/CD[contains(title, "")]', "<CD/>", True),
        ('/CD[contains(.//@q, "x")]', "<CD p='1' q='x'><b q='y'/></CD>", True),
        ('/CD[contains(@*, "x")]', "<CD p='1' q='x'/>", False),
        ('/CD[contains(., "ab")]', "<CD><x>a</x><y>b</y></CD>", True),
        # names and blanks
        ("/nitf/body.head[@change.date]", '<nitf><body.head change.date=""/></nitf>', True),
        ("/and[or]", "<and><or/></and>", True),
        ("/a[and and or]", "<a><and/><or/></a>", True),
        ("/a[not]", "<a><not/></a>", True),
        ("/a[contains = 1]", "<a><contains>1</contains></a>", True),
        ("/a[text]/text()", "<a>x<text/></a>", True),
        (" / a [ @ x = '1' ] ", "<a x='1'/>", True),
        ("/a[b=5and c=6or d]", "<a><b>5</b><c>6</c></a>", True),
        ("/Straße[größe > 3]", "<Straße><größe>4</größe></Straße>", True),
        # positions
        ("/a/b[2][@x]", "<a><b x='1'/><b/></a>", False),
        ("/a/b[@x][2]", "<a><b x='1'/><b/><b x='2'/></a>", True),
        ("//b[2]", "<a><b/><c><b/></c></a>", False),
        ("/a/b[position() >= 2]", "<a><b/><b/></a>", True),
        # everything, and the step .
        ("/", "<a/>", True),
        ("/./a/./b/.", "<a><b/></a>", True),
        ("/a[.//b/./c]", "<a><x><b><c/></b></x></a>", True),
    ],
)
def test_examples(query: str, document: str, selected: bool) -> None:
    assert Filter.xpath(query).matches(Event.from_xml(document)) is selected
    if query != "/":
        assert selects(query, document) is selected


@pytest.mark.parametrize(
    ("query", "pattern"),
    [
        ("/child::CD/attribute::id", "/CD/@id"),
        ("/descendant::price", "//price"),
        ("/CD/descendant-or-self::node()/price", "/CD//price"),
        ("/lib:CD/lib:price", "/CD/price"),
        ("//*[local-name() = 'CD']/*[name() = 'lib:price']", "//CD/price"),
        ("//*[self::CD and @id]", "//CD[@id]"),
        ("/CD/price/..", "/CD[price]"),
        ("/CD[count(price) > 0]", "/CD[price]"),
        ("/CD[count(price) = 0]", "/CD[not(price)]"),
        ("//price < 20", "//price[. < 20]"),
        ("/CD | /DVD", "/CD or /DVD"),
        ("not(/CD)", "not(/CD)"),
        ("boolean(/CD[true()])", "/CD"),
        (".//price", "/*//price"),
        ("./price", "/*/price"),
        ("/CD[(price) = 1]", "/CD[price = 1]"),
        ("/CD[1 = 1]", "/CD"),
        ("/CD[@xml:lang]", "/CD[@lang]"),
    ],
)
def test_an_expression_that_is_a_tree_pattern_is_kept_as_one(query: str, pattern: str) -> None:
    assert str(Filter.xpath(query)) == pattern


@pytest.mark.parametrize("leaf", ["@k", "text()", "@*"])
@pytest.mark.parametrize(
    "asked",
    [
        *("b", "*", ".//b", "@k", ".//@k", "text()", ".//text()", "b[2]", "b = 'x'", ".//b = 'x'", "@k = 'x'"),
        *("not(b)", "not(.//b)", "contains(b, 'x')", "contains(.//b, 'x')", "starts-with(., 'x')", ". = 'x'"),
        *("b/c", ".//b/c", "b//c", "b[c]", "text() = 'x'", ".//text() = 'x'", "@*", "b[1]/c", "@*[. = 'x']"),
    ],
)
def test_nothing_lies_below_an_attribute_or_a_text(leaf: str, asked: str) -> None:
    document = "<r><a k='x'><b>x</b>x</a></r>"
    for path in (f"//a/{leaf}[{asked}]", f"//{leaf}[{asked}]", f"/r[.//{leaf}[{asked}]]", f"/r[a/{leaf}[{asked}]]"):
        assert Filter.xpath(path).matches(Event.from_xml(document)) is selects(path, document), path


def test_declared_prefixes_are_the_only_ones() -> None:
    declared = {"soap": "http://schemas.xmlsoap.org/soap/envelope/"}
    assert Filter.xpath("/soap:Envelope/@xml:lang", declared) == Filter.xpath("/Envelope/@lang")
    with pytest.raises(FilterSyntaxError, match="the prefix sopa: is not declared; the declared ones are: soap"):
        Filter.xpath("/sopa:Envelope", declared)


@pytest.mark.parametrize(
    "query",
    ["//a[following::b[following::a = 'x']] = 'y'", "//a[count(preceding::*) = count(following::*) + 7000]"],
)
def test_an_expression_that_costs_too_much_is_given_up(query: str) -> None:
    event = Event.from_xml(f"<r>{'<a><b/></a>' * 3_000}</r>")
    costly, cheap = Filter.xpath(query), Filter.xpath("//a/b[last()]")
    with pytest.raises(FilterTooCostly, match="make it more specific"):
        costly.matches(event)
    index = FilterIndex()
    index.add("costly", costly)
    index.add("cheap", cheap)
    assert index.match(event) == {"cheap"}
    assert index.given_up == {"costly": 1}


def test_an_element_that_stands_in_two_places_has_two_parents() -> None:
    shared = Element("b")
    event = Event(type="a", content=Element("a", {}, (Element("c", {}, (shared,)), Element("d", {}, (shared,)))))
    assert Filter.xpath("//c/b[not(parent::d)]").matches(event)
    assert Filter.xpath("count(//b) = 2").matches(event)


def test_an_empty_text_is_no_node() -> None:
    event = Event(type="a", content=Element("a", {}, ("", Element("b"), "")))
    assert not Filter.xpath("/a/text()").matches(event)
    assert not Filter.xpath("/a[text()[1]]").matches(event)


@pytest.mark.parametrize(
    ("query", "column", "reason"),
    [
        ("", 1, "begin with / (the document)"),
        ("CD[price]", 1, "begin with / (the document)"),
        ("../CD", 1, "begin with / (the document)"),
        ("count(CD) > 1", 7, "begin with / (the document)"),
        ("/CD[", 5, "expected a condition"),
        ("/CD]", 4, "expected an operator"),
        ("/CD[price", 10, "expected ']'"),
        ("/CD[]", 5, "expected a condition"),
        ("/CD/", 5, "expected a step"),
        ("/CD//", 6, "expected a step"),
        ("///CD", 3, "expected a step"),
        ("/CD/.[price]", 6, "write self::node()[...]"),
        ("/CD/..[price]", 7, "write parent::node()[...]"),
        ("/CD/@id/x", 9, "nothing below it"),
        ("/CD/text()/x", 12, "nothing below it"),
        ("/namespace::CD", 2, "there is no axis namespace::"),
        ("/CD/comment()", 5, "comments are no part of an event"),
        ("/CD[lang('en')]", 5, "write ancestor-or-self::*[@xml:lang]"),
        ("/CD[namespace-uri() = 'x']", 5, "namespaces are ignored"),
        ("id('x')", 1, 'write //*[@id = "x"]'),
        ("/CD[ends-with(@id, 'x')]", 5, "write substring("),
        ("/CD[lower-case(@id) = 'x']", 5, "write translate("),
        ("/CD[matches(@id, 'x')]", 5, "write contains()"),
        ("/CD[re:test(@id, 'x')]", 5, "re:test() is not supported"),
        ("/CD[frobnicate(@id)]", 5, "there are boolean()"),
        ("position() = 1", 1, "it stands in a predicate"),
        ("local-name() = 'CD'", 1, "write local-name(/)"),
        ("/CD[$x = 1]", 5, "write the value itself"),
        ("/CD[contains(price)]", 5, "takes 2 arguments, here are 1"),
        ("/CD[concat(price)]", 5, "takes at least 2 arguments"),
        ("/CD[substring(price)]", 5, "takes 2 to 3 arguments"),
        ("/CD[count('x')]", 5, "takes a path"),
        ("/CD['x' | price]", 5, "stands between two paths"),
        ("/CD[('x')[1]]", 5, "only a path in parentheses"),
        ("/CD[price = 'x]", 13, "no closing '"),
        ("/CD[price < 1e999]", 13, "too large"),
        ("/CD[price=1]x", 13, "expected an operator"),
        ("/CD[price lt 1]", 11, "expected ']'"),
        ("/CD\u00a0[x]", 4, "expected an operator"),
    ],
)
def test_what_is_not_supported_is_refused_with_its_column(query: str, column: int, reason: str) -> None:
    with pytest.raises(FilterSyntaxError) as refused:
        Filter.xpath(query)
    assert refused.value.column == column
    assert reason in refused.value.reason


def test_a_filter_may_nest_so_deep_and_no_deeper() -> None:
    filter = Filter.xpath(nested((MAX_DEPTH - 2) // 2))
    assert Filter.parse(str(filter)) == filter
    assert filter.covers(filter)
    assert not filter.matches(Event.from_xml("<a/>"))
    for too_deep in (nested(5_000), "/a" * (MAX_DEPTH + 1), "/a[" + "(" * 5_000, "/a[" + "not(" * 4_000):
        with pytest.raises(FilterSyntaxError, match="nests at most"):
            Filter.xpath(too_deep)


def nested(levels: int) -> str:
    return "/a" + "[a" * levels + "]" * levels


def test_a_filter_may_be_so_long_and_no_longer() -> None:
    most = f"/a[x = '{'y' * (MAX_LENGTH - 10)}']"
    assert len(most) == MAX_LENGTH
    assert Filter.parse(str(Filter.xpath(most.replace(" = ", "=")))) == Filter.xpath(most)
    with pytest.raises(FilterSyntaxError, match="at most 20,000 characters, this one 20,001") as caught:
        Filter.xpath(most + " ")
    assert caught.value.column == 1


@pytest.mark.parametrize(
    "query",
    [
        "//a" * 15 + "/zz",
        "//a/a" * 8 + "//zz",
        "//a[.//a[.//a[.//a[.//a[.//a[.//zz]]]]]]",
        "//a[not(.//a[not(.//a[not(.//a[.//zz])])])][.//zz]",
        '//a[contains(.//a/a//a/a//a/a, "zz")]',
        "//a//a[.//a = 5]//a[a//a/text() = 7]//@zz",
        '//a[contains(.//a//a//a//a//a//a, "zz")]',
        '//a[starts-with(.//a[contains(.//a//a, "zz")]//a//@zz, "zz")]',
    ],
)
def test_no_document_makes_a_filter_slow(query: str) -> None:
    """Without memory of what was looked at, these take longer than anyone can wait."""
    filter = Filter.xpath(query)
    deep = Event.from_xml("<a>" * 240 + "</a>" * 240)
    assert not filter.matches(deep)
    assert filter.explain(deep).startswith("it does not match")


@pytest.mark.parametrize(
    ("name", "is_name"), [("é", True), ("e\u0301", True), ("日本", True), ("²", False), ("\u0301e", False)]
)
def test_a_name_is_what_xml_calls_a_name(name: str, is_name: bool) -> None:
    if is_name:
        assert Filter.xpath(f"/{name}").matches(Event.from_xml(f"<{name}/>"))
        return
    with pytest.raises(FilterSyntaxError):
        Filter.xpath(f"/{name}")


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("count(//b) = '2.0'", True),
        ("'3' = count(//b)", False),
        ("string(//b) != 1.0", False),
        ("concat('0', //b) = '1'", False),
        ("//b[following-sibling::b[@n = '2']]/c", True),
        ("//b[following-sibling::b[@n = '1']]/c", False),
    ],
)
def test_a_text_beside_a_number_is_read_as_one_and_predicates_ask_their_own_node(expression: str, holds: bool) -> None:
    text = "<a><b n='1'>1<c/></b><b n='2'/></a>"
    assert etree.XPath(f"boolean({expression})")(etree.fromstring(text)) is holds
    assert Filter.xpath(expression).matches(Event.from_xml(text)) is holds


def test_a_filter_is_compiled_once_and_looks_the_same_after(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, compile = [], matching.compiled
    monkeypatch.setattr(matching, "compiled", lambda *given: compiled.append(given) or compile(*given))
    filter = Filter.xpath("/a/b")
    written = repr(filter)
    assert filter.matches(Event.from_xml("<a><b/></a>"))
    assert not filter.matches(Event.from_xml("<a/>"))
    assert (len(compiled), repr(filter)) == (1, written)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_takes_as_many_arguments_as_xpath_says(name: str) -> None:
    """lxml's answer is the truth: it refuses a call with too few or too many arguments."""
    tree = etree.ElementTree(etree.fromstring("<r><a>1</a></r>"))
    for count in range(5):
        text = f"/r[boolean({name}({', '.join(['a'] * count)}))]"
        if name == "position" and count == 0:
            continue  # a bare position() is refused for another reason
        try:
            tree.xpath(text)
        except etree.XPathError:
            with pytest.raises(FilterSyntaxError):
                Filter.xpath(text)
        else:
            Filter.xpath(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/r/a", True),
        ("//a[@z]", False),
        ("//a[@k='v']/b", True),
        ("//a[@k='w']/b", False),
        ("//a[@n=5]", True),
        ("//a[@n='5']", False),
        ("//a[@n=6]", False),
        ("/r[@*='1']", True),
        ("//a[b='t']", True),
        ("//a[2]", True),
        ("//b[2]", False),
        ("//c", False),
        ("//@n", True),
    ],
)
def test_a_document_answers_its_fortieth_question_as_its_first(path: str, expected: bool) -> None:
    """From the sixteenth on, paths are asked only of documents that have all their words."""
    event = Event.from_xml("<r m='1'><a k='v' n='5.0'><b>t</b></a><a/></r>")
    filter = Filter.xpath(path)
    assert [filter.matches(event) for _ in range(40)] == [expected] * 40


def test_the_words_of_a_document_are_its_names_and_its_attributes_as_texts_and_numbers() -> None:
    words = DocumentWords(Event.from_xml("<r m='x'><a n='5.0'>t</a></r>").root)
    assert words.words == {"r", "a", "m", "n", ("m", "x"), ("n", "5.0"), ("n", 5.0)}
    assert {name: len(found) for name, found in words.by_name.items()} == {"r": 1, "a": 1}
