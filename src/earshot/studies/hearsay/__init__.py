"""The study of Hearsay, our own protocol. Start with `study`."""
