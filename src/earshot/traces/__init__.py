"""Traces: positions of nodes over time, read from any format that Earshot knows.

`read_trace("walk.gpx")` reads a whole trace into memory: the simulator's playback and live nodes use it.
The pipeline's Spark data sources use the same parsers, one file or piece of a file at a time. Start
with `formats`, which lists the formats and detects which one a file has.
"""

from earshot.traces.formats import FORMATS, Trace, TraceFormat, read_trace
from earshot.traces.sightings import Sighting, TraceOptions

__all__ = ["FORMATS", "Sighting", "Trace", "TraceFormat", "TraceOptions", "read_trace"]
