"""A lake's folder: on this machine, on a disk that all machines of a cluster mount, or in an object store.

One address serves all: Spark reads `file:`, `s3a://`, `hdfs://`; delta-rs and Arrow reach the same place
through delta-rs' own object store, which takes its credentials from the environment (`AWS_...`).
"""

from __future__ import annotations

import os
import re
import uuid
from functools import cached_property
from pathlib import Path
from typing import Any

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/")


class Folder:
    """The root of a lake. Paths are relative to it, parts joined by "/". It can be sent to tasks."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        text = os.fspath(root)
        scheme = _SCHEME.match(text)
        self.local: Path | None = None
        "The folder where it is on a disk."
        if scheme is None or scheme[1].lower() == "file":
            # Absolute: a worker's working folder is another one.
            self.local = Path(re.sub(r"(?i)^file:(//)?", "", text) if scheme else text).expanduser().absolute()
            self.root = str(self.local)
            self.address = f"file:{self.local}"
        else:
            self.root = self.address = text.rstrip("/")

    def __getstate__(self) -> str:
        return self.root

    def __setstate__(self, root: str) -> None:
        self.__init__(root)  # type: ignore[misc]

    def delta_address(self, table: str) -> str:
        """The table as delta-rs names it."""
        return re.sub(r"^s3[an]:", "s3:", f"{self.root}/{table}")

    @cached_property
    def system(self) -> Any:
        """An Arrow file system whose root is this folder."""
        from pyarrow import fs

        if self.local is not None:
            return fs.SubTreeFileSystem(self.root, fs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return fs.PyFileSystem(DeltaStorageHandler(self.delta_address("").rstrip("/")))

    def exists(self, path: str = "") -> bool:
        """Whether there is anything, or anything below the path."""
        return (self.local / path).is_dir() if self.local is not None else bool(self.files(path))

    def sizes(self, paths: list[str]) -> list[int | None]:
        """The files' sizes as this machine sees them; None where it sees no file."""
        return [info.size if info.is_file else None for info in self.system.get_file_info(paths)] if paths else []

    def files(self, path: str) -> list[str]:
        """Every file below the path; none where it is absent."""
        from pyarrow import fs

        found = self.system.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
        return sorted(str(info.path).lstrip("/") for info in found if info.is_file)

    def read(self, path: str) -> bytes | None:
        """The file's content; None where this machine sees no file."""
        if self.sizes([path]) == [None]:
            return None
        with self.system.open_input_file(path) as file:
            return bytes(file.read())

    def write(self, path: str, content: bytes) -> None:
        """Write a file as a whole: others see all of it or nothing."""
        draft = f"{path}.{uuid.uuid4().hex}" if self.local is not None else path
        self.system.create_dir(path.rpartition("/")[0], recursive=True)
        # delta-rs' streams take bytes only, which they get through a buffer.
        with self.system.open_output_stream(draft, buffer_size=len(content) + 1) as file:
            file.write(content)
        if draft != path:
            self.system.move(draft, path)

    def delete(self, path: str) -> None:
        """Remove a file or a whole folder, if it exists."""
        (info,) = self.system.get_file_info([path])
        if info.is_file:
            self.system.delete_file(path)
        elif info.type.name == "Directory" or self.local is None:
            self.system.delete_dir(path)
