"""Many filters, one event: who matches? Start with `filter_index`."""
