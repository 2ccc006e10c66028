"""Interests: what a subscriber subscribes to. Each class is one kind of `filters` table."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Annotated, Any, Literal

from msgspec import Meta

from earshot.errors import ScenarioError
from earshot.filters import Filter
from earshot.filters.language.syntax import And, Compare, Comparison, Condition, Field
from earshot.settings import KindTable, NotNegative, Share
from earshot.simulation.draws import Span, zipf_rank
from earshot.simulation.settings_reader import FilterSetting, SpanSetting
from earshot.simulation.workload.codd_workload import CoddQueries
from earshot.simulation.workload.dtd import Dtd
from earshot.simulation.workload.dtd_workload import MOST_STEPS, QueryPool, QueryShape, draw_query, steered_pool
from earshot.simulation.workload.generators import (
    CATALOGUE,
    Attributes,
    Boolean,
    Choice,
    Generators,
    Integer,
    Number,
    XmlDocuments,
)


class Written(KindTable, frozen=True, tag="written"):
    """Filters given as text."""

    texts: tuple[FilterSetting, ...]
    'Filters in either language, as in "Siren: speed > 10 and within 200 m" or "/CD[category=\'jazz\']".'
    choose: Literal["in-turn", "random"] = "random"
    "How the next subscription's filter is chosen: in the order of the list, repeatedly, or at random."
    zipf: NotNegative = 0.0
    'How uneven their popularity is with choose = "random": the exponent of Zipf\'s law, 0 for even.'

    def validate(self) -> None:
        if not self.texts:
            raise ScenarioError("texts needs at least one filter")

    def draw(self, random: Random, number: int, sources: Generators) -> Filter:
        if self.choose == "in-turn":
            return self.texts[number % len(self.texts)]
        return self.texts[zipf_rank(random, len(self.texts), self.zipf)]

    def check(self, sources: Generators) -> None:
        pass


FIGURE_3 = (
    '/CD[category="jazz"][composer="Evans"]',
    '/CD[category="jazz"][composer="Davis"]',
    '/CD[category="pop"]',
    '/CD[category="classic"][composer="Bach"]',
    '/CD[category="classic" and price<"20"]',
)
"The subscriptions of figure 3 of the content-based ODMRP paper."


class CdFilters(KindTable, frozen=True, tag="cd"):
    """XPath filters about CDs, as in the content-based ODMRP paper."""

    which: Literal["figure", "random"] = "figure"
    "The five filters of the paper's figure 3 in turn, or filters drawn from the catalogue of `events` of this kind."

    def draw(self, random: Random, number: int, sources: Generators) -> Filter:
        if self.which == "figure":
            return Filter.xpath(FIGURE_3[number % len(FIGURE_3)])
        category = list(CATALOGUE)[zipf_rank(random, len(CATALOGUE), 1.0)]
        match random.randrange(3):
            case 0:
                return Filter.xpath(f'/CD[category="{category}"]')
            case 1:
                return Filter.xpath(f'/CD[category="{category}"][composer="{random.choice(CATALOGUE[category])}"]')
            case _:
                return Filter.xpath(f'/CD[category="{category}" and price<{random.randrange(8, 28)}]')

    def check(self, sources: Generators) -> None:
        pass


class NumberIntervals(KindTable, frozen=True, tag="number-intervals"):
    """Intervals of numbers, as in the DRIP paper: the centre is drawn evenly, the length from a normal distribution."""

    low: int = 1
    "The least value of an interval."
    high: int = 100
    "The greatest value of an interval."
    length_mean: NotNegative = 5.0
    "The mean of an interval's length."
    length_variance: NotNegative = 2.0
    "The variance of an interval's length; a negative length counts as 0."

    def validate(self) -> None:
        if self.low > self.high:
            raise ScenarioError(f"low must not exceed high, got {self.low} and {self.high}")

    def draw(self, random: Random, number: int, sources: Generators) -> Filter:
        centre = random.randint(self.low, self.high)
        length = max(0.0, random.normalvariate(self.length_mean, self.length_variance**0.5))
        low, high = max(self.low, centre - length / 2), min(self.high, centre + length / 2)
        return Filter(_between("value", low, high), "Number")

    def check(self, sources: Generators) -> None:
        pass


class Types(KindTable, frozen=True, tag="types"):
    """All events of one type."""

    of: str
    "The publish entry whose event types are subscribed to."
    zipf: NotNegative = 0.0
    "How uneven the types' popularity among subscribers is: the exponent of Zipf's law, 0 for even."

    def draw(self, random: Random, number: int, sources: Generators) -> Filter:
        types = sources[self.of].types()
        return Filter.of_type(types[zipf_rank(random, len(types), self.zipf)].subject)

    def check(self, sources: Generators) -> None:
        _entry(self.of, sources)


class Conjunctions(KindTable, frozen=True, tag="conjunctions"):
    """A few conditions on attributes; all must hold."""

    of: str
    'The publish entry, of kind "attributes", whose attributes the filters test.'
    terms: SpanSetting = Span(1.0, 2.0)
    "How many attributes a filter names."
    width: SpanSetting = Span(0.2, 0.5)
    "The share of a number's range that one condition accepts, from 0 to 1."
    also: str = ""
    'An additional condition of every filter, as in "within 300 m".'

    def validate(self) -> None:
        if self.terms.low < 0:
            raise ScenarioError(f"terms must not be negative, got {self.terms.low:g}")
        if not 0 <= self.width.low <= self.width.high <= 1:
            raise ScenarioError(f"width must be from 0 to 1, got [{self.width.low:g}, {self.width.high:g}]")
        if self.also:
            Filter.where(self.also)

    def draw(self, random: Random, number: int, sources: Generators) -> Filter:
        source = sources[self.of]
        assert isinstance(source, Attributes)
        names = list(source.attributes)
        count = min(random.randint(int(self.terms.low), int(self.terms.high)), len(names))
        chosen = sorted(random.sample(names, count), key=names.index)
        terms = [self._term(name, source.attributes[name], random) for name in chosen]
        if self.also:
            terms.append(Filter.where(self.also).condition)
        if not terms:
            return Filter.of_type(source.type)
        return Filter(_all(terms), source.type)

    def _term(self, name: str, attribute: Any, random: Random) -> Condition:
        match attribute:
            case Integer(low, high) | Number(low, high):
                wide = self.width.draw(random) * (high - low)
                start = random.uniform(low, high - wide)
                return _between(name, round(start, 6), round(start + wide, 6))
            case Choice():
                return Compare(Field(name), Comparison.EQ, str(attribute.draw(random)))
            case Boolean():
                return Compare(Field(name), Comparison.EQ, bool(attribute.draw(random)))
        raise TypeError(f"no condition for {type(attribute).__name__}")

    def check(self, sources: Generators) -> None:
        if not isinstance(_entry(self.of, sources), Attributes):
            raise ScenarioError(f'of must name a publish entry whose events are of kind "attributes", got {self.of!r}')


class XPaths(KindTable, frozen=True, tag="xpath"):
    """XPath queries drawn from a DTD, as in the CoDD paper (section 4.2)."""

    of: str
    'The publish entry, of kind "xml", whose DTD the queries are drawn from.'
    p_star: Share = 0.2
    "The probability of a step using a wildcard, the paper's p_*."
    p_child: Share = 0.3
    "The probability of an element having more than one child in the query, the paper's p_c."
    p_descendant: Share = 0.2
    "The probability of a step along the closure axis //, the paper's p_λ."
    steps: SpanSetting = Span(3.0, 8.0)
    "How many steps a branch has, as far as the DTD allows."
    selectivity: Annotated[float, Meta(gt=0, lt=1)] | None = None
    "The share of the documents that queries select on average, measured on 500 sample documents: queries are chosen "
    "from a pool of 1000 with weights that give this mean. By default queries are not weighted."

    def validate(self) -> None:
        low, high = self.steps.low, self.steps.high
        if not (low >= 1 and high <= MOST_STEPS and low.is_integer() and high.is_integer()):
            raise ScenarioError(f"steps must be whole numbers from 1 to {MOST_STEPS}, got {low:g} to {high:g}")

    @property
    def shape(self) -> QueryShape:
        return QueryShape(self.p_star, self.p_child, self.p_descendant, (int(self.steps.low), int(self.steps.high)))

    def draw(self, random: Random, number: int, sources: Generators) -> Filter:
        source = sources[self.of]
        assert isinstance(source, XmlDocuments)
        dtd = source.document_type()
        if self.selectivity is None:
            return draw_query(dtd, self.shape, random)
        return _pool(source, dtd, self.shape, self.selectivity).draw(random, number)

    def check(self, sources: Generators) -> None:
        if not isinstance(_entry(self.of, sources), XmlDocuments):
            raise ScenarioError(f'of must name a publish entry whose events are of kind "xml", got {self.of!r}')


@lru_cache(maxsize=16)
def _pool(source: XmlDocuments, dtd: Dtd, shape: QueryShape, selectivity: float) -> QueryPool:
    """The pool is the same for every seed: the selectivity belongs to the kind of queries, not to one run."""
    random = Random("sample")
    sample = [source.draw(random, number) for number in range(500)]
    return steered_pool(dtd, shape, sample, 1000, selectivity, Random("pool"))


def _entry(name: str, sources: Generators) -> Any:
    if name not in sources:
        raise ScenarioError(f"of: there is no publish entry {name!r}; there are: {', '.join(sources) or 'none'}")
    return sources[name]


def _between(name: str, low: float, high: float) -> Condition:
    return And((Compare(Field(name), Comparison.GE, float(low)), Compare(Field(name), Comparison.LE, float(high))))


def _all(terms: list[Condition]) -> Condition:
    """One conjunction of all these; nested conjunctions are flattened."""
    flat: list[Condition] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, And) else (term,))
    return flat[0] if len(flat) == 1 else And(tuple(flat))


FilterSource = Written | CdFilters | NumberIntervals | Types | Conjunctions | CoddQueries | XPaths
"""Every kind of `filters` table; a new kind is a new member. `draw` gives the filter with this number (from 0) of a
subscribe entry; `check` refuses references to publish entries that do not exist or have the wrong kind of events."""
