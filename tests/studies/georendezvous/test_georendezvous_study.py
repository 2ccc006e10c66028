import json
import math

import networkx as nx
import numpy as np
import pytest

from earshot.protocols.georendezvous.cells import route
from earshot.studies.georendezvous.paths import SUBSCRIBERS, chances, nearest, paths, state, trees
from earshot.studies.georendezvous.runs import crashing, growing, messages, moving
from earshot.studies.georendezvous.still_networks import RANGE_M, StillNetwork, draw_network, range_share
from earshot.studies.georendezvous.study import STUDY, limit
from earshot.studies.study import study

CLAIMS = {claim.where + ": " + claim.claim.split(" ")[0]: claim for claim in STUDY.claims}


def judged(where, **rows):
    (claim,) = [claim for key, claim in CLAIMS.items() if key == where]
    return claim.judge(rows)


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


def path_rows(ratio, sizes=(600,), networks=4):
    wobble = [0.99, 1.0, 1.01, 1.0]
    return [
        {"nodes": nodes, "n": n, "ratio": ratio(n, nodes) * wobble[i], "path_ratio": 1.0}
        for nodes in sizes
        for n in range(1, 17)
        for i in range(networks)
    ]


def test_eight_points_are_similar_to_a_direct_path_up_to_a_quarter_more():
    where = "section 4, figure 3(a): Up"
    assert judged(where, paths=path_rows(lambda n, _: 1.0 + 1.0 / n)).holds is True
    assert judged(where, paths=path_rows(lambda n, _: 1.3 + 1.0 / n)).holds is False


def test_more_than_eight_points_gain_little_only_if_the_curve_flattens():
    where = "section 4, figure 3(a): More"
    assert judged(where, paths=path_rows(lambda n, _: 1.0 + 1.0 / n)).holds is True
    assert judged(where, paths=path_rows(lambda n, _: 2.0 - n / 20)).holds is False


def test_a_ratio_that_grows_with_the_network_is_found():
    where = "section 4, figure 3(b): The"
    sizes = (80, 150, 300, 600, 1000, 2000, 3000)
    flat = path_rows(lambda n, _: 1.0 + 1.0 / n, sizes)
    growing_rows = path_rows(lambda n, nodes: 1.0 + 1.0 / n + 0.05 * math.log2(nodes), sizes)
    assert judged(where, paths=flat).holds is True
    assert judged(where, paths=growing_rows).holds is False


def test_two_nearest_are_close_to_all_up_to_a_tenth_more():
    def rows(second):
        return [{"m": m, "ratio": {1: 1.4, 2: second}.get(m, 1.1) + 0.001 * i} for m in range(1, 9) for i in range(3)]

    assert judged("section 4, figure 3(c): Of", nearest=rows(1.2)).holds is True
    assert judged("section 4, figure 3(c): Of", nearest=rows(1.3)).holds is False


def test_trees_must_rise_to_nearly_one_at_eight_and_fall_beyond():
    def rows(shape):
        return [
            {"subscribers": s, "shared_ratio": shape(s) + 0.001 * i, "ratio": shape(s)}
            for s in SUBSCRIBERS
            for i in range(3)
        ]

    where = "section 4, figure 3(d): A"
    assert judged(where, trees=rows(lambda s: 0.95 - 0.03 * abs(math.log2(s / 8)))).holds is True
    assert judged(where, trees=rows(lambda s: 0.80 + 0.03 * math.log2(s))).holds is False
    assert judged(where, trees=rows(lambda s: 1.05 if s == 4 else 0.95)).holds is False


def test_a_chance_that_sinks_below_its_limit_or_its_bound_vanishes():
    def rows(share, bound):
        return [
            {"nodes": nodes, "k": k, "share": share(k, nodes) + 0.001 * i, "bound": bound}
            for nodes in (80, 600, 3000)
            for k in (0.25, 0.5, 1.0)
            for i in range(3)
        ]

    where = "section 3, theorem 3.1: The"
    assert judged(where, chances=rows(lambda k, _: limit(k), 0.01)).holds is True
    assert judged(where, chances=rows(lambda k, nodes: limit(k) * 80 / nodes, 0.01)).holds is False
    assert judged(where, chances=rows(lambda k, _: limit(k), 0.9)).holds is False


def test_the_limit_is_the_area_of_an_ellipse_in_the_square():
    assert limit(0.0, 1000) == 0.0
    assert limit(50.0, 1000) > 0.99
    assert limit(0.25) == pytest.approx(0.357, abs=0.005)


def test_unused_cells_must_cost_exactly_three_messages_each():
    def rows(unnecessary, to_publisher=0):
        return [
            {"n": 4, "notified": 4, "unnecessary": unnecessary, "expected": 9, "to_publisher": to_publisher}
            for _ in range(3)
        ]

    where = "section 4: Rendezvous"
    assert judged(where, messages=rows(9)).holds is True
    assert judged(where, messages=rows(10)).holds is False
    assert judged(where, messages=rows(9, to_publisher=1)).holds is False


def test_the_small_network_routes_as_cells_do():
    network = small_network()
    assert route((0, 0), (2, 0), network.members) == [(0, 0), (1, 0), (2, 0)]
