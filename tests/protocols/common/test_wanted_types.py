"""Which types a node's subscriptions could be about."""

from __future__ import annotations

import pytest

from earshot import Filter
from earshot.filters import Subscription
from earshot.protocols.common.local_subscriptions import LocalSubscriptions, could_match


@pytest.mark.parametrize(
    ("filter", "siren", "news"),
    [
        (Filter.of_type("Siren"), True, False),
        (Filter.where("speed > 10", type="Siren"), True, False),
        (Filter.where("speed > 10"), True, True),
        (Filter.xpath("/Siren[speed > 10]"), True, False),
        (Filter.xpath("/*[speed > 10]"), True, True),
        (Filter.xpath("//speed"), True, True),
        (Filter.of_type("Siren/**"), True, False),
        (Filter.xpath("/Siren[speed > 10] and /*/limit"), True, False),
        (Filter.xpath("/Siren and /News"), False, False),
        (Filter.xpath("/Siren or /News"), True, True),
        (Filter.xpath("/Siren or //speed"), True, True),
        (Filter.xpath("/Siren or /Alarm"), True, False),
    ],
)
def test_a_filter_may_be_about_a_type_unless_it_names_another(filter: Filter, siren: bool, news: bool) -> None:
    assert (could_match(filter, "Siren"), could_match(filter, "News")) == (siren, news)


def test_a_type_is_wanted_while_one_subscription_stands() -> None:
    local = LocalSubscriptions()
    local.add(Subscription("a", "node", Filter.of_type("Siren")), now=0.0)
    local.add(Subscription("b", "node", Filter.where("speed > 3", type="Siren")), now=0.0)
    local.add(Subscription("c", "node", Filter.xpath("/News")), now=0.0)
    seen = [(local.could_match("Siren"), local.could_match("News"))]
    for subscription in ("a", "b", "c"):
        local.remove(subscription)
        seen.append((local.could_match("Siren"), local.could_match("News")))
    assert seen == [(True, True), (True, True), (False, True), (False, False)]


def test_answers_are_remembered_for_1024_types_at_a_time() -> None:
    local = LocalSubscriptions()
    local.add(Subscription("a", "node", Filter.of_type("Siren")), now=0.0)
    for number in range(1024):
        assert not local.could_match(f"Type{number}")
    assert (local.could_match("Type7"), len(local._could_match)) == (False, 1024)
    assert (local.could_match("Siren"), local._could_match) == (True, {"Siren": True})
