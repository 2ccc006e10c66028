"""Credentials: the key file, the identity and the trust file of one node, read again when they change.

So a network can change its key, or revoke a node's key, without stopping a node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from earshot.errors import UsageError
from earshot.live.identity import Identity, read_identity
from earshot.live.private_files import WatchedFile
from earshot.live.signatures import Verifier, read_trust
from earshot.live.trust import read_keys

logger = logging.getLogger("earshot.live")


class Credentials:
    """What one node proves itself with, and what it asks of others."""

    def __init__(
        self,
        name: str,
        key_file: str | Path | None = None,
        identity: str | Path | None = None,
        trust: str | Path | None = None,
        require_signed: bool = False,
    ) -> None:
        self.keys: tuple[bytes, ...] = ()
        self.identity: Identity | None = None
        self.verifier: Verifier | None = None
        self._watched: list[tuple[WatchedFile, Callable[[], None]]] = []
        if key_file is not None:
            self._watch(key_file, lambda: self._use_keys(read_keys(key_file)))
        if identity is not None:
            self.identity = read_identity(identity)
            if self.identity.name != name:
                raise UsageError(
                    f"the identity {identity} belongs to {self.identity.name!r}, and this node is {name!r}; "
                    "give the node that name, or make another identity"
                )
        if trust is not None:
            verifier = self.verifier = Verifier(require_signed)
            self._watch(trust, lambda: verifier.use(read_trust(trust)))
        elif require_signed:
            raise UsageError("require_signed needs a trust file with the keys to trust: give trust (--trust FILE)")

    def _watch(self, path: str | Path, read: Callable[[], None]) -> None:
        self._watched.append((WatchedFile(path), read))
        read()

    def _use_keys(self, keys: tuple[bytes, ...]) -> None:
        self.keys = keys

    def reread(self) -> bool:
        """Read the files that have changed; a wrong file is reported, and its earlier content stays in use.
        Returns whether the network's keys have changed."""
        before = self.keys
        for file, read in self._watched:
            if file.changed():
                try:
                    read()
                except UsageError as error:
                    logger.warning("%s; the earlier content of %s still holds", error, file.path)
        return self.keys != before
