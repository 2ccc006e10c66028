"""Credentials: files that are read again when they change, and wrong ones that change nothing."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from earshot.errors import UsageError
from earshot.live.credentials import Credentials
from earshot.live.identity import new_identity
from earshot.live.private_files import WatchedFile, make_private, readable_by_others, warn_if_readable
from earshot.live.signatures import trust_line

FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))


def write(path: Path, text: str) -> Path:
    """Write the file so that its time differs from every earlier one."""
    later = path.stat().st_mtime_ns + 1_000_000 if path.exists() else None
    path.write_text(text)
    if later is not None:
        os.utime(path, ns=(later, later))
    return path


def test_keys_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    file = write(tmp_path / "key", FIRST.hex())
    credentials = Credentials("a", file)
    assert (credentials.keys, credentials.reread()) == ((FIRST,), False)
    write(file, f"{SECOND.hex()}\n{FIRST.hex()}\n")
    assert (credentials.reread(), credentials.keys, credentials.reread()) == (True, (SECOND, FIRST), False)
    write(file, f"{SECOND.hex()}\n{FIRST.hex()} \n")
    assert credentials.reread() is False, "the file has changed, and its keys have not"


def test_a_wrong_file_is_reported_and_its_earlier_content_still_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path / "key", FIRST.hex())
    credentials = Credentials("a", file)
    write(file, "no key")
    with caplog.at_level(logging.WARNING, "earshot.live"):
        assert credentials.reread() is False
    assert credentials.keys == (FIRST,)
    said = caplog.messages[-1]
    assert said.startswith(f"the key file {file} must hold one or two keys")
    assert said.endswith(f"; the earlier content of {file} still holds")


def test_an_identity_belongs_to_the_node_of_its_name(tmp_path: Path) -> None:
    new_identity("a", tmp_path / "identity")
    found = Credentials("a", identity=tmp_path / "identity").identity
    assert found is not None
    assert found.name == "a"
    with pytest.raises(UsageError, match="belongs to 'a', and this node is 'b'; give the node that name"):
        Credentials("b", identity=tmp_path / "identity")


def test_a_trust_file_makes_a_verifier_and_signatures_cannot_be_required_without_one(tmp_path: Path) -> None:
    identity = new_identity("a", tmp_path / "identity")
    file = write(tmp_path / "trust", trust_line("node", identity.public_key, "a") + "\n")
    assert Credentials("a", trust=file).verifier is not None
    assert Credentials("a").verifier is None
    with pytest.raises(UsageError, match="require_signed needs a trust file"):
        Credentials("a", require_signed=True)


def test_a_private_file_is_its_owners_alone_and_never_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "key"
    make_private(file, b"secret")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"secret", 0o600)
    with pytest.raises(UsageError, match="exists; remove it first, or name another file"):
        make_private(file, b"other")
    with pytest.raises(UsageError, match=r"cannot write .*: No such file or directory"):
        make_private(tmp_path / "none" / "key", b"")
    for mode, expected in ((0o600, False), (0o640, True), (0o604, True), (0o622, False)):
        file.chmod(mode)
        assert readable_by_others(file) is expected, oct(mode)
    assert readable_by_others(tmp_path / "gone") is False
    with caplog.at_level(logging.WARNING, "earshot.live"):
        warn_if_readable(file, "the key file")
        assert caplog.messages == []
        file.chmod(0o644)
        warn_if_readable(file, "the key file")
    assert caplog.messages == [f"the key file {file} can be read by other users; run: chmod 600 {file}"]


def test_a_file_that_is_missing_has_not_changed(tmp_path: Path) -> None:
    file = write(tmp_path / "key", "1")
    watched = WatchedFile(file)
    assert watched.changed() is False
    file.unlink()
    assert watched.changed() is False
    file.write_text("22")
    assert (watched.changed(), watched.changed()) == (True, False)
