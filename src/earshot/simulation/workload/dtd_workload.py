"""Documents and queries drawn from a DTD, as in CoDD's section 4.2.

Documents are valid, and never larger or deeper than asked. A query is a tree pattern: it walks from the
root down the elements that may stand inside each other. Steering draws a pool of queries and measures each
on a sample of documents. Queries are then chosen from the pool with weights that grow or fall
exponentially with selectivity, so that the mean has the wanted value and little else changes.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from math import exp
from operator import itemgetter
from random import Random

from earshot.errors import ScenarioError
from earshot.events import Element, Event
from earshot.filters import Filter
from earshot.filters.language.syntax import Axis, LocationPath, NodeKind, PathStep
from earshot.filters.summaries.data_summary import DataSummary
from earshot.simulation.workload.dtd import AttributeType, Dtd, ElementType, Part

_VOCABULARY = (
    "able across after again along amber anchor april autumn basin beacon bridge bright canal cedar chalk circle "
    "clear coast copper corner cotton crossing current delta distant early east ember even evening fallow ferry "
    "field first flint forest gate gentle glass granite gravel green harbour hazel heath hollow inland iron island "
    "ivory june junction kettle lantern large larch late level linen little lower lunar maple march meadow mellow "
    "mill mineral mirror moor morning narrow near nearby north oak ochre october open orchard outer pasture pebble "
    "pine plain plough pond quarry quiet rapid ravine reed ridge river road rowan rural saddle salt sand school "
    "shallow silver slate slow small south spring station steep stone stream summer summit sunday swift tall "
    "terrace thorn tidal timber tower town upper valley village violet walnut water weir west wheat white willow "
    "winter wooden yard yellow"
)
WORDS = tuple(_VOCABULARY.split())
"The words of texts and attributes."


@dataclass(frozen=True, slots=True)
class DocumentShape:
    """How large a drawn document becomes, within what its DTD allows."""

    optional: float
    "The chance that an optional part is present."
    repeats: tuple[int, int]
    "How often a repeatable part occurs: least and most."
    attributes: float
    "The chance that an optional attribute is present."
    words: tuple[int, int]
    "How many words a text has: least and most."
    max_depth: int
    max_elements: int


def draw_document(dtd: Dtd, shape: DocumentShape, random: Random) -> Element:
    """A document of the DTD. References by id lead to an existing id if the document has any."""
    return _Draft(dtd, shape, random).document()


@dataclass(slots=True)
class _Node:
    type: ElementType
    levels: int
    "How many levels are left, including its own."
    inside: range = range(0)
    attributes: dict[str, str] = field(default_factory=dict)


class _Draft:
    """A document being drawn. `spare` is how many optional elements may still be added."""

    def __init__(self, dtd: Dtd, shape: DocumentShape, random: Random) -> None:
        self.dtd = dtd
        self.shape = shape
        self.random = random
        self.spare = shape.max_elements - dtd.least(dtd.root, shape.max_depth)
        self.nodes: list[_Node] = []
        self.ids: list[str] = []

    def document(self) -> Element:
        """The document, drawn level by level, so that the first branches leave room for the last."""
        self.nodes.append(_Node(self.dtd.elements[self.dtd.root], self.shape.max_depth))
        for node in self.nodes:  # grows as it goes
            names: list[str] = []
            if node.type.content is not None:
                self._expand(node.type.content, node.levels - 1, names)
            start = len(self.nodes)
            node.inside = range(start, start + len(names))
            self.nodes.extend(_Node(self.dtd.elements[name], node.levels - 1) for name in names)
            self._draw_attributes(node)
        self._draw_references()
        made: dict[int, Element] = {}
        for number in reversed(range(len(self.nodes))):
            node = self.nodes[number]
            elements = [made.pop(child) for child in node.inside]
            made[number] = Element(node.type.name, node.attributes, self._with_texts(node.type, elements))
        return made[0]

    # Elements.

    def _expand(self, part: Part, levels: int, names: list[str]) -> None:
        """Append the names that a part expands to. Its least number of elements is already reserved."""
        must = part.occurs in ("once", "some")
        if must:
            self._once(part, levels, names)
        if part.occurs == "once":
            return
        cost = self.dtd.least_of_one(part, levels)
        if part.occurs == "optional":
            more = int(self.random.random() < self.shape.optional)
        else:
            more = self.random.randint(*self.shape.repeats) - must
        for _ in range(more):
            if cost > self.spare:
                break
            self.spare -= cost
            self._once(part, levels, names)

    def _once(self, part: Part, levels: int, names: list[str]) -> None:
        if part.kind == "element":
            names.append(part.name)
        elif part.kind == "sequence":
            for inner in part.parts:
                self._expand(inner, levels, names)
        else:
            alternatives = self.dtd.alternatives(part, levels)
            affordable = bisect_right(alternatives, self.spare, key=itemgetter(0))
            extra, chosen = alternatives[self.random.randrange(affordable)]
            self.spare -= extra
            self._expand(chosen, levels, names)

    # Texts and attributes.

    def _with_texts(self, type: ElementType, elements: list[Element]) -> tuple[Element | str, ...]:
        if not type.text:
            return tuple(elements)
        parts: list[Element | str] = [self._text()]
        for element in elements:
            parts.extend((element, self._text()))
        return tuple(part for part in parts if part != "")

    def _text(self) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(*self.shape.words)))

    def _draw_attributes(self, node: _Node) -> None:
        for attribute in node.type.attributes:
            wanted = attribute.presence in ("required", "fixed") or self.random.random() < self.shape.attributes
            if wanted and (value := self._value(attribute)) is not None:
                node.attributes[attribute.name] = value

    def _value(self, attribute: AttributeType) -> str | None:
        if attribute.default is not None:
            return attribute.default
        if attribute.values:
            return self.random.choice(attribute.values)
        match attribute.type:
            case "id":
                self.ids.append(f"n{len(self.ids) + 1}")
                return self.ids[-1]
            case "entity" | "entities":
                return None
            case _:
                return self.random.choice(WORDS)

    def _draw_references(self) -> None:
        if not self.ids:
            return
        for node in self.nodes:
            for attribute in node.type.attributes:
                if attribute.name in node.attributes and attribute.type in ("idref", "idrefs"):
                    node.attributes[attribute.name] = self.random.choice(self.ids)


# Queries.


MOST_STEPS = 12
"Of one branch: a filter with all of them nested can still be parsed."
MOST_NODES = 32
"Of a query: beyond this it does not branch."


@dataclass(frozen=True, slots=True)
class QueryShape:
    """How drawn queries look."""

    p_star: float
    p_child: float
    p_descendant: float
    steps: tuple[int, int]


def draw_query(dtd: Dtd, shape: QueryShape, random: Random) -> Filter:
    """One query."""
    return _QueryDraft(dtd, shape, random).filter()


class _QueryDraft:
    """A query being drawn."""

    def __init__(self, dtd: Dtd, shape: QueryShape, random: Random) -> None:
        self.dtd = dtd
        self.shape = shape
        self.random = random
        self.nodes = 0

    def filter(self) -> Filter:
        return Filter(LocationPath(True, self._branch(self.dtd.root, self.random.randint(*self.shape.steps))))

    def _branch(self, name: str, length: int) -> tuple[PathStep, ...]:
        """A path of at most `length` steps that starts at `name`, with side branches as predicates."""
        steps: list[PathStep] = []
        while True:
            self.nodes += 1
            axis = Axis.DESCENDANT if self.random.random() < self.shape.p_descendant else Axis.CHILD
            shown = "*" if self.random.random() < self.shape.p_star else name
            children = self.dtd.children(name) if len(steps) + 1 < length else ()
            branches: tuple[LocationPath, ...] = ()
            if len(children) > 1 and self.nodes < MOST_NODES and self.random.random() < self.shape.p_child:
                onward, other = self.random.sample(children, 2)
                branches = (LocationPath(False, self._branch(other, length - len(steps) - 1)),)
            elif children:
                onward = self.random.choice(children)
            steps.append(PathStep(axis, NodeKind.ELEMENT, shown, branches))
            if not children:
                return tuple(steps)
            name = onward


_STRATA = 20


@dataclass(frozen=True, slots=True)
class QueryPool:
    """Queries in order of selectivity, chosen by weight."""

    queries: tuple[Filter, ...]
    cumulative: tuple[int, ...]
    "Running sum of weights."

    def draw(self, random: Random, number: int) -> Filter:
        """The query number `number`, from each twentieth of the weights in turn, so that a few hundred queries
        already have the pool's mean."""
        stratum = number * 7 % _STRATA
        share = (stratum + random.random()) / _STRATA
        return self.queries[min(bisect_right(self.cumulative, share * self.cumulative[-1]), len(self.queries) - 1)]


def steered_pool(
    dtd: Dtd, shape: QueryShape, sample: list[Event], size: int, selectivity: float, random: Random
) -> QueryPool:
    """A pool of queries that each match some document of the sample, and whose weighted mean is the
    selectivity asked for; ScenarioError if no weights can achieve it."""
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
    """The t for which weights of exp(t * share) have this mean, by bisection; the mean grows with t."""
    low, high = -200.0, 200.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        weights = [exp(middle * (share - mean)) for share in shares]
        got = sum(weight * share for weight, share in zip(weights, shares, strict=True)) / sum(weights)
        low, high = (middle, high) if got < mean else (low, middle)
    # Rounded, so that the last bit of a machine's exp() decides nothing.
    return round(low, 3)
