"""The study of DRIP. Start with `study`."""
