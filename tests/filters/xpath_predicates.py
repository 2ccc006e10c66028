"""XPath predicates and documents written by hand; tests hold every way of answering them to one truth."""

DOCUMENTS = (
    "<r><a>1</a><a>2</a><b>2</b><b>3</b><c k='3' l='x'>jazz</c><d><a>4</a><e/></d></r>",
    "<r k='5'><a>word</a><b/><c k='4'>rock</c><c k='5'> jazz </c><d><d><a>1</a></d></d>tail</r>",
    "<r/>",
    "<s><a>2</a><b>1</b></s>",
    "<r><a>-1</a><b>-1</b><a>10</a><n>0</n><c l='y'>a b c</c></r>",
    "<r><d/><d k='9'><e/><a>4</a><a>7</a></d><a>1</a><f><a>2</a><g><b>5</b></g></f><b>2</b>x<b l='z'>2</b></r>",
)
PREDICATES = (
    # Nodes compared with nodes: any pair counts, and without nodes nothing holds.
    "a = b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "b = a", "b < a", "b > a", "x = a", "a = x", "x != a",
    "a != x", "x < a", "a > x", "x = x", "c/@k = c/@k", "c/@k != c/@k", "a < c/@k", "c/@k <= a", "c/@l < a", "a >= c",
    # Nodes compared with values.
    "a = 1", "a != 1", "a = '1'", "a != 'word'", "1 < a", "a < 1", "a <= -1", "a = true()", "x = false()",
    "x != true()", "a != false()", "c = ' jazz '", "'2' >= a", "b = ''",
    # Values compared with values.
    "1 = 1", "1 < 1", "'a' = 'a'", "'a' != 'a'", "true() = 'x'", "true() > false()", "'2' < '10'", "'1' = 1",
    "false() = ''", "true() != 0", "string(a) = '1'", "string(x) = ''", "number(a) = 1", "number(x) = number(x)",
    "number(x) != number(x)",
    # Numbers.
    "a + 1 = 2", "a - 1 = 0", "a * 2 = 4", "a div 2 = 1", "a mod 2 = 1", "-a = 1", "-(-a) = -1", "n div n = n div n",
    "1 div n > 100", "-1 div n < -100", "n div 0 = 0", "5 mod 3 = 2", "-5 mod 3 = -2", "5 mod -3 = 2",
    "1.5 mod 0.5 = 0",
    "count(a) = 2", "count(a) > count(b)", "count(//a) = 3", "count(x) = 0", "sum(a) = 3", "sum(b) = 5", "sum(x) = 0",
    "floor(1.5) = 1", "ceiling(1.5) = 2", "round(1.5) = 2", "round(-1.5) = -1", "round(2.4) = 2", "floor(-0.5) = -1",
    # Texts.
    "contains(c, 'az')", "starts-with(c, 'ja')", "contains(c, '')", "starts-with(x, '')", "contains('jazz', c)",
    "string-length(c) = 4", "string-length() > 0", "normalize-space(c[2]) = 'jazz'", "concat(a, b) = '12'",
    "substring(c, 2) = 'azz'", "substring(c, 2, 2) = 'az'", "substring(c, 0, 2) = 'j'", "substring(c, 1.5) = 'azz'",
    "substring-before(c, 'z') = 'ja'", "substring-after(c, 'a') = 'zz'", "translate(c, 'jz', 'J') = 'Ja'",
    "substring-before(c, 'q') = ''", "translate(c, 'abc', 'xyz') = 'x y z'",
    # Truth.
    "not(a)", "not(x)", "boolean(a)", "boolean('')", "boolean(0)", "a and b", "a and x", "a or x", "x or x",
    "not(a = b) and c", "true()", "false()",
    # Positions.
    "a[1] = 1", "a[2] = 2", "a[3]", "a[last()] = 2", "a[position() = 2] = 2", "a[position() < 2] = 2", "a[-1]",
    "a[last() - 1] = 1", "a[position() = last()] = 10", "a[-position() = -2] = 2", "a[position() mod 2 = 0]",
    "c[@k][1] = ' jazz '", "c[@k = 5][1]", "c[2][@k = 5]", "a[. = 2][1]", "d/d/a[1]", "//a[1] = 4", "(//a)[1] = 1",
    "(//a)[last()] = 4", "a[string(position()) = '2']", "*[last()]/@k", "a[1.5]", "*[position() > 2]/@k = 4",
    # Paths.
    "//e", ".//a = 4", "d//a = 1", "d/*/a", "*/e", "c/@*", "c/@k = 5", "@k", "@k = c/@k", "//@k = 5", "text()",
    "c/text() = 'jazz'", "text() = 'tail'", "//text() = '4'", ".", "./a", "..", "a/..", "d/e/../a = 4", "a/../b = 3",
    "a | x", "x | y", "(a | b) = 3", "count(a | b) = 4", "count(a | a) = 2", "ancestor::r", "d/a/ancestor::d",
    "a/following-sibling::b = 3", "b/preceding-sibling::a = 1", "self::r", "self::s", "descendant::a = 4", "child::a",
    "attribute::k", "d/descendant-or-self::d/a = 1", "a/parent::r", "parent::r", "d[a]/e", "d[not(a)]", "d[a = 4]",
    "/r/a = 1", "/s", "count(/r/a) = 2", "/*/d/../a = 1", "//d//a = 7", "/.", "a = /r/b", "/r//d[a]/e",
    # The other axes: their order, and the nodes that several nodes lead to together.
    "b/preceding-sibling::*[1] = 2", "b[1]/preceding-sibling::*[1] = 2", "count(b/preceding-sibling::*) = 3",
    "count(b[2]/preceding-sibling::*) > 3", "b[last()]/preceding-sibling::b", "count(a/following-sibling::*) = 5",
    "count(a/following-sibling::*) = 3", "a/following-sibling::*[1] = 2", "a[2]/following-sibling::*[1] = 2",
    "a[1]/following-sibling::*[last()]/@l", "count(//a/ancestor::*) = 2", "count(//a/ancestor::*) > 2",
    "//e/ancestor::*[1]/a", "//e/ancestor::*[2]/b", "count(//a/ancestor-or-self::a) = 3", "//a/preceding::b",
    "//a/preceding::*[1]", "count(//a/preceding::*) = 5", "count(//b/preceding::*) > 5", "//b/following::a = 4",
    "//e/following::*[1] = 4", "count(//e/following::*) = 2", "count(//a/following::*) > 4", "//@k/following::a",
    "//@k/preceding::a = 2", "count(//d/descendant::*) = 2", "count(//d/descendant-or-self::*) > 3",
    "c/@k/.. = 'jazz'", "c/@k/ancestor::r", "@k/following-sibling::a", "d/a/preceding-sibling::*",
    "d/e/following-sibling::a = 4", "count(d/*/following-sibling::*) = 2", "count(d/*/preceding-sibling::*) = 2",
    # The first node in document order counts where one text is asked for.
    "contains(d/a, '4')", "contains(d/d/a, '1')", "starts-with(*/a, '4')", "contains(.//d/a, '4')",
    "string(*/a) = '4'", "starts-with(a, '1')", "starts-with(a, '4')", "contains(b, '2')", "contains(b, '5')",
    "starts-with(.//a, '4')", "starts-with(.//a, '1')", "contains(f//b, '5')", "contains(f/g/b, '5')",
    "contains(g/b, '5')",
    "contains(*/@k, '3')", "contains(*/@k, '9')", "starts-with(d//a, '4')", "contains(*/*, '4')",
    "contains(d[2]/a, '4')",
    "starts-with(//d/a, '1')", "starts-with(//a, '1')", "contains(//b, '5')", "contains(//f//b, '5')",
    "contains(d/a[2], '7')", "starts-with(text(), 'x')", "contains(//text(), '4')", "contains(b/@l, 'z')",
    "contains(*[a]/a, '4')", "contains(//*[b]/b, '5')", "starts-with(../*/a, '1')", "contains(c/text(), 'az')",
    "number(*/a) = 4", "string-length(//d/a) = 1", "name(//*[a][last()]) = 'f'", "//g/b = 5", ".//f/g//b", "*/*/b = 5",
    "c[starts-with(., 'ja')]/@k", "name(*) = 'a'", "local-name(c/@*) = 'k'", "name() = 'r'", "*[name() = 'b'] = 2",
)  # fmt: skip
