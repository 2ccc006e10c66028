"""How filters relate: one covers another, two overlap, several merge. Start with `covering`."""
