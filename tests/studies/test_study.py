"""What all studies share: readings with verdicts, and pages whose tables the studies write."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from earshot.errors import UsageError
from earshot.studies.figures import Row, curve, mean_of, ratio_of_means, ratio_to
from earshot.studies.running import BEGIN, END, StudyRun, _Job, _measure, _own_code, pages_of, write_claims
from earshot.studies.study import (
    Case,
    Claim,
    ClaimReading,
    Experiment,
    Judged,
    Study,
    all_hold,
    found,
    stated,
    study,
)

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
PAPERS = ("codd", "content-odmrp", "drip", "georendezvous", "steam")


def judged(*readings: ClaimReading) -> Judged:
    claim = Claim("it is fast", "figure 1", "ten | a second", lambda _: stated("", None), fails_if="it sleeps")
    return Judged("a-study", claim, found(*readings))


YES = ClaimReading("per node", "12 a second", True, seeds=5, interval=(11.0, 13.04))
NO = ClaimReading("in all", "8 a second", False, seeds=5, reason="one node is slow")


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ([YES], "holds"),
        ([NO], "does not hold"),
        ([YES, NO], "holds, but not under: in all"),
        ([NO, YES], "holds under: per node"),
        ([ClaimReading("any", "", None)], "not measurable here"),
    ],
)
def test_the_first_reading_decides_and_others_are_named(readings: list[ClaimReading], words: str) -> None:
    finding = found(*readings)
    assert (finding.holds, finding.measured, finding.verdict) == (readings[0].holds, readings[0].measured, words)


def test_a_finding_without_readings_has_one() -> None:
    assert [one.verdict for one in stated("7", False).readings] == ["does not hold"]


def test_json_has_every_reading() -> None:
    told = judged(YES, NO).as_json()
    assert told["fails_if"] == "it sleeps"
    assert [(one["reading"], one["seeds"], one["interval"]) for one in told["readings"]] == [
        ("per node", 5, [11.0, 13.04]),
        ("in all", 5, None),
    ]


def test_a_page_gets_one_row_a_reading_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "a-study.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_claims(page, [judged(YES, NO)], "From one case.")
    assert page.read_text() == (
        f"before\n{BEGIN}\n"
        "1 claims: 1 hold in their most natural reading, 0 do not, 0 cannot be measured here. From one case.\n\n"
        "| the paper says | where | reading | measured | seeds | 95 % interval | verdict |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| 1. it is fast: ten / a second | figure 1 | per node | 12 a second | 5 | [11, 13] | holds |\n"
        "|  |  | in all | 8 a second | 5 |  | does not hold |\n\n"
        "Why:\n\n- 1, in all: one node is slow.\n\n"
        "What would make those that hold fail:\n\n- 1 fails if it sleeps.\n"
        f"{END}\nafter\n"
    )


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no place for the claims"):
        write_claims(tmp_path / "missing.md", [], "")


@pytest.mark.parametrize("name", PAPERS)
def test_a_page_has_a_row_for_every_claim_and_a_mutation_for_each_that_holds(name: str) -> None:
    """The tables are written by the studies; a claim that is added or renamed needs a new table."""
    text = (Path(__file__).parents[2] / "docs" / "papers" / f"{name}.md").read_text("utf-8")
    _, table = text.split(BEGIN)
    claims = study(name).claims
    for number, claim in enumerate(claims, 1):
        assert f"| {number}. {claim.claim}: " in table
    rows = [line for line in table.splitlines() if line.startswith("| ") and line.endswith("|")]
    first = [line for line in rows if line[2].isdigit()]
    held = {int(line[2:].split(".")[0]) for line in first if line.endswith("| holds |")}
    named = {number for number, claim in enumerate(claims, 1) if claim.fails_if}
    assert held <= named


def mutations_run(name: str) -> int:
    """How many named mutations the tests of this study run."""
    folder = Path(__file__).parent / name.replace("-", "_")
    return sum(test.read_text("utf-8").count(" flips(") for test in folder.glob("test_*.py"))


@pytest.mark.parametrize("name", PAPERS)
def test_a_page_says_how_many_mutations_the_tests_run(name: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "papers" / f"{name}.md").read_text("utf-8")
    stated = f"`tests/studies/{name.replace('-', '_')}` runs {NUMBERS[mutations_run(name)]} of the mutations"
    assert stated in " ".join(text.split())


def test_at_least_twenty_named_mutations_are_run() -> None:
    assert sum(map(mutations_run, PAPERS)) >= 20


def test_a_page_without_marks_is_left_and_the_others_are_found(tmp_path: Path) -> None:
    (tmp_path / "steam.md").write_text(f"{BEGIN}\n{END}\n")
    (tmp_path / "hearsay.md").write_text("no marks\n")
    assert pages_of(tmp_path, ["hearsay", "steam"]) == {"hearsay": None, "steam": tmp_path / "steam.md"}


def test_without_any_page_to_write_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no place for the claims in .*hearsay\.md: write "):
        pages_of(tmp_path, ["hearsay"])


def test_a_change_of_what_an_experiment_uses_runs_it_again_and_a_change_of_the_claims_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "a_paper"
    package.mkdir()
    for name in ("__init__", "claims", "beyond_claims", "helper"):
        (package / f"{name}.py").write_text("")
    (package / "runs.py").write_text("def measure(case):\n    return []\n")
    monkeypatch.syspath_prepend(tmp_path)
    measure = importlib.import_module("a_paper.runs").measure
    paper = Study("a-paper", "A paper", [Experiment("runs", measure, [{}], [{}])], [])
    before = _own_code(paper)
    for name in ("claims", "beyond_claims"):
        (package / f"{name}.py").write_text("# judged otherwise")
    assert _own_code(paper) == before
    (package / "helper.py").write_text("# other positions")
    assert _own_code(paper) != before


def test_a_decorated_experiment_counts_the_code_beside_itself_and_not_its_decorators() -> None:
    @contextmanager
    def quietly() -> Iterator[None]:
        yield

    def plain(case: Case) -> list[Row]:
        return [dict(case)]

    of = [Study("a-paper", "", [Experiment("runs", one, [{}], [{}])], []) for one in (plain, quietly()(plain))]
    assert _own_code(of[0]) == _own_code(of[1])


def test_a_column_over_that_of_the_row_with_the_same_seed() -> None:
    rows = [{"seed": 0, "s": 2.0}, {"seed": 1, "s": None}, {"seed": 2, "s": 9.0}, {"seed": 3, "s": 3.0}]
    others = [{"seed": 0, "s": 4.0}, {"seed": 1, "s": 1.0}, {"seed": 2, "s": 0.0}, {"seed": 3, "s": 2.0}]
    ratio = ratio_to(rows, others, "s", "seed")
    assert (ratio.mean, ratio.count) == (1.0, 2)
    assert mean_of(rows, "s", seed=1).count == 0
    assert mean_of(rows, "s").mean == pytest.approx(14 / 3)


def test_a_ratio_of_means_has_an_interval_of_its_own() -> None:
    rows = [{"seed": 0, "s": 2.0}, {"seed": 1, "s": 4.0}, {"seed": 2, "s": 6.0}]
    doubled = [{**row, "s": 2 * row["s"]} for row in rows]
    exact = ratio_of_means(rows, doubled, "s", "seed")
    assert (exact.mean, exact.low, exact.high, exact.count) == (0.5, 0.5, 0.5, 3)
    # 12 over 3; the mean of the three ratios is another figure.
    apart = ratio_of_means(rows, [{"seed": seed, "s": s} for seed, s in ((0, 1.0), (1, 0.25), (2, 1.75))], "s", "seed")
    assert apart.mean == 4.0
    assert apart.low < 4.0 < apart.high


def test_a_curve_knows_its_lowest_and_highest_point() -> None:
    line = curve([{"x": 1, "y": 5.0}, {"x": 2, "y": 3.0}, {"x": 3, "y": 4.0}], "x", "y")
    assert (line.lowest.mean, line.highest.mean) == (3.0, 5.0)


@pytest.mark.parametrize(("parts", "holds", "text"), [([YES, YES], True, "2 of 2"), ([YES, NO], False, "1 of 2")])
def test_what_is_said_of_all_parts_holds_if_it_holds_for_each(
    parts: list[ClaimReading], holds: bool, text: str
) -> None:
    every = all_hold("all", parts)
    assert (every.holds, every.measured, every.seeds) == (holds, text, 5)


def test_a_page_says_what_its_table_comes_from() -> None:
    whole = StudyRun({}, cases=1210, processor_s=3540.0, quick=False)
    assert whole.origin == (
        "From 1,210 cases at the sizes stated on this page; they took 59 minutes of processor time."
    )
    assert "at smaller sizes (`--quick`)" in replace(whole, quick=True).origin


def test_a_case_keeps_its_rows_and_its_processor_time(tmp_path: Path) -> None:
    kept_at = tmp_path / "a-study" / "runs" / "case.json"
    job = _Job("runs", lambda case: [{"answer": case["seed"]}], {"seed": 7}, kept_at)
    assert _measure(job) == kept_at.read_text()
    kept = json.loads(kept_at.read_text())
    assert (kept["rows"], kept["error"], kept["processor_s"] >= 0) == ([{"answer": 7}], "", True)
    failed = json.loads(_measure(_Job("runs", lambda case: [case["missing"]], {}, tmp_path / "failed.json")))
    assert "KeyError" in failed["error"]
    assert not (tmp_path / "failed.json").exists()
