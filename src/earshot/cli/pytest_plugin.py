"""A plug-in of pytest: the rules for all protocols, as tests of your protocol.

    pytest --check-protocol frugal.machine:Frugal

or in the package's own settings:

    [tool.pytest.ini_options]
    earshot_protocols = ["frugal.machine:Frugal"]

Each property is a test of its own, as in `earshot check`.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("earshot")
    group.addoption(
        "--check-protocol",
        action="append",
        default=[],
        metavar="NAME",
        help="Check that this protocol keeps the rules for all protocols: a name, module:Class or ./file.py:Class.",
    )
    parser.addini("earshot_protocols", "Protocols to check, as with --check-protocol.", type="linelist", default=[])


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    names = [*config.getini("earshot_protocols"), *config.getoption("--check-protocol")]
    if not names:
        return
    from earshot.cli.check import checked_properties

    items += [
        PropertyItem.from_parent(session, name=f"{name}[{rule}]", protocol=name, checked=rule)
        for name in dict.fromkeys(names)
        for rule in checked_properties()
    ]


class PropertyItem(pytest.Item):
    """One property of one protocol."""

    def __init__(self, *, protocol: str, checked: str, **more: Any) -> None:
        super().__init__(**more)
        self.protocol, self.checked = protocol, checked

    def runtest(self) -> None:
        from earshot.cli.check import check_by_name
        from earshot.protocols.catalogue import protocol

        check_by_name(protocol(self.protocol), self.checked)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        from earshot.errors import EarshotError

        if isinstance(excinfo.value, EarshotError):
            return f"{self.protocol} does not hold {self.checked!r}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, f"{self.protocol}: {self.checked}"
