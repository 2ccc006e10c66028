"""The CoDD study: figures 7 to 16; how much they depend on what the paper leaves open; and, beyond the paper, churn,
ten thousand nodes and a network that loses messages. `claims` and `beyond_claims` judge
them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from earshot.protocols.codd.machine import Codd
from earshot.studies.codd import beyond_claims, claims
from earshot.studies.codd.beyond import churning, large, losing
from earshot.studies.codd.claims import ALL, BOTH, DTDS
from earshot.studies.codd.runs import AS_PRINTED, AS_READ, POLICIES, READINGS, overlap_times, shapes, synthetic, xml
from earshot.studies.study import Experiment, Study, cases

SEEDS = range(2)
SETS = [[DTDS[0]], [DTDS[1]], [DTDS[2]], [DTDS[0], DTDS[1]]]
"The XML data sets; the last changes from one to another in the run."


def _grid(
    nodes: Sequence[int],
    fan_out: Sequence[int],
    documents: int,
    reading: Iterable[str] = (AS_READ,),
    systems: Sequence[str] = ALL,
    seed: Iterable[int] = SEEDS,
) -> list[dict[str, Any]]:
    """Cases of section 4's synthetic data; the systems of a case run side by side."""
    return cases(systems=[systems], nodes=nodes, fan_out=fan_out, documents=[documents], reading=reading, seed=seed)


STUDY = Study(
    name="codd",
    paper=Codd.paper,
    # The longest cases come first, so that both cores stay busy to the end.
    experiments=(
        Experiment(
            "large",
            large,
            [*cases(nodes=[10_000], documents=[40], seed=SEEDS), *cases(nodes=[1000], documents=[100], seed=SEEDS)],
            cases(nodes=[300], documents=[20], seed=[0]),
        ),
        Experiment(
            "default",
            synthetic,
            _grid([400], [6], 10_000, systems=[*ALL, "siena-binary"]),
            _grid([80], [6], 600, systems=[*ALL, "siena-binary"], seed=[0]),
        ),
        Experiment(
            "xml",
            xml,
            cases(dtds=SETS, nodes=[100], documents=[10_000], fan_outs=[[2, 6]], seed=SEEDS),
            cases(dtds=SETS, nodes=[30], documents=[200], fan_outs=[[2, 6]], seed=[0]),
        ),
        # The default's fan-out of 6 is one of figure 9's.
        Experiment("fan-outs", synthetic, _grid([400], [2, 3, 4, 8], 10_000), _grid([80], [2, 4, 10], 600, seed=[0])),
        # With the default's and the fan-outs' 400 nodes these are figures 10 and 12.
        Experiment(
            "sizes",
            synthetic,
            [*_grid([50, 100, 200], [6], 10_000, systems=BOTH), *_grid([100, 200, 600], [4], 10_000, systems=BOTH)],
            _grid([40, 120], [4, 6], 600, systems=BOTH, seed=[0]),
        ),
        Experiment(
            "readings",
            synthetic,
            _grid([400], [6], 1000, READINGS, BOTH),
            _grid([60], [6], 300, [AS_READ, "all nodes join before the first document", "three seeds"], BOTH, [0]),
        ),
        Experiment(
            "policies",
            synthetic,
            _grid([400], [6], 1000, [AS_READ, AS_PRINTED, *POLICIES], BOTH[:1], range(4)),
            _grid([60], [6], 300, [AS_READ, AS_PRINTED, *POLICIES], BOTH[:1], [0]),
        ),
        Experiment(
            "churn",
            churning,
            cases(nodes=[400], documents=[600], rate_per_min=[0.01, 0.05, 0.1, 0.2], seed=SEEDS),
            cases(nodes=[60], documents=[200], rate_per_min=[0.2], seed=[0]),
        ),
        Experiment(
            "loss",
            losing,
            cases(nodes=[400], documents=[200], loss=[0.0, 0.01, 0.05, 0.1, 0.2], seed=SEEDS),
            cases(nodes=[60], documents=[100], loss=[0.0, 0.1], seed=[0]),
        ),
        Experiment(
            "shapes", shapes, cases(dtd=DTDS, documents=[400], seed=SEEDS), cases(dtd=DTDS, documents=[200], seed=[0])
        ),
        Experiment(
            "overlap-times",
            overlap_times,
            cases(dtd=["news"], queries=[100], documents=[200], pairs=[300], seed=SEEDS),
            cases(dtd=["news"], queries=[30], documents=[50], pairs=[50], seed=[0]),
        ),
    ),
    claims=[*claims.CLAIMS, *beyond_claims.CLAIMS],
    notes="Every reading of an open passage is a named setting, chosen before any result was known; the experiment "
    "`readings` changes them one at a time. Systems are compared on the same stream of documents. "
    "docs/papers/codd.md has all of them.",
)
