import pytest

from earshot.cli import main


def test_drip_brokers_gives_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["drip-brokers", "--delay", "500", "--nearest", "4", "--copies", "2", "--grid", "400"])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0
    assert [line.split("  ")[0] for line in lines] == ["formula", "-------------", "as it follows", "as printed"]
    assert lines[2].split()[3] == "509"
    assert lines[3].split()[2].isdigit()


def test_drip_brokers_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["drip-brokers", "--delay", "-1"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "earshot: the wanted delay must be a positive number of steps, got -1.0\n"
