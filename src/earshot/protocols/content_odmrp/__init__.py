"""Content-based multicast over an extended ODMRP. Start with `machine`; `odmrp` is the protocol without content."""
