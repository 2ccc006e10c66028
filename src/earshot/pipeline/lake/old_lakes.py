"""Lakes of the form that they had before they were Delta tables: found, and converted once.

::

    LAKE/positions/trace=bologna/version=176..-3f2a/part-*.parquet   one version of one partition
                                                   /_COMMITTED-1b2c3d4e   ... which is whole

The newest whole version of each partition becomes the Delta table's; only then are the old folders removed.
"""

from __future__ import annotations

from urllib.parse import unquote

from earshot.pipeline.lake.data_files import DataFile, DataFiles
from earshot.pipeline.lake.folder import Folder
from earshot.pipeline.lake.table_log import TableLog
from earshot.pipeline.lake.tables import TABLES, Table

VERSION, MARK = "/version=", "/_COMMITTED-"


def is_old(folder: Folder, kind: Table) -> bool:
    """Whether the table has the old form."""
    return any(VERSION in path and MARK in path for path in folder.files(kind.name))


def convert(folder: Folder) -> dict[str, int]:
    """Make Delta tables of the lake's old tables; returns the rows of each. Other tables stay as they are."""
    converted = {}
    for kind in TABLES.values():
        if is_old(folder, kind):
            files = [file for version in _newest(folder, kind) for file in _copied(folder, kind, version)]
            keys = {tuple(_partition(version).values()) for version in _newest(folder, kind)}
            TableLog(folder, kind).replace(files, keys, "convert")
            converted[kind.name] = sum(file.rows for file in files)
            paths = [path for path in folder.files(kind.name) if VERSION in path]
            for old in sorted({path.rpartition("/")[0] for path in paths}):
                folder.delete(old)
    for leftover in ("_staging", "_leases"):
        folder.delete(leftover)
    return converted


def _newest(folder: Folder, kind: Table) -> list[str]:
    """The folder of each partition's newest version that is whole."""
    whole = sorted(path.rpartition("/")[0] for path in folder.files(kind.name) if VERSION in path and MARK in path)
    return list({version.rpartition(VERSION)[0]: version for version in whole}.values())


def _partition(version: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in version.rpartition(VERSION)[0].split("/")[1:])
    return {name: unquote(value) for name, _, value in pairs}


def _copied(folder: Folder, kind: Table, version: str) -> list[DataFile]:
    partition, files, log = _partition(version), DataFiles(folder), TableLog(folder, kind)
    written: list[DataFile] = []
    for path in folder.files(version):
        if path.endswith(".parquet"):
            old = DataFile(kind.name, path.removeprefix(f"{kind.name}/"), 0, 0, partition)
            fixed = {name: partition[name] for name in kind.folders_by}
            written += files.write_batches(kind.name, log.batches_of(old, kind.columns), fixed)
    if not written and not kind.clustered:
        written = [files.write_rows(kind.name, [], **partition)]
    return written
