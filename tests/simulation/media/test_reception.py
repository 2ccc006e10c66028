"""Reception models: their chances against closed formulas, fading on a busy channel, capture, plug-ins."""

import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from small_networks import Bench, Word, everybody_wants, flooding, ping, say, send_word, standing

from earshot.errors import ScenarioError, SettingsError
from earshot.records.trajectories import Trajectories
from earshot.simulation import load_scenario
from earshot.simulation.draws import Span
from earshot.simulation.engine.engine import Engine
from earshot.simulation.extent import Extent
from earshot.simulation.media.links import LinkScript
from earshot.simulation.media.medium_settings import Contention
from earshot.simulation.media.neighbours import neighbours_within
from earshot.simulation.media.reception import (
    LEAST_CHANCE,
    Arrivals,
    Disk,
    LossyReception,
    Nakagami,
    ShadowField,
    Shadowing,
    gamma_at_most,
)
from earshot.simulation.media.reception_draws import ChanceDraws, Draw, StrengthDraws, Uniforms, reception_draws
from earshot.simulation.mobility import RandomWaypoint
from earshot.simulation.workload.actions import Workload
from earshot.wire import size

RANGE_M = 100.0
BASE = Contention(range_m=RANGE_M)


@pytest.mark.parametrize("m", [1, 2, 3, 7, 40])
def test_the_gamma_distribution_of_a_whole_m_has_its_closed_form(m: int) -> None:
    x = np.linspace(0.01, 6.0 * m, 50)
    expected = 1 - np.exp(-x) * sum(x**k / math.factorial(k) for k in range(m))
    assert gamma_at_most(m, x) == pytest.approx(expected, abs=1e-9)


@given(st.floats(1.0, 260.0))
def test_nakagami_with_m_3_is_the_formula_of_killat_and_hartenstein(distance_m: float) -> None:
    found = Nakagami(m=3.0).open(RANGE_M, Random(0)).chances(np.array([distance_m]), 0.0)
    x = 3 * (distance_m / RANGE_M) ** 2
    assert found is not None
    assert found[0][0] == pytest.approx(math.exp(-x) * (1 + x + x * x / 2), abs=2e-4)


@given(
    m=st.floats(0.5, 10.0),
    exponent=st.floats(1.8, 4.0),
    share=st.floats(0.1, 2.0),
    least_db=st.sampled_from([0.0, -6.0]),
)
@settings(max_examples=25)
def test_drawn_strengths_have_the_stated_chances(m: float, exponent: float, share: float, least_db: float) -> None:
    model = Nakagami(m=m, path_loss_exponent=exponent).open(RANGE_M, Random(1))
    count = 20_000
    distances_m = np.full(count, share * RANGE_M)
    arrivals = Arrivals(
        0, np.arange(count), distances_m, (0.0, 0.0), (distances_m, distances_m * 0), Uniforms(Random(2)).take
    )
    drawn, chances = model.strengths_db(arrivals), model.chances(distances_m[:1], least_db)
    assert chances is not None
    for chance, threshold_db in zip(chances, (0.0, least_db), strict=True):
        error = 5 * math.sqrt(max(chance[0] * (1 - chance[0]), 1e-4) / count)
        assert np.mean(drawn >= threshold_db) == pytest.approx(chance[0], abs=error)
    power = 10 ** ((drawn - model.mean_db(distances_m)) / 10)
    assert power.mean() == pytest.approx(1.0, abs=6 / math.sqrt(m * count))


def test_m_steps_hold_up_to_their_distance() -> None:
    stepped = Nakagami(m=1.0, m_steps=((50.0, 3.0), (150.0, 1.5))).open(RANGE_M, Random(0))
    for distance_m, m in ((20.0, 3.0), (50.0, 3.0), (51.0, 1.5), (150.0, 1.5), (151.0, 1.0)):
        alone = Nakagami(m=m).open(RANGE_M, Random(0))
        at = np.array([distance_m])
        assert stepped.chances(at, 0.0) == alone.chances(at, 0.0)
    drawn = ChanceDraws(stepped, RANGE_M, 0.0, standing((0, 0), (60, 0)), Random(0)).draw
    assert {tuple(drawn(0, 1.0).in_range) for _ in range(200)} == {(), (1,)}


def test_beyond_the_reach_hardly_anything_is_heard() -> None:
    for model in (Nakagami(m=1.0), Nakagami(m=0.7, path_loss_exponent=3.0), Nakagami(m=3.0)):
        opened = model.open(RANGE_M, Random(0))
        for least_db in (0.0, -6.0):
            found = opened.chances(np.array([opened.reach_m(least_db)]), least_db)
            assert found is not None
            assert found[1][0] == pytest.approx(LEAST_CHANCE, rel=0.02)
    assert Disk().open(RANGE_M, Random(0)).reach_m(0.0) == pytest.approx(RANGE_M)


# Shadowing.


def shadows(field: ShadowField, a: tuple[float, float], places: np.ndarray[Any, Any], numbers: tuple[int, int]) -> Any:
    nodes = np.full(len(places), numbers[1])
    take = Uniforms(Random(0)).take
    return field.between(Arrivals(numbers[0], nodes, np.ones(len(nodes)), a, (places[:, 0], places[:, 1]), take))


def test_shadowing_is_the_same_in_both_directions_and_keeps_its_standard_deviation() -> None:
    random = Random(3)
    values, moved = [], []
    for seed in range(400):
        field = ShadowField(4.0, 20.0, Random(seed))
        a, b = ((random.uniform(0, 1e4), random.uniform(0, 1e4)) for _ in range(2))
        there = shadows(field, a, np.array([b, (b[0] + 20.0, b[1])]), (1, 2))
        back = shadows(field, b, np.array([a]), (2, 1))
        assert there[0] == pytest.approx(back[0])
        values.append(there[0])
        moved.append(there[1])
    assert np.mean(values) == pytest.approx(0.0, abs=1.0)
    assert np.std(values) == pytest.approx(4.0, rel=0.15)
    assert np.corrcoef(values, moved)[0, 1] == pytest.approx(math.exp(-1), abs=0.15)


def test_shadowing_lasts_while_nobody_moves() -> None:
    medium = replace(BASE, reception=Shadowing(sigma_db=8.0))
    outcomes = set()
    for seed in range(12):
        bench = Bench(standing((0, 0), (95, 0)), medium, seed=seed)
        for k in range(10):
            bench.do(1.0 + 0.5 * k, "a" if k % 2 else "b", say(str(k)))
        bench.run()
        heard = len(bench.calls("a", "hear")) + len(bench.calls("b", "hear"))
        assert heard in (0, 10)
        outcomes.add(heard)
    assert outcomes == {0, 10}


# On the channel.


def moving(nodes: int = 60) -> Trajectories:
    model = RandomWaypoint(speed_m_s=Span(10.0, 20.0), pause_s=Span(0.0, 2.0))
    names = [f"n{i}" for i in range(nodes)]
    return Trajectories(model.paths(names, Extent(400.0, 400.0), [Random(i) for i in range(nodes)], 30.0))


@pytest.mark.parametrize(
    "reception",
    [Nakagami(m=1.5, path_loss_exponent=2.5), LossyReception(certain_m=30.0, exponent=1.5)],
    ids=["nakagami", "lossy"],
)
@pytest.mark.parametrize("carrier_range_m", [RANGE_M, 1.5 * RANGE_M])
def test_chances_and_strengths_draw_alike_while_nodes_move(reception: Any, carrier_range_m: float) -> None:
    """The windows of the fast draws against the model itself, over the same moments."""
    counts: list[dict[str, int]] = []
    for by_distance in (True, False):
        trajectories = moving()
        drawn = reception_draws(
            reception.open(RANGE_M, Random(0)),
            RANGE_M,
            carrier_range_m,
            trajectories,
            lambda range_m, trajectories=trajectories: neighbours_within(trajectories, range_m),
            Random(5),
            with_powers=False,
            by_distance=by_distance,
        )
        assert isinstance(drawn.__self__, ChanceDraws if by_distance else StrengthDraws)  # type: ignore[attr-defined]
        counts.append(totals(drawn, trajectories))
    fast, slow = counts
    for name in fast:
        assert fast[name] == pytest.approx(slow[name], abs=5 * math.sqrt(slow[name]) + 5)


def totals(drawn: Draw, trajectories: Trajectories) -> dict[str, int]:
    found = {"sensed": 0, "read": 0, "faded": 0, "read beyond": 0}
    for step in range(1500):
        now, sender = 0.02 * step, step % len(trajectories)
        sensed_by, in_range, faded, _ = drawn(sender, now)
        assert sensed_by == sorted({*sensed_by, *in_range})
        assert sender not in sensed_by
        places = trajectories.positions(now)
        far = [node for node in in_range if math.dist(places[node], places[sender]) > RANGE_M]
        for name, nodes in (("sensed", sensed_by), ("read", in_range), ("faded", faded), ("read beyond", far)):
            found[name] += len(nodes)
    return found


def test_a_faded_frame_is_a_drop_and_reaches_some_beyond_the_range() -> None:
    medium = replace(BASE, reception=Nakagami(m=1.0))
    bench = Bench(standing((0, 0), (80, 0), (0, 120)), medium, duration_s=400.0)
    for k in range(1000):
        bench.do(1.0 + 0.3 * k, "a", say(str(k)))
    bench.run()
    heard = {node: len(bench.calls(node, "hear")) for node in "bc"}
    assert heard["b"] / 1000 == pytest.approx(math.exp(-(0.8**2)), abs=0.06)
    assert heard["c"] / 1000 == pytest.approx(math.exp(-(1.2**2)), abs=0.06)
    assert bench.engine.counts.drops == {"faded": 1000 - heard["b"]}  # c is beyond the range


def test_a_faded_unicast_is_sent_again_and_its_acknowledgement_may_fade_too() -> None:
    medium = replace(BASE, reception=Nakagami(m=1.0))
    bench = Bench(standing((0, 0), (60, 0)), medium, duration_s=300.0)
    for k in range(500):
        bench.do(1.0 + 0.5 * k, "a", send_word("b", str(k)))
    bench.run()
    assert len(bench.calls("b", "hear")) >= 497  # seven attempts each
    chance = math.exp(-(0.6**2)) ** 2
    sends = len(bench.rows("time", kind="send"))
    assert sends / 500 == pytest.approx(1 / chance, rel=0.1)


def test_a_frame_that_is_sensed_but_not_read_keeps_others_silent() -> None:
    """b cannot read a at 80 m of 50, but waits for it."""
    medium = Contention(range_m=50.0, carrier_range_m=100.0, reception=LossyReception(certain_m=0.0))
    bench = Bench(standing((0, 0), (80, 0), (100, 0)), medium)
    bench.do(1.0, "a", say("x" * 500))
    bench.do(1.001, "b", say("waits"))
    bench.run()
    (first, _), (second, _) = bench.rows("time", "node", kind="send")
    assert second - first > 500 * 8 / medium.bit_rate_bps


def test_the_same_seed_gives_the_same_run_and_scripts_cut_links() -> None:
    def run(seed: int, medium: Contention) -> tuple[int, int, Any]:
        engine = Engine(
            flooding(),
            moving(),
            medium,
            Workload([*everybody_wants(60), *(ping(1.0 + k, k) for k in range(10))]),
            duration_s=20.0,
            seed=seed,
        )
        engine.run()
        return engine.counts.sends, engine.counts.receives, dict(engine.counts.drops)

    fading = replace(BASE, reception=Nakagami(m=1.0), capture_db=6.0)
    assert run(1, fading) == run(1, fading) != run(2, fading)
    alone = run(1, replace(fading, links=LinkScript(graph=(("n0", "n1"),))))
    assert alone[1] <= alone[0]
    assert alone[1] < run(1, fading)[1] / 20


# Capture.


def near_and_far(capture_db: float | None, second_at: float = 1.0, **more: Any) -> Bench:
    """c hears a from 20 m and b from 90 m (13 dB weaker); a and b do not hear each other."""
    medium = Contention(range_m=RANGE_M, capture_db=capture_db, **more)
    bench = Bench(standing((0, 0), (110, 0), (20, 0)), medium)
    bench.do(1.0, "a", say("x" * 300))
    bench.do(second_at, "b", say("y" * 300))
    return bench.run()


def first_letters(bench: Bench, node: str) -> list[str]:
    return [packet.text[0] for packet, _, _ in bench.calls(node, "hear")]


def test_without_capture_both_are_lost_and_with_it_the_stronger_is_read() -> None:
    assert first_letters(near_and_far(None), "c") == []
    assert first_letters(near_and_far(10.0), "c") == ["x"]
    assert near_and_far(10.0).engine.counts.drops == {"collision": 1}
    assert first_letters(near_and_far(15.0), "c") == []


def test_a_later_stronger_frame_is_read_only_while_the_preamble_lasts() -> None:
    def later(delay_s: float) -> list[str]:
        """c hears b, 13 dB weaker, first."""
        medium = Contention(range_m=RANGE_M, capture_db=10.0)
        bench = Bench(standing((0, 0), (110, 0), (20, 0)), medium)
        bench.do(1.0, "b", say("y" * 300))
        bench.do(1.0 + delay_s, "a", say("x" * 300))
        return first_letters(bench.run(), "c")

    assert later(0.5 * BASE.preamble_s) == ["x"]
    assert later(1.5 * BASE.preamble_s) == []


def test_the_sum_of_weak_frames_can_disturb_a_strong_one() -> None:
    # Two frames, each 10.9 dB weaker, are together 7.9 dB weaker.
    for capture_db, read in ((9.0, ["x"]), (11.0, [])):
        bench = Bench(standing((0, 0), (20, 0), (0, 70)), Contention(range_m=71.0, capture_db=capture_db))
        bench.do(1.0, "b", say("x" * 300))
        bench.do(1.0, "c", say("y" * 300))
        assert first_letters(bench.run(), "a") == read
    medium = Contention(range_m=71.0, capture_db=9.0)
    bench = Bench(standing((0, 0), (20, 0), (0, 70), (0, -70)), medium)
    for node, letter in (("b", "x"), ("c", "y"), ("d", "z")):
        bench.do(1.0, node, say(letter * 300))
    assert first_letters(bench.run(), "a") == []


def test_a_node_that_sends_reads_nothing_however_strong() -> None:
    bench = Bench(standing((0, 0), (1, 0)), Contention(range_m=RANGE_M, capture_db=0.0))
    bench.do(1.0, "a", say("x" * 300))
    bench.do(1.0, "b", say("y" * 300))
    bench.run()
    assert (first_letters(bench, "a"), first_letters(bench, "b")) == ([], [])


@pytest.mark.parametrize(("later_s", "waits_longer"), [(2.0, True), (0.5, False)])
def test_with_capture_too_a_node_waits_longer_after_a_frame_whose_preamble_alone_it_could_read(
    later_s: float, waits_longer: bool
) -> None:
    """c reads a until b, as strong, spoils it: after the preamble c knows that there was a frame."""
    medium = Contention(range_m=RANGE_M, capture_db=10.0, window_min=0, eifs_s=2e-3)
    bench = Bench(standing((0, 0), (110, 0), (55, 0)), medium)
    begins = 1.0 + later_s * medium.preamble_s
    bench.do(1.0, "a", say("x" * 300))
    bench.do(begins, "b", say("y" * 300))
    bench.do(begins + 1e-4, "c", say("z"))
    bench.run()
    assert first_letters(bench, "c") == []
    (_, _), (_, _), (sent_at, sender) = bench.rows("time", "node", kind="send")
    frame_s = medium.preamble_s + (medium.header_bytes + size(Word("x" * 300))) * 8 / medium.bit_rate_bps
    first_end, last_end = 1.0 + frame_s, begins + frame_s
    waits_until = max(last_end + medium.difs_s, first_end + 2e-3) if waits_longer else last_end + medium.difs_s
    assert (sender, sent_at) == ("c", pytest.approx(waits_until))


@pytest.mark.parametrize(("near_m", "far_m"), [(20.0, 40.0), (40.0, 50.0), (50.0, 50.0), (60.0, 90.0), (90.0, 60.0)])
def test_under_fading_the_chance_of_capture_is_that_of_two_exponential_powers(near_m: float, far_m: float) -> None:
    """Under Rayleigh fading the powers of both frames, in units of the least that can be read, are exponential. A
    frame is read that can be, and is either alone above the least or stronger than the other by the ratio."""
    trials, ratio, gap_s = 600, 4.0, 0.05
    medium = Contention(
        range_m=RANGE_M,
        reception=Nakagami(m=1.0, path_loss_exponent=2.0),
        capture_db=10 * math.log10(ratio),
        links=LinkScript(graph=(("a", "c"), ("b", "c"))),
    )
    bench = Bench(standing((-near_m, 0), (far_m, 0), (0, 0)), medium, duration_s=2.0 + trials * gap_s)
    for k in range(trials):
        bench.do(1.0 + k * gap_s, "a", say("x" * 300))
        bench.do(1.0 + k * gap_s, "b", say("y" * 300))
    read = first_letters(bench.run(), "c").count("x") / trials
    own, other = (near_m / RANGE_M) ** 2, (far_m / RANGE_M) ** 2
    alone = math.exp(-own) * (1 - math.exp(-other))
    captured = other / (other + ratio * own) * math.exp(-other - ratio * own)
    assert read == pytest.approx(alone + captured, abs=4 * math.sqrt(0.25 / trials))


# In scenarios.


def test_a_scenario_names_its_model_and_its_network_says_so() -> None:
    base = load_scenario("base").with_({"medium.kind": "contention"})
    assert base.medium.label == "802.11b-2M 200 m"
    faded = base.with_({"medium.reception": {"kind": "nakagami", "m": 3}, "medium.capture_db": 6})
    assert faded.medium.label == "802.11b-2M 200 m (nakagami m=3, n=2, capture_db=6)"
    assert base.with_({"medium.reception": "shadowing"}).medium.label.endswith("(shadowing 4 dB over 20 m, n=2)")


@pytest.mark.parametrize(
    ("reception", "words"),
    [
        ({"kind": "nakagami", "m": 0.01}, "m: must be from 0.1 to 100"),
        ({"kind": "nakagami", "m_steps": [[100, 2], [50, 3]]}, "growing distances"),
        ({"kind": "lossy", "certain_m": 500}, "certain_m: must not exceed range_m"),
        ({"kind": "nakagammi"}, "nakagami"),
        ({"kind": "nakagami", "sigma": 2}, "sigma_db"),
    ],
)
def test_a_wrong_model_is_refused_with_what_to_write(reception: dict[str, Any], words: str) -> None:
    base = load_scenario("base").with_({"medium.kind": "contention"})
    with pytest.raises((ScenarioError, SettingsError), match=words):
        base.with_({"medium.reception": reception})


def test_a_model_of_the_users_own_decides(tmp_path: Path) -> None:
    (tmp_path / "tunnel.py").write_text(
        "import numpy as np\n"
        "from earshot.simulation import LogDistance, SettingsTable\n"
        "class Tunnel(SettingsTable, frozen=True):\n"
        "    depth_db: float = 200.0\n"
        "    def open(self, range_m, random):\n"
        "        return InTunnel(range_m, 2.0, self.depth_db)\n"
        "class InTunnel(LogDistance):\n"
        "    def __init__(self, range_m, n, depth_db):\n"
        "        super().__init__(range_m, n)\n"
        "        self.depth_db = depth_db\n"
        "    def strengths_db(self, arrivals):\n"
        "        return super().strengths_db(arrivals) - self.depth_db * (arrivals.nodes_at[0] > 50)\n"
    )
    (tmp_path / "world.toml").write_text(
        'base = "base"\n[medium]\nkind = "contention"\nrange_m = 100\nreception = { kind = "./tunnel.py:Tunnel" }\n'
    )
    medium = load_scenario(str(tmp_path / "world.toml")).medium
    assert isinstance(medium, Contention)
    bench = Bench(standing((0, 0), (40, 0), (60, 0)), medium)
    bench.do(1.0, "a", say("hello"))
    bench.run()
    assert (len(bench.calls("b", "hear")), len(bench.calls("c", "hear"))) == (1, 0)
    assert bench.engine.counts.drops == {"faded": 1}


def test_shadowing_has_no_mean_anywhere_not_even_where_both_ends_are_at_the_origin() -> None:
    """There the waves differ by their phases alone, which are drawn from the whole circle."""
    at_origin = np.array([shadows(ShadowField(4.0, 20.0, Random(seed)), (0.0, 0.0), np.zeros((1, 2)), (1, 2))[0]
                          for seed in range(300)])  # fmt: skip
    assert at_origin.mean() == pytest.approx(0.0, abs=0.9)
    assert at_origin.std() == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize("model", [Disk, LossyReception, Shadowing, Nakagami])
@pytest.mark.parametrize("exponent", [2.0, 3.5])
def test_the_mean_strength_is_0_db_at_the_range_and_falls_with_the_exponent(model: Any, exponent: float) -> None:
    opened = model(path_loss_exponent=exponent).open(RANGE_M, Random(0))
    distances_m = np.array([RANGE_M, RANGE_M / 10, 10 * RANGE_M, 1.0, 0.0])
    assert opened.mean_db(distances_m) == pytest.approx([0.0, *(10 * exponent * n for n in (1, -1, 2, 2))])


def test_a_lossy_frame_is_read_up_to_its_certain_distance_and_never_beyond_its_range() -> None:
    opened = LossyReception(certain_m=50.0, exponent=2.0).open(RANGE_M, Random(0))
    found = opened.chances(np.array([0.0, 50.0, 75.0, 100.0, 100.1, 200.0]), -20 * math.log10(2.0) - 1e-9)
    assert found is not None
    read, sensed = found
    assert read == pytest.approx([1.0, 1.0, 0.75, 0.0, 0.0, 0.0])
    assert sensed.tolist() == [1.0] * 6, "twice as far away, 6 dB less"
    certain = LossyReception(certain_m=RANGE_M).open(RANGE_M, Random(0)).chances(np.array([100.0, 100.1]), 0.0)
    assert certain is not None
    assert [one.tolist() for one in certain] == [[1.0, 0.0], [1.0, 0.0]]
