"""The GeoRendezvous study: figures 3(a) to (d), section 3's theorem and its conclusions, the cost of unused
rendezvous cells, and beyond the paper: motion, crashes, 30,000 nodes, state by cell. `claims` judges them."""

from __future__ import annotations

from collections.abc import Sequence

from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.studies.georendezvous.claims import CLAIMS
from earshot.studies.georendezvous.paths import chances, nearest, paths, state, trees
from earshot.studies.georendezvous.runs import crashing, growing, messages, moving
from earshot.studies.study import Experiment, Study, cases

SIZES = (80, 150, 300, 600, 1000, 2000, 3000)
IN_BLOCK = 20
"200 networks, in blocks; a block is one task."


def _blocks(networks: int, **parameters: Sequence[float]) -> list[dict[str, float]]:
    """Cases of networks in blocks."""
    return cases(**parameters, networks=[IN_BLOCK], seed=range(networks // IN_BLOCK))


STUDY = Study(
    name="georendezvous",
    paper=GeoRendezvous.paper,
    # The longest cases come first, so that all cores stay busy to the end.
    experiments=[
        Experiment(
            "growing", growing, cases(nodes=[30_000, 10_000, 3000, 600], seed=range(2)), cases(nodes=[150], seed=[0])
        ),
        Experiment(
            "moving",
            moving,
            cases(speed_m_s=[20.0, 10.0, 5.0, 1.0, 0.0], nodes=[600], seed=range(3)),
            cases(speed_m_s=[0.0, 10.0], nodes=[150], seed=[0]),
        ),
        Experiment(
            "paths", paths, _blocks(200, nodes=SIZES), cases(nodes=[80, 600], networks=[IN_BLOCK], seed=range(2))
        ),
        Experiment(
            "nearest",
            nearest,
            _blocks(200, nodes=[600], rendezvous=[8]),
            cases(nodes=[600], rendezvous=[8], networks=[10], seed=[0]),
        ),
        Experiment(
            "trees",
            trees,
            _blocks(200, nodes=[600], rendezvous=[8], nearest=[2], draws=[20]),
            cases(nodes=[600], rendezvous=[8], nearest=[2], draws=[4], networks=[10], seed=[0]),
        ),
        Experiment(
            "chances",
            chances,
            [*_blocks(200, nodes=SIZES), *cases(nodes=[10_000, 30_000], networks=[5], seed=range(4))],
            cases(nodes=[80, 600], networks=[5], seed=[0]),
        ),
        Experiment(
            "messages",
            messages,
            cases(n=[2, 4, 8], nodes=[600], background=[60], newcomers=[10], seed=range(3)),
            cases(n=[2, 4], nodes=[150], background=[40], newcomers=[4], seed=[0]),
        ),
        Experiment(
            "crashing",
            crashing,
            cases(share=[0.1, 0.3], nodes=[600], seed=range(3)),
            cases(share=[0.1], nodes=[150], seed=[0]),
        ),
        Experiment(
            "state",
            state,
            cases(
                nodes=[600, 3000, 10_000, 30_000], rendezvous=[8], nearest=[2], zipf=[0.0, 1.0], networks=[5], seed=[0]
            ),
            cases(nodes=[600], rendezvous=[8], nearest=[2], zipf=[0.0], networks=[2], seed=[0]),
        ),
    ],
    claims=CLAIMS,
    notes="Hops are those of cell routing. Each figure is averaged in two ways, and figure 3(d) is read as sent and as "
    "ideal trees. Seeds are networks where a row is about still networks.",
)
