"""How many subscriptions a summary holds, in how many bytes, and how often it is wrong.

    python benchmarks/summaries.py [--quick]

Subscriptions are conjunctions over an event type of 20 attributes, ten texts (50 words each) and ten
numbers (0 to 1,000, ranges a tenth of that wide). A false positive is an event that no subscription
matches and that passes the summary. Three forms: without the element association list (only how many
terms must hold), with it (the paper's), and with combinations (which texts belong together: ours).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from earshot import Event, Filter, FilterIndex
from earshot.filters.summaries.bloom import Bloom, BloomShape, fingerprint
from earshot.filters.summaries.digest import Digest
from earshot.filters.summaries.sections import TypeSection
from earshot.filters.summaries.summary import Summary

TEXTS = [f"text{index}" for index in range(10)]
NUMBERS = [f"number{index}" for index in range(10)]
WORDS = 50
PACKET_BYTES = 1400
FEWEST = 20
"Unwanted events that a rate is measured on."

FORMS: dict[str, Callable[[TypeSection], TypeSection]] = {
    "no EAL": TypeSection.without_rows,
    "EAL": TypeSection.without_combinations,
    "EAL + combinations": lambda section: section,
}


def subscription(random: Random, terms: int) -> Filter:
    """A conjunction of `terms` terms over different attributes."""
    parts = []
    for name in random.sample([*TEXTS, *NUMBERS], terms):
        if name in TEXTS:
            parts.append(f'{name} = "word{random.randrange(WORDS)}"')
        else:
            low = random.randrange(900)
            parts.append(f"{name} in {low}..{low + 100}")
    return Filter.where(" and ".join(parts), "T")


def events(random: Random, count: int) -> list[Event]:
    return [
        Event(
            type="T",
            content={
                **{name: f"word{random.randrange(WORDS)}" for name in TEXTS},
                **{name: random.randrange(1000) for name in NUMBERS},
            },
        )
        for _ in range(count)
    ]


def formed(summary: Summary, form: str) -> Summary:
    return replace(summary, sections={key: FORMS[form](section) for key, section in summary.sections.items()})


def unwanted(filters: Sequence[Filter], published: Sequence[Event]) -> list[Event]:
    """The events that no filter matches."""
    index = FilterIndex()
    for number, filter in enumerate(filters):
        index.add(str(number), filter)
    return [event for event in published if not index.match(event)]


def rate(summary: Summary, strangers: Sequence[Event]) -> float:
    return sum(map(summary.may_match, strangers)) / len(strangers) if strangers else float("nan")


def sizes_and_rates(counts: Sequence[int], published: Sequence[Event], shape: BloomShape) -> None:
    print(
        f"Bytes and false-positive rate by subscriptions and terms (vectors of {shape.bits} bits, k = {shape.hashes})\n"
    )
    head = "".join(f"{form:>22}" for form in FORMS)
    print(f"{'subscriptions':>13} {'terms':>5} {'unwanted':>8}{head}")
    for terms in (1, 2, 3, 4):
        for count in counts:
            filters = [subscription(Random(f"{count}:{terms}:{index}"), terms) for index in range(count)]
            strangers = unwanted(filters, published)
            whole = Summary.of(filters, shape)
            cells = ""
            for form in FORMS:
                summary = formed(whole, form)
                reported = f"{rate(summary, strangers):.1%}" if len(strangers) >= FEWEST else "-"
                cells += f"{len(summary.to_bytes()):>13,} B {reported:>6}"
            print(f"{count:>13,} {terms:>5} {len(strangers):>8,}{cells}")
        print()


def capacity(form: str, terms: int, target: float, published: Sequence[Event], most: int) -> int:
    """How many subscriptions fit one packet at this rate: doubling, then halving the step."""

    def fits(count: int) -> bool:
        filters = [subscription(Random(f"fit:{terms}:{index}"), terms) for index in range(count)]
        strangers = unwanted(filters, published)
        if len(strangers) < FEWEST:
            return False
        return rate(formed(Summary.of(filters, shape_for(count)), form).within(PACKET_BYTES), strangers) <= target

    low, step = 0, 1
    while low + step <= most and fits(low + step):
        low += step
        step *= 2
    while step > 1:
        step //= 2
        if low + step <= most and fits(low + step):
            low += step
    return low


def shape_for(count: int) -> BloomShape:
    """Vectors for the texts one attribute gets of this many subscriptions, at 1 %."""
    return BloomShape.for_rate(max(8, min(WORDS, count)), 0.01)


def capacities(published: Sequence[Event], most: int) -> None:
    print(f"Subscriptions that fit {PACKET_BYTES:,} bytes\n")
    print(f"{'terms':>5} {'at most':>8}" + "".join(f"{form:>14}" for form in FORMS))
    for terms in (1, 2, 3, 4):
        for target in (0.01, 0.05):
            cells = "".join(f"{capacity(form, terms, target, published, most):>14,}" for form in FORMS)
            print(f"{terms:>5} {target:>8.0%}{cells}")
    print(
        f"(searched up to {most:,}, and as long as {FEWEST} of the {len(published):,} events are unwanted: "
        "more subscriptions of one term want nearly everything)\n"
    )


def vectors(trials: int) -> None:
    print("One vector against the theory: size chosen from the rate\n")
    print(f"{'items':>6} {'target':>7} {'bits':>6} {'k':>2} {'theory':>8} {'measured':>9}")
    for items, target in ((10, 0.01), (64, 0.01), (64, 0.05), (500, 0.01), (500, 0.05)):
        shape = BloomShape.for_rate(items, target)
        vector = Bloom.of(shape, {fingerprint(f"member {index}") for index in range(items)})
        measured = sum(fingerprint(f"stranger {index}") in vector for index in range(trials)) / trials
        theory = shape.expected_rate(items)
        print(f"{items:>6} {target:>7.0%} {shape.bits:>6} {shape.hashes:>2} {theory:>8.3%} {measured:>9.3%}")
    print()


def timings() -> None:
    print("Time for one of each, microseconds (best of five)\n")
    random = Random("time")
    filters = [subscription(random, 3) for _ in range(100)]
    (event,) = events(random, 1)
    summary = Summary.of(filters)
    data = summary.to_bytes()
    digest = Digest.of(event)

    def fresh() -> Event:
        return Event(type="T", content=dict(event.content))  # type: ignore[arg-type]

    jobs: dict[str, Callable[[], object]] = {
        "summary of 100 subscriptions": lambda: Summary.of(filters),
        "its bytes": summary.to_bytes,
        "read back": lambda: Summary.from_bytes(data),
        "merged with another": lambda: summary.merged(summary),
        "event against summary": lambda: summary.may_match(fresh()),
        "event to digest": lambda: Digest.of(fresh()),
        "digest against summary": lambda: summary.may_match_digest(digest),
    }
    for name, job in jobs.items():
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(20):
                job()
            best = min(best, (time.perf_counter() - start) / 20)
        print(f"  {name:<30} {best * 1e6:>10,.0f}")
    print(f"\nA digest of the 20-attribute event takes {len(digest.data)} bytes.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, a few seconds")
    quick = parser.parse_args().quick
    published = events(Random("events"), 300 if quick else 2000)
    vectors(10_000 if quick else 100_000)
    sizes_and_rates((1, 10, 100) if quick else (1, 10, 30, 100, 300, 1000), published, BloomShape.for_rate(WORDS, 0.01))
    capacities(published, 64 if quick else 2048)
    timings()


if __name__ == "__main__":
    main()
