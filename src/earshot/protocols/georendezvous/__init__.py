"""GeoRendezvous over Cell Hash Routing: topics hashed to places. Start with `machine`, then `cell_hash_routing`."""
