"""`--settings FILE`: a protocol and its settings from a file, for nodes and for simulations."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from earshot.cli import earshot
from earshot.cli.nodes import make_node, node_options
from earshot.cli.options import SettingsFile, read_settings_file
from earshot.errors import UsageError

GOSSIP = 'protocol = "gossip"\n[settings]\nprobability = 0.5\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "advice.toml"


def test_a_file_has_a_protocol_its_settings_and_facts_about_the_network(file: Path):
    file.write_text('protocol = "steam"\n[settings]\nbeacon_interval_s = 0.5\n[network]\nrange_m = 250.0\n')
    assert read_settings_file(str(file)) == SettingsFile("steam", {"beacon_interval_s": 0.5}, {"range_m": 250.0})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("protocol = ", "not a file of settings"),
        ("[settings]\nprobability = 1", 'write protocol = "NAME"'),
        ('protocol = "gossip"\nsettings = 3', 'write protocol = "NAME"'),
        (GOSSIP + "[other]\nx = 1\n", 'write protocol = "NAME"'),
        ('protocol = "gosip"', "did you mean 'gossip'"),
        ('protocol = "gossip"\n[settings]\nprobability = 7', "probability"),
        ('protocol = "gossip"\n[settings]\nchance = 7', "chance"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_what_to_write(file: Path, text: str, words: str):
    file.write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        read_settings_file(str(file))
    assert str(file) in str(caught.value)


def test_a_missing_file_and_another_protocol_are_refused(file: Path):
    with pytest.raises(UsageError, match="no such file; `earshot advise` writes one"):
        read_settings_file(str(file))
    file.write_text(GOSSIP)
    with pytest.raises(UsageError, match="has settings for gossip, not for flooding"):
        read_settings_file(str(file), "flooding")


def test_simulate_takes_the_file_and_single_settings_go_before_it(file: Path):
    file.write_text(GOSSIP)
    asked = ["simulate", "base", "--set", "duration_s=30", "--settings", str(file), "--json"]
    reported = json.loads(CliRunner().invoke(earshot, asked).stdout)
    assert (reported["protocol"], reported["settings"]["probability"]) == ("gossip", 0.5)
    reported = json.loads(CliRunner().invoke(earshot, [*asked, "--setting", "probability=0.7"]).stdout)
    assert reported["settings"]["probability"] == 0.7


def test_simulate_needs_a_protocol_from_somewhere():
    answer = CliRunner().invoke(earshot, ["simulate", "base"])
    assert "name a protocol with --protocol" in str(answer.exception)


def test_a_node_takes_the_file_with_its_facts_about_the_network(file: Path, monkeypatch: pytest.MonkeyPatch):
    import click

    from earshot.live import node as live

    file.write_text('protocol = "steam"\n[settings]\nbeacon_interval_s = 0.5\n[network]\nrange_m = 250.0\n')
    made = []
    monkeypatch.setattr(live, "Node", lambda _, **given: made.append(given))

    @click.command()
    @node_options
    def node(**options):
        make_node(options)

    CliRunner().invoke(node, ["--settings", str(file), "--setting", "range_m=90"], catch_exceptions=False)
    assert (made[0]["protocol"], made[0]["settings"]) == ("steam", {"beacon_interval_s": 0.5, "range_m": "90"})
