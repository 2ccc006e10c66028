"""Traces: files to positions, positions to contacts. Start with `ingest`."""
