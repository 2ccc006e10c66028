"""The study of GeoRendezvous. Start with `study`; `paths` needs no machines, `runs` simulates them."""
