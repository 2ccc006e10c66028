"""The CoDD paper's experiments and claims. Start with `study`; `runs` has the paper's own, `beyond` our additions."""
