"""Campaigns: many runs, their metrics and the leaderboard. Start with `flow`."""
