"""Route discovery frame by frame, against RFC 3561: a test hands each frame to the nodes that receive it."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import Mock, call

import pytest
from small_networks import Word

from earshot.records import DropReason
from earshot.simulation.event_queue import Queue
from earshot.simulation.media.reactive_routing import ReactiveRouting, Route, RouteError, RouteReply, RouteRequest
from earshot.simulation.media.routing import RoutedHop
from earshot.simulation.media.transmission import PacketCount, Transmission

A, B, C, D, E = range(5)
NETWORK_S = 2 * 0.04 * 35
"NET_TRAVERSAL_TIME of section 10."


class Radio:
    """Keeps what it is given."""

    def __init__(self, airtime_s: float = 0.0) -> None:
        self.sent: list[Any] = []
        self._airtime_s = airtime_s

    def airtime_s(self, packet_bytes: int) -> float:
        return self._airtime_s

    def broadcast(self, frame: Any) -> None:
        self.sent.append(frame)

    unicast = broadcast

    def node_down(self, node: int, graceful: bool) -> None:
        pass


class Desk:
    """Nodes a to e with route discovery over a radio that a test plays."""

    def __init__(self, airtime_s: float = 0.0) -> None:
        self.queue = Queue()
        self.host = Mock(up=[True] * 5, queue=self.queue, presence=0)
        self.host.control_kind.side_effect = lambda tag: PacketCount(tag, carries_event=False, counts_hops=False)
        self.host.orphaned.return_value = self.host.withholds.return_value = False
        self.radio = Radio(airtime_s)
        self.routing = ReactiveRouting("abcde", self.host, Random(1))
        self.routing.over(self.radio)  # type: ignore[arg-type]

    def until(self, time: float) -> list[Any]:
        """What goes on air up to that time, and has not been returned before."""
        self.queue.run(time)
        frames, self.radio.sent = self.radio.sent, []
        return frames

    def hear(self, frame: Transmission, *nodes: int) -> None:
        """These nodes receive the frame now."""
        self.host.relayed.return_value = list(nodes)
        self.routing.received(frame)

    def ask(self, sender: int, peer: int) -> Transmission:
        kind = PacketCount("word of the tests", carries_event=False, counts_hops=False)
        request = Transmission(sender, Word("hi"), kind, 9, "", 0, None, peer, "abcde"[peer])
        self.routing.unicast(request)
        return request

    def request(self, sender: int, **other: Any) -> RouteRequest:
        """A request of a's for e, as `sender` passes it on."""
        self.routing._heard.setdefault(1, {A})
        given = {"origin": A, "origin_sequence": 1000, "search": 1, "destination": E, "sequence": -1, "reach": 5}
        kind = PacketCount("route-request", carries_event=False, counts_hops=False)
        more: dict[str, Any] = {**given, "of_destination": False, "travelled": 0, **other}
        return RouteRequest(sender, Word(""), kind, 24, "", -1, **more)

    def reply(self, sender: int, to: int, **other: Any) -> RouteReply:
        """A reply about e for a."""
        given = {"origin": A, "destination": E, "sequence": 7, "distance": 2, "lifetime_s": 5.0, **other}
        kind = PacketCount("route-reply", carries_event=False, counts_hops=False)
        return RouteReply(sender, Word(""), kind, 20, "", -1, None, to, "abcde"[to], **given)

    def knows(self, node: int, next_hop: int, distance: int, sequence: int, until: float, destination: int = E) -> None:
        self.routing._tables[node][destination] = Route(next_hop, distance, sequence, until)

    def route(self, node: int, destination: int) -> tuple[int, int, int, float, bool]:
        found = self.routing._tables[node][destination]
        return found.next_hop, found.distance, found.sequence, found.expires_at, found.valid


def stated(frame: Any) -> dict[str, Any]:
    """What a frame of the routing says, beside its bytes and its kind."""
    names = {RouteRequest: "sender origin origin_sequence search destination sequence of_destination travelled reach"}
    names[RouteReply] = "sender peer origin destination sequence distance lifetime_s"
    names[RouteError] = "sender peer came_by attempt"
    return {name: getattr(frame, name) for name in names[type(frame)].split()}


# Requests.


def test_a_request_says_who_looks_for_whom_and_goes_one_hop_first() -> None:
    desk = Desk()
    desk.ask(A, E)
    (frame,) = desk.until(0.0)
    assert stated(frame) == {
        "sender": A, "origin": A, "origin_sequence": 1000, "search": 1, "destination": E, "sequence": -1,
        "of_destination": False, "travelled": 0, "reach": 1,
    }  # fmt: skip
    assert (frame.bytes, frame.kind.tag, frame.hops, frame.event, frame.peer, frame.peer_name) == (
        24, "route-request", -1, "", -1, "",
    )  # fmt: skip


def test_a_node_passes_a_request_on_once_with_a_hop_more_and_the_newest_number_it_knows() -> None:
    for known, asked, expected in ((None, 4, 4), (9, 4, 9), (3, 4, 4)):
        desk = Desk()
        if known is not None:
            desk.knows(C, D, 2, known, until=0.0)  # expired: it adds one to the number
            expected = max(known + 1, asked)
        request = desk.request(B, sequence=asked, travelled=1, reach=4)
        desk.hear(request, C)
        desk.hear(desk.request(D, sequence=asked, travelled=2, reach=3), C)
        (passed_on,) = desk.until(0.01)
        assert stated(passed_on) == {**stated(request), "sender": C, "sequence": expected, "travelled": 2, "reach": 3}


def test_a_request_is_passed_on_within_ten_milliseconds_and_not_at_once() -> None:
    desk = Desk()
    desk.hear(desk.request(A), B, C, D)
    assert desk.until(0.0) == []
    assert sorted(frame.sender for frame in desk.until(0.01)) == [B, C, D]


def test_a_request_ends_where_its_ring_ends() -> None:
    desk = Desk()
    desk.hear(desk.request(B, reach=1), C)
    assert desk.until(1.0) == []
    assert desk.route(C, A)[:2] == (B, 1), "it has shown the way back"


def test_a_node_that_is_down_passes_nothing_on() -> None:
    desk = Desk()
    desk.hear(desk.request(B), C)
    desk.host.up[C] = False
    assert desk.until(1.0) == []


def test_a_request_shows_the_way_back_and_to_the_neighbour_it_came_from() -> None:
    """Section 6.5: the lifetime is at least now + 2 NET_TRAVERSAL_TIME - 2 hops NODE_TRAVERSAL_TIME."""
    desk = Desk()
    desk.queue.run(10.0)
    desk.hear(desk.request(B, travelled=2), C)
    assert desk.route(C, A) == (B, 3, 1000, pytest.approx(10.0 + 2 * NETWORK_S - 2 * 3 * 0.04), True)
    assert desk.route(C, B) == (B, 1, -1, 13.0, True)


def test_a_request_is_forgotten_after_twice_the_time_across_the_network() -> None:
    desk = Desk()
    desk.ask(A, E)
    (first,) = desk.until(0.0)
    desk.routing._searches.clear()
    desk.until(2 * NETWORK_S - 0.01)
    assert list(desk.routing._heard) == [1]
    desk.until(2 * NETWORK_S)
    assert desk.routing._heard == {}
    desk.hear(first, B)
    assert desk.until(9.0) == [], "nobody passes on what came so late"


def test_a_node_begins_ten_requests_a_second() -> None:
    desk = Desk()
    for peer in (B, C, D):
        desk.ask(A, peer)
    desk.ask(E, B)
    begun = []
    for step in range(23):
        begun += [(step / 100, frame.sender, frame.destination) for frame in desk.until(step / 100)]
    assert begun == [(0.0, A, B), (0.0, E, B), (0.1, A, C), (0.2, A, D)]


def test_a_search_begins_beyond_where_its_destination_was_last() -> None:
    """Section 6.4: the last known hop count plus TTL_INCREMENT, and everywhere beyond TTL_THRESHOLD."""
    for distance, reach in ((3, 5), (5, 7), (6, 35)):
        desk = Desk()
        desk.knows(A, B, distance, 6, until=0.0)
        desk.ask(A, E)
        (frame,) = desk.until(0.0)
        assert (frame.reach, frame.sequence) == (reach, 7)


def test_on_a_slow_radio_a_ring_waits_for_four_frames_a_node() -> None:
    desk = Desk(airtime_s=0.5)
    desk.ask(A, E)
    assert [frame.reach for frame in desk.until(2 * 2.0 * 3 - 0.01)] == [1]
    assert [frame.reach for frame in desk.until(2 * 2.0 * 3)] == [3]


def test_at_most_64_packets_wait_for_a_search_and_the_oldest_is_dropped() -> None:
    desk = Desk()
    asked = [desk.ask(A, E) for _ in range(66)]
    desk.until(0.0099)
    assert desk.host.unreachable.mock_calls == []
    desk.until(0.0101)
    why = DropReason.TOO_MANY_PACKETS_WAITING
    assert desk.host.unreachable.mock_calls == [call(asked[0], why), call(asked[1], why)]
    desk.hear(desk.reply(B, A), A)
    assert [hop.request for hop in desk.until(0.0101) if isinstance(hop, RoutedHop)] == asked[2:]


# Replies.


def test_the_destination_answers_with_its_own_number_for_twice_as_long_as_a_route_in_use() -> None:
    """Section 6.6.1: its number is at least the one that was asked for; MY_ROUTE_TIMEOUT is 6 s."""
    for asked, own, expected in ((-1, 5, 5), (8, 5, 8), (3, 5, 5)):
        desk = Desk()
        desk.routing._sequences[E] = own
        desk.hear(desk.request(D, sequence=asked, reach=1), E)
        (reply,) = desk.until(0.0)
        assert stated(reply) == {
            "sender": E, "peer": D, "origin": A, "destination": E, "sequence": expected, "distance": 0,
            "lifetime_s": 6.0,
        }  # fmt: skip
        assert (reply.bytes, reply.kind.tag, reply.peer_name) == (20, "route-reply", "d")


def test_a_node_that_knows_a_fresh_route_answers_with_what_is_left_of_it() -> None:
    """Section 6.6.2."""
    for known, asked in ((7, 7), (7, 6), (0, -1)):
        desk = Desk()
        desk.queue.run(2.0)
        desk.knows(C, D, 2, known, until=4.5)
        desk.hear(desk.request(B, sequence=asked, travelled=1), C)
        (reply,) = desk.until(2.01)
        assert stated(reply) == {
            "sender": C, "peer": B, "origin": A, "destination": E, "sequence": known, "distance": 2, "lifetime_s": 2.5,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ((D, 2, 7, 4.5), {"sequence": 8}),
        ((D, 2, 7, 4.5), {"of_destination": True}),
        ((B, 2, 7, 4.5), {}),
        ((D, 2, 7, 2.0), {}),
        ((D, 2, -1, 4.5), {}),
    ],
    ids=["older than what is known", "only the destination may answer", "back to the asker", "expired", "no number"],
)
def test_a_node_whose_route_does_not_serve_passes_the_request_on(
    known: tuple[int, int, int, float], other: dict[str, Any]
) -> None:
    desk = Desk()
    desk.queue.run(2.0)
    desk.knows(C, *known)
    desk.hear(desk.request(B, **other), C)
    (frame,) = desk.until(2.01)
    assert (type(frame), frame.of_destination) == (RouteRequest, other.get("of_destination", False))


def test_a_reply_goes_back_hop_by_hop_with_a_hop_more_and_keeps_the_way_back() -> None:
    desk = Desk()
    desk.queue.run(1.0)
    desk.knows(C, B, 2, 1000, until=1.5, destination=A)
    desk.hear(desk.reply(D, C, lifetime_s=6.0), C)
    assert desk.route(C, E) == (D, 3, 7, 7.0, True)
    assert desk.route(C, A) == (B, 2, 1000, 4.0, True), "a route in use lasts 3 s more"
    (passed_on,) = desk.until(1.0)
    assert stated(passed_on) == {
        "sender": C, "peer": B, "origin": A, "destination": E, "sequence": 7, "distance": 3, "lifetime_s": 6.0,
    }  # fmt: skip


def test_a_reply_ends_where_the_way_back_has_expired() -> None:
    desk = Desk()
    desk.queue.run(1.0)
    desk.knows(C, B, 2, 1000, until=1.0, destination=A)
    desk.hear(desk.reply(D, C), C)
    assert desk.until(1.0) == []


def test_what_waited_leaves_by_the_route_that_was_found_and_the_search_ends() -> None:
    desk = Desk()
    asked = [desk.ask(A, E), desk.ask(A, E)]
    desk.until(0.1)
    desk.hear(desk.reply(B, A, lifetime_s=1.0), A)
    hops = desk.until(60.0)
    assert [(hop.sender, hop.peer, hop.request, hop.taken, hop.path) for hop in hops] == [
        (A, B, asked[0], 1, []), (A, B, asked[1], 1, []),
    ]  # fmt: skip
    assert desk.host.unreachable.mock_calls == []
    assert desk.route(A, E)[3] == pytest.approx(0.1 + 3.0), "a route in use lasts 3 s"
    assert desk.route(A, B)[3] == pytest.approx(0.1 + 3.0)


# What a node believes.


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        ((D, 5, 8, 3.0), (D, 5, 8, 3.0, True)),
        ((D, 1, 7, 3.0), (D, 1, 7, 3.0, True)),
        ((D, 2, 7, 9.0), (C, 2, 7, 4.0, True)),
        ((D, 1, 6, 9.0), (C, 2, 7, 4.0, True)),
        ((C, 2, 7, 9.0), (C, 2, 7, 9.0, True)),
        ((C, 2, 7, 3.0), (C, 2, 7, 4.0, True)),
        ((D, 1, -1, 3.0), (D, 1, 7, 3.0, True)),
    ],
    ids=["newer", "as new, nearer", "as new, as far", "older", "the same, later", "the same, sooner", "no number"],
)
def test_newer_news_replaces_a_route_or_as_new_and_nearer(heard: Any, expected: Any) -> None:
    """Section 6.2."""
    desk = Desk()
    desk.knows(B, C, 2, 7, until=4.0)
    desk.routing._learn(B, E, *heard)
    assert desk.route(B, E) == expected


@pytest.mark.parametrize(("sequence", "replaced"), [(6, False), (7, False), (8, True), (-1, True)])
def test_a_route_that_has_ended_comes_back_with_newer_news_only(sequence: int, replaced: bool) -> None:
    """Section 6.1: its number has grown by one, so that what its own neighbours still believe forms no loop."""
    desk = Desk()
    desk.knows(B, C, 2, 7, until=4.0)
    desk.queue.run(4.0)
    assert desk.routing._route(B, E) is None
    desk.routing._learn(B, E, D, 9, sequence, 6.0)
    assert desk.route(B, E) == ((D, 9, 8, 6.0, True) if replaced else (C, 2, 8, 4.0, False))


def test_a_route_ends_once_and_without_a_number_keeps_none() -> None:
    known, unknown = Route(C, 2, 7, 4.0), Route(C, 1, -1, 4.0)
    for route in (known, known, unknown):
        route.invalidate()
    assert [(route.sequence, route.valid) for route in (known, unknown)] == [(8, False), (-1, False)]


# Links that fail.


def passed_on(desk: Desk) -> tuple[Transmission, RoutedHop]:
    """What a asked for, and the hop by which c, its second relay, sends it to d."""
    asked = desk.ask(A, E)
    desk.until(0.0)
    for node, next_hop in ((B, C), (C, D)):
        desk.knows(node, next_hop, 4 - node, 7, until=5.0)
    desk.hear(desk.reply(B, A), A)
    for node in (B, C):
        (hop,) = desk.until(0.0)
        desk.hear(hop, node)
    (hop,) = desk.until(0.0)
    assert (hop.sender, hop.peer, hop.taken, hop.path) == (C, D, 3, [A, B])
    return asked, hop


def test_a_broken_link_is_reported_by_the_way_of_the_packet_and_its_sender_looks_again() -> None:
    desk = Desk()
    asked, hop = passed_on(desk)
    desk.knows(C, D, 2, 4, until=5.0, destination=A)
    desk.knows(C, B, 2, 4, until=5.0, destination=B)
    desk.routing.unreachable(hop, DropReason.RETRY_LIMIT)
    assert desk.host.dropped.mock_calls == [call(hop, DropReason.RETRY_LIMIT)]
    assert [desk.route(C, to)[4] for to in (E, A, B)] == [False, False, True], "what led over d has ended"
    for node, to, came_by in ((C, B, [A]), (B, A, [])):
        (error,) = desk.until(0.0)
        assert (stated(error), error.request) == (
            {"sender": node, "peer": to, "came_by": came_by, "attempt": 0}, asked,
        )  # fmt: skip
        assert (error.bytes, error.kind.tag) == (12, "route-error")
        desk.hear(error, to)
    assert [desk.route(node, E)[4] for node in (A, B)] == [False, False]
    search = desk.routing._searches[A, E]
    assert (search.waiting, search.of_destination) == ([(asked, 1)], True)
    (request,) = desk.until(0.1)
    assert (request.of_destination, request.sequence, request.reach) == (True, 8, 5)


def test_an_error_from_another_neighbour_ends_no_route() -> None:
    desk = Desk()
    asked, hop = passed_on(desk)
    desk.routing.unreachable(hop)
    (error,) = desk.until(0.0)
    desk.knows(B, D, 2, 7, until=5.0)
    desk.hear(error, B)
    assert desk.route(B, E)[4], "b has another way since"
    assert asked.peer == E


def test_a_full_queue_breaks_no_link_and_the_sender_tries_again_when_no_answer_comes() -> None:
    desk = Desk()
    asked, hop = passed_on(desk)
    desk.routing.unreachable(hop, DropReason.QUEUE_FULL)
    assert desk.route(C, E)[4]
    assert desk.until(NETWORK_S - 0.01) == []
    (again,) = desk.until(NETWORK_S)
    assert (again.request, again.sender, again.attempt) == (asked, A, 1)


def test_an_error_that_is_lost_is_made_up_for_by_the_senders_patience() -> None:
    desk = Desk()
    asked, hop = passed_on(desk)
    desk.knows(C, B, 1, -1, until=5.0, destination=B)
    desk.routing.unreachable(hop)
    (error,) = desk.until(0.0)
    desk.routing.unreachable(error, DropReason.RETRY_LIMIT)
    assert desk.host.dropped.mock_calls[-1] == call(error, DropReason.RETRY_LIMIT)
    assert not desk.route(C, B)[4], "the link to b is broken too"
    assert desk.until(NETWORK_S - 0.01) == []
    (again,) = desk.until(NETWORK_S)
    assert (again.request, again.attempt) == (asked, 1)


def test_a_relay_without_a_route_drops_the_packet_and_reports_it() -> None:
    desk = Desk()
    asked = desk.ask(A, E)
    desk.until(0.0)
    desk.hear(desk.reply(B, A), A)
    (hop,) = desk.until(0.0)
    desk.hear(hop, B)
    ((dropped, reason),) = [one.args for one in desk.host.dropped.mock_calls]
    assert (dropped.sender, dropped.peer, dropped.taken, reason) == (B, E, 1, DropReason.NO_ROUTE)
    (error,) = desk.until(0.0)
    assert (stated(error), error.request) == ({"sender": B, "peer": A, "came_by": [], "attempt": 0}, asked)


def test_a_packet_is_sent_again_three_times_then_its_machine_learns() -> None:
    desk = Desk()
    asked = desk.ask(A, E)
    attempts = []
    for _ in range(4):
        desk.until(desk.queue.now + 0.1)
        desk.hear(desk.reply(B, A, sequence=desk.routing._sequences[A] + 7), A)
        (hop,) = desk.until(desk.queue.now)
        attempts.append(hop.attempt)
        desk.routing.unreachable(hop, DropReason.RETRY_LIMIT)
    assert (attempts, desk.host.failed.mock_calls) == ([0, 1, 2, 3], [call(asked)])
    assert desk.routing._searches == {}


def test_what_a_machine_asked_for_that_no_longer_exists_is_not_sent_again() -> None:
    desk = Desk()
    asked = desk.ask(A, E)
    desk.until(0.0)
    desk.hear(desk.reply(B, A), A)
    (hop,) = desk.until(0.0)
    desk.host.orphaned.return_value = True
    desk.routing.unreachable(hop)
    assert (desk.until(9.0), desk.host.failed.mock_calls) == ([], [call(asked)])


def test_a_node_that_goes_loses_its_routes_and_searches_and_keeps_their_numbers() -> None:
    desk = Desk()
    desk.ask(A, E)
    desk.ask(B, E)
    desk.until(0.0)
    desk.knows(A, C, 2, 7, until=9.0, destination=D)
    desk.routing.node_down(A, graceful=True)
    assert desk.route(A, D) == (C, 2, 8, 9.0, False)
    assert list(desk.routing._searches) == [(B, E)]
    assert {frame.sender for frame in desk.until(5.0)} == {B}
    assert desk.host.unreachable.mock_calls == []
