"""A watch in a process of its own, to be killed: says each commit on a line, ends when it has caught up."""

import sys
from pathlib import Path

from earshot.pipeline.lake.lake import Lake
from earshot.pipeline.session import spark_session
from earshot.pipeline.watch.stream import Watch
from earshot.pipeline.watch.watch_state import WatchSettings


def main(lake: str, spools: str, subscriptions: str, most_bytes: str) -> None:
    session = spark_session("local[2]", small=True, keep_archive=False)
    print("started", flush=True)
    settings = WatchSettings(delay_s=3.0, patience_s=10.0, cell_m=500.0, most_bytes=int(most_bytes))

    watch = Watch(Lake(session, lake), [spools], settings, Path(subscriptions), lambda _: print("commit", flush=True))
    with watch.running(once=True) as query:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
