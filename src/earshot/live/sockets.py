"""Sockets: each host has one socket with a port of its own to send and to receive unicasts, and sockets that
receive multicast groups.

Several hosts can share a machine: all of them bind the groups' port. Linux lets a socket join at most twenty
groups, so a host opens as many sockets as it needs.
"""

from __future__ import annotations

import ctypes
import fcntl
import ipaddress
import secrets
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress

from earshot.errors import NetworkUnavailable
from earshot.live.trust import Address

RECEIVE_BUFFER_BYTES = 4 << 20
SEND_BUFFER_BYTES = 4 << 20
GROUPS_A_SOCKET = 20
_IP_MULTICAST_ALL = getattr(socket, "IP_MULTICAST_ALL", 49)
_SIOCGIFMTU = 0x8921
_SIOCGIFADDR = 0x8915


def group_address(group: int) -> str:
    """The multicast address of a 24-bit group id, in 239.0.0.0/8."""
    return f"239.{group >> 16}.{group >> 8 & 255}.{group & 255}"


def parse_address(text: str, what: str, default_host: str | None = None) -> Address:
    """Read HOST:PORT (or PORT alone, if there is a default host) into an IPv4 address and a port."""
    host, colon, port = text.rpartition(":")
    if not colon:
        host = ""
    try:
        number = int(port)
    except ValueError:
        number = -1
    host = host or (default_host or "")
    if not host or not 0 <= number <= 65535:
        raise NetworkUnavailable(f"{what} {text!r}: write HOST:PORT, as in 192.168.1.7:47474")
    try:
        found = socket.getaddrinfo(host, number, socket.AF_INET, socket.SOCK_DGRAM)
    except OSError as error:
        raise NetworkUnavailable(f"{what} {text!r}: no address for {host!r} ({error})") from None
    address = found[0][4]
    return str(address[0]), int(address[1])


def address_towards(peer: Address) -> str:
    """The IPv4 address of this machine that the peer sees; 0.0.0.0 if there is no way to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(peer)  # sends nothing
        return str(probe.getsockname()[0])
    return "0.0.0.0"


def mtu_of(interface: str) -> int:
    """The largest IP packet that the interface carries without fragments."""
    return int(struct.unpack("16si12x", _ioctl(interface, _SIOCGIFMTU))[1])


def address_of(interface: str) -> str:
    """The interface's IPv4 address."""
    return socket.inet_ntoa(_ioctl(interface, _SIOCGIFADDR)[20:24])


def _ioctl(interface: str, request: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            return fcntl.ioctl(probe, request, struct.pack("16s16x", interface.encode()[:15]))
        except OSError as error:
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise NetworkUnavailable(
                f"the interface {interface!r} has no IPv4 address ({error.strerror}); there are: {names}"
            ) from None


def open_own(host: str, port: int, interface: str = "") -> socket.socket:
    """The host's own socket. What it sends to a group travels one hop, and also reaches other hosts on this machine."""
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        own.setblocking(False)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        if interface:
            own.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _membership("0.0.0.0", interface))
        own.bind((host, port))
    except OSError as error:
        own.close()
        raise NetworkUnavailable(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return own


def _membership(group: str, interface: str) -> bytes:
    """Linux's ip_mreqn: a group, any address, and the number of an interface."""
    number = socket.if_nametoindex(interface) if interface else 0
    return struct.pack("=4s4si", socket.inet_aton(group), b"\0\0\0\0", number)


_SO_ATTACH_FILTER, _SO_DETACH_FILTER, _SO_MEMINFO = 26, 27, 55
_LOAD_HALF, _LOAD_WORD, _MULTIPLY, _TO_INDEX, _ADD_INDEX = 0x28, 0x20, 0x24, 0x07, 0x0C
_JUMP_IF_EQUAL, _RETURN = 0x15, 0x06
_SOURCE_PORT = 0
_IP_SOURCE = 0xFFF0_0000 + 12
"In a packet filter: the offset of the source address in the IP header."
_WORD = 0xFFFF_FFFF
_LONGEST_JUMP = 250
_MOST_STEPS = 4096

Step = tuple[int, int, int, int]
"Of a packet filter: what to do, how many steps to skip if it holds and if not, and an operand."


def _attach(receiver: socket.socket, program: list[Step]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    filter = struct.pack("@HP", len(program), ctypes.addressof(code))
    receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter)


def ignore_sender(receiver: socket.socket, address: Address) -> None:
    """Let the kernel discard multicast datagrams that this host sent itself, so that they do not wake it.
    If the kernel refuses the filter, the transport discards them."""
    host, port = address
    program = [
        (_LOAD_HALF, 0, 0, _SOURCE_PORT),
        (_JUMP_IF_EQUAL, 0, 3, port),
        (_LOAD_WORD, 0, 0, _IP_SOURCE),
        (_JUMP_IF_EQUAL, 0, 1, int(ipaddress.IPv4Address(host))),
        (_RETURN, 0, 0, 0),
        (_RETURN, 0, 0, _WORD),
    ]
    with suppress(OSError):
        _attach(receiver, program)


class Gate:
    """Lets the kernel discard the datagrams of all but some senders, for a while: they neither wake the host nor wait
    in its sockets before the datagrams of others. `own`: the host's address.

    The kernel compares a number of 32 bits made from a sender's address. Another sender may have the same number; its
    datagrams then reach the host, which refuses them as it does while the gate is open. (A step for each sender instead
    of four lets a filter hold 4,000 senders.)
    """

    def __init__(self, own: Address) -> None:
        self._own = own
        self._factor = secrets.randbits(32) | 1
        self._discarded_before: dict[socket.socket, int] = {}
        "The sockets behind the gate while it is shut, and how many of their datagrams the kernel had discarded then."
        self.is_usable = True
        "Whether the kernel has not refused the filter."

    @property
    def is_shut(self) -> bool:
        return bool(self._discarded_before)

    def shut(self, receivers: Sequence[socket.socket], admitted: Sequence[Address]) -> None:
        """Only the datagrams of these senders reach the sockets from now on. If the kernel refuses the filter, the gate
        stays open."""
        if not self.is_usable:
            return
        program = self._program(admitted)
        try:
            for receiver in receivers:
                _attach(receiver, program)
                self._discarded_before.setdefault(receiver, discarded(receiver))
        except OSError:
            self.open()
            self.is_usable = False

    def open(self) -> int:
        """Let all senders through again; returns how many datagrams were discarded, the host's own included."""
        count = 0
        for receiver, before in self._discarded_before.items():
            with suppress(OSError):
                count += discarded(receiver) - before & _WORD
                receiver.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
                if self._own[0] != "0.0.0.0":
                    ignore_sender(receiver, self._own)
        self._discarded_before.clear()
        return count

    def _program(self, admitted: Sequence[Address]) -> list[Step]:
        numbers = [
            int(ipaddress.IPv4Address(host)) * self._factor + port & _WORD
            for host, port in admitted[-(_MOST_STEPS - 100) :]
        ]
        program = [
            (_LOAD_WORD, 0, 0, _IP_SOURCE),
            (_MULTIPLY, 0, 0, self._factor),
            (_TO_INDEX, 0, 0, 0),
            (_LOAD_HALF, 0, 0, _SOURCE_PORT),
            (_ADD_INDEX, 0, 0, 0),
        ]
        for first in range(0, len(numbers), _LONGEST_JUMP):
            some = numbers[first : first + _LONGEST_JUMP]
            after = len(some) - 1
            program += [(_JUMP_IF_EQUAL, after - at, at == after, number) for at, number in enumerate(some)]
            program.append((_RETURN, 0, 0, _WORD))
        return [*program, (_RETURN, 0, 0, 0)]


def discarded(receiver: socket.socket) -> int:
    """How many datagrams for this socket the kernel has discarded: 32 bits of the number."""
    return int.from_bytes(receiver.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 36)[32:36], sys.byteorder)


class MulticastSockets:
    """The sockets that receive multicast groups on one port, without the datagrams that `own` sent."""

    def __init__(self, port: int, interface: str, own: Address) -> None:
        self.port = port
        self.interface = interface
        self.own = own
        self._sockets: dict[socket.socket, set[str]] = {}

    def join(self, group: str) -> socket.socket | None:
        """Receive this group; returns the socket if a new one was opened."""
        if any(group in groups for groups in self._sockets.values()):
            return None
        opened = None
        receiver = next((receiver for receiver, groups in self._sockets.items() if len(groups) < GROUPS_A_SOCKET), None)
        if receiver is None:
            receiver = opened = self._open()
        try:
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, _membership(group, self.interface))
        except OSError as error:
            if opened is not None:
                opened.close()
                del self._sockets[opened]
            where = f"on {self.interface!r}" if self.interface else "on the default interface"
            raise NetworkUnavailable(
                f"cannot join the multicast group {group} {where} ({error.strerror}); name an interface that "
                "carries multicast (lo for this machine alone), or name peers instead"
            ) from None
        self._sockets[receiver].add(group)
        return opened

    def leave(self, group: str) -> None:
        """Stop receiving this group."""
        for receiver, groups in self._sockets.items():
            if group in groups:
                groups.discard(group)
                receiver.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, _membership(group, self.interface))

    def close(self) -> None:
        for receiver in self._sockets:
            receiver.close()

    @property
    def sockets(self) -> list[socket.socket]:
        return list(self._sockets)

    def _open(self) -> socket.socket:
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            receiver.setblocking(False)
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            # Otherwise it also receives the groups that other programs on this machine have joined.
            receiver.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            receiver.bind(("", self.port))
        except OSError as error:
            receiver.close()
            raise NetworkUnavailable(f"cannot listen on port {self.port}: {error.strerror}") from None
        if self.own[0] != "0.0.0.0":
            ignore_sender(receiver, self.own)
        self._sockets[receiver] = set()
        return receiver
