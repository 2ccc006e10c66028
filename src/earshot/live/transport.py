"""The transport: packets of one host to datagrams and back.

A broadcast goes to a multicast group, or to each peer; a send goes to one peer, which acknowledges
it. The first packet in a turn of the event loop is sent at once, the others in that turn share datagrams.
A socket is read until it is empty, not once in each turn. Datagrams of proven peers are received at once, those of
newcomers in turns between them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from earshot.errors import MalformedPacket
from earshot.events import Event
from earshot.geometry import Position
from earshot.live import datagrams, sockets
from earshot.live.datagrams import (
    MAX_ACKS,
    MAX_DATAGRAM_BYTES,
    MAX_PACKETS,
    Challenge,
    Echo,
    Fragment,
    Frame,
    Goodbye,
    Reassembly,
    Short,
    split,
)
from earshot.live.identity import Identity
from earshot.live.network import NetworkSettings
from earshot.live.newcomers import PROOF_S, NewcomerQueue, UnprovenDatagrams
from earshot.live.peers import Peer, PeerLimits, Peers, RateLimits, digest_of
from earshot.live.send_backlog import SendBacklog
from earshot.live.signatures import SignedNames, Verifier
from earshot.live.sockets import Gate, MulticastSockets, group_address
from earshot.live.trust import Address, Refused, Seal
from earshot.quality import MOST_PRIORITY
from earshot.records import DropReason
from earshot.records.details import JoinedNetwork
from earshot.wire import Packet, encode

logger = logging.getLogger("earshot.live")

PACKETS_A_TURN = 1024
"At most this many packets are received before other tasks run, so that subscribers can read their queues."
TURN_S = 0.002
"And packets are received for at most this long."
NEWCOMERS_TURN_S = 0.0005
"Newcomers' packets are received for at most this long before those of proven peers that have come meanwhile."
PENDING_LIMIT = 4096
IP_AND_UDP_BYTES = 28
LARGEST_SHARED_BYTES = 32_768
"Packets share a datagram up to this size, even if the interface carries more."
GREET_S = 0.02
"After a new peer was heard, the host waits this long for other new peers before it sends a hello."
SETTLE_S = 0.1
"How often the known host of a contested name is challenged."
CLOCK_WARNING_S = 2.0
"A peer whose clock differs by more than this is reported."
LARGEST_CLOCK_ERROR_S = 1e12
"A warning says at most this much, so that its number can be read."
MOST_SHARED = 4.0
"Work for newcomers counts as long as it took, but at most as this many times its processor time."
FINISHED_BYTES = 1000
"The most that it takes to remember a packet whose fragments have all come: its sender's name and two numbers."
FRAME_BYTES = 96
"The most bytes that a frame takes without its names, acknowledgements and packets."
LEAST_ROOM_BYTES = 64
"Room for packets in every datagram, whatever the names in it take."

Destination = str | int | None
"A peer's name, a group, or None for all."
EXPEDITED = 46 << 2
"The type of service of datagrams with priority (RFC 8325: Wi-Fi's access category for voice)."


class Listener(Protocol):
    """What the transport reports to its host."""

    def heard(self, datas: Sequence[bytes], frame: Frame, now: float) -> None: ...

    def sent(self, packets: Sequence[Packet], datas: Sequence[bytes], peer: str, frame: Frame) -> None: ...

    def unreachable(self, packet: Packet, peer: str) -> None: ...

    def dropped(self, reason: DropReason, peer: str = "", count: int = 1) -> None: ...

    def header_position(self, now: float) -> Position | None: ...


@dataclass(slots=True)
class _Batch:
    packets: list[Packet] = field(default_factory=list)
    datas: list[bytes] = field(default_factory=list)
    bytes: int = 0


@dataclass(slots=True)
class _Pending:
    datagram: bytes
    address: Address
    peer: str
    packets: list[Packet]
    due: float
    priority: int
    attempts: int = 1
    held: bool = False
    "Whether it waits until the peer has proved itself."


def _urgency(key: tuple[Destination, int]) -> int:
    return -key[1]


class Transport:
    """One host's sockets, and everything between them and its packets."""

    def __init__(
        self,
        name: str,
        life: int,
        plane: str,
        network: NetworkSettings,
        listener: Listener,
        clock: Callable[[], float],
        identity: Identity | None = None,
        verifier: Verifier | None = None,
        two_way: bool = False,
    ) -> None:
        """`two_way`: receive packets only from peers that have answered a challenge."""
        self.name = name
        self.network = network
        self.peers = Peers(network.peer_expiry_s, self._challenge, PeerLimits.within(network.memory_bytes))
        self.reassembly = Reassembly(
            listener.dropped,
            total_bytes=network.memory_bytes * 7 // 64,
            finished_limit=min(MAX_PACKETS, network.memory_bytes // 64 // FINISHED_BYTES),
        )
        self._pending_limit_bytes = network.memory_bytes // 8
        "The most bytes of packets that wait for their acknowledgement."
        self._pending_bytes = 0
        self.address: Address = ("", 0)
        self.joined: set[int] = set()
        self._life = life
        self._plane = plane
        self._listener = listener
        self._clock = clock
        self._ticks = time.monotonic
        "The clock for intervals: a wall clock may be set back, and uvloop reads its clock only once a turn."
        self._processor_time = time.thread_time
        "On a busy machine work takes longer; but a long time in which other programs ran is not a newcomer's work."
        self._digest = digest_of(name, life)
        self._opened_at = clock()
        self._seal = Seal(network.keys)
        self._identity = identity
        self._names = None if verifier is None else SignedNames(verifier, network.peer_expiry_s, network.clock_skew_s)
        self._limits = RateLimits(network.rate_limit)
        self._newcomers = NewcomerQueue(self._limits.newcomers_burst, network.memory_bytes // 128)
        self._newcomers_due = False
        "Whether the newcomers' next turn is planned."
        self._unproven = UnprovenDatagrams(network.memory_bytes // 128)
        self._gate = Gate(self.address)
        self._echoes = 0
        "How many of its own broadcasts this host would have received while the gate was shut."
        self._two_way = two_way
        self._sequence = 0
        self._batches: dict[tuple[Destination, int], _Batch] = {}
        "By destination and priority."
        self._acks: dict[str, list[int]] = {}
        self._pending: dict[int, _Pending] = {}
        self._backlog = SendBacklog(network.memory_bytes // 16)
        self._turn_open = False
        self._buffer = bytearray(MAX_DATAGRAM_BYTES + 1)
        self._view = memoryview(self._buffer)
        self._multicast: MulticastSockets | None = None
        self._warned: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self._own: socket.socket | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}

    # Opening and closing.

    def open(self) -> None:
        """Bind the sockets and send a hello."""
        network = self.network
        self._base = sockets.parse_address(network.group, "group")
        self._configured = [sockets.parse_address(peer, "peer") for peer in network.peers]
        interface = network.interface
        if network.listen:
            host, port = sockets.parse_address(network.listen, "listen", "0.0.0.0")
        else:
            host, port = sockets.address_of(interface) if interface else "0.0.0.0", 0
        self._own = sockets.open_own(host, port, interface)
        self.address = self._own.getsockname()
        self._gate = Gate(self.address)
        try:
            if network.multicast:
                self._multicast = MulticastSockets(self._base[1], interface, self.address)
                self._listen(self._multicast.join(self._base[0]))
        except BaseException:
            self.close()
            raise
        self._listen(self._own)
        self.largest_bytes = network.datagram_bytes or self._largest_unfragmented()
        names = len(self.name.encode()) + len(self._plane.encode())
        self._beside_packets = FRAME_BYTES + names + self._seal.overhead_bytes
        self._hello()

    def _largest_unfragmented(self) -> int:
        """The largest datagram that is not fragmented: large on a loopback, otherwise what Ethernet carries."""
        if self.network.interface:
            return min(sockets.mtu_of(self.network.interface) - IP_AND_UDP_BYTES, MAX_DATAGRAM_BYTES)
        local = self._configured and all(host.startswith("127.") for host, _ in self._configured)
        return MAX_DATAGRAM_BYTES if local or self.address[0].startswith("127.") else 1500 - IP_AND_UDP_BYTES

    def say_goodbye(self) -> None:
        """Send the waiting packets, and a goodbye to all peers."""
        if self._own is not None and self._own.fileno() >= 0:
            self._end_turn()
            datagram = self._seal.close(datagrams.encode(Goodbye(self._digest)))
            for address in self._addresses(None):
                self._transmit(datagram, address)

    def close(self) -> None:
        """Send the waiting packets and close the sockets."""
        if self._own is None or self._own.fileno() < 0:
            return
        self._end_turn()
        for timer in self._timers.values():
            timer.cancel()
        self._newcomers.clear()
        self._open_gate()
        for opened in self._receivers():
            self._loop.remove_reader(opened)
            self._loop.remove_writer(opened)
            opened.close()
        self._pending.clear()

    def _listen(self, opened: socket.socket | None) -> None:
        if opened is not None:
            self._loop.add_reader(opened, self._drain, opened)
            if self._gate.is_shut:
                self._shut_gate()

    def _receivers(self) -> list[socket.socket]:
        opened = [] if self._own is None else [self._own]
        return opened if self._multicast is None else [*opened, *self._multicast.sockets]

    def joined_network(self) -> JoinedNetwork:
        """The network that the sockets are open for, as records state it."""
        keys = self._seal.key_ids
        if self._multicast is not None:
            return JoinedNetwork(f"{self._base[0]}:{self._base[1]}", keys=keys)
        host, port = self.address
        if host == "0.0.0.0" and self._configured:
            host = sockets.address_towards(self._configured[0])
        return JoinedNetwork(
            addresses=[f"{host}:{port}", *(f"{peer_host}:{at}" for peer_host, at in self._configured)], keys=keys
        )

    def use_keys(self, keys: Sequence[bytes]) -> None:
        """Seal and open datagrams with these keys from now on."""
        self._seal = Seal(keys)

    def join(self, group: int) -> None:
        """Receive broadcasts to this group from now on."""
        if group not in self.joined:
            self.joined.add(group)
            if self._multicast is not None and group_address(group) != self._base[0]:
                self._listen(self._multicast.join(group_address(group)))

    def leave(self, group: int) -> None:
        """Stop receiving them."""
        if group in self.joined:
            self.joined.discard(group)
            if self._multicast is not None and group_address(group) != self._base[0]:
                self._multicast.leave(group_address(group))

    # Sending.

    def broadcast(self, packet: Packet, group: int | None) -> None:
        """Send to all peers, or to the members of a group."""
        self._queue(group, packet)

    def send(self, peer: str, packet: Packet) -> None:
        """Send to one peer; the listener's `unreachable` is called if it is unknown or does not acknowledge."""
        full = len(self._pending) >= PENDING_LIMIT or self._pending_bytes >= self._pending_limit_bytes
        if full or self.peers.get(peer, self._ticks()) is None:
            self._loop.call_soon(self._listener.unreachable, packet, peer)
        else:
            self._queue(peer, packet)

    def _queue(self, destination: Destination, packet: Packet) -> None:
        data, event = encode(packet), getattr(packet, "event", None)
        priority = event.priority if type(event) is Event else 0
        if priority:
            priority = max(-MOST_PRIORITY, min(priority, MOST_PRIORITY))
        room = self._room(destination)
        if len(data) > room:
            if (destination, priority) in self._batches:
                self._flush((destination, priority))
            self._send_fragments(destination, packet, split(data, room), data, priority)
            return
        if not self._turn_open:
            self._send_together(destination, [packet], [data], priority)
            self._open_turn()
            return
        key = (destination, priority)
        batch = self._batches.get(key)
        if batch is not None and (batch.bytes + len(data) + 5 > room or len(batch.datas) >= MAX_PACKETS - 1):
            self._flush(key)
            batch = None
        if batch is None:
            batch = self._batches[key] = _Batch()
        batch.packets.append(packet)
        batch.datas.append(data)
        batch.bytes += len(data) + 5

    def _room(self, destination: Destination) -> int:
        """How many bytes of packets a datagram to that destination takes."""
        shared = min(self.largest_bytes, LARGEST_SHARED_BYTES) - self._beside_packets
        return max(shared - (len(destination.encode()) if isinstance(destination, str) else 0), LEAST_ROOM_BYTES)

    def _open_turn(self) -> None:
        """Packets that are sent until the end of this turn of the loop share datagrams."""
        self._turn_open = True
        self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """Send what was queued. If packets have shared a datagram, those of the next turn do so from the first one on:
        a program that publishes without pause sends no packet alone."""
        self._turn_open = False
        if self._batches:
            self._open_turn()
        for key in sorted(self._batches, key=_urgency) if len(self._batches) > 1 else list(self._batches):
            self._flush(key)
        for peer in list(self._acks):
            self._acknowledge(peer)

    def _flush(self, key: tuple[Destination, int]) -> None:
        batch = self._batches.pop(key)
        self._send_together(key[0], batch.packets, batch.datas, key[1])

    def _send_together(
        self, destination: Destination, packets: list[Packet], datas: list[bytes], priority: int
    ) -> None:
        """Send these packets in one datagram."""
        frame = self._frame(destination, datas)
        self._post(destination, frame, packets.copy() if isinstance(destination, str) else packets, priority)
        to = destination if isinstance(destination, str) else ""
        self._listener.sent(packets, datas, to, frame)

    def _send_fragments(
        self, destination: Destination, packet: Packet, pieces: list[bytes], data: bytes, priority: int
    ) -> None:
        number = self._sequence + 1
        to = destination if isinstance(destination, str) else ""
        waiting = [packet]
        for index, piece in enumerate(pieces):
            frame = self._frame(destination, [], Fragment(number, index, len(pieces), piece))
            if index == 0:
                self._listener.sent([packet], [data], to, frame)
            self._post(destination, frame, waiting, priority)

    def _frame(self, destination: Destination, datas: list[bytes], fragment: Fragment | None = None) -> Frame:
        self._sequence += 1
        now = self._clock()
        to = destination if isinstance(destination, str) else ""
        group = destination if isinstance(destination, int) else None
        at = self._listener.header_position(now)
        acks: list[int] = []
        if to in self._acks:
            packets_bytes = sum(len(data) + 5 for data in datas) + (len(fragment.piece) if fragment is not None else 0)
            acks = self._take_acks(to, packets_bytes)
        return Frame(self.name, self._life, self._sequence, now, self._plane, at, group, to, acks, datas, fragment)

    def _take_acks(self, to: str, packets_bytes: int) -> list[int]:
        """The acknowledgements that a datagram to that peer takes beside its packets. Others wait for the next one;
        one without packets takes at least one."""
        waiting = self._acks.pop(to)
        free_bytes = self.largest_bytes - self._beside_packets - len(to.encode()) - packets_bytes
        fitting = free_bytes // len(msgspec.msgpack.encode(max(waiting)))
        fitting = min(max(fitting, 0 if packets_bytes else 1), MAX_ACKS)
        if len(waiting) > fitting:
            self._acks[to] = waiting[fitting:]
        return waiting[:fitting]

    def _post(self, destination: Destination, frame: Frame, packets: list[Packet], priority: int = 0) -> None:
        datagram = self._seal.close(datagrams.encode(frame))
        if not isinstance(destination, str):
            for address in self._addresses(destination):
                self._transmit(datagram, address, priority)
            if self._multicast is not None and (destination is None or destination in self.joined):
                self._echoes += 1
            return
        peer = self.peers.get(destination, self._ticks())
        if peer is None:
            for packet in packets:
                self._loop.call_soon(self._listener.unreachable, packet, destination)
            packets.clear()
            return
        due = self._ticks() + self.network.acknowledge_s
        held = not self._transmit_to(peer, datagram, priority)
        self._pending[frame.sequence] = _Pending(datagram, peer.address, destination, packets, due, priority, held=held)
        self._pending_bytes += len(datagram)
        self._start_timer("retransmit", self.network.acknowledge_s, self._retransmit)

    def _addresses(self, group: int | None) -> list[Address]:
        if self._multicast is not None:
            return [(group_address(group), self._base[1]) if group is not None else self._base]
        known = dict.fromkeys(self._configured)
        known.update(dict.fromkeys(peer.address for peer in self.peers.proven(self._ticks())))
        return list(known)

    def _transmit_to(self, peer: Peer, datagram: bytes, priority: int = 0) -> bool:
        """Send to one peer, unless it is a newcomer that would get more bytes than it sent."""
        if not peer.proven:
            if len(datagram) > peer.credit_bytes:
                return False
            peer.credit_bytes -= len(datagram)
        self._transmit(datagram, peer.address, priority)
        return True

    def _challenge(self, peer: Peer, challenge: Challenge) -> None:
        datagram = self._seal.close(datagrams.encode(challenge))
        peer.credit_bytes -= len(datagram)
        self._transmit(datagram, peer.address)

    def _transmit(self, datagram: bytes, address: Address, priority: int = 0) -> None:
        if not self._backlog and self._own is not None:
            try:
                self._send_now(datagram, address, priority)
                return
            except BlockingIOError:
                self._loop.add_writer(self._own, self._send_backlog)
            except OSError as error:
                self._listener.dropped(DropReason.SEND_FAILED)
                self._warn_once(f"send {error.errno}", f"cannot send to {address[0]}:{address[1]}: {error.strerror}")
                return
        for _ in range(self._backlog.put(datagram, address, priority)):
            self._listener.dropped(DropReason.SEND_BUFFER_FULL)

    def _send_now(self, datagram: bytes, address: Address, priority: int) -> None:
        assert self._own is not None
        if priority > 0:
            self._own.sendmsg([datagram], [(socket.IPPROTO_IP, socket.IP_TOS, bytes([EXPEDITED]))], 0, address)
        else:
            self._own.sendto(datagram, address)

    def _send_backlog(self) -> None:
        """Send what waits for the socket: the highest priority first, and the oldest first."""
        assert self._own is not None
        while self._backlog:
            try:
                self._send_now(*self._backlog.first())
            except BlockingIOError:
                return
            except OSError:
                self._listener.dropped(DropReason.SEND_FAILED)
            self._backlog.remove_first()
        self._loop.remove_writer(self._own)

    @property
    def backlog_bytes(self) -> int:
        """How many bytes wait for the socket."""
        return self._backlog.bytes

    @property
    def congested(self) -> bool:
        """Whether datagrams wait for the socket."""
        return bool(self._backlog)

    def _acknowledge(self, to: str) -> None:
        """Send the acknowledgements alone: no packet to that peer in this turn could carry them."""
        peer = self.peers.get(to, self._ticks())
        if peer is None:
            del self._acks[to]
            return
        while to in self._acks:
            bare = msgspec.structs.replace(self._frame(to, []), to="")
            self._transmit_to(peer, self._seal.close(datagrams.encode(bare)))

    def _retransmit(self) -> None:
        """Send unacknowledged packets again; give up after the last attempt."""
        now = self._ticks()
        for sequence, pending in list(self._pending.items()):
            if pending.due > now:
                continue
            peer = self.peers.get(pending.peer, now)
            if peer is None or peer.address != pending.address or pending.attempts >= self.network.attempts:
                self._forget(sequence)
                # The fragments of one packet share this list, so that the packet is given up only once.
                lost = pending.packets.copy()
                pending.packets.clear()
                for packet in lost:
                    self._listener.unreachable(packet, pending.peer)
                continue
            pending.attempts += 1
            pending.due = now + self.network.acknowledge_s * pending.attempts
            pending.held = not self._transmit_to(peer, pending.datagram, pending.priority)
        if self._pending:
            self._start_timer("retransmit", self.network.acknowledge_s / 2, self._retransmit)

    def _forget(self, sequence: int) -> None:
        self._pending_bytes -= len(self._pending.pop(sequence).datagram)

    def _hello(self) -> None:
        """Every interval: greet, and drop the packets whose fragments did not come."""
        self._greet()
        self.reassembly.expire(self._ticks())
        self._start_timer("hello", self.network.hello_interval_s, self._hello)

    def _greet(self) -> None:
        """Send an empty frame to all: the host's name and position, signed if it has an identity."""
        hello = self._frame(None, [])
        self._post(None, hello if self._identity is None else self._identity.sign_hello(hello), [])

    def _start_timer(self, name: str, delay_s: float, call: Callable[[], None]) -> None:
        running = self._timers.get(name)
        if running is None or running.cancelled() or running.when() <= self._loop.time():
            self._timers[name] = self._loop.call_later(delay_s, call)

    # Receiving.

    def _drain(self, receiver: socket.socket) -> None:
        """Receive all that the socket holds, up to the limits of one turn."""
        left = PACKETS_A_TURN
        ticks = self._ticks()
        end = ticks + TURN_S
        while left > 0 and ticks < end:
            try:
                size, address = receiver.recvfrom_into(self._buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._listener.dropped(DropReason.RECEIVE_FAILED)
                self._warn_once(f"receive {error.errno}", f"cannot receive: {error.strerror}")
                return
            left -= 1
            try:
                if self.peers.at(address) is not None:
                    left -= self._receive(self._view[:size], address, ticks)
                elif address != self.address:
                    self._await_turn(self._view[:size], address, ticks)
            except Refused as refused:
                self._listener.dropped(refused.reason)
            except MalformedPacket:
                self._listener.dropped(DropReason.MALFORMED)
            ticks = self._ticks()

    def _await_turn(self, datagram: memoryview, address: Address, ticks: float) -> None:
        """A newcomer's datagram waits until it is the newcomers' turn. It is refused if there is no room for it and the
        newcomers have used up their allowance; then the kernel refuses the next ones."""
        while not self._newcomers.put(datagram, address):
            if self._limits.newcomers_wait_s(ticks) > 0.0:
                self._listener.dropped(DropReason.RATE_LIMIT)
                if self._gate.is_usable and not self._gate.is_shut:
                    self._shut_gate()
                return  # What waits has its turn planned.
            self._receive_waiting(*self._newcomers.take(), ticks)
            ticks = self._ticks()
        if not self._newcomers_due:
            self._newcomers_due = True
            self._loop.call_soon(self._newcomers_turn)

    def _receive_waiting(self, waited: bytes, address: Address, ticks: float) -> None:
        """Receive a datagram that has waited; count it if it is refused."""
        try:
            self._receive(memoryview(waited), address, ticks)
        except Refused as refused:
            self._listener.dropped(refused.reason)
        except MalformedPacket:
            self._listener.dropped(DropReason.MALFORMED)

    def _newcomers_turn(self) -> None:
        """Receive newcomers' datagrams for a short time and as far as their allowance goes; plan their next turn."""
        ticks = self._ticks()
        end, wait_s = ticks + NEWCOMERS_TURN_S, 0.0
        while len(self._newcomers) and ticks < end:
            wait_s = self._limits.newcomers_wait_s(ticks)
            if wait_s > 0.0:
                break
            self._receive_waiting(*self._newcomers.take(), ticks)
            ticks = self._ticks()
        if self._gate.is_shut and self._newcomers.is_half_empty:
            self._open_gate()
        self._newcomers_due = len(self._newcomers) > 0
        if wait_s > 0.0:
            self._timers["newcomers"] = self._loop.call_later(wait_s, self._newcomers_turn)
        elif self._newcomers_due:
            self._loop.call_soon(self._newcomers_turn)

    def _shut_gate(self) -> None:
        """Let only the datagrams of proven peers through."""
        if not self._gate.is_shut:
            self._echoes = 0
        self._gate.shut(self._receivers(), [peer.address for peer in self.peers.proven(self._ticks())])

    def _open_gate(self) -> None:
        """Let all datagrams through, and count those that the kernel has refused meanwhile."""
        refused = self._gate.open() - self._echoes
        if refused > 0:
            self._listener.dropped(DropReason.RATE_LIMIT, count=refused)

    def _receive(self, datagram: memoryview, address: Address, ticks: float) -> int:
        """Receive a datagram; returns the number of its packets."""
        known = self.peers.at(address)
        if not self._limits.allows(self._limits.of(known), ticks):
            raise Refused(DropReason.RATE_LIMIT)
        if known is not None:
            return self._read(datagram, address, known, ticks)
        began = self._processor_time()
        try:
            return self._read(datagram, address, None, ticks)
        finally:
            # To refuse a frame and to challenge its sender is work too.
            worked_s = self._processor_time() - began
            self._limits.charge_newcomers(min(self._ticks() - ticks, MOST_SHARED * worked_s))

    def _read(self, datagram: memoryview, address: Address, known: Peer | None, ticks: float) -> int:
        """Read a datagram that the limits allow; returns the number of its packets. `known`: the proven peer there."""
        frame = datagrams.decode(self._seal.open(datagram))
        if not isinstance(frame, Frame):
            self._receive_short(frame, address, ticks)
            return 0
        now = self._clock()
        self._check(frame, now)
        names = self._names
        if names is not None and names.admits(frame, address, now, ticks, known):
            self.peers.release(frame.sender, lambda peer: names.has_signed(peer.name, peer.address, peer.life, ticks))
        if known is not None and known.name == frame.sender and known.life == frame.life:
            peer = known
        else:
            peer = self.peers.find(frame, address, frame.time - now, ticks)
        if self._seal.keyed and self._is_stale(frame, peer, now):
            self.peers.ask(peer, frame.time - now, ticks)
            raise Refused(DropReason.STALE_DATAGRAM)
        if self._two_way and not peer.proven and (frame.packets or frame.fragment is not None):
            self._await_proof(datagram, address, ticks)
            return 0  # Not acknowledged: an honest peer sends it again.
        if frame.to:
            self._acks.setdefault(frame.sender, []).append(frame.sequence)
            if not self._turn_open:
                self._open_turn()
        if not peer.window.fresh(frame.sequence):
            if not self._seal.keyed and peer.window.is_behind(frame.sequence):
                peer.suspects_window = True
                self.peers.ask(peer, frame.time - now, ticks)
            raise Refused(DropReason.DUPLICATE_DATAGRAM)
        self.peers.heard(peer, frame.position, ticks)
        if not peer.proven:
            peer.credit_bytes += len(datagram)
        for sequence in frame.acks:
            pending = self._pending.get(sequence)
            if pending is not None and pending.peer == frame.sender:
                self._forget(sequence)
        if frame.group is not None and frame.group not in self.joined:
            return 0
        if frame.fragment is not None:
            whole = self.reassembly.add(frame.sender, frame.life, frame.fragment, ticks)
            if whole is not None:
                self._listener.heard((whole,), frame, now)
        if frame.packets:
            self._listener.heard(frame.packets, frame, now)
        if frame.fragment is not None or frame.packets:
            self._limits.charge(self._limits.of(known), 0.0 if known is None else self._ticks() - ticks, ticks)
        return len(frame.packets)

    def _await_proof(self, datagram: memoryview, address: Address, ticks: float) -> None:
        """Put a datagram aside until its sender has answered the challenge."""
        self._give_up(self._unproven.put(datagram, address, ticks))
        self._start_timer("unproven", PROOF_S, self._expire_unproven)

    def _expire_unproven(self) -> None:
        self._give_up(self._unproven.expire(self._ticks()))
        if self._unproven:
            self._start_timer("unproven", PROOF_S, self._expire_unproven)

    def _give_up(self, unproven: int) -> None:
        if unproven:
            self._listener.dropped(DropReason.NOT_PROVEN, count=unproven)

    def _receive_short(self, short: Short, address: Address, ticks: float) -> None:
        """Answer a challenge for this host; accept an echo as proof; forget a host that stops."""
        match short:
            case Challenge(cookie, digest):
                if digest == self._digest:
                    self._transmit(self._seal.close(datagrams.encode(Echo(cookie, digest))), address)
            case Echo(cookie):
                proven = self.peers.echo(cookie, address, ticks)
                if proven is not None:
                    self._welcome(proven)
                self._settle()
            case Goodbye(digest):
                self.peers.goodbye(digest, address)

    def _settle(self) -> None:
        """Ask the known hosts of contested names until the contests are over."""
        won, open_contests = self.peers.settle(self._ticks())
        for peer in won:
            self._welcome(peer)
        if open_contests:
            self._start_timer("settle", SETTLE_S, self._settle)

    def _welcome(self, peer: Peer) -> None:
        """A peer has proved itself: hear what it has sent before, greet it, and send what waited for it."""
        if self._gate.is_shut:
            self._shut_gate()
        for waited in self._unproven.take(peer.address):
            self._receive_waiting(waited, peer.address, self._ticks())
        self._start_timer("greet", GREET_S, self._greet)
        for pending in self._pending.values():
            if pending.held and pending.peer == peer.name and pending.address == peer.address:
                pending.held = False
                self._transmit(pending.datagram, pending.address, pending.priority)
        if abs(peer.clock_ahead_s) > CLOCK_WARNING_S:
            self._warn_once(
                f"clock {peer.name}",
                f"the clock of {peer.name!r} is {min(abs(peer.clock_ahead_s), LARGEST_CLOCK_ERROR_S):,.0f} s "
                f"{'ahead of' if peer.clock_ahead_s > 0 else 'behind'} this node's; events count as younger or older "
                "by that much; set the clocks",
            )

    def _is_stale(self, frame: Frame, peer: Peer, now: float) -> bool:
        """Whether the frame may be a replay, judged by its time. A newcomer's frame must be sent after this host has
        started; a proven peer's clock may be wrong, but must not change."""
        ahead_s = frame.time - now - peer.clock_ahead_s
        return abs(ahead_s) > self.network.clock_skew_s or (not peer.proven and frame.time < self._opened_at)

    def _check(self, frame: Frame, now: float) -> None:
        """Refuse a frame that is for another host, from another plane or from too far away."""
        if frame.sender == self.name:
            self._warn_once("name", f"another node on this network is also called {self.name!r}; names must differ")
            raise Refused(DropReason.OWN_NAME)
        if frame.to and frame.to != self.name:
            raise Refused(DropReason.NOT_FOR_US)
        if frame.plane != self._plane:
            self._warn_once(
                f"plane {frame.plane}",
                f"{frame.sender!r} measures positions from {frame.plane or 'a plane without an origin'}, this node "
                f"from {self._plane or 'a plane without an origin'}; give all nodes the same origin",
            )
            raise Refused(DropReason.OTHER_PLANE)
        range_m = self.network.emulate_range_m
        if range_m is not None and frame.position is not None:
            here = self._listener.header_position(now)
            if here is not None and here.distance_to(frame.position) > range_m:
                raise Refused(DropReason.OUT_OF_RANGE)

    def _warn_once(self, key: str, message: str) -> None:
        """Log a warning, once for each key."""
        if key not in self._warned and len(self._warned) < 64:
            self._warned.add(key)
            logger.warning("%s: %s", self.name, message)
