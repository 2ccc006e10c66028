import asyncio
import json
from pathlib import Path

import pytest
from desk import Desk, acquainted, until

from earshot.cli import main
from earshot.events import EventType
from earshot.geometry import Circle
from earshot.live.node import Node

SIREN = EventType("Siren", content={"n": int})


async def record(folder: Path, protocol: str, **options: object) -> None:
    """A line of four nodes; the last one restarts in the middle of the run."""
    desk = Desk(protocol=protocol, spool=folder, **options)
    joined = protocol != "steam"

    async def exchange(a: Node, c: Node, d: Node, base: int) -> None:
        near, far = c.subscribe("Siren", where="n >= 1"), d.subscribe("Siren")
        siren = await a.announce(SIREN, within=Circle(250))
        await until(lambda: joined or c.host.transport.joined)
        for number in range(3):
            await siren.publish(n=base + number)
        await until(lambda: len(near) >= (3 if base else 2))
        assert len(far) == 0

    async with desk.node("a") as a, desk.node("b", 100.0) as b, desk.node("c", 200.0) as c:
        between = b.subscribe("Siren")
        for base in (0, 10):
            async with desk.node("d", 300.0) as d:
                await acquainted(a, b)
                await acquainted(b, c)
                await acquainted(c, d)
                await exchange(a, c, d, base)
        assert len(between) == 6


@pytest.mark.parametrize("protocol", ["flooding", "steam"])
def test_a_recorded_run_replayed_in_the_simulator_delivers_the_same(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without random waits: a wait that differs a little decides what a node that has just come receives.
    waits = {"beacon_gather_s": 0.0, "forward_jitter_s": 0.0}
    settings = {"beacon_interval_s": 0.2, "expiry_s": 1.0, **waits} if protocol == "steam" else {}
    asyncio.run(record(tmp_path, protocol, emulate_range_m=150.0, settings=settings))
    with pytest.raises(SystemExit) as left:
        main(["replay", str(tmp_path), "--json"])
    printed = json.loads(capsys.readouterr().out)
    counts = {"nodes": 4, "both": 11, "damaged_lines": 0}
    assert printed == {"protocol": protocol, **counts, "only_live": [], "only_simulated": []}
    assert left.value.code == 0


def test_a_delivery_that_the_simulator_does_not_repeat_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(record(tmp_path, "flooding"))
    segment = next(path for path in tmp_path.iterdir() if path.name.startswith("c-"))
    lines = segment.read_text().splitlines()
    lost = next(number for number, line in enumerate(lines) if json.loads(line)["kind"] == "deliver")
    event = json.loads(lines.pop(lost))["event"]
    segment.write_text("\n".join(lines) + "\n")
    with pytest.raises(SystemExit) as left:
        main(["replay", str(tmp_path)])
    assert left.value.code == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == "flooding, 4 nodes, 6 events: 10 deliveries in both, 0 only live, 1 only simulated"
    assert second.startswith(f"only simulated: {event} to c (c/")


def test_a_folder_without_a_spool_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["replay", str(tmp_path)])
    assert left.value.code == 2
    assert "no spool in" in capsys.readouterr().err


def test_a_spool_becomes_a_log_as_the_simulator_writes_them(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from earshot.simulation.engine.log import arrow_schema

    asyncio.run(record(tmp_path / "spool", "flooding", emulate_range_m=150.0))
    with pytest.raises(SystemExit) as left:
        main(["replay", str(tmp_path / "spool"), "--log", str(tmp_path / "run.parquet")])
    assert left.value.code == 0
    table = parquet.read_table(tmp_path / "run.parquet")
    assert table.schema.equals(arrow_schema())
    kinds = table.column("kind").to_pylist()
    assert (kinds.count("publish"), kinds.count("deliver")) == (6, 11)
