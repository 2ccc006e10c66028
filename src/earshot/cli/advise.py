"""`earshot advise`: from a trace to a protocol, its settings, and what to expect of them."""

from __future__ import annotations

from pathlib import Path

import click

from earshot.cli.options import DURATION, chosen_protocols, default_option, json_option, protocols_option
from earshot.cli.spark import LakeOptions, ProgressBar, lake_options, open_lake
from earshot.cli.tables import print_json, print_table, print_words
from earshot.cli.traces import TraceChoice, check_scenarios, read_into_lake, window_options


@click.command()
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True)
@window_options
@default_option(
    "--goal",
    type=click.Choice(["delivery", "latency", "airtime"]),
    default="delivery",
    help="What to optimise: delivery (then airtime), or latency or airtime with nearly the best delivery.",
)
@protocols_option
@click.option(
    "--budget", type=DURATION, metavar="10min", help="How long to search  [default: 12min; with --quick 4min]"
)
@click.option("--quick", is_flag=True, help="Fewer and shorter windows: an answer in minutes.")
@click.option("--out", type=click.Path(dir_okay=False), help="The file for your nodes  [default: LAKE/advice.toml]")
@click.option("--report", "report_to", type=click.Path(dir_okay=False), help="The report  [default: LAKE/report.html]")
@lake_options
@json_option("Print the answer as JSON.")
def advise(
    traces: tuple[str, ...],
    choice: TraceChoice,
    goal: str,
    protocols: str | None,
    budget: float | None,
    quick: bool,
    out: str | None,
    report_to: str | None,
    lake: LakeOptions,
    as_json: bool,
) -> None:
    """Find the protocol and settings that serve a trace best.

    TRACE is a file, several files, a folder, or the name of a trace: one in the lake, or market-town, which ships with
    Earshot. Reads and profiles the trace, adds a workload, tries all protocols and their settings on short windows of
    the trace and the best of them on longer windows, and judges those on windows that the search did not use. Ends with
    a recommendation, a file for your nodes (`earshot node --settings advice.toml`) and a report.

    Ctrl-C loses only the runs that are not finished; the same command continues from there.

    \b
      earshot advise fcd.xml.gz
      earshot advise fcd.xml.gz --quick --workload alerts-nearby --range 200m
      earshot advise buses.csv --columns node=bus_no,time=when --goal airtime
      earshot advise bologna --events events.jsonl --subscriptions wanted.jsonl
    """
    from earshot.pipeline.advice.advice_text import advice_json, advice_toml, advice_words, judged_table
    from earshot.pipeline.advice.advise import BUDGET_S, QUICK_BUDGET_S, Question
    from earshot.pipeline.advice.advise import advise as ask
    from earshot.pipeline.advice.search import Goal
    from earshot.pipeline.reports.report import report_facts, write_page_of

    names = tuple(chosen_protocols(protocols))
    choice.check(lake)
    with ProgressBar(f"advice on {traces[0]}", 0) as bar, open_lake(lake, bar=bar) as opened:
        files = [one if opened.has("traces", trace=one) else _shipped(one) for one in traces]
        trace = read_into_lake(opened, files if len(files) > 1 else files[0], choice, bar)
        check_choice(trace, choice, opened.folder.root)
        budget_s = budget or (QUICK_BUDGET_S if quick else BUDGET_S)
        question = Question(trace, choice.window, choice.additions, Goal(goal), names, budget_s, quick)
        advice = ask(opened, question, bar.say, bar.runs)
        bar.say("writing the report")
        facts = report_facts(opened, advice=advice)
        page = write_page_of(facts, opened, Path(report_to or Path(lake.lake) / "report.html"))
    file = Path(out or Path(lake.lake) / "advice.toml")
    file.write_text(advice_toml(advice), encoding="utf-8")
    if as_json:
        print_json(advice_json(advice) | {"file": str(file), "report": str(page)})
        return
    for paragraph in advice_words(advice):
        print_words(paragraph)
        click.echo()
    print_table(*judged_table(advice))
    click.echo(f"\nfor your nodes: {file} (earshot node --settings {file})\nreport: {page}")


def _shipped(trace: str) -> str:
    """The file of a trace that ships with Earshot, if it is one and no file has that name."""
    from earshot.simulation.scenario.library import built_in_traces

    return trace if Path(trace).exists() else str(built_in_traces().get(trace, trace))


def check_choice(trace: str, choice: TraceChoice, lake: str) -> None:
    """Report doubts about the chosen window, and about events of the user's own: whose publishers are absent."""
    from earshot.pipeline.traces.trace_scenario import relative_window
    from earshot.simulation.workload.presets import DEFAULT_PRESET, PRESETS
    from earshot.traces.lake_tables import trace_about

    about = trace_about(lake, trace)
    choice.check_window(trace, about)
    if choice.events is None and (choice.workload or DEFAULT_PRESET) in PRESETS:
        return
    start_s, end_s = relative_window(about, choice.window or (0.0, about.end - about.start))
    made = choice.additions.scenario(lake, trace, start_s, end_s)
    check_scenarios([made], choice.strict)
