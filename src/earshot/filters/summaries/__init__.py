"""Summaries of many filters or many documents, in few bytes. Start with `summary`; `data_summary` is CoDD's."""
