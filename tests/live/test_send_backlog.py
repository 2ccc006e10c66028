"""The datagrams that wait for the socket: their order, and which are given up where there are too many bytes."""

from earshot.live.newcomers import WAITING_BYTES
from earshot.live.send_backlog import SendBacklog

HERE = ("127.0.0.1", 1)


def test_the_highest_priority_goes_first_and_of_it_the_oldest() -> None:
    backlog = SendBacklog(10_000)
    for datagram, priority in ((b"a", 0), (b"b", 2), (b"c", 2), (b"d", 1)):
        assert backlog.put(datagram, HERE, priority) == 0
    order = []
    while len(backlog):
        datagram, address, priority = backlog.first()
        order.append((datagram, address, priority))
        backlog.remove_first()
    assert order == [(b"b", HERE, 2), (b"c", HERE, 2), (b"d", HERE, 1), (b"a", HERE, 0)]
    assert backlog.bytes == 0


def test_what_fits_exactly_is_kept_and_one_byte_more_is_not() -> None:
    backlog = SendBacklog(8 + WAITING_BYTES)
    assert (backlog.put(b"x" * 9, HERE, 0), len(backlog)) == (1, 0)
    assert (backlog.put(b"x" * 8, HERE, 0), len(backlog), backlog.bytes) == (0, 1, 8)


def test_a_full_backlog_keeps_the_older_of_one_priority_and_gives_up_a_lower_one() -> None:
    backlog = SendBacklog(2 * (1 + WAITING_BYTES))
    backlog.put(b"a", HERE, 1)
    backlog.put(b"b", HERE, 1)
    assert (backlog.put(b"c", HERE, 1), backlog.first()[0]) == (1, b"a")
    backlog.remove_first()
    assert backlog.first()[0] == b"b"
    backlog.put(b"d", HERE, 1)
    # Of the lower priority the latest is given up.
    assert (backlog.put(b"e", HERE, 2), backlog.first()) == (1, (b"e", HERE, 2))
    backlog.remove_first()
    assert (backlog.first()[0], len(backlog)) == (b"b", 1)
