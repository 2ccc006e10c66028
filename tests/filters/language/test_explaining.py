import pytest
from hypothesis import given, settings
from where_cases import events, viewers, wheres
from xpath_cases import documents, queries

from earshot import Event, Filter, Position, Velocity, Viewer
from sizes import sized

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

CD = Event(
    type="CD",
    content={"category": "pop", "price": 25.5, "live": False, "note": "x" * 100},
    position=Position(0, 0),
    velocity=Velocity(-3, 0),
)
VIEWER = Viewer(Position(350, 0))


@pytest.mark.parametrize(
    ("filter", "reported"),
    [
        ("price > 20", "it matches: price > 20 held (price is 25.5)"),
        ("price < 20", "it does not match: price < 20 failed (price is 25.5)"),
        ("cost < 20", "it does not match: cost < 20 failed (there is no cost)"),
        (
            'price > 20 and category = "jazz"',
            'it does not match: category = "jazz" failed (category is "pop"); price > 20 held (price is 25.5)',
        ),
        ('price < 20 or category = "pop"', 'it matches: category = "pop" held (category is "pop")'),
        (
            "price < 20 or cost",
            "it does not match: none of 2 alternatives held: cost failed (there is no cost), "
            "price < 20 failed (price is 25.5)",
        ),
        ("not price > 20", "it does not match: not(price > 20) failed (price > 20 held (price is 25.5))"),
        ("not cost", "it matches: not(cost) held (cost failed (there is no cost))"),
        ("live", 'it does not match: live failed (live is "false")'),
        ('note = "y"', f'it does not match: note = "y" failed (note is "{"x" * 57}...")'),
        ("true", "it matches: every event meets true"),
        ("false", "it does not match: no event meets false"),
        ("Siren: true", "it does not match: its type is CD, not Siren"),
        ("CD: price", "it matches: its type is CD; price held (price is 25.5)"),
        ("within 200 m", "it does not match: within 200 m failed (the distance is 350 m)"),
        ("approaching", "it does not match: approaching failed (the distance increases by 3 m/s)"),
        ("receding", "it matches: receding held (the distance increases by 3 m/s)"),
        ("inside circle(9, 0, 3)", "it does not match: inside circle(9, 0, 3) failed (the event is at 0,0)"),
    ],
)
def test_an_explanation_names_the_terms_and_what_was_found(filter: str, reported: str) -> None:
    assert Filter.parse(filter).explain(CD, VIEWER) == reported


def test_an_explanation_is_one_line() -> None:
    event = Event(type="A", content={"x": "one\ntwo\x1b[2J"})
    explained = Filter.where("x = 'b\r\nc'").explain(event)
    assert explained == 'it does not match: x = "b\\r\\nc" failed (x is "one\\ntwo\\x1b[2J")'
    other = Filter.of_type("B\nC").explain(event)
    assert other == "it does not match: its type is A, not B\\nC"


def test_a_term_about_the_consumer_says_that_it_needs_one() -> None:
    assert Filter.where("within 200 m").explain(CD) == (
        "it does not match: within 200 m failed (that needs the consumer's position, and none was given)"
    )


def test_an_event_without_a_position_is_reported_so() -> None:
    assert Filter.where("approaching").explain(Event(type="CD"), VIEWER) == (
        "it does not match: approaching failed (the event has no position)"
    )


def test_two_that_keep_their_distance_are_reported_so() -> None:
    assert Filter.where("approaching").explain(CD, Viewer(Position(9, 0), Velocity(-3, 0))) == (
        "it does not match: approaching failed (the distance stays the same)"
    )


DOCUMENT = Event.from_xml(
    "<CD id='7'><category>jazz</category><price>25</price><price>31</price>"
    "<tracks><t n='1'>So What</t><t n='2'>Blue in Green</t></tracks></CD>"
)


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("/DVD", "there is no DVD"),
        ("/CD/artist", "CD has no artist"),
        ("/CD/artist/name", "CD has no artist"),
        ("//nothing//here", "there is no .//nothing"),
        ('/CD[category="jazz"][price<20]', "price < 20 failed (price is 25 and 31)"),
        ("/CD[artist = 'x']", 'artist = "x" failed (there is no artist)'),
        ("/CD[tracks/t/@n = 9]", "tracks/t/@n = 9 failed (tracks/t/@n is 1 and 2)"),
        ("/CD/tracks/t[@n=3]", "of 2 CD/tracks/t, none passed; in the first, @n = 3 failed (@n is 1)"),
        ("/CD/tracks/t[3]", "there are 2 CD/tracks/t"),
        (
            "/CD/tracks[t[. = 'x']]",
            't[. = "x"] failed (of 2 t, none passed; in the first, . = "x" failed (it is "So What"))',
        ),
        ("/CD[not(price)]", "not(price) failed (price held)"),
        ("/CD[starts-with(category, 'p')]", 'starts-with(category, "p") failed (category is "jazz")'),
    ],
)
def test_a_path_tells_how_far_it_came(filter: str, found: str) -> None:
    explained = Filter.xpath(filter)
    assert explained.explain(DOCUMENT) == f"it does not match: {explained} failed ({found})"


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("count(//Item) > 3", "failed (count(//Item) is 2)"),
        ("count(//Item) = 2", "held (count(//Item) is 2)"),
        ("count(//Item) = count(//p)", "failed (count(//Item) is 2 and count(//p) is 1)"),
        ("//Item/ancestor::X/p", "failed (//Item has no ancestor::X)"),
        ("/O/Item/parent::O/q", "failed (/O/Item/parent::O has no q)"),
    ],
)
def test_an_expression_tells_its_operands_or_the_first_step_that_selects_nothing(filter: str, found: str) -> None:
    event = Event.from_xml("<O><Item n='1'><p>2</p></Item><Item n='2'/></O>")
    assert Filter.xpath(filter).explain(event).endswith(f"{filter} {found}")


def test_a_path_that_matched_tells_what_its_last_predicates_found() -> None:
    assert Filter.xpath("/CD[@id = 7][price > 30]").explain(DOCUMENT) == (
        "it matches: /CD[@id = 7][price > 30] held (@id = 7 held (@id is 7); price > 30 held (price is 25 and 31))"
    )
    assert Filter.xpath("/CD/tracks").explain(DOCUMENT) == "it matches: /CD/tracks held"


@settings(max_examples=sized(150, 2_000))
@given(wheres, events, viewers)
def test_every_explanation_begins_with_the_verdict(text: str, event: Event, viewer: Viewer | None) -> None:
    filter = Filter.where(text)
    verdict = "it matches: " if filter.matches(event, viewer) else "it does not match: "
    assert filter.explain(event, viewer).startswith(verdict)


@settings(max_examples=sized(150, 2_000))
@given(queries, documents)
def test_every_path_can_be_explained(text: str, document: str) -> None:
    filter, event = Filter.xpath(text), Event.from_xml(document)
    verdict = "it matches: " if filter.matches(event) else "it does not match: "
    assert filter.explain(event).startswith(verdict)


def test_a_bare_type_name_says_what_it_means() -> None:
    reported = Filter.parse("Hazard").explain(Event(type="Hazard", content={"speed": 3}))
    assert 'Hazard alone asks for a value of that name; the event type is Filter.of_type("Hazard")' in reported
    assert "alone" not in Filter.parse("Hazard").explain(Event(type="Hazard", content={"Hazard": 1}))


TRIP = Event(
    type="Trip",
    content={
        "tags": ["a", "b", "c", "d"], "three": ["a", "b", "c"], "short": "s" * 60, "long": "s" * 61, "below": -5,
        "dots": "1.2.3", "half": "5.",
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ('tags = "x"', 'tags is "a" and "b" and "c" and 1 more'),
        ('three = "x"', 'three is "a" and "b" and "c"'),
        ('short = "x"', f'short is "{60 * "s"}"'),
        ('long = "x"', f'long is "{57 * "s"}..."'),
        ("below > 0", "below is -5"),
        ('dots = "x"', 'dots is "1.2.3"'),
        ('half = "x"', "half is 5."),
    ],
)
def test_three_values_are_shown_numbers_without_quotes_and_long_texts_cut(filter: str, found: str) -> None:
    assert Filter.parse(filter).explain(TRIP) == f"it does not match: {filter} failed ({found})"


def test_three_alternatives_are_reported_and_the_others_counted() -> None:
    def reported(count: int) -> str:
        return Filter.parse(" or ".join(f"w{number} = 1" for number in range(count))).explain(TRIP)

    first = ", ".join(f"w{number} = 1 failed (there is no w{number})" for number in range(3))
    assert reported(3) == f"it does not match: none of 3 alternatives held: {first}"
    assert reported(5) == f"it does not match: none of 5 alternatives held: {first}, and 2 more"


def test_inner_terms_are_reported_in_parentheses() -> None:
    found = Filter.parse("below < 0 and (half or short)").explain(TRIP)
    assert found == "it matches: below < 0 held (below is -5); (half held (half is 5.))"
    found = Filter.parse("below > 0 or (half and nothing)").explain(TRIP)
    assert found == (
        "it does not match: none of 2 alternatives held: below > 0 failed (below is -5), "
        "(nothing failed (there is no nothing); half held (half is 5.))"
    )


def test_the_steps_of_a_path_with_several_predicates_are_reported_one_by_one() -> None:
    def reported(path: str) -> str:
        return Filter.xpath(path).explain(DOCUMENT).partition("failed (")[2]

    assert reported("/CD/tracks/t[@n > 0][. = 'x']") == (
        'of 2 CD/tracks/t, none passed; in the first, . = "x" failed (it is "So What"))'
    )
    assert reported("/CD/tracks/t[2][. = 'x']") == '. = "x" failed (it is "Blue in Green"))'
    assert reported("/CD/category[2]") == "there is 1 CD/category)"
    assert Filter.xpath("/CD/tracks/t[2][@n = 2]").explain(DOCUMENT) == (
        "it matches: /CD/tracks/t[2][@n = 2] held (@n = 2 held (@n is 2))"
    )


@pytest.mark.parametrize(
    ("speeds", "reported"),
    [
        ((7, 9), "of 2, none; in the first, speed < 3 failed (speed is 7)"),
        ((7, 2), "of 2, one: speed < 3 held (speed is 2)"),
        ((7,), "of 1, none; in the first, speed < 3 failed (speed is 7)"),
        ((), "there is no lanes"),
    ],
)
def test_of_several_items_the_one_that_met_the_condition_is_reported_else_the_first(
    speeds: tuple[int, ...], reported: str
) -> None:
    event = Event("T", {"lanes": [{"speed": speed} for speed in speeds]})
    assert f"({reported})" in str(Filter.where("any(lanes, speed < 3)").explain(event))
