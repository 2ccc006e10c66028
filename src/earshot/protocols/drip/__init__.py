"""DRIP: brokers by ability, regions by delay. Start with `machine`."""
