"""Identity files and trust files: what each line means, and what a wrong one says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import pytest

from earshot.errors import UsageError
from earshot.live.identity import (
    Identity,
    certificate_line,
    checked_name,
    decode_certificate,
    key_text,
    new_identity,
    parse_key,
    parse_named_key,
    read_identity,
)
from earshot.live.signatures import TrustFile, parse_until, read_trust, trust_line

ZEROS = "ed25519:" + "A" * 43
"32 bytes of zeros: 256 bits are 42 letters of 6 bits and one of 4."


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return new_identity("car", tmp_path / "car.identity")


def test_a_name_of_two_words_in_an_identity_is_named_and_words_alone_are_left_out(
    identity: Identity, tmp_path: Path
) -> None:
    path = tmp_path / "car.identity"
    text = path.read_text()
    path.write_text("\nalone\n" + text)
    assert (read_identity(path).name, read_identity(path).public_key) == ("car", identity.public_key)
    path.write_text(text.replace("name car", "name my car"))
    with pytest.raises(UsageError, match="has 1 to 128 characters without spaces, got 'my car'"):
        read_identity(path)


@pytest.mark.parametrize("line", ["private " + "A" * 40, "private " + "A" * 44, "private !", "nothing"])
def test_an_identity_without_a_key_of_32_bytes_says_how_to_make_one(tmp_path: Path, line: str) -> None:
    path = tmp_path / "file"
    path.write_text(f"name car\n{line}\n")
    path.chmod(0o600)
    with pytest.raises(UsageError) as caught:
        read_identity(path)
    assert str(caught.value) == f"{path} holds no identity; make one with: earshot identity new NAME --file FILE"


def test_an_identity_has_the_certificate_of_its_file_if_that_is_for_its_name_and_key(
    identity: Identity, tmp_path: Path
) -> None:
    path, owner = tmp_path / "car.identity", new_identity("owner", tmp_path / "owner.identity")
    text = path.read_text()
    assert read_identity(path).certificate == b""
    fitting = owner.certify("car", identity.public_key, 50)
    path.write_text(text + certificate_line(fitting))
    assert decode_certificate(read_identity(path).certificate) == fitting
    for wrong in (
        certificate_line(owner.certify("bus", identity.public_key, 50)),
        certificate_line(owner.certify("car", owner.public_key, 50)),
        "certificate none",
    ):
        path.write_text(text + wrong)
        with pytest.raises(UsageError, match=f"certify OWNER_FILE car={re.escape(key_text(identity.public_key))}"):
            read_identity(path)


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [("a", True), ("x" * 128, True), ("", False), ("x" * 129, False), ("a b", False), ("a\n", False), (" a", False),
     ("#a", False), ("a#", True), ("\N{LATIN SMALL LETTER E WITH ACUTE}", True), ("a\x07", False)],
)  # fmt: skip
def test_a_name_is_one_printable_word_of_1_to_128_characters_that_is_no_comment(name: str, is_valid: bool) -> None:
    if is_valid:
        assert checked_name(name) == name
    else:
        with pytest.raises(UsageError, match="has 1 to 128 characters without spaces"):
            checked_name(name)


@pytest.mark.parametrize("text", [ZEROS[:-1], f"{ZEROS}A", ZEROS.removeprefix("ed25519:"), "rsa:" + "A" * 43, ""])
def test_a_key_is_32_bytes_after_its_kind(text: str) -> None:
    assert parse_key(ZEROS) == bytes(32)
    with pytest.raises(UsageError, match="is not a public key"):
        parse_key(text)


def test_a_named_key_has_a_name_before_its_last_sign() -> None:
    assert parse_named_key(f"a={ZEROS}") == ("a", bytes(32))
    for text, reason in ((ZEROS, "write NAME=KEY"), (f"={ZEROS}", "has 1 to 128 characters")):
        with pytest.raises(UsageError, match=reason):
            parse_named_key(text)


def test_a_trust_file_has_keys_by_name_owners_and_revoked_keys(tmp_path: Path) -> None:
    ones, twos = (bytes([number] * 32) for number in (1, 2))
    path = tmp_path / "trust"
    path.write_text(
        f"  # node never {ZEROS}\n\nnode car#1 {ZEROS}\n"
        + f"node car {key_text(ones)} until 1970-01-02\nnode car {key_text(twos)}\n"
        + f"owner {key_text(twos)}\nowner {key_text(ones)}\nrevoked {ZEROS}\n"
    )
    assert read_trust(path) == TrustFile(
        {"car#1": {bytes(32): inf}, "car": {ones: 86_400.0, twos: inf}}, (twos, ones), frozenset({bytes(32)})
    )


@pytest.mark.parametrize(
    ("text", "time"),
    [("1970-01-02", 86_400.0), ("1970-01-01T00:00:05", 5.0), ("1970-01-01T02:00:00+02:00", 0.0),
     ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC).timestamp())],
)  # fmt: skip
def test_a_time_without_a_zone_is_utc(text: str, time: float) -> None:
    assert parse_until(text) == time
    with pytest.raises(UsageError, match="'tomorrow' is not a date; write it as 2027-01-31"):
        parse_until("tomorrow")


def test_a_line_of_a_trust_file_has_only_what_its_kind_needs() -> None:
    zeros = bytes(32)
    assert trust_line("owner", zeros) == f"owner {ZEROS}"
    assert trust_line("revoked", zeros, "car") == f"revoked {ZEROS}", "a revoked key has no name"
    assert trust_line("node", zeros, "car") == f"node car {ZEROS}"
    assert trust_line("node", zeros, "car", "2027-01-31") == f"node car {ZEROS} until 2027-01-31"
    with pytest.raises(UsageError, match="is not a date"):
        trust_line("node", zeros, "car", "tomorrow")
    with pytest.raises(UsageError, match="has 1 to 128 characters"):
        trust_line("node", zeros)
