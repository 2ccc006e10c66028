from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARTIFACTS = Path(__file__).parents[2] / "artifacts" / "view"
"Screenshots and figures of the last run; git takes no notice of it."


def chromium() -> str | None:
    """The browser of this machine: EARSHOT_CHROMIUM, or one that is installed."""
    return os.environ.get("EARSHOT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def artifacts() -> Path:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright, whose event loop would be in the way of another file's tests."""
    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium here: install it (apt-get install chromium), or name one in EARSHOT_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails its test when it says anything on the console, or raises."""
    opened = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    stated: list[str] = []
    opened.on("console", lambda message: stated.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: stated.append(f"raised: {error}"))
    yield opened
    opened.close()
    assert stated == []
