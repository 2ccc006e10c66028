"""What sockets are asked for when groups are joined and left and when a port is taken, without a network."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from earshot.errors import NetworkUnavailable
from earshot.live import sockets
from earshot.live.sockets import Gate, MulticastSockets, group_address

HOME = ("10.0.0.1", 5000)
ANY = "0.0.0.0"


class Wire:
    """A socket that notes its options; `refuses` is raised when it is bound."""

    def __init__(self, refuses: OSError | None = None) -> None:
        self.options: dict[tuple[int, int], Any] = {}
        self.joined: list[tuple[int, bytes]] = []
        self.bound: Any = None
        self.refuses = refuses
        self.blocking, self.closed = True, False

    def setblocking(self, blocking: bool) -> None:
        self.blocking = blocking

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        if option in (socket.IP_ADD_MEMBERSHIP, socket.IP_DROP_MEMBERSHIP) and level == socket.IPPROTO_IP:
            self.joined.append((option, value))
        else:
            self.options[level, option] = value

    def bind(self, address: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.bound = address

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def wires(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Wire]]:
    """The sockets that will be opened, in this order."""

    def opened(*some: Wire) -> list[Wire]:
        waiting = list(some)
        monkeypatch.setattr(sockets.socket, "socket", lambda *_: waiting.pop(0))
        return list(some)

    return opened


def membership(group: str, interface: int = 0) -> bytes:
    """Linux's ip_mreqn: the group, any address of this machine, and the interface's number."""
    return bytes(int(part) for part in group.split(".")) + bytes(4) + struct.pack("=i", interface)


def test_a_group_that_was_left_is_joined_again_on_the_same_socket(wires: Callable[..., list[Wire]]) -> None:
    (wire,) = wires(Wire())
    found = MulticastSockets(5000, "", (ANY, 1))
    assert found.join("239.0.0.1") is wire
    assert found.join("239.0.0.2") is None
    found.leave("239.0.0.1")
    found.leave("239.0.0.9")
    assert found.join("239.0.0.1") is None
    add, drop = socket.IP_ADD_MEMBERSHIP, socket.IP_DROP_MEMBERSHIP
    assert wire.joined == [
        (add, membership("239.0.0.1")), (add, membership("239.0.0.2")), (drop, membership("239.0.0.1")),
        (add, membership("239.0.0.1")),
    ]  # fmt: skip
    found.close()
    assert wire.closed


def test_a_receiver_shares_its_port_and_gets_only_its_own_groups(wires: Callable[..., list[Wire]]) -> None:
    own, everywhere = wires(Wire(), Wire())
    MulticastSockets(5000, "", HOME).join("239.0.0.1")
    MulticastSockets(5000, "", (ANY, 5000)).join("239.0.0.1")
    wanted = {
        (socket.SOL_SOCKET, socket.SO_REUSEADDR): 1,
        (socket.SOL_SOCKET, socket.SO_RCVBUF): 4 << 20,
        (socket.IPPROTO_IP, 49): 0,
    }
    attached = (socket.SOL_SOCKET, 26)
    assert (own.bound, own.blocking, everywhere.options) == (("", 5000), False, wanted)
    assert own.options.keys() == {*wanted, attached}, "the kernel discards what this host sends itself"


def test_a_port_that_is_taken_is_named_and_its_socket_closed(wires: Callable[..., list[Wire]]) -> None:
    taken = OSError(errno.EADDRINUSE, "Address already in use")
    receiver, own = wires(Wire(taken), Wire(taken))
    found = MulticastSockets(5000, "", HOME)
    with pytest.raises(NetworkUnavailable, match="cannot listen on port 5000: Address already in use"):
        found.join("239.0.0.1")
    with pytest.raises(NetworkUnavailable, match=r"cannot listen on 10\.0\.0\.1:5000: Address already in use"):
        sockets.open_own(*HOME)
    assert (receiver.closed, own.closed, found.sockets) == (True, True, [])


def test_a_hosts_own_socket_sends_one_hop_and_to_this_machine(
    wires: Callable[..., list[Wire]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets.socket, "if_nametoindex", {"wlan0": 3}.__getitem__)
    plain, bound = wires(Wire(), Wire())
    sockets.open_own(*HOME)
    sockets.open_own(*HOME, "wlan0")
    wanted: dict[tuple[int, int], Any] = {
        (socket.SOL_SOCKET, socket.SO_RCVBUF): 4 << 20,
        (socket.SOL_SOCKET, socket.SO_SNDBUF): 4 << 20,
        (socket.IPPROTO_IP, socket.IP_MULTICAST_TTL): 1,
        (socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP): 1,
    }
    assert (plain.options, plain.bound, plain.blocking) == (wanted, HOME, False)
    assert bound.options == {**wanted, (socket.IPPROTO_IP, socket.IP_MULTICAST_IF): membership(ANY, 3)}


def test_a_group_is_the_last_three_bytes_of_its_address() -> None:
    assert [group_address(group) for group in (0, 255, 0x010203, 2**24 - 1)] == [
        "239.0.0.0", "239.0.0.255", "239.1.2.3", "239.255.255.255",
    ]  # fmt: skip


def test_a_gates_program_names_the_latest_3996_senders_and_fits_the_kernel() -> None:
    """A filter of the kernel has at most 4,096 steps, and a step skips at most 255."""
    program = Gate(HOME)._program([(f"10.{number >> 8}.{number & 255}.1", 9) for number in range(5000)])
    named = [step for step in program if step[0] == 0x15]
    assert (len(named), len(program) <= 4096, max(step[1] for step in named) <= 255) == (3996, True, True)
    for at, (_, skipped, otherwise, _) in enumerate(program):
        if program[at][0] == 0x15:
            assert program[at + 1 + skipped][0] == 0x06, "a sender that is named is let through"
            assert program[at + 1 + skipped][3] == 0xFFFF_FFFF
            assert program[at + 1 + otherwise][0] in (0x15, 0x06)
    assert program[-1] == (0x06, 0, 0, 0), "all others are refused"
