"""Which services a workload needs, and workloads that lie in a lake."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from earshot.geometry import Area, Circle, Position
from earshot.protocols.services.fences import Fence
from earshot.simulation.workload.actions import Action, Services, Workload
from earshot.simulation.workload.workload_files import _lake_workload


def test_a_workload_without_fences_and_attributes_needs_no_services() -> None:
    assert Services.wanted_by(Workload([])) == Services() == Services(wanted=False, near=False)
    fence = Workload([Action(0.0, 0, Fence("f", near_m=50.0))])
    assert Services.wanted_by(fence) == Services(wanted=True, near=True)


class Rows:
    """A table of a lake."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = rows

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        return pa.Table.from_pylist([{name: row[name] for name in columns} for row in self.rows])


def event_row(event: str, time: float, content: str = '{"n":1}', **more: Any) -> dict[str, Any]:
    base = {"type": "A", "source": "a", "lifespan_s": None, "priority": None, "format": "json"}
    return {**base, "event": event, "time": time, "content": content, **more}


def subscription_row(subscription: str, start: float, **more: Any) -> dict[str, Any]:
    base = {"node": "b", "filter": "A: n = 1", "region": None, "end": None}
    return {**base, "subscription": subscription, "start": start, **more}


def test_a_workload_of_a_lake_is_in_order_and_has_one_content_whatever_the_order_of_rows() -> None:
    events = [
        event_row("e2", 2.0, lifespan_s=9.0, priority=2),
        event_row("e1", 1.0, "<B><n>2</n></B>", format="xml", type="B"),
        event_row("e0", 2.0),
    ]
    area = msgspec.json.encode(Area(Circle(5.0), Position(1.0, 2.0))).decode()
    wanted = [subscription_row("s1", 1.0, end=8.0, region=area), subscription_row("s0", 0.0)]
    found = _lake_workload(Rows(*events), Rows(*wanted))  # type: ignore[arg-type]
    assert [(one.time_s, one.event.type, one.event.lifespan_s, one.event.priority) for one in found.events] == [
        (1.0, "B", None, 0),
        (2.0, "A", None, 0),
        (2.0, "A", 9.0, 2),
    ]
    assert [(one.id, str(one.filter), one.at_s, one.until_s) for one in found.subscriptions] == [
        ("s0", "A: n = 1", 0.0, None),
        ("s1", "A: n = 1", 1.0, 8.0),
    ]
    assert found.subscriptions[1].region == Area(Circle(5.0), Position(1.0, 2.0))
    turned = _lake_workload(Rows(*reversed(events)), Rows(*reversed(wanted)))  # type: ignore[arg-type]
    other = _lake_workload(Rows(*events[:2]), Rows(*wanted))  # type: ignore[arg-type]
    assert (turned.content, len(found.content)) == (found.content, 16)
    assert other.content != found.content
