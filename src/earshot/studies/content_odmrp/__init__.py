"""The study of content-based ODMRP. Start with `study`."""
