"""A lake's folder: addresses, and files that are written, read and deleted, on a disk and in an object store."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from earshot.pipeline.lake.folder import Folder


def in_memory() -> Folder:
    """An object store that lives as long as the folder."""
    return Folder("memory:///lake")


@pytest.fixture(params=["disk", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(tmp_path) if request.param == "disk" else in_memory()


@pytest.mark.parametrize(
    ("given", "root", "address", "delta"),
    [
        ("/data/lake", "/data/lake", "file:/data/lake", "/data/lake/runs"),
        ("lake", "/plans/lake", "file:/plans/lake", "/plans/lake/runs"),
        ("~/lake", "/home/ann/lake", "file:/home/ann/lake", "/home/ann/lake/runs"),
        ("file:/data/lake", "/data/lake", "file:/data/lake", "/data/lake/runs"),
        ("file:///data/lake", "/data/lake", "file:/data/lake", "/data/lake/runs"),
        ("FILE:/data/lake", "/data/lake", "file:/data/lake", "/data/lake/runs"),
        ("C:/lake", "/plans/C:/lake", "file:/plans/C:/lake", "/plans/C:/lake/runs"),
        ("s3a://bucket/lake/", "s3a://bucket/lake", "s3a://bucket/lake", "s3://bucket/lake/runs"),
        ("s3n://bucket/lake", "s3n://bucket/lake", "s3n://bucket/lake", "s3://bucket/lake/runs"),
        (
            "hdfs://name:9000/s3a:/x",
            "hdfs://name:9000/s3a:/x",
            "hdfs://name:9000/s3a:/x",
            "hdfs://name:9000/s3a:/x/runs",
        ),
    ],
)
def test_an_address_is_one_for_spark_and_for_delta(
    monkeypatch: pytest.MonkeyPatch, given: str, root: str, address: str, delta: str
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setattr("os.getcwd", lambda: "/plans")
    folder = Folder(given)
    assert (folder.root, folder.address, folder.delta_address("runs")) == (root, address, delta)
    assert folder.local == (Path(root) if address.startswith("file:") else None)


def test_a_folder_that_is_sent_to_a_task_is_the_same_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps([Folder("lake"), Folder("s3a://bucket/lake")])
    monkeypatch.chdir("/")
    near, far = pickle.loads(sent)
    assert (near.local, near.address) == (tmp_path / "lake", f"file:{tmp_path}/lake")
    assert (far.local, far.address) == (None, "s3a://bucket/lake")


def test_files_are_written_whole_found_read_and_deleted(folder: Folder) -> None:
    folder.write("a/b/long", b"first")
    folder.write("a/b/long", b"second one")
    folder.write("a/empty", b"")
    folder.write("z/file", b"1")
    assert folder.files("") == ["a/b/long", "a/empty", "z/file"]
    assert (folder.files("a/b"), folder.files("no")) == (["a/b/long"], [])
    assert folder.sizes(["a/b/long", "a/no", "a/empty", "a"]) == [10, None, 0, None]
    assert folder.sizes([]) == []
    assert [folder.read(path) for path in ("a/b/long", "a/empty", "no", "a")] == [b"second one", b"", None, None]
    assert [folder.exists(path) for path in ("", "a", "a/b", "no")] == [True, True, True, False]
    folder.delete("a/empty")
    assert folder.files("") == ["a/b/long", "z/file"]
    folder.delete("a")
    folder.delete("never was")
    assert folder.files("") == ["z/file"]


def test_a_folder_without_files_is_there_on_a_disk_only(tmp_path: Path) -> None:
    assert Folder(tmp_path).exists()
    assert not Folder(tmp_path / "no").exists()
    assert not in_memory().exists()


class Watched:
    """A file system that remembers what writes do, and may break before a file is whole."""

    def __init__(self, system: Any, breaks: bool = False) -> None:
        self.system, self.breaks = system, breaks
        self.opened: list[str] = []
        self.moved: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.system, name)

    def open_output_stream(self, path: str, **options: Any) -> Any:
        self.opened.append(path)
        found = self.system.open_output_stream(path, **options)
        if self.breaks:
            found.write(b"ha")
            found.close()
        return found

    def move(self, source: str, target: str) -> None:
        self.moved.append((source, target))
        self.system.move(source, target)


def test_on_a_disk_a_file_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    watched = folder.__dict__["system"] = Watched(folder.system)
    for content in (b"one", b"two"):
        folder.write("a/file", content)
    first, second = watched.opened
    assert watched.moved == [(first, "a/file"), (second, "a/file")]
    assert len({first, second, "a/file"}) == 3, "two that write at once do not meet"
    watched.breaks = True
    with pytest.raises(ValueError, match="closed"):
        folder.write("a/file", b"three")
    assert folder.read("a/file") == b"two"


def test_in_an_object_store_a_file_needs_no_other_name() -> None:
    folder = in_memory()
    watched = folder.__dict__["system"] = Watched(folder.system)
    folder.write("a/file", b"one")
    assert (watched.opened, watched.moved, folder.files("")) == (["a/file"], [], ["a/file"])
