"""Studies: a folder a paper, with its experiments and its claims. Start with `study`."""
