import math

import pytest
from lxml import etree

from earshot.filters.language.values import number

TEXTS = [
    *(
        "5",
        "-5",
        "5.",
        ".5",
        "-.5",
        "0.10",
        "1e3",
        "1E3",
        "1e+3",
        "1e-3",
        "1e",
        "5e",
        "1e+",
        "1.e2",
        " 5 ",
        "\n5\t",
        "\r5",
    ),
    *(
        "\n5\t",
        "\r5",
        "",
        " ",
        "+5",
        "- 5",
        ".",
        "-",
        "--5",
        "1.5e2x",
        "5 6",
        "inf",
        "Infinity",
        "NaN",
        "nan",
        "0x10",
        "1_0",
        "1,5",
    ),
    *(
        "\u00a05",
        "5\u2003",
        "٣",
        "²",
        "e5",
        ".e2",
        "1e400",
        "-0",
        "1e1e",
        "1e1e+",
        "1e1e1",
        "1e",
        "1e-",
        "1.e2",
        "1e+",
        "-1e1E-",
    ),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_the_number_libxml2_says(text: str) -> None:
    element = etree.Element("a")
    element.text = text
    expected = element.xpath("number(.)")
    assert number(text) == expected or (math.isnan(number(text)) and math.isnan(expected))
