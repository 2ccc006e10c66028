"""A real broker for the tests: mosquitto, started, killed and started again on one port."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from desk import free_port

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="no mosquitto here: apt-get install mosquitto")


class Mosquitto:
    """A broker that keeps its sessions on disk, so that what it has acknowledged is there after a restart."""

    def __init__(self, folder: Path, *lines: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._config = folder / "mosquitto.conf"
        self._config.write_text(
            "\n".join(
                [
                    f"listener {self.port} 127.0.0.1",
                    "persistence true",
                    f"persistence_location {folder}/",
                    "max_queued_messages 0",
                    "user root",
                    *(lines or ("allow_anonymous true",)),
                    "",
                ]
            )
        )
        self._log = folder / "mosquitto.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert MOSQUITTO is not None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([MOSQUITTO, "-c", str(self._config)], stdout=log, stderr=log)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self._process.poll() is None, self._log.read_text()
                time.sleep(0.02)
            else:
                return
        raise AssertionError("mosquitto did not start")

    def stop(self) -> None:
        """End it as an operator does: it writes its sessions first."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None
