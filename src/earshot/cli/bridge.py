"""`earshot bridge`: events to an MQTT broker and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from earshot.cli.nodes import first_done, make_node, node_options, run_node, time_limit, until_stopped
from earshot.cli.options import DELAY, default_option


@click.command()
@click.argument("broker", metavar="mqtt://[USER@]HOST[:PORT]")
@click.option("--map", "mapping_file", metavar="FILE.toml", help="Rules: [[to_mqtt]] and [[from_mqtt]] tables.")
@click.option("--out", "outward", multiple=True, metavar="'TYPE -> TOPIC'", help="Send events of a type to a topic.")
@click.option(
    "--in", "inward", multiple=True, metavar="'TOPIC -> TYPE'", help="Publish messages of a topic as events of a type."
)
@default_option(
    "--queue", default="bridge-queue.db", metavar="FILE", help="The file where messages wait while the broker is away."
)
@default_option("--queue-mb", default=256, type=click.IntRange(1), metavar="MB", help="The largest size of --queue.")
@default_option(
    "--network", default="earshot", metavar="NAME", help="This network's name, the same at all its bridges."
)
@click.option("--password-file", metavar="FILE", help="The user's password, on the first line.")
@click.option("--ca-file", metavar="FILE", help="For mqtts://: certificates to trust instead of the system's.")
@click.option("--certificate-file", metavar="FILE", help="For mqtts://: this client's certificate.")
@click.option("--certificate-key-file", metavar="FILE", help="For mqtts://: the certificate's key.")
@click.option("--for", "for_s", metavar="10s", type=DELAY, help="Stop after this time.")
@node_options
def bridge(
    broker: str,
    mapping_file: str | None,
    outward: tuple[str, ...],
    inward: tuple[str, ...],
    queue: str,
    queue_mb: int,
    network: str,
    password_file: str | None,
    ca_file: str | None,
    certificate_file: str | None,
    certificate_key_file: str | None,
    for_s: float | None,
    **options: Any,
) -> None:
    """Bridge the network to an MQTT broker: events to topics, and messages to events.

    \b
    Examples:
      earshot bridge mqtt://localhost --out 'Siren -> city/sirens/{source}' --interface wlan0
      earshot bridge mqtt://localhost --in 'city/closures/+ -> Closure' --interface wlan0
      earshot bridge mqtts://office@broker.example:8883 --map office.toml --password-file secret
    \b
    A rule of office.toml:
      [[to_mqtt]]
      events = "Siren: speed > 10"        # a type, or a filter
      topic = "city/sirens/{source}"      # {source}, {type}, {id}, {content.NAME}
      retain = true                       # the broker keeps the last message of each topic
    \b
      [[from_mqtt]]
      topic = "city/closures/+"           # + for one level, # for the rest
      type = "Closure"
      within = "circle:500m"              # the area of the events
      at_fields = ["x_m", "y_m"]          # ... around this position in the message

    While the broker is away, events wait in --queue, also when the bridge is stopped or killed. At quality of
    service 1, the default, no event is lost; an event may come twice. docs/bridge.md says more.
    """
    from earshot.live.bridge import Bridge, MqttBroker, read_mapping
    from earshot.live.bridge.bridge import mark_of

    mapping = read_mapping(mapping_file, outward, inward)
    at = MqttBroker.at(
        broker, password_file, ca_file=ca_file, certificate_file=certificate_file, key_file=certificate_key_file
    )
    options["name"] = f"{mark_of(at)}-{options['name'] or Path(queue).stem}"

    async def work() -> None:
        async with until_stopped() as stopped, make_node(options) as node:
            joined = Bridge(node, at, mapping, queue, network=network, queue_bytes=queue_mb * 1_000_000)
            async with joined:
                if not options["as_json"]:
                    click.echo(f"{node.name} bridges to {at}; {joined.waiting:,} messages wait from an earlier run")
                await first_done(stopped.wait(), *time_limit(for_s))
            counts = {**joined.counts, "waiting": joined.waiting}
        if options["as_json"]:
            click.echo(json.dumps({"node": node.name, "broker": str(at), **counts}))
        else:
            other = [
                f"{count:,} {what}" for what, count in sorted(counts.items()) if what not in ("in", "out") and count
            ]
            moved = f"{counts.get('out', 0):,} events out, {counts.get('in', 0):,} in"
            click.echo("; ".join([moved, ", ".join(other)] if other else [moved]))

    run_node(work())
