"""Which types a node's subscriptions could be about."""

from __future__ import annotations

import pytest

from earshot import Filter
from earshot.protocols.common.wanted_types import WantedTypes, could_match


@pytest.mark.parametrize(
    ("filter", "siren", "news"),
    [
        (Filter.of_type("Siren"), True, False),
        (Filter.where("speed > 10", type="Siren"), True, False),
        (Filter.where("speed > 10"), True, True),
        (Filter.xpath("/Siren[speed > 10]"), True, False),
        (Filter.xpath("/*[speed > 10]"), True, True),
        (Filter.xpath("//speed"), True, True),
    ],
)
def test_a_filter_may_be_about_a_type_unless_it_names_another(filter: Filter, siren: bool, news: bool) -> None:
    assert (could_match(filter, "Siren"), could_match(filter, "News")) == (siren, news)


def test_a_type_is_wanted_while_one_subscription_stands() -> None:
    wanted = WantedTypes()
    wanted.add("a", Filter.of_type("Siren"))
    wanted.add("b", Filter.where("speed > 3", type="Siren"))
    wanted.add("c", Filter.xpath("/News"))
    seen = [("Siren" in wanted, "News" in wanted)]
    for subscription, filter in (
        ("a", Filter.of_type("Siren")),
        ("b", Filter.where("speed > 3", type="Siren")),
        ("c", Filter.xpath("/News")),
    ):
        wanted.remove(subscription, filter)
        seen.append(("Siren" in wanted, "News" in wanted))
    assert seen == [(True, True), (True, True), (False, True), (False, False)]
