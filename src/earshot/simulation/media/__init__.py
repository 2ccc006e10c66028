"""Media: who hears whom, when, and what is lost on the way. Start with `medium_settings`."""
