"""docs/scenarios.md has every key there is, with its type, unit, default and meaning.

EARSHOT_WRITE_DOCS=1 makes this test write that part of the page anew.
"""

import os
from pathlib import Path

from earshot.simulation.scenario.scenario import Scenario
from earshot.simulation.settings_schema import reference, settings_described, tables_within

PAGE = Path(__file__).parents[2] / "docs" / "scenarios.md"
HEADING = "## Every key\n\n"


def test_the_page_has_every_key() -> None:
    prose, heading, written = PAGE.read_text().partition(HEADING)
    assert heading
    if os.environ.get("EARSHOT_WRITE_DOCS"):
        PAGE.write_text(prose + heading + reference(Scenario))
        written = reference(Scenario)
    assert written == reference(Scenario), "write it anew with EARSHOT_WRITE_DOCS=1"


def test_every_key_of_ours_is_explained() -> None:
    silent = {
        f"{key}.{one.name}"
        for key, found in tables_within(Scenario)
        for one in settings_described(found)
        if not one.doc and found.__module__.split(".")[-1] not in ("medium", "links", "faults")
    }
    assert silent == set()


def test_the_page_finds_what_is_deep_inside() -> None:
    text = reference(Scenario)
    for words in (
        "### `[nodes.*.mobility]`",
        "### `[[nodes.*.mobility.lanes]]`",
        "### `[publish.*.events.attributes.*]`",
        "### `[[medium.links.rotations]]`",
        '#### kind = "contention"',
        "| `range_m` | number, metres | 100.0 |",
        "| `speed_m_s` | number or [low, high], metres a second | must be given |",
    ):
        assert words in text
