"""A plug-in in live nodes, recorded and replayed."""

import asyncio
import json
from pathlib import Path

import pytest
from desk import Desk, acquainted, until
from outside import SHOUT

from earshot.cli import main


async def record(folder: Path, protocol: str) -> None:
    desk = Desk(protocol=protocol, spool=folder, emulate_range_m=150.0)
    async with desk.node("a") as a, desk.node("b", 100.0) as b, desk.node("c", 200.0) as c:
        near, far = b.subscribe("Siren"), c.subscribe("Siren")
        await acquainted(a, b)
        assert a.host.settings.reach_m == 150.0
        await (await a.announce("Siren")).publish(n=1)
        await until(lambda: len(near) == 1)
        assert len(far) == 0


def test_a_recording_loads_no_code_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shout.py"
    file.write_text(SHOUT)
    spool = tmp_path / "spool"
    asyncio.run(record(spool, f"{file}:Shout"))
    for segment in spool.iterdir():
        segment.write_bytes(segment.read_bytes().replace(b"shout.py:Shout", b"other.py:Shout"))
    with pytest.raises(SystemExit) as left:
        main(["replay", str(spool)])
    assert (left.value.code, "give --protocol module:Class" in capsys.readouterr().err) == (2, True)
    with pytest.raises(SystemExit) as left:
        main(["replay", str(spool), "--json", "--protocol", f"{file}:Shout"])
    printed = json.loads(capsys.readouterr().out)
    assert (left.value.code, printed["both"], printed["only_live"], printed["only_simulated"]) == (0, 1, [], [])
