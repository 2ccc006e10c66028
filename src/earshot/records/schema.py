"""The record: one row of what happened, written alike by the simulator and by live nodes.

The pipeline reads simulated and live runs through this one schema. A column that does not apply
to a kind is empty ("" for text, -1 for counts, NaN for numbers), never missing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

ColumnType = Literal["float64", "int64", "int32", "string"]


class Kind(StrEnum):
    """What a record tells."""

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


COLUMNS: Final[dict[str, ColumnType]] = {
    "time": "float64",  # seconds: simulated, or since the epoch on live nodes
    "node": "string",  # where it happened
    "kind": "string",  # a Kind
    "transmission": "int64",  # one number a send; its receipts carry the same one
    "packet": "string",  # the packet's tag
    "bytes": "int32",  # the packet's size on the wire
    "peer": "string",  # send: to whom ("" to all); receive: from whom
    "event": "string",  # the event it is about
    "subscription": "string",  # deliver, subscribe: whose wish it meets
    "hops": "int32",  # receive, deliver: transmissions from the publisher, where the packet counts them
    "detail": "string",  # drop: the reason; note: what; subscribe: the filter; publish: the event as JSON
    "x_m": "float64",  # publish, deliver, position: where the node was
    "y_m": "float64",
}
