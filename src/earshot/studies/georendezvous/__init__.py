"""The study of GeoRendezvous. Start with `study`."""
