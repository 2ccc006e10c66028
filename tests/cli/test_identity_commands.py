import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.errors import UsageError
from earshot.live.identity import read_identity
from earshot.live.signatures import read_trust


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(earshot, ["identity", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output.strip()

    return call


def test_a_key_is_made_shown_trusted_and_revoked(run) -> None:
    public = run("new", "ambulance-7")
    name, key = public.split("=")
    assert (name, stat.S_IMODE(os.stat("ambulance-7.identity").st_mode)) == ("ambulance-7", 0o600)
    assert json.loads(run("show", "ambulance-7.identity", "--json")) == [
        {"what": "identity", "name": "ambulance-7", "key": key, "until": ""}
    ]
    assert run("trust", "net.trust", public, "--until", "2030-01-31") == f"node {name} {key} until 2030-01-31"
    assert run("trust", "net.trust", public, "--until", "2030-01-31") == ""
    assert run("trust", "net.trust", "--revoke", key) == f"revoked {key}"
    assert json.loads(run("show", "net.trust", "--json")) == [
        {"what": "revoked node", "name": name, "key": key, "until": "2030-01-31T00:00:00+00:00"}
    ]
    assert read_identity("ambulance-7.identity").public_key in read_trust("net.trust").revoked
    private = Path("ambulance-7.identity").read_text().split()[-1]
    assert private not in run("show", "ambulance-7.identity")
    with pytest.raises(UsageError, match="exists"):
        run("new", "ambulance-7")


def test_an_owner_certifies_a_node(run) -> None:
    public, owner = run("new", "car"), run("new", "owner")
    line = run("certify", "owner.identity", public, "--days", "10")
    with open("car.identity", "a") as file:
        file.write(line + "\n")
    assert [row["what"] for row in json.loads(run("show", "car.identity", "--json"))] == ["identity", "certificate"]
    run("trust", "net.trust", "--owner", owner.split("=")[1])
    assert read_trust("net.trust").owners == (read_identity("owner.identity").public_key,)


def test_a_node_without_its_key_is_refused_and_the_error_shows_how_to_write_both(run) -> None:
    with pytest.raises(UsageError, match=r"write NAME=KEY, as in amb-7=ed25519:\.\.\., got 'nokey'"):
        run("trust", "net.trust", "nokey")


def test_a_file_that_cannot_be_read_is_named_with_the_reason(run) -> None:
    with pytest.raises(UsageError, match=r"^cannot read the file missing: No such file or directory; check the path$"):
        run("show", "missing")
    with open("picture", "wb") as file:
        file.write(b"\xff\xd8\xff")
    with pytest.raises(UsageError, match=r"^cannot read the identity picture: it is not a text file$"):
        run("certify", "picture", "car=" + run("new", "car").split("=")[1])


@pytest.mark.parametrize(
    "arguments",
    [
        ["trust", "net.trust"],
        ["trust", "net.trust", "--owner", "ed25519:x"],
        ["show", "missing"],
        ["certify", "missing", "a=b"],
        ["new", "two words"],
    ],
)
def test_what_cannot_be_done_is_explained(run, arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        run(*arguments)
