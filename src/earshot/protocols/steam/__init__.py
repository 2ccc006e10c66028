"""STEAM: events for nodes that are near. Start with `machine`, which reads beside the paper."""
