"""Drop reasons: one word for tables, one sentence for people."""

import re

from earshot.records.drop_reasons import DropReason, sentence_of


def test_every_reason_is_a_word_for_tables_and_a_sentence_for_people() -> None:
    for reason in DropReason:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", str(reason)), reason
        assert reason.sentence[0].isupper(), reason
        assert reason.sentence.endswith("."), reason


def test_no_two_reasons_share_a_word_or_a_sentence() -> None:
    assert len({str(reason) for reason in DropReason.__members__.values()}) == len(DropReason.__members__)
    assert len({reason.sentence for reason in DropReason}) == len(DropReason)


def test_a_word_of_another_version_is_its_own_sentence() -> None:
    assert sentence_of("expired") == "The lifespan of the event had ended."
    assert sentence_of("eaten-by-a-cow") == "eaten-by-a-cow"
