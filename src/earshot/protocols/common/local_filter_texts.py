"""What a node's own applications want, by subscription and by text: the last hop of trees that ask by text."""

from __future__ import annotations

from earshot.events import Event
from earshot.filters import Subscription
from earshot.protocols.common.filter_answers import Answers, meets
from earshot.protocols.common.local_subscriptions import LocalSubscriptions
from earshot.protocols.machine import Machine


class OwnTexts(LocalSubscriptions):
    """The exact test, which for subscriptions that ask for no place is answered by what is known of the event."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        "By subscription, in order, its filter's text without terms about the consumer's place."
        self._plain = True
        "No subscription asks for a place: the texts' answers are all there is to know."

    def add(self, subscription: Subscription) -> None:
        super().add(subscription)
        self.texts[subscription.id] = str(subscription.filter.without_viewer_terms())
        self._changed()

    def remove(self, subscription_id: str) -> Subscription | None:
        known = super().remove(subscription_id)
        if known is not None:
            del self.texts[subscription_id]
            self._changed()
        return known

    def _changed(self) -> None:
        self.texts = dict(sorted(self.texts.items()))
        self._plain = all(one.region is None and not one.filter.needs_viewer for one in self.by_id.values())

    def tell_known(self, machine: Machine, event: Event, answers: Answers, hops: int, now: float) -> None:
        """As `deliver_local`, with the answers that are known already."""
        if not self._plain or event.area is not None:
            self.deliver_local(machine, event, hops, now)
            return
        for id, text in self.texts.items():
            if text in answers.met or meets(event, (text,), answers):
                machine.deliver(event, id, hops)
