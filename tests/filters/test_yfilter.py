"""The published YFilter queries: every one, on every document, exactly the expected matches."""

import json
from pathlib import Path

import pytest

from earshot import Event, Filter


@pytest.fixture(scope="module")
def documents(shared_data: Path) -> dict[str, Event]:
    files = sorted((shared_data / "yfilter" / "documents").glob("*.xml"))
    return {file.name: Event.from_xml(file.read_bytes()) for file in files}


@pytest.mark.parametrize("suite", ["simple-paths", "simple-predicates"])
def test_the_published_queries_match_exactly_as_expected(
    suite: str, shared_data: Path, documents: dict[str, Event]
) -> None:
    lines = (shared_data / "yfilter" / f"{suite}.txt").read_text().splitlines()
    expected = json.loads((shared_data / "yfilter" / f"{suite}.expected.json").read_text())
    filters = [Filter.xpath(line) for line in lines]
    assert len(expected) == len(documents) == 100
    found = {
        name: [number for number, filter in enumerate(filters, 1) if filter.matches(event)]
        for name, event in documents.items()
    }
    assert found == expected


@pytest.mark.parametrize("suite", ["simple-paths", "simple-predicates"])
def test_the_published_queries_are_written_back_as_equal_filters(suite: str, shared_data: Path) -> None:
    for line in (shared_data / "yfilter" / f"{suite}.txt").read_text().splitlines():
        assert Filter.parse(str(Filter.xpath(line))) == Filter.xpath(line)
