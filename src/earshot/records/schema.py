"""The record: one row of what happened, written alike by the simulator and by live nodes.

The pipeline reads simulated and live runs through this one schema. A column that does not apply
to a kind is empty ("" for text, -1 for counts, NaN for numbers), never missing in a table.
"""

from __future__ import annotations

from enum import StrEnum
from math import nan
from typing import Annotated, Any, Final, Literal

import msgspec

ColumnType = Literal["float64", "int64", "int32", "string"]


class Kind(StrEnum):
    """What kind of thing happened."""

    PUBLISH = "publish"
    SEND = "send"
    RECEIVE = "receive"
    DELIVER = "deliver"
    DROP = "drop"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    ANNOUNCE = "announce"
    UNANNOUNCE = "unannounce"
    JOIN = "join"
    LEAVE = "leave"
    NOTE = "note"
    POSITION = "position"
    AIRTIME = "airtime"
    LATE = "late"
    HISTORY = "history"
    FENCE = "fence"


COLUMNS: Final[dict[str, ColumnType]] = {
    "time": "float64",  # seconds: simulated, or since the epoch on live nodes
    "node": "string",  # where it happened
    "kind": "string",  # a Kind
    "transmission": "int64",  # the number of a send; its receptions have the same number
    "packet": "string",  # the packet's tag
    "bytes": "int32",  # the packet's size on the wire
    "peer": "string",  # send: the receiver ("": all); receive: the sender
    "event": "string",  # the id of the event, if there is one
    "subscription": "string",  # deliver, history, late, subscribe, unsubscribe: the subscription; fence: the fence's id
    "hops": "int32",  # receive, deliver: transmissions from the publisher, where the packet counts them
    "detail": "string",  # drop, leave: the reason; note: its text; publish: the event as JSON; late: seconds of delay;
    # fence: enter, leave, nearby or faraway, and the area's type; see also `details`
    "x_m": "float64",  # publish, deliver, position: where the node was
    "y_m": "float64",
}

_Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class Record(msgspec.Struct, omit_defaults=True, gc=False):
    """One row as live nodes write it, as JSON; empty columns are left out."""

    time: float
    node: str
    kind: str
    transmission: int = -1
    packet: str = ""
    bytes: _Int32 = -1
    peer: str = ""
    event: str = ""
    subscription: str = ""
    hops: _Int32 = -1
    detail: str = ""
    x_m: float | None = None
    y_m: float | None = None

    def row(self) -> dict[str, Any]:
        """All columns, as the simulator's log has them: a place that is not known is not a number."""
        row = msgspec.structs.asdict(self)
        if self.x_m is None:
            row["x_m"] = nan
        if self.y_m is None:
            row["y_m"] = nan
        return row
