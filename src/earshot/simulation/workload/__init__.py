"""The workload: what is published and what is subscribed to, and when. Start with `traffic`."""
