"""Options and counts in the words of the command line: its names, its units, singular and plural."""

from __future__ import annotations

import typing

import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.cli.traces import RADIO_HELP
from earshot.errors import UsageError
from earshot.simulation.media.radios import RadioName
from earshot.words import counted


def test_one_is_singular() -> None:
    assert [counted(count, "node") for count in (0, 1, 2, 1234)] == ["0 nodes", "1 node", "2 nodes", "1,234 nodes"]


def test_too_little_memory_is_refused_with_the_option_and_its_unit() -> None:
    with pytest.raises(UsageError, match=r"^--memory must be at least 16MB, got 1MB$"):
        CliRunner().invoke(earshot, ["node", "--memory", "1MB"], catch_exceptions=False, standalone_mode=False)


def test_help_names_every_radio() -> None:
    names = RADIO_HELP.removeprefix("The radio: ").partition("  [")[0].replace(" or ", ", ").split(", ")
    assert names == list(typing.get_args(RadioName))


def test_sub_needs_no_type() -> None:
    shown = CliRunner().invoke(earshot, ["sub", "--help"]).output
    assert "[OPTIONS] [TYPE]" in shown.splitlines()[0]
