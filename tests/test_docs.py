"""Every command and example in the docs runs.

In README.md and docs/**/*.md a ```python block is run as a script and a ```sh block by bash, the
blocks of one page one after the other in one empty folder. A block that cannot be run by a test
(it needs a network of its own, or takes long) is fenced as ```text.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.timeout(600)  # the pipeline's page starts Spark seven times
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def environment() -> dict[str, str]:
    scripts = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
        # A block's Spark lives for seconds: compiling hard for them takes longer than it saves.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    }


def run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, f"{command[-1]}\n--- said\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    for language, block in BLOCK.findall(page.read_text()):
        if "make " in block:
            continue  # the two commands set up the environment this test runs in
        shell = [sys.executable, "-c"] if language == "python" else ["bash", "-euo", "pipefail", "-c"]
        run([*shell, block], tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    run([sys.executable, str(example)], tmp_path)


def test_links_between_pages_lead_somewhere() -> None:
    lost = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert lost == []
