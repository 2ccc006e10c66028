"""Two processes for one watch: the second is refused, on a disk and in an object store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

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
    now[0] += LEASE_S
    with pytest.raises(LakeError, match="start it again"):
        first.check()
    now[0] -= LEASE_S
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


def test_where_there_is_no_disk_a_lease_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[tuple[str, str]] = []

    class Noted(Lease):
        @contextmanager
        def held(self) -> Iterator[None]:
            held.append((self.name, self.lake.name))
            self._until = time.time() + LEASE_S
            yield

    lake = ArrowLake(tmp_path)
    monkeypatch.setattr(lake.folder, "local", None)
    monkeypatch.setattr("earshot.pipeline.watch.alone.Lease", Noted)
    with alone(lake, "live") as check:
        check()
    assert held == [("live", lake.name)]


def test_a_lease_is_renewed_four_times_in_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    renewed = threading.Event()

    class Ended(threading.Event):
        """It comes at once; the third wait says that the context has ended."""

        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            if len(waits) == 3:
                renewed.set()
            return len(waits) == 3

    taken: list[int] = []
    monkeypatch.setattr(Lease, "take", lambda _: taken.append(1))
    monkeypatch.setattr(Lease, "give_back", lambda _: None)
    monkeypatch.setattr("earshot.pipeline.watch.alone.threading", SimpleNamespace(Event=Ended, Thread=threading.Thread))
    with Lease(ArrowLake(tmp_path), "live").held():
        assert renewed.wait(60.0)
    assert (waits, len(taken)) == ([15.0, 15.0, 15.0], 3)
