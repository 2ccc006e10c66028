"""Protocols without I/O: each is a machine that takes what happened and returns effects. Start with `machine`."""
