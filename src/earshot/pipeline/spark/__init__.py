"""Spark itself: the session, its Java, our package on executors, one task an item. Start with `session`."""
