import json
import math

import networkx as nx
import numpy as np
import pytest
from mutation import flips
from scipy.sparse import csr_matrix

from earshot.protocols.georendezvous.cells import route
from earshot.protocols.georendezvous.machine import GeoRendezvous
from earshot.protocols.georendezvous.settings import rendezvous_point
from earshot.studies.georendezvous import claims
from earshot.studies.georendezvous import paths as still_paths
from earshot.studies.georendezvous.claims import limit
from earshot.studies.georendezvous.paths import (
    RANGE_M,
    SUBSCRIBERS,
    StillNetwork,
    chances,
    draw_network,
    nearest,
    paths,
    range_share,
    state,
    trees,
)
from earshot.studies.georendezvous.runs import crashing, growing, messages, moving
from earshot.studies.georendezvous.study import STUDY
from earshot.studies.study import study


def by(rows, *names):
    return {tuple(row[name] for name in names): row for row in rows}


@pytest.mark.parametrize("nodes", [80, 600])
def test_nodes_have_45_neighbours_on_average_with_borders_counted(nodes):
    degrees = []
    for seed in range(20):
        positions = np.random.default_rng(seed).random((nodes, 2)) / range_share(nodes)
        away = np.linalg.norm(positions[:, None] - positions[None], axis=2)
        degrees.append((away <= 1.0).sum() / nodes - 1)
    assert np.mean(degrees) == pytest.approx(45, rel=0.02)


def test_a_network_is_the_same_for_the_same_seed_and_keeps_its_largest_part():
    one, again, other = draw_network(80, 5), draw_network(80, 5), draw_network(80, 6)
    assert np.array_equal(one.positions, again.positions)
    assert not np.array_equal(one.positions, other.positions)
    for seed in range(30):
        network = draw_network(150, seed, degree=20)
        assert network.graph.components().max() == 0
        assert len(network) + network.left_out == 150


def small_network():
    """Two nodes in one cell, one two cells to the east, with a bridge."""
    side_m = RANGE_M / (2 * math.sqrt(2))
    cells = [(0.2, 0.5), (0.8, 0.5), (1.5, 0.5), (2.5, 0.5)]
    return StillNetwork(3 * side_m, np.array(cells) * side_m, left_out=0)


def test_within_a_cell_a_direct_path_takes_one_hop():
    network = small_network()
    assert network.direct_hops(np.array([0, 0, 0]), np.array([1, 2, 3])).tolist() == [1, 1, 2]


def test_the_last_hop_is_spared_only_where_the_notification_reached_the_subscriber_itself():
    network = small_network()
    random = np.random.default_rng(1)
    home = network.cells[[0]]
    from_publisher = network.last_hops(home, np.array([1]), np.array([0]), random)
    from_elsewhere = [int(network.last_hops(home, np.array([1]), np.array([3]), random)[0]) for _ in range(40)]
    assert from_publisher.tolist() == [1]
    assert set(from_elsewhere) == {0, 1}


def test_more_rendezvous_points_never_cost_hops_and_all_m_are_the_best_of_n():
    block = {"nodes": 150, "networks": 3, "seed": 2}
    found = by(paths(block), "network", "n")
    for network in range(6, 9):
        hops = [found[network, n]["hops"] for n in range(1, 17)]
        assert hops == sorted(hops, reverse=True)
    near = by(nearest({**block, "rendezvous": 8}), "network", "m")
    ratios = [near[6, m]["ratio"] for m in range(1, 9)]
    assert ratios == sorted(ratios, reverse=True)


def test_a_tree_counts_the_copies_that_are_sent_and_shared_steps_once():
    rows = trees({"nodes": 150, "networks": 1, "seed": 3, "rendezvous": 4, "nearest": 2, "draws": 2})
    assert [row["subscribers"] for row in rows if row["draw"] == 0] == list(SUBSCRIBERS)
    for row in rows:
        assert row["used"] <= min(row["subscribers"], 4)
        assert row["ratio"] == row["many"] / row["one"]
        assert row["subscribers"] > 1 or row["shared_ratio"] == row["ratio"]
    again = trees({"nodes": 150, "networks": 1, "seed": 3, "rendezvous": 1, "nearest": 1, "draws": 2})
    costs = [row["many"] for row in again if row["draw"] == 1]
    assert costs == sorted(costs)


def test_chances_are_those_of_breadth_first_search():
    (network_row, *_) = chances({"nodes": 80, "networks": 1, "seed": 4})
    network = draw_network(80, 4)
    publishers, subscribers = network.pairs(20, np.random.default_rng([80, 4, 1]))
    away = np.linalg.norm(network.positions[:, None] - network.positions[None], axis=2)
    graph = nx.from_numpy_array((away <= RANGE_M) & (away > 0))
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    good = [
        hops[a][r] + hops[r][b] <= hops[a][b] * (1 + 2 * network_row["k"])
        for a, b in zip(publishers.tolist(), subscribers.tolist(), strict=True)
        for r in graph
    ]
    assert network_row["share"] == pytest.approx(np.mean(good))
    assert network_row["diameter"] <= nx.diameter(graph)
    assert network_row["bound"] < network_row["share"]


def test_the_state_of_all_cells_is_every_advertisement_and_every_subscription():
    (row,) = state({"nodes": 150, "networks": 1, "seed": 1, "rendezvous": 4, "nearest": 2, "zipf": 1.0})
    network = draw_network(150, 1)
    topics = len(network) // 20
    assert row["mean"] * len(network.graph) == pytest.approx(topics * 4 + len(network) * 2)
    assert row["most"] >= row["p99"] >= row["mean"]


def test_unused_rendezvous_cells_cost_three_messages_each():
    rows = messages({"nodes": 150, "n": 3, "seed": 1, "background": 40, "newcomers": 2})
    assert [(row["notified"], row["unnecessary"], row["to_publisher"]) for row in rows] == [(3, 6, 0)] * 2


def test_runs_report_delivery_stretch_and_state():
    (row,) = moving({"nodes": 100, "speed_m_s": 5.0, "seed": 1})
    assert row["delivery_ratio"] > 0.9
    assert 1.0 <= row["stretch"] < 3.0
    assert row["records_per_node"] > 0
    (row,) = crashing({"nodes": 100, "share": 0.1, "seed": 1})
    assert row["delivery_ratio"] > 0.9
    (row,) = growing({"nodes": 100, "seed": 1})
    assert (row["delivery_ratio"], row["precision"]) == (1.0, 1.0)


def test_every_experiment_is_quick_in_its_quick_size_and_its_rows_are_plain_json():
    assert study("georendezvous") is STUDY
    for experiment in STUDY.experiments:
        assert 0 < len(experiment.quick) <= len(experiment.cases)
        json.dumps([*experiment.cases, *experiment.quick])
    json.dumps(paths({"nodes": 80, "networks": 1, "seed": 0}))


# Claims, judged from rows made by hand.


def answers(judge, **rows):
    """The verdict of each reading, the most natural one first."""
    return [reading.holds for reading in judge(rows).readings]


def path_rows(ratio, path_ratio=None, sizes=(600,), networks=4):
    wobble = [0.99, 1.0, 1.01, 1.0]
    return [
        {
            "nodes": nodes,
            "network": i,
            "n": n,
            "ratio": ratio(n, nodes) * wobble[i],
            "path_ratio": (path_ratio or ratio)(n, nodes) * wobble[i],
        }
        for nodes in sizes
        for n in range(1, 17)
        for i in range(networks)
    ]


def test_less_than_eight_cells_are_similar_to_a_direct_path_up_to_a_quarter_more():
    near, far = (lambda n, _: 1.0 + 1.0 / n), (lambda n, _: 1.2 + 1.0 / n)
    assert answers(claims.less_than_eight, paths=path_rows(near)) == [True] * 4
    assert answers(claims.less_than_eight, paths=path_rows(far)) == [False] * 4
    assert answers(claims.less_than_eight, paths=path_rows(near, far)) == [True, False, True, False]
    only_at_600 = path_rows(lambda n, nodes: near(n, nodes) + (nodes > 600), sizes=(600, 3000))
    assert answers(claims.less_than_eight, paths=only_at_600) == [True, True, False, False]


def test_more_than_eight_points_gain_little_only_if_the_curve_flattens():
    assert answers(claims.more_than_eight, paths=path_rows(lambda n, _: 1.0 + 1.0 / n)) == [True] * 2
    assert answers(claims.more_than_eight, paths=path_rows(lambda n, _: 2.0 - n / 20)) == [False] * 2


def test_a_ratio_that_grows_with_the_network_is_found():
    sizes = (80, 150, 300, 600, 1000, 2000, 3000)
    flat = path_rows(lambda n, _: 1.0 + 1.0 / n, sizes=sizes)
    growing_rows = path_rows(lambda n, nodes: 1.0 + 1.0 / n + 0.05 * math.log2(nodes), sizes=sizes)
    assert answers(claims.size_independent, paths=flat) == [True] * 2
    assert answers(claims.size_independent, paths=growing_rows) == [False] * 2
    assert answers(claims.cells_needed, paths=flat) == [True] * 4
    assert not any(answers(claims.cells_needed, paths=growing_rows))


def test_two_nearest_are_compared_with_all_and_with_the_direct_path():
    def rows(second):
        columns = [{1: 1.4, 2: second}.get(m, 1.1) for m in range(1, 9)]
        return [
            {"nodes": 600, "network": i, "m": m, "ratio": value + 0.001 * i, "path_ratio": value}
            for m, value in enumerate(columns, 1)
            for i in range(3)
        ]

    assert answers(claims.two_of_eight, nearest=rows(1.2)) == [True] * 2
    assert answers(claims.two_of_eight, nearest=rows(1.3)) == [False] * 2
    assert answers(claims.two_against_direct, nearest=rows(1.24)) == [True] * 2
    assert answers(claims.two_against_direct, nearest=rows(1.3)) == [False] * 2
    paid = [{"n": 2, "notified": 2, "unnecessary": 3}]
    assert answers(claims.three_messages, nearest=rows(1.2), messages=paid) == [True] * 2
    assert answers(claims.three_messages, nearest=rows(1.3), messages=paid) == [False] * 2
    assert answers(claims.three_messages, nearest=rows(1.2), messages=[{**paid[0], "unnecessary": 4}]) == [False] * 2


def tree_rows(shape):
    return [
        {
            "nodes": 600,
            "network": i,
            "subscribers": s,
            **{name: shape(s) + 0.001 * i for name in ("ratio", "shared_ratio", "many", "shared_many")},
            "one": 1.0,
            "shared_one": 1.0,
        }
        for s in SUBSCRIBERS
        for i in range(3)
    ]


def test_trees_must_rise_to_nearly_one_at_eight_and_fall_beyond():
    peak = tree_rows(lambda s: 0.95 - 0.03 * abs(math.log2(s / 8)))
    for judge in (claims.trees_below_eight, claims.trees_at_eight, claims.trees_beyond_eight, claims.shorter_trees):
        assert answers(judge, trees=peak) == [True] * 4
    rising = tree_rows(lambda s: 0.80 + 0.03 * math.log2(s))
    assert answers(claims.trees_at_eight, trees=rising) == [False] * 4
    assert answers(claims.trees_beyond_eight, trees=rising) == [False] * 4
    above_at_four = tree_rows(lambda s: 1.05 if s == 4 else 0.95)
    assert answers(claims.trees_below_eight, trees=above_at_four) == [False] * 4
    assert answers(claims.shorter_trees, trees=above_at_four) == [False] * 4


def chance_rows(share, bound=0.01, sizes=(80, 600, 3000)):
    return [
        {"nodes": nodes, "network": i, "k": k, "share": share(k, nodes) + 0.001 * i, "bound": bound}
        for nodes in sizes
        for k in (0.25, 0.5, 1.0)
        for i in range(3)
    ]


def test_a_chance_that_sinks_below_its_limit_or_its_bound_vanishes():
    assert answers(claims.does_not_vanish, chances=chance_rows(lambda k, _: limit(k))) == [True] * 6
    sinking = chance_rows(lambda k, nodes: limit(k) * 80 / nodes)
    assert answers(claims.does_not_vanish, chances=sinking) == [False] * 6
    assert answers(claims.does_not_vanish, chances=chance_rows(lambda k, _: limit(k), 0.9)) == [False] * 6


def test_chances_beyond_the_papers_sizes_are_judged_together_and_at_the_largest_alone():
    rows = chance_rows(lambda k, nodes: limit(k) * (1.1 if nodes == 10_000 else 0.9), sizes=(80, 10_000, 30_000))
    assert answers(claims.does_not_vanish, chances=rows) == [True, False] * 3


def test_a_chance_that_falls_by_more_than_a_tenth_is_not_nearly_constant():
    flat = path_rows(lambda *_: 2.0, sizes=(80, 3000))
    constant, falling = chance_rows(lambda *_: 0.7), chance_rows(lambda _, nodes: 0.7 - 0.0001 * nodes)
    assert answers(claims.nearly_constant, chances=constant, paths=flat) == [True] * 4
    assert answers(claims.nearly_constant, chances=falling, paths=flat) == [False, False, False, True]


def test_the_theorems_assumptions_are_met_only_if_both_are():
    def rows(growth=lambda _: 4.4, length=lambda _: 0.4):
        return [
            {
                "nodes": n,
                "network": i,
                "k": 0.25,
                "growth": growth(n) + 0.001 * i,
                "mean_length": length(n),
                "diameter": 1,
            }
            for n in (600, 3000, 30_000)
            for i in range(3)
        ]

    assert answers(claims.assumptions, chances=rows()) == [True, True, True]
    assert answers(claims.assumptions, chances=rows(growth=math.log2)) == [False, False, True]
    assert answers(claims.assumptions, chances=rows(length=lambda n: 10 / math.sqrt(n))) == [False, True, False]


def test_the_limit_is_the_area_of_an_ellipse_in_the_square():
    assert limit(0.0, 1000) == 0.0
    assert limit(50.0, 1000) > 0.99
    assert limit(0.25) == pytest.approx(0.357, abs=0.005)


def test_unused_cells_must_cost_exactly_three_messages_each():
    def rows(unnecessary, to_publisher=0):
        return [
            {"n": 4, "seed": 0, "notified": 4, "unnecessary": unnecessary, "expected": 9, "to_publisher": to_publisher}
            for _ in range(3)
        ]

    assert answers(claims.unused_cells, messages=rows(9)) == [True]
    assert answers(claims.unused_cells, messages=rows(10)) == [False]
    assert answers(claims.unused_cells, messages=rows(9, to_publisher=1)) == [False]


def test_the_fullest_cell_is_judged_as_the_mean_is():
    def rows(mean, most):
        return [
            {"nodes": nodes, "network": network, "zipf": zipf, "mean": mean(nodes), "most": most(nodes)}
            for nodes in (600, 3000)
            for network in range(2)
            for zipf in (0.0, 1.0)
        ]

    assert answers(claims.state, state=rows(lambda _: 5.0, lambda _: 40)) == [True] * 4
    assert answers(claims.state, state=rows(lambda _: 5.0, lambda nodes: nodes // 10)) == [True, True, False, False]
    assert answers(claims.state, state=rows(lambda nodes: nodes / 100, lambda _: 40)) == [False, False, True, True]


def test_every_claim_that_can_be_measured_names_what_would_make_it_fail():
    assert [claim.claim for claim in STUDY.claims if not claim.fails_if] == [
        "Cell Hash Routing scales better with node density than routing without clusters"
    ]


# Named mutations of the protocol turn the verdicts.

SMALL = [{"nodes": nodes, "networks": 10, "seed": 0} for nodes in (80, 600)]


def measured(measure, *cases):
    return [{**case, **row} for case in cases for row in measure(case)]


def test_keeping_the_first_path_instead_of_the_shortest_is_not_similar_to_a_direct_path(monkeypatch):
    flips(
        STUDY.claims,
        "Less than 8 rendezvous cells",
        lambda: {"paths": measured(paths, *SMALL)},
        lambda: monkeypatch.setattr(still_paths, "_best_so_far", lambda hops: [hops[:, 0]] * hops.shape[1]),
    )


def test_points_in_a_square_of_constant_size_need_more_cells_in_larger_networks(monkeypatch):
    def corner(topic, index, origin, width_m, height_m):
        return rendezvous_point(topic, index, origin, min(width_m, 250.0), min(height_m, 250.0))

    flips(
        STUDY.claims,
        "The number of rendezvous cells that",
        lambda: {"paths": measured(paths, *SMALL)},
        lambda: monkeypatch.setattr(still_paths, "rendezvous_point", corner),
    )


def test_two_cells_at_random_are_not_close_to_all_eight(monkeypatch):
    def at_random(points, positions):
        draws = np.random.default_rng(1).random((len(positions), points.shape[-2]))
        return draws.argsort(axis=1)

    flips(
        STUDY.claims,
        "Of 8 rendezvous cells the two nearest",
        lambda: {"nearest": measured(nearest, {**SMALL[1], "rendezvous": 8})},
        lambda: monkeypatch.setattr(still_paths, "_nearest_first", at_random),
    )


def test_nodes_on_a_line_that_branches_do_not_meet_the_theorems_assumptions(monkeypatch):
    def branching(network):
        """Every node is linked with two that no other node is linked with."""
        child = np.arange(1, len(network))
        ends = np.concatenate([child, (child - 1) // 2]), np.concatenate([(child - 1) // 2, child])
        return csr_matrix((np.ones(2 * len(child)), ends), shape=(len(network), len(network)))

    flips(
        STUDY.claims,
        "The network meets the theorem's assumptions",
        lambda: {"chances": measured(chances, *({"nodes": n, "networks": 5, "seed": 0} for n in (600, 2000)))},
        lambda: monkeypatch.setattr(still_paths, "_links", branching),
    )


def test_without_prunes_an_unused_cell_does_not_cost_three_messages(monkeypatch):
    flips(
        STUDY.claims,
        "Rendezvous cells that are tried",
        lambda: {"messages": measured(messages, {"n": 2, "nodes": 150, "background": 40, "newcomers": 2, "seed": 1})},
        lambda: monkeypatch.setattr(GeoRendezvous, "prune", lambda *_: None),
    )


def test_the_small_network_routes_as_cells_do():
    network = small_network()
    assert route((0, 0), (2, 0), network.members) == [(0, 0), (1, 0), (2, 0)]
