"""Records: what happened, written alike by the simulator and by live nodes, and read in one way.

`schema` is the row, `drop_reasons` says why something was let go. Start with `schema`.
"""

from earshot.records.drop_reasons import DropReason
from earshot.records.schema import COLUMNS, ColumnType, Kind

__all__ = ["COLUMNS", "ColumnType", "DropReason", "Kind"]
