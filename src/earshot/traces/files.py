"""Trace files: finding them, and opening them, also if they are compressed, remote or cut short."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote

from earshot.errors import TraceError

_CUT_SHORT = (EOFError, zlib.error, lzma.LZMAError, OSError)
"What a compressed file that ends too early raises."


MOST_UNPACKED = 400
"A file that unpacks to more than this multiple of its size is refused: it is an attack, not a trace."
UNPACKED_FREELY_BYTES = 64 << 20
"Up to this unpacked size, any multiple is allowed."
LONGEST_LINE_BYTES = 16 << 20


def is_address(path: str) -> bool:
    """Whether the path is an address of another file system, such as s3a://."""
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", path) is not None and not path.startswith("file:")


def local_path(path: str) -> str:
    """A local path, without `file:`."""
    return re.sub(r"^file:(//)?", "", path)


def stem(file: str) -> str:
    """A file's name without its folder and endings."""
    name = os.path.basename(file.rstrip("/"))
    return name.partition(".")[0] or name


def expanded(paths: Sequence[str]) -> list[str]:
    """The files that folders and patterns stand for; TraceError for a path that does not exist."""
    if not paths or not all(paths):
        raise TraceError("no trace file was named")
    found: list[str] = []
    for path in paths:
        path = local_path(path)
        if is_address(path):
            inside = _files_at(path)
        elif os.path.isdir(path):
            names = sorted(os.scandir(path), key=lambda entry: entry.name)
            listed = [entry.path for entry in names if entry.is_file() and not entry.name.startswith((".", "_"))]
            inside = delta_files(path) or listed
        else:
            inside = [path] if os.path.exists(path) else sorted(glob.glob(path))
        if not inside:
            raise TraceError(f"there is no trace file {path}; check the path")
        found += inside
    return found


def _files_at(address: str) -> list[str]:
    """The files that an address stands for: of a folder, or of a pattern such as s3a://bucket/buses/*.csv."""
    from pyarrow import fs

    wanted = address.rstrip("/")
    folder = re.split(r"[^/]*[*?\[]", wanted, maxsplit=1)[0].rstrip("/")
    is_pattern = folder != wanted
    try:
        system, root = _system(folder)
        if system.get_file_info(root).is_file:
            return [address]
        listed = system.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=is_pattern))
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot list {address}: {error}") from None
    if not is_pattern:
        wanted += "/*"
    names = [
        folder.removesuffix(root) + info.path
        for info in listed
        if info.is_file and not info.base_name.startswith((".", "_"))
    ]
    return sorted(name for name in names if name.count("/") == wanted.count("/") and fnmatchcase(name, wanted))


def delta_files(folder: str) -> list[str] | None:
    """The files in this folder of a Delta table that belong to the table's newest version; None if the folder is not
    part of a Delta table."""
    path = Path(local_path(folder)).absolute()
    root = next((parent for parent in (path, *path.parents) if (parent / "_delta_log").is_dir()), None)
    if root is None:
        return None
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise TraceError(f"{folder} is part of a Delta table, which needs: pip install 'earshot[pipeline]'") from None
    try:
        actions = DeltaTable(root).get_add_actions()
    except DeltaError as error:
        raise TraceError(f"cannot read the Delta table {root}: {error}") from None
    files = [root / unquote(str(name)) for name in actions.column("path").to_pylist()]
    return sorted(str(file) for file in files if file.is_relative_to(path))


def open_trace(path: str, by_line: bool = False) -> IO[bytes]:
    """The file's bytes, unpacked if it is compressed (by its first bytes, not its name).

    A compressed file that was cut short ends where it can no longer be unpacked, with `by_line` after
    its last whole line; `break_in` then says why.
    """
    try:
        raw = opened(path)
        head = raw.read(6)
        raw.seek(0)
    except FileNotFoundError:
        raise TraceError(f"there is no trace file {path} (on a cluster every worker must see it)") from None
    except (OSError, ValueError) as error:
        raise TraceError(f"cannot read {path}: {error}") from None
    if head.startswith(b"\x1f\x8b"):
        packed: io.BufferedIOBase = gzip.GzipFile(fileobj=raw)
    elif head.startswith(b"BZh"):
        packed = bz2.BZ2File(raw)
    elif head.startswith(b"\xfd7zXZ\x00"):
        packed = lzma.LZMAFile(raw)  # noqa: SIM115 - closed with what is returned
    else:
        return raw
    return cast(IO[bytes], io.BufferedReader(_Unpacked(path, raw, packed, by_line), 1 << 16))


class _Unpacked(io.RawIOBase):
    """The part of a file that can be unpacked, and why it ends too early."""

    def __init__(self, path: str, raw: IO[bytes], packed: io.BufferedIOBase, by_line: bool) -> None:
        self.path = path
        self.unpacked_bytes = 0
        self.raw_file = raw
        self.packed = packed
        self.by_line = by_line
        self.broken: str | None = None
        self.ready = b""
        self.rest = b""
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ready and not self.ended:
            self._unpack()
        size = min(len(buffer), len(self.ready))
        buffer[:size] = self.ready[:size]
        self.ready = self.ready[size:]
        return size

    def _unpack(self) -> None:
        try:
            block = self.packed.read1(1 << 16)
        except _CUT_SHORT as error:
            self.broken, self.ended = str(error), True
            return
        self.unpacked_bytes += len(block)
        if self.unpacked_bytes > max(UNPACKED_FREELY_BYTES, MOST_UNPACKED * self.raw_file.tell()):
            raise TraceError(f"{self.path} unpacks to more than {MOST_UNPACKED} times its size; it is not a trace")
        if not block:
            self.ready, self.ended = self.rest, True
        elif self.by_line:
            whole, line_end, self.rest = (self.rest + block).rpartition(b"\n")
            self.ready = whole + line_end
            if len(self.rest) > LONGEST_LINE_BYTES:
                raise TraceError(f"{self.path} has a line of more than {LONGEST_LINE_BYTES:,} bytes; it is not a trace")
        else:
            self.ready = block

    def close(self) -> None:
        self.packed.close()
        self.raw_file.close()
        super().close()


def break_in(stream: IO[bytes]) -> str | None:
    """Why the file ended too early; None if it did not."""
    return getattr(getattr(stream, "raw", None), "broken", None)


def opened(path: str) -> IO[bytes]:
    """The file's bytes as they are, here or at an address."""
    if not is_address(path):
        return open(local_path(path), "rb")
    system, inside = _system(path)
    return cast(IO[bytes], io.BufferedReader(system.open_input_file(inside), 1 << 20))


def _system(address: str) -> tuple[Any, str]:
    """Arrow's file system of an address, and the path in it."""
    from pyarrow import fs

    if hdfs := re.match(r"(hdfs://[^/]*)/?", address):
        # Through delta-rs: Arrow's own client for HDFS needs Hadoop's native library and Java.
        from deltalake.fs import DeltaStorageHandler

        return fs.PyFileSystem(DeltaStorageHandler(f"{hdfs[1]}/")), address[hdfs.end() :]
    system, inside = fs.FileSystem.from_uri(re.sub(r"^s3[an]:", "s3:", address))
    return system, inside


def size_of(path: str) -> int | None:
    """The size of a file in bytes; None if the path is not a file."""
    if is_address(path):
        system, inside = _system(path)
        (info,) = system.get_file_info([inside])
        return int(info.size) if info.is_file else None
    path = local_path(path)
    return os.path.getsize(path) if os.path.isfile(path) else None


class FilePiece(io.RawIOBase):
    """The bytes of a file from `begin` to `end`."""

    def __init__(self, path: str, begin: int, end: int) -> None:
        self.stream = opened(path)
        self.stream.seek(begin)
        self.left = end - begin

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(min(len(buffer), self.left))
        buffer[: len(data)] = data
        self.left -= len(data)
        return len(data)

    def close(self) -> None:
        self.stream.close()
        super().close()


def text_lines(stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Numbered lines, without line ends."""
    for count, raw in enumerate(stream, 1):
        yield count, raw.decode("utf-8", "replace").strip()
