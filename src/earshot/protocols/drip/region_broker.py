"""Beyond the paper: a broker that knows what every region wants, and sends an event straight to those regions.

It replaces section V.B.2's records and carried copies where every broker has a route to every other. One copy
serves several regions as far as their routes are the same (`region_copies.py`).
"""

from __future__ import annotations

import math

from earshot.protocols.common.local_subscriptions import RecentKeys
from earshot.protocols.drip import packets
from earshot.protocols.drip.broker import Action, Broker
from earshot.protocols.drip.packets import DripSettings, RegionInterest, RoutedPacket
from earshot.protocols.drip.region_interests import Interest, Interests, box_around, summary_of
from earshot.protocols.drip.regions import Regions
from earshot.protocols.drip.sharing import Sharing


class RegionBroker(Broker):
    """A broker that knows regions instead of the subscribers in them."""

    def __init__(self, node: str, settings: DripSettings, regions: Regions, brokered: RecentKeys, now: float) -> None:
        super().__init__(node, settings, regions, Sharing(settings), brokered, now)
        self.interests = Interests(settings, version=int(now * 1000) + 1)
        self.updated_at = -math.inf
        "When this region's interest was last looked at; at first with the first contact, not an interval later."

    def receive(self, packet: RoutedPacket, now: float) -> list[Action]:
        match packet:
            case RegionInterest():
                return self.on_interest(packet, now)
        return super().receive(packet, now)

    # The own region.

    def present_interest(self) -> Interest:
        """What the subscribers of this region, and this node itself, want."""
        here = [one for one in self.subscribers.table.values() if one.record.broker == self.node and one.filters]
        texts = (str(filter) for one in here for filter in one.filters)
        box = box_around((one.position for one in here), self.settings.place_margin_m)
        return Interest(summary_of(texts, self.settings.interest_filters), box)

    # Publication and notification.

    def on_published(self, packet: packets.PublishedEvent, now: float) -> list[Action]:
        """An event has come from its publisher: notify this region, and send it to the regions that want it."""
        event = packet.event
        if event.id in self.events.held:
            return []
        held, actions = self._hold(event, packet.hops - 1, now)
        if held is None:
            return actions
        held.at_source = True
        actions += self._notify(held, self.subscribers.matching(event))
        held.destinations = tuple(self.interests.wanting(event, sorted(self.regions.brokers)))
        if held.destinations:
            actions.append(packets.RegionCopy(event, held.hops, held.destinations))
        return actions

    def on_region_copy(self, copy: packets.RegionCopy, now: float) -> list[Action]:
        """An event from another region: notify this one."""
        if copy.event.id in self.brokered:
            return []
        held, actions = self._hold(copy.event, copy.hops, now)
        return actions if held is None else [*actions, *self._notify(held, self.subscribers.matching(copy.event))]

    # Interests, one contact at a time.

    def on_interest(self, interest: RegionInterest, now: float) -> list[Action]:
        """A region wants something else than before: events that it did not want until now go there."""
        actions: list[Action] = [packets.Confirmation(self.node, interest.origin, "", 1, "", interest.version)]
        if self.interests.learn(interest):
            wanted = self.interests.others[interest.origin]
            for held in self.events.held.values():
                is_new = held.at_source and held.until > now and interest.origin not in held.destinations
                if is_new and wanted.wants(held.event):
                    held.destinations += (interest.origin,)
                    actions.append(packets.RegionCopy(held.event, held.hops, (interest.origin,)))
        return actions

    def on_confirmation(self, confirmation: packets.Confirmation, now: float) -> list[Action]:
        if not confirmation.event_id:
            self.interests.on_confirmed(confirmation.origin, confirmation.version)
        return super().on_confirmation(confirmation, now)

    def _exchange(self, peers: list[str], now: float) -> list[Action]:
        """This region's interest for one broker that lacks it."""
        if now - self.updated_at >= self.settings.exchange_interval_s:
            self.updated_at = now
            self.interests.update(self.present_interest(), now)
        peer = self.interests.due_to(peers, now)
        if not peer:
            return []
        return [RegionInterest(self.node, peer, self._bridge_to(peer, now), 1, *self.interests.offer_to(peer, now))]
