"""The swept keys and settings of runs as columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from earshot.pipeline import Lake, swept_runs
from earshot.pipeline.campaigns.campaigns import read_campaign
from earshot.pipeline.campaigns.sweeps import sweep
from earshot.pipeline.campaigns.swept_keys import _as, _type, run_columns


def row(run: str, changed: str, base: str, settings: str = "{}", scenario: str = "city") -> dict[str, str]:
    return {"run": run, "scenario": scenario, "changed": changed, "base": base, "settings": settings}


def test_a_run_that_left_a_swept_key_alone_has_the_value_of_its_scenario() -> None:
    rows = run_columns(
        [
            row("a", '{"medium.range_m": 100}', '{"medium.range_m": 160}'),
            row("b", "{}", "{}", '{"probability": 0.5}'),
            row("c", "{}", "{}", scenario="highway"),
        ]
    )
    assert [one["medium.range_m"] for one in rows] == [100, 160, None]
    assert [one.get("settings.probability") for one in rows] == [None, 0.5, None]


CAMPAIGN = """
scenarios = ["city"]
protocols = ["gossip"]
seeds = 1
[set]
duration_s = 12
warm_up_s = 4
cool_down_s = 4
"nodes.car.count" = 5
"medium.range_m" = [100, 160]
[settings.gossip]
probability = [0.5, 0.9]
"""


@pytest.mark.parametrize(
    ("values", "kind", "written"),
    [
        ([True, None, False], "boolean", [True, None, False]),
        ([1, 2.5, None], "double", [1.0, 2.5, None]),
        ([1, True], "string", ["1", "true"]),
        (["a", 1, None], "string", ["a", "1", None]),
        ([[1, 2], {"a": "b"}], "string", ["[1, 2]", '{"a": "b"}']),
        ([None, None], "string", [None, None]),
        ([], "string", []),
    ],
)
def test_a_column_has_the_type_of_all_its_values_and_what_is_missing_stays_so(
    values: list[object], kind: str, written: list[object]
) -> None:
    assert _type(values) == kind
    assert [(_as(value, kind), type(_as(value, kind))) for value in values] == [(one, type(one)) for one in written]


@pytest.mark.spark
def test_swept_keys_and_settings_are_columns_that_spark_can_ask(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN)
    lake = Lake(spark, tmp_path / "lake")
    sweep(lake, "small", read_campaign(file).runs)
    runs = swept_runs(lake)
    assert set(lake.read("runs").columns) < set(runs.columns)
    assert dict(runs.dtypes)["medium.range_m"] == dict(runs.dtypes)["settings.probability"] == "double"
    asked = (
        runs.where("`medium.range_m` = 100")
        .select("`settings.probability`", "status")
        .orderBy("`settings.probability`")
    )
    assert [tuple(one) for one in asked.collect()] == [(0.5, "done"), (0.9, "done")]
