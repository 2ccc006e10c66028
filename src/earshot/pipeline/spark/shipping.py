"""Our package on a cluster's executors: a zip of it, and a check that what it needs is there."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.errors import SparkUnavailable
from earshot.pipeline.spark.java import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

NEEDED = ("click", "lxml", "msgspec", "numpy", "pandas", "pyarrow", "pyproj", "scipy", "shapely")
"What our code imports inside tasks; binary packages, so they cannot travel in the zip."


def package_zip(folder: Path) -> Path:
    """The installed package as a zip in the folder; the same bytes for the same files."""
    import earshot

    root = Path(earshot.__file__).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = f"earshot/{path.relative_to(root).as_posix()}"
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), path.read_bytes())
    content = buffer.getvalue()
    target = folder / f"earshot-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    if not target.is_file():
        write_atomically(target, content)
    return target


def check_executors(session: SparkSession) -> None:
    """Refuse, by name, a cluster whose workers cannot run our code."""
    probes = session.range(0, 4, 1, 4).mapInArrow(_probe, "found string")
    version = ".".join(map(str, sys.version_info[:2]))
    for row in probes.collect():
        found = json.loads(row.found)
        if found["python"] != version:
            raise SparkUnavailable(
                f"the cluster's workers run Python {found['python']}, this is {version}; "
                "set PYSPARK_PYTHON to a matching interpreter on the workers"
            )
        if found["missing"]:
            raise SparkUnavailable(
                f"the cluster's workers lack {', '.join(found['missing'])}; "
                "install earshot[pipeline] there, or set PYSPARK_PYTHON to an interpreter that has it"
            )


def _probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import importlib.util

    import pyarrow as pa

    for _ in batches:
        missing = [name for name in (*NEEDED, "earshot") if importlib.util.find_spec(name) is None]
        found = {"python": ".".join(map(str, sys.version_info[:2])), "missing": missing}
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found, sort_keys=True)]})
