"""What a study is: one paper's experiments, and its claims as functions of the measurements.

An experiment is a plain function of one case that returns rows. `studies/running.py` runs each case
in a Spark task and keeps finished cases in the lake. A claim reads the rows of its experiments and
states what the paper says, what we measured and whether it holds: for the most natural reading of the
paper's words first, for other readings beside it. It names a mutation of the protocol by which it would fail.

Where chance plays a part, the figure's mean over seeds decides, and the verdict says if its 95 % interval contains the
bound: other seeds might then turn it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from earshot.errors import UnknownName
from earshot.studies.figures import Compared, Row, Series, every, seeds_of

Case = Mapping[str, Any]
"One point of an experiment: its parameters and seed, as JSON values."
Rows = Mapping[str, Sequence[Row]]
"All rows by the name of their experiment; each row also holds the parameters of its case."


@dataclass(frozen=True)
class Experiment:
    """A function of one case, and its cases: at the paper's sizes, and smaller ones for `--quick`."""

    name: str
    measure: Callable[[Case], Sequence[Row]]
    "A module-level function, so that another process can import it."
    cases: Sequence[Case]
    quick: Sequence[Case]

    def case_id(self, case: Case, code: str) -> str:
        """A hash of the function, its case and the code's digest."""
        what = json.dumps([self.measure.__module__, self.measure.__qualname__, dict(case), code], sort_keys=True)
        return hashlib.sha256(what.encode()).hexdigest()[:20]


def cases(**parameters: Iterable[Any]) -> list[dict[str, Any]]:
    """The product of the parameters: `cases(nodes=[80, 600], seed=range(3))` gives six."""
    names = list(parameters)
    return [dict(zip(names, values, strict=True)) for values in product(*map(list, parameters.values()))]


RULE = (
    "The figure's mean decides. Where its interval contains the bound, the verdict says so: other seeds might turn it."
)


@dataclass(frozen=True)
class ClaimReading:
    """One way to read a claim: what was measured for it, over how many seeds, and its verdict."""

    reading: str
    "How the paper's words are taken."
    measured: str
    holds: bool | None
    "None if it cannot be measured."
    seeds: int = 1
    "0 where chance plays no part."
    interval: tuple[float, float] | None = None
    "The 95 % confidence interval of the figure that decides; None where it has none."
    bound: float | None = None
    "What that figure is compared with; None where there is no such figure, or one counter-example decides."
    reason: str = ""
    "Why it does not hold or cannot be measured, if known; a reading that holds drops it."

    def __post_init__(self) -> None:
        if self.holds:
            object.__setattr__(self, "reason", "")

    @property
    def in_doubt(self) -> bool:
        """Whether the interval contains the bound."""
        return self.holds is not None and Compared(self.holds, self.interval, self.bound).in_doubt

    @property
    def verdict(self) -> str:
        if self.in_doubt:
            return f"{'holds by the mean' if self.holds else 'does not hold'}; the interval contains the bound"
        return {True: "holds", False: "does not hold", None: "not measurable here"}[self.holds]

    @property
    def interval_text(self) -> str:
        """The interval in brackets; empty if there is none."""
        return "" if self.interval is None else "[{:.3g}, {:.3g}]".format(*self.interval)

    @property
    def bound_text(self) -> str:
        """The bound with three digits; empty if there is no bound."""
        return "" if self.bound is None else f"{self.bound:.3g}"


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim: that of its most natural reading."""

    readings: Sequence[ClaimReading]
    "At least one; the most natural one first."
    series: Sequence[Series] = ()

    @property
    def measured(self) -> str:
        return self.readings[0].measured

    @property
    def holds(self) -> bool | None:
        """None if it cannot be measured."""
        return self.readings[0].holds

    @property
    def reason(self) -> str:
        """Why it does not hold or cannot be measured, if known."""
        return self.readings[0].reason

    @property
    def verdict(self) -> str:
        """In words; readings with another verdict are named."""
        first, *others = self.readings
        if first.holds is None:
            return first.verdict
        differing = [reading.reading for reading in others if reading.holds is (not first.holds)]
        if not differing:
            return first.verdict
        named = "; ".join(differing)
        if first.holds:
            return f"{first.verdict}, but not under: {named}"
        return f"{first.verdict}; holds under: {named}" if first.in_doubt else f"holds under: {named}"


def read_as(
    reading: str, measured: str, judged: Compared | bool | None, of: int | Iterable[Row], why: str = ""
) -> ClaimReading:
    """The claim read in one way, `of` these rows or this number of seeds. `judged` is the figure that decides, beside
    its bound; a plain answer where there is no such figure."""
    seeds = of if isinstance(of, int) else seeds_of(of)
    if not isinstance(judged, Compared):
        return ClaimReading(reading, measured, judged, seeds, reason=why)
    return ClaimReading(reading, measured, judged.holds, seeds, judged.interval, judged.bound, why)


def found(first: ClaimReading, *others: ClaimReading, series: Sequence[Series] = ()) -> Finding:
    """A finding from its readings, the most natural one first."""
    return Finding((first, *others), series)


def stated(
    measured: str,
    judged: Compared | bool | None,
    reason: str = "",
    series: Sequence[Series] = (),
    seeds: int = 1,
) -> Finding:
    """A finding about a claim that can be read in one way only."""
    return Finding([read_as("as stated", measured, judged, seeds, reason)], series)


def not_measurable(reading: str, why: str) -> Finding:
    """A claim that cannot be judged here."""
    return found(ClaimReading(reading, "-", None, seeds=0, reason=why))


def all_hold(reading: str, parts: Sequence[ClaimReading], measured: str = "") -> ClaimReading:
    """What is said of all parts together: it holds if it holds for each, as surely as the weakest of them."""
    held = sum(bool(part.holds) for part in parts)
    weakest = every(Compared(bool(part.holds), part.interval, part.bound) for part in parts)
    seeds = min(part.seeds for part in parts)
    return read_as(reading, measured or f"{held} of {len(parts)}", weakest, seeds, "see each")


Judge = Callable[[Rows], Finding]
"Judges one claim by the rows of the study."


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, where it stands, and the function that judges it by the rows."""

    claim: str
    where: str
    paper: str
    "What the paper reports, in words and numbers."
    judge: Judge
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    fails_if: str = ""
    "A mutation of the protocol that would make it fail, in words; empty if the claim cannot be measured."


class Claims(list[Claim]):
    """A study's claims, each written above the function that judges it."""

    def claim(
        self,
        claim: str,
        where: str,
        paper: str,
        x_label: str = "",
        y_label: str = "",
        log_x: bool = False,
        fails_if: str = "",
    ) -> Callable[[Judge], Judge]:
        """Add a claim of the paper, which the decorated function judges."""

        def add(judge: Judge) -> Judge:
            self.append(Claim(claim, where, paper, judge, x_label, y_label, log_x, fails_if))
            return judge

        return add


@dataclass(frozen=True)
class Study:
    """One paper's experiments and claims."""

    name: str
    paper: str
    experiments: Sequence[Experiment]
    claims: Sequence[Claim]
    notes: str = ""
    "Readings and departures in short; docs/papers/<name>.md has all of them."


STUDIES: dict[str, str] = {
    "codd": "earshot.studies.codd.study",
    "content-odmrp": "earshot.studies.content_odmrp.study",
    "drip": "earshot.studies.drip.study",
    "georendezvous": "earshot.studies.georendezvous.study",
    "hearsay": "earshot.studies.hearsay.study",
    "steam": "earshot.studies.steam.study",
}
"All studies: each module holds its study as `STUDY`, and is imported when it is asked for."


def study(name: str) -> Study:
    """The study with this name."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    found = importlib.import_module(STUDIES[name]).STUDY
    assert isinstance(found, Study)
    return found


@dataclass(frozen=True)
class Judged:
    """A claim with its finding, as the table, the report and `--json` show it."""

    study: str
    claim: Claim
    finding: Finding

    def as_json(self) -> dict[str, Any]:
        """The object that `earshot reproduce --json` prints."""
        return {
            "study": self.study,
            "claim": self.claim.claim,
            "where": self.claim.where,
            "paper": self.claim.paper,
            "measured": self.finding.measured,
            "holds": self.finding.holds,
            "verdict": self.finding.verdict,
            "reason": self.finding.reason,
            "readings": [
                {
                    **asdict(reading),
                    "interval": reading.interval and list(reading.interval),
                    "verdict": reading.verdict,
                    "in_doubt": reading.in_doubt,
                }
                for reading in self.finding.readings
            ],
            "fails_if": self.claim.fails_if,
            "series": [{"name": line.name, "x": list(line.x), "y": list(line.y)} for line in self.finding.series],
        }


def judge(study: Study, rows: Rows) -> list[Judged]:
    """Every claim of the study, judged by its rows."""
    return [Judged(study.name, claim, claim.judge(rows)) for claim in study.claims]


_TALLIED = {
    (True, False): "hold",
    (True, True): "hold by the mean while the interval contains the bound",
    (False, False): "do not hold",
    (False, True): "do not hold while the interval contains the bound",
    (None, False): "cannot be measured here",
}
"By verdict, and whether the interval contains the bound."


def tally(judged: Sequence[Judged]) -> str:
    """How many claims hold in their most natural reading; apart, those whose interval contains the bound."""
    first = [verdict.finding.readings[0] for verdict in judged]
    count = Counter((reading.holds, reading.in_doubt) for reading in first)
    counted = [f"{count[verdict]} {words}" for verdict, words in _TALLIED.items() if count[verdict]]
    return f"{len(first)} claims in their most natural reading: {', '.join(counted)}"
