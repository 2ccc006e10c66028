"""GeoRendezvous' experiments on still networks (sections 3 and 4): hops, trees, chances and state.

No packet is sent here: `cell_routes` gives the hops that machines take on the same network, which tests
check. A case is a block of networks; each has 20 publishers, 20 subscribers and 20 topics, whose rendezvous
points come from the protocol's own hash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from earshot.geometry import Position
from earshot.protocols.georendezvous.cells import Cell, CellGrid, largest_side_m, route
from earshot.protocols.georendezvous.settings import rendezvous_point
from earshot.studies.figures import Row
from earshot.studies.georendezvous.cell_routes import CellGraph, Cells, Counts, cells_of
from earshot.studies.study import Case

Points = npt.NDArray[np.float64]
"One row per point: x and y in metres."
RANGE_M = 100.0
DEGREE = 45.0


def range_share(nodes: int, degree: float = DEGREE) -> float:
    """The range, as a share of the square's side, that gives nodes this average number of neighbours.

    Two even draws from a unit square lie within r <= 1 of each other with the probability
    pi r^2 - 8/3 r^3 + r^4 / 2, which counts the borders, unlike a plain density.
    """
    wanted = min(degree / (nodes - 1), 0.97)
    low, high = 0.0, 1.0
    for _ in range(60):
        r = (low + high) / 2
        if math.pi * r**2 - 8 / 3 * r**3 + r**4 / 2 < wanted:
            low = r
        else:
            high = r
    return (low + high) / 2


@dataclass(frozen=True)
class StillNetwork:
    """Nodes that stay where they are. Those outside the largest part of the cell graph are left out:
    nothing is routed to or from them."""

    side_m: float
    positions: Points
    left_out: int
    grid: ClassVar[CellGrid] = CellGrid(largest_side_m(RANGE_M))

    @cached_property
    def cells(self) -> Cells:
        """The cell of each node."""
        return cells_of(self.positions, self.grid)

    @cached_property
    def graph(self) -> CellGraph:
        return CellGraph.of(self.cells)

    @cached_property
    def members(self) -> dict[Cell, list[int]]:
        """The nodes in each populated cell."""
        members: dict[Cell, list[int]] = {}
        for node, (column, row) in enumerate(self.cells.tolist()):
            members.setdefault((column, row), []).append(node)
        return members

    def __len__(self) -> int:
        return len(self.positions)

    def points(self, topic: str, count: int) -> Points:
        """The topic's rendezvous points, as the protocol hashes them."""
        origin = Position(0.0, 0.0)
        found = [rendezvous_point(topic, index, origin, self.side_m, self.side_m) for index in range(count)]
        return np.array([(point.x_m, point.y_m) for point in found])

    def homes(self, points: Points) -> Cells:
        """The home cell of each point."""
        anywhere = np.repeat(self.graph.populated[:1], len(points), axis=0)
        _, homes = self.graph.routes(anywhere, cells_of(points, self.grid))
        return homes

    def hops(self, starts: Cells, targets: Cells) -> Counts:
        """Hops from cell to populated cell."""
        hops, _ = self.graph.routes(starts, targets)
        return hops

    def direct_hops(self, publishers: Counts, subscribers: Counts) -> Counts:
        """Hops between different nodes: within a cell it is one."""
        return np.maximum(self.hops(self.cells[publishers], self.cells[subscribers]), 1)

    def last_hops(self, homes: Cells, subscribers: Counts, publishers: Counts, random: Generator) -> Counts:
        """Hops from a rendezvous cell to a subscriber.

        In the subscriber's own cell one more hop is needed, unless the member that the notification
        reached, a random one or the publisher itself, is the subscriber.
        """
        hops = self.hops(homes, self.cells[subscribers])
        for i in np.flatnonzero(hops == 0):
            members = self.members[int(homes[i, 0]), int(homes[i, 1])]
            forwarder = publishers[i] if publishers[i] in members else members[random.integers(len(members))]
            hops[i] = int(forwarder != subscribers[i])
        return hops

    def pairs(self, count: int, random: Generator) -> tuple[Counts, Counts]:
        """Publishers, each with a subscriber other than itself."""
        publishers = random.integers(len(self), size=count)
        subscribers = (publishers + random.integers(1, len(self), size=count)) % len(self)
        return publishers, subscribers


def draw_network(nodes: int, seed: int, degree: float = DEGREE) -> StillNetwork:
    """A random network; the same seed gives the same one."""
    random = np.random.default_rng([nodes, seed])
    side_m = RANGE_M / range_share(nodes, degree)
    positions = random.random((nodes, 2)) * side_m
    cells = cells_of(positions, StillNetwork.grid)
    kept = CellGraph.of(cells).largest_part().contains(cells)
    return StillNetwork(side_m, positions[kept], int(nodes - kept.sum()))


PATHS = 20
"Publisher-subscriber paths in each network."
MOST = 16
"The most rendezvous points of figure 3(a)."
SUBSCRIBERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CLOSENESS = (0.25, 0.5, 1.0)
"Theorem 3.1's k."


def _networks(case: Case) -> Iterator[tuple[int, StillNetwork, Generator]]:
    """The block's networks, with a random generator for each."""
    for place in range(case["networks"]):
        number = case["seed"] * case["networks"] + place
        yield number, draw_network(case["nodes"], number), np.random.default_rng([case["nodes"], number, 1])


def _rendezvous(network: StillNetwork, number: int, topics: int, count: int) -> Points:
    """The points of that many topics, one after the other."""
    return np.concatenate([network.points(f"{number}/{topic}", count) for topic in range(topics)])


def _path_hops(
    network: StillNetwork, publishers: Counts, homes: Cells, subscribers: Counts, random: Generator
) -> Counts:
    """From publisher through rendezvous cell to subscriber."""
    first = network.hops(network.cells[publishers], homes)
    return first + network.last_hops(homes, subscribers, publishers, random)


def _nearest_first(points: Points, positions: Points) -> Counts:
    """For each position the indexes of its points, nearest first."""
    return np.argsort(np.linalg.norm(points - positions[:, None], axis=2), axis=1, kind="stable")


def _drawn_paths(case: Case, n: int) -> Iterator[tuple[int, StillNetwork, Counts, Counts, Counts]]:
    """Each network with its direct paths' hops, and for each path the hops through its n points, in the order of
    the points and with the nearest to the subscriber first."""
    for number, network, random in _networks(case):
        publishers, subscribers = network.pairs(PATHS, random)
        direct = network.direct_hops(publishers, subscribers)
        points = _rendezvous(network, number, PATHS, n)
        homes = network.homes(points)
        hops = _path_hops(network, publishers.repeat(n), homes, subscribers.repeat(n), random).reshape(PATHS, n)
        near = _nearest_first(points.reshape(PATHS, n, 2), network.positions[subscribers])
        yield number, network, direct, hops, np.take_along_axis(hops, near, axis=1)


def _best_so_far(hops: Counts) -> Iterator[Counts]:
    """Section 2.3: of its first, of its first two ... points each subscriber keeps the one with the fewest hops."""
    yield from np.minimum.accumulate(hops, axis=1).T


def paths(case: Case) -> Sequence[Row]:
    """Figures 3(a) and (b): the best of n paths beside the direct one, n = 1 to 16."""
    return [
        {
            "network": number,
            "n": n,
            "hops": int(best.sum()),
            "direct": int(direct.sum()),
            "ratio": float(best.sum() / direct.sum()),
            "path_ratio": float((best / direct).mean()),
            "left_out": network.left_out,
        }
        for number, network, direct, hops, _ in _drawn_paths(case, MOST)
        for n, best in enumerate(_best_so_far(hops), 1)
    ]


def nearest(case: Case) -> Sequence[Row]:
    """Figure 3(c): the best of the m points nearest to the subscriber, m = 1 to n."""
    return [
        {
            "network": number,
            "m": m,
            "ratio": float(best.sum() / direct.sum()),
            "path_ratio": float((best / direct).mean()),
        }
        for number, _, direct, _, hops in _drawn_paths(case, case["rendezvous"])
        for m, best in enumerate(_best_so_far(hops), 1)
    ]


def trees(case: Case) -> Sequence[Row]:
    """Figure 3(d): transmissions of one notification to s subscribers, with n points of which each
    subscriber tries the m nearest, over those with one point.

    `ratio` counts what the protocol sends: one copy from the publisher to each rendezvous cell in use, one
    from there to each subscriber. `shared_ratio` counts a step between two cells once for all copies
    that the publisher, or a rendezvous cell, sends along it: trees as a multicast would have them.
    """
    rows: list[Row] = []
    for number, network, random in _networks(case):
        for draw in range(case["draws"]):
            publisher, *subscribers = random.permutation(len(network))[: max(SUBSCRIBERS) + 1].tolist()
            points = network.points(f"{number}/{draw}", case["rendezvous"])
            many = _tree(network, points, case["nearest"], publisher, subscribers, random)
            single = _tree(network, points[:1], 1, publisher, subscribers, random)
            rows += [
                {
                    "network": number,
                    "draw": draw,
                    "subscribers": count,
                    "many": many.cost(count),
                    "one": single.cost(count),
                    "shared_many": many.shared_cost(count),
                    "shared_one": single.shared_cost(count),
                    "ratio": many.cost(count) / single.cost(count),
                    "shared_ratio": many.shared_cost(count) / single.shared_cost(count),
                    "used": len(many.in_use(count)),
                }
                for count in SUBSCRIBERS
            ]
    return rows


CellStep = tuple[Cell, Cell]


@dataclass(frozen=True)
class NotificationTree:
    """One notification's route: to the rendezvous cells in use, and from each to its subscribers."""

    served_by: list[int]
    "Each subscriber's point."
    to_home: list[list[CellStep]]
    "The steps from the publisher to each point's home cell."
    from_home: list[list[CellStep]]
    "The steps from its rendezvous cell to each subscriber's cell."
    inside: list[int]
    "The last hop within the subscriber's own cell, where there is one."

    def in_use(self, count: int) -> set[int]:
        """The points that serve the first `count` subscribers."""
        return set(self.served_by[:count])

    def cost(self, count: int) -> int:
        """Transmissions, one copy for each subscriber."""
        copies = [*(self.to_home[point] for point in self.in_use(count)), *self.from_home[:count]]
        return sum(map(len, copies)) + sum(self.inside[:count])

    def shared_cost(self, count: int) -> int:
        """Transmissions where the copies of one sender share the steps they have in common."""
        upper = {step for point in self.in_use(count) for step in self.to_home[point]}
        lower = {(self.served_by[i], step) for i in range(count) for step in self.from_home[i]}
        return len(upper) + len(lower) + sum(self.inside[:count])


def _tree(
    network: StillNetwork, points: Points, m: int, publisher: int, subscribers: list[int], random: Generator
) -> NotificationTree:
    """Each subscriber is served through the point, of its m nearest ones, with the fewest hops."""
    homes = network.homes(points)
    count, n = len(subscribers), len(points)
    hops = _path_hops(
        network, np.full(count * n, publisher), np.tile(homes, (count, 1)), np.array(subscribers).repeat(n), random
    ).reshape(count, n)
    near = _nearest_first(points, network.positions[subscribers])[:, :m]
    chosen = np.argmin(np.take_along_axis(hops, near, axis=1), axis=1)
    served_by = near[np.arange(count), chosen]
    to_home = [_steps(network, network.cells[publisher], home) for home in homes]
    from_home = [_steps(network, homes[served_by[i]], network.cells[subscribers[i]]) for i in range(count)]
    inside = [int(hops[i, served_by[i]]) - len(to_home[served_by[i]]) - len(from_home[i]) for i in range(count)]
    return NotificationTree(served_by.tolist(), to_home, from_home, inside)


def _steps(network: StillNetwork, start: Cells, end: Cells) -> list[CellStep]:
    path = route((int(start[0]), int(start[1])), (int(end[0]), int(end[1])), network.members)
    return list(pairwise(path))


def chances(case: Case) -> Sequence[Row]:
    """Section 3: how likely a random rendezvous node R gives d(A, R) + d(R, B) <= l + 2kl, beside the
    terms of the bound, over shortest paths between nodes.

    The diameter L is the longest distance found from the ends of the paths and from the node farthest
    from the first of them; the growth constant is the largest |N(X, 2r)| / |N(X, r)| found at those ends.
    """
    rows: list[Row] = []
    for number, network, random in _networks(case):
        links = _links(network)
        publishers, subscribers = network.pairs(PATHS, random)
        from_a, from_b = _distances(links, publishers), _distances(links, subscribers)
        length = from_a[np.arange(PATHS), subscribers]
        farthest = _distances(links, from_a[:1].argmax(axis=1))
        every = np.concatenate([from_a, from_b, farthest])
        diameter = int(every.max())
        within = np.stack([np.bincount(one, minlength=2 * diameter + 1).cumsum()[1:] for one in every])
        growth = float(max((within[:, 2 * r - 1] / within[:, r - 1]).max() for r in range(1, diameter + 1)))
        through = from_a + from_b
        for k in CLOSENESS:
            good = through <= (length * (1 + 2 * k))[:, None]
            bound = growth ** (math.log2(k * float(length.mean()) / diameter) - 1)
            rows.append(
                {
                    "network": number,
                    "k": k,
                    "share": float(good.mean()),
                    "bound": bound,
                    "mean_length": float(length.mean()),
                    "diameter": diameter,
                    "growth": growth,
                }
            )
    return rows


def _links(network: StillNetwork) -> csr_matrix:
    """Which nodes hear each other, as a sparse matrix."""
    pairs = cKDTree(network.positions).query_pairs(RANGE_M, output_type="ndarray")
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    size = len(network)
    return csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))


def _distances(links: csr_matrix, sources: Counts) -> Counts:
    """Hops from each source to every node. The networks are connected."""
    hops: Counts = dijkstra(links, indices=sources, unweighted=True).astype(np.int64)
    return hops


def state(case: Case) -> Sequence[Row]:
    """Beyond the paper: records each populated cell keeps, where every node subscribes to one topic
    and every topic has one publisher; topics are equally popular, or by Zipf's law."""
    rows: list[Row] = []
    n, m = case["rendezvous"], case["nearest"]
    for number, network, random in _networks(case):
        topics = max(len(network) // 20, 1)
        weights = 1.0 / np.arange(1, topics + 1) ** case["zipf"]
        wanted = random.choice(topics, size=len(network), p=weights / weights.sum())
        points = _rendezvous(network, number, topics, n)
        _, home_of = np.unique(network.homes(points), axis=0, return_inverse=True)
        home_of = home_of.reshape(topics, n)
        near = _nearest_first(points.reshape(topics, n, 2)[wanted], network.positions)[:, :m]
        subscribed = np.take_along_axis(home_of[wanted], near, axis=1)
        kept = np.bincount(np.concatenate([home_of.ravel(), subscribed.ravel()]), minlength=len(network.graph))
        rows.append(
            {
                "network": number,
                "mean": float(kept.mean()),
                "p99": float(np.quantile(kept, 0.99)),
                "most": int(kept.max()),
                "empty_share": float((kept == 0).mean()),
            }
        )
    return rows
