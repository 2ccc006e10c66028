"""Print requirements.lock: every package of constraints.txt with the hashes of its files.

    make lock

The hashes come from the package indexes that pip is configured with. Files for Python 3.11 and later, on Linux and
macOS, and source archives are listed, so that one lock file serves all of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urljoin
from urllib.request import Request, urlopen

from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
LINK = re.compile(r'<a [^>]*href="([^"]+)"')
WANTED = re.compile(r"-(cp31[1-4]|cp3[0-9]+-abi3|py3|py2\.py3)-.*(none-any|manylinux.*(x86_64|aarch64)|macosx.*)\.whl$")


def indexes() -> list[str]:
    """The addresses of the simple indexes that pip asks."""
    found = {}
    for line in subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout.splitlines():
        name, _, value = line.partition("=")
        found[name.split(".")[-1]] = value.strip("'")
    return [found.get("index-url", PyPI.simple_url), *found.get("extra-index-url", "").split()]


def hashes(pin: str, addresses: list[str]) -> list[str]:
    """The hashes of the files of one pinned package, as pip writes them."""
    name, _, version = pin.partition("==")
    plain = re.sub(r"[-_.]+", "-", name).lower()
    start = re.compile(rf"{plain.replace('-', '[-_.]')}-{re.escape(version)}(-|\.tar\.gz$|\.zip$)", re.IGNORECASE)
    found = set()
    for address in addresses:
        page = f"{address.rstrip('/')}/{plain}/"
        if page.startswith("file:"):
            page += "index.html"
        try:
            with urlopen(Request(page, headers={"Accept": "text/html"}), timeout=120) as opened:
                text = opened.read().decode()
        except OSError:
            continue
        for link in LINK.findall(text):
            path, _, digest = urljoin(page, unescape(link)).partition("#")
            file = unquote(path.rsplit("/", 1)[-1])
            if start.match(file) and digest.startswith("sha256=") and (WANTED.search(file) or not file.endswith("whl")):
                found.add("sha256:" + digest.removeprefix("sha256="))
    if not found:
        raise SystemExit(f"no index has files of {pin}")
    return sorted(found)


def main() -> None:
    pins = [line.strip() for line in (ROOT / "constraints.txt").read_text().splitlines() if line.strip()]
    addresses = indexes()
    print("# Made by `make lock` from constraints.txt; do not edit.")
    with ThreadPoolExecutor(8) as pool:
        for pin, found in zip(pins, pool.map(lambda pin: hashes(pin, addresses), pins), strict=True):
            print(" \\\n    ".join([pin, *(f"--hash={one}" for one in found)]))


main()
