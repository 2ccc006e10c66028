"""Campaigns: an explicit product, read from a file that is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.errors import ScenarioError, UnknownName
from earshot.pipeline.campaigns.campaigns import Campaign, Run, campaign, read_campaign
from earshot.simulation.scenario.library import load_scenario

CITY = load_scenario("city")


def write(folder: Path, text: str) -> Path:
    file = folder / "campaign.toml"
    file.write_text(text)
    return file


def test_a_campaign_is_the_product_of_what_it_lists(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        scenarios = ["city"]
        protocols = ["flooding", "gossip"]
        seeds = 2
        [set]
        "medium.range_m" = [100, 150]
        [settings.gossip]
        probability = [0.6, 0.8]
        """,
    )
    runs = read_campaign(file).runs
    reported = [(run.scenario.medium.range_m, run.variant, run.seed) for run in runs]
    assert reported == [
        (range_m, variant, seed)
        for range_m in (100, 150)
        for variant in ("flooding", "gossip probability=0.6", "gossip probability=0.8")
        for seed in (0, 1)
    ]
    assert len({run.id for run in runs}) == 12


def test_a_run_is_known_by_what_it_runs() -> None:
    run = Run(CITY, "gossip", {"probability": 0.6}, 3)
    assert run.id == Run(load_scenario("city"), "gossip", {"probability": 0.6}, 3).id
    others = [
        Run(CITY, "gossip", {"probability": 0.7}, 3),
        Run(CITY, "gossip", {"probability": 0.6}, 4),
        Run(CITY, "flooding", {}, 3),
        Run(CITY.with_(**{"medium.range_m": 99}), "gossip", {"probability": 0.6}, 3),
    ]
    assert len({run.id, *(other.id for other in others)}) == 5


def test_protocols_of_one_scenario_and_seed_share_a_workload() -> None:
    runs = campaign("c", [CITY], {"flooding": {}, "gossip": {}}, [7]).runs
    assert len({run.workload for run in runs}) == 1


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ('protocols = ["flooding"]', "scenarios must be a list of names"),
        ('scenarios = ["city"]\nprotocols = "flooding"', "protocols must be a list of names"),
        ('scenarios = ["city"]\nprotocols = ["floding"]', "did you mean 'flooding'?"),
        ('scenarios = ["city"]\nprotocols = ["flooding"]\nseeds = 0', "campaign.toml: seeds must be a number of seeds"),
        ('scenarios = ["city"]\nprotocols = ["flooding"]\nsseds = 3', "did you mean 'seeds'?"),
        (
            'scenarios = ["city"]\nprotocols = ["gossip"]\n[settings.gossip]\nprobabilty = 1',
            "did you mean probability?",
        ),
        ('scenarios = ["city"]\nprotocols = ["gossip"]\n[settings.steam]\nx = 1', "runs no protocol of that name"),
        ('scenarios = ["city"]\nprotocols = ["gossip"]\n[set]\n"medium.rang_m" = 1', "range_m"),
        ("scenarios = [", "not a campaign"),
    ],
)
def test_a_wrong_campaign_says_what_is_wrong(tmp_path: Path, text: str, stated: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_campaign(write(tmp_path, text))
    assert stated in str(caught.value)


def test_a_missing_campaign_or_scenario_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such campaign file"):
        read_campaign(tmp_path / "nowhere.toml")
    with pytest.raises(UnknownName, match="did you mean 'city'"):
        read_campaign(write(tmp_path, 'scenarios = ["citty"]\nprotocols = ["flooding"]'))


def test_a_campaign_warns_once_of_what_its_machines_doubt_in_each_scenario() -> None:
    city = load_scenario("city")
    near, far = (city.with_({"medium.range_m": range_m}) for range_m in (150.0, 160.0))
    wanted = campaign("cells", [near, far], {"georendezvous": {}, "flooding": {}}, range(3))
    assert [doubt.partition(" and ")[0] for doubt in wanted.doubts()] == [
        "georendezvous' cells have a side of 106 m",
        "georendezvous' cells have a side of 113 m",
    ]
    fails = Run(near, "georendezvous", {"cell_side_m": 500.0})
    assert Campaign("too large", [fails]).doubts() == []
