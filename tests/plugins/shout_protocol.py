"""Shout: an event goes to direct neighbours only."""

from dataclasses import dataclass, field

from earshot import Event
from earshot.protocols import NOTHING, QUIET_CHANNEL, LocalSubscriptions, Machine, Packet


@dataclass(frozen=True)
class Settings:
    """What a shout needs."""

    delay_s: float = 0.0
    "How long a node waits before it shouts."
    reach_m: float = field(default=50.0, metadata={"scenario": "medium.range_m"})
    "How far it is heard."


class Shouted(Packet, frozen=True, tag="test-shout"):
    event: Event
    hops: int


class Shout(Machine):
    name = "shout"
    paper = "an example of the tests"
    Settings = Settings

    def __init__(self, node, settings, location, random, channel=QUIET_CHANNEL):
        super().__init__(node, settings, location, random, channel)
        self.subscriptions = LocalSubscriptions()

    def subscribe(self, subscription, now):
        self.subscriptions.add(subscription, now)
        return NOTHING

    def unsubscribe(self, subscription, now):
        self.subscriptions.remove(subscription)
        return NOTHING

    def publish(self, event, now):
        self.broadcast(Shouted(event, 1))
        return self.effects()

    def hear(self, packet, sender, now):
        if type(packet) is not Shouted:
            return NOTHING
        self.subscriptions.deliver_local(self, packet.event, 1, now)
        return self.effects()
