"""`earshot simulate`, `protocols` and `scenarios`: one run, and lists of what can be run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from earshot.cli.options import (
    default_option,
    json_option,
    pairs,
    read_settings_file,
    set_option,
    setting_option,
    settings_file_option,
    toml_value,
)
from earshot.cli.spark import LakeOptions, lake_options
from earshot.cli.tables import print_json, print_table, print_words, warn
from earshot.cli.traces import TraceChoice, check_scenarios, scenario_or_trace, trace_options
from earshot.errors import UsageError
from earshot.words import counted

if TYPE_CHECKING:
    from earshot.simulation.engine.result import RunResult
    from earshot.simulation.engine.summary import RunSummary
    from earshot.simulation.scenario.scenario import Scenario


@click.command()
@click.argument("scenario", required=False)
@trace_options
@click.option("--protocol", "-p", metavar="NAME", help="The protocol; `earshot protocols` lists them.")
@settings_file_option
@default_option("--seed", default=1, type=click.IntRange(min=0), help="Seed of all random numbers.")
@set_option
@setting_option
@click.option(
    "--log", metavar="DIR", type=click.Path(file_okay=False, path_type=Path), help="Write every record to DIR."
)
@default_option(
    "--positions-every",
    "positions_every_s",
    default=1.0,
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="How often the log records the positions of all nodes; 0: never.",
)
@lake_options
@json_option("Print the summary as JSON.")
def simulate(
    scenario: str | None,
    choice: TraceChoice,
    protocol: str | None,
    settings_file: str | None,
    seed: int,
    changes: tuple[str, ...],
    settings: tuple[str, ...],
    log: Path | None,
    positions_every_s: float,
    lake: LakeOptions,
    as_json: bool,
) -> None:
    """Run one protocol on one scenario, or on your own trace, and print a summary.

    SCENARIO is the name of a built-in scenario (`earshot scenarios` lists them) or the path of a TOML
    file. The same scenario, settings and seed give the same run, and the same bytes of log.

    \b
    Examples:
      earshot simulate city --protocol flooding
      earshot simulate city -p gossip --setting probability=0.6 --seed 7
      earshot simulate base -p flooding --set nodes.node.count=300 --set medium.range_m=120
      earshot simulate city -p flooding --set medium.kind=contention --log runs/one
      earshot simulate my-town.toml -p flooding --json
      earshot simulate --trace bologna --window 5min-7min -p steam
      earshot simulate --trace bologna --settings advice.toml

    A value after --set is written as in TOML, but quotes around texts may be left out; an empty value
    removes the key. --log writes DIR/log.parquet, one row per record, and DIR/run.json, which says what
    was run. A run stopped with Ctrl-C leaves no log.
    """
    from earshot.protocols.catalogue import protocol as protocol_named
    from earshot.simulation.engine.run import run, settings_in
    from earshot.simulation.engine.summary import summarise

    chosen = scenario_or_trace(scenario, choice, lake).with_(pairs(changes, "--set", toml_value))
    check_scenarios([chosen], choice.strict)
    given: dict[str, Any] = pairs(settings, "--setting", str)
    if settings_file is not None:
        advised = read_settings_file(settings_file, protocol)
        protocol, given = advised.protocol, {**advised.settings, **given}
    if protocol is None:
        raise UsageError("name a protocol with --protocol (`earshot protocols` lists them), or a file with --settings")
    machine = protocol_named(protocol)
    warn(machine.doubts(settings_in(chosen, machine, given)))
    started = perf_counter()
    with _progress(chosen, protocol, seed) as progress, _log(log, positions_every_s) as records:
        result = run(chosen, protocol, given, seed=seed, log=records, progress=progress)
    took_s = perf_counter() - started
    summary = summarise(chosen, result)
    if log is not None:
        _write_run(log, chosen, result, summary)
    if as_json:
        print_json({**summary.as_dict(), "settings": _json_ready(result.settings)})
    else:
        _print_summary(summary, took_s)
        if log is not None:
            click.echo(f"\nlog: {log / 'log.parquet'}")


@contextmanager
def _progress(scenario: Scenario, protocol: str, seed: int) -> Iterator[Callable[[float], None] | None]:
    """A progress bar of simulated time on a terminal; nothing if the output goes elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    label = f"{scenario.name}, {protocol}, seed {seed}"
    with click.progressbar(length=1000, label=label, file=sys.stderr) as bar:
        done = 0

        def advance(now_s: float) -> None:
            nonlocal done
            reached = int(1000 * now_s / scenario.duration_s)
            bar.update(reached - done)
            done = reached

        yield advance


def _log(folder: Path | None, positions_every_s: float) -> AbstractContextManager[Any]:
    """The log of a run; its file gets its final name when it is complete."""
    from earshot.simulation.engine.log import Log

    if folder is None:
        return nullcontext()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--log {folder}: {error.strerror}") from None
    return Log(folder / "log.parquet", positions_every_s=positions_every_s or None)


def _write_run(folder: Path, scenario: Scenario, result: RunResult, summary: RunSummary) -> None:
    """Write what was run into a file beside the log, so that the run can be repeated."""
    content = {
        "scenario": scenario.table(),
        "protocol": result.protocol,
        "settings": _json_ready(result.settings),
        "seed": result.seed,
        "summary": summary.as_dict(),
    }
    draft = folder / f".run.{os.getpid()}.json"
    draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    draft.replace(folder / "run.json")


def _json_ready(settings: Mapping[str, Any]) -> dict[str, Any]:
    from earshot.simulation.settings_reader import as_table

    return {name: as_table(value) for name, value in settings.items()}


def _print_summary(summary: RunSummary, took_s: float) -> None:
    click.echo(
        f"{summary.scenario}, {summary.protocol}, seed {summary.seed}: {counted(summary.nodes, 'node')}, "
        f"{summary.measured_s:g} s measured, took {took_s:.1f} s\n"
    )
    unexpected = summary.delivered - round((summary.precision or 0) * summary.delivered)
    rows = [
        ("events published", f"{summary.events:,}", ""),
        ("delivery ratio", _number(summary.delivery_ratio, ".4f"), f"of {summary.expected:,} expected deliveries"),
        (
            "precision",
            _number(summary.precision, ".4f"),
            f"{unexpected:,} of {summary.delivered:,} deliveries unexpected",
        ),
        ("transmissions", f"{summary.transmissions:,}", ""),
        ("cost", _number(summary.cost), "transmissions with an event, per event"),
        ("data bytes", f"{summary.data_bytes:,}", ""),
        ("control bytes", f"{summary.control_bytes:,}", ""),
        ("bytes per delivery", _number(summary.bytes_per_delivery), ""),
        ("latency, median", _time(summary.latency_p50_s), ""),
        ("latency, 95 %", _time(summary.latency_p95_s), ""),
        ("latency, 99 %", _time(summary.latency_p99_s), ""),
        ("hops, mean", _number(summary.hops_mean), ""),
    ]
    rows.extend((f"drops: {reason}", f"{count:,}", "") for reason, count in summary.drops.items())
    print_table(("measure", "value", ""), rows)


def _number(value: float | None, form: str = ",.1f") -> str:
    return "-" if value is None else f"{value:{form}}"


def _time(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


@click.command()
@click.argument("name", required=False)
@json_option("Print them as JSON.")
def protocols(name: str | None, as_json: bool) -> None:
    """List the protocols: where each was published, its medium, and its settings.

    With NAME, only that protocol. NAME may be a plug-in: an installed one, module:Class or ./file.py:Class.

    \b
    Examples:
      earshot protocols
      earshot protocols gossip
      earshot protocols ./frugal.py:Frugal
      earshot protocols --json
    """
    from earshot.protocols.catalogue import known_protocols, protocol
    from earshot.simulation.settings_schema import settings_described

    found = {}
    for protocol_name, machine in (known_protocols() if name is None else {name: protocol(name)}).items():
        if isinstance(machine, UsageError):
            click.echo(f"earshot: {machine}", err=True)
        else:
            found[protocol_name] = machine
    if as_json:
        rows = [
            {
                "name": protocol_name,
                "paper": machine.paper,
                "needs_routing": machine.needs_routing,
                "settings": [setting.as_dict() for setting in settings_described(machine.Settings)],
            }
            for protocol_name, machine in found.items()
        ]
        print_json(rows)
        return
    for number, (protocol_name, machine) in enumerate(found.items()):
        click.echo(
            ("\n" if number else "")
            + click.style(protocol_name, bold=True)
            + ("  (needs routing)" if machine.needs_routing else "")
        )
        print_words(machine.paper, indent=2)
        for setting in settings_described(machine.Settings):
            unit = f" {setting.unit}" if setting.unit else ""
            default = " (must be given)" if setting.required else f" = {_shown(setting.default)}{unit}"
            click.echo(f"    {setting.name}{default}")
            print_words(setting.doc, indent=8)


def _shown(value: Any) -> str:
    return "not set" if value is None else json.dumps(value)


@click.command()
@click.argument("name", required=False)
@json_option("Print them as JSON.")
def scenarios(name: str | None, as_json: bool) -> None:
    """List the built-in scenarios. With NAME, print that scenario as TOML, with every default written out.

    NAME may also be the path of a TOML file; it is printed merged with its base.

    \b
    Examples:
      earshot scenarios
      earshot scenarios city
      earshot scenarios city > my-town.toml
    """
    import tomli_w

    from earshot.simulation.scenario.library import built_in, load_scenario

    if name is not None:
        table = load_scenario(name).table()
        click.echo(json.dumps(table, indent=2) if as_json else tomli_w.dumps(table), nl=as_json)
        return
    found = [load_scenario(scenario_name) for scenario_name in built_in()]
    if as_json:
        names = ("name", "description", "nodes", "medium", "duration_s")
        values = [
            (scenario.name, scenario.description, len(scenario.names()), scenario.medium.kind, scenario.duration_s)
            for scenario in found
        ]
        print_json([dict(zip(names, row, strict=True)) for row in values])
        return
    rows = [
        (scenario.name, len(scenario.names()), scenario.medium.kind, f"{scenario.duration_s:g} s", scenario.description)
        for scenario in found
    ]
    print_table(("scenario", "nodes", "medium", "duration", ""), rows)
