"""How the protocol is read: the readings that several claims have."""

WRITTEN = "as written, the smallest group"
LEAST = "least constrained as one group for the type"
OURS = "our defaults"
THREE_WAYS = (("as written", WRITTEN), ("least constrained", LEAST), ("ours", OURS))
