"""The lake: the tables, and the one room that reads and writes them. Start with `lake`."""
