"""How big a test is: small in `make test`, large in `make test-long` (EARSHOT_TEST_SIZE=long)."""

import os

LONG = os.environ.get("EARSHOT_TEST_SIZE") == "long"


def sized(short: int, long: int) -> int:
    """How many cases to try."""
    return long if LONG else short
