"""Many filters, one event: which filters match?

Start with `filter_index`, which splits each filter into `plans`. Paths go to the `automaton`, which walks documents
over their `prefix_tree`, from one of its `states` to the next, and beside it over `guarded_paths`; tests on values go
to `groups`, which keep them in `tables` (rows of `bits`, selected through `columns`).
"""
