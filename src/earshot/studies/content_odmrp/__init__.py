"""The study of content-based ODMRP. Start with `study`, then `worlds` (its networks) and `claims` (the verdicts)."""
