"""The study of CoDD. Start with `study`."""
