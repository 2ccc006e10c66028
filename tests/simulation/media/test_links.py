"""Scripted links: graphs, changes, rotations."""

from itertools import islice
from typing import Any

import pytest
from small_networks import standing

from earshot.errors import SettingsError
from earshot.simulation.media.links import LinkChange, LinkScript, Rotation, scripted
from earshot.simulation.media.neighbours import Neighbours, neighbours_within

NAMES = ("a", "b", "c", "d")


def names_of(neighbours: Neighbours, time: float) -> dict[str, str]:
    return {name: "".join(NAMES[j] for j in neighbours.of(i, time)) for i, name in enumerate(NAMES)}


def radio() -> Neighbours:
    """a, b, c, d in a row: each hears the next."""
    return neighbours_within(standing((0, 0), (10, 0), (20, 0), (30, 0)), 12.0)


def test_a_graph_counts_and_distance_does_not() -> None:
    links = scripted(NAMES, radio(), LinkScript(graph=(("a", "d"), ("d", "b"))))
    assert names_of(links, 0.0) == {"a": "d", "b": "d", "c": "", "d": "ab"}


def test_links_are_held_up_or_down_until_they_are_free_again() -> None:
    script = LinkScript(
        changes=(
            LinkChange(3.0, "a", "b", "free"),
            LinkChange(1.0, "b", "a", "down"),
            LinkChange(2.0, "a", "d", "up"),
            LinkChange(4.0, "a", "d", "free"),
        )
    )
    links = scripted(NAMES, radio(), script)
    assert [names_of(links, time) for time in (0.9, 1.0, 2.0, 3.0, 4.0)] == [
        {"a": "b", "b": "ac", "c": "bd", "d": "c"},
        {"a": "", "b": "c", "c": "bd", "d": "c"},
        {"a": "d", "b": "c", "c": "bd", "d": "ac"},
        {"a": "bd", "b": "ac", "c": "bd", "d": "ac"},
        {"a": "b", "b": "ac", "c": "bd", "d": "c"},
    ]


def test_two_links_alternate() -> None:
    """The ODMRP paper's figure 9A: the receiver always hangs on one of two nodes."""
    script = LinkScript(graph=(), rotations=(Rotation((("a", "b"), ("a", "c")), interval_s=0.5),))
    links = scripted(NAMES, radio(), script)
    assert [names_of(links, time)["a"] for time in (0.0, 0.4, 0.5, 1.0, 1.6)] == ["b", "b", "c", "b", "c"]


def test_one_link_with_a_pause_breaks_and_is_repaired() -> None:
    script = LinkScript(
        graph=(("a", "b"), ("b", "c")), rotations=(Rotation((("a", "b"),), 2.0, pauses=1, start_s=1.0),)
    )
    links = scripted(NAMES, radio(), script)
    assert [names_of(links, time)["b"] for time in (0.0, 1.0, 3.0, 5.0, 7.5)] == ["ac", "ac", "c", "ac", "c"]


def test_a_window_of_two_links_moves_along() -> None:
    """Figure 9B: links 1 and 2 are up, then 2 and 3, and so on, round and round."""
    rotation = Rotation((("a", "b"), ("a", "c"), ("a", "d")), interval_s=1.0, together=2)
    links = scripted(NAMES, radio(), LinkScript(graph=(), rotations=(rotation,)))
    assert [names_of(links, time)["a"] for time in (0.0, 1.0, 2.0, 3.0)] == ["bc", "cd", "bd", "bc"]


def test_a_rotation_tells_only_what_changes() -> None:
    rotation = Rotation((("a", "b"), ("a", "c")), interval_s=1.0)
    assert [(change.time_s, change.b, change.state) for change in islice(rotation.changes(), 6)] == [
        (0.0, "b", "up"),
        (0.0, "c", "down"),
        (1.0, "b", "down"),
        (1.0, "c", "up"),
        (2.0, "b", "up"),
        (2.0, "c", "down"),
    ]


def test_a_version_changes_with_each_change_of_the_script() -> None:
    """Also if nobody has asked for neighbours since."""
    script = LinkScript(
        changes=(LinkChange(1.0, "a", "b", "down"),), rotations=(Rotation((("c", "d"),), 2.0, pauses=1, start_s=2.0),)
    )
    links = scripted(NAMES, radio(), script)
    versions = [links.version(time) for time in (0.0, 0.9, 1.0, 1.9, 2.0, 3.9, 4.0)]
    assert [versions.index(version) for version in versions] == [0, 0, 2, 2, 4, 4, 6]


WRONG: list[tuple[Any, str]] = [
    (lambda: LinkChange(-1.0, "a", "b", "up"), "time_s must not be negative, got -1.0"),
    (lambda: LinkChange(1.0, "a", "a", "up"), "a link joins two nodes, got 'a' twice"),
    (lambda: LinkChange(1.0, "a", "b", "dwn"), "state: no such choice as 'dwn'; did you mean 'down'?"),  # type: ignore[arg-type]
    (lambda: LinkScript(graph=(("a", "a"),)), "a link names two different nodes, got ['a', 'a']"),
    (lambda: Rotation((), 1.0), "a rotation needs links and 1 to 0 of them together, got 1"),
    (lambda: Rotation((("a", "b"), ("c", "c")), 1.0), "a link names two different nodes, got ['c', 'c']"),
    (lambda: Rotation((("a", "b"),), 0.0), "interval_s must be a positive number of seconds, got 0.0"),
    (lambda: Rotation((("a", "b"),), 1.0, pauses=-1), "pauses must not be negative, got -1"),
    (lambda: Rotation((("a", "b"),), 1.0, start_s=-1), "start_s must not be negative, got -1"),
    (
        lambda: scripted(NAMES, radio(), LinkScript(graph=(("a", "x"),))),
        "the links name a node 'x'; the scenario has a, b, c, d",
    ),
    (
        lambda: scripted(NAMES, radio(), LinkScript(changes=(LinkChange(99.0, "x", "b", "up"),))),
        "the links name a node 'x'; the scenario has a, b, c, d",
    ),
    (
        lambda: scripted(NAMES, radio(), LinkScript(rotations=(Rotation((("a", "x"),), 1.0, start_s=99.0),))),
        "the links name a node 'x'; the scenario has a, b, c, d",
    ),
]


@pytest.mark.parametrize(("build", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_settings_are_refused_with_the_reason(build: Any, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build()
    assert str(caught.value) == message
