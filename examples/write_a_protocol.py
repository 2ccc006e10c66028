"""Write a protocol of your own, and try it on a table of three nodes.

A protocol is a class without a clock or a socket: it takes what happened and returns effects. This
one sends an event to its direct neighbours only.
"""

from dataclasses import dataclass
from random import Random

from earshot import Event, Filter
from earshot.protocols import (
    NOTHING,
    QUIET_CHANNEL,
    Channel,
    Effects,
    FixedLocation,
    LocalSubscriptions,
    Location,
    Machine,
    Packet,
    Subscription,
    Tabletop,
)


@dataclass(frozen=True)
class Settings:
    """This protocol has no settings."""


class Shout(Packet, frozen=True, tag="example-shout"):
    event: Event


class Neighbours(Machine):
    name = "neighbours"
    paper = "an example"
    Settings = Settings

    def __init__(
        self, node: str, settings: Settings, location: Location, random: Random, channel: Channel = QUIET_CHANNEL
    ) -> None:
        super().__init__(node, settings, location, random, channel)
        self.subscriptions = LocalSubscriptions()

    def subscribe(self, subscription: Subscription, now: float) -> Effects:
        self.subscriptions.add(subscription, now)
        return NOTHING

    def publish(self, event: Event, now: float) -> Effects:
        self.broadcast(Shout(event))
        return self.effects()

    def hear(self, packet: Packet, sender: str, now: float) -> Effects:
        if not isinstance(packet, Shout):
            return NOTHING
        for subscription in self.subscriptions.accepting(packet.event, self.viewer_at(packet.event, now)):
            self.deliver(packet.event, subscription)
        return self.effects()


nodes = [Neighbours(name, Settings(), FixedLocation(), Random(name)) for name in ("ann", "bob", "eve")]
table = Tabletop(nodes, links=[("ann", "bob"), ("bob", "eve")])
for node in ("bob", "eve"):
    table.do(node, "subscribe", Subscription("loud", node, Filter.where("speed > 10")))
table.do("ann", "publish", Event(type="Siren", content={"speed": 18}, id="ann-0", source="ann"))
table.run(until=1.0)

assert table.delivered == [("bob", "ann-0", "loud")]  # eve is two hops away
print("delivered:", table.delivered)
