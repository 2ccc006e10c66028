"""The engine: machines, a medium, and simulated time between them. Start with `run`, then `engine`."""
