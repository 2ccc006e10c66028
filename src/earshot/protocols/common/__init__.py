"""Parts that several protocols hold: local subscriptions, jitter, soft state, filters by text.

Start with `local_subscriptions`, the last hop of every protocol, where the one predicate decides.
`soft_table` and `byte_budget` bound what a node keeps of what its peers sent.
"""
