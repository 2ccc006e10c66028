"""Advice on the report's page: what to use, how the others did, and how the search went."""

from __future__ import annotations

from earshot.pipeline.advice import advice_text as text
from earshot.pipeline.advice.advise import Advice
from earshot.pipeline.advice.search import Standing
from earshot.pipeline.reports.board_page import Marks
from earshot.pipeline.reports.formats import listed
from earshot.pipeline.reports.page import PageBlock, PageCell, PageFold, PageTable, PageVerdict, PageWords


def advice_blocks(advice: Advice, marks: Marks) -> list[PageBlock]:
    """The recommendation in words, its settings, and the rounds of the search behind a click."""
    headline = f"Use {text.candidate_words(advice.chosen)}"
    first, *rest = text.advice_words(advice)
    expected = first.partition(": ")[2]
    blocks: list[PageBlock] = [
        PageVerdict("", headline, marks[advice.names[advice.chosen]], f"{expected[:1].upper()}{expected[1:]}"),
        *(PageWords(words) for words in rest),
    ]
    header, rows = text.judged_table(advice)
    blocks.append(PageTable("judged", header, rows, "On the windows that the search did not see, best first."))
    if reasons := text.reasons_words(advice):
        blocks.append(PageFold("Why these settings", [PageWords(words) for words in reasons]))
    blocks.append(PageFold("advice.toml, for your nodes", [PageTable("settings", *_settings(advice))]))
    rounds = [_round(number, advice) for number in range(len(advice.search.rounds))]
    blocks.append(PageFold("How the search went", rounds))
    return blocks


def _settings(advice: Advice) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = [["protocol", advice.chosen.protocol]]
    rows += [[name, value] for name, value in sorted(advice.chosen.settings.items())]
    rows += [[f"network: {name}", value] for name, value in text.network_facts(advice).items()]
    return ["setting", "value"], rows


def _round(number: int, advice: Advice) -> PageTable:
    one = advice.search.rounds[number]
    header = ["#", "candidate", "delivery of the reachable", "cost", "latency p95 (s)"]
    rows = [_row(place, standing) for place, standing in enumerate(one.standings, 1)]
    words = f"Round {number + 1}: {listed([str(window) for window in one.windows])}."
    if one.failed:
        words += f" Not judged: {listed([str(candidate) for candidate in one.failed])}."
    return PageTable(f"round-{number + 1}", header, rows, words)


def _row(place: int, standing: Standing) -> list[object]:
    mean = standing.mean
    return [
        place,
        str(standing.candidate),
        PageCell(mean.delivery, f"{mean.delivery:.3f}", css="number"),
        PageCell(mean.cost, f"{mean.cost:.4g}", css="number"),
        PageCell(mean.latency_s, f"{mean.latency_s:.3g}", css="number"),
    ]
