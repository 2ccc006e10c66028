"""The services' packets have bounds: a node that hears more takes the packet for malformed."""

from typing import Any

import msgspec
import pytest

from earshot import Position
from earshot.errors import MalformedPacket
from earshot.geometry import Velocity
from earshot.protocols.services.announced_types import Announced
from earshot.protocols.services.history import PastWanted
from earshot.wire import Packet, decode, encode

STATED = Announced("p", 5.0, "Tick", {}, {}, None, Position(0.0, 0.0), Velocity(0.0, 0.0), 1.0, (), False, 1)
ASKED = PastWanted("p", "Tick", (), 1.0, ())


def words(count: int) -> tuple[str, ...]:
    return tuple(f"e-{n}" for n in range(count))


@pytest.mark.parametrize(
    ("packet", "name", "most"),
    [
        (STATED, "content", 32),
        (STATED, "attributes", 32),
        (STATED, "recent", 32),
        (ASKED, "missed", 32),
        (ASKED, "held", 200),
    ],
)
def test_a_list_has_at_most_so_many_entries(packet: Packet, name: str, most: int) -> None:
    def holding(count: int) -> Any:
        some = words(count)
        held = dict.fromkeys(some, "x") if isinstance(getattr(packet, name), dict) else some
        return msgspec.structs.replace(packet, **{name: held})

    assert decode(encode(holding(most))) == holding(most)
    with pytest.raises(MalformedPacket):
        decode(encode(holding(most + 1)))
