"""Two processes for one watch: the second is refused, on a disk and in an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.errors import LakeError, UsageError
from earshot.pipeline.lake.arrow_lake import ArrowLake
from earshot.pipeline.watch.alone import LEASE_S, Lease, alone


def test_on_a_disk_a_second_process_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    lake = ArrowLake(tmp_path)
    with alone(lake, "live") as check:
        check()
        with pytest.raises(UsageError, match="runs already"), alone(lake, "live"):
            pass
        with alone(lake, "other"):
            pass
    with alone(lake, "live"):
        pass


def test_a_lease_is_for_one_until_it_is_given_back_or_over(tmp_path: Path) -> None:
    now = [1000.0]
    lake = ArrowLake(tmp_path)
    first, second, other = (Lease(lake, name, lambda: now[0]) for name in ("live", "live", "other"))
    first.take()
    first.check()
    with pytest.raises(UsageError, match=r"the watch 'live' of .* runs already on "):
        second.take()
    other.take()
    now[0] += LEASE_S / 2
    first.take()
    now[0] += LEASE_S / 2 + 1.0
    with pytest.raises(UsageError):
        second.take()
    first.give_back()
    second.take()
    now[0] += LEASE_S + 1.0  # killed: nobody renews it
    first.take()
    with pytest.raises(LakeError, match="start it again"):
        second.check()
    with pytest.raises(UsageError):
        second.take()
    second.give_back()
    first.check()
    assert len(list((tmp_path / "watch_leases").glob("watch=live/*.parquet"))) == 1


def test_a_lease_is_held_and_given_back(tmp_path: Path) -> None:
    lake = ArrowLake(tmp_path)
    first = Lease(lake, "live")
    with first.held(), pytest.raises(UsageError):
        Lease(lake, "live").take()
    Lease(lake, "live").take()
