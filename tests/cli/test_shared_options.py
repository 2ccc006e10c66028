"""The options that several commands share, as the commands get them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.cli.spark import LakeOptions
from earshot.cli.traces import TraceChoice
from earshot.errors import UsageError


class Asked(Exception):
    """What a command asked for before it went on."""


def asked(monkeypatch: pytest.MonkeyPatch, place: str, *arguments: str) -> Any:
    """What the function at that place was called with."""

    def stop(*given: Any) -> Any:
        raise Asked(*given)

    monkeypatch.delenv("EARSHOT_LAKE", raising=False)
    monkeypatch.setattr(f"earshot.cli.{place}", stop)
    found = CliRunner().invoke(earshot, list(arguments)).exception
    assert isinstance(found, Asked), found
    return found.args


def test_a_trace_is_chosen_by_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "campaigns.scenario_or_trace"
    assert asked(monkeypatch, where, "compare", "base") == ("base", TraceChoice(), LakeOptions("lake"))
    every = (
        "--trace town --window 60-120s --radio lora-sf7 --range 2km --workload convoy --events e.jsonl --subscriptions "
        "s.jsonl --columns node=bus --units km --strict --lake mine --master local[2] --remote sc://there --conf "
        "spark.a=1 --conf spark.b=2"
    )
    assert asked(monkeypatch, where, "compare", *every.split()) == (
        None,
        TraceChoice("town", (60.0, 120.0), "lora-sf7", 2000.0, "convoy", "e.jsonl", "s.jsonl", "node=bus", "km", True),
        LakeOptions("mine", "local[2]", "sc://there", ("spark.a=1", "spark.b=2")),
    )


def test_a_profile_has_no_window_and_no_radio(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bar:
        def __init__(self, title: str) -> None:
            raise Asked(title)

    monkeypatch.setattr("earshot.cli.traces.ProgressBar", Bar)
    assert isinstance(CliRunner().invoke(earshot, ["profile", "town", "--range", "9m"]).exception, Asked)
    assert "No such option" in CliRunner().invoke(earshot, ["profile", "town", "--window", "0-9"]).output


def test_the_environment_may_name_the_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EARSHOT_LAKE", "there")
    found: list[LakeOptions] = []

    def opened(options: LakeOptions, *_: Any) -> Any:
        found.append(options)
        raise UsageError("enough")

    monkeypatch.setattr("earshot.cli.pipeline.open_lake", opened)
    CliRunner().invoke(earshot, ["contacts", "town", "--range", "9m"])
    assert found == [LakeOptions("there")]


@pytest.mark.parametrize(
    ("more", "viewer"),
    [
        ((), None),
        (("--at", "3,4"), ((3.0, 4.0), (0.0, 0.0))),
        (("--at", "3,4", "--moving", "1,-2"), ((3.0, 4.0), (1.0, -2.0))),
    ],
)
def test_events_are_files_and_a_viewer_has_a_place_and_perhaps_a_velocity(
    more: tuple[str, ...], viewer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "e.jsonl"
    file.touch()
    seen: list[Any] = []
    monkeypatch.setattr("earshot.cli.match._matches", lambda _, given: seen.append(given) or (lambda _: []))
    for command in ("match", "explain"):
        done = CliRunner().invoke(
            earshot, [command, "--filter", "a = 1", str(file), str(file), *more], standalone_mode=False
        )
        assert done.return_value == 1
    shown = [None if one is None else (tuple(vars_of(one.position)), tuple(vars_of(one.velocity))) for one in seen]
    assert shown == [viewer, viewer]


def vars_of(place: Any) -> list[float]:
    """The two numbers of a position or a velocity."""
    return [getattr(place, name) for name in place.__struct_fields__]
