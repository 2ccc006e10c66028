import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from earshot.cli import earshot
from earshot.cli.match import LIMITS, _read
from earshot.errors import FilterSyntaxError, UsageError

JAZZ = '{"type": "CD", "content": {"category": "jazz", "price": 18}}'
SIREN = '{"type": "Siren", "id": "s1", "content": {"speed": 20}, "position": {"x_m": 100, "y_m": 0}}'


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cd.json").write_text(JAZZ)
    Path("cd.xml").write_text("<CD xmlns='urn:x'><category>pop</category><price>25</price></CD>")
    Path("all.jsonl").write_text(f"{JAZZ}\n\n{SIREN}\n")
    Path("wanted.txt").write_text("# cheap ones\nprice < 20\n\n/CD[price > 20]\n  # sirens\nSiren: speed > 10\n")


def run(*arguments: str, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(earshot, arguments, input=input, standalone_mode=False)


def test_the_events_a_filter_matches_are_printed() -> None:
    result = run("match", "--filter", "price < 20", "cd.json", "cd.xml", "all.jsonl")
    assert (result.stdout, result.return_value) == ("cd.json\nall.jsonl:1\n", 0)


def test_an_xpath_filter_begins_with_a_slash() -> None:
    result = run("match", "--filter", '/CD[category="pop"]', "cd.json", "cd.xml")
    assert (result.stdout, result.return_value) == ("cd.xml\n", 0)


def test_nothing_matched_is_exit_code_1() -> None:
    result = run("match", "--filter", "price < 2", "cd.json", "cd.xml")
    assert (result.stdout, result.return_value) == ("", 1)


def test_each_event_is_printed_with_the_line_numbers_of_the_filters() -> None:
    result = run("match", "--filters", "wanted.txt", "cd.json", "cd.xml", "all.jsonl")
    assert (result.stdout, result.return_value) == ("cd.json: 2\ncd.xml: 4\nall.jsonl:1: 2\nall.jsonl:3: 6\n", 0)


def test_as_json_every_event_is_one_object() -> None:
    result = run("match", "--filters", "wanted.txt", "--json", "cd.xml", "all.jsonl")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"event": "cd.xml", "type": "CD", "matches": [4]},
        {"event": "all.jsonl:1", "type": "CD", "matches": [2]},
        {"event": "all.jsonl:3", "type": "Siren", "id": "s1", "matches": [6]},
    ]
    result = run("match", "--filter", "price < 20", "--json", "cd.xml")
    assert json.loads(result.stdout) == {"event": "cd.xml", "type": "CD", "matches": False}


def test_json_of_events_keeps_letters_of_all_languages() -> None:
    Path("jam.json").write_text('{"type": "Straße", "id": "ü", "content": {"km": 3}}', encoding="utf-8")
    printed = run("match", "--filter", "km = 3", "--json", "jam.json").stdout
    assert printed == '{"event": "jam.json", "type": "Straße", "id": "ü", "matches": true}\n'


@pytest.mark.parametrize(
    ("standard_input", "printed"),
    [
        (JAZZ, "-:1\n"),
        (f"{SIREN}\n{JAZZ}\n\n{JAZZ}", "-:2\n-:4\n"),
        ("\n\n" + json.dumps(json.loads(JAZZ), indent=1), "-\n"),
        ("<CD>\n<price>3</price>\n</CD>", "-\n"),
    ],
)
def test_standard_input_is_read_in_any_form(standard_input: str, printed: str) -> None:
    assert run("match", "--filter", "price < 20", "-", input=standard_input).stdout == printed


def test_place_terms_take_the_consumers_position() -> None:
    arguments = ("match", "--filter", "within 50 m and approaching", "all.jsonl")
    assert run(*arguments).return_value == 1
    assert run(*arguments, "--at", "60,0").return_value == 1
    assert run(*arguments, "--at", "60,0", "--moving", "3,0").stdout == "all.jsonl:3\n"


def test_a_bad_event_is_reported_and_the_others_are_matched() -> None:
    Path("bad.jsonl").write_text(f"{{\n{JAZZ}\n")
    Path("bad.xml").write_text("<CD>\n<a></CD>")
    result = run("match", "--filter", "price < 20", "bad.xml", "bad.jsonl")
    assert (result.stdout, result.return_value) == ("bad.jsonl:2\n", 2)
    reported = [line for line in result.stderr.splitlines() if line.startswith("earshot: ")]
    assert [line.split(" ")[1] for line in reported] == ["bad.xml:", "bad.jsonl:1:"]
    assert "line 2" in reported[0]


def test_all_bad_filters_of_a_file_are_reported_together() -> None:
    Path("wanted.txt").write_text("price <\nprice < 20\n/a[\n")
    result = run("match", "--filters", "wanted.txt", "cd.json")
    assert isinstance(result.exception, UsageError)
    assert [line.split(": ")[0] for line in str(result.exception).splitlines() if "wanted.txt" in line] == [
        "wanted.txt:1",
        "wanted.txt:3",
    ]


def test_a_bad_filter_names_its_column() -> None:
    result = run("match", "--filter", "price < ", "cd.json")
    assert isinstance(result.exception, FilterSyntaxError)
    assert result.exception.column == 9


@pytest.mark.parametrize(
    "arguments",
    [
        ("match", "cd.json"),
        ("match", "--filter", "a", "--filters", "wanted.txt", "cd.json"),
        ("match", "--filter", "a"),
        ("match", "--filter", "a", "nowhere.json"),
        ("match", "--filter", "a", "--at", "1", "cd.json"),
        ("match", "--filter", "a", "--at", "nan,1", "cd.json"),
        ("match", "--filter", "a", "--moving", "1,1", "cd.json"),
        ("explain", "cd.json"),
    ],
)
def test_wrong_arguments_are_exit_code_2(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(earshot, arguments).exit_code == 2


def test_an_event_that_is_too_large_is_refused_unread() -> None:
    Path("large.xml").write_text("<CD>" + "x" * LIMITS.bytes + "</CD>")
    Path("large.jsonl").write_text('{"type": "CD", "content": {"price": ' + "1" * 2 * LIMITS.bytes + f"}}}}\n{JAZZ}\n")
    result = run("match", "--filter", "price < 20", "large.xml", "large.jsonl")
    assert (result.stdout, result.return_value) == ("large.jsonl:2\n", 2)
    assert result.stderr.count("too large: an event has at most") == 2


def test_filters_that_are_not_text_are_refused() -> None:
    Path("wanted.txt").write_bytes(b"price < 20\n\xff\xfe")
    result = run("match", "--filters", "wanted.txt", "cd.json")
    assert isinstance(result.exception, UsageError)
    assert "UTF-8" in str(result.exception)


def test_explain_says_which_term_failed_or_held() -> None:
    result = run("explain", "--filter", 'price < 20 and category = "jazz"', "cd.json", "cd.xml")
    assert result.stdout == (
        'cd.json: it matches: category = "jazz" held (category is "jazz"); price < 20 held (price is 18)\n'
        'cd.xml: it does not match: category = "jazz" failed (category is "pop"); price < 20 failed (price is 25)\n'
    )
    assert result.return_value == 0
    assert run("explain", "--filter", "price > 30", "cd.json").return_value == 1


def test_explain_as_json() -> None:
    result = run("explain", "--filter", "price", "--json", "cd.json")
    assert json.loads(result.stdout) == {
        "event": "cd.json",
        "type": "CD",
        "matches": True,
        "explanation": "it matches: price held (price is 18)",
    }


@pytest.mark.parametrize("command", ["match", "explain"])
def test_help_teaches_with_examples(command: str) -> None:
    shown = run(command, "--help").stdout
    assert f"earshot {command} --filter '" in shown
    assert "Exit code" in " ".join(shown.split())


def test_a_line_is_printed_before_the_next_is_read() -> None:
    lines = iter([f"{JAZZ}\n".encode()] * 2 + [b""])
    order: list[str] = []

    class Producer(io.BytesIO):
        def readline(self, size: int | None = -1) -> bytes:
            order.append("asked for a line")
            return next(lines)

    for name, _ in _read("-", Producer(), ""):
        order.append(name)
    assert order == ["asked for a line", "-:1", "asked for a line", "-:2", "asked for a line"]
