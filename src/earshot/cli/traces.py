"""What commands that start from a trace share, `earshot profile` and `earshot scenario from-trace`."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import DELAY, DURATION, LENGTH, json_option, together
from earshot.cli.spark import LakeOptions, ProgressBar, lake_options, open_lake
from earshot.cli.tables import print_json, print_table, print_words, warn
from earshot.errors import ScenarioError, TraceError, UsageError

if TYPE_CHECKING:
    from earshot.pipeline.lake.lake import Lake
    from earshot.pipeline.traces.ingest import IngestSettings
    from earshot.pipeline.traces.trace_scenario import TraceAdditions
    from earshot.simulation.scenario.scenario import Scenario
    from earshot.traces.lake_tables import TraceAbout

RADIO_HELP = "The radio: 802.11p-6M, 802.11b-2M, 802.11b-1M, lora-sf7, lora-fsk-50k or ideal  [default: 802.11p-6M]"


class TimesSinceStart(click.ParamType[tuple[float, float]]):
    """Two times since the start of a trace, as in `10min-12min`."""

    name = "FROM-TO"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        start, sign, end = str(value).partition("-")
        if not sign:
            self.fail(
                f"{value!r} is not a window: write two times since the trace's start, as in 600s-720s", param, ctx
            )
        unit = re.sub(r"[0-9.\s]", "", end)
        start = start if re.search(r"[a-z]", start) else f"{start}{unit}"
        window = DELAY.convert(start, param, ctx), DURATION.convert(end, param, ctx)
        if not window[0] < window[1]:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return window


@dataclass(frozen=True)
class TraceChoice:
    """A trace, a window of it, a radio and a workload, as options name them."""

    trace: str | None = None
    window: tuple[float, float] | None = None
    radio: str | None = None
    range_m: float | None = None
    workload: str | None = None
    events: str | None = None
    subscriptions: str | None = None
    columns: str = ""
    units: str = ""
    strict: bool = False

    @property
    def reading(self) -> IngestSettings:
        """How files are read that are not in the lake."""
        from earshot.pipeline.traces.ingest import IngestSettings

        return IngestSettings(columns=self.columns, units=self.units, strict=self.strict)

    @property
    def additions(self) -> TraceAdditions:
        """The radio and the workload."""
        from earshot.pipeline.traces.trace_scenario import DEFAULT_RADIO, TraceAdditions

        radio = self.radio or DEFAULT_RADIO
        return TraceAdditions(radio, self.range_m, self.workload, self.events, self.subscriptions)

    def check(self, lake: LakeOptions) -> None:
        """Raise what is wrong whatever the trace is: to read a large trace takes minutes."""
        from earshot.pipeline.lake.folder import Folder

        self.additions.check(Folder(lake.lake).root)

    def check_window(self, trace: str, about: TraceAbout) -> None:
        """Report a window that ends after the trace."""
        if self.window is not None and self.window[1] > about.end - about.start + 1e-9:
            beyond = f"the window ends at {self.window[1]:g} s, but trace {trace} lasts {about.end - about.start:g} s"
            report_doubt(f"{beyond}: the window is cut", self.strict)

    def scenario(self, lake: LakeOptions) -> Scenario:
        """The scenario that plays the trace back. Files are read into the lake first, if they are not in it."""
        from earshot.pipeline.lake.folder import Folder
        from earshot.pipeline.traces.trace_scenario import relative_window
        from earshot.traces.lake_tables import trace_about

        self.check(lake)
        trace = named_trace(self.trace or "", lake, self)
        about = trace_about(Folder(lake.lake).root, trace)
        start_s, end_s = relative_window(about, self.window)
        self.check_window(trace, about)
        found = self.additions.scenario(lake.lake, trace, start_s, end_s)
        whole_s = about.end - about.start
        if self.window is None and found.duration_s < whole_s:
            click.echo(
                f"window: {found.duration_s:g} s in the middle of {whole_s:,.0f} s; --window FROM-TO chooses another",
                err=True,
            )
        return found


def report_doubt(doubt: str, strict: bool) -> None:
    """Print a doubt as a warning; raise it as an error if `strict`."""
    if strict:
        raise TraceError(doubt)
    warn([doubt])


def check_scenarios(scenarios: Iterable[Scenario], strict: bool = False) -> None:
    """Report the doubts about these scenarios, as they will run, each once."""
    from earshot.simulation.mobility import Playback

    doubts: dict[str, None] = {}
    for scenario in scenarios:
        if any(isinstance(group.mobility, Playback) for group in scenario.nodes.values()):
            from earshot.pipeline.traces.trace_scenario import scenario_doubts

            with suppress(ScenarioError, TraceError):  # the run itself fails, and says so; others of a sweep may not
                doubts.update(dict.fromkeys(scenario_doubts(scenario)))
    for doubt in doubts:
        report_doubt(doubt, strict)


def named_trace(trace: str, lake: LakeOptions, choice: TraceChoice) -> str:
    """The name of the trace in the lake; Spark is started only where files must be read first."""
    from earshot.pipeline.lake.arrow_lake import ArrowLake

    if ArrowLake(lake.lake).has("traces", trace=trace):
        return trace
    from earshot.pipeline.traces.ingest import check_files

    if os.path.exists(trace):
        check_files([trace], choice.reading)
    with ProgressBar(f"ingest of {trace}") as bar, open_lake(lake, bar=bar) as opened:
        return read_into_lake(opened, trace, choice, bar)


def read_into_lake(lake: Lake, trace: str | Sequence[str], choice: TraceChoice, bar: ProgressBar) -> str:
    """The name of the trace in the lake; its files are read first, if they are not in it. Doubts are reported."""
    from earshot.pipeline.traces.ingest import trace_in_lake

    bar.say("reading the trace")
    name = trace_in_lake(lake, trace, choice.reading)
    (about,) = lake.arrow.read("traces", trace=name).to_pylist()
    bar.clear()
    for doubt in about["doubts"] or ():
        report_doubt(doubt, choice.strict)
    return name


def _as_choice(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass these options to the command as one argument, `choice`."""
    names = tuple(TraceChoice.__dataclass_fields__)

    @functools.wraps(command)
    def with_choice(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(f"{name}_of_trace") for name in names if f"{name}_of_trace" in kwargs}
        return command(*args, choice=TraceChoice(**given), **kwargs)

    return with_choice


def _reading_options(strict_help: str) -> Callable[..., Any]:
    """How files are read that are not in the lake."""
    return together(
        click.option(
            "--columns",
            "columns_of_trace",
            default="",
            metavar="ROLE=NAME,...",
            help="For CSV and Parquet: node=bus,time=when.",
        ),
        click.option(
            "--units",
            "units_of_trace",
            default="",
            metavar="UNIT,...",
            help="The trace's units, if they are in doubt: ms, km.",
        ),
        click.option("--strict", "strict_of_trace", is_flag=True, help=strict_help),
    )


window_options = together(
    click.option(
        "--window", "window_of_trace", type=TimesSinceStart(), help="Which part of the trace, as in 600s-720s."
    ),
    click.option("--radio", "radio_of_trace", metavar="PRESET", help=RADIO_HELP),
    click.option("--range", "range_m_of_trace", type=LENGTH, help="The radio's range  [default: the radio's own]"),
    click.option(
        "--workload",
        "workload_of_trace",
        metavar="NAME",
        help="alerts-nearby, parking, convoy, news, mixed, or a workload of the lake.  [default: mixed]",
    ),
    click.option("--events", "events_of_trace", metavar="FILE", help="Your own events, .jsonl."),
    click.option("--subscriptions", "subscriptions_of_trace", metavar="FILE", help="Your own subscriptions, .jsonl."),
    _reading_options("Treat a doubt about trace or window as an error."),
    _as_choice,
)
trace_options = together(
    click.option("--trace", "trace_of_trace", metavar="TRACE", help="Instead of a scenario: a trace, by name or file."),
    window_options,
)


def scenario_or_trace(scenario: str | None, choice: TraceChoice, lake: LakeOptions) -> Scenario:
    """The named scenario, or a scenario that plays a trace back. `check_scenarios` must be asked about it once it is
    changed by --set."""
    from earshot.simulation.scenario.library import load_scenario

    if choice.trace is not None:
        if scenario is not None:
            raise UsageError("name a scenario or --trace, not both")
        return choice.scenario(lake)
    if replace(choice, strict=False) != TraceChoice():
        raise UsageError(
            "--window, --radio, --range, --workload, --events, --subscriptions, --columns and --units need --trace"
        )
    if scenario is None:
        raise UsageError("name a scenario (`earshot scenarios` lists them), or a trace with --trace")
    return load_scenario(scenario)


@click.command()
@click.argument("trace")
@click.option("--range", "ranges_m", type=LENGTH, multiple=True, help="Also profile this range; repeatable.")
@click.option(
    "--report", "report_to", type=click.Path(dir_okay=False, path_type=Path), help="Write the profile as an HTML page."
)
@_reading_options("Treat a doubt about the trace as an error.")
@click.option("--again", is_flag=True, help="Compute the profile again, even if the lake has it.")
@lake_options
@json_option("Print the profile as JSON.")
@_as_choice
def profile(
    trace: str,
    ranges_m: tuple[float, ...],
    report_to: Path | None,
    again: bool,
    lake: LakeOptions,
    as_json: bool,
    choice: TraceChoice,
) -> None:
    """Describe TRACE before any protocol runs: is the network partitioned?

    TRACE is the name of a trace in the lake, or a file or folder, which is read into the lake first. Prints area,
    span, nodes and speeds, and for radios of 50 to 300 m: neighbours, connected components, contact times, and
    which share of all pairs of nodes can reach each other at once, or by carrying within 10 s, 60 s and 10 min.

    \b
      earshot profile bologna
      earshot profile fcd.xml.gz --range 250m --report profile.html
    """
    from earshot.pipeline.reports.profile_page import profile_page
    from earshot.pipeline.traces import profile_text as text
    from earshot.pipeline.traces.trace_profile import RANGES_M, profile_trace

    with ProgressBar(f"profile of {trace}") as bar, open_lake(lake, bar=bar) as opened:
        name = read_into_lake(opened, trace, choice, bar)
        found = profile_trace(opened, name, (*RANGES_M, *ranges_m), bar.say, again)
    if report_to is not None:
        profile_page(found).write(report_to)
    if as_json:
        print_json(found.as_json())
        return
    click.echo(f"{found.trace}: {text.profile_words(found)}\n")
    for name, words in text.facts_rows(found):
        click.echo(f"  {name:<12}{words}")
    click.echo()
    print_table(text.RANGE_HEADER, text.range_rows(found))
    print_words(text.RANGE_NOTE)
    if report_to is not None:
        click.echo(f"\nreport: {report_to}")


@click.group()
def scenario() -> None:
    """Make a scenario of your own."""


@scenario.command("from-trace")
@click.argument("trace")
@window_options
@lake_options
def from_trace(trace: str, choice: TraceChoice, lake: LakeOptions) -> None:
    """Write a scenario that plays TRACE back, as TOML.

    TRACE is the name of a trace in the lake, or a file or folder, which is read into the lake first. The scenario
    has the trace's area, the window, the radio and the workload; edit it, and run it with `simulate`, `compare`
    or `sweep`.

    \b
      earshot scenario from-trace bologna > mine.toml
      earshot scenario from-trace fcd.xml.gz --window 5min-7min --workload parking > mine.toml
    """
    import tomli_w

    from earshot.simulation.settings_reader import as_table

    found = replace(choice, trace=trace).scenario(lake)
    check_scenarios([found], choice.strict)
    click.echo(tomli_w.dumps(as_table(found, sparse=True)), nl=False)
