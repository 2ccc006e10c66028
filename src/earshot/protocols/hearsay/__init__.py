"""Hearsay, our own protocol: who still knows somebody to reach speaks, the best placed first. Start with `machine`."""
