"""The study of STEAM. Start with `study`; docs/papers/steam.md describes the models."""
