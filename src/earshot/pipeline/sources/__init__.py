"""Mobility traces as Spark data sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_sources(session: SparkSession) -> None:
    """Let `session.read.format(...)` know our formats."""
