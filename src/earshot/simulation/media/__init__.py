"""Media: how packets travel between nodes. Start with `medium_settings`, then `transmission`."""
