"""Colours and shapes: no two alike, for any eye, on a light and on a dark page."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from earshot.pipeline.reports.svg import COLOURS, SHAPES, Mark, marks_of
from earshot.protocols.catalogue import PROTOCOLS

Numbers = npt.NDArray[np.float64]

# How colours look to people who lack one kind of cone: Machado, Oliveira and Fernandes (2009), severity 1.
EYES = {
    "full": ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 0.15),
    "protanopia": (
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        0.08,
    ),
    "deuteranopia": (
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        0.08,
    ),
    "tritanopia": (
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
        0.06,
    ),
}
"Each with the least distance in Oklab between two colours; neighbours in a usual palette of ten have 0.02 to 0.04."


def linear(colour: str) -> Numbers:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


TO_CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_OKLAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def oklab(rgb: Numbers) -> Numbers:
    found: Numbers = np.cbrt(np.clip(rgb, 0, 1) @ np.array(TO_CONES).T) @ np.array(TO_OKLAB).T
    return found


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("page", [1, 2])
def test_any_two_colours_can_be_distinguished(eye: str, page: int) -> None:
    seen_as, least = EYES[eye]
    seen = {colour[page]: oklab(linear(colour[page]) @ np.array(seen_as).T) for colour in COLOURS}
    assert len(seen) == len(COLOURS) >= 10
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen.values(), 2)) > least


@pytest.mark.parametrize(("page", "paper", "least"), [(1, "#ffffff", 2.0), (2, "#14171b", 3.0)])
def test_every_colour_stands_out_from_the_page(page: int, paper: str, least: float) -> None:
    def luminance(colour: str) -> float:
        return float(linear(colour) @ np.array([0.2126, 0.7152, 0.0722])) + 0.05

    for colour in COLOURS:
        light, dark = sorted((luminance(colour[page]), luminance(paper)), reverse=True)
        assert light / dark > least, colour


def test_a_protocol_has_its_own_mark_in_every_report() -> None:
    everybody = marks_of(PROTOCOLS)
    for looks in ({mark.colour for mark in everybody.values()}, {mark.shape for mark in everybody.values()}):
        assert len(looks) == len(PROTOCOLS)
    for name in PROTOCOLS:
        assert marks_of([name]) == {name: everybody[name]}


def test_variants_never_look_alike() -> None:
    names = ["gossip", "codd fanout=3", *(f"gossip probability={share / 100}" for share in range(90))]
    marks = marks_of(names)
    assert marks["gossip"] == marks_of(["gossip"])["gossip"]
    assert marks["codd fanout=3"] == marks_of(["codd"])["codd"]
    assert len(set(marks.values())) == len(names)
    few = marks_of(names[:12])
    assert len({mark.colour for mark in few.values()}) == 12


def test_every_shape_is_drawn_within_its_radius() -> None:
    for number in range(len(SHAPES)):
        assert all(abs(part) <= 1.25 for corner in SHAPES[number] for part in corner)
        assert Mark(0, number).drawn(10, 10, 5).startswith('<path class="mark" d="M')
