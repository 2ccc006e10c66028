"""Names of other people's code: what they load, what they refuse, and what is known of it afterwards."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from outside import SHOUT

from earshot.errors import UnknownName
from earshot.plugins import PluginError, install, located, plugin_digest, shipment
from earshot.protocols.catalogue import PROTOCOLS, protocol, protocol_name
from earshot.simulation import load_scenario, run


@pytest.fixture
def shout(tmp_path: Path) -> Path:
    file = tmp_path / "shout.py"
    file.write_text(SHOUT)
    return file


def test_a_class_in_a_file_is_a_protocol(shout: Path) -> None:
    name = f"{shout}:Shout"
    machine = protocol(name)
    assert (machine.name, protocol_name(machine)) == ("shout", name)
    result = run(load_scenario("base").with_({"duration_s": 60.0}), name, seed=3)
    assert result.protocol == name
    assert result.settings["reach_m"] == load_scenario("base").medium.range_m
    assert sum(count.sends for count in result.counts.packets.values()) == len(result.published) > 0


def test_a_class_itself_is_a_protocol(shout: Path) -> None:
    machine = protocol(f"{shout}:Shout")
    short = load_scenario("base").with_({"duration_s": 60.0})
    assert run(short, machine, seed=3).deliveries.time == run(short, f"{shout}:Shout", seed=3).deliveries.time


def test_a_class_in_a_module_is_a_protocol(shout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shout.parent / "shouting").mkdir()
    (shout.parent / "shouting" / "__init__.py").write_text("")
    (shout.parent / "shouting" / "machine.py").write_text(SHOUT.replace("test-shout", "test-shouting"))
    monkeypatch.syspath_prepend(str(shout.parent))
    assert protocol("shouting.machine:Shout").paper == "an example of the tests"
    (loaded,) = [one for one in shipment() if one.name == "shouting.machine:Shout"]
    assert [source.module for source in loaded.code.sources] == ["shouting", "shouting.machine"]


def test_a_changed_file_is_loaded_again_and_its_digest_changes(shout: Path) -> None:
    name = f"{shout}:Shout"
    first = protocol(name)
    digest = plugin_digest("protocols", name)
    assert protocol(name) is first
    shout.write_text(SHOUT.replace("an example of the tests", "another example"))
    assert protocol(name).paper == "another example"
    assert plugin_digest("protocols", name) not in ("", digest)


def test_all_classes_of_a_changed_file_are_loaded_again(shout: Path) -> None:
    shout.write_text(f"{SHOUT}\n\nclass Louder(Shout):\n    pass\n")
    names = [f"{shout}:Shout", f"{shout}:Louder"]
    first, louder = map(protocol, names)
    assert issubclass(louder, first)
    assert shipment_of(names) == set(names)
    shout.write_text(f"{SHOUT}\n\nclass Louder(Shout):\n    paper = 'another example'\n")
    again = protocol(names[0])
    assert shipment_of(names) == {names[0]}, "the other class is still the old code: it is loaded when it is asked for"
    assert (protocol(names[1]).paper, issubclass(protocol(names[1]), again)) == ("another example", True)


def shipment_of(names: list[str]) -> set[str]:
    """Which of these a worker would be sent."""
    return {one.name for one in shipment()} & set(names)


def test_a_digest_does_not_depend_on_where_the_file_lies(shout: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "shout.py"
    other.write_text(SHOUT)
    names = [f"{shout}:Shout", f"{other}:Shout"]
    assert len({protocol(name) for name in names}) == 2
    assert len({plugin_digest("protocols", name) for name in names}) == 1


def test_a_module_that_a_plug_in_imports_from_beside_it_belongs_to_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loudness_of_shouts.py").write_text("LOUD = 3\n")
    file = tmp_path / "shouter.py"
    file.write_text(SHOUT.replace("from earshot import Event", "from earshot import Event\nimport loudness_of_shouts"))
    with pytest.raises(PluginError, match="loaded alone: put its folder on PYTHONPATH"):
        protocol(f"{file}:Shout")
    monkeypatch.syspath_prepend(str(tmp_path))
    protocol(f"{file}:Shout")
    (loaded,) = [one for one in shipment() if one.name == f"{file}:Shout"]
    assert len(loaded.code.sources) == 2
    assert loaded.code.sources[0].text == b"LOUD = 3\n"


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        (SHOUT, "shout.py", r"lacks the class; write .*shout.py:Shout"),
        (SHOUT, "shout.py:Shuot", "there is no 'Shuot' in it; did you mean 'Shout'"),
        (SHOUT, "shout.py:Settings", "is not a protocol: derive a class from earshot.protocols.Machine"),
        (SHOUT, "shout.py:Sh out", "write module:Class or ./file.py:Class"),
        (SHOUT, "absent.py:Shout", "no such file or directory; check the path"),
        (SHOUT.replace("Settings = Settings", "Settings = dict"), "shout.py:Shout", "write a frozen dataclass"),
        (SHOUT.replace("(frozen=True)", ""), "shout.py:Shout", "must be frozen"),
        (SHOUT.replace('    name = "shout"\n', ""), "shout.py:Shout", "lacks 'name'; write in the class: name ="),
        (SHOUT.replace("test-shout", "cbf"), "shout.py:Shout", "two packets are tagged 'cbf'.*another tag"),
        ("x = 1\ny = x + zed\n", "shout.py:Shout", r"NameError: name 'zed' is not defined \(.*shout.py, line 2\)"),
        ("x = (1\n", "shout.py:Shout", r"never closed \(.*shout.py, line 1\)"),
    ],
)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, text: str, name: str, says: str) -> None:
    (tmp_path / "shout.py").write_text(text)
    with pytest.raises(PluginError, match=says):
        protocol(f"{tmp_path}/{name}")


def test_a_module_that_is_a_file_here_is_not_imported_by_surprise(shout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shout.parent)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(shout.parent))])
    with pytest.raises(PluginError, match=r"write ./shout.py:Shout"):
        protocol("shout:Shout")
    assert "shout" not in sys.modules
    assert protocol("./shout.py:Shout").name == "shout"


def test_a_module_that_fails_says_so_even_where_a_file_of_its_name_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loading_test_broken.py").write_text("x = 1\ny = x + zed\n")
    (tmp_path / "loading_test_lonely.py").write_text("import loading_test_absent\n")
    (tmp_path / "loading_test_empty.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, says in (
        ("broken", r"NameError: name 'zed' is not defined \(.*loading_test_broken.py, line 2\)"),
        ("lonely", r"cannot be loaded: ModuleNotFoundError: No module named 'loading_test_absent'"),
        ("empty", r"there is no 'Shout' in it"),
        ("nowhere", r"no module named 'loading_test_nowhere' is installed; install it, or name a file"),
    ):
        with pytest.raises(PluginError, match=says):
            protocol(f"loading_test_{name}:Shout")


def test_a_plug_in_knows_where_it_comes_from(shout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shout.parent / "loading_test_origin.py").write_text(SHOUT.replace("test-shout", "test-origin"))
    monkeypatch.syspath_prepend(str(shout.parent))
    protocol(name := "loading_test_origin:Shout")
    protocol(f"{shout}:Shout")
    origins = {one.name: one.origin for one in shipment()}
    assert origins[name] == str(shout.parent / "loading_test_origin.py")
    assert origins[f"{shout}:Shout"] == str(shout.resolve())
    (source,) = next(one for one in shipment() if one.name == f"{shout}:Shout").code.sources
    assert (source.is_package, source.by_path) == (False, True)


def test_a_name_from_data_loads_nothing(shout: Path) -> None:
    with pytest.raises(UnknownName):
        protocol(f"{shout}:Shout", load=False)
    with pytest.raises(UnknownName):
        protocol("antigravity:Comic", load=False)
    assert "antigravity" not in sys.modules
    loaded = protocol(f"{shout}:Shout")
    assert protocol(f"{shout}:Shout", load=False) is loaded


def test_a_plug_in_does_not_hide_a_built_in_one() -> None:
    assert protocol("flooding") is PROTOCOLS["flooding"]


def test_a_file_in_a_campaign_is_found_from_the_campaigns_folder(tmp_path: Path) -> None:
    assert located("./x.py:X", tmp_path) == f"{tmp_path}/x.py:X"
    assert located("flooding", tmp_path) == "flooding"
    assert located("module:X", tmp_path) == "module:X"
    assert located("/else/x.py:X", tmp_path) == "/else/x.py:X"


def test_another_process_runs_the_shipped_code_and_not_a_file_of_that_name(shout: Path, tmp_path: Path) -> None:
    """The worker has no such file, and another module of a helper's name on its path."""
    name = f"{shout}:Shout"
    protocol(name)
    import pickle

    packed = tmp_path / "shipment"
    packed.write_bytes(pickle.dumps([one for one in shipment() if one.name == name]))
    shout.unlink()
    program = f"""
        import inspect, pickle
        from pathlib import Path
        from earshot.plugins import install, plugin_digest
        from earshot.protocols.catalogue import protocol
        from earshot.simulation import load_scenario, run
        shipped = pickle.loads(Path({str(packed)!r}).read_bytes())
        install(shipped); install(shipped)
        assert "direct neighbours" in inspect.getsource(inspect.getmodule(protocol({name!r})))
        assert plugin_digest("protocols", {name!r}) == shipped[0].code.digest
        print(len(run(load_scenario("base").with_(dict(duration_s=60.0)), {name!r}).published))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0


def test_code_that_runs_here_already_stays(shout: Path) -> None:
    name = f"{shout}:Shout"
    before = protocol(name)
    install(shipment())
    assert protocol(name) is before
