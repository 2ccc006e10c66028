"""Committed versions of partitions: how the folders of a lake are named, found and moved in.

The lake itself and the tasks of a campaign commit alike: a staged folder becomes the newest version of
its partition by a rename, and counts once it has its mark.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from earshot.errors import LakeError
from earshot.pipeline.lake.storage import Storage
from earshot.pipeline.lake.tables import Table

MARK = "_COMMITTED-"
VERSION = "version"
_UNSAFE = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
Value = str | float | int
Key = tuple[tuple[str, str], ...]
"A partition: its columns and their values, as texts."


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """One committed version of one partition. Versions order by the time of their commit; no two have one stamp."""

    stamp: str
    path: str
    digest: str


def commit(storage: Storage, kind: Table, staged: str, target: str) -> None:
    """Move a staged folder in as the newest version of the partition `target`, and mark it whole."""
    newest = max((version.stamp for version in versions_in(storage, kind, target)), default="")
    stamp = f"{time.time_ns():020d}"
    if newest[:20] >= stamp:
        stamp = f"{int(newest[:20]) + 1:020d}"
    version = f"{target}/{VERSION}={stamp}-{uuid.uuid4().hex[:8]}"
    storage.rename(staged, version)
    storage.touch(f"{version}/{MARK}{kind.digest}")


def prefix_of(kind: Table, partition: Mapping[str, Value]) -> list[str]:
    """The folders that the leading partition columns name."""
    folders = [kind.name]
    for name in kind.partition_by:
        if name not in partition:
            break
        folders.append(folder_name(name, partition_text(kind, name, partition[name])))
    return folders


def committed(storage: Storage, kind: Table, partition: Mapping[str, Value]) -> dict[Key, Version]:
    """The newest committed version of each partition that is asked for."""
    wanted = {name: partition_text(kind, name, value) for name, value in partition.items()}
    newest: dict[Key, Version] = {}
    for version in versions_in(storage, kind, "/".join(prefix_of(kind, partition))):
        key = partition_key(version.path.split("/")[1:-1])
        if all(dict(key).get(name) == value for name, value in wanted.items()):
            newest[key] = max(newest.get(key, version), version)
    return newest


def is_committed(storage: Storage, kind: Table, partition: Mapping[str, Value]) -> bool:
    """Whether the partition has a whole version."""
    return bool(versions_in(storage, kind, "/".join(prefix_of(kind, partition))))


def versions_in(storage: Storage, kind: Table, path: str) -> list[Version]:
    depth = 1 + len(kind.partition_by)
    found = []
    for file in storage.files(path):
        parts = file.split("/")
        if len(parts) == depth + 2 and parts[-1].startswith(MARK):
            stamp = parts[depth].removeprefix(f"{VERSION}=")
            found.append(Version(stamp, "/".join(parts[:-1]), parts[-1].removeprefix(MARK)))
    return found


def partition_text(kind: Table, name: str, value: Value) -> str:
    """A partition value as its folder names it."""
    if name not in kind.partition_by:
        raise LakeError(f"{kind.name} is partitioned by {', '.join(kind.partition_by)}, not by {name}")
    text = str(float(value)) if kind.columns[name] == "double" else str(value)
    if not text:
        raise LakeError(f"{name} must not be empty")
    return text


def folder_name(name: str, text: str) -> str:
    """`name=value`, escaped as Hive and Spark do."""
    return f"{name}={_UNSAFE.sub(lambda found: f'%{ord(found[0]):02X}', text)}"


def partition_key(folders: Iterable[str]) -> tuple[tuple[str, str], ...]:
    pairs = (folder.partition("=") for folder in folders)
    return tuple((name, unquote(value)) for name, _, value in pairs)
