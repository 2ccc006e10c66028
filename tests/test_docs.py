"""Every command and example in the docs runs.

In README.md and docs/**/*.md a ```python block is run as a script and a ```sh block by bash, the
blocks of one page one after the other in one empty folder. A line `#> words` says what
a block prints. A block that cannot be run by a test
(it needs a network of its own, or takes long) is fenced as ```text.

Commands that end by themselves run in this process, those that need Spark with the tests' own session: starting
Python and Spark for each would take most of the time. The `earshot` that bash finds sends them here and prints the
answer. Live commands, which run beside each other, are processes.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
SLOW_PAGES = ("docs/advise.md", "docs/extending.md", "docs/pipeline.md", "docs/watch.md")
"Their blocks take 20 s and more."
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.timeout(1800)
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
SPARK_COMMANDS = (
    "advise",
    "capacity",
    "compare",
    "contacts",
    "ingest",
    "oracle",
    "profile",
    "report",
    "sweep",
    "watch",
    "why",
    "workload",
)
RUN_HERE = (
    *SPARK_COMMANDS,
    "drip-brokers",
    "explain",
    "identity",
    "lake",
    "match",
    "metrics",
    "plot",
    "plugins",
    "protocols",
    "scenario",
    "scenarios",
    "simulate",
)

FORWARD = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] and sys.argv[1] in {commands}:
    with socket.socket(socket.AF_UNIX) as test:
        test.connect({address!r})
        test.sendall(json.dumps([sys.argv[1:], os.getcwd()]).encode() + b"\\n")
        code, out, err = json.loads(test.makefile("rb").read())
    sys.stderr.write(err)
    sys.stdout.write(out)
    sys.exit(code)
os.execv({real!r}, [{real!r}, *sys.argv[1:]])
"""


class Shell:
    """Runs blocks in a folder; commands that end by themselves in this process."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        scripts = Path(sys.executable).parent
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(scratch / "test"))
        self.socket.listen()
        forward = scratch / "earshot"
        text = FORWARD.format(
            python=sys.executable,
            commands=RUN_HERE,
            address=self.socket.getsockname(),
            real=str(scripts / "earshot"),
        )
        forward.write_text(text)
        forward.chmod(0o755)
        path = os.pathsep.join([str(scratch), str(scripts), os.environ["PATH"]])
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "120"}

    def run(self, command: list[str]) -> None:
        """Run a command to its end, and meanwhile the commands that it sends."""
        with (self.folder / ".output").open("w+") as output:
            running = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=output, stderr=subprocess.STDOUT
            )
            self.socket.settimeout(0.1)
            while running.poll() is None:
                with contextlib.suppress(TimeoutError):
                    self._answer(self.socket.accept()[0])
            output.seek(0)
            printed = output.read()
            assert running.returncode == 0, f"{command[-1]}\n--- output\n{printed}"
            for words in re.findall(r"^#> (.*)$", command[-1], re.MULTILINE):
                assert words in printed, f"{words!r} is not in the output of\n{command[-1]}\n--- output\n{printed}"

    def _answer(self, asking: socket.socket) -> None:
        from earshot.cli import main

        with asking, asking.makefile("rwb") as stream:
            (name, *arguments), folder = json.loads(stream.readline())
            # Spark's own processes run elsewhere: existing files are named by their whole paths.
            whole = [str(Path(folder, one)) if one and Path(folder, one).exists() else one for one in arguments]
            out, err, code = io.StringIO(), io.StringIO(), 0
            with (
                pytest.MonkeyPatch.context() as patched,
                contextlib.chdir(folder),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                patched.setenv("COLUMNS", self.environment["COLUMNS"])
                try:
                    main([name, *whole])
                except SystemExit as ended:
                    code = ended.code if isinstance(ended.code, int) else 1
            stream.write(json.dumps([code, out.getvalue(), err.getvalue()]).encode())


def needs_spark(language: str, block: str) -> bool:
    if language == "python":
        return "earshot.pipeline" in block
    return any(f"earshot {command} " in block for command in SPARK_COMMANDS)


def as_case(page: Path) -> Any:
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW_PAGES else [])


@pytest.mark.parametrize("page", [as_case(page) for page in PAGES])
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "here").mkdir()
    shell = Shell(tmp_path / "here", tmp_path)
    for language, block in BLOCK.findall(page.read_text()):
        if "make " in block:
            continue  # the two commands set up the environment this test runs in
        if "mosquitto " in block and shutil.which("mosquitto") is None:
            pytest.skip("no mosquitto here: apt-get install mosquitto")
        if needs_spark(language, block):
            request.getfixturevalue("spark")
        if language == "sh":
            shell.run(["bash", "-euo", "pipefail", "-c", block])
        elif needs_spark(language, block):
            with contextlib.chdir(shell.folder), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, str(page), "exec"), {"__name__": "__main__"})
        else:
            shell.run([sys.executable, "-c", block])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "earshot[sumo]" in example.read_text() and importlib.util.find_spec("libsumo") is None:
        pytest.skip("no SUMO here: pip install 'earshot[sumo]'")
    if "earshot.pipeline" in example.read_text():
        request.getfixturevalue("spark")
        with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(example.read_text(), str(example), "exec"), {"__name__": "__main__", "__file__": str(example)})
        return
    (tmp_path / "here").mkdir()
    Shell(tmp_path / "here", tmp_path).run([sys.executable, str(example)])


def test_links_between_pages_lead_somewhere() -> None:
    lost = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert lost == []


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build = [
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--config-file",
        str(ROOT / "mkdocs.yml"),
        "--site-dir",
        str(site),
    ]
    done = subprocess.run([sys.executable, "-m", *build], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    commands = (site / "reference" / "commands.html").read_text()
    assert all(f"Usage: earshot {name}" in commands for name in ("compare", "sub", "watch"))


PUBLIC = r"(?!(?:protocols|simulation|pipeline|live|live\.bridge|traces|errors) )"
DEEP_IMPORT = re.compile(rf"^ *(?:from|import) (earshot\.{PUBLIC}[\w.]+)", re.MULTILINE)


def test_docs_and_examples_import_only_from_the_public_interface() -> None:
    pages = [*PAGES, *EXAMPLES]
    assert {page.name: deep for page in pages if (deep := DEEP_IMPORT.findall(page.read_text()))} == {}


def test_the_source_files_that_pages_name_exist() -> None:
    tree = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    lost = [
        f"{page.relative_to(ROOT)}: {named}"
        for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
        for named in re.findall(r"`(?:src/)?((?:\w+/)+\w+\.py)", page.read_text())
        if not any(f"/{path}".endswith(f"/{named}") for path in tree)
    ]
    assert lost == []
