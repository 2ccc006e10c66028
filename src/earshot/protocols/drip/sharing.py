"""How brokers share events (section V.B.2): in multiple copies to multiple destinations, or as an epidemic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from earshot.protocols.drip.memory import Held
from earshot.protocols.drip.settings import DripSettings
from earshot.protocols.drip.subscribers import Subscriber


class Sharing(Protocol):
    """What a broker does with an event that is wanted elsewhere."""

    shares_subscriptions: bool
    "Whether brokers must know what is wanted in other regions."

    def at_source(self, held: Held, elsewhere: Sequence[Subscriber], broker: str) -> None:
        """This is the event's first broker; these subscribers of other regions may want it."""

    def at_receiver(self, held: Held, sender: str, destinations: tuple[str, ...], carry: bool, broker: str) -> None:
        """A copy has come from another broker."""

    def is_due(self, held: Held, peer: str, now: float) -> bool:
        """Whether a broker that can be talked to is to have the event now."""

    def carries(self, held: Held, peer: str, now: float) -> bool:
        """Whether that broker is to carry it on."""

    def is_done(self, held: Held) -> bool:
        """Whether nothing is left to do about it."""


class MultiCopyMultiDestination:
    """m nearby brokers carry copies to the l brokers nearest to each subscriber."""

    shares_subscriptions = True

    def __init__(self, settings: DripSettings) -> None:
        self.settings = settings

    def at_source(self, held: Held, elsewhere: Sequence[Subscriber], broker: str) -> None:
        new = destinations_of(elsewhere, broker, self.settings)
        if new:
            held.destinations = tuple(sorted({*held.destinations, *new}))
            held.copies = self.settings.copies
            held.pending |= set(new) - held.has if self.settings.source_carries else set()

    def at_receiver(self, held: Held, sender: str, destinations: tuple[str, ...], carry: bool, broker: str) -> None:
        held.has.add(sender)
        if carry:
            held.destinations = tuple(sorted({*held.destinations, *destinations}))
            held.pending |= set(destinations) - {broker} - held.has

    def is_due(self, held: Held, peer: str, now: float) -> bool:
        if held.is_on_its_way_to(peer, now):
            return False
        return peer in held.pending or self.carries(held, peer, now)

    def carries(self, held: Held, peer: str, now: float) -> bool:
        return held.copies > 0 and peer not in held.has and held.carriers_to_be(now) < held.copies

    def is_done(self, held: Held) -> bool:
        return not held.pending and len(held.carriers) >= held.copies


class Epidemic:
    """The paper's SF: every broker passes every event to every broker that lacks it."""

    shares_subscriptions = False

    def at_source(self, held: Held, elsewhere: Sequence[Subscriber], broker: str) -> None:
        pass

    def at_receiver(self, held: Held, sender: str, destinations: tuple[str, ...], carry: bool, broker: str) -> None:
        held.has.add(sender)

    def is_due(self, held: Held, peer: str, now: float) -> bool:
        return peer not in held.has and not held.is_on_its_way_to(peer, now)

    def carries(self, held: Held, peer: str, now: float) -> bool:
        return True

    def is_done(self, held: Held) -> bool:
        return False


def destinations_of(subscribers: Sequence[Subscriber], broker: str, settings: DripSettings) -> tuple[str, ...]:
    """The brokers whose regions the subscribers may be in, as the broker that matched the event knows them."""
    named = Counter(name for one in subscribers for name in one.record.nearest[: settings.nearest])
    del named[broker]
    if settings.destinations == "each":
        return tuple(sorted(named))
    most = sorted(named, key=lambda name: (-named[name], name))
    return tuple(sorted(most[: settings.nearest]))
