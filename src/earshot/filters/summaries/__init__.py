"""Summaries of many filters, or of many documents, in few bytes.

Start with `summary`, the Bloom summaries of subscriptions (content-based ODMRP): `clauses` of filters become
`sections`, one for each event type, each made of the paper's four `structures`; `digest` is the small form of an event
that is compared with them. `data_summary` is CoDD's: recent documents as bitmaps in a `summary_tree`.
"""
