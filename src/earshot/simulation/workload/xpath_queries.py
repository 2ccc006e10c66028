"""XPath queries drawn after a DTD (CoDD, section 4.2), and steered to a mean selectivity.

A query is a twig: it walks from the root down the elements that may stand inside each other. Steering
draws a pool of queries and measures each on a sample of documents; queries are then chosen from the
pool with weights that grow or fall exponentially with selectivity, so that the mean is the one asked
for and as little else as possible changes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from math import exp
from operator import itemgetter
from random import Random

from earshot.errors import ScenarioError
from earshot.events import Event
from earshot.filters import Filter
from earshot.filters.language.syntax import Axis, Path, Step, Test
from earshot.filters.summaries.data_summary import DataSummary
from earshot.simulation.workload.dtd import Dtd

MOST_STEPS = 12
"Of one branch: were all of them inside each other, the filter could still be read."
MOST_NODES = 32
"Of a twig: from there on nothing branches."


@dataclass(frozen=True, slots=True)
class QueryShape:
    """How drawn queries look."""

    p_star: float
    p_child: float
    p_descendant: float
    steps: tuple[int, int]


def draw_query(dtd: Dtd, shape: QueryShape, random: Random) -> Filter:
    """One query."""
    return _Twig(dtd, shape, random).filter()


class _Twig:
    """A query on its way."""

    def __init__(self, dtd: Dtd, shape: QueryShape, random: Random) -> None:
        self.dtd = dtd
        self.shape = shape
        self.random = random
        self.nodes = 0

    def filter(self) -> Filter:
        return Filter(Path(True, self._branch(self.dtd.root, self.random.randint(*self.shape.steps))))

    def _branch(self, name: str, length: int) -> tuple[Step, ...]:
        """The steps from `name` on, at most so many, with the branches that leave them as predicates."""
        steps: list[Step] = []
        while True:
            self.nodes += 1
            axis = Axis.DESCENDANT if self.random.random() < self.shape.p_descendant else Axis.CHILD
            shown = "*" if self.random.random() < self.shape.p_star else name
            children = self.dtd.children(name) if len(steps) + 1 < length else ()
            branches: tuple[Path, ...] = ()
            if len(children) > 1 and self.nodes < MOST_NODES and self.random.random() < self.shape.p_child:
                onward, other = self.random.sample(children, 2)
                branches = (Path(False, self._branch(other, length - len(steps) - 1)),)
            elif children:
                onward = self.random.choice(children)
            steps.append(Step(axis, Test.ELEMENT, shown, branches))
            if not children:
                return tuple(steps)
            name = onward


_STRATA = 20


@dataclass(frozen=True, slots=True)
class QueryPool:
    """Queries, the most selective first, to be chosen by weight."""

    queries: tuple[Filter, ...]
    cumulative: tuple[int, ...]
    "Running sum of weights."

    def draw(self, random: Random, number: int) -> Filter:
        """The query number `number`, from each twentieth of the weights in turn: a few hundred queries then
        have the pool's mean, and not only infinitely many."""
        stratum = number * 7 % _STRATA
        share = (stratum + random.random()) / _STRATA
        return self.queries[min(bisect_right(self.cumulative, share * self.cumulative[-1]), len(self.queries) - 1)]


def steered_pool(
    dtd: Dtd, shape: QueryShape, sample: list[Event], size: int, selectivity: float, random: Random
) -> QueryPool:
    """A pool of queries that each match some document of the sample, and whose weighted mean is the
    selectivity asked for; ScenarioError where no weights can have it so."""
    summary = DataSummary(documents=len(sample), vertices=1_000_000)
    for number, event in enumerate(sample):
        summary.add(number, event)
    found: list[tuple[Filter, float]] = []
    for _ in range(4 * size):
        query = draw_query(dtd, shape, random)
        if share := summary.selectivity(query):
            found.append((query, share))
        if len(found) == size:
            break
    found.sort(key=itemgetter(1))
    shares = tuple(share for _, share in found)
    if not shares or not min(shares) < selectivity < max(shares):
        span = f"between {min(shares):.2f} and {max(shares):.2f}" if shares else "nothing"
        raise ScenarioError(
            f"selectivity {selectivity:g} is out of reach: the queries that were drawn select {span}; "
            "change steps or the probabilities"
        )
    tilt = _tilt(shares, selectivity)
    weights = [round(exp(tilt * (share - selectivity)) * 2**20) + 1 for share in shares]
    return QueryPool(tuple(query for query, _ in found), tuple(accumulate(weights)))


def _tilt(shares: tuple[float, ...], mean: float) -> float:
    """The t for which weights of exp(t * share) have this mean, by halving; it grows with t."""
    low, high = -200.0, 200.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        weights = [exp(middle * (share - mean)) for share in shares]
        got = sum(weight * share for weight, share in zip(weights, shares, strict=True)) / sum(weights)
        low, high = (middle, high) if got < mean else (low, middle)
    # Rounded, so that the last bit of a machine's exp() decides nothing.
    return round(low, 3)
