"""The data pipeline on Spark: from traces and events to contacts, expected receivers and metrics.

Stages are functions from DataFrame to DataFrame, used with `transform`::

    from earshot.pipeline import Lake, contacts_within, read_trace, spark_session

    spark = spark_session()                                # local mode; or spark_session("spark://host:7077")
    positions = read_trace(spark, "walk.csv")              # node, time, x_m, y_m, ...
    contacts = positions.transform(contacts_within(range_m=20))
    contacts.show()                                        # a, b, start, end

Every table of a lake is a DataFrame, too. Who should have received each event, and what the runs of a
campaign come to::

    lake = Lake(spark, "lake")
    expected = lake.read("events").transform(expected_receivers(lake.read("subscriptions"), lake.read("positions")))
    plans = reach_plans(lake.read("events"), lake.read("positions"), {"rounds": ContactNetwork(range_m=100)})
    reach = lake.read("events").transform(reachable(lake.read("expected"), lake.read("positions"), plans))
    figures = lake.read("log").transform(metrics(lake.read("runs"), lake.read("expected")))

Whole stages read a lake's tables and write the next; `show_progress` shows on one line how far Spark is::

    with show_progress(spark):
        ingest(lake, ["buses.csv"], "buses")               # positions, rejects
        print(find_contacts(lake, "buses", range_m=100))   # contacts, and their statistics
        board = compare(lake, load_scenario("city"), ["flooding", "gossip"], seeds=2)
    print([(row.protocol, row.figures["delivery_ratio"]) for row in board.rows])
    print(ask_why(lake.arrow, run, event, node).reasons)

Importing this package does not load Spark. A Spark session that runs already learns to read our trace
formats: `spark.read.format("gpx").load("walk.gpx")`; for one made later, call `register_sources`.

Rooms, each importing only from those before it: `spark` (sessions, tasks, errors), `lake` (tables),
`traces` (positions, contacts), `oracle` (expected receivers), `campaigns` (runs, metrics), `advice`
(which protocol), `reports` (pages), `watch` (live networks).
Start reading with `campaigns.flow`, which calls one stage after another.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from earshot.pipeline.session import register_sources, spark_session
from earshot.pipeline.spark.session import running_session

if TYPE_CHECKING:
    from earshot.pipeline.campaigns.flow import compare
    from earshot.pipeline.campaigns.metrics import metrics
    from earshot.pipeline.campaigns.outside_metrics import Metric
    from earshot.pipeline.campaigns.swept_keys import swept_runs
    from earshot.pipeline.lake.lake import Lake
    from earshot.pipeline.oracle.oracle import expected_receivers
    from earshot.pipeline.oracle.reachable import ContactNetwork, reach_plans, reachable
    from earshot.pipeline.oracle.why import ask_why
    from earshot.pipeline.reports.outside_figures import ReportFigure
    from earshot.pipeline.reports.report import write_report
    from earshot.pipeline.spark.progress import show_progress
    from earshot.pipeline.traces.contact_statistics import find_contacts
    from earshot.pipeline.traces.contacts import contacts_within
    from earshot.pipeline.traces.ingest import ingest, read_trace
    from earshot.pipeline.traces.motion import resampled
    from earshot.pipeline.traces.trace_profile import profile_trace
    from earshot.pipeline.traces.trace_scenario import scenario_from_trace

__all__ = [
    "ContactNetwork",
    "Lake",
    "Metric",
    "ReportFigure",
    "ask_why",
    "compare",
    "contacts_within",
    "expected_receivers",
    "find_contacts",
    "ingest",
    "metrics",
    "profile_trace",
    "reach_plans",
    "reachable",
    "read_trace",
    "register_sources",
    "resampled",
    "scenario_from_trace",
    "show_progress",
    "spark_session",
    "swept_runs",
    "write_report",
]

_LOADED_WHEN_USED = {
    "ContactNetwork": "oracle.reachable",
    "Lake": "lake.lake",
    "Metric": "campaigns.outside_metrics",
    "ReportFigure": "reports.outside_figures",
    "ask_why": "oracle.why",
    "compare": "campaigns.flow",
    "contacts_within": "traces.contacts",
    "expected_receivers": "oracle.oracle",
    "find_contacts": "traces.contact_statistics",
    "ingest": "traces.ingest",
    "metrics": "campaigns.metrics",
    "profile_trace": "traces.trace_profile",
    "reach_plans": "oracle.reachable",
    "reachable": "oracle.reachable",
    "read_trace": "traces.ingest",
    "resampled": "traces.motion",
    "scenario_from_trace": "traces.trace_scenario",
    "show_progress": "spark.progress",
    "swept_runs": "campaigns.swept_keys",
    "write_report": "reports.report",
}


def __getattr__(name: str) -> Any:
    if name not in _LOADED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LOADED_WHEN_USED[name]}"), name)


if (_session := running_session()) is not None:
    register_sources(_session)
