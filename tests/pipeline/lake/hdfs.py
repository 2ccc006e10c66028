"""Hadoop's own name node and data node on this machine.

The Python package of Spark 2.4 includes the jars of Hadoop 2.7, and these contain HDFS's servers. Later packages of
Spark include only its clients. To run the tests, unpack the source package `pyspark-2.4.8.tar.gz` from PyPI, and name
its folder `deps/jars` in EARSHOT_HDFS_JARS.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from earshot.pipeline.spark.java import find_java

SERVERS = "org.apache.hadoop.hdfs.server"
OPENED = ("java.lang", "java.nio", "java.util", "sun.nio.ch")
"Packages of Java into which this old Hadoop reaches."


@contextmanager
def running_hdfs(folder: Path, jars: str, wait_for: Callable[[Callable[[], object]], None]) -> Iterator[str]:
    """The address of an empty HDFS with one data node. Its files and its logs are in the folder."""
    port = _free_port()
    address = f"hdfs://127.0.0.1:{port}"
    _configure(folder, address)
    name_node = f"{SERVERS}.namenode.NameNode"
    with (folder / "format.log").open("wb") as log:
        subprocess.run(_java(folder, jars, name_node, "-format"), stdout=log, stderr=log, check=True)
    servers = []
    try:
        for server in (name_node, f"{SERVERS}.datanode.DataNode"):
            with (folder / f"{server.rpartition('.')[2]}.log").open("wb") as log:
                servers.append(subprocess.Popen(_java(folder, jars, server), stdout=log, stderr=log))
        wait_for(lambda: "Successfully sent block report" in (folder / "DataNode.log").read_text())
        yield address
    finally:
        for process in servers:
            process.kill()
            process.wait()


def _java(folder: Path, jars: str, *words: str) -> list[str]:
    opened = [word for one in OPENED for word in ("--add-opens", f"java.base/{one}=ALL-UNNAMED")]
    memory = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return [str(find_java().executable), *opened, *memory, "-cp", f"{folder}/conf:{jars}/*", *words]


def _configure(folder: Path, address: str) -> None:
    """Pages of the web servers are not in the jars: empty ones stand in."""
    anywhere = "127.0.0.1:0"
    settings = {
        "fs.defaultFS": address,
        "dfs.namenode.name.dir": f"file://{folder}/names",
        "dfs.datanode.data.dir": f"file://{folder}/blocks",
        "dfs.replication": "1",
        "dfs.webhdfs.enabled": "false",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.http-address": anywhere,
        "dfs.datanode.http.address": anywhere,
        "dfs.datanode.address": anywhere,
        "dfs.datanode.ipc.address": anywhere,
    }
    rows = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    text = f"<configuration>{''.join(rows)}</configuration>"
    for page in ("hdfs", "datanode"):
        (folder / "conf" / "webapps" / page).mkdir(parents=True)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / "conf" / name).write_text(text)
    (folder / "conf" / "log4j.properties").write_text(
        "log4j.rootLogger=INFO,console\n"
        "log4j.appender.console=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.console.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.console.layout.ConversionPattern=%p %c{2}: %m%n\n"
    )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
