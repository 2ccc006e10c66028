"""Records: what happened, written alike by the simulator and by live nodes, and read in one way.

`schema` is the row, `details` the dialect of its `detail` column, `drop_reasons` says why something was
dropped. `sessions` reads records into sessions and spans, `trajectories` says where nodes are. Start with
`schema`.
"""

from earshot.records.drop_reasons import DropReason
from earshot.records.schema import COLUMNS, ColumnType, Kind, Record

__all__ = ["COLUMNS", "ColumnType", "DropReason", "Kind", "Record"]
