"""What the lake needs of a file system, for a local disk, for Hadoop's and for Arrow's file systems.

A local lake needs no JVM for them. Any other address goes through Hadoop's file systems where the
session has a JVM, and through Arrow's own where it has none (`--remote`). Paths are relative to the
lake's root, parts joined by "/".
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from earshot.errors import LakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Storage(Protocol):
    """One lake's folder."""

    address: str
    "The root as Spark reads and writes it."

    def exists(self) -> bool:
        """Whether the root exists."""

    def files(self, path: str) -> Iterator[str]:
        """Every file below the path, relative to the root; none where the path is absent."""

    def folders(self, path: str) -> list[str]:
        """The names of the folders in the path; none where it is absent."""

    def rename(self, source: str, target: str) -> None:
        """Move a folder; the target's parents are made, the target itself must not be there."""

    def touch(self, path: str) -> None:
        """Make an empty file, and its parents."""

    def delete(self, path: str) -> None:
        """Remove a file or a whole folder, if it exists."""

    def age_s(self, path: str) -> float:
        """Seconds since the path last changed."""


def storage_at(root: str | os.PathLike[str], session: SparkSession | None) -> Storage:
    """The storage for a path or an address like `hdfs://...` or `s3a://...`."""
    text = os.fspath(root)
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+):/", text)
    if scheme is None or scheme[1].lower() == "file":
        return LocalStorage(Path(re.sub(r"^file:(//)?", "", text) if scheme else text))
    if session is None:
        raise LakeError(f"the lake {text} needs a Spark session to be read")
    if hasattr(session, "_jvm"):
        return HadoopStorage(text.rstrip("/"), session)
    return ArrowStorage(text.rstrip("/"))


class LocalStorage:
    """A folder on this machine, or on a disk every machine of the cluster has mounted."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.address = f"file:{self.root}"

    def exists(self) -> bool:
        return self.root.is_dir()

    def files(self, path: str) -> Iterator[str]:
        for folder, names, files in os.walk(self.root / path):
            names.sort()
            below = os.path.relpath(folder, self.root).replace(os.sep, "/")
            yield from (f"{below}/{name}" for name in sorted(files))

    def folders(self, path: str) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self.root / path) if entry.is_dir())
        except FileNotFoundError:
            return []

    def rename(self, source: str, target: str) -> None:
        (self.root / target).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.root / source, self.root / target)

    def touch(self, path: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        with (self.root / path).open("wb") as file:
            os.fsync(file.fileno())

    def delete(self, path: str) -> None:
        target = self.root / path
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def age_s(self, path: str) -> float:
        return time.time() - (self.root / path).stat().st_mtime


class HadoopStorage:
    """Any address that Hadoop has a file system for, through the session's JVM."""

    def __init__(self, address: str, session: SparkSession) -> None:
        self.address = address
        jvm: Any = session._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        configuration = session._jsparkSession.sessionState().newHadoopConf()
        self._system = self._path(address).getFileSystem(configuration)
        self._prefix = str(self._system.makeQualified(self._path(address)).toString()).rstrip("/") + "/"

    def _at(self, path: str) -> Any:
        return self._path(f"{self.address}/{path}")

    def exists(self) -> bool:
        return bool(self._system.exists(self._path(self.address)))

    def files(self, path: str) -> Iterator[str]:
        if not self._system.exists(self._at(path)):
            return
        found = self._system.listFiles(self._at(path), True)
        while found.hasNext():
            yield str(found.next().getPath().toString()).removeprefix(self._prefix)

    def folders(self, path: str) -> list[str]:
        if not self._system.exists(self._at(path)):
            return []
        return sorted(
            str(entry.getPath().getName()) for entry in self._system.listStatus(self._at(path)) if entry.isDirectory()
        )

    def rename(self, source: str, target: str) -> None:
        self._system.mkdirs(self._at(target).getParent())
        if not self._system.rename(self._at(source), self._at(target)):
            raise LakeError(f"cannot move {self.address}/{source} to {target}; may this user write there?")

    def touch(self, path: str) -> None:
        self._system.create(self._at(path), True).close()

    def delete(self, path: str) -> None:
        self._system.delete(self._at(path), True)

    def age_s(self, path: str) -> float:
        return time.time() - float(self._system.getFileStatus(self._at(path)).getModificationTime()) / 1000.0


class ArrowStorage:
    """Arrow's own file systems: for a session without a JVM."""

    def __init__(self, address: str) -> None:
        import pyarrow as pa
        from pyarrow import fs

        self.address = address
        try:
            self._system, self._root = fs.FileSystem.from_uri(re.sub(r"^s3[an]:", "s3:", address))
        except (pa.ArrowInvalid, OSError) as error:
            raise LakeError(f"cannot reach the lake {address} from here: {error}") from None

    def _info(self, path: str) -> Any:
        return self._system.get_file_info(f"{self._root}/{path}".rstrip("/"))

    def _listed(self, path: str, recursive: bool) -> list[Any]:
        from pyarrow import fs

        selector = fs.FileSelector(f"{self._root}/{path}", allow_not_found=True, recursive=recursive)
        return sorted(self._system.get_file_info(selector), key=lambda info: str(info.path))

    def exists(self) -> bool:
        return bool(self._info("").type.name == "Directory")

    def files(self, path: str) -> Iterator[str]:
        for info in self._listed(path, recursive=True):
            if info.is_file:
                yield str(info.path).removeprefix(f"{self._root}/")

    def folders(self, path: str) -> list[str]:
        return [str(info.base_name) for info in self._listed(path, recursive=False) if not info.is_file]

    def rename(self, source: str, target: str) -> None:
        self._system.create_dir(f"{self._root}/{target}".rpartition("/")[0], recursive=True)
        self._system.move(f"{self._root}/{source}", f"{self._root}/{target}")

    def touch(self, path: str) -> None:
        self._system.create_dir(f"{self._root}/{path}".rpartition("/")[0], recursive=True)
        self._system.open_output_stream(f"{self._root}/{path}").close()

    def delete(self, path: str) -> None:
        info = self._info(path)
        if info.is_file:
            self._system.delete_file(f"{self._root}/{path}")
        elif info.type.name == "Directory":
            self._system.delete_dir(f"{self._root}/{path}")

    def upload(self, folder: Path, target: str) -> None:
        """Copy a local folder's files to the path."""
        from pyarrow import fs

        self._system.create_dir(f"{self._root}/{target}", recursive=True)
        fs.copy_files(str(folder), f"{self._root}/{target}", fs.LocalFileSystem(), self._system)

    def age_s(self, path: str) -> float:
        changed = self._info(path).mtime_ns
        return time.time() - changed / 1e9 if changed else 0.0
