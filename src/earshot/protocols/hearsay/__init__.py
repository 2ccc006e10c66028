"""Hearsay, our own protocol: whoever still knows somebody to reach speaks, the best placed first. Start: `machine`."""
