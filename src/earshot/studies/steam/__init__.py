"""The study of STEAM. Start with `study`."""
