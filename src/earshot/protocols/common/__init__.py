"""Parts that several protocols hold: local subscriptions, jitter, soft state, filters by text."""
