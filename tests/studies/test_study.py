"""What all studies share: readings with verdicts, and pages whose tables the studies write."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from earshot.errors import UsageError
from earshot.pipeline.reports.page import PageTable
from earshot.studies.figures import (
    Compared,
    Estimate,
    Row,
    above,
    always,
    apart,
    at_least,
    at_most,
    below,
    curve,
    difference_to,
    estimate,
    every,
    fit_line,
    mean_of,
    ratio_of_means,
    ratio_to,
    spread,
    within,
)
from earshot.studies.running import (
    BEGIN,
    END,
    StudyRun,
    _Job,
    _measure,
    _own_code,
    pages_of,
    run_study,
    studies_report,
    write_claims,
)
from earshot.studies.study import (
    Case,
    Claim,
    ClaimReading,
    Experiment,
    Judged,
    Study,
    all_hold,
    found,
    read_as,
    stated,
    study,
    tally,
)

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
PAPERS = ("codd", "content-odmrp", "drip", "georendezvous", "steam")


def judged(*readings: ClaimReading) -> Judged:
    claim = Claim("it is fast", "figure 1", "ten | a second", lambda _: stated("", None), fails_if="it sleeps")
    return Judged("a-study", claim, found(*readings))


YES = ClaimReading("per node", "12 a second", True, seeds=5, interval=(11.0, 13.04), bound=10.0)
NO = ClaimReading("in all", "8 a second", False, seeds=5, reason="one node is slow")
DOUBTFUL = ClaimReading("at night", "11 a second", True, seeds=2, interval=(9.0, 13.0), bound=10.0)
NOT_SHOWN = ClaimReading("by day", "9.5 a second", False, seeds=2, interval=(8.0, 11.0), bound=10.0)


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ([YES], "holds"),
        ([NO], "does not hold"),
        ([DOUBTFUL, NO], "holds by the mean; the interval contains the bound, but not under: in all"),
        ([NOT_SHOWN, YES], "does not hold; the interval contains the bound; holds under: per node"),
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
    reported = judged(YES, NO, DOUBTFUL).as_json()
    assert reported["fails_if"] == "it sleeps"
    shown = ("reading", "seeds", "interval", "bound", "in_doubt", "verdict")
    assert [tuple(one[name] for name in shown) for one in reported["readings"]] == [
        ("per node", 5, [11.0, 13.04], 10.0, False, "holds"),
        ("in all", 5, None, None, False, "does not hold"),
        ("at night", 2, [9.0, 13.0], 10.0, True, "holds by the mean; the interval contains the bound"),
    ]


def test_a_page_gets_one_row_a_reading_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "a-study.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_claims(page, [judged(YES, NO)], "From one case.")
    assert page.read_text() == (
        f"before\n{BEGIN}\n"
        "1 claims in their most natural reading: 1 hold. From one case.\n\n"
        "| the paper says | where | reading | measured | seeds | 95 % interval | bound | verdict |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| 1. it is fast: ten / a second | figure 1 | per node | 12 a second | 5 | [11, 13] | 10 | holds |\n"
        "|  |  | in all | 8 a second | 5 |  |  | does not hold |\n\n"
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
    held = {int(line[2:].split(".")[0]) for line in first if line.rsplit(" | ", 1)[1].startswith("holds")}
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


# Where chance plays a part, the mean decides, and the verdict says whether the interval contains the bound.

HOLDS, IN_DOUBT = "holds", "; the interval contains the bound"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        pytest.param([11.0, 11.5, 12.0], HOLDS, id="bound outside"),
        pytest.param([9.0, 11.0, 13.0], f"holds by the mean{IN_DOUBT}", id="bound inside, above it"),
        pytest.param([7.0, 9.0, 11.0], f"does not hold{IN_DOUBT}", id="bound inside, below it"),
        pytest.param([8.0, 8.5, 9.0], "does not hold", id="bound outside, below it"),
        pytest.param([10.0, 10.0, 10.0], HOLDS, id="every seed at the bound"),
        pytest.param([11.0], HOLDS, id="one seed has no interval"),
        pytest.param([9.0], "does not hold", id="one seed below"),
    ],
)
def test_a_verdict_says_whether_the_interval_contains_the_bound(values: list[float], verdict: str) -> None:
    reading = read_as("ten a second", "", at_least(estimate(values), 10.0), len(values))
    assert (reading.verdict, reading.bound) == (verdict, 10.0)


def test_an_interval_that_ends_at_the_bound_lies_on_one_side_of_it() -> None:
    for interval in ((10.0, 12.0), (8.0, 10.0)):
        assert not Compared(True, interval, 10.0).in_doubt
    assert Compared(True, (9.999, 12.0), 10.0).in_doubt
    assert Compared(True, (8.0, 10.001), 10.0).in_doubt
    assert not Compared(True, (9.0, 12.0)).in_doubt
    assert not Compared(True, None, 10.0).in_doubt


TWELVE = Estimate(12.0, 9.0, 15.0, 3)


@pytest.mark.parametrize(
    ("compare", "bounds"),
    [
        (above, {10.0: True, 12.0: False}),
        (at_least, {10.0: True, 12.0: True, 12.1: False}),
        (below, {14.0: True, 12.0: False}),
        (at_most, {14.0: True, 12.0: True, 11.9: False}),
    ],
)
def test_the_mean_decides_and_surely_the_whole_interval(
    compare: Callable[..., Compared], bounds: dict[float, bool]
) -> None:
    assert {bound: compare(TWELVE, bound).holds for bound in bounds} == bounds
    assert not any(compare(TWELVE, bound, surely=True).holds for bound in bounds)
    beyond = 8.0 if compare in (above, at_least) else 16.0
    assert compare(TWELVE, beyond, surely=True) == Compared(True, (9.0, 15.0), beyond)


def test_two_bounds_are_judged_by_the_nearer_one() -> None:
    assert within(TWELVE, 0.0, 16.0) == Compared(True, (9.0, 15.0), 16.0)
    assert within(TWELVE, 0.0, 14.0) == Compared(True, (9.0, 15.0), 14.0)
    assert within(TWELVE, 0.0, 11.0) == Compared(False, (9.0, 15.0), 11.0)
    assert not within(TWELVE, 0.0, 14.0, surely=True).holds


SURE, UNSURE = Compared(True, (2.0, 3.0), 1.0), Compared(True, (0.5, 3.0), 1.0)
FAILED, PERHAPS_FAILED = Compared(False, (-3.0, 0.0), 1.0), Compared(False, (-3.0, 1.5), 1.0)


@pytest.mark.parametrize(
    ("parts", "weakest"),
    [
        ([SURE, UNSURE], UNSURE),
        ([SURE, Compared(True)], SURE),
        ([UNSURE, PERHAPS_FAILED], PERHAPS_FAILED),
        ([UNSURE, PERHAPS_FAILED, FAILED], FAILED),
        ([FAILED, Compared(False)], Compared(False)),
    ],
)
def test_a_compound_is_as_sure_as_its_weakest_part(parts: list[Compared], weakest: Compared) -> None:
    assert every(parts) == every(reversed(parts)) == weakest
    assert all_hold("all", [read_as("", "", part, 3) for part in parts]).interval == weakest.interval


def test_a_curve_is_judged_by_its_weakest_point_and_not_by_the_lowest() -> None:
    steady = [{"x": 1, "y": y} for y in (0.96, 0.961, 0.962)]
    noisy = [{"x": 2, "y": y} for y in (0.99, 0.9, 1.0)]
    line = curve([*steady, *noisy], "x", "y")
    assert line.lowest.mean == line.means[1]
    assert at_least(line.at(1), 0.95).in_doubt is False
    assert (at_least(line, 0.95).holds, at_least(line, 0.95).in_doubt) == (True, True)


def test_one_counter_example_decides_what_is_said_of_every_run() -> None:
    lost = read_as("nothing is lost", "", always(estimate([1.0, 1.0, 0.9]), 1.0), 3)
    assert (lost.holds, lost.interval is not None, lost.verdict) == (False, True, "does not hold")


def test_those_in_doubt_are_counted_apart() -> None:
    count = tally([judged(first) for first in (YES, YES, DOUBTFUL, NO, NOT_SHOWN, ClaimReading("any", "", None))])
    assert count == (
        "6 claims in their most natural reading: 2 hold, 1 hold by the mean while the interval contains the bound, "
        "1 do not hold, 1 do not hold while the interval contains the bound, 1 cannot be measured here"
    )
    assert tally([judged(YES), judged(NO)]) == "2 claims in their most natural reading: 1 hold, 1 do not hold"


def test_the_report_says_which_verdicts_are_in_doubt() -> None:
    paper = Study("a-study", "A paper", [], [])
    (section,) = studies_report([paper], [judged(DOUBTFUL)], quick=False).sections
    table = section.blocks[0]
    assert isinstance(table, PageTable)
    (row,) = [dict(zip(table.header, cells, strict=True)) for cells in table.rows]
    assert (row["verdict"], row["bound"]) == ("holds by the mean; the interval contains the bound", "10")


def test_differences_are_taken_pair_by_pair() -> None:
    ours = [{"seed": 0, "s": 3.0}, {"seed": 1, "s": 13.0}, {"seed": 2, "s": None}]
    theirs = [{"seed": 1, "of": 10.0}, {"seed": 0, "of": 1.0}, {"seed": 2, "of": 5.0}]
    apart_by = difference_to(ours, theirs, "s", "seed", other="of")
    assert (apart_by.mean, apart_by.count) == (2.5, 2)
    assert difference_to(ours, theirs, "s", "seed", other="of", times=2.0).mean == (1.0 - 7.0) / 2


def test_of_independent_runs_the_squares_of_the_intervals_add_up() -> None:
    assert apart(Estimate(10.0, 7.0, 13.0, 3), Estimate(4.0, 2.0, 6.0, 5), times=2.0) == Estimate(2.0, -3.0, 7.0, 3)


def test_the_spread_is_between_the_highest_and_the_lowest_mean() -> None:
    rows = [{"x": x, "seed": seed, "y": y + seed} for x, y in ((1, 2.0), (2, 5.0), (3, 1.0)) for seed in (0, 1)]
    assert spread(rows, "x", "y", "seed") == Estimate(4.0, 4.0, 4.0, 2)


def test_two_points_give_a_slope_without_an_interval() -> None:
    assert fit_line([1.0, 2.0], [1.0, 3.0]).interval is None
    assert above(fit_line([1.0, 2.0], [1.0, 3.0]), 0.0) == Compared(True, None, 0.0)


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


def test_a_folder_that_cannot_be_written_is_refused_before_any_case_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    def measure(_: object) -> list[dict[str, object]]:
        raise AssertionError("no case runs")

    paper = Study("a-study", "A paper", [Experiment("any", measure, [{"seed": 0}], [])], [])
    with pytest.raises(UsageError, match=r"cannot write to .*Not a directory; name another folder with --lake"):
        run_study(None, paper, tmp_path / "file" / "results")  # type: ignore[arg-type]
