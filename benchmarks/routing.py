"""Routed paths per minute over still networks: as arrays, one by one, and general shortest paths.

    python benchmarks/routing.py [--quick]

Networks with 45 neighbours per node; each path leads from a random node to the home cell of a random point.
`arrays` is what studies use (required: a million paths per minute on two processes), `one by one` is the
same routing step by step; both give the same hops and home cells. The peers are given the home cell and
only look for the shortest path there on the same cell graph: networkx with one bidirectional search per path,
scipy with one breadth-first search per source. Medians of repeats, without the time to build networks and graphs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from multiprocessing import get_context

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from earshot.protocols.georendezvous.cells import route, towards
from earshot.studies.georendezvous.paths import StillNetwork, draw_network

Cells = npt.NDArray[np.int64]
REQUIRED = 1_000_000


def paths(network: StillNetwork, count: int, seed: int) -> tuple[Cells, Cells]:
    """From the cells of random nodes to the cells of random points."""
    random = np.random.default_rng(seed)
    starts = network.cells[random.integers(len(network), size=count)]
    points = random.random((count, 2)) * network.side_m
    return starts, np.floor(points / network.grid.side_m).astype(np.int64)


def route_some(job: tuple[StillNetwork, int, int]) -> int:
    """In a process of its own: draw paths and route them; the total of the hops."""
    network, count, seed = job
    hops, _ = network.graph.routes(*paths(network, count, seed))
    return int(hops.sum())


def median_s(work: Callable[[], object], repeats: int) -> float:
    spent = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        spent.append(time.perf_counter() - started)
    return statistics.median(spent)


def check(network: StillNetwork, count: int) -> None:
    """Check that both routers agree, to the hop."""
    starts, targets = paths(network, count, seed=1)
    hops, homes = network.graph.routes(starts, targets)
    populated = set(map(tuple, network.graph.populated.tolist()))
    for i in range(count):
        path = route(tuple(starts[i].tolist()), tuple(targets[i].tolist()), populated)
        assert (len(path) - 1, path[-1]) == (hops[i], tuple(homes[i].tolist())), (starts[i], targets[i])


def measure(nodes: int, count: int, repeats: int) -> list[tuple[str, float]]:
    network = draw_network(nodes, seed=1)
    check(network, count=200)
    route_some((network, 1000, 0))
    populated = set(map(tuple, network.graph.populated.tolist()))
    order = {cell: number for number, cell in enumerate(sorted(populated))}
    edges = [(cell, near) for cell in populated for near in (towards(cell, i) for i in range(8)) if near in populated]
    graph = nx.Graph(edges)
    ends = np.array([(order[a], order[b]) for a, b in edges])
    matrix = csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(order), len(order)))

    few = min(count, 300)
    starts, targets = paths(network, few, seed=2)
    _, homes = network.graph.routes(starts, targets)
    one_by_one = [(tuple(a), tuple(b)) for a, b in zip(starts.tolist(), targets.tolist(), strict=True)]
    to_homes = [(tuple(a), tuple(b)) for a, b in zip(starts.tolist(), homes.tolist(), strict=True)]
    sources = sorted({order[start] for start, _ in to_homes})

    with get_context("spawn").Pool(2) as pool:
        pool.map(route_some, [(network, 1000, 0), (network, 1000, 1)])
        halves = [(network, count // 4, seed) for seed in range(4)]
        both = median_s(lambda: pool.map(route_some, halves, chunksize=1), repeats)
    alone = median_s(lambda: route_some((network, count, 3)), repeats)
    stepwise = median_s(lambda: [route(a, b, populated) for a, b in one_by_one], repeats)
    searched = median_s(lambda: [nx.bidirectional_shortest_path(graph, a, b) for a, b in to_homes], repeats)
    swept = median_s(lambda: dijkstra(matrix, unweighted=True, indices=sources), repeats)
    return [
        ("arrays, two processes", 60 * count / both),
        ("arrays, one process", 60 * count / alone),
        ("one by one", 60 * few / stepwise),
        ("networkx, bidirectional", 60 * few / searched),
        ("scipy, a search per source", 60 * few / swept),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer paths, one repeat")
    quick = parser.parse_args().quick
    count, repeats = (40_000, 1) if quick else (400_000, 3)
    sizes = [600, 3000] if quick else [80, 600, 3000, 30_000]
    tables = {nodes: dict(measure(nodes, count, repeats)) for nodes in sizes}
    print(f"{'paths per minute':26}" + "".join(f"{nodes:>12,} nodes" for nodes in sizes))
    for name in tables[sizes[0]]:
        print(f"{name:26}" + "".join(f"{tables[nodes][name]:>18,.0f}" for nodes in sizes))
    slowest = min(table["arrays, two processes"] for table in tables.values())
    print(f"required on two processes: {REQUIRED:,}; reached at every size: {slowest / REQUIRED:.1f} times that")


if __name__ == "__main__":
    main()
