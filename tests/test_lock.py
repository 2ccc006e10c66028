"""The lock file: every pinned package, each with hashes, and no address of an index."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_lock_file_holds_the_packages_of_the_constraints_with_their_hashes() -> None:
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line]
    text = (ROOT / "requirements.lock").read_text()
    locked = dict(re.findall(r"^(\S+==\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE))
    assert sorted(locked) == sorted(pins), "run: make lock"
    assert "://" not in text
    assert len(text.splitlines()) == 1 + len(locked) + sum(hashes.count("--hash") for hashes in locked.values())
