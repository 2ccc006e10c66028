"""Siena, as CoDD's paper emulates it for comparison. Start with `machine`."""
