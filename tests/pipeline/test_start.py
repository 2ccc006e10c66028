"""A session that is started or found has our data sources."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from earshot.pipeline import session
from earshot.pipeline.session import holds_little, register_sources, spark_session

TRACES = ["sumo-fcd", "ns2-mobility", "bonnmotion", "one-movement", "gpx", "trace-csv"]


def fake_session() -> Any:
    names: list[str] = []
    return SimpleNamespace(names=names, dataSource=SimpleNamespace(register=lambda source: names.append(source.name())))


@pytest.mark.parametrize("streams", [True, False])
def test_traces_are_registered_and_spools_where_spark_can_stream_them(
    streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda _: object() if streams else None)
    spark = fake_session()
    register_sources(spark)
    assert spark.names == [*TRACES, *(["earshot-spool"] if streams else [])]


def test_a_session_is_started_as_asked_and_knows_our_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    spark = fake_session()
    monkeypatch.setattr(session, "start_session", lambda *some: given.append(some) or spark)
    assert spark_session() is spark
    assert spark_session("local", None, settings={"a": "b"}, small=True, keep_archive=False, notice=print) is spark
    assert spark_session(remote="sc://a") is spark
    assert given == [
        (None, None, {}, True, None, False), ("local", None, {"a": "b"}, False, print, True),
        (None, "sc://a", {}, True, None, False),
    ]  # fmt: skip
    assert spark.names[:6] == TRACES


def test_what_holds_exactly_the_limit_is_little(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LITTLE_BYTES", 10)
    (tmp_path / "walk.csv").write_bytes(bytes(10))
    assert holds_little([str(tmp_path)])
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "more.csv").write_bytes(bytes(1))
    assert not holds_little([str(tmp_path)])
    assert holds_little([])
