"""What `earshot identity` shows of its files and adds to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.cli import identity as module
from earshot.errors import UsageError
from earshot.live.identity import certificate_line, key_text, new_identity, read_identity

A, B, C, D, E = (key_text(bytes([number]) * 32) for number in range(5))
"Five keys, in the order of their bytes."


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(earshot, ["identity", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return call


def row(what: str, key: str, name: str = "", until: str = "") -> dict[str, str]:
    return {"what": what, "name": name, "key": key, "until": until}


def test_a_trust_file_is_shown_with_nodes_owners_and_what_is_revoked(run: Callable[..., str]) -> None:
    Path("trust").write_text(
        f"revoked {E}\nrevoked {B}\nrevoked {D}\nrevoked {A}\nowner {C}\nowner {D}\n"
        f"node bus {C} until 2027-01-31\nnode bus {B}\nnode far {C} until 9999-12-31T23:59:59+00:00\n"
    )
    rows = [
        row("node", C, "bus", "2027-01-31T00:00:00+00:00"), row("revoked node", B, "bus"),
        row("node", C, "far", "9999-12-31T23:59:59+00:00"), row("owner", C), row("revoked owner", D),
        row("revoked", A), row("revoked", E),
    ]  # fmt: skip
    assert json.loads(run("show", "trust", "--json")) == rows
    shown = run("show", "trust").splitlines()
    assert shown[0].split() == ["what", "name", "key", "until"]
    assert [" ".join(line.split()) for line in shown[2:]] == [
        " ".join(value for value in one.values() if value) for one in rows
    ]


def test_an_identity_is_shown_with_the_certificate_that_it_has_however_long_that_is_valid(
    run: Callable[..., str],
) -> None:
    car, owner = new_identity("car", "car.identity"), new_identity("owner", "owner.identity")
    key, text = key_text(car.public_key), Path("car.identity").read_text()
    assert json.loads(run("show", "car.identity", "--json")) == [row("identity", key, "car")]
    for until, shown in ((86_400, "1970-01-02T00:00:00+00:00"), (2**62, "9999-12-31T23:59:59+00:00")):
        Path("car.identity").write_text(text + certificate_line(owner.certify("car", car.public_key, until)) + "\n")
        assert json.loads(run("show", "car.identity", "--json")) == [
            row("identity", key, "car"), row("certificate", key, "car", shown),
        ]  # fmt: skip


def test_what_is_trusted_is_added_once_on_lines_of_its_own(run: Callable[..., str]) -> None:
    Path("trust").write_text(f"owner {A}")
    asked = ("trust", "trust", f"bus={B}", f"tram={C}", "--owner", A, "--owner", D, "--revoke", E)
    added = [f"node bus {B}", f"node tram {C}", f"owner {D}", f"revoked {E}"]
    assert run(*asked).splitlines() == added
    assert Path("trust").read_text().splitlines() == [f"owner {A}", *added]
    assert run(*asked) == ""
    assert Path("trust").read_text() == "\n".join([f"owner {A}", *added, ""])
    assert run("trust", "new", "--revoke", E) == Path("new").read_text() == f"revoked {E}\n"


def test_a_file_that_is_wrong_or_cannot_be_written_is_left_as_it_is(run: Callable[..., str]) -> None:
    Path("wrong").write_text("nobody\n")
    with pytest.raises(UsageError, match="wrong, line 1: write: node NAME KEY"):
        run("trust", "wrong", "--owner", A)
    assert Path("wrong").read_text() == "nobody\n"
    with pytest.raises(UsageError, match="cannot write none/trust: No such file"):
        run("trust", "none/trust", "--owner", A)
    with pytest.raises(UsageError, match="name what to trust or revoke"):
        run("trust", "wrong")
    with pytest.raises(UsageError, match="cannot read the file none: "):
        run("show", "none")


@pytest.mark.parametrize(("more", "days"), [((), 365), (("--days", "1"), 1)])
def test_a_certificate_is_for_a_name_and_a_key_and_ends_after_its_days(
    more: tuple[str, ...], days: int, run: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner: Any = new_identity("owner", "owner.identity")
    monkeypatch.setattr(module.time, "time", lambda: 1000.9)
    wanted = certificate_line(owner.certify("car", bytes([1]) * 32, 1000 + days * 24 * 3600))
    assert run("certify", "owner.identity", f"car={B}", *more) == f"{wanted}\n"


def test_a_new_key_goes_into_a_file_of_its_name_or_into_another(run: Callable[..., str]) -> None:
    for more, file in (((), "bus.identity"), (("--file", "other"), "other")):
        made = run("new", "bus", *more)
        assert made == f"bus={key_text(read_identity(file).public_key)}\n"
