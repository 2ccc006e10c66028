"""How big a test is: EARSHOT_TEST_SIZE is `quick` in `make check`, `long` in `make test-long`."""

import os

LONG = os.environ.get("EARSHOT_TEST_SIZE") == "long"
QUICK = os.environ.get("EARSHOT_TEST_SIZE") == "quick"


def sized(short: int, long: int) -> int:
    """How many cases to try."""
    return long if LONG else max(1, short // 10) if QUICK else short
