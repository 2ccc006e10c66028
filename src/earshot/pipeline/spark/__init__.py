"""Spark itself: the session, its Java, our package on executors, one task for each item. Start with `session`."""
