"""What commands share: numbers with units, pairs, texts of an option, tables, and how the command line ends."""

from __future__ import annotations

import math
import signal
import sys
from typing import Any, NoReturn

import click
import pytest
from click.testing import CliRunner

from earshot import cli
from earshot.cli.options import (
    DELAY,
    DURATION,
    LENGTH,
    PLACE,
    POINT,
    SIZE,
    SPEED,
    Quantity,
    chosen_protocols,
    pairs,
    serve_metrics,
    together,
    toml_value,
    two_numbers,
)
from earshot.cli.pipeline import oracle
from earshot.cli.tables import aligned, print_json, print_table, print_words, warn
from earshot.errors import SparkFailure, UnknownName, UsageError
from earshot.protocols.catalogue import PROTOCOLS


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (LENGTH, "100m", 100.0), (LENGTH, "1.5 km", 1500.0), (LENGTH, "7", 7.0), (LENGTH, " 1e3m ", 1000.0),
        (DURATION, "30", 30.0), (DURATION, "250ms", 0.25), (DURATION, "2min", 120.0), (DURATION, "3h", 10_800.0),
        (DURATION, "30d", 2_592_000.0), (DELAY, "0", 0.0), (DELAY, "0s", 0.0), (SIZE, "5", 5e6), (SIZE, "5kB", 5e3),
        (SIZE, "2GB", 2e9), (SPEED, "90km/h", 25.0), (SPEED, "3m/s", 3.0), (SPEED, " None ", math.inf),
    ],
)  # fmt: skip
def test_a_quantity_has_a_unit_or_that_of_the_first(kind: Quantity, text: str, value: float) -> None:
    assert kind.convert(text, None, None) == pytest.approx(value)
    assert kind.convert(7, None, None) == 7.0, "a default is a number already"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (LENGTH, "0"), (LENGTH, "-5m"), (LENGTH, "5s"), (LENGTH, "m"), (LENGTH, ""), (LENGTH, "1..5m"),
        (LENGTH, "1e999"), (LENGTH, "none"), (LENGTH, "five m"), (DURATION, "0s"), (DELAY, "-1s"), (SPEED, "nan"),
    ],
)  # fmt: skip
def test_a_quantity_that_is_none_is_refused_with_its_units(kind: Quantity, text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"is not a {kind.name}: give a positive number and a unit"):
        kind.convert(text, None, None)


def test_where_no_limit_is_a_choice_it_is_named() -> None:
    with pytest.raises(click.BadParameter, match=r"\(m/s, km/h or 'none'\)$"):
        SPEED.convert("fast", None, None)
    with pytest.raises(click.BadParameter, match=r"\(m, km\)$"):
        LENGTH.convert("far", None, None)


def test_two_numbers_have_a_comma_between_them_and_an_end() -> None:
    assert (two_numbers("120,80"), PLACE.convert("53.43,-2.95", None, None)) == ((120.0, 80.0), (53.43, -2.95))
    assert POINT.convert((1.0, 2.0), None, None) == (1.0, 2.0)
    for wrong in ("120", "1,2,3", "a,b", "1,inf", "nan,1", ""):
        with pytest.raises(click.BadParameter, match="is not two numbers: write X,Y, as in 120,80"):
            POINT.convert(wrong, None, None)


def test_texts_of_an_option_are_read_by_their_names() -> None:
    assert pairs([" a = 1", "b=x=y", "a=2", "c="], "--set", str) == {"a": "2", "b": "x=y", "c": ""}
    with pytest.raises(UsageError, match=r"^--set 'a': write --set name=value$"):
        pairs(["a"], "--set", str)
    with pytest.raises(UsageError, match=r"^' =3': write name=value$"):
        pairs([" =3"], "", str)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("3", 3), ("3.5", 3.5), ("true", True), ('"a b"', "a b"), ("[1, 2]", [1, 2]), ("free", "free"),
        ("3\nother = 4", "3\nother = 4"), ("802.11b", "802.11b"),
    ],
)  # fmt: skip
def test_a_value_is_what_toml_says_and_otherwise_a_text(text: str, value: object) -> None:
    assert toml_value(text) == value


def test_protocols_are_named_with_commas_and_are_all_by_default() -> None:
    assert chosen_protocols(None) == list(PROTOCOLS)
    assert chosen_protocols(" cbf, ,steam,") == ["cbf", "steam"]
    with pytest.raises(UnknownName, match="cbff"):
        chosen_protocols("steam,cbff")


def test_options_together_stand_in_their_order() -> None:
    @click.command()
    @together(click.option("--first"), click.option("--second"))
    def command(first: str, second: str) -> None:
        click.echo(f"{first} {second}")

    assert [option.name for option in command.params] == ["first", "second"]
    assert CliRunner().invoke(command, ["--second", "b", "--first", "a"]).output == "a b\n"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", ":-1"])
def test_an_address_of_metrics_has_a_port(address: str) -> None:
    with pytest.raises(UsageError, match="write HOST:PORT, as in"):
        serve_metrics(address, None)


# Tables.


def test_numbers_stand_to_the_right_and_texts_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "count", "change"], [["a", 5, "+3 %"], ["long name", 120, "-"], ["", 7, "-0.5"]])
    assert capsys.readouterr().out.splitlines() == [
        "name       count  change",
        "---------  -----  ------",
        "a              5    +3 %",
        "long name    120       -",
        "               7    -0.5",
    ]
    print_table(["a", "mixed"], [["x", "-x"], ["y", "3"]])
    assert capsys.readouterr().out.splitlines()[2:] == ["x  -x", "y  3"]
    print_table(["a", "b"], [])
    assert capsys.readouterr().out.splitlines() == ["a  b", "-  -"]
    assert aligned([["ab", "c"], ["d", "ef"]], [True, False]) == ["ab  c", " d  ef"]


def test_words_are_wrapped_at_a_hundred_and_indented(capsys: pytest.CaptureFixture[str]) -> None:
    print_words("word " * 30, indent=4)
    first, second = capsys.readouterr().out.splitlines()
    assert (len(first), first[:5], second[:5]) == (98, "    w", "    w")
    print_words(f"{'x' * 49} {'y' * 50} {'x' * 50} {'y' * 50}")
    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [100, 50, 50]
    print_words("word")
    print_json({"a": [1]})
    warn(["one", "two"])
    reported = capsys.readouterr()
    assert (reported.out, reported.err) == ('word\n{\n  "a": [\n    1\n  ]\n}\n', "warning: one\nwarning: two\n")


# How the command line ends.


def raising(error: BaseException) -> Any:
    def main(**_given: object) -> NoReturn:
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (UsageError("wrong option"), 2, "earshot: wrong option\n"),
        (SparkFailure("no memory"), 1, "earshot: no memory\n"),
        (click.UsageError("no such option"), 2, "Error: no such option\n"),
        (click.ClickException("broken"), 1, "Error: broken\n"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (click.Abort(), 130, "stopped\n"),
        (ModuleNotFoundError("x", name="pyspark.sql"), 2,
         "earshot: this command needs the package 'pyspark.sql'; run: pip install 'earshot[pipeline]'\n"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_a_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, words: str
) -> None:
    monkeypatch.setattr(cli.earshot, "main", raising(error))
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert (ended.value.code, capsys.readouterr().err) == (status, words)


def test_a_package_that_is_none_of_ours_is_a_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.earshot, "main", raising(ModuleNotFoundError("x", name="numpy.linalg")))
    with pytest.raises(ModuleNotFoundError):
        cli.main([])


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (3, 3), ("text", 0), (0, 0)])
def test_a_command_ends_with_what_it_returns(monkeypatch: pytest.MonkeyPatch, returned: object, status: int) -> None:
    asked = []
    monkeypatch.setattr(cli.earshot, "main", lambda **given: asked.append(given) or returned)
    with pytest.raises(SystemExit) as ended:
        cli.main(["a", "b"])
    assert ended.value.code == status
    assert asked == [{"args": ["a", "b"], "prog_name": "earshot", "standalone_mode": False}]


def test_a_reader_that_closed_its_pipe_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(sys, "stderr", type("Closed", (), {"close": lambda _: closed.append(True)})())
    monkeypatch.setattr(cli.earshot, "main", raising(BrokenPipeError()))
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert (ended.value.code, closed) == (141, [True])


def test_who_is_asked_to_end_ends_as_with_ctrl_c_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(cli, "_asked_to_end", type(cli._asked_to_end)())
    interrupted = []
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        monkeypatch.setattr(cli.earshot, "main", lambda **_: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(SystemExit) as ended:
            cli.main([])
        assert (ended.value.code, interrupted) == (143, [True])
        own = signal.getsignal(signal.SIGTERM)
        cli._end_as_ctrl_c_does()
        assert signal.getsignal(signal.SIGTERM) is own, "what somebody set stays"
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, kept)
        signal.signal(signal.SIGINT, before)


def test_every_command_is_there_under_its_name() -> None:
    context = click.Context(cli.earshot)
    for name in ("match", "drip-brokers"):
        command = cli.earshot.get_command(context, name)
        assert command is not None
        assert command.name == name
    assert cli.earshot.list_commands(context) == list(cli.COMMANDS)
    assert cli.earshot.get_command(context, "none") is None
    with pytest.raises(UsageError, match=r"^no command named 'simulte'; did you mean 'simulate'\?$"):
        cli.earshot.main(["simulte", "city"], standalone_mode=False)
    overview = CliRunner().invoke(cli.earshot, ["--help"]).output
    assert "Match events against one filter or a file of filters." in overview


def test_help_lists_the_lake_before_the_cluster() -> None:
    names = [option.name for option in oracle.params]
    assert names == ["workload", "trace", "range_m", "lake_folder_", "master", "remote", "conf", "as_json"]
